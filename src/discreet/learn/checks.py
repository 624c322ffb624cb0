"""The checks of scikit-learn that a private estimator cannot pass, each with its privacy reason.

check_estimator(model, expected_failed_checks=expected_failed_checks(model))
"""

from __future__ import annotations

from typing import Any

_FRESH_NOISE = "two fits differ: each draws fresh noise"
_FEW_ROWS = "a check on a few dozen rows: noise that hides one of them hides most of what they say"
_NO_CELL_STOPS = "a cell must not stop a fit, or the error would tell of it: such rows take part with zeros"

REASONS = {
    "check_classifier_data_not_an_array": _FRESH_NOISE,
    "check_classifiers_classes": "classes are declared, never read off the data",
    "check_classifiers_one_label": "classes are declared, never read off the data",
    "check_classifiers_regression_target": "labels that are not declared are left out without an error",
    "check_classifiers_train": _FEW_ROWS,
    "check_clustering": _FEW_ROWS,
    "check_decision_proba_consistency": "a slope that was clipped moves a probability by the length of its row",
    "check_dtype_object": "columns of objects are refused by their dtype, whatever they hold",
    "check_estimators_empty_data_messages": "the number of rows is private: no rows at all is a fit to noise",
    "check_estimators_nan_inf": _NO_CELL_STOPS,
    "check_fit_idempotent": _FRESH_NOISE,
    "check_fit2d_1sample": "the number of rows is private: one row is a fit to noise",
    "check_methods_sample_order_invariance": _FRESH_NOISE,
    "check_methods_subset_invariance": _FRESH_NOISE,
    "check_pipeline_consistency": _FRESH_NOISE,
    "check_regressor_data_not_an_array": _FRESH_NOISE,
    "check_regressors_int": _FRESH_NOISE,
    "check_regressors_train": _FEW_ROWS,
    "check_supervised_y_2d": _FRESH_NOISE,
    "check_supervised_y_no_nan": _NO_CELL_STOPS,
    "check_transformer_data_not_an_array": _FRESH_NOISE,
    "check_transformer_general": _FRESH_NOISE,
    "check_transformers_unfitted": _FRESH_NOISE,
}


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """The checks that cannot be passed privately, each with its reason."""
    return dict(REASONS)

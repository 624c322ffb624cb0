"""Findings of reviews: what one cell, or a step of a pipeline, must not change or hide."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer, StandardScaler, TargetEncoder

import discreet as dp

ROWS = 24
CLASSES = np.arange(ROWS) % 2
QUICK: dict[str, Callable[[], Any]] = {
    "logistic": lambda: dp.learn.LogisticRegression(classes=[0, 1], steps=2),
    "huber": lambda: dp.learn.HuberRegressor(steps=2),
    "linear": lambda: dp.learn.LinearRegression(target_bound="auto"),
    "bayes": lambda: dp.learn.GaussianNB(classes=[0, 1]),
    "clusters": lambda: dp.learn.KMeans(2),
    "mixture": lambda: dp.learn.GaussianMixture(2),
    "components": lambda: dp.learn.PCA(),
    "scaler": lambda: dp.learn.StandardScaler(),
    "bins": lambda: dp.learn.Bins(),
    "additive": lambda: dp.learn.AdditiveRegressor(steps=2),
    "features": lambda: dp.learn.FeatureClassifier(classes=[0, 1], steps=2),
}


def signalling(kind: Any, bits: Any, pattern: int) -> np.ndarray:
    """A table of numbers in which one is a signalling NaN: converting it raises a floating-point flag."""
    cells = np.arange(2 * ROWS).reshape(ROWS, 2).astype(kind)
    cells.view(bits)[3, 1] = pattern
    return cells


TABLES = [
    signalling(np.float16, np.uint16, 0x7D00),
    signalling(np.float32, np.uint32, 0x7FA00000),
    signalling(np.float64, np.uint64, 0x7FF4000000000000),
]


@pytest.mark.some_quick(17)
@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("table", TABLES, ids=["half", "single", "double"])
def test_a_signalling_nan_gives_no_warning(name, table):
    shapes = [
        table,
        np.ma.masked_array(table),
        pd.DataFrame({"a": np.arange(ROWS, dtype=np.float64), "b": table[:, 1]}),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in shapes:
            QUICK[name]().fit(rows, CLASSES)
        QUICK[name]().fit(np.zeros((ROWS, 2)), table[:, 1])


def test_a_huge_pixel_gives_no_warning():
    images = np.zeros((3, 64))
    images[1, 5] = 1e300
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dp.learn.Scattering(shape=(8, 8)).fit_transform(images)
    assert (found[1] == 0).all()


# --- steps of a pipeline that learn without noise ---------------------------------------------------------------

WHOLE = [[0, 1, 2], [0, 1]]
LEARNING = {
    "knots between the extremes": make_pipeline(SplineTransformer(), QUICK["logistic"]()),
    "an outer pipeline": make_pipeline(StandardScaler(), Pipeline([("model", QUICK["logistic"]())])),
    "two inner pipelines": make_pipeline(make_pipeline(StandardScaler()), make_pipeline(QUICK["logistic"]())),
    "the remaining columns": make_pipeline(
        ColumnTransformer([("one", "passthrough", [0])], remainder=make_pipeline(StandardScaler())), QUICK["logistic"]()
    ),
    "rare categories": make_pipeline(
        OneHotEncoder(categories=WHOLE, min_frequency=9, sparse_output=False), QUICK["logistic"]()
    ),
    "means of targets": make_pipeline(TargetEncoder(categories=WHOLE), QUICK["logistic"]()),
    "between two of one type": make_pipeline(dp.learn.PCA(), StandardScaler(), dp.learn.PCA()),
}
PUBLIC = {
    "given knots": make_pipeline(SplineTransformer(knots=np.array([[0, 0], [1, 1], [2, 2]])), QUICK["logistic"]()),
    "powers": make_pipeline(PolynomialFeatures(), QUICK["logistic"]()),
    "given categories": make_pipeline(OneHotEncoder(categories=WHOLE, sparse_output=False), QUICK["logistic"]()),
}
CATEGORIES = np.column_stack([np.arange(ROWS) % 3, np.arange(ROWS) % 2])


QUICKEST: dict[str, Any] = {"ranges": [(0, 2), (0, 1)], "n_estimators": 2}
FOREST = dp.learn.RandomForestClassifier(classes=[0, 1], **QUICKEST)
NUMBERS = dp.learn.RandomForestRegressor(target_range=(0, 1), **QUICKEST)
AROUND = {
    "a target that is scaled": TransformedTargetRegressor(NUMBERS, transformer=StandardScaler()),
    "a target in a pipeline": TransformedTargetRegressor(NUMBERS, transformer=make_pipeline(StandardScaler())),
    "rows drawn twice": BaggingClassifier(FOREST, n_estimators=1),
    "probabilities that are corrected": CalibratedClassifierCV(FOREST, cv=2),
    "classes that occur": OneVsRestClassifier(FOREST),
}
PUBLIC |= {
    "a target by a function": TransformedTargetRegressor(NUMBERS, func=np.sqrt, inverse_func=np.square),
    "rows drawn once": BaggingClassifier(FOREST, n_estimators=1, bootstrap=False),
}


@pytest.mark.parametrize("name", AROUND)
def test_an_estimator_around_that_is_not_private_is_noticed(name):
    with pytest.warns(UserWarning, match="around RandomForest.*guarantee does not hold"):
        AROUND[name].fit(CATEGORIES, CLASSES)


@pytest.mark.parametrize("name", LEARNING)
def test_a_step_that_learns_without_noise_is_noticed(name):
    with pytest.warns(UserWarning, match="without noise"):
        LEARNING[name].fit(CATEGORIES, CLASSES)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_step_that_learns_nothing_from_rows_is_fine(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PUBLIC[name].fit(CATEGORIES, CLASSES)


@pytest.mark.parametrize(
    "images", [np.zeros((0, 8, 8)), np.zeros((0, 8, 8, 3), dtype=np.uint8)], ids=["gray", "colors"]
)
def test_no_images_are_not_an_error(images):
    transform = dp.learn.Scattering(shape=images.shape[1:])
    assert len(transform.fit_transform(images)) == 0
    model = dp.learn.FeatureClassifier(features=transform, classes=[0, 1], steps=2).fit(images, np.zeros(0))
    assert np.isfinite(model.coef_).all()

"""Scores of a model on the rows of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import discreet as dp
from discreet import testing

RNG = np.random.default_rng(99)


REPLACE = dp.row(neighbors="replace")


def opened(tmp_path: Path, **terms: Any) -> dp.Ledger:
    given = {"limit": dp.Approx(epsilon=5, delta=1e-6), "protects": REPLACE, **terms}
    return dp.Ledger.open(tmp_path / "a.ledger", **given)


def test_a_model_scores_rows_with_missing_numbers_as_wrong(tmp_path: Path) -> None:
    X = RNG.normal(size=(1000, 2))
    y = X[:, 0] > 0
    model = LogisticRegression().fit(X, y)
    holes = X.copy()
    holes[:100, 1] = np.nan
    for ledger in (None, opened(tmp_path)):
        with testing.no_noise():
            study = dp.adaptive.study({"X": holes, "y": y}, queries=2, ledger=ledger)
            scoring = dp.adaptive.scorer(study, features="X", target="y")
            expected = (model.predict(X[100:]) == y[100:]).sum() / 1000
            assert scoring(model) == pytest.approx(expected, abs=1e-6)

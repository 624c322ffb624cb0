"""The law of an error, against laws that are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.stats.inference.laws import ErrorLaw


@pytest.mark.parametrize("degrees", [0.3, 1.0, 2.0, 5.0, 30.0, 51.0, 400.0, 1e9])
def test_a_student_law_is_never_understated(degrees: float) -> None:
    sizes = np.array([0.5, 1.0, 2.0, 3.0, 6.0, 12.0, 45.0, 100.0])
    found = ErrorLaw(1.0, degrees, np.zeros(1)).beyond(sizes)
    exact = 2 * stats.t.sf(sizes, degrees)
    assert (found >= exact - 1e-6).all()
    assert (found <= 1.03 * exact + 1e-5).all()


def test_one_laplace_number() -> None:
    sizes = np.array([0.1, 1.0, 3.0, 8.0, 20.0, 60.0])
    found = ErrorLaw(0.0, 1e9, np.array([2.0])).beyond(2 * sizes)
    exact = np.exp(-sizes)
    assert (found >= exact - 1e-4).all()
    assert (found[:4] <= exact[:4] + 1e-4).all()
    assert found[4] < 1e-5


def test_sums_of_all_kinds() -> None:
    draw, runs = np.random.default_rng(3), 1_000_000
    sums = 0.7 * draw.standard_t(8, runs) + 0.5 * draw.laplace(size=runs) - draw.laplace(size=runs)
    sums += 0.4 * draw.normal(size=runs)
    law = ErrorLaw(0.49, 8.0, np.array([0.5, 1.0]), 0.16)
    for size in (0.5, 1.0, 2.0, 4.0, 8.0):
        seen = float((np.abs(sums) > size).mean())
        assert abs(float(law.beyond(size)) - seen) < 5 * np.sqrt(seen / runs) + 0.01 * seen + 1e-5


def test_a_quantile_is_exceeded_as_often_as_asked() -> None:
    law = ErrorLaw(np.array([1.0, 0.0]), np.array([7.0, 1e9]), np.array([[0.3, 0.1], [1.0, 2.0]]))
    for miss in (0.2, 0.05, 0.001):
        assert np.allclose(law.beyond(law.quantile(miss)), miss, rtol=0.02)

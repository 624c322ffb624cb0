"""P-values of several tests, against hand-made ones."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dp
from discreet.stats import Evidence

from ...refusing import refuses

P = [0.01, 0.04, 0.03, 0.005]


def test_by_hand() -> None:
    assert dp.stats.bonferroni(P) == pytest.approx([0.04, 0.16, 0.12, 0.02])
    assert dp.stats.holm(P) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert dp.stats.benjamini_hochberg(P) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert dp.stats.benjamini_yekutieli(P) == pytest.approx(
        [x * (1 + 1 / 2 + 1 / 3 + 1 / 4) for x in (0.02, 0.04, 0.04, 0.02)]
    )


def test_forms() -> None:
    assert dp.stats.holm({"a": 0.01, "b": 0.9}) == {"a": 0.02, "b": 0.9}
    tests = [Evidence(test="t", hypothesis="h", p_value=p) for p in (0.2, 0.6)]
    assert dp.stats.bonferroni(tests) == [0.4, 1.0]
    assert dp.stats.holm(np.array([0.2, 0.6])) == pytest.approx([0.4, 0.6])
    assert dp.stats.holm([]) == []


@pytest.mark.slow
def test_holm_keeps_the_level() -> None:
    """20,000 families of five true hypotheses: 5 standard errors."""
    rng = np.random.default_rng(3)
    wrong = np.mean([min(dp.stats.holm(list(rng.random(5)))) <= 0.05 for _ in range(20_000)])
    assert wrong <= 0.05 + 5 * np.sqrt(0.05 * 0.95 / 20_000)


@pytest.mark.parametrize("wrong", [[0.1, 2], [True], ["a"], [float("nan")], [-0.1], [None]])
def test_refused_numbers(wrong: list[object]) -> None:
    with refuses(dp.InvalidArgument, "out-of-range"):
        dp.stats.holm(wrong)


@pytest.mark.parametrize("wrong", ["0.1", 0.1, None])
def test_refused_forms(wrong: object) -> None:
    with refuses(dp.InvalidArgument, "wrong-type"):
        dp.stats.benjamini_hochberg(wrong)  # type: ignore[call-overload]

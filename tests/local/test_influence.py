"""What fake devices can do at most to a survey, against every report that they can send."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.local.numbers import METHODS
from discreet.mechanisms.reports.local_mean import HybridResponse, WindowResponse

from ..refusing import refuses

SIZE = 5


def every_report(oracle: Any) -> np.ndarray:
    """All valid reports."""
    match oracle.method:
        case "direct" | "hadamard" | "projective":
            candidates: Any = np.arange(200)
        case "hashing":
            candidates = np.array([*itertools.product(range(oracle.prime), range(oracle.prime), range(oracle.cells))])
        case "subset" if oracle.listed:
            candidates = np.array([*itertools.product(range(oracle.size), repeat=oracle.columns)])
        case _:
            candidates = np.array([*itertools.product(range(256), repeat=oracle.columns)])
    return oracle.valid(candidates)


@pytest.mark.parametrize("epsilon", [0.5, 2])
@pytest.mark.parametrize("method", ["direct", "subset", "unary", "hashing", "hadamard", "projective"])
def test_the_bound_is_the_worst_of_all_reports(method: str, epsilon: float) -> None:
    survey = dp.local.survey(domain_size=SIZE, epsilon=epsilon, method=method)
    honest = survey.encode_many(np.arange(40) % SIZE)
    alone = np.array(list(survey.analyze(honest).raw.values()))
    changes = []
    for report in every_report(survey.oracle):
        with_fakes = survey.analyze(np.concatenate([honest, np.stack([report] * 3)]))
        changes.append(np.array(list(with_fakes.raw.values())) - alone)
    found, bound = np.array(changes), survey.influence(3, users=43)
    assert found.max() == pytest.approx(bound.up)
    assert -found.min() == pytest.approx(bound.down)
    worst = np.abs(found).sum(axis=1).max()
    assert worst <= bound.together + 1e-9
    assert worst == pytest.approx(bound.together)
    assert bound.left == survey.guarantee
    assert not bound.can_withhold


def test_shown_counts_can_change_by_more_and_the_text_says_so() -> None:
    """They sum to the number of reports: what one choice gains, another loses."""
    survey = dp.local.survey(domain_size=3, epsilon=1, method="unary")
    of = {tuple(survey.oracle.supported(report[None])): report for report in every_report(survey.oracle)}
    first, second = of[1, 0, 0], of[0, 1, 0]
    others, bound = np.stack([first, second] * 40), survey.influence(20, users=100)
    with_fakes = survey.analyze(np.concatenate([others, np.stack([first] * 20)]))
    assert survey.analyze(others).value[1] - with_fakes.value[1] > bound.down + 9
    assert survey.analyze(others).raw[1] - with_fakes.raw[1] == pytest.approx(bound.down)
    assert "one of them can change by more" in str(bound)


def test_of_any_text_only_one_count_is_bounded() -> None:
    bound = dp.local.survey(domain="strings", epsilon=1).influence(1, users=10)
    assert bound.together is None
    assert bound.up > bound.down > 0


@pytest.mark.parametrize("method", METHODS)
def test_a_mean_moves_from_one_end_of_the_reports_to_the_other(method: str) -> None:
    survey = dp.local.mean(between=(10, 30), epsilon=1, method=method)
    bound = survey.influence(3, users=10)
    if method in ("laplace", "taught"):
        ends = [end + side * 60 * survey.mechanism.scale for end, side in ((10, -1), (30, 1))]
        low, high = (np.nextafter(end, 20) for end in ends)
    else:
        reports = survey.mechanism.valid(np.arange(2**12))
        numbers = [survey.analyze([report]).raw for report in reports.tolist()]
        low, high = reports[int(np.argmin(numbers))], reports[int(np.argmax(numbers))]
    for others, fakes, most in ((low, high, bound.up), (high, low, -bound.down)):
        moved = survey.analyze([others] * 7 + [fakes] * 3).raw - survey.analyze([others] * 7).raw
        assert moved == pytest.approx(most)
    assert "the mean by at most" in str(bound)


def test_a_part_of_a_hybrid_that_nobody_draws_from_counts_too() -> None:
    wide, coin = WindowResponse(outputs=8, window=1, odds=2), WindowResponse(odds=3)
    made = HybridResponse(wide=wide, coin=coin, share=0)
    assert made.reach == coin.reach < wide.reach
    survey = dp.local.mean(between=(-1, 1), epsilon=2)
    object.__setattr__(survey, "mechanism", made)
    assert survey.influence(1, users=2).up == pytest.approx(wide.reach)


@pytest.mark.parametrize("fakes", [-1, 10, 11])
def test_fakes_are_some_of_the_users(fakes: int) -> None:
    for survey in (dp.local.survey(domain_size=3, epsilon=1), dp.local.mean(between=(0, 1), epsilon=1)):
        with refuses(InvalidArgument, "out-of-range"):
            survey.influence(fakes, users=10)

"""Runs that are judged: the exact law of what comes out, against what is claimed, in both relations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

import discreet as dp
from discreet import testing
from discreet.mechanisms.selection.judged_runs import JudgedRuns
from discreet.mechanisms.selection.private_selection import NegativeBinomialTries

from ...refusing import refuses

Law = dict[Any, float]
TRIES = NegativeBinomialTries(stop=0.3, shape=1)


@dataclass(frozen=True)
class HowFar:
    """A judge of a noisy count: its distance from the true one."""

    def finish(self, drawn: Any) -> int:
        return int(drawn)

    def measure(self, data: int, finished: int) -> list[int]:
        return [abs(data - finished)]

    def moved(self, *, replaced: bool) -> tuple[int, ...]:
        return (1,)

    def score(self, finished: int, noisy: Sequence[int]) -> float:
        return -float(noisy[0])


def count(rho: dp.ZeroConcentrated, rows: Any) -> dp.Gaussian:
    return dp.Gaussian.for_guarantee(rho, sensitivity=rows, step=1)


def judged(goal: dp.Guarantee, tries: Any = None, unit: dp.Unit | None = None, rows: int = 1) -> JudgedRuns:
    return JudgedRuns.for_guarantee(
        goal, of=[count], judge=HowFar(), unit=unit or dp.row(), rows=rows, tries=tries, judging=0.5
    )


def law_of_run(made: JudgedRuns, value: int) -> Law:
    """Every output of one run with its probability."""
    once = replace(made, selection=None)

    def run() -> Any:
        found = once._draw(value)
        return found["finished"], tuple(found["judged"])

    law = testing.exact_law(run, window=13).law
    return {output: float(mass) for output, mass in law.items()}  # type: ignore[misc]


def selected(law: Law) -> Law:
    """The law of the best run. Runs with equal scores are equally likely to be the first."""
    found: Law = {}
    below = 0.0
    for score in sorted({-noisy[0] for _, noisy in law}):
        equal = {output: mass for output, mass in law.items() if -output[1][0] == score}
        whole = sum(equal.values())
        share = TRIES.generating(min(1.0, below + whole)) - TRIES.generating(below)
        found |= {output: share * mass / whole for output, mass in equal.items()}
        below += whole
    return found


def largest_delta(p: Law, q: Law, epsilon: float) -> float:
    return max(
        sum(max(0.0, a.get(one, 0.0) - math.exp(epsilon) * b.get(one, 0.0)) for one in {*a, *b})
        for a, b in ((p, q), (q, p))
    )


def renyi(p: Law, q: Law, order: float) -> float:
    both = [(math.log(p[one]), math.log(q[one])) for one in p if p[one] > 0 and q.get(one, 0.0) > 0]
    return math.log(sum(math.exp(order * a - (order - 1) * b) for a, b in both)) / (order - 1)


# the noise is kept narrow, so that the window holds nearly all of it
GOAL = dp.ZeroConcentrated(rho=1)


def test_one_run_keeps_its_rho() -> None:
    made = judged(GOAL)
    first, second = law_of_run(made, 0), law_of_run(made, 1)
    assert 1 - sum(first.values()) < 1e-6
    for order in (2.0, 4.0, 8.0):
        needed = max(renyi(first, second, order), renyi(second, first, order))
        assert 0.4 * order < needed <= order * float(made.run.rho) + 1e-3


def test_a_run_that_forgets_to_pay_for_its_criteria_is_caught() -> None:
    """The mutant states the ρ of the candidate alone."""
    made = judged(GOAL)
    forgotten = 1 / (2 * float(made.candidates[0].stddev) ** 2)
    first, second = law_of_run(made, 0), law_of_run(made, 1)
    assert renyi(first, second, 2.0) > 2 * forgotten + 1e-3
    with refuses(dp.InvalidArgument, "part-does-not-fit"):
        replace(made, run=dp.ZeroConcentrated(rho=forgotten, protects=dp.row()))


def test_the_best_of_several_runs_keeps_what_is_stated() -> None:
    goal = dp.Approx(epsilon=6, delta=1e-2)
    made = judged(goal, TRIES)
    stated = made.guarantee()
    assert float(stated.epsilon) <= 6  # type: ignore[attr-defined]
    first, second = selected(law_of_run(made, 0)), selected(law_of_run(made, 1))
    assert largest_delta(first, second, float(stated.epsilon)) <= 1e-2  # type: ignore[attr-defined]


def test_charging_one_run_for_the_best_of_several_is_caught() -> None:
    """The mutant charges the ρ of a single run: at its own ε, the best of several is told apart too well."""
    made = judged(dp.Approx(epsilon=6, delta=1e-2), TRIES)
    law = law_of_run(made, 0), law_of_run(made, 1)
    once = next(e for e in (x / 20 for x in range(200)) if largest_delta(*law, e) <= 1e-3)
    assert largest_delta(selected(law[0]), selected(law[1]), once) > 1e-3


@pytest.mark.parametrize("neighbors", ["add_or_remove", "replace"])
@pytest.mark.parametrize("rows", [1, 3])
def test_people_with_several_rows_get_more_noise(neighbors: Any, rows: int) -> None:
    made = judged(dp.Approx(epsilon=1, delta=1e-6), None, dp.person("p", neighbors=neighbors), rows)
    single = judged(dp.Approx(epsilon=1, delta=1e-6))
    for own, one in zip(made.noises, single.noises, strict=True):
        assert float(own.stddev) == pytest.approx(rows * float(one.stddev), rel=1e-6)
    assert made.guarantee().protects == dp.person("p", neighbors=neighbors)


def test_the_errors_of_all_criteria_and_tries_hold_at_once() -> None:
    made = judged(dp.Approx(epsilon=6, delta=1e-2), TRIES)
    errors = made.judged_error(0.9)
    assert made.expected_tries == pytest.approx(float(TRIES.mean))
    each = 1 - 0.1 / float(TRIES.mean)
    assert errors == tuple(float(noise.error(each)) for noise in made.noises)
    assert made.error(0.9).amount is None


def test_refusals() -> None:
    made = judged(GOAL)
    with refuses(dp.InvalidArgument, "empty"):
        replace(made, candidates=())
    with refuses(dp.InvalidArgument, "part-does-not-fit"):
        replace(made, candidates=made.candidates * 2)
    with refuses(dp.InvalidArgument, "wrong-shape"):
        replace(made, noises=())
    with refuses(dp.InvalidArgument, "sensitivity-not-taken"):
        made.guarantee(1)
    with refuses(dp.InvalidArgument, "needs-delta"):
        judged(dp.Pure(epsilon=1))
    with refuses(dp.InvalidArgument, "part-does-not-fit"):
        replace(judged(dp.Approx(epsilon=1, delta=1e-3), TRIES), run=dp.ZeroConcentrated(rho=5, protects=dp.row()))
    with refuses(dp.InvalidArgument, "part-does-not-fit"):
        JudgedRuns(candidates=(dp.Laplace(scale=0.4),), judge=HowFar(), noises=made.noises, run=made.run, unit=dp.row())


def test_nothing_but_the_best_run_is_in_the_result() -> None:
    made = judged(dp.Approx(epsilon=2, delta=1e-3), TRIES)
    found = dp.release(10, made).value
    assert sorted(found) == ["candidate", "finished", "judged"]
    assert found["candidate"] == 0
    assert len(found["judged"]) == 1
    assert exact_share(made) == Fraction(1, 2)


def exact_share(made: JudgedRuns) -> Fraction:
    """The share of ρ that pays for the criteria, to a thousandth."""
    paid = 1 / (2 * float(made.candidates[0].stddev) ** 2)
    return Fraction(round(1000 * (1 - paid / float(made.run.rho))), 1000)


def test_measurements_without_noise_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant releases the exact distance: neighbors never have the same one for the same noisy count."""
    made, own = judged(GOAL), JudgedRuns._draw

    def exactly(self: JudgedRuns, value: int) -> dict[str, Any]:
        found = own(self, value)
        return found | {"judged": self.judge.measure(value, found["finished"])}

    right = law_of_run(made, 0), law_of_run(made, 1)
    monkeypatch.setattr(JudgedRuns, "_draw", exactly)
    wrong = law_of_run(made, 0), law_of_run(made, 1)
    assert largest_delta(*right, 8.0) < 1e-3 < 0.9 < largest_delta(*wrong, 8.0)

"""Tests of guesses: the exact law of a whole run, what a passed guess says, and when a run is charged."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import door, testing
from discreet.exact import samplers
from discreet.mechanisms.adaptive import guess_tests
from discreet.mechanisms.adaptive.guess_tests import GuessRun, GuessTests, _distance, _tail

from ..refusing import refuses

SMALL = GuessTests(tolerance=1, threshold_scale=2, answer_scale=1)
ROW = dp.Sensitivity(1, "Linf", unit=dp.row(), grain=1, monotone=True)
COST = float(SMALL.guarantee(ROW).epsilon)  # type: ignore[attr-defined]
ABOVE_AND_BELOW = (4, 4, 4, 0, 0, 0)
"""Guesses at a count of 1 or 2: with one row more, the first ones are nearer and the others farther off."""


def resumed(bar: int, failed: bool) -> GuessRun:
    """A run with this noisy tolerance."""
    run = GuessRun.__new__(GuessRun)
    run._test, run._bar, run._failed = SMALL.test, bar, failed
    return run


def law_of(count: int) -> tuple[dict[tuple[Any, ...], float], float]:
    """The exact law of all that a guesser sees who goes on to the end, and the mass outside of the window.

    The noisy tolerance is enumerated, and then the noise of each test.
    """
    bars = testing.exact_law(lambda: GuessRun(SMALL)._bar, window=30)

    @cache
    def said(bar: int, failed: bool, guess: int) -> dict[tuple[Any, bool], float]:
        def once() -> tuple[Any, bool]:
            run = resumed(bar, failed)
            try:
                return run._draw(([guess], [count])), run._failed
            except dp.BudgetExhausted as error:
                return error.code, run._failed

        return {seen: float(p) for seen, p in testing.exact_law(once, window=30).law.items()}

    law: dict[tuple[Any, ...], float] = defaultdict(float)
    for bar, weight in bars.law.items():
        paths: dict[tuple[tuple[Any, ...], bool], float] = {((), False): float(weight)}
        for guess in ABOVE_AND_BELOW:
            longer: dict[tuple[tuple[Any, ...], bool], float] = defaultdict(float)
            for (seen, failed), p in paths.items():
                for (result, over), chance in said(bar, failed, guess).items():
                    longer[(*seen, result), over] += p * chance
            paths = longer
        for (seen, _), p in paths.items():
            law[seen] += p
    return law, 1 - sum(law.values())


def a_run_keeps_its_promise() -> float:
    """One row more or less, and no sequence of results says more than was charged: the largest loss, as a share."""
    promised = float(SMALL.guarantee(ROW).epsilon)  # type: ignore[attr-defined]
    (one, out_of_one), (two, out_of_two) = law_of(1), law_of(2)
    worst = 0.0
    for first, second, missing in ((one, two, out_of_two), (two, one, out_of_one)):
        for seen, p in first.items():
            loss = math.log(p) - math.log(second[seen] + missing)
            assert loss <= promised + 1e-9, "a run shows more than was charged"
            worst = max(worst, loss / promised)
    return worst


def a_passed_guess_is_near() -> None:
    """One test at every distance, enumerated: it passes as often as is said, and the stated error is the least."""
    for made in (SMALL, GuessTests(tolerance=3, threshold_scale=1, answer_scale=1)):
        for distance in range(made.tolerance, 9):
            law = testing.exact_law(partial(lambda m, d: GuessRun(m)._draw(([d], [0])), made, distance), window=12)
            passed = float(law.law.get(True, 0))
            said = made.chance_to_pass(distance)
            assert passed <= said <= passed * (1 + 1e-6) + float(law.unresolved) + 1e-12, "the chance is wrong"
        for sure in (0.5, 0.9, 0.999):
            amount = int(float(made.error(sure)))
            assert made.chance_to_pass(amount + 1) <= 1 - sure, "a guess that is farther off passes too often"
            assert amount == 0 or made.chance_to_pass(amount) > 1 - sure


def a_run_is_charged_before_its_first_draw(path: Path) -> None:
    ledger = dp.Ledger.open(path / "runs.ledger", limit=dp.Pure(epsilon=3 * COST), protects=dp.row())
    with testing.frozen(1) as tape:
        session = dp.stream(SMALL, sensitivity=ROW, ledger=ledger)
        spent = float(SMALL.guarantee(ROW).epsilon)  # type: ignore[attr-defined]
        assert len(list(ledger.entries())) == 1, "a run is not charged"
        while session.add(([0], [2])):
            pass
        calls = len(tape.calls)
        with refuses(dp.BudgetExhausted, "guess-failed"):
            session.add(([0], [0]))
        assert len(tape.calls) == calls, "a test was drawn after a failure"
        again = dp.stream(SMALL, sensitivity=ROW, ledger=ledger)
        assert len(list(ledger.entries())) == 2, "a run after a failure is not charged"
        assert again.receipt != session.receipt
    left = float(ledger.remaining.epsilon)  # type: ignore[union-attr]
    assert left == pytest.approx(3 * COST - 2 * spent)
    poor = dp.Ledger.open(path / "poor.ledger", limit=dp.Pure(epsilon=0.1), protects=dp.row())
    with testing.frozen(1) as tape:
        with refuses(dp.BudgetExhausted, "budget-exhausted"):
            dp.stream(SMALL, sensitivity=ROW, ledger=poor)
        assert not tape.calls, "noise was drawn before the charge"


def only_pass_or_fail_leaves() -> None:
    """Whatever happens, nothing that leaves names a true count: results are booleans, and errors hold no number."""
    with testing.no_noise():
        session = dp.stream(SMALL, sensitivity=ROW)
        assert session.add(([0], [0])) is True
        assert session.add(([0], [424242])) is False
    with refuses(dp.BudgetExhausted, "guess-failed") as caught:
        session.add(([0], [424242]))
    for shown in (str(caught.value), repr(session), repr(vars(session).keys()), repr(session._running)):
        assert "424242" not in shown, "a true count is shown"


def noise_is_new_for_every_guess() -> None:
    with testing.frozen(3) as tape:
        run = GuessRun(GuessTests(tolerance=1000, threshold_scale=1, answer_scale=1))
        for _ in range(5):
            run._draw(([0], [0]))
    assert [name for name, _ in tape.calls] == ["discrete_laplace"] * 6, "a guess is tested without noise of its own"


@pytest.mark.slow
def test_a_run_keeps_its_promise() -> None:
    """The promise is attained, so less noise would break it."""
    assert a_run_keeps_its_promise() > 0.99


@pytest.mark.slow
def test_a_passed_guess_is_near() -> None:
    a_passed_guess_is_near()


def test_a_run_is_charged_before_its_first_draw(tmp_path: Path) -> None:
    a_run_is_charged_before_its_first_draw(tmp_path)


def test_only_pass_or_fail_leaves() -> None:
    only_pass_or_fail_leaves()


def test_noise_is_new_for_every_guess() -> None:
    noise_is_new_for_every_guess()


@pytest.mark.parametrize(
    ("first", "second"), [(1, 1), (2, 3), (5, 1), (Fraction(1, 2), Fraction(1, 2)), (3, 3.0000001)]
)
def test_the_tail_of_two_noises(first: Any, second: Any) -> None:
    p, q = math.exp(-1 / first), math.exp(-1 / second)
    place = np.arange(-400, 401)
    law = np.convolve(*(((1 - r) / (1 + r)) * r ** np.abs(place) for r in (p, q)))
    for z in (1, 3, 20):
        exact = law[800 + z :].sum()
        assert exact * (1 - 1e-12) <= _tail(z, Fraction(first), Fraction(second)) <= exact * (1 + 1e-6)
    assert _tail(0, Fraction(first), Fraction(second)) == 1


@pytest.mark.parametrize("amount", [12, 2500, 10**9])
def test_the_most_noise_for_an_error(amount: int) -> None:
    made = GuessTests.for_error(amount, confidence=0.999)
    assert int(float(made.error(0.999))) <= amount
    louder = GuessTests(
        tolerance=made.tolerance,
        threshold_scale=float(made.threshold_scale) * 1.05,
        answer_scale=float(made.answer_scale) * 1.05,
    )
    assert int(float(louder.error(0.999))) > amount


def test_all_groups_of_a_question_are_tested_at_once() -> None:
    assert _distance([1, 5, 9], np.array([1, 7, 2])) == 7
    assert _distance([], []) == 0
    assert _distance([2**70], [0]) == 2**70
    with pytest.raises(ValueError, match="zip"):
        _distance([1], [1, 2])


def test_refusals() -> None:
    for wrong in ({"tolerance": -1}, {"threshold_scale": 0}, {"answer_scale": -1}):
        with refuses(dp.InvalidArgument, "out-of-range"):
            GuessTests(**{"tolerance": 1, "threshold_scale": 1, "answer_scale": 1} | wrong)
    with refuses(dp.InvalidArgument, "out-of-range"):
        GuessTests.for_error(0)
    assert GuessTests(tolerance=1, threshold_scale=2**70, answer_scale=1).error(0.999).amount is None


@pytest.mark.slow
def test_wrong_passes_are_rare() -> None:
    """4,000 guesses that are just too far off: about 1% pass, and 80 have a false alarm below 1e-8. Twice as many as
    are allowed would be seen.
    """
    made = GuessTests.for_error(40, confidence=0.99)
    wrong = sum(GuessRun(made)._draw(([0], [41])) for _ in range(4000))
    assert wrong <= 80


# --- seeded bugs ------------------------------------------------------------------------------------------------


def goes_on_after_a_failure(patch: pytest.MonkeyPatch) -> None:
    """The noisy tolerance is used again after a failure."""

    def draw(self: GuessRun, value: Any) -> bool:
        return not self._test._reaches(self._bar, _distance(*value))

    patch.setattr(GuessRun, "_draw", draw)


def charged_after_the_test(patch: pytest.MonkeyPatch) -> None:
    def stream(mechanism: Any, *, sensitivity: Any, ledger: Any = None, **_: Any) -> door.Session:
        guarantee = mechanism.guarantee(sensitivity)
        made = door.Session(mechanism, None, guarantee)
        entry = None if ledger is None else ledger.charge(guarantee, asked="late", mechanism=mechanism)
        made.receipt = None if entry is None else entry.receipt
        return made

    patch.setattr(dp, "stream", stream)


def truth_in_the_message(patch: pytest.MonkeyPatch) -> None:
    real = GuessRun._draw

    def draw(self: GuessRun, value: Any) -> bool:
        if self._failed:
            raise dp.BudgetExhausted(f"The counts are {value[1]}.", code="guess-failed")
        return real(self, value)

    patch.setattr(GuessRun, "_draw", draw)


def priced_as_if_monotone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(guess_tests, "two_sided", lambda bound: bound)


def one_noise_for_all_guesses(patch: pytest.MonkeyPatch) -> None:
    def draw(self: GuessRun, value: Any) -> bool:
        if not hasattr(self, "_noise"):
            self._noise = int(samplers.discrete_laplace(self._test.answer_scale, 1)[0])  # type: ignore[attr-defined]
        self._failed = self._failed or _distance(*value) + self._noise >= self._bar  # type: ignore[attr-defined]
        return not self._failed

    patch.setattr(GuessRun, "_draw", draw)


def mass_at_the_tolerance_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = guess_tests._tail
    patch.setattr(guess_tests, "_tail", lambda z, first, second: real(z + 1, first, second))


BUGS: list[tuple[Callable[[pytest.MonkeyPatch], None], Callable[..., Any]]] = [
    (goes_on_after_a_failure, a_run_keeps_its_promise),
    (charged_after_the_test, a_run_is_charged_before_its_first_draw),
    (truth_in_the_message, only_pass_or_fail_leaves),
    (priced_as_if_monotone, a_run_keeps_its_promise),
    (one_noise_for_all_guesses, noise_is_new_for_every_guess),
    (mass_at_the_tolerance_forgotten, a_passed_guess_is_near),
]


@pytest.mark.parametrize(("bug", "check"), BUGS, ids=lambda one: one.__name__)
def test_a_seeded_bug_is_seen(
    bug: Callable[[pytest.MonkeyPatch], None],
    check: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    bug(monkeypatch)
    with pytest.raises(AssertionError):
        check(tmp_path) if "path" in check.__annotations__ else check()

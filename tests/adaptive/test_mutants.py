"""Seeded bugs of studies: each is planted, and a check of ours must see it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.adaptive import guarded, opening, sample
from discreet.adaptive import studies as studies
from discreet.guarantees import generalization
from discreet.mechanisms.adaptive import means, thresholdout
from discreet.mechanisms.adaptive.means import QUANTUM, AdaptiveMeans, Answering
from discreet.mechanisms.adaptive.thresholdout import Thresholdout

from ..refusing import refuses

Plant = Callable[[pytest.MonkeyPatch], None]


# --- the checks -----------------------------------------------------------------------------------------------


def noise_is_what_is_charged() -> None:
    """Answers to one question scatter as the noise says: 800 draws, within 15% has a false alarm below 1e-8."""
    made = AdaptiveMeans.of_noise(0.02, size=1000, queries=800)
    answering = Answering(made)
    drawn = np.array([answering._draw(500 * QUANTUM.denominator) for _ in range(800)])
    assert abs(drawn.std() / 0.02 - 1) < 0.15, "the noise is not what is charged"
    assert len(set(drawn.tolist())) > 790, "a draw is used twice"  # two in 800 are the same now and then


def a_row_moves_a_sum_by_at_most_one() -> None:
    for cell in (np.nan, np.inf, -np.inf, 1e300, -7.0, 0.5):
        known, more = np.array([0.2, 0.9]), np.array([0.2, 0.9, cell])
        moved = sample.exact_total(more) - sample.exact_total(known)
        assert 0 <= moved <= QUANTUM.denominator, "a row moves the sum by more than one"


def the_whole_study_is_charged(path: Path) -> None:
    ledger = dp.Ledger.open(
        path / "m.ledger", limit=dp.Approx(epsilon=9, delta=1e-6), protects=dp.row(neighbors="replace")
    )
    study = dp.adaptive.study({"x": np.ones(500)}, queries=25, ledger=ledger)
    assert len(list(ledger.entries())) == 1, "nothing is charged"
    guarantee = study.guarantee
    assert guarantee is not None
    alone = AdaptiveMeans(size=500, queries=1, noise=study.mechanism.noise).guarantee()  # type: ignore[union-attr]
    assert guarantee.renyi(8.0) >= 24.9 * alone.renyi(8.0), "not every question is charged"
    for _ in range(25):
        study.mean(lambda rows: rows["x"] > 0)
    with refuses(dp.BudgetExhausted, "questions-used-up"):
        study.mean(lambda rows: rows["x"] > 0)


def one_test_more_than_corrections_is_charged() -> None:
    given: dict[str, Any] = {"size": 1000, "queries": 50, "tolerance": 0.05, "test": 0.2, "noise": 0.05}
    made = Thresholdout.of_scales(**given, overfits=3, kind="laplace")
    loss = made.guarantee().largest_loss
    answers = 3 / float(made.noise.scale)  # type: ignore[union-attr]
    assert loss is not None
    assert float(loss) >= 4 * 0.2 * 0.9999 + answers * 0.9999, "a test is not charged"


def widths_are_never_below_the_theorem() -> None:
    from scipy.special import erfc, ndtr, ndtri

    made = AdaptiveMeans.of_noise(0.02, size=1000, queries=10)
    z = np.linspace(0, 12, 400_001)
    above = np.minimum(-np.expm1(10 * np.log1p(-np.minimum(erfc(z / np.sqrt(2)), 1 - 1e-16))), 0.05)
    worst = 0.02 * float(above.sum() * (z[1] - z[0])) / 0.05
    exact = 1 - float(ndtr(ndtri(0.05 * (1 - worst)) - np.sqrt(10) / 20)) / 0.05
    assert made.width(0.95) >= exact - 1e-4, "a width is below the theorem"


def a_question_concerns_each_row_alone() -> None:
    rows = guarded.GuardedRows({"x": np.arange(4.0)})
    for question, code in (
        (lambda: rows["x"] + np.arange(4.0), "wrong-shape"),
        (lambda: (rows["x"] + np.zeros((1, 1))).sum(axis=1), "wrong-shape"),
        (lambda: np.add.accumulate(rows["x"]), "study-row-by-row"),
    ):
        with refuses(dp.DiscreetError, code):
            question()


def rows_under_a_ledger_get_private_methods(path: Path) -> None:
    ledger = dp.Ledger.open(
        path / "p.ledger", limit=dp.Approx(epsilon=9, delta=1e-6), protects=dp.row(neighbors="replace")
    )
    with refuses(dp.NotAllowed, "study-protected"):
        dp.adaptive.study({"x": np.ones(500)}, queries=2, ledger=ledger, method="splitting")
    assert dp.adaptive.study({"x": np.ones(500)}, queries=2, ledger=ledger).guarantee is not None


def the_charge_comes_before_the_rows(path: Path) -> None:
    ledger = dp.Ledger.open(
        path / "c.ledger", limit=dp.Approx(epsilon=1e-5, delta=1e-9), protects=dp.row(neighbors="replace")
    )
    table = dp.table({"x": np.ones(500)}, ledger=ledger)
    read: list[int] = []
    table._columns_of_study = lambda: read.append(1) or {"x": np.ones(500)}  # type: ignore[method-assign,func-returns-value]
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        dp.adaptive.study(table, queries=100)
    assert not read, "rows were read before the charge"


CHECKS: list[Callable[..., None]] = [
    noise_is_what_is_charged,
    a_row_moves_a_sum_by_at_most_one,
    the_whole_study_is_charged,
    one_test_more_than_corrections_is_charged,
    widths_are_never_below_the_theorem,
    a_question_concerns_each_row_alone,
    rows_under_a_ledger_get_private_methods,
    the_charge_comes_before_the_rows,
]


def run(check: Callable[..., None], path: Path) -> None:
    check(path) if "path" in check.__code__.co_varnames[: check.__code__.co_argcount] else check()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_wrong(check: Callable[..., None], tmp_path: Path) -> None:
    run(check, tmp_path)


# --- the bugs -------------------------------------------------------------------------------------------------


def halved(patch: pytest.MonkeyPatch) -> None:
    noise = Answering._noise
    patch.setattr(Answering, "_noise", lambda self: noise(self) // 2)


def used_twice(patch: pytest.MonkeyPatch) -> None:
    noise, last = Answering._noise, []

    def twice(self: Answering) -> int:
        if last:
            return last.pop()
        last.append(noise(self))
        return last[0]

    patch.setattr(Answering, "_noise", twice)


def clip_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sample, "exact_total", lambda values, *_: int(np.nan_to_num(values).clip(-1e9, 1e9).sum() * 2**20))


def one_question_charged(patch: pytest.MonkeyPatch) -> None:
    whole = AdaptiveMeans.guarantee

    def one(self: AdaptiveMeans, sensitivity: Any = None) -> Any:
        return whole(AdaptiveMeans(size=self.size, queries=1, noise=self.noise), sensitivity)

    patch.setattr(AdaptiveMeans, "guarantee", one)


def no_charge(patch: pytest.MonkeyPatch) -> None:
    begin = opening.stream
    patch.setattr(opening, "stream", lambda mechanism, **given: begin(mechanism, **(given | {"ledger": None})))


def asked_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(studies.Study, "remaining", property(lambda self: 1))
    patch.setattr(Answering, "_draw", lambda self, value: 0.5)


def a_test_free(patch: pytest.MonkeyPatch) -> None:
    def fewer(self: Thresholdout, sensitivity: Any = None) -> Any:
        bound = self.sensitivity(dp.row()) if sensitivity is None else sensitivity
        parts = [self.test.guarantee(bound)] * self.overfits + [self.noise.guarantee(bound)] * self.overfits
        return thresholdout.compose(parts)

    patch.setattr(Thresholdout, "guarantee", fewer)


def noise_forgotten_in_the_width(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(means, "worst_mean", lambda *_: 0.0)


def wrong_side_of_the_curve(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(generalization, "least_chance", lambda guarantee, reached: reached)


def any_constant(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(guarded, "_row_by_row", lambda function, *given: guarded._compute(function, *given))
    patch.setattr(guarded, "_compute", lambda make, *given: guarded.GuardedColumn(make(*map(guarded._unwrap, given))))


def methods_unguarded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        studies, "candidate_methods", lambda asked, methods, protected: [asked] if asked != "auto" else [*methods]
    )


def read_first(patch: pytest.MonkeyPatch) -> None:
    begin = opening.Source.session

    def early(self: opening.Source, *given: Any) -> Any:
        self.read()
        return begin(self, *given)

    patch.setattr(opening.Source, "session", early)


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (halved, noise_is_what_is_charged),
        (used_twice, noise_is_what_is_charged),
        (clip_dropped, a_row_moves_a_sum_by_at_most_one),
        (one_question_charged, the_whole_study_is_charged),
        (no_charge, the_whole_study_is_charged),
        (asked_for_ever, the_whole_study_is_charged),
        (a_test_free, one_test_more_than_corrections_is_charged),
        (noise_forgotten_in_the_width, widths_are_never_below_the_theorem),
        (wrong_side_of_the_curve, widths_are_never_below_the_theorem),
        (any_constant, a_question_concerns_each_row_alone),
        (methods_unguarded, rows_under_a_ledger_get_private_methods),
        (read_first, the_charge_comes_before_the_rows),
    ],
    ids=lambda one: one.__name__,
)
def test_a_seeded_bug_is_seen(
    plant: Plant, check: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        run(check, tmp_path)


def test_the_quantum_is_a_power_of_two() -> None:
    assert Fraction(1, 2**20) == QUANTUM

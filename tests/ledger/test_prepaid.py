"""Accounts that are paid in advance: their charges cost nobody more, stay within what was paid, and are verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.errors import BudgetExhausted, DiscreetError, InvalidArgument, LedgerDamaged
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.rules.best_of import Basic
from discreet.guarantees.rules.once import Once
from discreet.ledger import Ledger, prepaid, steps
from discreet.ledger.prepaid import Prepaid, all_paid, pay
from discreet.ledger.steps import Steps
from discreet.ledger.views import NotBought

from ..refusing import refuses

UNIT = dp.person("pid")
EACH = dp.Pure(epsilon=1, protects=UNIT)


def ledger_at(path: Path | str = ":memory:", unit: Any = UNIT) -> Ledger:
    return Ledger.open(path, protects=unit, limit=dp.Pure(epsilon=10))


def steps_for(units: int = 2, *, each: Guarantee = EACH, joint: bool = False) -> Steps:
    return Steps(names=("a", "b", "c"), each=Once(limit=each), units=units, joint=joint)


def paid_in(ledger: Ledger, wanted: Steps | None = None) -> prepaid.Paid:
    wanted = wanted or steps_for()
    return pay(ledger, wanted.total(ledger.protects), wanted, {"what": "counts"}, asked="counts, three times")


def charge(view: Ledger, text: str = "one", guarantee: Guarantee = EACH) -> Any:
    return view.charge(guarantee, asked=text, mechanism="noise", key=text)


def test_steps_cost_nobody_more_and_stay_within_what_was_paid() -> None:
    ledger = ledger_at()
    paid = paid_in(ledger)
    assert ledger.remaining == dp.Pure(epsilon=8)
    for name in paid.steps.names:
        view = Prepaid.step_of(ledger, paid, name)
        entry = charge(view)
        view.keep(entry, [1.5])
        assert view.answer(entry) == ([1.5], False)
        with pytest.raises(BudgetExhausted):
            charge(view, "two")
        with refuses(DiscreetError, "not-the-one-paid"):
            charge(view, "three", dp.Pure(epsilon=0.1))
        assert view.remaining is None
        assert view.remaining_after(entry)() == dp.Pure(epsilon=8)
    assert ledger.remaining == dp.Pure(epsilon=8)
    assert ledger.verify() == 1 + 2 + 6
    assert ledger.analysts == ()


def test_several_releases_of_a_step_have_one_sum() -> None:
    ledger = ledger_at()
    paid = paid_in(ledger, Steps(names=("a",), each=Basic(limit=EACH).fixed(), units=1, joint=False))
    view = Prepaid.step_of(ledger, paid, "a")
    charge(view, "one", dp.Pure(epsilon=0.4))
    charge(view, "two", dp.Pure(epsilon=0.6))
    with pytest.raises(BudgetExhausted):
        charge(view, "three", dp.Pure(epsilon=0.1))
    ledger.verify()


def test_what_is_paid_is_recorded_once(tmp_path: Path) -> None:
    path = tmp_path / "a.ledger"
    first = paid_in(ledger_at(path))
    again = paid_in(ledger_at(path))
    assert first.entry.number == again.entry.number
    [found] = all_paid(ledger_at(path))
    assert (found.steps, found.definition) == (first.steps, {"what": "counts"})
    assert ledger_at(path).count == 2


def test_steps_are_found_in_every_kind_of_store(place: Any) -> None:
    ledger = Ledger.open(place.target, protects=UNIT, limit=dp.Pure(epsilon=10), checkpoint=place.checkpoint)
    names = tuple(f"2024-{day}" for day in range(600))
    paid = paid_in(ledger, Steps(names=names, each=Once(limit=EACH), units=2, joint=False))
    assert Prepaid.answered(ledger, paid, "one") == set()
    for name in (names[0], names[-1]):
        view = Prepaid.step_of(ledger, paid, name)
        view.keep(charge(view), [1])
    charge(Prepaid.step_of(ledger, paid, names[7]))
    assert Prepaid.answered(ledger, paid, "one") == {names[0], names[-1]}
    assert Prepaid.has_entries(ledger, paid, names[7])
    assert Prepaid.find(ledger, paid, names[7], "one") is None
    again = Ledger.open(place.target, checkpoint=place.checkpoint)
    assert all_paid(again)[0].steps == paid.steps
    again.verify()
    again.close()
    ledger.close()


def test_steps_must_be_paid() -> None:
    ledger = ledger_at()
    with refuses(InvalidArgument, "standing-steps"):
        pay(ledger, EACH, steps_for(2), {}, asked="too little")
    with pytest.raises(BudgetExhausted):
        pay(ledger, dp.Pure(epsilon=11), steps_for(1), {}, asked="too much")
    assert ledger.count == 0
    paid = paid_in(ledger)
    with refuses(InvalidArgument, "standing-steps"):
        Prepaid.step_of(ledger, paid, "d")
    for wrong in ({"names": ()}, {"names": ("a", "a")}, {"units": 4}, {"names": ("a" * 60,)}):
        with refuses(InvalidArgument, "standing-steps"):
            Steps(**{"names": ("a", "b", "c"), "each": Once(limit=EACH), "units": 1, "joint": False} | wrong)


def test_a_step_is_nobodys_account() -> None:
    ledger = ledger_at()
    paid = paid_in(ledger)
    view = Prepaid.step_of(ledger, paid, "a")
    for name in ("standing/1", "standing/1/a", "standing/new"):
        with refuses(InvalidArgument, "ledger-analyst-name"):
            ledger.for_analyst(name, limit=dp.Pure(epsilon=1))
    with refuses(InvalidArgument, "ledger-owner-only"):
        view.raise_limit(dp.Pure(epsilon=5), why="more")
    with refuses(InvalidArgument, "ledger-analyst-name"):
        ledger.raise_limit(dp.Pure(epsilon=5), why="more", analyst="standing/1/a")
    with refuses(InvalidArgument, "standing-steps"):
        view.__reduce__()
    with pytest.raises(NotBought):
        charge(Prepaid.step_of(ledger, paid, "a", asks=False))


def test_analysts_pay_for_their_own() -> None:
    ledger = ledger_at()
    alice = ledger.for_analyst("alice", limit=dp.Pure(epsilon=2))
    paid = paid_in(alice)
    assert alice.remaining is None
    assert ledger.remaining == dp.Pure(epsilon=8)
    charge(Prepaid.step_of(alice, paid, "a"))
    charge(Prepaid.step_of(ledger, paid, "b"))
    assert len(all_paid(alice)) == 1
    assert not all_paid(ledger.for_analyst("bob", limit=dp.Pure(epsilon=1)))
    assert [entry.kind for entry in alice.entries()] == ["account", "charge"]
    ledger.verify()


def test_parts_of_the_data_are_paid_where_units_live_in_one() -> None:
    unit = dp.person("pid", per="month")
    ledger = ledger_at(unit=unit)
    wanted = Steps(
        names=("2024-01", "2024-02"), each=Once(limit=dp.Pure(epsilon=1, protects=unit)), units=1, joint=False
    )
    paid = pay(ledger._within("2024-01", "2024-02"), wanted.total(unit), wanted, {}, asked="x")
    assert ledger._within("2024-01").remaining == dp.Pure(epsilon=9)
    assert ledger._within("2024-03").remaining == dp.Pure(epsilon=10)
    view = Prepaid.step_of(ledger, paid, "2024-02")
    charge(view, guarantee=dp.Pure(epsilon=1, protects=unit))
    assert ledger._within("2024-02").remaining == dp.Pure(epsilon=9)
    ledger.verify()


# --- verification -------------------------------------------------------------------------------------------


def _too_cheap(patch: pytest.MonkeyPatch) -> None:
    """Steps in which a unit is twice are paid once."""
    patch.setattr(Steps, "total", lambda self, protects: self.each.limit.stated_for(protects))


def _not_checked(patch: pytest.MonkeyPatch) -> None:
    """The charge is not compared with what the steps cost."""
    patch.setattr(Steps, "is_paid_by", lambda self, guarantee, protects: True)


def test_steps_that_were_not_paid_in_full_are_refused() -> None:
    ledger = ledger_at()
    with pytest.MonkeyPatch.context() as patch:
        _not_checked(patch)
        pay(ledger, EACH, steps_for(2), {}, asked="too little")
        ledger.verify()
    with refuses(LedgerDamaged, "ledger-steps-wrong"):
        ledger.verify()


def test_steps_of_other_parts_than_those_charged_are_refused() -> None:
    unit = dp.person("pid", per="month")
    ledger = ledger_at(unit=unit)
    wanted = Steps(
        names=("2024-01", "2024-02"), each=Once(limit=dp.Pure(epsilon=1, protects=unit)), units=1, joint=False
    )
    pay(ledger._within("2024-01"), wanted.total(unit), wanted, {}, asked="x")
    with refuses(LedgerDamaged, "ledger-steps-wrong"):
        ledger.verify()


def test_an_account_that_nobody_paid_is_refused() -> None:
    ledger = ledger_at()
    paid = paid_in(ledger)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepaid, "name_of", lambda number, step="": f"standing/{number + 7}/{step}")
        Prepaid.step_of(ledger, paid, "a")
    with refuses(LedgerDamaged, "ledger-steps-wrong"):
        ledger.verify()


def test_a_step_with_a_larger_limit_is_refused() -> None:
    ledger = ledger_at()
    paid = paid_in(ledger)
    right = Prepaid._open
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Prepaid, "_open", lambda self, rule, draft: right(self, Basic(limit=EACH).fixed(), draft))
        Prepaid.step_of(ledger, paid, "a")
    with refuses(LedgerDamaged, "ledger-steps-wrong"):
        ledger.verify()


def test_a_charge_on_everything_that_costs_a_step_only_is_refused() -> None:
    """A step's way to charge must not be open to others."""
    ledger = ledger_at()
    alice = ledger.for_analyst("alice", limit=dp.Pure(epsilon=2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "_prepaid", True)
        charge(alice)
    with refuses(LedgerDamaged, "ledger-totals-wrong"):
        ledger.verify()


def test_a_step_cannot_be_opened_again_or_changed() -> None:
    ledger = ledger_at()
    paid = paid_in(ledger)
    view = Prepaid.step_of(ledger, paid, "a")
    charge(view)
    verified = steps.Verified(ledger.protects)
    last = ledger.count
    with ledger._store.transaction(write=False) as execute:
        rows = prepaid.book.rows(execute, 0, last)
    for row in rows:
        verified.follow(row, ())
    for wrong in (
        rows[3],
        rows[3]._replace(kind="limit"),
        rows[3]._replace(kind="renewal"),
        rows[2]._replace(kind="charge"),
    ):
        with refuses(LedgerDamaged, "ledger-steps-wrong"):
            verified.follow(wrong, ())


def test_approximate_totals_cover_composed_steps() -> None:
    each = dp.Gaussian(stddev=30).guarantee(dp.Sensitivity(1, "L2", UNIT))
    wanted = Steps(names=tuple("abcdef"), each=Once(limit=each), units=6, joint=False)
    total = wanted.total(UNIT)
    enough = dp.Approx(epsilon=total.epsilon_at(delta=1e-6), delta=1e-6, protects=UNIT)
    assert wanted.is_paid_by(enough, UNIT)
    assert not wanted.is_paid_by(dp.Approx(epsilon=0.9 * float(enough.epsilon), delta=1e-6, protects=UNIT), UNIT)
    assert not wanted.is_paid_by(dp.ZeroConcentrated(rho=9, protects=UNIT), UNIT)

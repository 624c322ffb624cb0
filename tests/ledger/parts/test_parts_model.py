"""A ledger with parts decides as one that adds everything up again at every step, in any order of events."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.errors import BudgetExhausted, LedgerDamaged
from discreet.ledger import Ledger, accounts, parts

from .parts_model import NaiveLedger

NAMES = ("jan", "feb", "mar", "NULL")
WHO = ("", "ann", "bob")
PURE = (dp.Pure(epsilon=2), dp.Pure(epsilon=1.5), dp.Pure(epsilon=0.7))
BEST = tuple(dp.Approx(epsilon=e, delta=1e-6) for e in (4, 3, 1.5))


def guarantees(limit: dp.Guarantee) -> tuple[dp.Guarantee, ...]:
    if limit == PURE[0]:
        return tuple(dp.Pure(epsilon=e) for e in (0.05, 0.2, 0.4))
    small = dp.ZeroConcentrated(rho=0.01), dp.ZeroConcentrated(rho=0.1)
    return (dp.Pure(epsilon=0.3), dp.Approx(epsilon=0.4, delta=1e-8), *small)


class Walk:
    """One random history, told to a ledger and to the naive one."""

    def __init__(self, seed: int, neighbors: Any, limits: tuple[dp.Guarantee, ...], target: Any) -> None:
        self.random, self.protects, self.limits = (
            random.Random(seed),
            dp.person("p", per="month", neighbors=neighbors),
            limits,
        )
        self.target = target
        self.ledger = Ledger.open(target, protects=self.protects, limit=limits[0])
        self.naive = NaiveLedger(self.protects, limits[0])
        for name, limit in zip(WHO[1:], limits[1:], strict=True):
            self.ledger.for_analyst(name, limit=limit)
            self.naive.open(name, limit)
        self.refused = self.accepted = 0

    def view(self, who: str, named: tuple[str, ...]) -> Ledger:
        view = self.ledger.for_analyst(who) if who else self.ledger
        return view._within(*named) if named else view

    def step(self) -> None:
        draw = self.random
        who, named = draw.choice(WHO), tuple(sorted(draw.sample(NAMES, draw.choice((0, 1, 1, 1, 2, 3)))))
        kind = draw.choices(("charge", "renew", "raise", "reopen"), (40, 3, 1, 2))[0]
        if kind == "charge":
            self.charge(who, named, draw.choice(guarantees(self.limits[0])))
        elif kind == "renew":
            (self.ledger._within(*named) if named else self.ledger).renew(why="a new period", analyst=who or None)
            self.naive.renew(who, named)
        elif kind == "raise":
            now = self.view(who, ()).limit
            larger = _raised(now)
            self.ledger.raise_limit(larger, why="more", analyst=who or None)
            self.naive.raise_limit(who, larger)
        elif self.target != ":memory:":
            self.ledger.close()
            self.ledger = Ledger.open(self.target)
        self.compare(who, named)

    def charge(self, who: str, named: tuple[str, ...], guarantee: dp.Guarantee) -> None:
        view = self.view(who, named)
        thorough, would = self.random.random() < 0.1, None
        accepted = self.naive.charge(who, guarantee, named)
        if thorough and accepted:
            would = view.after(guarantee)
        try:
            entry = view.charge(guarantee, asked="a count")
        except BudgetExhausted:
            assert not accepted
            self.refused += 1
            return
        assert accepted
        assert entry.parts == named
        self.accepted += 1
        if thorough:
            assert view.remaining == would
            assert view.remaining_after(entry)() == would

    def compare(self, who: str, named: tuple[str, ...]) -> None:
        view = self.view(who, named)
        assert view._standing_now()[who].spent == self.naive.worst(who, named)


def _raised(limit: Any) -> dp.Guarantee:
    larger = limit.epsilon + 0.25
    return dp.Approx(epsilon=larger, delta=limit.delta) if limit.delta else dp.Pure(epsilon=larger)


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("neighbors", ["add_or_remove", "replace"])
@pytest.mark.parametrize("limits", [PURE, BEST], ids=["pure", "best"])
def test_a_walk_agrees_with_adding_everything_up_again(neighbors: str, limits: Any, tmp_path: Path) -> None:
    walk = Walk(1, neighbors, limits, tmp_path / "clinic.ledger" if limits is PURE else ":memory:")
    for _ in range(50):
        walk.step()
    assert walk.refused > 3
    assert walk.accepted > 5
    assert walk.ledger.verify() == walk.ledger.count + 1


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["add_or_remove", "replace"])
@pytest.mark.parametrize("limits", [PURE, BEST], ids=["pure", "best"])
def test_long_walks_agree_with_adding_everything_up_again(neighbors: str, limits: Any, tmp_path: Path) -> None:
    for seed in range(3, 7):
        walk = Walk(seed, neighbors, limits, tmp_path / f"{seed}.ledger" if seed % 2 else ":memory:")
        for _ in range(120):
            walk.step()
        assert walk.ledger.verify() == walk.ledger.count + 1


# --- wrong ways to add up, which the walks must notice ----------------------------------------------------------


def only_the_first_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A charge on several parts is paid by one of them."""
    right = accounts.charge_one
    monkeypatch.setattr(
        accounts,
        "charge_one",
        lambda name, account, cost, charged, *rest: right(name, account, cost, charged[:1], *rest),
    )


def everything_forgets_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A charge on everything looks only at the charges on everything."""
    right = accounts.charge_one

    def wrong(name: str, account: Any, cost: Any, charged: Any, *rest: Any) -> Any:
        one = right(name, account, cost, charged, *rest)
        return one if charged else one._replace(fits=account.rule.fits(one.account.base))

    monkeypatch.setattr(accounts, "charge_one", wrong)


def parts_forget_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part pays only for the charges on it alone."""
    monkeypatch.setattr(parts, "lost", lambda base, own: own.added)


def moved_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit that moves from one part to another pays in one of them."""
    monkeypatch.setattr(parts, "_lost_by_move", lambda base, one, other: parts.lost(base, max(one, other)))


def renewed_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that is renewed forgives a unit that may have been elsewhere."""

    def wrong(base: Any, one: Any, other: Any) -> Any:
        each = zip(base, one.added, other.added, one.before, other.before, strict=True)
        return tuple(all_ + a + b - max(c, d) for all_, a, b, c, d in each)

    monkeypatch.setattr(parts, "_lost_by_move", wrong)


def renewed_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A renewal of one part is one of the whole account."""
    monkeypatch.setattr(
        accounts,
        "renew_parts",
        lambda name, account, *_: accounts.renew_all(account, account.rule, 10**9),
    )


def largest_coordinates_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest coordinates of different units are those of none: a charge is refused that fits."""
    monkeypatch.setattr(parts, "is_exact", lambda rule: True)


WRONG = {
    "add_or_remove": (
        only_the_first_part,
        everything_forgets_parts,
        parts_forget_everything,
        renewed_for_all,
    ),
    "replace": (only_the_first_part, moved_for_one, renewed_for_both),
}


@pytest.mark.parametrize(
    ("neighbors", "wrong"),
    [pytest.param(kind, wrong, id=f"{wrong.__name__}-{kind}") for kind, all_ in WRONG.items() for wrong in all_],
)
def test_a_wrong_way_to_add_up_is_caught(neighbors: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch)
    with pytest.raises((AssertionError, BudgetExhausted, LedgerDamaged)):
        walk_on(neighbors, seeds=4)


def walk_on(neighbors: str, seeds: int) -> None:
    for seed in range(seeds):
        walk = Walk(seed, neighbors, PURE, ":memory:")
        for _ in range(60):
            walk.step()
        walk.ledger.verify()


def test_the_largest_coordinates_of_different_units_are_those_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """One part has used up its ε and another its Rényi divergence: what fits both is accepted."""

    def charged() -> bool:
        ledger = Ledger.open(":memory:", protects=dp.person("p", per="month"), limit=dp.Approx(epsilon=1, delta=1e-6))
        ledger._within("jan").charge(dp.ZeroConcentrated(rho=0.005), asked="a law without a largest loss")
        ledger._within("feb").charge(dp.Pure(epsilon=0.97), asked="a large loss")
        try:
            ledger.charge(dp.Pure(epsilon=0.001), asked="all")
        except dp.BudgetExhausted:
            return False
        assert ledger.verify()
        return True

    found = charged()
    largest_coordinates_decide(monkeypatch)
    assert (found, charged()) == (True, False)

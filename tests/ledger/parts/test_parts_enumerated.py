"""The limit holds for one unit against every adaptive analyst: all strategies over small databases, exactly.

An analyst asks one yes-or-no question after the other about some parts, gets each answer by randomized response, and
chooses the next question from all answers so far. The ledger refuses what does not fit. For two neighbors, the largest
`P(S) − e^ε Q(S)` over all strategies and sets of transcripts is found by going backwards: what a question is worth is
the sum over its answers, and the analyst takes the best. It must not pass δ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import exp, log
from typing import Any

import pytest

import discreet as dp
from discreet.guarantees.rules.best_of import rule_for
from discreet.ledger import accounts, book, parts
from discreet.ledger.accounts import Account
from discreet.ledger.parts import Own
from discreet.ledger.texts.record import to_text

Record = tuple[str, int]
"""The part in which a record is, and its value."""
Database = tuple[Record, ...]
Engine = Callable[[Database, tuple[str, ...]], Database]

PARTS = ("jan", "feb", "NULL")
TRUTHFUL = 0.7
EACH = log(TRUTHFUL / (1 - TRUTHFUL)) + 1e-12
QUESTIONS = {
    "is their number odd": lambda rows: len(rows) % 2,
    "is the sum of their values odd": lambda rows: sum(value for _, value in rows) % 2,
}
ASKED: tuple[tuple[str, ...], ...] = (("jan",), ("feb",), ("NULL",), ("feb", "jan"), ())


def engine(database: Database, within: tuple[str, ...]) -> Database:
    """The right filter: each record is in one part. Without parts, all records are read."""
    return tuple(record for record in database if not within or record[0] in within)


@dataclass(frozen=True)
class Game:
    """One ledger, as it adds up, and how the engine filters."""

    neighbors: Any
    limit: dp.Guarantee
    filter: Engine = engine
    rounds: int = 4
    rule: str | None = None

    @property
    def protects(self) -> dp.Unit:
        return dp.person("p", per="month", neighbors=self.neighbors)

    def gain(self, one: Database, other: Database) -> float:
        """The most by which an adaptive analyst can tell two databases apart, beyond e^ε."""
        rule = rule_for(self.limit, self.rule).fixed()
        terms, release = book.with_rule(rule), to_text(dp.Pure(epsilon=EACH))
        ratio = exp(self.limit.epsilon)  # type: ignore[attr-defined]
        told = [
            (within, tuple(question(self.filter(database, within)) for database in (one, other)))
            for within, question in product(ASKED, QUESTIONS.values())
        ]
        told = list(dict.fromkeys(told))

        @cache
        def best(account: Account, owns: frozenset[tuple[str, Own]], p: float, q: float, left: int) -> float:
            found = max(p - ratio * q, 0.0)
            if not left:
                return found
            for within, truths in told:
                if truths[0] == truths[1]:
                    continue  # it tells nothing, and leaves less for what does
                charged = accounts.charge_one(
                    "", account, account.cost(release), within, self.protects, lambda _, wanted: dict(owns)
                )
                if not charged.fits:
                    continue
                after = frozenset((dict(owns) | charged.owns).items())
                worth = 0.0
                for answer in (0, 1):
                    chances = [TRUTHFUL if truth == answer else 1 - TRUTHFUL for truth in truths]
                    worth += best(
                        charged.account, after, round(p * chances[0], 15), round(q * chances[1], 15), left - 1
                    )
                found = max(found, worth)
            return found

        return best(Account(terms, rule.nothing), frozenset(), 1.0, 1.0, self.rounds)

    def worst(self, pairs: Iterator[tuple[Database, Database]]) -> float:
        return max(self.gain(*pair) for pair in pairs)

    @property
    def delta(self) -> float:
        return float(getattr(self.limit, "delta", 0)) + 1e-9


def records() -> list[Record]:
    return list(product(PARTS, (0, 1)))


def neighbors_of(relation: str) -> Iterator[tuple[Database, Database]]:
    """Neighbors, with and without somebody else."""
    for others in ((), (("jan", 1),)):
        for one in records():
            if relation == "add_or_remove":
                yield (*others, one), others
                yield others, (*others, one)
                continue
            yield from (((*others, one), (*others, two)) for two in records() if two != one)


LIMITS = [dp.Pure(epsilon=2 * EACH), dp.Approx(epsilon=2.2, delta=0.02)]


@pytest.mark.parametrize("relation", ["add_or_remove", "replace"])
@pytest.mark.parametrize("limit", LIMITS, ids=["pure", "best"])
def test_the_limit_holds_against_every_adaptive_analyst(relation: str, limit: dp.Guarantee) -> None:
    game = Game(relation, limit)
    assert game.worst(neighbors_of(relation)) <= game.delta


def test_parts_are_paid_next_to_each_other() -> None:
    """The same limit lets an analyst ask each part twice: with one sum, it would be two questions in all."""
    asked = 0
    ledger = dp.Ledger.open(":memory:", protects=dp.person("p", per="month"), limit=dp.Pure(epsilon=2 * EACH))
    for part in (*PARTS, *PARTS):
        ledger._within(part).charge(dp.Pure(epsilon=EACH), asked="is their number odd")
        asked += 1
    assert asked == 6
    with pytest.raises(dp.BudgetExhausted):
        ledger.charge(dp.Pure(epsilon=EACH), asked="is their number odd")


# --- wrong rules: each lets somebody be told apart --------------------------------------------------------------


def overlapping(database: Database, within: tuple[str, ...]) -> Database:
    """February begins on 25 January: a record of January is read there, too."""
    return tuple(one for one in database if not within or one[0] in within or ("feb" in within and one[0] == "jan"))


def with_null(database: Database, within: tuple[str, ...]) -> Database:
    """A record without a date is read in every part, as `NOT (day < …)` of a database in three values might."""
    return tuple(one for one in database if not within or one[0] in within or one[0] == "NULL")


def unfiltered(database: Database, within: tuple[str, ...]) -> Database:
    """The part is only said: the engine reads everything."""
    return database


@pytest.mark.parametrize("wrong", [overlapping, with_null, unfiltered])
def test_a_filter_that_lets_a_record_into_two_parts_is_caught(wrong: Engine) -> None:
    game = Game("add_or_remove", LIMITS[0], wrong)
    assert game.worst(neighbors_of("add_or_remove")) > game.delta


def test_a_person_in_many_months_who_is_charged_once_is_caught() -> None:
    """Under the unit person, blocks of time add up: neighbors differ in all months of one person."""
    game = Game("add_or_remove", LIMITS[0])
    person = (("jan", 1), ("feb", 1), ("NULL", 1))
    assert game.gain(person, ()) > game.delta


def test_a_record_that_moves_and_is_charged_in_one_part_is_caught() -> None:
    """The totals for added or removed units, for databases in which a unit is replaced."""
    game = Game("add_or_remove", LIMITS[0])
    assert game.worst(neighbors_of("replace")) > game.delta


def test_a_charge_on_everything_that_no_part_pays_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "lost", lambda base, own: own.added)
    game = Game("add_or_remove", LIMITS[0])
    assert game.worst(neighbors_of("add_or_remove")) > game.delta


def test_a_charge_on_two_parts_that_one_of_them_pays_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = accounts.charge_one

    def wrong(name: str, account: Account, cost: Any, charged: Any, *rest: Any) -> Any:
        return right(name, account, cost, charged[:1], *rest)

    monkeypatch.setattr(accounts, "charge_one", wrong)
    game = Game("add_or_remove", LIMITS[0])
    assert game.worst(neighbors_of("add_or_remove")) > game.delta

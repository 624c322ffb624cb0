"""Parts of the data with budgets of their own: charged alone, together and with everything, by anyone."""

from __future__ import annotations

import copy
import json
import pickle
import random
import sqlite3
from contextlib import closing, suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.errors import InvalidArgument, LedgerDamaged
from discreet.ledger import Identity, Ledger, accounts, book, heads, parts
from discreet.ledger.opening import validate_rule
from discreet.ledger.texts.request import request_of
from discreet.ledger.views import Replays
from discreet.ledger.writer import _Job

from ...refusing import refuses
from ..conftest import Place, run_worker
from ..test_processes import no_answer_without_a_debit

WHO = dp.person("patient_id", per="month")
MOVES = dp.person("patient_id", per="month", neighbors="replace")
ONE = dp.Pure(epsilon=1)


def tenths(number: int) -> dp.Pure:
    return dp.Pure(epsilon=number / 10)


def opened(limit: dp.Guarantee = ONE, protects: dp.Unit = WHO) -> Ledger:
    return Ledger.open(":memory:", protects=protects, limit=limit)


def charge(ledger: Ledger, number: int, **given: Any) -> Any:
    return ledger.charge(tenths(number), **{"asked": "a count", **given})


def left(ledger: Ledger) -> float:
    remaining = ledger.remaining
    return 0.0 if remaining is None else round(10 * float(remaining.epsilon), 9)  # type: ignore[attr-defined]


# --- charging ---------------------------------------------------------------------------------------------------


@pytest.mark.some_quick(1)
def test_parts_are_charged_alone_and_everything_charges_all(place: Place) -> None:
    ledger = place.open(ONE, WHO)
    jan, feb, mar = (ledger._within(name) for name in ("jan", "feb", "mar"))
    charge(jan, 4)
    charge(feb, 7)
    charge(ledger, 2)
    assert [left(one) for one in (jan, feb, mar, ledger)] == [4, 1, 8, 1]
    charge(ledger._within("mar", "jan"), 4)
    assert [left(one) for one in (jan, feb, mar, ledger)] == [0, 1, 4, 0]
    with pytest.raises(dp.BudgetExhausted) as refused:
        charge(ledger._within("feb", "mar"), 2)
    assert refused.value.remaining == tenths(1).stated_for(WHO)
    assert ledger.count == 4
    ledger.close()
    again = place.open()
    assert [left(again._within(name)) for name in ("jan", "feb", "mar", "apr")] == [0, 1, 4, 8]
    assert [entry.parts for entry in again.entries()] == [("jan",), ("feb",), (), ("jan", "mar")]
    assert again.verify() == 5


@pytest.mark.slow
def test_who_may_move_pays_in_two_parts(place: Place) -> None:
    ledger = place.open(ONE, MOVES)
    jan, feb, mar = (ledger._within(name) for name in ("jan", "feb", "mar"))
    charge(jan, 4)
    charge(feb, 3)
    assert [left(one) for one in (jan, feb, mar, ledger)] == [3, 3, 6, 3]
    charge(ledger, 1)
    assert [left(one) for one in (jan, feb, mar, ledger)] == [2, 2, 5, 2]
    assert left(ledger._within("feb", "jan")) == 1  # both of them pay
    with pytest.raises(dp.BudgetExhausted):
        charge(ledger._within("feb", "jan"), 2)
    charge(ledger._within("feb", "jan"), 1)
    assert left(ledger) == 0
    assert ledger.verify() == 5


def test_who_moves_to_a_part_that_is_not_charged_pays_once() -> None:
    """Two renewed parts forgave what everything had cost. Who moves elsewhere is not forgiven, and pays once."""
    ledger = opened(protects=MOVES)
    both = ledger._within("feb", "jan")
    charge(ledger, 5)
    both.renew(why="a new period of both")
    charge(ledger._within("jan"), 2)
    assert left(both) == 3
    with pytest.raises(dp.BudgetExhausted):
        charge(both, 4)
    charge(both, 3)
    assert left(both) == 0


@pytest.mark.parametrize("seed", [0])
def test_what_remains_is_what_fits(seed: int) -> None:
    """After random charges and renewals of some parts, and of everything: a tenth more would be refused."""
    chosen, ledger = random.Random(seed), opened(protects=MOVES)
    for _ in range(12):
        names = chosen.sample(("jan", "feb", "mar"), chosen.randrange(4))
        view = ledger._within(*names) if names else ledger
        if chosen.random() < 0.2:
            view.renew(why="a new period")
        else:
            with suppress(dp.BudgetExhausted):
                charge(view, chosen.randrange(1, 4))
        seen = ledger._within("feb", "jan")
        most = int(left(seen))
        if most:
            seen.after(tenths(most))
        with pytest.raises(dp.BudgetExhausted):
            seen.after(tenths(most + 1))


def test_analysts_have_parts_under_those_of_the_data_set() -> None:
    ledger = opened()
    ann, bob = (ledger.for_analyst(name, limit=tenths(5)) for name in ("ann", "bob"))
    charge(ann._within("jan"), 4)
    assert left(ann._within("jan")) == 1
    assert left(bob._within("jan")) == 5
    charge(bob._within("jan"), 5)
    assert left(bob._within("feb")) == 5
    assert left(ledger._within("jan")) == 1
    assert set(ann.parts) == {"jan"} == set(ledger.parts)
    charge(bob._within("feb"), 1)
    assert set(ann.parts) == {"jan"}  # what others ask is not hers to see
    assert ledger.verify() == 6


def test_nobody_has_parts_who_may_be_in_all_of_them() -> None:
    for unit in (dp.person("patient_id"), dp.row()):
        with refuses(InvalidArgument, "ledger-no-parts"):
            opened(protects=unit)._within("jan")


@pytest.mark.parametrize("names", [(), ("",), ("a\0b",), ("x" * 201,), (3,), ("jan", None)])
def test_a_part_needs_a_name(names: Any) -> None:
    with refuses(InvalidArgument, "ledger-part-name"):
        opened()._within(*names)


def test_a_part_of_a_part_is_one_of_its_own() -> None:
    both = opened()._within("jan", "feb")
    assert both._within("feb")._parts == ("feb",)
    with refuses(InvalidArgument, "ledger-part-name"):
        both._within("mar")


def test_odd_names_are_parts_like_any_other() -> None:
    ledger = opened()
    for name in ("NULL", "other", " ", "\n", "\x01", "é", "😀", '"', "\\u0000", "a,b", "x" * 200):
        charge(ledger._within(name), 7)
        assert left(ledger._within(name)) == 3
        assert left(ledger._within("fresh")) == 10
    assert ledger.verify() == 12


def test_a_ledger_without_charges_on_parts_is_written_as_before() -> None:
    plain, divided = opened(protects=dp.person("patient_id")), opened()
    for ledger in (plain, divided):
        charge(ledger, 1)
        charge(ledger.for_analyst("ann", limit=tenths(5)), 1)
        ledger.renew(why="a new year")
    for one, other in zip(plain.entries(), divided.entries(), strict=True):
        with plain._store.transaction(write=False) as execute:
            first = book.row(execute, one.number)
        with divided._store.transaction(write=False) as execute:
            second = book.row(execute, other.number)
        assert (first.costs, first.totals) == (second.costs, second.totals)
        assert "\\u0000" not in second.totals
    with plain._store.transaction(write=False) as execute:
        assert execute("SELECT name FROM sqlite_master WHERE name = 'parts'") == []


# --- the same request -------------------------------------------------------------------------------------------


def test_a_ledger_with_parts_is_read_as_it_was_written(tmp_path: Path) -> None:
    """A file of the first version with parts: what was charged, renewed and answered stays what it was."""
    file, stored = tmp_path / "clinic.ledger", Path(__file__).parents[2] / "fixtures" / "ledgers" / "parts.sql"
    with closing(sqlite3.connect(file)) as database:
        database.executescript(stored.read_text("utf-8"))
    ledger = Ledger.adopt(file, why="moved to the tests")
    assert ledger.verify() == 7
    assert ledger.protects == WHO
    assert [entry.parts for entry in ledger.entries()][1:4] == [(), ("2024-01",), ("2024-01", "2024-02")]
    assert {part: str(budget.spent) for part, budget in ledger.parts.items()} == {
        "2024-01": "ε = 1, δ = 1e-08",
        "2024-02": "nothing",
    }
    ana = ledger.for_analyst("ana")
    january = ana._within("2024-01")
    assert [left(one) for one in (january, ana, ledger._within("2024-02"), ledger)] == [5, 5, 20, 10]
    again = january.charge(tenths(5), asked="a count", key="k")
    assert january.answer(again) == ([41], False)
    charge(january, 5)
    with pytest.raises(dp.BudgetExhausted):
        charge(january, 1)
    assert ledger.verify() == 8
    ledger.close()


def test_the_same_question_about_another_part_is_another_request() -> None:
    ledger = opened()
    jan, feb = ledger._within("jan"), ledger._within("feb")
    same = Identity(question="a count", data_version="1")
    first = charge(jan, 2, identity=same)
    jan.keep(first, 7)
    assert charge(jan, 2, identity=same) == jan.entries()[0]
    facts: dict[str, Any] = {"asked": "a count", "mechanism": "", "key": None, "identity": same}
    assert jan.knows(tenths(2), **facts)
    assert not feb.knows(tenths(2), **facts)
    assert not ledger.knows(tenths(2), **facts)
    assert charge(feb, 2, identity=same).number == 2
    assert charge(ledger, 2, identity=same).number == 3
    assert charge(ledger._within("feb", "jan"), 2, identity=same).number == 4
    assert charge(ledger._within("jan", "feb", "jan"), 2, identity=same).number == 4
    replays = Replays(ledger._store, ledger._terms, parts=("jan",))
    assert replays.charge(tenths(2), asked="a count", identity=same).number == 1


def test_a_key_is_for_one_part_only() -> None:
    ledger = opened()
    charge(ledger._within("jan"), 2, key="request-1")
    for other in (ledger, ledger._within("feb"), ledger._within("feb", "jan")):
        with refuses(InvalidArgument, "ledger-key-reused"):
            charge(other, 2, key="request-1")
    assert charge(ledger._within("jan"), 2, key="request-1").number == 1


def test_marks_of_other_parts_are_not_found() -> None:
    ledger, mark = opened(), "0" * 32 + ": sum"
    charge(ledger._within("jan"), 1, mark=mark)
    charge(ledger, 1, mark=mark)
    assert [entry.number for entry in ledger._within("jan").marked("0" * 32)] == [1]
    assert [entry.number for entry in ledger.marked("0" * 32)] == [2]
    assert ledger._within("feb").marked("0" * 32) == ()


def test_what_is_discarded_is_charged_to_the_parts() -> None:
    ledger = opened()
    jan = ledger._within("jan")
    entry = charge(jan, 2, key="late")
    done = jan.discard([("late", None)], after=0, owed=[tenths(2), tenths(3)], asked="late")
    assert [one.number for one in done] == [entry.number]
    assert left(jan) == 5
    assert left(ledger._within("feb")) == 10
    assert [one.number for one in jan.charges_of([("late", None)], after=0)] == [1]
    assert ledger.verify() == 3


# --- views ------------------------------------------------------------------------------------------------------


def test_a_view_is_pickled_and_copied_with_its_parts(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "clinic.ledger", protects=WHO, limit=ONE)
    view = ledger.for_analyst("ann", limit=tenths(5))._within("jan")
    charge(view, 3)
    for same in (pickle.loads(pickle.dumps(view)), copy.copy(view), copy.deepcopy(view)):
        assert (same._parts, same.analyst, left(same)) == (("jan",), "ann", 2)
    assert ledger._within("jan").for_analyst("ann")._parts == ("jan",)
    assert "in jan" in repr(view)


def test_a_view_tells_what_remained_then() -> None:
    ledger = opened()
    jan = ledger._within("jan")
    first = charge(jan, 2)
    charge(ledger, 1)
    charge(jan, 3)
    charge(ledger._within("feb"), 5)
    assert [jan.remaining_at(number) and round(10 * jan.remaining_at(number).epsilon) for number in range(5)] == [
        *(10, 8, 7, 4, 4)
    ]
    assert jan.remaining_after(first)() == tenths(8)
    assert jan.after(tenths(1)) == tenths(3)
    with pytest.raises(dp.BudgetExhausted):
        jan.after(tenths(2), tenths(3))
    replays = Replays(ledger._store, ledger._terms, parts=("jan",))
    replays.as_of = 1
    assert replays.remaining == tenths(8)
    assert replays.read_by((), spends=True)._parts == ("jan",)


def test_a_ledger_shows_its_parts() -> None:
    ledger = opened()
    assert dict(ledger.parts) == {}
    charge(ledger._within("jan"), 2)
    charge(ledger, 1)
    assert ledger.parts["jan"].spent == dp.Pure(epsilon=Fraction(3, 10), protects=WHO)
    assert ledger.parts["jan"].remaining == tenths(7)
    assert "jan" in ledger._repr_html_()
    assert ledger.entries()[0].exported()["parts"] == "jan"
    assert ledger.entries()[1].exported()["parts"] is None
    with pytest.raises(TypeError):
        ledger.parts["jan"] = None  # type: ignore[index]


# --- periods ----------------------------------------------------------------------------------------------------


def test_one_part_begins_a_new_period(place: Place) -> None:
    ledger = place.open(ONE, WHO)
    jan, feb = ledger._within("jan"), ledger._within("feb")
    charge(jan, 4)
    charge(feb, 5)
    charge(ledger, 3)
    entry = jan.renew(why="January was published anew")
    assert entry.parts == ("jan",)
    assert [left(one) for one in (jan, feb, ledger, ledger._within("mar"))] == [10, 2, 2, 7]
    charge(ledger, 2)
    charge(jan, 6)
    assert [left(one) for one in (jan, feb, ledger)] == [2, 0, 0]
    assert [float(one.spent.epsilon) for one in jan.periods] == pytest.approx([0.7, 0.8])
    assert [float(one.spent.epsilon) for one in feb.periods] == pytest.approx([1.0])
    assert [float(one.spent.epsilon) for one in ledger.periods] == pytest.approx([0.7, 1.0])
    ledger.renew(why="a new year")
    assert [left(one) for one in (jan, feb, ledger)] == [10, 10, 10]
    charge(jan, 1)
    assert left(jan) == 9
    assert [float(one.spent.epsilon) for one in jan.periods] == pytest.approx([0.7, 0.8, 0.1])
    ledger.close()
    assert place.open().verify() == 9


def test_who_may_move_is_forgiven_what_one_part_lost_alone() -> None:
    """A unit may have been where nothing was renewed: what everything has cost still counts."""
    ledger = opened(protects=MOVES)
    charge(ledger._within("jan"), 4)
    charge(ledger, 3)
    ledger._within("jan").renew(why="published anew")
    assert left(ledger._within("jan")) == 7
    assert [float(one.spent.epsilon) for one in ledger.periods] == pytest.approx([0.7, 0.7, 0.3])
    assert ledger.verify() == 4


def test_a_part_is_renewed_with_the_limit_of_its_account() -> None:
    ledger = opened()
    with refuses(InvalidArgument, "ledger-part-limit"):
        ledger._within("jan").renew(dp.Pure(epsilon=2), why="more")
    with refuses(InvalidArgument, "ledger-owner-only"):
        ledger.for_analyst("ann", limit=tenths(5))._within("jan").renew(why="more")
    charge(ledger._within("jan"), 10)
    ledger._within("jan").raise_limit(dp.Pure(epsilon=2), why="more")
    assert [left(ledger._within(name)) for name in ("jan", "feb")] == [10, 20]


def test_a_new_rule_forgets_the_parts_of_the_old_one() -> None:
    ledger = opened()
    charge(ledger._within("jan"), 5)
    ledger.renew(dp.Approx(epsilon=2, delta=1e-6), why="another kind of limit")
    ledger._within("jan").charge(dp.ZeroConcentrated(rho=0.01), asked="a count")
    assert ledger.verify() == 4


def test_an_old_period_that_still_counts_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "current", lambda owns, divided: dict(owns))
    with pytest.raises(AssertionError):
        test_one_part_begins_a_new_period_in_memory()


def test_one_part_begins_a_new_period_in_memory() -> None:
    ledger = opened()
    charge(ledger._within("jan"), 5)
    ledger.renew(why="a new year")
    assert left(ledger._within("jan")) == 10


# --- divisions --------------------------------------------------------------------------------------------------


def check_one_division() -> None:
    """Who lives in another part after the declarations changed has no second budget."""
    ledger = opened(protects=dp.person("patient_id", lives_in="region"))
    charge(ledger._within("other", division=7), 10)
    for use in (lambda view: charge(view, 1), lambda view: view.after(tenths(1)), lambda view: view.renew(why="?")):
        with refuses(InvalidArgument, "ledger-other-parts"):
            use(ledger._within("East", division=8))
    assert ledger.count == 1
    charge(ledger._within("North", division=7), 10)
    ledger.renew(why="another division")
    charge(ledger._within("East", division=8), 10)
    with refuses(InvalidArgument, "ledger-other-parts"):
        charge(ledger._within("North", division=7), 1)
    assert ledger.verify() == 5


def test_parts_are_those_of_one_division() -> None:
    check_one_division()


def test_parts_of_any_division_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts.Divided, "bound_to", lambda self, division: self)
    with pytest.raises(pytest.fail.Exception):
        check_one_division()


def test_an_analyst_and_a_pickled_view_keep_the_division(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "a", protects=dp.person("patient_id", lives_in="region"), limit=ONE)
    charge(ledger._within("North", division=7), 1)
    view = ledger._within("East", division=8)
    ann = view.for_analyst("ann", limit=tenths(5))
    for one in (ann, pickle.loads(pickle.dumps(view)), pickle.loads(pickle.dumps(ann)), copy.copy(view)):
        with refuses(InvalidArgument, "ledger-other-parts"):
            charge(one, 1)


@pytest.mark.parametrize(
    ("column", "old", "new"), [("costs", "[7]", "[8]"), ("costs", "[7]", "[]"), ("totals", ",7]", ",8]")]
)
def test_a_forged_division_does_not_verify(column: str, old: str, new: str, tmp_path: Path) -> None:
    changed = Changed(tmp_path, division=7)
    assert changed.opened().verify() == 7
    changed.change(6, column, old, new)
    with pytest.raises(LedgerDamaged):
        changed.opened().verify()


# --- damage -----------------------------------------------------------------------------------------------------


class Changed:
    """A ledger with charges on two parts by two people, whose file is changed behind its back."""

    def __init__(self, folder: Path, division: int = 0) -> None:
        self.path = folder / "clinic.ledger"
        with closing(Ledger.open(self.path, protects=WHO, limit=ONE)) as ledger:
            ann = ledger.for_analyst("ann", limit=tenths(8))
            for view, part in ((ledger, "jan"), (ann, "jan"), (ledger, ""), (ann, "feb"), (ledger, "jan")):
                charge(view._within(part, division=division) if part else view, 1)

    def run(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)

    def change(self, number: int, column: str, old: str, new: str) -> None:
        """Change an entry, and work out the chain and the head anew, as somebody would who knows how."""
        columns = ", ".join(book.EntryRow._fields)
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            rows = [book.EntryRow(*row) for row in connection.execute(f"SELECT {columns} FROM entries ORDER BY number")]
            before = ""
            for row in rows:
                if row.number == number:
                    assert old in getattr(row, column), getattr(row, column)
                    row = row._replace(**{column: getattr(row, column).replace(old, new)})
                row = row._replace(chain=row.chained_to(before))
                before = row.chain
                connection.execute(
                    f"UPDATE entries SET {column} = ?, chain = ? WHERE number = ?",
                    (getattr(row, column), row.chain, row.number),
                )
            connection.execute("UPDATE head SET chain = ?", (before,))
        self.path.with_name("clinic.ledger.checkpoint").unlink()

    def opened(self) -> Ledger:
        checkpoint = self.path.with_name("clinic.ledger.checkpoint")
        return Ledger.open(self.path) if checkpoint.exists() else Ledger.adopt(self.path, why="a test")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE parts SET number = 2 WHERE account = '' AND part = 'jan'",  # an older entry that charged it
        "UPDATE parts SET number = 4 WHERE account = '' AND part = 'jan'",
        "UPDATE parts SET number = 'x' WHERE account = '' AND part = 'jan'",
        "UPDATE parts SET part = 'mar' WHERE account = '' AND part = 'jan'",
        "DELETE FROM parts WHERE account = '' AND part = 'jan'",
        "DELETE FROM parts",
        "INSERT INTO parts VALUES ('', 'mar', 1, 7)",
        "UPDATE parts SET digest = 'x' WHERE account = '' AND part = 'jan'",
        "UPDATE parts SET digest = 9223372036854775807",
        "DROP TABLE parts",
    ],
)
def test_a_table_of_parts_that_is_not_the_last_one_is_refused(statement: str, tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    changed.run(statement)
    ledger = changed.opened()
    for use in (lambda: charge(ledger._within("jan"), 1), lambda: ledger._within("mar").remaining, ledger.verify):
        with pytest.raises(LedgerDamaged):
            use()
    assert ledger.count == 6


def test_the_table_of_another_account_is_refused_when_it_is_used(tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    changed.run("UPDATE parts SET number = 2 WHERE account = 'ann' AND part = 'jan'")
    changed.run("DELETE FROM parts WHERE account = 'ann' AND part = 'feb'")
    ledger = changed.opened()
    charge(ledger._within("jan"), 1)
    with pytest.raises(LedgerDamaged):
        charge(ledger.for_analyst("ann")._within("jan"), 1)
    with pytest.raises(LedgerDamaged):
        ledger.verify()


TENTH = str(10**17)


@pytest.mark.parametrize(
    ("number", "column", "old", "new"),
    [
        (6, "totals", f'"\\u0000jan":[0,{3 * 10**17},3]', '"\\u0000jan":[0,0,3]'),  # lowered
        (6, "totals", f'"\\u0000jan":[0,{3 * 10**17},3]', f'"\\u0000feb":[0,{3 * 10**17},3]'),  # another part's
        (6, "totals", f'"\\u0000jan":[0,{3 * 10**17},3]', f'"\\u0000jan":[0,{3 * 10**17},2]'),
        (6, "totals", f'"\\u0000jan":[0,{3 * 10**17},3]', '"\\u0000jan":[]'),
        (6, "totals", f'"":[0,{4 * 10**17}]', f'"":[0,{3 * 10**17}]'),
        (6, "costs", '"\\u0000jan":[]', '"\\u0000mar":[]'),
        (6, "costs", ',"\\u0000jan":[]', ""),
        (4, "totals", f'"\\u0000":[0,{TENTH},0,', '"\\u0000":[0,0,0,'),
        (4, "costs", "{", '{"\\u0000jan":[],'),  # what was charged to everything, to one part
        (3, "totals", f'"ann\\u0000jan":[0,{TENTH},0]', '"ann\\u0000jan":[0,0,0]'),
    ],
)
def test_a_forged_total_of_a_part_does_not_verify(number: int, column: str, old: str, new: str, tmp_path: Path) -> None:
    changed = Changed(tmp_path)
    assert changed.opened().verify() == 7
    changed.change(number, column, old, new)
    with pytest.raises(LedgerDamaged):
        changed.opened().verify()


def test_parts_in_a_ledger_that_has_none_do_not_verify(tmp_path: Path) -> None:
    """The opening is forged: now it protects a person, whose months add up."""
    changed = Changed(tmp_path)
    changed.change(0, "content", ',"per":"month"', "")
    with pytest.raises(LedgerDamaged):
        changed.opened().verify()


def test_an_entry_that_says_nothing_about_its_part_is_refused() -> None:
    row = book.entry_after(
        None, {"kind": "opening", "analyst": "", "asked": "", "content": "{}", "costs": {}, "totals": {}}
    )
    with refuses(LedgerDamaged, "ledger-totals-wrong"):
        heads.own_in(row, "", "jan")
    assert parts.divided_in({"": (0, 0), "\0": ()}, "") == parts.Divided((), -1, -1)
    with refuses(LedgerDamaged, "ledger-totals-wrong"):
        accounts.account_in(row._replace(totals=json.dumps({"": [0, 0], "\0": [1]})), "", '{"rule":null}')


# --- processes --------------------------------------------------------------------------------------------------


def test_a_new_account_that_charges_parts_in_the_transaction_that_opens_it_is_no_damage(tmp_path: Path) -> None:
    """Threads share a transaction: an account is opened, charges a part, and one more after somebody was looked up."""
    Ledger.open(tmp_path / "a", protects=WHO, limit=ONE).for_analyst("bob", limit=tenths(5))
    ledger = Ledger.open(tmp_path / "a")
    ann, bob = (Ledger(ledger._store, ledger._terms, name, ledger._writer) for name in ("ann", "bob"))
    rule = validate_rule(tenths(5), None, WHO).fixed()
    group = [_Job(partial(ann._open_account, rule), [])]
    for view in (ann._within("jan"), bob._within("jan"), ann._within("feb"), ledger._within("feb")):
        request = request_of(tenths(1).stated_for(WHO), "a count", "", None, None, parts=view._parts)
        group.append(_Job(partial(view._reserve, request, request.columns()), []))
    ledger._writer._write_together(group)
    assert [job.error for job in group] == [None] * 5
    assert ledger.verify() == 7


@pytest.mark.slow
def test_processes_share_the_budget_of_a_part(place: Place) -> None:
    place.open(dp.Pure(epsilon=1), WHO).close()
    receipts = run_worker("race", place, 4, 50, 2)["receipts"]
    assert len(receipts) == len(set(receipts)) == 50
    ledger = place.open()
    assert ledger._within("jan").remaining is None
    assert ledger._within("mar").remaining == dp.Pure(epsilon=1)
    assert ledger.verify() == 51


@pytest.mark.slow
def test_kill_nine_never_leaves_a_part_behind_its_entries(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two statements of a charge on two parts: the table of parts is in the same transaction."""
    right = place.open
    monkeypatch.setattr(place, "open", lambda limit=None: right(limit, WHO))
    no_answer_without_a_debit(place)
    ledger = right()
    for name in ("jan", "feb"):
        assert ledger.parts[name].spent.epsilon == pytest.approx(0.01 * ledger.count)  # type: ignore[attr-defined]


def test_others_are_followed(tmp_path: Path) -> None:
    """Two processes, here two ledgers: each sees what the other has charged to parts, few entries or many."""
    path = tmp_path / "clinic.ledger"
    one, other = Ledger.open(path, protects=WHO, limit=dp.Pure(epsilon=10)), Ledger.open(path)
    spent = 0
    for times in (1, 2, 6, 1, 9):
        for mine, theirs in ((one, other), (other, one)):
            for number in range(times):
                charge(mine._within("jan", f"part {number}"), 1)
            charge(mine, 1)
            spent += times + 1
            assert left(theirs._within("jan")) == 100 - spent
    assert one.verify() == other.verify() == one.count + 1

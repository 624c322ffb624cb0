"""Bugs planted in the pages to ask: the very check that the sound pages pass must catch each of them."""

from __future__ import annotations

import csv
import io
import itertools
import socket

import pytest
import sqlglot
from sqlglot import exp

from discreet import drawing
from discreet.gateway.books import questions
from discreet.gateway.console import charts, declared, guided_sql
from discreet.gateway.console.guided_sql import Choices, Filter, build_sql
from discreet.gateway.console.pages import asking
from discreet.gateway.vault.worker import Worker
from discreet.ledger.views import Replays
from discreet.sql.running import written

from ..catalog.clinic_tables import column, table
from .in_process import pages_of
from .test_ask import BAD, BY_ODD, OddHouse

_NUMBERS = itertools.count(30)


class Seen(Exception):
    """A check found a bug."""


def expect(holds):
    if not holds:
        raise Seen


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    made = OddHouse(tmp_path_factory.mktemp("planted"))
    made.tokens = {name: made.open(name, "analyst", 20) for name in ("alice", "bob")}
    made.start()
    with pages_of(made) as pages:
        made.alice, made.bob = (pages.visitor(made.tokens[name]) for name in ("alice", "bob"))
        made.console = pages.console
        made.answer = made.alice.ask(BY_ODD, epsilon="0.3").headers["location"]
        yield made
    made.stop()


# --- checks -------------------------------------------------------------------------------------------------


def answers_of_others_are_not_there(house):
    unknown = house.bob.get("/answers/1-0000")
    for ending in ("", ".csv"):
        theirs = house.bob.get(house.answer + ending)
        expect(theirs.status_code == 404)
        expect(theirs.text == unknown.text)


def cells_are_no_formulas(house):
    rows = csv.reader(io.StringIO(house.alice.get(house.answer + ".csv").text))
    expect(not [cell for row in rows for cell in row if cell.startswith("=")])


def names_are_no_markup(house):
    for page in (house.alice.get("/ask"), house.alice.get(house.answer), house.alice.get("/guided")):
        expect("<img src=x" not in page.text)
        expect(BAD not in page.text)


def pictures_hold_no_scripts(house):
    for ending in ("", ".svg"):
        expect("<script>alert" not in house.alice.get(house.answer + ending).text)


def plans_are_free(house):
    before = len(house.charges())
    house.alice.post("/ask/plan", sql="SELECT COUNT(*) AS planned FROM visits WHERE cost > 7", epsilon="0.1")
    house.alice.get("/ask", sql="SELECT COUNT(*) AS planned FROM visits WHERE cost > 8", epsilon="0.1")
    expect(len(house.charges()) == before)


def an_edited_question_is_another_one(house):
    seed = f"{next(_NUMBERS):032x}"
    asked = [f"SELECT COUNT(*) AS a FROM visits WHERE cost > {next(_NUMBERS)}" for _ in range(2)]
    first, second = (house.alice.ask(sql, seed=seed, epsilon="0.05") for sql in asked)
    expect([first.status_code, second.status_code] == [303, 303])
    expect(first.headers["location"] != second.headers["location"])


def values_stay_values(house):
    own = table("t", column('a" b'), column("c"))
    for value in ("x' OR 'a' = 'a", "'; DROP TABLE y; --"):
        made = build_sql(Choices(table="t", by=['a" b'], filters=[Filter("c", "is", value)]), own)
        try:
            query = sqlglot.parse_one(made, read="duckdb")
        except sqlglot.errors.SqlglotError:
            raise Seen from None
        expect(query.find(exp.Or) is None)
        expect([one.this for one in query.find_all(exp.Literal)] == [value])


def a_plan_does_not_see_into_a_slot(house):
    sql, options = "SELECT COUNT(*) AS slot FROM visits WHERE cost > 21", {"epsilon": 0.05}
    house.alice.ask(sql, epsilon="0.05")
    opening = {"policy": house.policy.read_text(), "folder": str(house.folder), "version": "1", "threads": 1}
    link, other = socket.socketpair()
    with link, other:
        reader = Worker(link, "reader", opening | {"copies": str(house.folder / "clinic.gateway.data")})
    expect(b'"bought": true' in reader.do_plan(sql, options, "alice", spends=True).body)
    reader._until = {"alice": 0}
    expect(b'"bought": false' in reader.do_plan(sql, options, "alice", spends=True).body)


# --- bugs ---------------------------------------------------------------------------------------------------


def any_receipt_is_found(patch, house):
    real = questions.find_question
    patch.setattr(questions, "find_question", lambda store, account, receipt: real(store, "alice", receipt))


def formulas_are_written(patch, house):
    patch.setattr(written, "harmless", lambda cell: cell)


def templates_do_not_escape(patch, house):
    patch.setattr(house.console._templates, "autoescape", False)
    patch.setattr(house.console._templates, "cache", {})


def pictures_do_not_escape(patch, house):
    patch.setattr(drawing, "escape", lambda text: text)
    patch.setattr(charts, "_LONGEST", 100)


def plans_ask(patch, house):
    async def planned(visit, asked):
        await visit.frame("ask", sql=asked.sql, **asked.options)
        return asking.Shown()

    patch.setattr(asking, "plan_of", planned)


def one_key_for_a_page(patch, house):
    patch.setattr(asking.Asked, "key", lambda self, seed: seed)


def values_are_pasted(patch, house):
    patch.setattr(guided_sql, "quote_text", lambda text: f"'{text}'")


def names_are_pasted(patch, house):
    patch.setattr(guided_sql, "written", lambda name: name)
    patch.setattr(declared, "written", lambda name: name)


def plans_see_everything(patch, house):
    patch.setattr(Replays, "_is_shown", lambda self, entry: True)


BUGS = [
    (any_receipt_is_found, answers_of_others_are_not_there),
    (formulas_are_written, cells_are_no_formulas),
    (templates_do_not_escape, names_are_no_markup),
    (pictures_do_not_escape, pictures_hold_no_scripts),
    (plans_ask, plans_are_free),
    (one_key_for_a_page, an_edited_question_is_another_one),
    (values_are_pasted, values_stay_values),
    (names_are_pasted, values_stay_values),
    (plans_see_everything, a_plan_does_not_see_into_a_slot),
]


@pytest.mark.parametrize("check", dict.fromkeys(check for _, check in BUGS), ids=lambda one: one.__name__)
def test_sound_code_passes(house, check):
    check(house)


@pytest.mark.parametrize(("bug", "check"), BUGS, ids=lambda one: one.__name__)
def test_a_mutant_is_killed(house, monkeypatch, bug, check):
    bug(monkeypatch, house)
    with pytest.raises(Seen):
        check(house)

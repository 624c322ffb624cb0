"""What earlier answers imply is free, of all else only what is missing is paid, and nothing else changes."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.guarantees.guarantee import NoLoss
from discreet.ledger.reports import measured
from discreet.sql.estimates import cells, deciding, points, shown, sources
from discreet.sql.estimates.cells import MOST_GROUPS
from discreet.sql.estimates.written import read_linear
from discreet.sql.running import answering, stored

from .asking import BY_BOTH, BY_CITY, ROWS, TOTAL, WOMEN, charges, epsilons, opened

# --- what is free, and what is paid ------------------------------------------------------------------------------


def test_what_follows_from_one_answer_is_free() -> None:
    database = opened()
    first = database.sql(BY_BOTH, epsilon=0.5)
    women = database.sql(WOMEN, epsilon=0.5)
    assert women.derived_from == (first.receipt,)
    assert women.receipt is None
    assert isinstance(women.cost, NoLoss)
    assert epsilons(database) == [0.5]
    assert [row["n"] for row in women] == [row["n"] for row in first if row["sex"] == "f"]
    assert "nothing" in str(women)
    assert first.receipt in str(women)
    assert float(women.guarantee.largest_loss) == 0.5
    assert women.remaining == database.ledger.remaining


def test_a_sum_of_groups_is_free_if_it_is_as_accurate_as_asked() -> None:
    database = opened()
    database.sql(BY_BOTH, epsilon=0.5)
    asked = database.sql(BY_CITY, epsilon=0.25)
    assert asked.derived_from
    assert epsilons(database) == [0.5]
    own = float(dp.Laplace(scale=4, step=1).error(0.95))
    assert all(row["n_error"] <= own for row in asked)


def test_only_what_is_missing_is_paid() -> None:
    database = opened()
    first = database.sql(BY_BOTH, epsilon=0.1)
    asked = database.sql(BY_CITY, epsilon=0.1)
    assert asked.derived_from == (first.receipt,)
    assert asked.receipt is not None
    spent = epsilons(database)[1]
    assert 0.05 < spent < 0.08  # √(1 − 1/2) of it, and a little less: two noises are narrower than one
    assert asked.cost.epsilon == pytest.approx(spent)
    own = float(dp.Laplace(scale=10, step=1).error(0.95))
    assert all(row["n_error"] <= own for row in asked)
    assert "instead of" in asked.notes[0]


def test_what_was_paid_in_part_is_free_when_asked_again() -> None:
    database = opened()
    first = database.sql(BY_BOTH, epsilon=0.1)
    asked = database.sql(BY_CITY, epsilon=0.1)
    database.sql(WOMEN, epsilon=3)
    again = database.sql(BY_CITY, epsilon=0.1)
    assert again.replayed
    assert (again.receipt, again.derived_from) == (asked.receipt, (first.receipt,))
    assert again.table.equals(asked.table)
    assert epsilons(database)[2:] == pytest.approx([3])
    better = database.sql(BY_CITY, epsilon=0.0999)
    assert better.receipt is None
    assert asked.receipt in better.derived_from


def test_the_same_question_gets_its_stored_answer() -> None:
    database = opened()
    first = database.sql(BY_CITY, epsilon=0.3)
    database.sql(BY_BOTH, epsilon=3)
    again = database.sql(BY_CITY, epsilon=0.3)
    assert again.replayed
    assert again.receipt == first.receipt
    assert not again.derived_from
    assert again.table.equals(first.table)


def test_what_helps_nothing_changes_nothing() -> None:
    """Same bits, same identity, same charge as without earlier answers."""
    asked = {}
    for derived in (True, False):
        database = opened(answers={"derived": derived})
        with testing.frozen(1):
            database.sql(BY_BOTH, epsilon=0.1)
        with testing.frozen(2):
            answer = database.sql(TOTAL, epsilon=0.1)
        entry = charges(database)[-1]
        asked[derived] = answer.table, entry.guarantee, entry.mechanism, entry.asked, answer.notes
        assert not answer.derived_from
    assert asked[True] == asked[False]


@pytest.mark.some_quick(5)
@pytest.mark.parametrize(
    ("second", "why"),
    [
        (TOTAL, "rows of other cities, and without one, are in none of the groups"),
        (WOMEN.replace("sex = 'f'", "x > 1"), "other rows"),
        (WOMEN.replace("sex = 'f'", "sex = 'f' AND x > 1"), "other rows"),
        (WOMEN.replace("COUNT(*)", "SUM(x)"), "another measure"),
        (WOMEN.replace("COUNT(*)", "COUNT(x)"), "rows with a value"),
        ("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex", "rows without a declared city"),
        ("SELECT MEDIAN(x) AS n FROM t WHERE sex = 'f' AND city = 'A'", "no sum"),
        ("SELECT city, COUNT(*) AS n FROM t WHERE sex = 'x' GROUP BY city", "not a declared value"),
        ("SELECT city, COUNT(*) AS n FROM t WHERE sex IS NULL GROUP BY city", "not in the groups"),
    ],
)
def test_what_does_not_follow_is_paid(second: str, why: str) -> None:
    database = opened()
    database.sql(BY_BOTH, epsilon=5)
    assert not database.sql(second, epsilon=0.5).derived_from, why
    assert epsilons(database) == pytest.approx([5, 0.5])


def check_overlapping_filters() -> None:
    """Filters that overlap are not equal: of A and B, and of B and C, follows nothing about A and C."""
    database = opened()
    for pair in ("'A', 'B'", "'B', 'C'"):
        database.sql(f"SELECT COUNT(*) AS n FROM t WHERE city IN ({pair})", epsilon=9)
    assert not database.sql("SELECT COUNT(*) AS n FROM t WHERE city IN ('A', 'C')", epsilon=0.1).derived_from
    free = database.sql("SELECT COUNT(*) AS n FROM t WHERE city IN ('B', 'A')", epsilon=0.1)
    assert free.replayed or free.derived_from


def test_overlapping_filters_are_not_equal() -> None:
    check_overlapping_filters()


def check_nulls() -> None:
    """What is not true of NULL is counted by neither a condition nor its negation."""
    database = opened()
    whole = database.sql(TOTAL, epsilon=40)
    women = database.sql("SELECT COUNT(*) AS n FROM t WHERE sex = 'f'", epsilon=40)
    rest = database.sql("SELECT COUNT(*) AS n FROM t WHERE sex <> 'f' OR sex IS NULL", epsilon=0.5)
    assert set(rest.derived_from) == {whole.receipt, women.receipt}
    exact = sum(row[2] != "f" for row in ROWS)
    assert abs(next(iter(rest))["n"] - exact) <= 2
    others = database.sql("SELECT COUNT(*) AS n FROM t WHERE sex <> 'f'", epsilon=0.5)
    assert abs(next(iter(others))["n"] - sum(row[2] == "m" for row in ROWS)) <= 60
    assert not others.derived_from


def test_null_is_a_cell_of_its_own() -> None:
    check_nulls()


def test_differences_of_answers_are_free() -> None:
    database = opened()
    whole, a = (database.sql(f"{TOTAL}{where}", epsilon=2) for where in ("", " WHERE city = 'A'"))
    rest = database.sql(f"{TOTAL} WHERE city <> 'A' OR city IS NULL", epsilon=1)
    assert set(rest.derived_from) == {whole.receipt, a.receipt}
    assert next(iter(rest))["n"] == next(iter(whole))["n"] - next(iter(a))["n"]


def test_several_measures_of_one_question_count() -> None:
    database = opened()
    text = "SELECT COUNT(*) FILTER (WHERE city = 'A') AS a, COUNT(*) FILTER (WHERE city = 'B') AS b FROM t"
    first = database.sql(text, epsilon=4)
    both = database.sql(f"{TOTAL} WHERE city IN ('A', 'B')", epsilon=1)
    assert both.derived_from == (first.receipt,)
    assert next(iter(both))["n"] == sum(next(iter(first))[name] for name in "ab")


def test_sums_and_means_follow_too() -> None:
    database = opened()
    by_both = "SELECT city, sex, AVG(x) AS m, SUM(x) AS s FROM t WHERE sex IN ('f', 'm') GROUP BY city, sex"
    first = database.sql(by_both, epsilon=50)
    women = database.sql("SELECT city, AVG(x) AS m, SUM(x) AS s FROM t WHERE sex = 'f' GROUP BY city", epsilon=20)
    assert women.derived_from == (first.receipt,)
    expected = [(row["m"], row["s"]) for row in first if row["sex"] == "f"]
    assert np.allclose([(row["m"], row["s"]) for row in women], expected, rtol=1e-12)


def test_only_the_measures_that_are_missing_are_paid() -> None:
    database = opened()
    first = database.sql(BY_BOTH, epsilon=1)
    text = "SELECT city, COUNT(*) AS n, SUM(x) AS s FROM t WHERE sex = 'f' GROUP BY city"
    [owed] = database.prepare(text, epsilon=1).owed()
    both = database.sql(text, epsilon=1)
    assert both.derived_from == (first.receipt,)
    assert epsilons(database) == pytest.approx([1, 0.5])
    assert float(owed.largest_loss) == epsilons(database)[1]
    assert [row["n"] for row in both] == [row["n"] for row in first if row["sex"] == "f"]
    alone = opened().sql(text, epsilon=1)
    assert [row["s_error"] for row in both] == [row["s_error"] for row in alone]
    again = database.sql(text, epsilon=1)
    assert again.replayed
    assert again.table.equals(both.table)
    sums = database.sql("SELECT city, SUM(x) AS s FROM t WHERE sex = 'f' GROUP BY city", epsilon=0.4)
    assert sums.replayed or sums.derived_from
    assert len(charges(database)) == 2


def test_weights_divide_what_is_missing() -> None:
    database = opened()
    database.sql(BY_BOTH, epsilon=4)
    text = "SELECT city, COUNT(*) AS n, SUM(x) AS s FROM t WHERE sex = 'f' GROUP BY city"
    database.sql(text, epsilon=1, weights={"s": 3})
    assert epsilons(database) == pytest.approx([4, 0.75])


def test_answers_within_an_error_follow_too() -> None:
    database = opened()
    database.sql(BY_BOTH, epsilon=1)
    asked = database.sql(BY_CITY, within={"n": 12})
    assert asked.derived_from
    assert all(row["n_error"] <= 12 for row in asked)


def test_gaussian_noise_counts_with_its_own_law() -> None:
    database = opened(ledger={"delta_per_question": 1e-6})
    sums = ", ".join(f"SUM(x + {n}) AS s{n}" for n in range(24))
    first = database.sql(f"SELECT city, sex, {sums} FROM t GROUP BY city, sex", epsilon=1)
    assert first.price.noise == "Gaussian"
    women = database.sql(f"SELECT city, {sums} FROM t WHERE sex = 'f' GROUP BY city", epsilon=1)
    assert women.derived_from == (first.receipt,)
    both = database.sql(f"SELECT city, {sums} FROM t WHERE sex IN ('f', 'm') GROUP BY city", epsilon=1)
    assert both.derived_from
    assert charges(database)[1].guarantee.epsilon_at(delta=1e-6) < 0.8
    pure = database.sql(f"SELECT city, {sums} FROM t WHERE sex = 'f' GROUP BY city", epsilon=0.01, delta=0)
    assert not pure.derived_from  # Gaussian noise promises nothing without a δ


# --- whose answers, of which data --------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["version", "declaration", "bounds", "part"])
def test_nothing_follows_for_other_data_or_declarations(change: str, tmp_path: Any) -> None:
    path = str(tmp_path / "one.ledger")
    given: dict[str, Any] = {"ledger": {"path": path}}
    people = {"unit": {"person": "pid"}, "table": {"rows_per_person": 100, "groups_per_person": 6}}
    first = opened(**given, **(people if change == "bounds" else {}))
    first.sql(BY_BOTH, epsilon=5)
    options: dict[str, Any] = {}
    match change:
        case "version":
            second = opened(version="2", **given)
        case "declaration":
            second = opened(
                table={"columns": {"city": {"choices": ["A", "B", "C", "D"]}, "sex": {"choices": ["f", "m"]}}}, **given
            )
        case "bounds":
            second, options = opened(**given, **people), {"bounds": {"rows_per_person": 3}, "epsilon": 0.05}
        case _:
            second = first
            first.sql(BY_BOTH, epsilon=5)
            with pytest.raises(dp.DiscreetError):
                first.part("2024-01")
            return
    asked = second.sql(WOMEN, **{"epsilon": 0.5, **options})
    assert not asked.derived_from
    assert opened(**given, **(people if change == "bounds" else {})).sql(WOMEN, epsilon=0.5).derived_from


def test_data_without_a_version_are_never_the_same() -> None:
    database = opened(version=None)
    database.sql(BY_BOTH, epsilon=5)
    assert not database.sql(WOMEN, epsilon=0.5).derived_from


def analysts(tmp_path: Any, **answers: Any) -> list[Any]:
    path = str(tmp_path / "shared.ledger")
    whole = opened(ledger={"path": path}, answers=answers)
    for name in ("ann", "bob"):
        whole.ledger.for_analyst(name, limit=dp.Approx(epsilon=50, delta=1e-3))
    return [whole.seen_by(whole.ledger.for_analyst(name)) for name in ("ann", "bob")]


def check_accounts(tmp_path: Any, shared: bool) -> None:
    ann, bob = analysts(tmp_path, shared=shared)
    first = ann.sql(BY_BOTH, epsilon=5)
    asked = bob.sql(WOMEN, epsilon=0.5)
    assert bool(asked.derived_from) == shared
    assert len(charges(bob)) == (not shared)
    if shared:
        assert asked.derived_from == (first.receipt,)
        assert asked.remaining == bob.ledger.remaining


@pytest.mark.parametrize("shared", [True, False])
def test_answers_of_others_count_only_where_the_policy_shares_them(shared: bool, tmp_path: Any) -> None:
    check_accounts(tmp_path, shared)


def test_nothing_is_derived_where_the_policy_says_so() -> None:
    database = opened(answers={"derived": False})
    database.sql(BY_BOTH, epsilon=5)
    assert not database.sql(WOMEN, epsilon=0.5).derived_from
    assert "cells" not in charges(database)[0].mark


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ({"derive": True}, "policy-unknown-key"),
        ({"derived": "yes"}, "wrong-type"),
        ({"shared": 1}, "wrong-type"),
        ({"derived": False, "shared": True}, "conflicting-arguments"),
        (3, "policy-section"),
    ],
)
def test_wrong_rules_are_refused(answers: Any, code: str) -> None:
    with pytest.raises(dp.InvalidArgument) as error:
        opened(answers=answers)
    assert error.value.code == code


def test_a_key_is_never_answered_from_others() -> None:
    """A request with a key is charged under it, and a retry gets the same bytes."""
    database = opened()
    database.sql(BY_BOTH, epsilon=5)
    asked = database.sql(WOMEN, epsilon=0.5, key="mine")
    assert not asked.derived_from
    assert database.sql(WOMEN, epsilon=0.5, key="mine").replayed


def test_statements_over_several_answers_are_paid() -> None:
    database = opened()
    database.sql(BY_BOTH, epsilon=5)
    text = f"SELECT a.n + b.n AS n FROM ({TOTAL} WHERE city = 'A') AS a, ({TOTAL} WHERE city = 'B') AS b"
    answer = database.sql(text, epsilon=0.5)
    assert not answer.derived_from
    assert len(charges(database)) == 3


# --- what is said before ------------------------------------------------------------------------------------------


def test_explain_says_what_it_would_cost() -> None:
    database = opened()
    first = database.sql(BY_BOTH, epsilon=0.1)
    free = database.explain(WOMEN, epsilon=0.1)
    assert free.data["derived_from"] == [first.receipt]
    assert free.data["guarantee"] == "nothing"
    assert first.receipt in free
    left = database.ledger.remaining
    assert free.data["remaining"] == str(left)
    part = database.explain(BY_CITY, epsilon=0.1)
    assert part.data["derived_from"] == [first.receipt]
    asked = database.sql(BY_CITY, epsilon=0.1)
    assert part.data["guarantee"] == str(asked.cost)
    assert part.data["remaining"] == str(asked.remaining)


def test_what_is_owed_is_what_is_charged() -> None:
    database = opened()
    database.sql(BY_BOTH, epsilon=0.1)
    assert database.prepare(WOMEN, epsilon=0.1).owed() == []
    [owed] = database.prepare(BY_CITY, epsilon=0.1).owed()
    database.sql(BY_CITY, epsilon=0.1)
    assert owed.largest_loss == charges(database)[-1].guarantee.largest_loss
    assert database.prepare(BY_CITY, epsilon=0.1).owed() == []


def test_a_free_answer_needs_no_budget() -> None:
    database = opened(ledger={"epsilon": 0.5, "delta": 0, "rule": "basic"})
    database.sql(BY_BOTH, epsilon=0.5)
    assert database.sql(WOMEN, epsilon=0.4).derived_from
    with pytest.raises(dp.BudgetExhausted):
        database.sql(TOTAL, epsilon=0.1)


def test_the_json_of_an_answer_names_its_sources() -> None:
    database = opened()
    first = database.sql(BY_BOTH, epsilon=1)
    said = database.sql(WOMEN, epsilon=1).as_json()
    assert said["derived_from"] == [first.receipt]
    assert said["receipt"] is None
    assert said["guarantee"] == {"epsilon": 0.0, "delta": 0.0}


def test_what_was_made_in_test_mode_says_so() -> None:
    database = opened()
    with testing.no_noise():
        database.sql(BY_BOTH, epsilon=1)
    assert database.sql(WOMEN, epsilon=1).not_private


# --- the record ---------------------------------------------------------------------------------------------------


def test_a_new_process_derives_the_same(tmp_path: Any) -> None:
    path = str(tmp_path / "kept.ledger")
    first = opened(ledger={"path": path})
    first.sql(BY_BOTH, epsilon=0.1)
    asked = first.sql(BY_CITY, epsilon=0.1)
    free = first.sql(WOMEN, epsilon=0.1)
    first.close()
    again = opened(ledger={"path": path})
    assert again.sql(BY_CITY, epsilon=0.1).table.equals(asked.table)
    assert again.sql(WOMEN, epsilon=0.1).table.equals(free.table)
    assert again.ledger.verify() == 3


def test_a_charge_that_was_not_drawn_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash between charge and draw: the same part is charged once, also if other answers came meanwhile."""
    database = opened()
    database.sql(BY_BOTH, epsilon=0.1)
    right = answering._read_measures
    monkeypatch.setattr(answering, "_read_measures", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        database.sql(BY_CITY, epsilon=0.1)
    monkeypatch.setattr(answering, "_read_measures", right)
    database.sql(BY_BOTH.replace("COUNT(*)", "COUNT(*) + 0"), epsilon=0.11)
    before = epsilons(database)
    assert database.prepare(BY_CITY, epsilon=0.1).owed() == []
    asked = database.sql(BY_CITY, epsilon=0.1)
    assert epsilons(database) == before
    assert asked.receipt == charges(database)[1].receipt


def check_no_number_counts_twice() -> None:
    """Of ε = 0.12, where 23 of 32 parts were bought, 23 parts are missing. They are not those that were bought."""
    database = opened()
    earlier = database.sql(BY_CITY, epsilon=Fraction(12 * 23, 3200))
    asked = database.sql(BY_CITY, epsilon=Fraction(12, 100))
    assert asked.receipt != earlier.receipt
    assert epsilons(database)[0] == epsilons(database)[1]
    assert asked.derived_from == (earlier.receipt,)


def test_no_number_counts_twice() -> None:
    check_no_number_counts_twice()


def test_an_answer_that_was_discarded_is_no_source() -> None:
    database = opened()
    database.sql(BY_BOTH, epsilon=5)
    [entry] = charges(database)
    assert database.sql(WOMEN, epsilon=0.5).derived_from
    [[[identity]]] = database.ledger._store.look(("SELECT identity FROM entries WHERE number = ?", entry.number))
    [gone] = database.ledger.discard([(None, identity)], after=entry.number - 1)
    assert gone.number == entry.number
    assert not database.sql(WOMEN, epsilon=0.4).derived_from
    assert epsilons(database) == [5, 0.4]


def test_marks_of_before_are_read_as_they_are() -> None:
    database = opened(answers={"derived": False})
    database.sql(BY_BOTH, epsilon=1)
    mark = charges(database)[0].mark
    assert stored.Mark.read(mark) is not None
    assert mark.startswith(f"{stored.Mark.read(mark)}; asked ")
    assert read_linear(mark) is None


@pytest.mark.parametrize("text", [BY_BOTH, WOMEN, TOTAL, f"{TOTAL} WHERE city = 'A' OR sex IS NULL"])
def test_a_mark_says_what_was_measured(text: str) -> None:
    database = opened()
    database.sql(text, epsilon=1)
    mark = charges(database)[0].mark
    plan = database.plan(text, epsilon=1)
    request = answering._request(database.planner, plan, None)
    asked = cells.linear_question(plan, database.schema, request["identity"])
    found = read_linear(mark)
    assert mark.startswith(f"{stored.Mark.read(mark)}; asked ")
    assert asked is not None
    assert found is not None
    assert (found[0].columns, found[0].sizes, found[0].groups) == (asked.columns, asked.sizes, asked.groups)
    assert [one.vector for one in found[0].measures] == [one.vector for one in asked.measures]
    assert all((a.places == b.places).all() for a, b in zip(found[0].measures, asked.measures, strict=True))


def test_too_many_groups_or_cells_are_left_alone() -> None:
    rows = [(n, str(n % 300), "f", 1.0) for n in range(600)]
    many = {"columns": {"city": {"choices": [str(n) for n in range(MOST_GROUPS + 1)]}, "sex": {"choices": ["f", "m"]}}}
    database = opened(rows, table=many)
    database.sql("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=1)
    assert "cells" not in charges(database)[0].mark
    large = {"columns": {"city": {"choices": [str(n) for n in range(points.MOST_CELLS)]}}}
    database = opened(rows, table=large)
    database.sql(f"{TOTAL} WHERE city = '1'", epsilon=1)
    assert "; cells - in 1;" in charges(database)[0].mark


# --- only public facts decide ------------------------------------------------------------------------------------

SCRIPT = [
    (BY_BOTH, 0.1),
    (WOMEN, 0.1),
    (BY_CITY, 0.1),
    (TOTAL, 0.2),
    (f"{TOTAL} WHERE city = 'A'", 0.15),
    (BY_CITY, 0.2),
]
NEIGHBORS = [
    [],
    [(9, "A", "f", 1.0)],
    [(9, None, None, None)],
    [(9, "elsewhere", "m", float("nan"))],
    [(9, "A", "f", 1e308)] * 40,
]


def check_decisions() -> None:
    """Neighbors are charged the same for the same questions, whatever the noise."""
    seen = []
    for seed, rows in enumerate(NEIGHBORS):
        database = opened(ROWS + rows)
        with testing.frozen(seed):
            answers = [database.sql(text, epsilon=epsilon) for text, epsilon in SCRIPT]
        marks = [(entry.mark, str(entry.guarantee)) for entry in charges(database)]
        shapes = [(len(one.derived_from), one.table.schema, one.table.num_rows) for one in answers]
        errors = [
            one.table.column(name).to_pylist() for one in answers for name in one.table.column_names if "err" in name
        ]
        assert any(one.derived_from for one in answers)
        seen.append((marks, shapes, [len(one) for one in errors]))
    assert all(one == seen[0] for one in seen)


@pytest.mark.slow
def test_only_public_facts_decide() -> None:
    check_decisions()


QUESTIONS = [(BY_BOTH, 0.2), (WOMEN, 0.2), (BY_CITY, 0.3), (f"{TOTAL} WHERE sex IS NULL OR city = 'A'", 0.3)]


@pytest.mark.some_quick(8)
@pytest.mark.parametrize("script", list(itertools.product(range(len(QUESTIONS)), repeat=3)))
def test_what_was_charged_bounds_what_one_row_changes(script: tuple[int, ...]) -> None:
    """Over every sequence of questions, and so for every adaptive analyst: the numbers that were drawn lose at most
    what was charged for them, for a row in any cell. Estimates are made of them alone.
    """
    database = opened()
    for number in script:
        text, epsilon = QUESTIONS[number]
        database.sql(text, epsilon=epsilon)
    size = {1: 5, 2: 4}
    for cell in itertools.product(*(range(many) for many in size.values())):
        whole = 0.0
        for entry in charges(database):
            mark, linear = stored.Mark.read(entry.mark), read_linear(entry.mark)
            assert mark is not None
            assert linear is not None
            at = tuple(cell[[1, 2].index(column)] for column in linear[0].columns)
            place = int(np.ravel_multi_index(at, linear[0].sizes)) if at else 0
            noises = zip(linear[0].measures, mark.noise, strict=True)
            moved = sum((own.places[place] >= 0) / float(stored.noise_in(noise).scale) for own, noise in noises)
            assert moved <= float(entry.guarantee.largest_loss) + 1e-12
            whole += moved
        assert whole <= database.ledger.spent["ε"] + 1e-12


def test_an_odd_record_moves_an_estimate_no_further_than_any_other() -> None:
    """With frozen noise, the estimate moves by what the numbers move, each with its weight."""
    moved = []
    for rows in NEIGHBORS[:4]:
        database = opened(ROWS + rows)
        with testing.frozen(4):
            database.sql(BY_BOTH, epsilon=0.1)
            moved.append([row["n"] for row in database.sql(BY_CITY, epsilon=0.1)])
    for one in moved[1:]:
        assert sum(abs(a - b) for a, b in zip(one, moved[0], strict=True)) <= 1


# --- intervals ----------------------------------------------------------------------------------------------------


def check_coverage(confidences: tuple[float, ...] = (0.5, 0.9, 0.95, 0.99)) -> None:
    """The truth is inside as often as it is said, in 100 groups: fewer than once in 10^6 runs it is not."""
    many = 100
    rows = [(n, str(n % many), "fm"[n // many % 2], 1.0) for n in range(3 * many)]
    columns = {"city": {"choices": [str(n) for n in range(many)]}, "sex": {"choices": ["f"]}}
    database = opened(rows, table={"columns": columns})
    by = "SELECT city, COUNT(*) AS n FROM t WHERE {} GROUP BY city"
    database.sql(by.format("sex = 'f'"), epsilon=0.2)
    database.sql(by.format("sex <> 'f' OR sex IS NULL"), epsilon=0.3)
    free = database.sql("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=0.15)
    part = database.sql("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=0.25)
    assert free.receipt is None
    assert part.receipt is not None
    assert part.derived_from
    for answer, confidence in itertools.product((free, part), confidences):
        table = answer.with_errors(confidence).to_pylist()
        inside = sum(abs(row["n"] - 3) <= row["n_error"] for row in table)
        assert inside >= many * confidence - 5.3 * math.sqrt(many * confidence * (1 - confidence)) - 2, confidence


def test_the_truth_is_inside_as_often_as_it_is_said() -> None:
    check_coverage()


def test_estimates_are_better_than_what_they_are_made_of() -> None:
    database = opened()
    database.sql(BY_BOTH, epsilon=0.1)
    database.sql(BY_CITY, epsilon=0.1)
    better = database.sql(BY_CITY, epsilon=0.09)
    assert better.derived_from
    assert all(row["n_error"] <= float(dp.Laplace(scale=10, step=1).error(0.95)) for row in better)


# --- seeded bugs --------------------------------------------------------------------------------------------------


def test_sources_of_another_version_are_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(cells._Reading, "_vector", lambda self, *given: cells.digest(repr(given[2]))[:32])
    with pytest.raises(AssertionError):
        test_nothing_follows_for_other_data_or_declarations("version", tmp_path)


def test_different_caps_averaged_are_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    right = cells._Reading.__init__

    def forgetful(self: Any, plan: Any, schema: Any, identity: Any) -> None:
        right(self, plan, schema, replace(identity, arguments={}))

    monkeypatch.setattr(cells._Reading, "__init__", forgetful)
    with pytest.raises(AssertionError):
        test_nothing_follows_for_other_data_or_declarations("bounds", tmp_path)


def test_answers_of_others_without_shared_are_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    right = measured._read_newer
    monkeypatch.setattr(measured, "_read_newer", lambda e, ledger, seen, shared: right(e, ledger, seen, shared=True))
    with pytest.raises(AssertionError):
        check_accounts(tmp_path, shared=False)


def test_a_forgotten_null_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = cells.points_of
    monkeypatch.setattr(cells, "points_of", lambda field: (found := right(field)) and found[:-1])
    with pytest.raises(AssertionError):
        check_nulls()


def test_a_decision_by_noisy_numbers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """An estimate that is used only if its numbers look right."""
    right = deciding.Estimate.is_as_accurate_as

    def looks(self: Any, asked: Any) -> bool:
        return right(self, asked) and (self.noise is not None or bool(round(float(self.values(None)[0])) % 2))

    monkeypatch.setattr(deciding.Estimate, "is_as_accurate_as", looks)
    with pytest.raises(AssertionError):
        check_decisions()


def test_filters_that_overlap_taken_as_equal_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sources.spread_places

    def coarse(places: Any, groups: int) -> Any:
        rows = right(places, groups)
        rows[:, :] = rows[:, :1].max() or rows.max(axis=1, keepdims=True)
        return rows

    monkeypatch.setattr(sources, "spread_places", coarse)
    with pytest.raises(AssertionError):
        check_overlapping_filters()


def test_a_part_under_the_name_of_a_question_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing, under the identity of a question for the same price: its stored numbers count twice."""
    monkeypatch.setattr(
        answering, "_part_request", lambda planner, plan, decided: answering._request(planner, plan, None)
    )
    with pytest.raises(AssertionError):
        check_no_number_counts_twice()


def test_weights_of_another_noise_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of the earlier answers is forgotten in the error."""
    right = deciding.Estimate._rows.fget
    assert right is not None
    monkeypatch.setattr(deciding.Estimate, "_rows", property(lambda self: right(self) * 0.4))
    with pytest.raises(AssertionError):
        check_coverage()


# --- noise that groups have in common -----------------------------------------------------------------------------


def check_shares() -> None:
    """Estimates of groups that share a source have their noise in common: the ± of what is computed from several of
    them is that of the sum of their noises.
    """
    database = opened()
    for city in "ABC":
        database.sql(f"{TOTAL} WHERE city <> '{city}' OR city IS NULL", epsilon=5)
    database.sql(TOTAL, epsilon=0.1)
    text = "SELECT city, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS whole FROM t GROUP BY city"
    answer = database.sql(text, epsilon=0.09)
    assert answer.derived_from
    assert answer.receipt is None
    own = float(dp.Laplace(scale=10, step=1).error(0.95))
    for row in answer:  # each is the total, whose noise is much larger, less a part
        assert row["n_error"] == pytest.approx(own, rel=0.1)
        assert 2.7 * own < row["whole_error"] < 3.5 * own


def test_noise_that_groups_share_is_not_averaged() -> None:
    check_shares()


def test_noise_drawn_for_each_group_alone_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = shown.Estimated.redrawn

    def apart(self: Any, part: int, draws: int, uniform: Any) -> Any:
        found = right(self, part, draws, uniform)
        return np.stack([np.roll(found[:, n], 7 * n) for n in range(found.shape[1])], axis=1)

    monkeypatch.setattr(shown.Estimated, "redrawn", apart)
    with pytest.raises(AssertionError):
        check_shares()

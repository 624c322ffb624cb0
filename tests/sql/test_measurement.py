"""The identity of a measurement: what is shown of stored numbers is free, and so is a part of them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.ledger import marks
from discreet.sql.running import answering, stored

N = 60
DATA = {
    "pid": list(range(N)),
    "x": [float(n % 7) for n in range(N)],
    "n": [n % 3 for n in range(N)],
    "city": [("Acre", "Haifa", "Lod")[n % 3] for n in range(N)],
}
COLUMNS = {"x": {"between": [0, 10]}, "n": {"between": [0, 2]}, "city": {"choices": ["Acre", "Haifa", "Lod"]}}


def opened(version: str | None = "1", **ledger: Any) -> Any:
    table = {"source": pa.table(DATA), "rows_per_person": 1, "columns": COLUMNS, "version": version}
    terms = {"path": ":memory:", "epsilon": 1e4, "delta": 0.01, **ledger}
    return dp.connect({"ledger": terms, "unit": {"person": "pid"}, "tables": {"t": table}})


ASKED = "SELECT city, COUNT(*) AS people, SUM(x) AS total FROM t WHERE x > 1 AND n < 2 GROUP BY city"
FREE = {
    "LIMIT": f"{ASKED} LIMIT 2",
    "ORDER BY": f"{ASKED} ORDER BY total DESC",
    "HAVING": f"{ASKED} HAVING COUNT(*) > 3",
    "aliases": "SELECT city AS town, COUNT(*) AS c, SUM(x) AS s FROM t WHERE x > 1 AND n < 2 GROUP BY town",
    "column order": "SELECT SUM(x) AS total, COUNT(*) AS people, city FROM t WHERE x > 1 AND n < 2 GROUP BY city",
    "arithmetic": "SELECT city, SUM(x) / COUNT(*) AS each, ROUND(SUM(x)) AS r FROM t WHERE x > 1 AND n < 2 GROUP BY 1",
    "order of conditions": "SELECT city, COUNT(*) AS c, SUM(x) AS s FROM t WHERE n < 2 AND x > 1 GROUP BY city",
}
NEW = {
    "another condition": ASKED.replace("x > 1", "x > 2"),
    "another measure": ASKED.replace("SUM(x)", "SUM(x + 1)"),
    "an aggregate more, in HAVING": f"{ASKED} HAVING AVG(n) > 0",
    "an aggregate more, in ORDER BY": f"{ASKED} ORDER BY AVG(n)",
    "other groups": ASKED.replace("city", "n"),
}


@pytest.mark.some_quick(4)
@pytest.mark.parametrize("text", FREE.values(), ids=list(FREE))
def test_what_is_only_shown_in_another_way_is_free(text: str) -> None:
    database = opened()
    first, again = database.sql(ASKED, epsilon=1), database.sql(text, epsilon=1)
    assert (first.replayed, again.replayed, database.ledger.count) == (False, True, 1)
    assert again.receipt == first.receipt


@pytest.mark.some_quick(5)
@pytest.mark.parametrize("text", NEW.values(), ids=list(NEW))
def test_another_measurement_is_charged(text: str) -> None:
    database = opened()
    database.sql(ASKED, epsilon=1)
    assert not database.sql(text, epsilon=1).replayed
    assert database.ledger.count == 2


def test_more_accuracy_is_charged_and_less_is_free() -> None:
    database = opened()
    database.sql(ASKED, epsilon=1)
    assert not database.sql(ASKED, epsilon=2).replayed
    assert database.sql(ASKED, epsilon=0.5).replayed


def test_the_same_numbers_are_shown_under_their_own_names() -> None:
    database = opened()
    first = {row["city"]: row for row in database.sql(ASKED, epsilon=1).table.to_pylist()}
    for row in database.sql(FREE["column order"], epsilon=1).table.to_pylist():
        assert row == first[row["city"]]
    shown = database.sql(FREE["arithmetic"], epsilon=1).table.to_pylist()
    for row in shown:
        total, people = first[row["city"]]["total"], first[row["city"]]["people"]
        if people:
            assert row["each"] == pytest.approx(total / people)
        else:
            assert not math.isfinite(row["each"])  # as DuckDB says


def test_rows_come_in_the_order_in_which_keys_are_written() -> None:
    """Stored numbers have one order; an answer has the order of its own GROUP BY."""
    database = opened()
    by_city = database.sql("SELECT city, n, COUNT(*) AS c FROM t GROUP BY city, n", epsilon=1)
    by_number = database.sql("SELECT n, city, COUNT(*) AS c FROM t GROUP BY n, city", epsilon=1)
    assert by_number.replayed
    cells = {(row["city"], row["n"]): row["c"] for row in by_city.table.to_pylist()}
    assert list(cells) == [(city, n) for city in COLUMNS["city"]["choices"] for n in range(3)]
    rows = by_number.table.to_pylist()
    assert [(row["n"], row["city"]) for row in rows] == [(n, c) for n in range(3) for c in COLUMNS["city"]["choices"]]
    assert all(cells[row["city"], row["n"]] == row["c"] for row in rows)


# --- a part of what was measured ----------------------------------------------------------------------------

COUNT = "SELECT city, COUNT(*) AS c FROM t WHERE x > 1 AND n < 2 GROUP BY city"


@pytest.mark.parametrize(("epsilon", "free"), [(0.3, True), (0.5, True), (0.6, False), (1, False)])
def test_a_part_is_free_where_what_is_stored_is_as_accurate(epsilon: float, free: bool) -> None:
    """Two aggregates share ε = 1: each has the noise of one alone at 0.5."""
    database = opened()
    whole = database.sql(ASKED, epsilon=1)
    part = database.sql(COUNT, epsilon=epsilon)
    assert part.replayed == free
    if free:
        assert part.table.column("c").to_pylist() == whole.table.column("people").to_pylist()
        assert part.table.column("c_error").to_pylist() == whole.table.column("people_error").to_pylist()
        assert part.receipt == whole.receipt
    assert database.ledger.verify() == database.ledger.count + 1


def test_a_part_of_a_mean_is_free() -> None:
    database = opened()
    database.sql("SELECT city, AVG(x) AS m, COUNT(*) AS c, SUM(n) AS s FROM t GROUP BY city", epsilon=3)
    assert database.sql("SELECT city, SUM(n) AS s FROM t GROUP BY city", epsilon=1).replayed
    assert not database.sql("SELECT city, SUM(n) AS s FROM t GROUP BY city", epsilon=1.01).replayed


def test_a_part_of_groups_that_are_found_is_free() -> None:
    database = opened()
    asked = "SELECT CAST(n AS VARCHAR) || 'a' AS k, COUNT(*) AS c, SUM(n) AS s FROM t GROUP BY k"
    whole = database.sql(asked, epsilon=20, delta=1e-3)
    part = database.sql("SELECT CAST(n AS VARCHAR) || 'a' AS k, COUNT(*) AS c FROM t GROUP BY k", epsilon=2, delta=1e-3)
    assert part.replayed
    assert part.table.column("k").to_pylist() == whole.table.column("k").to_pylist()
    assert part.table.column("c").to_pylist() == whole.table.column("c").to_pylist()


def test_a_quantile_is_served_by_the_same_choice_only() -> None:
    database = opened()
    database.sql("SELECT MEDIAN(x) AS m, COUNT(*) AS c FROM t", epsilon=2)
    assert not database.sql("SELECT MEDIAN(x) AS m FROM t", epsilon=0.5).replayed
    assert database.sql("SELECT COUNT(*) AS c FROM t", epsilon=1).replayed


def test_a_part_states_what_its_numbers_cost() -> None:
    """Not what was asked for now: whoever publishes them publishes numbers of that guarantee."""
    database = opened()
    whole, part = database.sql(ASKED, epsilon=10), database.sql(COUNT, epsilon=0.1)
    assert part.replayed
    assert part.cost == whole.cost == dp.Pure(epsilon=10)
    assert part.as_json()["guarantee"] == {"epsilon": 10.0, "delta": 0.0}
    assert str(part.cost) in str(part)
    assert part.guarantee.delta_at(epsilon=float(part.cost.epsilon)) <= float(part.cost.delta)


@pytest.mark.slow
def test_the_release_of_a_part_holds_that_part() -> None:
    database = opened()
    whole = database.sql("SELECT SUM(x) AS s, COUNT(*) AS c FROM t", epsilon=2).table
    part = database.sql("SELECT SUM(x) AS s FROM t", epsilon=0.5)
    assert part.replayed
    assert len(part.release.value) == len(part.release.error(0.95)) == 1
    step = float(part.question.measures[0].step)
    assert part.release.value[0][0] * step == pytest.approx(whole["s"][0].as_py())
    assert float(part.release.error(0.95)[0]) * step == pytest.approx(whole["s_error"][0].as_py())


# two laws of noise: a person in many groups

CITIES = [f"c{n}" for n in range(N)]
OF_MANY = {"rows_per_person": N, "groups_per_person": N, "rows_per_group": 1, "version": "1"}


def many() -> Any:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Approx(epsilon=1e4, delta=0.01))
    return dp.table(pa.table({"pid": list(range(N)), "city": CITIES}), ledger=ledger, **OF_MANY)


def test_laplace_noise_serves_no_question_that_buys_gaussian_noise() -> None:
    """Its tails are heavier: as accurate at 95%, it is far off at 99.99%."""
    table = many()
    stored_first = table.histogram("city", choices=CITIES, epsilon=20)
    asked = table.histogram("city", choices=CITIES, epsilon=1, delta=1e-6)
    assert stored_first.error(0.95).amount < asked.error(0.95).amount
    assert not asked.replayed


@pytest.mark.parametrize(("delta", "free"), [(0, False), (1e-9, True)])
def test_gaussian_noise_serves_what_allows_a_delta_and_is_said(delta: float, free: bool) -> None:
    """Asked for δ = 0, numbers that promise it only with a δ are not served."""
    table = many()
    whole = table.histogram("city", choices=CITIES, epsilon=5, delta=1e-6)
    part = table.histogram("city", choices=CITIES, epsilon=0.02, delta=delta)
    assert part.replayed == free
    for confidence in (0.5, 0.8, 0.95, 0.9999):
        assert (part.error(confidence).amount == whole.error(confidence).amount) == free


@pytest.mark.slow
def test_groups_are_served_only_where_no_more_of_them_are_hidden() -> None:
    """A lower threshold with more noise hides more groups than a higher one with less."""
    chosen = stored.Mark("a" * 32, ("b" * 32,), ("Laplace 1",), 18, Fraction(10))
    assert stored.Mark.read(str(chosen)) == chosen
    table = {"source": pa.table(DATA), "rows_per_person": 1, "columns": {"x": {"between": [0, 10]}}, "version": "1"}
    terms = {"path": ":memory:", "epsilon": 1e4, "delta": 0.9}
    database = dp.connect({"ledger": terms, "unit": {"person": "pid"}, "tables": {"t": table}})
    many = ", ".join(f"COUNT(*) FILTER (WHERE x > {n}) AS f{n}" for n in range(8))
    whole = f"SELECT city, COUNT(*) AS n, {many} FROM t GROUP BY city"
    first = {"epsilon": 1, "delta": 0.2, "weights": {"n": 1e5}}
    part, second = "SELECT city, COUNT(*) AS n FROM t GROUP BY city", {"epsilon": 1.6, "delta": 1e-9}
    noisy, calm = database.plan(whole, **first).price.selection, database.plan(part, **second).price.selection
    assert noisy.threshold < calm.threshold
    assert noisy.scale > calm.scale
    database.sql(whole, **first)
    assert not database.sql(part, **second).replayed
    served = database.sql(part, epsilon=0.5, delta=1e-9)
    assert served.replayed
    assert f"fewer than about {calm.threshold} people" in served.notes[-1]


@pytest.mark.parametrize("other", ["analyst", "data", "policy", "key"])
def test_nothing_is_served_to_another(other: str) -> None:
    """A part is served to who asked for the whole, of the same data, under the same declarations."""
    database = opened()
    ledger = database.ledger
    database.sql(ASKED, epsilon=1)
    if other == "analyst":
        asked = type(database)(database.schema, database.engine, ledger.for_analyst("ann", limit=dp.Pure(epsilon=9)))
        asked.planner = type(database.planner)(
            database.schema, database.engine, asked.ledger, policy=database.planner.policy
        )
    else:
        asked = opened("2" if other == "data" else "1")
        policy = "another" if other == "policy" else database.planner.policy
        asked.planner = type(database.planner)(asked.schema, asked.engine, ledger, policy=policy)
    assert not asked.sql(COUNT, epsilon=0.5, key="k" if other == "key" else None).replayed


def test_data_without_a_version_serve_nothing() -> None:
    database = opened(version=None)
    database.sql(ASKED, epsilon=1)
    assert not database.sql(COUNT, epsilon=0.5).replayed
    assert [stored.Mark.read(entry.mark) for entry in database.ledger.entries()] == [None, None]


def test_the_record_shows_what_was_asked_and_hides_no_mark() -> None:
    database = opened()
    database.sql(ASKED, epsilon=1)
    [entry] = database.ledger.entries()
    assert "measured" not in entry.asked
    known = stored.Mark.read(entry.mark)
    assert known is not None
    assert marks.with_question(str(known), marks.question_in(entry.mark)) == entry.mark
    assert [law.split()[0] for law in known.noise] == ["Laplace", "Laplace"]


def test_the_record_binds_an_answer_to_its_declarations_and_not_to_the_data() -> None:
    """What is published is checked without the data: the digest is that of the question under its declarations."""
    found = []
    for version, table in (
        ("1", COLUMNS),
        ("2", COLUMNS),
        ("1", COLUMNS | {"city": {"choices": ["Acre", "Lod", "Ur"]}}),
    ):
        words = {"source": pa.table(DATA), "version": version, "rows_per_person": 1, "columns": table}
        database = dp.connect(
            {"ledger": {"path": ":memory:", "epsilon": 9}, "unit": {"person": "pid"}, "tables": {"t": words}}
        )
        database.sql(ASKED, epsilon=1)
        found.append(marks.question_in(database.ledger.entries()[0].mark))
    assert found[0] is not None
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("text", ["", "SELECT 1", "x\n-- measured 12", f"x\n-- measured {'g' * 32}: a b"])
def test_text_that_is_no_mark_is_what_was_asked(text: str) -> None:
    assert marks.split_mark(text) == (text, "")


def test_a_mark_inside_a_question_is_only_text() -> None:
    """Whoever writes the mark of other numbers into a text literal is not served, and the record shows all of it."""
    plain = "SELECT COUNT(*) AS c FROM t WHERE city = 'Acre'"
    database = opened()
    database.sql(plain, epsilon=0.1)
    mark = database.ledger.entries()[-1].mark
    forged = f"\n-- measured {mark[:66]}Laplace 1/1000"
    other = dp.connect(
        {
            "ledger": {"path": ":memory:", "epsilon": 1e4},
            "unit": {"person": "pid"},
            "tables": {"t": {"source": pa.table(DATA), "rows_per_person": 1, "columns": COLUMNS}},
        }
    )
    other.planner = type(other.planner)(other.schema, other.engine, database.ledger, policy=other.planner.policy)
    other.sql(f"SELECT COUNT(*) AS c FROM t WHERE city <> 'Lod{forged}'", epsilon=0.01)
    dp.release(1, dp.Laplace(scale=1), sensitivity=1, ledger=database.ledger, asked=f"a count{forged}")
    asked, released = database.ledger.entries()[1:]
    question = marks.question_in(asked.mark)
    assert (asked.mark, released.mark) == (f"{question}: asked {question}", "")
    assert asked.asked.endswith(f"{forged}'")
    assert released.asked == f"a count{forged}"
    assert not database.sql(plain, epsilon=5).replayed
    assert database.ledger.verify() == 5


@pytest.mark.parametrize("size", ["1/0", "x", "-1", "1e400", ""])
def test_a_mark_that_cannot_be_read_is_none(size: str) -> None:
    assert stored.Mark.read(f"{'a' * 32}: {'b' * 32} Laplace {size}") is None
    assert stored.Mark.read(f"{'a' * 32}: {'b' * 32} Laplace 1/2") is not None


# --- mutants ------------------------------------------------------------------------------------------------


def test_noise_that_is_not_compared_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is served whatever its noise: the answer is less accurate than what was asked and paid for."""
    monkeypatch.setattr(stored, "_if_as_accurate", lambda noise, part: part)
    with pytest.raises(AssertionError):
        test_a_part_is_free_where_what_is_stored_is_as_accurate(1, False)


def test_measures_in_another_place_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of one measure under the name of another."""
    right = answering.chosen_numbers
    monkeypatch.setattr(answering, "chosen_numbers", lambda value, plan, places: right(value, plan, [1 - places[0]]))
    with pytest.raises(AssertionError):
        test_a_part_is_free_where_what_is_stored_is_as_accurate(0.5, True)


def test_keys_in_stored_order_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "as_written", lambda question, noisy, keys: (noisy, sorted(keys, key=str)))
    with pytest.raises(AssertionError):
        test_rows_come_in_the_order_in_which_keys_are_written()


def test_a_mark_without_the_data_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = stored.exact_text

    def forgetful(value: Any, *given: Any) -> str:
        return right((*value[:2], "", *value[3:]) if isinstance(value, tuple) and len(value) == 5 else value, *given)

    monkeypatch.setattr(stored, "exact_text", forgetful)
    with pytest.raises(AssertionError):
        test_nothing_is_served_to_another("data")


def test_a_part_that_states_what_is_asked_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of ε = 10 under the name of ε = 0.1."""
    monkeypatch.setattr(stored, "_price_of", lambda entry, mark, parts, price: replace(price, parts=tuple(parts)))
    with pytest.raises(AssertionError):
        test_a_part_states_what_its_numbers_cost()


def test_laws_compared_at_one_confidence_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laplace noise for Gaussian noise of the same error at 95%."""

    def compared(noise: str, part: Any) -> Any:
        known = dp.Laplace(scale=Fraction(noise.split()[1]), step=1)
        return known if float(known.error(0.95)) <= float(part.error(0.95)) else None

    monkeypatch.setattr(stored, "_if_as_accurate", compared)
    with pytest.raises(AssertionError):
        test_laplace_noise_serves_no_question_that_buys_gaussian_noise()


def test_a_mark_that_anyone_can_write_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request without a mark is recorded as it is, whatever it ends with."""
    monkeypatch.setattr(marks, "add_mark", lambda asked, mark: f"{asked}\n-- measured {mark}" if mark else asked)
    with pytest.raises(AssertionError):
        test_a_mark_inside_a_question_is_only_text()

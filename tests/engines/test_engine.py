"""What holds on every engine: bounds, exact sums, keys that are found, bounds that are found, types, refusals."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.datasets.database import Database
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.engine import Engine
from discreet.errors import DiscreetError, NotAllowed
from discreet.rows import cells
from discreet.sql.schema import Column, Schema, Table
from discreet.tables.days import EPOCH

from ..refusing import refuses
from .conftest import sql

REFUSED = [json.loads(line) for line in (sql.FIXTURES / "refusals.jsonl").read_text().splitlines()]


def database(opened, rows, unit=None, columns=None, **bounds) -> Database:
    """One table `t` of these rows."""
    unit = dp.person("pid") if unit is None else unit
    engine = opened({"t": rows})
    known = engine.columns("t")
    told = {name: Column(name=name, type=kind, **(columns or {}).get(name, {})) for name, kind in known.items()}
    person = {"person": "pid", "rows_per_person": 5} | bounds if unit.column else {}
    table = Table(name="t", columns=told, **person)
    return Database(Schema(unit=unit, tables={"t": table}), engine, sql.open_ledger(unit))


def answer(database: Database, text: str, **given) -> list[tuple]:
    with testing.no_noise():
        return [tuple(row) for row in database.sql(text, **({"epsilon": 10} | given)).as_json()["rows"]]


def test_it_is_an_engine(opened, where):
    engine: Engine = opened({"t": pa.table({"pid": [1]})})
    assert type(engine).__name__.lower() == where
    assert engine.columns("t") == {"pid": "integer"}
    assert engine.table(f"SELECT count(*) AS n FROM {engine.relations['t']}").column("n").to_pylist() == [1]


@pytest.mark.parametrize("case", REFUSED[::7], ids=lambda case: case[0][:60])
def test_what_is_refused_is_refused_everywhere(clinic, case):
    text, error, code, _ = case
    before = clinic.database.ledger.spent
    with refuses(DiscreetError, code) as caught:
        clinic.database.sql(text, epsilon=1)
    assert type(caught.value).__name__ == error
    assert clinic.database.ledger.spent == before


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("rows", [1, 5, 1000])
def test_rows_of_one_person_are_bounded(opened, rows):
    """Person 1 has many rows, in many groups; all others one."""
    pid = [1] * rows + list(range(2, 12))
    city = [f"c{n % 20}" for n in range(rows)] + ["c0"] * 10
    data = pa.table({"pid": pid, "city": city, "x": pa.array([4.0] * len(pid))})
    columns = {"x": {"between": (0, 4)}, "city": {"choices": tuple(f"c{n}" for n in range(20))}}
    asked = database(opened, data, columns=columns, groups_per_person=3, rows_per_group=2)
    found = answer(asked, "SELECT city, COUNT(*) AS n, SUM(x) AS s, MEDIAN(x) AS m FROM t GROUP BY city")
    assert len(found) == 20
    groups = [row[1] - (10 if row[0] == "c0" else 0) for row in found]
    own = sum(groups)
    assert own == min(rows, 3) if rows < 20 else 2 <= own <= 5
    assert sum(count > 0 for count in groups) <= min(rows, 3)
    assert max(groups) <= 2
    assert sum(row[2] for row in found) == pytest.approx(4 * (own + 10))
    alone = answer(asked, "SELECT COUNT(*) AS n, COUNT(DISTINCT pid) AS p, COUNT(DISTINCT city) AS c FROM t")
    assert alone[0][:2] == (10 + min(rows, 5), 11)


def test_what_is_dropped_is_chosen_uniformly(opened):
    """2000 people, each with 8, 3 and 1 rows in three groups, equal rows among them: of 12 rows 4 are kept, or 1 of 3
    groups. Six deviations have a false alarm below 1e-8.
    """
    people, rows = 2000, (8, 3, 1)
    pid = [n for n in range(people) for _ in range(sum(rows))]
    data = pa.table({"pid": pid, "city": [c for c, n in zip("abc", rows, strict=True) for _ in range(n)] * people})
    columns = {"city": {"choices": ("a", "b", "c")}}
    text = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"
    few_rows = database(opened, data, columns=columns, rows_per_person=4, groups_per_person=3)
    for (_, count), own in zip(sorted(answer(few_rows, text)), rows, strict=True):
        # drawn without replacement: the variance of a hypergeometric number
        variance = people * 4 * (own / 12) * (1 - own / 12) * (12 - 4) / 11
        assert abs(count - people * 4 * own / 12) < 6 * math.sqrt(variance)
    one_group = database(opened, data, columns=columns, rows_per_person=12, rows_per_group=12, groups_per_person=1)
    for (_, count), own in zip(sorted(answer(one_group, text)), rows, strict=True):
        assert abs(count / own - people / 3) < 6 * math.sqrt(people * 2 / 9)


def test_answers_have_the_law_of_the_noise(opened, where):
    """The same answers' distribution everywhere: counts of three people with geometric noise, by its exact law.

    400 answers in one question of 400 groups: a shift by 1, or noise of half its size, moves what is compared by seven
    deviations. Four have a false alarm of 6e-5, and are looked at again with new answers.
    """
    groups = 400
    data = pa.table({"pid": [1, 2, 3] * groups, "k": [n // 3 for n in range(3 * groups)]})
    bounds = {"rows_per_person": groups, "groups_per_person": groups, "rows_per_group": 1}
    asked = database(opened, data, columns={"k": {"between": (0, groups - 1)}}, **bounds)
    scale = 2.0  # of one count, at ε = groups / 2
    noise = math.exp(-1 / scale)
    size = 2 * noise / (1 - noise**2)
    deviation = math.sqrt(2 * noise / (1 - noise) ** 2)
    for attempt in range(2):
        text = f"SELECT k, COUNT(*) AS n{attempt} FROM t GROUP BY k"
        found = [row[1] for row in asked.sql(text, epsilon=groups / scale).as_json()["rows"]]
        errors = [count - 3 for count in found]
        mean, spread = sum(errors) / groups, sum(map(abs, errors)) / groups
        if abs(mean) < 4 * deviation / math.sqrt(groups) and abs(spread - size) < 4 * deviation / math.sqrt(groups):
            return
    pytest.fail(f"{where}: mean {mean:.3f}, mean size {spread:.3f} instead of {size:.3f}")


def test_the_choice_of_groups_differs_from_question_to_question(opened):
    data = pa.table({"pid": [1] * 20, "city": [f"c{n}" for n in range(20)]})
    asked = database(opened, data, columns={"city": {"choices": tuple(data["city"].to_pylist())}}, groups_per_person=2)
    text = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"
    seen = {tuple(row[0] for row in answer(asked, text + f" LIMIT {20 + n}") if row[1]) for n in range(8)}
    assert all(len(kept) == 2 for kept in seen)
    assert len(seen) > 1  # all the same with a chance of 190^-7


@pytest.mark.parametrize("unit", [dp.person("pid"), dp.row()], ids=repr)
def test_values_that_are_no_numbers(opened, unit):
    """NULL and NaN are left out, infinities clamped; sums of whole steps are exact however large and small meet."""
    values = [None, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.1, 0.2, 0.3, 2.0**-30]
    data = pa.table({"pid": range(len(values)), "x": pa.array(values, pa.float64())})
    asked = database(opened, data, unit, {"x": {"between": (-10, 10)}})
    found = answer(asked, "SELECT COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s, AVG(x) AS m, STDDEV(x) AS d FROM t")
    plain = answer(
        database(DuckDB, data, unit, {"x": {"between": (-10, 10)}}),
        "SELECT COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s, AVG(x) AS m, STDDEV(x) AS d FROM t",
    )
    assert found == plain
    assert found[0][2] == pytest.approx(0.6, abs=1e-3)


def test_a_row_that_would_stop_a_question_does_not(opened):
    """With the bad row and without: the same columns, types and groups; its value is nowhere."""
    good = {"pid": [1, 2], "x": [1.0, 2.0], "n": [3, 4], "t_": ["5", "6"]}
    bad = {"pid": [1, 2, 3], "x": [1.0, 2.0, 1e308], "n": [3, 4, 2**63 - 1], "t_": ["5", "6", "secret"]}
    columns = {"x": {"between": (0, 5)}, "n": {"between": (0, 9)}}
    text = (
        "SELECT COUNT(*) AS a, SUM(LEAST(n * n * n, 5)) AS b, SUM(LEAST(GREATEST(x * x * x / (x - 1), 0), 9)) AS c, "
        "SUM(LEAST(GREATEST(TRY_CAST(t_ AS INTEGER), 0), 9)) AS d, "
        "SUM(LEAST(GREATEST(exp(x), 0), 9)) AS e FROM t WHERE ln(x - 5) IS NULL OR sqrt(-x) <> 0 OR n // (n - 3) > 0"
    )
    shown = []
    for rows in (good, bad):
        with testing.no_noise():
            table = database(opened, pa.table(rows), columns=columns).sql(text, epsilon=10).table
        shown.append((table.schema, table.num_rows))
    assert shown[0] == shown[1]


@pytest.mark.slow
def test_undeclared_groups_and_found_bounds(opened):
    people = 400
    data = pa.table(
        {
            "pid": list(range(people)) * 2,
            "city": ["Haifa"] * people + ["Acre"] * people,
            "x": [float(n % 50) for n in range(2 * people)],
        }
    )
    asked = database(opened, data, columns={"x": {"between": "auto"}}, groups_per_person="auto")
    text = "SELECT city, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY city"
    found = asked.sql(text, epsilon=50, delta=1e-6).as_json()["rows"]
    assert sorted(row[0] for row in found) == ["Acre", "Haifa"]
    assert [row[1] for row in found] == pytest.approx([people, people], rel=0.2)


def test_keys_of_every_type(clinic):
    """A key comes back as the same Python value from every engine."""
    for key in ("city", "urgent", "floor", "day", "date_trunc('month', day)", "cost > 500", "year(seen_at)"):
        text = f"SELECT {key} AS k, COUNT(*) AS n FROM visits GROUP BY k"
        with testing.no_noise():
            found = clinic.database.sql(text, epsilon=1000, delta=0.01).table
        assert found.num_rows > 0, key
        assert found.column("k").null_count == 0


def test_joins_of_single_rows_are_truncated(opened):
    """Where rows are protected one by one: at most so many with the same key take part."""
    a = pa.table({"k": [1] * 7 + [2]})
    engine = opened({"a": a, "b": pa.table({"k": [1, 1, 1, 2]})})
    told = {"k": Column(name="k", type="integer", frequency=2)}
    schema = Schema(unit=dp.row(), tables={n: Table(name=n, columns=told) for n in ("a", "b")})
    asked = Database(schema, engine, sql.open_ledger(dp.row()))
    assert answer(asked, "SELECT COUNT(*) AS n FROM a JOIN b ON a.k = b.k") == [(5,)]


def test_models_are_fitted_where_the_rows_are(clinic):
    """The rows that a model sees are those of the engine, as many of one person as may be."""
    asked = clinic.database
    before = len(asked.ledger.entries())
    model = dp.learn.LinearRegression(epsilon=100, target_bound=1000)
    asked.fit(model, "visits WHERE cost < 900", features=["floor", "discount", "day", "city"], target="cost")
    assert len(asked.ledger.entries()) == before + 1
    rows = asked.planner.rows("SELECT * FROM visits WHERE cost < 900", epsilon=1).rows
    found = rows.columns(["floor", "day", "city"], {"floor": "integer", "day": "date", "city": "text"})
    table = clinic.data["visits"].to_pylist()
    kept = [row for row in table if row["cost"] is not None and row["cost"] < 900]
    assert sorted(cells(found["floor"])) == sorted(row["floor"] for row in kept)
    assert sorted(found["day"].tolist()) == sorted((row["day"] - EPOCH).days for row in kept)
    assert sorted(found["city"]) == sorted(row["city"] for row in kept)
    assert rows.count() == len({row["person_id"] for row in kept})


def test_what_has_no_words_is_refused_before_it_is_charged(clinic, where):
    asked = clinic.database
    before = asked.ledger.spent
    for text in (
        "SELECT COUNT(*) AS n FROM visits WHERE TRY_CAST(note AS DATE) IS NULL",
        "SELECT COUNT(*) AS n FROM visits WHERE CAST(cost AS TEXT) = '1'",
        "SELECT COUNT(*) AS n FROM visits WHERE cost % 2 = 0",
        "SELECT COUNT(*) AS n FROM visits WHERE substring(note, floor) = 'x'",
        "SELECT COUNT(*) AS n FROM visits WHERE visit_id < 99999999999999999999",
    ):
        if where == "duckdb":
            asked.plan(text, epsilon=1)
            continue
        with refuses(NotAllowed, "sql-engine"):
            asked.sql(text, epsilon=1)
    assert asked.ledger.spent == before

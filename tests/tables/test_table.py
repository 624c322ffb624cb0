"""One table, asked by methods: the tour's lines, every source, and a PERSON removed under frozen noise."""

from __future__ import annotations

import datetime

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dp
from discreet import testing
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql import bounded_rows
from discreet.sql.running import answering
from discreet.tables import votes

from ..refusing import refuses

CITIES = ["Haifa", "Ljubljana", "Koper"]
PEOPLE, ROWS = 60, 3
TYPES = {"patient_id": "integer", "age": "integer", "cost": "number", "city": "text", "day": "date"}


def visits(without=None, extra=0):
    """Three visits for each of sixty people, and `extra` more for the first; without one of them if asked."""
    people = [p for p in range(PEOPLE) for _ in range(ROWS)] + [0] * extra
    kept = [i for i, p in enumerate(people) if p != without]
    columns = {
        "patient_id": [people[i] for i in kept],
        "age": [(7 * people[i]) % 90 for i in kept],
        "cost": [float((37 * i) % 500) for i in kept],
        "city": [CITIES[(people[i] + i) % 3] for i in kept],
        "day": [datetime.date(2025, 1, 1) + datetime.timedelta(days=i % 300) for i in kept],
    }
    return pa.table(columns)


def open_table(source=None, limit=None, **terms):
    ledger = dp.Ledger.open(
        ":memory:", protects=dp.person("patient_id"), limit=limit or dp.Approx(epsilon=1000, delta=1e-3)
    )
    return dp.table(visits() if source is None else source, ledger=ledger, **{"rows_per_person": ROWS, **terms}), ledger


METHODS = {
    "count": lambda t: t.count(epsilon=1),
    "people": lambda t: t.count("people", epsilon=1),
    "sum": lambda t: t.sum("cost", between=(0, 500), epsilon=1),
    "mean": lambda t: t.mean("cost", between=(0, 500), epsilon=1),
    "gaussian mean": lambda t: t.mean("cost", between=(0, 500), epsilon=1, delta=1e-6),
    "variance": lambda t: t.variance("cost", between=(0, 500), epsilon=1),
    "median": lambda t: t.median("age", between=(0, 120), epsilon=1),
    "quantiles": lambda t: t.quantiles("cost", [0.1, 0.5, 0.9], between=(0, 500), epsilon=1),
    "histogram": lambda t: t.histogram("city", choices=CITIES, epsilon=1),
    "undeclared": lambda t: t.histogram("city", epsilon=5, delta=1e-4),
    "most common": lambda t: t.most_common("city", choices=CITIES, epsilon=1),
    "two most common": lambda t: t.most_common("city", choices=CITIES, k=2, epsilon=1),
    "cdf": lambda t: t.cdf("age", between=(0, 120), step=1, epsilon=1),
    "gaussian cdf": lambda t: t.cdf("age", between=(0, 120), step=5, epsilon=1, delta=1e-6),
    "synthesize": lambda t: t.synthesize({"age": (0, 120), "city": CITIES}, epsilon=1, delta=1e-6, rounds=1),
    "where": lambda t: t.count(epsilon=1, where="age >= 18 AND day < DATE '2025-06-01'"),
    "count by city": lambda t: t.count(epsilon=1, by={"city": CITIES}),
    "sum by city": lambda t: t.sum("cost", between=(0, 500), epsilon=1, by={"city": CITIES}),
    "mean by city": lambda t: t.mean("cost", between=(0, 500), epsilon=1, by={"city": CITIES}),
    "variance by city": lambda t: t.variance("cost", between=(0, 500), epsilon=1, by={"city": CITIES}),
    "median by city": lambda t: t.median("age", between=(0, 120), epsilon=1, by={"city": CITIES}),
    "quantiles by city": lambda t: t.quantiles("age", [0.2, 0.8], between=(0, 120), epsilon=1, by={"city": CITIES}),
    "bins": lambda t: t.histogram("age", bins=3, between=(0, 90), epsilon=1),
    "edges by city": lambda t: t.histogram("cost", edges=[0, 100.5, 400], epsilon=1, by={"city": CITIES}),
}
EXACT = {
    "count": PEOPLE * ROWS,
    "people": PEOPLE,
    "sum": sum(visits()["cost"].to_pylist()),
    "mean": np.mean(visits()["cost"].to_pylist()),
    "gaussian mean": np.mean(visits()["cost"].to_pylist()),
    "variance": np.var(visits()["cost"].to_pylist(), ddof=1),
    "histogram": {city: visits()["city"].to_pylist().count(city) for city in CITIES},
    "where": sum(
        age >= 18 and day < datetime.date(2025, 6, 1)
        for age, day in zip(visits()["age"].to_pylist(), visits()["day"].to_pylist(), strict=True)
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_without_noise_the_answer_is_exact(name):
    table, _ = open_table()
    with testing.no_noise():
        assert METHODS[name](table).value == pytest.approx(EXACT[name], rel=1e-5)


@pytest.mark.some_quick(8)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_charges_its_epsilon_once_and_says_how_wrong_it_is(name):
    table, ledger = open_table(limit=dp.Approx(epsilon=6, delta=1e-3))
    answer = METHODS[name](table)
    cost = 2.5 if name == "undeclared" else 1  # half of it chose the groups before
    if answer.guarantee.largest_loss is not None and not name.startswith("gaussian"):
        assert cost * 0.9 <= float(answer.guarantee.largest_loss) <= cost
    else:
        assert answer.guarantee.epsilon_at(delta=1e-6) <= cost
    sure = (0.9, 0.95) if name.removesuffix(" by city") in ("median", "quantiles") else (0.95, 0.99)
    if answer.error(0.95).amount is not None:
        assert float(answer.error(sure[0])) <= float(answer.error(sure[1]))
    assert answer.receipt == ledger.entries()[-1].receipt
    assert answer.guarantee.protects == dp.person("patient_id")
    assert str(answer)


class Watched:
    """What a method asked of the engine, and the exact measures it got."""

    def __init__(self, monkeypatch):
        self.statements, self.measures = [], []
        run = DuckDB._run

        def watched_run(engine, text, fetch):
            self.statements.append(text)
            return run(engine, text, fetch)

        def watched(exact):
            def measure(question, *args):
                found = exact(question, *args)
                self.measures += zip(question.measures, found, strict=True)
                return found

            return measure

        monkeypatch.setattr(DuckDB, "_run", watched_run)
        monkeypatch.setattr("discreet.sql.measuring.measure.random_integer", lambda bits: 12345)
        for module in (answering, bounded_rows, votes):
            monkeypatch.setattr(module, "read_measures", watched(module.read_measures))


@pytest.mark.some_quick(6)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", METHODS)
def test_a_person_removed_changes_no_plan_and_moves_the_truth_within_bounds(name, rows):
    """Grey-box replay: same statements, noise, shapes and types; the exact measures move by the declared amount."""
    seen = []
    for without in (None, 17):
        table, ledger = open_table(visits(without), rows_per_person=rows)
        with pytest.MonkeyPatch.context() as monkeypatch, testing.frozen(1):
            watched = Watched(monkeypatch)
            answer = METHODS[name](table)
        shape = sorted(answer.value) if isinstance(answer.value, dict) else np.shape(answer.value)
        shape = answer.value.schema if name == "synthesize" else shape  # the number of rows is a noisy one
        charged = [(entry.mechanism, entry.cost, entry.guarantee) for entry in ledger.entries()]
        first = (name == "undeclared" and rows > 1) or name == "quantiles"  # groups are chosen, or rows counted
        assert len(charged) == (2 if first else 1)
        seen.append((watched.statements, charged, shape))
        seen[-1] += (watched.measures, answer)
    first, second = seen
    assert first[:3] == second[:3]
    if name.removesuffix(" by city") in ("median", "quantiles", "undeclared", "cdf", "gaussian cdf"):
        return  # values to choose from, and groups that are found; tests/sql bounds these
    for (measure, before), (_, after) in zip(first[3], second[3], strict=True):
        moved = np.abs(np.asarray(before, dtype=float) - np.asarray(after, dtype=float)).sum()
        assert moved <= rows * (measure.reach**measure.power if measure.kind == "sum" else 1)


def test_the_most_rows_of_a_person_are_used_and_no_more():
    table, _ = open_table(visits(extra=500))
    with testing.no_noise():
        assert table.count(epsilon=1).value == PEOPLE * ROWS
        assert table.count("people", epsilon=1).value == PEOPLE
        assert sum(table.histogram("city", choices=CITIES, epsilon=1).value.values()) == PEOPLE * ROWS
        assert table.sum("cost", between=(0, 500), epsilon=1).value <= 500 * PEOPLE * ROWS


def test_undeclared_values_of_few_people_stay_hidden():
    rare = visits().set_column(3, "city", pa.array(["rare"] * 3 + visits()["city"].to_pylist()[3:]))
    table, _ = open_table(rare)
    shown = table.histogram("city", epsilon=20, delta=1e-6).value
    assert "rare" not in shown
    assert set(shown) == set(CITIES)
    with refuses(dp.InvalidArgument, "needs-delta"):
        table.histogram("city", epsilon=1)


@pytest.mark.slow
def test_every_source_gives_the_same_answer(tmp_path):
    data = visits()
    pa.parquet.write_table(data, tmp_path / "v.parquet")
    pa.csv.write_csv(data, tmp_path / "v.csv")
    (tmp_path / "folder").mkdir()
    pa.parquet.write_table(data.slice(0, 50), tmp_path / "folder" / "a.parquet")
    pa.parquet.write_table(data.slice(50), tmp_path / "folder" / "b.parquet")
    connection = duckdb.connect()
    connection.register("v", data)
    sources = [
        tmp_path / "v.parquet",
        str(tmp_path / "v.csv"),
        tmp_path / "folder",
        data,
        data.to_pandas(),
        polars.from_arrow(data),
        connection.sql("SELECT * FROM v"),
        {name: data[name].to_pylist() for name in data.column_names},
    ]
    for source in sources:
        told = {name: kind for name, kind in TYPES.items() if isinstance(source, dict) or name in ("cost", "day")}
        table, _ = open_table(source, types=told)
        assert table.columns["cost"] == "number"
        assert table.columns["day"] == "date"
        with testing.no_noise():
            assert table.sum("cost", between=(0, 500), epsilon=1).value == EXACT["sum"]
            assert table.count(epsilon=1, where="day >= DATE '2025-01-01'").value == PEOPLE * ROWS


def test_a_question_asked_again_of_a_file_is_free_until_the_file_changes(tmp_path):
    path = tmp_path / "v.parquet"
    pa.parquet.write_table(visits(), path)
    ledger = dp.Ledger.open(":memory:", protects=dp.person("patient_id"), limit=dp.Pure(epsilon=1))
    table = dp.table(path, ledger=ledger, rows_per_person=3)
    first, again = table.count(epsilon=0.3), table.count(epsilon=0.3)
    assert (again.value, again.replayed) == (first.value, True)
    assert ledger.spent["ε"] == pytest.approx(0.3)
    assert not table.mean("cost", between=(0, 500), epsilon=0.3).replayed
    assert table.mean("cost", between=(0, 500), epsilon=0.3).replayed
    pa.parquet.write_table(visits(without=3), path)
    assert not dp.table(path, ledger=ledger, rows_per_person=3).count(epsilon=0.3).replayed
    assert table.explain.count(epsilon=0.3)
    assert ledger.count == 3


@pytest.mark.slow
def test_explain_tells_and_spends_nothing():
    table, ledger = open_table()
    for name, method in METHODS.items():
        told = method(table.explain)
        assert isinstance(told, str), name
        assert "±" in told or "no bound known" in told
    assert ledger.count == 0


def test_rows_alone():
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=10))
    table = dp.table(visits(), ledger=ledger)
    with testing.no_noise():
        assert table.count(epsilon=1).value == PEOPLE * ROWS
        assert table.mean("cost", between=(0, 500), epsilon=1).value == pytest.approx(EXACT["mean"], rel=1e-6)
        assert table.most_common("city", choices=CITIES, epsilon=5).value in CITIES


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda t: t.sum("nothing", between=(0, 1), epsilon=1), "unknown-column"),
        (lambda t: t.sum("city", between=(0, 1), epsilon=1), "column-no-range"),
        (lambda t: t.sum("cost", between=(5, 1), epsilon=1), "ends-out-of-order"),
        (lambda t: t.sum("cost", between=(0, 1), epsilon=0), "out-of-range"),
        (lambda t: t.count("everything", epsilon=1), "not-an-option"),
        (lambda t: t.count(epsilon=1, where="random() > 0.5"), "sql-function"),
        (lambda t: t.count(epsilon=1, where="1 = 1) UNION SELECT (1"), "sql-syntax"),
        (lambda t: t.histogram("city", choices=[], epsilon=1), "column-choices"),
        (lambda t: t.quantiles("cost", [2], between=(0, 1), epsilon=1), "out-of-range"),
    ],
)
def test_bad_arguments_are_told_and_cost_nothing(ask, code):
    table, ledger = open_table()
    with refuses(dp.DiscreetError, code):
        ask(table)
    assert ledger.count == 0


def test_terms_of_a_table():
    ledger = dp.Ledger.open(":memory:", protects=dp.person("patient_id"), limit=dp.Pure(epsilon=1))
    with refuses(dp.InvalidArgument, "person-column-missing"):
        dp.table({"x": [1]}, ledger=ledger, rows_per_person=1)
    with refuses(dp.InvalidArgument, "source-missing"):
        dp.table("nowhere.parquet", ledger=ledger, rows_per_person=1)
    with refuses(dp.InvalidArgument, "wrong-type"):
        dp.table(visits(), ledger=None, rows_per_person=1)

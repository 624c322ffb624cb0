"""Table methods by group, and histograms with bins: equal to DuckDB without noise, within bounds when a person leaves,
and the same whatever one record holds.
"""

from __future__ import annotations

import datetime
import math
from itertools import combinations, pairwise
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import discreet as dp
from discreet import testing
from discreet.tables import GroupedRelease

from ..refusing import refuses

CITIES = ["Acre", "Bled", "Como"]
BY = {"city": CITIES}
DAY = datetime.date(2025, 1, 1)
PEOPLE = 30


def visits(rows: int = 120) -> pa.Table:
    return pa.table(
        {
            "pid": [row % PEOPLE for row in range(rows)],
            "city": [CITIES[(row + row // PEOPLE) % 3] for row in range(rows)],
            "urgent": [row % 4 == 0 for row in range(rows)],
            "cost": [float(37 * row % 101) for row in range(rows)],
            "value": [row % 5 for row in range(rows)],
            "day": [DAY + datetime.timedelta(days=row % 50) for row in range(rows)],
        }
    )


def open_table(source: Any = None, limit: Any = None, **terms: Any) -> dp.tables.PrivateTable:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=limit or dp.Approx(epsilon=10_000, delta=0.01))
    return dp.table(visits() if source is None else source, ledger=ledger, **{"rows_per_person": 4, **terms})


def plain(text: str, data: pa.Table) -> list[tuple[Any, ...]]:
    return duckdb.sql(text).fetchall()


ASKED = {
    "count": (lambda t: t.count(epsilon=1, by=BY), "COUNT(*)"),
    "people": (lambda t: t.count("people", epsilon=1, by=BY), "COUNT(DISTINCT pid)"),
    "sum": (lambda t: t.sum("cost", between=(0, 101), epsilon=1, by=BY), "SUM(cost)"),
    "mean": (lambda t: t.mean("cost", between=(0, 101), epsilon=1, by=BY), "AVG(cost)"),
    "variance": (lambda t: t.variance("cost", between=(0, 101), epsilon=1, by=BY), "VAR_SAMP(cost)"),
    "where": (lambda t: t.count(epsilon=1, by=BY, where="urgent -- only these"), "COUNT(*) FILTER (urgent)"),
}


@pytest.mark.parametrize("name", ASKED)
def test_without_noise_each_group_is_what_duckdb_says(name: str) -> None:
    asked, text = ASKED[name]
    with testing.no_noise():
        release = asked(open_table())
    assert isinstance(release, GroupedRelease)
    expected = dict(plain(f"SELECT city, {text} FROM data GROUP BY city", visits()))
    assert release.value == pytest.approx(expected, rel=1e-5)
    assert list(release.value) == CITIES


def test_quantiles_of_each_group_are_near_the_true_ones() -> None:
    with testing.no_noise():
        found = open_table().quantiles("cost", [0.2, 0.5], between=(0, 101), epsilon=50, by=BY).value
        medians = open_table().median("cost", between=(0, 101), epsilon=50, by=BY).value
    for city, values in found.items():
        own = [row["cost"] for row in visits().to_pylist() if row["city"] == city]
        ranks = [sum(one <= value for one in own) / len(own) for value in (*values, medians[city])]
        assert ranks == pytest.approx([0.2, 0.5, 0.5], abs=0.1)


def test_medians_of_dates_are_dates_everywhere() -> None:
    ends = (DAY, DAY + datetime.timedelta(days=60))
    release = open_table().median("day", between=ends, epsilon=5, by=BY)
    assert all(isinstance(day, datetime.date) for day in release.value.values())
    assert release.table.column("median").to_pylist() == list(release.value.values())
    assert "2025-" in release._repr_html_()


def test_groups_that_are_not_declared_are_chosen_privately() -> None:
    data = visits().set_column(1, "city", pa.array(["rare", *visits()["city"].to_pylist()[1:]]))
    table = open_table(data, groups_per_person=3)
    shown = table.mean("cost", between=(0, 101), epsilon=200, delta=1e-3, by="city").value
    assert set(shown) == set(CITIES)
    medians = table.median("cost", between=(0, 101), epsilon=200, delta=1e-3, by="city").value
    assert set(medians) == set(CITIES)
    with refuses(dp.InvalidArgument, "needs-delta"):
        table.count(epsilon=1, by="city")


def test_several_columns_make_tuples_and_names_stay_apart() -> None:
    with testing.no_noise():
        two = open_table().count(epsilon=1, by={"city": CITIES, "urgent": [False, True]})
        odd = open_table().histogram("city", choices=CITIES, epsilon=1, by={"value": [0, 1, 2, 3, 4]})
    text = "SELECT city, urgent, COUNT(*) FROM data GROUP BY ALL"
    expected = {(city, urgent): n for city, urgent, n in plain(text, visits())}
    assert {group: n for group, n in two.value.items() if n} == expected
    assert len(two.value) == 6
    counted = plain("SELECT value, city, COUNT(*) FROM data GROUP BY ALL", visits())
    assert {group: n for group, n in odd.value.items() if n} == {(value, city): n for value, city, n in counted}
    assert odd.table.column_names == ["value", "value_", "n", "n_error"]


def test_a_release_by_group_is_a_table() -> None:
    release = open_table().mean("cost", between=(0, 101), epsilon=50, by=BY)
    assert pa.table(release) == release.table
    assert pl.DataFrame(release).columns == ["city", "mean", "mean_error"]
    assert release.to_pandas()["mean"].tolist() == list(release.value.values())
    assert release.to_polars()["city"].to_list() == CITIES
    assert float(release.error(0.9)) < float(release.error(0.99))
    assert float(release.error(0.95)) == max(release.table.column("mean_error").to_pylist())
    assert "±" in release._repr_html_()
    assert len(release.plot().axes) == 1


def test_each_group_is_shown_with_its_own_error() -> None:
    """One error for all would be that of the smallest group."""
    table = visits().slice(0, 90)
    few = pa.concat_tables([table, visits().filter(pa.compute.equal(visits()["city"], "Acre")).slice(0, 5)])
    release = open_table(few, rows_per_person=5).mean("cost", between=(0, 101), epsilon=50, by=BY)
    shown, halves = str(release), release.table.column("mean_error").to_pylist()
    assert len(set(halves)) > 1
    assert shown.count(" ± ") == 3
    assert shown.startswith("{'Acre': ")
    assert "± 5 (95%)" not in shown
    assert str(open_table().count(epsilon=50, by=BY)).count("±") == 1  # all have the same
    named = few.rename_columns(["city_error" if name == "city" else name for name in few.column_names])
    again = open_table(named, rows_per_person=5).mean("cost", between=(0, 101), epsilon=50, by={"city_error": CITIES})
    assert str(again).count(" ± ") == 3
    for shown in (
        open_table(few, rows_per_person=5).median("cost", between=(0, 101), epsilon=50, by=BY),
        open_table(few, rows_per_person=5).most_common("value", k=1, choices=list(range(5)), epsilon=50, by=BY),
    ):
        assert str(shown).startswith("{'Acre': ")


def test_notes_say_what_no_error_covers() -> None:
    table = open_table()
    binned = table.histogram("cost", between=(0, 50), bins=5, epsilon=1)
    assert binned.notes()[-1] == "Left out: rows whose cost is in no bin."
    assert any("moved to its ends" in note for note in table.mean("cost", between=(0, 50), epsilon=1).notes())
    assert any("none of the" in note or "not one of" in note for note in table.count(epsilon=1, by=BY).notes())
    assert not any("bin" in note for note in table.histogram("city", choices=CITIES, epsilon=1).notes())
    assert "Left out" not in str(binned)


def test_the_whole_release_is_charged_once() -> None:
    table = open_table(limit=dp.Pure(epsilon=1), version="1")
    first = table.mean("cost", between=(0, 101), epsilon=0.75, by=BY)
    assert table.mean("cost", between=(0, 101), epsilon=0.75, by=BY).replayed
    with pytest.raises(dp.BudgetExhausted):
        table.mean("cost", between=(0, 101), epsilon=0.75, by={"city": CITIES[:2]})
    assert float(first.guarantee.largest_loss) == pytest.approx(0.75)


MEANINGS: list[Any] = [
    lambda t: t.histogram("cost", edges=[0, 50, 101], epsilon=1),
    lambda t: t.histogram("cost", edges=[0, 51, 101], epsilon=1),
    lambda t: t.histogram("cost", edges=[0, 101], epsilon=1),
    lambda t: t.histogram("cost", edges=[0, 50, 101], epsilon=1, where="urgent"),
    lambda t: t.histogram("cost", edges=[0, 50, 101], epsilon=1, where="NOT urgent"),
    lambda t: t.histogram("cost", edges=[0, 50, 101], epsilon=1, by=BY),
    lambda t: t.histogram("cost", edges=[0, 50, 101], epsilon=1, by={"city": CITIES[:2]}),
    lambda t: t.histogram("value", edges=[0, 50, 101], epsilon=1),
    lambda t: t.count(epsilon=1),
    lambda t: t.count(epsilon=1, by=BY),
    lambda t: t.count(epsilon=1, by={"urgent": [False, True]}),
    lambda t: t.sum("cost", between=(0, 101), epsilon=1, by=BY),
    lambda t: t.sum("cost", between=(0, 102), epsilon=1, by=BY),
    lambda t: t.mean("cost", between=(0, 101), epsilon=1, by={"city": CITIES[1:]}),
]


@pytest.mark.slow
def test_two_meanings_never_share_an_answer() -> None:
    table = open_table(version="1")
    assert [asked(table).replayed for asked in MEANINGS] == [False] * len(MEANINGS)
    assert [asked(table).replayed for asked in MEANINGS] == [True] * len(MEANINGS)


# --- bins -----------------------------------------------------------------------------------------------------


EDGES = [[0, 18, 65, 101], [0.5, 10.25, 99], [-5, 0, 100], [20, 21], [0, 1e-9, 3], np.arange(0, 9, 3)]


@pytest.mark.parametrize("edges", EDGES)
def test_bins_count_what_numpy_counts(edges: Any) -> None:
    costs = visits()["cost"].to_pylist()
    with testing.no_noise():
        found = open_table().histogram("cost", edges=edges, epsilon=1).value
    assert list(found) == list(pairwise(edges))
    assert list(found.values()) == np.histogram(costs, edges)[0].tolist()


def test_equal_bins_are_those_of_numpy() -> None:
    counts, edges = np.histogram(visits()["cost"].to_pylist(), 7, (10, 80))
    with testing.no_noise():
        found = open_table().histogram("cost", bins=7, between=(10, 80), epsilon=1, where="cost >= 0").value
    assert list(found.values()) == counts.tolist()
    assert [low for low, _ in found] == pytest.approx(edges[:-1])
    assert list(found)[-1][1] == 80


def test_bins_of_dates_and_bins_by_group() -> None:
    middle = DAY + datetime.timedelta(days=20)
    edges = [DAY, middle, DAY + datetime.timedelta(days=40)]
    with testing.no_noise():
        days = open_table().histogram("day", edges=edges, epsilon=1).value
        both = open_table().histogram("cost", edges=[0, 50, 101], epsilon=1, by=BY, where="urgent").value
        equal = open_table().histogram("day", bins=2, between=(edges[0], edges[2]), epsilon=1).value
    all_days = visits()["day"].to_pylist()
    expected = [sum(DAY <= day < middle for day in all_days), sum(middle <= day <= edges[2] for day in all_days)]
    assert list(days.values()) == expected
    assert equal == days
    text = "SELECT city, cost >= 50, COUNT(*) FROM data WHERE urgent GROUP BY ALL"
    counted = {(city, (50, 101) if high else (0, 50)): n for city, high, n in plain(text, visits())}
    assert {group: n for group, n in both.items() if n} == counted


def test_bins_of_a_text_file(tmp_path: Any) -> None:
    pa.csv.write_csv(visits(), tmp_path / "visits.csv")
    with testing.no_noise():
        found = open_table(tmp_path / "visits.csv").histogram("cost", edges=[0, 50, 101], epsilon=1).value
    assert list(found.values()) == np.histogram(visits()["cost"].to_pylist(), [0, 50, 101])[0].tolist()


@pytest.mark.parametrize("odd", [None, math.nan, math.inf, -math.inf, 1e308, -1e-300])
def test_an_odd_record_changes_only_its_own_bin(odd: Any) -> None:
    """It is left out, and causes no error."""
    cost = visits()["cost"].to_pylist()
    changed = visits().set_column(3, "cost", pa.array([odd, *cost[1:]], pa.float64()))
    with testing.no_noise():
        before = open_table().histogram("cost", edges=[0, 50, 101], epsilon=1, by=BY).value
        after = open_table(changed).histogram("cost", edges=[0, 50, 101], epsilon=1, by=BY).value
    moved = {group for group in before if before[group] != after[group]}
    assert moved == {("Acre", (0, 50))}
    assert before["Acre", (0, 50)] - after["Acre", (0, 50)] == 1


def test_a_person_moves_no_more_than_their_rows() -> None:
    """Brute force: tables with some of three people, and a fourth one added, who has more rows than are used."""
    own = (("Acre", 5.0), ("Bled", 60.0), ("Acre", 7.0))
    rows = [(person, city, cost) for person in range(3) for city, cost in own[:2]]
    rows += [(3, city, cost) for city, cost in own * 3]

    def counted(people: tuple[int, ...]) -> dict[Any, int]:
        kept = [row for row in rows if row[0] in people]
        kinds = (("pid", pa.int64()), ("city", pa.string()), ("cost", pa.float64()))
        data = pa.table({name: pa.array([row[n] for row in kept], kind) for n, (name, kind) in enumerate(kinds)})
        with testing.no_noise():
            found = open_table(data, rows_per_person=2).histogram("cost", edges=[0, 50, 101], epsilon=1, by=BY)
        return found.value  # type: ignore[no-any-return]

    for people in [chosen for size in (0, 2, 3) for chosen in combinations(range(3), size)]:
        before, after = counted(people), counted((*people, 3))
        assert list(before) == list(after)
        assert sum(abs(before[group] - after[group]) for group in before) == 2


# --- refusals -------------------------------------------------------------------------------------------------

ODD: list[tuple[Any, str]] = [
    (lambda t: t.count(epsilon=1, by=[]), "wrong-type"),
    (lambda t: t.count(epsilon=1, by=3), "wrong-type"),
    (lambda t: t.count(epsilon=1, by=[3]), "wrong-type"),
    (lambda t: t.count(epsilon=1, by=["city", "city"]), "duplicates"),
    (lambda t: t.count(epsilon=1, by="town"), "unknown-column"),
    (lambda t: t.count(epsilon=1, by={"city": []}), "column-choices"),
    (lambda t: t.histogram("city", choices=CITIES, epsilon=1, by=BY), "duplicates"),
    (lambda t: t.histogram("cost", bins=3, epsilon=1), "bins"),
    (lambda t: t.histogram("cost", bins=3, between=(0, 9), edges=[1, 2], epsilon=1), "bins"),
    (lambda t: t.histogram("cost", edges=[1, 2], between=(0, 9), epsilon=1), "bins"),
    (lambda t: t.histogram("cost", between=(0, 9), epsilon=1), "bins"),
    (lambda t: t.histogram("cost", edges=[1], epsilon=1), "bins"),
    (lambda t: t.histogram("cost", edges=[2, 1], epsilon=1), "bins"),
    (lambda t: t.histogram("cost", edges=5, epsilon=1), "bins"),
    (lambda t: t.histogram("cost", edges="12", epsilon=1), "bins"),
    (lambda t: t.histogram("cost", edges=[1, 1], epsilon=1), "bins"),
    (lambda t: t.histogram("cost", edges=[0, math.inf], epsilon=1), "bins"),
    (lambda t: t.histogram("cost", edges=[0, math.nan], epsilon=1), "bins"),
    (lambda t: t.histogram("cost", edges=["a", "b"], epsilon=1), "bins"),
    (lambda t: t.histogram("cost", edges=[DAY, DAY], epsilon=1), "bins"),
    (lambda t: t.histogram("day", edges=[0, 1], epsilon=1), "bins"),
    (lambda t: t.histogram("cost", edges=list(range(2000)), epsilon=1), "bins"),
    (lambda t: t.histogram("cost", bins=0, between=(0, 9), epsilon=1), "out-of-range"),
    (lambda t: t.histogram("cost", bins=10**9, between=(0, 9), epsilon=1), "bins"),
    (lambda t: t.histogram("city", edges=[0, 1], epsilon=1), "bins"),
    (lambda t: t.histogram("cost", edges=[0, 1], choices=[1.0], epsilon=1), "bins"),
]


@pytest.mark.parametrize("place", range(len(ODD)))
def test_odd_groups_and_bins_are_refused_before_anything_is_read(place: int) -> None:
    asked, code = ODD[place]
    table = open_table()
    with refuses(dp.InvalidArgument, code):
        asked(table)
    assert table._methods.ledger.count == 0
    with refuses(dp.InvalidArgument, code):
        asked(table.explain)


# --- seeded bugs ----------------------------------------------------------------------------------------------


def test_mutant_bins_are_clamped_into_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values outside the edges would be counted, and one record could be in a bin that is not its own."""
    from discreet.tables.grouped import Bins

    def counted() -> list[int]:
        with testing.no_noise():
            return list(open_table().histogram("cost", edges=[0, 50, 60], epsilon=1).value.values())

    expected = np.histogram(visits()["cost"].to_pylist(), [0, 50, 60])[0].tolist()
    assert counted() == expected
    sound = Bins.expression
    monkeypatch.setattr(
        Bins, "expression", lambda self, column: sound(self, column).replace("ELSE NULL", f"ELSE '{self.labels[-1]}'")
    )
    assert counted() != expected

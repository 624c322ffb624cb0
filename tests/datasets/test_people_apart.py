"""Whom a source names is told apart by every digit: two people are never read as one, nor one cell as an error."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.rows import cells

from ..refusing import refuses

BIG = 10**30
"""Beyond what a float tells apart."""
REFUSED = {
    "decimal": pa.array([Decimal(BIG), Decimal(BIG + 1)], pa.decimal128(38, 0)),
    "float": pa.array([1.0, 2.0]),
    "nanoseconds": pa.array([1, 2], pa.timestamp("ns")),
    "bytes": pa.array([b"a", b"b"]),
}


def ledger(protects=None):
    return dp.Ledger.open(
        ":memory:", protects=protects or dp.person("person"), limit=dp.Approx(epsilon=1000, delta=0.01)
    )


@pytest.mark.parametrize("ids", REFUSED.values(), ids=REFUSED)
def test_a_table_refuses_people_of_types_that_merge_some(ids):
    with refuses(dp.InvalidArgument, "person-type"):
        dp.table({"person": ids, "x": [1, 2]}, ledger=ledger(), rows_per_person=1)


@pytest.mark.parametrize("ids", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("through", [False, True])
def test_a_policy_refuses_keys_of_types_that_merge_some(ids, through, tmp_path):
    """A key that two visits seem to share would give one person's rows to both, without a bound."""
    visits = {"person": ["a", "b"], "visit": ids} if through else {"person": ids, "visit": [1, 2]}
    drugs = {"visit": visits["visit"], "dose": [1, 2]}
    tables = {
        "visits": {"source": pa.table(visits), "rows_per_person": 1},
        "drugs": {"source": pa.table(drugs), "through": "visits.visit", "rows_per_person": 2},
    }
    words = {"ledger": {"path": str(tmp_path / "a.ledger"), "epsilon": 1}, "unit": {"person": "person"}}
    with refuses(dp.InvalidArgument, "person-type"):
        dp.connect(words | {"tables": tables})


def test_nobody_who_asks_changes_the_type_of_the_person(tmp_path):
    """As numbers the two would be one person, and one row of theirs stand for both."""
    lines = ["person,x", "10000000000000001,-100", *["10000000000000000,100"] * 50]
    source = tmp_path / "ids.csv"
    source.write_text("\n".join(lines) + "\n")
    table = dp.table(str(source), ledger=ledger(), rows_per_person=1)
    rows = table._methods._rows(None, {"x": (-100, 100)}, {}, 1, 0).plan.rows
    assert sorted(cells(rows.columns(["x"], {"x": "number"})["x"])) == [-100, 100]
    with pytest.raises(dp.DiscreetError):
        table.synthesize({"person": (0, 1e15), "x": (-100, 100)}, epsilon=1, delta=1e-6)
    with pytest.raises(dp.DiscreetError):
        table.density(["person", "x"], between=[(0, 1e15), (-100, 100)], bandwidth=[1e14, 20], epsilon=1, delta=1e-6)


@pytest.mark.parametrize("day", [-(2**31), 2**31 - 1, 10**7])
def test_a_day_beyond_any_calendar_is_no_choice(day):
    def rows_made(days):
        cells = pa.array(days, pa.int32()).view(pa.date32())
        table = dp.table({"person": np.arange(len(days)), "day": cells}, ledger=ledger(), rows_per_person=1)
        with testing.frozen(1):
            made = table.synthesize(
                {"day": [datetime.date(1972, 9, 27), datetime.date(1980, 1, 1)]}, epsilon=1, delta=1e-5
            )
        return made.table.schema

    assert rows_made([1000] * 50 + [day]) == rows_made([1000] * 50)


def test_two_files_of_one_version_are_asked_apart(tmp_path):
    own, sizes = ledger(dp.row()), (100, 5000)
    counts = []
    for size in sizes:
        source = tmp_path / f"of_{size}.csv"
        source.write_text("x\n" + "1\n" * size)
        counts.append(dp.table(str(source), ledger=own, version="1").count(epsilon=1))
    assert [round(count.value, -2) for count in counts] == [100, 5000]
    assert not counts[1].replayed

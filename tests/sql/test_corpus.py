"""At ε=∞ the rewritten question gives what the original gives: every fixture, against plain DuckDB on the same rows."""

from __future__ import annotations

from collections import Counter

import pytest


@pytest.mark.some_quick(110)
def test_answers_are_those_of_plain_duckdb(clinic, fixture_query):
    """Options: `tolerance` is how far a number may be off (a chosen quantile is a value of the data, where DuckDB takes
    the middle of two), `relative` the same in parts of it.
    """
    _, options, text = fixture_query
    ordered = "ORDER BY" in text.upper().rsplit("FROM", 1)[1]
    clinic.check_same(
        text,
        ordered=ordered,
        tolerance=float(options.get("tolerance", 0)),
        relative=float(options.get("relative", 1e-6)),
    )


def test_no_bound_binds_and_no_key_is_undeclared(clinic):
    """What the corpus takes for granted of its data."""
    for name in ("people", "visits", "prescriptions"):
        table, columns = clinic.data[name], clinic.columns[name]
        assert max(Counter(table.column("person_id").to_pylist()).values()) <= 20
        for column in columns.values():
            values = {v for v in table.column(column.name).to_pylist() if v is not None}
            if column.choices is not None:
                assert values == set(column.choices)
            if column.between is not None:
                low, high = column.between
                assert low <= min(values)
                assert max(values) <= high

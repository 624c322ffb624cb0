"""At ε=∞ every engine gives what plain DuckDB gives. Ours on DuckDB is compared in `tests/sql/test_corpus.py`."""

from __future__ import annotations

import pytest


@pytest.mark.some_quick(35)
@pytest.mark.parametrize("where", ["postgres", "spark"], indirect=True)
def test_answers_are_those_of_plain_duckdb(clinic, where, fixture_query):
    _, options, text = fixture_query
    clinic.check_same(
        text,
        ordered="ORDER BY" in text.upper().rsplit("FROM", 1)[1],
        tolerance=float(options.get("tolerance", 0)),
        relative=float(options.get("relative", 1e-6)),
    )

"""At ε=∞ every engine gives what plain DuckDB gives, or refuses before anything is charged."""

from __future__ import annotations

import pytest

from discreet.errors import NotAllowed

NOT_YET: dict[str, dict[str, str]] = {"postgres": {}, "spark": {}}
"""For each engine: the fixtures it refuses, and words of its refusal."""


def test_answers_are_those_of_plain_duckdb(clinic, where, fixture_query):
    name, options, text = fixture_query
    refused = NOT_YET.get(where, {}).get(name)
    if refused is not None:
        before = clinic.database.ledger.spent
        with pytest.raises(NotAllowed, match=refused):
            clinic.database.sql(text, epsilon=100)
        assert clinic.database.ledger.spent == before
        return
    clinic.check_same(
        text,
        ordered="ORDER BY" in text.upper().rsplit("FROM", 1)[1],
        tolerance=float(options.get("tolerance", 0)),
        relative=float(options.get("relative", 1e-6)),
    )

"""What to write instead of a function or an operator that is not supported, by its name as it is typed.

`{x}` is the first column in it. Every entry is an expression that is supported: a test runs them all.
"""

from __future__ import annotations

from sqlglot import exp

_TODAY = "DATE '2025-01-31'"
_MONTH = "DATE_TRUNC('month', {x})"
_STARTS, _CONTAINS = "{x} LIKE 'A%'", "{x} LIKE '%a%'"
INSTEAD = {
    "date_format": _MONTH,
    "to_char": _MONTH,
    "time_bucket": _MONTH,
    "last_day": _MONTH,
    "weekday": "EXTRACT(dow FROM {x})",
    "epoch": "DATE_DIFF('day', DATE '1970-01-01', {x})",
    "age": f"DATE_DIFF('day', {{x}}, {_TODAY})",
    "current_date": _TODAY,
    "current_timestamp": _TODAY,
    "today": _TODAY,
    "now": _TODAY,
    "make_date": _TODAY,
    "~": _STARTS,
    "similar to": _STARTS,
    "glob": _STARTS,
    "regexp_matches": _STARTS,
    "regexp_like": _STARTS,
    "regexp_full_match": _STARTS,
    "starts_with": _STARTS,
    "ends_with": "{x} LIKE '%a'",
    "contains": _CONTAINS,
    "position": _CONTAINS,
    "instr": _CONTAINS,
    "strpos": _CONTAINS,
    "left": "SUBSTRING({x}, 1, 3)",
    "right": "{x} LIKE '%a'",
    "replace": "CASE WHEN {x} = 'a' THEN 'b' ELSE {x} END",
    "regexp_replace": "CASE WHEN {x} LIKE 'a%' THEN 'b' ELSE {x} END",
    "decode": "CASE WHEN {x} = 'a' THEN 'b' ELSE {x} END",
    "md5": "{x}",
    "sha256": "{x}",
    "hash": "{x}",
}


def instead_of(name: str, node: exp.Expression) -> str:
    """A sentence that says what to write instead."""
    column = node.find(exp.Column)
    found = INSTEAD.get(name.lower())
    if found is None or (column is None and "{x}" in found):
        return "Use CASE, comparisons and arithmetic."
    return f"Write {found.format(x='' if column is None else column.sql(dialect='duckdb'))}."

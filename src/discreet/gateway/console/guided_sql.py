"""A question in SQL from choices that people made: every name and every value is quoted here."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.engines.duckdb.dialect import quote_text
from discreet.errors import InvalidArgument
from discreet.gateway.console.declared import written

NUMBERS = ("integer", "number")
TIMES = ("date", "timestamp")
MEASURES = {
    "rows": "How many rows",
    "people": "How many people",
    "sum": "Sum",
    "average": "Average",
    "median": "Median",
    "quantile": "Quantile",
    "deviation": "Standard deviation",
    "distinct": "How many different values",
}
"""What can be measured, by the name in the form. All but the first two are of a column."""
PERIODS = ("year", "quarter", "month", "week", "day")
COMPARISONS = {"is": "=", "not": "<>", "from": ">=", "to": "<="}
"""How a filter compares, by the name in the form."""
_AGGREGATES = {"sum": "SUM", "average": "AVG", "median": "MEDIAN", "deviation": "STDDEV"}
_WORD = re.compile(r"[a-z][a-z0-9_]*")
_NUMBER = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?")


@dataclass(frozen=True)
class Filter:
    """A column that is compared with a value."""

    column: str
    comparison: str
    value: str


@dataclass(frozen=True)
class Choices:
    """What somebody chose: a measure of a table, its groups and its filters. `by` has columns, and `periods` says by
    which part of time a column of dates is grouped.
    """

    table: str
    measure: str = "rows"
    of: str = ""
    share: str = "0.9"
    by: Sequence[str] = ()
    periods: Mapping[str, str] = field(default_factory=dict)
    filters: Sequence[Filter] = ()


def build_sql(choices: Choices, table: Mapping[str, Any]) -> str:
    """The question. Columns that the table does not have, and values that are not of their type, are refused."""
    columns = {str(column["name"]): column for column in table["columns"]}
    keys = [_key(_known(columns, name), choices.periods.get(name, "month")) for name in choices.by]
    name, shown = _measured(choices, columns)
    taken = {key[1] for key in keys}
    while name in taken:
        name += "_"
    items = [*(f"{expr} AS {written(alias)}" if expr != written(alias) else expr for expr, alias in keys)]
    lines = [f"SELECT {', '.join([*items, f'{shown} AS {name}'])}", f"FROM {written(str(table['name']))}"]
    conditions = [_condition(_known(columns, one.column), one) for one in choices.filters]
    if conditions:
        lines.append("WHERE " + "\n  AND ".join(conditions))
    if keys:
        listed = ", ".join(written(alias) for _, alias in keys)
        lines += [f"GROUP BY {listed}", f"ORDER BY {listed}"]
    return "\n".join(lines)


def _known(columns: Mapping[str, Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    if name not in columns:
        raise InvalidArgument("This table has no such column. Choose one of the list.", code="gateway-form")
    return columns[name]


def _key(column: Mapping[str, Any], period: str) -> tuple[str, str]:
    """What a column is grouped by, and the name of that."""
    name = str(column["name"])
    if column["type"] not in TIMES:
        return written(name), name
    if period not in PERIODS:
        raise InvalidArgument(f"Group dates by {', '.join(PERIODS)}.", code="gateway-form")
    return f"DATE_TRUNC('{period}', {written(name)})", period if name != period else f"{period}_of"


def _measured(choices: Choices, columns: Mapping[str, Mapping[str, Any]]) -> tuple[str, str]:
    """The name of the measure, and how it is computed."""
    if choices.measure == "rows":
        return "n", "COUNT(*)"
    if choices.measure == "people":
        person = next((str(column["name"]) for column in columns.values() if column["identifies_people"]), None)
        if person is None:
            raise InvalidArgument("No column of this table identifies people. Count rows.", code="gateway-form")
        return "people", f"COUNT(DISTINCT {written(person)})"
    if choices.measure not in MEASURES:
        raise InvalidArgument("Choose a measure of the list.", code="gateway-form")
    column = _known(columns, choices.of)
    name = written(str(column["name"]))
    alias = f"{choices.measure}_{column['name']}" if _WORD.fullmatch(str(column["name"])) else choices.measure
    if choices.measure == "distinct":
        return alias, f"COUNT(DISTINCT {name})"
    if column["type"] not in NUMBERS:
        raise InvalidArgument("Choose a column of numbers for this measure.", code="gateway-form")
    if choices.measure == "quantile":
        return alias, f"QUANTILE_CONT({name}, {_share(choices.share)})"
    return alias, f"{_AGGREGATES[choices.measure]}({name})"


def _share(text: str) -> str:
    found = _plain_number(text)
    if not 0 < float(found) < 1:
        raise InvalidArgument("The share of a quantile is between 0 and 1, such as 0.9.", code="gateway-form")
    return found


def _condition(column: Mapping[str, Any], one: Filter) -> str:
    if one.comparison not in COMPARISONS:
        raise InvalidArgument("Choose a comparison of the list.", code="gateway-form")
    return f"{written(str(column['name']))} {COMPARISONS[one.comparison]} {literal(column['type'], one.value)}"


def literal(kind: str, text: str) -> str:
    """A value in SQL, of the type of its column."""
    if kind not in (*NUMBERS, *TIMES, "boolean"):
        return quote_text(text)
    text = text.strip()
    if kind in NUMBERS:
        return _plain_number(text)
    if kind == "boolean":
        if text not in ("true", "false"):
            raise InvalidArgument("Choose true or false.", code="gateway-form")
        return text.upper()
    read = datetime.date if kind == "date" else datetime.datetime
    try:
        found = read.fromisoformat(text)
    except ValueError:
        raise InvalidArgument("Write a date as 2025-01-31.", code="gateway-form") from None
    word = "DATE" if kind == "date" else "TIMESTAMP"
    return f"{word} '{found.isoformat(sep=' ') if isinstance(found, datetime.datetime) else found.isoformat()}'"


def _plain_number(text: str) -> str:
    text = text.strip().replace(",", ".")
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise InvalidArgument("Write a number, such as 12.5.", code="gateway-form")
    return text.removeprefix("+")

"""An answer as text for other programs: JSON, and CSV in which no cell is a formula."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.sql.running.answer import Answer


_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""How a formula begins, in full width as well."""
_SPECIAL = frozenset(',;"\t\r\n')


def json_object(answer: Answer, confidence: float) -> dict[str, Any]:
    """The answer as an object that JSON can hold: dates are text, and NaN is null."""
    shown = answer.as_json(confidence)
    return shown | {"rows": [[_plain(value) for value in row] for row in shown["rows"]]}


def json_text(content: Any) -> str:
    """Such an object as JSON text."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, default=float)


def csv_text(table: Any) -> str:
    """An Arrow table as CSV."""
    return csv_lines([table.column_names, *(row.values() for row in table.to_pylist())])


def csv_lines(rows: Iterable[Iterable[Any]]) -> str:
    """Rows of cells as CSV. No cell is a formula, also where a semicolon or a tab would end it: many spreadsheets of
    Europe read files so.
    """
    return "".join(",".join(_quoted(harmless(cell)) for cell in row) + "\r\n" for row in rows)


def harmless(cell: Any) -> Any:
    """A cell that no spreadsheet interprets as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell


def _quoted(cell: Any) -> str:
    text = "" if cell is None else repr(cell) if isinstance(cell, float) else str(cell)
    return '"' + text.replace('"', '""') + '"' if _SPECIAL.intersection(text) else text


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    number = not isinstance(value, float) or math.isfinite(value)
    return value.isoformat() if hasattr(value, "isoformat") else value if number else None

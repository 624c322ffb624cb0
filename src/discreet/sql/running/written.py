"""An answer as text for other programs: JSON, and CSV in which no cell is a formula."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.sql.running.answer import Answer


def json_object(answer: Answer, confidence: float) -> dict[str, Any]:
    """The answer as an object that JSON can hold: dates are text, and NaN is null."""
    shown = answer.as_json(confidence)
    return shown | {"rows": [[_plain(value) for value in row] for row in shown["rows"]]}


def json_text(content: Any) -> str:
    """Such an object as JSON text."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, default=float)


def csv_text(table: Any) -> str:
    """An Arrow table as CSV."""
    written = io.StringIO()
    rows = ([harmless(cell) for cell in row.values()] for row in table.to_pylist())
    csv.writer(written).writerows([[harmless(name) for name in table.column_names], *rows])
    return written.getvalue()


def harmless(cell: Any) -> Any:
    """A cell that no spreadsheet interprets as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    number = not isinstance(value, float) or math.isfinite(value)
    return value.isoformat() if hasattr(value, "isoformat") else value if number else None

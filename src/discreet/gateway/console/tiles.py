"""A tile as its page shows it: a large number, or a picture with error bars, and a short table. All was released."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from markupsafe import Markup

from discreet.gateway.console.charts import NARROW, Key, Measure, draw_chart
from discreet.gateway.console.formats import number

MOST_ROWS = 8
"""Rows in the table of a tile."""
_BARS, _POINTS = 16, 120
"""So many rows are drawn of unordered and of ordered groups."""
_LARGEST = 12_000
"""Bytes of a picture on a dashboard."""
_LONGEST = 60
"""Characters of a cell."""


class Shown:
    """A tile of a dashboard, ready for its page."""

    def __init__(self, tile: Mapping[str, Any]) -> None:
        self.tile = tile
        answer: Mapping[str, Any] = tile["answer"] or {"columns": [], "rows": [], "errors": []}
        self.answer, self.columns, self.rows = answer, answer["columns"], answer["rows"]
        self.noisy = [place for place, _ in enumerate(self.columns) if self._has_error(place)]
        self.is_damaged = tile["answer"] is None
        self.confidence: float = answer.get("confidence", 0.95)
        self.cost = (answer.get("guarantee") or {}).get("epsilon")
        self.picture = None if self.single else self._picture()

    @property
    def single(self) -> list[tuple[str, str, str]] | None:
        """Names, values and errors of an answer with one row without groups. None for others."""
        if len(self.rows) != 1 or len(self.noisy) != len(self.columns):
            return None
        return [(name, number(self.rows[0][place]), self._error(0, place)) for place, name in enumerate(self.columns)]

    @property
    def heads(self) -> list[tuple[str, bool]]:
        """The names of the columns, and whether each has noise."""
        return [(cut(name), place in self.noisy) for place, name in enumerate(self.columns)]

    @property
    def lines(self) -> list[list[tuple[str, str, bool]]]:
        """The first rows: the text of each cell, its error, and whether it is a number with noise."""
        places = range(len(self.columns))
        return [
            [(cut(number(row[place])), self._error(line, place), place in self.noisy) for place in places]
            for line, row in enumerate(self.rows[:MOST_ROWS])
        ]

    @property
    def left_out(self) -> int:
        """How many rows are not in the table."""
        return max(0, len(self.rows) - MOST_ROWS)

    @property
    def size(self) -> int:
        """About how many bytes it has on a page."""
        texts = [escape(cell + error) for line in self.lines for cell, error, _ in line]
        texts += [escape(name) for name, _ in self.heads] + [escape(self.tile["title"]), escape(self.short)]
        return len(self.picture or "") + sum(len(text.encode()) + 40 for text in texts) + 900

    @property
    def short(self) -> str:
        """The question, cut if it is long."""
        words = " ".join(str(self.tile["sql"]).split())
        return words if len(words) <= 400 else words[:399] + "…"

    def _has_error(self, place: int) -> bool:
        names = ("errors", "low", "high")
        return any(row[place] is not None for name in names for row in self.answer.get(name) or ())

    def _end(self, name: str, line: int, place: int) -> float | None:
        found = self.answer.get(name)
        return _finite(found[line][place]) if found else None

    def _error(self, line: int, place: int) -> str:
        low, high = (self._end(name, line, place) for name in ("low", "high"))
        if low is not None and high is not None:
            return f"({number(low)} to {number(high)})"
        error = self._end("errors", line, place)
        return "" if error is None else f"± {number(error)}"

    def _picture(self) -> Markup | None:
        measures = [place for place in self.noisy if all(_is_number(row[place]) for row in self.rows)]
        keys = [place for place, _ in enumerate(self.columns) if place not in self.noisy]
        if not self.rows or not measures:
            return None
        known = [_key(self.columns[place], [row[place] for row in self.rows]) for place in keys]
        most = _POINTS if any(key.ordered for key in known) else _BARS
        shown = [Key(key.name, key.ordered, key.values[:most]) for key in known]
        drawn = [self._measure(place, min(most, len(self.rows))) for place in measures]
        drawing = draw_chart(shown, drawn, title=self.tile["title"], confidence=self.confidence, width=NARROW)
        text = "" if drawing is None else drawing.svg(identity=f"tile-{int(self.tile['number'])}")
        return Markup(text) if 0 < len(text.encode()) <= _LARGEST else None  # drawing.py escapes all text

    def _measure(self, place: int, most: int) -> Measure:
        values = [_finite(row[place]) for row in self.rows[:most]]
        low, high = ([self._bound(line, place, sign) for line in range(most)] for sign in (-1, 1))
        return Measure(self.columns[place], values, low, high)

    def _bound(self, line: int, place: int, sign: int) -> float | None:
        end = self._end("low" if sign < 0 else "high", line, place)
        value, error = _finite(self.rows[line][place]), self._end("errors", line, place)
        if end is not None or value is None or error is None:
            return end
        return value + sign * error


def shown_from(tiles: Sequence[Mapping[str, Any]], first: int, room: int) -> list[Shown]:
    """The tiles from one on that fit on a page: at least one."""
    found: list[Shown] = []
    for tile in tiles[first:]:
        one = Shown(tile)
        room -= one.size
        if room < 0 and found:
            break
        found.append(one)
    return found


def cut(text: str) -> str:
    """A text for one cell."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _key(name: str, values: Sequence[Any]) -> Key:
    """A column of groups. Dates in JSON are text."""
    if values and all(_is_number(value) for value in values):
        return Key(name, True, values)
    dates = [_date(value) for value in values]
    if values and all(date is not None for date in dates):
        return Key(name, True, dates)
    return Key(
        name, False, [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    )


def _date(value: Any) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(value) if isinstance(value, str) and len(value) == 10 else None
    except ValueError:
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _finite(value: Any) -> float | None:
    return float(value) if _is_number(value) and math.isfinite(value) else None

"""An answer as the pages show it: cells with their errors, a picture, and the files that can be downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from discreet.drawing import Drawing
from discreet.errors import ServiceUnavailable
from discreet.gateway.console.charts import WIDE, Key, Measure, draw_chart
from discreet.gateway.remote_answer import RemoteAnswer
from discreet.guarantees.guarantee import Guarantee

MOST_ROWS = 100
MOST_DRAWN = 12_000
"""An answer with more rows than that has no picture: it would hold up everybody else at the desk."""
ROOM = 24_000
"""So many bytes of a page are for rows."""
_LONGEST = 120
"""Characters of a cell. The files have all of them."""
_NUMBERS = ("int", "uint", "float", "double", "decimal", "halffloat")
_TIMES = ("date", "timestamp")
_SUM = "(all)"


@dataclass(frozen=True)
class Cell:
    """What is shown of one value: the text, and its error or interval."""

    text: str
    error: str = ""
    is_number: bool = False


@dataclass(frozen=True)
class Head:
    """A column of an answer: its name, and whether it has noise."""

    name: str
    noisy: bool
    is_number: bool


class Result:
    """An answer that came from the vault, for a page."""

    def __init__(self, stream: bytes) -> None:
        answer = RemoteAnswer.read(stream)
        if answer is None:
            raise ServiceUnavailable("The answer cannot be read. Load the page again.", code="gateway-unavailable")
        self._answer = answer
        self.table, self.names, self.noisy = answer.table, answer.names, answer.noisy
        self.receipt, self.free, self.notes = answer.receipt, answer.free, answer.notes
        self.confidence = answer.confidence
        self.count: int = answer.table.num_rows
        self.epsilon, self.left = _epsilon(answer.cost), _epsilon(answer.remaining)
        self.clipped = {name: share for name, share in answer.clipped.items() if share}
        self.left_then = answer.release.left_then

    @property
    def heads(self) -> list[Head]:
        """The columns, without those of errors."""
        return [Head(name, name in self.noisy, self._kind(name).startswith(_NUMBERS)) for name in self.names]

    def rows(self, first: int = 0) -> list[list[Cell]]:
        """The rows from one on that fit on a page."""
        found: list[list[Cell]] = []
        room, heads = ROOM, self.heads
        for row in self.table.slice(first, MOST_ROWS).to_pylist():
            shown = self._answer.shown(row)
            cells = [_cell(shown[head.name], row[head.name], head) for head in heads]
            room -= sum(50 + len(escape(cell.text).encode()) + len(cell.error) for cell in cells) + 12
            if room < 0 and found:
                break
            found.append(cells)
        self._mark_sums(found, first)
        return found

    def _mark_sums(self, rows: list[list[Cell]], first: int) -> None:
        for name, summed in self._answer.summed.items():
            place = self.names.index(name)
            for number, row in enumerate(rows):
                if summed[first + number]:
                    row[place] = Cell(_SUM)

    def chart(self, title: str, width: float = WIDE) -> Drawing | None:
        """The picture. None if the answer has no numbers with noise, or more rows than a picture can hold."""
        if self.count > MOST_DRAWN:
            return None
        measures = [self._measure(name) for name in self.noisy if self._kind(name).startswith(_NUMBERS)]
        keys = [name for name in self.names if name not in self.noisy and not self._kind(name).startswith("list")]
        shown = [self._key(name) for name in keys]
        return draw_chart(shown, measures, title=title, confidence=self.confidence, width=width)

    def _kind(self, name: str) -> str:
        return str(self.table.schema.field(name).type)

    def _key(self, name: str) -> Key:
        values = self.table.column(name).to_pylist()
        summed: Sequence[bool] = self._answer.summed.get(name, ())
        values = [_SUM if place < len(summed) and summed[place] else one for place, one in enumerate(values)]
        return Key(name, self._kind(name).startswith((*_NUMBERS, *_TIMES)), values)

    def _measure(self, name: str) -> Measure:
        values = self._floats(name)
        ends = [f"{name}_low", f"{name}_high"]
        if set(ends) <= {*self.table.column_names} - {*self.names}:
            return Measure(name, values, self._floats(ends[0]), self._floats(ends[1]))
        errors = self._floats(f"{name}_error")
        pairs = list(zip(values, errors, strict=True))
        low = [None if value is None or error is None else value - error for value, error in pairs]
        high = [None if value is None or error is None else value + error for value, error in pairs]
        return Measure(name, values, low, high)

    def _floats(self, name: str) -> list[float | None]:
        return [None if value is None else float(value) for value in self.table.column(name).to_pylist()]


def _epsilon(guarantee: Guarantee | None) -> float | None:
    return None if guarantee is None else float(guarantee.largest_loss or 0)


def _cell(shown: str, value: Any, head: Head) -> Cell:
    if value is None and not head.noisy:
        return Cell("–", is_number=head.is_number)
    text, sign, error = shown.partition(" ± ") if head.is_number and head.noisy else (shown, "", "")
    if head.noisy and head.is_number and not sign and text.endswith(")") and " (" in text:
        text, _, interval = text.rpartition(" (")
        return Cell(_cut(text), f"({interval}", head.is_number)
    return Cell(_cut(text), f"± {error}" if sign else "", head.is_number)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

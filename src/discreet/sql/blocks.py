"""Blocks of time: public boundaries over a private time column, and the names of the parts that they make.

Each row is in one block, which depends on this row alone. Nothing here is read from rows.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from discreet.errors import InvalidArgument
from discreet.guarantees.unit import BLOCKS, Block

EPOCH = datetime.date(1970, 1, 1)
NULL, OTHER = "null", "other"
"""The names of the parts of rows without a value, and of those whose value is not declared."""
LATE = ("drop", "next")
_NAMES: dict[Block, str] = {
    "day": r"\d{4}-\d\d-\d\d",
    "week": r"\d{4}-W\d\d",
    "month": r"\d{4}-\d\d",
    "quarter": r"\d{4}-Q[1-4]",
    "year": r"\d{4}",
}
EXAMPLES: dict[Block, str] = {
    "day": "2024-01-31",
    "week": "2024-W05",
    "month": "2024-01",
    "quarter": "2024-Q1",
    "year": "2024",
}
"""How a block of each kind is written."""


@dataclass(frozen=True, kw_only=True)
class Time:
    """When the rows of a table happened, and into which blocks this divides them.

    `column` has the day or the moment of a row. `arrived` has when it came in. With it, a row is late if it came in
    after its block had ended: with `late` "drop" it counts nowhere, with "next" in the block in which it came in.
    """

    column: str
    block: Block = "month"
    arrived: str | None = None
    late: Literal["drop", "next"] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InvalidArgument('time needs the column of days or moments: column = "day".', code="policy-time")
        if self.block not in BLOCKS:
            raise InvalidArgument(f"block must be one of {', '.join(BLOCKS)}.", code="not-an-option")
        if self.arrived is not None and (not isinstance(self.arrived, str) or not self.arrived):
            raise InvalidArgument('arrived must name a column, such as "loaded_at".', code="policy-time")
        if self.late is not None and self.late not in LATE:
            raise InvalidArgument('late must be "drop" or "next".', code="not-an-option")
        if (self.arrived is None) != (self.late is None):
            raise InvalidArgument(
                'arrived and late go together: write arrived = "loaded_at" and late = "drop" or "next".',
                code="policy-time",
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return (self.column,) if self.arrived is None else (self.column, self.arrived)


@dataclass(frozen=True)
class FirstBlocks:
    """Of each person, only the rows in the first `most` blocks count, among those from `start` to `end` in which this
    person has rows.
    """

    start: str
    end: str
    most: int


def start_of(block: Block, day: datetime.date) -> datetime.date:
    """The first day of the block that a day is in. Weeks begin on Monday."""
    match block:
        case "week":
            return day - datetime.timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            return day.replace(month=1, day=1)
    return day


def next_start(block: Block, start: datetime.date) -> datetime.date:
    """The first day of the block after the one that starts on this day."""
    far = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}[block]
    return start_of(block, start + datetime.timedelta(days=far))


def name_of(block: Block, day: datetime.date) -> str:
    """The name of the block that a day is in: 2024-01-31, 2024-W05, 2024-01, 2024-Q1 or 2024.

    >>> name_of("week", datetime.date(2024, 12, 30))
    '2025-W01'
    """
    match block:
        case "week":
            year, week, _ = day.isocalendar()
            return f"{year:04}-W{week:02}"
        case "month":
            return f"{day.year:04}-{day.month:02}"
        case "quarter":
            return f"{day.year:04}-Q{(day.month + 2) // 3}"
        case "year":
            return f"{day.year:04}"
    return f"{day.year:04}-{day.month:02}-{day.day:02}"


def read_name(block: Block, name: Any) -> datetime.date | None:
    """The first day of the block with this name. None for the part of rows without a time."""
    if name == NULL:
        return None
    found = None
    if isinstance(name, str) and re.fullmatch(_NAMES[block], name, re.ASCII):
        try:
            found = _read(block, name)
        except ValueError:
            found = None
    if found is None or name_of(block, found) != name:
        raise InvalidArgument(
            f'A {block} is written "{EXAMPLES[block]}", and "{NULL}" are the rows without a time.', code="part-name"
        )
    return found


def _read(block: Block, name: str) -> datetime.date:
    year = int(name[:4])
    match block:
        case "week":
            return datetime.date.fromisocalendar(year, int(name[6:]), 1)
        case "month":
            return datetime.date(year, int(name[5:]), 1)
        case "quarter":
            return datetime.date(year, int(name[6:]) * 3 - 2, 1)
        case "year":
            return datetime.date(year, 1, 1)
    return datetime.date.fromisoformat(name)


def blocks_from(block: Block, first: str) -> Iterator[str]:
    """The names of the blocks from the first one on, to the end of the calendar."""
    start = read_name(block, first)
    while start is not None:
        yield name_of(block, start)
        try:
            start = next_start(block, start)
        except OverflowError:
            return


def number_of(start: datetime.date) -> int:
    """A block as the engine counts it: the days from 1970-01-01 to its first day."""
    return (start - EPOCH).days

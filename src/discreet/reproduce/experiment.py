"""The result of an experiment: columns that name the origin of their numbers, rows, and how they are shown and
saved.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

Origin = Literal["given", "taught", "tight", "exact", "observed", "printed"]
STYLES: Mapping[Origin, str] = {
    "given": "bold",
    "taught": "yellow",
    "tight": "cyan",
    "exact": "cyan",
    "observed": "green",
    "printed": "magenta",
}
"""taught: the formula of the documents · tight: the best one · exact: one formula for both · observed: from this run ·
printed: as printed in the document.
"""


@dataclass(frozen=True)
class ReportColumn:
    """A column: its name in the CSV file, its heading in the table, its origin, and the format of its numbers."""

    name: str
    heading: str
    origin: Origin
    shown: str = ""

    def show(self, value: Any) -> str:
        """The value as text, rounded as in the document. A dash if there is none."""
        if value is None:
            return "–"
        return str(value) if isinstance(value, str) else format(value, self.shown)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table with a title, the ids of the results it shows, and remarks. `series` is data that only its plot needs."""

    name: str
    title: str
    source: str
    columns: tuple[ReportColumn, ...]
    rows: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()
    series: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def column(self, name: str) -> list[Any]:
        """One column, by its name in the CSV file."""
        return [row[name] for row in self.rows]

    def table(self) -> Table:
        """The table for a terminal, one color for each origin."""
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for column in self.columns:
            style = STYLES[column.origin]
            origin = "" if column.origin == "given" else f"\n{column.origin}"
            table.add_column(
                escape(column.heading + origin),
                style=style,
                header_style=style,
                justify="left" if column.origin == "given" else "right",
                vertical="bottom",
                no_wrap=column.origin == "given",
            )
        for row in self.rows:
            table.add_row(*(escape(column.show(row[column.name])) for column in self.columns))
        return table

    def print(self, console: Console) -> None:
        """The title, the table and its remarks."""
        console.print(f" [bold]{escape(self.title)}[/] {escape(f'[{self.source}]')}", highlight=False)
        console.print(self.table())
        if self.notes:
            console.print(Padding(escape(" ".join(self.notes)), (0, 1)), style="dim", highlight=False)
        console.print()

    def markdown(self, *, observed: bool = True) -> str:
        """The rows, rounded, as a table in Markdown. Without `observed`, only what is the same in every run."""
        shown = [column for column in self.columns if observed or column.origin != "observed"]
        heads = [_one_line(column) for column in shown]
        rows = [[column.show(row[column.name]) for column in shown] for row in self.rows]
        ends = ["---" if column.origin == "given" else "---:" for column in shown]
        lines = (" | ".join(cell.replace("|", "\\|") for cell in line) for line in (heads, ends, *rows))
        return "".join(f"| {line} |\n" for line in lines)

    def page(self) -> str:
        """The title, the picture, the table and its remarks, in Markdown."""
        parts = [f"## {self.title}", f"[{self.source}]", f"![{self.title}]({self.name}.png)", self.markdown().rstrip()]
        return "\n\n".join([*parts, " ".join(self.notes)]) + "\n"

    def save(self, folder: Path) -> Path:
        """Write the rows, unrounded, as CSV."""
        path = folder / f"{self.name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [column.name for column in self.columns])
            writer.writeheader()
            writer.writerows(self.rows)
        return path


def _one_line(column: ReportColumn) -> str:
    heading = column.heading.replace("\n", " ")
    return heading if column.origin == "given" else f"{heading} · {column.origin}"


def promise(epsilon: float, delta: float) -> str:
    """A pair (ε, δ) as the heading of a row.

    >>> promise(0.1, 0.1)
    '(0.1, 0.1)'
    """
    return f"({epsilon:g}, {delta:g})"

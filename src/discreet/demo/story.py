"""The parts of a demo: its facts, the answers next to the truth, one plot, and what to type next."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from discreet.demo import pictures
from discreet.errors import MissingExtra

TRUTH = "truth*"
ONLY_HERE = "* Only a demo can show it: nobody here is real."


@dataclass(frozen=True)
class Story:
    """Shows one demo on a console, and saves its plot in a folder."""

    story: str
    folder: Path
    out: Console

    def begin(self, facts: Mapping[str, str]) -> None:
        """Show what the data is, what is asked, and who is protected."""
        self.out.print(Panel(_listed(facts), title=f"discreet demo {self.story}", width=80))

    def show(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show the answers; the first column names them, and the truth is dim."""
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        for number, name in enumerate(columns):
            style = "dim" if name == TRUTH else ""
            table.add_column(name, justify="right" if number else "left", style=style, no_wrap=True)
        for row in rows:
            table.add_row(*map(Text, row))
        self.out.print(table)

    def end(self, facts: Mapping[str, str], draw: Callable[[Any], None], title: str, *, code: str, page: str) -> None:
        """Show what it cost, where the plot is, and how to do the same with your own data."""
        self.out.print()
        self.out.print(_listed({**facts, "picture": self._drawn(draw, title)}))
        type_next(self.out, code.strip().splitlines(), page)

    def _drawn(self, draw: Callable[[Any], None], title: str) -> str:
        try:
            return str(pictures.save(self.folder / f"{self.story}.png", title, draw))
        except MissingExtra as missing:
            return f"none. {missing}"


def type_next(out: Console, lines: Sequence[str], page: str) -> None:
    """Show what to type next, and which page explains it."""
    here = Path(sys.argv[0])
    # `make demo` runs a command that is not on the shell's PATH
    hidden = here.name == "discreet" and shutil.which("discreet") is None
    where = f"; here discreet is {min(os.path.relpath(here), str(here), key=len)}" if hidden else ""
    out.print(f"\n[bold]Type next[/] (see docs/{page}{where})")
    out.print(Text("\n".join(f"  {line}" for line in lines), style="cyan"))


def _listed(facts: Mapping[str, str]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, words in facts.items():
        grid.add_row(name, Text(words))
    return grid

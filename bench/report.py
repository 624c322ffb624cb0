"""How benchmarks print: Markdown that reads well in a terminal, too. What a script prints is its section of the page
(see page.py), so every number on the page is one that a script has printed.
"""

from __future__ import annotations

import os
from typing import Any


def section(title: str, script: str, about: str) -> None:
    """The heading, the command that prints all that follows, and what is measured."""
    print(f"## {title}\n`python bench/{script}.py` · {' '.join(about.split())}\n", flush=True)


def table(*titles: str) -> None:
    line(*titles)
    print(f"|{'---|' * len(titles)}", flush=True)


def line(*cells: Any) -> None:
    """One row; what is None was not measured."""
    print(f"| {' | '.join('–' if cell is None else str(cell) for cell in cells)} |", flush=True)


def notes(*said: str) -> None:
    print("\n" + "\n".join(f"- {' '.join(one.split())}" for one in said), flush=True)


def verdict(goals: dict[str, bool]) -> None:
    """Which goals are met, and which are missed."""
    for said, wanted in (("Goals met", True), ("**Goals missed**", False)):
        if named := [goal for goal, met in goals.items() if met == wanted]:
            print(f"\n{said}: {'; '.join(named)}.", flush=True)


def machine() -> str:
    """The cores, and how busy they are: absolute times mean little on a busy machine, ratios of one run still do."""
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start"

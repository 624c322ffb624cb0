"""How benchmarks print: Markdown that is also readable in a terminal. The output of a script is its section of the page
(see page.py), so a script has printed every number on the page.
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("DISCREET_STATE", "off")  # they copy ledgers, and put copies back


def section(title: str, script: str, about: str, level: int = 2) -> None:
    """The heading, the command that prints the section (`noise.samplers`), and what is measured."""
    print(f"{'#' * level} {title}\n`python -m bench.{script}` · {' '.join(about.split())}\n", flush=True)


def table(*titles: str) -> None:
    line(*titles)
    print(f"|{'---|' * len(titles)}", flush=True)


def line(*cells: Any) -> None:
    """One row. None means not measured."""
    print(f"| {' | '.join('–' if cell is None else str(cell) for cell in cells)} |", flush=True)


def notes(*said: str) -> None:
    print("\n" + "\n".join(f"- {' '.join(one.split())}" for one in said), flush=True)


def verdict(goals: dict[str, bool]) -> None:
    """Which goals are met, and which are missed."""
    for said, wanted in (("Goals met", True), ("**Goals missed**", False)):
        if named := [goal for goal, met in goals.items() if met == wanted]:
            print(f"\n{said}: {'; '.join(named)}.", flush=True)


def machine() -> str:
    """The cores and their load: on a busy machine, absolute times mean little, but ratios within one run still hold."""
    return f"{cores()}, load {os.getloadavg()[0]:.1f} at the start"


def cores() -> str:
    """The cores of this machine, and how many of them a benchmark may use: `2 of 16 cores`."""
    there, mine = os.cpu_count(), usable()
    return f"{there} cores" if mine == there else f"{mine} of {there} cores"


def usable() -> int:
    """So many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

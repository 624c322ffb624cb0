"""Runs the code of docs/tutorial.md and writes what it prints, and the pictures it draws, into the page.

`python docs/make/tutorial.py` · Noise is fresh, so every run gives different numbers.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import discreet as dp
from discreet.testing import exact_law

DOCS = Path(__file__).parents[1]
PAGE, PICTURES = DOCS / "tutorial.md", DOCS / "images" / "tutorial"
BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:```text\n(?P<output>.*?)```\n)?", flags=re.DOTALL)


def with_outputs(page: str) -> str:
    """The page with every block of code followed by what it prints when all are run in order, in the current folder."""
    names: dict[str, Any] = {}

    def run(block: re.Match[str]) -> str:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(block["code"], "tutorial.md", "exec"), names)
        shown = "\n".join(line.rstrip() for line in printed.getvalue().rstrip().split("\n"))
        return f"```python\n{block['code']}```\n" + (f"```text\n{shown}\n```\n" if shown else "")

    return BLOCK.sub(run, page)


def two_worlds(path: Path) -> None:
    """The exact distribution of one noisy count, with Ana in the data and without."""
    noise = dp.Laplace.for_guarantee(dp.Pure(epsilon=0.5), sensitivity=1, step=1)
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    worlds = ((100, -0.2, "#3f51b5", "Ana is in the data: 100 people"), (99, 0.2, "#e59866", "she is not: 99 people"))
    for true, shift, color, label in worlds:
        law = exact_law(lambda true=true: dp.release(true, noise, sensitivity=1).value, window=12).law
        axes.bar([value + shift for value in law], [float(p) for p in law.values()], 0.4, color=color, label=label)
    axes.set_xlim(90.5, 108.5)
    axes.set_xlabel("the published answer")
    axes.set_ylabel("probability")
    axes.set_title("One count at ε = 0.5: the two bars of an answer differ by a factor of at most 1.65", fontsize=10)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def main() -> None:
    """Make the page and its pictures again."""
    os.environ.setdefault("MPLBACKEND", "agg")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        page = with_outputs(PAGE.read_text("utf-8"))
        for drawn in Path(folder).glob("*.svg"):
            shutil.copy(drawn, PICTURES / drawn.name)
    two_worlds(PICTURES / "two-worlds.svg")
    PAGE.write_text(page, encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()

"""`discreet reproduce OUT`: run every experiment, print its table, and write its CSV file and its plot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from discreet.extras import need
from discreet.reproduce import (
    categorical,
    distinguishing,
    numeric,
    pictures,
    private_density,
    repeated_values,
    repetition,
    scaled_metric,
)
from discreet.reproduce.experiment import Experiment
from discreet.reproduce.people import People, generate

EXPERIMENTS: tuple[tuple[str, Callable[[People], tuple[Experiment, ...]]], ...] = (
    ("salaries with Laplace noise", numeric.run),
    ("states by randomized response", categorical.run),
    ("a private density", private_density.run),
    ("private once, not twice", repetition.run),
    ("the false Remark 7.3", scaled_metric.run),
    ("19 or 20?", distinguishing.run),
    ("the median of repeated values", repeated_values.run),
)
_WIDTH = 100


def main(out: Path, people: int = 1000) -> None:
    """Generate `people`, run every experiment on them, and write one CSV file and one PNG for each table to `out`.

    A missing matplotlib is reported before anything is drawn.
    """
    need("matplotlib", "plot", "discreet reproduce")
    made = generate(people)
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    done = 0
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=2 * len(EXPERIMENTS))
        for description, run in EXPERIMENTS:
            bar.update(task, description=description)
            found = run(made)
            bar.update(task, advance=1, description=f"{description}: pictures")
            for experiment in found:
                experiment.save(out)
                pictures.save(experiment, out)
                experiment.print(bar.console)
                done += 1
            bar.advance(task)
    console.print(f" {done} tables (CSV) and as many pictures (PNG) are in {out}", highlight=False)

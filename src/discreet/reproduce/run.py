"""`discreet reproduce OUT`: run every experiment, print its table, and write its CSV file and its plot."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from discreet.errors import InvalidArgument
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
from discreet.reproduce.lectures import (
    lecture_3,
    lecture_6,
    lecture_8,
    lecture_10,
    thesis_examples,
    thesis_table_1,
    thesis_vectors,
    thesis_voters,
)
from discreet.reproduce.lectures import pictures as lecture_pictures
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
LECTURES: tuple[tuple[str, Callable[[], tuple[Experiment, ...]]], ...] = (
    ("lecture 3: an election, counting queries", lecture_3.run),
    ("lecture 6: composition, generalization", lecture_6.run),
    ("lecture 8: the shuffle model", lecture_8.run),
    ("lecture 10: noisy descent", lecture_10.run),
    ("thesis: the register of voters", thesis_voters.run),
    ("thesis: the attack of table 1", thesis_table_1.run),
    ("thesis: sets of hobbies, mixed records", thesis_examples.run),
    ("thesis: images and curves", thesis_vectors.run),
)
PAGE, TITLE = "lectures.md", "# The lectures, taught next to tight\n"
_WIDTH = 100
Steps = Iterable[tuple[str, Callable[[], tuple[Experiment, ...]]]]


def main(out: Path, people: int = 1000, *, lectures: bool = False) -> None:
    """Run every experiment, and write one CSV file and one PNG for each table to `out`.

    The tables and figures of the thesis are about `people` synthetic people. With `lectures`, the results of the
    lectures and the examples of the thesis are run instead, and a page with all their tables is written too. A missing
    matplotlib, or a folder that cannot be written, is reported before anything is drawn.
    """
    need("matplotlib", "plot", "discreet reproduce")
    made = None if lectures else generate(people)
    _make_folder(out)
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    if made is None:
        found = _run(LECTURES, out, lecture_pictures.PICTURES, console)
        (out / PAGE).write_text("\n".join([TITLE, *(experiment.page() for experiment in found)]), "utf-8")
    else:
        steps = [(description, partial(run, made)) for description, run in EXPERIMENTS]
        found = _run(steps, out, pictures.PICTURES, console)
    console.print(f" {len(found)} tables (CSV) and as many pictures (PNG) are in {out}", highlight=False)
    if lectures:
        console.print(f" {out / PAGE} has all of them on one page", highlight=False)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise _not_writable(out) from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise _not_writable(out)


def _not_writable(out: Path) -> InvalidArgument:
    return InvalidArgument(
        f"{out} is not a folder that can be written. Name a new folder, such as out/.", code="file-not-writable"
    )


def _run(steps: Steps, out: Path, drawings: Mapping[str, pictures.Drawing], console: Console) -> list[Experiment]:
    """Run, print and save all experiments."""
    steps, done = tuple(steps), []
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=2 * len(steps))
        for description, run in steps:
            bar.update(task, description=description)
            found = run()
            bar.update(task, advance=1, description=f"{description}: pictures")
            for experiment in found:
                experiment.save(out)
                pictures.save(experiment, out, drawings[experiment.name])
                experiment.print(bar.console)
                done.append(experiment)
            bar.advance(task)
    return done

"""`discreet study`: plan questions of one sample, asked one after another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.manual import manual


def study() -> None:
    """Plan a study: many questions of one sample, asked one after another.

    Questions chosen after a look at earlier answers overfit a sample, unless the answers are made for it.

    Examples:
      $ discreet study plan --rows 100000 --questions 1000
      $ discreet demo adaptive

    Analysis that cannot fool itself: docs/adaptive.md
    """


app = typer.Typer(no_args_is_help=True, help=manual(study))


def plan(
    rows: Annotated[list[str], typer.Option(metavar="N,N", help="How many rows the sample has; several are compared.")],
    questions: Annotated[
        list[str], typer.Option(metavar="K,K", help="How many questions are asked; several are compared.")
    ],
    confidence: Annotated[float, typer.Option(help="How sure all answers together are.")] = 0.95,
    overfits: Annotated[int, typer.Option(help="How many guesses a holdout may correct.", min=1)] = 10,
    accuracy: Annotated[
        list[str] | None,
        typer.Option(metavar="WIDTH,WIDTH", help="Say how many rows such a width takes, too.", show_default=False),
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(
            help="Draw the widths, too: a .png, .svg or .pdf.", show_default=False, rich_help_panel="How it is shown"
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the widths for another program.", rich_help_panel="How it is shown"),
    ] = False,
) -> None:
    """Say how far answers may be from the population, for every method; no data is needed, and nothing is spent.

    Questions chosen after a look at earlier answers overfit a sample. A width is how far all answers may be from what
    holds on the population, together. A study answers every question; a holdout checks what a training set as large
    says, and corrects it a few times. Private methods add noise; the others publish functions of the sample, and are
    for rows that belong to nobody. Published widths stand beside them, and that of questions fixed in advance.

    Example: discreet study plan --rows 100000 --questions 1000,10000 --accuracy 0.05 --chart widths.png

    It takes some seconds for each pair of numbers. How widths are found: docs/adaptive.md
    """
    from discreet.cli import study_command

    given: dict[str, Any] = {"accuracy": accuracy or (), "chart": chart, "as_json": as_json}
    study_command.main(rows, questions, confidence=confidence, overfits=overfits, **given)


app.command(help=manual(plan))(plan)

"""`discreet study`: plan questions to one sample, before there is any data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from discreet.cli.terminal.manual import manual
from discreet.cli.terminal.output import check_picture
from discreet.errors import InvalidArgument


def study() -> None:
    """Plan a study: a sequence of questions to one sample.

    If questions depend on earlier answers, they overfit a sample, unless the answers are protected against it.

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
    """Show how far answers may be from the population, for every method. No data is needed, and nothing is spent.

    If questions depend on earlier answers, they overfit a sample. A width is how far all answers together may be from
    the values of the population. A study answers every question. A holdout checks the results of a training set of the
    same size, and corrects them a few times. Private methods add noise. The others publish functions of the sample, and
    are for rows that belong to nobody. Published widths are shown for comparison, and the width for questions fixed in
    advance.

    Example: discreet study plan --rows 100000 --questions 1000,10000 --accuracy 0.05 --chart widths.png

    It takes some seconds for each pair of numbers. How widths are found: docs/adaptive.md
    """
    main(
        rows, questions, confidence=confidence, overfits=overfits, accuracy=accuracy or (), chart=chart, as_json=as_json
    )


app.command(help=manual(plan))(plan)


def main(
    rows: Sequence[str],
    questions: Sequence[str],
    *,
    confidence: float = 0.95,
    overfits: int = 10,
    accuracy: Sequence[str] = (),
    chart: Path | None = None,
    as_json: bool = False,
) -> None:
    """Print the widths of every method and the rows that each accuracy needs, and draw the widths if requested."""
    from discreet.adaptive.planning import plan

    sizes, asked = _numbers(rows, "--rows"), _numbers(questions, "--questions")
    wished = _numbers(accuracy, "--accuracy", whole=False)
    if chart is not None:
        check_picture(chart, "discreet study plan --chart")
    with Console(stderr=True).status("Comparing methods …"):
        made = plan(sizes, asked, confidence, overfits=overfits)
        needed = made.sizes(wished) if wished else None
        if chart is not None:
            _draw(made, chart)
    if as_json:
        data: dict[str, Any] = {"confidence": made.confidence, "overfits": made.overfits, "widths": made.rows}
        print(json.dumps(data | ({"sizes": needed.rows} if needed else {}), ensure_ascii=False, allow_nan=False))
        return
    print(made)
    if needed is not None:
        print(f"\n{needed}")


def _numbers(given: Sequence[str], option: str, *, whole: bool = True) -> list[Any]:
    """Numbers that are repeated or listed with commas. 1_000_000 and 1e6 are the same number of rows."""
    found: list[Any] = []
    for text in (part.strip() for one in given for part in one.split(",")):
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or (whole and not number.is_integer()):
            kind, example = ("whole numbers", "10000,100000") if whole else ("numbers", "0.05,0.01")
            raise InvalidArgument(f"{option} takes {kind}. Write {option} {example}.", code="not-a-number")
        found.append(int(number) if whole else number)
    return found


def _draw(made: Any, path: Path) -> None:
    try:
        made.plot(path)
    except OSError as error:
        raise InvalidArgument(
            f"{path} cannot be written: {error.strerror}. Name another with --chart.", code="file-not-writable"
        ) from None

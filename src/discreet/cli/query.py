"""`discreet query`: answer a question in SQL."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.cli.terminal.connecting import connected
from discreet.cli.terminal.options import RECORD, SHOWN, about_a_question
from discreet.cli.terminal.output import check_picture, clean
from discreet.errors import InvalidArgument
from discreet.guarantees.accuracy import check_confidence
from discreet.ledger import Ledger

if TYPE_CHECKING:
    from discreet.sql.running.answer import Answer


class Format(StrEnum):
    """How an answer is printed."""

    table = "table"
    json = "json"
    csv = "csv"


class Look(StrEnum):
    """The colors of a picture."""

    light = "light"
    dark = "dark"


@about_a_question
def query(
    asked: dict[str, Any],
    form: Annotated[
        Format, typer.Option("--format", help="How the answer is printed.", rich_help_panel=SHOWN)
    ] = Format.table,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the answer, too: a .png, .svg or .pdf.", show_default=False, rich_help_panel=SHOWN),
    ] = None,
    style: Annotated[Look, typer.Option(help="The colors of the picture.", rich_help_panel=SHOWN)] = Look.light,
    key: Annotated[
        str | None,
        typer.Option(
            help="The id of this request: a retry with it gets the same answer, for free.",
            show_default=False,
            rich_help_panel=RECORD,
        ),
    ] = None,
) -> None:
    """Answer a question in SQL, with the error next to each number.

    The ledger is charged before noise is drawn. The same question on the same data gets the same answer, for free. A
    question that is not allowed or does not fit the budget is refused, with the reason, and costs nothing. If bounds
    must be found first, they stay spent even if there are too few people for them. --within needs declared bounds.

    Examples:
      $ discreet query clinic.toml "SELECT COUNT(*) FROM visits" --epsilon 0.1
      $ discreet query clinic.toml "SELECT city, AVG(cost) AS cost FROM visits
                                    GROUP BY city" --epsilon 0.5 --plot cost.png
      $ discreet query clinic.toml "SELECT COUNT(*) AS n FROM visits" \\
                                   --within n=50

    `SHOW TABLES` and `DESCRIBE visits` say what may be asked, for free.

    What SQL is understood, and how people are protected: docs/sql.md
    """
    main(**asked, form=form, plot=plot, style=style, key=key)


def main(
    policy: str | None,
    question: str,
    *,
    form: str = "table",
    plot: Path | None = None,
    style: str = "light",
    confidence: float = 0.95,
    key: str | None = None,
    analyst: str | None = None,
    parts: Sequence[str] | None = None,
    **cost: Any,
) -> None:
    """Answer a question and print it as "table", "json" or "csv". Bad options are reported before anything is
    charged.
    """
    from discreet.datasets.description import asks_for_tables, shown_tables
    from discreet.engines.duckdb.engine import DuckDB
    from discreet.sql.running.explanation import lines
    from discreet.sql.running.written import csv_text, json_object, json_text

    sure = check_confidence(confidence)
    if plot is not None:
        check_picture(plot, "discreet query --plot")
    database, console = connected(policy, analyst), Console(stderr=True)
    if parts:
        database = database.part(*parts)
    if asks_for_tables(question):
        with closing(database):
            print(shown_tables(question, database.tables))
        return
    with closing(database.ledger), closing(database.engine), console.status("Answering …") as status:
        if console.is_terminal and isinstance(database.engine, DuckDB):
            database.engine.progress = lambda percent: status.update(f"Answering … {percent}%")
        answer = database.sql(question, confidence=confidence, key=key, **cost)
        table = answer.with_errors(sure)
        said = json_object(answer, sure) if form == "json" else _summary(answer, table, database.planner.ledger, sure)
        text = json_text(said) if form == "json" else lines(said)
    if form == "json":
        print(text)
    elif form == "csv":
        sys.stdout.write(csv_text(table))
        print(text, file=sys.stderr)
    else:
        shown = table.num_rows or answer.free
        Console(highlight=False).print(_table(answer, table) if shown else "(no group is shown)")
        print(f"\n{text}")
    if plot is not None:
        _draw(answer, sure, plot, style)


def _table(answer: Answer, table: Any) -> Table:
    shown = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    noisy = {name: name in answer.noisy for name in answer.names}
    for name, right in noisy.items():
        shown.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for row in table.to_pylist():
        cells = answer.shown(row)
        shown.add_row(*(Text(clean(cells[name])) for name in noisy))
    return shown


def _summary(answer: Answer, table: Any, ledger: Ledger, confidence: float) -> dict[str, str]:
    """What the answer cost, what remains of the budget now, and how to find the answer again."""
    from discreet.sql.running.explanation import describe_unit

    if answer.free:
        return {"cost": answer.free}
    free = answer.derived_from and answer.receipt is None
    summary = {
        "cost": str(answer.cost) if free else f"{answer.cost}, for {describe_unit(ledger.protects)}",
        "remains": f"{ledger.remaining or 'nothing'} of {ledger.limit}",
        **(
            {"derived from": ", ".join(answer.derived_from)}
            if free
            else {"receipt": f"{answer.receipt}{'; answered before, at no new cost' if answer.replayed else ''}"}
        ),
        **_errors(answer, table, confidence),
        **{f"note {number}": note for number, note in enumerate(answer.notes, 1)},
    }
    return summary | ({"NOT PRIVATE": "made in test mode"} if answer.not_private else {})


def _errors(answer: Answer, table: Any, confidence: float) -> dict[str, str]:
    """The meaning of ±, if one is shown. That is public, like everything that is shown."""
    if not table.num_rows or not answer.noisy:
        return {}
    of = ", for what the bounds below leave in" if answer._given else " for the true value"
    return {"errors": f"each ± holds with {100 * confidence:.6g}% confidence{of}"}


def _draw(answer: Answer, confidence: float, path: Path, style: str) -> None:
    figure = answer.plot(confidence=confidence, style=style)
    try:
        figure.savefig(path, dpi=130)
    except OSError as error:
        raise InvalidArgument(
            f"{path} cannot be written: {error.strerror}. Name another: the same question is free now.",
            code="file-not-writable",
        ) from None

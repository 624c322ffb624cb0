"""The command line: a switchboard that opens the front door of each command when it is asked for.

Exit codes: 0 answered · 1 the machine failed, or the ledger did · 2 bad argument · 4 budget exhausted.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from discreet._version import __version__
from discreet.errors import BudgetExhausted, DiscreetError, EntropyUnavailable, LedgerDamaged, LedgerUnavailable

app = typer.Typer(
    name="discreet",
    help="Answers questions about people without exposing any one of them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with local variables could show private values
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit; an error of ours is one line on stderr, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # ε on a terminal that knows ASCII only is no reason to stop
            stream.reconfigure(errors="backslashreplace")
    try:
        app(args=None if arguments is None else list(arguments), prog_name="discreet")
    except DiscreetError as error:
        print(f"discreet: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(exit_code(error))


def exit_code(error: DiscreetError) -> int:
    """The status a script can act on.

    >>> exit_code(BudgetExhausted("nothing is left")), exit_code(DiscreetError("epsilon is negative"))
    (4, 2)
    """
    match error:
        case BudgetExhausted():
            return 4
        case EntropyUnavailable() | LedgerDamaged() | LedgerUnavailable():
            return 1
        case _:
            return 2


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Answers questions about people without exposing any one of them."""


@app.command()
def demo() -> None:
    """Make data, ask questions, and show the answers, their error bars and the ledger."""
    from discreet.demo import run

    run.main()


@app.command()
def audit(
    mechanism: Annotated[str, typer.Argument(help="The mechanism to test, such as laplace.")],
    epsilon: Annotated[float, typer.Option(help="The ε it claims.")] = 1.0,
    delta: Annotated[float, typer.Option(help="The δ it claims.")] = 0.0,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Draws on each of two neighboring inputs; as many as are quick, by default.", show_default=False
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="How sure the lower bound is.")] = 0.99999,
    halve_noise: Annotated[bool, typer.Option(help="Break the mechanism, to see the audit fire.")] = False,
) -> None:
    """Attack a mechanism: a lower bound on ε from its answers alone must stay below the claim."""
    from discreet.audit import command

    raise typer.Exit(command.main(mechanism, epsilon, delta, samples, confidence, broken=halve_noise))


@app.command()
def reproduce(
    out: Annotated[Path, typer.Argument(help="Folder for the tables (CSV) and figures (PNG).", file_okay=False)],
    people: Annotated[int, typer.Option(help="How many people to generate.", min=1)] = 1000,
) -> None:
    """Remake the founding documents' tables and figures, taught and tight side by side."""
    from discreet.reproduce import run

    run.main(out, people=people)


class Export(StrEnum):
    """What a record can be exported as."""

    json = "json"
    csv = "csv"


@app.command()
def ledger(
    target: Annotated[
        str, typer.Argument(help="A ledger's path or postgresql:// URL, or a policy (*.toml) that names one.")
    ],
    verify: Annotated[bool, typer.Option("--verify", help="Check the whole record instead of showing it.")] = False,
    export: Annotated[
        Export | None, typer.Option(help="Print the whole record for another program.", show_default=False)
    ] = None,
    adopt: Annotated[
        str | None,
        typer.Option(
            metavar="WHY",
            help="For a ledger that was moved or restored without its checkpoint: record why it is to be trusted.",
            show_default=False,
        ),
    ] = None,
    last: Annotated[int, typer.Option(help="How many of the last entries to show.", min=0)] = 20,
) -> None:
    """Show what remains of a ledger and its last entries; or check its record, or export it."""
    from discreet.cli import ledger_command

    raise typer.Exit(ledger_command.main(target, verify=verify, export=export, adopt=adopt, last=last))

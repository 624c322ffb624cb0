"""The command line: a switchboard that opens the front door of each command when it is asked for.

Exit codes: 0 answered · 1 the machine failed, or the ledger did · 2 does not parse as a query, unknown table or column,
bad argument · 3 parses and resolves but is not allowed · 4 budget exhausted.
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
from discreet.cli import asking, completion, owning, polls, studies
from discreet.cli.manual import manual
from discreet.errors import (
    BudgetExhausted,
    DiscreetError,
    EngineFailed,
    EntropyUnavailable,
    LedgerDamaged,
    LedgerUnavailable,
    NotAllowed,
    QueryError,
    ServiceUnavailable,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit; an error of ours is one line on stderr, never a traceback.

    What is wrong with a question keeps the lines that underline it.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # ε on a terminal that knows ASCII only is no reason to stop
            stream.reconfigure(errors="backslashreplace")
    try:
        app(args=None if arguments is None else list(arguments), prog_name="discreet")
    except DiscreetError as error:
        lines = isinstance(error, QueryError | NotAllowed)
        print(f"discreet: {error if lines else ' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(exit_code(error))


def exit_code(error: DiscreetError) -> int:
    """The status a script can act on.

    >>> exit_code(BudgetExhausted("nothing is left")), exit_code(NotAllowed("SELECT * shows rows of single people"))
    (4, 3)
    """
    match error:
        case BudgetExhausted():
            return 4
        case NotAllowed():
            return 3
        case EntropyUnavailable() | LedgerDamaged() | LedgerUnavailable() | ServiceUnavailable() | EngineFailed():
            return 1
        case _:
            return 2


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


def discreet(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Answers questions about people without exposing any one of them.

    Each answer says how wrong it may be and what it cost, and one ledger sees to it that no more is spent than the
    owner of the data allows. Every command has its own manual: discreet query --help.

    Examples:
      $ discreet demo
      $ discreet init visits.parquet --out clinic.toml
      $ discreet query clinic.toml "SELECT COUNT(*) FROM visits" --epsilon 0.1
      $ discreet ledger clinic.toml
    """


EXIT_CODES = """\bExit codes:
  0  answered
  1  the machine failed, or the ledger did; or an audit fired
  2  bad argument, unknown table or column, or not a query at all
  3  a query, but not an allowed one; or too few reports to release
  4  budget exhausted"""


class Story(StrEnum):
    """What a demo can be about."""

    sql = "sql"
    learning = "learning"
    density = "density"
    shuffle = "shuffle"
    adaptive = "adaptive"


def demo(
    story: Annotated[
        Story | None, typer.Argument(help="What to see; by default a clinic asked in SQL.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for the picture of a story.", file_okay=False)] = Path(
        "discreet-demo"
    ),
) -> None:
    """Make data, ask questions, and show the answers, their error bars and the ledger.

    Nobody in a demo is real, so the truth can stand beside each private answer. Every story fits a screen and draws one
    picture: sql (visits by city), learning (a model by ε), density (of costs, with its band), shuffle (a poll in three
    models of trust), adaptive (a finding in pure noise).

    Examples:
      $ discreet demo
      $ discreet demo sql
      $ discreet demo adaptive --out pictures
    """
    from discreet.demo import run

    if story is None:
        run.main()
    else:
        run.tell(story.value, out)


def audit(
    mechanism: Annotated[
        str,
        typer.Argument(help="The mechanism to test, such as laplace.", autocompletion=completion.mechanisms),
    ],
    epsilon: Annotated[float, typer.Option(help="The ε it claims.", rich_help_panel="The claim")] = 1.0,
    delta: Annotated[float, typer.Option(help="The δ it claims.", rich_help_panel="The claim")] = 0.0,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Draws on each of two neighboring inputs; as many as are quick, by default.", show_default=False
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="How sure the lower bound is.")] = 0.99999,
    halve_noise: Annotated[bool, typer.Option(help="Break the mechanism, to see the audit fire.")] = False,
) -> None:
    """Attack a mechanism: a lower bound on ε from its answers alone must stay below the claim.

    It is run on two inputs that differ in one person, and the event that tells them apart best is sought. The exit
    code is 0 when the claim survives, and 1 when the audit fires.

    Examples:
      $ discreet audit laplace --epsilon 1
      $ discreet audit gaussian --epsilon 1 --delta 1e-6
      $ discreet audit laplace --epsilon 1 --halve-noise

    How privacy is tested: docs/testing.md
    """
    from discreet.audit import command

    raise typer.Exit(command.main(mechanism, epsilon, delta, samples, confidence, broken=halve_noise))


def reproduce(
    out: Annotated[Path, typer.Argument(help="Folder for the tables (CSV) and figures (PNG).", file_okay=False)],
    people: Annotated[int, typer.Option(help="How many people to generate.", min=1)] = 1000,
) -> None:
    """Remake the founding documents' tables and figures, taught and tight side by side.

    What the documents print, what their formulas say, what is best, and what was seen among made-up people.

    Examples:
      $ discreet reproduce out/
      $ discreet reproduce out/ --people 10000

    What to look for in them: docs/reproduce.md
    """
    from discreet.reproduce import run

    run.main(out, people=people)


app = typer.Typer(
    name="discreet",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,  # a traceback with local variables could show private values
)
app.callback(help=manual(discreet), epilog=EXIT_CODES)(discreet)
for panel, commands in {
    "Start here": (demo,),
    "For the owner of the data": (owning.init, owning.ledger, owning.sanitize),
    "For analysts": (asking.explain, asking.query),
    "For whoever wants proof": (audit, reproduce),
}.items():
    for command in commands:
        app.command(help=manual(command), rich_help_panel=panel)(command)
app.add_typer(studies.app, name="study", rich_help_panel="For analysts")
app.add_typer(polls.app, name="shuffle", rich_help_panel="For polls without a trusted collector")

"""The command line. It connects each command, and turns errors into exit codes.

Exit codes: 0 answered · 1 the machine failed, or the ledger did · 2 does not parse as a query, unknown table or column,
bad argument · 3 parses and resolves but is not allowed · 4 budget exhausted.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import typer

from discreet._version import __version__
from discreet.cli import (
    audit,
    check,
    demo,
    explain,
    init,
    ledger,
    publish,
    query,
    reproduce,
    risk,
    sanitize,
    shuffle,
    standing,
    study,
    tables,
    verify,
)
from discreet.cli.gateway import account, serve
from discreet.cli.terminal.exits import exit_code
from discreet.cli.terminal.manual import manual
from discreet.errors import (
    DiscreetError,
    NotAllowed,
    QueryError,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit. An error of ours is one line on stderr, with its code and never with a traceback.

    An error about a question keeps the lines that underline its position.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # print ε even on a terminal that supports only ASCII
            stream.reconfigure(errors="backslashreplace")
    try:
        _command()(args=None if arguments is None else list(arguments), prog_name="discreet")
    except DiscreetError as error:
        lines = isinstance(error, QueryError | NotAllowed) or error.code == "gateway-not-isolated"
        print(f"error [{error.code}]: {error if lines else ' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(exit_code(error))


@cache
def _command() -> Callable[..., Any]:
    """The commands with their options, read from their signatures once."""
    return typer.main.get_command(app)


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
    """Answer questions about people without exposing any one of them.

    Each answer shows its possible error and its cost, and one ledger ensures that no more is spent than the owner of
    the data allows. Every command has its own manual: discreet query --help.

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


app = typer.Typer(
    name="discreet",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,  # a traceback with local variables could show private values
)
app.callback(help=manual(discreet), epilog=EXIT_CODES)(discreet)
for panel, commands in {
    "Start here": (demo.demo,),
    "For the owner of the data": (
        *(
            init.init,
            check.check,
            ledger.ledger,
            risk.risk,
            publish.publish,
            sanitize.sanitize,
            serve.serve,
            standing.schedule,
        ),
    ),
    "For analysts": (tables.tables, explain.explain, query.query, standing.standing),
    "For proof": (audit.audit, reproduce.reproduce, verify.verify),
}.items():
    for command in commands:
        app.command(help=manual(command), rich_help_panel=panel)(command)
app.add_typer(account.app, name="account", rich_help_panel="For the owner of the data")
app.add_typer(study.app, name="study", rich_help_panel="For analysts")
app.add_typer(shuffle.app, name="shuffle", rich_help_panel="For polls without a trusted collector")

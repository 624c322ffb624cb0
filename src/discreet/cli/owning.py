"""What the owner of data runs: a first policy, the ledger, and sanitized copies."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli import completion
from discreet.cli.asking import COST, RECORD, Analyst, Policy

WRITTEN, TRUSTED = "What is written", "For a ledger that was moved"


def init(
    data: Annotated[list[Path], typer.Argument(help="Files (Parquet, CSV, JSON) or folders of them: one table each.")],
    out: Annotated[Path, typer.Option(help="Where the policy is written.", dir_okay=False)] = Path("policy.toml"),
    header: Annotated[
        bool, typer.Option("--header", help="First lines of CSV files, and keys of JSON files, are names of columns.")
    ] = False,
) -> None:
    """Write a first policy for review, from the names and types of columns; every guess is marked.

    A CSV or JSON file has no types: they are guessed from its rows, and written down to be checked. A CSV file that may
    begin with a row, and not with names, is refused unless --header says that it does not, and so is JSON. The ranges
    and choices of columns are left for you to say, from what you know and not from the data. An existing file is left
    as it is.

    Examples:
      $ discreet init visits.parquet
      $ discreet init visits.parquet people.csv --out clinic.toml

    Then look at what it says: discreet explain policy.toml "SELECT …" --epsilon 0.5. All of a policy: docs/sql.md
    """
    from discreet.cli import init_command

    init_command.main(data, out, header=header)


def sanitize(
    policy: Policy,
    table: Annotated[
        str, typer.Argument(help="The table to copy, as the policy names it.", autocompletion=completion.tables)
    ],
    epsilon: Annotated[
        float,
        typer.Option(help="What the whole copy may cost, shared equally by its columns.", rich_help_panel=COST),
    ],
    out: Annotated[
        Path,
        typer.Option(help="Where the copy is written: a .parquet or .csv.", dir_okay=False, rich_help_panel=WRITTEN),
    ],
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="The columns to copy; by default all that are declared.",
            show_default=False,
            rich_help_panel=WRITTEN,
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            help="The id of this request: a retry with it gets the same copy, for free.",
            show_default=False,
            rich_help_panel=RECORD,
        ),
    ] = None,
    analyst: Analyst = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it exists.", rich_help_panel=WRITTEN)
    ] = False,
) -> None:
    """Write a copy of a table in which every record is randomized, its error beside the least possible one.

    Numbers get noise, categories are now and then another one. The copy may go anywhere: whatever is computed from it
    costs nothing more. It protects single rows by replacement; a policy that protects people is refused.

    Examples:
      $ discreet sanitize survey.toml answers --epsilon 4 --out answers.parquet
      $ discreet sanitize survey.toml answers --epsilon 4 --columns age,city \\
                          --out answers.csv --force

    What the error is, and why it cannot be less: docs/sanitize.md
    """
    from discreet.cli import sanitize_command

    asked: dict[str, Any] = {"columns": columns, "key": key, "analyst": analyst, "force": force}
    sanitize_command.main(policy, table, epsilon=epsilon, out=out, **asked)


class Export(StrEnum):
    """What a record can be exported as."""

    json = "json"
    csv = "csv"


def ledger(
    target: Annotated[
        str,
        typer.Argument(
            help="A ledger's path or postgresql:// URL, or a policy (*.toml) that names one.",
            autocompletion=completion.ledgers,
        ),
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
            rich_help_panel=TRUSTED,
        ),
    ] = None,
    last: Annotated[int, typer.Option(help="How many of the last entries to show.", min=0)] = 20,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="The ledger's checkpoint, where it is not beside it.", show_default=False, rich_help_panel=TRUSTED
        ),
    ] = None,
) -> None:
    """Show what remains of a ledger and its last entries; or check its record, or export it.

    A check walks every hash, cost, total and kept answer. A ledger that fails it ends with exit code 1.

    Examples:
      $ discreet ledger clinic.toml
      $ discreet ledger clinic.ledger --verify
      $ discreet ledger clinic.ledger --export csv > record.csv
      $ discreet ledger clinic.ledger --adopt "restored from the backup of 3 May"

    One budget for many processes, and what to do when it is refused: docs/ledger.md
    """
    from discreet.cli import ledger_command

    raise typer.Exit(
        ledger_command.main(target, verify=verify, export=export, adopt=adopt, last=last, checkpoint=checkpoint)
    )

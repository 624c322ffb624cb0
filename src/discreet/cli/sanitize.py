"""`discreet sanitize`: a copy of a table with every record randomized on its own, and its error.

A table is read as rows in no order: they leave in a random one, or a file sorted by a value would tell it by place.
Source: the least error [T.5.3], [T.5.5].
"""

from __future__ import annotations

import csv
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from discreet.cli.terminal import completion
from discreet.cli.terminal.options import COST, RECORD, Analyst
from discreet.cli.terminal.options import NamedPolicy as PolicyFile
from discreet.cli.terminal.output import clean
from discreet.door import through
from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.rational import exactly
from discreet.guarantees.finite.least_error import least_error
from discreet.guarantees.unit import Unit, row
from discreet.ledger import Identity, Ledger, version_of
from discreet.mechanisms.reports.randomized_response import RandomizedResponse
from discreet.releases import Release

if TYPE_CHECKING:
    from discreet.datasets.database import Database
    from discreet.datasets.policy import Policy
    from discreet.sql.schema import Table
    from discreet.tables.sanitize import Copy, Randomized

KINDS = (".parquet", ".csv")
_WRITTEN = "What is written"
LARGEST_KEPT = 2**26
"""The largest source, in bytes, whose copy is stored in the ledger, so that the same request is free the next time."""
_DAY = 24 * 60 * 60


def sanitize(
    policy: PolicyFile,
    table: Annotated[
        str, typer.Argument(help="The table to copy, as the policy names it.", autocompletion=completion.tables)
    ],
    epsilon: Annotated[
        float,
        typer.Option(help="What the whole copy may cost, shared equally by its columns.", rich_help_panel=COST),
    ],
    out: Annotated[
        Path,
        typer.Option(help="Where the copy is written: a .parquet or .csv.", dir_okay=False, rich_help_panel=_WRITTEN),
    ],
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="The columns to copy; by default all that are declared.",
            show_default=False,
            rich_help_panel=_WRITTEN,
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
        bool, typer.Option("--force", help="Replace the file if it exists.", rich_help_panel=_WRITTEN)
    ] = False,
) -> None:
    """Write a copy of a table in which every record is randomized. Its error is shown next to the smallest possible
    one.

    Numbers get noise, and categories are sometimes replaced by another one. The copy may go anywhere: whatever is
    computed from it costs nothing more. It protects single rows by replacement. A policy that protects people is
    refused.

    Examples:
      $ discreet sanitize survey.toml answers --epsilon 4 --out answers.parquet
      $ discreet sanitize survey.toml answers --epsilon 4 --columns age,city \\
                          --out answers.csv --force

    What the error is, and why it cannot be less: docs/sanitize.md
    """
    from discreet.datasets.connect import connect
    from discreet.datasets.policy import load
    from discreet.sql.running.explanation import lines
    from discreet.tables.sanitize import plan_copy

    known = load(policy)
    _check_unit(known.unit)
    _check_out(out, known, force=force)
    database = connect(known, analyst=analyst)
    with closing(database), Console(stderr=True).status("Sanitizing …"):
        chosen = _find(database, table)
        copy = plan_copy(chosen, None if columns is None else _split_names(columns), epsilon=epsilon)
        release = release_columns(database, chosen, copy, key=key)
        sanitized = copy.as_arrow(release.value)
        _write(sanitized, out, force=force)
        rows = sanitized.num_rows
        summary = _summary(copy, release, database.ledger, out, rows, again=bool(key) or _is_kept(chosen))
    Console(highlight=False).print(_report(copy, rows))
    print(f"\n{lines(summary)}")


# --- what can be copied -------------------------------------------------------------------------------------


def _split_names(columns: str) -> list[str]:
    """The names in a list with commas. Quotes protect the commas in a name."""
    names = [name.strip() for name in next(csv.reader([columns], skipinitialspace=True), []) if name.strip()]
    if not names:
        raise InvalidArgument("--columns names no column. Write --columns age,city, or remove it.", code="empty")
    return names


def _find(database: Database, name: str) -> Table:
    tables = database.schema.tables
    table = next((one for one in tables.values() if one.name.lower() == name.lower()), None)
    if table is None:
        raise InvalidArgument(f"The policy has no table {name}. Its tables: {', '.join(tables)}.", code="unknown-table")
    return table


def _check_unit(unit: Unit) -> None:
    from discreet.sql.running.explanation import describe_unit

    if unit != row(neighbors="replace"):
        raise NotAllowed(
            f"A sanitized copy protects single rows by replacement, and the policy protects {describe_unit(unit)}. "
            "Every record is randomized by itself, and the number of rows is shown. If each person has one row and the "
            'number may be public, write row = true and neighbors = "replace" in [unit], with a ledger of its own.',
            code="sanitize-unit",
        )


# --- charge, read, randomize --------------------------------------------------------------------------------


def release_columns(database: Database, table: Table, copy: Copy, *, key: str | None = None) -> Release:
    """The randomized columns, through the door: charged before a row is read."""
    from discreet.engines.duckdb.engine import DuckDB

    asked = f"sanitize {table.name}: {', '.join(one.column.name for one in copy.columns)}"
    mechanism, engine = copy.mechanism, database.engine
    if not isinstance(engine, DuckDB):
        raise NotAllowed(
            "A sanitized copy can be made of files and tables in memory only. Export the table to Parquet.",
            code="sanitize-engine",
        )
    return through(
        lambda: copy.read(engine, table.name),
        mechanism,
        mechanism.guarantee(None),
        ledger=database.ledger,
        asked=asked,
        key=key,
        identity=_identity(asked, table, database.planner.policy),
    )


def _identity(asked: str, table: Table, policy: str) -> Identity:
    """The identity of the copy of one version of the data. A copy too large to be stored is made again, unless it has a
    key.
    """
    version = version_of(table.source) if table.version is None else table.version
    known = Identity(question=asked, data_version=f"{table.name}: {version}", policy=policy)
    return replace(known, lasting=_is_kept(table), before=known)


def _is_kept(table: Table) -> bool:
    source = Path(table.source)
    files = source.rglob("*") if source.is_dir() else [source]
    return sum(file.stat().st_size for file in files if file.is_file()) <= LARGEST_KEPT


# --- the file -----------------------------------------------------------------------------------------------


def _check_out(out: Path, policy: Policy, *, force: bool) -> None:
    where = out.resolve()
    if out.suffix.lower() not in KINDS or not where.parent.is_dir() or where.is_dir():
        raise InvalidArgument(
            f"{out} cannot hold the copy. Name a .parquet or .csv file in a folder that exists.",
            code="file-not-writable",
        )
    for name, table in policy.tables.items():
        source = Path(table.source).resolve()
        if where == source or source in where.parents:
            raise InvalidArgument(
                f"{out} belongs to the source of {name}. Name a file elsewhere with --out.", code="file-is-source"
            )
    if where.exists() and not force:
        raise _exists(out)


def _exists(out: Path) -> InvalidArgument:
    return InvalidArgument(
        f"{out} exists and is left as it is. Name another file with --out, or add --force.", code="file-exists"
    )


def _write(table: Any, out: Path, *, force: bool) -> None:
    """Write the whole file or nothing: it is written next to its destination, and then moved there."""
    import pyarrow.csv
    import pyarrow.parquet

    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    writer = pyarrow.parquet.write_table if out.suffix.lower() == ".parquet" else pyarrow.csv.write_csv
    try:
        with part.open("xb") as file:
            writer(table, file)
            file.flush()
            os.fsync(file.fileno())
        if force:
            part.replace(out)
        else:
            os.link(part, out)  # unlike a move, it never replaces a file that was created in between
    except FileExistsError:
        raise _exists(out) from None
    except OSError as error:
        raise InvalidArgument(
            f"{out} cannot be written: {error.strerror or 'no room'}. It is charged: name another file with --out.",
            code="file-not-writable",
        ) from None
    finally:
        part.unlink(missing_ok=True)


# --- for people ---------------------------------------------------------------------------------------------


def _report(copy: Copy, rows: int) -> Grid:
    from discreet.tables.sanitize import CONFIDENCE

    shown = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    shown.add_column("column", overflow="fold")
    shown.add_column("mechanism")
    for title in ("ε", "mean error", "least possible", f"{100 * CONFIDENCE:.6g}% within"):
        shown.add_column(title, justify="right")
    share = f"{float(exactly(copy.share.epsilon)):.3g}"
    for one in copy.columns:
        amounts = (one.mean_error(), least_error(one.space, copy.share), one.error(rows))
        method = "randomized response" if isinstance(one.noise, RandomizedResponse) else "Laplace noise"
        shown.add_row(Text(clean(one.column.name)), method, share, *(_amount(one, a) for a in amounts))
    return shown


def _amount(one: Randomized, amount: float) -> str:
    from discreet.tables.sanitize import UNITS

    if isinstance(one.noise, RandomizedResponse):
        return f"{100 * amount:.3g}% wrong"
    if one.column.type == "timestamp" and amount >= _DAY:
        return f"{_round(amount / _DAY)} days"
    return f"{_round(amount)} {UNITS[one.column.type]}s" if one.column.type in UNITS else _round(amount)


def _round(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def _summary(copy: Copy, release: Release, ledger: Ledger, out: Path, rows: int, *, again: bool) -> dict[str, str]:
    """A summary of the copy and its cost. The notes are always printed, and never depend on the data."""
    from discreet.sql.running.explanation import describe_unit

    count, share = len(copy.columns), float(exactly(copy.share.epsilon))
    notes = [
        "First, NULL and NaN become the middle of the range, and what is not among the choices the first of them.",
        "Numbers and dates outside their range are moved to its ends; that is not in the error.",
        "Rows are in a random order. Noise is not cut off at the ends of a range: that would bias means.",
    ]
    if not again:
        notes.append("The copy is too large to be kept in the ledger: asking again costs again. --key keeps it.")
    summary = {
        "copy": f"{out}: {rows:,} rows, {count} column{'' if count == 1 else 's'}",
        "dropped": ", ".join(map(clean, copy.dropped)) or "no column",
        "cost": f"{release.guarantee}, for {describe_unit(ledger.protects)}",
        "split": f"ε = {share:.6g} for each column; the columns of a record add",
        "remains": f"{ledger.remaining or 'nothing'} of {ledger.limit}",
        "receipt": f"{release.receipt}{'; answered before, at no new cost' if release.replayed else ''}",
        **{f"note {number}": note for number, note in enumerate(notes, 1)},
    }
    return summary | ({"NOT PRIVATE": "made in test mode"} if release.not_private else {})

"""`discreet sanitize`: a copy of a table, every record randomized alone, with its error beside the least possible one.

A table is read as rows in no order: they leave in a random one, or a file sorted by a value would tell it by place.
Source: [T.3.6], [T.4.7], [T.4.9], [T.4.10]; the least error [T.5.3], [T.5.5].
"""

from __future__ import annotations

import csv
import datetime
import math
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from discreet.cli.ledger_command import clean
from discreet.database import Database
from discreet.door import through
from discreet.engines.duckdb import DuckDB
from discreet.engines.words import TYPES, literal, quoted, total
from discreet.errors import InvalidArgument, NotAllowed
from discreet.guarantees.guarantee import Pure
from discreet.guarantees.least_error import least_error
from discreet.guarantees.unit import Unit, row
from discreet.ledger import Identity, Ledger, version_of
from discreet.mechanisms.combine import Composed, Each
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.randomized_response import RandomizedResponse
from discreet.policy import Policy, connect, load
from discreet.queries.space import Categories, Integers, Interval, Space
from discreet.rational import exactly
from discreet.releases import Release
from discreet.samplers import permutation
from discreet.sql.explanation import lines, protected
from discreet.sql.schema import Column, Table

CONFIDENCE = 0.95
KINDS = (".parquet", ".csv")
LARGEST_KEPT = 2**26
"""The copy of a source of up to so many bytes is kept in the ledger, so that the same request is answered for free."""
_UNITS = {"date": "day", "timestamp": "second"}
_DAY = 24 * 60 * 60


def main(
    policy: str,
    name: str,
    *,
    epsilon: float,
    out: Path,
    columns: str | None = None,
    key: str | None = None,
    analyst: str | None = None,
    force: bool = False,
) -> None:
    """Write the copy and say what it is worth; whatever can be refused is refused before anything is charged."""
    known = load(policy)
    _check_unit(known.unit)
    _check_out(out, known, force=force)
    database = connect(known, analyst=analyst)
    with closing(database), Console(stderr=True).status("Sanitizing …"):
        table = _found(database, name)
        copy = planned(table, None if columns is None else _named(columns), epsilon=epsilon)
        release = released(database, table, copy, key=key)
        sanitized = copy.as_arrow(release.value)
        _write(sanitized, out, force=force)
        rows = sanitized.num_rows
        told = _told(copy, release, database.ledger, out, rows, again=bool(key) or _is_kept(table))
    Console(highlight=False).print(_report(copy, rows))
    print(f"\n{lines(told)}")


# --- what can be copied -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Randomized:
    """One column: the space its values live in, and the noise that one value gets."""

    column: Column
    space: Space
    noise: Laplace | RandomizedResponse

    @property
    def expression(self) -> str:
        """The value as a number of the space, in the engine's words. It is NULL where it cannot be had: no row can stop
        the copy.
        """
        value, kind = quoted(self.column.name), self.column.type
        if self.column.choices is not None:
            listed = ", ".join(map(literal, self.column.choices))
            place = total(f"list_position([{listed}], TRY_CAST({value} AS {TYPES[kind]}))")
            return f"coalesce(nullif({place}, 0), 1) - 1"
        if kind in _UNITS:
            passed = f"date_diff('{_UNITS[kind]}', {literal(self.start)}, TRY_CAST({value} AS {TYPES[kind]}))"
            return f"CAST({total(passed)} AS DOUBLE)"
        return f"TRY_CAST({value} AS DOUBLE)"

    @property
    def start(self) -> Any:
        """The public moment from which days or seconds are counted."""
        low = (self.column.between or (None,))[0]
        return low.replace(microsecond=0) if isinstance(low, datetime.datetime) else low

    def as_arrow(self, drawn: Any) -> Any:
        """What was drawn, as values of the column's type; a moment beyond the years 1 to 9999 is moved to their end."""
        import pyarrow as pa

        if self.column.choices is not None:
            listed = [float(c) if self.column.type == "number" else c for c in self.column.choices]
            return pa.array(listed).take(pa.array(drawn, pa.int64()))
        if self.column.type not in _UNITS:
            return pa.array(drawn)
        unit = "D" if self.column.type == "date" else "s"
        start, *ends = np.array([self.start, "0001-01-01", "9999-12-31"], dtype=f"datetime64[{unit}]").astype(np.int64)
        moments = start + np.clip(drawn, *(end - start for end in ends))
        return pa.array(moments.astype(f"datetime64[{unit}]"))

    def mean_error(self) -> float:
        """The expected error of one value: a distance, or the probability that it is wrong."""
        if isinstance(self.noise, RandomizedResponse):
            return float(1 - exactly(self.noise.truth))
        rate = float(exactly(self.noise.step) / exactly(self.noise.scale))
        return float(exactly(self.noise.step)) * 2 * math.exp(-rate) / -math.expm1(-2 * rate)

    def error(self, rows: int) -> float:
        """What the error of a value, or the fraction of `rows` that are wrong, stays within with 95% confidence."""
        sizes = {"records": max(rows, 1)} if isinstance(self.noise, RandomizedResponse) else {}
        return float(self.noise.error(CONFIDENCE, **sizes))


@dataclass(frozen=True)
class Copy:
    """How a table is copied: its columns, each with the same share of ε, and those left out."""

    columns: tuple[Randomized, ...]
    share: Pure
    dropped: tuple[str, ...]

    @property
    def mechanism(self) -> Composed:
        """Every record alone, column by column.

        Promise: the ε of the columns of one replaced record add [T.4.7].
        """
        return Composed(mechanisms=tuple(Each(one.noise, one.space) for one in self.columns))  # type: ignore[arg-type]

    def read(self, engine: DuckDB, table: str) -> tuple[Any, ...]:
        """The true columns, their rows in one random order."""
        listed = ", ".join(f"{one.expression} AS c{number}" for number, one in enumerate(self.columns))
        found = engine.table(f"SELECT {listed} FROM {engine.relations[table]}")
        order = permutation(found.num_rows)
        return tuple(column.to_numpy()[order] for column in found.columns)

    def as_arrow(self, drawn: Sequence[Any]) -> Any:
        """The copy as a table."""
        import pyarrow as pa

        arrays = [one.as_arrow(column) for one, column in zip(self.columns, drawn, strict=True)]
        return pa.table(arrays, names=[one.column.name for one in self.columns])


def planned(table: Table, columns: Sequence[str] | None, *, epsilon: Any) -> Copy:
    """How `columns` of a table are randomized, from public facts: all that are declared, unless some are named."""
    if table.public:
        raise NotAllowed(f"{table.name} is public: nobody is protected in it. Copy it as it is.")
    declared = [c.name for c in table.columns.values() if c.between is not None or c.choices is not None]
    chosen = declared if columns is None else list(dict.fromkeys(columns))
    if not chosen:
        raise NotAllowed(f"Nothing is declared of {table.name}, so no column of it can be randomized. {_REMEDY}")
    for name in chosen:
        if name not in table.columns:
            raise InvalidArgument(f"{table.name} has no column {name}. Its columns: {', '.join(table.columns)}.")
        if name not in declared:
            raise NotAllowed(f"{name} has no declared range or choices, so it cannot be randomized. {_REMEDY}")
    share = Pure(epsilon=exactly(Pure(epsilon=epsilon).epsilon) / len(chosen))
    dropped = tuple(name for name in table.columns if name not in chosen)
    return Copy(tuple(_randomized(table.columns[name], share) for name in chosen), share, dropped)


_REMEDY = (
    "Declare between = [LOW, HIGH] or choices = […] of it in the policy, from what you know and not from the data."
)


def _randomized(column: Column, share: Pure) -> Randomized:
    if column.choices is not None:
        if len(column.choices) < 2:
            raise InvalidArgument(f"choices of {column.name} has one value only. Declare another, or leave it out.")
        places = range(len(column.choices))
        return Randomized(column, Categories(places), RandomizedResponse.for_guarantee(share, choices=places))
    assert column.between is not None
    low, high = column.between
    if column.type in _UNITS:  # so many days, or seconds, after the lower end
        passed = high - low
        low, high = 0, passed.days if column.type == "date" else math.ceil(passed.total_seconds())
    if column.type == "number" or not (float(low).is_integer() and float(high).is_integer()):
        real = Interval(low, high)
        return Randomized(column, real, Laplace.for_guarantee(share, sensitivity=real.diameter))
    whole = Integers(int(low), int(high))
    return Randomized(column, whole, Laplace.for_guarantee(share, sensitivity=whole.diameter, step=1))


def _named(columns: str) -> list[str]:
    """The names in a list with commas; quotes keep the commas of a name."""
    names = [name.strip() for name in next(csv.reader([columns], skipinitialspace=True), []) if name.strip()]
    if not names:
        raise InvalidArgument("--columns names no column. Write --columns age,city, or leave it out.")
    return names


def _found(database: Database, name: str) -> Table:
    tables = database.schema.tables
    table = next((one for one in tables.values() if one.name.lower() == name.lower()), None)
    if table is None:
        raise InvalidArgument(f"The policy has no table {name}. Its tables: {', '.join(tables)}.")
    return table


def _check_unit(unit: Unit) -> None:
    if unit != row(neighbors="replace"):
        raise NotAllowed(
            f"A sanitized copy protects single rows by replacement, and the policy protects {protected(unit)}: every "
            "record is randomized alone, and the number of rows is shown. If each person has one row and that number "
            'may be public, write row = true and neighbors = "replace" in [unit], with a ledger of its own.'
        )


# --- charge, read, randomize --------------------------------------------------------------------------------


def released(database: Database, table: Table, copy: Copy, *, key: str | None = None) -> Release:
    """The randomized columns, by the one door: charged before a row is read."""
    asked = f"sanitize {table.name}: {', '.join(one.column.name for one in copy.columns)}"
    mechanism, engine = copy.mechanism, database.engine
    if not isinstance(engine, DuckDB):
        raise NotAllowed("A sanitized copy is made from files and tables in memory only. Export the table to Parquet.")
    return through(
        lambda: copy.read(engine, table.name),
        mechanism,
        mechanism.guarantee(None),
        ledger=database.ledger,
        asked=asked,
        key=key,
        identity=_identity(asked, table, database.policy) if _is_kept(table) else None,
    )


def _identity(asked: str, table: Table, policy: str) -> Identity:
    version = version_of(table.source) if table.version is None else table.version
    return Identity(question=asked, data_version=f"{table.name}: {version}", policy=policy)


def _is_kept(table: Table) -> bool:
    source = Path(table.source)
    files = source.rglob("*") if source.is_dir() else [source]
    return sum(file.stat().st_size for file in files if file.is_file()) <= LARGEST_KEPT


# --- the file -----------------------------------------------------------------------------------------------


def _check_out(out: Path, policy: Policy, *, force: bool) -> None:
    where = out.resolve()
    if out.suffix.lower() not in KINDS or not where.parent.is_dir() or where.is_dir():
        raise InvalidArgument(f"{out} cannot hold the copy. Name a .parquet or .csv file in a folder that exists.")
    for name, table in policy.tables.items():
        source = Path(table.source).resolve()
        if where == source or source in where.parents:
            raise InvalidArgument(f"{out} belongs to the source of {name}. Name a file elsewhere with --out.")
    if where.exists() and not force:
        raise _exists(out)


def _exists(out: Path) -> InvalidArgument:
    return InvalidArgument(f"{out} exists and is left as it is. Name another file with --out, or say --force.")


def _write(table: Any, out: Path, *, force: bool) -> None:
    """The whole file or none: it is written beside its place, and moved there."""
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
            os.link(part, out)  # unlike a move, it never takes the place of a file that came in between
    except FileExistsError:
        raise _exists(out) from None
    except OSError as error:
        raise InvalidArgument(
            f"{out} cannot be written: {error.strerror or 'no room'}. It is charged: name another file with --out."
        ) from None
    finally:
        part.unlink(missing_ok=True)


# --- for people ---------------------------------------------------------------------------------------------


def _report(copy: Copy, rows: int) -> Grid:
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
    if isinstance(one.noise, RandomizedResponse):
        return f"{100 * amount:.3g}% wrong"
    if one.column.type == "timestamp" and amount >= _DAY:
        return f"{_round(amount / _DAY)} days"
    return f"{_round(amount)} {_UNITS[one.column.type]}s" if one.column.type in _UNITS else _round(amount)


def _round(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def _told(copy: Copy, release: Release, ledger: Ledger, out: Path, rows: int, *, again: bool) -> dict[str, str]:
    """What the copy is and cost, and what was done to it; the notes are said always, never because it happened."""
    count, share = len(copy.columns), float(exactly(copy.share.epsilon))
    notes = [
        "First, NULL and NaN become the middle of the range, and what is not among the choices the first of them.",
        "Numbers and dates outside their range are moved to its ends; that is not in the error.",
        "Rows are in a random order. Noise is not cut off at the ends of a range: that would bias means.",
    ]
    if not again:
        notes.append("The copy is too large to be kept in the ledger: asking again costs again. --key keeps it.")
    told = {
        "copy": f"{out}: {rows:,} rows, {count} column{'' if count == 1 else 's'}",
        "dropped": ", ".join(map(clean, copy.dropped)) or "no column",
        "cost": f"{release.guarantee}, for {protected(ledger.protects)}",
        "split": f"ε = {share:.6g} for each column; the columns of a record add",
        "remains": f"{ledger.remaining or 'nothing'} of {ledger.limit}",
        "receipt": f"{release.receipt}{'; answered before, at no new cost' if release.replayed else ''}",
        **{f"note {number}": note for number, note in enumerate(notes, 1)},
    }
    return told | ({"NOT PRIVATE": "made in test mode"} if release.not_private else {})

"""The rows of a table that are in some parts, and whose they are: blocks of time, and where people live.

Promise: the block of a row, and whether it counts in it, depend on this row alone, or with first blocks on this and
earlier rows of the same person, and where a person lives on the rows of this person alone. So no row of another unit
appears or disappears with a unit, and each unit is in one part.
"""

from __future__ import annotations

from discreet.engines.engine import Engine
from discreet.sql.blocks import EPOCH, FirstBlocks, number_of, read_name
from discreet.sql.expressions import Field
from discreet.sql.living import homes_named
from discreet.sql.pricing.relation import Blocks, Homes, Scan
from discreet.sql.schema import Column


def rows_in_parts(scan: Scan, engine: Engine) -> str:
    """The rows of a table that count, as a query, each with the key of its unit."""
    quoted = engine.dialect.quote
    columns = ", ".join(f"{quoted(field.name)} AS {quoted(field.id)}" for field in scan.fields)
    rows = f"SELECT {columns} FROM {engine.relations[scan.table.name]}"
    shown = [quoted(field.id) for field in scan.fields]
    if scan.homes is not None and scan.person is not None:
        rows = _of_homes(rows, shown, scan, scan.homes, engine)
    if scan.blocks is not None:
        rows = _in_blocks(rows, shown, scan.blocks, scan.person, engine)
    return rows


# --- blocks of time -----------------------------------------------------------------------------------------


def _in_blocks(rows: str, shown: list[str], blocks: Blocks, person: Field | None, engine: Engine) -> str:
    """Rows with their blocks. The names of fields are c0, c1, …, so no field is called `block`."""
    starts = [f"{_start(blocks.time, blocks, engine)} AS happened"]
    block, conditions = "happened", list[str]()
    if blocks.arrived is not None:
        starts.append(f"{_start(blocks.arrived, blocks, engine)} AS arrived")
        if blocks.late == "drop":
            # without a time a row is in no block that could have ended; without its arrival it may be late
            conditions.append("(happened IS NULL OR coalesce(arrived <= happened, FALSE))")
        else:
            known = "happened IS NOT NULL AND arrived IS NOT NULL"
            block = f"CASE WHEN {known} THEN greatest(happened, arrived) END"
    rows = f"SELECT {', '.join([*shown, *starts])} FROM ({rows}) AS one"
    placed = f"SELECT *, {block} AS block FROM ({rows}) AS one"
    if blocks.first is not None and blocks.whose is not None:
        placed = _in_turn(placed, blocks.first, blocks, engine.dialect.quote(blocks.whose.id), conditions)
        conditions = [f"turn <= {blocks.first.most}"]
    if blocks.parts is not None:
        conditions.append(_is_among("block", blocks))
    columns = list(shown)
    if blocks.person is not None and person is not None:
        key = engine.dialect.unit_key("block", engine.dialect.quote(blocks.person.id))
        columns.append(f"{key} AS {engine.dialect.quote(person.id)}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(columns)} FROM ({placed}) AS one{where}"


def _in_turn(placed: str, first: FirstBlocks, blocks: Blocks, whose: str, conditions: list[str]) -> str:
    """Rows with the number of their block among the blocks in which the same person has rows that count.

    Promise: it depends on the rows of this person in this block and in earlier ones only.
    """
    ends = [read_name(blocks.block, name) for name in (first.start, first.end)]
    among = " AND ".join(f"block {sign} {number_of(end)}" for sign, end in zip((">=", "<="), ends, strict=True) if end)
    kept = f"SELECT * FROM ({placed}) AS one WHERE {' AND '.join([*conditions, among])}"
    return f"SELECT *, dense_rank() OVER (PARTITION BY {whose} ORDER BY block) AS turn FROM ({kept}) AS one"


def _start(time: Field, blocks: Blocks, engine: Engine) -> str:
    """The block of a day or moment, as the number of its first day. NULL if it is none that Python has."""
    dialect = engine.dialect
    moment = dialect.group_key(dialect.quote(time.id), time.type)
    first = dialect.operation("truncate", [moment], [time.type], time.type, blocks.block)
    return dialect.total(
        dialect.operation("days_between", [dialect.literal(EPOCH), first], ["date", time.type], "integer")
    )


def _is_among(block: str, blocks: Blocks) -> str:
    starts = [read_name(blocks.block, part) for part in blocks.parts or ()]
    numbers = ", ".join(str(number_of(start)) for start in starts if start is not None)
    tests = [f"{block} IN ({numbers})"] if numbers else []
    return f"({' OR '.join([*tests, *([f'{block} IS NULL'] if None in starts else [])])})"


# --- where people live --------------------------------------------------------------------------------------


def _of_homes(rows: str, shown: list[str], scan: Scan, homes: Homes, engine: Engine) -> str:
    """The rows of people who live in some parts. In the table that says where, only those that say it."""
    quoted, own = engine.dialect.quote, scan.table.name == homes.table.name
    named = {field.name: quoted(field.id) for field in scan.fields}
    names = homes_named(homes.column)
    none = len(names) - 1
    place = _place(quoted(homes.column.name), homes.column, engine)
    person = quoted(str(homes.table.person))
    listed = f"SELECT {person} AS resident, {place} AS place FROM {engine.relations[homes.table.name]}"
    first = f"SELECT resident, min(place) AS home FROM ({listed}) AS one WHERE resident IS NOT NULL GROUP BY resident"
    conditions = []
    if own:
        conditions.append(
            f"coalesce({_place(named[homes.column.name], homes.column, engine)}, {none}) = coalesce(home, {none})"
        )
    if homes.parts is not None:
        numbers = ", ".join(str(names.index(part)) for part in homes.parts)
        conditions.append(f"coalesce(home, {none}) IN ({numbers})")
    on = f"{named[str(scan.table.person)]} = resident"
    where = f" WHERE {' AND '.join(conditions)}"
    return f"SELECT {', '.join(shown)} FROM ({rows}) AS one LEFT JOIN ({first}) AS other ON {on}{where}"


def _place(value: str, column: Column, engine: Engine) -> str:
    """The place of a value among the declared ones, the next number for any other value, and NULL for NULL."""
    dialect = engine.dialect
    known = dialect.group_key(value, column.type)
    choices = column.choices or ()
    whens = " ".join(f"WHEN {known} = {dialect.literal(one)} THEN {n}" for n, one in enumerate(choices))
    return f"CASE WHEN {value} IS NULL THEN NULL {whens} ELSE {len(choices)} END"

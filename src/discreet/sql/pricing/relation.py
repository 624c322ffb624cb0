"""Relations in which every row belongs to one person, or to nobody: the result of FROM and WHERE.

A row of a private relation is made only from the rows of one person and from public rows. So if one person is added or
removed, the rows of all others stay as they are, and it is enough to bound each person's rows at the end. If single
rows are protected, a row of a join may be made from several. `stability` says how many change with one.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from discreet.errors import NotAllowed, QueryError
from discreet.guarantees.unit import Block
from discreet.ledger.texts.exact import LATER
from discreet.sql.blocks import FirstBlocks
from discreet.sql.expressions import Call, Const, Expr, Field, Origin, Ref, conjuncts
from discreet.sql.schema import AUTO, Column, Schema, Table, Type

Pairs = tuple[tuple[Field, Field], ...]


class Relation:
    """Rows with fields. `person` is the field that says who owns a row. None for public rows and for the unit
    `row()`.
    """

    fields: tuple[Field, ...]
    person: Field | None

    @property
    def sources(self) -> tuple[Relation, ...]:
        """The relations that it is made from."""
        raise NotImplementedError

    @property
    def public(self) -> bool:
        """Whether it protects nobody."""
        return all(source.public for source in self.sources)

    def tables(self, *, owners: bool = False) -> Iterator[Table]:
        """The tables that it reads. With `owners`, also those that only say who owns a row, or whether it is kept."""
        for source in self.sources:
            yield from source.tables(owners=owners)


@dataclass(frozen=True)
class Blocks:
    """In which block of time each row of a table is, and which of them count.

    The block depends on the row alone: on its `time`, and if rows can be late, on when it `arrived`. Only rows in
    `parts` count, or all if there are none. `person` identifies a person in the table, if a unit is one person in one
    block: then the field that says who owns a row is the pair of both. With `first`, only the first few blocks of each
    person (`whose`) count.
    """

    block: Block
    time: Field
    arrived: Field | None
    late: str | None
    parts: tuple[str, ...] | None
    person: Field | None
    first: FirstBlocks | None = field(default=None, metadata=LATER)
    whose: Field | None = field(default=None, metadata=LATER)


@dataclass(frozen=True)
class Homes:
    """Where each person lives, and which people count.

    It is the first of the declared values that `column` has in the rows of the person in `table`, or "other" or "null".
    Rows of that table with another value count nowhere. Only people who live in `parts` count, or all if there are
    none.
    """

    table: Table
    column: Column
    parts: tuple[str, ...] | None


@dataclass(frozen=True)
class Scan(Relation):
    """A table as it is, or its rows in some parts: blocks of time, or where people live."""

    table: Table
    fields: tuple[Field, ...]
    person: Field | None
    blocks: Blocks | None = field(default=None, metadata=LATER)
    homes: Homes | None = field(default=None, metadata=LATER)

    @property
    def sources(self) -> tuple[Relation, ...]:
        return ()

    @property
    def public(self) -> bool:
        return self.table.public

    def tables(self, *, owners: bool = False) -> Iterator[Table]:
        yield self.table
        if owners and self.homes is not None and self.homes.table.name != self.table.name:
            yield self.homes.table


@dataclass(frozen=True)
class Led(Relation):
    """A table whose rows lead to their person through a key of another table: each row once for each of its owners.

    The rows of one owner do not depend on the others: a row that leads to two people stays if one of them is removed.
    """

    scan: Scan
    key: Field
    owners: Relation
    owners_key: Field
    person: Field

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return self.scan.fields

    @property
    def sources(self) -> tuple[Relation, ...]:
        return (self.scan,)

    def tables(self, *, owners: bool = False) -> Iterator[Table]:
        yield self.scan.table
        if owners:
            yield from self.owners.tables(owners=True)


@dataclass(frozen=True)
class _OfOne(Relation):
    """A relation made from one other relation."""

    source: Relation

    @property
    def sources(self) -> tuple[Relation, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Where(_OfOne):
    """The rows for which a condition holds."""

    condition: Expr

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return self.source.fields

    @property
    def person(self) -> Field | None:  # type: ignore[override]
        return self.source.person


@dataclass(frozen=True)
class Test:
    """Whether some row of `rows` meets a row, so that `condition` holds for both. `field` is true if one does.

    The rows are public, or the condition sets their person equal to that of the row.
    """

    field: Field
    rows: Relation
    condition: Expr


@dataclass(frozen=True)
class _Testing(_OfOne):
    """A relation whose rows are tested: IN and EXISTS with a query.

    What a test says of a row of a person depends on the rows of this person and on public rows only.
    """

    tests: tuple[Test, ...]

    @property
    def person(self) -> Field | None:  # type: ignore[override]
        return self.source.person

    def tables(self, *, owners: bool = False) -> Iterator[Table]:
        yield from self.source.tables(owners=owners)
        for test in self.tests if owners else ():
            yield from test.rows.tables(owners=True)


@dataclass(frozen=True)
class Tested(_Testing):
    """The rows for which a condition holds that depends on tests."""

    condition: Expr

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return self.source.fields


@dataclass(frozen=True)
class Marked(_Testing):
    """All rows, with what the tests say of each."""

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return (*self.source.fields, *(test.field for test in self.tests))


@dataclass(frozen=True)
class Total(_OfOne):
    """One row for all rows of a public relation: aggregates (count, distinct, sum, avg, min, max)."""

    columns: tuple[tuple[Field, str, Expr], ...]
    person: None = None

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return tuple(field for field, _, _ in self.columns)


@dataclass(frozen=True)
class Few(_OfOne):
    """At most `most` rows for each value of a key, chosen at random, if rows are protected one by one. `found` is the
    column whose frequency must be found before `most` is known.
    """

    key: Field
    most: int
    found: Origin | None
    person: None = None

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return self.source.fields


@dataclass(frozen=True)
class Project(_OfOne):
    """Expressions over each row under new names, and its person."""

    columns: tuple[tuple[Field, Expr], ...]
    person: Field | None

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return tuple(field for field, _ in self.columns)


@dataclass(frozen=True)
class PerPerson(_OfOne):
    """One row for each person and combination of keys: the keys, and aggregates (count, distinct, sum, avg, min, max)
    of that person's rows. `once` if the person is the only key. Public rows are combined in the same way.
    """

    keys: tuple[Expr, ...]
    columns: tuple[tuple[Field, str, Expr], ...]
    person: Field | None
    once: bool

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return tuple(field for field, _, _ in self.columns)


@dataclass(frozen=True)
class Over:
    """A function of the rows of one person (a window): which rows are taken, in which order, and what of them.

    `by` are keys besides the person. `order` has values, whether each descends, and whether NULL comes first. `frame`
    are the first and last row that count, as distances from the row at hand, or None: without an end. Without a frame,
    all rows up to those that are equal in order count. `total` if the order is made total by all other columns.
    """

    word: str
    value: Expr | None
    by: tuple[Expr, ...]
    order: tuple[tuple[Expr, bool, bool], ...]
    frame: tuple[int | None, int | None] | None
    total: bool
    offset: int = 1


@dataclass(frozen=True)
class Windowed(_OfOne):
    """Rows with functions of all rows of the same person."""

    columns: tuple[tuple[Field, Over], ...]

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return (*self.source.fields, *(field for field, _ in self.columns))

    @property
    def person(self) -> Field | None:  # type: ignore[override]
        return self.source.person


@dataclass(frozen=True)
class _OfTwo(Relation):
    """A relation made from two other relations."""

    left: Relation
    right: Relation

    @property
    def sources(self) -> tuple[Relation, ...]:
        return self.left, self.right


@dataclass(frozen=True)
class Join(_OfTwo):
    """Pairs of rows that satisfy `condition`, which sets `pairs` of fields equal. A left join also keeps the left rows
    without a match. A full join keeps those of both sides, and its person is that of either.
    """

    condition: Expr
    kind: Literal["inner", "left", "full"]
    person: Field | None
    pairs: Pairs

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return (*self.left.fields, *self.right.fields)


@dataclass(frozen=True)
class Beside(_OfTwo):
    """The rows of the left, each with the one row of the right, which is public."""

    @property
    def fields(self) -> tuple[Field, ...]:  # type: ignore[override]
        return (*self.left.fields, *self.right.fields)

    @property
    def person(self) -> Field | None:  # type: ignore[override]
        return self.left.person


@dataclass(frozen=True)
class Both(_OfTwo):
    """The rows of two relations together (UNION ALL), column by column under new names."""

    fields: tuple[Field, ...]
    person: Field | None


def equal_fields(left: Relation, right: Relation, condition: Expr) -> Pairs:
    """The pairs of a field of the left and a field of the right that a condition makes equal."""
    found = []
    for part in conjuncts(condition):
        match part:
            case Call(op="eq", args=(Ref(field=first), Ref(field=second))):
                found += [(a, b) for a, b in ((first, second), (second, first)) if _has(left, a) and _has(right, b)]
    return tuple(found)


def _has(relation: Relation, field: Field) -> bool:
    return field in relation.fields or field == relation.person


def parts_of(relation: Relation) -> list[Relation]:
    """A relation and everything it is made from."""
    beside = [relation.owners] if isinstance(relation, Led) else []
    beside += [test.rows for test in relation.tests] if isinstance(relation, _Testing) else []
    return [relation, *(part for source in (*relation.sources, *beside) for part in parts_of(source))]


def parts_read(relation: Relation) -> tuple[str, ...] | None:
    """The parts that its private rows are in. None if all of them count."""
    for part in parts_of(relation):
        kept = (part.blocks, part.homes) if isinstance(part, Scan) else ()
        if found := [one.parts for one in kept if one is not None and one.parts is not None]:
            return found[0]
    return None


def rows_of_person(relation: Relation) -> int | None:
    """How many rows of a relation one person may have, according to the declarations of its tables. None if a table
    declares nothing.
    """
    match relation:
        case Scan(table=table) | Led(scan=Scan(table=table)):
            return 1 if table.public else table.rows_per_person
        case PerPerson(once=True):
            return 1
        case Where(source=source, condition=condition):
            # WHERE k <= 3, if k numbers the rows of each person
            said = [_last_number(source, part) for part in conjuncts(condition)]
            return min((most for most in (rows_of_person(source), *said) if most is not None), default=None)
    rows = [rows_of_person(source) for source in relation.sources]
    known = [number for number in rows if number is not None]
    if len(known) < len(rows):
        return None
    return sum(known) if isinstance(relation, Both) or _keeps_both(relation) else max(known)


def _last_number(relation: Relation, condition: Expr) -> int | None:
    """How many rows of one person can have numbers for which a condition holds. None if it says nothing about them."""
    match condition:
        case Call(op="eq", args=(Ref(field=field), Const(value=int()))) if _numbers(relation, field):
            return 1
        case Call(op="le" | "lt" as op, args=(Ref(field=field), Const(value=int() as last))) if _numbers(
            relation, field
        ):
            return max(1, last - (op == "lt"))
    return None


def _numbers(relation: Relation, field: Field) -> bool:
    """Whether a field numbers the rows of each person: ROW_NUMBER() OVER (PARTITION BY person …)."""
    match relation:
        case Windowed(source=source, columns=columns):
            over = next((over for shown, over in columns if shown == field), None)
            whole = over is not None and all(isinstance(key, Ref) and key.field == source.person for key in over.by)
            return whole and over is not None and over.word == "row_number"
        case Project(source=source, columns=listed):
            copied = next((e.field for shown, e in listed if shown == field and isinstance(e, Ref)), None)
            return copied is not None and _numbers(source, copied)
        case Where(source=source) | Tested(source=source):
            return _numbers(source, field)
    return False


def _keeps_both(relation: Relation) -> bool:
    """Whether a person can have unmatched rows of both sides of a join: not if only people are compared."""
    if not isinstance(relation, Join) or relation.kind != "full":
        return False
    people = {relation.left.person, relation.right.person}
    return any(set(part.fields()) != people for part in conjuncts(relation.condition))


MOST_JOINED = 2**27
"""A person whose declared rows are joined to more than these would be seen by the time and memory that it takes."""
ASSUMED_ROWS = 16
"""So many rows of a person count in a join if a table declares nothing: few joins pass, and many are refused."""


def rows_joined(relation: Relation) -> int:
    """How many rows the joins make from the declared rows of one person, before any are left out."""
    match relation:
        case Join(left=left, right=right, kind=kind) if not left.public and not right.public:
            alone = rows_joined(left) + rows_joined(right) if kind == "full" else 0
            return rows_joined(left) * rows_joined(right) + alone
        case Both(left=left, right=right):
            return rows_joined(left) + rows_joined(right)
        case Scan() | Led() | PerPerson(once=True):
            return rows_of_person(relation) or ASSUMED_ROWS
    return max(rows_joined(source) for source in relation.sources)


def rows_compared(relation: Relation) -> int:
    """How many rows of one person the engine may make or compare: for a test, each row with each of the other ones."""
    tested = [
        (part.source, test.rows) for part in parts_of(relation) if isinstance(part, _Testing) for test in part.tests
    ]
    compared = [rows_joined(source) * rows_joined(rows) for source, rows in tested if not rows.public]
    return max([rows_joined(relation), *compared])


def most_with(relation: Relation, key: Field) -> int | None:
    """How many rows of a relation may share a value of this field, if that is enforced."""
    match relation:
        case Few(key=bounded, most=most) if key == bounded:
            return most
        case Few(source=source) | Where(source=source) | _Testing(source=source) | Beside(left=source):
            return most_with(source, key)
        case Project(source=source, columns=columns):
            copied = next((e.field for field, e in columns if field == key and isinstance(e, Ref)), None)
            return None if copied is None else most_with(source, copied)
        case Join(left=left, right=right, pairs=((first, second),)) if key in (first, second):
            sides = most_with(left, first), most_with(right, second)
            return sides[0] * sides[1] if sides[0] is not None and sides[1] is not None else None
    return None


MOST_SCANS, MOST_FIELDS = 256, 100_000
"""A larger plan would keep everybody waiting: a query in WITH that uses another one twice doubles what comes before."""
_REPEATED = "Each use of a query in WITH or FROM counts as a whole: use them less often."


class Names:
    """Unique names for the fields of a question. The same question is always printed in the same way."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._fields, self._scans = 0, 0

    def fresh(self, name: str, like: Field) -> Field:
        """A new field with the values of another."""
        self._fields += 1
        if self._fields > MOST_FIELDS:
            raise QueryError(
                f"This query has more than {MOST_FIELDS:,} columns in all. {_REPEATED}", code="sql-too-complex"
            )
        return replace(like, id=f"c{self._fields - 1}", name=name)

    def scan(self, table: Table) -> Relation:
        """A table, with field names that differ from those of every other use of it."""
        unit = self.schema.unit
        self._scans += 1
        if self._scans > MOST_SCANS:
            raise QueryError(
                f"This query reads tables more than {MOST_SCANS} times. {_REPEATED}", code="sql-too-complex"
            )
        fields = tuple(self.fresh(column.name, _field(table, column)) for column in table.columns.values())
        named = {field.name: field for field in fields}
        if table.public:
            return Scan(table, fields, None)
        if unit.column is None:
            return Scan(table, fields, None, self._blocks(table, named))
        if table.person is not None:
            owner = named[table.person]
            if unit.per is not None:
                owner = self.fresh("", Field("", "", "text", origin=owner.origin))
            return Scan(table, fields, owner, self._blocks(table, named), self._homes(table))
        own, other, key = table.path
        owners = self.scan(self.schema.tables[other])
        assert owners.person is not None  # the schema has checked that every private table leads to the person
        found = next(field for field in owners.fields if field.name == key)
        return Led(Scan(table, fields, None), named[own], owners, found, self.fresh("", owners.person))

    def _blocks(self, table: Table, named: dict[str, Field]) -> Blocks | None:
        """How the rows of a table are divided into blocks of time, if that decides which of them count or whose they
        are.
        """
        unit, time = self.schema.unit, table.time
        parts = None if unit.lives_in is not None else self.schema.parts
        if time is None:
            if parts is None:
                return None
            raise NotAllowed(
                f"{table.name} does not say when its rows happened, so it has no part of these names. Ask about all of "
                f'it, or add [tables.{table.name}.time] with column = "day".',
                code="part-table",
            )
        person = named[str(table.person)] if unit.per is not None and unit.column is not None else None
        if parts is None and person is None and time.late is None:
            return None
        arrived = None if time.arrived is None else named[time.arrived]
        blocks = Blocks(time.block, named[time.column], arrived, time.late, parts, person)
        if self.schema.first_blocks is None or table.person is None:
            return blocks
        return replace(blocks, first=self.schema.first_blocks, whose=named[table.person])

    def _homes(self, table: Table) -> Homes | None:
        """Where people live, if that decides which rows of a table count."""
        if self.schema.unit.lives_in is None:
            return None
        home, column = self.schema.home
        parts = self.schema.parts
        return None if parts is None and home.name != table.name else Homes(home, column, parts)


DEFAULTS: dict[Type, tuple[Any, Any]] = {
    "integer": (0, 1),
    "number": (0, 1),
    "date": (datetime.date(2000, 1, 1), datetime.date(2000, 1, 2)),
    "timestamp": (datetime.datetime(2000, 1, 1), datetime.datetime(2000, 1, 2)),
}
"""A range that is to be found, as long as it is not; and when too few people have values to find it from."""


def _field(table: Table, column: Column) -> Field:
    """A column as a field. If its range must be found, it has the default until then."""
    origin = table.name, column.name
    known = Field("", column.name, column.type, None, column.choices, origin, column.frequency, other=column.other)
    if column.between == AUTO:
        return replace(known, between=DEFAULTS.get(column.type), found=frozenset({origin}))
    return replace(known, between=column.between)

"""What one unit may contribute to an answer: the bounds declared for a person, or how often joins repeat a single row.

If people are protected, bounds are declared and enforced after the last join. If rows are protected, a join repeats
them. Then the bound is elastic sensitivity [T.R7.2], with frequencies that are known for public tables and enforced for
private ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from discreet.engines.dialect import ROWS_OF_ONE
from discreet.errors import InvalidArgument, NotAllowed
from discreet.guarantees.unit import Unit
from discreet.sql.expressions import Field, Ref
from discreet.sql.pricing.relation import (
    MOST_JOINED,
    Both,
    Few,
    Join,
    Relation,
    Scan,
    most_with,
    parts_of,
    rows_compared,
    rows_of_person,
)
from discreet.sql.question import Bounds, Key, Question
from discreet.sql.schema import BOUNDS, validate_bound

Frequency = Callable[[Relation, tuple[Field, ...]], int]
"""How many rows of a public relation share the values of these fields, at most."""


def bounds_of(
    question: Question, groups: int, frequency: Frequency, asked: Mapping[str, int], unit: Unit
) -> Bounds | None:
    """The bounds of one person, which a question may lower, of one row that joins repeat, or of a few rows. None for a
    row that appears once, and for a person whose rows nobody bounds. `groups` is the total number of groups.
    """
    relation = question.relation
    if relation.person is None:
        if asked:
            raise InvalidArgument(
                "Single rows are protected, so bounds= has no meaning here. Remove it.", code="rows-protected"
            )
        repeated = _repeated(question, frequency)
        return (
            repeated if unit.most_rows == 1 else _of_several(question, unit, 1 if repeated is None else repeated.rows)
        )
    if (joined := rows_compared(relation)) > MOST_JOINED:
        raise NotAllowed(
            f"One person could have {joined:,} joined rows, and at most {MOST_JOINED:,} are supported. Join fewer of a "
            "person's tables, or group each by the person first.",
            code="sql-join-too-many",
        )
    rows = rows_known(relation, asked)
    if rows is None:
        return None
    if not question.keys:
        return Bounds(rows, 1, rows)
    private = [table for table in relation.tables() if not table.public]
    declared = [t.groups_per_person for t in private if isinstance(t.groups_per_person, int)]
    in_group = [t.rows_per_group for t in private if t.rows_per_group is not None]
    most_groups = min([rows, *declared, groups, asked.get("groups_per_person", rows)])
    return Bounds(rows, most_groups, min([rows, *in_group, asked.get("rows_per_group", rows)]))


def rows_known(relation: Relation, asked: Mapping[str, int]) -> int | None:
    """How many rows of one person are used: as declared, or as few as the question says. None if nobody says it."""
    said = [rows for rows in (rows_of_person(relation), asked.get("rows_per_person")) if rows is not None]
    return min(said, default=None)


def validate_bounds(given: Mapping[str, int] | None) -> dict[str, int]:
    """The bounds of one question: public numbers, under the names that the policy uses."""
    if not isinstance(given, Mapping | None):
        raise InvalidArgument('bounds must name what to lower, such as {"rows_per_person": 3}.', code="wrong-type")
    for name in given or ():
        if name not in BOUNDS:
            raise InvalidArgument(f"bounds has no {name}. Known: {', '.join(BOUNDS)}.", code="not-an-option")
    return {name: validate_bound(value, f"{name} of bounds") for name, value in (given or {}).items()}


def _repeated(question: Question, frequency: Frequency) -> Bounds | None:
    most = max(stability(question.relation, frequency).values())
    if most == 1:
        return None
    if most > ROWS_OF_ONE:
        raise NotAllowed(
            f"One row could be in {most:,} joined rows. Declare lower frequencies, or join fewer tables.",
            code="sql-join-too-many",
        )
    swapped = any(isinstance(one, Few) for one in parts_of(question.relation))
    if any(key.domain is None for key in question.keys):
        raise NotAllowed(
            "A join repeats rows, so one row could make a group appear. Declare the keys (choices or between).",
            code="sql-join-open-keys",
        )
    if swapped and any(measure.is_chosen for measure in question.measures):
        raise NotAllowed(
            "Quantiles and MODE of joined rows are not supported where rows are protected. Protect people.",
            code="sql-join-quantile",
        )
    return Bounds(most, most if question.keys else 1, most, swapped=swapped)


def _of_several(question: Question, unit: Unit, repeated: int) -> Bounds:
    """The bounds of a few rows, each of which joins with public tables repeat.

    Promise: each row moves the answer by itself, so a few rows move it by as many times what one moves. If the answer
    is grouped by the column `by`, each group has the rows of one group of the unit, and a unit is in so many groups.
    """
    if any(isinstance(one, Few) for one in parts_of(question.relation)):
        raise NotAllowed(
            "A join of private tables is not supported where several rows are protected at once: their rows meet. "
            "Ask about one table, or protect people.",
            code="sql-join-several-rows",
        )
    most = unit.most_rows * repeated
    if most > ROWS_OF_ONE:
        raise NotAllowed(
            f"The protected rows could be in {most:,} joined rows. Protect fewer, or join fewer tables.",
            code="sql-join-too-many",
        )
    if not question.keys:
        return Bounds(most, 1, most)
    if unit.groups is None or not any(_is_group(key, unit, question.relation) for key in question.keys):
        return Bounds(most, most, most)
    return Bounds(most, unit.groups if len(question.keys) == 1 else most, most // unit.groups)


def _is_group(key: Key, unit: Unit, relation: Relation) -> bool:
    """Whether a key is the column `by` itself, so that no group of the answer has rows of two of its groups. A union
    may put two columns into one, and what the policy moves to one value is one group.
    """
    scans = [part.table.name for part in parts_of(relation) if isinstance(part, Scan) and not part.public]
    if len(scans) != 1 or not isinstance(key.expr, Ref) or key.expr.field.origin != (scans[0], unit.by):
        return False
    column = key.expr.field
    kept = column.other is None and column.between is None
    return kept and (column.choices is not None or column.type in ("integer", "date", "boolean"))


def stability(relation: Relation, frequency: Frequency) -> Counter[str]:
    """For each private table: the maximum number of rows of the relation that change with one row of that table.

    Promise: on a join, rows of the left that come or go meet at most as many rows of the right as share a key there,
    and the other way round, as both sides keep within their frequencies before and after.
    """
    match relation:
        case Scan(table=table):
            return Counter() if table.public else Counter({table.name: 1})
        case Few(source=source):
            # a row that is added can displace another one
            return _times(stability(source, frequency), 2)
        case Both(left=left, right=right):
            return stability(left, frequency) + stability(right, frequency)
        case Join(left=left, right=right, pairs=pairs):
            keys = tuple(zip(*pairs, strict=True))
            return _met(left, right, keys[1], frequency) + _met(right, left, keys[0], frequency)
    return sum((stability(source, frequency) for source in relation.sources), Counter())


def _met(side: Relation, other: Relation, keys: tuple[Field, ...], frequency: Frequency) -> Counter[str]:
    """How many joined rows change with the rows of one side, each of which matches at most this many rows of
    the other.
    """
    if side.public:
        return Counter()
    if other.public:
        return _times(stability(side, frequency), max(1, frequency(other, keys)))
    most = most_with(other, keys[0])
    assert most is not None  # protected rows are joined only within enforced frequencies
    return _times(stability(side, frequency), most)


def _times(counts: Counter[str], factor: int) -> Counter[str]:
    return Counter({name: count * factor for name, count in counts.items()})

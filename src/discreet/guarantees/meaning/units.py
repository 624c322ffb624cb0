"""From one unit to a larger one: what protects one person in one month, said of a person over several months."""

from __future__ import annotations

from dataclasses import replace

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import check_count
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.meaning.groups import for_group
from discreet.guarantees.unit import BLOCKS, Block, Unit

_MOST: dict[tuple[Block, Block], int] = {
    ("day", "week"): 7,
    ("day", "month"): 31,
    ("day", "quarter"): 92,
    ("day", "year"): 366,
    ("week", "month"): 6,
    ("week", "quarter"): 14,
    ("week", "year"): 54,
    ("month", "quarter"): 3,
    ("month", "year"): 12,
    ("quarter", "year"): 4,
}
"""How many blocks of the first kind a block of the second kind meets at most."""


def for_unit(guarantee: Guarantee, unit: Unit, *, times: int | None = None) -> Guarantee:
    """The guarantee said of a larger unit that consists of at most `times` units of the smaller one.

    One person in one month becomes a person over `times` months, and one row a person with at most `times` rows: say
    how many it can be. A day becomes a week or a month without being told, and one row a few rows. Any other unit is
    refused.

    Promise: two data sets that differ in one larger unit are `times` neighbors of the smaller unit apart. The result is
    the guarantee for such a group [for_group]; it holds for larger units with at most `times` smaller ones.

    >>> from discreet import Pure, person
    >>> for_unit(Pure(epsilon=0.5, protects=person("id", per="month")), person("id"), times=12)
    Pure(epsilon=Fraction(6, 1), protects=person('id'))
    >>> from discreet import row
    >>> for_unit(Pure(epsilon=0.5, protects=row()), row(times=3, groups=2, by="region"))
    Pure(epsilon=Fraction(3, 1), protects=row(times=3, groups=2, by='region'))
    """
    own = guarantee.protects
    if not isinstance(unit, Unit):
        raise InvalidArgument("unit must be dp.person(…).", code="wrong-type")
    rows = own is not None and own.column is None and unit.column is None and own.by is None  # exchanged one for one
    if (
        own is None
        or own.neighbors != unit.neighbors
        or (own.neighbors == "replace" and not rows and not own.same_kind(unit))
    ):
        raise IncompatibleGuarantee(
            f"The guarantee protects {own!r}, and {unit!r} is asked for. Only units that are added or removed are "
            "counted in smaller ones: a replaced one may have more of them or fewer."
        )
    if own.same_kind(unit):
        return replace(guarantee, protects=unit)
    return replace(for_group(guarantee, _number(own, unit, times)), protects=unit)


def _number(own: Unit, unit: Unit, times: int | None) -> int:
    """How many of the units it has are in one of those asked for."""
    if own.column is None and unit.column is None:
        return _number_of_rows(own, unit, times)
    rows = own.column is None and unit.column is not None and own.by is None
    rows = rows and (own.per is None or own.most_rows == 1)
    blocks = own.column is not None and own.column == unit.column and own.per is not None
    if (rows or (blocks and unit.per is None)) and times is not None:
        return -(-check_count(times, "times") // own.most_rows)
    if rows or (blocks and unit.per is None):
        what = "rows one unit has" if rows else f"{own.per}s one person is counted in"
        raise InvalidArgument(f"Say how many {what} at most: times=12.", code="times-missing")
    if blocks and unit.per is not None and own.per is not None and (known := _MOST.get((own.per, unit.per))):
        if times is not None:
            raise InvalidArgument(
                f"A {unit.per} meets at most {known} of these {own.per}s. Leave times out.",
                code="conflicting-arguments",
            )
        return known
    raise IncompatibleGuarantee(
        f"What protects {own!r} says nothing about {unit!r}. A larger unit is a person for a row or for one of "
        f"{', '.join(BLOCKS)}, or a longer block of time."
    )


def _number_of_rows(own: Unit, unit: Unit, times: int | None) -> int:
    """How many of the rows, or sets of a few rows, make up the larger set.

    Promise: a set of at most k rows is ⌈k/m⌉ sets of at most m. If both count groups of one column, it is cut in each
    group, and its groups are divided.
    """
    if times is not None:
        raise InvalidArgument("The unit says how many rows it has. Leave times out.", code="conflicting-arguments")
    if unit.most_rows == 1:
        return 1
    if own.per not in (None, unit.per) and own.most_rows > 1:
        raise IncompatibleGuarantee(f"What protects {own!r}, in one {own.per}, says nothing about {unit!r}.")
    if own.by is None:
        return -(-unit.most_rows // own.most_rows)
    if own.by == unit.by:
        in_group, groups = (-(-int(getattr(unit, name)) // int(getattr(own, name))) for name in ("times", "groups"))
        return in_group * groups
    raise IncompatibleGuarantee(
        f"What protects {own!r} says nothing about {unit!r}: it counts groups of {own.by}. Name the same column."
    )

"""From one unit to a larger one."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import pytest

from discreet import Approx, Pure, person, row
from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.guarantees.meaning.units import _MOST, for_unit
from discreet.guarantees.unit import Unit
from discreet.sql.blocks import name_of

MONTH, WHOLE = person("id", per="month"), person("id")


def test_a_person_over_several_months_is_a_group_of_units() -> None:
    assert for_unit(Pure(epsilon=0.5, protects=MONTH), WHOLE, times=12) == Pure(epsilon=6, protects=WHOLE)
    one = for_unit(Approx(epsilon=1, delta=1e-9, protects=MONTH), WHOLE, times=2)
    assert one.protects == WHOLE
    assert one.epsilon == 2
    assert 3.7e-9 < float(one.delta) < 3.8e-9
    assert for_unit(Pure(epsilon=1, protects=row()), WHOLE, times=3) == Pure(epsilon=3, protects=WHOLE)
    assert for_unit(Pure(epsilon=1, protects=row()), MONTH, times=3) == Pure(epsilon=3, protects=MONTH)


def test_the_same_people_wherever_they_live() -> None:
    home = person("id", lives_in="region")
    assert for_unit(Pure(epsilon=1, protects=home), WHOLE) == Pure(epsilon=1, protects=WHOLE)


@pytest.mark.parametrize(("short", "long"), _MOST)
def test_a_long_block_meets_so_many_short_ones(short: Any, long: Any) -> None:
    """Over 28 years, after which weekdays and leap years repeat themselves."""
    met: dict[str, set[str]] = {}
    day, last = datetime.date(2000, 1, 1), datetime.date(2028, 1, 1)
    while day < last:
        met.setdefault(name_of(long, day), set()).add(name_of(short, day))
        day += datetime.timedelta(days=1)
    assert max(map(len, met.values())) == _MOST[short, long]
    stated = for_unit(Pure(epsilon=1, protects=person("id", per=short)), person("id", per=long))
    assert stated == Pure(epsilon=_MOST[short, long], protects=person("id", per=long))


@pytest.mark.parametrize(
    ("own", "asked"),
    [
        (WHOLE, MONTH),
        (WHOLE, row()),
        (MONTH, person("household")),
        (MONTH, row()),
        (MONTH, person("id", per="week")),
        (MONTH, person("id", neighbors="replace")),
        (person("id", per="month", neighbors="replace"), person("id", neighbors="replace")),
        (row(neighbors="replace"), person("id", neighbors="replace")),
        (None, WHOLE),
    ],
)
def test_others_are_refused(own: Any, asked: Any) -> None:
    with pytest.raises(IncompatibleGuarantee):
        for_unit(Pure(epsilon=1, protects=own), asked, times=2)


def test_how_many_must_be_said_where_it_is_not_known() -> None:
    with pytest.raises(InvalidArgument, match="how many months"):
        for_unit(Pure(epsilon=1, protects=MONTH), WHOLE)
    with pytest.raises(InvalidArgument, match="how many rows"):
        for_unit(Pure(epsilon=1, protects=row()), WHOLE)
    with pytest.raises(InvalidArgument, match="Leave times out"):
        for_unit(Pure(epsilon=1, protects=MONTH), person("id", per="year"), times=12)
    for wrong in (0, -1, 1.5, "2"):
        with pytest.raises(InvalidArgument):
            for_unit(Pure(epsilon=1, protects=MONTH), WHOLE, times=wrong)
    with pytest.raises(InvalidArgument):
        for_unit(Pure(epsilon=1, protects=MONTH), "person")


FEW = row(times=3, groups=2, by="region")


@pytest.mark.parametrize(
    ("own", "asked", "times"),
    [
        (row(), row(times=5), 5),
        (row(), FEW, 6),
        (row(per="month"), FEW, 6),
        (row(), row(times=3, per="month"), 3),
        (row(times=2), row(times=5), 3),
        (row(times=4), FEW, 2),
        (row(times=8), FEW, 1),
        (FEW, row(times=7, groups=5, by="region"), 9),
        (FEW, row(times=2, groups=1, by="region"), 1),
        (row(neighbors="replace"), row(times=4, neighbors="replace"), 4),
    ],
)
def test_a_few_rows_are_so_many_steps(own: Any, asked: Any, times: int) -> None:
    assert for_unit(Pure(epsilon=1, protects=own), asked) == Pure(epsilon=times, protects=asked)


def test_a_few_rows_of_a_person() -> None:
    assert for_unit(Pure(epsilon=1, protects=row(times=3)), WHOLE, times=7) == Pure(epsilon=3, protects=WHOLE)
    with pytest.raises(InvalidArgument):
        for_unit(Pure(epsilon=1, protects=row()), FEW, times=6)


def test_every_set_of_rows_is_made_of_so_many_units() -> None:
    """By hand, for rows in groups: a set that a larger unit allows is cut into so many smaller units."""
    for own_rows, own_groups, rows, groups in itertools.product((1, 2), (1, 2), (1, 2, 3), (1, 2, 3)):
        own = Unit(None, times=own_rows, groups=own_groups, by="region")
        asked = Unit(None, times=rows, groups=groups, by="region")
        steps = for_unit(Pure(epsilon=1, protects=own), asked).epsilon  # type: ignore[attr-defined]
        cut = [-(-rows // own_rows)] * groups  # in each group, one piece after the other
        taken = 0
        while any(cut):
            for place in [n for n, left in enumerate(cut) if left][:own_groups]:
                cut[place] -= 1
            taken += 1
        assert taken <= steps


@pytest.mark.parametrize(
    ("own", "asked"),
    [
        (FEW, row(times=6)),
        (FEW, row(times=3, groups=2, by="city")),
        (FEW, WHOLE),
        (row(times=3, per="month"), row(times=3)),
        (row(times=3, per="month"), WHOLE),
        (row(times=3, neighbors="replace"), row(times=3)),
        (row(times=3, groups=2, by="a", neighbors="replace"), row(times=6, groups=2, by="a", neighbors="replace")),
        (WHOLE, FEW),
    ],
)
def test_other_rows_are_refused(own: Any, asked: Any) -> None:
    with pytest.raises(IncompatibleGuarantee):
        for_unit(Pure(epsilon=1, protects=own), asked, times=None if asked.column is None else 5)

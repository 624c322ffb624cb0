"""Who is protected, and where a unit lives."""

import pytest

from discreet import Pure, person, row
from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.guarantees.unit import BLOCKS, Unit, few_rows
from discreet.ledger.texts.record import read_unit, to_text

from ..refusing import refuses


@pytest.mark.parametrize("per", BLOCKS)
def test_a_person_in_a_block_of_time_lives_in_it(per):
    unit = person("id", per=per)
    assert unit.lives_in_one == per
    assert repr(unit) == f"person('id', per='{per}')"
    assert read_unit(to_text(unit)) == unit


def test_a_person_lives_in_a_column_that_is_named():
    assert person("id", lives_in="region").lives_in_one == "region"
    assert person("id").lives_in_one is None
    assert row().lives_in_one is None


def test_old_units_are_written_as_before():
    assert to_text(person("id")) == '{"column":"id","is":"Unit","neighbors":"add_or_remove"}'


def test_what_protects_a_month_does_not_protect_a_person_and_neither_the_other_way():
    month, whole = person("id", per="month"), person("id")
    assert not month.same_kind(whole)
    assert not month.same_kind(person("id", per="day"))
    assert whole.same_kind(person("id", lives_in="region"))
    for given, asked in ((month, whole), (whole, month)):
        with pytest.raises(IncompatibleGuarantee):
            Pure(epsilon=1, protects=given).stated_for(asked)


@pytest.mark.parametrize(
    "wrong",
    [
        {"column": "id", "per": "hour"},
        {"column": "id", "lives_in": ""},
        {"column": "id", "lives_in": 3},
        {"lives_in": "region"},
        {"column": "id", "per": "month", "lives_in": "region"},
    ],
)
def test_units_that_mean_nothing_are_refused(wrong):
    with pytest.raises(InvalidArgument):
        Unit(**wrong)


def test_a_few_rows_are_one_unit():
    few = row(times=3, groups=2, by="region")
    assert (few.most_rows, row(times=4).most_rows, row().most_rows, person("id").most_rows) == (6, 4, 1, 1)
    assert repr(few) == "row(times=3, groups=2, by='region')"
    assert read_unit(to_text(few)) == few
    assert few.one == row()
    assert row(times=3, neighbors="replace").one == row(neighbors="replace")
    assert few.lives_in_one is None
    assert row(times=3, per="month").lives_in_one == "month"


def test_one_row_is_written_as_before():
    assert row(times=1) == row(times=1, groups=1, by="region") == row()
    assert row(groups=2, by="region") == row(times=1, groups=2, by="region")
    assert to_text(row()) == '{"is":"Unit","neighbors":"add_or_remove"}'


def test_a_few_rows_in_words():
    said = {few_rows(one) for one in (row(), row(times=1, groups=2, by="city"), row(times=2, groups=1, by="city"))}
    assert said == {"one row", "up to one row in each of up to 2 groups of city", "up to 2 rows in one group of city"}
    assert few_rows(row(times=1000, per="day")) == "up to 1,000 rows, all in one day"


def test_units_of_other_rows_are_other_units():
    units = [
        row(),
        row(times=2),
        row(times=4),
        row(times=2, groups=2, by="region"),
        row(times=2, groups=2, by="city"),
        row(times=4, per="month"),
        person("id"),
    ]
    assert [[one.same_kind(other) for one in units] for other in units] == [[a is b for a in units] for b in units]
    assert row(per="month").same_kind(row())


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"times": 0}, "out-of-range"),
        ({"times": 1.5}, "not-whole"),
        ({"times": 2**40}, "out-of-range"),
        ({"times": "3"}, "not-a-number"),
        ({"times": True}, "not-a-number"),
        ({"groups": 2}, "unit-groups"),
        ({"by": "region"}, "unit-groups"),
        ({"groups": 0, "by": "region"}, "out-of-range"),
        ({"groups": 2, "by": ""}, "wrong-type"),
        ({"groups": 2, "by": 3}, "wrong-type"),
        ({"column": "id", "times": 3}, "rows-protected"),
    ],
)
def test_numbers_of_rows_that_mean_nothing_are_refused(wrong, code):
    with refuses(InvalidArgument, code):
        Unit(**wrong)

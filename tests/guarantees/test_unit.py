"""Who is protected, and where a unit lives."""

import pytest

from discreet import Pure, person, row
from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.guarantees.unit import BLOCKS, Unit
from discreet.ledger.record import read_unit, to_text


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

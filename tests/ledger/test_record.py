"""What is written can be read back, to the last digit: guarantees, rules, released values."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import IncompatibleGuarantee
from discreet.guarantees.rules.best_of import RULES, rule_for
from discreet.guarantees.unit import Unit
from discreet.ledger import book
from discreet.ledger.stores import checkpoint
from discreet.ledger.texts import record, values

from ..refusing import refuses

GUARANTEES = [
    dp.Pure(epsilon=0.1),
    dp.Pure(epsilon=Fraction(1, 3), protects=dp.person("id", neighbors="replace")),
    dp.Approx(epsilon=Decimal("0.1"), delta=np.float64(1e-6), trust="shuffled"),
    dp.ZeroConcentrated(rho=0.5, neighbors="add_or_remove"),
    dp.Renyi(order=8, epsilon=0.25),
    dp.GaussianTradeoff(mu=np.int64(1)),
    dp.Laplace(scale=3).guarantee(1),
    dp.Gaussian(stddev=3).guarantee(1),
    dp.Gaussian(stddev=30).guarantee(dp.Sensitivity(1, norm="L2", dimension=5)),
    dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=1), choices=list("abcd")).guarantee(),
    dp.mechanisms.PermuteAndFlip(rate=1, choices=["a", "b"]).guarantee(1),
    dp.mechanisms.KeySelection(scale=1, threshold=20).guarantee(),
    dp.mechanisms.CommonKeys(order=3, losses=(1, 2), leaks=(0.01, 0.02), keys_per_person=1).guarantee(),
    dp.Subsampled(mechanism=dp.Gaussian(stddev=2), rate=0.01).guarantee(1),
    dp.compose([dp.Pure(epsilon=0.1), dp.ZeroConcentrated(rho=0.1), dp.Renyi(order=4, epsilon=1)] * 3),
]


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda g: type(g).__name__)
def test_guarantees_come_back(guarantee):
    text = record.to_text(guarantee)
    record.from_text.cache_clear()
    back = record.from_text(text)
    assert type(back) is type(guarantee)
    assert record.to_text(back) == text
    rule = rule_for(dp.Approx(epsilon=100, delta=1e-3), "best")
    assert rule.coordinates(back) == rule.coordinates(guarantee)
    assert back.protects == guarantee.protects
    assert back.trust == guarantee.trust


@pytest.mark.parametrize("name", RULES)
def test_rules_come_back_fixed(name):
    limit = dp.GaussianTradeoff(mu=1) if name == "gaussian" else dp.Approx(epsilon=1, delta=1e-6)
    rule = rule_for(limit, name).fixed()
    record.from_text.cache_clear()
    back = record.from_text(record.to_text(rule))
    assert back == rule == rule.fixed()
    assert back.labels == rule.labels


def test_only_known_kinds_are_written_and_read():
    class Own(dp.Pure):
        pass

    coin = {"yes": Fraction(1, 3), "no": Fraction(2, 3)}
    verified = dp.verify([(coin, {"yes": Fraction(2, 3), "no": Fraction(1, 3)})])
    for guarantee in (Own(epsilon=1), verified):
        with refuses(dp.InvalidArgument, "ledger-cannot-record"):
            record.to_text(guarantee)
    for text in ('{"is":"Popen","args":["true"]}', '{"is":"object"}', '{"what":1}'):
        with refuses(dp.errors.LedgerDamaged, "ledger-other-version"):
            record.from_text(text)
    assert record.from_text(record.to_text(Unit("é"))) == dp.person("é")


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.fractions(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.datetimes(timezones=st.sampled_from([None, datetime.UTC])),
    st.times(),
    st.timedeltas(),
)
keys = st.one_of(st.text(), st.integers(), st.tuples(st.text(), st.integers()))
nested = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(keys, inner), st.frozensets(keys), st.sets(keys)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(nested)
def test_plain_values_come_back(value):
    data = values.encode(value)
    back = values.decode(data)
    assert back == value
    assert type(back) is type(value)
    assert values.encode(back) == data


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.array(3.5),
        np.array([], dtype=np.float32),
        np.zeros((0, 3), dtype=">f8"),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(10)[::3],
        np.array(["a", "", "é"]),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        np.array([True, False]),
        np.array([1, "a", None, Fraction(1, 2)], dtype=object).reshape(2, 2),
        np.array([np.nan, -0.0, np.inf]),
        np.float64(0.1),
        np.str_(""),
        np.int8(-3),
        np.datetime64("2020-02-29"),
        float("nan"),
        float("-inf"),
        {"a": [np.arange(3), {"b": (np.float32(1.5), np.zeros(2))}], 2: None},
    ],
    ids=repr,
)
def test_arrays_come_back(value):
    data = values.encode(value)
    back = values.decode(data)
    assert type(back) is type(value)
    assert values.encode(back) == data
    if isinstance(value, np.ndarray | np.generic):
        assert (back.dtype, back.shape) == (value.dtype, value.shape)
        assert np.array_equal(back, value, equal_nan=value.dtype.kind in "fM")
    if isinstance(back, np.ndarray):
        assert back.flags.writeable


@pytest.mark.parametrize("value", [object(), {1: object()}, np.zeros(2, dtype=[("a", int)]), 1j, type, open])
def test_what_is_not_a_plain_value_is_refused(value):
    with refuses(dp.InvalidArgument, "ledger-answer-type"):
        values.encode(value)


def test_other_bytes_are_refused():
    whole = values.encode((np.zeros(3), "é", [1, 2.5]))
    start = len(values._MAGIC) + 8
    torn = [whole[:start] + part + whole[start + 1 :] for part in (b"[", b"\xff", b"")]
    strange = [
        values.encode(5)[:start] + b for b in (b"{}", b'{"no":1}', b'{"array":"<f8","shape":[9]}', b'{"date":1}')
    ]
    lengths = [one[: start - 8] + (len(one) - start).to_bytes(8, "little") + one[start:] for one in (*torn, *strange)]
    for data in (b"", b"pickle", values.encode(5)[1:], whole[:-1], *torn, *lengths):
        with refuses(dp.InvalidArgument, "ledger-answer-unreadable"):
            values.decode(data)


def test_equal_numbers_of_other_types_keep_their_own_text():
    """0.1 means one tenth, and Fraction(0.1) what a double holds. Python finds them equal."""
    exact = Fraction(0.1)
    assert dp.Pure(epsilon=0.1) == dp.Pure(epsilon=exact)
    for _ in range(2):  # what was written before is remembered
        assert '"ratio":"1/10"' in record.to_text(dp.Pure(epsilon=0.1))
        assert f'"ratio":"{exact}"' in record.to_text(dp.Pure(epsilon=exact))
        for epsilon in (0.1, exact):
            stated = record.state_for(dp.Pure(epsilon=epsilon), dp.row())
            assert stated == dp.Pure(epsilon=epsilon).stated_for(dp.row())
            assert type(stated.epsilon) is type(epsilon)
    units = dp.row(), dp.person("id"), dp.person("id", neighbors="replace")
    assert len({record.to_text(dp.Pure(epsilon=0.1, protects=unit)) for unit in units}) == 3


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
ODD = '"\\/\n\x00\x1f\x7f\u2028é😀'


@given(TEXTS, st.one_of(st.none(), TEXTS), st.integers())
def test_a_row_is_chained_by_its_canonical_text(text, perhaps, number):
    for some in (text, ODD):
        values = (number, *[some] * 7, perhaps, None, some, some, number)
        assert book._values_text(values) == record.canonical(values)


@pytest.mark.parametrize("wrong", [True, 1.5, [1], {"b": 1, "a": 2}])
def test_a_value_of_another_type_has_its_canonical_text(wrong):
    values = (1, *["a"] * 7, wrong, None, "a", "a", 2)
    assert book._values_text(values) == record.canonical(values)


@given(st.dictionaries(TEXTS, st.lists(st.integers(0), max_size=3).map(tuple), max_size=3))
def test_costs_have_their_canonical_text(costs):
    for some in (costs, {**costs, ODD: (2**70,)}):
        assert book._vectors_text(some) == record.canonical(some)


@given(TEXTS, st.integers(0, 2**62), st.integers(0, 2**62))
def test_a_checkpoint_is_read_as_it_was_written(text, number, answers):
    seen = checkpoint.Seen(text, number, "c" * 64, 7, answers)
    assert checkpoint._read_slot(checkpoint._slot(seen)) == seen


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda g: type(g).__name__)
def test_a_remembered_guarantee_is_stated_for_the_same_unit(guarantee):
    for unit in (guarantee.protects or dp.row(), dp.person("id", neighbors="replace")):
        for _ in range(2):
            try:
                expected = guarantee.stated_for(unit)
            except IncompatibleGuarantee as error:
                with refuses(IncompatibleGuarantee, error.code):
                    record.state_for(guarantee, unit)
            else:
                assert record.to_text(record.state_for(guarantee, unit)) == record.to_text(expected)

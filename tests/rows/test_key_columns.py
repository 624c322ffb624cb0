"""Keys of groups as columns: the same order, the same matches and the same stored values as Python objects have."""

from __future__ import annotations

import datetime
import random

import numpy as np
import pyarrow as pa
import pytest

from discreet.engines.duckdb.engine import DuckDB
from discreet.ledger.texts.values import decode, encode
from discreet.mechanisms.selection.threshold import order_of
from discreet.rows.arrow import array_of
from discreet.rows.key_columns import KeyColumns, whole_numbers

VALUES = {
    "integer": [None, 0, -1, 3, 2**63 - 1, -(2**63)],
    "number": [None, 0.0, -1.5, 1e300, 5e-324],
    "text": [None, "", "a", "B", "b", "é", "e\u0301", "\U0001f600", "\uffff", "a\0b", "NULL"],
    "boolean": [None, True, False],
    "date": [None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1969, 12, 31)],
    "timestamp": [None, datetime.datetime(1, 1, 1), datetime.datetime(2020, 1, 1, 0, 0, 0, 5)],
}
KINDS = list(VALUES)
mixed = random.Random(5)
PAIRS = [(a, b) for a in VALUES["text"] for b in VALUES["integer"]]
CASES = [*((mixed.sample([(v,) for v in VALUES[k]], len(VALUES[k])), [k]) for k in KINDS), (PAIRS, ["text", "integer"])]


@pytest.mark.parametrize(("keys", "kinds"), CASES)
def test_order_places_and_storage_are_those_of_the_values(keys, kinds):
    columns = KeyColumns.of(keys, kinds)
    assert list(columns) == keys
    ordered = columns.take(columns.order())
    assert list(ordered) == sorted(keys, key=order_of)
    assert [keys[place] for place in ordered.places_in(columns)] == list(ordered)
    some = columns.take(np.arange(0, len(keys), 2))
    assert columns.places_in(some).tolist() == [n // 2 if n % 2 == 0 else -1 for n in range(len(keys))]
    stored = decode(encode((ordered, [np.arange(3)])))[0]
    assert list(stored) == list(ordered)
    assert stored.columns == ordered.columns
    assert encode(stored) == encode(ordered)


def test_keys_of_no_parts_and_of_no_groups():
    whole, none = KeyColumns.of([()], []), KeyColumns.of([], ["text"])
    assert (list(whole), list(none), whole.places_in(whole).tolist()) == ([()], [], [0])
    assert none.order().tolist() == whole.places_in(KeyColumns.of([], [])).tolist()[:0] == []
    assert [list(decode(encode(one))) for one in (whole, none)] == [[()], []]
    domains = [pa.array(["a", "b"], pa.large_string()), pa.array([1, None], pa.int64())]
    product = KeyColumns.product(domains, ["text", "integer"])
    assert list(product) == [("a", 1), ("a", None), ("b", 1), ("b", None)]


def test_stored_text_holds_nothing_of_hidden_keys():
    keys = KeyColumns.of([("shown",), ("hidden",), (None,)], ["text"])
    assert b"hidden" not in encode(keys.take([0, 2]))
    sliced = KeyColumns([keys.columns[0].slice(2, 1)], ["text"], 1)
    assert list(decode(encode(sliced))) == [(None,)]
    assert b"hidden" not in encode(sliced)


@pytest.mark.parametrize("number", [0, -1, 2**62 - 1, 2**62, -(2**63), 2**63, 2**64 + 5, -(2**126), 2**127 - 1])
def test_integers_of_128_bits_are_exact(number):
    engine = DuckDB({"one": pa.table({"x": [1]})})
    table = engine.table(f"SELECT CAST('{number}' AS HUGEINT) AS n UNION ALL SELECT 7 ORDER BY n")
    engine.close()
    expected = sorted([number, 7])
    for column in (table.column(0), array_of(expected, None)):
        found = whole_numbers(column)
        assert found.tolist() == expected
        assert found.dtype == (np.int64 if abs(number) < 2**62 else object)


def test_larger_integers_of_other_engines_are_exact():
    assert whole_numbers(array_of([2**170, -3], None)).tolist() == [2**170, -3]

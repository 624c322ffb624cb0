"""What makes two questions the same: their plan with every literal, type and declaration, and the data; no text."""

from __future__ import annotations

import datetime
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.ledger import ledger as ledgers
from discreet.ledger.texts import request as requests
from discreet.ledger.texts.exact import Nameless, exact_text
from discreet.ledger.texts.record import to_text
from discreet.sql import measurement
from discreet.sql.reading import select as selecting

from ..refusing import refuses

N = 24
DATA = {
    "pid": list(range(N)),
    "x": [float(n) for n in range(N)],
    "n": list(range(N)),
    "city": ["New York", "New  York"] * (N // 2),
    "a, b": list(range(N)),
    "a": list(range(N)),
    "b": list(range(N)),
}
COLUMNS = {"x": {"between": [0, 100]}, "city": {"choices": ["New York", "New  York"]}}


def opened(data: Any = None, columns: Any = COLUMNS, ledger: Any = ":memory:", **table: Any) -> Any:
    source = pa.table(DATA if data is None else data)
    tables = {"t": {"source": source, "rows_per_person": 1, "columns": columns} | table}
    return dp.connect({"ledger": {"path": str(ledger), "epsilon": 1e5}, "unit": {"person": "pid"}, "tables": tables})


@cache
def schema() -> Any:
    return opened().schema


def meaning(text: str) -> str:
    return selecting.read_question(text, schema()).meaning


APART = [
    ("city = 'New York'", "city = 'New  York'"),
    ("city = 'New York'", "city = 'New\tYork'"),
    ("city = 'New York'", "city = 'New\u00a0York'"),
    ("city = 'new york'", "city = 'New York'"),
    ("city = 'é'", "city = 'e\u0301'"),
    ("city = 'x at 0x1f'", "city = 'x at 0x2f'"),
    ("city = 'a /* b */'", "city = 'a '"),
    ("city = 'a -- b'", "city = 'a '"),
    ("x = 1", "x = 1.0"),
    ("x = 1", "CAST(x AS VARCHAR) = '1'"),
    ("x > 1", "x > TRUE::INTEGER"),
    ("n IN (1, 2)", "n IN (2, 1)"),
    ("x > 0.0", "x > -0.0"),
    ("city LIKE 'a_'", "city LIKE 'a%'"),
    ('"a, b" > 1', "a > 1"),
]
SAME = [
    ("SELECT COUNT(*) AS n FROM t WHERE x > 1", "select count(*) as n\nfrom t -- of all\n where x > /* one */ 1"),
    ("SELECT COUNT(*) AS n FROM t AS u WHERE u.x > 1", "SELECT COUNT(*) AS n FROM t AS v WHERE v.x > 1"),
    ("SELECT AVG(x) AS n FROM t", 'SELECT MEAN("X") AS n FROM T'),
]


@pytest.mark.parametrize(("first", "second"), APART)
def test_questions_of_two_meanings_are_two(first: str, second: str) -> None:
    assert len({meaning(f"SELECT COUNT(*) AS n FROM t WHERE {condition}") for condition in (first, second)}) == 2


@pytest.mark.parametrize(("first", "second"), SAME)
def test_a_question_is_the_same_however_it_is_written(first: str, second: str) -> None:
    database = opened(version="1")
    assert meaning(first) == meaning(second)
    database.sql(first, epsilon=1)
    assert database.sql(second, epsilon=1).replayed


def test_declarations_are_part_of_what_is_meant() -> None:
    text = "SELECT city, SUM(x) AS s FROM t GROUP BY city"
    said = [
        COLUMNS,
        COLUMNS | {"x": {"between": [0, 99]}},
        {"x": {"between": [0, 100]}, "city": {"choices": ["a", "b"]}},
    ]
    found = {selecting.read_question(text, opened(columns=columns).schema).meaning for columns in said}
    assert len(found | {selecting.read_question(text, opened(rows_per_person=2).schema).meaning}) == 4


WHERE = [("city = 'New York'", "city = 'New  York'"), ("x > 3 -- a\n AND n > 5", "x > 3 -- a AND n > 5")]
METHODS = {
    "count": lambda t, where: t.count(epsilon=1, where=where),
    "median": lambda t, where: t.median("x", between=(0, 100), epsilon=1, where=where),
    "quantiles": lambda t, where: t.quantiles("x", [0.1, 0.2, 0.5, 0.9], between=(0, 100), epsilon=1, where=where),
    "cdf": lambda t, where: t.cdf("x", between=(0, 100), step=10, epsilon=1, where=where),
    "histogram": lambda t, where: t.histogram("n", choices=[1, 2], epsilon=1, where=where),
    "most_common": lambda t, where: t.most_common("n", choices=[1, 2], epsilon=1, where=where),
    "density": lambda t, where: t.density("x", between=(0, 100), bandwidth=20, epsilon=1, where=where),
    "synthesize": lambda t, where: t.synthesize({"n": [1, 2]}, epsilon=1, delta=1e-6, rounds=0, where=where),
}


@pytest.fixture
def table() -> Any:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Approx(epsilon=1e4, delta=0.01))
    return dp.table(pa.table(DATA), ledger=ledger, rows_per_person=1, version="1")


@pytest.mark.parametrize(
    ("method", "first", "second"),
    [*((method, *WHERE[0]) for method in METHODS), ("count", *WHERE[1]), ("cdf", *WHERE[1])],
)
def test_a_method_is_asked_anew_of_other_rows(method: str, first: str, second: str, table: Any) -> None:
    """White space in quotes, and the end of a comment, tell two conditions apart [issue 20, 10]."""
    ask = METHODS[method]
    assert [ask(table, where).replayed for where in (first, second, first, second)] == [False, False, True, True]


def test_arguments_of_a_method_tell_it_from_another(table: Any) -> None:
    def synthesized(**columns: Any) -> Any:
        return table.synthesize(columns, epsilon=1, delta=1e-6, rounds=0)

    listed = [1, 2]
    assert not synthesized(**{"a, b": listed}).replayed
    assert not synthesized(a=listed, b=listed).replayed
    curves = [table.cdf("x", between=(0, 100), step=step, epsilon=1) for step in (10, 20, 10)]
    assert [curve.replayed for curve in curves] == [False, False, True]


# --- retry keys ---------------------------------------------------------------------------------------------


COUNT = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"


def test_a_key_is_bound_to_the_declarations_and_to_the_data(tmp_path: Path) -> None:
    """Stored numbers never come back under other labels, in another shape, or for other data [issue 20, 19]."""
    place = tmp_path / "clinic.ledger"
    first = opened(ledger=place)
    answer = first.sql(COUNT, epsilon=1, key="k")
    assert first.sql(COUNT, epsilon=1, key="k").table.equals(answer.table)
    others = [
        opened(ledger=place),  # another opening of data that have no version
        opened(ledger=place, columns=COLUMNS | {"city": {"choices": ["Acre", "Haifa"]}}),
        opened(ledger=place, columns=COLUMNS | {"city": {"choices": ["a", "b", "c"]}}),
        opened({name: values[:4] for name, values in DATA.items()}, ledger=place),
        opened(ledger=place, version="1"),
    ]
    for other in others:
        with refuses(InvalidArgument, "ledger-key-reused"):
            other.sql(COUNT, epsilon=1, key="k")
    assert first.ledger.count == 1
    kept = opened(ledger=place, version="1").sql(COUNT, epsilon=1, key="v")
    assert opened(ledger=place, version="1").sql(COUNT, epsilon=1, key="v").table.equals(kept.table)
    with refuses(InvalidArgument, "ledger-key-reused"):
        opened(ledger=place, version="2").sql(COUNT, epsilon=1, key="v")


def test_data_without_a_version_are_asked_anew_without_a_key() -> None:
    database = opened()
    assert not any(database.sql(COUNT, epsilon=1).replayed for _ in range(2))


@pytest.fixture
def ledger() -> Any:
    return dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=100))


def test_a_key_is_bound_to_the_query_itself(ledger: Any) -> None:
    noise = dp.Laplace(scale=10)
    for low, replayed in ((0, False), (0, True)):
        found = dp.release([1.0], noise, query=dp.Sum((low, 5)), ledger=ledger, asked="a sum", key="k")
        assert found.replayed == replayed
    with refuses(InvalidArgument, "ledger-key-reused"):  # though it costs the same
        dp.release([1.0], noise, query=dp.Sum((-5, 5)), ledger=ledger, asked="a sum", key="k")


def test_texts_that_differ_in_an_address_are_two(ledger: Any) -> None:
    noise = dp.Laplace(scale=10)
    dp.release(5, noise, sensitivity=1, ledger=ledger, asked="the sensor at 0x1f", key="k")
    with refuses(InvalidArgument, "ledger-key-reused"):
        dp.release(5, noise, sensitivity=1, ledger=ledger, asked="the sensor at 0x2f", key="k")


def test_a_function_is_nobody_s_name(ledger: Any) -> None:
    """The address of a function is soon that of another one: no key is bound to it, and nothing is charged."""
    for choices in ([lambda: 1, lambda: 2], [object(), object()]):
        choose = dp.Exponential(rate=1, choices=choices)
        with refuses(InvalidArgument, "ledger-key"):
            dp.release([0, 50], choose, sensitivity=1, ledger=ledger, key="k")
        assert dp.release([0, 50], choose, sensitivity=1, ledger=ledger).value in choices
    assert ledger.count == 2


ODD = [0, 0.0, -0.0, False, "0", b"0", None, (0,), [0], {0}, frozenset({0}), {0: 0}, "", "\ud800", "\0", 2**70, 2.0**70]
ODD += [np.int64(0), np.int32(0), np.float64(0), np.zeros(1), np.zeros((1, 1)), np.array([0], object), float("nan")]
ODD += [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), "2020-01-01", int, dp.Pure(epsilon=1), dp.row()]


def test_every_value_has_a_text_of_its_own() -> None:
    assert len({exact_text(value) for value in ODD}) == len(ODD)
    large = np.zeros(5000), np.concatenate([np.zeros(2500), [1.0], np.zeros(2499)])
    assert repr(large[0]) == repr(large[1])
    assert exact_text(large[0]) != exact_text(large[1])
    lists = [(0, 1), (0, True), ("0", 1), ("0", "1"), (0.0, 1), (0, None), (0, 2**70), (0, -(2**70)), (np.int64(0), 1)]
    assert len({exact_text(value) for value in lists}) == len(lists)
    for nameless in (lambda: 1, object(), [object()], print):
        with pytest.raises(Nameless):
            exact_text(nameless)


# --- answers of version 0.1 ---------------------------------------------------------------------------------


def as_before(
    guarantee: Any, asked: str, mechanism: Any, key: Any, identity: Any, about: Any = None, parts: Any = ()
) -> Any:
    """The request as version 0.1 made it: words folded, without what the data were where they had no version."""
    known = identity if identity is None or identity.lasting else None
    asked = asked if known is None or known.before is None else " ".join(known.before.question.split())
    words = [requests._CUT.sub("", text).replace("\0", "") for text in (asked, repr(mechanism))]
    facts = None if known is None else requests._identify(replace(known, question=asked))
    mark = requests._hash((*words, to_text(guarantee), facts))
    return requests.Request(*words, to_text(guarantee), mark, key, None if known is None else mark, None)


def test_answers_of_0_1_are_found_by_their_exact_text_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table(DATA), tmp_path / "t.parquet")
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Approx(epsilon=1e4, delta=0.01))
    table = dp.table(tmp_path / "t.parquet", ledger=ledger, rows_per_person=1)
    memory = dp.table(pa.table(DATA), ledger=ledger, rows_per_person=1)

    def asked() -> list[bool]:
        cdf = [METHODS["cdf"](table, where) for where in ("x > 3", "city = 'New York'")]
        counts = [METHODS["count"](table, where) for where in ("x > 3", "city = 'New  York'")]
        kept = dp.release(5, dp.Laplace(scale=9), sensitivity=1, ledger=ledger, key="k")
        return [one.replayed for one in (*cdf, *counts, kept, memory.count(epsilon=1))]

    with monkeypatch.context() as patch:
        patch.setattr(ledgers, "request_of", as_before)
        assert not any(asked())
    # 'New York' may have been 'New  York' in the line that 0.1 kept
    assert asked() == [True, False, True, True, True, False]
    assert ledger.verify() == ledger.count + 1


def test_a_key_that_0_1_gave_to_data_without_a_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    database = opened()
    with monkeypatch.context() as patch:
        patch.setattr(ledgers, "request_of", as_before)
        database.sql(COUNT, epsilon=1, key="k")
    with refuses(InvalidArgument, "ledger-key-reused"):
        database.sql(COUNT, epsilon=1, key="k")
    assert database.ledger.count == 1


# --- mutants ------------------------------------------------------------------------------------------------


def test_folded_text_is_caught(monkeypatch: pytest.MonkeyPatch, table: Any) -> None:
    """A meaning that folds white space answers another question: seen by the tests above."""
    exact = measurement.exact_text
    monkeypatch.setattr(measurement, "exact_text", lambda *given: " ".join(exact(*given).split()))
    with pytest.raises(AssertionError):
        test_a_method_is_asked_anew_of_other_rows("count", *WHERE[0], table)


def test_a_key_without_the_data_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    identified = requests._identify
    monkeypatch.setattr(
        requests, "_identify", lambda one: identified(requests.Identity(question="", data_version="", policy=""))
    )
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_a_key_is_bound_to_the_declarations_and_to_the_data(tmp_path)

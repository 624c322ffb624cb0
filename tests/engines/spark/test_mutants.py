"""Seeded bugs of the Spark engine: each is planted in its words, and a check of ours must see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.engines.spark import dialect as spark_dialect
from discreet.engines.spark import engine as spark_engine
from discreet.engines.spark import sessions as spark_sessions
from discreet.errors import DiscreetError, EngineFailed
from discreet.sql.measuring.compile import Statement
from discreet.sql.question import Bounds
from discreet.sql.reading.select import read_question
from discreet.sql.schema import Column, Schema, Table

from ..conftest import Lake

pytestmark = [pytest.mark.slow, pytest.mark.spark]
PEOPLE = 400
CITIES = ("a", "b", "c")
COLUMNS = {
    "pid": Column(name="pid", type="integer"),
    "city": Column(name="city", type="text", choices=CITIES),
    "x": Column(name="x", type="number", between=(0, 2**20)),
}
SCHEMA = Schema(unit=dp.person("pid"), tables={"t": Table(name="t", columns=COLUMNS, person="pid", rows_per_person=99)})


def rows() -> pa.Table:
    """Everybody has 8, 3 and 1 rows in three cities; their numbers are large, and some are none."""
    pid = [n for n in range(PEOPLE) for _ in range(12)]
    city = (["a"] * 8 + ["b"] * 3 + ["c"]) * PEOPLE
    x = [2.0**20 - 2.0**-9, float("inf"), float("nan"), *[0.0] * 9] * PEOPLE
    return pa.table({"pid": pid, "city": city, "x": x})


def found(lake: Lake, bounds: Bounds, text: str, seeds: tuple[int, ...] = (1,)) -> list[dict[str, tuple[Any, ...]]]:
    engine = lake.opened({"t": rows()})
    statements = [Statement(read_question(text, SCHEMA), engine, bounds, seed).additive() for seed in seeds]
    return [{row[0]: row[1:] for row in engine.rows(statement)} for statement in statements]


COUNT = "SELECT city, COUNT(*) AS n FROM t GROUP BY city"


def people_have_no_more_than_may_be(lake: Lake) -> None:
    (counts,) = found(lake, Bounds(rows=12, groups=1, per_group=12), COUNT)
    pairs = sum(counts.get(city, (0,))[0] / rows for city, rows in (("a", 8), ("b", 3), ("c", 1)))
    assert pairs == PEOPLE, "a person is in another number of groups"
    (few,) = found(lake, Bounds(rows=4, groups=3, per_group=4), COUNT)
    assert sum(row[0] for row in few.values()) == 4 * PEOPLE, "a person has another number of rows"


def a_question_finds_the_same_twice(lake: Lake) -> None:
    first, *again = found(lake, Bounds(rows=4, groups=3, per_group=4), COUNT, (7,) * 4)  # twice is luck once in 1,000
    assert all(other == first for other in again), "a task that runs again finds other rows"


def equal_rows_are_chosen_apart(lake: Lake) -> None:
    (counts,) = found(lake, Bounds(rows=4, groups=3, per_group=4), COUNT)
    assert abs(counts["c"][0] - PEOPLE / 3) < 6 * (PEOPLE * 2 / 9) ** 0.5, "rare rows are kept more often"


def sums_are_exact(lake: Lake) -> None:
    """The largest number, one just below, NaN, which adds nothing, and zeros."""
    (sums,) = found(lake, Bounds(rows=99, groups=3, per_group=99), "SELECT city, SUM(x) AS s FROM t GROUP BY city")
    steps = 2**10  # of one unit
    assert sums["a"][0] == PEOPLE * (2**21 * steps - 2), "a sum is not exact, or its values are not clamped"


def failures_quote_nothing(lake: Lake) -> None:
    engine = lake.opened({"t": rows()})
    with pytest.raises(EngineFailed) as caught:
        engine.rows("SELECT CAST('secret' AS BIGINT)")
    assert "secret" not in str(caught.value) + repr(caught.value.__context__), "Spark's words are passed on"


def replaced(name: str, old: str, new: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A word of Spark's whose text is another one."""
    right = getattr(spark_dialect, name)

    def wrong(*args: Any, **kwargs: Any) -> str:
        text = right(*args, **kwargs)
        if old not in text:
            raise LookupError(f"the bug cannot be planted in {text}")
        return str(text.replace(old, new))

    return lambda patch: patch.setattr(spark_dialect, name, wrong)


def passed_on(patch: pytest.MonkeyPatch) -> None:
    def attempt(
        work: Callable[[], Any], said: str, error: type[DiscreetError] = EngineFailed, code: str = "engine-failed"
    ) -> Any:
        try:
            return work()
        except Exception as failure:
            raise error(f"{said} {failure}", code=code) from failure

    for module in (spark_engine, spark_sessions):
        patch.setattr(module, "attempt", attempt)


def wrapping(patch: pytest.MonkeyPatch) -> None:
    right = spark_dialect.exact_sum
    wrapped = "CAST(CAST({} AS BIGINT) & 2147483647L AS DECIMAL(38, 0))"
    patch.setattr(spark_dialect, "exact_sum", lambda *args, **kwargs: wrapped.format(right(*args, **kwargs)))


MUTANTS = {
    "groups are ranked among all people": (
        replaced("random_rank", "PARTITION BY person ", ""),
        people_have_no_more_than_may_be,
    ),
    "those with many rows are let through": (
        replaced("apart", "LEFT ANTI", "LEFT SEMI"),
        people_have_no_more_than_may_be,
    ),
    "the engine draws": (replaced("drawn", "xxhash64(", "rand() + 0 * xxhash64("), a_question_finds_the_same_twice),
    "equal rows are not numbered": (
        replaced("drawn", "row_number() OVER (PARTITION BY", "0 * row_number() OVER (PARTITION BY"),
        equal_rows_are_chosen_apart,
    ),
    "sums in 32 bits": (wrapping, sums_are_exact),
    "values are not clamped": (
        replaced("clamped_steps", "> CAST('1048576.0' AS DOUBLE) THEN", "> CAST('1048576.0' AS DOUBLE) THEN 2 *"),
        sums_are_exact,
    ),
    "NaN passes the clamp": (replaced("clamped_steps", "THEN NULL", "THEN 1"), sums_are_exact),
    "error text passed through": (passed_on, failures_quote_nothing),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_bug_is_seen(lake, monkeypatch, name):
    plant, check = MUTANTS[name]
    check(lake)
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check(lake)

"""Whatever is given to a question, an answer comes back or an error of ours, and an error costs nothing."""

from __future__ import annotations

import datetime
import inspect
import math
import pickle
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp

N = 12
DAY = datetime.date(2020, 1, 1)
DATA = pa.table(
    {
        "pid": pa.array(range(N)),
        "x": pa.array([float(n) for n in range(N)]),
        "n": pa.array(range(N)),
        "s": ["a b", "c"] * (N // 2),
        "d": pa.array([DAY + datetime.timedelta(days=n) for n in range(N)]),
        'od"d ; col': pa.array(range(N)),
    }
)
ODD: list[Any] = [
    None,
    True,
    0,
    1,
    -1,
    3.0,
    1.5,
    -0.0,
    1e-300,
    1e300,
    1e-18,
    1e15,
    1e16,
    math.inf,
    math.nan,
    10**30,
    2**63,
]
ODD += [
    Fraction(1, 3),
    Decimal("0.1"),
    Decimal("nan"),
    1j,
    "",
    "x",
    "nope",
    "auto",
    "TRUE LIMIT 0",
    "x > 1 GROUP BY s",
    "--",
]
ODD += ["\0", "\ud800", "x > 1; SELECT 1", "x IN (SELECT 1)", "ROUND(x, 1.5) > 1", "d > 'x'", "x = ?", b"x", [], (), {}]
ODD += [{1}, [1], (0, 1), (1, 0), (-1e-300, 1e-300), (1e15 - 0.125, 1e15), ("a", "b"), ("2020-01-01", "2020-12-31")]
ODD += [
    (DAY, datetime.date(2021, 1, 1)),
    (None, None),
    (0, math.nan),
    ["a b", "c"],
    ["a b", 1],
    [None],
    [math.nan],
    ["a"] * 2,
]
ODD += [[2**70], {1: 2}, {"x": 1e300}, {"value": 3}, {"m": 1e300}, print, object(), int, np.float64(0.5), np.int64(3)]
ODD += [
    np.array([0, 1]),
    np.array(["a b"]),
    DAY,
    range(3),
    'od"d ; col',
    Ellipsis,
    {"rows_per_person": 1.0},
    {"m": "x"},
]

ENDS = (0, 10)
METHODS: dict[str, dict[str, Any]] = {
    "count": {"of": "people"},
    "sum": {"column": "x", "between": ENDS},
    "mean": {"column": "n", "between": ENDS},
    "variance": {"column": "x", "between": ENDS},
    "median": {"column": "d", "between": (DAY, datetime.date(2021, 1, 1))},
    "quantiles": {"column": "x", "at": [0.5], "between": ENDS, "least": "bound", "confidence": 0.95},
    "cdf": {"column": "n", "between": ENDS, "step": 1},
    "synthesize": {"columns": {"s": ["a b", "c"]}, "rows": 5, "rounds": 0},
    "density": {"column": "x", "between": ENDS, "bandwidth": 3},
    "histogram": {"column": "s", "choices": ["a b", "c"]},
    "most_common": {"column": "s", "choices": ["a b", "c"], "k": 1},
    "fit": {"estimator": None, "features": {"x": ENDS}, "target": "s"},
}
OPTIONS = ("epsilon", "delta", "within", "confidence", "weights", "bounds", "key")


@pytest.fixture(scope="module")
def table() -> Any:
    ledger = dp.Ledger.open(
        ":memory:", protects=dp.person("pid"), limit=dp.Approx(epsilon=1e6, delta=0.5), rule="basic"
    )
    return dp.table(DATA, ledger=ledger, rows_per_person=2)


def check(ask: Any, ledger: Any, what: str) -> None:
    """An answer, or an error of ours: then nothing was charged, and nothing is chained that quotes a cell."""
    before, raised = ledger.count, None
    try:
        ask()
    except Exception as error:
        raised = error
    if raised is None:
        return
    assert isinstance(raised, dp.DiscreetError), f"{what}: {type(raised).__name__}"
    assert ledger.count == before, f"{what} was charged, and then refused: {raised}"
    assert isinstance(raised.__context__, dp.DiscreetError | ValueError | TypeError | None), what


@pytest.mark.some_quick(6)
@pytest.mark.parametrize("method", METHODS)
def test_methods_of_a_table(method: str, table: Any) -> None:
    rng = random.Random(method)
    asked = getattr(table.explain, method)
    names = [name for name in inspect.signature(asked).parameters if name != "progress"]
    for name in names:
        for odd in rng.sample(ODD, 8):
            given = METHODS[method] | {"epsilon": 1, "delta": 1e-6 if method == "synthesize" else 0}
            if method == "fit":
                given["estimator"] = dp.learn.GaussianNB(epsilon=1)
            given = {one: value for one, value in given.items() if one in names} | {name: odd}
            # explain takes the way of an answer up to the charge; a few are asked
            own = table if rng.random() < 0.05 and method not in ("synthesize", "fit") else table.explain
            check(
                lambda own=own, given=given: getattr(own, method)(**given),
                table._methods.ledger,
                f"{method}({given!r})",
            )


@pytest.mark.slow
def test_questions_in_sql(table: Any) -> None:
    rng = random.Random(20)
    columns = {"x": {"between": [0, 10]}, "s": {"choices": ["a b", "c"]}}
    tables = {"t": {"source": DATA, "rows_per_person": 2, "columns": columns}}
    words = {"path": ":memory:", "epsilon": 1e6, "delta": 0.5, "rule": "basic"}
    database = dp.connect({"ledger": words, "unit": {"person": "pid"}, "tables": tables})
    text = "SELECT s, COUNT(*) AS m, SUM(x) AS v FROM t GROUP BY s"
    for name in OPTIONS:
        for odd in rng.sample(ODD, 14):
            given = {name: odd} if name in ("epsilon", "within") else {"epsilon": 1, name: odd}
            ask = database.sql if rng.random() < 0.2 or name == "key" else database.explain
            check(lambda ask=ask, given=given: ask(text, **given), database.ledger, f"{given!r}")
    for odd in rng.sample(ODD, 40):
        check(lambda odd=odd: database.sql(odd, epsilon=1), database.ledger, f"{odd!r}")
        if isinstance(odd, str):
            asked = f"SELECT COUNT(*) AS m FROM t WHERE {odd}"
            check(lambda asked=asked: database.sql(asked, epsilon=1), database.ledger, asked)


def test_an_error_that_is_not_ours_is_caught(table: Any) -> None:
    for error in (ValueError("x"), KeyError("x")):

        def fails(error: Exception = error) -> None:
            raise error

        with pytest.raises(AssertionError, match="sum"):
            check(fails, table._methods.ledger, "sum")

    def charged() -> None:
        table.count(epsilon=1)
        raise dp.errors.NotAllowed("no")

    with pytest.raises(AssertionError, match="then refused"):
        check(charged, table._methods.ledger, "count")


@pytest.mark.slow
def test_arguments_that_an_attack_found_are_refused_and_cost_nothing() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=100, delta=0.1))
    table = dp.table({"x": np.arange(50.0), "s": np.array(["a", "b"] * 25)}, ledger=ledger)
    ends, cost = {"between": (0, 50)}, {"epsilon": 1}
    asked: list[Callable[[], Any]] = [
        lambda: table.sum("x", between=np.array(3), **cost),
        lambda: table.quantiles("x", np.array([]), **ends, **cost),
        lambda: table.density("x", between=None, delta=1e-6, **cost),
        lambda: table.density("x", bandwidth=10**400, delta=1e-6, **ends, **cost),
        lambda: table.density("x", bandwidth=range(10**12), delta=1e-6, **ends, **cost),
        lambda: table.most_common("s", choices=["a", "b"], k=Decimal("1e999999"), **cost),
        lambda: table.histogram("s", choices=range(10**12), **cost),
        lambda: table.histogram("s", choices=(1 / 0 for _ in "a"), **cost),
        lambda: table.synthesize({"x": (0, 50)}, delta=1e-6, progress=3, **cost),  # type: ignore[arg-type]
        lambda: pickle.dumps(table),
    ]
    for number, ask in enumerate(asked):
        with pytest.raises(dp.DiscreetError):
            ask()
        assert ledger.count == 0, number

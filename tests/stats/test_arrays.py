"""Statistics of arrays: each answers as the method of a table with the same columns does."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.stats import arrays
from discreet.stats.table import TableStatistics

from ..refusing import refuses

RNG = np.random.default_rng(4)
SIZE = 400
X, FLAG = RNG.random(SIZE), RNG.random(SIZE) < 0.5
Y = np.clip(X / 2 + 0.2 * FLAG + 0.1 * RNG.normal(size=SIZE), 0, 1)
ARM, CITY = np.where(FLAG, "drug", "placebo"), RNG.choice(["a", "b", "c"], SIZE)
BOTH, PAIR = {"between": (0, 1), "epsilon": 3}, {"between": ((0, 1), (0, 1)), "epsilon": 3}
ARMS, CITIES = ["placebo", "drug"], ["a", "b", "c"]
NAMED = {"y": Y, "x": X, "city": CITY}
FITTED = {"between": {"x": (0, 1), "y": (0, 1)}, "levels": {"city": CITIES}, "epsilon": 3}
COUNTED = {"y": (4 * Y).astype(int), "x": X}

CALLS: dict[str, tuple[Any, Any]] = {
    "mean": (lambda s, **o: s.mean(X, **BOTH, **o), lambda t: t.mean("x", **BOTH)),
    "variance": (lambda s, **o: s.variance(X, **BOTH, **o), lambda t: t.variance("x", **BOTH)),
    "quantile": (lambda s, **o: s.quantile(X, 0.25, **BOTH, **o), lambda t: t.quantile("x", 0.25, **BOTH)),
    "proportion": (
        lambda s, **o: s.proportion(CITY, value="a", epsilon=3, **o),
        lambda t: t.proportion("city", value="a", epsilon=3),
    ),
    "compare": (lambda s, **o: s.compare(Y, FLAG, **BOTH, **o), lambda t: t.compare("y", by="flag", **BOTH)),
    "paired": (lambda s, **o: s.paired(X, Y, **BOTH, **o), lambda t: t.paired("x", "y", **BOTH)),
    "ratio": (
        lambda s, **o: s.ratio(X, Y, **PAIR, **o),
        lambda t: t.ratio("x", "y", between={"x": (0, 1), "y": (0, 1)}, epsilon=3),
    ),
    "correlation": (
        lambda s, **o: s.correlation(X, Y, **PAIR, **o),
        lambda t: t.correlation("x", "y", between={"x": (0, 1), "y": (0, 1)}, epsilon=3),
    ),
    "risk_ratio": (
        lambda s, **o: s.risk_ratio(X < 0.5, ARM, groups=ARMS, epsilon=3, **o),
        lambda t: t.risk_ratio("low", by={"arm": ARMS}, epsilon=3),
    ),
    "chi2": (
        lambda s, **o: s.chi2(CITY, ARM, choices=(CITIES, ARMS), epsilon=3, **o),
        lambda t: t.chi2("city", "arm", choices={"city": CITIES, "arm": ARMS}, epsilon=3),
    ),
    "anova": (
        lambda s, **o: s.anova(Y, CITY, groups=CITIES, **BOTH, **o),
        lambda t: t.anova("y", by={"city": CITIES}, **BOTH),
    ),
    "mann_whitney": (
        lambda s, **o: s.mann_whitney(Y, ARM, groups=ARMS, alternative="greater", **BOTH, **o),
        lambda t: t.mann_whitney("y", by={"arm": ARMS}, alternative="greater", **BOTH),
    ),
    "kruskal": (
        lambda s, **o: s.kruskal(Y, CITY, groups=CITIES, **BOTH, **o),
        lambda t: t.kruskal("y", by={"city": CITIES}, **BOTH),
    ),
    "wilcoxon": (lambda s, **o: s.wilcoxon(X, Y, **BOTH, **o), lambda t: t.wilcoxon("x", "y", **BOTH)),
    "permutation": (
        lambda s, **o: s.permutation(Y, FLAG, permutations=99, **BOTH, **o),
        lambda t: t.permutation("y", by="flag", permutations=99, **BOTH),
    ),
    "ols": (
        lambda s, **o: s.ols(NAMED, "y ~ x + city", **FITTED, **o),
        lambda t: t.ols("y ~ x + city", **FITTED),
    ),
    "logistic": (
        lambda s, **o: s.logistic({"flag": FLAG, "x": X}, "flag ~ x", between={"x": (0, 1)}, epsilon=3, **o),
        lambda t: t.logistic("flag ~ x", between={"x": (0, 1)}, epsilon=3),
    ),
    "poisson": (
        lambda s, **o: s.poisson(COUNTED, "y ~ x", between={"x": (0, 1), "y": (0, 4)}, epsilon=3, **o),
        lambda t: t.poisson("n ~ x", between={"x": (0, 1), "n": (0, 4)}, epsilon=3),
    ),
}


def opened() -> dp.Ledger:
    return dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=10))


def numbers(found: Any) -> Any:
    value = list(found.value.values()) if isinstance(found.value, dict) else found.value
    return np.ravel(np.asarray(value, dtype=np.float64))


def test_every_statistic_of_a_table_takes_arrays() -> None:
    methods = {name for name in vars(TableStatistics) if not name.startswith("_")}
    assert methods == set(CALLS)
    assert all(getattr(dp.stats, name) is getattr(arrays, name) for name in CALLS)


@pytest.mark.some_quick(9)
@pytest.mark.parametrize("name", CALLS)
def test_arrays_answer_as_a_table_does(name: str) -> None:
    of_arrays, of_table = CALLS[name]
    columns = {"x": X, "y": Y, "flag": FLAG, "arm": ARM, "city": CITY, "low": X < 0.5, "n": COUNTED["y"]}
    with testing.no_noise():
        expected = numbers(of_table(dp.table(columns, ledger=opened()).stats))
        ledger = opened()
        assert numbers(of_arrays(dp.stats, ledger=ledger)) == pytest.approx(expected, nan_ok=True)
    assert float(ledger.spent["ε"]) == pytest.approx(3, rel=1e-3)


@pytest.mark.parametrize("name", CALLS)
def test_signatures_name_every_argument(name: str) -> None:
    """The same arguments as the method has, less the condition in SQL; whose rows they are comes last."""
    signature = inspect.signature(getattr(dp.stats, name))
    kinds = {one.kind for one in signature.parameters.values()}
    assert kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    assert list(signature.parameters)[-3:] == ["ledger", "people", "rows_per_person"]
    method = inspect.signature(getattr(TableStatistics, name)).parameters.values()
    wanted = {one.name for one in method if one.kind is inspect.Parameter.KEYWORD_ONLY}
    assert wanted - {"where", "complete"} <= set(signature.parameters)
    assert f"table.stats.{name}" in (getattr(dp.stats, name).__doc__ or "")


@pytest.mark.slow
def test_lists_have_the_types_that_a_call_needs() -> None:
    with testing.no_noise():
        found = dp.stats.chi2(["a", "b", None, 7] * 50, expected={"a": 0.5, "b": 0.5}, epsilon=1, ledger=opened())
        assert found.value.tolist() == [50, 50]
        hashed = dp.stats.chi2(["a", "b"] * 50, ["u", "v"] * 50, epsilon=1, ledger=opened())
        assert hashed.value.sum() == 100
        data = {"y": Y.tolist(), "x": [*X[:-1].tolist(), "odd"], "city": CITY.tolist()}
        table = dp.stats.ols(data, "y ~ x + city", ledger=opened(), **FITTED)
        assert len(table.value) == 4
        one = dp.stats.wilcoxon((Y - 0.5).tolist(), between=(-1, 1), epsilon=1, ledger=opened())
        assert -1 <= one.value <= 1


def test_people_are_a_column_or_an_array() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("who"), limit=dp.Pure(epsilon=100))
    whose = np.arange(SIZE) // 2
    given: dict[str, Any] = {"ledger": ledger, "rows_per_person": 2}
    data = {"y": Y, "x": X}
    ends = {"between": {"x": (0, 1), "y": (0, 1)}, "epsilon": 3}
    assert dp.stats.ols(data, "y ~ x", people=whose, **ends, **given)
    assert dp.stats.ols({**data, "who": whose}, "y ~ x", **ends, **given)
    for wrong in ({"data": data}, {"data": {**data, "who": whose}, "people": whose}):
        with refuses(dp.InvalidArgument, "conflicting-arguments"):
            dp.stats.ols(formula="y ~ x", **wrong, **ends, **given)


@pytest.mark.parametrize("data", [None, {}, [1, 2], {1: [2]}])
def test_data_that_is_no_dict_of_columns_is_refused(data: Any) -> None:
    with refuses(dp.InvalidArgument, "wrong-type"):
        dp.stats.ols(data, "y ~ x", epsilon=1, ledger=opened())
    with refuses(dp.InvalidArgument, "wrong-shape"):
        dp.stats.chi2(CITY, ARM, choices=CITIES, epsilon=1, ledger=opened())

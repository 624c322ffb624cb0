"""Linear regressions: coverage by simulation, and releases through the door."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet.errors import BudgetExhausted, InvalidArgument
from discreet.guarantees.unit import row
from discreet.stats.regression.rows import square_sensitivity, sum_of_squares

from .regression_simulation import covered, simulated


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "rows", "epsilon"),
    [("even", 2000, 0.2), ("even", 2000, 5.0), ("skewed", 4000, 3.0), ("narrow", 3000, 2.0), ("even", 500, 0.5)],
)
def test_intervals_cover(kind: str, rows: int, epsilon: float) -> None:
    """False alarm below 1e-6: 4.8 binomial deviations of 600 runs below 95%. A law without the noise covers less than
    70% where ε is .2, so this would be seen.
    """
    found = covered(kind, rows, epsilon, runs=600, seed=1)
    assert min(found) >= 0.95 - 4.8 * math.sqrt(0.95 * 0.05 / 600)


@pytest.mark.slow
def test_robust_intervals_cover_where_plain_ones_do_not() -> None:
    """Residuals spread with the square of x: the plain standard error is too small by a third."""
    robust = covered("heteroscedastic", 5000, 5.0, runs=120, seed=2, robust=True)
    plain = covered("heteroscedastic", 5000, 5.0, runs=120, seed=2)
    margin = 4.8 * math.sqrt(0.95 * 0.05 / 120)
    assert min(robust) >= 0.95 - margin
    assert min(plain) < 0.95 - margin


@pytest.mark.slow
def test_intervals_by_person_cover_where_plain_ones_do_not() -> None:
    """Three rows of a person say little more than one."""
    by_person = covered("clustered", 6000, 5.0, runs=120, seed=3, robust=True)
    plain = covered("clustered", 6000, 20.0, runs=120, seed=3)
    margin = 4.8 * math.sqrt(0.95 * 0.05 / 120)
    assert min(by_person) >= 0.95 - margin
    assert min(plain) < 0.95 - margin


def test_noise_widens_intervals_and_hides_them_at_last() -> None:
    few = simulated("even", 2000, 1.0, runs=3, seed=3)
    none = simulated("even", 2000, 0.001, runs=3, seed=3)
    assert bool(few.is_known.all())
    assert not bool(none.is_known.any())
    assert np.isnan(none.coefficients).all()
    assert np.isnan(none.deviations()).all()
    assert (none.p_of(1, 0.0) == 1).all()


# --- through the door --------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
SIZE = 4000
AGE, TREATED = RNG.integers(18, 90, SIZE), RNG.random(SIZE) < 0.4
CITY = RNG.choice(["Acre", "Bled", "Cork"], SIZE)
COST = np.clip(50 + 2 * AGE + 30 * TREATED + 20 * (CITY == "Bled") + RNG.normal(0, 40, SIZE), 0, 500)
VISITS = pd.DataFrame({"age": AGE, "treated": TREATED, "city": CITY, "cost": COST, "who": np.arange(SIZE) // 2})
RANGES: dict[str, Any] = {"between": {"cost": (0, 500), "age": (0, 120)}}
CITIES: dict[str, Any] = {"levels": {"city": ["Acre", "Bled", "Cork"]}}


LEDGERS: list[Any] = []


def visits(unit: Any = None, limit: float = 1000, source: Any = VISITS, **given: Any) -> Any:
    ledger = dp.Ledger.open(":memory:", limit=dp.Approx(epsilon=limit, delta=1e-3), protects=unit or dp.row())
    LEDGERS.append(ledger)
    return dp.table(source, ledger=ledger, **given)


def spent(table: Any) -> int:
    """How many entries were charged."""
    return sum(entry.kind == "charge" for entry in LEDGERS[-1].entries())


def least_squares(*terms: Any) -> Any:
    return np.linalg.lstsq(np.stack([np.asarray(term, dtype=float) for term in terms], 1), COST, rcond=None)[0]


def test_the_line_of_the_tour() -> None:
    found = visits().stats.ols("cost ~ age + treated", epsilon=5)
    text = found.summary()
    assert "OLS regression" in text
    assert "[0.025" in text
    assert "P>|t|" in text
    assert "treated" in text
    assert list(found.params) == list(found.bse) == list(found.pvalues) == ["Intercept", "age", "treated"]
    assert any("range that was found" in one for one in found.assumed)
    assert "<table>" in found._repr_html_()
    assert found.nobs == pytest.approx(SIZE, abs=100)


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("robust", [None, "HC"])
def test_with_much_epsilon_it_is_least_squares(delta: float, robust: Any) -> None:
    found = visits().stats.ols(
        "cost ~ age + treated + city", **RANGES, **CITIES, robust=robust, epsilon=200, delta=delta
    )
    plain = least_squares(np.ones(SIZE), AGE, TREATED, CITY == "Bled", CITY == "Cork")
    assert list(found.params) == ["Intercept", "age", "treated", "city[Bled]", "city[Cork]"]
    assert list(found.params.values()) == pytest.approx(list(plain), abs=0.8)
    residuals = COST - np.stack([np.ones(SIZE), AGE, TREATED, CITY == "Bled", CITY == "Cork"], 1) @ plain
    assert found.residual_variance == pytest.approx(residuals @ residuals / (SIZE - 5), rel=0.02)
    assert found.rsquared == pytest.approx(1 - residuals.var() / COST.var(), abs=0.02)
    low, high = found.conf_int()["age"]
    assert low < 2 < high
    assert high - low < 0.3
    assert found.pvalues["age"] < 1e-3
    assert found.coefficient("age").test(2).p_value > 0.001


def test_without_an_intercept_and_with_a_product() -> None:
    found = visits().stats.ols("cost ~ age:treated + age - 1", **RANGES, epsilon=500)
    plain = least_squares(AGE, AGE * TREATED)
    assert found.params["age"] == pytest.approx(plain[0], abs=0.1)
    assert found.params["age:treated"] == pytest.approx(plain[1], abs=0.1)


def test_people_with_several_rows_are_the_sample() -> None:
    """Every row twice says no more than once: the standard error is that of one row per person."""
    double = pd.concat([VISITS, VISITS]).assign(who=np.tile(np.arange(SIZE), 2))
    ledger = dp.Ledger.open(":memory:", limit=dp.Pure(epsilon=1000), protects=dp.person("who"))
    twice = dp.table(double, ledger=ledger, rows_per_person=2).stats.ols("cost ~ age", **RANGES, epsilon=500)
    once = visits().stats.ols("cost ~ age", **RANGES, robust="HC", epsilon=500)
    assert twice.errors == "by person"
    assert twice.bse["age"] == pytest.approx(once.bse["age"], rel=0.1)


def test_it_is_charged_once_and_free_again(tmp_path: Path) -> None:
    VISITS.to_parquet(tmp_path / "visits.parquet")
    table = visits(limit=3, source=tmp_path / "visits.parquet")
    text = str(table.explain.stats.ols("cost ~ age", **RANGES, robust="HC", epsilon=1))
    assert "costs ε = 1" in text
    assert "age ±" in text
    assert not spent(table)
    first = table.stats.ols("cost ~ age", **RANGES, robust="HC", epsilon=1)
    second = table.stats.ols("cost ~ age", **RANGES, robust="HC", epsilon=1)
    assert second.replayed
    assert second.params == first.params
    assert second.conf_int() == first.conf_int()
    assert spent(table) == 1
    assert float(first.guarantee.epsilon_at(delta=0)) <= 1 + 1e-9
    with pytest.raises(BudgetExhausted):
        table.stats.ols("cost ~ age + treated", **RANGES, epsilon=2.5)


def test_too_little_epsilon_says_so() -> None:
    found = visits().stats.ols("cost ~ age + treated", **RANGES, epsilon=0.001)
    assert found.reason is not None
    assert found.reason in found.summary()
    assert found.conf_int()["age"] == (-math.inf, math.inf)
    assert found.pvalues["age"] == 1
    assert math.isnan(found.params["age"])
    assert str(found)
    assert found._repr_html_()


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"formula": "cost ~ city"}, "choices-missing"),
        ({"formula": "cost ~ nothing"}, "unknown-column"),
        ({"formula": "cost ~ age", "robust": "HC9"}, "not-an-option"),
        ({"formula": "cost ~ age", "between": {"who": (0, 1)}}, "formula"),
        ({"formula": "cost ~ age", "levels": {"cost": [1, 2]}}, "formula"),
        ({"formula": "cost ~ city", "levels": {"city": ["Acre"]}}, "choices-missing"),
        ({"formula": "cost ~ age", "between": {"age": (9, 1)}}, "ends-out-of-order"),
        ({"formula": "city ~ age", "between": {"age": (0, 9)}}, "choices-missing"),
    ],
)
def test_refusals(given: dict[str, Any], code: str) -> None:
    table = visits()
    with pytest.raises(InvalidArgument) as refused:
        table.stats.ols(epsilon=1, **given)
    assert refused.value.code == code
    assert not spent(table)


def test_other_names_of_coefficients_are_refused() -> None:
    found = visits().stats.ols("cost ~ age", **RANGES, epsilon=1)
    with pytest.raises(InvalidArgument) as refused:
        found.coefficient("agee")
    assert refused.value.code == "unknown-column"


def test_squares_of_scores_move_by_their_sensitivity_at_most() -> None:
    """The scores of one unit, squared and cut off, are at most 1 each, whatever its rows."""
    one = sum_of_squares(np.array([[7.0, -9.0, np.nan, 0.5]])).astype(float)
    assert list(one) == [1, 1, 0, 0.25]
    assert square_sensitivity(4, row(), "L1").exact == 4
    assert float(square_sensitivity(4, row(), "L2").exact) == pytest.approx(2)

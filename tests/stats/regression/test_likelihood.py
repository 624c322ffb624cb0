"""Logistic and Poisson regressions: coverage by simulation, sensitivity, and releases through the door."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.guarantees.unit import row
from discreet.mechanisms.noise.steps import Steps
from discreet.stats.inference.noisy_shares import Noise
from discreet.stats.regression.designs import Coded, Design
from discreet.stats.regression.formula import parse_formula
from discreet.stats.regression.likelihood import INFORMATION, Features, Link, score_parts
from discreet.stats.regression.likelihood_methods import PARTS, Likelihood
from discreet.stats.regression.released_moments import best_layout

from ...refusing import refuses
from .regression_simulation import exact_numbers

FORMULA = parse_formula("y ~ x + t")
SLOPES = (-0.7, 1.0, 0.6)
OUTCOMES = {"logistic": Coded("y", levels=(False, True)), "poisson": Coded("y", (0, 12))}


def likelihood(family: Any, epsilon: float) -> Likelihood:
    """A regression without a table, of which the noise is known."""
    made = Likelihood(None, FORMULA, family)  # type: ignore[arg-type]
    columns = (Coded("x", (-1, 1)), Coded("t", levels=(False, True)), OUTCOMES[family])
    made.__dict__["design"] = Design(FORMULA, columns)
    layout = best_layout(made.design, "L1", row(), 1)
    step = made.features.sensitivity(made.link, row(), "L1")
    bounds = (layout.query.sensitivity(row()), step, step)
    mechanism = Steps.for_guarantee(dp.Pure(epsilon=epsilon), sensitivity=bounds, parts=PARTS)
    made.__dict__["_chosen"] = (layout, mechanism, bounds)
    return made


def covered(family: Any, rows: int, epsilon: float, *, runs: int, seed: int) -> list[float]:
    """How often 95% intervals have the true coefficients."""
    rng, made = np.random.default_rng(seed), likelihood(family, epsilon)
    layout, mechanism, _ = made._chosen
    noises = [Noise.of(noise) for noise in mechanism.noises]
    weights = np.array([1.0] * made.features.size + [float(INFORMATION)] * len(made.features.pairs))
    held = np.zeros(3)
    for _ in range(runs):
        x, t = rng.uniform(-1, 1, rows), (rng.random(rows) < 0.4).astype(float)
        line = SLOPES[0] + SLOPES[1] * x + SLOPES[2] * t
        if family == "logistic":
            y = (rng.random(rows) < 1 / (1 + np.exp(-line))).astype(float)
        else:
            y = np.minimum(rng.poisson(np.exp(line)), 12) / 6.0 - 1  # the code of a number
        codes = [x, t, y]
        first = exact_numbers(layout, codes)
        answers: list[Any] = [first + rng.laplace(size=len(first)) * noises[0].laplace]
        for noise in noises[1:]:
            at = made.fit(answers)
            parts = score_parts(made.features, made.link, at, made.design.values(codes)).sum(0) * weights
            answers.append(parts + rng.laplace(size=len(parts)) * noise.laplace)
        start, model = made.fit(answers[:-1]), made.step(answers[-1], noises[-1])
        units = made.design.units / made.design.outcome_unit
        held += [
            bool(model.p_of(place, slope / units[place] - start[place], 0.05) > 0.05)
            for place, slope in enumerate(SLOPES)
        ]
    return list(held / runs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "rows", "epsilon"), [("logistic", 2000, 2.0), ("logistic", 3000, 0.5), ("poisson", 3000, 3.0)]
)
def test_intervals_cover(family: str, rows: int, epsilon: float) -> None:
    """False alarm below 1e-6: 4.9 binomial deviations of 120 runs below 95%."""
    assert min(covered(family, rows, epsilon, runs=120, seed=1)) >= 0.95 - 4.9 * math.sqrt(0.95 * 0.05 / 120)


@pytest.mark.parametrize("family", ["logistic", "poisson"])
@pytest.mark.parametrize("neighbors", ["add_or_remove", "replace"])
def test_no_row_moves_a_step_by_more_than_its_sensitivity(family: Any, neighbors: Any) -> None:
    """Rows at corners, and coefficients near and far."""
    rng, made = np.random.default_rng(4), likelihood(family, 1.0)
    weights = np.array([1.0] * 3 + [float(INFORMATION)] * 6)
    codes = [rng.choice([-1.0, 1.0], 300), rng.integers(0, 2, 300).astype(float), rng.uniform(0, 1, 300)]
    codes[2] = np.rint(codes[2]) if family == "logistic" else 2 * codes[2] - 1
    for at in (np.zeros(3), np.array([1.0, -2.0, 3.0]), np.array([40.0, 90.0, -9.0])):
        parts = score_parts(made.features, made.link, at, made.design.values(codes)) * weights
        moves = parts if neighbors == "add_or_remove" else (parts[:, None] - parts[None]).reshape(-1, 9)
        for norm, sizes in (("L1", np.abs(moves).sum(1)), ("L2", np.sqrt((moves**2).sum(1)))):
            bound = made.features.sensitivity(made.link, row(neighbors=neighbors), norm)
            assert sizes.max() <= float(bound.exact) * (1 + 1e-9)


def test_features_are_within_one_and_span_the_terms() -> None:
    for text in ("y ~ x*t", "y ~ x - 1", "y ~ x:t"):
        formula = parse_formula(text)
        known = {"x": Coded("x", (2, 9)), "t": Coded("t", levels=(False, True)), "y": OUTCOMES["logistic"]}
        design = Design(formula, tuple(known[name] for name in formula.columns))
        rng = np.random.default_rng(1)
        codes = [
            rng.uniform(-1, 1, 50) if one.levels is None else rng.integers(0, 2, 50) * 1.0 for one in design.columns
        ]
        features, terms = Features(design), design.values(codes)[:, :-1]
        found = terms @ features.of_features
        assert np.abs(found).max() <= 1 + 1e-9
        assert found @ features.of_terms == pytest.approx(terms)


def test_means_and_variances() -> None:
    assert Link("logistic").mean(np.array([0.0, 999.0])) == pytest.approx([0.5, 1.0])
    assert Link("poisson", 4.0).mean(np.array([0.0, 999.0])) == pytest.approx([0.25, 1.0])


# --- through the door --------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
SIZE = 6000
AGE, TREATED = RNG.integers(18, 90, SIZE), RNG.random(SIZE) < 0.4
SICK = RNG.random(SIZE) < 1 / (1 + np.exp(3 - 0.04 * AGE + 0.5 * TREATED))
TIMES = RNG.poisson(np.exp(-0.5 + 0.015 * AGE + 0.3 * TREATED))
PEOPLE = pd.DataFrame({"age": AGE, "treated": TREATED, "sick": SICK, "times": TIMES, "who": np.arange(SIZE) // 2})


def people(unit: Any = None, **given: Any) -> Any:
    ledger = dp.Ledger.open(":memory:", limit=dp.Approx(epsilon=2000, delta=1e-3), protects=unit or dp.row())
    return dp.table(PEOPLE, ledger=ledger, **given)


def most_likely(outcome: Any, mean: Any, variance: Any) -> Any:
    """Newton's method without privacy."""
    terms, at = np.column_stack([np.ones(SIZE), (AGE - 50) / 50, TREATED]), np.zeros(3)
    for _ in range(30):
        value = mean(terms @ at)
        at = at + np.linalg.solve((terms * variance(value)[:, None]).T @ terms, terms.T @ (outcome - value))
    return [at[0] - at[1], at[1] / 50, at[2]]


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_logistic_with_much_epsilon_is_maximum_likelihood(delta: float) -> None:
    found = people().stats.logistic("sick ~ age + treated", between={"age": (0, 100)}, epsilon=300, delta=delta)
    plain = most_likely(SICK, lambda line: 1 / (1 + np.exp(-line)), lambda mean: mean * (1 - mean))
    assert list(found.params.values()) == pytest.approx(plain, abs=0.03)
    assert "Logistic regression" in found.summary()
    low, high = found.conf_int()["age"]
    assert low < 0.04 < high
    assert found.pvalues["treated"] < 1e-3


def test_poisson_with_much_epsilon_is_maximum_likelihood() -> None:
    ranges = {"age": (0, 100), "times": (0, 15)}
    found = people().stats.poisson("times ~ age + treated", between=ranges, epsilon=500)
    assert list(found.params.values()) == pytest.approx(most_likely(TIMES, np.exp, lambda mean: mean), abs=0.03)
    assert found.nobs == pytest.approx(SIZE, abs=10)


def test_people_ranges_that_are_found_and_too_little_epsilon() -> None:
    found = people(dp.person("who"), rows_per_person=2).stats.logistic("sick ~ age", epsilon=50)
    assert found.nobs == pytest.approx(SIZE / 2, abs=50)
    assert found.params["age"] == pytest.approx(0.04, abs=0.015)
    assert people().stats.poisson("times ~ age", epsilon=50).params["age"] == pytest.approx(0.015, abs=0.01)
    nothing = people().stats.logistic("sick ~ age", between={"age": (0, 100)}, epsilon=0.001)
    assert nothing.reason is not None
    assert nothing.pvalues["age"] == 1
    assert "logistic" in str(people().explain.stats.logistic("sick ~ age", between={"age": (0, 100)}, epsilon=1))


def test_text_is_no_condition_until_its_type_is_declared(tmp_path: Path) -> None:
    words = pd.DataFrame({"age": np.arange(300) % 90, "sick": np.where(np.arange(300) % 2, "yes", "no")})
    words.to_csv(tmp_path / "people.csv", index=False)
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=9))
    with refuses(InvalidArgument, "column-type") as told:
        dp.table(tmp_path / "people.csv", ledger=ledger).stats.logistic("sick ~ age", epsilon=1)
    assert 'types={"sick": "boolean"}' in str(told.value)
    table = dp.table(tmp_path / "people.csv", ledger=ledger, types={"sick": "boolean"})
    assert "age" in table.stats.logistic("sick ~ age", between={"age": (0, 90)}, epsilon=1).pvalues


@pytest.mark.parametrize(
    ("method", "formula", "between", "code"),
    [
        ("logistic", "times ~ age", None, "column-type"),
        ("poisson", "sick ~ age", None, "column-type"),
        ("poisson", "times ~ age", {"times": (1, 9)}, "out-of-range"),
    ],
)
def test_refusals(method: str, formula: str, between: Any, code: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        getattr(people().stats, method)(formula, between=between, epsilon=1)
    assert refused.value.code == code
    with pytest.raises(InvalidArgument):
        people().stats.logistic("sick ~ age", epsilon=1).rsquared  # noqa: B018

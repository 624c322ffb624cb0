"""Weights of marginals, and plans whose largest variance is least: against a solver, and by what they mean."""

import math

import numpy as np
import pytest

import discreet as dp

from .test_residuals import ADULT, kron, ordered_plan, plan

LARGEST = {1: 12.047, 2: 67.802, 3: 236.843}
"""The least possible largest variances of marginals of so many columns of Adult, at privacy cost 1."""


@pytest.mark.parametrize("ways", LARGEST)
def test_the_least_largest_variance_of_adult(ways):
    made = plan(ADULT, ways, least="largest")
    assert 1 - 1e-5 < made.largest_deviation() ** 2 / LARGEST[ways] < 1.001
    assert made.largest_deviation() < plan(ADULT, ways).largest_deviation() * 0.7
    assert 1 - 1e-11 < made._added <= 1


def all_variances(made):
    """c_A of every question of every set, from all questions and not from the frontier, times the weights."""
    lines = []
    for names in made.workload.sets:
        spreads = [made._bases[name].spreads for name in names]
        table = np.zeros((math.prod(len(v) for v, _, _ in spreads), len(made.closure)))
        for part in made._known_parts(names):
            factors = [s[0 if name in part else 1][:, None] for name, s in zip(names, spreads, strict=True)]
            table[:, made.closure.index(part)] = kron(factors)[:, 0]
        lines.append(table * float(dict(made.weights).get(names, 1)))
    return np.concatenate(lines)


def best_by_a_solver(made):
    """The least largest variance for these matrices, as a convex problem over the logarithms of the variances."""
    from scipy.optimize import minimize

    lines, kept = all_variances(made), np.array([float(made._kept(part)) for part in made.closure])
    start = np.log(np.array([float(made._variances[part]) for part in made.closure]))
    start = np.append(start + 0.3 * np.sin(np.arange(len(start))), 0.0)

    def largest(point):
        return point[-1] - np.log(lines @ np.exp(point[:-1]))

    def cost(point):
        return -np.log((kept / np.exp(point[:-1])).sum())

    start[-1] -= largest(start).min()
    rules = [{"type": "ineq", "fun": largest}, {"type": "ineq", "fun": cost}]
    found = minimize(lambda point: point[-1], start, constraints=rules, options={"maxiter": 500, "ftol": 1e-10})
    assert found.success
    return math.exp(found.x[-1])


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((4, 3, 2), {}),
        ((4, 3, 2), {"weights": {("c0", "c1"): 9, ("c0", "c2"): 0.1}}),
        ((5, 3, 2), {"prefixes": ("c0",), "weights": {("c0", "c2"): 20}}),
        ((4, 2, 3), {"ranges": ("c0",), "prefixes": ("c1",)}),
    ],
)
def test_no_plan_has_a_smaller_largest_variance(sizes, options):
    made = plan(sizes, 2, least="largest", **options)
    found = (all_variances(made) @ [float(made._variances[part]) for part in made.closure]).max()
    assert 1 - 1e-5 < found / best_by_a_solver(made) < 1.001 + 1e-5
    other = plan(sizes, 2, **options)
    assert found < (all_variances(other) @ [float(other._variances[part]) for part in other.closure]).max()


def test_sets_of_different_sizes():
    """A marginal that others contain, the total, and a column with one value."""
    made = plan((4, 1, 3), [(), ("c0",), ("c0", "c1"), ("c0", "c2")], least="largest", weights={("c0",): 50})
    found = (all_variances(made) @ [float(made._variances[part]) for part in made.closure]).max()
    assert found / best_by_a_solver(made) == pytest.approx(1, abs=1.1e-3)


def test_the_largest_deviation_is_that_of_a_question():
    made = ordered_plan(stddev=3, of=2)
    largest = {names: math.sqrt(made._spreads(names)[0].max()) for names in made.workload.sets}
    for names, deviation in largest.items():
        assert made.largest_deviation(names[::-1]) == pytest.approx(deviation)
    assert made.largest_deviation() == pytest.approx(max(largest.values()))
    assert made.largest_deviation(()) == pytest.approx(made.deviation({}))


def test_what_a_weight_means():
    """It multiplies the variance: with weight 4, deviations are half as large if the largest is least."""
    sizes = (60, 60, 60)
    made = plan(sizes, 1, least="largest", weights={("c1",): 4})
    assert 2 * made.largest_deviation(("c1",)) == pytest.approx(made.largest_deviation(("c0",)), rel=1e-3)
    weighted = plan(sizes, 1, weights={("c1",): 4})
    assert 1.3 < weighted.largest_deviation(("c0",)) / weighted.largest_deviation(("c1",)) < 1.5  # about √2
    every = {(f"c{i}",): 7 for i in range(3)}
    for least in ("sum", "largest"):
        same = plan(sizes, 1, weights=every, least=least).largest_deviation()
        assert same == pytest.approx(plan(sizes, 1, least=least).largest_deviation(), rel=1e-6)
    assert plan(sizes, 2, weights={("c1", "c0"): 2}) == plan(sizes, 2, weights={("c0", "c1"): 2})


@pytest.mark.parametrize(
    ("weights", "code"),
    [
        ({("c0", "c1"): 1}, "not-in-workload"),
        ({(): 1}, "not-in-workload"),
        ({("c7",): 1}, "unknown-column"),
        ({("c0",): 0}, "out-of-range"),
        ({("c0",): -1}, "out-of-range"),
        ({("c0",): 1e7}, "out-of-range"),
        ({("c0",): math.inf}, "not-a-number"),
        ({("c0",): math.nan}, "not-a-number"),
        ({("c0",): "much"}, "not-a-number"),
        ({"c0": 1}, "wrong-type"),
        ([("c0", 1)], "wrong-type"),
        (((("c0",), 1, 2),), "wrong-type"),
        (((("c0",), 1), (("c0",), 2)), "duplicates"),
        (None, "wrong-type"),
        (3, "wrong-type"),
    ],
)
def test_refused_weights(weights, code):
    with pytest.raises(dp.InvalidArgument) as refused:
        plan((2, 2), 1, weights=weights)
    assert refused.value.code == code

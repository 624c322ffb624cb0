"""Levels that add up: the estimates are those of least squares, their variances are known, and whole numbers add up."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from discreet.queries.levels import Levels, LevelSizes, with_meets
from discreet.sql.pricing.levels import reach

PRODUCT = list(itertools.product(range(3), range(4), range(2)))
TREE = [(region, city) for region in range(6) for city in range(1 + region * region)]
SPARSE = [cell for n, cell in enumerate(PRODUCT) if n % 5]
CUBE = [keys for size in (3, 2, 1, 0) for keys in itertools.combinations(range(3), size)]
CASES: dict[str, tuple[list[Any], list[Any]]] = {
    "a tree": (TREE, [(0, 1), (0,), ()]),
    "a tree without its leaves": (TREE, [(0,), ()]),
    "all combinations": (PRODUCT, CUBE),
    "some combinations": (SPARSE, CUBE),
    "without the finest": (PRODUCT, list(with_meets([(0, 1), (1, 2)]))),
}


def dense(levels: Levels) -> list[Any]:
    """The sums of each level as a matrix."""
    made = []
    for size, places in zip(levels.sizes, levels.places, strict=True):
        matrix = np.zeros((size, levels.cells))
        matrix[places, np.arange(levels.cells)] = 1
        made.append(matrix)
    return made


def case(name: str) -> tuple[Levels, list[float], Any]:
    cells, keys = CASES[name]
    levels, _ = Levels.of(keys, cells)
    return levels, [1 + n / 2 for n in range(len(keys))], np.random.default_rng(3)


@pytest.mark.parametrize("name", CASES)
def test_estimates_are_those_of_least_squares(name):
    levels, weights, rng = case(name)
    truth = rng.integers(0, 1000, levels.cells)
    noisy = [levels.sums(truth, n) + rng.integers(-50, 50, size) for n, size in enumerate(levels.sizes)]
    base, rest = levels.estimates(noisy, weights)
    matrices = dense(levels)
    squared = sum(w * m.T @ m for w, m in zip(weights, matrices, strict=True))
    best = np.linalg.pinv(squared) @ sum(w * m.T @ y for w, m, y in zip(weights, matrices, noisy, strict=True))
    for matrix in matrices:  # cells may be open to choice, but no level is
        assert_allclose(matrix @ (base + rest), matrix @ best, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_variances_are_exact_or_larger(name):
    levels, weights, _ = case(name)
    matrices = dense(levels)
    inverse = np.linalg.pinv(sum(w * m.T @ m for w, m in zip(weights, matrices, strict=True)))
    for matrix, stated in zip(matrices, levels.variances(weights), strict=True):
        true = np.diag(matrix @ inverse @ matrix.T)
        assert (stated >= true - 1e-9).all()
        if name != "some combinations" and name != "without the finest":
            assert_allclose(stated, true)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_whole_numbers_are_near_and_add_up(name, positive):
    levels, weights, rng = case(name)
    truth = rng.integers(0, 30, levels.cells)
    noisy = [levels.sums(truth, n) + rng.integers(-20, 20, size) for n, size in enumerate(levels.sizes)]
    base, rest = levels.estimates(noisy, weights)
    whole = levels.whole(base, rest, positive=positive)
    assert whole.dtype == np.int64
    if positive:
        assert whole.min() >= 0
        assert abs(whole.sum() - max((base + rest).sum(), 0)) <= 0.5
    else:
        for n, matrix in enumerate(dense(levels)):
            off = np.abs(levels.sums(whole, n) - matrix @ (base + rest)).max()
            assert off <= (1.5 if levels.is_chain() else levels.cells)


def test_known_sums_are_kept():
    levels, weights, rng = case("a tree")
    noisy = [rng.integers(0, 100, size) for size in levels.sizes]
    known = [10, 20, 30, 40, 50, 60]
    for positive in (False, True):
        whole = levels.whole(*levels.estimates(noisy, weights), (1, known), positive=positive)
        assert levels.sums(whole, 1).tolist() == known
        assert levels.sums(whole, 2).tolist() == [210]


def test_large_numbers_keep_their_last_digits():
    levels, _ = Levels.of([(0,), ()], [(0,), (1,), (2,)])
    values = np.array([2**61, 2**61 + 1, 2**61 + 3])
    noisy = [levels.sums(values, 0), levels.sums(values, 1)]
    assert noisy[1].tolist() == [3 * 2**61 + 4]
    whole = levels.whole(*levels.estimates(noisy, [1, 1]))
    assert [int(one) for one in whole] == values.tolist()


def test_shares_are_better_than_equal_ones_and_stated_variances_follow():
    sizes = LevelSizes(((0, 1), (0,), ()), (400, 20, 1), 400, 3)
    shares = sizes.shares()
    assert shares.sum() == pytest.approx(1)
    equal = sizes.variances(np.full(3, 1 / 9)).sum()
    assert sizes.variances(shares**2).sum() < equal
    rng = np.random.default_rng(1)
    for other in rng.dirichlet(np.ones(3) * 5, 200):
        assert sizes.variances(other**2).sum() > sizes.variances(shares**2).sum() * (1 - 1e-6)


def test_keys_in_common_are_levels():
    assert with_meets([(0, 1), (1, 2)]) == ((0, 1), (1, 2), (1,))
    assert with_meets([(0,), (1,)]) == ((0,), (1,), ())
    assert with_meets([(0, 1), (0,), ()]) == ((0, 1), (0,), ())


@pytest.mark.parametrize("factors", [[1.0], [1, 1], [1, 0.5, 0.1], [1] * 8, [3, 1, 1, 1]])
def test_reach_holds_for_sums_of_laplace_noises(factors):
    rng = np.random.default_rng(7)
    noise = rng.laplace(size=(200_000, len(factors))) @ np.array(factors)
    deviation = np.sqrt(2 * np.sum(np.square(factors)))
    for confidence in (0.5, 0.8, 0.9, 0.95, 0.99, 0.999):
        outside = np.mean(np.abs(noise) > reach(confidence) * deviation)
        allowed = 1 - confidence
        assert outside <= allowed + 4 * np.sqrt(allowed * (1 - allowed) / len(noise))

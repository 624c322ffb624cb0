"""Least squares with known noise, next to the textbook formula with a pseudoinverse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.sql.estimates.least_squares import UNBIASED, Block, Information, spread_places


def design(seed: int) -> Any:
    """Some measurements of a few cells, and sums that are asked for."""
    draw = np.random.default_rng(seed)
    cells = int(draw.integers(2, 9))
    information, rows, variances = Information(cells), [np.zeros((0, cells))], []
    for number in range(int(draw.integers(0, 7))):
        groups = int(draw.integers(1, 4))
        own = spread_places(draw.integers(-1, groups, cells), groups)
        noise = dp.Laplace(scale=float(draw.uniform(1, 40)), step=1)
        information = information.with_blocks([Block(number, str(number), own, noise, np.zeros(groups))])
        rows.append(own)
        variances += [2 * float(noise.scale) ** 2] * groups
    many = int(draw.integers(1, 4))
    asked = spread_places(draw.integers(-1, many, cells), many)
    return information, np.vstack(rows), np.array(variances), asked[asked.sum(axis=1) > 0]


def textbook(rows: Any, variances: Any, asked: Any) -> Any:
    inverse = np.linalg.pinv(rows.T @ (rows / variances[:, None]), rcond=1e-10, hermitian=True)
    return asked @ inverse @ rows.T / variances, np.diag(asked @ inverse @ asked.T)


@pytest.mark.parametrize("seed", range(200))
def test_the_weights_are_those_of_the_textbook(seed: int) -> None:
    information, rows, variances, asked = design(seed)
    if not len(asked):
        return
    prior, new = information.about(asked), 50.0
    both = np.vstack([rows, asked]), np.r_[variances, [new] * len(asked)]
    expected, spread = textbook(*both, asked)
    found = prior.weights(new)
    assert found is not None
    assert np.allclose(np.c_[found.before, found.new], expected, atol=1e-8)
    assert np.allclose(prior.variances(new), spread)
    follows = len(rows) > 0 and np.allclose(asked @ np.linalg.pinv(rows) @ rows, asked)
    assert prior.is_complete == follows
    alone = prior.weights()
    assert (alone is not None) == follows
    if alone is not None:
        assert np.allclose(alone.before, textbook(rows, variances, asked)[0], atol=1e-8)
        assert np.abs(alone.before @ rows - asked).max() <= UNBIASED


def test_measurements_that_are_added_later_count_as_if_they_had_been_there() -> None:
    draw = np.random.default_rng(3)
    noise = [dp.Laplace(scale=scale, step=1) for scale in (2, 9, 30)]
    blocks = [Block(n, "", spread_places(draw.integers(-1, 2, 6), 2), noise[n % 3], np.zeros(2)) for n in range(12)]
    slowly, asked = Information(6), np.eye(6)
    for block in blocks:
        slowly = slowly.with_blocks([block])
        slowly.about(asked)
    at_once = Information(6).with_blocks(blocks)
    assert np.allclose(slowly.about(asked).variances(7.0), at_once.about(asked).variances(7.0))


def test_noise_that_is_hidden_by_much_larger_noise_counts_as_unknown() -> None:
    noises = [dp.Laplace(scale=scale, step=1) for scale in (1, 10**12)]
    rows = np.array([[[1.0, 1.0]], [[1.0, 0.0]]])
    information = Information(2).with_blocks([Block(n, "", rows[n], noises[n], np.zeros(1)) for n in range(2)])
    assert not information.about(np.array([[1.0, 0.0]])).is_complete
    assert information.about(np.array([[1.0, 1.0]])).is_complete

"""The hypergeometric sampler: against its exact probabilities, and with the exact path forced.

Every p-value fails below 10^-7, and no test looks at more than ten.
"""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.exact import hypergeometric, samplers
from discreet.exact.hypergeometric import Hypergeometric

from ..refusing import refuses

LAWS = [(1, 999, 500), (3, 4, 2), (7, 5, 6), (50, 30, 40), (60, 900, 300), (500, 500, 1), (40, 40, 79)]


def draw(law, size):
    return samplers.hypergeometric(*(np.full(size, part) for part in law))


def probabilities(marked, others, taken):
    ways = comb(marked + others, taken)
    return [comb(marked, k) * comb(others, taken - k) / ways if k <= taken else 0.0 for k in range(marked + 1)]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_numbers_have_their_probabilities(checks, law):
    """Rejects a law with one more thing taken, or one more marked, wherever that changes a probability by 5%."""
    drawn = np.bincount(draw(law, 100_000), minlength=law[0] + 1)
    assert checks.goodness(drawn, probabilities(*law)) > checks.ALARM


@pytest.mark.parametrize("law", LAWS[1:4], ids=str)
def test_exact_ratios_decide_alike(checks, law, monkeypatch):
    """Every acceptance is decided by exact ratios, as for a uniform number next to its bound."""
    monkeypatch.setattr(samplers, "GUARD", 2.0)
    drawn = np.bincount(draw(law, 5_000), minlength=law[0] + 1)
    assert checks.goodness(drawn, probabilities(*law)) > checks.ALARM


def test_a_law_nearby_is_rejected(checks):
    drawn = np.bincount(draw((50, 30, 40), 100_000), minlength=51)
    assert checks.goodness(drawn, [*probabilities(49, 31, 40), 0.0]) < checks.ALARM


def test_many_laws_at_once_and_large_ones(checks):
    size = 40_000
    marked, others, taken = np.array([3, 500_000] * size), np.array([4, 500_000] * size), np.array([2, 300_000] * size)
    drawn = samplers.hypergeometric(marked, others, taken)
    assert checks.goodness(np.bincount(drawn[::2], minlength=4), probabilities(3, 4, 2)) > checks.ALARM
    far = (drawn[1::2] - 150_000) / np.sqrt(300_000 * 0.25 * 0.7)
    cuts = np.array([-np.inf, -1.281552, -0.524401, 0, 0.524401, 1.281552, np.inf])
    assert checks.goodness(np.histogram(far, cuts)[0], [0.1, 0.2, 0.2, 0.2, 0.2, 0.1]) > checks.ALARM


def test_nothing_is_drawn_where_only_one_number_is_possible():
    law = (np.array([0, 5, 4, 3]), np.array([7, 0, 6, 2]), np.array([3, 4, 0, 5]))
    assert samplers.hypergeometric(*law).tolist() == [0, 4, 0, 3]
    assert samplers.hypergeometric(*(part[:0] for part in law)).tolist() == []


def test_ratios_are_within_their_slack():
    rng = np.random.default_rng(3)
    for listed in (2**21, 10):
        marked, others = rng.integers(0, 60, 200), rng.integers(0, 60, 200)
        taken = rng.integers(0, marked + others + 1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hypergeometric, "_LISTED", listed)
            law = Hypergeometric(marked, others, taken)
        numbers = rng.integers(law.least, law.most + 1)
        exact = [law.exact_ratio(i, int(k)) for i, k in enumerate(numbers)]
        assert np.abs(law.log_ratio(numbers) - np.log(np.array(exact, dtype=float))).max() < 1e-12
        assert max(exact) <= 1
        outside = [law.exact_ratio(i, int(k)) for i, k in enumerate(law.most + 1)]
        outside += [law.exact_ratio(i, int(k)) for i, k in enumerate(law.least - 1)]
        assert set(outside) == {0}


def test_at_a_width_a_number_is_at_most_half_as_probable():
    rng = np.random.default_rng(4)
    marked, others = rng.integers(0, 400, 300), rng.integers(0, 400, 300)
    law = Hypergeometric(marked, others, rng.integers(0, marked + others + 1))
    for i, width in enumerate(law.widths()):
        for number in (int(law.mode[i] + width), int(law.mode[i] - width)):
            assert law.exact_ratio(i, number) <= 0.5


def test_what_cannot_be_drawn_is_refused():
    one = np.array([1])
    for law in ((one, one, 3 * one), (-one, one, 0 * one), (one, one, -one)):
        with refuses(InvalidArgument, "out-of-range"):
            samplers.hypergeometric(*law)
    with refuses(InvalidArgument, "too-large"):
        samplers.hypergeometric(2**31 * one, one, one)

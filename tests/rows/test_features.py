"""Features of rows: how far apart two rows can be, and how large their tables are."""

from __future__ import annotations

import numpy as np

import discreet as dp
from discreet.rows.features import Axis, RandomFeatures

from ..refusing import refuses


def test_random_features_may_be_two_apart() -> None:
    features = RandomFeatures.drawn([(0, 100)] * 4, [1] * 4, 1)
    rows = np.random.default_rng(0).uniform(0, 100, (400, 4))
    sums = np.array([features.sums(features.counts(rows[i : i + 1])) for i in range(400)]).astype(float) / 2**30
    apart = max(float(np.linalg.norm(a - b)) for a in sums[:60] for b in sums)
    assert 1.5 < apart <= float(features.distance())


def test_tables_of_features_fit_in_memory() -> None:
    with refuses(dp.InvalidArgument, "bandwidth-too-small"):
        Axis(0, 6000, 1)
    assert Axis(0, 300, 1).cells * Axis(0, 300, 1).size < 2**26

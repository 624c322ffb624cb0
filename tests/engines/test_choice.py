"""Which groups of one person are kept is as good as uniform: over the seeds, every subset comes equally often."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.engines import words as duckdb_words

GROUPS, KEPT = 6, 3
SEEDS = 1200
"""So many choices. Of 20 subsets each is expected 60 times."""
CHANCE = 65.0
"""The chi-square statistic of 19 degrees is beyond this with a chance of 7e-7. A law that leaves out one subset of the
20 moves it by 63, one that never has two of them by 127; as it was, with eight of them, it was 1,800."""


def kept(opened: Callable[[Any], Any], rank: Callable[..., str] | None = None) -> Counter[tuple[int, ...]]:
    """How often each subset of one person's groups is kept: in one statement, with the seeds in a column."""
    seeds = [seed for seed in np.random.default_rng(20).integers(0, 2**62, SEEDS).tolist() for _ in range(GROUPS)]
    rows = {"pid": [17] * len(seeds), "k0": [f"g{n}" for n in range(GROUPS)] * SEEDS}
    engine = opened({"t": pa.table(rows | {"seed": seeds, "seedL": seeds})})  # L: as Spark writes one
    place = (rank or engine.words.random_rank)("pid", ["k0"], "seed")
    place = place.replace("PARTITION BY pid", "PARTITION BY pid, seed")
    ranked = f"SELECT seed, k0, {place} AS place FROM {engine.relations['t']}"
    chosen: dict[int, list[int]] = {}
    for seed, key in engine.rows(f"SELECT seed, k0 FROM ({ranked}) AS one WHERE place <= {KEPT}"):
        chosen.setdefault(seed, []).append(int(key[1:]))
    return Counter(tuple(sorted(groups)) for groups in chosen.values())


def distance(found: Counter[tuple[int, ...]]) -> float:
    subsets = list(itertools.combinations(range(GROUPS), KEPT))
    expected = SEEDS / len(subsets)
    assert sum(found.values()) == SEEDS
    return sum((found[subset] - expected) ** 2 / expected for subset in subsets)


def test_every_choice_of_groups_is_as_likely(opened):
    found = kept(opened)
    assert distance(found) < CHANCE, found


def test_a_seed_that_moves_all_groups_alike_is_seen(opened, where):
    """The seeded bug, which was there: DuckDB mixes the last value in by itself."""
    if where != "duckdb":
        pytest.skip("DuckDB's hash alone is made so")

    def wrong(person: str, by: list[str], seed: int) -> str:
        return f"row_number() OVER (PARTITION BY {person} ORDER BY hash({', '.join([*by, person, str(seed)])}))"

    assert distance(kept(opened, wrong)) > 10 * CHANCE


def test_the_choices_of_two_people_are_apart():
    """Of one seed, too: what is kept of one tells nothing of another. 1200 people, 20 subsets."""
    from discreet.engines.duckdb import DuckDB

    people = [n for n in range(SEEDS) for _ in range(GROUPS)]
    engine = DuckDB({"t": pa.table({"pid": people, "k0": [f"g{n}" for n in range(GROUPS)] * SEEDS})})
    rank = duckdb_words.random_rank("pid", ["k0"], 5)
    rows = engine.rows(f"SELECT pid, k0, {rank} AS place FROM {engine.relations['t']} QUALIFY place <= {KEPT}")
    mine: dict[int, list[int]] = {}
    for pid, key, _ in rows:
        mine.setdefault(pid, []).append(int(key[1:]))
    assert distance(Counter(tuple(sorted(groups)) for groups in mine.values())) < CHANCE

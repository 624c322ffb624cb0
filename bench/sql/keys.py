"""Undeclared keys: how many are shown, next to published rules on the same people.

`python -m bench.sql.keys` takes a minute or two; `--quick` runs a small part.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import discreet as dp
from bench import peers
from bench.report import line, notes, section, table, verdict
from bench.sql import key_rules
from bench.sql.key_rules import CAPS, DELTA, EPSILON, SPLITS, Pairs
from discreet.mechanisms.selection.key_holders import PersonKeys
from discreet.mechanisms.selection.weighted_keys import WeightedKeys

GOAL = dp.Approx(epsilon=EPSILON, delta=DELTA)
LARGEST = 300
"""What our mechanisms are made for by default. Nobody declares it."""
COMMON, WEIGHTED, MAD2R, SIPS = "**CommonKeys**", "WeightedKeys", "MAD2R", "DP-SIPS"


@dataclass(frozen=True)
class Family:
    """People whose numbers of keys follow a law; keys are Zipf: the n-th is drawn in proportion to 1/n."""

    name: str
    people: int
    keys: int
    numbers: Callable[[Any, int], Any]

    def drawn(self, seed: int = 1) -> Pairs:
        """Each person draws keys until they have as many different ones as they should, at most half of all."""
        rng = np.random.default_rng(seed)
        wanted = np.clip(self.numbers(rng, self.people), 1, self.keys // 2).astype(np.int64)
        edges = np.cumsum(1 / np.arange(1, self.keys + 1))
        pairs, missing = np.zeros(0, dtype=np.int64), wanted
        while missing.any():
            people = np.repeat(np.arange(self.people), missing)
            codes = np.searchsorted(edges, rng.random(len(people)) * edges[-1], side="right")
            pairs = np.union1d(pairs, people * self.keys + codes)
            missing = wanted - np.bincount(pairs // self.keys, minlength=self.people)
        return Pairs(pairs // self.keys, pairs % self.keys, self.keys)


def _everybody(number: int) -> Callable[[Any, int], Any]:
    return lambda rng, n: np.full(n, number)


FAMILIES = (
    *(Family(f"{number} key{'s' * (number > 1)} each", 10**4, 1000, _everybody(number)) for number in (1, 3, 10, 30)),
    Family("lognormal, median 5, σ 1", 10**4, 1000, lambda rng, n: np.ceil(5 * np.exp(rng.standard_normal(n)))),
    Family("Pareto 1.5", 10**4, 1000, lambda rng, n: np.ceil(rng.random(n) ** (-1 / 1.5))),
    Family("lognormal, many", 10**5, 10**4, lambda rng, n: np.ceil(5 * np.exp(rng.standard_normal(n)))),
)


@dataclass(frozen=True)
class Counts:
    """How many keys each draw showed, and the setting that was used."""

    shown: tuple[int, ...]
    setting: str = ""

    @property
    def mean(self) -> float:
        return float(np.mean(self.shown))

    def __str__(self) -> str:
        said = f" · {self.setting}" if self.setting else ""
        return f"{self.mean:,.0f} ({min(self.shown):,}–{max(self.shown):,}){said}"


def _best(rule: Callable[..., Any], pairs: Pairs, settings: dict[str, Any], draws: int) -> Counts:
    """The setting with the largest mean, which nobody could know."""
    tried = [
        Counts(tuple(int(rule(pairs, np.random.default_rng(seed), given).sum()) for seed in range(draws)), name)
        for name, given in settings.items()
    ]
    return max(tried, key=lambda counts: counts.mean)


def measured(family: Family, draws: int) -> dict[str, Counts]:
    pairs = family.drawn()
    ours = PersonKeys(pairs.people, pairs.codes, range(family.keys))
    common = dp.mechanisms.CommonKeys.for_guarantee(GOAL, keys_per_person=LARGEST)
    weighted = WeightedKeys.for_guarantee(GOAL, keys_per_person=LARGEST)
    few = pairs.capped(LARGEST, np.random.default_rng(0))
    capped = PersonKeys(few.people, few.codes, range(family.keys))
    caps = {f"{cap}": cap for cap in CAPS}
    return {
        COMMON: Counts(tuple(len(common._draw(ours)) for _ in range(draws))),
        WEIGHTED: Counts(tuple(len(weighted._draw(capped)) for _ in range(draws))),
        MAD2R: _best(key_rules.mad2r, pairs, {"out": 0, "½": 0.5, "1": 1}, draws),
        SIPS: _best(key_rules.repeated, pairs, SPLITS, draws),
        "weighted Gaussian": _best(key_rules.repeated, pairs, {"": (1,)}, draws),
        "Laplace, best cap": _best(key_rules.laplace, pairs, caps, draws),
        "truncated geometric, best cap": _best(key_rules.geometric, pairs, caps, draws),
    }


def main(quick: bool = False) -> None:
    peers.one_core()
    section(
        "Undeclared keys",
        "sql.keys",
        f"""Which keys a GROUP BY shows, if nobody declares them: ε = {EPSILON:g}, δ = {DELTA:g}, add or remove a
        person. 10^4 people and 1,000 keys, and in the last row 10^5 people and 10^4 keys; keys are Zipf. The mean
        number of keys that are shown, the least and the most of several draws, and the setting that was best.""",
    )
    families = (FAMILIES[0], FAMILIES[2]) if quick else FAMILIES
    found = []
    for family in families:
        found.append(measured(family, draws=2 if quick else 8 if family.people <= 10**4 else 3))
        if len(found) == 1:
            table("keys a person", *found[0])
        line(family.name, *found[-1].values())
    notes(
        f"""CommonKeys and WeightedKeys are told nothing about the people. They are made for up to {LARGEST} keys a
        person; with more, a person counts less (CommonKeys), or {LARGEST} are kept at random (WeightedKeys).""",
        f"""The peers are rules, written anew from the ideas of their papers (`bench/sql/key_rules.py`), with floats.
        The authors' programs were not run. Gaussian rounds are added up exactly, by μ², which shows more keys than sums
        of ε and δ would. People with more than {key_rules.CAP} keys keep so many of them at random, in each round.""",
        f"""MAD2R (Chen et al. 2025): d_max = {key_rules.DEGREE}, β = {key_rules.ABOVE}, b_min = {key_rules.LEAST:g},
        b_max = {key_rules.MOST:g}, C_lb = {key_rules.LOWER}, C_ub = {key_rules.UPPER}, a tenth of the budget in the
        first round. Keys that surely stay below the threshold are left out, get half a bias, or a whole one: the best
        of three.""",
        f"""DP-SIPS (Swanberg et al. 2023): three rounds, with the best of three splits of the budget:
        {"; ".join(SPLITS)}. Weighted Gaussian: Gopi et al. 2020.""",
        f"""Laplace (Korolova, Kenthapadi, Mishra and Ntoulas 2009) and truncated geometric (Desfontaines et al. 2022)
        need a declared number of keys a person. The best of {len(CAPS)} caps was chosen by looking at the result, which
        is not private. For one key a person, truncated geometric is proved to be the best rule: where nobody can have
        more, declare it.""",
        """Not measured: whether a key of one person alone is ever shown. Its probability is at most δ by the proof of
        each rule, and a few draws would say nothing about it. Ours is also enumerated in the tests (decision 0018).""",
    )
    verdict(
        {
            f"CommonKeys shows at least as many keys as {peer} in each family": all(
                one[COMMON].mean >= one[peer].mean for one in found
            )
            for peer in (MAD2R, SIPS)
        }
    )


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])

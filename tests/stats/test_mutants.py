"""Seeded bugs of statistics: each is planted, and a check of ours must see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.queries.sensitivity import Sensitivity
from discreet.queries.shares import WHOLE, ShareProducts
from discreet.stats.inference import means, noisy_shares
from discreet.stats.inference.means import MeanOf
from discreet.stats.inference.noisy_shares import NoisyShares
from discreet.stats.samples import dividing, divisions, sample

from .simulated import FAMILIES, RANGE, margin, noisy, products

Plant = Callable[[pytest.MonkeyPatch], None]
REPLACED = dp.row(neighbors="replace")


def opened(unit: Any = None, **given: Any) -> Any:
    ledger = dp.Ledger.open(":memory:", protects=unit or dp.row(), limit=dp.Pure(epsilon=90))
    columns = {"x": np.array([0.5, 3.0, -7.0, np.nan, 0.25, 0.75]), "who": np.array([1, 1, 1, 2, 2, 3])}
    return dp.table(columns, ledger=ledger, **given)


# --- the checks -----------------------------------------------------------------------------------------------


def no_row_adds_more_than_one() -> None:
    cells = np.array([0.3, 7.0, -7.0, np.nan, 0.7])
    part = dividing.part_of_range(cells, 0.0, 1.0)
    spots = np.where(np.isnan(part)[:, None], -1, np.array([[0, 1]]))
    units = dividing.divided(2, spots, np.stack([1 - part, part], 1), owners=None, rows=1)
    assert (units >= 0).all(), "a share is negative"
    assert (units.sum(1) <= WHOLE).all(), "shares exceed the whole"


def no_person_adds_more_than_one() -> None:
    for rows in (3, 5, 7):
        t = np.linspace(0.1, 0.9, rows)
        shares = np.stack([(1 - t) ** 2, 2 * t * (1 - t), t**2], 1)
        whose = np.zeros(rows, dtype=np.int64)
        units = dividing.divided(4, np.tile(np.arange(3), (rows, 1)), shares, owners=whose, rows=rows)
        assert units.shape == (1, 4), "rows are units"
        assert (units >= 0).all(), "a person gives more than the whole"
        assert units.sum() <= WHOLE, "shares exceed the whole"


def shares_in_thirds_never_exceed_the_whole() -> None:
    t = np.concatenate([np.random.default_rng(2).random(99), [1e-7]])
    shares = np.stack([(1 - t) ** 2, 2 * t * (1 - t), t**2], 1)
    units = dividing.divided(3, np.tile(np.arange(3), (100, 1)), shares, owners=None, rows=1)
    assert (units >= 0).all(), "a share is negative"
    assert (units.sum(1) <= WHOLE).all(), "shares exceed the whole"


def sensitivities_are_those_of_the_farthest_units() -> None:
    query = ShareProducts(2, RANGE)
    ends = query(np.array([[WHOLE, 0]])) - query(np.array([[0, WHOLE]]))
    assert query.sensitivity(dp.row()).exact >= 1, "an added unit moves the sum further"
    assert query.sensitivity(REPLACED).exact >= sum(map(abs, ends)), "a replaced unit moves the sum further"
    assert query.sensitivity(REPLACED, norm="L2").exact ** 2 >= sum(x * x for x in ends), "… in L2"


def noise_is_what_is_charged() -> None:
    table = opened()
    found = table.stats.mean("x", between=(0, 1), epsilon=1)
    entry = next(iter(table._methods.ledger.entries()))
    assert float(entry.guarantee.epsilon_at(delta=0)) <= 1 + 1e-9, "more is charged than was asked for"
    assert float(found._mechanism.scale) >= 1 - 1e-9, "the noise is smaller than its charge"
    shares = found._inference.shares
    assert shares.noise.laplace == pytest.approx(float(found._mechanism.scale)), "the law is not that of the noise"


def rows_of_a_person_are_one_unit() -> None:
    table = opened(dp.person("who"), rows_per_person=3)
    with dp.testing.no_noise():
        numbers = table.stats.mean("x", between=(0, 1), epsilon=1)._inference.shares.numbers
    assert numbers.sum() <= 3 + 1e-9, "three people add more than 3"


def a_mean_is_covered() -> None:
    runs, draw = 1500, np.random.default_rng(1)
    values, mean = FAMILIES["rare"]
    for rows in (50, 400):
        shares = noisy(products(values(draw, (runs, rows))), RANGE, 2, 5.0, draw)
        found = MeanOf(shares, np.ones(2), np.array([0.0, 1.0]))
        missed = float((found.p_of_mean(np.full(runs, mean)) <= 0.05).mean())
        assert missed <= 0.05 + margin(runs), "an interval misses too often"


def clipping_is_in_the_interval() -> None:
    shares = NoisyShares(np.array([40.0, 20.0, 30.0, 1.0, 10.0]), ((0, 0), (0, 1), (1, 1), (2, 2), (3, 3)), 4,
                         noisy_shares.Noise(laplace=1.0))  # fmt: skip
    known = MeanOf(shares, np.ones(4), np.array([0.0, 1.0, 0.0, 1.0]), (0.0, 8.0))
    hidden = divisions._hidden(known, divisions.Spot(0, 1, 2, 3), 4)
    assert hidden[1] > 8 * 10 / 101, "what lies above the range is not counted"
    wide, plain = means.Extended(known, hidden), known
    assert wide.interval(0.95)[1] >= plain.interval(0.95)[1] + hidden[1] - 1e-9, "the interval is not extended"
    null = plain.interval(0.95)[1] + hidden[1] / 2
    assert wide.p_value(null, "two-sided") > 0.05, "a test forgets what is hidden"


# --- the bugs ---------------------------------------------------------------------------------------------------


def values_outside_give_more(plant: pytest.MonkeyPatch) -> None:
    plant.setattr(dividing, "part_of_range", lambda values, low, high: (values - low) / (high - low))
    plant.setattr(dividing.np, "clip", lambda values, low, high: values)


def shares_are_rounded_to_the_nearest(plant: pytest.MonkeyPatch) -> None:
    plant.setattr(dividing.np, "floor", lambda values: np.ceil(values))


def every_row_is_a_unit(plant: pytest.MonkeyPatch) -> None:
    inner = dividing.divided

    def alone(places: int, spots: Any, parts: Any, *, owners: Any, rows: int) -> Any:
        return inner(places, spots, parts, owners=None, rows=1)

    plant.setattr(dividing, "divided", alone)
    plant.setattr(divisions, "divided", alone)


def every_row_weighs_one(plant: pytest.MonkeyPatch) -> None:
    inner = dividing.divided

    def heavy(places: int, spots: Any, parts: Any, *, owners: Any, rows: int) -> Any:
        return inner(places, spots, parts, owners=owners, rows=1)

    plant.setattr(dividing, "divided", heavy)
    plant.setattr(divisions, "divided", heavy)


def a_replaced_unit_counts_once(plant: pytest.MonkeyPatch) -> None:
    inner = ShareProducts.sensitivity

    def small(query: Any, unit: Any, rows_per_person: int = 1, *, norm: str = "L1") -> Sensitivity:
        return replace(inner(query, dp.row(), rows_per_person, norm=norm), unit=unit)

    plant.setattr(ShareProducts, "sensitivity", small)


def noise_is_halved(plant: pytest.MonkeyPatch) -> None:
    inner = sample.least_noise

    def half(rows: Any, query: Any) -> Any:
        noise, bound = inner(rows, query)
        return replace(noise, scale=noise._size / 2), replace(bound, amount=bound.exact / 2)

    plant.setattr(sample, "least_noise", half)


def the_law_is_narrower_than_the_noise(plant: pytest.MonkeyPatch) -> None:
    inner = noisy_shares.Noise.of.__func__  # type: ignore[attr-defined]
    plant.setattr(
        noisy_shares.Noise, "of", classmethod(lambda cls, m: replace(inner(cls, m), laplace=inner(cls, m).laplace / 2))
    )


def sampling_is_forgotten(plant: pytest.MonkeyPatch) -> None:
    inner = NoisyShares.error
    plant.setattr(NoisyShares, "error", lambda self, values, **given: inner(self, values, sampled=False))


def the_variance_counts_as_known(plant: pytest.MonkeyPatch) -> None:
    inner = noisy_shares.Noise.law
    plant.setattr(
        noisy_shares.Noise, "law", lambda self, weights, variance, degrees: inner(self, weights, variance, 1e9)
    )


def nothing_is_hidden(plant: pytest.MonkeyPatch) -> None:
    plant.setattr(divisions, "_hidden", lambda mean, spot, places: (0.0, 0.0))


def a_test_ignores_what_is_hidden(plant: pytest.MonkeyPatch) -> None:
    plant.setattr(means.Extended, "p_value", lambda self, null, alternative: self.inner.p_value(null, alternative))


SEEDED: list[tuple[Plant, Callable[[], None]]] = [
    (values_outside_give_more, no_row_adds_more_than_one),
    (shares_are_rounded_to_the_nearest, shares_in_thirds_never_exceed_the_whole),
    (every_row_is_a_unit, no_person_adds_more_than_one),
    (every_row_is_a_unit, rows_of_a_person_are_one_unit),
    (every_row_weighs_one, no_person_adds_more_than_one),
    (a_replaced_unit_counts_once, sensitivities_are_those_of_the_farthest_units),
    (noise_is_halved, noise_is_what_is_charged),
    (the_law_is_narrower_than_the_noise, noise_is_what_is_charged),
    (sampling_is_forgotten, a_mean_is_covered),
    (the_variance_counts_as_known, a_mean_is_covered),
    (nothing_is_hidden, clipping_is_in_the_interval),
    (a_test_ignores_what_is_hidden, clipping_is_in_the_interval),
]


@pytest.mark.parametrize("check", dict.fromkeys(check for _, check in SEEDED), ids=lambda check: check.__name__)
def test_nothing_is_wrong(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize(("plant", "check"), SEEDED, ids=lambda one: one.__name__)
def test_a_seeded_bug_is_seen(monkeypatch: pytest.MonkeyPatch, plant: Plant, check: Callable[[], None]) -> None:
    with monkeypatch.context() as patch:
        plant(patch)
        with pytest.raises(AssertionError):
            check()

"""Means, differences, ratios and variances: coverage by simulation, and releases through the door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.stats.inference.means import DifferenceOf, MeanOf
from discreet.stats.inference.noisy_shares import values_kept
from discreet.stats.inference.ratios import VarianceOf

from ..refusing import refuses
from .simulated import FAMILIES, RANGE, TWO, margin, noisy, products

RUNS = 1500


# --- coverage: a value is in the interval if its hypothesis is not rejected --------------------------------------


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("rows", "epsilon"), [(50, 0.1), (50, 5.0), (400, 1.0)])
def test_a_mean_is_covered(family: str, rows: int, epsilon: float) -> None:
    draw, (values, mean) = np.random.default_rng(1), FAMILIES[family]
    shares = noisy(products(values(draw, (RUNS, rows))), RANGE, 2, epsilon, draw)
    found = MeanOf(shares, np.ones(2), np.array([0.0, 1.0]))
    missed = float((found.p_of_mean(np.full(RUNS, mean)) <= 0.05).mean())
    assert missed <= 0.05 + margin(RUNS)


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("family", ["skewed", "rare", "lognormal"])
@pytest.mark.parametrize(("sizes", "epsilon", "runs"), [((40, 10), 2.0, 200), ((300, 100), 1.0, 1500)])
def test_no_difference_is_found_where_there_is_none(
    family: str, sizes: tuple[int, int], epsilon: float, runs: int
) -> None:
    draw, (values, _) = np.random.default_rng(2), FAMILIES[family]
    exact = np.concatenate([products(values(draw, (runs, size))) for size in sizes], -1)
    shares = noisy(exact, TWO, 4, epsilon, draw)
    part = np.array([0.0, 1.0, 0.0, 1.0])
    groups = [MeanOf(shares, np.array(member), part) for member in ([1.0, 1, 0, 0], [0, 0, 1.0, 1])]
    found = DifferenceOf(*groups).p_of_gap(np.zeros(runs))
    assert float((found <= 0.05).mean()) <= 0.05 + margin(runs)


def test_people_with_several_rows_are_one_unit_each() -> None:
    """Ten rows of a person are nearly one value. Counted as independent rows, they would be missed in most runs."""
    draw, people, epsilon, runs = np.random.default_rng(3), 200, 5.0, 600
    own = draw.beta(2, 2, (runs, people))
    pairs = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2))
    exact = np.zeros((runs, 5))
    exact[:, 0], exact[:, 1], exact[:, 3] = products(own).T
    shares = noisy(exact, pairs, 3, epsilon, draw)
    found = MeanOf(shares, np.array([1.0, 1, 0]), np.array([0.0, 1, 0]))
    assert float((found.p_of_mean(np.full(runs, 0.5)) <= 0.05).mean()) <= 0.05 + margin(runs)


@pytest.mark.some_quick(1)
@pytest.mark.parametrize(("rows", "epsilon"), [(50, 1.0), (500, 0.5), (2000, 2.0)])
def test_a_variance_is_covered(rows: int, epsilon: float) -> None:
    draw, pairs = np.random.default_rng(4), ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    for values, variance in ((draw.uniform(0, 1, (600, rows)), 1 / 12), (draw.beta(2, 6, (600, rows)), 12 / 576)):
        three = np.stack([(1 - values) ** 2, 2 * values * (1 - values), values**2], -1)
        exact = np.stack([(1 + (v != w)) * (three[..., v] * three[..., w]).sum(-1) for v, w in pairs], -1)
        shares = noisy(exact, pairs, 3, epsilon, draw)
        found = VarianceOf(shares, np.ones(3), np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.0, 1.0]), 1.0)
        assert float((found.p_of_variance(np.full(600, variance)) <= 0.05).mean()) <= 0.05 + margin(600)


def test_an_interval_has_what_is_not_rejected() -> None:
    draw = np.random.default_rng(5)
    shares = noisy(products(draw.beta(2, 5, 400)), RANGE, 2, 1.0, draw)
    found = MeanOf(shares, np.ones(2), np.array([0.0, 1.0]), (10.0, 30.0))
    low, high = found.interval(0.9)
    inside = [found.p_value(at, "two-sided") for at in np.linspace(low + 0.01, high - 0.01, 9)]
    assert min(inside) > 0.1
    assert max(found.p_value(low - 0.01, "two-sided"), found.p_value(high + 0.01, "two-sided")) <= 0.1
    assert found.p_value(9.0, "two-sided") == 0 == found.p_value(9.0, "greater")
    assert found.p_value(31.0, "greater") == 1 == found.p_value(9.0, "less")
    assert found.interval(0.9, sampled=False)[0] > low


def test_nothing_that_fits_leaves_the_closest_value() -> None:
    assert values_kept(lambda at: np.zeros_like(at), (0.0, 1.0), 1.7, 0.05) == (1.0, 1.0)


# --- through the door ---------------------------------------------------------------------------------------------


def ledger_at(path: Path, unit: Any = None, epsilon: float = 50) -> dp.Ledger:
    return dp.Ledger.open(
        path / "a.ledger", protects=dp.row() if unit is None else unit, limit=dp.Approx(epsilon=epsilon, delta=1e-5)
    )


def visits(path: Path, rows: int = 3000, **given: Any) -> Any:
    draw = np.random.default_rng(6)
    cost = draw.gamma(2, 50, rows)
    columns = {
        "cost": cost,
        "days": draw.gamma(2, 3, rows),
        "after": cost + draw.normal(3, 10, rows),
        "treated": draw.random(rows) < 0.4,
        "city": draw.choice(["Acre", "Bled", "Cork"], rows),
        "who": np.arange(rows) // 4,
    }
    return dp.table(columns, ledger=ledger_at(path, given.pop("unit", None)), **given), columns


def test_without_noise_estimates_are_those_of_the_rows(tmp_path: Path) -> None:
    table, columns = visits(tmp_path)
    cost, treated = columns["cost"], columns["treated"]
    with testing.no_noise():
        assert table.stats.mean("cost", between=(0, 900), epsilon=1).value == pytest.approx(cost.mean(), abs=1e-3)
        gap = table.stats.compare("cost", by="treated", between=(0, 900), epsilon=1)
        assert gap.difference == pytest.approx(cost[treated].mean() - cost[~treated].mean(), abs=1e-3)
        share = table.stats.proportion("city", value="Bled", epsilon=1)
        assert share.value == pytest.approx((columns["city"] == "Bled").mean(), abs=1e-9)
        change = table.stats.paired("cost", "after", between=(-100, 900), epsilon=1)
        assert change.value == pytest.approx((columns["after"] - cost).mean(), abs=1e-2)
        ranges = {"cost": (0, 900), "days": (0, 60)}
        ratio = table.stats.ratio("cost", "days", between=ranges, epsilon=1)
        assert ratio.value == pytest.approx(cost.mean() / columns["days"].mean(), rel=1e-4)
        spread = table.stats.variance("cost", between=(0, 900), epsilon=1)
        assert spread.value == pytest.approx(cost.var(ddof=1), rel=1e-3)


@pytest.mark.parametrize("unit", [dp.row(neighbors="replace"), dp.person("who"), dp.person("who", neighbors="replace")])
def test_other_units(tmp_path: Path, unit: Any) -> None:
    given = {} if unit.column is None else {"rows_per_person": 4}
    table, columns = visits(tmp_path, unit=unit, **given)
    with testing.no_noise():
        found = table.stats.mean("cost", between=(0, 900), epsilon=20)
        gap = table.stats.compare("cost", by={"city": ["Acre", "Cork"]}, between=(0, 900), epsilon=20)
    assert found.value == pytest.approx(columns["cost"].mean(), abs=1e-2)
    low, high = found.interval(0.95)
    plain = 1.96 * columns["cost"].std() / np.sqrt(3000)
    assert 0.8 * plain < (high - low) / 2 < 3.2 * plain
    means = [columns["cost"][columns["city"] == name].mean() for name in ("Acre", "Cork")]
    assert gap.difference == pytest.approx(means[1] - means[0], abs=1e-2)


def test_one_charge_then_free(tmp_path: Path) -> None:
    table, _ = visits(tmp_path, version="one")
    ledger = table._methods.ledger
    said = str(table.explain.stats.mean("cost", between=(0, 900), epsilon=1))
    assert "ε = 1" in said
    assert "1,000 evenly spread rows; a test tells apart" in said
    assert not list(ledger.entries())
    first = table.stats.mean("cost", between=(0, 900), epsilon=1)
    again = table.stats.mean("cost", between=(0, 900), epsilon=1)
    assert again.replayed
    assert again.value == first.value
    assert again.interval() == first.interval()
    assert len(list(ledger.entries())) == 1
    other = table.stats.mean("cost", between=(0, 800), epsilon=1)
    assert not other.replayed


def test_a_range_that_is_found_extends_the_interval(tmp_path: Path) -> None:
    table, columns = visits(tmp_path)
    found = table.stats.mean("cost", epsilon=5)
    assert found.assumed
    assert "on average at most" in found.assumed[0]
    assert "assumed" in str(found)
    low, high = found.interval(0.999)
    assert low < columns["cost"].mean() < high
    declared = table.stats.mean("cost", between=(0, 900), epsilon=5)
    assert declared.assumed == ()


def test_the_error_says_of_what(tmp_path: Path) -> None:
    table, _ = visits(tmp_path)
    found = table.stats.mean("cost", between=(0, 900), epsilon=1)
    assert float(found.error(0.95, of="value")) < float(found.error(0.95, of="population"))
    assert found.error(0.95).of == "population"
    with refuses(dp.InvalidArgument, "not-an-option"):
        found.error(0.95, of="rank")
    evidence = found.test(0, alternative="greater")
    assert evidence.p_value < 1e-4
    assert evidence.rejects(0.01)
    assert "< 0.0001" in str(evidence)
    assert found.test(0, alternative="less").p_value > 0.999
    assert "<table>" in found._repr_html_()
    assert "<table>" in evidence._repr_html_()
    with refuses(dp.InvalidArgument, "not-an-option"):
        found.test(0, alternative="both")


def test_clear_errors(tmp_path: Path) -> None:
    stats = visits(tmp_path)[0].stats
    with refuses(dp.InvalidArgument, "column-type"):
        stats.mean("city", epsilon=1)
    with refuses(dp.InvalidArgument, "unknown-column"):
        stats.mean("prize", epsilon=1)
    with refuses(dp.InvalidArgument, "choices-missing"):
        stats.compare("cost", by="city", between=(0, 9), epsilon=1)
    with refuses(dp.InvalidArgument, "wrong-shape"):
        stats.compare("cost", by={"city": ["Acre", "Bled", "Cork"]}, between=(0, 9), epsilon=1)
    with refuses(dp.InvalidArgument, "missing-argument"):
        stats.proportion("city", epsilon=1)
    with refuses(dp.InvalidArgument, "missing-argument"):
        stats.proportion("treated", value="yes", epsilon=1)
    with refuses(dp.InvalidArgument, "unknown-column"):
        stats.ratio("cost", "days", between={"age": (0, 9)}, epsilon=1)
    with refuses(dp.InvalidArgument, "ends-out-of-order"):
        stats.mean("cost", between=(9, 0), epsilon=1)


def test_arrays(tmp_path: Path) -> None:
    draw = np.random.default_rng(8)
    values, ledger = draw.normal(10, 3, 2000), ledger_at(tmp_path)
    given: dict[str, Any] = {"between": (0, 20), "epsilon": 1, "ledger": ledger}
    flags = draw.random(2000) < 0.5
    with testing.no_noise():
        assert dp.stats.mean([*values, None, "odd"], **given).value == pytest.approx(values.mean(), abs=1e-3)
        assert dp.stats.variance(values, **given).value == pytest.approx(values.var(), rel=1e-2)
        gap = dp.stats.compare(values, np.where(flags, "b", "a"), groups=["a", "b"], **given)
        assert gap.value == pytest.approx(values[flags].mean() - values[~flags].mean(), abs=1e-3)
        assert dp.stats.compare(values, flags, **given).value == pytest.approx(gap.value)
        assert dp.stats.paired(values, values + 1, **given).value == pytest.approx(1, abs=1e-3)
        both = dp.stats.ratio(values, values + 10, between=((0, 20), (0, 40)), epsilon=1, ledger=ledger)
        assert both.value == pytest.approx(values.mean() / (values.mean() + 10), rel=1e-3)
        share = dp.stats.proportion(flags.tolist(), epsilon=1, ledger=ledger)
        assert share.value == pytest.approx(flags.mean())
    with refuses(dp.InvalidArgument, "conflicting-arguments"):
        dp.stats.mean(values, people=np.arange(2000), **given)
    with refuses(dp.InvalidArgument, "wrong-type"):
        dp.stats.mean(values, between=(0, 20), epsilon=1, ledger=None)  # type: ignore[arg-type]
    with refuses(dp.InvalidArgument, "wrong-shape"):
        dp.stats.ratio(values, values, between=(0, 1, 2), epsilon=1, ledger=ledger)  # type: ignore[arg-type]


def test_arrays_of_people(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path, dp.person("id"))
    values = np.repeat(np.random.default_rng(9).uniform(0, 1, 500), 4)
    given: dict[str, Any] = {"between": (0, 1), "epsilon": 2, "ledger": ledger}
    found = dp.stats.mean(values, people=np.arange(2000) // 4, rows_per_person=4, **given)
    low, high = found.interval()
    assert (high - low) / 2 > 1.9 * values.std() / np.sqrt(500)  # as many as people, not as many as rows
    with refuses(dp.InvalidArgument, "conflicting-arguments"):
        dp.stats.mean(values, **given)

"""A risk is never below the best attack on a real mechanism, and is that attack where it is known."""

from __future__ import annotations

import json
import math
import re
import runpy
import xml.etree.ElementTree as ET
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import discreet as dp
from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.guarantees.guarantee import NoLoss
from discreet.guarantees.meaning.groups import for_group
from discreet.guarantees.meaning.picture import points
from discreet.guarantees.meaning.words import one_in, percent, times

from .attacks import (
    ALARMS,
    CHECKS,
    RATES,
    check_attacks,
    check_path,
    delta,
    found,
    geometric,
    guarantees_of,
    law,
    response,
    right,
)

ROOT = Path(__file__).resolve().parents[3]
THREE = Fraction(3)
weights = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any)
positive = st.lists(st.integers(1, 9), min_size=4, max_size=4)
epsilons = st.floats(0.01, 8).map(lambda value: round(value, 3))


# --- exact attacks ------------------------------------------------------------------------------------------------


def test_randomized_response_attains_the_risk_of_pure_privacy() -> None:
    first, second = response(THREE)
    made = dp.risk(dp.Pure(epsilon=math.log(3)))
    for alarms in ALARMS:
        assert made.true_positives(alarms) == pytest.approx(float(found(first, second, alarms)), abs=1e-9)
    for rate in RATES:
        assert made.success(rate) == pytest.approx(float(right(first, second, rate)), abs=1e-9)
        low, high = made.posterior(rate)
        assert high == pytest.approx(float(rate * 3 / (rate * 3 + 1 - rate)), rel=1e-9)
        assert low == pytest.approx(float(rate / (rate + 3 * (1 - rate))), rel=1e-9)
    assert made.advantage == pytest.approx(0.5)
    assert made.odds(0.5) == pytest.approx((1 / 3, 3))
    assert made.factor == pytest.approx(3)
    check_attacks(dp.risk(dp.verify([(dict(enumerate(first)), dict(enumerate(second)))])), first, second)


@pytest.mark.parametrize("distance", [1, 2, 3])
def test_geometric_noise_is_covered_also_for_groups(distance: int) -> None:
    ratio = Fraction(2, 3)
    first, second = geometric(ratio, distance)
    noise = dp.Laplace(scale=1 / math.log(1.5) * (1 - 1e-9), step=1)
    exact = dp.risk(noise.guarantee(distance))
    check_attacks(exact, first, second)
    together = dp.risk(noise.guarantee(1), people=distance)
    check_attacks(together, first, second)
    check_attacks(dp.risk(dp.Pure(epsilon=math.log(1.5) * (1 + 1e-9)), people=distance), first, second)
    assert exact.advantage == pytest.approx(float(delta(first, second, Fraction(1))), rel=1e-6)
    assert together.loss == pytest.approx(exact.loss, rel=1e-6)


def test_the_gaussian_trade_off_is_the_one_of_two_normal_laws() -> None:
    made = dp.risk(dp.GaussianTradeoff(mu=1))
    for alarms in (0.001, 0.01, 0.3, 0.8):
        exact = norm.cdf(norm.ppf(alarms) + 1)
        assert exact <= made.true_positives(alarms) <= exact * (1 + 1e-9)
    assert made.success(0.5) == pytest.approx(norm.cdf(0.5), abs=1e-9)
    assert made.true_positives(0) == 0
    assert dp.risk(dp.GaussianTradeoff(mu=0.5), people=2).advantage == pytest.approx(made.advantage)


def test_a_leak_with_probability_delta_is_covered_and_said() -> None:
    leak = Fraction(1, 50)
    yes, no = (Fraction(2, 3) * (1 - leak), Fraction(1, 3) * (1 - leak))
    first, second = (leak, Fraction(0), yes, no), (Fraction(0), leak, no, yes)
    made = dp.risk(dp.Approx(epsilon=math.log(2) * (1 + 1e-12), delta=leak))
    check_attacks(made, first, second)
    assert made.true_positives(0) == pytest.approx(0.02)
    assert made.success(0.5) == pytest.approx(float(right(first, second, Fraction(1, 2))), abs=1e-9)
    assert made.failure == pytest.approx(0.2)
    assert dp.risk(made.guarantee, failure=leak).posterior(0.5) == (0, 1)
    assert "may reveal everything" in str(made)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(weights, weights)
def test_every_kind_of_guarantee_covers_any_two_laws(first: list[int], second: list[int]) -> None:
    p, q = law(*first), law(*second)
    for claim in guarantees_of([(p, q)]):
        check_attacks(dp.risk(claim), p, q)
        check_attacks(dp.risk(claim, failure=0.3), p, q)
    if p != q:
        check_attacks(dp.risk(dp.verify([(dict(enumerate(p)), dict(enumerate(q)))])), p, q)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(positive, min_size=3, max_size=4))
def test_a_group_covers_the_ends_of_any_path(drawn: list[list[int]]) -> None:
    check_path([law(*weights) for weights in drawn])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_small_mechanisms_are_covered(check: Callable[[], None]) -> None:
    check()


def test_a_value_is_two_steps_away() -> None:
    one = dp.risk(dp.Pure(epsilon=0.5), about="value")
    assert one.covers == dp.Pure(epsilon=1, neighbors="replace")
    assert one.advantage == dp.risk(dp.Pure(epsilon=1)).advantage
    replaced = dp.Pure(epsilon=0.5, protects=dp.person("id", neighbors="replace"))
    assert dp.risk(replaced).about == "value"
    assert dp.risk(replaced).covers == replaced
    noise = dp.Laplace(scale=4, step=1)
    assert dp.risk(noise.guarantee(1), about="value").loss == pytest.approx(0.5)


# --- order --------------------------------------------------------------------------------------------------------


KINDS = (
    lambda size: dp.Pure(epsilon=size),
    lambda size: dp.Approx(epsilon=size, delta=1e-5),
    lambda size: dp.ZeroConcentrated(rho=size),
    lambda size: dp.GaussianTradeoff(mu=size),
    lambda size: dp.Renyi(order=8, epsilon=size),
)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(KINDS), epsilons, epsilons, st.sampled_from((0.01, 0.3, 0.5)))
def test_more_epsilon_is_more_risk(kind: Any, one: float, two: float, rate: float) -> None:
    less, more = (dp.risk(kind(size), failure=1e-3) for size in sorted((one, two)))
    slack = 1e-9
    assert less.success(rate) <= more.success(rate) + slack
    assert less.advantage <= more.advantage + slack
    assert less.loss <= more.loss * (1 + 1e-6) + slack
    # another ε has other points on its curve
    assert less.true_positives(0.05) <= more.true_positives(0.05) + 1e-3


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.sampled_from(KINDS), epsilons, st.integers(2, 5), st.sampled_from((0.01, 0.3, 0.5)))
def test_a_household_is_at_more_risk_than_a_person(kind: Any, size: float, people: int, rate: float) -> None:
    one, all_of_them = dp.risk(kind(size), failure=1e-3), dp.risk(kind(size), failure=1e-3, people=people)
    assert one.success(rate) <= all_of_them.success(rate) + 1e-9
    assert one.loss <= all_of_them.loss + 1e-9
    assert one.true_positives(0.05) <= all_of_them.true_positives(0.05) + 1e-3


def test_nothing_is_learned_from_nothing() -> None:
    made = dp.risk(NoLoss())
    assert (made.factor, made.advantage, made.success(0.01)) == (1, 0, pytest.approx(0.99))
    assert made.true_positives(0.2) == pytest.approx(0.2)
    assert "none" in str(made)


@pytest.mark.some_quick(6)
@pytest.mark.parametrize(
    "guarantee",
    [
        dp.Pure(epsilon=500_000),
        dp.Approx(epsilon=40, delta=0.5),
        dp.ZeroConcentrated(rho=1e5),
        dp.GaussianTradeoff(mu=200),
        dp.Pure(epsilon=1e-18),
        dp.GaussianTradeoff(mu=1e-9),
    ],
)
@pytest.mark.parametrize("people", [1, 2])
def test_extremes_are_probabilities(guarantee: dp.Guarantee, people: int) -> None:
    made = dp.risk(guarantee, people=people)
    assert all(0 <= made.true_positives(share) <= 1 for share in (0, 1e-9, 0.5, 1))
    assert all(0 <= end <= 1 for end in made.posterior(1e-9))
    assert 0.5 <= made.success(0.5) <= 1
    assert str(made)
    json.dumps(made.to_dict(), allow_nan=False)


def test_a_large_group_is_not_protected() -> None:
    made = dp.risk(dp.Approx(epsilon=1, delta=1e-6), people=200)
    assert made.success(0.5) == 1
    assert "no bound is known" in str(made)
    assert for_group(dp.Approx(epsilon=0.001, delta=1e-9), 100).infinite == pytest.approx(1.051e-7, rel=1e-2)


# --- words and pictures -------------------------------------------------------------------------------------------


@given(st.floats(0, 1))
def test_printed_numbers_never_understate(value: float) -> None:
    for up in (True, False):
        shown = percent(value, up=up)
        sign, number = re.fullmatch(r"([<>]?)([\d.]+)%", shown).groups()  # type: ignore[union-attr]
        stated = Fraction(number) / 100
        if sign:
            assert value < stated if sign == "<" else value > stated
        else:
            assert stated >= Fraction(value) if up else stated <= Fraction(value)
        assert (shown == "100%") == (value == 1)
        assert (shown == "0%") == (value == 0)


@given(st.floats(1, 1e9))
def test_printed_factors_round_up(value: float) -> None:
    assert Fraction(times(value).replace(",", "")) >= Fraction(value) * (1 - Fraction(1, 10**15))
    assert Fraction(1, int(one_in(1 / value).removeprefix("1 in ").replace(",", ""))) >= Fraction(1 / value) * (
        1 - Fraction(1, 10**15)
    )


def test_the_words_say_who_is_protected_and_what_is_not_promised() -> None:
    text = " ".join(str(dp.risk(dp.Pure(epsilon=1, protects=dp.person("patient_id")))).split())
    for part in ("user-level", "patient_id", "factor of 2.72", "23.2%", "not promised", "household", "73.2%"):
        assert part in text
    rows = " ".join(str(dp.risk(dp.Pure(epsilon=1), protects=dp.row(neighbors="replace"))).split())
    for part in ("event-level", "first of two given values", "is public", "several rows"):
        assert part in rows
    local = str(dp.risk(dp.Pure(epsilon=1, trust="local"), people=4))
    assert "also the one who collects them" in " ".join(local.split())
    assert "4 people together" in local
    assert "not for a household" not in local


def test_the_dictionary_is_json() -> None:
    facts = json.loads(json.dumps(dp.risk(dp.ZeroConcentrated(rho=0.1), base_rates=[0.02]).to_dict(), allow_nan=False))
    assert facts["base_rates"][0]["base_rate"] == 0.02
    assert 0.02 < facts["base_rates"][0]["highest"] < 1
    assert facts["failure"] == 1e-6


@pytest.mark.parametrize("style", [None, "light", "dark"])
def test_the_svg_is_one_element_without_styles_or_scripts(style: str | None) -> None:
    drawn = dp.risk(dp.Pure(epsilon=1)).svg(width=300, style=style)
    root = ET.fromstring(drawn)
    names = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert names[:3] == ["svg", "title", "desc"]
    assert root.get("role") == "img"
    assert not {"style", "script", "foreignObject"} & set(names)
    assert not any(key == "style" or key.startswith("on") for element in root.iter() for key in element.attrib)
    assert ("currentColor" in drawn) == (style is None)


def test_the_picture_has_the_corner_of_the_curve() -> None:
    made = dp.risk(dp.Pure(epsilon=3))
    corner = 1 / (1 + math.exp(3))
    assert min(abs(x - corner) for x, _ in points(made)) < 1e-9
    assert points(made)[0] == (0, 0)
    assert points(made)[-1] == (1, 1)


def test_the_picture_of_the_page_is_the_one_that_is_drawn() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "make" / "risk.py"))
    assert script["PICTURE"].read_text("utf-8") == script["drawn"](), "run python docs/make/risk.py"


def test_the_plot_is_saved(tmp_path: Path) -> None:
    dp.risk(dp.GaussianTradeoff(mu=1)).plot(tmp_path / "attack.png", style="dark")
    assert (tmp_path / "attack.png").read_bytes()[:4] == b"\x89PNG"
    html = dp.risk(dp.Pure(epsilon=1))._repr_html_()
    assert "<svg" in html
    assert "<table>" in html


# --- refusals -----------------------------------------------------------------------------------------------------


PURE = dp.Pure(epsilon=1)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: dp.risk(1), "wrong-type"),  # type: ignore[arg-type]
        (lambda: dp.risk(PURE, people=0), "out-of-range"),
        (lambda: dp.risk(PURE, people=1.5), "not-whole"),  # type: ignore[arg-type]
        (lambda: dp.risk(PURE, people=10**7), "out-of-range"),
        (lambda: dp.risk(PURE, base_rates=[]), "empty"),
        (lambda: dp.risk(PURE, base_rates=0.1), "wrong-type"),  # type: ignore[arg-type]
        (lambda: dp.risk(PURE, base_rates=[0.5, 1]), "out-of-range"),
        (lambda: dp.risk(PURE, base_rates=["a"]), "not-a-number"),  # type: ignore[list-item]
        (lambda: dp.risk(PURE, about="both"), "not-an-option"),  # type: ignore[arg-type]
        (lambda: dp.risk(PURE, failure=1), "out-of-range"),
        (lambda: dp.risk(PURE, failure=-0.1), "out-of-range"),
        (lambda: dp.risk(PURE).posterior(0), "out-of-range"),
        (lambda: dp.risk(PURE).success(math.nan), "not-a-number"),
        (lambda: dp.risk(PURE).true_positives(1.1), "out-of-range"),
        (lambda: dp.risk(PURE).svg(width=10), "out-of-range"),
        (lambda: dp.risk(PURE).svg(width=10**6), "out-of-range"),
        (lambda: dp.risk(PURE).svg(style="blue"), "not-an-option"),
        (lambda: dp.risk(PURE).plot(style="blue"), "not-an-option"),
    ],
)
def test_what_cannot_be_asked(asked: Any, code: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        asked()
    assert refused.value.code == code


def test_a_risk_that_the_guarantee_does_not_cover() -> None:
    exact = dp.verify([({0: 0.25, 1: 0.75}, {0: 0.75, 1: 0.25})])
    replaced = dp.Pure(epsilon=1, neighbors="replace")
    for asked in (
        lambda: dp.risk(exact, people=2),
        lambda: dp.risk(replaced, about="presence"),
        lambda: dp.risk(dp.Pure(epsilon=1, protects=dp.row()), protects=dp.person("id")),
    ):
        with pytest.raises(IncompatibleGuarantee):
            asked()


@pytest.mark.parametrize("epsilon", [65, 100, 700, 10_000])
def test_the_largest_risks_have_words_too(epsilon):
    text = str(dp.risk(dp.Pure(epsilon=epsilon)))
    assert "no bound is known" in text or "factor of" in text


@pytest.mark.parametrize(
    ("asked", "differs"),
    [
        (lambda: dp.risk(dp.Approx(epsilon=8, delta=1e-6)), True),
        (lambda: dp.risk(dp.Approx(epsilon=8, delta=1e-6), people=2), False),
        (lambda: dp.risk(dp.Approx(epsilon=8, delta=1e-6), failure=1e-6), False),
        (lambda: dp.risk(PURE), False),
        (lambda: dp.risk(dp.ZeroConcentrated(rho=0.1)), False),
    ],
)
def test_it_is_said_why_the_stated_numbers_are_not_those_of_the_guarantee(asked: Any, differs: bool) -> None:
    assert ("are not δ and e^ε" in " ".join(str(asked()).split())) == differs

"""Composition rules: one contract over every guarantee × rule, exact enumeration, and adaptive strategies."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import pytest

from discreet.errors import BudgetExhausted, IncompatibleGuarantee, InvalidArgument
from discreet.exact.rational import LEDGER_UNIT, exp_bounds
from discreet.guarantees.finite.verify import product, repeat, verify
from discreet.guarantees.guarantee import Approx, GaussianTradeoff, Pure, Renyi, ZeroConcentrated
from discreet.guarantees.privacy_loss.compose import compose
from discreet.guarantees.rules.best_of import (
    CLOSED,
    RULES,
    Basic,
    BestOf,
    Heterogeneous,
    RenyiRule,
    Rule,
    rule_for,
)
from discreet.guarantees.rules.coordinates import conversion_cost, stated_rho
from discreet.reproduce.course import AdvancedTaught

from ...refusing import refuses

LIMIT = Approx(epsilon=2, delta=1e-5)
LIMITS = {"zcdp": ZeroConcentrated(rho=0.3), "renyi": Renyi(order=8, epsilon=1.5), "gaussian": GaussianTradeoff(mu=1)}
EVERY_RULE = [rule_for(LIMIT, name) for name in RULES] + [rule_for(limit) for limit in LIMITS.values()]
EVERY_RULE += [rule_for(Pure(epsilon=3)), AdvancedTaught(limit=LIMIT, each=Pure(epsilon=0.1))]
EVERY_GUARANTEE = [
    Pure(epsilon=0.1),
    Pure(epsilon=1e-18),
    Approx(epsilon=0.1, delta=1e-8),
    Approx(epsilon=0, delta=1e-9),
    ZeroConcentrated(rho=0.01),
    Renyi(order=40, epsilon=0.02),
    GaussianTradeoff(mu=0.05),
    compose([Pure(epsilon=0.01)] * 3),
    compose([GaussianTradeoff(mu=0.02)]),
    verify({0: {0: Fraction(11, 20), 1: Fraction(9, 20)}, 1: {0: Fraction(9, 20), 1: Fraction(11, 20)}}),
]


def response(epsilon):
    """Randomized response whose ratio is a rational at most e^ε, and so tight that no bound below passes."""
    ratio = exp_bounds(Fraction(epsilon), digits=25)[0]
    p = 1 / (1 + ratio)
    return {0: {0: 1 - p, 1: p}, 1: {0: p, 1: 1 - p}}


# --- the contract of every rule ---------------------------------------------------------------------


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: f"{rule.name} of {rule.limit}")
@pytest.mark.parametrize("guarantee", EVERY_GUARANTEE, ids=str)
def test_every_rule_adds_and_repeats_every_guarantee_alike(rule, guarantee):
    try:
        one = rule.coordinates(guarantee)
    except IncompatibleGuarantee:
        with pytest.raises(IncompatibleGuarantee, match=r"\. .+\."):  # what is wrong, and a remedy
            rule.spend(rule.nothing, guarantee)
        return
    assert len(one) == len(rule.labels)
    assert all(type(cost) is int and cost >= 0 for cost in one)
    assert any(one), "a release that costs nothing"
    added = rule.nothing
    for _ in range(7):
        added = rule.spend(added, guarantee)
    assert added == rule.spend(rule.nothing, guarantee, times=7) == tuple(7 * cost for cost in one)
    for times in (0, -1, 1.5, math.nan):
        with pytest.raises(InvalidArgument):
            rule.spend(rule.nothing, guarantee, times=times)


@pytest.mark.some_quick(60)
@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: f"{rule.name} of {rule.limit}")
@pytest.mark.parametrize("guarantee", EVERY_GUARANTEE, ids=str)
def test_admission_stops_within_the_limit_and_names_what_still_fits(rule, guarantee):
    try:
        spent = rule.admit(rule.nothing, guarantee)
    except (IncompatibleGuarantee, BudgetExhausted):
        return
    assert rule.fits(spent)
    if isinstance(rule.limit, Approx):
        total = rule.total(spent)
        assert total.epsilon <= float(rule.limit.epsilon) * (1 + 1e-9)
        assert total.delta <= Fraction(str(rule.limit.delta))
    with refuses(BudgetExhausted, "budget-exhausted") as caught:
        rule.admit(spent, guarantee, times=10**40)
    assert "Nothing was spent" in str(caught.value)
    remaining = caught.value.remaining
    if remaining is not None and rule.adaptive:
        rule.admit(spent, remaining)


@pytest.mark.parametrize("rule", [r for r in EVERY_RULE if isinstance(r.limit, Approx) and r.limit.delta], ids=str)
def test_totals_are_never_below_the_exact_composition(rule):
    """[L6.T2] and every other rule. Up to 12 randomized responses, by enumeration of their exact laws."""
    each = Pure(epsilon=0.1)
    try:
        one = rule.coordinates(each)
    except IncompatibleGuarantee:
        assert rule.name == "gaussian"
        return
    for times in (1, 2, 3, 5, 8, 12):
        total = rule.total(tuple(times * cost for cost in one))
        exact = verify(repeat(response("0.1"), times)).exact_ratio_at(total.delta)
        assert exp_bounds(total.epsilon)[1] >= exact


@pytest.mark.parametrize("times", [1, 4, 12])
def test_totals_with_own_delta_are_never_below_the_exact_composition(times):
    """[L6.T1] and others. The worst (ε,δ) releases: a leak with probability δ, and else randomized response."""
    each, leak = Approx(epsilon=0.2, delta=1e-3), Fraction(1, 1000)
    quiet = response("0.2")
    laws = {x: {y: (1 - leak) * p for y, p in quiet[x].items()} | {f"it is {x}": leak} for x in quiet}
    assert verify(laws).delta_at(epsilon=0.2) == pytest.approx(1e-3)
    truth = verify(repeat(laws, times))
    limit = Approx(epsilon=3, delta=0.05)
    rules = [rule_for(limit, name) for name in ("best", "basic", "zcdp", "renyi", "advanced")]
    for rule in [*rules, AdvancedTaught(limit=limit, each=each)]:
        total = rule.total(rule.spend(rule.nothing, each, times))
        assert truth.exact_delta_at(total.epsilon) <= total.delta


def test_heterogeneous_responses_against_enumeration():
    """[L10.HC] and the adaptive filter on unequal ε_i."""
    epsilons = ["0.05", "0.1", "0.15", "0.2", "0.3", "0.1"]
    exact = verify(product(*map(response, epsilons)))
    for rule in (rule_for(Approx(epsilon=5, delta=1e-3), name) for name in ("heterogeneous", "advanced", "best")):
        spent = rule.nothing
        for epsilon in epsilons:
            spent = rule.spend(spent, Pure(epsilon=Fraction(epsilon)))
        total = rule.total(spent)
        assert exact.exact_delta_at(total.epsilon) <= total.delta


# --- numbers ----------------------------------------------------------------------------------------


def test_ten_charges_of_a_tenth_are_exactly_one_and_nothing_is_lost():
    rule, spent = rule_for(Pure(epsilon=1)), None
    spent = rule.spend(rule.nothing, Pure(epsilon=0.1), times=10)
    assert spent == (0, LEDGER_UNIT)
    assert rule.fits(spent)
    assert rule.total(spent).epsilon == 1
    with refuses(BudgetExhausted, "budget-exhausted") as caught:
        rule.admit(spent, Pure(epsilon=1e-18))
    assert caught.value.remaining is None
    assert rule.admit(rule.nothing, Pure(epsilon=1e-18)) == (0, 1)
    seven = rule.spend(rule.nothing, Pure(epsilon=0.1), times=7)
    with refuses(BudgetExhausted, "budget-exhausted") as caught:
        rule.admit(seven, Pure(epsilon=0.4))
    assert caught.value.remaining == Pure(epsilon=0.3)
    assert rule.admit(seven, caught.value.remaining) == (0, LEDGER_UNIT)
    three = rule_for(Pure(epsilon=3))
    assert three.fits(three.spend(three.nothing, Pure(epsilon=0.01), times=300))
    assert not three.fits(three.spend(three.nothing, Pure(epsilon=0.01), times=301))


@pytest.mark.parametrize("order", ["1.25", "2", "8", "33", "1024", "1000000000"])
@pytest.mark.parametrize("delta", ["0.3", "1e-6", "1e-30"])
def test_conversions_are_never_below_fifty_digits(order, delta):
    exact = conversion_cost(Fraction(order), Fraction(delta))
    with mpmath.workdps(50):
        a, d = mpmath.mpf(order), mpmath.mpf(delta)
        truth = mpmath.log(1 - 1 / a) - (mpmath.log(d) + mpmath.log(a)) / (a - 1)
        got = mpmath.mpf(exact.numerator) / exact.denominator
        assert -mpmath.mpf("1e-45") < got - truth < mpmath.mpf("1e-40")


@pytest.mark.parametrize("epsilon", ["1e-18", "1e-9", "0.001", "0.1", "1", "3", "20", "1000"])
def test_the_rho_of_pure_privacy_holds_at_every_order_and_is_tight(epsilon):
    rho = stated_rho(Pure(epsilon=Fraction(epsilon)))
    with mpmath.workdps(150):
        e, bound = mpmath.mpf(epsilon), mpmath.mpf(rho.numerator) / rho.denominator

        def divergence(a):
            return mpmath.log((mpmath.exp(a * e) + mpmath.exp((1 - a) * e)) / (1 + mpmath.exp(e))) / (a - 1)

        for a in ("1.0001", "1.1", "2", "10", "1000"):
            assert divergence(mpmath.mpf(a)) <= bound * mpmath.mpf(a)
        assert bound <= divergence(mpmath.mpf("1.0001")) * mpmath.mpf("1.0001")


@pytest.mark.parametrize("name", ["advanced", "heterogeneous"])
def test_advanced_totals_are_never_below_ninety_digits(name):
    rule = rule_for(Approx(epsilon=5, delta=1e-6), name)
    for epsilon, times in (("0.01", 1000), ("0.3", 7), ("1e-9", 1)):
        total = rule.total(rule.spend(rule.nothing, Pure(epsilon=Fraction(epsilon)), times))
        with mpmath.workdps(90):
            squares, linear = times * mpmath.mpf(epsilon) ** 2, mpmath.mpf("0.5") if name == "advanced" else 2
            own = mpmath.mpf("1e-6") / (2 if name == "advanced" else 1)
            truth = linear * squares + mpmath.sqrt(2 * squares * mpmath.log(1 / own))
            found = mpmath.mpf(total.epsilon.numerator) / total.epsilon.denominator
            assert truth <= found <= truth * (1 + mpmath.mpf("1e-9")) + mpmath.mpf("1e-7")


def test_the_taught_theorems_give_the_taught_numbers():
    """[L6.T1] and [L6.T2], as printed."""
    limit = Approx(epsilon=10, delta=1e-6)
    pure = AdvancedTaught(limit=limit, each=Pure(epsilon=0.01))
    total = pure.total(pure.spend(pure.nothing, Pure(epsilon=0.01), times=1000))
    assert float(total.epsilon) == pytest.approx(2 * 0.1 + 0.01 * math.sqrt(2000 * math.log(1e6)))
    assert total.delta == Fraction(1, 10**6)
    both = AdvancedTaught(limit=limit, each=Approx(epsilon=0.01, delta=1e-9))
    total = both.total(both.spend(both.nothing, Approx(epsilon=0.01, delta=1e-9), times=100))
    assert float(total.epsilon) == pytest.approx(2 * 0.01 + 0.01 * math.sqrt(200 * math.log(1e7)))
    assert total.delta == Fraction(2, 10**7)
    with refuses(IncompatibleGuarantee, "incompatible-guarantee"):
        both.coordinates(Approx(epsilon=0.01, delta=2e-9))
    with refuses(InvalidArgument, "formula-does-not-apply"):
        AdvancedTaught(limit=limit, each=Pure(epsilon=1.5))
    with refuses(InvalidArgument, "rule-does-not-fit"):
        rule_for(limit, both)
    assert not AdvancedTaught.adaptive


# --- the default rule -------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [LIMIT, Approx(epsilon=0.01, delta=1e-9), Approx(epsilon=50, delta=0.2)])
def test_the_boxes_share_the_limit_and_never_more(limit):
    rule = rule_for(limit)
    own, conversions = Fraction(rule.delta_room, LEDGER_UNIT), sum(box.converted for box in rule.boxes)
    assert own + conversions <= Fraction(str(limit.delta))
    with mpmath.workdps(50):
        for box in rule.boxes[1:]:  # each box alone keeps (ε, its share of δ)
            a, divergence = mpmath.mpf(float(box.at)), mpmath.mpf(box.room) / LEDGER_UNIT
            share = mpmath.mpf(box.converted.numerator) / box.converted.denominator
            log_delta = (a - 1) * (divergence - limit.epsilon) + a * mpmath.log(1 - 1 / a) - mpmath.log(a - 1)
            assert mpmath.exp(log_delta) <= share


def test_the_default_is_close_to_the_best_single_rule():
    limit = Approx(epsilon=1, delta=1e-6)
    best, zcdp = rule_for(limit), rule_for(limit, "zcdp")
    whole = float(zcdp.largest(zcdp.nothing, GaussianTradeoff(mu=1)).mu)
    assert float(best.largest(best.nothing, GaussianTradeoff(mu=1)).mu) > 0.95 * whole
    assert best.largest(best.nothing, Pure(epsilon=1)) == Pure(epsilon=1)


LIKE = [Pure(epsilon=1), ZeroConcentrated(rho=1), GaussianTradeoff(mu=1), Renyi(order=32, epsilon=1)]
LIKE += [Approx(epsilon=1, delta=delta) for delta in (1e-9, 4e-6, 1e-5)]


@pytest.mark.some_quick(7)
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("like", LIKE, ids=str)
def test_the_search_for_what_remains_leaves_out_only_full_boxes(like, times, monkeypatch):
    """Box by box, the largest release is the one that a search through all boxes finds, and its δ is not forgotten."""
    rule = rule_for(LIMIT)
    spent = [rule.nothing, rule.spend(rule.nothing, Pure(epsilon=0.5)), rule.spend(rule.nothing, Pure(epsilon=2))]
    spent += [rule.spend(rule.nothing, ZeroConcentrated(rho=0.01), 3), (rule.delta_room, *rule.nothing[1:])]
    found = [rule.largest(vector, like, times) for vector in spent]
    monkeypatch.setattr(BestOf, "_fits_more", Rule._fits_more)
    assert found == [rule.largest(vector, like, times) for vector in spent]
    assert any(found) == (getattr(like, "delta", 0) * times <= 5e-6)


def test_a_release_with_all_of_delta_is_refused_and_told_of_basic():
    rule = rule_for(LIMIT)
    with refuses(BudgetExhausted, "budget-exhausted") as found:
        rule.admit(rule.nothing, LIMIT)
    assert 'rule="basic"' in str(found.value)
    basic = rule_for(LIMIT, "basic")
    assert basic.fits(basic.admit(basic.nothing, LIMIT))
    with refuses(BudgetExhausted, "budget-exhausted") as caught:
        rule.admit(rule.spend(rule.nothing, Pure(epsilon=1.5)), Pure(epsilon=1))
    assert "basic" not in str(caught.value).split("Nothing was spent")[1]


def test_an_infinite_coordinate_closes_its_box_for_good_and_no_other():
    rule = rule_for(LIMIT)
    gauss = rule.spend(rule.nothing, GaussianTradeoff(mu=0.01))
    assert gauss[1] == CLOSED
    assert rule.fits(gauss)
    mixed = rule.spend(gauss, Pure(epsilon=0.001), times=10**6)
    assert mixed[1] > CLOSED
    only_low = Renyi(order=Fraction(101, 100), epsilon=0.1)
    with refuses(IncompatibleGuarantee, "incompatible-guarantee"):
        rule.coordinates(only_low)


# --- which rule ---------------------------------------------------------------------------------------


def test_the_natural_rule_of_each_limit():
    assert isinstance(rule_for(Pure(epsilon=1)), Basic)
    assert isinstance(rule_for(Approx(epsilon=1)), Basic)
    assert isinstance(rule_for(LIMIT), BestOf)
    assert {name: rule_for(limit).name for name, limit in LIMITS.items()} == {name: name for name in LIMITS}
    assert rule_for(LIMITS["renyi"]).labels == ("δ", "Rényi 8")
    chosen = RenyiRule(limit=LIMIT, order=32)
    assert rule_for(LIMIT, chosen) is chosen
    assert isinstance(rule_for(LIMIT, "heterogeneous"), Heterogeneous)


@pytest.mark.parametrize("name", ["zcdp", "renyi", "gaussian", "advanced", "heterogeneous", "best", "nonsense"])
def test_a_rule_that_cannot_guard_the_limit_is_refused(name):
    with pytest.raises(InvalidArgument):
        rule_for(Pure(epsilon=1), name)
    if name not in LIMITS:
        with pytest.raises(InvalidArgument):
            rule_for(LIMITS["zcdp"], name)


@pytest.mark.parametrize("name", ["best", "basic", "zcdp", "renyi", "advanced"])
def test_a_raised_limit_keeps_the_coordinates_and_all_that_fitted(name):
    """Nested boxes: a session that raises its limit on the way is one under the larger limit from the start."""
    rule = rule_for(LIMIT, name)
    larger = Approx(epsilon=3 * LIMIT.epsilon, delta=2 * LIMIT.delta)
    raised = rule.raised(larger)
    assert (raised.name, raised.limit, raised.labels) == (name, larger, rule.labels)
    assert raised.raised(larger) == raised == raised.fixed()
    release = Pure(epsilon=0.01)
    assert raised.coordinates(release) == rule.coordinates(release)
    assert raised.delta_room >= rule.delta_room
    boxes = zip(getattr(rule, "boxes", [rule]), getattr(raised, "boxes", [raised]), strict=True)
    for before, after in boxes:
        assert after.room > before.room
        assert after.converted == before.converted
    for smaller in (Approx(epsilon=1e-3, delta=LIMIT.delta), Approx(epsilon=9, delta=1e-9), Renyi(order=8, epsilon=9)):
        with refuses(InvalidArgument, "limit-shrinks"):
            rule.raised(smaller)


def test_other_limits_are_raised_in_kind():
    for name, limit in LIMITS.items():
        rule = rule_for(limit)
        field = next(field for field in ("epsilon", "rho", "mu") if hasattr(limit, field))
        doubled = replace(limit, **{field: 2 * getattr(limit, field)})
        assert rule.raised(doubled).room > rule.room if name != "best" else rule.raised(doubled)
        with refuses(InvalidArgument, "limit-shrinks"):
            rule.raised(doubled).raised(limit)


def test_other_refusals():
    with refuses(InvalidArgument, "rule-does-not-fit"):
        rule_for(Approx(epsilon=2, delta=1e-6), rule_for(LIMIT))
    with refuses(InvalidArgument, "wrong-type"):
        rule_for(compose([Pure(epsilon=1)]))
    with refuses(InvalidArgument, "out-of-range"):
        RenyiRule(limit=LIMIT, order=1)
    with refuses(InvalidArgument, "out-of-range"):
        RenyiRule(limit=Renyi(order=8, epsilon=1), order=4)
    with refuses(IncompatibleGuarantee, "incompatible-guarantee"):
        rule_for(LIMIT, "heterogeneous").coordinates(Approx(epsilon=0.1, delta=1e-9))
    zcdp = rule_for(LIMITS["zcdp"])
    with refuses(BudgetExhausted, "budget-exhausted") as caught:
        zcdp.admit(zcdp.nothing, Approx(epsilon=0.1, delta=1e-9))
    assert caught.value.remaining is None

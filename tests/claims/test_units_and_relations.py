"""For whom a promise holds: units and relations are carried, converted or refused; checks come before the charge."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.guarantees.privacy_loss.finite_pairs import ResponsePair
from discreet.mechanisms.noise.joint import JointNoise
from discreet.mechanisms.selection.person_limits import PersonLimits
from discreet.mechanisms.selection.support_limit import SupportLimit
from discreet.mechanisms.selection.weighted_keys import WeightedKeys

from ..forks import said_in_a_fork
from ..refusing import refuses

PERSON = dp.person("id")
REPLACED = dp.row(neighbors="replace")
SEARCH = dp.mechanisms.UpwardSearch(enough=1, bar_scale=1, step_scale=1)


def ledger(unit: dp.Unit = PERSON, epsilon: float = 100) -> dp.Ledger:
    return dp.Ledger.open(":memory:", protects=unit, limit=dp.Pure(epsilon=epsilon))


def curve(inside: testing.ExactLaw, outside: testing.ExactLaw, epsilon: float) -> float:
    outputs = set(inside.law) | set(outside.law)
    ratio = math.exp(epsilon)
    return sum(max(0.0, float(inside.law.get(o, 0)) - ratio * float(outside.law.get(o, 0))) for o in outputs)


def test_a_sample_of_rows_promises_nothing_about_a_person_with_two() -> None:
    """Two rows have two coins: the curve of one coin with twice the sensitivity is too low, so people are refused."""
    noise = dp.Laplace(scale=Fraction(1, 5), step=1)
    sampled = dp.Subsampled(mechanism=noise, rate=0.1, query=lambda rows: int(rows.sum()))
    with_two = testing.exact_law(lambda: sampled._draw(np.array([1, 1])), window=8)
    without = testing.exact_law(lambda: sampled._draw(np.array([], dtype=int)), window=8)
    assert curve(with_two, without, 1) > sampled.guarantee(2).delta_at(epsilon=1) + 0.05
    assert sampled.guarantee(2).protects == dp.row()
    with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
        sampled.guarantee(dp.Sensitivity(2, unit=PERSON))
    account = ledger()
    with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
        dp.release(np.array([1, 1]), sampled, sensitivity=2, ledger=account)
    assert not account.entries()
    assert dp.release(np.array([1, 1]), sampled, sensitivity=1, ledger=ledger(dp.row())).receipt


def test_a_sampled_row_is_what_it_says() -> None:
    noise = dp.Laplace(scale=Fraction(1, 2), step=1)
    sampled = dp.Subsampled(mechanism=noise, rate=0.3, query=lambda rows: int(rows.sum()))
    one = testing.exact_law(lambda: sampled._draw(np.array([1])), window=30)
    none = testing.exact_law(lambda: sampled._draw(np.array([], dtype=int)), window=30)
    promised = sampled.guarantee(1)
    for epsilon in (0.0, 0.2, 0.5, 0.9):
        attained = max(curve(one, none, epsilon), curve(none, one, epsilon))
        assert attained <= promised.delta_at(epsilon=epsilon) <= attained + 1e-6


def test_an_ordinary_norm_says_nothing_about_a_covariance() -> None:
    noise = dp.mechanisms.CorrelatedGaussian(stddev=1, covariance=((0.01, 0.0), (0.0, 0.01)))
    with refuses(dp.InvalidArgument, "sensitivity-wrong-kind"):
        noise.guarantee(dp.Sensitivity(1, "L2", dp.row(), 2))


def test_what_is_proved_for_one_relation_is_converted_in_a_composition() -> None:
    keys = dp.mechanisms.KeySelection.for_guarantee(dp.Approx(epsilon=1, delta=1e-6))
    replaced = dp.Laplace(scale=10, step=1).guarantee(dp.Sensitivity(2, unit=REPLACED))
    assert keys.guarantee().relation == "add_or_remove"
    both = dp.compose([keys.guarantee(), replaced])
    assert both.protects == REPLACED
    assert both.largest_loss == 2 * Fraction(1) + Fraction(2, 10)
    unnamed = dp.compose([keys.guarantee(), dp.Laplace(scale=10, step=1).guarantee(1)])
    assert (unnamed.protects, unnamed.neighbors) == (None, "add_or_remove")
    assert unnamed.stated_for(REPLACED).largest_loss == 2 * (1 + Fraction(1, 10))
    assert unnamed.stated_for(dp.row()).largest_loss == 1 + Fraction(1, 10)
    with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
        dp.Pure(epsilon=1, neighbors="replace").stated_for(dp.row())


def test_a_sanitized_database_needs_a_mechanism_for_single_values() -> None:
    with refuses(dp.InvalidArgument, "part-does-not-fit"):
        dp.Each(dp.mechanisms.Quantile(space=dp.Interval(0, 0.5), rate=10), dp.Interval(0, 0.5))
    with refuses(dp.InvalidArgument, "part-does-not-fit"):
        dp.Each(dp.NoisyArgmax(scale=1), dp.Interval(0, 1))
    response = dp.RandomizedResponse(choices=["a", "b"], lie=0.25)
    with refuses(dp.InvalidArgument, "part-does-not-fit"):
        dp.Each(response, dp.queries.Categories(["a", "b", "c"]))
    assert dp.Each(response).guarantee() == dp.Each(response, dp.queries.Categories(["a", "b"])).guarantee()


def test_a_query_is_not_sampled_by_its_coordinates() -> None:
    sampled = dp.Subsampled(mechanism=dp.Laplace(scale=1), rate=0.1, query=lambda rows: rows.sum())
    with refuses(dp.InvalidArgument, "conflicting-arguments"):
        dp.release([1.0], sampled, query=dp.Sum((0, 1)), ledger=ledger(dp.row()))


def shown_in_public_order(mechanism: Any) -> bool:
    """Keys that are shown come in the same order whatever their counts and whatever is hidden beside them."""
    tables: list[dict[Any, int]] = [
        {3.0: 900, 1.0: 500},
        {1.0: 900, 3.0: 500},
        {math.nan: 1, 3.0: 900, 1.0: 500},
        {3.0: 900, 1.0: 500, (None, "x"): 1, "y": 2},
    ]
    with testing.no_noise():
        return all(list(dp.release(table, mechanism).value) == [1.0, 3.0] for table in tables)


def test_keys_come_in_a_public_order_and_a_mutant_sorts_by_count() -> None:
    class SortedByCount(dp.mechanisms.KeySelection):
        def _draw(self, value: Any) -> Any:
            return dict(sorted(super()._draw(value).items(), key=lambda item: -value[item[0]]))

    assert shown_in_public_order(dp.mechanisms.KeySelection(scale=1, threshold=20))
    assert not shown_in_public_order(SortedByCount(scale=1, threshold=20))


def test_a_lone_key_that_stays_hidden_tells_no_more_than_the_leak_beside_it() -> None:
    """1 − x(1−a) ≤ a + (1−a)·(1−x): the curve of a hidden key is below that of a leak of mass a with anything."""
    low = dp.mechanisms.KeySelection(scale=10, threshold=2)
    promised = low.guarantee()
    for epsilon in (0.0, 0.05, 0.1, 0.3):
        hidden = max(0.0, 1 - math.exp(epsilon) * (1 - float(low._alone_bound())))
        assert hidden <= promised.delta_at(epsilon=epsilon)
    assert any(isinstance(pair, ResponsePair) for pair, _ in promised.factors)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("mechanism", "value", "sensitivity"),
    [
        (dp.Exponential(rate=1, choices=["a", "b"]), [1, 2, 3], 1),
        (dp.Exponential(rate=1), [], 1),
        (dp.NoisyArgmax(scale=1), [], 1),
        (dp.mechanisms.UpwardSearch(enough=1, bar_scale=1, step_scale=1), [], 1),
        (dp.mechanisms.UpwardSearch(enough=1, bar_scale=1, step_scale=1), 3, 1),
        (dp.mechanisms.UpwardSearch(enough=1, bar_scale=1, step_scale=1), [[3], [1]], 1),
        (dp.mechanisms.UpwardSearch(enough=1, bar_scale=1, step_scale=1), ["many", "few"], 1),
        (dp.mechanisms.CorrelatedGaussian(stddev=1, covariance=((1.0,),)), [1.0, 2.0], 1),
        (dp.Composed(mechanisms=(dp.Laplace(scale=1),)), [1, 2], 1),
        (dp.mechanisms.CommonKeys(order=4, losses=(1,), leaks=(0.1,), keys_per_person=1), {"a": 3}, None),
        (WeightedKeys(first_stddev=9, first_threshold=40, stddev=3, threshold=15), {"a": 3}, None),
        (PersonLimits(limits=((1, 2),), searches=(SEARCH,)), [1, 2], 1),
        (PersonLimits(limits=((1, 2),), searches=(SEARCH,)), [[1, 2], [3]], 1),
        (PersonLimits(limits=((1, 2),), searches=(SEARCH,)), 3, 1),
        (SupportLimit(limits=(1, 2), penalty=1, rate=1), [1, 2, 3], 1),
        (SupportLimit(limits=(1, 2), penalty=1, rate=1), [[1, 2]], 1),
        (JointNoise(noise=dp.Laplace(scale=1)), 3, 1),
        (JointNoise(noise=dp.Laplace(scale=1)), [], 1),
        (JointNoise(noise=dp.Laplace(scale=1)), "text", 1),
        (JointNoise(noise=dp.Laplace(scale=1)), [[1], ["text"]], 1),
        (dp.Laplace(scale=1), "text", 1),
        (dp.Laplace(scale=1), 41, None),
        (dp.Laplace, 41, 1),
    ],
)
def test_wrong_shapes_and_types_are_refused_before_the_charge(mechanism: Any, value: Any, sensitivity: Any) -> None:
    account = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=9, delta=0.1))
    with pytest.raises(dp.InvalidArgument):
        dp.release(value, mechanism, sensitivity=sensitivity, ledger=account)
    assert not account.entries()


def test_a_fork_is_not_a_second_purse() -> None:
    begun = """
import discreet as dp
account = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=9, delta=0.1))
def ask():
    return account.charge(dp.Pure(epsilon=1), asked="in the child")
"""
    assert said_in_a_fork(begun) == "ledger-in-memory"


def test_terms_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(dp.InvalidArgument):
        dp.Ledger.open(":memory:", protects=PERSON, limit=dp.Pure(epsilon=1, protects=dp.row()))
    noise = dp.Gaussian.for_guarantee(dp.Approx(epsilon=1, delta=1e-6), sensitivity=1)
    for stated in (dp.Approx(epsilon=1, delta=1e-6, protects=PERSON), dp.Approx(epsilon=0.5, delta=1e-6), "ε = 1"):
        with pytest.raises(dp.InvalidArgument):
            dp.release(41, noise, sensitivity=1, stated=stated)  # type: ignore[arg-type]
    kept = dp.release(41, noise, sensitivity=1, stated=dp.Approx(epsilon=1, delta=1e-6)).guarantee
    assert kept == dp.Approx(epsilon=1, delta=1e-6)


def test_the_error_of_a_choice_counts_its_candidates() -> None:
    argmax, choice = dp.NoisyArgmax(scale=1), dp.Exponential(rate=1)
    scores = list(range(1000))
    assert dp.release(scores, argmax, sensitivity=1).error(0.95) == argmax.error(0.95, values=1000)
    assert dp.release(scores, choice, sensitivity=1).error(0.95) == choice.error(0.95, candidates=1000)
    bar = dp.mechanisms.AboveThreshold.for_guarantee(dp.Pure(epsilon=1), threshold=1e9, sensitivity=1)
    assert dp.release([1, 2, 3], bar, sensitivity=1).error(0.95) == bar.error(0.95, questions=3)
    search = dp.mechanisms.UpwardSearch(enough=2, bar_scale=1, step_scale=2)
    assert dp.release([9, 5, 0], search, sensitivity=1).error(0.95) == search.error(0.95, limits=3)
    assert dp.Subsampled(mechanism=dp.Laplace(scale=1), rate=0.5).error(0.95).amount is None


def test_small_promises_are_calibrated_and_none_at_all_is_shown() -> None:
    keys = dp.mechanisms.KeySelection.for_guarantee(dp.Approx(epsilon=0.001, delta=1e-9))
    assert keys.delta <= 1e-9
    assert dp.mechanisms.KeySelection(scale=keys.scale, threshold=keys.threshold - 1).delta > 1e-9
    assert "ε" in str(dp.RandomizedResponse(choices=["a", "b"], lie=0.5).guarantee())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: dp.compose(dp.Pure(epsilon=1)),  # type: ignore[arg-type]
        lambda: dp.mechanisms.Quantile.for_guarantee(dp.Pure(epsilon=1), space=(0, 120)),  # type: ignore[arg-type]
        lambda: dp.least_error((0, 1), dp.Pure(epsilon=1)),  # type: ignore[arg-type]
        lambda: dp.least_error(dp.Interval(0, 1), 1),  # type: ignore[arg-type]
        lambda: dp.Composed(mechanisms=dp.Laplace(scale=1)),  # type: ignore[arg-type]
        lambda: dp.release(41, dp.Laplace(scale=1), sensitivity=1, ledger="clinic.ledger"),  # type: ignore[arg-type]
    ],
)
def test_slips_get_a_typed_error(wrong: Callable[[], Any]) -> None:
    with refuses(dp.InvalidArgument, "wrong-type"):
        wrong()


def test_an_accuracy_prints_formats_and_rounds() -> None:
    accuracy = dp.Laplace(scale=2).error(0.95)
    assert str(accuracy) == "± 5.991 (95%) of value"
    assert f"{accuracy:.2f}" == "5.99"
    assert round(accuracy, 1) == 6.0

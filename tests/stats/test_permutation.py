"""The permutation test: exact laws on tiny tables, its level, and its release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.special import bdtr, bdtrc, chdtrc

import discreet as dp
from discreet import testing
from discreet.errors import IncompatibleGuarantee, InvalidArgument, NotAllowed
from discreet.mechanisms.quantiles.permutation_test import PermutationTest, permuted_sums
from discreet.stats.permutation_methods import p_of_rank

from ..refusing import refuses
from .permuted import counts_of, largest_delta, law_of, neighbors, tables

RELATIONS = ("add_or_remove", "replace")
GIVEN: dict[str, dict[str, Any]] = {
    "two-sided": {"level": 0.5, "permutations": 3},
    "greater": {"level": 0.1, "permutations": 19, "side": "greater"},
    "less": {"level": 0.25, "permutations": 7, "side": "less"},
    "rank": {"level": None, "permutations": 4},
}


def made(answer: str, epsilon: float = 1, relation: Any = "add_or_remove", steps: int = 1) -> PermutationTest:
    unit = dp.row(neighbors=relation)
    return PermutationTest.for_guarantee(dp.Pure(epsilon=epsilon), unit=unit, steps=steps, **GIVEN[answer])


# --- privacy ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("answer", GIVEN)
def test_no_pair_of_tiny_tables_is_distinguished_by_more_than_the_claim(answer: str, relation: str) -> None:
    """Exact laws of all tables of at most four rows with the values 0 and 1."""
    test = made(answer, relation=relation)
    assert largest_delta(test, relation, float(test.guarantee().epsilon)) < 1e-12  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 3])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("answer", GIVEN)
def test_nor_with_three_values_and_other_epsilon(answer: str, relation: str, epsilon: float) -> None:
    assert largest_delta(made(answer, epsilon, relation, steps=2), relation, epsilon, most=3) < 1e-12


def test_the_claim_is_not_far_from_tight() -> None:
    """At 80% of ε a threshold distinguishes some pair, so 25% less noise would break the claim."""
    for answer in ("greater", "less"):
        assert largest_delta(made(answer, 3), "replace", 0.75 * 3) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("answer", GIVEN)
def test_what_is_drawn_has_the_law_that_was_enumerated(answer: str) -> None:
    """χ² of 4,000 answers: an error of 8% in a probability is seen, and a false alarm has a probability of 1e-7."""
    test, table = made(answer, steps=2), ((0, 0), (1, 0), (2, 1), (2, 1))
    law = law_of(test, table)
    drawn = np.bincount([int(test._answer(counts_of(table, 2))) for _ in range(4000)], minlength=len(law))
    assert chdtrc(len(law) - 1, ((drawn - 4000 * law) ** 2 / (4000 * law)).sum()) > 1e-7


@pytest.mark.slow
def test_the_real_draws_have_the_same_law_by_enumeration() -> None:
    """Every path of the samplers, for one permutation."""
    test = PermutationTest(scale=1, permutations=1, level=0.5, side="greater", steps=1, unit=dp.row())
    for table in (((0, 0), (1, 1)), ((0, 1), (0, 0), (1, 1))):
        found = testing.exact_law(lambda table=table: test._answer(counts_of(table, 1)), window=14)
        assert float(found.law[True]) == pytest.approx(law_of(test, table)[1], abs=float(found.unresolved) + 1e-9)
        assert found.unresolved < 1e-5


@pytest.mark.slow
def test_a_neighbor_moves_no_permuted_sum_by_more_than_the_range() -> None:
    """Without a coupling that does so, some quantile of the differences would move further."""
    for relation in RELATIONS:
        for one, other in neighbors(tables(2, 4), 2, relation):
            first, second = (law_of_moves(table) for table in (one, other))
            assert all(first[: k - 2].sum() <= second[:k].sum() + 1e-12 for k in range(2, len(first) + 1))
            assert all(second[: k - 2].sum() <= first[:k].sum() + 1e-12 for k in range(2, len(first) + 1))


def law_of_moves(table: Any) -> Any:
    """The probabilities of a permuted sum less that of the second group, from −12 to 12."""
    from itertools import combinations

    own = sum(value for value, group in table if group)
    size = sum(group for _, group in table)
    sums = [sum(taken) - own + 12 for taken in combinations([value for value, _ in table], size)]
    return np.bincount(sums, minlength=25) / len(sums)


def test_the_guarantee_says_what_each_answer_costs() -> None:
    one = PermutationTest(scale=100, permutations=99, level=0.05, side="greater", steps=50, unit=dp.row())
    assert one.guarantee() == dp.Pure(epsilon=0.5, protects=dp.row())
    given = {"scale": 100, "permutations": 99, "steps": 50}
    ranks = [PermutationTest(level=None, unit=dp.row(neighbors=how), **given) for how in RELATIONS]
    assert [one.guarantee().epsilon for one in ranks] == [1, 1.5]
    two = PermutationTest(level=0.05, unit=dp.row(), **given)
    assert 0.5 < float(two.guarantee().epsilon) < 0.52
    assert two.guarantee().epsilon > np.log((np.exp(0.5) - np.exp(-4.5)) / (1 - np.exp(-4))) - 1e-12


# --- permutations and level -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_permuted_sums_are_those_of_rows_without_replacement() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 200, 300)
    sums = permuted_sums(np.bincount(values, minlength=256), 120, 3000)
    variance = 120 * 180 / 299 * values.var()
    assert abs(sums.mean() - 120 * values.mean()) < 6 * np.sqrt(variance / 3000)
    assert sums.var() == pytest.approx(variance, rel=0.15)
    assert set(permuted_sums(np.array([0, 3]), 2, 5)) == {2}
    assert set(permuted_sums(np.zeros(4, dtype=np.int64), 0, 5)) == {0}


def test_rounding_keeps_means_and_leaves_out_what_has_no_value() -> None:
    test = PermutationTest(scale=100, permutations=99, level=0.1, steps=4, unit=dp.row())
    counts = test.count(np.full(40_000, 0.3), np.arange(40_000) % 2)
    assert counts[:, [0, 3, 4]].sum() == 0
    assert counts[:, 2].sum() / 40_000 == pytest.approx(0.2, abs=0.015)
    odd = test.count(np.array([np.nan, 0.0, 1.0, 1.0]), np.array([0, 1, -2, 0]))
    assert odd.tolist() == [[0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["decision", "p-value"])
@pytest.mark.parametrize("epsilon", [0.2, 5])
def test_the_level_holds_for_skewed_values(answer: str, epsilon: float) -> None:
    """3,000 runs of 50 rows at 10%: above 13% or below 7% has a probability below 1e-6."""
    rng = np.random.default_rng(5)
    level = 0.1 if answer == "decision" else None
    test = PermutationTest.for_guarantee(dp.Pure(epsilon=epsilon), unit=dp.row(), level=level, permutations=39)
    hits = 0
    for _ in range(3000):
        values = np.clip(rng.lognormal(2, 1.5, 50), 0, 255).astype(int)
        sums = values[np.argsort(rng.random((39, 50)), axis=1)][:, :15].sum(1) - values[:15].sum()
        q = 1 - np.exp(-1 / float(test.scale))
        noise = rng.geometric(q, 40) - rng.geometric(q, 40)
        others = np.sort(sums + noise[1:])
        if level:
            hits += test.decide(int(noise[0]), others)
        else:
            hits += p_of_rank(int((others >= noise[0]).sum()), 39, "two-sided") <= 0.1
    assert bdtrc(hits - 1, 3000, 0.1) > 1e-6
    assert bdtr(hits, 3000, 0.1) > 1e-6


# --- the release ------------------------------------------------------------------------------------------------------


@pytest.fixture
def visits(tmp_path: Path) -> Any:
    rng = np.random.default_rng(2)
    treated = np.arange(3000) % 2 == 0
    data = {"cost": rng.gamma(2, 100, 3000) + 150 * treated, "treated": treated, "luck": rng.random(3000)}
    data["arm"] = np.where(treated, "drug", "placebo")
    data["who"] = np.array([f"p{k % 1500}" for k in range(3000)])
    pa.parquet.write_table(pa.table(data), tmp_path / "visits.parquet")
    ledger = dp.Ledger.open(tmp_path / "ledger", protects=dp.row(), limit=dp.Pure(epsilon=20))
    return dp.table(tmp_path / "visits.parquet", ledger=ledger)


def test_a_decision_is_one_release(visits: Any) -> None:
    given: dict[str, Any] = {"by": "treated", "between": (0, 2000), "epsilon": 5}
    explained = str(visits.explain.stats.permutation("cost", level=0.05, **given))
    assert "costs ε = 5" in explained
    assert "finds a difference of" in explained
    found = visits.stats.permutation("cost", level=0.05, **given)
    assert (found.value, found.level, found.rejects(), found.rejects(0.05)) == (True, 0.05, True, True)
    assert "rejected at the level 0.05" in str(found)
    assert "rejected at the level 0.05" in found._repr_html_()
    for ask in (lambda: found.p_value, lambda: found.rejects(0.01)):
        with refuses(NotAllowed, "decision-only"):
            ask()
    again = visits.stats.permutation("cost", level=0.05, **given)
    assert again.replayed
    assert float(again.remaining.epsilon) == pytest.approx(15)
    assert not visits.stats.permutation("luck", by="treated", between=(0, 1), level=1e-2, epsilon=1).value


def test_a_p_value_is_released_without_a_level(visits: Any) -> None:
    given: dict[str, Any] = {"by": {"arm": ["placebo", "drug"]}, "between": (0, 2000), "epsilon": 5}
    found = visits.stats.permutation("cost", **given)
    assert found.p_value == 2 / 1000
    assert found.rejects(0.01)
    other = visits.stats.permutation("cost", alternative="less", **given)
    assert (other.replayed, other.p_value) == (True, 1.0)


@pytest.mark.slow
def test_a_range_can_be_found_and_a_person_has_one_row(visits: Any, tmp_path: Path) -> None:
    found = visits.stats.permutation("cost", by="treated", level=0.1, epsilon=5)
    assert found.found
    ledger = dp.Ledger.open(":memory:", protects=dp.person("who"), limit=dp.Pure(epsilon=20))
    table = dp.table(tmp_path / "visits.parquet", ledger=ledger, rows_per_person=2)
    assert table.stats.permutation("cost", by="treated", between=(0, 2000), level=0.1, epsilon=5).value
    offer = table.stats._statistics.permutation("cost", by="treated", between=(0, 2000), level=0.1, epsilon=5)
    parts, groups = offer.drawing(offer.rows).read()
    assert len(parts) == len(groups) == 1500


@pytest.mark.some_quick(4)
@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"level": 0}, "out-of-range"),
        ({"level": 1.5}, "out-of-range"),
        ({"level": 0.01, "permutations": 99}, "out-of-range"),
        ({"permutations": 0}, "out-of-range"),
        ({"permutations": 10**6}, "too-large"),
        ({"alternative": "both"}, "not-an-option"),
        ({"by": {"arm": ["a", "b", "c"]}}, "wrong-shape"),
        ({"by": "cost"}, "duplicates"),
    ],
)
def test_odd_arguments_are_refused_before_anything_is_charged(visits: Any, given: Any, code: str) -> None:
    whole: dict[str, Any] = {"by": "treated", "between": (0, 2000), "epsilon": 1, **given}
    with refuses(InvalidArgument, code):
        visits.stats.permutation("cost", **whole)
    assert visits.stats.permutation("luck", by="treated", between=(0, 1), epsilon=20)


def test_a_mechanism_with_a_delta_is_refused() -> None:
    with refuses(IncompatibleGuarantee, "incompatible-guarantee"):
        PermutationTest.for_guarantee(dp.Approx(epsilon=1, delta=1e-6), unit=dp.row())
    with refuses(InvalidArgument, "not-an-option"):
        PermutationTest(scale=1, permutations=9, level=None, side="up", unit=dp.row())
    with refuses(InvalidArgument, "wrong-type"):
        PermutationTest(scale=1, permutations=9, level=None, unit="row")  # type: ignore[arg-type]
    assert PermutationTest(scale=1, permutations=9, level=None, unit=dp.row()).error(0.9).amount is None

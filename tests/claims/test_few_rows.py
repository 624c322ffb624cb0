"""Units of a few rows: every mechanism and every query charges for all of them, or refuses."""

from __future__ import annotations

import inspect
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.guarantees.unit import RELATIONS
from discreet.queries import Ball, Domain, Histogram, Mean, MedianScore, Popularity, Sum, VectorSum, Workload
from discreet.queries.shares import ShareProducts

from ..refusing import refuses
from .test_contract import CASES, PROMISES

FEW = dp.row(times=2, groups=2, by="region")
QUERIES = (
    dp.Count(),
    Sum((0, 10)),
    Mean((0, 10), size=10),
    Histogram(("a", "b")),
    MedianScore(dp.Integers(0, 9)),
    Popularity(("a", "b")),
    VectorSum(Ball(2, 1)),
    Workload.marginals(Domain({"x": 2, "y": 3}), 1),
)


def states(made: Any) -> bool:
    """Whether it states its own sensitivity for a unit and a number of rows."""
    method = getattr(type(made), "sensitivity", None)
    return callable(method) and "unit" in inspect.signature(method).parameters


def amounts(found: Any) -> list[Any]:
    return [one.exact for one in (found if isinstance(found, tuple | list) else [found])]


@pytest.mark.parametrize("query", QUERIES, ids=lambda one: type(one).__name__)
def test_a_query_counts_every_row_of_a_unit(query: Any) -> None:
    for neighbors in RELATIONS:
        check_all_rows(query, neighbors)


@pytest.mark.slow
def test_a_mechanism_counts_every_row_of_a_unit() -> None:
    made = [case.calibrate(PROMISES[case.kinds[0]]) for case in CASES.values()]
    found = [one for one in made if states(one)]
    assert len({type(one) for one in found}) > 15
    for one in found:
        for neighbors in RELATIONS:
            check_all_rows(one, neighbors)


def check_all_rows(made: Any, neighbors: Any) -> None:
    """The sensitivity for one of a few rows is refused. That for all of them is that of as many rows of one unit."""
    few, one = dp.row(times=2, groups=2, by="region", neighbors=neighbors), dp.row(neighbors=neighbors)
    if code_of(made, one) == "size-is-private":
        return
    for rows in (1, 3):
        assert code_of(made, few, rows) in ("unit-several-rows", "rows-not-independent"), type(made).__name__
    if code_of(made, few, 4) != "rows-not-independent":
        assert amounts(made.sensitivity(few, 4)) == amounts(made.sensitivity(one, 4))


def code_of(made: Any, unit: dp.Unit, rows: int = 1) -> str | None:
    """Why a sensitivity is refused. None if it is not."""
    try:
        made.sensitivity(unit, rows)
    except dp.errors.InvalidArgument as error:
        return error.code
    return None


def test_queries_that_share_among_the_rows_of_a_person_refuse_a_few_rows() -> None:
    for query in (ShareProducts(2, ((0, 1),)),):
        with refuses(dp.errors.InvalidArgument, "unit-several-rows"):
            query.sensitivity(FEW, 4)


def test_no_number_of_rows_is_checked_without_its_unit() -> None:
    """A new mechanism that forgets it would charge for one row."""
    source = Path(dp.__file__).parent
    found = {
        path.relative_to(source).as_posix()
        for folder in ("queries", "mechanisms", "learn", "functions")
        for path in (source / folder).rglob("*.py")
        if 'check_count(rows_per_person, "rows_per_person")' in path.read_text("utf-8")
    }
    assert found == {"queries/shares.py"}


def book(unit: dp.Unit = FEW) -> dp.Ledger:
    return dp.Ledger.open(":memory:", protects=unit, limit=dp.Approx(epsilon=100, delta=1e-3))


def test_a_release_charges_for_all_rows_of_a_unit() -> None:
    ledger, noise = book(), dp.Laplace(scale=8, step=1)
    made = dp.release([1, 2, 3], noise, query=dp.Count(), ledger=ledger)
    assert made.guarantee.largest_loss == Fraction(4, 8)
    assert made.guarantee.protects == FEW
    more = dp.release([1, 2, 3], noise, query=dp.Count(), ledger=ledger, rows_per_person=6)
    assert more.guarantee.largest_loss == Fraction(6, 8)
    with refuses(dp.errors.InvalidArgument, "unit-several-rows"):
        dp.release([1, 2, 3], noise, query=dp.Count(), ledger=ledger, rows_per_person=3)
    assert len(ledger.entries()) == 2


def test_a_ledger_of_a_few_rows_takes_no_promise_about_one() -> None:
    for given, asked in ((dp.row(), FEW), (FEW, dp.row()), (dp.row(times=4), FEW), (dp.row(times=2), dp.row(times=3))):
        with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
            book(asked).charge(dp.Pure(epsilon=1, protects=given), asked="a question")
    with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
        month = dp.row(times=2, per="month")
        book(dp.row(times=2)).charge(dp.Pure(epsilon=1, protects=month), asked="a question")


def test_a_sampled_row_is_not_a_few() -> None:
    sampled = dp.Subsampled(mechanism=dp.Laplace(scale=2, step=1), rate=0.1, query=len)
    assert sampled.guarantee(dp.Sensitivity(1, unit=dp.row())).protects == dp.row()
    with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
        sampled.guarantee(dp.Sensitivity(4, unit=FEW))


def test_what_knows_one_row_only_refuses_a_few() -> None:
    ledger, rows = book(), {"x": [1.0, 2.0, 3.0]}
    calls = (
        lambda: dp.table(rows, ledger=ledger),
        lambda: dp.adaptive.study(rows, ledger=ledger, queries=3),
        lambda: dp.stats.mean([1.0, 2.0], between=(0, 3), epsilon=1, ledger=ledger),
    )
    for call in calls:
        with refuses(dp.errors.InvalidArgument, "unit-several-rows"):
            call()
    assert not ledger.entries()


def test_an_estimator_is_charged_for_all_rows_of_a_unit() -> None:
    features = np.linspace(0, 1, 40).reshape(20, 2)
    given = {"epsilon": 1.0, "delta": 1e-6, "feature_norm": 2, "target_bound": 1}
    of_four = dp.learn.LinearRegression(**given, ledger=book())
    of_rows = dp.learn.LinearRegression(**given, ledger=book(dp.row()), rows_per_person=4)
    assert of_four._plan(2) == of_rows._plan(2)
    made = of_four.fit(features, features[:, 0]).release_.guarantee
    assert made.protects == FEW
    assert made.epsilon_at(delta=1e-6) <= 1
    with refuses(dp.errors.InvalidArgument, "unit-several-rows"):
        dp.learn.LinearRegression(**given, ledger=book(), rows_per_person=2).fit(features, features[:, 0])

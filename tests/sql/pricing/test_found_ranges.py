"""Ranges that nobody declares and quantiles are chosen from: what lies beyond them, and what sums do with them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.errors import NotAllowed
from discreet.sql.expressions import Const, Field, Ref, call
from discreet.sql.pricing.centers import places_of, spread_of, to_find_centers
from discreet.sql.reading.values.ranges import range_of
from discreet.sql.running.notes import TOO_FEW

from ...refusing import refuses

COSTS = np.exp(np.random.default_rng(7).normal(4.4, 1.6, 6000)).round(2)
"""Most are small, and a few are hundreds of times the median."""
VISITS = pa.table({"person": np.arange(6000) // 2, "cost": COSTS, "ward": np.arange(6000) % 3})


def clinic(source: Any = VISITS, **columns: Any) -> Any:
    return dp.connect(
        {
            "ledger": {"path": ":memory:", "epsilon": 1e6, "delta": 1e-3},
            "unit": {"person": "person"},
            "tables": {"visits": {"source": source, "columns": columns}},
        }
    )


def one(answer: Any, name: str) -> tuple[Any, Any, Any]:
    """A number and the ends of its interval."""
    row = answer.table.to_pylist()[0]
    if f"{name}_low" in row:
        return row[name], row[f"{name}_low"], row[f"{name}_high"]
    error = row[f"{name}_error"]
    return row[name], None if error is None else row[name] - error, None if error is None else row[name] + error


def test_a_quantile_next_to_a_mean_clamps_no_sum() -> None:
    """The range that is found for the median leaves out the largest values. The mean has limits of its own."""
    text = "SELECT AVG(cost) AS a, MEDIAN(cost) AS m, SUM(cost) AS s FROM visits"
    assert clinic().plan(text, epsilon=10).clipping is not None
    both = clinic().sql(text, epsilon=10)
    assert any("the range of visits.cost" in note and "the center of visits.cost" in note for note in both.notes)
    assert not any("declared range" in note for note in both.notes)
    for name, truth in (("a", COSTS.mean()), ("m", np.median(COSTS)), ("s", COSTS.sum())):
        value, low, high = one(both, name)
        assert abs(truth - value) <= 4 * max(high - value, value - low), name  # once, it was off by half of itself


def test_a_column_that_is_computed_from_one_whose_median_is_asked_for_is_not_clamped() -> None:
    text = "SELECT MEDIAN(c) AS m, SUM(d) AS s FROM (SELECT cost AS c, cost * 2 AS d FROM visits) AS t"
    assert clinic().plan(text, epsilon=1).clipping is not None


def test_declared_automatic_ranges_still_clamp_sums() -> None:
    declared = clinic(cost={"between": "auto"}).plan("SELECT AVG(cost) AS a, MEDIAN(cost) AS m FROM visits", epsilon=1)
    assert declared.automatic[0].what == "the range of visits.cost"
    assert not any(measure.is_open for measure in declared.question.measures)


def test_the_end_of_a_range_that_was_found_is_no_end_of_an_interval() -> None:
    """Values beyond it were moved to it. 999 of 1,000 are below 2^k, and few people have more."""
    _, low, high = one(clinic().sql("SELECT MAX(cost) AS m FROM visits", epsilon=2), "m")
    assert high is None
    assert 100 < low <= COSTS.max()  # once, it was missing, too
    declared = clinic(cost={"between": [0, 5000]}).sql("SELECT MAX(cost) AS m FROM visits", epsilon=2)
    assert one(declared, "m")[2] is not None


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        ((3.25, 8.5), "5.0 (3.2 to 8.5)"),
        ((3.25, None), "5.0 (3.2 or more)"),
        ((None, 8.51), "5.0 (8.6 or less)"),
        ((None, None), "5 ± ?"),
    ],
)
def test_an_interval_without_an_end_says_so(ends: Any, shown: str) -> None:
    from discreet.sql.running.answer import _shown

    assert _shown(5.0, None, *ends) == shown


def test_too_few_people_for_a_range_are_no_median_of_a_default() -> None:
    """Once, 3 people had a median of 1.000000 (0.999984 to 1.000000)."""
    database = clinic(VISITS.slice(0, 6))
    with refuses(NotAllowed, "too-few-people"):
        database.sql("SELECT MEDIAN(cost) AS m FROM visits", epsilon=0.5)
    assert len(database.ledger.entries()) == 1
    table = dp.table(
        VISITS.slice(0, 6),
        ledger=dp.Ledger.open(":memory:", protects=dp.person("person"), limit=dp.Approx(epsilon=9, delta=1e-5)),
    )
    with refuses(NotAllowed, "too-few-people"):
        table.quantiles("cost", [0.5], epsilon=0.5)


def test_a_plan_says_how_many_people_a_range_needs() -> None:
    """Once, a median at ε = 0.1 was refused in 25 of 25 runs, each for 0.01, and the plan was silent. With twice as
    many people, the range is found but for once in 10^7 times.
    """
    text, plan = "SELECT MEDIAN(cost) AS m FROM visits", None
    for people in (6, 6000):
        database = clinic(pa.table({"person": np.arange(people), "cost": np.full(people, 80.0)}))
        told = database.explain(text, epsilon=0.1)
        assert plan is None or told == plan  # people change nothing
        plan = told
        [found_if] = told.data["found_if"]
        needed = f"{float(format(found_if['people'], '.2g')):,.0f}"
        assert found_if["what"] == "the range of visits.cost"
        assert f"about {needed} people" in told
        if people < found_if["people"] / 2:
            with refuses(NotAllowed, "too-few-people") as refused:
                database.sql(text, epsilon=0.1)
            assert f"about {needed} " in str(refused.value)
        else:
            assert people > 2 * found_if["people"]
            database.sql(text, epsilon=0.1)
    assert "found_if" not in clinic(cost={"between": [0, 5000]}).explain(text, epsilon=0.1).data
    centers = clinic().explain("SELECT STDDEV(cost) AS s FROM visits", epsilon=0.1).data["found_if"]
    assert [one["what"] for one in centers] == ["the range of visits.cost"]


def test_quantiles_of_a_table_have_no_end_where_a_found_range_ends() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("person"), limit=dp.Approx(epsilon=99, delta=1e-5))
    table = dp.table(VISITS, ledger=ledger)
    found = table.quantiles("cost", [0.5, 0.9999], epsilon=2)
    assert found.value.dtype == np.float64
    assert found.intervals[0].tolist() != [None, None]
    assert found.intervals[1][1] is None
    assert "or more)" in str(found) or "any value)" in str(found)
    assert found.error(0.95).amount is None
    known = table.quantiles("cost", [0.5, 0.9999], between=(0, 5000), epsilon=2)
    assert known.intervals.dtype == np.float64
    assert known.error(0.95).amount > 0


def test_a_sum_of_too_few_people_has_no_error() -> None:
    """The limit is then far too low: 67 people of 4,000 had a sum of 1.0 ± 3.4, and 30,742 in truth."""
    few = clinic(VISITS.slice(0, 200))
    for _ in range(20):
        try:
            answer = few.sql("SELECT SUM(cost) AS s FROM visits", epsilon=0.35)
        except NotAllowed:  # not even a limit was found
            continue
        noisy = any(note.startswith(TOO_FEW) for note in answer.notes)
        assert (answer.table["s_error"].to_pylist() == [None]) == noisy
        if noisy:
            return
        few = clinic(VISITS.slice(0, 200))
    pytest.fail("nothing was mostly noise in 20 answers")


def test_a_count_of_too_few_people_has_no_error() -> None:
    """Their limit is too low, too: with ordinary numbers of rows, 26 of 60 intervals missed the truth."""
    several = pa.concat_tables([VISITS.slice(0, 100)] * 6)
    for _ in range(20):
        try:
            answer = clinic(several).sql("SELECT COUNT(*) AS n, COUNT(DISTINCT person) AS p FROM visits", epsilon=0.35)
        except NotAllowed:
            continue
        noisy = any(note.startswith(TOO_FEW) for note in answer.notes)
        assert (answer.table["n_error"].to_pylist() == [None]) == noisy
        assert answer.table["p_error"].to_pylist() != [None]
        if noisy:
            return
    pytest.fail("nothing was mostly noise in 20 answers")


TOTALS = "(SELECT person, SUM(cost) AS total FROM visits GROUP BY person) AS t"


def test_a_quantile_of_computed_values_finds_its_range() -> None:
    """A total of each person has no column that tells its range. Once, only its average was answered."""
    totals = COSTS.reshape(-1, 2).sum(axis=1)
    answer = clinic().sql(f"SELECT MEDIAN(total) AS m, QUANTILE_CONT(total, 0.9) AS q FROM {TOTALS}", epsilon=9)
    for name, share in (("m", 0.5), ("q", 0.9)):
        value, low, high = one(answer, name)
        wide = high - low
        assert low - wide <= np.quantile(totals, share) <= high + wide, name  # the interval itself has 95%
        assert wide < value, name
    assert any("the center of total" in note for note in answer.notes)


def test_the_range_of_a_whole_quotient_is_rounded_with_it() -> None:
    """Values are clamped to their range before they are added: 18 // 10 is 1, and not 1.8."""
    age, ten = Ref(Field("c0", "age", "integer", (-18, 95))), Const(10, "integer")
    assert range_of(call("integer_divide", age, ten)) == (-1.0, 9.0)
    assert range_of(call("divide", age, ten)) == (-1.8, 9.5)
    assert range_of(call("integer_divide", ten, age)) is None


def test_the_range_of_computed_values_is_paid_for_first() -> None:
    plan = clinic().plan(f"SELECT MEDIAN(total) AS m FROM {TOTALS}", epsilon=1)
    assert [bound.what for bound in plan.automatic] == ["the center of total", "the range of total"]
    plan = clinic().plan(f"SELECT MEDIAN(total) AS m FROM {TOTALS}", epsilon=5)
    database = clinic()
    database.sql(f"SELECT MEDIAN(total) AS m FROM {TOTALS}", epsilon=5)
    paid = [entry.guarantee for entry in database.ledger.entries()]
    assert paid == [*(bound.guarantee for bound in plan.automatic), plan.price.guarantee]
    assert sum(bound.guarantee.largest_loss for bound in plan.automatic) <= 0.5
    assert all(one.largest_loss > 0.01 for one in paid)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT MEDIAN(total) AS m FROM {TOTALS}",
        "SELECT STDDEV(cost) AS s FROM visits",
        "SELECT CORR(cost, cost * 2) AS c FROM visits",
        "SELECT REGR_SLOPE(cost, person) AS c FROM visits",
    ],
)
def test_too_few_people_for_a_center_are_no_answer(text: str) -> None:
    """Once, 4,000 people had a deviation of 2,680,069,127 instead of 14 at ε = 0.1: the center was a point of the grid
    by chance. Of noise alone, two counts are large enough about once in 10^7 times.
    """
    database = clinic(VISITS.slice(0, 6))
    with refuses(NotAllowed, "too-few-people"):
        database.sql(text, epsilon=0.5)
    assert len(database.ledger.entries()) == 2  # the center, and the distances from it: the answer itself is not paid


@pytest.mark.parametrize(("center", "found"), [(1e9, False), (-300, False), (0, False), (80, True)])
def test_a_center_is_one_if_enough_people_are_on_either_side(center: float, found: bool) -> None:
    """Without noise, whatever the values are: a center outside of them is none."""
    database = clinic()
    question = database.plan("SELECT STDDEV(cost) AS s FROM visits", epsilon=2).question
    place = int(places_of(np.array([center]))[0])
    bound = spread_of(question, 0, place, database.schema.unit, Fraction(1, 5))
    counts = bound.read(database.engine)
    assert counts.sum() == 3000  # one value of each person
    if not found:
        with refuses(NotAllowed, "too-few-people"):
            bound.value(counts)
        return
    low, high = bound.value(counts)
    assert low < COSTS.min() < COSTS.max() < high < 1e7


def test_values_that_are_mostly_equal_have_a_spread_only_if_enough_people_have_others() -> None:
    """Once, 80% zeros next to 50 ± 10 had a deviation of 0.262 ± 0.060, and 20 in truth."""
    people, costs = np.arange(6000), np.zeros(6000)
    costs[:1200] = 50.0
    for rare, epsilon in ((1200, 2), (0, 2)):
        database = clinic(pa.table({"person": people, "cost": np.where(people < rare, costs, 0.0)}))
        question = database.plan("SELECT STDDEV(cost) AS s FROM visits", epsilon=epsilon).question
        bound = spread_of(question, 0, 0, database.schema.unit, Fraction(1, 5))
        counts = bound.read(database.engine)
        if rare:
            low, high = bound.value(counts)
            assert low < -50 < 50 < high < 1e6
        else:
            with refuses(NotAllowed, "too-few-people"):
                bound.value(counts)


@pytest.mark.parametrize("neighbors", ["add_or_remove", "replace"])
def test_a_center_and_the_distances_from_it_cost_what_is_planned(neighbors: str) -> None:
    unit = dp.person("person", neighbors=neighbors)
    question = clinic().plan("SELECT STDDEV(cost) AS s FROM visits", epsilon=2).question
    center, spread = to_find_centers(question, unit, Fraction(1, 5))
    losses = [one.guarantee.largest_loss for one in (center, spread)]
    assert all(loss > 0.05 for loss in losses)
    assert sum(losses) <= Fraction(1, 5)
    moved = 1 if neighbors == "add_or_remove" else 2
    assert spread.guarantee.largest_loss == moved / spread.mechanism.scale


def test_a_quantile_of_computed_values_of_rows() -> None:
    """Each row is one that is protected. If one may be used several times, the range must be declared."""
    rows = pa.table({"a": COSTS, "b": COSTS[::-1] + 1})
    connected = dp.connect(
        {
            "ledger": {"path": ":memory:", "epsilon": 1e6, "delta": 1e-3},
            "unit": {"row": True},
            "tables": {"t": {"source": rows}},
        }
    )
    _, low, high = one(connected.sql("SELECT MEDIAN(a / b) AS m FROM t", epsilon=4), "m")
    wide = high - low
    assert low - wide <= np.median(COSTS / (COSTS[::-1] + 1)) <= high + wide
    with refuses(NotAllowed, "sql-no-bounds"):
        connected.sql("SELECT MEDIAN(a / b) AS m FROM (SELECT * FROM t UNION ALL SELECT * FROM t) AS two", epsilon=4)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT person, COUNT(*) AS n FROM visits GROUP BY person",
        "SELECT p, COUNT(*) AS n FROM (SELECT person AS p, cost FROM visits) AS t GROUP BY p",
        "SELECT ward, person, COUNT(*) AS n FROM visits GROUP BY ward, person",
        "SELECT ward, person, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward, person)",
    ],
)
def test_groups_of_one_person_are_refused_before_a_charge(text: str) -> None:
    """They were charged, and could never be shown."""
    database = clinic()
    with refuses(NotAllowed, "sql-shows-people"):
        database.sql(text, epsilon=1, delta=1e-6)
    assert not database.ledger.entries()


def test_numbers_of_each_person_are_aggregated_as_the_refusal_says() -> None:
    with testing.no_noise():
        answer = clinic().sql(
            "SELECT AVG(n) AS n FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) AS t", epsilon=9
        )
    assert answer.table["n"].to_pylist() == [pytest.approx(2)]


def test_columns_that_are_passed_through_keep_their_intervals() -> None:
    """Once, all of them were unknown if one was, "because a number that divides may be 0", or went below 0."""
    asked = "SELECT ward, MEDIAN(cost) AS m, MAX(cost) AS most FROM visits GROUP BY ward"
    declared = {"ward": {"choices": [0, 1, 2]}}
    database = clinic(**declared)
    for order in ("", " ORDER BY x DESC"):
        outer = f"SELECT w.ward AS place, m AS x, most AS y FROM ({asked}) AS w{order}"
        answer = database.sql(outer, epsilon=4)
        [part] = answer.parts
        own = {row["ward"]: row for row in part.table.to_pylist()}
        assert len(answer.table) == 3
        for row in answer.table.to_pylist():
            for new, old in (("x", "m"), ("y", "most")):
                for end in ("", "_error", "_low", "_high"):
                    assert row[new + end] == own[row["place"]][old + end]
        assert [one.name for one in database.describe(outer)] == answer.table.column_names
    computed = database.sql(f"SELECT ward, m + 1 AS x FROM ({asked}) AS w", epsilon=4)
    assert "x_low" not in computed.table.column_names
    chosen = database.sql(f"SELECT ward, m FROM ({asked}) AS w WHERE m > 0", epsilon=4)
    assert "m_low" not in chosen.table.column_names  # noise chooses the rows
    unknown = database.sql(f"SELECT ward, most + 1 AS x FROM ({asked}) AS w", epsilon=4)
    assert not any("divides" in note for note in unknown.notes)

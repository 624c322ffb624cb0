"""Tables of which only the person is known: what is found first is paid from the ε that was asked for, and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.sql.bounded_rows import BoundedRows
from discreet.sql.measuring.measure import read_measures
from discreet.sql.planner import Planner
from discreet.sql.running.answering import answer_plan
from discreet.tables.offer import FoundFirst
from discreet.tables.votes import Votes

from ..refusing import refuses

PEOPLE = 1200
CITIES = ["Acre", "Bled", "Koper"]
RELATIONS = ("add_or_remove", "replace")


def visits(*, of_last: int = 1, people: int = PEOPLE, more: int = 1) -> pa.Table:
    """Two rows for each person, and some more for every second one, and any number for the last."""
    each = 2 + more * (np.arange(people) % 2)
    owners = np.concatenate([np.repeat(np.arange(people), each), np.full(of_last, people)])
    place = np.arange(len(owners))
    return pa.table(
        {
            "pid": owners,
            "age": (7 * owners + place) % 90,
            "cost": ((37 * place) % 500).astype(float),
            "city": np.array(CITIES)[(owners + place) % 3 % (1 + place % 3)],
            "well": place % 2,
        }
    )


def opened(data: Any = None, limit: dp.Guarantee | None = None, neighbors: str = "add_or_remove", **given: Any) -> Any:
    ledger = dp.Ledger.open(
        ":memory:",
        protects=dp.person("pid", neighbors=neighbors),
        limit=limit or dp.Approx(epsilon=1000, delta=0.1),
        rule="basic",
    )
    return dp.table(visits() if data is None else data, ledger=ledger, **given), ledger


Asked = Callable[[Any, float, float], Any]
QUARTERS = [0.25, 0.4, 0.5, 0.75]
PURE: dict[str, Asked] = {
    "count": lambda t, e, _: t.count(epsilon=e),
    "sum": lambda t, e, _: t.sum("cost", epsilon=e),
    "mean": lambda t, e, _: t.mean("cost", epsilon=e),
    "variance": lambda t, e, _: t.variance("cost", epsilon=e),
    "median": lambda t, e, _: t.median("cost", epsilon=e),
    "quantiles": lambda t, e, _: t.quantiles("cost", [0.25, 0.75], epsilon=e),
    "many quantiles": lambda t, e, _: t.quantiles("cost", QUARTERS, epsilon=e),
    "many quantiles of a range": lambda t, e, _: t.quantiles("cost", QUARTERS, between=(0, 500), epsilon=e),
    "histogram": lambda t, e, _: t.histogram("city", choices=CITIES, epsilon=e),
    "most common": lambda t, e, _: t.most_common("city", choices=CITIES, epsilon=e),
    "two most common": lambda t, e, _: t.most_common("city", choices=CITIES, k=2, epsilon=e),
    "cdf": lambda t, e, _: t.cdf("age", between=(0, 90), step=10, epsilon=e),
    "density": lambda t, e, _: t.density("cost", between=(0, 500), bandwidth=100, epsilon=e),
}
WITH_DELTA: dict[str, Asked] = {
    "quantiles": lambda t, e, d: t.quantiles("cost", QUARTERS, epsilon=e, delta=d),
    "most common": lambda t, e, d: t.most_common("city", choices=CITIES, k=2, epsilon=e, delta=d),
    "cdf": lambda t, e, d: t.cdf("age", between=(0, 90), step=10, epsilon=e, delta=d),
    "density": lambda t, e, d: t.density("cost", between=(0, 500), bandwidth=100, epsilon=e, delta=d),
    "histogram of all values": lambda t, e, d: t.histogram("city", epsilon=e, delta=d),
    "most common of all values": lambda t, e, d: t.most_common("city", k=2, epsilon=e, delta=d),
    "synthesize": lambda t, e, d: t.synthesize({"age": (0, 90), "city": CITIES}, epsilon=e, delta=d, rounds=1),
    "fit": lambda t, e, d: t.fit(model(epsilon=e, delta=d), features={"age": (0, 90)}, target="well"),
}
ALL = [*((ask, 0.0) for ask in PURE.values()), *((ask, 1e-6) for ask in WITH_DELTA.values())]
NAMES = [*PURE, *(f"{name} with δ" for name in WITH_DELTA)]
FOUND = {"many quantiles", "many quantiles of a range", "most common", "two most common", "cdf", "density"}


def model(**given: Any) -> Any:
    return dp.learn.LogisticRegression(classes=[0, 1], steps=3, **given)


def limit_of(epsilon: float, delta: float) -> dp.Guarantee:
    return dp.Approx(epsilon=epsilon, delta=delta) if delta else dp.Pure(epsilon=epsilon)


# --- the budget ---------------------------------------------------------------------------------------------------


@pytest.mark.some_quick(7)
@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("ask", "delta"), ALL, ids=NAMES)
def test_all_that_is_charged_is_what_was_asked_for(ask: Asked, delta: float, neighbors: str) -> None:
    many = visits(people=3 * PEOPLE)  # so that noise never hides all of them
    table, ledger = opened(many, limit=limit_of(1, delta), neighbors=neighbors)
    ask(table, 1, delta)
    assert ledger.count > 1, "something is found first"
    assert 0.999 <= ledger.spent["ε"] <= 1
    assert ledger.spent.get("δ", 0) == delta
    assert ledger.entries()[0].asked.startswith(("how ", "the ", "which "))


@pytest.mark.some_quick(7)
@pytest.mark.parametrize(("ask", "delta"), ALL, ids=NAMES)
def test_what_does_not_fit_the_budget_as_a_whole_costs_nothing(ask: Asked, delta: float) -> None:
    table, ledger = opened(limit=limit_of(0.98, delta))
    with pytest.raises(dp.BudgetExhausted):
        ask(table, 1, delta)
    assert ledger.count == 0


@pytest.mark.some_quick(7)
@pytest.mark.parametrize(
    ("ask", "delta"),
    [pair for pair in ALL if pair[0] is not WITH_DELTA["fit"]],
    ids=[name for name in NAMES if "fit" not in name],
)
def test_the_same_asked_again_is_free(ask: Asked, delta: float) -> None:
    table, ledger = opened(limit=limit_of(1, delta), version="1")
    first, again = ask(table, 1, delta), ask(table, 1, delta)
    entries = ledger.count
    assert getattr(again, "release", again).replayed
    assert str(first).split(";")[0] == str(again).split(";")[0]
    assert ledger.count == entries


@pytest.mark.some_quick(13)
@pytest.mark.parametrize(("ask", "delta"), ALL, ids=NAMES)
def test_explain_says_what_is_found_first_and_what_it_costs(ask: Asked, delta: float) -> None:
    table, ledger = opened()
    told = ask(table.explain, 1, delta)
    [line] = [line for line in told.splitlines() if line.startswith("found first")]
    part = float(line.split("ε = ")[1].split()[0])
    ask(table, 1, delta)
    *found, _ = [entry for entry in ledger.entries() if not entry.asked.startswith("how many values")]
    spent = sum(float(entry.guarantee.epsilon_at(delta=delta)) for entry in found)
    assert spent == pytest.approx(part, rel=1e-3) or ("and more if there are few groups" in line and part < spent < 1)


# --- nothing is read before its bounds are found ----------------------------------------------------------------


def test_rows_cannot_be_read_before_their_bounds_are_found() -> None:
    table, ledger = opened()
    rows = table._methods._rows(None, {"cost": None}, {}, 1, 0, "cost")
    assert not rows.plan.rows.settled
    for read in (BoundedRows.values, BoundedRows.count, lambda r: r.columns(["cost"], {"cost": "number"})):
        with pytest.raises(AssertionError):
            read(rows.plan.rows)
    settled = rows.settled()
    assert len(settled.plan.rows.values()) > PEOPLE
    assert ledger.count == 2


@pytest.mark.parametrize("name", sorted(FOUND))
def test_nothing_is_drawn_before_its_bounds_are_found(name: str) -> None:
    table, ledger = opened()
    offer = PURE[name](table._methods, 1, 0)
    drawing = offer.drawing(offer.rows) if isinstance(offer, FoundFirst) else offer.quantiles(offer.rows, list, 1000)
    with pytest.raises(AssertionError):
        drawing.release()
    assert ledger.count == 0


# --- one person ---------------------------------------------------------------------------------------------------


def read_of(name: str, data: Any, neighbors: str) -> tuple[Any, Any, dict[str, float]]:
    """What a release reads after its bounds are found, its mechanism, and how often each value is in it."""
    table, _ = opened(data, neighbors=neighbors)
    offer = {**PURE, **WITH_DELTA}[name](table._methods, 1, 1e-6)
    with testing.no_noise():
        rows = offer.rows.settled()
        drawing = (
            offer.drawing(rows) if isinstance(offer, FoundFirst) else offer.quantiles(rows, rows.plan.rows.values, 1000)
        )
        found = drawing.read()
    return rows, drawing, found


@pytest.mark.some_quick(5)
@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("name", ["many quantiles of a range", "cdf", "synthesize", "density", "two most common"])
def test_one_person_moves_what_is_read_by_as_many_rows_as_were_found(name: str, neighbors: str) -> None:
    """The last person has no row, one, or thousands: the bound that is found is the same, and so is the noise."""
    seen = [read_of(name, visits(of_last=many, more=0), neighbors) for many in (0, 1, 3000)]
    bounds = {rows.of_one for rows, _, _ in seen}
    assert len(bounds) == 1
    assert len({repr(drawing.mechanism) for _, drawing, _ in seen}) == 1
    [most] = bounds
    assert most == 2
    without, one_row, many_rows = (np.asarray(read) for _, _, read in seen)
    if name in ("density", "two most common"):  # counts of rows: all of them, or those of each value
        moved = np.sum if name == "density" else np.max
        distances = [moved(np.abs(other - without)) for other in (one_row, many_rows)]
    else:
        distances = [len(other) - len(without) for other in (one_row, many_rows)]
    assert distances == [1, most]


def test_other_rows_have_other_bounds() -> None:
    """Nothing that was found is used for rows that were not looked at."""
    table, ledger = opened(version="1")
    for where in (None, "age > 50", "age > 50 AND cost > 100"):
        for ask in (table.cdf, table.density):
            given = {"step": 10} if ask == table.cdf else {"bandwidth": 10}
            ask("age", between=(0, 90), epsilon=1, where=where, **given)
    assert ledger.count == 2 * 2 * 3


def test_a_person_votes_only_so_often_for_one_value_and_as_often_for_another() -> None:
    """A bound on the rows of each value, and not on the values: a person with all values has all votes."""
    data = visits(of_last=3000)
    table, _ = opened(data)
    planner, question = table._methods._by_value("city", None, CITIES)
    with testing.no_noise():
        counted = Votes.of(planner, question, None, 1, 0).settled()
    most = counted.of_one
    assert counted.plan.bounds.groups == len(CITIES)
    drawn = PURE["most common"](table._methods, 1, 0).drawing(counted)
    alone = pa.table({"pid": data["pid"], "city": data["city"]}).to_pandas()
    per_person = alone.groupby(["pid", "city"]).size().clip(upper=most).groupby("city").sum()
    assert list(drawn.read()) == [per_person[city] for city in CITIES]


# --- seeded bugs --------------------------------------------------------------------------------------------------


def one_person_moves_little() -> None:
    for name in ("cdf", "two most common"):
        test_one_person_moves_what_is_read_by_as_many_rows_as_were_found(name, "add_or_remove")


def the_budget_is_kept() -> None:
    for ask, delta in ((PURE["cdf"], 0.0), (WITH_DELTA["fit"], 1e-6)):
        test_all_that_is_charged_is_what_was_asked_for(ask, delta, "add_or_remove")


def rows_are_not_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Planner, "settle_rows", lambda planner, plan: plan)


def rows_are_settled_with_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of one row, and all rows are read."""
    settle = Planner.settle_rows

    def settled(planner: Planner, plan: Any) -> Any:
        bounds = settle(planner, plan).rows.bounds
        known = replace(plan.rows, bounds=replace(bounds, rows=10**6, per_group=10**6), settled=True)
        return replace(plan, rows=known, automatic=())

    monkeypatch.setattr(Planner, "settle_rows", settled)
    monkeypatch.setattr(BoundedRows, "of_one", 2)


def votes_are_not_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.tables.votes.read_measures", lambda q, e, _, g: read_measures(q, e, None, g))


def bounds_found_on_top(monkeypatch: pytest.MonkeyPatch) -> None:
    """The release gets the whole ε, although a part of it was spent before."""
    rows = Planner.rows

    def planned(planner: Planner, source: Any, *, epsilon: Any, **given: Any) -> Any:
        plan = rows(planner, source, epsilon=epsilon, **given)
        return replace(plan, terms=replace(plan.terms, epsilon=epsilon))

    monkeypatch.setattr(Planner, "rows", planned)


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (rows_are_not_settled, one_person_moves_little),
        (rows_are_settled_with_the_example, one_person_moves_little),
        (votes_are_not_bounded, one_person_moves_little),
        (bounds_found_on_top, the_budget_is_kept),
    ],
)
def test_a_seeded_bug_is_seen(plant: Callable[[Any], None], check: Callable[[], None]) -> None:
    check()
    with pytest.MonkeyPatch.context() as monkeypatch:
        plant(monkeypatch)
        with pytest.raises((AssertionError, dp.DiscreetError)):
            check()


# --- answers ------------------------------------------------------------------------------------------------------


def test_answers_are_near_the_truth() -> None:
    data = visits()
    table, _ = opened(data)
    cost, age = data["cost"].to_numpy(), data["age"].to_numpy()
    assert table.count(epsilon=5).value == pytest.approx(len(cost), rel=0.05)
    assert table.sum("cost", epsilon=5).value == pytest.approx(cost.sum(), rel=0.1)
    assert table.mean("cost", epsilon=5).value == pytest.approx(cost.mean(), rel=0.1)
    assert table.variance("cost", epsilon=5).value == pytest.approx(cost.var(), rel=0.3)
    assert table.median("cost", epsilon=5).value == pytest.approx(np.median(cost), abs=60)
    assert abs(table.cdf("age", between=(0, 90), epsilon=5).quantiles([0.5])[0] - np.median(age)) < 10
    assert table.most_common("city", choices=CITIES, epsilon=5).value == "Acre"


def test_a_release_says_what_is_lost_to_clipping() -> None:
    table, _ = opened()
    assert 0 <= table.sum("cost", epsilon=1).clipped < 1
    assert 0 <= table.histogram("city", choices=CITIES, epsilon=1).clipped < 1
    assert table.median("cost", epsilon=1).clipped is None
    assert table.cdf("age", between=(0, 90), epsilon=1).clipped is None
    declared, _ = opened(rows_per_person=3)
    assert declared.sum("cost", between=(0, 500), epsilon=1).clipped is None


def test_a_release_says_what_was_found_for_it() -> None:
    table, _ = opened()
    for release, found in (
        (table.cdf("age", between=(0, 90), epsilon=1), ["rows of one person: "]),
        (table.most_common("city", choices=CITIES, epsilon=1), ["rows of one person with one value: "]),
        (table.quantiles("cost", QUARTERS, epsilon=1), ["the range of data.cost: ", "rows of one person: "]),
        (table.median("cost", epsilon=1), ["the range of data.cost: ", "rows of one person: "]),
        (table.sum("cost", epsilon=1), ["one person adds at most "]),
    ):
        assert len(release.found) == len(found)
        assert all(said.startswith(start) for said, start in zip(release.found, found, strict=True))
        assert release.found[-1] in str(release)
    declared, _ = opened(rows_per_person=3)
    assert declared.cdf("age", between=(0, 90), epsilon=1).found == ()


def test_the_error_of_counts_includes_what_is_lost() -> None:
    """The one error of all counts is the largest of the errors in the answer's table."""
    table, _ = opened()
    offer = table._methods.histogram("city", choices=CITIES, epsilon=1)
    answer = answer_plan(offer.planner, offer.plan)
    assert float(offer.error_of(answer, 0.95)) == pytest.approx(max(answer.table["n_error"].to_pylist()))


# --- models -------------------------------------------------------------------------------------------------------


def test_a_fit_gives_the_estimator_its_epsilon_back() -> None:
    table, ledger = opened()
    estimator = model(epsilon=1, delta=1e-6)
    assert table.fit(estimator, features={"age": (0, 90)}, target="well") is estimator
    assert (estimator.epsilon, estimator.delta) == (1, 1e-6)
    assert float(estimator.release_.guarantee.epsilon_at(delta=1e-6)) <= 0.9 * (1 + 1e-9)
    bound, fitted = ledger.entries()
    assert bound.asked.startswith("how many rows of one person are used in SELECT")
    assert fitted.receipt == estimator.release_.receipt
    assert estimator.rows_per_person >= 1


def test_a_fit_that_fails_gives_the_estimator_its_epsilon_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise dp.DiscreetError("no rows", code="wrong-type")

    table, _ = opened()
    estimator = model(epsilon=1, delta=1e-6)
    monkeypatch.setattr(BoundedRows, "columns", fail)
    with pytest.raises(dp.DiscreetError):
        table.fit(estimator, features={"age": (0, 90)}, target="well")
    assert estimator.epsilon == 1


@pytest.mark.parametrize(("features", "code"), [(["city"], "choices-missing"), (["height"], "unknown-column")])
def test_a_fit_that_is_refused_finds_nothing(features: list[str], code: str) -> None:
    table, ledger = opened()
    with refuses(dp.InvalidArgument, code):
        table.fit(model(epsilon=1, delta=1e-6), features=features, target="well")
    assert ledger.count == 0


def test_a_policy_of_which_only_the_person_is_known_trains_models() -> None:
    words = {
        "ledger": {"path": ":memory:", "epsilon": 1, "delta": 1e-6, "rule": "basic"},
        "unit": {"person": "pid"},
        "tables": {"visits": {"source": visits()}},
    }
    clinic = dp.connect(words)
    estimator = clinic.fit(model(epsilon=1, delta=1e-6), "visits WHERE age > 20", features=["age"], target="well")
    assert estimator.epsilon == 1
    assert clinic.ledger.count == 2


# --- the most common of all values --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("declared", [{}, {"rows_per_person": 3}, {"rows_per_person": 3, "groups_per_person": 1}])
def test_the_most_common_value_needs_no_choices(declared: dict[str, int]) -> None:
    data = visits()
    rare = data.set_column(3, "city", pa.array(["nobody's"] * 3 + data["city"].to_pylist()[3:]))
    table, ledger = opened(rare, version="1", **declared)
    assert table.most_common("city", epsilon=5, delta=1e-6).value == "Acre"
    entries = ledger.count
    several = table.most_common("city", k=9, epsilon=5, delta=1e-6)
    assert several.value[0] == "Acre"
    assert set(several.value) == set(CITIES)
    counts = rare.to_pandas().city.value_counts()
    assert float(several.error(0.999)) >= abs(counts[several.value[2]] - counts[CITIES].min())
    assert "within" in str(several)
    with refuses(dp.InvalidArgument, "needs-delta"):
        table.most_common("city", epsilon=1)
    assert set(table.histogram("city", epsilon=5, delta=1e-6).value) == set(CITIES)
    assert ledger.count == entries, "all three are made of the same noisy counts"


@pytest.mark.parametrize("declared", [{}, {"rows_per_person": 1}])
def test_there_may_be_no_common_value(declared: dict[str, int]) -> None:
    table, _ = opened(visits(people=0), **declared)
    assert table.most_common("city", epsilon=1, delta=1e-6).value is None
    assert table.most_common("city", k=2, epsilon=1, delta=1e-6).value == []


def test_columns_of_text_files_have_the_types_that_are_declared(tmp_path: Any) -> None:
    lines = [f"{n // 2},{n % 100}" for n in range(4000)]
    (tmp_path / "v.csv").write_text("\n".join(["pid,cost", *lines]))
    table, ledger = opened(tmp_path / "v.csv")
    for ask in (table.sum, table.mean, table.variance, table.median):
        with refuses(dp.InvalidArgument, "untyped-column"):
            ask("cost", epsilon=1)
    for at in ([0.5], QUARTERS):
        with refuses(dp.InvalidArgument, "untyped-column"):
            table.quantiles("cost", at, epsilon=1)
    assert ledger.count == 0
    assert table.mean("cost", between=(0, 100), epsilon=5).value == pytest.approx(49.5, abs=10)
    typed, _ = opened(tmp_path / "v.csv", types={"cost": "number"})
    assert typed.mean("cost", epsilon=5).value == pytest.approx(49.5, abs=10)
    assert abs(typed.median("cost", epsilon=5).value - 50) < 20

"""Attacks on answers from answers: caps, test mode, shared noise, answers that have not left, and rare errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

import discreet as dp
from discreet import testing
from discreet.gateway.vault import worker
from discreet.ledger.reports import measured
from discreet.ledger.views import Watched
from discreet.sql.estimates import cells, law, shown, sources
from discreet.sql.estimates.law import SumLaw
from discreet.sql.estimates.least_squares import Information
from discreet.sql.running import answering, derived

from .asking import BY_BOTH, BY_CITY, TOTAL, WOMEN, charges, epsilons, opened

IN_CITIES = f"{TOTAL} WHERE city IN ('A', 'B', 'C')"
PEOPLE = [(person, city, "f", 1.0) for person in range(60) for city in "ABC"]
"""Everybody has a row in each city."""


def of_people(**caps: int) -> Any:
    return opened(PEOPLE, unit={"person": "pid"}, table={"rows_per_person": 3, **caps})


# --- caps ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("caps", [{"groups_per_person": 1}, {"groups_per_person": 2}, {"rows_per_group": 1}])
def test_groups_that_leave_rows_out_do_not_add_up(caps: dict[str, int]) -> None:
    """Of a person in three groups, one group is counted. A total counts all rows."""
    database = of_people(**caps)
    with testing.no_noise():
        database.sql("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=10)
        total = database.sql(IN_CITIES, epsilon=0.05)
    assert not total.derived_from
    assert next(iter(total))["n"] == len(PEOPLE)


def test_groups_that_leave_nothing_out_add_up() -> None:
    database = of_people(groups_per_person=3)
    with testing.no_noise():
        database.sql("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=10)
        total = database.sql(IN_CITIES, epsilon=0.05)
    assert total.derived_from
    assert next(iter(total))["n"] == len(PEOPLE)
    assert any("Each earlier answer used at most 3 rows" in note for note in total.notes)


def test_groups_that_leave_rows_out_added_up_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_loses_by_groups", lambda *_: False)
    with pytest.raises(AssertionError):
        test_groups_that_leave_rows_out_do_not_add_up({"groups_per_person": 1})


# --- test mode ----------------------------------------------------------------------------------------------------


def test_a_part_that_is_paid_says_that_the_rest_was_made_in_test_mode() -> None:
    database = opened()
    with testing.no_noise():
        database.sql(BY_BOTH, epsilon=0.1)
    asked = database.sql(BY_CITY, epsilon=0.1)
    assert asked.receipt is not None
    assert asked.derived_from
    assert asked.not_private
    assert "NOT PRIVATE" in str(asked)


def test_test_mode_forgotten_in_a_part_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived, "replace", lambda release, **_: release)
    with pytest.raises(AssertionError):
        test_a_part_that_is_paid_says_that_the_rest_was_made_in_test_mode()


# --- what was decided stays as it was ---------------------------------------------------------------------------


def check_waiting() -> None:
    """An estimate that waits for its draw is not changed by answers that come meanwhile."""
    database = opened()
    database.sql(BY_BOTH, epsilon=0.1)
    plan = database.plan(BY_CITY, epsilon=0.1)
    bought = answering._bought(database.planner, plan, answering._request(database.planner, plan, None), derives=True)
    assert bought.derived is not None
    [estimate] = bought.derived.estimates
    before = estimate.values(np.zeros(3))
    database.sql(BY_CITY, epsilon=0.2)
    database.sql(WOMEN, epsilon=0.02)
    assert (estimate.values(np.zeros(3)) == before).all()
    assert len(estimate.laws) == 3


def test_an_estimate_that_waits_does_not_change() -> None:
    check_waiting()


def test_information_that_changes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Information.with_blocks

    def changed(self: Information, blocks: Any) -> Information:
        found = right(self, blocks)
        self.__dict__.update(found.__dict__)
        return self

    monkeypatch.setattr(Information, "with_blocks", changed)
    with pytest.raises((AssertionError, ValueError)):
        check_waiting()


def test_a_part_whose_sources_are_gone_is_wider() -> None:
    """It is never found again as something new: its numbers count once."""
    database = opened()
    first = database.sql(BY_BOTH, epsilon=0.1)
    part = database.sql(BY_CITY, epsilon=0.1)
    gone = charges(database)[0].number
    with database.ledger._store.transaction(write=True) as execute:
        execute("DELETE FROM answers WHERE number = ?", gone)
    again = database.sql(BY_CITY, epsilon=0.1)
    assert first.receipt not in again.derived_from
    assert part.receipt not in again.derived_from
    if again.receipt == part.receipt:
        assert all(row["n_error"] > old["n_error"] for row, old in zip(again, part, strict=True))
    else:
        assert epsilons(database)[-1] == pytest.approx(0.1)


# --- answers that have not left -----------------------------------------------------------------------------------


def lane_of(database: Any) -> Any:
    ledger = database.ledger
    return database.seen_by(Watched(ledger._store, ledger._terms, ledger._analyst, ledger._writer))


@pytest.mark.parametrize("second", [WOMEN, "SELECT city, sex, COUNT(*) + 1 AS m FROM t GROUP BY city, sex"])
def test_the_price_in_a_lane_does_not_depend_on_answers_that_have_not_left(second: str) -> None:
    """Two questions of one account run at once. When the first one is ready may depend on rows."""
    database = opened()
    lane = lane_of(database)
    lane.ledger.until = {"": lane.ledger.count}
    owed = [str(cost) for cost in lane.prepare(second, epsilon=0.1).owed()]
    database.sql(BY_BOTH, epsilon=0.2)
    assert [str(cost) for cost in lane.prepare(second, epsilon=0.1).owed()] == owed
    assert len(owed) == 1
    lane.ledger.until = {"": lane.ledger.count}
    assert not lane.prepare(second, epsilon=0.1).owed()


def test_answers_that_have_not_left_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "_is_shown", lambda *_: True)
    with pytest.raises(AssertionError):
        test_the_price_in_a_lane_does_not_depend_on_answers_that_have_not_left(WOMEN)


def test_a_lane_is_told_what_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    database = opened()
    lane = lane_of(database)
    own = object.__new__(worker.Worker)
    own._prepared, own._until, own._as_of, own._seen = {}, {"": 7}, 5, {("", (), True): lane}
    monkeypatch.setattr(worker.Worker, "_answer", lambda *_: "answered")
    assert own.do_ask(TOTAL, {"epsilon": 1}, "", "json") == "answered"
    assert lane.ledger.until == {"": 7}
    assert lane.ledger.as_of == 5


# --- errors that depend on each other -----------------------------------------------------------------------------


def check_shared_noise() -> None:
    """A and B are both made with the noise of C, so it counts twice in their sum, and its square four times."""
    database = opened()
    noises = []
    for where, epsilon in (("IN ('A', 'C')", 2), ("IN ('B', 'C')", 2), ("= 'C'", 0.2)):
        noises += database.sql(f"{TOTAL} WHERE city {where}", epsilon=epsilon).price.parts
    asked = "SELECT city, SUM(COUNT(*)) OVER () AS n FROM t WHERE city IN ('A', 'B') GROUP BY city"
    answer = database.sql(asked, epsilon=0.15)
    assert answer.receipt is None
    right = SumLaw.of([1.0, 1.0, 2.0], noises).half_width(0.95)
    assert all(0.85 * right <= row["n_error"] <= 1.2 * right for row in answer)


def test_noise_that_groups_share_counts_in_their_sum() -> None:
    check_shared_noise()


def test_noise_that_groups_share_drawn_apart_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def apart(self: Any, part: int, draws: int, uniform: Any) -> Any:
        laws = self.measures[part].laws
        return ndtri(uniform((draws, len(laws)))) * [one.deviation for one in laws]

    monkeypatch.setattr(shown.Estimated, "redrawn", apart)
    with pytest.raises(AssertionError):
        check_shared_noise()


def test_measures_that_share_noise_are_drawn_together() -> None:
    noise = dp.Laplace(scale=3, step=1)
    drawn, laws = [shown.Drawn("one", 2, noise)], [SumLaw.of([1.0], [noise])] * 2
    estimated = shown.Estimated([shown.EstimatedMeasure(laws, np.zeros(2), np.eye(2), drawn)] * 2)
    uniform = np.random.default_rng(1).random
    assert (estimated.redrawn(0, 50, uniform) == estimated.redrawn(1, 50, uniform)).all()


# --- rare errors --------------------------------------------------------------------------------------------------


def check_rare() -> None:
    """P(|a + b| > t) = (1 + t/2s)·exp(−t/s) for two Laplace noises of scale s."""
    found = SumLaw.of([1.0, 1.0], [dp.Laplace(scale=10**6, step=1)] * 2)
    widths = [found.half_width(1 - tail) / 1e6 for tail in (1e-5, 1e-8, 1e-10, 1e-13)]
    assert widths == sorted(widths)
    for tail, width in zip((1e-5, 1e-8, 1e-10, 1e-13), widths, strict=True):
        assert (1 + width / 2) * math.exp(-width) <= tail
    assert widths[-1] < 40


def test_errors_that_are_rare_are_covered() -> None:
    check_rare()


def test_a_confidence_beyond_what_is_computed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(law.SumLaw, "_bounded", lambda self, tails: np.zeros(len(tails)))
    with pytest.raises(AssertionError):
        check_rare()


def check_gaussian() -> None:
    """A sum of Gaussian noises is Gaussian. Its steps are so fine that every angle is tiny."""
    found = SumLaw.of([1.0] * 4, [dp.Gaussian(stddev=5)] * 4)
    for confidence in (0.5, 0.95, 0.999, 0.9999, 0.99999):
        assert 1 <= found.half_width(confidence) / (10 * float(ndtri((1 + confidence) / 2))) < 1.03


def test_sums_of_gaussian_noises_are_gaussian() -> None:
    check_gaussian()


def test_angles_that_lose_their_digits_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = law._gaussian

    def folded(angles: Any, stddevs: Any) -> Any:
        return right(np.remainder(angles + math.pi, 2 * math.pi) - math.pi, stddevs)

    monkeypatch.setattr(law, "_gaussian", folded)
    with pytest.raises(AssertionError):
        check_gaussian()


@pytest.mark.parametrize("kinds", ["laplace", "gaussian", "both"])
def test_bounds_on_rare_errors_hold_where_they_can_be_computed(kinds: str) -> None:
    laplace, gaussian = [dp.Laplace(scale=s, step=1) for s in (0.3, 4, 50)], [dp.Gaussian(stddev=s) for s in (1, 30)]
    noises = {"laplace": laplace, "gaussian": gaussian, "both": [*laplace, *gaussian]}[kinds]
    found = SumLaw.of([0.5] * len(noises), noises)
    tails = np.array([1e-3, 1e-5])
    exact = found.half_widths(list(1 - tails))
    assert (found._bounded(tails) >= 0.98 * exact).all()
    assert (found._bounded(tails) <= 1.7 * exact).all()
    assert math.isinf(found._bounded(np.zeros(1))[0])


def test_many_answers_are_reduced_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process reads all earlier answers at once."""
    database = opened()
    for number in range(12):
        database.sql(f"{TOTAL} WHERE sex = '{'fm'[number % 2]}'", epsilon=0.1 + number / 100, key=str(number))
    steps = []
    right = np.linalg.qr
    monkeypatch.setattr(sources, "_KEPT", type(sources._KEPT)())
    monkeypatch.setattr(np.linalg, "qr", lambda *given, **more: steps.append(1) or right(*given, **more))
    assert database.sql(f"{TOTAL} WHERE sex IN ('f', 'm')", epsilon=0.09).derived_from
    assert len(steps) <= 2

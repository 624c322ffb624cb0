"""Tables 2 to 7 [T.7]: formula columns are the printed ones after the thesis's rounding; what is seen follows its law.

Observed columns are tested on 20,000 people. All tests of this file together raise a false alarm with probability at
most 1e-6, and each would catch noise of half the size: the sampler is halved, and the same check must fail.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from discreet.exact import samplers
from discreet.reproduce import categorical, numeric
from discreet.reproduce.experiment import Experiment
from discreet.reproduce.people import People, generate

PEOPLE = 20_000
FALSE_ALARM = (
    1e-6 / 32
)  # 6 mean errors, 6 largest errors, 6 means of table 3, 3 shares of wrong answers, and some spare
CALIBRATIONS = ("taught", "tight")


@pytest.fixture(scope="module")
def people() -> People:
    return generate(PEOPLE)


@pytest.fixture(scope="module")
def salaries(people: People) -> dict[str, Experiment]:
    return {experiment.name: experiment for experiment in numeric.run(people)}


@pytest.fixture(scope="module")
def states(people: People) -> dict[str, Experiment]:
    return {experiment.name: experiment for experiment in categorical.run(people)}


def between(law: Any, value: float) -> bool:
    """Whether the value lies where the law puts all but FALSE_ALARM of its mass."""
    return bool(law.ppf(FALSE_ALARM / 2) <= value <= law.isf(FALSE_ALARM / 2))


def mean_errors_fit(table: Experiment) -> list[bool]:
    """n·mean/b of the sizes of Laplace noise is Gamma(n); the lattice is 2^40 times finer than b."""
    return [
        between(stats.gamma(PEOPLE), PEOPLE * row[f"mean_error_{kind}"] / row[f"scale_{kind}"])
        for row in table.rows
        for kind in CALIBRATIONS
    ]


def wrong_answers_fit(table: Experiment) -> list[bool]:
    return [between(stats.binom(PEOPLE, row["wrong"]), round(PEOPLE * row["wrong_observed"])) for row in table.rows]


# --- formulas ---------------------------------------------------------------------------------------------


def test_table_2_formulas(salaries: dict[str, Experiment]) -> None:
    """[T.4.9]: taught and tight."""
    table = salaries["table-2"]
    assert [round(b) for b in table.column("scale_2996")] == [14589, 1112, 245] == table.column("scale_printed")
    for row, (epsilon, delta) in zip(table.rows, [(0.1, 0.1), (2, 0.5), (11, 0.7)], strict=True):
        assert row["scale_taught"] == pytest.approx(3000 / (epsilon - math.log(1 - delta)), rel=1e-9)
        assert row["scale_tight"] == pytest.approx(3000 / (epsilon - 2 * math.log(1 - delta)), rel=1e-8)
        # the taught noise keeps more than was asked, the tight one just what was asked
        assert row["delta_taught"] == pytest.approx(1 - math.sqrt(1 - delta), rel=1e-6)
        assert row["delta_tight"] <= delta
        assert row["delta_tight"] == pytest.approx(delta, rel=1e-6)


def test_table_4_formulas(salaries: dict[str, Experiment]) -> None:
    """[T.5.3]: the least error, as printed."""
    table = salaries["table-4"]
    assert [float(f"{bound:.2g}") for bound in table.column("bound_2996")] == [640, 89, 0.0075]
    assert table.column("bound_printed") == [640, 89, 0.0075]
    assert [round(bound) for bound in table.column("bound_2996")[:2]] == [640, 89]
    ratios = np.divide(table.column("bound_3000"), table.column("bound_2996"))
    assert ratios == pytest.approx(3000 / 2996, rel=1e-12)


def test_table_5_formulas(states: dict[str, Experiment]) -> None:
    """[T.4.10]: how often the true answer is given, as printed."""
    table = states["table-5"]
    assert [round(p, 2) for p in table.column("truth")] == [0.12, 0.57, 0.98] == table.column("truth_printed")
    for delta, row in zip((0.1, 0.5, 0.6), table.rows, strict=True):
        assert row["delta"] <= delta
        assert row["delta"] == pytest.approx(delta, rel=1e-9)


def test_table_7_formulas(states: dict[str, Experiment]) -> None:
    table = states["table-7"]
    assert [round(b, 3) for b in table.column("bound")] == [0.879, 0.432, 0.016] == table.column("bound_printed")
    # randomized response attains the bound [T.5.6]
    assert table.column("wrong") == pytest.approx(table.column("bound"), rel=1e-9)
    assert all(wrong >= bound for wrong, bound in zip(table.column("wrong"), table.column("bound"), strict=True))


def test_what_was_printed_is_kept_as_printed(salaries: dict[str, Experiment], states: dict[str, Experiment]) -> None:
    assert salaries["table-2"].column("mean_error_printed") == [14935, 1075, 249]
    assert salaries["table-3"].column("min_printed") == [1504, -111499, -6110, 765]
    assert salaries["table-4"].column("largest_error_printed") == [110600, 7203, 1803]
    assert states["table-6"].column("printed")[2] == "TX (68), CA (62), FL (45)"
    assert states["table-7"].column("wrong_printed") == [0.880, 0.437, 0.018]


# --- what is seen -----------------------------------------------------------------------------------------


def test_mean_errors_follow_the_law(salaries: dict[str, Experiment]) -> None:
    assert all(mean_errors_fit(salaries["table-2"]))


def test_halved_laplace_noise_is_caught(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = samplers.discrete_laplace
    monkeypatch.setattr(samplers, "discrete_laplace", lambda scale, size: whole(scale / 2, size))
    assert not any(mean_errors_fit(numeric.run(people)[0]))


def test_largest_errors_follow_the_law(salaries: dict[str, Experiment]) -> None:
    """P[all n errors ≤ x] = (1 - e^(-x/b))^n, so that probability is itself uniform on [0, 1]."""
    for row, noise in zip(salaries["table-4"].rows, salaries["table-2"].rows, strict=True):
        for kind in CALIBRATIONS:
            miss = math.exp(-row[f"largest_error_{kind}"] / noise[f"scale_{kind}"])
            assert between(stats.uniform(), math.exp(PEOPLE * math.log1p(-miss)))


def test_answers_to_questions_follow_the_law(people: People, salaries: dict[str, Experiment]) -> None:
    """The mean of n Laplace errors: |mean| > x with probability ≤ 2·exp(-n·x²/(8b²)) for x ≤ 2b (Bernstein)."""
    table, noise = salaries["table-3"], salaries["table-2"].rows
    truth = table.rows[0]
    assert truth["mean_taught"] == people.salaries.mean()
    reach = math.sqrt(8 * math.log(2 / FALSE_ALARM) / PEOPLE)
    for row, scales in zip(table.rows[1:], noise, strict=True):
        for kind in CALIBRATIONS:
            assert abs(row[f"mean_{kind}"] - truth["mean_taught"]) <= reach * scales[f"scale_{kind}"]
            assert row[f"min_{kind}"] < row[f"mean_{kind}"] < row[f"max_{kind}"]


def test_wrong_answers_follow_the_law(states: dict[str, Experiment]) -> None:
    assert all(wrong_answers_fit(states["table-7"]))
    seen = np.add(states["table-5"].column("truth_observed"), states["table-7"].column("wrong_observed"))
    assert seen == pytest.approx(1)


def test_halved_lies_are_caught(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = samplers.bernoulli
    monkeypatch.setattr(samplers, "bernoulli", lambda p, size: whole(Fraction(p) / 2, size))
    assert not any(wrong_answers_fit(categorical.run(people)[2]))


def test_the_checks_have_the_power_claimed() -> None:
    """Half the noise passes a check with probability below 1e-6, by the same laws."""
    assert stats.gamma(PEOPLE).sf(2 * stats.gamma(PEOPLE).ppf(FALSE_ALARM / 2)) < 1e-6
    for wrong in (0.8793, 0.4321, 0.0164):
        lowest = stats.binom(PEOPLE, wrong).ppf(FALSE_ALARM / 2)
        assert stats.binom(PEOPLE, wrong / 2).sf(lowest - 1) < 1e-6


def test_the_most_frequent_states(people: People, states: dict[str, Experiment]) -> None:
    table = states["table-6"]
    counts = {state: people.states.count(state) for state in ("CA", "TX")}
    assert table.rows[0]["reported"].startswith(f"CA ({counts['CA']}), TX ({counts['TX']}), ")
    # at (7, 0.6) nearly all answers are true: 20,000 people and 2% lies leave the two largest in their places
    assert [cell[:2] for cell in table.rows[3]["unbiased"].split(", ")][:2] == ["CA", "TX"]

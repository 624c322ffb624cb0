"""Examples 3.1 to 3.5 of the thesis: rows that are sets, images, mixed records and curves, in one model [T.3.1]."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from discreet.exact import public_draws
from discreet.reproduce.experiment import Experiment, ReportColumn

HOBBIES = ("football", "guitar", "chess", "hiking", "cooking", "films")
SHARES = (Fraction(1, 2), Fraction(2, 5), Fraction(1, 10), Fraction(3, 10), Fraction(1, 4), Fraction(1, 5))
SETS = tuple(frozenset(some) for size in range(len(HOBBIES) + 1) for some in combinations(HOBBIES, size))
PEOPLE = 1000
HOBBY_EPSILONS = (1.0, 2.0, 4.0, 8.0)
TOP, TRIES = 3, 20

TOWNS = ("Ljubljana", "Maribor", "Celje", "Koper", "Spodnji Duplek")
RECORD_EPSILON = 6.0
NEAR = 10
COLUMNS: tuple[tuple[str, Any], ...] = (
    ("age", dp.Integers(1, 120)),
    ("sex", dp.queries.Categories(("F", "M"))),
    ("town", dp.queries.Categories(TOWNS)),
    ("disease 1", dp.queries.Categories((0, 1))),
    ("disease 2", dp.queries.Categories((0, 1))),
    ("disease 3", dp.queries.Categories((0, 1))),
)
"""The columns of example 3.3. Its quasi-identifier is left out: it names the person, and is what a unit is made of."""

Floats = NDArray[np.float64]


def run() -> tuple[Experiment, ...]:
    """Sets of hobbies and mixed records."""
    return hobbies(), records()


# --- 3.1 and 3.5: sets of hobbies -------------------------------------------------------------------------


def hobbies() -> Experiment:
    """A row is a set of hobbies. Sanitize the rows, or perturb the answers: how many play football, which are the top
    three?
    """
    people = draw_people()
    return Experiment(
        name="t-hobbies",
        title=f"Thesis, examples 3.1 and 3.5 · sets of {len(HOBBIES)} hobbies, {len(SETS)} in all, {PEOPLE:,} people",
        source="T.3.1, T.3.6, T.4.10, T.5.5",
        columns=(
            ReportColumn("epsilon", "ε", "given", "g"),
            ReportColumn("truth", "P[true set]", "exact", ".4f"),
            ReportColumn("least", "wrong sets,\nat least", "exact", ".4f"),
            ReportColumn("wrong_observed", "wrong sets", "observed", ".3f"),
            ReportColumn("football_rows", "football, σ\nnoise on sets", "exact", ".1f"),
            ReportColumn("football_answer", "football, σ\nnoise on answer", "exact", ".2f"),
            ReportColumn("top_rows_observed", "top 3 found,\nnoise on sets", "observed", ".2f"),
            ReportColumn("top_answer_observed", "top 3 found,\nnoise on answer", "observed", ".2f"),
        ),
        rows=tuple(_hobby_row(people, epsilon) for epsilon in HOBBY_EPSILONS),
        notes=(
            "D = 2^H with the discrete metric, so a set is one of 64 categories, and randomized response loses the",
            "least that any mechanism can [T.5.6]. A sanitized database answers every question; an answer with",
            "noise of its own is far better, once. Noise on answer: Laplace 1/ε, and the three best by",
            f"permute-and-flip, ε/3 each. Top 3 found: the mean share of the true ones in {TRIES} runs.",
        ),
    )


def draw_people() -> list[frozenset[str]]:
    """One set of hobbies for each person. Every hobby has a share of its own."""
    likes = [public_draws.coins(share, PEOPLE) for share in SHARES]
    return [frozenset(h for h, liked in zip(HOBBIES, likes, strict=True) if liked[i]) for i in range(PEOPLE)]


def sanitized_deviation(response: Any, holders: int) -> float:
    """The standard deviation of the unbiased number of football players, from sanitized sets.

    Half of all sets have football. A report has it with probability truth + (half − 1)·lie if the set has it, and
    half·lie otherwise.
    """
    truth, lie, half = float(response.truth), float(response.lie), len(SETS) // 2
    chances = (truth + (half - 1) * lie, half * lie)
    spread = holders * chances[0] * (1 - chances[0]) + (PEOPLE - holders) * chances[1] * (1 - chances[1])
    return math.sqrt(spread) / (truth - lie)


def _hobby_row(people: Sequence[frozenset[str]], epsilon: float) -> dict[str, Any]:
    promise, unit = dp.Pure(epsilon=epsilon), dp.row(neighbors="replace")
    space = dp.queries.Categories(SETS)
    each = dp.Each.for_guarantee(promise, spaces=space)
    response, score = each.mechanisms[0], dp.queries.Popularity(HOBBIES)
    expected = int(SHARES[0] * PEOPLE)
    bound, true = (
        score.sensitivity(unit),
        set(sorted(HOBBIES, key=dict(zip(HOBBIES, SHARES, strict=True)).__getitem__)[-TOP:]),
    )
    top = dp.mechanisms.TopK.for_guarantee(promise, k=TOP, sensitivity=bound, choices=HOBBIES)
    runs = [dp.release(people, each).value for _ in range(TRIES)]
    answer = dp.Laplace.for_guarantee(promise, sensitivity=1)
    return {
        "epsilon": epsilon,
        "truth": float(response.truth),
        "least": dp.least_error(space, promise),
        "wrong_observed": float(np.mean([a != b for run in runs for a, b in zip(run, people, strict=True)])),
        "football_rows": sanitized_deviation(response, expected),
        "football_answer": answer.deviation,
        "top_rows_observed": float(np.mean([len(true & _top_of(run)) for run in runs])) / TOP,
        "top_answer_observed": float(
            np.mean([len(true & set(dp.release(score(people), top, sensitivity=bound).value)) for _ in range(TRIES)])
        )
        / TOP,
    }


def _top_of(rows: Any) -> set[str]:
    counts = Counter(hobby for held in rows for hobby in held)
    return {hobby for hobby, _ in counts.most_common(TOP)}


# --- 3.3: mixed records -----------------------------------------------------------------------------------


def records() -> Experiment:
    """A row is a patient. One metric for all columns divides ε by their units."""
    people = draw_patients()
    return Experiment(
        name="t-records",
        title=f"Thesis, example 3.3 · mixed records of {PEOPLE:,} patients · ε = {RECORD_EPSILON:g} for a whole record",
        source="T.3.1, T.4.7, T.4.9, T.4.10",
        columns=(
            ReportColumn("column", "column", "given"),
            ReportColumn("values", "values", "given", "d"),
            ReportColumn("share", "ε of the column\none metric", "exact", ".3f"),
            ReportColumn("right_taught", "right,\n0/1 columns", "taught", ".3f"),
            ReportColumn("right_taught_observed", "right,\n0/1 columns", "observed", ".3f"),
            ReportColumn("right_tight", "right, response\nsame ε", "tight", ".3f"),
            ReportColumn("right_equal", "right, response\nε/6 each", "tight", ".3f"),
            ReportColumn("right_equal_observed", "right, response\nε/6 each", "observed", ".3f"),
        ),
        rows=_record_rows(people),
        notes=(
            "One metric: categories become 0/1 columns, and the metric adds all columns, so diam(D) =",
            f"{one_metric()} and Lap(diam/ε) goes on every number. That divides ε by the units of the columns: 119",
            "years take nearly all. Response: randomized response of the category itself; it is right more often at",
            "the same ε. Better is to divide ε by what matters: ε/6 for each column adds up to the same promise.",
            "Right: the largest noisy 0/1 column is the true one, or the age is within 10 years.",
        ),
    )


def one_metric() -> int:
    """The diameter of a record after one-hot encoding: 119 years, and 2 for each category that changes."""
    return sum(_width(space) for _, space in COLUMNS)


def _width(space: Any) -> int:
    return int(space.diameter) if isinstance(space, dp.Integers) else 2


def draw_patients() -> list[list[Any]]:
    """The columns of synthetic patients: every value is uniform."""
    return [[list(space.points())[i] for i in _uniform(len(space))] for _, space in COLUMNS]


def _uniform(below: int) -> list[int]:
    return [int(i) for i in public_draws.whole_numbers(below, PEOPLE)]


def right_of_hot(values: int, scale: float) -> float:
    """How often the largest of noisy 0/1 columns is the true one: ∫ f(x − 1)·F(x)^(values − 1) dx for Laplace noise."""
    points = np.linspace(-40 * scale, 40 * scale, 400_001)
    law = np.exp(-np.abs(points - 1) / scale) / (2 * scale)
    below = np.where(points < 0, np.exp(points / scale) / 2, 1 - np.exp(-points / scale) / 2)
    return float(np.trapezoid(law * below ** (values - 1), points))


def _record_rows(people: list[list[Any]]) -> tuple[dict[str, Any], ...]:
    promise = dp.Pure(epsilon=RECORD_EPSILON)
    each = dp.Each.for_guarantee(promise, spaces=[space for _, space in COLUMNS])
    whole = dp.Laplace.for_guarantee(promise, sensitivity=one_metric(), calibration="taught")
    said = list(zip(*dp.release(list(zip(*people, strict=True)), each).value, strict=True))
    return tuple(
        _column_row(name, space, whole, each.mechanisms[place])
        | {
            "right_taught_observed": _right(space, _by_one_metric(space, people[place], whole), people[place]),
            "right_equal_observed": _right(space, said[place], people[place]),
        }
        for place, (name, space) in enumerate(COLUMNS)
    )


def _column_row(name: str, space: Any, whole: dp.Laplace, own: Any) -> dict[str, Any]:
    """The exact numbers of one column: the ε that one metric gives it, and how often its value survives."""
    scale, numeric = float(whole.scale), isinstance(space, dp.Integers)
    share = _width(space) / scale
    found: dict[str, Any] = {"column": name, "values": len(space), "share": share}
    if numeric:
        near = {"right_taught": scale, "right_tight": scale, "right_equal": float(own.scale)}
        return found | {key: -math.expm1(-NEAR / b) for key, b in near.items()}
    response = dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=share), choices=space.points())
    return found | {
        "right_taught": right_of_hot(len(space), scale),
        "right_tight": float(response.truth),
        "right_equal": float(own.truth),
    }


def _by_one_metric(space: Any, values: list[Any], noise: dp.Laplace) -> list[Any]:
    """What one column looks like after noise on its number, or on its 0/1 columns."""
    if isinstance(space, dp.Integers):
        return list(dp.release(values, noise, sensitivity=one_metric() * PEOPLE).value)
    points = list(space.points())
    hot = np.array([[int(value == point) for point in points] for value in values])
    noisy = dp.release(hot, noise, sensitivity=one_metric() * PEOPLE).value
    return [points[place] for place in np.argmax(noisy, axis=1).tolist()]


def _right(space: Any, said: Sequence[Any], values: list[Any]) -> float:
    if isinstance(space, dp.Integers):
        return float((np.abs(np.array(said, dtype=float) - np.array(values)) <= NEAR).mean())
    return float(np.mean([a == b for a, b in zip(said, values, strict=True)]))

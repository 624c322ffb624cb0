"""A plan's numbers are those of the methods themselves, and it says which of them are worth anything."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet import extras
from discreet.adaptive import published
from discreet.adaptive.concentration import deviation
from discreet.adaptive.holdouts import GuessAndCheck, honest_tolerance
from discreet.adaptive.planning import HOLDOUT, STUDY, StudyPlan, plan, rows_needed
from discreet.adaptive.studies import METHODS, method_for
from discreet.errors import InvalidArgument, MissingExtra
from discreet.mechanisms.adaptive.thresholdout import Thresholdout

from ..refusing import refuses

CHEAP = ("gaussian", "splitting", "Bonferroni")
PUBLISHED = ("Jung et al. 2020, exact curve", "Jung et al. 2020, as coded", "Bassily et al. 2016")


ROWS, QUESTIONS = 10**4, 60
COMPARED = [name for name in (*STUDY, *HOLDOUT, *PUBLISHED, "Bonferroni") if name != "laplace"]
"""All but one, for which the least noise takes seconds to find."""


@pytest.fixture(scope="module")
def full() -> StudyPlan:
    return plan(ROWS, QUESTIONS, overfits=3, methods=COMPARED)


def widths(made: StudyPlan) -> dict[Any, float]:
    return {(row["rows"], row["questions"], row["method"]): row["width"] for row in made.rows}


# --- the numbers ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_method_is_compared_once(full: StudyPlan) -> None:
    assert [row["method"] for row in full.rows] == COMPARED
    assert set(STUDY) == set(METHODS)
    for row in full.rows:
        assert row["private"] == METHODS.get(row["method"], row["method"] in ("thresholdout", *PUBLISHED))


@pytest.mark.slow
def test_every_method_is_compared_without_a_choice() -> None:
    assert [row["method"] for row in plan(ROWS, QUESTIONS).rows] == [*STUDY, *HOLDOUT, *PUBLISHED, "Bonferroni"]


@pytest.mark.slow
@pytest.mark.parametrize("method", [name for name in STUDY if name != "laplace"])
def test_a_study_would_have_this_width(full: StudyPlan, method: str) -> None:
    made = method_for(method, size=ROWS, queries=QUESTIONS, confidence=0.95)
    assert widths(full)[ROWS, QUESTIONS, method] == made.width(0.95)


def test_a_holdout_would_have_this_width(full: StudyPlan) -> None:
    given: dict[str, Any] = {"size": ROWS, "queries": QUESTIONS, "overfits": 3, "confidence": 0.95}
    given["tolerance"] = honest_tolerance(ROWS, ROWS, QUESTIONS, 0.9)
    for name, kind in (("thresholdout", Thresholdout), ("guess and check", GuessAndCheck)):
        made: Any = kind
        assert widths(full)[ROWS, QUESTIONS, name] == made.narrowest(**given).width(0.95)


def test_published_widths_and_the_floor(full: StudyPlan) -> None:
    found = widths(full)
    formulas = (published.jung_exact, published.jung_as_coded, published.bassily)
    for name, formula in zip(PUBLISHED, formulas, strict=True):
        assert found[ROWS, QUESTIONS, name] == formula(ROWS, QUESTIONS, 0.05)
    floor = found[ROWS, QUESTIONS, "Bonferroni"]
    assert floor == deviation(ROWS, math.log(QUESTIONS / 0.05))
    assert floor < math.sqrt(math.log(2 * QUESTIONS / 0.05) / (2 * ROWS)) * 1.001  # Hoeffding's
    assert floor == min(found.values())


def test_ours_is_below_what_was_published(full: StudyPlan) -> None:
    found = widths(full)
    assert found[ROWS, QUESTIONS, "gaussian"] < min(found[ROWS, QUESTIONS, name] for name in PUBLISHED)


@pytest.mark.slow
def test_more_rows_are_narrower_and_more_questions_wider() -> None:
    methods = (*CHEAP, "taught", "guess and check", *PUBLISHED)
    made = plan([10**5, 10**6, 10**7], [10, 100, 1000], methods=methods)
    found = widths(made)
    for method in methods:
        for n, k in ((10**5, 10), (10**5, 100), (10**6, 10), (10**6, 100)):
            assert found[10 * n, k, method] < found[n, k, method] or found[n, k, method] == 1, method
            assert found[n, 10 * k, method] > found[n, k, method] or found[n, k, method] == 1, method


def test_more_confidence_and_more_overfits_are_wider() -> None:
    few, many = (plan(10**4, 100, overfits=f, methods=["guess and check"]).rows[0]["width"] for f in (2, 4))
    assert few < many
    less, more = (plan(10**4, 100, sure, methods=CHEAP).rows for sure in (0.9, 0.99))
    assert all(a["width"] < b["width"] for a, b in zip(less, more, strict=True))


# --- what is said of them -------------------------------------------------------------------------------


def test_the_narrowest_of_each_kind_are_marked(full: StudyPlan) -> None:
    for kind in ("study", "holdout"):
        rows = [row for row in full.rows if row["kind"] == kind]
        [best] = [row for row in rows if row["narrowest"]]
        [private] = [row for row in rows if row["narrowest_private"]]
        assert best["width"] == min(row["width"] for row in rows)
        assert private["width"] == min(row["width"] for row in rows if row["private"])
    others = [row for row in full.rows if row["kind"] in ("published", "floor")]
    assert not any(row["narrowest"] or row["narrowest_private"] for row in others)


def test_a_half_says_nothing_and_is_never_the_narrowest() -> None:
    made = plan(20, 1000, methods=CHEAP)
    for row in made.rows:
        assert row["useful"] == (row["width"] < 0.5)
        assert row["useful"] or not (row["narrowest"] or row["narrowest_private"])
    assert "says nothing" in str(made)
    assert "†" not in str(made)


def test_the_table_is_aligned_and_rounds_up() -> None:
    made = plan([10**4, 10**5], [10, 1000], methods=CHEAP)
    text = str(made)
    lines = [line for line in text.splitlines() if line.startswith("  ")]
    assert len(lines) == 2 * len(CHEAP)
    assert len({len(line.rstrip("*†")) for line in lines}) == 1
    shown = [float(word.rstrip("*†")) for line in lines for word in line.split() if word[:2] == "0."]
    true = [widths(made)[n, k, m] for n in made.n for m in CHEAP for k in made.k if widths(made)[n, k, m] < 0.5]
    assert len(shown) == len(true)
    assert all(0 <= a - b < 0.01 * b for a, b in zip(shown, true, strict=True))


def test_laplace_noise_is_tried_where_it_is_quick_or_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[plan.__module__], "_width", lambda *_: 0.1)
    made = plan(10**5, [1000, 1001])
    assert [row["questions"] for row in made.rows if row["method"] == "laplace"] == [1000]
    assert "laplace is tried for up to 1,000 questions" in str(made)
    assert [row["questions"] for row in plan(10**5, [1000, 1001], methods=["laplace"]).rows] == [1000, 1001]


def test_numbers_are_sorted_and_each_is_taken_once() -> None:
    made = plan([1000, 100, 1000], range(2, 4), methods=CHEAP)
    assert (made.n, made.k) == ((100, 1000), (2, 3))


@pytest.mark.parametrize("n_and_k", [(1, 1), (1, 10), (10, 1), (3, 1000)])
def test_tiny_samples_are_no_error(n_and_k: tuple[int, int]) -> None:
    made = plan(*n_and_k, methods=[*CHEAP, "taught", "guess and check", *PUBLISHED])
    assert all(math.isfinite(row["width"]) and row["width"] > 0 for row in made.rows)
    assert str(made)


@pytest.mark.parametrize(
    ("arguments", "options", "code"),
    [
        ((0, 10), {}, "out-of-range"),
        ((10, 2.5), {}, "not-whole"),
        (([], 10), {}, "empty"),
        (("ten", 10), {}, "not-a-number"),
        ((10, 10, 1.5), {}, "out-of-range"),
        ((10, 10), {"overfits": 0}, "out-of-range"),
        ((10, 10), {"methods": ["magic"]}, "not-an-option"),
    ],
)
def test_bad_input(arguments: tuple[Any, ...], options: dict[str, Any], code: str) -> None:
    with refuses(InvalidArgument, code):
        plan(*arguments, **options)


# --- how many rows --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["gaussian", "splitting", pytest.param("guess and check", marks=pytest.mark.slow)])
def test_so_many_rows_suffice_and_a_hundredth_fewer_do_not(method: str) -> None:
    needed = rows_needed(0.05, 100, method=method)
    enough, fewer = plan([needed, math.floor(needed / 1.0101) - 1], 100, methods=[method]).rows[::-1]
    assert enough["rows"] == needed
    assert enough["width"] <= 0.05 < fewer["width"]


def test_rows_grow_with_the_root_of_the_questions_and_the_square_of_the_accuracy() -> None:
    base = rows_needed(0.05, 1000)
    assert 9 < rows_needed(0.05, 100_000) / base < 14  # √100, and a logarithm
    assert 3.7 < rows_needed(0.025, 1000) / base < 4.3


@pytest.mark.slow
def test_sizes_are_those_rows() -> None:
    made = plan(10**5, [10, 1000], methods=CHEAP)
    sizes = made.sizes()
    assert [row["accuracy"] for row in sizes.rows[:4]] == [0.1, 0.05, 0.02, 0.01]
    assert sizes.rows[-1] == {
        "questions": 1000,
        "accuracy": 0.01,
        "method": "gaussian",
        "rows": rows_needed(0.01, 1000),
    }
    assert f"{rows_needed(0.01, 1000):,}" in str(sizes).splitlines()[-1]
    assert len(made.sizes(0.1, methods=["gaussian", "splitting"]).rows) == 4


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((0.5, 10), "out-of-range"),
        ((0, 10), "out-of-range"),
        ((0.1, 0), "out-of-range"),
        ((0.1, 10, 2), "out-of-range"),
        ((0.1, 10, 0.95, "Bonferroni"), "not-an-option"),
        ((1e-7, 10), "study-too-few-rows"),
    ],
)
def test_bad_wishes(arguments: tuple[Any, ...], code: str) -> None:
    with refuses(InvalidArgument, code):
        rows_needed(*arguments)


# --- the chart ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_chart_shows_every_useful_width(tmp_path: Path) -> None:
    made = plan([10**4, 10**5], [10, 100, 10**6], methods=CHEAP)
    figure = made.plot(tmp_path / "widths.png")
    assert (tmp_path / "widths.png").read_bytes().startswith(b"\x89PNG")
    assert len(figure.axes) == 2
    for n, panel in zip(made.n, figure.axes, strict=True):
        drawn = {line.get_label(): list(line.get_ydata()) for line in panel.get_lines()}
        useful = [row for row in made.rows if row["rows"] == n and row["useful"]]
        assert drawn == {m: [row["width"] for row in useful if row["method"] == m] for m in CHEAP}
        assert panel.get_xscale() == "log"


@pytest.mark.slow
def test_one_number_of_questions_is_drawn_with_more_and_fewer(tmp_path: Path) -> None:
    figure = plan(10**6, 1000, methods=["gaussian"]).plot(tmp_path / "widths.svg")
    [line] = figure.axes[0].get_lines()
    assert list(line.get_xdata()) == [10, 100, 1000, 10**4, 10**5]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nowhere/widths.png", "widths.toml"])
def test_a_path_that_cannot_be_a_chart_is_told(name: str, tmp_path: Path) -> None:
    with refuses(InvalidArgument, "picture-not-written"):
        plan(100, [1, 2], methods=["gaussian"]).plot(tmp_path / name)


def test_a_chart_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(extras.importlib, "import_module", missing)
    with refuses(MissingExtra, "missing-extra"):
        plan(100, [1, 2], methods=["gaussian"]).plot()

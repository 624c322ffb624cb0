"""The pages of benchmarks are made of what they printed, and nothing else."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

import discreet as dp
from bench import charts, page, quiet
from bench.sql import clipping, keys
from discreet import testing
from discreet.mechanisms.selection.upward_search import UpwardSearch
from discreet.queries.sensitivity import Sensitivity

ROOT = Path(__file__).resolve().parents[2]


def test_the_pages_are_what_the_benchmarks_printed() -> None:
    there = {kept.name: kept.read_text("utf-8") for kept in page.PAGES.iterdir()}
    assert there == page.pages(), "run python -m bench.page"


def test_every_section_is_on_one_page_and_every_missed_goal_on_the_index() -> None:
    pages = page.pages()
    index = pages.pop("index.md")
    assert sum(len(theme.commands) for theme in page.THEMES) == len(page.COMMANDS)
    missed = [goal for name in page.COMMANDS for goal in page.goals(page.stored(name), "missed")]
    assert [goal for goal in missed if f": {goal}\n" not in index] == []
    assert index.count("\n- [") == len(missed) > 0


def test_every_section_says_when_and_where_it_was_measured() -> None:
    table = page.machines().splitlines()[2:]
    assert sum(int(row.split("|")[-2]) for row in table) == len(page.COMMANDS)
    assert all(len(row.split("|")) == 7 for row in table)


def test_goals_are_read_as_they_were_printed() -> None:
    section = "## One\nGoals met: a ≥ 1.5 (2.1); b.\n\n**Goals missed**: c (0.83 times).\n\n- The goals are hard.\n"
    assert page.goals(section, "met") == ["a ≥ 1.5 (2.1)", "b"]
    assert page.goals(section, "missed") == ["c (0.83 times)"]


def test_every_section_was_measured_and_every_script_has_one() -> None:
    assert set(page.RESULTS.rglob("*.md")) == set(map(page.place, page.COMMANDS))
    scripts = {
        f"{script.parent.name}.{script.stem}"
        for script in page.HERE.glob("*/*.py")
        if "__main__" in script.read_text("utf-8")
    }
    assert {command.split()[0] for command in page.COMMANDS.values()} == scripts - {"learning.learning_peers"}
    assert page.PEERS.keys() <= scripts


@pytest.mark.slow
def test_every_benchmark_can_be_imported() -> None:
    """What it imports is still there. Nothing is measured, so nothing is said."""
    modules = [f"bench.{script.parent.name}.{script.stem}" for script in page.HERE.glob("*/*.py")]
    code = f"import importlib; [importlib.import_module(name) for name in {modules}]"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_benchmark_prints_its_own_command() -> None:
    for name, command in page.COMMANDS.items():
        assert set(re.findall(r"`python -m bench\.(\w+\.\w+)", page.stored(name))) <= {command.split()[0]}


@pytest.mark.parametrize("name", ["trust.md", "channel.md", "how-to/scale.md", "sql.md"])
def test_rows_quoted_on_other_pages_were_printed(name: str) -> None:
    printed = [table for section in page.COMMANDS for table in charts.tables(page.stored(section))]
    quoted = 0
    for shown in charts.tables((ROOT / "docs" / name).read_text("utf-8")):
        of_this_kind = [row for table in printed for row in table if row.keys() == shown[0].keys()]
        if of_this_kind:
            assert [row for row in shown if row not in of_this_kind] == []
            quoted += 1
    assert quoted


def test_how_much_longer_tpch_takes_was_printed() -> None:
    [shown] = [t for t in charts.tables((ROOT / "docs/how-to/scale.md").read_text("utf-8")) if "scale factor" in t[0]]
    for row, (ours, theirs) in zip(shown, (("tpch", "tpch-spark"), ("tpch-10", "tpch-spark-10")), strict=True):
        for engine, name in (("DuckDB", ours), ("Spark", theirs)):
            assert f"A private answer takes {row[engine]} as long" in page.stored(name)


@pytest.mark.slow
def test_every_chart_is_drawn_from_its_section(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason='needs pip install "discreet[plot]"')
    names = {f"{chart.section}.png" for chart in charts.CHARTS}
    assert {kept.name for kept in charts.FOLDER.iterdir()} == names
    charts.draw(page.stored, tmp_path)
    assert {drawn.name for drawn in tmp_path.iterdir()} == names


def test_a_section_that_fails_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(page, "HERE", tmp_path / "bench")
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(page, "COMMANDS", {"one": "room.one --twice"})
    script = tmp_path / "bench" / "room" / "one.py"
    script.parent.mkdir(parents=True)
    script.write_text("import sys; print('## One', sys.argv[1:])")
    assert page.measured("one") == 0
    kept = (tmp_path / "results" / "room" / "one.md").read_text("utf-8")
    assert kept.startswith("## One ['--twice']\n\n*")
    script.write_text("print('## Half'); raise SystemExit(2)")
    assert page.measured("one") == 2
    assert page.stored("one") == kept
    assert "one ended with 2; its section stays as it was" in capsys.readouterr().err


def test_the_law_of_the_upward_search_is_that_of_the_mechanism() -> None:
    search = UpwardSearch(enough=1, bar_scale=Fraction(1, 2), step_scale=Fraction(2, 3))
    counts = [3, 2, 0]
    exact = testing.exact_law(lambda: search._draw(counts), window=8)
    computed = clipping.law(counts, 1, 2, 1.5)
    assert exact.unresolved < 1e-4
    assert computed == pytest.approx([float(exact.law[place]) for place in range(3)], abs=1e-4)
    assert clipping.law(counts, 2, 0.01, 0.02).sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("cells", "epsilon"), [(1, 1), (5, 3), (200, 0.5)])
def test_the_chosen_constants_are_those_of_the_library(cells: int, epsilon: float) -> None:
    enough, bar, step = clipping.CHOSEN.search(cells, epsilon)
    people, left = clipping.PEOPLE * cells, clipping.CHOSEN.left(cells, epsilon)
    search = UpwardSearch.for_guarantee(
        dp.Pure(epsilon=epsilon - left), people=float(people) / left, sensitivity=Sensitivity(1, "Linf", monotone=True)
    )
    assert abs(search.enough - enough) <= 1
    assert [float(1 / search.bar_scale), float(1 / search.step_scale)] == pytest.approx([bar, step], rel=1e-3)


@pytest.mark.slow
def test_clipping_is_measured_quickly(capsys: pytest.CaptureFixture[str]) -> None:
    clipping.main(quick=True)
    printed = capsys.readouterr().out
    assert "a family is named that they do not cover" in printed
    chosen = charts.tables(printed)[0][0]
    assert chosen["constants"] == "**chosen**"
    assert 1 < charts.number(chosen["1 cell"]) < 4


def test_every_person_has_as_many_keys_as_the_family_says() -> None:
    family = keys.Family("few", 100, 40, lambda rng, n: rng.integers(1, 30, n))
    pairs = family.drawn()
    numbers = family.numbers(np.random.default_rng(1), 100)
    assert np.bincount(pairs.people).tolist() == np.minimum(numbers, 20).tolist()
    assert len(set(zip(pairs.people.tolist(), pairs.codes.tolist(), strict=True))) == len(pairs.codes)
    few = pairs.capped(7, np.random.default_rng(2))
    assert np.bincount(few.people).tolist() == np.minimum(numbers, 7).tolist()


def test_the_rules_of_peers_are_calibrated() -> None:
    """A key of one person alone is shown with probability δ/2; biased weights of one person have a norm of 1."""
    rules, deviation = keys.key_rules, 4.2
    bar = rules.threshold(deviation, 1e-3)
    alone = [1 - ndtr((bar - t**-0.5) / deviation) ** t for t in range(1, rules.CAP + 1)]
    assert max(alone) == pytest.approx(1e-3)
    pairs = keys.Family("few", 100, 40, lambda rng, n: rng.integers(1, 30, n)).drawn()
    weights = rules._biased(pairs, np.random.default_rng(3).choice([0.01, 0.3, 1], 40))
    norms = np.bincount(pairs.people, weights**2)
    assert norms.max() <= 1
    assert norms.min() > 0.999
    assert (weights <= rules.MOST / np.sqrt(pairs.degrees)).all()
    # with one key a person, 30 people are enough for the best rule
    assert rules.geometric(rules.Pairs(np.arange(30), np.zeros(30, dtype=int), 1), np.random.default_rng(4), 1).all()


def test_adaptive_weights_go_from_common_keys_to_others() -> None:
    people = np.r_[np.arange(60), np.arange(20)]
    pairs = keys.Pairs(people, np.r_[np.zeros(60, dtype=int), np.ones(20, dtype=int)], 2)
    plain = 1 / np.sqrt(pairs.degrees)
    common, rare = keys.key_rules._rerouted(pairs, plain, 10, 1) - pairs.sums(plain)
    assert common < 0 < rare
    assert (keys.key_rules._rerouted(pairs, plain, 1000, 1) == pairs.sums(plain)).all()


@pytest.mark.slow
def test_keys_are_measured_quickly(capsys: pytest.CaptureFixture[str]) -> None:
    keys.main(quick=True)
    one, ten = charts.tables(capsys.readouterr().out)[0]
    assert charts.number(one["truncated geometric, best cap"]) > charts.number(one["**CommonKeys**"])
    assert charts.number(ten["**CommonKeys**"]) > charts.number(ten["MAD2R"]) > charts.number(ten["weighted Gaussian"])


def test_tables_are_read_as_they_were_printed() -> None:
    text = "## One\n\n| a | b, s |\n|---|---|\n| x |  |\n| **y** | 1,344 |\n\nprose | bar\n\n| c |\n|---|\n| 2 |\n"
    assert charts.tables(text) == [[{"a": "x", "b, s": ""}, {"a": "**y**", "b, s": "1,344"}], [{"c": "2"}]]


@pytest.mark.parametrize(
    ("cell", "value"), [("**83.1 ± .6**", 83.1), ("1,344", 1344), ("2^20", 2**20), (".301", 0.301), ("3.4 ×", 3.4)]
)
def test_numbers_are_read_from_cells(cell: str, value: float) -> None:
    assert charts.number(cell) == value


@pytest.mark.parametrize("cell", ["–", "", "no probability"])
def test_what_was_not_measured_is_no_number(cell: str) -> None:
    assert math.isnan(charts.number(cell))


@pytest.mark.skipif(not quiet.STAT.exists(), reason="only Linux tells what all processes used")
def test_what_other_programs_used_is_told_apart_from_the_benchmark() -> None:
    """With clocks that are set: of 100 seconds of two cores, 30 were used by others, and 10 by another machine."""
    watch = quiet.Watch(began=time.monotonic() - 100, worked=quiet.of_the_machine()[0] - 50, stolen=0.0, own=0.0)
    watch = replace(watch, own=quiet.of_our_own() - 20, stolen=quiet.of_the_machine()[1] - 10)
    cores = os.cpu_count() or 1
    assert re.fullmatch(
        rf"took 2 min; {30 / cores:.0f}% of the cores were used by other programs, {10 / cores:.0f}% by other machines",
        watch.said(),
    )

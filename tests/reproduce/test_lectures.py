"""The results of the lectures: taught is never below tight, formulas agree with enumeration, and the page with both.

All tests of this file together raise a false alarm with probability at most 1e-6.
"""

from __future__ import annotations

import csv
import math
import runpy
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet.cli import main
from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.guarantees.finite.verify import repeat
from discreet.reproduce import run
from discreet.reproduce.experiment import Experiment, ReportColumn
from discreet.reproduce.lectures import (
    lecture_3,
    lecture_6,
    lecture_8,
    lecture_10,
    pictures,
    thesis_examples,
    thesis_table_1,
    thesis_vectors,
    thesis_voters,
)

ROOT = Path(__file__).resolve().parents[2]
MAKING = runpy.run_path(str(ROOT / "docs" / "make" / "course.py"))
FALSE_ALARM = 1e-6 / 32  # at most 32 numbers below are seen in a run


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is observed is tested elsewhere or below: these tests read formulas."""
    few: tuple[tuple[Any, str, int], ...] = (
        (lecture_3, "ELECTIONS", 2),
        (lecture_3, "DRAWS", 1),
        (lecture_6, "MOST_PLAYED", 1),
        (lecture_8, "RUNS", 1),
        (lecture_8, "MOST_ASKED", 1),
        (lecture_10, "RUNS", 1),
        (thesis_examples, "TRIES", 1),
        (thesis_table_1, "ATTACKS", 50),
    )
    for module, name, value in few:
        monkeypatch.setattr(module, name, value)


def fits(hits: float, draws: int, probability: float) -> bool:
    law = stats.binom(draws, probability)
    return bool(law.ppf(FALSE_ALARM / 2) <= round(hits * draws) <= law.isf(FALSE_ALARM / 2))


# --- the page and the command -----------------------------------------------------------------------------

SLOW = ("l3-counting-queries", "l6-generalization", "l8-sum", "l8-histogram", "l10-descent")


@pytest.mark.some_quick(4)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in MAKING["TABLES"]]
)
def test_the_page_shows_what_the_command_computes(name: str) -> None:
    made = MAKING["TABLES"][name]()
    assert made.name == name
    written = MAKING["parts_of"](MAKING["PAGE"].read_text("utf-8"), name)[1]
    assert written == made.markdown(observed=False), "run python docs/make/course.py"
    for row in made.rows:  # complete, and nothing that no column shows
        assert set(row) == {column.name for column in made.columns}


def test_every_result_has_its_picture_and_its_place() -> None:
    assert list(pictures.PICTURES) == list(MAKING["TABLES"])
    page = MAKING["PAGE"].read_text("utf-8")
    for name in MAKING["TABLES"]:
        assert f"`{name}`" in page


def reproduce(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_info:
        main(["reproduce", *arguments])
    return int(exit_info.value.code or 0)


@pytest.mark.slow
def test_the_command_writes_tables_pictures_and_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [module.__module__.rpartition(".")[2] for _, module in run.LECTURES] == [
        *("lecture_3", "lecture_6", "lecture_8", "lecture_10"),
        *("thesis_voters", "thesis_table_1", "thesis_examples", "thesis_vectors"),
    ]
    monkeypatch.setattr(run, "LECTURES", (("thesis: the attack of table 1", thesis_table_1.run),))
    out = tmp_path / "made" / "here"
    assert reproduce("--lectures", str(out)) == 0
    assert {path.name for path in out.iterdir()} == {"t-table-1.csv", "t-table-1.png", "lectures.md"}
    page = (out / "lectures.md").read_text("utf-8")
    assert "![" in page
    assert "| 0.1 | 20.0 | 10.0 |" in page
    with (out / "t-table-1.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epsilon"] for row in rows] == ["", *map(str, thesis_table_1.EPSILONS)]
    shown = capsys.readouterr().out
    for words in ("Does Edi have diabetes?", "taught", "tight", "observed", "lectures.md"):
        assert words in shown
    assert "…" not in shown, "a heading or a number is cut"


@pytest.mark.slow
def test_all_pictures_are_drawn(tmp_path: Path) -> None:
    run.main(tmp_path, lectures=True)
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {f"{name}.{kind}" for name in pictures.PICTURES for kind in ("csv", "png")} | {"lectures.md"}


def test_a_folder_that_cannot_be_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "LECTURES", (("never", lambda: pytest.fail("work was done")),))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InvalidArgument) as caught:
        run.main(tmp_path / "file" / "out", lectures=True)
    assert caught.value.code == "file-not-writable"
    assert reproduce("--lectures", str(tmp_path / "file" / "out")) == 2
    assert "file-not-writable" in capsys.readouterr().err
    assert reproduce("--lectures", str(tmp_path / "file")) == 2  # the command line itself sees that it is a file


def test_markdown_keeps_bars_and_leaves_out_what_is_observed() -> None:
    made = Experiment(
        name="x",
        title="X",
        source="L3.EM",
        columns=(ReportColumn("a", "|D|", "given", "d"), ReportColumn("b", "seen\nhere", "observed", ".1f")),
        rows=({"a": 3, "b": 0.25}, {"a": 4, "b": None}),
    )
    assert made.markdown() == "| \\|D\\| | seen here · observed |\n| --- | ---: |\n| 3 | 0.2 |\n| 4 | – |\n"
    assert made.markdown(observed=False) == "| \\|D\\| |\n| --- |\n| 3 |\n| 4 |\n"


# --- lecture 3 --------------------------------------------------------------------------------------------


def test_an_election_is_won_more_often_with_the_tight_choice() -> None:
    """[L3.EM], [L3.EM-U]: the lecture's rate, and twice that if a voter comes or goes."""
    for row in lecture_3.election().rows:
        assert row["lost_taught"] == pytest.approx(2 * row["lost_tight"])
        assert row["right_taught"] < row["right_flip"] <= 1
        assert row["right_taught"] < row["right_tight"] <= 1
        # two candidates would give this odds ratio; the others only take from both
        odds = math.exp(row["epsilon"] * 20 / 2)
        assert row["right_taught"] <= odds / (1 + odds) * (1 + 1e-12)


def test_permute_and_flip_by_its_integral_and_by_all_orders() -> None:
    scores, rate = [5, 4, 4, 1], 0.3
    heads = [math.exp(rate * (score - 5)) for score in scores]
    expected = [0.0] * 4
    for order in permutations(range(4)):
        still = 1 / 24
        for place in order:
            expected[place] += still * heads[place]
            still *= 1 - heads[place]
    assert [lecture_3.flip_chance(rate, scores, i) for i in range(4)] == pytest.approx(expected, rel=1e-12)


def test_a_small_database_is_far_better_than_taught(monkeypatch: pytest.MonkeyPatch) -> None:
    """[L3.CQ]: the lecture's m and n, solved for α."""
    monkeypatch.setattr(lecture_3, "SIZES", (1000,))
    [row] = lecture_3.thresholds().rows
    assert row["alpha_sums"] < row["alpha_tight"] < row["alpha_taught"] / 4
    assert row["small_taught"] == math.ceil(2 * math.log(2 * 64) / row["alpha_taught"] ** 2)
    needed = 4 / row["alpha_taught"] * (row["small_taught"] * math.log(64) + math.log(20))
    assert needed == pytest.approx(1000, rel=0.05)  # m is a whole number
    # 95% sure, so a rarer false alarm needs more room: ln(0.05/FALSE_ALARM)/rate rows, with a rate of 1/2
    assert row["alpha_observed"] <= row["alpha_tight"] + 2 * math.log(0.05 / FALSE_ALARM) / 1000


# --- lecture 6 --------------------------------------------------------------------------------------------


def test_composition_as_taught_is_never_below_the_tight_one() -> None:
    """[L6.T2] and [L6.T1], by their formulas."""
    for row in lecture_6.pure_composition().rows:
        k, epsilon = row["times"], row["epsilon"]
        assert row["taught"] == pytest.approx(2 * k * epsilon**2 + epsilon * math.sqrt(2 * k * math.log(1e6)), rel=1e-9)
        assert row["laplace"] <= row["tight"] <= min(row["taught"], row["basic"])
    for row in lecture_6.approximate_composition().rows:
        k, epsilon = row["times"], row["epsilon"]
        root = math.sqrt(2 * k * math.log(1 / (k * lecture_6.EACH_DELTA)))
        assert row["taught"] == pytest.approx(2 * k * epsilon**2 + epsilon * root, rel=1e-9)
        assert row["gaussian"] <= row["tight"] <= row["taught"]


def test_the_worst_pure_mechanism_is_randomized_response() -> None:
    """Ten times, by exact enumeration."""
    response = dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=0.1), choices=(0, 1))
    exact = dp.verify(repeat(response, 10)).epsilon_at(delta=1e-6)
    assert lecture_6.tight(dp.Pure(epsilon=0.1), 10, 1e-6) == pytest.approx(exact, rel=1e-5)


def test_the_sharp_width_is_never_above_the_taught_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """[L6.T9]: α + 10ε, and the exact transfer theorem."""
    monkeypatch.setattr(lecture_6, "STUDIES", ((1_000, 20), (100_000, 20)))
    for row in lecture_6.generalization().rows:
        assert row["fixed"] < row["tight"] <= row["taught"] <= 1
        assert row["raw_observed"] is None


def test_an_analyst_overfits_without_noise() -> None:
    # each of about 300 coins that looked right was right on 52% of 400 rows, so their vote is right on about 75%, with
    # a deviation of about 2.5%: below 55%, in one of 10^15 runs
    assert lecture_6.worst_error(400, 600, private=False) > 0.05


# --- lecture 8 --------------------------------------------------------------------------------------------


def test_shuffled_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """[L8.SUM]: 48 ln(2/δ)/ε² noise bits, and the least number."""
    monkeypatch.setattr(lecture_8, "CLIENTS", (1_000,))
    for row in lecture_8.bit_sums().rows:
        assert row["noise_taught"] == pytest.approx(48 * math.log(2e6), rel=1e-6)
        assert row["deviation_central"] < row["deviation_tight"] < row["deviation_taught"] < row["deviation_local"]
        # against scipy: Binomial(n, p), and the same plus one
        n, p = row["clients"], row["noise_tight"] / row["clients"]
        law = stats.binom(n, p).pmf(np.arange(-1, n + 2))
        delta = max(np.clip(law - math.e * np.roll(law, shift), 0, None).sum() for shift in (1, -1))
        assert 0.9e-6 < delta <= 1.0001e-6
        assert row["delta_taught"] < -30


@pytest.mark.slow
def test_shuffled_histograms() -> None:
    """[L8.HIST1] and [L8.HIST2]: two sums at ε/2, and empty choices that are exactly 0."""
    rows = lecture_8.histograms().rows
    for row in rows:
        assert row["first_tight"] < row["first_taught"]
        assert row["lost_taught"] == pytest.approx(48 * math.log(4e6) * 4, rel=1e-6)
        assert row["lost_tight"] < row["lost_taught"]
        assert row["empty_inverted_observed"] in (None, 0)
    grown = rows[-1]["first_taught"] / rows[0]["first_taught"]
    assert grown < math.log(256 / 0.05) / math.log(4 / 0.05), "√ln|D| and not ln|D|"


# --- lecture 10 -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_noise_of_descent(monkeypatch: pytest.MonkeyPatch) -> None:
    """[L10.NPGD], [L10.T2] and [L10.T3]: noise, its true cost, and the bounds on the excess."""
    for name, value in (("DIMENSIONS", (10,)), ("SIZE", 500), ("STEPS", 25)):
        monkeypatch.setattr(lecture_10, name, value)
    first, third, laplace, gaussian = lecture_10.descents().rows
    # b = 2G√(T·d·ln(1/δ))/(nε) and 2G√(T·ln(1/δ))/(nε); σ = √2·b
    assert first["stddev"] == pytest.approx(math.sqrt(2 * 4 * 25 * 10 * math.log(1e6)) / 500, rel=1e-6)
    assert third["stddev"] == pytest.approx(first["stddev"] / math.sqrt(10), rel=1e-6)
    assert first["epsilon"] < 1 < third["epsilon_least"] < third["epsilon"]
    for row in (laplace, gaussian):
        assert 0.8 < row["epsilon_least"] <= row["epsilon"] <= 1
    for row in (first, third, laplace, gaussian):
        assert row["bound_tight"] < row["bound_taught"]
        assert row["excess_observed"] > -1e-6  # nothing is better than the best


# --- the thesis -------------------------------------------------------------------------------------------


def test_patients_are_named_by_the_register(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thesis_voters, "PUBLISHED", (2, 3))
    few, many = thesis_voters.linked().rows
    assert many["cells"] == 2 * 80 * 450
    assert few["named"] == pytest.approx(0.99375**19_999)
    assert many["named"] == pytest.approx(math.exp(-20_000 / 72_000), rel=1e-4)
    shares = [math.exp(4 / 3) / (count - 1 + math.exp(4 / 3)) for count in (2, 80, 450)]
    assert many["named_response"] == pytest.approx(many["named"] * math.prod(shares), rel=1e-6)
    # patients are independent given the other voters, but for about 7 pairs who share a cell: 0.014 is one deviation
    assert abs(many["named_observed"] - many["named"]) < 0.15
    assert few["named_observed"] == 0
    assert many["named_response_observed"] < 0.05


def test_the_attack_of_table_1() -> None:
    """[T.3.6]: perturbed answers, against a sum over the lattice."""
    exact, *noisy = thesis_table_1.attack().rows
    assert exact["difference"] == exact["knows"] == 1
    assert thesis_table_1.sums(1).tolist() == [2, 3]
    for row in noisy:
        ratio = math.exp(-row["epsilon"] / 2)
        steps = np.arange(-2000, 2001)
        law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(steps)
        # Q5 - Q4 is at least 1 with diabetes: X - Y >= 0
        right = float((law * np.cumsum(law)).sum())
        assert row["difference"] == pytest.approx(right, rel=1e-9)
        assert 0.5 < row["difference"] < row["knows"] < row["allowed"]
        assert row["knows_tight"] == pytest.approx(row["allowed"], rel=1e-6)
        assert row["scale_tight"] == row["scale_taught"] / 2


def test_the_attack_is_seen_and_so_is_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thesis_table_1, "ATTACKS", 4000)
    monkeypatch.setattr(thesis_table_1, "EPSILONS", (1.0,))
    row = thesis_table_1.attack().rows[1]
    assert fits(row["difference_observed"], 8000, row["difference"])
    whole = samplers.discrete_laplace
    monkeypatch.setattr(samplers, "discrete_laplace", lambda scale, size: whole(scale / 2, size))
    row = thesis_table_1.attack().rows[1]
    assert not fits(row["difference_observed"], 8000, row["difference"])


def test_sets_of_hobbies(monkeypatch: pytest.MonkeyPatch) -> None:
    """[T.3.1], [T.3.6]: sanitized sets and perturbed answers."""
    monkeypatch.setattr(thesis_examples, "HOBBY_EPSILONS", (2.0,))
    assert len(set(thesis_examples.SETS)) == 64
    [row] = thesis_examples.hobbies().rows
    assert row["truth"] == pytest.approx(math.exp(2) / (63 + math.exp(2)), rel=1e-6)
    assert row["least"] == pytest.approx(1 - row["truth"], rel=1e-6)
    assert fits(row["wrong_observed"], 1000, row["least"])
    assert row["football_answer"] == pytest.approx(math.sqrt(2) / 2)
    # against the laws of all 64 sets
    response = dp.RandomizedResponse.for_guarantee(dp.Pure(epsilon=2), choices=thesis_examples.SETS)
    laws: Any = response.laws()
    has = {held: float(sum(p for said, p in law.items() if "football" in said)) for held, law in laws.items()}
    inside, outside = has[frozenset({"football"})], has[frozenset()]
    spread = 500 * inside * (1 - inside) + 500 * outside * (1 - outside)
    assert row["football_rows"] == pytest.approx(math.sqrt(spread) / (inside - outside), rel=1e-9)


def test_mixed_records() -> None:
    rows = thesis_examples.records().rows
    assert thesis_examples.one_metric() == 119 + 5 * 2
    assert sum(row["share"] for row in rows) == pytest.approx(6)
    for row in rows:
        assert row["right_taught"] <= row["right_tight"]
        assert fits(row["right_taught_observed"], 1000, row["right_taught"])
        assert fits(row["right_equal_observed"], 1000, row["right_equal"])
    # two noisy 0/1 columns: P[X - Y < 1] of two Laplace numbers
    scale = 129 / 6
    assert rows[1]["right_taught"] == pytest.approx(1 - math.exp(-1 / scale) * (1 + 1 / (2 * scale)) / 2, rel=1e-6)


def test_images_and_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """[T.3.1], [T.3.4]: rows that are vectors."""
    monkeypatch.setattr(thesis_vectors, "ROWS", (1, 100))
    made = thesis_vectors.vectors()
    for row in made.rows:
        assert row["gaussian"] < row["gaussian_taught"] < row["laplace"]
    assert made.rows[0]["laplace"] == pytest.approx(math.sqrt(2) * 255 * 192, rel=1e-6)
    assert made.rows[0]["gaussian_taught"] == pytest.approx(
        255 * math.sqrt(192) * math.sqrt(2 * math.log(2e6)), rel=1e-6
    )
    for row, size in zip(made.rows, (192, 192, 24, 24), strict=True):
        squares = size * (row["error_observed"] / row["gaussian"]) ** 2
        law = stats.chi2(size)
        assert law.ppf(FALSE_ALARM / 2) < squares < law.isf(FALSE_ALARM / 2)

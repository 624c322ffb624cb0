"""One plot for each result of the lectures and each example of the thesis, from the same numbers as its table."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet import plots
from discreet.reproduce.experiment import Experiment
from discreet.reproduce.pictures import OBSERVED, QUIET, TAUGHT, TIGHT, Drawing

GREEN, PURPLE = "#2c8a57", "#a32a7a"
Line = tuple[str, str, str, str]
"""The name of a column, its label, its color, and its marker and line."""


def _draw_lines(axes: Any, experiment: Experiment, across: str, lines: tuple[Line, ...]) -> None:
    """Columns against one column, without the rows in which a value is missing."""
    for name, label, color, mark in lines:
        known = [row for row in experiment.rows if row[name] is not None]
        axes.plot([row[across] for row in known], [row[name] for row in known], mark, color=color, label=label,
                  linewidth=2, markersize=7, markerfacecolor="white" if mark.startswith("o") else color)  # fmt: skip


def _name_ticks(axes: Any, values: list[Any], show: str = "g") -> None:
    """Exactly the values of the table on a logarithmic axis."""
    axes.set_xscale("log")
    axes.set_xticks(values, [format(value, show) for value in values])
    axes.minorticks_off()


def _election(figure: Any, experiment: Experiment) -> None:
    votes, axes = figure.subplots(1, 2, width_ratios=(1, 2.2))
    names = list(experiment.series["votes"])[::-1]
    bars = votes.barh(names, [experiment.series["votes"][name] for name in names], color=QUIET)
    votes.bar_label(bars, padding=3)
    votes.set(title="the votes", xlim=(0, 480))
    votes.grid(visible=False)
    _draw_lines(axes, experiment, "epsilon", (
        ("right_tight", "voter added or removed: exp(ε·votes)", TIGHT, "-s"),
        ("right_flip", "permute-and-flip, voter replaced", GREEN, "-D"),
        ("right_taught", "taught: exp(ε·votes/2)", TAUGHT, "-^"),
        ("right_taught_observed", "seen, taught", OBSERVED, "x"),
        ("right_tight_observed", "seen, added or removed", OBSERVED, "+"),
    ))  # fmt: skip
    _name_ticks(axes, experiment.column("epsilon"))
    axes.set(title="how often Ana is named", xlabel="ε", ylim=(0.4, 1.02))
    axes.legend(loc="lower right")


def _counting(figure: Any, experiment: Experiment) -> None:
    axes = figure.subplots()
    _draw_lines(axes, experiment, "rows", (
        ("alpha_taught", "small database, taught", TAUGHT, "-^"),
        ("alpha_each", "noise on each answer, taught", TAUGHT, "--v"),
        ("alpha_tight", "small database, tight", TIGHT, "-s"),
        ("alpha_observed", "small database, seen", OBSERVED, "x"),
        ("alpha_sums", "prefix sums, tight, δ = 10⁻⁶", GREEN, "-D"),
    ))  # fmt: skip
    _name_ticks(axes, experiment.column("rows"), ",")
    axes.set(xlabel="n, the number of rows", ylabel="α, the largest error of 64 answers", yscale="log")
    axes.legend(loc="lower left")


def _pure(figure: Any, experiment: Experiment) -> None:
    _composition(figure, experiment, (
        ("basic", "basic sums, kε", QUIET, "-o"),
        ("taught", "Theorem 2", TAUGHT, "-^"),
        ("tight", "tight, any mechanisms", TIGHT, "-s"),
        ("laplace", "tight, Laplace noise", GREEN, "--D"),
    ))  # fmt: skip


def _approximate(figure: Any, experiment: Experiment) -> None:
    _composition(figure, experiment, (
        ("taught", "Theorem 1", TAUGHT, "-^"),
        ("tight", "tight, any mechanisms", TIGHT, "-s"),
        ("gaussian", "tight, Gaussian noise", GREEN, "-D"),
    ))  # fmt: skip


def _composition(figure: Any, experiment: Experiment, lines: tuple[Line, ...]) -> None:
    epsilons = sorted(set(experiment.column("epsilon")), reverse=True)
    panels = figure.subplots(1, len(epsilons), sharey=True)
    for axes, epsilon in zip(panels, epsilons, strict=True):
        rows = [row for row in experiment.rows if row["epsilon"] == epsilon]
        for name, label, color, mark in lines:
            axes.plot([row["times"] for row in rows], [row[name] for row in rows], mark, color=color, label=label,
                      linewidth=2, markersize=7)  # fmt: skip
        _name_ticks(axes, [row["times"] for row in rows], ",")
        axes.set(title=f"ε = {epsilon:g} for each", xlabel="k, the number of mechanisms", yscale="log")
    panels[0].set_ylabel("ε̂ of all together")
    plots.legend_below(figure, panels[0])


def _bars(axes: Any, groups: list[str], series: list[tuple[str, str, list[Any]]], show: str) -> None:
    """Bars side by side for each group. A missing value has no bar."""
    places, width = np.arange(len(groups)), 0.86 / len(series)
    for i, (label, color, values) in enumerate(series):
        known = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
        at = [place + (i - (len(series) - 1) / 2) * width for place, _ in known]
        bars = axes.bar(at, [value for _, value in known], width * 0.92, color=color, label=label)
        axes.bar_label(bars, [format(value, show) for _, value in known], padding=2, fontsize=8)
    axes.set_xticks(places, groups)
    axes.grid(visible=False, axis="x")


def _generalization(figure: Any, experiment: Experiment) -> None:
    axes = figure.subplots()
    series = [
        ("taught: α + 10ε", TAUGHT, "taught"),
        ("tight: Gaussian noise", TIGHT, "tight"),
        ("fresh rows for each question", GREEN, "splitting"),
        ("questions fixed in advance", QUIET, "fixed"),
        ("seen without noise", PURPLE, "raw_observed"),
        ("seen with noise", OBSERVED, "private_observed"),
    ]
    groups = [f"n = {row['rows']:,}\nk = {row['questions']}" for row in experiment.rows]
    _bars(axes, groups, [(label, color, experiment.column(name)) for label, color, name in series], ".3f")
    axes.set(ylabel="distance from the population", ylim=(0, 1.08))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _bit_sum(figure: Any, experiment: Experiment) -> None:
    axes = figure.subplots()
    _draw_lines(axes, experiment, "clients", (
        ("deviation_local", "local model", QUIET, "-o"),
        ("deviation_taught", "shuffled, taught: two bits", TAUGHT, "-^"),
        ("deviation_one", "shuffled, tight: one bit", GREEN, "-D"),
        ("deviation_tight", "shuffled, tight: two bits", TIGHT, "-s"),
        ("tight_observed", "two bits, seen", OBSERVED, "x"),
        ("deviation_central", "central model", PURPLE, "-o"),
    ))  # fmt: skip
    _name_ticks(axes, experiment.column("clients"), ",")
    axes.set(xlabel="n, the number of clients", ylabel="standard deviation of the count", yscale="log", ylim=(0.8, 500))
    axes.legend(loc="upper left", ncols=2)


def _histogram(figure: Any, experiment: Experiment) -> None:
    errors, lost = figure.subplots(1, 2, width_ratios=(2, 1))
    groups = [f"|D| = {row['choices']}" for row in experiment.rows]
    _bars(errors, groups, [
        ("parallel sums, taught", TAUGHT, experiment.column("first_taught")),
        ("parallel sums, tight", TIGHT, experiment.column("first_tight")),
        ("fake messages, tight", GREEN, experiment.column("fakes")),
    ], ".0f")  # fmt: skip
    errors.set(title="all counts are within, 95% sure", ylabel="clients", ylim=(0, 230))
    errors.legend(loc="upper left")
    first = experiment.rows[0]
    bars = lost.bar(["taught", "tight"], [first["lost_taught"], first["lost_tight"]], 0.6, color=[TAUGHT, TIGHT])
    lost.bar_label(bars, fmt="{:,.0f}", padding=2)
    lost.set_ylim(0, 3300)
    lost.set_title("inverted sums: counts below\nthis may be lost, of 10,000")
    lost.grid(visible=False, axis="x")


def _descent(figure: Any, experiment: Experiment) -> None:
    panels = figure.subplots(1, 3)
    dimensions = sorted(set(experiment.column("dimension")))
    names = list(dict.fromkeys(experiment.column("noise")))
    looks = ((TAUGHT, "-^"), (PURPLE, "-v"), (TIGHT, "-s"), (GREEN, "-D"))
    shown = (("stddev", "noise σ of a coordinate"), ("epsilon", "ε that is kept"), ("excess_observed", "excess, seen"))
    for axes, (column, title) in zip(panels, shown, strict=True):
        for name, (color, mark) in zip(names, looks, strict=True):
            found = [row[column] for row in experiment.rows if row["noise"] == name]
            axes.plot(dimensions, found, mark, color=color, label=name, linewidth=2, markersize=7)
        _name_ticks(axes, dimensions)
        axes.set(title=title, xlabel="d, the dimension", ylim=(0, None))
    panels[1].axhline(1, color=QUIET, linewidth=1.2)
    panels[1].text(dimensions[-1], 1.03, "promised", color=OBSERVED, ha="right", fontsize=9)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _voters(figure: Any, experiment: Experiment) -> None:
    axes = figure.subplots()
    _bars(axes, experiment.column("columns"), [
        ("named by the register, as published", TAUGHT, experiment.column("named")),
        ("seen", OBSERVED, experiment.column("named_observed")),
        ("named rightly after randomized response", TIGHT, experiment.column("named_response")),
    ], ".3f")  # fmt: skip
    axes.set(ylabel="share of the patients", ylim=(0, 1.1), xlabel="columns that both tables have")
    axes.legend(loc="upper left")


def _attack(figure: Any, experiment: Experiment) -> None:
    axes = figure.subplots()
    noisy = Experiment(**(vars(experiment) | {"rows": experiment.rows[1:]}))
    axes.axhline(1, color=PURPLE, linewidth=2)
    axes.text(0.1, 0.985, "without noise: certain", color=PURPLE, va="top")
    axes.axhline(0.5, color=QUIET, linewidth=1.2)
    axes.text(5, 0.505, "a coin", color=OBSERVED, ha="right", va="bottom")
    _draw_lines(axes, noisy, "epsilon", (
        ("allowed", "at most, any attacker", QUIET, "-o"),
        ("knows_tight", "knows the rest, noise on each group (tight)", TIGHT, "--s"),
        ("knows", "knows the rest, noise on each sum", TAUGHT, "-^"),
        ("difference", "Q₅ − Q₄, noise on each sum", GREEN, "-D"),
        ("difference_observed", "Q₅ − Q₄, seen", OBSERVED, "x"),
    ))  # fmt: skip
    _name_ticks(axes, noisy.column("epsilon"))
    axes.set(xlabel="ε of both answers together", ylabel="guesses of Edi's diagnosis that are right", ylim=(0.47, 1.02))
    axes.legend(loc="center left", bbox_to_anchor=(0.01, 0.66))


def _hobbies(figure: Any, experiment: Experiment) -> None:
    sets, football, top = figure.subplots(1, 3)
    panels = (
        (sets, "sets reported wrongly", (("least", "least of any mechanism", QUIET, "-o"),
                                         ("wrong_observed", "randomized response, seen", OBSERVED, "x"))),
        (football, "football players: σ", (("football_rows", "noise on the sets", TAUGHT, "-^"),
                                           ("football_answer", "noise on the answer", TIGHT, "-s"))),
        (top, "top 3 hobbies found, seen", (("top_rows_observed", "noise on the sets", TAUGHT, "-^"),
                                            ("top_answer_observed", "noise on the answer", TIGHT, "-s"))),
    )  # fmt: skip
    for axes, title, lines in panels:
        _draw_lines(axes, experiment, "epsilon", lines)
        _name_ticks(axes, experiment.column("epsilon"))
        axes.set(title=title, xlabel="ε")
        axes.legend(loc="lower left" if axes is not top else "lower right", fontsize=9)
    football.set_yscale("log")
    football.legend(loc="upper right", fontsize=9)
    top.set_ylim(0, 1.05)


def _records(figure: Any, experiment: Experiment) -> None:
    shares, right = figure.subplots(1, 2, width_ratios=(1, 2.4))
    names = experiment.column("column")
    _bars(shares, names, [("one metric", TAUGHT, experiment.column("share"))], ".2f")
    shares.axhline(1, color=TIGHT, linewidth=2)
    shares.text(5.5, 1.08, "ε/6 each", color=TIGHT, ha="right", va="bottom")
    shares.set(title="ε of each column, by one metric")
    _bars(right, names, [
        ("0/1 columns, one metric (taught)", TAUGHT, experiment.column("right_taught")),
        ("response, same ε", GREEN, experiment.column("right_tight")),
        ("response, ε/6 each", TIGHT, experiment.column("right_equal")),
    ], ".2f")  # fmt: skip
    right.set(title="values that are right (ages: within 10 years)", ylim=(0, 1))
    right.legend(loc="upper left")
    shares.tick_params(axis="x", rotation=90)


def _vectors(figure: Any, experiment: Experiment) -> None:
    counts, means = experiment.series["counts"], experiment.series["means"]
    panels = figure.subplots(2, len(counts))
    for column, count in enumerate(counts):
        image, curve = means[column], means[len(counts) + column]
        top, low = panels[0][column], panels[1][column]
        top.imshow(np.clip(image, 0, 255).astype(np.uint8))
        top.set(title="1 row, sanitized" if count == 1 else f"mean of {count:,} rows", xticks=[], yticks=[])
        top.grid(visible=False)
        low.plot(np.arange(len(curve)), curve / 1000, color=TIGHT, linewidth=2)
        low.set(xlabel="hour", xticks=range(0, 25, 6))
    panels[1][0].set_ylabel("kW, with noise")


PICTURES: dict[str, Drawing] = {
    "l3-election": _election,
    "l3-counting-queries": _counting,
    "l6-composition": _pure,
    "l6-composition-delta": _approximate,
    "l6-generalization": _generalization,
    "l8-sum": _bit_sum,
    "l8-histogram": _histogram,
    "l10-descent": _descent,
    "t-voters": _voters,
    "t-table-1": _attack,
    "t-hobbies": _hobbies,
    "t-records": _records,
    "t-images-and-curves": _vectors,
}

"""One plot for each experiment, drawn from the same numbers as its table."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from discreet import plots
from discreet.reproduce.experiment import Experiment

TAUGHT, TIGHT, OBSERVED, PRINTED, QUIET = plots.ORANGE, plots.BLUE, plots.INK, "#a32a7a", "#b8bcc2"


Drawing = Callable[[Any, Experiment], None]


def save(experiment: Experiment, folder: Path, drawing: Drawing) -> Path:
    """Draw the plot of an experiment into `folder`, as PNG."""

    def draw(figure: Any) -> None:
        drawing(figure, experiment)

    path = folder / f"{experiment.name}.png"
    return plots.save(path, experiment.title, draw, height=5.2, what="discreet reproduce")


def _dollars(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.4f}"


def _draw_groups(
    axes: Any,
    experiment: Experiment,
    series: list[tuple[str, str, str, bool]],
    show: Callable[[float], str] = _dollars,
) -> None:
    """Full bars for formulas and hollow bars for observed or printed numbers, side by side for each (ε, δ)."""
    places = np.arange(len(experiment.rows))
    width = 0.9 / len(series)
    for i, (name, label, color, solid) in enumerate(series):
        values = experiment.column(name)
        at = places + (i - (len(series) - 1) / 2) * width
        face = color if solid else "none"
        bars = axes.bar(at, values, width * 0.9, facecolor=face, edgecolor=color, linewidth=1.6, label=label)
        axes.bar_label(bars, [show(value) for value in values], padding=2, fontsize=8.2)
    axes.set_xticks(places, [f"(ε, δ) = {row['promise']}" for row in experiment.rows])
    axes.grid(visible=False, axis="x")


def _noise(figure: Any, experiment: Experiment) -> None:
    axes = figure.subplots()
    series = [
        ("scale_taught", "b, taught", TAUGHT, True),
        ("mean_error_taught", "mean error seen, taught b", TAUGHT, False),
        ("scale_tight", "b, tight", TIGHT, True),
        ("mean_error_tight", "mean error seen, tight b", TIGHT, False),
        ("mean_error_printed", "mean error, printed in the thesis", PRINTED, False),
    ]
    _draw_groups(axes, experiment, series)
    axes.set(yscale="log", ylim=(100, 40_000), ylabel="dollars (log scale)")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _answers(figure: Any, experiment: Experiment) -> None:
    panels = figure.subplots(1, 3)
    salaries = experiment.series["salaries"]
    for axes, (label, taught, tight) in zip(panels, experiment.series["noisy"], strict=True):
        reach = float(max(np.abs(taught - 3000).max(), np.abs(tight - 3000).max(), 2000)) / 1000
        bins = np.linspace(3 - reach, 3 + reach, 41)
        axes.hist(salaries / 1000, bins, color=QUIET, label="the salaries")
        axes.hist(taught / 1000, bins, histtype="step", linewidth=1.8, color=TAUGHT, label="with taught noise")
        axes.hist(tight / 1000, bins, histtype="step", linewidth=1.8, color=TIGHT, label="with tight noise")
        axes.set(title=f"(ε, δ) = {label}", xlabel="thousands of dollars", yscale="log", ylim=(0.7, None))
    panels[0].set_ylabel("people (log scale)")
    plots.legend_below(figure, panels[0])


def _largest(figure: Any, experiment: Experiment) -> None:
    axes = figure.subplots()
    series = [
        ("bound_3000", "least γ of any mechanism", QUIET, True),
        ("largest_error_taught", "largest error seen, taught b", TAUGHT, False),
        ("largest_error_tight", "largest error seen, tight b", TIGHT, False),
        ("largest_error_printed", "largest error, printed in the thesis", PRINTED, False),
    ]
    _draw_groups(axes, experiment, series)
    axes.set(yscale="log", ylim=(1e-3, 1e6), ylabel="dollars (log scale)")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _truth(figure: Any, experiment: Experiment) -> None:
    axes = figure.subplots()
    epsilons = np.linspace(0, 9, 181)
    people = experiment.series["people"]
    colors = (TAUGHT, TIGHT, "#2c8a57")
    for (epsilon, delta), row, color in zip(experiment.series["pairs"], experiment.rows, colors, strict=True):
        others = 47
        axes.plot(epsilons, 1 - others * (1 - delta) / (others + np.exp(epsilons)), color=color, linewidth=2,
                  label=f"1 − 47p at δ = {delta:g}")  # fmt: skip
        seen = row["truth_observed"]
        spread = 1.96 * math.sqrt(row["truth"] * (1 - row["truth"]) / people)
        axes.errorbar(epsilon, seen, spread, fmt="o", color=color, capsize=4, markersize=7)
        axes.annotate(f"{row['promise']}: {seen:.3f} seen,\n{row['truth_printed']:.2f} printed", (epsilon, seen),
                      (10, -26), textcoords="offset points", fontsize=10, color=color)  # fmt: skip
    axes.set(xlabel="ε", ylabel="probability of a true answer", ylim=(0, 1.03), xlim=(0, 9))
    axes.legend(loc="center right", title=f"points: seen among {people:,} people, ± 95%")


def _most_frequent(figure: Any, experiment: Experiment) -> None:
    truth = experiment.series["truth"]
    states = sorted(truth, key=lambda state: (-truth[state], state))[:10]
    panels = figure.subplots(1, 3, sharey=True)
    places = np.arange(len(states))
    for axes, (label, counts, estimates) in zip(panels, experiment.series["reports"], strict=True):
        axes.bar(places, [truth[s] for s in states], 0.86, color=QUIET, label="the people")
        axes.bar(places, [counts.get(s, 0) for s in states], 0.46, color=TAUGHT, label="as reported")
        axes.plot(places, [estimates[s] for s in states], "D", color=TIGHT, markersize=5, label="unbiased")
        axes.set_title(f"(ε, δ) = {label}")
        axes.set_xticks(places, states, fontsize=8.5)
        axes.grid(visible=False, axis="x")
    panels[0].set_ylabel("people in the ten largest states")
    plots.legend_below(figure, panels[0])


def _wrong(figure: Any, experiment: Experiment) -> None:
    axes = figure.subplots()
    series = [
        ("bound", "least share of any mechanism", QUIET, True),
        ("wrong", "randomized response, exact", TIGHT, True),
        ("wrong_observed", f"seen among {experiment.series['people']:,} people", TIGHT, False),
        ("wrong_printed", "seen, printed in the thesis", PRINTED, False),
    ]
    _draw_groups(axes, experiment, series, "{:.3f}".format)
    axes.set(ylabel="share of wrong answers", ylim=(0, 1.02))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _density(figure: Any, experiment: Experiment) -> None:
    panels = figure.subplots(1, 3)
    points, estimate = experiment.series["points"], experiment.series["estimate"]
    for axes, row, curves in zip(panels, experiment.rows, experiment.series["curves"], strict=True):
        axes.plot(points, experiment.series["truth"], color=QUIET, linewidth=5, label="the true density")
        axes.plot(points, estimate, "--", color=OBSERVED, linewidth=1.5, label="estimate without noise", zorder=4)
        axes.plot(points, curves.as_printed, color=PRINTED, linewidth=1.6, label="as printed: NOT PRIVATE")
        axes.plot(points[0], estimate[0], "o", color=PRINTED, markersize=8, markerfacecolor="white", zorder=5,
                  clip_on=False, linestyle="none", label="published without noise")  # fmt: skip
        axes.plot(points, curves.taught, color=TAUGHT, linewidth=1.6, label="taught, corrected")
        axes.plot(points, curves.tight, color=TIGHT, linewidth=2.2, label="tight")
        low, high = axes.get_ylim()
        axes.set(ylim=(low, high + 0.42 * (high - low)), xlim=(points[0], points[-1]), xlabel="x")
        axes.set_xticks(range(-1, 8, 2))
        axes.set_title(f"(ε, δ) = {row['promise']} claimed")
        kept = (
            (PRINTED, "δ = 1 as printed"),
            (PRINTED, f"δ = {round(row['delta_printed'], 4):g} its half noise alone"),
            (TAUGHT, f"δ = {round(row['delta_taught'], 4):g} taught, corrected"),
            (TIGHT, f"δ = {round(row['delta_tight'], 4):g} tight"),
        )
        for line, (color, words) in enumerate(kept):
            axes.text(0.04, 0.98 - 0.068 * line, words, transform=axes.transAxes, va="top", color=color, fontsize=9.5)
    panels[0].set_ylabel("density")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _repetition(figure: Any, experiment: Experiment) -> None:
    axes = figure.subplots()
    times, once = experiment.series["times"], experiment.series["once"]
    axes.axhspan(0, 0.4, color="#e9f3ea")
    axes.axhline(0.4, color="#2c8a57", linewidth=1.2)
    axes.text(12.3, 0.385, "promised: δ ≤ 0.4", color="#2c8a57", ha="right", va="top")
    axes.plot(times, experiment.series["fresh"], "-o", color=TAUGHT, label="fresh noise for every answer, exact")
    axes.plot(experiment.column("times"), experiment.column("delta_observed"), "x", color=OBSERVED,
              markersize=10, markeredgewidth=2, label="fresh noise, seen")  # fmt: skip
    axes.plot(times, [once] * len(times), "-s", color=TIGHT, markersize=5, label="noise drawn once, exact")
    axes.annotate("asked twice: 0.5098 > e^0.1 · 0.0818 + 0.4", (2, experiment.series["fresh"][1]), (4.4, 0.5),
                  fontsize=10, va="center", arrowprops={"arrowstyle": "-", "color": OBSERVED})  # fmt: skip
    axes.set(xlabel="times the same question is asked", ylabel="δ at ε = 0.1", ylim=(0.2, 1), xlim=(0.6, 12.4))
    axes.set_xticks(times)
    axes.legend(loc="upper left")


def _remark(figure: Any, experiment: Experiment) -> None:
    panels = figure.subplots(1, 2)
    first = experiment.rows[0]
    names = (("scale", "delta", "right_observed"), ("scale_remark", "delta_remark", "right_remark_observed"))
    for axes, keys, (_, low, high) in zip(panels, names, experiment.series["answers"], strict=True):
        scale, delta, right = (first[key] for key in keys)
        reach = max(4 * scale, 2200) / 1000
        bins = np.linspace(3 - reach, 3 + reach, 81)
        for salaries, color, name in ((low, TIGHT, "true salary $1504"), (high, TAUGHT, "true salary $4500")):
            axes.hist(salaries / 1000, bins, color=color, alpha=0.5, label=name)
        axes.set_title(
            f"b = {scale:,.{0 if scale > 100 else 1}f}: δ(0.1) = {delta:.3f}\n{100 * right:.0f}% of guesses are right"
        )
        axes.set(xlabel="noisy answer, thousands of dollars", yticks=[])
    panels[0].set_ylabel("how often")
    panels[0].text(0.02, 0.97, "taught", transform=panels[0].transAxes, va="top", fontweight="bold")
    panels[1].text(0.5, 0.97, "the remark", transform=panels[1].transAxes, va="top", ha="center", fontweight="bold")
    plots.legend_below(figure, panels[0])


def _distinguishing(figure: Any, experiment: Experiment) -> None:
    axes = figure.subplots()
    reach = np.geomspace(0.08, 4, 200)
    axes.plot(reach, np.minimum(1, reach), "--", color=TAUGHT, linewidth=2, label="taught: at most ε√k")
    limit = [math.erf(x / math.sqrt(8)) for x in reach]
    axes.plot(reach, limit, color=QUIET, linewidth=6, label="limit of many weak answers", zorder=1)
    for epsilon, marker, color in ((0.1, "o", TIGHT), (0.4, "s", "#2c8a57"), (1.6, "^", PRINTED)):
        rows = [row for row in experiment.rows if row["epsilon"] == epsilon]
        at = [row["reach"] for row in rows]
        axes.plot(at, [row["advantage"] for row in rows], marker=marker, color=color, linewidth=1.5,
                  markerfacecolor="none", markersize=10, label=f"exact, ε = {epsilon:g}")  # fmt: skip
        axes.plot(at, [row["advantage_observed"] for row in rows], "x", color=OBSERVED, markersize=7,
                  label="seen" if epsilon == 1.6 else None)  # fmt: skip
    ticks = sorted({round(row["reach"], 3) for row in experiment.rows})
    axes.set(xscale="log", xlabel="ε√k: one answer's ε, times the root of the number of answers", ylim=(0, 1.03))
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylabel("advantage over a coin in distinguishing 19 from 20")
    axes.legend(loc="upper left")


def _repeated(figure: Any, experiment: Experiment) -> None:
    axes = figure.subplots()
    sizes = experiment.series["sizes"]
    colors = ("#2c8a57", TIGHT, PRINTED)
    for (name, curve), color in zip(experiment.series["curves"].items(), colors, strict=True):
        rows = [row for row in experiment.rows if row["candidates"] == name]
        at = [row["rows"] for row in rows]
        axes.plot(sizes, [capped for _, capped in curve], color=color, linewidth=2, label=f"capped: {name}")
        axes.plot(at, [row["capped_observed"] for row in rows], "o", color=color, markersize=6)
        if curve[0][0] is not None:
            axes.plot(sizes, [lecture for lecture, _ in curve], "--", color=color, linewidth=2,
                      label=f"lecture's: {name}")  # fmt: skip
            axes.plot(at, [row["lecture_observed"] for row in rows], "o", color=color, markersize=6,
                      markerfacecolor="white")  # fmt: skip
    axes.set(xlabel="n, the number of rows", ylabel="P[answer is 0]", ylim=(-0.02, 1.03), xlim=(0, sizes[-1]))
    axes.legend(loc="lower right", title="score: candidates (points: seen)")


PICTURES: dict[str, Drawing] = {
    "table-2": _noise,
    "table-3": _answers,
    "table-4": _largest,
    "table-5": _truth,
    "table-6": _most_frequent,
    "table-7": _wrong,
    "figures-1-3": _density,
    "repetition": _repetition,
    "remark-7.3": _remark,
    "nineteen-or-twenty": _distinguishing,
    "repeated-values": _repeated,
}

"""Plots of learning, made from released values: accuracy against ε, and the loss after each step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_epsilon, significant
from discreet.extras import blank_figure, save_figure
from discreet.releases import below_title

LINE, INK, QUIET = "#1f6fb2", "#1c1c1c", "#e6e8eb"
_SIZE = (6.4, 4.2)


def plot_accuracy(
    scores: Mapping[Any, Any],
    *,
    not_private: float | None = None,
    measure: str = "accuracy",
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """Scores against ε as a matplotlib figure, saved at `path` if one is given.

    `scores` has for each ε the scores of several fits, as a list, or their mean and standard deviation, as a tuple.
    `not_private` is the score of a model without noise, drawn as a labeled line. Scores are drawn as given: scores
    computed on private rows are not private, whatever the model promises.
    """
    figure = blank_figure("plot_accuracy", size=_SIZE)
    if not isinstance(scores, Mapping) or not scores:
        raise InvalidArgument(
            "scores must map each ε to its scores, such as {0.1: [0.71, 0.69], 1: [0.84, 0.85]}.", code="wrong-type"
        )
    points = sorted((float(check_epsilon(epsilon)), *_mean_and_spread(given)) for epsilon, given in scores.items())
    epsilons, means, spreads = map(np.array, zip(*points, strict=True))
    axes = figure.subplots()
    label = "private: mean ± standard deviation" if spreads.any() else "private"
    axes.errorbar(
        epsilons, means, yerr=spreads if spreads.any() else None, color=LINE, ecolor=INK, elinewidth=1.1, capsize=4,
        marker="o", markersize=6, linewidth=1.8, label=label,
    )  # fmt: skip
    if not_private is not None:
        level = _number(not_private, "not_private")
        axes.axhline(level, color=INK, linestyle="--", linewidth=1.2, label="without noise: not private")
    axes.set_xscale("log")
    ticks = _apart(epsilons)
    axes.set_xticks(ticks, [f"{epsilon:.6g}" for epsilon in ticks])
    axes.minorticks_off()
    axes.set_xlabel("ε of one fit")
    axes.set_ylabel(_escape(measure))
    return _finish(figure, axes, title or f"{measure[:1].upper()}{measure[1:]} against ε", path)


def plot_learning_curve(model: Any, path: str | Path | None = None) -> Any:
    """The mean loss of a fitted model after each step, as a matplotlib figure, saved at `path` if one is given.

    It shows `model.learning_curve_`, which is computed from the noisy gradients that were released. No row is read
    again, and nothing is charged.
    """
    figure = blank_figure("plot_learning_curve", size=_SIZE)
    if not hasattr(type(model), "learning_curve_"):
        raise InvalidArgument(
            "This model has no learning curve. Pass one that learns in steps, such as LogisticRegression.",
            code="learn-no-curve",
        )
    curve = np.asarray(model.learning_curve_, dtype=np.float64)
    axes = figure.subplots()
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.plot(np.arange(len(curve)), curve, color=LINE, linewidth=1.8)
    axes.set_xlim(0, max(len(curve) - 1, 1))
    axes.locator_params(axis="x", integer=True)
    axes.set_xlabel("step")
    axes.set_ylabel("change of the mean loss since the start")
    title = f"{type(model).__name__} with {_promise(model)}\nThe loss, estimated from the noisy gradients"
    return _finish(figure, axes, title + below_title(model.release_), path)


def _promise(model: Any) -> str:
    """The released guarantee, to three digits, rounded up."""
    epsilon = significant(Fraction(model.release_.guarantee.epsilon_at(delta=model.delta)), up=True, digits=3)
    return f"ε = {float(epsilon):.6g}" + (f", δ = {float(model.delta):.6g}" if model.delta else "")


def _apart(epsilons: Any) -> list[float]:
    """The labels that do not overlap on a logarithmic axis."""
    kept: list[float] = []
    for epsilon in epsilons:
        if not kept or epsilon / kept[-1] >= (epsilons[-1] / epsilons[0]) ** 0.06:
            kept.append(float(epsilon))
    return kept


def _finish(figure: Any, axes: Any, title: str, path: str | Path | None) -> Any:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color=QUIET)
    axes.set_axisbelow(True)
    if axes.get_legend_handles_labels()[1]:
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(_escape(title), fontsize=11)
    return save_figure(figure, path)


def _mean_and_spread(given: Any) -> tuple[float, float]:
    """The mean and deviation of a list of scores, or the two numbers given in a tuple."""
    if isinstance(given, tuple) and len(given) == 2:
        mean, spread = _number(given[0], "A mean"), _number(given[1], "A standard deviation")
        if spread < 0:
            raise InvalidArgument(
                "A standard deviation must be at least 0. Write (mean, deviation).", code="out-of-range"
            )
        return mean, spread
    several = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | tuple)
    found = [_number(one, "A score") for one in (given if several else [given])]
    if not found:
        raise InvalidArgument("Every ε needs at least one score.", code="empty")
    return float(np.mean(found)), float(np.std(found, ddof=1)) if len(found) > 1 else 0.0


def _number(value: Any, what: str) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise InvalidArgument(f"{what} must be a finite number.", code="not-a-number")
    return found


def _escape(text: str) -> str:
    return text.replace("$", r"\$")  # matplotlib would typeset text between two dollar signs as a formula

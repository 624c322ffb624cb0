"""A plan as a plot: the width of answers by the number of questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.extras import blank_figure, save_figure

if TYPE_CHECKING:
    from discreet.adaptive.planning import StudyPlan

_INKS = {
    "gaussian": "#1f4e79",
    "laplace": "#6a9bd1",
    "taught": "#8e6bb0",
    "thresholdout": "#2a8c82",
    "compression": "#c0504d",
    "splitting": "#d9863d",
    "guess and check": "#7a9a3a",
    "Bonferroni": "black",
}
_LEGEND = "dots: a study, squares: a holdout\nfull: private, dashed: not private\ngray: published before"
_MARKERS = {"study": "o", "holdout": "s"}
_LINES = {"Jung et al. 2020, exact curve": "-", "Jung et al. 2020, as coded": "--", "Bassily et al. 2016": ":"}


def plan_plot(shown: StudyPlan, path: Any) -> Any:
    """Width by number of questions, both on logarithmic axes. Solid lines are private, dashed lines are not, and
    published widths are gray. A width of ½ or more is not drawn, because it carries no information.
    """
    figure = blank_figure("plan.plot", size=(4.4 * len(shown.n) + 3.0, 4.8))
    panels = figure.subplots(1, len(shown.n), sharey=True, squeeze=False)
    for n, panel in zip(shown.n, panels[0], strict=True):
        for method in shown.methods:
            _line(panel, method, [row for row in shown.rows if row["rows"] == n and row["method"] == method])
        panel.set(xscale="log", yscale="log", xlabel="questions", title=f"{n:,} rows")
        panel.set_xlim(shown.k[0] / 1.15, shown.k[-1] * 1.15)
        panel.title.set_fontsize(10)
        panel.minorticks_off()
        panel.grid(which="major", color="0.92")
        panel.spines[["top", "right"]].set_visible(False)
    least = min((row["width"] for row in shown.rows if row["useful"]), default=0.1)
    _ticks(panels[0][0], least)
    panels[0][0].set_ylabel(f"± on the population ({100 * shown.confidence:.6g}%)")
    lines = {line.get_label(): line for panel in panels[0] for line in panel.get_lines()}
    named = [method for method in shown.methods if method in lines]
    style: dict[str, Any] = {"frameon": False, "fontsize": 9, "title": _LEGEND, "alignment": "left"}
    figure.legend([lines[name] for name in named], named, loc="outside right center", title_fontsize=8, **style)
    return save_figure(figure, path)


def _line(panel: Any, method: str, rows: list[dict[str, Any]]) -> None:
    """The line of one method. A marker shows a line with a single useful point."""
    useful = [row for row in rows if row["useful"]]
    if not useful:
        return
    private, kind = useful[0]["private"], useful[0]["kind"]
    style: dict[str, Any] = {"color": _INKS.get(method, "0.65"), "linewidth": 1.8, "label": method}
    style |= {"linestyle": "-" if private else "--", "marker": _MARKERS.get(kind, ""), "markersize": 4}
    if kind == "published":
        style |= {"linewidth": 1.2, "linestyle": _LINES[method], "zorder": 1}
    if kind == "floor":
        style |= {"linewidth": 1.2, "linestyle": ":"}
    panel.plot([row["questions"] for row in useful], [row["width"] for row in useful], **style)


def _ticks(panel: Any, least: float) -> None:
    """Plain decimals, up to the half at which a width says nothing."""
    low = least / 1.15
    marks = [digit / 10**power for power in (1, 2, 3, 4) for digit in (5, 2, 1) if digit / 10**power >= low]
    panel.set_ylim(low, 0.5)
    panel.set_yticks(marks, labels=[f"{mark:g}" for mark in marks])
    panel.minorticks_off()

"""The look that the pictures of all stories share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from discreet.errors import InvalidArgument
from discreet.extras import need

PRIVATE, BAND, TRUTH, WRONG, INK = "#1f6fb2", "#a9cbe8", "#9aa0a8", "#d1701b", "#1c1c1c"
BARS = {"ecolor": INK, "elinewidth": 1.3, "capsize": 4, "capthick": 1.3}
_LOOK = {
    "font.size": 11,
    "axes.titlesize": 11.5,
    "axes.labelsize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e8eb",
    "legend.frameon": False,
    "legend.fontsize": 10,
}


def save(path: Path, title: str, draw: Callable[[Any], None]) -> Path:
    """Have `draw` fill a figure, and write it as PNG; the folder is made where it is missing."""
    matplotlib = need("matplotlib", "plot", "The picture")
    figures = need("matplotlib.figure", "plot", "The picture")
    with matplotlib.rc_context(_LOOK):
        figure = figures.Figure(figsize=(9, 5), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
        figure.suptitle(title, fontsize=13, fontweight="bold")
        draw(figure)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=130)
        except OSError as error:
            raise InvalidArgument(f"{path} cannot be written: {error.strerror}. Name a folder with --out.") from None
    return path


def bars_with_truth(panel: Any, names: list[str], values: Any, errors: Any, truth: Any) -> None:
    """Private numbers as bars with their error bars, and the truth beside the middle of each."""
    places = range(len(names))
    panel.bar(places, values, 0.66, color=BAND, yerr=errors, error_kw=BARS, label="private answer, ± 95%")
    style = {"color": TRUTH, "markeredgecolor": INK, "markersize": 6, "linestyle": "none"}
    panel.plot([place + 0.19 for place in places], truth, "D", label="truth (only a demo can show it)", **style)
    panel.axhline(0, color=INK, linewidth=0.8)
    panel.set_xticks(places, names)
    panel.grid(visible=False, axis="x")


def legend_below(figure: Any, panel: Any) -> None:
    """One legend for the whole figure."""
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))

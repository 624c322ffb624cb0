"""The styles that plots share: one for demos and experiments, and a light and a dark one for answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.extras import need

INK, BLUE, ORANGE = "#1c1c1c", "#1f6fb2", "#d1701b"
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


@dataclass(frozen=True)
class Style:
    """The colors of a plot. `series` can be told apart by people who are color-blind."""

    paper: str
    ink: str
    bar: str
    pale: str
    series: tuple[str, ...]


STYLES = {
    "light": Style(
        paper="#ffffff",
        ink="#1c1c1c",
        bar="#8db8dc",
        pale="#e6e8eb",
        series=("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7f00", "#555555"),
    ),
    "dark": Style(
        paper="#16181c",
        ink="#e4e6eb",
        bar="#4f8fc4",
        pale="#30343b",
        series=("#56b4e9", "#e69f00", "#2fc796", "#e39ac4", "#f0e442", "#ef7d35", "#9db4ff", "#b9bcc4"),
    ),
}


def save(path: Path, title: str, draw: Callable[[Any], None], *, height: float = 5, what: str = "The picture") -> Path:
    """Let `draw` fill a figure, and save it as PNG. The folder is created if missing. `what` needs matplotlib."""
    matplotlib = need("matplotlib", "plot", what)
    figures = need("matplotlib.figure", "plot", what)
    with matplotlib.rc_context(_LOOK):
        figure = figures.Figure(figsize=(9, height), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
        figure.suptitle(title, fontsize=13, fontweight="bold")
        draw(figure)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)
    return path


def legend_below(figure: Any, panel: Any) -> None:
    """One legend for the whole figure."""
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)))

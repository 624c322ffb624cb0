"""The style and the common parts of the plots of all demos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from discreet import plots
from discreet.errors import InvalidArgument

PRIVATE, BAND, TRUTH, WRONG, INK = plots.BLUE, "#a9cbe8", "#9aa0a8", plots.ORANGE, plots.INK
BARS = {"ecolor": INK, "elinewidth": 1.3, "capsize": 4, "capthick": 1.3}


def save(path: Path, title: str, draw: Callable[[Any], None]) -> Path:
    """Let `draw` fill a figure, and write it as PNG."""
    try:
        return plots.save(path, title, draw)
    except OSError as error:
        raise InvalidArgument(
            f"{path} cannot be written: {error.strerror}. Name a folder with --out.", code="file-not-writable"
        ) from None


def bars_with_truth(panel: Any, names: list[str], values: Any, errors: Any, truth: Any) -> None:
    """Private numbers as bars with error bars, and the truth next to the middle of each bar."""
    places = range(len(names))
    panel.bar(places, values, 0.66, color=BAND, yerr=errors, error_kw=BARS, label="private answer, ± 95%")
    style = {"color": TRUTH, "markeredgecolor": INK, "markersize": 6, "linestyle": "none"}
    panel.plot([place + 0.19 for place in places], truth, "D", label="truth (only a demo can show it)", **style)
    panel.axhline(0, color=INK, linewidth=0.8)
    panel.set_xticks(places, names)
    panel.grid(visible=False, axis="x")

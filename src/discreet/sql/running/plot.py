"""An answer as a plot: bars with error bars, and one panel for each noisy number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.extras import blank_figure
from discreet.releases import below_title

if TYPE_CHECKING:
    from discreet.sql.running.answer import Answer

BAR, INK = "#8db8dc", "#1c1c1c"
MOST_BARS = 300
"""More groups than that are no picture."""
_LONGEST = 40
"""The largest number of characters of a label. Longer ones are shortened."""


def plot_answer(answer: Answer, *, confidence: float) -> Any:
    """The answer as a matplotlib figure: groups in the order of the answer, each with its interval.

    A few groups with short names are drawn side by side. Many groups are drawn below one another, so that their names
    can be read.
    """
    table = answer.with_errors(confidence)
    keys = [name for name in answer.names if name not in answer.noisy]
    panels = [name for name in answer.noisy if str(table.column(name).type) in ("int64", "double")]
    if not panels:
        raise InvalidArgument(
            "The answer has no numbers to draw. Ask for an aggregate, such as COUNT(*).", code="plot-no-numbers"
        )
    if table.num_rows > MOST_BARS:
        raise InvalidArgument(
            f"The answer has more than {MOST_BARS} groups. Draw fewer, with ORDER BY and LIMIT.", code="too-large"
        )
    labels = [_label(", ".join(_label_of(row[key]) for key in keys)) for row in table.to_pylist()]
    widest = max(map(len, labels), default=0)
    lying = len(labels) * (widest + 2) > 90
    side_by_side = lying or not keys
    rows, columns = (1, len(panels)) if side_by_side else (len(panels), 1)
    figure = blank_figure("answer.plot", size=_size(len(labels), widest, len(panels), keys, lying=lying))
    axes_of = figure.subplots(rows, columns, squeeze=False, sharex=not side_by_side, sharey=lying).flat
    for axes, name in zip(axes_of, panels, strict=True):
        values, errors = (table.column(c).cast("float64").to_numpy() for c in (name, f"{name}_error"))
        size, word = _scale(values)
        title = name if np.isfinite(errors).any() or not labels else f"{name} (error not known)"
        _bars(axes, labels, values / size, errors / size, _escape(title) + word, lying=lying)
        axes.spines[["top", "right"]].set_visible(False)
        if not labels:
            axes.text(0.5, 0.6, "no group is shown", ha="center", transform=axes.transAxes)
            axes.set_yticks([])
    if keys:
        (figure.supylabel if lying else figure.supxlabel)(_escape(", ".join(keys)), fontsize=10)
    figure.suptitle(f"Private answers with {100 * confidence:.6g}% intervals{below_title(answer)}", fontsize=11)
    return figure


def _size(groups: int, widest: int, panels: int, keys: list[str], *, lying: bool) -> tuple[float, float]:
    """Width and height in inches, with room for every label."""
    if lying:
        return 1.4 + 0.08 * widest + 3.6 * panels, 1.4 + 0.24 * groups
    return (max(6.4, 1.5 + 0.7 * groups), 0.6 + 2.8 * panels) if keys else (3.4 * panels, 3.4)


def _bars(axes: Any, labels: list[str], values: Any, errors: Any, title: str, *, lying: bool) -> None:
    style = {"color": BAR, "ecolor": INK, "error_kw": {"elinewidth": 1.1}}
    places = np.arange(len(labels))
    if lying:
        axes.barh(places, values, 0.7, xerr=errors, capsize=2, **style)
        axes.set_yticks(places, labels, fontsize=9)
        axes.set_ylim(len(labels) - 0.4, -0.6)  # the first group on top
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.xaxis.set_major_formatter(_number)
        axes.locator_params(axis="x", nbins=6)
        axes.set_xlabel(title)
    else:
        axes.bar(places, values, 0.6, yerr=errors, capsize=4, **style)
        axes.set_xticks(places, labels)
        axes.set_xlim(-0.8, max(len(labels), 1) - 0.2)
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.yaxis.set_major_formatter(_number)
        axes.set_ylabel(title)


def _scale(values: Any) -> tuple[float, str]:
    """The unit of an axis, chosen so that its numbers are short."""
    largest = np.abs(values[np.isfinite(values)]).max(initial=0)
    units = ((1e12, ", in trillions"), (1e9, ", in billions"), (1e6, ", in millions"), (1.0, ""))
    return next((size, word) for size, word in units if largest >= size or size == 1)


def _number(value: float, _: int | None = None) -> str:
    return f"{value:,.10g}"


def _label_of(value: Any) -> str:
    return "(none)" if value is None else str(value)


def _label(text: str) -> str:
    return _escape(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


def _escape(text: str) -> str:
    return text.replace("$", r"\$")  # matplotlib would typeset text between two dollar signs as a formula

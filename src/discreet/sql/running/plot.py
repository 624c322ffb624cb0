"""An answer as a plot, with one panel for each noisy number: bars with error bars, or lines with bands over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.drawing import CUT, span_of
from discreet.errors import InvalidArgument
from discreet.extras import blank_figure, need
from discreet.plots import STYLES, Style
from discreet.releases import below_title

if TYPE_CHECKING:
    from discreet.sql.running.answer import Answer

MOST_BARS = 300
"""More groups than that are no picture."""
MOST_POINTS = 10_000
"""More points than that are no line."""
MOST_SERIES = 8
"""More values of a second key than that are told apart by their names only."""
MOST_TICKS = 40
"""More values of a first key than that are drawn below one another."""
_LONGEST = 40
"""The largest number of characters of a label. Longer ones are shortened."""


def plot_answer(answer: Answer, *, confidence: float, style: str = "light") -> Any:
    """The answer as a matplotlib figure, each number with its interval.

    Over dates or times, numbers are lines with bands: one line, or one for each value of a second key. Two keys are
    grouped bars. Other groups are bars in the order of the answer. A few groups with short names are drawn side by
    side. Many groups are drawn below one another, so that their names can be read.
    """
    if not isinstance(style, str) or style not in STYLES:
        raise InvalidArgument(f"style must be {' or '.join(map(repr, STYLES))}.", code="not-an-option")
    look = STYLES[style]
    table, noisy = answer.with_errors(confidence), answer.noisy
    kinds = {name: str(table.column(name).type) for name in answer.names if name not in noisy}
    kinds = {name: kind for name, kind in kinds.items() if not kind.startswith("list")}
    panels = [name for name in noisy if str(table.column(name).type) in ("int64", "double")]
    if not panels:
        raise InvalidArgument(
            "The answer has no numbers to draw. Ask for an aggregate, such as COUNT(*).", code="plot-no-numbers"
        )
    rows = table.select(list(kinds)).to_pylist() if table.num_rows <= MOST_POINTS else None
    for name, summed in answer.summed.items() if rows is not None else ():
        for place in np.flatnonzero(summed):
            rows[place][name] = _ALL  # type: ignore[index]
    line = None if rows is None else _lines_of(rows, kinds)
    if rows is None or (line is None and table.num_rows > MOST_BARS):
        most = MOST_POINTS if rows is None else MOST_BARS
        raise InvalidArgument(
            f"The answer has more than {most:,} groups. Draw fewer, with ORDER BY and LIMIT.", code="too-large"
        )
    columns = {name: _column(table, name, answer.names, zero=line is None) for name in panels}
    bars = None if line is not None else _grouped(rows, kinds)
    if line is not None:
        figure = _draw_lines(line, columns, look)
    elif bars is not None:
        figure = _draw_grouped(bars, columns, look)
    else:
        figure = _draw_bars([[row[key] for key in kinds] for row in rows], list(kinds), columns, look)
    title = f"Private answers with {100 * confidence:.6g}% intervals{below_title(answer)}"
    if any(column.span is not None for column in columns.values()):
        title += f"\n{CUT}"
    figure.suptitle(title, fontsize=11, color=look.ink)
    return figure


@dataclass(frozen=True)
class _Column:
    """A noisy column: its values, how far its intervals reach below and above them (two lines), in the unit of the
    axis, and the title of the axis. `span` is what the axis shows, if it cuts an interval that is much longer.
    """

    values: Any
    errors: Any
    title: str
    span: tuple[float, float] | None = None

    def cut(self, axes: Any, at: Any, places: Any, look: Style, *, lying: bool = False) -> None:
        """Limit an axis to its span, and mark where intervals leave it. `at` is where these rows are on the other."""
        if self.span is None:
            return
        low, high = self.span
        room = 0.05 * (high - low)
        low, high = low - room * (low != 0), high + room * (high != 0)
        (axes.set_xlim if lying else axes.set_ylim)(low, high)
        values, (below, above) = self.values[places], self.errors[:, places]
        at = np.asarray(at)
        for edge, outside, tip in (
            (low, values - below < low, "<" if lying else "v"),
            (high, values + above > high, ">" if lying else "^"),
        ):
            ends = np.full(outside.sum(), edge)
            where = (ends, at[outside]) if lying else (at[outside], ends)
            axes.plot(*where, tip, color=look.ink, markersize=6, clip_on=False, zorder=5)


def _column(table: Any, name: str, names: Sequence[str], *, zero: bool) -> _Column:
    """A column, on an axis with `zero` in it or without."""

    def numbers(column: str) -> Any:
        return table.column(column).cast("float64").to_numpy()

    values, ends = numbers(name), (f"{name}_low", f"{name}_high")
    if {*ends} <= {*table.column_names} - {*names}:  # a quantile: its interval may be longer on one side
        errors = np.maximum(np.stack([values - numbers(ends[0]), numbers(ends[1]) - values]), 0.0)
    else:
        errors = np.stack([numbers(f"{name}_error")] * 2)
    size, word = _scale(values)
    known = np.isfinite(errors).any() or not len(values)
    title = _escape(name if known else f"{name} (error not known)") + word
    values, errors = values / size, errors / size
    reached = np.stack([values - errors[0], values + errors[1]])
    finite = reached[:, np.isfinite(reached).all(axis=0)]
    low, high = span_of([*[0.0] * zero, *values.tolist()], map(tuple, finite.T.tolist()))
    is_cut = bool(((finite[0] < low) | (finite[1] > high)).any())
    return _Column(values, errors, title, (low, high) if is_cut else None)


def _panel(axes: Any, look: Style) -> None:
    """The look of a panel, after it is drawn."""
    axes.set_facecolor(look.paper)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(look.ink)
    axes.tick_params(colors=look.ink)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(look.ink)


def _sheet(size: tuple[float, float], look: Style) -> Any:
    figure = blank_figure("answer.plot", size=size)
    figure.set_facecolor(look.paper)
    return figure


def _legend(figure: Any, axes: Any, title: str, look: Style) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 1 or title:
        legend = figure.legend(
            handles, labels, title=_escape(title), loc="outside right upper", frameon=False, labelcolor=look.ink
        )
        legend.get_title().set_color(look.ink)


# --- lines over time ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lines:
    """Each line with its label: the rows of the answer that are on it, in the order of time."""

    time: str
    key: str
    at: list[Any]
    places: list[tuple[str, list[int]]]


def _lines_of(rows: list[dict[str, Any]], kinds: Mapping[str, str]) -> _Lines | None:
    """The lines of an answer over time. None if its groups are no points in time."""
    times = [name for name, kind in kinds.items() if kind.startswith(("date", "timestamp"))]
    others = [name for name in kinds if name not in times]
    if len(times) != 1 or len(others) > 1 or any(row[times[0]] in (None, _ALL) for row in rows):
        return None
    at, places = [row[times[0]] for row in rows], dict[Any, list[int]]()
    for place, row in enumerate(rows):
        places.setdefault(row[others[0]] if others else None, []).append(place)
    if len(places) > MOST_SERIES or max(map(len, places.values()), default=0) < 2:
        return None
    shown = [
        (_label(_label_of(value)) if others else "", sorted(own, key=lambda place: at[place]))
        for value, own in places.items()
    ]
    return _Lines(times[0], others[0] if others else "", at, shown)


def _draw_lines(line: _Lines, columns: dict[str, _Column], look: Style) -> Any:
    dates = need("matplotlib.dates", "plot", "answer.plot")
    figure = _sheet((8.4 if line.key else 7.6, 0.7 + 2.7 * len(columns)), look)
    panels = figure.subplots(len(columns), 1, squeeze=False, sharex=True).flat
    for axes, column in zip(panels, columns.values(), strict=True):
        for color, (label, places) in zip(look.series, line.places, strict=False):
            at = [line.at[place] for place in places]
            values, (below, above) = column.values[places], column.errors[:, places]
            marker = {"marker": "o", "markersize": 3} if len(places) <= 60 else {}
            axes.plot(at, values, color=color, linewidth=1.6, label=label or None, **marker)
            axes.fill_between(at, values - below, values + above, color=color, alpha=0.22, linewidth=0)
            column.cut(axes, at, places, look)
        axes.grid(color=look.pale)
        axes.set_axisbelow(True)
        axes.set_ylabel(column.title)
        axes.yaxis.set_major_formatter(_number)
        locator = dates.AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        axes.xaxis.get_offset_text().set_color(look.ink)
        _panel(axes, look)
    axes.set_xlabel(_escape(line.time))
    if line.key:
        _legend(figure, axes, line.key, look)
    return figure


# --- bars -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Grouped:
    """The place of each pair of values in the answer: the first key is on the axis, the second has colors."""

    first: str
    second: str
    labels: list[str]
    series: list[tuple[str, dict[int, int]]]


def _grouped(rows: list[dict[str, Any]], kinds: Mapping[str, str]) -> _Grouped | None:
    """The bars of an answer with two keys. None if it has not two, or if they are too many for a picture."""
    if len(kinds) != 2:
        return None
    first, second = kinds
    ticks = {value: tick for tick, value in enumerate(dict.fromkeys(row[first] for row in rows))}
    series: dict[Any, dict[int, int]] = {}
    for place, row in enumerate(rows):
        series.setdefault(row[second], {})[ticks[row[first]]] = place
    if not 2 <= len(series) <= MOST_SERIES or not 2 <= len(ticks) <= MOST_TICKS:
        return None
    shown = [(_label(_label_of(value)), at) for value, at in series.items()]
    return _Grouped(first, second, [_label(_label_of(value)) for value in ticks], shown)


def _draw_grouped(bars: _Grouped, columns: dict[str, _Column], look: Style) -> Any:
    widest = max(map(len, bars.labels))
    inches = max(6.4, 2.4 + len(bars.labels) * max(0.24 * len(bars.series) + 0.3, 0.09 * min(widest, 12)))
    figure = _sheet((min(inches, 16), 0.7 + 2.8 * len(columns)), look)
    panels = figure.subplots(len(columns), 1, squeeze=False, sharex=True).flat
    width = 0.8 / len(bars.series)
    for axes, column in zip(panels, columns.values(), strict=True):
        for number, (color, (label, at)) in enumerate(zip(look.series, bars.series, strict=False)):
            where = np.array(list(at)) + (number - (len(bars.series) - 1) / 2) * width
            places = list(at.values())
            axes.bar(
                where,
                column.values[places],
                width * 0.92,
                yerr=column.errors[:, places],
                label=label,
                color=color,
                ecolor=look.ink,
                capsize=2,
                error_kw={"elinewidth": 1},
            )
            column.cut(axes, where, places, look)
        turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if len(bars.labels) * widest > 90 else {}
        axes.set_xticks(range(len(bars.labels)), bars.labels, **turned)
        axes.axhline(0, color=look.ink, linewidth=0.8)
        axes.yaxis.set_major_formatter(_number)
        axes.set_ylabel(column.title)
        _panel(axes, look)
    axes.set_xlabel(_escape(bars.first))
    _legend(figure, axes, bars.second, look)
    return figure


def _draw_bars(groups: list[list[Any]], keys: list[str], columns: dict[str, _Column], look: Style) -> Any:
    labels = [_label(", ".join(map(_label_of, group))) for group in groups]
    widest = max(map(len, labels), default=0)
    lying = len(labels) * (widest + 2) > 90
    side_by_side = lying or not keys
    across = (1, len(columns)) if side_by_side else (len(columns), 1)
    figure = _sheet(_size(len(labels), widest, len(columns), keys, lying=lying), look)
    panels = figure.subplots(*across, squeeze=False, sharex=not side_by_side, sharey=lying).flat
    for axes, column in zip(panels, columns.values(), strict=True):
        _bars(axes, labels, column, look, lying=lying)
        _panel(axes, look)
        if not labels:
            axes.text(0.5, 0.6, "no group is shown", ha="center", transform=axes.transAxes, color=look.ink)
            axes.set_yticks([])
    if keys:
        (figure.supylabel if lying else figure.supxlabel)(_escape(", ".join(keys)), fontsize=10, color=look.ink)
    return figure


def _size(groups: int, widest: int, panels: int, keys: list[str], *, lying: bool) -> tuple[float, float]:
    """Width and height in inches, with room for every label."""
    if lying:
        return 1.4 + 0.08 * widest + 3.6 * panels, 1.4 + 0.24 * groups
    return (max(6.4, 1.5 + 0.7 * groups), 0.6 + 2.8 * panels) if keys else (3.4 * panels, 3.4)


def _bars(axes: Any, labels: list[str], column: _Column, look: Style, *, lying: bool) -> None:
    style = {"color": look.bar, "ecolor": look.ink, "error_kw": {"elinewidth": 1.1}}
    places = np.arange(len(labels))
    if lying:
        axes.barh(places, column.values, 0.7, xerr=column.errors, capsize=2, **style)
        axes.set_yticks(places, labels, fontsize=9)
        axes.set_ylim(len(labels) - 0.4, -0.6)  # the first group on top
        axes.axvline(0, color=look.ink, linewidth=0.8)
        axes.xaxis.set_major_formatter(_number)
        axes.locator_params(axis="x", nbins=6)
        axes.set_xlabel(column.title)
        column.cut(axes, places, places, look, lying=True)
    else:
        axes.bar(places, column.values, 0.6, yerr=column.errors, capsize=4, **style)
        axes.set_xticks(places, labels)
        axes.set_xlim(-0.8, max(len(labels), 1) - 0.2)
        axes.axhline(0, color=look.ink, linewidth=0.8)
        axes.yaxis.set_major_formatter(_number)
        axes.set_ylabel(column.title)
        column.cut(axes, places, places, look)


def _scale(values: Any) -> tuple[float, str]:
    """The unit of an axis, chosen so that its numbers are short."""
    largest = np.abs(values[np.isfinite(values)]).max(initial=0)
    units = ((1e12, ", in trillions"), (1e9, ", in billions"), (1e6, ", in millions"), (1.0, ""))
    return next((size, word) for size, word in units if largest >= size or size == 1)


def _number(value: float, _: int | None = None) -> str:
    return f"{value:,.10g}"


class _All:
    """Stands for a key that a row is the sum over."""

    def __str__(self) -> str:
        return "(all)"


_ALL = _All()


def _label_of(value: Any) -> str:
    return "(none)" if value is None else str(value)


def _label(text: str) -> str:
    return _escape(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


def _escape(text: str) -> str:
    return text.replace("$", r"\$")  # matplotlib would typeset text between two dollar signs as a formula

"""Answers as pictures: bars with whiskers, lines with bands, and one panel for each measure or second key.

What kind of picture it is follows from the types of the columns and the number of rows. All of it was released.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.drawing import CUT, Drawing, Point, Scale, round_numbers, short_number, span_of

MOST_BARS = 40
"""More bars than that cannot be read: the first ones are drawn."""
MOST_POINTS = 1000
MOST_PANELS = 12
_FEWEST_POINTS = 3
"""Fewer points than that are bars."""
_LONGEST = 22
"""Characters of a label."""
WIDE, NARROW = 680.0, 360.0
"""How wide pictures are: for screens, and for phones."""
_GAP, _MARGIN = 28.0, 10.0
_ROW, _HEAD, _FOOT, _HIGH = 22.0, 24.0, 26.0, 190.0
STYLES = """
.picture{--paper:#fff;--ink:#1b2422;--pale:#56635f;--line:#d5dcd9;--one:#175e54;--band:#175e5426;background:var(--paper)}
@media (prefers-color-scheme:dark){
.picture{--paper:#1a211f;--ink:#e6ecea;--pale:#a3b0ac;--line:#34403c;--one:#6fd0bd;--band:#6fd0bd33}}
"""
LIGHT = STYLES.split("@media")[0]
SHAPES = """
.paper{fill:var(--paper)}text{fill:var(--ink);font:12px system-ui,"DejaVu Sans",sans-serif}.label.pale{fill:var(--pale)}
.axis{stroke:var(--pale);stroke-width:1}.grid{stroke:var(--line);stroke-width:1}.bar{fill:var(--one);fill-opacity:.75}
.curve{fill:none;stroke:var(--one);stroke-width:2}.band{fill:var(--band)}.whisker{stroke:var(--ink);stroke-width:1.5}
.dot{fill:var(--one)}.cut{fill:var(--ink)}.title{font-weight:600}
"""
"""How a picture looks that is a file of its own. On a page, the stylesheet says it."""


@dataclass(frozen=True)
class Key:
    """A column of groups. `ordered` if its type has an order to draw along: dates, times and numbers."""

    name: str
    ordered: bool
    values: Sequence[Any]


@dataclass(frozen=True)
class Measure:
    """A column of noisy numbers, with both ends of each interval. None where there is no number."""

    name: str
    values: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]


@dataclass(frozen=True)
class Panel:
    """One part of a picture: a title, and the rows of one measure in it."""

    title: str
    measure: Measure
    rows: tuple[int, ...]


def draw_chart(
    keys: Sequence[Key], measures: Sequence[Measure], *, title: str, confidence: float = 0.95, width: float = WIDE
) -> Drawing | None:
    """The picture of an answer. None if there is nothing to draw."""
    count = len(measures[0].values) if measures else 0
    if not count:
        return None
    along, across = _arranged(keys, count)
    panels, left_out = _panels(measures, across, count)
    lines = along is not None and along.ordered and all(_is_line(along, panel) for panel in panels)
    about = f"Private numbers with {100 * confidence:.6g}% intervals, {'as lines' if lines else 'as bars'}."
    if lines:
        assert along is not None
        return _draw_panels([_Lines(panel, along, panels) for panel in panels], width, title, about, [left_out])
    names = [""] * count if along is None else [_label(value) for value in along.values]
    cut = max(len(panel.rows) for panel in panels) > MOST_BARS
    bars = [_Bars(panel, names, panels) for panel in panels]
    most = f"The first {MOST_BARS} groups are drawn. The table has all." if cut else ""
    return _draw_panels(bars, width, title, about, [most, left_out])


def svg_file(drawing: Drawing, *, only_light: bool = False) -> str:
    """A picture as a file of its own."""
    styles = (LIGHT if only_light else STYLES) + SHAPES
    text = drawing.svg(styles=" ".join(styles.split("\n")).strip())
    size = f'<svg width="{drawing.width:g}" height="{drawing.height:g}" '
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + text.replace("<svg ", size, 1)


# --- what is drawn where ----------------------------------------------------------------------------------


def _arranged(keys: Sequence[Key], count: int) -> tuple[Key | None, Key | None]:
    """The key along an axis, and the key that has one panel for each value."""
    if not keys:
        return None, None
    if len(keys) == 1:
        return keys[0], None
    first, second = sorted(keys[:2], key=lambda key: (not key.ordered, -len(set(map(str, key.values)))))
    if len(keys) > 2:
        joined = [" · ".join(_label(key.values[row]) for key in keys) for row in range(count)]
        return Key(" · ".join(key.name for key in keys), False, joined), None
    return first, second


def _panels(measures: Sequence[Measure], across: Key | None, count: int) -> tuple[list[Panel], str]:
    """The panels, and what is left out because there would be too many."""
    everything = tuple(range(count))
    if across is None:
        found = [Panel(measure.name, measure, everything) for measure in measures]
    else:
        groups: dict[str, list[int]] = {}
        for row in everything:
            groups.setdefault(_label(across.values[row]), []).append(row)
        found = [
            Panel(name if len(measures) == 1 else f"{measure.name}, {name}", measure, tuple(rows))
            for measure in measures
            for name, rows in groups.items()
        ]
    more = len(found) - MOST_PANELS
    return found[:MOST_PANELS], f"{more:,} more panels are not drawn." if more > 0 else ""


def _is_line(along: Key, panel: Panel) -> bool:
    places = [along.values[row] for row in panel.rows]
    fine = _FEWEST_POINTS <= len(places) <= MOST_POINTS and all(_is_place(one) for one in places)
    return fine and len(set(places)) == len(places)


def _is_place(value: Any) -> bool:
    return _place(value) is not None


def _place(value: Any) -> float | None:
    """Where a date, a time or a number is on an axis."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.UTC).timestamp()
    if isinstance(value, datetime.date):
        return float(value.toordinal()) * 86_400
    fine = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if fine else None


def _label(value: Any) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, datetime.datetime) and not (value.hour or value.minute or value.second):
        value = value.date()
    text = f"{value:,.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _span(panels: Sequence[Panel], measure: Measure) -> tuple[float, float]:
    """The same axis for all panels of one measure. It has zero in it, and all intervals but those that are cut."""
    rows = [row for panel in panels if panel.measure is measure for row in panel.rows[:MOST_POINTS]]
    values = [value for row in rows if (value := measure.values[row]) is not None]
    low, high = span_of([0.0, *values], [ends for row in rows if (ends := _ends(measure, row)) is not None])
    if low == high:
        return 0.0, 1.0
    room = (high - low) * 0.04
    return (low - room if low < 0 else 0.0), (high + room if high > 0 else 0.0)


def _ends(measure: Measure, row: int) -> tuple[float, float] | None:
    """Both ends of an interval. None if one of them is not known."""
    low, high = measure.low[row], measure.high[row]
    return (low, high) if low is not None and high is not None and _known(low) and _known(high) else None


# --- panels -----------------------------------------------------------------------------------------------


def _is_cut(measure: Measure, rows: Sequence[int], span: tuple[float, float]) -> bool:
    """Whether an interval leaves the axis."""
    ends = [ends for row in rows if (ends := _ends(measure, row)) is not None]
    return any(low < span[0] or high > span[1] for low, high in ends)


class _Bars:
    """Bars to the right of their names, with whiskers."""

    def __init__(self, panel: Panel, names: Sequence[str], panels: Sequence[Panel]) -> None:
        self._panel, self._names = panel, names
        self._rows = panel.rows[:MOST_BARS]
        self._span = _span(panels, panel.measure)
        self.height = _HEAD + _ROW * len(self._rows) + _FOOT

    def is_cut(self) -> bool:
        """Whether an error bar is longer than the picture."""
        return _is_cut(self._panel.measure, self._rows, self._span)

    def draw(self, drawing: Drawing, corner: Point, width: float) -> None:
        """Draw it into its place."""
        longest = max((len(self._names[row]) for row in self._rows), default=0)
        left = corner.x + min(width * 0.42, 8 + 6.8 * longest)
        scale = Scale(*self._span, left, corner.x + width - 14)
        top, bottom = corner.y + _HEAD, corner.y + _HEAD + _ROW * len(self._rows)
        drawing.text(Point(corner.x, corner.y + 12), _title(self._panel.title), "label title")
        for tick in scale.ticks(max(3, int(width / 90))):
            drawing.line(Point(scale(tick), top), Point(scale(tick), bottom), "grid")
            drawing.text(Point(scale(tick), bottom + 15), short_number(tick), "label pale", anchor="middle")
        for number, row in enumerate(self._rows):
            self._draw_bar(drawing, row, top + _ROW * number, left, scale)
        drawing.line(Point(scale(0.0), top), Point(scale(0.0), bottom), "axis")

    def _draw_bar(self, drawing: Drawing, row: int, top: float, left: float, scale: Scale) -> None:
        measure, name = self._panel.measure, self._names[row]
        value, low, high = measure.values[row], measure.low[row], measure.high[row]
        middle = top + _ROW / 2
        drawing.text(Point(left - 8, middle + 4), name, anchor="end")
        if value is None or not math.isfinite(value):
            drawing.text(Point(scale(0.0) + 6, middle + 4), "–", "label pale")
            return
        sides = sorted((scale(0.0), scale(value)))
        drawing.box(Point(sides[0], top + 4), sides[1] - sides[0], _ROW - 8, "bar", about=_said(name, value, low, high))
        if (ends := _ends(measure, row)) is not None:
            drawing.line(Point(scale(ends[0]), middle), Point(scale(ends[1]), middle), "whisker")
            for end in ends:
                if scale.low <= end <= scale.high:
                    drawing.line(Point(scale(end), middle - 4), Point(scale(end), middle + 4), "whisker")
                else:
                    inwards = scale(end) + (8 if end < scale.low else -8)
                    tip = [Point(inwards, middle - 5), Point(scale(end), middle), Point(inwards, middle + 5)]
                    drawing.path(tip, "cut", closed=True)


class _Lines:
    """A line over an ordered key, with the band of its intervals."""

    height = _HEAD + _HIGH + _FOOT

    def __init__(self, panel: Panel, along: Key, panels: Sequence[Panel]) -> None:
        self._panel, self._along = panel, along
        self._rows = sorted(panel.rows, key=lambda row: _place(along.values[row]) or 0.0)
        self._span = _span(panels, panel.measure)
        everywhere = [_place(along.values[row]) or 0.0 for one in panels for row in one.rows]
        self._reach = (min(everywhere), max(everywhere))

    def is_cut(self) -> bool:
        """Whether a band is higher than the picture."""
        return _is_cut(self._panel.measure, self._rows, self._span)

    def draw(self, drawing: Drawing, corner: Point, width: float) -> None:
        """Draw it into its place."""
        top, bottom = corner.y + _HEAD, corner.y + _HEAD + _HIGH
        vertical = Scale(*self._span, bottom, top)
        across = Scale(*self._reach, corner.x + 52, corner.x + width - 16)
        drawing.text(Point(corner.x, corner.y + 12), _title(self._panel.title), "label title")
        for tick in vertical.ticks():
            drawing.line(Point(across.start, vertical(tick)), Point(across.end, vertical(tick)), "grid")
            drawing.text(Point(across.start - 6, vertical(tick) + 4), short_number(tick), "label pale", anchor="end")
        for place, name in self._ticks(width):
            drawing.text(Point(across(place), bottom + 16), name, "label pale", anchor="middle")
        for part in self._parts():
            self._draw_part(drawing, part, across, vertical)
        drawing.line(Point(across.start, vertical(0.0)), Point(across.end, vertical(0.0)), "axis")

    def _draw_part(self, drawing: Drawing, rows: Sequence[int], across: Scale, vertical: Scale) -> None:
        measure = self._panel.measure
        x = {row: across(_place(self._along.values[row]) or 0.0) for row in rows}
        banded = [row for row in rows if _known(measure.low[row]) and _known(measure.high[row])]
        upper = [Point(x[row], vertical(measure.high[row] or 0.0)) for row in banded]
        lower = [Point(x[row], vertical(measure.low[row] or 0.0)) for row in reversed(banded)]
        drawing.path([*upper, *lower], "band", closed=True)
        drawing.path([Point(x[row], vertical(measure.values[row] or 0.0)) for row in rows], "curve")
        for row in banded:
            for end in (measure.low[row] or 0.0, measure.high[row] or 0.0):
                if not vertical.low <= end <= vertical.high:
                    tip = Point(x[row], vertical(end))
                    inwards = tip.y + (8 if end > vertical.high else -8)
                    drawing.path([Point(tip.x - 5, inwards), tip, Point(tip.x + 5, inwards)], "cut", closed=True)
        if len(self._rows) <= MOST_BARS:
            for row in rows:
                value = measure.values[row] or 0.0
                said = _said(_label(self._along.values[row]), value, measure.low[row], measure.high[row])
                drawing.dot(Point(x[row], vertical(value)), "dot", about=said)

    def _parts(self) -> list[list[int]]:
        """The rows between those that have no number."""
        parts: list[list[int]] = [[]]
        for row in self._rows:
            if _known(self._panel.measure.values[row]):
                parts[-1].append(row)
            elif parts[-1]:
                parts.append([])
        return [part for part in parts if part]

    def _ticks(self, width: float) -> list[tuple[float, str]]:
        values = [self._along.values[row] for row in self._rows]
        if all(isinstance(value, datetime.date) for value in values):
            step = max(1, math.ceil(len(values) / max(2, int(width / 100))))
            return [(_place(value) or 0.0, _label(value)) for value in values[::step]]
        ticks = round_numbers(*self._reach, max(2, int(width / 90)))
        whole = all(isinstance(value, int) for value in values)
        return [(tick, f"{tick:.10g}") for tick in ticks if not whole or float(tick).is_integer()]


def _draw_panels(panels: Sequence[_Bars | _Lines], wide: float, title: str, about: str, said: list[str]) -> Drawing:
    """All panels: one as wide as the picture, more of them two by two if there is room. Below them, what is `said`."""
    notes = [note for note in (*said, CUT if any(panel.is_cut() for panel in panels) else "") if note]
    columns = 1 if len(panels) == 1 or wide < WIDE else 2
    width = (wide - 2 * _MARGIN - _GAP * (columns - 1)) / columns
    lines = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    heights = [max(panel.height for panel in line) for line in lines]
    height = 2 * _MARGIN + sum(heights) + _GAP / 2 * (len(lines) - 1) + 20 * len(notes)
    drawing = Drawing(wide, height, title=title, about=" ".join((about, *notes)))
    drawing.box(Point(0, 0), wide, height, "paper")
    top = _MARGIN
    for line, tall in zip(lines, heights, strict=True):
        for place, panel in enumerate(line):
            panel.draw(drawing, Point(_MARGIN + place * (width + _GAP), top), width)
        top += tall + _GAP / 2
    for number, note in enumerate(reversed(notes)):
        drawing.text(Point(_MARGIN, height - _MARGIN - 20 * number), note, "label pale")
    return drawing


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _title(text: str) -> str:
    return text if len(text) <= 2 * _LONGEST else text[: 2 * _LONGEST - 1] + "…"


def _said(name: str, value: float, low: float | None, high: float | None) -> str:
    """What is shown to whoever points at a bar or a dot."""
    ends = f" ({short_number(low)} to {short_number(high)})" if low is not None and high is not None else ""
    return f"{name}: {short_number(value)}{ends}".removeprefix(": ")

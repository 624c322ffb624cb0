"""What is left of a budget, as a picture over time: the curve, the limit, and where the pace of the last week leads."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from discreet.drawing import Drawing, Point, Scale, short_number

WIDE, NARROW, HEIGHT = 720.0, 350.0, 240.0
"""How wide pictures are: for screens, and for phones."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 16.0, 14.0, 34.0
_STEPS = (
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10_800,
    21_600,
    *(86_400 * days for days in (1, 2, 7, 14, 30, 91, 182, 365, 1826)),
)
_SHORTEST = 300.0
"""A picture shows at least so many seconds."""
_AHEAD = 0.25
"""The part of the picture that is in the future, if something is guessed about it."""


def burn_down(
    points: Sequence[Mapping[str, Any]], now: float, pace: float, *, title: str, width: float = WIDE
) -> Markup:
    """The picture. `points` are times with what was left and the limit then, `pace` is in ε per day."""
    times = [seconds_of(one["at"]) for one in points]
    left, limits = ([float(one[name]) for one in points] for name in ("left", "limit"))
    begun = min(times[0], now - _SHORTEST)
    ahead = (now - begun) * _AHEAD if pace > 0 and left[-1] > 0 else 0.0
    across = Scale(begun, now + ahead, _LEFT, width - _RIGHT)
    down = Scale(0.0, max(limits) or 1.0, HEIGHT - _BOTTOM, _TOP)
    about = f"{left[-1]:.4g} of {limits[-1]:.4g} is left. The table below has the numbers."
    drawing = Drawing(width, HEIGHT, title=title, about=about)
    _axes(drawing, across, down)
    steps = _steps(times, left, now, across, down)
    floor = down(0.0)
    drawing.path([Point(steps[0].x, floor), *steps, Point(steps[-1].x, floor)], "band", closed=True)
    drawing.path(_steps(times, limits, now + ahead, across, down), "limit")
    drawing.path(steps, "curve")
    if ahead:
        days = min(ahead / 86_400, left[-1] / pace)
        end = Point(across(now + days * 86_400), down(left[-1] - days * pace))
        drawing.path([steps[-1], end], "guess")
    drawing.dot(steps[-1], "dot", radius=4, about=f"now: {left[-1]:.4g}")
    limit_at = down(limits[-1])
    drawing.text(Point(width - _RIGHT, limit_at + 14), "limit", "label pale", anchor="end")
    return Markup(drawing.svg(identity=f"burn-down-{width:.0f}"))  # drawing.py escapes all text


def seconds_of(text: str) -> float:
    """A time of the vault in seconds since 1970."""
    return datetime.datetime.fromisoformat(text).timestamp()


def _steps(times: Sequence[float], values: Sequence[float], end: float, across: Scale, down: Scale) -> list[Point]:
    """A value stays until the next one is there."""
    found = [Point(across(times[0]), down(values[0]))]
    for at, value in zip(times[1:], values[1:], strict=True):
        found += [Point(across(at), found[-1].y), Point(across(at), down(value))]
    return [*found, Point(across(end), found[-1].y)]


def _axes(drawing: Drawing, across: Scale, down: Scale) -> None:
    for value in down.ticks(4):
        drawing.line(Point(_LEFT, down(value)), Point(across.end, down(value)), "grid")
        drawing.text(Point(_LEFT - 6, down(value) + 4), short_number(value), anchor="end")
    drawing.text(Point(4, _TOP), "ε", "label pale")
    floor = HEIGHT - _BOTTOM
    drawing.line(Point(_LEFT, floor), Point(across.end, floor), "axis")
    span = across.high - across.low
    step = next((one for one in _STEPS if span / one <= (across.end - across.start) / 75), _STEPS[-1])
    form = "%H:%M" if step < 86_400 else "%d %b" if step < 86_400 * 182 else "%b %Y"
    first = -(-int(across.low) // step) * step
    for at in range(first, int(across.high) + 1, step):
        drawing.line(Point(across(at), floor), Point(across(at), floor + 4), "axis")
        words = datetime.datetime.fromtimestamp(at, datetime.UTC).strftime(form)
        drawing.text(Point(across(at), floor + 18), words, anchor="middle")

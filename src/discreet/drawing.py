"""Small pictures as SVG, for pages that allow neither scripts nor inline styles: colors come from the page's classes.

All text is escaped. A picture has a title and a description for those who cannot see it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import accumulate
from typing import NamedTuple

SVG = "image/svg+xml"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Point(NamedTuple):
    """A place in a picture: from the left, and from the top."""

    x: float
    y: float


class Scale(NamedTuple):
    """Numbers from `low` to `high` as places from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a number. Numbers outside are placed at the nearest end."""
        inside = min(max(value, self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low or 1.0) * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers between both ends. `about` is how many are wanted."""
        return round_numbers(self.low, self.high, about)


def round_numbers(low: float, high: float, about: int = 5) -> list[float]:
    """Numbers from `low` to `high` that are 1, 2 or 5 times a power of ten apart. `about` is how many are wanted."""
    if not low < high or not math.isfinite(high - low):
        return [low]
    step = 10 ** math.floor(math.log10((high - low) / about))
    step *= next(times for times in (1, 2, 5, 10) if (high - low) / (times * step) <= about)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def short_number(value: float) -> str:
    """A number for an axis: 1,200, 35k, 2.5M."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if sign == 'k' else size):,.4g}{sign}"
    return f"{value:,.4g}"


_LONG, _GAIN = 3.0, 1.5
CUT = "Arrows: errors that go on beyond the picture."


def span_of(values: Iterable[float], ends: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The smallest and the largest of these numbers and of the ends of their intervals: what an axis must show.

    A few intervals, at most every second one, that are more than three times as long as all others reach together are
    left out if that makes the axis much shorter. They are to be cut, and marked.
    """
    known = [value for value in values if math.isfinite(value)]
    by_length = sorted((one for one in ends if math.isfinite(one[1] - one[0])), key=lambda one: one[0] - one[1])
    if not known and not by_length:
        return 0.0, 0.0
    # what is reached by the interval at a place and by all shorter ones
    low = [*accumulate((one[0] for one in reversed(by_length)), min)][::-1]
    high = [*accumulate((one[1] for one in reversed(by_length)), max)][::-1]
    inner = (min(known, default=math.inf), max(known, default=-math.inf))
    spans = [(min(inner[0], *one), max(inner[1], *one)) for one in zip(low, high, strict=True)] or [inner]
    whole = spans[0][1] - spans[0][0]
    for cut in range(len(by_length) // 2, 0, -1):
        shortest, span = by_length[cut - 1], spans[cut]
        longer = shortest[1] - shortest[0] > _LONG * (high[cut] - low[cut])
        if longer and whole > _GAIN * (span[1] - span[0]) > 0:
            return span
    return spans[0]


class Drawing:
    """A picture with a width and a height. What is drawn later lies above."""

    def __init__(self, width: float, height: float, *, title: str, about: str = "") -> None:
        self.width, self.height, self._title, self._about = width, height, title, about
        self._parts: list[str] = []

    def line(self, start: Point, end: Point, kind: str) -> None:
        """A straight line, in the style of the class `kind`."""
        self._add("line", kind, x1=start.x, y1=start.y, x2=end.x, y2=end.y)

    def box(self, corner: Point, width: float, height: float, kind: str, *, about: str = "") -> None:
        """A rectangle from its upper left corner. `about` is shown to whoever points at it."""
        self._add("rect", kind, about, x=corner.x, y=corner.y, width=max(width, 0.0), height=max(height, 0.0))

    def dot(self, at: Point, kind: str, *, radius: float = 3, about: str = "") -> None:
        """A filled circle."""
        self._add("circle", kind, about, cx=at.x, cy=at.y, r=radius)

    def path(self, points: Sequence[Point], kind: str, *, closed: bool = False) -> None:
        """A line through points, or the area within them."""
        if points:
            self._parts.append(f'<path class="{escape(kind)}" d="M{_joined(points)}{"Z" if closed else ""}"/>')

    def text(self, at: Point, words: str, kind: str = "label", *, anchor: str = "start", turned: float = 0) -> None:
        """Text whose start, middle or end is at a place."""
        place = f' transform="rotate({_short(turned)} {_short(at.x)} {_short(at.y)})"' if turned else ""
        where = f'x="{_short(at.x)}" y="{_short(at.y)}" text-anchor="{anchor}"{place}'
        self._parts.append(f'<text class="{escape(kind)}" {where}>{_text(words)}</text>')

    def _add(self, name: str, kind: str, about: str = "", **places: float) -> None:
        given = " ".join(f'{key}="{_short(value)}"' for key, value in places.items())
        inside = f"><title>{_text(about)}</title></{name}>" if about else "/>"
        self._parts.append(f'<{name} class="{escape(kind)}" {given}{inside}')

    def svg(self, *, styles: str = "", identity: str = "picture") -> str:
        """The picture as text. A file of its own needs `styles`; on a page, the page's own apply. `identity` is unique
        on its page.
        """
        size = f"{_short(self.width)} {_short(self.height)}"
        named = (
            f'aria-labelledby="{identity}-title {identity}-about"'
            if self._about
            else (f'aria-labelledby="{identity}-title"')
        )
        words = f'<title id="{identity}-title">{_text(self._title)}</title>'
        words += f'<desc id="{identity}-about">{_text(self._about)}</desc>' if self._about else ""
        look = f"<style>{styles}</style>" if styles else ""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" role="img" viewBox="0 0 {size}" {named}>'
        return f"{head}{words}{look}{''.join(self._parts)}</svg>"


def _text(words: str) -> str:
    """Text, escaped. Signs that no XML may have, such as those of a terminal, would end a picture for its reader."""
    return escape(_NOT_XML.sub("\ufffd", words))


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _joined(points: Sequence[Point]) -> str:
    return "L".join(f"{_short(point.x)} {_short(point.y)}" for point in points)

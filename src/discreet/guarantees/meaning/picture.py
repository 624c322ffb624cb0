"""The best attack as a picture: how many people it finds, at every fraction of false alarms.

The SVG is drawn here, without matplotlib. It has classes and presentation attributes but no style or script, so a page
with a strict content policy can show it. Without a `style`, it takes the color of the text around it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count
from discreet.extras import blank_figure, save_figure
from discreet.guarantees.meaning.words import percent
from discreet.plots import STYLES, Style

if TYPE_CHECKING:
    from discreet.guarantees.meaning.risk import Risk

ALARMS, FOUND, BLIND = "wrongly accused", "found, at most", "guessing blindly"
_NARROWEST, _WIDEST = 160, 4000
_FRACTIONS = (0.0, 1e-4, 1e-3, 5e-3, 0.01, 0.02, 0.03, 0.05, 0.075, *(place / 20 for place in range(2, 21)))
_DASHES = ("", "6 3", "2 3", "9 3 2 3")


def points(risk: Risk) -> list[tuple[float, float]]:
    """The curve: false alarms, and the largest fraction that is found. Its corners are among them, because a line that
    cuts a corner would show too little risk.
    """
    corners = ((1 - delta) / (1 + math.exp(epsilon)) for epsilon, delta in risk.curve)
    return [(share, risk.true_positives(share)) for share in sorted({*_FRACTIONS, *corners})]


def draw_svg(risks: Mapping[str, Risk], *, width: int = 360, style: str | None = None) -> str:
    """The curves of these risks by their labels, as one SVG element."""
    wide = check_count(width, "width", at_least=_NARROWEST)
    if wide > _WIDEST:
        raise InvalidArgument(f"width must be at most {_WIDEST}.", code="out-of-range")
    look = None if style is None else _look(style)
    ink = "currentColor" if look is None else look.ink
    left, top, side = 56, 12, wide - 80
    below = top + side + 34
    lines = [_line(place, ink, look) for place in range(len(risks))]
    blind = {"class": "risk-blind", "stroke": ink, "stroke-width": "1", "stroke-dasharray": "3 4", "opacity": "0.6"}
    key = [(label, line) for label, line in zip(risks, lines, strict=True) if label] + [(BLIND, blind)]
    height = below + 6 + 18 * len(key) + 6

    def at(x: float, y: float) -> str:
        return f"{left + side * x:.1f},{top + side * (1 - y):.1f}"

    def text(words: str, x: float, y: float, anchor: str = "start", **more: Any) -> str:
        look = {"class": "risk-text", "fill": ink, "font-size": "12", "font-family": "sans-serif"}
        return _element("text", escape(words), x=f"{x:.1f}", y=f"{y:.1f}", **look, **{"text-anchor": anchor}, **more)

    parts = [_element("title", escape(_title(risks))), _element("desc", escape(_summary(risks)))]
    if look is not None:
        parts.append(_element("rect", **{"class": "risk-paper"}, width=wide, height=height, fill=look.paper))
    frame = {"class": "risk-axis", "fill": "none", "stroke": ink, "stroke-width": "1"}
    parts.append(_element("path", d=f"M{at(0, 1)} L{at(0, 0)} L{at(1, 0)}", **frame))
    parts.append(_element("path", d=f"M{at(0, 0)} L{at(1, 1)}", fill="none", **blind))
    for risk, line in zip(risks.values(), lines, strict=True):
        path = " L".join(at(x, y) for x, y in points(risk))
        parts.append(_element("path", d=f"M{path}", fill="none", **line))
    for share in (0.0, 0.5, 1.0):
        mark = f"{100 * share:.0f}%"
        parts.append(text(mark, left + side * share, top + side + 16, "middle"))
        parts.append(text(mark, left - 6, top + side * (1 - share) + 4, "end"))
    parts.append(text(ALARMS, left + side / 2, below, "middle"))
    middle = top + side / 2
    parts.append(text(FOUND, 14, middle, "middle", transform=f"rotate(-90 14 {middle:.1f})"))
    for place, (label, line) in enumerate(key):
        y = below + 6 + 18 * (place + 1)
        parts.append(_element("line", x1=left, x2=left + 28, y1=y - 4, y2=y - 4, **line))
        parts.append(text(label, left + 36, y))
    box = {"viewBox": f"0 0 {wide} {height}", "width": wide, "height": height, "role": "img", "class": "risk-picture"}
    return _element("svg", "".join(parts), xmlns="http://www.w3.org/2000/svg", **box)


def _line(place: int, ink: str, look: Style | None) -> dict[str, str]:
    """How the curve with this number is drawn: by color if there is a style, and always by dashes."""
    color = ink if look is None else look.series[place % len(look.series)]
    line = {"class": f"risk-curve risk-curve-{place + 1}", "stroke": color, "stroke-width": "2"}
    dashes = _DASHES[place % len(_DASHES)]
    return line | ({"stroke-dasharray": dashes} if dashes else {})


def plot_attacks(risks: Mapping[str, Risk], *, path: Any = None, style: str = "light") -> Any:
    """The curves of these risks by their labels, as a matplotlib figure, saved at `path` if one is given."""
    look = _look(style)
    figure = blank_figure("risk.plot", size=(5.2, 5.2))
    figure.set_facecolor(look.paper)
    axes = figure.subplots()
    axes.set_facecolor(look.paper)
    axes.plot([0, 1], [0, 1], color=look.ink, linewidth=1, linestyle=":", label=BLIND)
    for place, (label, risk) in enumerate(risks.items()):
        x, y = zip(*points(risk), strict=True)
        color = look.series[place % len(look.series)]
        axes.plot(x, y, color=color, linewidth=2, label=label or str(risk.guarantee))
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel=ALARMS, ylabel=FOUND)
    axes.set_title(_title(risks), fontsize=11, color=look.ink)
    axes.grid(color=look.pale)
    axes.tick_params(colors=look.ink)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(look.ink)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(look.ink)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    axes.legend(loc="lower right", frameon=False, labelcolor=look.ink)
    return save_figure(figure, path)


def _look(style: Any) -> Style:
    if not isinstance(style, str) or style not in STYLES:
        raise InvalidArgument(f"style must be {' or '.join(map(repr, STYLES))}.", code="not-an-option")
    return STYLES[style]


def _title(risks: Mapping[str, Risk]) -> str:
    return "The best attack" + (f" on {next(iter(risks.values())).guarantee}" if len(risks) == 1 else "")


def _summary(risks: Mapping[str, Risk]) -> str:
    def one(label: str, risk: Risk) -> str:
        shares = ", ".join(
            f"{percent(risk.true_positives(share), up=True)} at {100 * share:g}%" for share in (0.01, 0.1, 0.5)
        )
        return f"{label or risk.guarantee}: found at most {shares} wrongly accused."

    return " ".join(one(label, risk) for label, risk in risks.items())


def _element(name: str, inside: str = "", **attributes: Any) -> str:
    listed = "".join(f' {key}="{escape(str(value))}"' for key, value in attributes.items())
    return f"<{name}{listed}>{inside}</{name}>" if inside else f"<{name}{listed}/>"

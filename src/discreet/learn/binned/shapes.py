"""The shapes of an additive model: what each column adds to the score, bin by bin, how sure that is, and a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import exactly
from discreet.extras import blank_figure, save_figure

Floats = NDArray[np.float64]
CONFIDENCE = 0.95
LINE, BAND, INK, QUIET, LOW = "#1f6fb2", "#cfe3f4", "#1c1c1c", "#e6e8eb", "#d1701b"
_ACROSS = 3


@dataclass(frozen=True, eq=False)
class Shape:
    """What one column, or a pair of columns, adds to the score of a row.

    `values` has one number for each bin, or a row of them for each class. The last bin is for missing cells, or for
    those that are not a declared category. `edges` are the numbers between the bins of a column of numbers within
    `between`, and `choices` the categories of any other column. If `whole`, each bin is one whole
    number. `band` is the 95% bound on what the noise may have added to each value, which is wide: it also covers bins
    without any rows.
    """

    name: str
    labels: tuple[str, ...]
    values: Floats
    band: float
    edges: Floats | None = None
    between: tuple[float, float] | None = None
    choices: tuple[Any, ...] | None = None
    whole: bool = False
    parts: tuple[Shape, ...] = ()

    @property
    def low(self) -> Floats:
        """The values minus the band."""
        return self.values - self.band

    @property
    def high(self) -> Floats:
        """The values plus the band."""
        return self.values + self.band

    @property
    def importance(self) -> float:
        """The mean absolute value, with all bins alike: which bins are common is private."""
        return float(np.mean(np.abs(self.values)))

    def __repr__(self) -> str:
        return f"<Shape of {self.name}: {self.values.shape[-1]} bins, ± {self.band:.2g}>"

    def edited(self, bins: NDArray[np.bool_], value: float | None, increasing: bool | None) -> Shape:
        """The shape with these bins set to a value, or made monotone."""
        values = self.values.copy()
        if value is not None:
            values[..., bins] = value
        if increasing is not None:
            sign = 1.0 if increasing else -1.0
            for one in np.atleast_2d(values):
                one[bins] = sign * _isotonic(sign * one[bins])
        return replace(self, values=values)

    def chosen(self, between: Any, choices: Any) -> NDArray[np.bool_]:
        """Which bins are inside a range, or are these choices. All but the last if neither is given."""
        many = self.values.shape[-1]
        picked: NDArray[np.bool_] = np.arange(many) < many - 1
        if self.parts:
            raise InvalidArgument("The shape of a pair cannot be edited. Edit one column.", code="learn-shape")
        if between is not None:
            if self.edges is None or self.between is None:
                raise InvalidArgument(
                    f"{self.name} has categories. Name some of them with choices=.", code="learn-shape"
                )
            low, high = (float(exactly(end)) for end in between)
            ends = np.concatenate([[-math.inf], self.edges, [math.inf]])
            picked[:-1] &= (ends[1:] > low) & (ends[:-1] < high)
        if choices is not None:
            if self.choices is None:
                raise InvalidArgument(
                    f"{self.name} is a column of numbers. Say which with between=(low, high).", code="learn-shape"
                )
            if unknown := [one for one in choices if one not in self.choices]:
                raise InvalidArgument(f"{unknown[0]!r} is not a category of {self.name}.", code="not-an-option")
            picked[:-1] &= np.array([one in choices for one in self.choices])
        return picked


def _isotonic(values: Floats) -> Floats:
    """The nearest values that never fall: neighbors that fall are replaced by their mean."""
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        mean, count = float(value), 1
        while blocks and blocks[-1][0] >= mean:
            before, many = blocks.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        blocks.append((mean, count))
    return np.repeat([mean for mean, _ in blocks], [count for _, count in blocks])


# --- pictures -----------------------------------------------------------------------------------------------------


def plot_shapes(
    shapes: Sequence[Shape], classes: Sequence[str], title: str, unit: str, path: str | Path | None = None
) -> Any:
    """One small picture for each shape, on one common scale, the most important first."""
    shown = sorted(shapes, key=lambda shape: -shape.importance)
    rows = -(-len(shown) // _ACROSS)
    across = -(-len(shown) // rows)  # four are two and two
    figure = blank_figure("plot", size=(4.1 * across, 2.9 * rows + 0.7))
    grid = figure.subplots(rows, across, squeeze=False)
    top = max(max(float(np.abs(shape.values).max()) for shape in shown), shown[0].band) * 1.08
    for axes, shape in zip(grid.flat, shown, strict=False):
        _draw_shape(axes, shape, top, classes)
    for axes in list(grid.flat)[len(shown) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel(unit, fontsize=9)
    figure.suptitle(title.replace("$", r"\$"), fontsize=11)
    return save_figure(figure, path)


def _draw_shape(axes: Any, shape: Shape, top: float, classes: Sequence[str]) -> None:
    axes.set_title(shape.name.replace("$", r"\$"), fontsize=10, loc="left")
    axes.tick_params(labelsize=8)
    if shape.parts:
        _draw_pair(axes, shape, top)
        return
    axes.set_ylim(-top, top)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, axis="y", color=QUIET)
    axes.set_axisbelow(True)
    axes.axhline(0, color=INK, linewidth=0.8)
    lines = np.atleast_2d(shape.values)
    for number, line in enumerate(lines):
        label = classes[number] if len(lines) > 1 else None
        color = LINE if len(lines) == 1 else f"C{number}"
        (_draw_steps if shape.edges is not None else _draw_bars)(axes, shape, line, color, label, len(lines), number)
    if len(lines) > 1:
        axes.legend(frameon=False, fontsize=7)


def _draw_steps(axes: Any, shape: Shape, line: Floats, color: str, label: str | None, many: int, number: int) -> None:
    ends = _ends(shape)
    known = line[:-1]
    if many == 1:
        axes.stairs(known + shape.band, ends, baseline=known - shape.band, fill=True, color=BAND)
    axes.stairs(known, ends, baseline=None, color=color, linewidth=1.6, label=label)
    axes.set_xlim(ends[0], ends[-1])
    if shape.whole:
        axes.locator_params(axis="x", integer=True)


def _draw_bars(axes: Any, shape: Shape, line: Floats, color: str, label: str | None, many: int, number: int) -> None:
    places = np.arange(len(line))
    if many == 1:
        axes.bar(places, 2 * np.full(len(line), shape.band), 0.8, bottom=line - shape.band, color=BAND)
    axes.plot(places, line, linestyle="none", marker="_", markersize=max(4, 110 / len(line)), color=color,
              markeredgewidth=2, label=label)  # fmt: skip
    every = -(-len(line) // 14)
    shown = [one if len(one) <= 14 else one[:13] + "…" for one in shape.labels]
    axes.set_xticks(places[::every], [one.replace("$", r"\$") for one in shown[::every]], rotation=60, ha="right",
                    rotation_mode="anchor", fontsize=7)  # fmt: skip
    axes.set_xlim(-0.6, len(line) - 0.4)


def _draw_pair(axes: Any, shape: Shape, top: float) -> None:
    first, second = shape.parts
    values = np.atleast_2d(shape.values)[0].reshape(len(first.labels), len(second.labels))[:-1, :-1]
    axes.pcolormesh(values.T, cmap="RdBu_r", vmin=-top, vmax=top)
    for part, ticks, label in ((first, axes.set_xticks, axes.set_xlabel), (second, axes.set_yticks, axes.set_ylabel)):
        many = len(part.labels) - 1
        every = -(-many // 5)
        ends = part.labels if part.edges is None else _middles(part)
        ticks(np.arange(0, many, every) + 0.5, [ends[k] for k in range(0, many, every)], fontsize=7)
        label(part.name.replace("$", r"\$"), fontsize=8)


def _ends(shape: Shape) -> Floats:
    """Where the bins of a column of numbers begin and end in a picture."""
    low, high = shape.between or (0.0, 1.0)
    inner: Any = shape.edges
    return np.concatenate([[inner[0] - 1], inner, [inner[-1] + 1]] if shape.whole else [[low], inner, [high]])


def _middles(part: Shape) -> list[str]:
    ends = _ends(part)
    return [f"{middle:.3g}" for middle in (ends[1:] + ends[:-1]) / 2]

"""Outputs seen as numbers, and events as sets of intervals of those numbers.

Whatever a mechanism returns (numbers, vectors, names), a `Feature` maps each output to one float. Bins cut
the line of floats at quantiles, far into both tails, and around frequent values; an `Event` is a set of bins.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument

Floats = npt.NDArray[np.float64]
Outputs = npt.NDArray[Any]
"""Numbers of shape (n,), vectors of shape (n, d), or n hashable things (dtype object)."""

QUANTILES, ATOMS, SEEN_OFTEN, COORDINATES = 256, 256, 4, 32


def to_samples(sample: Any) -> Outputs | list[Any]:
    """A sample as an array or a list, whose length is the number of runs."""
    if isinstance(sample, np.ndarray) and sample.ndim:
        return sample
    if isinstance(sample, np.ndarray | np.generic | str) or not isinstance(sample, Iterable):
        raise InvalidArgument("A sample must be an array or a list with one output for each run.", code="wrong-type")
    return list(sample)


def as_outputs(sample: Iterable[Any]) -> Outputs:
    """A sample in one of the three shapes. None among numbers is NaN; what has no hash is its `repr`."""
    items = to_samples(sample)
    array = items if isinstance(items, np.ndarray) else _stack(items)
    if len(array) == 0:
        raise InvalidArgument("A sample must have at least one output. Draw some.", code="empty")
    if array.dtype.kind in "biuf":
        numeric = array.astype(np.float64, copy=False)
        return numeric if numeric.ndim == 1 else numeric.reshape(len(numeric), -1)
    return _objects(array.tolist())


def _stack(items: list[Any]) -> Outputs:
    if all(item is None or isinstance(item, numbers.Real) for item in items):
        try:
            return np.array([np.nan if item is None else float(item) for item in items])
        except OverflowError:  # integers beyond 1e308 stay themselves
            return _objects(items)
    if all(isinstance(item, np.ndarray | tuple | list) for item in items):
        try:
            vectors = np.array(items)
        except ValueError:  # of different lengths
            return _objects(items)
        if vectors.dtype.kind in "biuf":
            return vectors
    return _objects(items)


def _objects(items: list[Any]) -> Outputs:
    result = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        try:
            hash(item)
            result[i] = item
        except TypeError:
            result[i] = repr(item)
    return result


def comparable(first: Outputs, second: Outputs) -> tuple[Outputs, Outputs]:
    """Both samples in the same shape: when their shapes differ, outputs are compared as things."""
    if first.shape[1:] == second.shape[1:] and (first.dtype == object) == (second.dtype == object):
        return first, second
    return _things(first), _things(second)


def _things(outputs: Outputs) -> Outputs:
    return _objects([tuple(item) if isinstance(item, list) else item for item in outputs.tolist()])


@dataclass(frozen=True)
class OutputFeature:
    """One number per output; `labels` names the values 0, 1, … of a categorical one."""

    name: str
    of: Callable[[Outputs], Floats]
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Event:
    """The outputs whose feature is in chosen bins. Bin c is `[edges[c-1], edges[c])`; NaN is in the last."""

    feature: OutputFeature
    edges: Floats
    chosen: npt.NDArray[np.bool_]

    def count(self, outputs: Outputs) -> int:
        return int(np.count_nonzero(self.chosen[bins_of(self.feature, self.edges, outputs)]))

    def __str__(self) -> str:
        parts = self._labels() if self.feature.labels else self._intervals()
        more = f" or {len(parts) - 3} more" if len(parts) > 3 else ""
        return f"{self.feature.name} is {' or '.join(parts[:3]) or 'nothing'}{more}"

    def _labels(self) -> list[str]:
        codes = np.searchsorted(self.edges, np.arange(len(self.feature.labels)), side="right")
        return [label for label, code in zip(self.feature.labels, codes, strict=True) if self.chosen[code]]

    def _intervals(self) -> list[str]:
        has_nan = bool(np.isnan(self.edges[-1]))
        bounds = [-np.inf, *self.edges[: len(self.edges) - has_nan].tolist(), np.inf]
        padded = np.concatenate([[False], self.chosen[: len(bounds) - 1], [False]])
        starts, ends = np.flatnonzero(padded[1:] & ~padded[:-1]), np.flatnonzero(~padded[1:] & padded[:-1])
        parts = [_interval(bounds, *ends) for ends in zip(starts.tolist(), ends.tolist(), strict=True)]
        return [*parts, "not a number"] if has_nan and self.chosen[-1] else parts


def _interval(bounds: list[float], start: int, end: int) -> str:
    def just_above(place: int) -> bool:  # the right side of a frequent value
        return place > 0 and math.nextafter(bounds[place - 1], math.inf) == bounds[place]

    low = f"above {bounds[start - 1]:.6g}" if just_above(start) else f"at least {bounds[start]:.6g}"
    high = f"at most {bounds[end - 1]:.6g}" if just_above(end) else f"below {bounds[end]:.6g}"
    match start == 0, end == len(bounds) - 1:
        case True, True:
            return "anything"
        case True, False:
            return high
        case False, True:
            return low
    return f"{bounds[start]:.6g}" if end == start + 1 and just_above(end) else f"{low} and {high}"


def edges_of(values: Floats) -> Floats:
    """Where to cut: quantiles, power-of-two tails, both sides of frequent values; NaN, if any, is last."""
    distinct, counts = np.unique(values + 0.0, return_counts=True)  # -0 is 0
    reached, total = np.cumsum(counts), len(values)
    tails = 0.5 ** np.arange(2, max(3, total.bit_length()))
    wanted = np.concatenate([np.arange(1, QUANTILES) / QUANTILES, tails, 1 - tails])
    cuts = distinct[np.searchsorted(reached, wanted * total)]
    frequent = np.argsort(-counts, kind="stable")[:ATOMS]
    atoms = distinct[frequent[counts[frequent] >= SEEN_OFTEN]]
    return np.unique(np.concatenate([cuts, atoms, np.nextafter(atoms, np.inf)]))


def bins_of(feature: OutputFeature, edges: Floats, outputs: Outputs) -> npt.NDArray[np.intp]:
    """The bin of each output, from 0 to len(edges)."""
    return np.searchsorted(edges, feature.of(outputs), side="right")


def features_for(first: Outputs, second: Outputs) -> list[OutputFeature]:
    """Ways to look at outputs, some of them (names, directions) learned from these samples."""
    if first.dtype == object:
        return [_category(first, second)]
    if first.ndim == 1:
        bit = "the exponent of the largest power of two dividing the output"
        return [OutputFeature("the output", lambda x: x), OutputFeature(bit, lowest_bit)]
    shift = np.nan_to_num(first.mean(axis=0) - second.mean(axis=0), posinf=1.0, neginf=-1.0)
    spread = np.nan_to_num(first.std(axis=0) + second.std(axis=0), posinf=np.inf)
    telling = np.argsort(-np.abs(shift) / np.maximum(spread, 1e-300), kind="stable")[:COORDINATES]
    return [
        *(OutputFeature(f"coordinate {i} of the output", _coordinate(int(i))) for i in telling),
        OutputFeature("the sum of the output", lambda x: x.sum(axis=1)),
        OutputFeature("the maximum of the output", lambda x: x.max(axis=1)),
        OutputFeature("the place of the maximum", lambda x: x.argmax(axis=1).astype(np.float64)),
        OutputFeature("the output along the difference of the means", lambda x: x @ shift),
        OutputFeature(
            "the exponent of the largest power of two dividing every coordinate",
            lambda x: lowest_bit(x).min(axis=1),
        ),
    ]


def _coordinate(place: int) -> Callable[[Outputs], Floats]:
    return lambda x: x[:, place]


def _category(first: Outputs, second: Outputs) -> OutputFeature:
    code: dict[Hashable, int] = {}
    for item in (*first, *second):
        code.setdefault(item, len(code))
    names = tuple("anything else" if item is code else repr(item) for item in (*code, code))
    return OutputFeature(
        "the output", lambda x: np.fromiter((code.get(i, len(code)) for i in x), np.float64, len(x)), names
    )


def lowest_bit(values: Floats) -> Floats:
    """The largest j with `value` a multiple of 2^j: infinity for zero, NaN for what is not finite.

    >>> lowest_bit(np.array([12.0, 0.375, 0.0])).tolist()
    [2.0, -3.0, inf]
    """
    finite = np.isfinite(values)
    fraction, exponent = np.frexp(np.where(finite, values, 0.0))
    whole = (fraction * 2.0**53).astype(np.int64)
    place = np.frexp((whole & -whole).astype(np.float64))[1] - 54.0 + exponent
    return np.where(finite, np.where(whole == 0, np.inf, place), np.nan)

"""What of two answers is the same, and how far apart they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

Distance = Callable[[Any, Any], float]

# --- what must stay -----------------------------------------------------------------------------------------------


def shape_of(answer: Any) -> Any:
    """Types, shapes, keys and their order, all the way down; no value."""
    if isinstance(answer, np.ndarray):
        return ("array", answer.dtype.str, answer.shape)
    if isinstance(answer, Mapping):
        return (type(answer).__name__, *((_shown(key), shape_of(value)) for key, value in answer.items()))
    if isinstance(answer, list | tuple):
        inside = [shape_of(one) for one in answer]
        same = len(inside) > 3 and all(one == inside[0] for one in inside)
        return (type(answer).__name__, len(inside), inside[0] if same else tuple(inside))
    if is_dataclass(answer) and not isinstance(answer, type):
        parts = ((one.name, shape_of(getattr(answer, one.name))) for one in fields(answer))
        return (type(answer).__name__, *parts)
    return type(answer).__name__


# --- how far two answers are apart --------------------------------------------------------------------------------


def numbers_in(answer: Any) -> list[Any]:
    """All numbers of an answer, in order."""
    if isinstance(answer, np.ndarray):
        return list(answer.reshape(-1).tolist())
    if isinstance(answer, Mapping):
        return [one for value in answer.values() for one in numbers_in(value)]
    if isinstance(answer, list | tuple):
        return [one for value in answer for one in numbers_in(value)]
    if is_dataclass(answer) and not isinstance(answer, type):
        return [one for part in fields(answer) for one in numbers_in(getattr(answer, part.name))]
    return [answer.item() if isinstance(answer, np.generic) else answer]


def _changes(a: Any, b: Any) -> Iterator[float]:
    first, second = numbers_in(a), numbers_in(b)
    if len(first) != len(second):
        yield math.inf
        return
    for x, y in zip(first, second, strict=True):
        if isinstance(x, int | float | Fraction) and isinstance(y, int | float | Fraction):
            both_nan = x != x and y != y
            change = 0.0 if both_nan or x == y else abs(float(x - y)) if isinstance(x - y, float) else float(abs(x - y))
            yield math.inf if math.isnan(change) else change
        else:
            yield 0.0 if _shown(x) == _shown(y) else math.inf


def largest(a: Any, b: Any) -> float:
    """L∞."""
    return max(_changes(a, b), default=0.0)


def total(a: Any, b: Any) -> float:
    """L1."""
    return sum(_changes(a, b))


def length(a: Any, b: Any) -> float:
    """L2."""
    return math.sqrt(sum(change**2 for change in _changes(a, b)))


def reports(a: Any, b: Any) -> float:
    """How many of the reports, one for each record, are different."""
    first, second = (_listed(one) for one in (a, b))
    if len(first) != len(second):
        return math.inf
    return sum(one != other for one, other in zip(first, second, strict=True))


def _listed(answer: Any) -> list[str]:
    rows = answer.tolist() if isinstance(answer, np.ndarray) else answer
    return [_shown(row) for row in rows] if isinstance(rows, list | tuple) else [_shown(rows)]


def _shown(value: Any) -> str:
    try:
        return f"{type(value).__name__} {value!r}"
    except Exception:  # the odd record itself
        return type(value).__name__


BY_NORM: dict[str, Distance] = {"L1": total, "L2": length, "Linf": largest}

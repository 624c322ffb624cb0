"""P-values of several tests at once, adjusted so that a rejection still means what its level says.

Private p-values are adjusted like any others: nothing is read or charged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from discreet.closing import closed
from discreet.errors import InvalidArgument

Floats = NDArray[np.float64]


@overload
def bonferroni(p_values: Mapping[str, Any]) -> dict[str, float]: ...
@overload
def bonferroni(p_values: Sequence[Any]) -> list[float]: ...
@closed
def bonferroni(p_values: Any) -> Any:
    """Every p-value times their number. Any rejection at the level α is wrong with probability at most α."""
    return _adjusted(p_values, lambda p: len(p) * p)


@overload
def holm(p_values: Mapping[str, Any]) -> dict[str, float]: ...
@overload
def holm(p_values: Sequence[Any]) -> list[float]: ...
@closed
def holm(p_values: Any) -> Any:
    """Holm's p-values. The promise is that of `bonferroni`, and no adjusted p-value is larger than there.

    `p_values` are numbers, results of tests, or a dict of them. The answer has the same form.

    >>> holm({"height": 0.01, "weight": 0.04, "age": 0.03})
    {'height': 0.03, 'weight': 0.06, 'age': 0.06}
    """

    def steps(p: Floats) -> Floats:
        order = np.argsort(p, kind="stable")
        found = np.empty_like(p)
        found[order] = np.maximum.accumulate(np.arange(len(p), 0, -1) * p[order])
        return found

    return _adjusted(p_values, steps)


@overload
def benjamini_hochberg(p_values: Mapping[str, Any]) -> dict[str, float]: ...
@overload
def benjamini_hochberg(p_values: Sequence[Any]) -> list[float]: ...
@closed
def benjamini_hochberg(p_values: Any) -> Any:
    """P-values for the false discovery rate: of the hypotheses rejected at the level q, at most a share q is wrong on
    average, if the tests are independent or positively dependent.
    """
    return _adjusted(p_values, lambda p: _stepped_up(p, 1.0))


@overload
def benjamini_yekutieli(p_values: Mapping[str, Any]) -> dict[str, float]: ...
@overload
def benjamini_yekutieli(p_values: Sequence[Any]) -> list[float]: ...
@closed
def benjamini_yekutieli(p_values: Any) -> Any:
    """As `benjamini_hochberg`, for tests that may depend on each other in any way. The p-values are larger."""
    return _adjusted(p_values, lambda p: _stepped_up(p, float((1 / np.arange(1, len(p) + 1)).sum())))


def _stepped_up(p: Floats, factor: float) -> Floats:
    order = np.argsort(p, kind="stable")[::-1]
    found = np.empty_like(p)
    found[order] = np.minimum.accumulate(factor * len(p) / np.arange(len(p), 0, -1) * p[order])
    return found


def _adjusted(p_values: Any, adjust: Callable[[Floats], Floats]) -> Any:
    """The adjusted p-values in the form of those given, at most 1 each."""
    named = isinstance(p_values, Mapping)
    listed = list(p_values.values()) if named else _listed(p_values)
    numbers = np.array([_p_value(one) for one in listed], dtype=np.float64)
    found = [round(float(p), 15) for p in np.minimum(adjust(numbers), 1.0)] if len(numbers) else []
    return dict(zip(p_values, found, strict=True)) if named else found


def _listed(p_values: Any) -> list[Any]:
    if isinstance(p_values, str | bytes) or not hasattr(p_values, "__iter__"):
        raise InvalidArgument(
            "Give the p-values as a list or a dict, such as [0.01, 0.2] or a list of tests.", code="wrong-type"
        )
    return list(p_values)


def _p_value(one: Any) -> float:
    """A number from 0 to 1, or the p-value of a test."""
    number = getattr(one, "p_value", one)
    try:
        found = float(number)
    except (TypeError, ValueError):
        found = float("nan")
    if isinstance(number, bool) or not 0 <= found <= 1:
        raise InvalidArgument("A p-value must be a number from 0 to 1, or a test that has one.", code="out-of-range")
    return found

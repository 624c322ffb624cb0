"""Automatic bounds ("auto"): ranges of columns that are found privately within a fit, for a share of its cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_bound, exactly
from discreet.guarantees.guarantee import Approx
from discreet.mechanisms.learning.found_ranges import BINNED
from discreet.mechanisms.learning.with_found_ranges import ROUGH, SHARE, WithFoundRanges
from discreet.releases import Release
from discreet.rows.rounding import RoundedRows
from discreet.rows.unbounded import UnboundedRows

Floats = NDArray[np.float64]
AUTO: Literal["auto"] = "auto"
Auto = Literal["auto"]
_SHOWN = 4


def is_auto(bound: Any) -> bool:
    """Whether a bound is to be found: "auto", or None for one that is not declared."""
    return bound is None or (isinstance(bound, str) and bound == AUTO)


def finds_features(model: Any) -> bool:
    """Whether the ranges of features are to be found: neither ranges nor a norm of rows are declared."""
    return is_auto(model.feature_ranges) and is_auto(getattr(model, "feature_norm", AUTO))


def finds_target(model: Any) -> bool:
    """Whether the range of the target is to be found."""
    return hasattr(model, "target_bound") and is_auto(model.target_bound)


def target_range(bound: Any) -> tuple[float, float]:
    """The declared range of the target: ±bound, or a pair (low, high)."""
    if isinstance(bound, tuple | list | np.ndarray):
        if len(bound) != 2 or not (low := float(exactly(bound[0]))) < (high := float(exactly(bound[1]))):
            raise InvalidArgument(
                "target_bound must be a number, or a pair (low, high) with low below high.", code="ends-out-of-order"
            )
        check_bound(high / 2 - low / 2, "target_bound")
        return low, high
    size = float(check_bound(bound, "target_bound"))
    return -size, size


def with_ranges(
    model: Any,
    features: int,
    then: Callable[[Approx], Any],
    *,
    target: bool = False,
    found: bool | None = None,
    narrowed: tuple[float, float] | None = None,
    binned: bool = False,
) -> Any:
    """The mechanism `then` makes, or one that first finds the ranges that are not declared, within the same cost.

    The target counts more than a feature, because all predictions depend on its range. `narrowed` is its declared
    range, if the part of it in which targets are is to be found. Ranges of a model over bins, `binned`, are cut twice
    and may be rough, because numbers outside are in the nearest bin.
    """
    wanted = finds_features(model) if found is None else found
    goals = target or narrowed is not None
    weights = (1,) * (features * wanted) + (max(1, round(math.sqrt(2 * features))) if wanted else 1,) * goals
    if not weights:
        return then(model._goal())
    return WithFoundRanges.for_guarantee(
        model._goal(),
        weights=weights,
        then=then,
        unit=model._unit(),
        rows_per_person=model._rows(),
        share=SHARE if (wanted or target) and not binned else ROUGH,
        cuts=BINNED if binned else 1,
        outer=() if narrowed is None else (None,) * (features * wanted) + (narrowed,),
    )


def within_ranges(plan: Any) -> Any:
    """The mechanism that works within the ranges."""
    return plan.then if isinstance(plan, WithFoundRanges) else plan


def show_found(release: Release, features: int, names: list[str] | None) -> Release:
    """The release, which says which ranges were found."""
    if "ranges" not in release.value:
        return release
    ranges = release.value["ranges"]
    listed = [f"x{place}" for place in range(features)] if names is None else names
    called = (
        [*listed, "the target"] if len(ranges) > features else listed if len(ranges) == features else ["the target"]
    )
    texts = [f"{name} from {low:.6g} to {high:.6g}" for name, (low, high) in zip(called, ranges, strict=True)]
    hidden = len(texts) - _SHOWN
    shown = texts if hidden <= 0 else [*texts[: _SHOWN - 1], f"{hidden + 1} more ranges"]
    return replace(release, found=tuple(shown))


class Source:
    """Rows in memory or in batches: rounded within bounds, or counted in bins before bounds are known."""

    def __init__(self, rounded: Callable[..., RoundedRows], summed: Callable[[Any], list[NDArray[Any]]]) -> None:
        self._rounded, self.summed = rounded, summed

    def __call__(self, *given: Any, **bounds: Any) -> RoundedRows:
        return self._rounded(*given, **bounds)

    def unbounded(self, features: int, within: Callable[[Floats], Any], **found: bool) -> UnboundedRows:
        """The rows before their bounds are known. `within` reads them within the ranges that were found."""
        return UnboundedRows(self.summed, within, features=features, **found)


def rows_in_memory(table: Any, goals: Any = None) -> Callable[[Any], list[NDArray[Any]]]:
    """How the cells of a table, and its targets as doubles, are summed."""
    return lambda work: list(work([(table, goals)]))

"""Counting queries: how many rows, what fraction of them, how many of each choice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count, sqrt_up
from discreet.guarantees.unit import Unit
from discreet.queries.query import largest_change, need_public_size
from discreet.queries.sensitivity import Norm, Sensitivity, check_norm
from discreet.queries.space import Categories
from discreet.rows import cells, column, doubles, has, number_of, some
from discreet.rows.containers import Data

Predicate = Callable[[Any], Any]
"""From data (rows first, or a mapping of columns) to one truth value a row, each from that row alone."""


@dataclass(frozen=True)
class Count(Closed):
    """The number of rows, or of those where `predicate` holds.

    Promise: one row, added, removed or replaced, changes it by at most 1; monotone under add/remove. Source:
    [L3.CQ].

    >>> Count(lambda age: age >= 18)(np.array([3, 18, 40]))
    2
    """

    predicate: Predicate | None = None

    @property
    def space(self) -> None:
        """None: any row counts."""
        return None

    def __call__(self, data: Data) -> int:
        if isinstance(data, Mapping):
            data = {name: column(part) if isinstance(part, list | tuple) else part for name, part in data.items()}
        elif isinstance(data, list | tuple | Iterator) or not has(data, "__len__"):
            data = column(data)
        rows = len(next(iter(data.values()), ())) if isinstance(data, Mapping) else len(data)
        return rows if self.predicate is None else int(np.count_nonzero(_evaluate(self.predicate, data, rows)))

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """1 for each row of the unit, in both relations."""
        amount = largest_change(unit, rows_per_person, added=1, replaced=1)
        return Sensitivity(amount, unit=unit, grain=1, monotone=unit.neighbors == "add_or_remove")


@dataclass(frozen=True)
class CountingQuery(Closed):
    """The fraction `c(X) = (1/n) Σ c(x_i)` of rows where `predicate` holds, n = `size` being public.

    Promise: a replaced row changes it by at most 1/n; refused under add/remove. Source: [L3.CQ].

    >>> CountingQuery(lambda age: age >= 18, size=4)(np.array([3, 18, 40, 7]))
    Fraction(1, 2)
    """

    predicate: Predicate
    size: int

    def __post_init__(self) -> None:
        check_count(self.size, "size")

    @property
    def space(self) -> None:
        """None: any row counts."""
        return None

    def __call__(self, data: Data) -> Fraction:
        return Fraction(Count(self.predicate)(data), self.size)

    def sensitivity(self, unit: Unit, rows_per_person: int = 1) -> Sensitivity:
        """1/n for each row of the unit, under replacement."""
        changed = largest_change(unit, rows_per_person, added=1, replaced=1)
        need_public_size(unit, "Ask for a Count")
        return Sensitivity(changed / self.size, unit=unit, grain=Fraction(1, self.size))


@dataclass(frozen=True)
class Histogram(Closed):
    """The number of rows for each declared choice. Undeclared values are dropped, or go to `other`.

    Promise: one row is 1 in every norm when added or removed (monotone); replaced, it is 2 in L1, √2 in L2, 1
    in Linf.
    Source: [L3.CQ], [L8.HIST1] (a replaced row touches two counts).

    >>> Histogram(("a", "b"))(["a", "a", "c"])
    array([2, 0])
    """

    choices: Categories | Sequence[Hashable]

    def __post_init__(self) -> None:
        if not isinstance(self.choices, Categories):
            object.__setattr__(self, "choices", Categories(self.choices))

    @property
    def space(self) -> Categories:
        """The declared choices."""
        return cast(Categories, self.choices)

    def __call__(self, data: Data) -> NDArray[np.int64]:
        places = self.space.positions(data)
        return np.bincount(places[places >= 0], minlength=len(self.space)).astype(np.int64)

    def sensitivity(self, unit: Unit, rows_per_person: int = 1, norm: Norm = "L1") -> Sensitivity:
        """What one unit changes, stated in `norm`. All k rows of one person may have the same choice."""
        check_norm(norm)
        replaced = {"L1": Fraction(2), "L2": sqrt_up(Fraction(2)), "Linf": Fraction(1)}[norm]
        return Sensitivity(
            largest_change(unit, rows_per_person, added=1, replaced=replaced),
            norm,
            unit,
            dimension=len(self.space),
            grain=1,
            monotone=unit.neighbors == "add_or_remove",
        )


def _evaluate(predicate: Predicate, data: Any, rows: int) -> NDArray[np.bool_]:
    """Where a predicate holds. It is called with all rows at once. If that fails, with each row, where a failure means
    false.

    A predicate that fails even on zero rows is broken, and its error is raised.
    """
    failed = False
    try:
        predicate(some(data, slice(0, 0)))
    except (LookupError, NameError, AttributeError, TypeError):
        failed = True
    except Exception:  # such as a function of numpy that takes no empty array
        failed = False
    if failed:
        raise InvalidArgument(
            "The predicate fails on this data. Check that it uses only columns that exist.", code="function-fails"
        )
    holds = None
    try:
        with np.errstate(all="ignore"):
            holds = _truths(predicate(data))
    except Exception:  # because of a record that it cannot compare
        holds = None
    if holds is None:
        holds = np.fromiter((_holds(predicate, data, place) for place in range(rows)), np.bool_, rows)
    if holds.shape != (rows,):
        raise InvalidArgument("A predicate must return one truth value for each row.", code="function-fails")
    return holds


def _truths(said: Any) -> NDArray[np.bool_] | None:
    """Truth values in one dimension, each by itself. A value that is not a number is false. None for an array
    of text.
    """
    if not isinstance(said, list | tuple) and np.ndim(said) != 1:
        return np.zeros(0, dtype=np.bool_)
    values = column(said)
    if values.dtype.kind not in "biufO":
        return None
    numbers = doubles(values)
    return np.asarray((numbers != 0) & ~np.isnan(numbers))


def _holds(predicate: Predicate, data: Any, place: int) -> bool:
    try:
        [found] = cells(predicate(some(data, slice(place, place + 1))))
        number = number_of(found)
        return number != 0 and number == number
    except Exception:
        return False

"""Many counting queries at once over a finite domain: marginals, prefixes, conjunctions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count, sqrt_up
from discreet.guarantees.unit import Unit
from discreet.queries.domain import MOST_CELLS, Domain
from discreet.queries.query import largest_change
from discreet.queries.sensitivity import Norm, Sensitivity, check_norm
from discreet.rows.containers import Data

__all__ = ["Domain", "Workload"]

Kind = Literal["cells", "prefixes", "conjunctions"]

LARGEST_SIZE = 2**50


@dataclass(frozen=True, kw_only=True)
class Workload(Closed):
    """Counting queries over the rows of `domain`, grouped by the columns they use.

    For each of `sets` the queries are: all its cells (a marginal), all its prefixes (how many rows are at most
    v, in every column of the set), or, for conjunctions, the one cell of it that `chosen` names. Their order is
    that of the sets and, inside one, of the cells, the last column moving fastest.

    Promise: one row is in one cell of each set, so it changes every answer by at most 1, monotonely under
    add/remove; how many it changes is `sensitivity`. A row outside the domain is counted nowhere, so a replaced
    row may also vanish. Source: [L3.CQ], [L3.CDF].

    >>> domain = Domain({"age": 3, "sex": ("f", "m")})
    >>> Workload.marginals(domain, 1).answers([(0, "f"), (2, "f")]).tolist()
    [1, 0, 1, 2, 0]
    """

    domain: Domain
    sets: tuple[tuple[str, ...], ...]
    kind: Kind = "cells"
    chosen: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            raise InvalidArgument("domain must be a Domain of public columns.", code="wrong-type")
        if self.kind not in ("cells", "prefixes", "conjunctions"):
            raise InvalidArgument("kind must be 'cells', 'prefixes' or 'conjunctions'.", code="not-an-option")
        if any(isinstance(names, str) for names in self.sets) or not self.sets:
            raise InvalidArgument(
                "sets must be at least one tuple of columns, such as (('age', 'sex'),).",
                code="wrong-type" if self.sets else "empty",
            )
        object.__setattr__(self, "sets", tuple(tuple(names) for names in self.sets))
        object.__setattr__(self, "chosen", tuple(self.chosen))
        cells = self._cells
        if self.kind != "conjunctions" and (self.chosen or len(set(self.sets)) != len(self.sets)):
            raise InvalidArgument("The sets of a workload must be different from each other.", code="duplicates")
        if self.kind == "conjunctions" and [0 <= c < n for c, n in zip(self.chosen, cells, strict=False)] != [
            True
        ] * len(cells):
            raise InvalidArgument("A conjunction needs one cell of its columns.", code="wrong-shape")

    @classmethod
    def marginals(cls, domain: Domain, of: int | Iterable[Sequence[str]]) -> Self:
        """All marginals of `of` columns, or those of the sets given."""
        if isinstance(of, Iterable):
            return cls(domain=domain, sets=tuple(tuple(names) for names in _not_text(of)))
        width = check_count(of, "the number of columns of a marginal", at_least=0)
        return cls(domain=domain, sets=tuple(itertools.combinations(domain.names, width)))

    @classmethod
    def prefixes(cls, domain: Domain, column: str | None = None) -> Self:
        """How many rows are at most v, for every value v of an ordered column: the thresholds of a private CDF."""
        if column is None and len(domain.names) != 1:
            raise InvalidArgument(
                "Name the column for the prefixes: this domain has more than one.", code="missing-argument"
            )
        return cls(domain=domain, sets=((column or domain.names[0],),), kind="prefixes")

    thresholds = prefixes

    @classmethod
    def conjunctions(cls, domain: Domain, terms: Iterable[Mapping[str, Hashable]]) -> Self:
        """How many rows have all the values of a term, such as {"sex": "f", "smokes": True}, for each term."""
        listed = [
            {name: term[name] for name in domain.names if name in term} for term in terms if _is_term(domain, term)
        ]
        sets = tuple(tuple(term) for term in listed)
        cells = []
        for term in listed:
            part = domain.project(tuple(term)) if term else None
            codes = part.codes({name: [value] for name, value in term.items()}) if part else np.zeros((1, 0), np.int64)
            cells.append(int(np.ravel_multi_index(tuple(codes[0]), part.shape)) if part else 0)
        return cls(domain=domain, sets=sets, kind="conjunctions", chosen=tuple(cells))

    @cached_property
    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(self.domain.shape[axis] for axis in self.domain.axes(names)) for names in self.sets)

    @cached_property
    def _cells(self) -> tuple[int, ...]:
        return tuple(math.prod(shape) for shape in self._shapes)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        """The index at which the queries of each set start, and the end of the last."""
        widths = (1,) * len(self.sets) if self.kind == "conjunctions" else self._cells
        return tuple(itertools.accumulate(widths, initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def space(self) -> None:
        """None: a row outside the domain is not counted."""
        return None

    def __call__(self, data: Data) -> NDArray[np.int64]:
        return self.answers(data)

    def answers(self, data: Data = None, *, histogram: ArrayLike | None = None) -> NDArray[Any]:
        """All true answers in order: exact counts of the rows, or sums of a `histogram` over the whole domain."""
        if len(self) > MOST_CELLS:
            raise InvalidArgument(
                f"The workload has {len(self)} answers. One array has at most 10^8. Ask for fewer sets.",
                code="too-large",
            )
        tables = self.tables(data, histogram=histogram)
        if self.kind == "conjunctions":
            return np.array([table.reshape(-1)[cell] for table, cell in zip(tables, self.chosen, strict=True)])
        return np.concatenate([table.reshape(-1) for table in tables])

    def tables(self, data: Data = None, *, histogram: ArrayLike | None = None) -> list[NDArray[Any]]:
        """One table of counts, or of prefix sums, for each set, with one axis for each column."""
        if (data is None) == (histogram is None):
            raise InvalidArgument(
                "Give either the rows or histogram= over the whole domain.",
                code="missing-argument" if data is None else "conflicting-arguments",
            )
        if histogram is None:
            codes = self.domain.codes(data)
            tables = [self.domain.counts(codes, names) for names in self.sets]
        else:
            whole = self._whole(histogram)
            tables = [self._summed(whole, names) for names in self.sets]
        if self.kind == "prefixes":
            for axis in range(max(len(names) for names in self.sets)):
                tables = [np.cumsum(table, axis=axis) if axis < table.ndim else table for table in tables]
        return tables

    def _whole(self, histogram: Any) -> NDArray[Any]:
        array = np.asarray(histogram)
        if array.size != self.domain.size:
            raise InvalidArgument(
                f"A histogram of this domain has {self.domain.size} cells. Give one number for each cell.",
                code="wrong-shape",
            )
        return array.reshape(self.domain.shape)

    def _summed(self, whole: NDArray[Any], names: tuple[str, ...]) -> NDArray[Any]:
        axes = self.domain.axes(names)
        others = tuple(axis for axis in range(whole.ndim) if axis not in axes)
        kept = sorted(axes)
        return np.asarray(whole.sum(axis=others)).transpose([kept.index(axis) for axis in axes])

    def query(self, index: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """The columns that query `index` uses, and their values by index (upper bounds for a prefix)."""
        if not 0 <= index < len(self):
            raise InvalidArgument(
                f"The queries of this workload are numbered 0 to {len(self) - 1}. Give one of these numbers.",
                code="out-of-range",
            )
        block = int(np.searchsorted(self._starts, index, side="right")) - 1
        cell = self.chosen[block] if self.kind == "conjunctions" else index - self._starts[block]
        shape = self._shapes[block]
        return self.sets[block], tuple(int(place) for place in np.unravel_index(cell, shape)) if shape else ()

    def indicator(self, index: int) -> NDArray[np.bool_]:
        """Which cells of the whole domain query `index` counts: a table of the domain's shape."""
        if self.domain.size > MOST_CELLS:
            raise InvalidArgument(
                f"The domain has {self.domain.size} cells. One table has at most 10^8. Use fewer columns.",
                code="too-large",
            )
        names, places = self.query(index)
        inside = np.ones(self.domain.shape, dtype=np.bool_)
        for axis, place in zip(self.domain.axes(names), places, strict=True):
            codes = np.arange(self.domain.shape[axis])
            holds = codes <= place if self.kind == "prefixes" else codes == place
            inside &= holds.reshape([-1 if i == axis else 1 for i in range(inside.ndim)])
        return inside

    def label(self, index: int) -> str:
        """A description of query `index`, such as 'age = 3, sex = f' or 'age ≤ 3'. 'all' if it uses no column."""
        names, places = self.query(index)
        sign = "≤" if self.kind == "prefixes" else "="
        shown = (f"{n} {sign} {self.domain.values(n)[p]}" for n, p in zip(names, places, strict=True))
        return ", ".join(shown) or "all"

    @property
    def labels(self) -> tuple[str, ...]:
        """Descriptions of all queries, in order."""
        return tuple(self.label(index) for index in range(len(self)))

    def sensitivity(self, unit: Unit, rows_per_person: int = 1, norm: Norm = "L1") -> Sensitivity:
        """What one unit changes: how many answers move, each by 1 for a row, stated in `norm`.

        Exact for marginals and prefixes. For conjunctions it is the largest number that their columns allow.
        """
        check_norm(norm)
        added, replaced = self._changed()
        amounts = {
            "L1": (Fraction(added), Fraction(replaced)),
            "L2": (sqrt_up(Fraction(added)), sqrt_up(Fraction(replaced))),
            "Linf": (Fraction(1), Fraction(1)),
        }[norm]
        return Sensitivity(
            largest_change(unit, rows_per_person, added=amounts[0], replaced=amounts[1]),
            norm,
            unit,
            dimension=len(self),
            grain=1,
            monotone=unit.neighbors == "add_or_remove",
        )

    def _changed(self) -> tuple[int, int]:
        """How many answers one added row changes, and one replaced row: by ±1 each."""
        if self.kind == "prefixes":  # the lowest row is in all prefixes, and may vanish
            return sum(self._cells), sum(self._cells)
        if self.kind == "cells":
            return len(self.sets), max(len(self.sets), sum(2 for cells in self._cells if cells > 1))
        asked: dict[tuple[str, ...], dict[int, int]] = {}
        for names, cell in zip(self.sets, self.chosen, strict=True):
            held = asked.setdefault(names, {})
            held[cell] = held.get(cell, 0) + 1
        added = sum(max(cells.values()) for cells in asked.values())
        return added, max(added, sum(sum(sorted(cells.values())[-2:]) for cells in asked.values()))


def _not_text(of: Iterable[Any]) -> Iterable[Any]:
    if isinstance(of, str | bytes):
        raise InvalidArgument("Give sets of columns, such as [('age', 'sex')], not one text.", code="wrong-type")
    listed = list(of)
    if any(isinstance(names, str | bytes) for names in listed):
        raise InvalidArgument("Each set is a tuple of columns: [('age',), ('sex',)].", code="wrong-type")
    return listed


def _is_term(domain: Domain, term: Any) -> bool:
    if not isinstance(term, Mapping):
        raise InvalidArgument(
            "A conjunction is a mapping of columns to values, such as {'sex': 'f'}.", code="wrong-type"
        )
    if any(value not in domain.values(name) for name, value in term.items()):
        raise InvalidArgument(
            "A conjunction names a value that its column does not have. Use a value of the domain.",
            code="unknown-choice",
        )
    return True


def check_size(size: Any) -> int:
    """A public number of rows, small enough that sums of counts fit 64 bits. Raises for any other."""
    if check_count(size, "size") > LARGEST_SIZE:
        raise InvalidArgument("size must be at most 2^50 rows.", code="out-of-range")
    return int(size)

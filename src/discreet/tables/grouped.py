"""Numbers by group: which groups a method asks for, the bins of a histogram, and the release of all groups."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from discreet import html
from discreet.engines.duckdb.dialect import quote
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count
from discreet.extras import need
from discreet.guarantees.accuracy import Accuracy
from discreet.releases import Release, with_error
from discreet.sql.reading.values.domains import LARGEST_DOMAIN
from discreet.sql.running.answer import Answer
from discreet.sql.schema import Type
from discreet.tables.days import DAYS, EPOCH, as_number, from_number, number_of_day
from discreet.tables.offer import SqlOffer, convert_release

By = str | Sequence[str] | Mapping[str, Sequence[Any] | None]
"""One column, several, or a dict from each column to its choices. None stands for choices that are not declared."""
Edge = float | datetime.date


def grouping(by: By) -> dict[str, Any]:
    """The columns to group by, each with its choices or None."""
    if isinstance(by, str):
        return {by: None}
    listed = list(by) if isinstance(by, Mapping | list | tuple) else []
    if not listed or not all(isinstance(name, str) for name in listed):
        raise InvalidArgument(
            'by must name columns: by="city", by=["city", "sex"], or with choices, by={"city": ["Acre", "Bled"]}.',
            code="wrong-type",
        )
    if len(set(listed)) < len(listed):
        raise InvalidArgument("by names a column twice. Name each once.", code="duplicates")
    return dict(by) if isinstance(by, Mapping) else dict.fromkeys(listed)


def unused(name: str, taken: Sequence[str]) -> str:
    """A name for a noisy column that no key has. SQL ignores case."""
    known = {one.lower() for one in taken}
    while {name.lower(), f"{name.lower()}_error"} & known:
        name += "_"
    return name


# --- bins -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bins:
    """The bins of a histogram: from each edge up to the next, which belongs to the next bin. The last bin includes its
    upper edge. Values outside are left out.
    """

    edges: tuple[Any, ...]
    kind: Type

    @property
    def labels(self) -> list[str]:
        """The bins in words."""
        pairs = list(pairwise(map(str, self.edges)))
        return [f"[{low}, {high}{']' if place == len(pairs) - 1 else ')'}" for place, (low, high) in enumerate(pairs)]

    @property
    def ends(self) -> dict[str, tuple[Any, Any]]:
        """The two edges of each bin, by its label."""
        return dict(zip(self.labels, pairwise(self.edges), strict=True))

    def expression(self, column: str) -> str:
        """The label of a row's bin, in SQL. NULL outside of all bins."""
        number = as_number(column, self.kind)
        points = [repr(_as_number(edge)) for edge in self.edges]
        steps = [f"WHEN {number} < {high} THEN '{label}'" for high, label in zip(points[1:], self.labels, strict=True)]
        last = f"WHEN {number} = {points[-1]} THEN '{self.labels[-1]}'"
        return f"CASE WHEN {number} < {points[0]} THEN NULL {' '.join(steps)} {last} ELSE NULL END"


def _as_number(edge: Any) -> int | float:
    number = number_of_day(edge) if isinstance(edge, datetime.date) else edge
    return int(number) if float(number).is_integer() and abs(number) < 2**53 else float(number)


def bins_of(bins: int | None, edges: Sequence[Edge] | None, between: Any, kind: Any, column: str) -> Bins | None:
    """The bins that a histogram asks for: `bins` of equal width in `between`, or those between `edges`."""
    if bins is None and edges is None:
        if between is not None:
            raise InvalidArgument("between needs bins=, the number of bins between these ends.", code="bins")
        return None
    if (bins is None) == (edges is None) or _is_pair(between) != (bins is not None):
        raise InvalidArgument(
            "Write the number of bins and their public ends, bins=10, between=(0, 100), or their edges, "
            "edges=[0, 18, 65, 120].",
            code="bins",
        )
    if kind not in ("integer", "number", *DAYS):
        raise InvalidArgument(
            f"{column} is {kind}, and only numbers and dates have bins. Give its choices instead.", code="bins"
        )
    found = listed(edges) if bins is None else _equal(check_count(bins, "bins"), between, kind)
    days = kind in DAYS
    if not all(isinstance(e, datetime.date) if days else _is_number(e) for e in found) or len(found) < 2:
        raise InvalidArgument(
            f"edges must be two or more {'dates' if days else 'numbers'}, such as [0, 18, 65].", code="bins"
        )
    if any(low >= high for low, high in pairwise(found)) or len(found) > LARGEST_DOMAIN // 10:
        raise InvalidArgument(
            f"edges must increase, and there may be at most {LARGEST_DOMAIN // 10:,} of them.", code="bins"
        )
    return Bins(found, kind)


def listed(edges: Any) -> tuple[Any, ...]:
    """Edges as plain values. Nothing, if they are not a list."""
    if isinstance(edges, np.ndarray):
        return tuple(edges.ravel().tolist())
    known = isinstance(edges, Sequence) and not isinstance(edges, str)
    return tuple(edge.item() if isinstance(edge, np.generic) else edge for edge in edges) if known else ()


def _is_pair(between: Any) -> bool:
    return isinstance(between, tuple | list) and len(between) == 2


def _is_number(edge: Any) -> bool:
    return isinstance(edge, int | float) and not isinstance(edge, bool) and math.isfinite(edge)


def _equal(bins: int, between: Any, kind: str) -> tuple[Any, ...]:
    """Edges of bins with equal width. For dates, of nearly equal numbers of whole days."""
    low, high = map(number_of_day, between) if kind in DAYS else map(float, between)
    if bins >= LARGEST_DOMAIN or not math.isfinite(low) or not math.isfinite(high):
        return ()
    edges = [low + (high - low) * place / bins for place in range(bins)] + [high]
    if kind in DAYS:
        return tuple(EPOCH + datetime.timedelta(days=round(edge)) for edge in edges)
    return tuple(int(edge) if edge.is_integer() and abs(edge) < 2**53 else edge for edge in edges)


# --- the release ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GroupedRelease(Release):
    """A number for each group: `value` is a dict. Its keys are the values of the column, or tuples if there are
    several columns. `table` has the same rows as an Arrow table, with the error next to each number.
    """

    answer: Answer = field(repr=False)
    _days: tuple[str, ...] = field(repr=False, default=())
    _number: str = field(repr=False, default="")

    @property
    def table(self) -> Any:
        """Groups, numbers and their errors (95%), as an Arrow table."""
        import pyarrow as pa

        found = self.answer.table
        for name in self._days:
            days = [None if day is None else from_number(day, "date") for day in found.column(name).to_pylist()]
            found = found.set_column(found.schema.get_field_index(name), name, pa.array(days, pa.date32()))
        return found

    def _value_text(self) -> str:
        """Each number with its own error, if each group has one number, and errors differ."""
        halves = self.answer.table.column(f"{self._number}_error").to_pylist() if self._number else []
        if len(set(halves)) < 2:
            return super()._value_text()
        groups = zip(self.value.items(), halves, strict=True)
        listed = [f"{key!r}: {with_error(number, half)}" for (key, number), half in groups]
        return f"{{{', '.join(listed)}}} (95%)"

    def cube(self, by: Sequence[str] = ()) -> Any:
        """The rows of one level of a cube, by its keys, as an Arrow table. Without keys, the total."""
        return self.answer.cube(by)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        need("pandas", None, "release.to_pandas")
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """The table as a polars DataFrame."""
        return need("polars", None, "release.to_polars").from_arrow(self.table)

    def plot(self, *, confidence: float = 0.95, style: str = "light") -> Any:
        """The numbers as a matplotlib figure, with error bars. `style` is "light" or "dark"."""
        return self.answer.plot(confidence=confidence, style=style)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        if not self._days:
            return self.answer._repr_html_()
        found = self.table
        rows = [[str(cell) for cell in row.values()] for row in found.slice(0, html.MOST_ROWS).to_pylist()]
        more = max(0, found.num_rows - html.MOST_ROWS)
        return html.table(found.column_names, rows, more=more) + html.note("; ".join(self.notes()))


@dataclass(frozen=True)
class GroupedOffer(SqlOffer):
    """A question in SQL with one row for each group. `said` is what the error does not cover, besides its notes.
    `number` names the column of numbers, if each row is a group with one of them.
    """

    days: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    number: str = ""

    def release(self) -> GroupedRelease:
        answer = self._answer()
        release = self._release_of(answer)
        more = {"answer": answer, "_days": self.days, "_said": release._said + self.said, "_number": self.number}
        return convert_release(GroupedRelease, release, **more)  # type: ignore[no-any-return]


def by_group(
    keys: Sequence[str], names: Sequence[str], shown: Callable[[list[Any]], Any]
) -> Callable[[dict[str, list[Any]]], dict[Any, Any]]:
    """How the columns of an answer become a dict. `shown` makes the value of a group from its numbers."""

    def value_of(answer: dict[str, list[Any]]) -> dict[Any, Any]:
        groups = zip(*(answer[key] for key in keys), strict=True)
        numbers = zip(*(answer[name] for name in names), strict=True)
        return {
            group[0] if len(keys) == 1 else group: shown(list(each))
            for group, each in zip(groups, numbers, strict=True)
        }

    return value_of


def error_of_groups(answer: Answer, confidence: float, *, names: Sequence[str]) -> Accuracy:
    """The largest error among the groups. Each interval holds by itself."""
    table = answer.with_errors(confidence)
    halves = [half for name in names for half in table.column(f"{name}_error").to_pylist()]
    if not halves or any(half is None for half in halves):
        reason = "no group is shown" if not halves else "no interval is known for some groups"
        return Accuracy(amount=None, confidence=confidence, of="value", reason=reason)
    return Accuracy(amount=max(halves), confidence=confidence, of="value")


def quoted(keys: Sequence[str]) -> str:
    """The columns to group by, as SQL writes them."""
    return ", ".join(map(quote, keys))

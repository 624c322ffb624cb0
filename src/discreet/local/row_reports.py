"""Mixed rows: every column told on its own, one report a row."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger import Ledger
from discreet.local.devices import check_ledger, promise, tell
from discreet.local.estimates import Counted, Measured
from discreet.local.numbers import MeanSurvey, mean
from discreet.local.surveys import Survey, survey
from discreet.mechanisms.combine import Composed
from discreet.rational import Number, check_positive, exactly


def rows(
    columns: Mapping[str, Sequence[Hashable] | tuple[Number, Number]],
    *,
    epsilon: Number,
    delta: Number = 0,
    shares: Mapping[str, Number] | None = None,
    ledger: Ledger | None = None,
) -> Rows:
    """A survey of whole rows: a list of choices for each column of categories, (low, high) for each of numbers.

    The columns of one row add [T.4.7], so ε is split over them, evenly or by `shares`.
    """
    if not isinstance(columns, Mapping) or not columns:
        raise InvalidArgument("rows needs at least one column, such as {'city': ['a', 'b'], 'age': (0, 120)}.")
    total = promise(epsilon, delta)
    check_ledger(ledger)
    weights = {name: check_positive(w, "a share") for name, w in (shares or dict.fromkeys(columns, 1)).items()}
    if set(weights) != set(columns):
        raise InvalidArgument("shares must name every column, and no other.")
    whole = sum(weights.values())
    parts: dict[str, Survey | MeanSurvey] = {}
    for name, given in columns.items():
        share = weights[name] / whole
        budget: dict[str, Any] = {"epsilon": exactly(epsilon) * share, "delta": exactly(delta) * share}
        is_range = isinstance(given, tuple) and len(given) == 2 and not any(isinstance(e, str) for e in given)
        parts[name] = mean(between=given, **budget) if is_range else survey(choices=given, **budget)  # type: ignore[arg-type]
    return Rows(columns=parts, stated=total, ledger=ledger)


@dataclass(frozen=True, kw_only=True)
class Rows(Closed):
    """Both sides of a survey of rows; `columns` are the surveys of each."""

    columns: Mapping[str, Survey | MeanSurvey]
    stated: Guarantee
    ledger: Ledger | None = None

    @cached_property
    def mechanism(self) -> Composed:
        """All columns at once."""
        return Composed(mechanisms=tuple(column.mechanism for column in self.columns.values()))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one row's report promises: its columns composed, or (ε,δ) as asked."""
        if self.stated.infinite:
            return self.stated
        return self.mechanism.guarantee(None)

    def __str__(self) -> str:
        listed = ", ".join(f"{name} by the {one.method} method" for name, one in self.columns.items())
        return f"Rows of {listed}: {self.guarantee} for each row, whoever collects it"

    # --- on the device ---------------------------------------------------------------------------------------

    def encode(self, row: Mapping[str, Any], *, key: str | None = None) -> dict[str, Any]:
        """One row's report: a value missing is told as None, that is as the first choice or the middle of a range."""
        if not isinstance(row, Mapping):
            raise InvalidArgument("A row must be a mapping from column to value, such as {'age': 30}.")
        drawn = self._through({name: [row.get(name)] for name in self.columns}, key)
        return {name: reports[0].tolist() for name, reports in drawn.items()}

    def encode_many(self, table: Any) -> dict[str, Any]:
        """The reports of many rows, column by column; `table` has a list for each column, or is a list of rows."""
        if isinstance(table, Mapping):
            lists = {name: table.get(name) for name in self.columns}
        elif isinstance(table, Sequence) and all(isinstance(one, Mapping) for one in table):
            lists = {name: [one.get(name) for one in table] for name in self.columns}
        else:
            raise InvalidArgument("A table must be a mapping from column to values, or a list of rows.")
        lengths = {-1 if values is None or not hasattr(values, "__len__") else len(values) for values in lists.values()}
        if len(lengths) != 1 or -1 in lengths:
            raise InvalidArgument("Every column of the survey must have its values, as many in each.")
        return self._through(lists, None)

    def _through(self, lists: Mapping[str, Any], key: str | None) -> dict[str, Any]:
        drawn = tell(
            lambda: tuple(one.places(lists[name]) for name, one in self.columns.items()),
            self.mechanism,
            self.guarantee,
            ledger=self.ledger,
            asked=f"local reports of rows: {', '.join(self.columns)}",
            key=key,
        )
        return dict(zip(self.columns, drawn, strict=True))

    # --- at the collector ------------------------------------------------------------------------------------

    def analyze(self, reports: Any) -> dict[str, Counted | Measured]:
        """The counts or the mean of each column, with error bars; each guarantee is the column's own share."""
        if not isinstance(reports, Mapping):
            listed = [one for one in reports if isinstance(one, Mapping) and set(one) == set(self.columns)]
            if not listed:
                raise InvalidArgument("reports must be those of these rows, with every column.")
            reports = {name: [one[name] for one in listed] for name in self.columns}
        if set(reports) != set(self.columns):
            raise InvalidArgument("reports must be those of these rows, with every column.")
        return {name: one.analyze(reports[name]) for name, one in self.columns.items()}

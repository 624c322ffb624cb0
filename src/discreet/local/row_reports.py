"""Mixed rows: every column is randomized on its own, one report per row."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet.closing import Closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_positive, exactly
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger import Ledger
from discreet.local.devices import check_ledger, make_reports, promise
from discreet.local.estimates import Counted, Measured, check_reports
from discreet.local.numbers import MeanSurvey, mean
from discreet.local.surveys import Survey, survey
from discreet.mechanisms.combine import Composed
from discreet.mechanisms.reports.local_records import is_column, one_column
from discreet.rows.containers import Data


def rows(
    columns: Mapping[str, Sequence[Hashable] | tuple[Number, Number]],
    *,
    epsilon: Number,
    delta: Number = 0,
    shares: Mapping[str, Number] | None = None,
    ledger: Ledger | None = None,
) -> Rows:
    """A survey of whole rows: a list of choices for each categorical column, (low, high) for each numeric one.

    The ε of the columns of one row add up [T.4.7], so ε is divided among them, evenly or by `shares`.
    """
    if not isinstance(columns, Mapping) or not columns:
        raise InvalidArgument(
            "rows needs at least one column, such as {'city': ['a', 'b'], 'age': (0, 120)}.", code="empty"
        )
    total = promise(epsilon, delta)
    check_ledger(ledger)
    weights = {name: check_positive(w, "a share") for name, w in (shares or dict.fromkeys(columns, 1)).items()}
    if set(weights) != set(columns):
        raise InvalidArgument("shares must name every column of the survey, and no other.", code="survey-columns")
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
    """Both sides of a survey of rows. `columns` are the surveys of the columns."""

    columns: Mapping[str, Survey | MeanSurvey]
    stated: Guarantee
    ledger: Ledger | None = None

    @cached_property
    def mechanism(self) -> Composed:
        """All columns at once."""
        return Composed(mechanisms=tuple(column.mechanism for column in self.columns.values()))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one row's report promises: its columns composed, or the requested (ε,δ)."""
        if self.stated.infinite:
            return self.stated
        return self.mechanism.guarantee(None)

    def __str__(self) -> str:
        listed = ", ".join(f"{name} by the {one.method} method" for name, one in self.columns.items())
        return f"Rows of {listed}: {self.guarantee} for each row, whoever collects it"

    # --- on the device ---------------------------------------------------------------------------------------

    def encode(self, row: Mapping[str, Any], *, key: str | None = None) -> dict[str, Any]:
        """One row's report, made on the device of the person who sends it. A missing or unsupported value is
        refused.
        """
        if not isinstance(row, Mapping):
            raise InvalidArgument(
                "A row must be a mapping of columns to values, such as {'age': 30}.", code="wrong-type"
            )
        for name, one in self.columns.items():
            if one.places([_cell(row, name)])[0] < 0:
                raise InvalidArgument(
                    f"The survey does not take this row's value in {name!r}. It takes {one.takes}.",
                    code="unknown-answer",
                )
        drawn = self._through({name: [_cell(row, name)] for name in self.columns}, key)
        return {name: reports[0].tolist() for name, reports in drawn.items()}

    def encode_many(self, table: Data) -> dict[str, Any]:
        """The reports of many rows, column by column. `table` has a list for each column, or is a list of rows.

        Each cell is read by itself. A missing or unsupported cell is replaced by a uniform choice, or by the middle of
        its range. So are all cells of a value that is not a row.
        """
        lists: dict[str, Any]
        if isinstance(table, Mapping):
            lists = {name: table.get(name) for name in self.columns}
        elif isinstance(table, Sequence) and not isinstance(table, str | bytes):
            lists = {name: [_cell(one, name) for one in table] for name in self.columns}
        else:
            raise InvalidArgument(
                "A table must be a mapping of columns to values, or a list of rows.", code="wrong-type"
            )
        if not all(map(is_column, lists.values())) or len({len(values) for values in lists.values()}) != 1:
            raise InvalidArgument(
                "Every column of the survey must have values, the same number in each.", code="survey-columns"
            )
        lists = {name: one_column(values) for name, values in lists.items()}
        return self._through(lists, None)

    def _through(self, lists: Mapping[str, Any], key: str | None) -> dict[str, Any]:
        drawn = make_reports(
            lambda: tuple(one.places(lists[name]) for name, one in self.columns.items()),
            self.mechanism,
            self.guarantee,
            ledger=self.ledger,
            asked=f"local reports of rows: {', '.join(self.columns)}",
            key=key,
        )
        return dict(zip(self.columns, drawn, strict=True))

    # --- at the collector ------------------------------------------------------------------------------------

    def analyze(self, reports: Data) -> dict[str, Counted | Measured]:
        """The counts or the mean of each column, with error bars. Each guarantee is the column's own share."""
        if not isinstance(reports, Mapping):
            check_reports(reports)
            reports = {name: [_cell(one, name) for one in reports] for name in self.columns}
        if set(reports) != set(self.columns):
            raise InvalidArgument(
                "reports must come from this survey of rows, with every column.", code="survey-columns"
            )
        return {name: one.analyze(reports[name]) for name, one in self.columns.items()}


def _cell(row: Any, name: str) -> Any:
    """One cell of a row, or of its report. None if there is none."""
    try:
        return row.get(name) if isinstance(row, Mapping) else None
    except Exception:
        return None

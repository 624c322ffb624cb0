"""A released synthetic table: rows that belong to nobody, with the declared columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from discreet.extras import need
from discreet.guarantees.accuracy import Accuracy
from discreet.releases import Release
from discreet.synthetic.sample import SyntheticSample


@dataclass(frozen=True, kw_only=True)
class SyntheticTable(Release):
    """`value` is an Arrow table of synthetic rows. Keep it, copy it and use it for any question, for free."""

    _made: SyntheticSample | None = field(repr=False, default=None)

    def __len__(self) -> int:
        return int(self.value.num_rows)

    def __getitem__(self, column: str) -> Any:
        return self.value.column(column).to_numpy()

    @property
    def table(self) -> Any:
        """The rows, as an Arrow table."""
        return self.value

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        need("pandas", None, "synthetic tables in pandas")
        return self.value.to_pandas()

    def to_polars(self) -> Any:
        """The rows as a polars DataFrame."""
        return need("polars", None, "synthetic tables in polars").from_arrow(self.value)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for other libraries: `pl.DataFrame(rows)`, `pa.table(rows)`, `duckdb.sql("FROM rows")`."""
        return self.value.__arrow_c_stream__(requested_schema)

    @property
    def measured(self) -> tuple[tuple[str, ...], ...]:
        """The sets of columns whose counts were measured. Others follow from the model."""
        assert self._made is not None
        return self._made.measured

    @property
    def rows_estimated(self) -> float:
        """The noisy number of true rows: synthetic counts are scaled to it before they are compared."""
        assert self._made is not None
        return max(float(self._made.released["total"]), 0.0)

    def error(self, confidence: float = 0.95, *, of: Any = None) -> Accuracy:
        """How far any count of a measured set of columns can be from the true one, after synthetic counts are scaled to
        `rows_estimated`. By default for single columns. Numbers are counted in bins, at most 100.
        """
        assert self._made is not None
        if of is not None:
            return self._made.error(confidence, of=(of,) if isinstance(of, str) else tuple(of))
        single = [names for names in self.measured if len(names) == 1]
        known = [self._made.error(1 - (1 - confidence) / len(single), of=names) for names in single]
        amount = max(float(one) for one in known)
        return Accuracy(amount=amount, confidence=confidence, of="every value")

    def _value_text(self) -> str:
        """How many rows of which columns, and how far counts may be off."""
        off = f"{float(self.error(0.95)):,.0f} (95%)"
        counts = f"counts of single columns, of about {self.rows_estimated:,.0f} true rows, within {off}"
        return f"{len(self):,} synthetic rows of {', '.join(self.value.column_names)}; {counts}"

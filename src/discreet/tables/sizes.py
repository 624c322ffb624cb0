"""Whether the number of rows of a table is public."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from discreet.rows.containers import has, package
from discreet.tables.methods import Methods


def has_public_size(methods: Methods) -> bool:
    """Whether rows are replaced, in a source in which what a row holds cannot change how many there are.

    A line of a text file that cannot be read is left out, and a frame that is not computed yet may read such a file. A
    person who is replaced may have no rows.
    """
    unit, source = methods.ledger.protects, methods.table.source
    parquet = isinstance(source, str | Path) and str(source).endswith(".parquet")
    held = isinstance(source, Mapping) or (
        has(source, "__len__") and package(source) in ("pandas", "polars", "pyarrow")
    )
    return unit.neighbors == "replace" and unit.column is None and (parquet or held)

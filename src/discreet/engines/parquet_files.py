"""Parquet files, read so that no cell stops a question, and so that how a row is read depends on no other row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.engines.duckdb.dialect import quoted_text

TOTAL = "utf8_validation = 'replace', can_have_nan = true"
"""Bytes that are no UTF-8 are read as '?'. The statistics of a file do not tell of NaN: believed, they would decide a
comparison for all rows that have it, by the largest number that somebody else has."""


def reading(files: str, *, together: bool = False) -> str:
    """FROM: the files of a pattern, with the columns of the first, or of all together.

    Folders such as city=Haifa are text: what one row is in must not decide the type of all.
    """
    union = f"union_by_name = {str(together).lower()}"
    return f"read_parquet({quoted_text(files)}, hive_types_autocast = false, {union}, {TOTAL})"


def without_statistics(column: str) -> str:
    """A column of text for which DuckDB knows no statistics: they are of the bytes as they were before they were
    replaced, and leave out rows by the values of others.
    """
    return f"least({column})"


def in_milliseconds(files: Sequence[Path]) -> set[str]:
    """The columns with moments in milliseconds. Reading one that is beyond what DuckDB has would stop it, and no
    expression can help; so none is read, whatever the moments are. Only the schemas of the files are looked at.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: set[str] = set()
    for file in files:
        try:
            schema = pq.read_metadata(file).schema
        except (OSError, pa.ArrowException):
            continue  # said when its columns are asked for
        columns = [schema.column(number) for number in range(len(schema.names))]
        found |= {column.path.partition(".")[0] for column in columns if _is_in_milliseconds(column)}
    return found


def _is_in_milliseconds(column: Any) -> bool:
    kind = json.loads(column.logical_type.to_json())
    return bool(kind.get("Type") == "Timestamp" and kind.get("timeUnit") == "milliseconds")

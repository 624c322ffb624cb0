"""Parquet files. No cell can stop a question, and how a row is read does not depend on other rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.engines.duckdb.dialect import quote_text

TOTAL = "utf8_validation = 'replace', can_have_nan = true"
"""Bytes that are no UTF-8 are read as '?'. The statistics of a file do not tell of NaN: believed, they would decide a
comparison for all rows that have it, by the largest number that somebody else has."""


def reading(files: str, *, together: bool = False) -> str:
    """FROM: the files of a pattern, with the columns of the first file, or of all files together.

    Folder names such as city=Haifa are read as text: the folder of one row must not decide the type for all rows.
    """
    union = f"union_by_name = {str(together).lower()}"
    return f"read_parquet({quote_text(files)}, hive_types_autocast = false, {union}, {TOTAL})"


def without_statistics(column: str) -> str:
    """A text column without DuckDB's statistics. The statistics describe the bytes before invalid ones are replaced,
    and could skip rows depending on the values of others.
    """
    return f"least({column})"


def in_milliseconds(files: Sequence[Path]) -> set[str]:
    """The columns with timestamps in milliseconds. A timestamp outside DuckDB's range would stop the reading, and no
    expression can prevent that, so such columns are never read. Only the schemas of the files are checked.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: set[str] = set()
    for file in files:
        try:
            schema = pq.read_metadata(file).schema
        except (OSError, pa.ArrowException):
            continue  # reported when its columns are requested
        columns = [schema.column(number) for number in range(len(schema.names))]
        found |= {column.path.partition(".")[0] for column in columns if _is_in_milliseconds(column)}
    return found


def _is_in_milliseconds(column: Any) -> bool:
    kind = json.loads(column.logical_type.to_json())
    return bool(kind.get("Type") == "Timestamp" and kind.get("timeUnit") == "milliseconds")

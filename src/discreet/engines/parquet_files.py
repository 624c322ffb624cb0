"""Parquet files, read so that no cell stops a question, and so that how a row is read depends on no other row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.engines.words import quoted_text
from discreet.errors import InvalidArgument

TOTAL = "utf8_validation = 'replace', can_have_nan = true"
"""Bytes that are no UTF-8 are read as '?'. The statistics of a file do not tell of NaN: believed, they would decide a
comparison for all rows that have it, by the largest number that somebody else has."""
_MILLISECONDS = (2**63 - 1) // 10**3


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


def check_moments(name: str, files: Sequence[Path]) -> None:
    """That no moment in milliseconds is beyond what DuckDB has: reading it stops, and no expression can help.

    Only the ends of the files are read, where their statistics are.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in files:
        try:
            end = pq.read_metadata(file)
        except (OSError, pa.ArrowException):
            continue  # said when its columns are asked for
        for number in range(end.num_columns):
            column = end.schema.column(number)
            if _in_milliseconds(column) and not all(
                _within(end.row_group(group).column(number)) for group in range(end.num_row_groups)
            ):
                raise InvalidArgument(
                    f"The source of {name} has moments in milliseconds, in {column.path}, and its statistics do not "
                    "show that all of them have a number of microseconds. Write the column in microseconds."
                )


def _in_milliseconds(column: Any) -> bool:
    kind = json.loads(column.logical_type.to_json())
    return bool(kind.get("Type") == "Timestamp" and kind.get("timeUnit") == "milliseconds")


def _within(cells: Any) -> bool:
    known = cells.statistics
    if known is None:
        return False
    if not known.has_min_max:
        return bool(known.has_null_count and known.null_count == cells.num_values)
    return bool(max(-known.min_raw, known.max_raw) <= _MILLISECONDS)

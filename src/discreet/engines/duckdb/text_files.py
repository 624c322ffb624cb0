"""Text files: CSV, and JSON lines. No type is guessed from rows, and no row can stop a question."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from discreet.engines.duckdb.dialect import TYPES, WORDS, list_texts, quote, quote_text, total
from discreet.errors import InvalidArgument

_LINES = (
    "auto_detect = false, ignore_errors = true, null_padding = true, strict_mode = false, hive_partitioning = false"
)
"""Nothing is guessed from the rows, and none stops a question: fields that a line lacks are NULL, those it has too many
are left out, and what cannot be read as a line at all is none.
"""
# In parallel, DuckDB 2.0 may take a line break inside quotes for the end of a row, and what follows it for rows of
# other people; and with null_padding it fails there.
_IN_ORDER = "parallel = false"


class TextSource(Protocol):
    """Files whose values are text."""

    def relation(self, types: Mapping[str, str]) -> str:
        """The files in a FROM clause, with these types for their columns. A value that does not fit its type is
        NULL.
        """


@dataclass(frozen=True)
class Csv:
    """Files with the names of their columns in the first line."""

    files: tuple[str, ...]
    names: tuple[str, ...]
    delimiter: str

    @classmethod
    def opened(cls, name: str, files: Sequence[Path]) -> Csv:
        found = {_header(file) for file in files}
        if len(found) > 1:
            raise InvalidArgument(
                f"The files of {name} begin with different lines of column names. Give them the same one.",
                code="source-files-differ",
            )
        [(names, delimiter)] = found
        plain = {column.strip().lower() for column in names}
        if len(plain) < len(names) or "" in plain or any(map(_is_number, plain)):
            raise InvalidArgument(
                f"The source of {name} must begin with the names of its columns: all different, and none a number.",
                code="source-header",
            )
        return cls(tuple(map(str, files)), names, delimiter)

    def relation(self, types: Mapping[str, str]) -> str:
        dialect = f"""header = true, delim = {quote_text(self.delimiter)}, quote = '"', escape = '"'"""
        columns = [f"{_cast(quote(name), types.get(name))} AS {quote(name)}" for name in self.names]
        return f"(SELECT {', '.join(columns)} FROM {_read_lines(self.files, self.names, dialect)})"


@dataclass(frozen=True)
class JsonLines:
    """Files with one JSON object per line. They declare no column names: the columns are those with a declared type.

    A line that is not an object, such as the start of a list, is a row without values. No line decides how a file is
    read.
    """

    name: str
    files: tuple[str, ...]

    @classmethod
    def opened(cls, name: str, files: Sequence[Path]) -> JsonLines:
        return cls(name, tuple(map(str, files)))

    def relation(self, types: Mapping[str, str]) -> str:
        if not types:
            raise InvalidArgument(
                f"The source of {self.name} is JSON, which has only the declared columns. Declare their types.",
                code="source-types",
            )
        # the delimiter is a character that JSON always escapes, so every line is one field
        lines = _read_lines(self.files, ["line"], "header = false, delim = '\x01', quote = '', escape = ''")
        paths = list_texts(["/" + name.replace("~", "~0").replace("/", "~1") for name in types])
        found = total(f"json_extract_string(line, {paths})")
        columns = [f"{_cast(f'found[{n}]', kind)} AS {quote(name)}" for n, (name, kind) in enumerate(types.items(), 1)]
        return f"(SELECT {', '.join(columns)} FROM (SELECT {found} AS found FROM {lines}))"


def _read_lines(files: Sequence[str], names: Sequence[str], dialect: str) -> str:
    columns = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names)
    return f"read_csv({list_texts(files)}, columns = {{{columns}}}, {dialect}, {_LINES}, {_IN_ORDER})"


def _header(file: Path) -> tuple[tuple[str, ...], str]:
    """The names in the first line of a CSV file, and the delimiter between them."""
    with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as opened:
        first = opened.readline(100_000)
        delimiter = "\t" if file.suffix.lower() == ".tsv" else max(",;\t|", key=first.count)
        opened.seek(0)
        try:
            names = tuple(next(csv.reader(opened, delimiter=delimiter), []))
            "".join(names).encode()
        except (csv.Error, UnicodeEncodeError):
            names = ()
    return names or ("",), delimiter


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _cast(value: str, kind: str | None) -> str:
    return value if kind in (None, "text", "other") else WORDS["cast"].format(value, detail=TYPES[kind])

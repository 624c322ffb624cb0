"""Text files: CSV, TSV, TXT, and JSON lines. No type is guessed from rows, and no row can stop a question."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from discreet.engines.duckdb.dialect import TYPES, WORDS, list_texts, quote, quote_text, total
from discreet.engines.text_format import BLANKS, TextFormat, parsing_pattern, shape_of
from discreet.errors import InvalidArgument

ZIPPED = ".gz"
_SEPARATORS = ",;\t|"
_USUAL = TextFormat()

_LINES = (
    "auto_detect = false, ignore_errors = true, null_padding = true, strict_mode = false, hive_partitioning = false, "
    "new_line = '\\n'"
)
"""Nothing is guessed from the rows, and none stops a question: fields that a line lacks are NULL, those it has too many
are left out, and what cannot be read as a line at all is none. With `new_line`, a line ends at \\r, \\n or both.
Without it, the end of the first line decides, and a single \\r in one row may take the next row with it.
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
    """Files of lines with the same columns. Their names are in the first line, or declared."""

    files: tuple[str, ...]
    names: tuple[str, ...]
    delimiter: str
    declared: TextFormat = _USUAL

    @classmethod
    def opened(cls, name: str, files: Sequence[Path], declared: TextFormat = _USUAL) -> Csv:
        if not declared.header:
            return cls(tuple(map(str, files)), declared.names, declared.separator or ",", declared)
        found = {_header(file, declared.separator, name) for file in files}
        if len(found) > 1:
            raise InvalidArgument(
                f"The files of {name} begin with different lines of column names. Give them the same one.",
                code="source-files-differ",
            )
        [(names, delimiter)] = found
        plain = {column.strip().lower() for column in names}
        if len(plain) < len(names) or "" in plain or any(map(_is_number, plain)):
            raise InvalidArgument(
                f"The source of {name} must begin with the names of its columns: all different, and none a number. "
                "If its first line is a row, declare a format with header = false.",
                code="source-header",
            )
        return cls(tuple(map(str, files)), names, delimiter, declared)

    def relation(self, types: Mapping[str, str]) -> str:
        header = f"header = {str(self.declared.header).lower()}"
        if self.delimiter == BLANKS:
            lines = _read_lines(self.files, ["line"], f"{header}, {_ONE_FIELD}")
            line = "trim(line, E' \\t\\r')"
            fields = total(f"string_split_regex({line}, '[ \\t]+')")
            rows, cells = (
                f"(SELECT {fields} AS found FROM {lines} WHERE {line} <> '')",
                [f"found[{n + 1}]" for n in range(len(self.names))],
            )
        else:
            dialect = f"""{header}, delim = {quote_text(self.delimiter)}, quote = '"', escape = '"'"""
            rows, cells = _read_lines(self.files, self.names, dialect), list(map(quote, self.names))
        columns = [
            f"{_read(cell, types.get(name), self.declared, name)} AS {quote(name)}"
            for cell, name in zip(cells, self.names, strict=True)
        ]
        return f"(SELECT {', '.join(columns)} FROM {rows})"


@dataclass(frozen=True)
class JsonLines:
    """Files with one JSON object per line. They declare no column names: the columns are those with a declared type.

    A line that is not an object, such as the start of a list, is a row without values. No line decides how a file is
    read.
    """

    name: str
    files: tuple[str, ...]
    declared: TextFormat = _USUAL

    @classmethod
    def opened(cls, name: str, files: Sequence[Path], declared: TextFormat = _USUAL) -> JsonLines:
        return cls(name, tuple(map(str, files)), declared)

    def relation(self, types: Mapping[str, str]) -> str:
        if not types:
            raise InvalidArgument(
                f"The source of {self.name} is JSON, which has only the declared columns. Declare their types.",
                code="source-types",
            )
        lines = _read_lines(self.files, ["line"], f"header = false, {_ONE_FIELD}")
        paths = list_texts(["/" + name.replace("~", "~0").replace("/", "~1") for name in types])
        found = total(f"json_extract_string(line, {paths})")
        columns = [
            f"{_read(f'found[{n}]', kind, self.declared, name)} AS {quote(name)}"
            for n, (name, kind) in enumerate(types.items(), 1)
        ]
        return f"(SELECT {', '.join(columns)} FROM (SELECT {found} AS found FROM {lines}))"


# a character that JSON always escapes, and text does not have
_ONE_FIELD = "delim = '\x01', quote = '', escape = ''"


def _read_lines(files: Sequence[str], names: Sequence[str], dialect: str) -> str:
    columns = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names)
    zipped = "compression = 'gzip', " * all(file.endswith(ZIPPED) for file in files)
    read = f"read_csv({list_texts(files)}, columns = {{{columns}}}, {dialect}, {zipped}{_LINES}, {_IN_ORDER})"
    if len(names) > 1:
        return read
    # in a single column, DuckDB takes an empty line for a row, and sees one between \r and \n
    return f"(SELECT * FROM {read} WHERE {quote(names[0])} IS NOT NULL)"


def _header(file: Path, separator: str | None, name: str) -> tuple[tuple[str, ...], str]:
    """The names in the first line of a file, and the separator between them."""
    try:
        with open_text(file) as opened:
            first = opened.readline(LONGEST_HEADER)
            delimiter = separator or likely_separator(first, file)
            opened.seek(0)
            names = tuple(first.split() if delimiter == BLANKS else next(csv.reader(opened, delimiter=delimiter), []))
            "".join(names).encode()
    except (csv.Error, UnicodeEncodeError):
        names = ()
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InvalidArgument(
            f"The source of {name} cannot be read as a table. Check that the file is complete and in the format "
            "that its name says.",
            code="source-unreadable",
        ) from None
    if len(names) > 1 and not names[0].strip() and "column1" not in names:
        names = ("column1", *names[1:])  # a column of row numbers often has no name
    return names or ("",), delimiter


LONGEST_HEADER = 100_000


def open_text(file: Path) -> IO[str]:
    """A text file, which may be compressed."""
    return io.TextIOWrapper(open_bytes(file), encoding="utf-8-sig", errors="surrogateescape", newline="")


def open_bytes(file: Path) -> gzip.GzipFile | io.BufferedReader:
    """The bytes of a file, which may be compressed."""
    return gzip.GzipFile(file) if file.name.lower().endswith(ZIPPED) else file.open("rb")


def likely_separator(line: str, file: Path) -> str:
    """The separator of a line, by how often it occurs. In a .txt file without any other one it is blanks."""
    plain = file.name.lower().removesuffix(ZIPPED)
    if plain.endswith(".tsv"):
        return "\t"
    found = max(_SEPARATORS, key=line.count)
    return BLANKS if plain.endswith(".txt") and found not in line else found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read(value: str, kind: str | None, declared: TextFormat, name: str) -> str:
    """A cell as a value of its type. NULL if it does not fit."""
    if kind in ("date", "timestamp") and name in declared.dates:
        return read_date(value, declared.dates[name], kind)
    if kind in ("integer", "number"):
        value = plain_number(value, declared, fractions=kind == "number")
    return value if kind in (None, "text", "other") else WORDS["cast"].format(value, detail=TYPES[kind])


def plain_number(value: str, declared: TextFormat, *, fractions: bool = True) -> str:
    """A cell with a number, as SQL writes numbers. Marks of thousands count only between groups of three digits: 1.5 is
    no 15.
    """
    if mark := declared.thousands:
        shape = rf"[+-]?[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+({re.escape(declared.decimal)}\d*)?"
        joined = f"replace({value}, {quote_text(mark)}, '')"
        value = f"CASE WHEN regexp_full_match(trim({value}), {quote_text(shape)}) THEN {joined} ELSE {value} END"
    if fractions and declared.decimal != ".":
        value = f"replace({value}, {quote_text(declared.decimal)}, '.')"
    return value


def read_date(value: str, written: str, kind: str) -> str:
    """A cell as a date that is written in a declared format. DuckDB's own parser takes "infinity" for a day, and years
    of two digits for those of the first century.
    """
    parsed = total(f"CAST(try_strptime({value}, {quote_text(parsing_pattern(written))}) AS {TYPES[kind]})")
    return f"CASE WHEN regexp_full_match(trim({value}), {quote_text(shape_of(written))}) THEN {parsed} END"

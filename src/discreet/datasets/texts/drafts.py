"""What a text file seems to be, for its owner to check: its separator, whether it has names, and types of columns.

Only the owner sees what is read off the rows here. A type is proposed if nearly all values fit it, so that no single
row decides it, and the owner is told how many do not.
"""

from __future__ import annotations

import csv
import datetime
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from discreet.datasets.texts.copies import count_unreadable, refuse_wide
from discreet.engines.duckdb.dialect import quote
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.text_files import LONGEST_HEADER, Csv, likely_separator, open_text, plain_number, read_date
from discreet.engines.text_format import BLANKS, TextFormat
from discreet.errors import InvalidArgument

_LOOKED_AT = 100
"""So many lines tell which separator a file has."""
ROWS = 200_000
"""So many rows tell which types its columns have."""
_QUOTE = re.compile(r'(?:^|[,;\t|])"')
_QUOTED = re.compile(r'(?:^|(?<=[,;\t|]))"(?:[^"]|"")*"')
"""Where a field in quotes begins, and a whole one, whatever separates them."""
_FITS = 0.95
"""A type is proposed if this part of the values fits it."""
_WHOLE = 0.99
"""Numbers are whole numbers if this part of them is. Others are rounded."""
_ZEROS = 0.01
"""A column is text if more than this part of its numbers begins with a zero, as those of postal codes do."""
NOTABLE = 0.01
"""What decides how numbers are written, or that a file is not UTF-8, is seen in at least this part of it."""
_NUMBERS = {
    "point": TextFormat(),
    "point, thousands by comma": TextFormat(thousands=","),
    "comma": TextFormat(decimal=","),
    "comma, thousands by point": TextFormat(decimal=",", thousands="."),
    "point, thousands by apostrophe": TextFormat(thousands="'"),
    "comma, thousands by blank": TextFormat(decimal=",", thousands=" "),
}
"""How numbers may be written. Of those that fit equally well, the first."""
_DATES = (
    *("dd.mm.yyyy", "dd/mm/yyyy", "mm/dd/yyyy", "dd-mm-yyyy", "mm-dd-yyyy", "dd-mon-yyyy", "ddmonyyyy"),
    *("dd.mm.yyyy hh:mi", "dd.mm.yyyy hh:mi:ss", "dd/mm/yyyy hh:mi", "dd/mm/yyyy hh:mi:ss"),
    *("mm/dd/yyyy hh:mi", "mm/dd/yyyy hh:mi:ss"),
)
_USUAL_DATES = {"date": "yyyy-mm-dd", "timestamp": "yyyy-mm-dd hh:mi"}
_TWO_READINGS = {
    None: (
        ".",
        '1.234 is read as 1 and a fraction. If it is one thousand and more, write decimal = ",", thousands = "."',
    ),
    ",": (
        ",",
        '1,234 is read as one thousand and more. If it is 1 and a fraction, write decimal = "," for thousands = ","',
    ),
}
"""By the mark of thousands: the mark that may mean a fraction or thousands, and what to say."""


@dataclass(frozen=True, kw_only=True)
class TextDraft:
    """A proposal for one table: how its files are read, and the types of its columns."""

    declared: TextFormat
    types: Mapping[str, str]
    dates: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What does not fit the types of columns, for the owner alone: it tells about rows."""
    file_notes: Sequence[str] = ()
    """The same about whole lines."""
    doubts: Sequence[str] = ()
    """What can be read in two ways in all columns, for the owner to decide. No single row makes the difference."""
    swaps: Collection[str] = ()
    """Columns of dates whose days and months can be swapped."""
    is_named: bool = False
    """Whether its owner has named the columns of a file without a line of names."""

    @property
    def unsure(self) -> list[str]:
        """All that can be read in two ways."""
        return [*(_said_of_date(one, self.dates[one]) for one in self.dates if one in self.swaps), *self.doubts]

    @property
    def is_nameless(self) -> bool:
        """Whether the columns are column1, column2, …: the file has no line of names, and nobody has named them."""
        return not self.declared.header and not self.is_named

    def named(self, names: Sequence[str]) -> TextDraft:
        """The same columns under the names that their owner gives, in the order of the file."""
        new = dict(zip(self.types, names, strict=True))
        return replace(
            self,
            declared=replace(self.declared, names=tuple(names)),
            types={new[one]: kind for one, kind in self.types.items()},
            dates={new[one]: written for one, written in self.dates.items()},
            notes={new[one]: said for one, said in self.notes.items()},
            swaps=[new[one] for one in self.swaps],
            is_named=tuple(names) != _numbered(len(names)),
        )

    def words(self) -> dict[str, Any]:
        """The format as a policy says it."""
        return self.declared.words()


def _numbered(count: int) -> tuple[str, ...]:
    """Names for columns that have none."""
    return tuple(f"column{number + 1}" for number in range(count))


def draft_text(
    name: str,
    source: Path,
    files: Sequence[Path],
    *,
    header: bool | None = None,
    separator: str | None = None,
    is_row: bool = False,
) -> TextDraft:
    """What files of text seem to be. `header` and `separator` are what their owner knows. If `is_row`, a first line
    that may be names or a row is a row.
    """
    lines = _first_lines(files[0], name)
    unreadable = sum(map(_check_encoding, files))
    made = _draft_lines(name, source, files[0], lines, header, separator, is_row)
    said = [f"lines that are not UTF-8, and will be left out: {unreadable:,}"] if unreadable else []
    return replace(made, file_notes=said)


def draft_names(
    name: str, source: Path, files: Sequence[Path], *, header: bool | None = None, separator: str | None = None
) -> TextDraft:
    """What the line of names says, and nothing else: no row is read, and every column is text."""
    declared = TextFormat(separator=separator)
    names = Csv.opened(name, files, declared).names
    if header is False or (header is None and any(map(_is_value, names))):
        raise InvalidArgument(
            f"Without its rows, only the line of names of {source} can be read. If its first line contains names, add "
            "--header. If it is a row, leave out --names-only.",
            code="command-header",
        )
    said = (
        "no row was read, so that every column is text. Declare the types of numbers and dates under "
        f'[tables.{name}.columns], such as cost = {{type = "number"}}.'
    )
    return TextDraft(declared=declared, types=dict.fromkeys(names, "text"), doubts=[said])


def _draft_lines(
    name: str, source: Path, file: Path, lines: Sequence[str], header: bool | None, separator: str | None, is_row: bool
) -> TextDraft:
    delimiter = separator or _separator_of(lines, file)
    first, rest = _cells(lines[:1], delimiter), _cells(lines[1:], delimiter)
    names = first[0] if first else []
    widths = Counter(map(len, [*first, *rest]))
    width = max(widths, key=lambda one: (widths[one], one), default=1)
    without = TextFormat(header=False, separator=delimiter, names=_numbered(width))
    if header is False:
        return _with_types(name, source, without)
    is_usual = bool(lines) and separator is None and delimiter == likely_separator(lines[0], file)
    declared = TextFormat(separator=None if is_usual else delimiter)
    if header:
        return _with_types(name, source, declared)
    if any(map(_is_value, names[1:] if len(names) > 1 and not names[0].strip() else names)):
        return _with_types(name, source, without)
    with suppress(InvalidArgument):
        made = _with_types(name, source, declared)
        if any(kind != "text" for kind in made.types.values()):
            return made
    if is_row:
        return _with_types(name, source, without)
    raise InvalidArgument(
        f"{source} may begin with a row instead of the names of its columns, and no value may get into a policy. If "
        "its first line contains their names, add --header; if it is a row, --no-header.",
        code="command-header",
    )


def _first_lines(file: Path, name: str) -> list[str]:
    """The first rows of a file, as they are written: a row can have many lines, or very long ones, and counts once."""
    try:
        with open_text(file) as opened:
            lines = [_row(opened) for _ in range(_LOOKED_AT)]
    except (EOFError, OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise InvalidArgument(
                f"{file} cannot be read: {error.strerror}. Make it readable.", code="file-not-readable"
            ) from None
        Csv.opened(name, [file])  # says what is wrong with it
        raise
    return [line for line in lines if line.strip()]


def _row(opened: IO[str]) -> str:
    """The next row, of which a very long rest is left out. Line breaks between quotes do not end it."""
    row = piece = opened.readline(LONGEST_HEADER)
    inside = _is_open(piece)
    while piece and (inside or not piece.endswith(("\n", "\r"))):
        piece = opened.readline(LONGEST_HEADER)
        inside ^= piece.count('"') % 2 == 1
        row += piece[: LONGEST_HEADER - len(row)]
    return row


def _is_open(line: str) -> bool:
    """Whether the last field of a line has a quote at its start and none at its end."""
    rest = _QUOTED.sub("", line)
    return _QUOTE.search(rest) is not None


def _check_encoding(file: Path) -> int:
    """Refuse a file in another encoding: lines that are not UTF-8 are left out of every answer. How many there are."""
    refuse_wide(file)
    seen, unreadable, _ = count_unreadable(file, ROWS)
    if unreadable > NOTABLE * seen:
        raise InvalidArgument(
            f"{file} is not text in UTF-8, and lines that are not would be left out. If it is from a program of "
            "Windows in Western Europe or America, add --encoding windows-1252: a copy in UTF-8 is written next to the "
            "policy, and used.",
            code="source-encoding",
        )
    return unreadable


def _separator_of(lines: Sequence[str], file: Path) -> str:
    """The separator that divides most lines into as many fields as the others."""
    if not lines:
        return ","
    usual = likely_separator(lines[0], file)

    def rank(delimiter: str) -> tuple[float, bool, int]:
        widths = Counter(len(row) for row in _cells(lines, delimiter))
        width, often = max(widths.items(), key=lambda one: one[1], default=(1, 0))
        return (often / len(lines) if width > 1 else 0.0, delimiter == usual, width)

    return str(max(dict.fromkeys((usual, *";\t|,", BLANKS)), key=rank))


def _cells(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    return [_fields(line, delimiter) for line in lines]


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == BLANKS:
        return line.split()
    with suppress(csv.Error):
        return next(csv.reader([line], delimiter=delimiter), [])
    return line.rstrip("\r\n").split(delimiter)


def _is_value(cell: str) -> bool:
    """Whether a cell is a value rather than a name: empty, a number, a date, a boolean, a word for none, an address."""
    plain = cell.strip().lower()
    if plain in _NO_NAMES or "@" in plain or not re.search(r"[^\W\d_]", plain):
        return True
    digits = sum(letter.isdigit() for letter in plain)
    with suppress(ValueError):
        datetime.datetime.fromisoformat(plain)
        return True
    with suppress(ValueError):
        float(plain)
        return True
    return 2 * digits > len(plain)


_NO_NAMES = {"true", "false", "yes", "no", "null", "none", "nil", "na", "n/a", "nan", "unknown", "missing"}


# --- types --------------------------------------------------------------------------------------------------


def _with_types(name: str, source: Path, declared: TextFormat) -> TextDraft:
    """The types of the columns, if the files are read like this."""
    tests = _tests()
    with closing(DuckDB({name: source}, formats={name: declared})) as engine:
        columns = list(engine.columns(name))
        counted = [f"count(*) FILTER (WHERE {test.format(quote(c))})" for c in columns for test in tests.values()]
        rows = f"(SELECT * FROM {engine.relations[name]} LIMIT {ROWS})"
        # all at once would be one very long statement
        steps = range(0, len(counted), 50 * len(tests))
        found = [
            n
            for at in steps
            for n in engine.rows(f"SELECT {', '.join(counted[at : at + 50 * len(tests)])} FROM {rows}")[0]
        ]
    each = iter(found)
    numbers = {column: {test: next(each) for test in tests} for column in columns}
    written_as = _numbers_written_as(numbers.values())
    found_format = _NUMBERS[written_as]
    declared = replace(declared, decimal=found_format.decimal, thousands=found_format.thousands)
    types, dates, notes, swaps = {}, {}, {}, []
    for column, fitting in numbers.items():
        kind, written, fits = _proposed(fitting, fitting[written_as])
        types[column] = kind
        notes[column] = _notes_on(kind, fitting, fits, _written_like(kind, declared, written))
        if written:
            dates[column] = written
            if fitting.get(_swapped(written), 0) >= _FITS * fits:
                swaps.append(column)
    read_as_numbers = [numbers[column] for column, kind in types.items() if kind in ("integer", "number")]
    doubts = _unsure_numbers(declared, read_as_numbers)
    return TextDraft(declared=declared, types=types, dates=dates, notes=notes, doubts=doubts, swaps=swaps)


def _said_of_date(column: str, written: str) -> str:
    """What to say about a column whose days and months cannot be told apart."""
    return (
        f"days and months of {column} cannot be told apart. They are read as {written}. If the month comes first, "
        f'write "{_swapped(written)}".'
    )


def _written_like(kind: str, declared: TextFormat, date: str) -> str:
    """What the values of a type look like in this file, for messages."""
    thousand = f"1{declared.thousands or ''}234"
    numbers = {"integer": f"numbers such as {thousand}", "number": f"numbers such as {thousand}{declared.decimal}50"}
    others = {"boolean": "true or false"} | {one: f"dates such as {date or _USUAL_DATES[one]}" for one in _USUAL_DATES}
    return {**numbers, **others}.get(kind, "")


def _notes_on(kind: str, fitting: Mapping[str, int], fits: int, like: str) -> list[str]:
    """How many values of a column do not fit its type, and what becomes of them."""
    notes = []
    unfit = fitting["values"] - fits
    if unfit and kind != "text":
        notes.append(f"{unfit:,} of {fitting['values']:,} values are not {like}; they will be NULL")
    fractions = fits - fitting["integer"] if kind == "integer" else 0
    if fractions:
        notes.append(f"{fractions:,} of {fits:,} numbers are not whole; they will be rounded")
    return notes


def _unsure_numbers(declared: TextFormat, columns: Collection[Mapping[str, int]]) -> list[str]:
    """Whether 1,234 may be a thousand or a fraction: nearly all that have a mark have three digits after it."""
    if declared.decimal != "." or declared.thousands not in _TWO_READINGS:
        return []
    mark, said = _TWO_READINGS[declared.thousands]
    groups, marked = (sum(fitting[test] for fitting in columns) for test in (f"one group by {mark}", "marked"))
    notable = any(fitting["marked"] > NOTABLE * fitting["values"] for fitting in columns)
    return [f"{said} in its format."] if notable and groups >= _FITS * marked else []


def _tests() -> dict[str, str]:
    """What a value must be, for each type. Values are those that are not empty."""
    there = "trim({0}) <> ''"
    tests = {
        "values": there,
        "boolean": "lower(trim({0})) IN ('true', 'false')",
        "integer": r"regexp_full_match(trim({0}), '[+-]?\d{{1,18}}')",
        "zeros": r"regexp_full_match(trim({0}), '0\d+')",
        "date": r"regexp_full_match(trim({0}), '\d{{4}}-\d\d?-\d\d?') AND TRY_CAST({0} AS DATE) IS NOT NULL",
        "timestamp": r"regexp_full_match(trim({0}), '\d{{4}}-\d\d?-\d\d?[ T]\d.*') AND "
        "TRY_CAST({0} AS TIMESTAMP) IS NOT NULL",
    }
    tests["marked"] = "contains({0}, '.') OR contains({0}, ',')"
    for mark, _ in _TWO_READINGS.values():
        tests[f"one group by {mark}"] = rf"regexp_full_match(trim({{0}}), '[+-]?[1-9]\d{{{{0,2}}}}[{mark}]\d{{{{3}}}}')"
    for written, how in _NUMBERS.items():
        tests[written] = f"{there} AND TRY_CAST({_of_column(plain_number('@', how))} AS DOUBLE) IS NOT NULL"
    for written in _DATES:
        tests[written] = f"({_of_column(read_date('@', written, 'timestamp'))}) IS NOT NULL"
    return tests


def _of_column(text: str) -> str:
    """SQL about @, as a pattern for the name of a column."""
    return text.replace("{", "{{").replace("}", "}}").replace("@", "{0}")


def _numbers_written_as(columns: Collection[Mapping[str, int]]) -> str:
    """How the numbers of a file are written: another way than the usual one, if it reads notably more of a column."""
    found = "point"
    for written in _NUMBERS:
        for fitting in columns:
            gained = fitting[written] - fitting[found]
            if fitting[written] >= _FITS * fitting["values"] and gained > NOTABLE * fitting["values"]:
                found = written
                break
    return found


def _proposed(fitting: Mapping[str, int], numbers: int) -> tuple[str, str, int]:
    """The type that nearly all values fit, how its dates are written if it has a pattern, and how many values fit."""
    enough = max(1, _FITS * fitting["values"])
    if fitting["zeros"] > _ZEROS * fitting["values"]:
        return "text", "", fitting["values"]
    if numbers >= enough:
        return ("integer" if fitting["integer"] >= _WHOLE * numbers else "number"), "", numbers
    for kind in ("boolean", "date", "timestamp"):
        if fitting[kind] >= enough:
            return kind, "", fitting[kind]
    best = max(_DATES, key=lambda written: fitting[written])
    if fitting[best] >= enough:
        return ("timestamp" if "hh" in best else "date"), best, fitting[best]
    return "text", "", fitting["values"]


def _swapped(written: str) -> str:
    """The same pattern with the month before the day, or after it."""
    return written.replace("dd", "?").replace("mm", "dd").replace("?", "mm")

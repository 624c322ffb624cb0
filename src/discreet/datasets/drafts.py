"""A first policy for files or tables, from the names and types of their columns. No value of the data is in it.

`discreet init` writes it, and the set-up of a gateway asks for more before it does.
"""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.engines.duckdb.dialect import TYPES
from discreet.engines.duckdb.engine import DuckDB, has_types
from discreet.engines.duckdb.text_files import Csv
from discreet.errors import InvalidArgument
from discreet.sql.schema import KEYS

PEOPLE = ("patient", "person", "user", "customer", "client", "member", "employee", "student", "subject", "participant")
"""What a person is called in the names of columns, the likeliest first."""
SURE = len(PEOPLE)
"""A name that stands before this place is that of a person; those behind are any id."""
HEAD = """\
# A first policy, from the names and types of columns: no value is in it. It can be used as it is.
# How much of one person an answer uses is found privately, and "discreet explain" says what that costs.
# Ranges and choices that you know make answers more accurate: docs/sql.md."""
_TYPES = "# The file has no types of its own. These were read off its rows, once: a value that does not fit is NULL."


# --- the columns of files -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Files:
    """Files or folders as tables: their paths, the types of their columns, and which have no types of their own."""

    paths: Mapping[str, Path]
    tables: Mapping[str, Mapping[str, str]]
    untyped: tuple[str, ...]


def read_files(data: Sequence[Path], *, header: bool = False) -> Files:
    """The names and types of the columns of files. With `header`, the first line of a CSV file is known to hold
    names.
    """
    paths = _name_tables(data)
    named = {name: names for name, path in paths.items() if (names := _first_line(name, path)) is not None}
    with closing(DuckDB(paths, sniffed=paths)) as engine:  # its owner may look at the rows
        tables = {name: engine.columns(name) for name in paths}
    for name, path in paths.items():
        if not header and name not in named and not has_types(path):
            raise InvalidArgument(
                f"{path} is JSON, in which each line has its own names, and no value may get into a policy. If all "
                "of them are names of columns, add --header.",
                code="command-header",
            )
    for name, names in named.items():
        if not header and not _are_names(names, tables[name]):
            raise InvalidArgument(
                f"{paths[name]} may begin with a row instead of the names of its columns, and no value may get into "
                "a policy. If its first line contains their names, add --header; if not, write them above it.",
                code="command-header",
            )
        kinds = tables[name].values()
        tables[name] = dict(zip(names, kinds if len(kinds) == len(names) else ["text"] * len(names), strict=True))
    untyped = tuple(name for name, path in paths.items() if not has_types(path))
    return Files(paths=paths, tables=tables, untyped=untyped)


def _first_line(name: str, source: Path) -> tuple[str, ...] | None:
    """The possible column names of CSV files. None for other files, which have names of their own."""
    path = _at_home(source).resolve()
    files = sorted(path.glob("**/*")) if path.is_dir() else [path]
    listed = [file for file in files if file.suffix.lower() in (".csv", ".tsv")]
    return Csv.opened(name, listed).names if listed and not has_types(source) else None


def _are_names(first: Sequence[str], types: Mapping[str, str]) -> bool:
    """Whether a first line certainly holds names: none of them looks like a value, and some column has values that
    could not be a name. If all columns are text, a row looks like any other.
    """
    return tuple(types) == tuple(first) and any(k != "text" for k in types.values()) and not any(map(_is_value, first))


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


def _name_tables(data: Sequence[Path]) -> dict[str, Path]:
    """Tables named after their files, as SQL can write them."""
    found: dict[str, Path] = {}
    for path in data:
        if not os.path.exists(os.path.expanduser(path)):
            raise InvalidArgument(f"There is no file or folder {path}. Name data that exists.", code="file-not-found")
        plain = re.sub(r"\W+", "_", _at_home(path).resolve().stem).strip("_").lower() or "data"
        plain = f"data_{plain}" if plain[0].isdigit() else plain
        name, number = plain, 1
        while name in found:
            number += 1
            name = f"{plain}_{number}"
        found[name] = path
    return found


def relative(source: Path, out: Path) -> str:
    """The path of a source from the folder of a policy."""
    return os.path.relpath(_at_home(source).resolve(), _at_home(out).resolve().parent)


def _at_home(path: Path) -> Path:
    """`~` expanded to the home directory. Unchanged if there is none."""
    return Path(os.path.expanduser(path))


# --- the text -----------------------------------------------------------------------------------------------


def policy_text(
    sources: Mapping[str, str],
    tables: Mapping[str, Mapping[str, str]],
    ledger: str,
    person: str,
    untyped: Collection[str] = (),
) -> str:
    """A policy as TOML, for tables with these columns and types. Types that a source does not have are declared."""
    parts = [[HEAD], ledger_lines(ledger), unit_lines(person)]
    known = {name: types for name, types in tables.items() if person in types}
    parts += [_table(name, sources[name], types, person if name in untyped else None) for name, types in known.items()]
    others = {name: types for name, types in tables.items() if name not in known}
    parts += [_left_out(name, sources[name], types, person, known) for name, types in others.items()]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def with_note(line: str, note: str) -> str:
    """A line of a policy with a comment."""
    return f"{line:<33} # {note}"


def ledger_lines(name: str, epsilon: float = 1.0, delta: float = 1e-6) -> list[str]:
    """The section of the ledger."""
    return [
        "[ledger]",
        f"path = {quote(f'{name}.ledger')}",
        with_note(f"epsilon = {value_text(epsilon)}", "what all answers together may cost: less protects more"),
        with_note(f"delta = {value_text(delta)}", "stay far below one divided by the number of people"),
    ]


def unit_lines(person: str) -> list[str]:
    """The lines that say who is protected."""
    return ["[unit]", f"person = {quote(person)}"]


def _table(name: str, source: str, types: Mapping[str, str], person: str | None) -> list[str]:
    """A table, with its types if it has none of its own. Then `person` is the column that must identify people."""
    lines = [f"[tables.{key(name)}]", f"source = {quote(source)}"]
    if person is None:
        return lines
    lines += column_lines(name, {c: {"type": kind} for c, kind in typed_columns(types, person).items()}, untyped=True)
    return lines


def typed_columns(types: Mapping[str, str], person: str | None) -> dict[str, str]:
    """The types to declare for a file that has none of its own. `person` is the column that must identify people."""
    declared = {column: kind for column, kind in types.items() if kind in TYPES and kind != "text"}
    if person is not None and declared.get(person, "text") not in KEYS:
        del declared[person]
    return declared


def column_lines(name: str, columns: Mapping[str, Mapping[str, Any]], *, untyped: bool = False) -> list[str]:
    """The lines that declare columns of a table: their types, ranges and choices."""
    if not columns:
        return []
    lines = [*([_TYPES] if untyped else []), f"[tables.{key(name)}.columns]"]
    for column, declared in columns.items():
        inside = ", ".join(f"{word} = {value_text(value)}" for word, value in declared.items())
        lines.append(f"{key(column)} = {{{inside}}}")
    return lines


def value_text(value: Any) -> str:
    """A number, a text, a boolean or a list of them, as TOML has it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, bool | str):
        return quote(value) if isinstance(value, str) else str(value).lower()
    return repr(value).replace("e-0", "e-")


def _left_out(
    name: str, source: str, types: Mapping[str, str], person: str, known: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """A table without the person's column, as a comment: the owner decides how its rows lead to people."""
    lines = []
    for _, own in likely_people({name: types}):
        if _place(own) < SURE:
            lines.append(with_note(f"# person = {quote(own)}", "the same people, by another name"))
    for column in types:
        for other in (other for other, columns in known.items() if column in columns and _place(column) < 99):
            note = "the key that leads to the person"
            lines.append(with_note(f"# through = {quote(f'{other}.{column}')}", note))
    lines.append(with_note("# public = true", "nobody is in it"))
    keep = ", and keep one of the last" if len(lines) > 1 else ""
    said = f"# {name} has no column {key(person)}. To add it, remove the # from its lines{keep}:"
    return [said, f"# [tables.{key(name)}]", f"# source = {quote(source)}", *lines]


# --- who is protected ---------------------------------------------------------------------------------------


def check_person(person: str, tables: Mapping[str, Mapping[str, str]], untyped: Collection[str]) -> None:
    """Refuse a column that is unknown, or cannot say whose a row is."""
    if not any(person in types for types in tables.values()):
        known = ", ".join(dict.fromkeys(name for types in tables.values() for name in types))
        raise InvalidArgument(f"Unknown column {person}. Known: {known}.", code="unknown-column")
    for name, types in tables.items():
        if name not in untyped and types.get(person, "text") not in KEYS:
            raise InvalidArgument(
                f"{person} identifies people in {name}, and must be whole numbers, text or dates there.",
                code="person-type",
            )


def likely_people(tables: Mapping[str, Mapping[str, str]]) -> list[tuple[int, str]]:
    """The columns that may say whose a row is, with their ranks by name, the most likely first. Of equally likely
    names, the one in most tables, then the first.
    """
    names = [name for types in tables.values() for name in types]
    likely = sorted((_place(name), -names.count(name), number, name) for number, name in enumerate(names))
    return list(dict.fromkeys((place, name) for place, _, _, name in likely if place < 99))


def _place(name: str) -> int:
    """The rank of a name among those of a person's column, the most likely first. 99 if it is not one of them."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    for place, word in enumerate(PEOPLE):
        if plain in (word, f"{word}_id", f"{word}id", f"id_{word}", f"{word}_key", f"{word}_number"):
            return place
    weaker = (plain.startswith(PEOPLE) and plain.endswith("id"), plain.endswith("_id"), plain == "id")
    return next((SURE + place for place, found in enumerate(weaker) if found), 99)


def key(name: str) -> str:
    """A name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quote(name)


def quote(text: str) -> str:
    """A text in quotes, as TOML has it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

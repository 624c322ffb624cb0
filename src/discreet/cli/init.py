"""`discreet init DATA…`: a first policy, from the names and types of columns. It contains no value of the data, and
nothing that has to be filled in.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated

import typer

from discreet.engines.duckdb.dialect import TYPES
from discreet.engines.duckdb.engine import DuckDB, has_types
from discreet.engines.duckdb.text_files import Csv
from discreet.errors import InvalidArgument
from discreet.sql.schema import KEYS

PEOPLE = ("patient", "person", "user", "customer", "client", "member", "employee", "student", "subject", "participant")
"""What a person is called in the names of columns, the likeliest first."""
_SURE = len(PEOPLE)
"""A name that stands before this place is that of a person; those behind are any id."""
_HEAD = """\
# A first policy, from the names and types of columns: no value is in it. It can be used as it is.
# How much of one person an answer uses is found privately, and "discreet explain" says what that costs.
# Ranges and choices that you know make answers more accurate: docs/sql.md."""
_TYPES = "# The file has no types of its own. These were read off its rows, once: a value that does not fit is NULL."


def init(
    data: Annotated[list[Path], typer.Argument(help="Files (Parquet, CSV, JSON) or folders of them: one table each.")],
    person: Annotated[
        str | None, typer.Option(help="The column that says whose a row is. Without it, you are asked.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the policy is written.", dir_okay=False)] = Path("policy.toml"),
    header: Annotated[
        bool, typer.Option("--header", help="First lines of CSV files, and keys of JSON files, are names of columns.")
    ] = False,
) -> None:
    """Write a first policy, from the names and types of columns. It needs one thing: the column that says whose a row
    is.

    A table without that column is left out, with the lines that would add it. A CSV or JSON file has no types. They are
    read off its rows, and written down for you to check. A CSV file whose first line may be data is refused unless you
    confirm with --header that it has names, and so is JSON. An existing file is not changed.

    Examples:
      $ discreet init visits.parquet --person patient_id
      $ discreet init visits.parquet people.csv --out clinic.toml

    Then ask what a question would cost: discreet explain policy.toml "SELECT …" --epsilon 0.5. All of a policy:
    docs/sql.md
    """
    main(data, out, person=person, header=header)


def main(data: Sequence[Path], out: Path, *, person: str | None = None, header: bool = False) -> None:
    """Write the policy, and print what to do next. With `header`, the first line of a CSV file is known to hold
    names.
    """
    sources = _name_tables(data)
    named = {name: names for name, source in sources.items() if (names := _first_line(name, source)) is not None}
    with closing(DuckDB(sources, sniffed=sources)) as engine:  # its owner may look at the rows
        tables = {name: engine.columns(name) for name in sources}
    for name, source in sources.items():
        if not header and name not in named and not has_types(source):
            raise InvalidArgument(
                f"{source} is JSON, in which each line has its own names, and no value may get into a policy. If all "
                "of them are names of columns, add --header.",
                code="command-header",
            )
    for name, names in named.items():
        if not header and not _are_names(names, tables[name]):
            raise InvalidArgument(
                f"{sources[name]} may begin with a row instead of the names of its columns, and no value may get into "
                "a policy. If its first line contains their names, add --header; if not, write them above it.",
                code="command-header",
            )
        kinds = tables[name].values()
        tables[name] = dict(zip(names, kinds if len(kinds) == len(names) else ["text"] * len(names), strict=True))
    if out.exists():
        raise InvalidArgument(f"{out} exists and is left as it is. Name another file with --out.", code="file-exists")
    whose = _ask_for_person(tables) if person is None else person
    untyped = [name for name, source in sources.items() if not has_types(source)]
    _check_person(whose, tables, untyped)
    paths = {name: _relative(source, out) for name, source in sources.items()}
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(policy_text(paths, tables, out.stem, whose, untyped))
    except FileExistsError:
        raise InvalidArgument(
            f"{out} exists and is left as it is. Name another file with --out.", code="file-exists"
        ) from None
    except OSError as error:
        raise InvalidArgument(
            f"{out} cannot be written: {error.strerror}. Name another file with --out.", code="file-not-writable"
        ) from None
    print(f"{out} is written. It protects all rows of one {whose} together.")
    if left_out := [name for name, types in tables.items() if whose not in types]:
        print(f"Without that column, and left out for now: {', '.join(left_out)}. The file says how to add them.")
    first = next(name for name, types in tables.items() if whose in types)
    print(f'Ask: discreet explain {out} "SELECT COUNT(*) FROM {first}" --epsilon 0.1')


def _ask_for_person(tables: Mapping[str, Mapping[str, str]]) -> str:
    """The column that says whose a row is, as its owner says. If nobody can be asked, the only one that is named for
    people.
    """
    likely = _likely_people(tables)
    if sys.stdin is not None and sys.stdin.isatty():
        asked = "Which column says whose a row is?"
        return str(typer.prompt(asked, default=likely[0][1]) if likely else typer.prompt(asked))
    sure = [name for place, name in likely if place < _SURE]
    if len(sure) == 1:
        return sure[0]
    raise InvalidArgument(
        "Say which column tells whose a row is, such as --person patient_id. Columns: "
        f"{', '.join(dict.fromkeys(name for types in tables.values() for name in types))}.",
        code="command-person",
    )


def _check_person(person: str, tables: Mapping[str, Mapping[str, str]], untyped: Collection[str]) -> None:
    if not any(person in types for types in tables.values()):
        known = ", ".join(dict.fromkeys(name for types in tables.values() for name in types))
        raise InvalidArgument(f"Unknown column {person}. Known: {known}.", code="unknown-column")
    for name, types in tables.items():
        if name not in untyped and types.get(person, "text") not in KEYS:
            raise InvalidArgument(
                f"{person} identifies people in {name}, and must be whole numbers, text or dates there.",
                code="person-type",
            )


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


def _relative(source: Path, out: Path) -> str:
    return os.path.relpath(_at_home(source).resolve(), _at_home(out).resolve().parent)


def _at_home(path: Path) -> Path:
    """`~` expanded to the home directory. Unchanged if there is none."""
    return Path(os.path.expanduser(path))


def policy_text(
    sources: Mapping[str, str],
    tables: Mapping[str, Mapping[str, str]],
    ledger: str,
    person: str,
    untyped: Collection[str] = (),
) -> str:
    """A policy as TOML, for tables with these columns and types. Types that a source does not have are declared."""
    parts = [[_HEAD], _ledger(ledger), ["[unit]", f"person = {_quote(person)}"]]
    known = {name: types for name, types in tables.items() if person in types}
    parts += [_table(name, sources[name], types, person if name in untyped else None) for name, types in known.items()]
    others = {name: types for name, types in tables.items() if name not in known}
    parts += [_left_out(name, sources[name], types, person, known) for name, types in others.items()]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _with_note(line: str, note: str) -> str:
    return f"{line:<33} # {note}"


def _ledger(name: str) -> list[str]:
    return [
        "[ledger]",
        f"path = {_quote(f'{name}.ledger')}",
        _with_note("epsilon = 1.0", "what all answers together may cost: less protects more"),
        _with_note("delta = 1e-6", "stay far below one divided by the number of people"),
    ]


def _table(name: str, source: str, types: Mapping[str, str], person: str | None) -> list[str]:
    """A table, with its types if it has none of its own. Then `person` is the column that must identify people."""
    lines = [f"[tables.{_key(name)}]", f"source = {_quote(source)}"]
    if person is None:
        return lines
    declared = {column: kind for column, kind in types.items() if kind in TYPES and kind != "text"}
    if declared.get(person, "text") not in KEYS:
        del declared[person]
    if declared:
        lines += [_TYPES, f"[tables.{_key(name)}.columns]"]
        lines += [f"{_key(column)} = {{type = {_quote(kind)}}}" for column, kind in declared.items()]
    return lines


def _left_out(
    name: str, source: str, types: Mapping[str, str], person: str, known: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """A table without the person's column, as a comment: the owner decides how its rows lead to people."""
    lines = []
    for _, own in _likely_people({name: types}):
        if _place(own) < _SURE:
            lines.append(_with_note(f"# person = {_quote(own)}", "the same people, by another name"))
    for column in types:
        for other in (other for other, columns in known.items() if column in columns and _place(column) < 99):
            note = "the key that leads to the person"
            lines.append(_with_note(f"# through = {_quote(f'{other}.{column}')}", note))
    lines.append(_with_note("# public = true", "nobody is in it"))
    keep = ", and keep one of the last" if len(lines) > 1 else ""
    said = f"# {name} has no column {_key(person)}. To add it, remove the # from its lines{keep}:"
    return [said, f"# [tables.{_key(name)}]", f"# source = {_quote(source)}", *lines]


def _likely_people(tables: Mapping[str, Mapping[str, str]]) -> list[tuple[int, str]]:
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
    return next((_SURE + place for place, found in enumerate(weaker) if found), 99)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quote(name)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

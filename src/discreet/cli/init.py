"""`discreet init DATA…`: a first policy for the owner to review, from names and types. It contains no value of the
data.
"""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated

import typer

from discreet.engines.duckdb.dialect import TYPES
from discreet.engines.duckdb.engine import DuckDB, has_types
from discreet.engines.duckdb.text_files import Csv
from discreet.errors import InvalidArgument

PEOPLE = ("patient", "person", "user", "customer", "client", "member", "employee", "student", "subject", "participant")
"""What a person is called in the names of columns, the likeliest first."""
_SURE = len(PEOPLE)
"""A name that stands before this place is that of a person; those behind are any id."""
_HEAD = "# A first policy, from the names and types of columns: no value is in it."
_GUESSED = "# A CSV or JSON file has no types: they were guessed from its rows, once, and hold for it from now on."
_MARKS = "# Lines marked GUESS are guesses: check each. Lines marked DECIDE are yours to fill in."


def init(
    data: Annotated[list[Path], typer.Argument(help="Files (Parquet, CSV, JSON) or folders of them: one table each.")],
    out: Annotated[Path, typer.Option(help="Where the policy is written.", dir_okay=False)] = Path("policy.toml"),
    header: Annotated[
        bool, typer.Option("--header", help="First lines of CSV files, and keys of JSON files, are names of columns.")
    ] = False,
) -> None:
    """Write a first policy for review, from the names and types of columns. Every guess is marked.

    A CSV or JSON file has no types. They are guessed from its rows, and written down for you to check. A CSV file whose
    first line may be data is refused unless you confirm with --header that it has names, and so is JSON. The ranges and
    choices of columns are left for you to fill in, from what you know and not from the data. An existing file is not
    changed.

    Examples:
      $ discreet init visits.parquet
      $ discreet init visits.parquet people.csv --out clinic.toml

    Then look at what it says: discreet explain policy.toml "SELECT …" --epsilon 0.5. All of a policy: docs/sql.md
    """
    main(data, out, header=header)


def main(data: Sequence[Path], out: Path, *, header: bool = False) -> None:
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
    guessed = [name for name, source in sources.items() if not has_types(source)]
    text = policy_text({name: _relative(source, out) for name, source in sources.items()}, tables, out.stem, guessed)
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidArgument(
            f"{out} exists and is left as it is. Name another file with --out.", code="file-exists"
        ) from None
    except OSError as error:
        raise InvalidArgument(
            f"{out} cannot be written: {error.strerror}. Name another file with --out.", code="file-not-writable"
        ) from None
    print(f"{out} is written. Check its lines marked GUESS, fill in those marked DECIDE, and ask:")
    print(f'  discreet explain {out} "SELECT COUNT(*) FROM {next(iter(tables))}" --epsilon 0.1')


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
    guessed: Collection[str] = (),
) -> str:
    """A policy as TOML, for tables with these columns and types. Guessed types must be declared."""
    person = _person(tables)
    head = [_HEAD, *([_GUESSED] if guessed else []), _MARKS]
    parts = [head, _ledger(ledger), _unit(person)]
    parts += [_table(name, sources[name], types, person, guessed=name in guessed) for name, types in tables.items()]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _with_note(line: str, note: str) -> str:
    return f"{line:<33} # {note}"


def _ledger(name: str) -> list[str]:
    return [
        "[ledger]",
        f"path = {_quote(f'{name}.ledger')}",
        _with_note("epsilon = 1.0", "GUESS: what all answers together may cost; less protects more"),
        _with_note("delta = 1e-6", "GUESS: far below one in the number of people"),
    ]


def _unit(person: str | None) -> list[str]:
    if person is not None:
        return ["[unit]", _with_note(f"person = {_quote(person)}", "GUESS: the column that says whose a row is")]
    note = _with_note('# person = "…"', "DECIDE: the column that says whose a row is, or, if everybody has one row:")
    return ["[unit]", note, "# row = true"]


def _table(name: str, source: str, types: Mapping[str, str], person: str | None, *, guessed: bool) -> list[str]:
    lines = [f"[tables.{_key(name)}]", f"source = {_quote(source)}"]
    own = person if person in types else _person({name: types}, _SURE)
    if own is None:
        lines.append(_with_note("# public = true", "DECIDE: nobody is in this table, or name the person of a row:"))
        lines.append('# person = "…"')
    elif own != person:
        lines.append(_with_note(f"person = {_quote(own)}", "GUESS: the person, by another name"))
    lines.append(_with_note("# rows_per_person = 20", "DECIDE: how many rows of one person count; more are left out"))
    lines.append(_with_note("# groups_per_person = 5", "DECIDE, or leave out: how many groups of one answer"))
    for column, kind in types.items():
        section = f"[tables.{_key(name)}.columns.{_key(column)}]"
        known = [] if column == own else _declarations(kind)
        if guessed:
            lines += [
                "#",
                section,
                _with_note(f"type = {_quote(kind if kind in TYPES else 'text')}", "GUESS: what does not fit is NULL"),
                *known,
            ]
        elif column != own:
            lines += ["#", _with_note(section, kind), *known]
    return lines


def _declarations(kind: str) -> list[str]:
    """What can be declared about a column's values. Only someone who knows the subject knows it, so nothing is
    guessed.
    """
    match kind:
        case "integer" | "number":
            return [_with_note("# between = [LOW, HIGH]", "DECIDE: needed for sums, means and quantiles")]
        case "date" | "timestamp":
            return [_with_note("# between = [FIRST, LAST]", "DECIDE: such as [2020-01-01, 2024-12-31]")]
        case "text":
            return [_with_note('# choices = ["…", "…"]', "DECIDE: the groups that GROUP BY shows")]
    return []


def _person(tables: Mapping[str, Mapping[str, str]], least: int = 99) -> str | None:
    """The most likely name of a person's column. Of equally likely names, the one in most tables, then the first."""
    names = [name for types in tables.values() for name in types]
    likely = [(_place(name), -names.count(name), number, name) for number, name in enumerate(names)]
    return min((found for found in likely if found[0] < least), default=(0, 0, 0, None))[3]


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

"""What is known about data before it has a policy: places, names and types of columns, and keys. No row is in it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from discreet.datasets.column_names import check_count, names_of_tables
from discreet.datasets.texts.copies import TextCopy, count_unreadable, encodings_of_tables, refuse_wide, write_copy
from discreet.datasets.texts.drafts import NOTABLE, ROWS, TextDraft, draft_names, draft_text
from discreet.engines.configuration import URLS
from discreet.engines.duckdb.engine import DuckDB, has_types, text_files_in
from discreet.engines.postgres.catalog import ForeignKey, read_catalog
from discreet.errors import InvalidArgument


@dataclass(frozen=True, kw_only=True)
class Source:
    """Tables that a policy may name: their places as it names them, and the types of their columns."""

    places: Mapping[str, str]
    tables: Mapping[str, Mapping[str, str]]
    untyped: Sequence[str] = ()
    """Those whose files have no types of their own."""
    texts: Mapping[str, TextDraft] = field(default_factory=dict)
    """What text files seem to be."""
    url: str | None = field(default=None, repr=False)  # it may hold a password
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Tables that cannot be served, and why."""
    foreign_keys: Sequence[ForeignKey] = ()
    copies: Mapping[str, TextCopy] = field(default_factory=dict)
    """Copies in UTF-8 that were written for tables, of files in another encoding."""

    def remove_copies(self) -> None:
        """Delete the copies, if there will be no policy."""
        for copy in self.copies.values():
            copy.place.unlink(missing_ok=True)

    def format_of(self, table: str) -> dict[str, Any]:
        """How a text file is read, as a policy says it. Empty for others, and for a usual one."""
        return self.texts[table].words() if table in self.texts else {}

    def declared(self, table: str, person: str | None) -> dict[str, dict[str, Any]]:
        """What to declare about the columns of a table without types of its own. The column of the `person` is text, as
        its values are written, unless a table with types of its own knows better.
        """
        if table not in self.untyped:
            return {}
        made: dict[str, dict[str, Any]] = {
            column: {"type": kind} for column, kind in self.tables[table].items() if kind not in ("text", "other")
        }
        for column, written in (self.texts[table].dates if table in self.texts else {}).items():
            made[column]["format"] = written
        if person in made:
            typed = [
                types[person] for name, types in self.tables.items() if name not in self.untyped and person in types
            ]
            made[person] = {"type": typed[0]} if typed else {"type": "text"}
            if not typed:
                del made[person]
        return made

    def notes_on(self, table: str, person: str | None) -> dict[str, Sequence[str]]:
        """What does not fit the declared types of columns. Only the owner may be told: it is about rows."""
        if table not in self.texts:
            return {}
        text, declared = self.texts[table], self.declared(table, person)
        return {
            column: notes
            for column, notes in text.notes.items()
            if notes and declared.get(column, {}).get("type") == text.types[column]
        }

    def is_nameless(self, table: str) -> bool:
        """Whether the columns of a table are column1, column2, …, because neither its file nor its owner names them."""
        return table in self.texts and self.texts[table].is_nameless

    def can_name(self, table: str) -> bool:
        """Whether the owner can name the columns of a table: its file has no line of names."""
        return table in self.texts and not self.texts[table].declared.header

    def with_names(self, table: str, names: Sequence[str]) -> Source:
        """The same data, with the names that its owner gives to the columns of a table."""
        check_count(names, len(self.tables[table]), table)
        text = self.texts[table].named(names)
        return replace(self, texts={**self.texts, table: text}, tables={**self.tables, table: dict(text.types)})

    def unsure_of(self, table: str) -> Sequence[str]:
        """What can be read in two ways in the files of a table."""
        return self.texts[table].unsure if table in self.texts else ()


def is_database(words: Sequence[str]) -> bool:
    """Whether the data is a database, by its URL."""
    return any(word.startswith(URLS) for word in words)


def read_source(
    words: Sequence[str],
    policy: Path,
    *,
    header: bool | None = None,
    separator: str | None = None,
    encoding: str | Sequence[str] | None = None,
    names_only: bool = False,
    columns: Sequence[str] = (),
) -> Source:
    """The tables in files and folders, or in a PostgreSQL database. Rows are read for the types of text files only, and
    not even for those if `names_only`. A file in another `encoding` is copied, next to the policy: that of all text
    files, or "stays: windows-1252" for each that is not UTF-8. `columns` are names
    for files that have no line of names: "mrn, ward" for the only one, or "stays.txt: mrn, ward" for each.
    """
    if is_database(words):
        if len(words) != 1:
            raise InvalidArgument("Name one database, or files: one URL at a time.", code="setup-source")
        if columns:
            raise _not_to_name("The columns of a database have names")
        found = read_catalog(words[0])
        return Source(
            places=found.places,
            tables=found.tables,
            url=words[0],
            left_out=found.left_out,
            foreign_keys=found.foreign_keys,
        )
    if columns and (header or names_only):
        said = "--header says that the first line of a file is its names"
        raise _not_to_name("--names-only reads the line of names" if names_only else said)
    paths, copies = _name_tables([Path(word) for word in words]), dict[str, TextCopy]()
    names = names_of_tables(columns, paths)
    if names and not any(text_files_in(path) for table, path in paths.items() if table in names or None in names):
        raise _not_to_name("The columns of Parquet and JSON files have names")
    known: dict[str, Any] = {"header": header, "separator": separator}
    try:
        if encoding is not None:
            encodings = encodings_of_tables([encoding] if isinstance(encoding, str) else encoding, paths)
            _copy_files(paths, encodings, policy, copies, look=not names_only)
        made = _read_files(paths, policy, names_only=names_only, named=names, **known)
        for table, given in names.items():
            made = made.with_names(_nameless_of(made, table), given)
    except BaseException:
        Source(places={}, tables={}, copies=copies).remove_copies()
        raise
    return replace(made, copies=copies)


def _copy_files(
    paths: dict[str, Path], encodings: Mapping[str, str], policy: Path, copies: dict[str, TextCopy], *, look: bool
) -> None:
    """Replace text files by copies in UTF-8. If rows decided which, a policy would show that one of them has an é.
    A file that is UTF-8 already is refused.
    """
    for name, encoding in encodings.items():
        path = paths[name]
        for file in text_files_in(path):
            refuse_wide(file)
            seen, unreadable, readable = count_unreadable(file, ROWS) if look else (0, 0, 0)
            if readable > max(unreadable, NOTABLE * seen):
                other = next((one for one in encodings if one != name), None)
                each = f' If other files need it, name their tables: --encoding "{other}: {encoding}".' if other else ""
                raise InvalidArgument(
                    f"{file} seems to be UTF-8 already. Leave out --encoding for it.{each}", code="source-encoding"
                )
            if _at_home(path).is_dir():
                raise InvalidArgument(
                    f"{path} is a folder, and --encoding copies single files. Convert its files with iconv.",
                    code="source-encoding",
                )
            copies[name] = write_copy(file, encoding, _at_home(policy).resolve().parent)
            paths[name] = copies[name].place


def _not_to_name(why: str) -> InvalidArgument:
    return InvalidArgument(
        f"{why}. --columns is for a text file whose first line is a row: leave out one of them.", code="command-columns"
    )


def _nameless_of(source: Source, table: str | None) -> str:
    """The given table, whose file has no line of names, or the only one of these."""
    found = [one for one in source.tables if source.is_nameless(one)]
    if not found or table not in (None, *found):
        raise InvalidArgument(
            f"The first line{f' of {table}' if table else ''} seems to be the names of the columns. Leave out its "
            "--columns; or, if it is a row, add --no-header.",
            code="command-columns",
        )
    if table is None and len(found) > 1:
        raise InvalidArgument(
            f"The first lines of several files may be rows: {', '.join(found)}. Give --columns for each of them, with "
            f'the name of the table: --columns "{found[0]}: mrn, ward, cost".',
            code="command-columns",
        )
    return table or found[0]


def _read_files(
    paths: Mapping[str, Path],
    policy: Path,
    *,
    header: bool | None,
    separator: str | None,
    names_only: bool,
    named: Collection[str | None],
) -> Source:
    texts, tables = {}, {}
    for name, path in paths.items():
        if files := text_files_in(path):
            known: dict[str, Any] = {"header": header, "separator": separator}
            texts[name] = (
                draft_names(name, path, files, **known)
                if names_only
                else draft_text(name, path, files, is_row=bool({None, name}.intersection(named)), **known)
            )
            tables[name] = dict(texts[name].types)
        elif not has_types(path) and names_only:
            raise InvalidArgument(
                f"{path} is JSON: its names are in its rows, and --names-only reads none. Leave it out, or write the "
                "policy of this file yourself.",
                code="command-header",
            )
        elif not has_types(path) and not header:
            with closing(DuckDB({name: path}, sniffed=[name])) as engine:
                engine.columns(name)  # a file that cannot be read is refused as such
            raise InvalidArgument(
                f"{path} is JSON, in which each line has its own names, and no value may get into a policy. If all "
                "of them are names of columns, add --header.",
                code="command-header",
            )
        else:
            with closing(DuckDB({name: path}, sniffed=[name])) as engine:  # its owner may look at the rows
                tables[name] = engine.columns(name)
    return Source(
        places={name: _relative(path, policy) for name, path in paths.items()},
        tables=tables,
        untyped=tuple(name for name, path in paths.items() if not has_types(path)),
        texts=texts,
    )


def _name_tables(data: Sequence[Path]) -> dict[str, Path]:
    """Tables named after their files, as SQL can write them."""
    found: dict[str, Path] = {}
    for path in data:
        if not os.path.exists(os.path.expanduser(path)):
            raise InvalidArgument(f"There is no file or folder {path}. Name data that exists.", code="file-not-found")
        stem = re.sub(r"\.gz$", "", _at_home(path).resolve().name, flags=re.IGNORECASE)
        plain = re.sub(r"\W+", "_", Path(stem).stem).strip("_").lower() or "data"
        plain = f"data_{plain}" if plain[0].isdigit() else plain
        name, number = plain, 1
        while name in found:
            number += 1
            name = f"{plain}_{number}"
        found[name] = path
    return found


def _relative(source: Path, policy: Path) -> str:
    """The path of a source from the folder of a policy."""
    return os.path.relpath(_at_home(source).resolve(), _at_home(policy).resolve().parent)


def _at_home(path: Path) -> Path:
    """`~` expanded to the home directory. Unchanged if there is none."""
    return Path(os.path.expanduser(path))

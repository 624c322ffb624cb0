"""Names that an owner gives to the columns of a text file without a line of names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from discreet.errors import InvalidArgument


def names_in(text: str) -> tuple[str, ...]:
    """Names that are separated by commas. A row that was pasted in their place must not get into a policy, so each name
    has a letter, and none is quoted here.
    """
    names = tuple(one.strip() for one in text.split(","))
    wrong = next((n for n, one in enumerate(names, 1) if not _is_name(one)), None)
    if wrong is not None:
        raise InvalidArgument(
            f"Name {wrong} of {len(names)} is empty, or is none: a name has a letter, and no line breaks. Separate "
            "names by commas, such as: mrn, visited, ward.",
            code="column-names",
        )
    plain = [one.lower() for one in names]
    if len(set(plain)) < len(plain):
        again = next(n for n, one in enumerate(plain) if one in plain[:n])
        raise InvalidArgument(
            f"Names {plain.index(plain[again]) + 1} and {again + 1} of {len(names)} are the same. Give each column a "
            "name of its own, which differs in more than upper and lower case.",
            code="column-names",
        )
    return names


def tables_by_words(paths: Mapping[str, Path]) -> dict[str, str]:
    """The tables by what an owner may call them: their names, and the names and paths of their files."""
    return {word: table for table, path in paths.items() for word in (str(path), path.name)} | {
        one: one for one in paths
    }


def names_of_tables(given: Sequence[str], paths: Mapping[str, Path]) -> dict[str | None, tuple[str, ...]]:
    """Names of columns by their tables, from "stays: mrn, ward" or "stays.txt: mrn, ward". Without a table, they are
    those of the only file that has none, and stand under None. `paths` are the files of the tables.
    """
    tables = tables_by_words(paths)
    found: dict[str | None, tuple[str, ...]] = {}
    for text in given:
        first, comma, others = text.partition(",")
        table, colon, name = first.partition(":")
        names = names_in((name if colon else first) + comma + others)
        if colon and table.strip() not in tables:
            raise InvalidArgument(
                f"Before a colon, --columns has a table: {', '.join(paths)}. If the name of a column has a colon, "
                f'write the table before it: "{next(iter(paths))}: …".',
                code="column-names",
            )
        known = tables[table.strip()] if colon else None
        if known in found:
            raise InvalidArgument(
                f"--columns names the columns of {known} twice. Leave out one of them."
                if known
                else "--columns is given twice without a table. Write the table before the names: "
                f'--columns "{next(iter(paths))}: mrn, ward, cost".',
                code="column-names",
            )
        found[known] = names
    return dict(sorted(found.items(), key=lambda one: one[0] is None))


def check_count(names: Sequence[str], count: int, table: str) -> None:
    """Refuse another number of names than there are columns."""
    if len(names) != count:
        raise InvalidArgument(
            f"{table} has {count} {'column' if count == 1 else 'columns'}, and {len(names)} "
            f"{'name is' if len(names) == 1 else 'names are'} given. Name every column, in the order of the file. If "
            "the file has another number of them, it is read with a wrong separator: discreet init takes --separator.",
            code="column-names",
        )


def _is_name(text: str) -> bool:
    return text.isprintable() and re.search(r"[^\W\d_]", text) is not None

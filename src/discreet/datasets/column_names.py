"""Names that an owner gives to the columns of a text file without a line of names."""

from __future__ import annotations

import re
from collections.abc import Sequence

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

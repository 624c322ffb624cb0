"""A first policy for files or tables, from the names and types of their columns. No value of the data is in it.

`discreet init` writes it, and the set-up of a gateway asks for more before it does. What is left to the owner is
marked, and `discreet check` lists it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.datasets.people import NOBODY, SURE, is_people, likely_people, place_of
from discreet.datasets.sources import Source
from discreet.engines.postgres.catalog import ForeignKey

DECIDE = "decide: "
"""Before what is left to the owner."""
EPSILON, DELTA = 1.0, 1e-6
"""The limit that every first policy proposes: a small one, as it can be raised later with a reason, and not lowered."""
HEAD = """\
# A first policy, from the names and types of columns: no value is in it. It can be used as it is.
# How much of one person an answer uses is found privately, and "discreet explain" says what that costs.
# Choices that you know make answers more accurate. Ranges and rows_per_person do only if they are tight, and generous
# ones are worse than none: compare with "discreet explain". See docs/sql.md.
# "discreet check" lists what is left to decide, by this word. Remove it once you have decided."""
_TYPES = f"# {DECIDE}the file has no types. These were read off its rows, once: a value that does not fit is NULL."
_NAMES = f"# {DECIDE}the file has no line of names. Write names for its columns, here and below."


# --- whose rows they are ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class People:
    """Who is protected: the name for their column, and how the rows of each table lead to them."""

    unit: str
    columns: Mapping[str, str]
    """The person's column of each table that has one."""
    through: Mapping[str, str]
    """The key of each table that leads to people through another."""
    others: Mapping[str, Sequence[str]]
    """Other columns of each table that lead to people, whom its rows do not protect."""

    def __contains__(self, table: object) -> bool:
        return table in self.columns or table in self.through


def find_people(person: str, source: Source) -> People:
    """How tables lead to the people that a column identifies, or the key of a table, such as patients.id."""
    home = _home_of(person, source)
    naming = [key for key in source.foreign_keys if (key.other, key.key) == home and not key.is_primary]
    named = Counter(key.column for key in naming)
    unit = person
    if home == tuple(person.rpartition(".")[::2]):  # the key of a table has a plain name where others refer to it
        unit = max(named, key=lambda name: named[name], default=home[1])
    double = {key.table for key in source.foreign_keys if _is_double(key, source)}
    columns: dict[str, str] = {}
    for table, types in source.tables.items():
        own = [key.column for key in naming if key.table == table]
        if home is not None and table == home[0]:
            columns[table] = home[1]
        elif own and table not in double:
            columns[table] = unit if unit in own else own[0]
        elif not own and unit in types and (home is None or home[1] != unit):
            columns[table] = unit
    through: dict[str, str] = {}
    used = set(columns.items())
    while found := [key for key in source.foreign_keys if _leads(key, {**columns, **through}, double)]:
        for key in {one.table: one for one in reversed(found)}.values():
            through[key.table] = through_key(key)
            used.add((key.table, key.column))
    others: dict[str, list[str]] = {}
    for key in source.foreign_keys:
        if not key.is_primary and (key.table, key.column) not in used and key.other in {*columns, *through}:
            others.setdefault(key.table, []).append(key.column)
    return People(unit=unit, columns=columns, through=through, others=others)


def through_key(key: ForeignKey) -> str:
    """A foreign key that leads to people, as a policy says it."""
    return f"{'' if key.column == key.key else f'{key.column} -> '}{key.other}.{key.key}"


def _is_double(key: ForeignKey, source: Source) -> bool:
    """Whether a table refers to another one twice, as a letter to its writer and its reader: a row protects one."""
    same = [one for one in source.foreign_keys if (one.table, one.other) == (key.table, key.other)]
    return key.table != key.other and len({one.column for one in same}) > 1


def _home_of(person: str, source: Source) -> tuple[str, str] | None:
    """The key that the values of a person's column are from, by what the catalog of a database says."""
    table, _, column = person.rpartition(".")
    if column in source.tables.get(table, {}):
        return table, column
    found = {(key.other, key.key) for key in source.foreign_keys if key.column == person and not key.is_primary}
    return found.pop() if len(found) == 1 else None


def _leads(key: ForeignKey, known: Mapping[str, str], double: Collection[str]) -> bool:
    return key.table not in known and key.table not in double and key.other in known


def propose_person(source: Source) -> tuple[str | None, bool]:
    """The column that likely says whose a row is, and whether its name leaves no doubt."""
    likely = likely_people(source.tables)
    sure = [name for place, name in likely if place < SURE]
    homes = [f"{key.table}.{key.column}" for key in source.foreign_keys if key.is_primary and is_people(key.table)]
    if sure or not homes:
        return (likely[0][1] if likely else None), len(sure) == 1
    return homes[0], len(homes) == 1


def _leading(name: str, columns: Collection[str], source: Source, people: People) -> Iterator[str]:
    """The lines by which a table may lead to people through some of its columns."""
    for one in source.foreign_keys:
        if one.table == name and one.column in columns:
            is_home = people.columns.get(one.other) == one.key
            yield (
                f"person = {quote(one.column)}"
                if is_home
                else f"through = {quote(f'{one.column} -> {one.other}.{one.key}')}"
            )


# --- the text -----------------------------------------------------------------------------------------------


def policy_text(source: Source, ledger: str, people: People) -> str:
    """A policy as TOML. Types that a source does not have are declared."""
    parts = [[HEAD], ledger_lines(ledger, mark=DECIDE), unit_lines(people.unit)]
    if source.url is not None:
        parts.append(engine_lines(source.url))
    parts += [_table(name, source, people) for name in source.tables if name in people]
    parts += [_left_out(name, source, people) for name in source.tables if name not in people]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def with_note(line: str, note: str) -> str:
    """A line of a policy with a comment."""
    return f"{line:<33} # {note}"


def remark(said: str) -> str:
    """A comment on a line of its own. Names of columns can contain line breaks, after which TOML would read a line."""
    return "# " + "".join(letter if letter.isprintable() else "\ufffd" for letter in said)


def ledger_lines(name: str, epsilon: float = EPSILON, delta: float = DELTA, *, mark: str = "") -> list[str]:
    """The section of the ledger. `mark` says that its numbers are not decided."""
    return [
        "[ledger]",
        f"path = {quote(f'{name}.ledger')}",
        with_note(f"epsilon = {value_text(epsilon)}", f"{mark}what all answers together may cost: less protects more"),
        with_note(f"delta = {value_text(delta)}", f"{mark}stay far below one divided by the number of people"),
    ]


def unit_lines(person: str) -> list[str]:
    """The lines that say who is protected."""
    return ["[unit]", f"person = {quote(person)}"]


def engine_lines(url: str) -> list[str]:
    """The section of a database."""
    return ["[engine]", 'kind = "postgres"', f"url = {quote(url)}"]


def source_lines(name: str, source: Source) -> list[str]:
    """The lines that say where a table is, and how it is read."""
    lines = [f"[tables.{key(name)}]", f"source = {quote(source.places[name])}"]
    if copy := source.copies.get(name):
        lines.append(f"copy_of = {{file = {quote(copy.original_from_here)}, encoding = {quote(copy.encoding)}}}")
        lines.append(remark("It is a copy in UTF-8. If that file changes, `discreet check` says how to copy it again."))
    lines += [remark(f"{DECIDE}{said}") for said in source.unsure_of(name)]
    if words := source.format_of(name):
        inside = ", ".join(f"{word} = {value_text(value)}" for word, value in words.items())
        lines += [*([_NAMES] if source.is_nameless(name) else []), f"format = {{{inside}}}"]
    return lines


def _table(name: str, source: Source, people: People) -> list[str]:
    """A table, with its types if it has none of its own."""
    lines = source_lines(name, source)
    own = people.columns.get(name)
    if own is not None and own != people.unit:
        lines.append(with_note(f"person = {quote(own)}", "the same people, by another name"))
    if own is None:
        lines.append(with_note(f"through = {quote(people.through[name])}", "the foreign key that leads to the person"))
    if others := people.others.get(name):
        said = f"{DECIDE}its rows may be about more people: {', '.join(others)}. Those are not protected here."
        lines.insert(0, remark(said))
    return [*lines, *column_lines(name, source.declared(name, own), untyped=name in source.untyped)]


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


def _left_out(name: str, source: Source, people: People) -> list[str]:
    """A table without the person's column, as a comment: the owner decides how its rows lead to people. Without a
    decision it cannot be served: a table of people must not become public because its lines were taken as they are.
    """
    types = source.tables[name]
    likely = [own for place, own in likely_people({name: types}) if place < SURE]
    lines = [with_note(f"# person = {quote(own)}", "the same people, by another name") for own in likely]
    for column in types:
        known = (other for other in people.columns if column in source.tables[other] and place_of(column) < NOBODY)
        for other in known if source.url is None else ():
            note = "the key that leads to the person"
            lines.append(with_note(f"# through = {quote(f'{other}.{column}')}", note))
    if not lines:
        lines.append(with_note('# person = "?"', "the column that says whose a row is, in place of ?"))
    lines.append(with_note("# public = true", "nobody is in it: everybody may see each row"))
    words = " or ".join(dict.fromkeys(line.split()[1] for line in lines))
    nameless = source.is_nameless(name)
    said = f"{DECIDE}{name} has no {'line of names' if nameless else f'column {key(people.unit)}'}. To add it, remove "
    said += f"the # from its lines, keep {words}{', and write names for its columns' if nameless else ''}:"
    if others := people.others.get(name):
        said = f"{DECIDE}a row of {name} is about several people ({', '.join(others)}), and protects one of them only:"
        lines = [with_note(f"# {line}", "this one") for line in _leading(name, others, source, people)]
    kept = [f"# {line}" for line in source_lines(name, source) if not line.startswith("#")]
    declared = {one: how for one, how in source.declared(name, None).items() if one not in likely}
    return [remark(said), *kept, *lines, *(f"# {line}" for line in column_lines(name, declared))]


def key(name: str) -> str:
    """A name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quote(name)


def quote(text: str) -> str:
    """A text in quotes, as TOML has it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

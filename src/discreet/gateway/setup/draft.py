"""What the owner decided so far, and the policy that follows from it.

Decisions come as texts of forms. Each step is checked when it is made, and the whole policy once more before it is
written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from discreet.datasets.connect import open_engine, schema_of
from discreet.datasets.drafts import (
    DELTA,
    EPSILON,
    People,
    column_lines,
    engine_lines,
    find_people,
    ledger_lines,
    propose_person,
    quote,
    source_lines,
    through_key,
    unit_lines,
    value_text,
    with_note,
)
from discreet.datasets.people import SURE, likely_people, place_of
from discreet.datasets.policy import Policy, policy_in
from discreet.datasets.sources import Source
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_delta, check_epsilon
from discreet.gateway.books.accounts import check_name
from discreet.gateway.settings import LONGEST, seconds_in, settings_of
from discreet.gateway.setup.typed import Writing, typed, typed_range, writing_of
from discreet.sql.schema import KEYS, ORDERED, validate_bound

USES = ("people", "through", "public", "left out")
"""What a table may be: rows of people, rows that lead to people, nobody's, or not served."""
DECLARED = ("nothing", "range", "choices")
MOST_CHOICES = 10_000
_HEAD = (
    "# A policy from the names and types of columns, and what its owner decided: no value is in it. See docs/sql.md."
)


@dataclass(frozen=True, kw_only=True)
class TableDraft:
    """What is decided about one table. `leads` is the person's column, or the key of another table."""

    use: str
    leads: str = ""
    rows_per_person: int | None = None
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    as_text: frozenset[str] = frozenset()
    """Columns of a text file whose proposed type the owner did not want."""

    def kind_of(self, column: str, proposed: str) -> str:
        """The type of a column."""
        return "text" if column in self.as_text else proposed


@dataclass(frozen=True, kw_only=True)
class Draft:
    """All decisions."""

    tables: Mapping[str, TableDraft]
    epsilon: float = EPSILON
    delta: float = DELTA
    answer_after: str = "5s"
    question_default: float | None = 0.1
    question_most: float | None = 0.5
    owner: str = "owner"

    def named(self, use: str) -> list[str]:
        """The tables with this use."""
        return [name for name, table in self.tables.items() if table.use == use]


def first_draft(source: Source) -> Draft:
    """What is likely, by the keys of a database and the names of columns. The owner sees and confirms it."""
    if people := people_by_keys(source):
        uses = {
            name: ("people", own)
            for name, own in people.columns.items()
            if _can_lead(source.tables[name][own], name, source)
        }
        uses |= {name: ("through", key) for name, key in people.through.items()}
        return Draft(
            tables={
                name: TableDraft(use=use, leads=leads)
                for name in source.tables
                for use, leads in [uses.get(name, ("left out", ""))]
            }
        )
    ranked = likely_people(source.tables)
    sure = [name for place, name in ranked if place < SURE]
    likely = sure or [name for _, name in ranked]  # any id may be that of a visit
    tables = {}
    for name, types in source.tables.items():
        own = [column for column in likely if column in types and _can_lead(types[column], name, source)]
        tables[name] = TableDraft(use="people", leads=own[0]) if own else TableDraft(use="left out")
    return Draft(tables=tables)


def people_by_keys(source: Source) -> People | None:
    """How the tables of a database lead to the likely people, by its foreign keys. None if it has no such keys."""
    person, _ = propose_person(source)
    if person is None or all(key.is_primary for key in source.foreign_keys):
        return None
    return find_people(person, source)


def _can_lead(kind: str, table: str, source: Source) -> bool:
    return kind in KEYS or table in source.untyped


def people_columns(source: Source, table: str) -> list[str]:
    """The columns of a table that can say whose a row is, the likely ones first."""
    known = source.tables[table]
    likely = [name for _, name in likely_people({table: known})]
    return [one for one in dict.fromkeys([*likely, *known]) if _can_lead(known[one], table, source)]


def keys_to(source: Source, table: str) -> Iterator[str]:
    """The keys through which a table can lead to the people of another: its foreign keys, then columns of one name.
    Two primary keys of the same name number different things.
    """
    own, keys = source.tables[table], source.foreign_keys
    declared = [through_key(key) for key in keys if key.table == table and key.other != table]
    primary = {(key.table, key.column) for key in keys if key.is_primary}
    same = (
        f"{other}.{one}"
        for other, types in source.tables.items()
        for one, kind in types.items()
        if other != table and own.get(one) == kind and kind in KEYS and not {(table, one), (other, one)} <= primary
    )
    yield from dict.fromkeys([*declared, *same])


# --- names of columns ---------------------------------------------------------------------------------------


def with_names(draft: Draft, old: Source, new: Source, table: str) -> Draft:
    """The draft after the owner named the columns of a table. What was decided about a column stays with it. A table
    that was left out may now have a column that is named for people.
    """
    names = dict(zip(old.tables[table], new.tables[table], strict=True))
    one = draft.tables[table]
    tables = dict(draft.tables)
    tables[table] = replace(
        one,
        leads=names.get(one.leads, one.leads) if one.use == "people" else one.leads,
        columns={names[column]: declared for column, declared in one.columns.items()},
        as_text=frozenset(names[column] for column in one.as_text),
    )
    for name, other in tables.items():
        if other.use == "through" and other.leads not in keys_to(new, name):
            tables[name] = replace(other, use="left out", leads="", columns={})
    if tables[table].use == "left out":
        proposed = first_draft(new).tables[table]
        tables[table] = replace(tables[table], use=proposed.use, leads=proposed.leads)
    return replace(draft, tables=tables)


# --- the steps ----------------------------------------------------------------------------------------------


def with_uses(draft: Draft, source: Source, given: Mapping[str, Any], *, is_last: bool = True) -> Draft:
    """The draft after the owner said what each table is: "people:patient_id", "through:visits.id", "public". How tables
    lead to each other is checked with the last of them.
    """
    tables = {}
    for name, table in draft.tables.items():
        use, _, leads = str(given.get(name, "left out")).partition(":")
        if use not in USES or (use == "people" and leads not in people_columns(source, name)):
            raise InvalidArgument(f"Say what {name} is: choose one of the list.", code="setup-choice")
        if use == "through" and leads not in keys_to(source, name):
            raise InvalidArgument(f"Choose a key of the list for {name}.", code="setup-choice")
        kept = table.columns if use == table.use else {}
        tables[name] = replace(table, use=use, leads=leads, columns=kept)
    made = replace(draft, tables=tables)
    if not is_last:
        return made
    if not made.named("people"):
        raise InvalidArgument(
            "At least one table must have rows of people, with the column that says whose they are.",
            code="setup-people",
        )
    for name in made.named("through"):
        other = tables[name].leads.rpartition(" -> ")[2].partition(".")[0]
        if tables[other].use not in ("people", "through"):
            raise InvalidArgument(f"{name} leads to people through {other}, which must have them.", code="setup-people")
    return made


def with_columns(draft: Draft, source: Source, table: str, given: Mapping[str, Any]) -> Draft:
    """The draft after the owner declared columns of a table: {"rows_per_person", "columns": {name: {…}}}."""
    if table not in draft.tables:
        raise InvalidArgument("There is no such table.", code="gateway-not-found")
    one, types = draft.tables[table], source.tables[table]
    rows = str(given.get("rows_per_person") or "").strip()
    if rows and not (rows.isascii() and rows.isdecimal() and len(rows) < 12):
        raise InvalidArgument("Rows of one person must be a whole number, such as 20.", code="out-of-range")
    columns, as_text = dict(one.columns), set(one.as_text)
    for name, said in dict(given.get("columns") or {}).items():
        if name not in types:
            raise InvalidArgument("There is no such column.", code="gateway-not-found")
        if "type" in said:
            as_text -= {name}
            as_text |= {name} if table in source.untyped and said["type"] == "text" else set()
        kind = replace(one, as_text=frozenset(as_text)).kind_of(name, types[name])
        found = _declared(name, kind, said, writing_of(source, table, name))
        columns.pop(name, None)
        if found:
            columns[name] = found
    bound = validate_bound(int(rows), "rows_per_person") if rows and one.use == "people" else None
    made = replace(one, rows_per_person=bound, columns=columns, as_text=frozenset(as_text))
    return replace(draft, tables={**draft.tables, table: made})


def _declared(name: str, kind: str, said: Mapping[str, Any], writing: Writing) -> dict[str, Any]:
    """What is declared about a column, from the texts of a form."""
    how = said.get("declare", "nothing")
    if how not in DECLARED:
        raise InvalidArgument(f"Choose what is declared about {name}.", code="setup-choice")
    if how == "range":
        if kind not in ORDERED:
            raise InvalidArgument(f"{name} is {kind} and has no range. Declare choices.", code="column-no-range")
        low, high = (str(said.get(end, "")).strip() for end in ("low", "high"))
        return {"between": typed_range(low, high, kind, name, writing)}
    if how == "choices":
        lines = [line.strip() for line in str(said.get("choices", "")).splitlines() if line.strip()]
        if not 0 < len(lines) <= MOST_CHOICES or len(set(lines)) < len(lines):
            raise InvalidArgument(
                f"Write the choices of {name} on lines of their own, at most {MOST_CHOICES:,}, each once.",
                code="column-choices",
            )
        return {"choices": [typed(line, kind, name, writing) for line in lines]}
    return {}


def with_limits(draft: Draft, given: Mapping[str, Any]) -> Draft:
    """The draft after the owner said what may be spent, and when answers leave."""
    numbers = {name: _number(given.get(name), name) for name in ("epsilon", "delta", "default", "most")}
    if numbers["epsilon"] is None:
        raise InvalidArgument("Say what all answers together may cost, such as 5.", code="setup-choice")
    check_epsilon(numbers["epsilon"])
    check_delta(numbers["delta"] or 0)
    for name in ("default", "most"):
        if numbers[name] is not None:
            check_epsilon(numbers[name], name)
    after = str(given.get("answer_after") or "").strip() or "0"
    seconds_in(0 if after == "0" else after, "The time until an answer", LONGEST)
    return replace(
        draft,
        epsilon=numbers["epsilon"],
        delta=numbers["delta"] or 0.0,
        answer_after=after,
        question_default=numbers["default"],
        question_most=numbers["most"],
        owner=check_name(str(given.get("owner") or "").strip()),
    )


def _number(value: Any, name: str) -> float | None:
    text = str(value or "").strip().replace(",", ".")
    try:
        return float(text) if text else None
    except ValueError:
        raise InvalidArgument(f"{name} must be a number, such as 0.5.", code="gateway-form") from None


# --- the policy ---------------------------------------------------------------------------------------------


def policy_text(draft: Draft, source: Source, name: str, gateway: Mapping[str, Any]) -> str:
    """The policy as it will be written."""
    people = draft.named("people")
    if not people:
        raise InvalidArgument(
            "At least one table must have rows of people. Go back to the tables.", code="setup-people"
        )
    person = min((draft.tables[one].leads for one in people), key=place_of)
    parts = [[_HEAD], ledger_lines(name, draft.epsilon, draft.delta), unit_lines(person)]
    if source.url is not None:
        parts.append(engine_lines(source.url))
    parts += [
        list(_table_lines(one, draft.tables[one], source, person))
        for one in source.tables
        if draft.tables[one].use != "left out"
    ]
    parts.append(_gateway_lines(draft, gateway))
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _table_lines(name: str, table: TableDraft, source: Source, person: str) -> Iterator[str]:
    yield from source_lines(name, source)
    if table.use == "public":
        yield with_note("public = true", "nobody is in it")
    elif table.use == "through":
        yield with_note(f"through = {quote(table.leads)}", "the key that leads to the person")
    elif table.leads != person:
        yield with_note(f"person = {quote(table.leads)}", "the same people, by another name")
    if table.rows_per_person is not None and table.use == "people":
        yield f"rows_per_person = {table.rows_per_person}"
    untyped = name in source.untyped
    columns = source.declared(name, table.leads if table.use == "people" else None)
    for one in table.as_text:
        columns.pop(one, None)
    for one, declared in table.columns.items():
        columns[one] = {**columns.get(one, {}), **declared}
    yield from column_lines(name, columns, untyped=untyped)


def _gateway_lines(draft: Draft, gateway: Mapping[str, Any]) -> list[str]:
    after = "0" if draft.answer_after == "0" else quote(draft.answer_after)
    lines = ["[gateway]", *(f"{name} = {value_text(value)}" for name, value in gateway.items())]
    if "postgres" not in gateway:
        lines.append(
            with_note('# postgres = "127.0.0.1:5433"', "for psql and BI tools: remove the first #, and restart")
        )
    lines.append(with_note(f"answer_after = {after}", "every charged answer leaves then"))
    question = {"default": draft.question_default, "most": draft.question_most}
    said = [f"{name} = {value_text(value)}" for name, value in question.items() if value is not None]
    return [*lines, *(["[gateway.question]", *said] if said else [])]


def checked(text: str, folder: Path) -> Policy:
    """The policy in a text, after checking it against the names and types of the data."""
    policy = policy_in(text, folder)
    settings_of(policy.gateway or {}, folder, policy)
    engine = open_engine(policy)
    try:
        schema_of(policy, engine)
    finally:
        if hasattr(engine, "close"):
            engine.close()
    return policy

"""The policy a data owner writes once: the tables, who is protected in them, what is known of them, what may be spent.

It is read from TOML, or from the same words as Python objects. A word that is not known is refused: a misspelled bound
must not be a missing one. Of the data only the names and types of columns are read here.
"""

from __future__ import annotations

import datetime
import difflib
import json
import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from discreet.engines.duckdb import DuckDB
from discreet.engines.place import KEYS, Place
from discreet.errors import InvalidArgument
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.unit import Unit
from discreet.ledger import Ledger
from discreet.ledger.store import URLS
from discreet.rational import check_delta, exactly
from discreet.sql.schema import AUTO, Column, Schema, Table, Type, implied_type

if TYPE_CHECKING:
    from discreet.database import Database
    from discreet.engines.engine import Engine

IN_MEMORY = ":memory:"
QUESTIONS = 1000
"""Without `delta_per_question`, a question may use one part in so many of the ledger's δ."""
_BOUNDS = ("rows_per_person", "groups_per_person", "rows_per_group")
_TABLE = ("source", "public", "person", "through", *_BOUNDS, "version", "columns")
_COLUMN = ("type", "between", "choices", "frequency")
_PYTHON: dict[Type, Any] = {"text": str, "integer": int, "number": int | float, "boolean": bool}
_PYTHON |= {"date": datetime.date, "timestamp": datetime.datetime}


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What the owner of a data set decided.

    `ledger` is a path, a URL or ":memory:", and `limit` what may be spent from it in all. `delta_per_question` is the δ
    that one question may use, for Gaussian noise; by default a thousandth of the limit's, and 0 under a pure limit. The
    columns of `tables` are those of which something is declared; the engine has all of them. It has their types, too,
    but for private CSV and JSON files: there a type is declared, or that of the range or choices, or text.
    `engine` says where the rows are.
    """

    unit: Unit
    limit: Guarantee
    tables: Mapping[str, Table] = field(repr=False)  # a source may be the data themselves
    ledger: Any = field(default=IN_MEMORY, repr=False)  # a URL may hold a password
    rule: str | None = None
    delta_per_question: Any = None
    engine: Place = field(default_factory=Place)

    def __post_init__(self) -> None:
        if not isinstance(self.unit, Unit) or not isinstance(self.limit, Guarantee):
            raise InvalidArgument("A policy takes unit=dp.person(…) or dp.row(), and limit=dp.Approx(…) or dp.Pure(…).")
        if not self.tables:
            raise InvalidArgument('The policy has no tables. Add one: [tables.visits] and source = "visits.parquet".')
        if len({name.lower() for name in self.tables}) < len(self.tables):
            raise InvalidArgument("Two tables have the same name, as SQL reads it. Name them apart.")
        for name, table in self.tables.items():
            _check_table(name, table, self.unit)
        whole = exactly(getattr(self.limit, "delta", 0))
        if self.delta_per_question is None:
            object.__setattr__(self, "delta_per_question", whole / QUESTIONS)
        if check_delta(self.delta_per_question, "delta_per_question") > whole:
            raise InvalidArgument("delta_per_question is above the ledger's delta. Lower it, or leave it out.")

    def public_text(self) -> str:
        """What decides an answer beside the question and the data: the unit, and everything declared of the tables.

        Where things are kept and what may be spent is left out: it changes no answer.
        """
        tables = {
            name: {
                **{key: getattr(table, key) for key in ("public", "person", "through", *_BOUNDS)},
                "columns": {c.name: [c.between, c.choices, c.type, c.frequency] for c in table.columns.values()},
            }
            for name, table in self.tables.items()
        }
        return json.dumps({"unit": repr(self.unit), "tables": tables}, sort_keys=True, default=str, ensure_ascii=False)


def _check_table(name: str, table: Table, unit: Unit) -> None:
    if name != table.name:
        raise InvalidArgument(f"The table {table.name} is listed as {name}. Give it one name.")
    given = [key for key in ("person", "through", *_BOUNDS) if getattr(table, key) is not None]
    if given and table.public:
        raise InvalidArgument(f"{name} is public: nobody is protected in it. Leave out {given[0]}, or public = true.")
    if given and unit.column is None:
        raise InvalidArgument(f"[unit] protects single rows: {given[0]} of {name} has no meaning. Leave it out.")


# --- from words ---------------------------------------------------------------------------------------------


def load(source: str | Path | Mapping[str, Any]) -> Policy:
    """The policy in a TOML file, whose relative paths are relative to the file; or the same words as a mapping, where a
    source may also be a table in memory.
    """
    if isinstance(source, Mapping):
        return _policy(source, None)
    if not isinstance(source, str | Path):
        raise InvalidArgument('A policy is the path of a TOML file, such as "clinic.toml", a mapping, or a Policy.')
    file = Path(os.path.expanduser(source))
    return _policy(_words(file), file.parent)


def ledger_of(source: str | Path) -> str:
    """The path or URL of the ledger that a policy file names; nothing else of it is read."""
    file = Path(os.path.expanduser(source))
    ledger = _words(file).get("ledger")
    path = ledger.get("path") if isinstance(ledger, dict) else None
    if not isinstance(path, str) or not path:
        raise InvalidArgument(f'The policy {file} names no ledger. Add to it: [ledger] and path = "clinic.ledger".')
    return _target(path, file.parent)


def _words(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument(f"The policy {file} cannot be read: {error.strerror}. Name one that exists.") from None
    except UnicodeDecodeError:
        raise InvalidArgument(f"The policy {file} is not text in UTF-8. Save it so.") from None
    except RecursionError:
        raise InvalidArgument(f"The policy {file} is nested too deeply. Write it plainly.") from None
    except ValueError as error:
        raise InvalidArgument(f"The policy {file} is not TOML: {error}. Mend that line.") from None


def _target(path: str, folder: Path) -> str:
    if path == IN_MEMORY:
        raise InvalidArgument('A ledger in memory would forget what was spent. Name a file: path = "clinic.ledger".')
    return path if path.startswith(URLS) else str(folder / os.path.expanduser(path))


def _policy(words: Mapping[str, Any], folder: Path | None) -> Policy:
    found = _section(words, "", ("ledger", "unit", "tables", "engine"))
    ledger = _section(found.get("ledger"), "ledger", ("path", "epsilon", "delta", "delta_per_question", "rule"))
    for key, example in (("path", '"clinic.ledger"'), ("epsilon", "10.0")):
        if key not in ledger:
            raise InvalidArgument(f"[ledger] has no {key}. Add it: {key} = {example}.")
    epsilon, delta = ledger["epsilon"], ledger.get("delta", 0)
    tables = _section(found.get("tables", {}), "tables")
    engine = _engine(_section(found.get("engine", {}), "engine"), folder)
    return Policy(
        unit=_unit(_section(found.get("unit"), "unit", ("person", "row", "neighbors"))),
        limit=Approx(epsilon=epsilon, delta=delta) if check_delta(delta) else Pure(epsilon=epsilon),
        tables={name: _table(name, table, folder, engine) for name, table in tables.items()},
        ledger=ledger["path"] if folder is None else _target(str(_text(ledger, "path", "ledger")), folder),
        rule=_text(ledger, "rule", "ledger"),
        delta_per_question=ledger.get("delta_per_question"),
        engine=engine,
    )


def _engine(section: Mapping[str, Any], folder: Path | None) -> Place:
    words = {"kind": "duckdb", **section}
    if isinstance(words["kind"], str) and words["kind"] in KEYS:
        _section(words, "engine", KEYS[words["kind"]])
    spill = words.get("spill")
    if folder is not None and isinstance(spill, str) and spill:
        words["spill"] = str(folder / os.path.expanduser(spill))
    return Place(**{key: value for key, value in words.items() if any(key in keys for keys in KEYS.values())})


def _section(values: Any, where: str, known: Iterable[str] | None = None) -> Mapping[str, Any]:
    """One section of a policy, once all of its keys are known."""
    if values is None:
        raise InvalidArgument(f"The policy has no [{where}]. Add one.")
    if not isinstance(values, Mapping):
        raise InvalidArgument(f"{where} must be a section of the policy: [{where}].")
    for key in values:
        if not isinstance(key, str) or (known is not None and key not in known):
            _unknown(f"[{where}]" if where else "A policy", "key", key, known or ())
    return values


def _unknown(where: str, what: str, name: Any, known: Iterable[str]) -> NoReturn:
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1)
    remedy = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}."
    raise InvalidArgument(f"{where} has no {what} {name}. {remedy}")


def _text(section: Mapping[str, Any], key: str, where: str) -> str | None:
    value = section.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise InvalidArgument(f"{key} of [{where}] must be a text. Write it in quotes.")
    return value


def _unit(section: Mapping[str, Any]) -> Unit:
    column, rows = _text(section, "person", "unit"), section.get("row", False)
    if rows not in (True, False) or (column is None) != rows:
        raise InvalidArgument('[unit] must say who is protected. Write person = "patient_id", or row = true.')
    return Unit(column, section.get("neighbors", "add_or_remove"))


def _table(name: str, words: Any, folder: Path | None, engine: Place) -> Table:
    where = f"tables.{name}"
    section = _section(words, where, _TABLE)
    source = section.get("source")
    if source is None or (folder is not None and not (isinstance(source, str) and source)):
        raise InvalidArgument(f'[{where}] names no source. Add a file or a folder: source = "{name}.parquet".')
    public = section.get("public", False)
    if not isinstance(public, bool):
        raise InvalidArgument(f"public of [{where}] must be true or false.")
    columns = {
        column: _column(column, _section(told, f"{where}.columns.{column}", _COLUMN))
        for column, told in _section(section.get("columns", {}), f"{where}.columns").items()
    }
    person, version = _text(section, "person", where), section.get("version")
    if person is not None:
        columns.setdefault(person, Column(name=person))
    return Table(
        name=name,
        columns=columns,
        source=engine.found_from(folder, source),
        public=public,
        person=person,
        through=_text(section, "through", where),
        version=None if version is None else str(version),
        **{key: section.get(key) for key in _BOUNDS},
    )


def _column(name: str, section: Mapping[str, Any]) -> Column:
    """What is declared of a column. A type that is not declared follows from the rest, until the engine has its own."""
    declared, between, choices, frequency = (section.get(key) for key in _COLUMN)
    check_type(declared, name)
    if choices is not None:
        listed = isinstance(choices, list | tuple) and not any(isinstance(one, list | Mapping) for one in choices)
        choices = tuple(choices) if listed else ()
    if between is not None and between != AUTO:
        ends = between if isinstance(between, list | tuple) and len(between) == 2 else [None, None]
        if not any(all(isinstance(end, kind) for end in ends) for kind in (int | float, str | datetime.date)):
            raise InvalidArgument(f"between of {name} must be two numbers or two dates, such as [0, 120].")
    kind = declared or implied_type(between, choices)
    known: dict[str, Any] = {"between": between, "choices": choices, "frequency": frequency}
    return Column(name=name, type=kind, declared=declared is not None, **known)


def check_type(kind: Any, column: str) -> None:
    """A type that a column may be declared to have, if any is."""
    if kind is not None and kind not in list(_PYTHON):
        raise InvalidArgument(f"type of {column} must be one of {', '.join(_PYTHON)}, and not {kind}.")


# --- onto the data ------------------------------------------------------------------------------------------


def connect(
    policy: str | Path | Mapping[str, Any] | Policy, *, analyst: str | None = None, spark: Any = None
) -> Database:
    """A data set to ask in SQL, under the policy in a TOML file, in a mapping of the same words, or in a `Policy`.

    The ledger is made when missing, with the policy's terms; when present it must have them. With `analyst`, answers
    are charged to the account that the owner made for them (`ledger.for_analyst(name, limit=…)`), too. `spark` is the
    session to use where the policy's engine is Spark; without it one is started.
    """
    from discreet.database import Database

    known = policy if isinstance(policy, Policy) else load(policy)
    engine = _opened(known, spark)
    schema = schema_of(known, engine)
    ledger = Ledger.open(known.ledger, protects=known.unit, limit=known.limit, rule=known.rule)
    if analyst is not None:
        ledger = ledger.for_analyst(analyst)
    return Database(schema, engine, ledger, delta_per_question=known.delta_per_question, policy=known.public_text())


def _opened(known: Policy, session: Any) -> Engine:
    """The engine that the policy names, on its sources."""
    place = known.engine
    sources = {name: table.source for name, table in known.tables.items()}
    for name, source in sources.items():
        place.check_source(name, source)
    if session is not None and place.kind != "spark":
        raise InvalidArgument('spark= is for a policy whose [engine] has kind = "spark". Leave it out.')
    if place.kind == "postgres":
        from discreet.engines.postgres import Postgres

        assert place.url is not None  # checked when the policy was made
        return Postgres(place.url, sources, **({} if place.timeout is None else {"timeout": place.timeout}))
    if place.kind == "spark":
        from discreet.engines.spark import Spark

        return Spark(sources, master=place.master, session=session, config=place.config, timeout=place.timeout)
    tables = known.tables
    return DuckDB(
        sources,
        types={name: _types(table, known.unit) for name, table in tables.items()},
        sniffed=[n for n, t in tables.items() if t.public and not any(c.declared for c in t.columns.values())],
        memory=place.memory,
        spill=place.spill,
    )


def _types(table: Table, unit: Unit) -> dict[str, str]:
    """The types of a table's columns, where its source has none of its own."""
    types: dict[str, str] = {column.name: column.type for column in table.columns.values()}
    if unit.column is not None and table.person is None and table.through is None and not table.public:
        types.setdefault(unit.column, "text")
    return types


def schema_of(policy: Policy, engine: Engine) -> Schema:
    """The policy's tables with all of their columns, typed as the engine says."""
    tables = {name: _completed(table, engine.columns(name), policy.unit) for name, table in policy.tables.items()}
    return Schema(unit=policy.unit, tables=tables)


def _completed(table: Table, types: Mapping[str, Any], unit: Unit) -> Table:
    for name in table.columns:
        if name not in types:
            _unknown(table.name, "column", name, types)
    columns = {name: _typed(table.columns.get(name, Column(name=name)), kind) for name, kind in types.items()}
    person = table.person or (unit.column if unit.column in types and not table.public else None)
    if person is not None and types.get(person) in ("number", "other"):
        raise InvalidArgument(  # decimals of many digits are read as others, and two people as one
            f"{person} tells people apart in {table.name}, and must be whole numbers, text or days. Write it so there."
        )
    return replace(table, columns=columns, person=person)


def _typed(column: Column, kind: Type) -> Column:
    if column.declared and column.type != kind:
        raise InvalidArgument(
            f"{column.name} is {column.type} in the policy, but {kind} in its source. Leave out type."
        )
    if column.choices is None:
        return replace(column, type=kind)
    return replace(column, type=kind, choices=tuple(_choice(value, kind, column.name) for value in column.choices))


def _choice(value: Any, kind: Type, name: str) -> Any:
    """A declared value of a column's own type: one of another would be a group that is always empty."""
    if isinstance(value, str) and kind in ("date", "timestamp"):
        try:
            value = datetime.datetime.fromisoformat(value)
        except ValueError:
            value = None
    if kind == "date" and isinstance(value, datetime.datetime):
        value = value.date()
    fits = isinstance(value, _PYTHON.get(kind, ())) and (kind == "boolean" or not isinstance(value, bool))
    if not fits or (isinstance(value, float) and not math.isfinite(value)):
        raise InvalidArgument(f"choices of {name} must be of the column's type: {kind}. Write them so.")
    return value

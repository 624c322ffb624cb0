"""The policy that a data owner writes once: the tables, who is protected, what is publicly known, what may be spent.

It is read from TOML, or from a mapping with the same keys. An unknown key is refused: a misspelled bound must not
become a missing bound. No data are read here.
"""

from __future__ import annotations

import datetime
import difflib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NoReturn

from discreet.engines.configuration import KEYS, EngineConfiguration
from discreet.engines.text_format import TextFormat, check_date_format, has_time
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count, check_delta, exactly
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.unit import Unit
from discreet.ledger.stores.store import IN_MEMORY, URLS
from discreet.sql.blocks import Time
from discreet.sql.estimates.rules import AnswerRules
from discreet.sql.schema import AUTO, BOUNDS, Column, Hierarchy, Table, check_type, implied_type

QUESTIONS = 1000
"""Without `delta_per_question`, a question may use the ledger's δ divided by this."""
_TABLE = (
    "source",
    "copy_of",
    "format",
    "public",
    "person",
    "through",
    *BOUNDS,
    "version",
    "columns",
    "hierarchies",
    "time",
)
_COLUMN = ("type", "between", "choices", "frequency", "other", "format")
_COPY = ("file", "encoding")
_FORMAT = ("header", "separator", "names", "decimal", "thousands")
_TIME = ("column", "block", "arrived", "late")
_ANSWERS = tuple(one.name for one in fields(AnswerRules))
_UNIT = ("person", "group", "row", "rows", "groups", "by", "neighbors", "per", "lives_in")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The decisions of the owner of a data set.

    `ledger` is a path, a URL or ":memory:". `limit` is the total budget. `delta_per_question` is the δ that one
    question may use for Gaussian noise: by default a thousandth of the limit's δ, and 0 under a pure limit. The columns
    of `tables` are those with declarations. The engine knows all columns and their types, except for private CSV and
    JSON files. There the type is the declared one, or follows from the range or the choices, or is text. `engine` says
    where the rows are.
    """

    unit: Unit
    limit: Guarantee
    tables: Mapping[str, Table] = field(repr=False)  # a source may be the data
    ledger: Any = field(default=IN_MEMORY, repr=False)  # a URL may hold a password
    rule: str | None = None
    delta_per_question: Any = None
    engine: EngineConfiguration = field(default_factory=EngineConfiguration)
    analyst_required: bool = False
    """Whether every question must say who asks it."""
    answers: AnswerRules = field(default_factory=AnswerRules)
    """Whether questions are answered from earlier answers."""
    gateway: Mapping[str, Any] | None = field(default=None, repr=False)
    """The section of the gateway as it is written, if there is one. The gateway reads it."""
    copies: Mapping[str, tuple[Path, str]] = field(default_factory=dict, repr=False)
    """By table: the file that its source is a copy of in UTF-8, and the encoding of that. Neither changes an answer."""

    def __post_init__(self) -> None:
        if not isinstance(self.unit, Unit) or not isinstance(self.limit, Guarantee):
            raise InvalidArgument(
                "A policy takes unit=dp.person(…) or dp.row(), and limit=dp.Approx(…) or dp.Pure(…).", code="wrong-type"
            )
        if not self.tables:
            raise InvalidArgument(
                'The policy has no tables. Add one: [tables.visits] and source = "visits.parquet".',
                code="policy-missing-key",
            )
        if len({name.lower() for name in self.tables}) < len(self.tables):
            raise InvalidArgument(
                "Two tables have the same name in SQL, which ignores case. Rename one.", code="duplicates"
            )
        for name, table in self.tables.items():
            _check_table(name, table, self.unit)
        whole = exactly(getattr(self.limit, "delta", 0))
        if self.delta_per_question is None:
            object.__setattr__(self, "delta_per_question", whole / QUESTIONS)
        if check_delta(self.delta_per_question, "delta_per_question") > whole:
            raise InvalidArgument(
                "delta_per_question is above the ledger's delta. Lower it, or remove it.", code="policy-delta"
            )

    def public_text(self) -> str:
        """Everything that determines an answer besides the question and the data: the unit, and all declarations of the
        tables.

        Storage locations and budgets are left out: they change no answer.
        """
        tables = {
            name: {
                **{key: getattr(table, key) for key in ("public", "person", "through", *BOUNDS)},
                "columns": {
                    c.name: [c.between, c.choices, c.type, c.frequency, *([] if c.other is None else [c.other])]
                    for c in table.columns.values()
                },
                **({} if table.text_format is None else {"format": _words_of(table.text_format)}),
                **({"hierarchies": [vars(one) for one in table.hierarchies]} if table.hierarchies else {}),
                **({} if table.time is None else {"time": vars(table.time)}),
            }
            for name, table in self.tables.items()
        }
        return json.dumps({"unit": repr(self.unit), "tables": tables}, sort_keys=True, default=str, ensure_ascii=False)


def _words_of(declared: TextFormat) -> dict[str, Any]:
    return declared.words() | {"dates": dict(declared.dates)}


def _check_table(name: str, table: Table, unit: Unit) -> None:
    if name != table.name:
        raise InvalidArgument(
            f"The table {table.name} is listed as {name}. Give it one name.", code="policy-table-name"
        )
    given = [key for key in ("person", "through", *BOUNDS) if getattr(table, key) is not None]
    if given and table.public:
        raise InvalidArgument(
            f"{name} is public: nobody is protected in it. Remove {given[0]}, or public = true.", code="policy-public"
        )
    if given and unit.column is None:
        raise InvalidArgument(
            f"[unit] protects single rows, so {given[0]} of {name} has no meaning. Remove it.", code="rows-protected"
        )


# --- from words ---------------------------------------------------------------------------------------------


def load(source: str | Path | Mapping[str, Any]) -> Policy:
    """The policy in a TOML file, with paths relative to the file. Or a mapping with the same keys, where a source may
    also be a table in memory.
    """
    if isinstance(source, Mapping):
        return _policy(source, None)
    if not isinstance(source, str | Path):
        raise InvalidArgument(
            'A policy must be the path of a TOML file, such as "clinic.toml", a mapping, or a Policy.',
            code="wrong-type",
        )
    file = Path(os.path.expanduser(source))
    return _policy(_words(file), file.parent)


def policy_in(text: str, folder: str | Path) -> Policy:
    """The policy in the text of a TOML file that was read before, with paths relative to `folder`."""
    return _policy(tomllib.loads(text), Path(folder))


def ledger_of(source: str | Path) -> str:
    """The path or URL of the ledger that a policy file names. Nothing else in the file is read."""
    file = Path(os.path.expanduser(source))
    ledger = _words(file).get("ledger")
    path = ledger.get("path") if isinstance(ledger, dict) else None
    if not isinstance(path, str) or not path:
        raise InvalidArgument(
            f'The policy {file} names no ledger. Add [ledger] and path = "clinic.ledger".', code="policy-missing-key"
        )
    return _target(path, file.parent)


def _words(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument(
            f"The policy {file} cannot be read: {error.strerror}. Name one that exists.", code="policy-file"
        ) from None
    except UnicodeDecodeError:
        raise InvalidArgument(
            f"The policy {file} is not text in UTF-8. Save it as UTF-8.", code="policy-not-toml"
        ) from None
    except RecursionError:
        raise InvalidArgument(f"The policy {file} is nested too deeply. Simplify it.", code="policy-not-toml") from None
    except ValueError as error:
        raise InvalidArgument(
            f"The policy {file} is not TOML: {error}. Correct that line.", code="policy-not-toml"
        ) from None


def _target(path: str, folder: Path) -> str:
    if path == IN_MEMORY:
        raise InvalidArgument(
            'A ledger in memory would forget what was spent. Name a file: path = "clinic.ledger".',
            code="policy-ledger-in-memory",
        )
    return path if path.startswith(URLS) else str(folder / os.path.expanduser(path))


def _policy(words: Mapping[str, Any], folder: Path | None) -> Policy:
    found = section_of(words, "", ("ledger", "unit", "tables", "engine", "analysts", "answers", "gateway"))
    ledger = section_of(found.get("ledger"), "ledger", ("path", "epsilon", "delta", "delta_per_question", "rule"))
    for key, example in (("path", '"clinic.ledger"'), ("epsilon", "10.0")):
        if key not in ledger:
            raise InvalidArgument(f"[ledger] has no {key}. Add {key} = {example}.", code="policy-missing-key")
    epsilon, delta = ledger["epsilon"], ledger.get("delta", 0)
    tables = section_of(found.get("tables", {}), "tables")
    engine = _engine(section_of(found.get("engine", {}), "engine"), folder)
    return Policy(
        unit=_unit(section_of(found.get("unit"), "unit", _UNIT)),
        limit=Approx(epsilon=epsilon, delta=delta) if check_delta(delta) else Pure(epsilon=epsilon),
        tables={name: _table(name, table, folder, engine) for name, table in tables.items()},
        ledger=ledger["path"] if folder is None else _target(str(text_in(ledger, "path", "ledger")), folder),
        rule=text_in(ledger, "rule", "ledger"),
        delta_per_question=ledger.get("delta_per_question"),
        engine=engine,
        analyst_required=_analyst_required(section_of(found.get("analysts", {}), "analysts", ("required",))),
        answers=AnswerRules(**section_of(found.get("answers", {}), "answers", _ANSWERS)),
        gateway=section_of(found["gateway"], "gateway") if "gateway" in found else None,
        copies={name: _copy_of(name, table, folder) for name, table in tables.items() if "copy_of" in table},
    )


def _copy_of(name: str, table: Mapping[str, Any], folder: Path | None) -> tuple[Path, str]:
    """The file that the source of a table is a copy of, and its encoding."""
    from discreet.datasets.texts.copies import check_encoding  # few policies need it

    where = f"tables.{name}.copy_of"
    section = section_of(table["copy_of"], where, _COPY)
    file, encoding = (text_in(section, word, where) for word in _COPY)
    if file is None or encoding is None:
        raise InvalidArgument(
            f'[{where}] needs both: copy_of = {{file = "{name}.csv", encoding = "windows-1252"}}.',
            code="policy-missing-key",
        )
    place = (folder or Path()).resolve() / os.path.expanduser(file)
    return Path(os.path.normpath(place)), check_encoding(encoding)


def _analyst_required(section: Mapping[str, Any]) -> bool:
    required = section.get("required", False)
    if not isinstance(required, bool):
        raise InvalidArgument("required of [analysts] must be true or false.", code="wrong-type")
    return required


def _engine(section: Mapping[str, Any], folder: Path | None) -> EngineConfiguration:
    words = {"kind": "duckdb", **section}
    if isinstance(words["kind"], str) and words["kind"] in KEYS:
        section_of(words, "engine", KEYS[words["kind"]])
    spill = words.get("spill")
    if folder is not None and isinstance(spill, str) and spill:
        words["spill"] = str(folder / os.path.expanduser(spill))
    return EngineConfiguration(
        **{key: value for key, value in words.items() if any(key in keys for keys in KEYS.values())}
    )


def section_of(values: Any, where: str, known: Iterable[str] | None = None) -> Mapping[str, Any]:
    """One section of a policy, after checking that all of its keys are known."""
    if values is None:
        raise InvalidArgument(f"The policy has no [{where}]. Add one.", code="policy-missing-key")
    if not isinstance(values, Mapping):
        raise InvalidArgument(f"{where} must be a section of the policy: [{where}].", code="policy-section")
    for key in values:
        if not isinstance(key, str) or (known is not None and key not in known):
            unknown(f"[{where}]" if where else "A policy", "key", key, known or (), code="policy-unknown-key")
    return values


def unknown(where: str, what: str, name: Any, known: Iterable[str], *, code: str) -> NoReturn:
    """Refuse an unknown name and suggest the closest known one."""
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1)
    remedy = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}."
    raise InvalidArgument(f"{where} has no {what} {name}. {remedy}", code=code)


def text_in(section: Mapping[str, Any], key: str, where: str) -> str | None:
    value = section.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise InvalidArgument(f"{key} of [{where}] must be text. Write it in quotes.", code="wrong-type")
    return value


def _unit(section: Mapping[str, Any]) -> Unit:
    person, group = text_in(section, "person", "unit"), text_in(section, "group", "unit")
    column, one, rows = person or group, section.get("row", False), section.get("rows")
    said = [person is not None, group is not None, one, rows is not None]
    if one not in (True, False) or said.count(True) != 1 or (isinstance(rows, bool)):
        raise InvalidArgument(
            '[unit] must say who is protected. Write person = "patient_id", group = "household_id", row = true, or '
            "rows = 3 for any 3 rows at once.",
            code="policy-unit",
        )
    if rows is not None:
        check_count(rows, "rows")  # in Python it is named differently
    return Unit(
        column,
        section.get("neighbors", "add_or_remove"),
        section.get("per"),
        text_in(section, "lives_in", "unit"),
        rows,
        section.get("groups"),
        text_in(section, "by", "unit"),
    )


def _time(words: Any, where: str) -> Time:
    """When the rows of a table happened."""
    section = section_of(words, where, _TIME)
    if "column" not in section:
        raise InvalidArgument(
            f'[{where}] names no column. Add the column of days or moments: column = "day".', code="policy-missing-key"
        )
    return Time(**{key: section[key] for key in _TIME if key in section})


def _table(name: str, words: Any, folder: Path | None, engine: EngineConfiguration) -> Table:
    where = f"tables.{name}"
    section = section_of(words, where, _TABLE)
    source = section.get("source")
    if source is None or (folder is not None and not (isinstance(source, str) and source)):
        raise InvalidArgument(
            f'[{where}] names no source. Add a file or a folder: source = "{name}.parquet".', code="policy-missing-key"
        )
    public = section.get("public", False)
    if not isinstance(public, bool):
        raise InvalidArgument(f"public of [{where}] must be true or false.", code="wrong-type")
    columns, text_format = {}, dict(section_of(section.get("format", {}), f"{where}.format", _FORMAT))
    dates: dict[str, str] = {}
    for column, declared in section_of(section.get("columns", {}), f"{where}.columns").items():
        said = section_of(declared, f"{where}.columns.{column}", _COLUMN)
        columns[column] = _column(column, said)
        if "format" in said:
            dates[column] = said["format"]
    if (text_format or dates) and engine.kind != "duckdb":
        raise InvalidArgument(
            f"format of [{where}] is for text files, and this engine has none. Remove it.", code="format-not-text"
        )
    listed = section_of(section.get("hierarchies", {}), f"{where}.hierarchies")
    hierarchies = tuple(_hierarchy(one, words, f"{where}.hierarchies.{one}") for one, words in listed.items())
    for level, values in ((level, values) for one in hierarchies for level, values in one.values().items()):
        known = columns.setdefault(level, Column(name=level, type=implied_type(None, values), choices=values))
        if any(not _is_declared(value, known) for value in values):
            raise InvalidArgument(
                f"A hierarchy of {name} has groups that the declaration of {level} leaves out. Declare their values, "
                "or remove the groups.",
                code="policy-hierarchy",
            )
    person, version = text_in(section, "person", where), section.get("version")
    if person is not None:
        columns.setdefault(person, Column(name=person))
    return Table(
        name=name,
        columns=columns,
        source=engine.resolve_source(folder, source),
        public=public,
        person=person,
        through=text_in(section, "through", where),
        version=None if version is None else str(version),
        hierarchies=hierarchies,
        text_format=TextFormat(**text_format, dates=dates) if text_format or dates else None,
        time=_time(section["time"], f"{where}.time") if "time" in section else None,
        **{key: section.get(key) for key in BOUNDS},
    )


def _hierarchy(name: str, words: Any, where: str) -> Hierarchy:
    """Columns from coarse to fine, the groups they have, and the numbers of rows that are public."""
    section = section_of(words, where, ("levels", "groups", "totals", "column"))
    levels, groups, totals = (section.get(key, []) for key in ("levels", "groups", "totals"))
    lists = [levels, groups, totals]
    if all(isinstance(one, list | tuple) for one in lists):
        lists = [*groups, *totals]
    plain = (one for row in lists if isinstance(row, list | tuple) for one in row)
    if (
        not all(isinstance(one, list | tuple) for one in lists)
        or not all(isinstance(one, str) for one in levels)
        or any(isinstance(one, list | tuple | Mapping) for one in plain)
    ):
        raise InvalidArgument(
            f'[{where}] takes lists: levels = ["region", "city"], groups = [["North", "Kiel"]] and totals = '
            '[["North", 1200]].',
            code="policy-hierarchy",
        )
    return Hierarchy(
        name=name,
        levels=tuple(levels),
        groups=tuple(map(tuple, groups)),
        totals=tuple(map(tuple, totals)),
        column=text_in(section, "column", where),
    )


def _is_declared(value: Any, column: Column) -> bool:
    """Whether a value is one of the choices of a column, or in its range."""
    if column.choices is not None:
        return value in column.choices
    if column.between is None or column.between == AUTO or not isinstance(value, int | float):
        return True  # other values are checked when their column has its type
    low, high = column.between
    return column.type not in ("integer", "number") or bool(low <= value <= high)


def _column(name: str, section: Mapping[str, Any]) -> Column:
    """What is declared about a column. A type that is not declared follows from the rest, until the engine has
    its own.
    """
    declared, between, choices, frequency, other, written = (section.get(key) for key in _COLUMN)
    check_type(declared, name)
    if choices is not None:
        listed = isinstance(choices, list | tuple) and not any(isinstance(one, list | Mapping) for one in choices)
        choices = tuple(choices) if listed else ()
    if between is not None and between != AUTO:
        ends = between if isinstance(between, list | tuple) and len(between) == 2 else [None, None]
        if not any(all(isinstance(end, kind) for end in ends) for kind in (int | float, str | datetime.date)):
            raise InvalidArgument(
                f"between of {name} must be two numbers or two dates, such as [0, 120].", code="wrong-shape"
            )
    kind = declared or implied_type(between, choices)
    if written is not None:
        check_date_format(written, name)
        kind = ("timestamp" if has_time(written) else "date") if kind == "other" else kind
        if kind not in ("date", "timestamp"):
            raise InvalidArgument(
                f'format of {name} is for dates, and {name} is {kind}. Remove format, or write type = "date".',
                code="format-date",
            )
    known: dict[str, Any] = {"between": between, "choices": choices, "frequency": frequency, "other": other}
    return Column(name=name, type=kind, declared=declared is not None, **known)

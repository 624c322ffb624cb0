"""Functions of PostgreSQL that look something up, in Python. DuckDB calls them by the names in `signatures.LOOKUPS`."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.gateway.catalog.objects import DATABASE, PUBLIC, ROLE
from discreet.gateway.catalog.snapshot import Kept
from discreet.gateway.wire.format.values import Refusal

CATALOG = 11
LONGEST, MOST_VALUES = 1_000_000, 100_000
"""The longest text that a function makes, and the longest series."""
_VISIBLE = {
    "table": ("pg_class", "relnamespace"),
    "type": ("pg_type", "typnamespace"),
    "function": ("pg_proc", "pronamespace"),
    "operator": ("pg_operator", "oprnamespace"),
    "opclass": ("pg_opclass", "opcnamespace"),
    "opfamily": ("pg_opfamily", "opfnamespace"),
    "collation": ("pg_collation", "collnamespace"),
    "conversion": ("pg_conversion", "connamespace"),
    "ts_config": ("pg_ts_config", "cfgnamespace"),
    "ts_dict": ("pg_ts_dict", "dictnamespace"),
    "ts_parser": ("pg_ts_parser", "prsnamespace"),
    "ts_template": ("pg_ts_template", "tmplnamespace"),
    "statistics_obj": ("pg_statistic_ext", "stxnamespace"),
}
_ENCODINGS = {0: "SQL_ASCII", 6: "UTF8", 8: "LATIN1"}
_LENGTHS = {1042: "character", 1043: "character varying"}
_TIMES = {1083: "time", 1114: "timestamp", 1184: "timestamp", 1266: "time"}
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass
class Asking:
    """Who asks, and the settings of the session."""

    user: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    refusal: Refusal | None = None


class Lookups:
    """What the functions look up. One thread answers one statement at a time, and keeps who asks it."""

    def __init__(
        self, kept: Mapping[tuple[str, str], Kept], said: Mapping[str, list[list[Any]]], database: str
    ) -> None:
        def rows(name: str) -> list[dict[str, Any]]:
            return list(kept["pg_catalog", name].records)

        self.database = database
        self.local = threading.local()
        self._namespaces = {row["oid"]: row["nspname"] for row in rows("pg_namespace")}
        self._by_namespace = {name: oid for oid, name in self._namespaces.items()}
        self._classes = {row["oid"]: (row["relname"], row["relnamespace"], row["relkind"]) for row in rows("pg_class")}
        self._by_class = {(space, name): oid for oid, (name, space, _) in self._classes.items()}
        self._types = {row["oid"]: row for row in rows("pg_type")}
        self._by_type = {(row["typnamespace"], row["typname"]): oid for oid, row in self._types.items()}
        self._type_names = dict(said["types"])
        self._by_written = {name: oid for oid, name in self._type_names.items()}
        self._procs: dict[int, str] = {row["oid"]: row["proname"] for row in rows("pg_proc")}
        self._by_proc: dict[str, list[int]] = {}
        for oid, name in self._procs.items():
            self._by_proc.setdefault(name, []).append(oid)
        self._functions = {row[0]: row[1:] for row in said["functions"]}
        self._indexes = {row[0]: row[1:] for row in said["indexes"]}
        self._constraints = {row[0]: row[1:] for row in said["constraints"]}
        self._roles = {row["oid"]: row["rolname"] for row in rows("pg_roles")}
        self._settings = {row["name"].lower(): row for row in rows("pg_settings")}
        self._descriptions = {
            (r["objoid"], r["classoid"], r["objsubid"]): r["description"] for r in rows("pg_description")
        }
        self._shared = {(r["objoid"], r["classoid"]): r["description"] for r in rows("pg_shdescription")}
        self._places = {
            what: {row["oid"]: row[place] for row in rows(name)} for what, (name, place) in _VISIBLE.items()
        }
        self._updatable = {row[0] for row in said["updatable"]}
        self._operators = {row["oid"]: row for row in rows("pg_operator")}
        self._reserved = {row[0] for row in said["keywords"] if row[1] in "RTC"}
        self._extensions = {row["oid"]: row["extname"] for row in rows("pg_extension")}

    @property
    def asking(self) -> Asking:
        """Who asks in this thread."""
        found = getattr(self.local, "asking", None)
        return found if isinstance(found, Asking) else Asking()

    def refuse(self, message: str, state: str) -> Exception:
        """An error that DuckDB carries to the catalog."""
        self.asking.refusal = Refusal(message, state=state)
        return ValueError(state)

    def check_length(self, length: int) -> None:
        """Refuse to make a text that is very long."""
        if length > LONGEST:
            raise self.refuse(f"A text would have more than {LONGEST:,} characters.", "54000")

    def replace(self, subject: str, old: str, new: str) -> str:
        """A text with a part replaced everywhere."""
        self.check_length(subject.count(old) * len(new) if old else 0)
        return subject.replace(old, new) if old else subject

    def divide_whole(self, one: int, other: int) -> int:
        """A quotient of whole numbers, without its fraction."""
        self._check_divisor(other)
        whole = abs(one) // abs(other)
        return whole if (one < 0) == (other < 0) else -whole

    def divide(self, one: float, other: float) -> float:
        """A quotient."""
        self._check_divisor(other)
        return one / other

    def remainder(self, one: float, other: float) -> float:
        """What a division leaves, with the sign of the dividend."""
        self._check_divisor(other)
        return math.fmod(one, other)

    def _check_divisor(self, divisor: float) -> None:
        if divisor == 0:
            raise self.refuse("division by zero", "22012")

    def series(self, first: int, last: int, step: int) -> list[int]:
        """Whole numbers from one to another."""
        if step == 0:
            raise self.refuse("step size cannot equal zero", "22023")
        found = range(first, last + (1 if step > 0 else -1), step)
        if len(found) > MOST_VALUES:
            raise self.refuse(f"The series has more than {MOST_VALUES:,} values.", "54000")
        return list(found)

    # --- names ------------------------------------------------------------------------------------------------

    @property
    def path(self) -> list[int]:
        """The schemas in which names are looked up."""
        found = self._named_path
        return found if CATALOG in found else [CATALOG, *found]

    @property
    def _named_path(self) -> list[int]:
        said = self.asking.settings.get("search_path", '"$user", public')
        names = [part.strip().strip('"') for part in said.split(",")]
        return [self._by_namespace[name] for name in names if name in self._by_namespace]

    def quote_ident(self, name: str) -> str:
        """A name as it must be written."""
        if _PLAIN.fullmatch(name) and name not in self._reserved:
            return name
        return '"' + name.replace('"', '""') + '"'

    def quote_literal(self, value: str) -> str:
        """A text as it must be written."""
        quoted = "'" + value.replace("'", "''").replace("\\", "\\\\") + "'"
        return f" E{quoted}".strip() if "\\" in value else quoted

    def parse_ident(self, name: str, strict: bool = True) -> list[str]:
        """The parts of a name that may have a schema."""
        parts = self._split_name(name)
        if parts is None:
            raise self.refuse(f'string is not a valid identifier: "{name}"', "22023")
        return parts

    def _split_name(self, name: str) -> list[str] | None:
        found = []
        rest = name.strip()
        if len(rest) > 1000:
            return None
        while True:
            read = re.match(r'\s*(?:"((?:[^"]|"")+)"|([^\W\d][\w$]*))\s*(\.|$)', rest)
            if read is None:
                return None
            found.append(read[1].replace('""', '"') if read[1] is not None else read[2].lower())
            rest = rest[read.end() :]
            if read[3] != ".":
                return found if not rest else None

    def _find(self, known: Mapping[tuple[int, str], int], name: str) -> int | None:
        parts = self._split_name(name)
        if parts and len(parts) == 3 and parts[0] == self.database:
            parts = parts[1:]
        if not parts or len(parts) > 2:
            return None
        spaces = self.path if len(parts) == 1 else [self._by_namespace.get(parts[0], -1)]
        return next((known[space, parts[-1]] for space in spaces if (space, parts[-1]) in known), None)

    def to_regclass(self, name: str) -> int | None:
        """The number of a relation."""
        return int(name) if name.isdigit() else self._find(self._by_class, name)

    def to_regtype(self, name: str) -> int | None:
        """The number of a type."""
        if name.isdigit():
            return int(name)
        plain = " ".join(name.strip().split())
        array = plain.endswith("[]")
        plain = plain.removesuffix("[]").strip()
        plain = {"int": "integer", "varchar": "character varying", "float": "double precision"}.get(
            plain.lower(), plain
        )
        bare = re.sub(r"\s*\([\d, ]+\)$", "", plain)
        found = self._by_written.get(bare.lower()) if '"' not in bare else None
        found = found or self._find(self._by_type, bare)
        return self._types[found]["typarray"] or None if found and array else found

    def to_regproc(self, name: str) -> int | None:
        """The number of a function that no other has the name of."""
        if name.isdigit():
            return int(name)
        parts = self._split_name(name)
        found = self._by_proc.get(parts[-1], []) if parts else []
        return found[0] if len(found) == 1 else None

    def to_regnamespace(self, name: str) -> int | None:
        """The number of a schema."""
        parts = self._split_name(name)
        return int(name) if name.isdigit() else self._by_namespace.get(parts[0]) if parts and len(parts) == 1 else None

    def to_regrole(self, name: str) -> int | None:
        """The number of a role."""
        parts = self._split_name(name)
        if name.isdigit() or not parts:
            return int(name) if name.isdigit() else None
        return (
            ROLE if parts[0] == self.asking.user else next((o for o, n in self._roles.items() if n == parts[0]), None)
        )

    def find_regclass(self, name: str) -> int:
        """The number of a relation, which must exist."""
        found = self.to_regclass(name)
        if found is None:
            raise self.refuse(f'relation "{name}" does not exist', "42P01")
        return found

    def find_regtype(self, name: str) -> int:
        """The number of a type, which must exist."""
        found = self.to_regtype(name)
        if found is None:
            raise self.refuse(f'type "{name}" does not exist', "42704")
        return found

    def find_regproc(self, name: str) -> int:
        """The number of a function, which must exist once."""
        if name == "-":
            return 0
        found = self.to_regproc(name)
        if found is None:
            many = bool(self._by_proc.get(name.rsplit(".", maxsplit=1)[-1]))
            raise self.refuse(
                f'more than one function named "{name}"' if many else f'function "{name}" does not exist',
                "42725" if many else "42883",
            )
        return found

    def find_regprocedure(self, name: str) -> int:
        """The number of a function with the types of its arguments."""
        read = re.fullmatch(r"(.*?)\((.*)\)", name.strip())
        for oid in self._by_proc.get(read[1].removeprefix("pg_catalog."), []) if read else []:
            if self._functions[oid][1].replace(" ", "") == read[2].replace(" ", ""):  # type: ignore[index]
                return oid
        raise self.refuse(f'function "{name}" does not exist', "42883")

    def find_regnamespace(self, name: str) -> int:
        """The number of a schema, which must exist."""
        found = self.to_regnamespace(name)
        if found is None:
            raise self.refuse(f'schema "{name}" does not exist', "3F000")
        return found

    def find_regrole(self, name: str) -> int:
        """The number of a role, which must exist."""
        found = self.to_regrole(name)
        if found is None:
            raise self.refuse(f'role "{name}" does not exist', "42704")
        return found

    def said_regclass(self, oid: int) -> str:
        """A relation as it is written."""
        found = self._classes.get(oid)
        if found is None:
            return "-" if oid == 0 else str(oid)
        name, space, _ = found
        return self.quote_ident(name) if self._is_found(space, name, oid) else self._full(space, name)

    def _is_found(self, space: int, name: str, oid: int) -> bool:
        first = next((one for one in self.path if (one, name) in self._by_class), None)
        return space == first and self._by_class.get((space, name)) == oid

    def _full(self, space: int, name: str) -> str:
        return f"{self.quote_ident(self._namespaces.get(space, '?'))}.{self.quote_ident(name)}"

    def said_regtype(self, oid: int) -> str:
        """A type as it is written."""
        return "-" if oid == 0 else self._written_type(oid, None) if oid in self._types else str(oid)

    def said_regproc(self, oid: int) -> str:
        """A function as it is written."""
        name = self._procs.get(oid)
        if name is None:
            return "-" if oid == 0 else str(oid)
        return self.quote_ident(name) if len(self._by_proc[name]) == 1 else f"pg_catalog.{self.quote_ident(name)}"

    def said_regprocedure(self, oid: int) -> str:
        """A function with the types of its arguments."""
        name = self._procs.get(oid)
        return f"{name}({self._functions[oid][1].replace(', ', ',')})" if name else "-" if oid == 0 else str(oid)

    def said_regoperator(self, oid: int) -> str:
        """An operator with the types of its sides."""
        row = self._operators.get(oid)
        if row is None:
            return "0" if oid == 0 else str(oid)
        sides = ("NONE" if row[side] == 0 else self.said_regtype(row[side]) for side in ("oprleft", "oprright"))
        return f"{row['oprname']}({','.join(sides)})"

    def find_regoperator(self, name: str) -> int:
        """The number of an operator with the types of its sides."""
        for oid in [int(name)] if name.isdigit() else self._operators:
            if name.isdigit() or self.said_regoperator(oid) == name.replace(" ", ""):
                return oid
        raise self.refuse(f'operator does not exist: "{name}"', "42883")

    def said_regnamespace(self, oid: int) -> str:
        """A schema as it is written."""
        found = self._namespaces.get(oid)
        return self.quote_ident(found) if found else "-" if oid == 0 else str(oid)

    def said_regrole(self, oid: int) -> str:
        """A role as it is written."""
        return "-" if oid == 0 else self.quote_ident(self.pg_get_userbyid(oid))

    def format_type(self, oid: int | None, modifier: int | None) -> str | None:
        """A type as SQL writes it."""
        return None if oid is None else self._written_type(oid, modifier)

    def _written_type(self, oid: int, modifier: int | None) -> str:
        row = self._types.get(oid)
        if row is None:
            return "-" if oid == 0 else "???"
        if oid not in self._type_names:
            if row["typelem"]:
                return self._written_type(row["typelem"], -1) + "[]"
            visible = self._by_type.get((CATALOG, row["typname"])) is None and row["typnamespace"] in self.path
            return self.quote_ident(row["typname"]) if visible else self._full(row["typnamespace"], row["typname"])
        if modifier is not None and modifier >= 0:
            return self._with_modifier(oid, modifier)
        # "character" means one character, so the type without a length has a name of its own
        return "bpchar" if oid == 1042 and modifier is not None else str(self._type_names[oid])

    def _with_modifier(self, oid: int, modifier: int) -> str:
        name = str(self._type_names[oid])
        if oid in _LENGTHS:
            return f"{_LENGTHS[oid]}({modifier - 4})"
        if oid == 1700:
            return f"numeric({(modifier - 4) >> 16},{(modifier - 4) & 0x7FF})"
        if oid in _TIMES:
            return name.replace(_TIMES[oid], f"{_TIMES[oid]}({modifier})", 1)
        return name

    # --- what is visible, and who may do what -----------------------------------------------------------------

    def is_visible(self, what: str, oid: int) -> bool | None:
        """Whether an object is found by its name alone."""
        space = self._places[what].get(oid)
        if space is None:
            return None
        if what == "table":
            return self._is_found(space, self._classes[oid][0], oid)
        if what == "type":
            name = self._types[oid]["typname"]
            return bool(next((one for one in self.path if (one, name) in self._by_type), None) == space)
        return space in self.path

    def pg_get_userbyid(self, oid: int) -> str:
        """The name of a role."""
        if oid == ROLE:
            return self.asking.user
        return self._roles.get(oid) or f"unknown (OID={oid})"

    def has_privilege(self, kind: str, oid: int, asked: str) -> bool | None:
        """Whether the account may do something: read what there is, and nothing else."""
        known = {
            "schema": self._namespaces,
            "database": {DATABASE},
            "type": self._types,
            "function": self._procs,
        }.get(kind)
        if kind in ("table", "any_column", "column", "sequence"):
            known = self._classes
        if known is not None and oid not in known:
            return None
        wanted = {part.strip().upper().removesuffix(" WITH GRANT OPTION") for part in asked.split(",")}
        if known is self._classes and self._classes[oid][1] != PUBLIC:
            return True
        if kind in ("schema",) and oid != PUBLIC:
            return True
        allowed = {
            "database": {"CONNECT"}, "schema": {"USAGE"}, "function": {"EXECUTE"}, "type": {"USAGE"},
            "language": {"USAGE"}, "tablespace": {"CREATE"}, "foreign_data_wrapper": {"USAGE"}, "server": {"USAGE"},
        }.get(kind, {"SELECT"})  # fmt: skip
        return bool(wanted & allowed)

    def has_privilege_by_name(self, kind: str, name: str, asked: str) -> bool | None:
        """The same for an object by its name."""
        if kind == "database":
            if name != self.database:
                raise self.refuse(f'database "{name}" does not exist', "3D000")
            return self.has_privilege(kind, DATABASE, asked)
        if kind == "schema":
            if name not in self._by_namespace:
                raise self.refuse(f'schema "{name}" does not exist', "3F000")
            return self.has_privilege(kind, self._by_namespace[name], asked)
        if kind == "type":
            return self.has_privilege(kind, self.find_regtype(name), asked)
        if kind == "function":
            return self.has_privilege(kind, self.find_regprocedure(name), asked)
        if kind in ("table", "any_column", "column", "sequence"):
            return self.has_privilege(kind, self.find_regclass(name), asked)
        return self.has_privilege(kind, 0, asked)

    def pg_has_role(self, name: str, asked: str) -> bool:
        """Whether the account is a member of a role."""
        return name in (self.asking.user, "pg_database_owner")

    def acl_explode(self, items: list[str]) -> list[dict[str, Any]]:
        """Privileges, one by one."""
        letters = {
            "r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE", "D": "TRUNCATE", "x": "REFERENCES",
            "t": "TRIGGER", "X": "EXECUTE", "U": "USAGE", "C": "CREATE", "c": "CONNECT", "T": "TEMPORARY",
            "s": "SET", "A": "ALTER SYSTEM",
        }  # fmt: skip
        found = []
        for item in items:
            who, rest = item.rsplit("=", 1)
            rights, grantor = rest.split("/", 1)
            ids = [0 if not name else self.to_regrole(name) or 0 for name in (grantor, who)]
            for place, letter in enumerate(rights):
                if letter in letters:
                    grant = rights[place + 1 : place + 2] == "*"
                    found.append(
                        {"grantor": ids[0], "grantee": ids[1], "privilege_type": letters[letter], "is_grantable": grant}
                    )
        return found

    def acl_default(self, kind: str, owner: int) -> list[str]:
        """The privileges that a new object has."""
        name = self.quote_ident(self.pg_get_userbyid(owner))
        own = {"r": "arwdDxt", "s": "rwU", "d": "CTc", "f": "X", "l": "U", "n": "UC", "T": "U", "t": "C"}.get(kind, "")
        everybody = {"d": "Tc", "f": "X", "l": "U", "T": "U"}.get(kind)
        return ([f"={everybody}/{name}"] if everybody else []) + [f"{name}={own}/{name}"]

    # --- definitions, descriptions and settings ---------------------------------------------------------------

    def pg_get_constraintdef(self, oid: int, pretty: bool = False) -> str | None:
        """A constraint as SQL writes it."""
        found = self._constraints.get(oid)
        return found[1 if pretty else 0] if found else None

    def pg_get_indexdef(self, oid: int, number: int = 0, pretty: bool = False) -> str | None:
        """An index, or one of its columns, as SQL writes it."""
        found = self._indexes.get(oid)
        if found is None:
            return None
        whole, pretty_whole, columns = found
        if number == 0:
            return str(pretty_whole if pretty else whole)
        return str(columns[number - 1]) if 0 < number <= len(columns) else ""

    def pg_get_function_arguments(self, oid: int) -> str | None:
        """The arguments of a function."""
        return self._functions[oid][0] if oid in self._functions else None

    def pg_get_function_identity_arguments(self, oid: int) -> str | None:
        """The arguments of a function, without defaults."""
        return self._functions[oid][1] if oid in self._functions else None

    def pg_get_function_result(self, oid: int) -> str | None:
        """The type that a function gives."""
        return self._functions[oid][2] if oid in self._functions else None

    def pg_describe_object(self, kind: int, oid: int, part: int) -> str | None:
        """An object in words."""
        if kind == 1255 and oid in self._procs:
            return f"function {self.said_regprocedure(oid)}"
        if kind == 1259 and oid in self._classes:
            return f"table {self.said_regclass(oid)}"
        return "language plpgsql" if kind == 2612 else None

    def obj_description(self, oid: int, relation: str | None = None) -> str | None:
        """The comment on an object."""
        if relation is None:
            return next((said for (one, _, part), said in self._descriptions.items() if one == oid and part == 0), None)
        return self._descriptions.get((oid, self._by_class.get((CATALOG, relation), -1), 0))

    def shobj_description(self, oid: int, relation: str) -> str | None:
        """The comment on an object that all databases share."""
        return self._shared.get((oid, self._by_class.get((CATALOG, relation), -1)))

    def col_description(self, oid: int, number: int) -> str | None:
        """The comment on a column."""
        return self._descriptions.get((oid, 1259, number)) if number else None

    def setting(self, name: str) -> str | None:
        """The value of a setting."""
        given = self.asking.settings
        found = next((value for key, value in given.items() if key.lower() == name.lower()), None)
        if found is not None:
            return found
        row = self._settings.get(name.lower())
        return None if row is None or row["setting"] is None else str(row["setting"])

    def current_setting(self, name: str, missing_ok: bool = False) -> str | None:
        """The value of a setting as SHOW gives it."""
        found = self.setting(name)
        if found is None and name.lower() not in self._settings and not missing_ok:
            raise self.refuse(f'unrecognized configuration parameter "{name}"', "42704")
        return found

    def set_config(self, name: str, value: str, local: bool) -> str:
        """The value that was given. Settings are changed by SET, not here."""
        return value

    def current_schema(self) -> str | None:
        """The first schema of the path."""
        return next((self._namespaces[oid] for oid in self._named_path), None)

    def current_schemas(self, implicit: bool) -> list[str]:
        """The schemas of the path."""
        return [self._namespaces[oid] for oid in (self.path if implicit else self._named_path)]

    def current_user(self) -> str:
        """The account that asks."""
        return self.asking.user

    def current_database(self) -> str:
        """The database."""
        return self.database

    def pg_encoding_to_char(self, number: int) -> str:
        """The name of an encoding."""
        return _ENCODINGS.get(number, "")

    def pg_char_to_encoding(self, name: str) -> int:
        """The number of an encoding."""
        plain = name.upper().replace("-", "").replace("_", "")
        return next((number for number, one in _ENCODINGS.items() if one.replace("_", "") == plain), -1)

    def pg_relation_is_publishable(self, oid: int) -> bool:
        """Whether changes of a table could be published."""
        return oid in self._classes and self._classes[oid][2] in "rp" and self._classes[oid][1] == PUBLIC

    def is_updatable(self, oid: int) -> bool:
        """Whether PostgreSQL says that rows of a view of its own can be inserted."""
        return oid in self._updatable

    def pg_size_pretty(self, size: int) -> str:
        """A size in words."""
        for unit in ("bytes", "kB", "MB", "GB", "TB"):
            if abs(size) < 10240:
                return f"{size} {unit}"
            size = (size + 512) // 1024
        return f"{size} PB"

"""The settings of a session: those of PostgreSQL that clients know, and how questions are asked.

What a question may cost is said, in this order, in a comment of the statement, by SET discreet.epsilon, in the startup
options, or by the owner's default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, cast

from discreet.gateway.wire.format.values import SERVER_VERSION, Refusal

Mode = Literal["answer", "replay", "preview", "rehearse"]
MODES = ("answer", "replay", "preview", "rehearse")
ERRORS = ("columns", "notice", "off")
OWN = "discreet."
OF_QUESTIONS = {
    "discreet.epsilon": "What one question may cost.",
    "discreet.within": "How wrong columns may be, such as n=50, instead of discreet.epsilon.",
    "discreet.delta": "The part of δ that one question may use.",
    "discreet.confidence": "With which confidence errors hold.",
    "discreet.mode": "answer, replay (what was bought), preview (no rows, but the cost) or rehearse (made-up rows).",
    "discreet.errors": "Where errors are shown: columns, notice or off.",
    "discreet.part": "Only the rows in these parts count, such as 2024-01. Several are separated by commas.",
    "discreet.answer_after": "A longer time until an answer than that of the gateway, such as 10s.",
}
"""What may be set for the questions of a session."""
_HOW_MUCH = frozenset({"discreet.epsilon", "discreet.within"})
READ_ONLY = {
    "discreet.remaining": "What remains of the budget of this account.",
    "discreet.limit": "The budget of this account.",
    "discreet.about": "About how many questions remain.",
    "discreet.account": "The account of this session.",
    "discreet.role": "The role of this account.",
    "discreet.version": "The version of discreet.",
}
"""What a session may only look at."""
_USUAL = {
    "application_name": "",
    "bytea_output": "hex",
    "check_function_bodies": "on",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "cursor_tuple_fraction": "0.1",
    "datestyle": "ISO, MDY",
    "deadlock_timeout": "1s",
    "default_tablespace": "",
    "default_text_search_config": "pg_catalog.simple",
    "default_transaction_deferrable": "off",
    "default_transaction_isolation": "read committed",
    "enable_bitmapscan": "on",
    "enable_hashjoin": "on",
    "enable_indexscan": "on",
    "enable_mergejoin": "on",
    "enable_nestloop": "on",
    "enable_seqscan": "on",
    "extra_float_digits": "1",
    "force_parallel_mode": "off",
    "geqo": "on",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "intervalstyle": "postgres",
    "jit": "off",
    "lc_messages": "C.UTF-8",
    "lc_monetary": "C.UTF-8",
    "lc_numeric": "C.UTF-8",
    "lc_time": "C.UTF-8",
    "lock_timeout": "0",
    "log_min_duration_statement": "-1",
    "maintenance_work_mem": "64MB",
    "max_parallel_workers_per_gather": "0",
    "plan_cache_mode": "auto",
    "quote_all_identifiers": "off",
    "random_page_cost": "4",
    "row_security": "on",
    "search_path": '"$user", public',
    "seq_page_cost": "1",
    "statement_timeout": "0",
    "synchronize_seqscans": "on",
    "synchronous_commit": "on",
    "tcp_keepalives_idle": "0",
    "temp_tablespaces": "",
    "timezone": "UTC",
    "transaction_isolation": "read committed",
    "work_mem": "4MB",
    "xmlbinary": "base64",
    "xmloption": "content",
}
"""Settings of PostgreSQL that are remembered and shown. Most of them change nothing here."""
_FIXED = {
    "block_size": "8192",
    "data_checksums": "off",
    "default_transaction_read_only": "on",
    "escape_string_warning": "on",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "is_superuser": "off",
    "lc_collate": "C.UTF-8",
    "lc_ctype": "C.UTF-8",
    "max_connections": "1000",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "port": "5432",
    "server_encoding": "UTF8",
    "server_version": SERVER_VERSION,
    "server_version_num": "150000",
    "session_authorization": "",
    "ssl": "on",
    "standard_conforming_strings": "on",
    "transaction_deferrable": "off",
    "transaction_read_only": "on",
    "wal_level": "replica",
}
"""Settings that are always the same here."""
_SPELLED = {"datestyle": "DateStyle", "timezone": "TimeZone", "intervalstyle": "IntervalStyle"}
_REPORTED = (
    *("server_version", "server_encoding", "client_encoding", "application_name", "default_transaction_read_only"),
    *("in_hot_standby", "is_superuser", "session_authorization", "datestyle", "intervalstyle", "timezone"),
    *("integer_datetimes", "standard_conforming_strings"),
)
"""Settings that a client is told at the start, and when they change."""
_UTF8 = ("utf8", "unicode", "utf8mb4")
_ORDERS = {"mdy": "MDY", "us": "MDY", "noneuro": "MDY", "dmy": "DMY", "euro": "DMY", "european": "DMY", "ymd": "YMD"}
_LONGEST, _MOST_OWN = 4000, 200


@dataclass(frozen=True)
class Options:
    """How one question is asked."""

    arguments: dict[str, Any]
    """What the vault is told besides the question."""
    mode: Mode
    errors: Literal["columns", "notice", "off"]


class Settings:
    """The settings of one session."""

    def __init__(self, account: str, role: str, given: Mapping[str, str]) -> None:
        self.account, self.role = account, role
        self._fixed = {**_FIXED, "session_authorization": account}
        self._defaults = {**_USUAL, "discreet.mode": "replay" if role in ("service", "viewer") else "answer"}
        self._defaults |= {"discreet.errors": "columns"}
        self._values: dict[str, str] = {}
        self._local: dict[str, str] = {}
        for name, value in startup_settings(given).items():
            name = name.lower()
            if name in self._fixed and not name.startswith(OWN):
                continue
            self._defaults[name] = self._checked(name, value)

    # --- reading --------------------------------------------------------------------------------------------

    def get(self, name: str) -> str | None:
        """The value of a setting. None if nothing is set."""
        for place in (self._local, self._values, self._defaults, self._fixed):
            if name in place:
                return place[name]
        return None

    def shown(self, name: str) -> tuple[str, str]:
        """The name of a setting as it is spelled, and its value. Those that nobody set are empty."""
        name = name.lower()
        value = self.get(name)
        if value is None and name not in OF_QUESTIONS:
            raise _unknown(name)
        return _SPELLED.get(name, name), value or ""

    @property
    def all(self) -> dict[str, str]:
        """All settings by the names they are spelled with."""
        names = {*self._fixed, *self._defaults, *self._values, *self._local, *OF_QUESTIONS}
        return {_SPELLED.get(name, name): self.get(name) or "" for name in sorted(names)}

    @property
    def reported(self) -> dict[str, str]:
        """The settings that a client is told."""
        return {_SPELLED.get(name, name): self.get(name) or "" for name in _REPORTED}

    # --- changing -------------------------------------------------------------------------------------------

    def set(self, name: str, value: str | None, *, local: bool = False) -> None:
        """Set a value, or the default with None."""
        name = name.lower()
        place = self._local if local else self._values
        if not local:
            self._local.pop(name, None)
        if value is None:
            self._check_known(name)
            if local and name in self._defaults:
                place[name] = self._defaults[name]
            else:
                place.pop(name, None)
            return
        if sum(not one.startswith(OWN) and "." in one for one in (*self._values, *self._local)) > _MOST_OWN:
            raise Refusal("Too many settings of other programs are set.", state="53400", hint="Write RESET ALL.")
        place[name] = self._checked(name, value)
        for other in _HOW_MUCH - {name} if name in _HOW_MUCH else ():  # the last one counts
            place.pop(other, None)
            self._local.pop(other, None)

    def how_much(self) -> dict[str, str]:
        """What a question may cost, or how wrong it may be: what was set last and for the shortest time."""
        for place in (self._local, self._values, self._defaults):
            found = {name.removeprefix(OWN): place[name] for name in _HOW_MUCH if name in place}
            if found:
                return found
        return {}

    def reset_all(self) -> None:
        """Forget everything that was set after the start."""
        self._values.clear()
        self._local.clear()

    def end_transaction(self) -> None:
        """Forget what was set for one transaction."""
        self._local.clear()

    def saved(self) -> tuple[dict[str, str], dict[str, str]]:
        """What is set now, to come back to it."""
        return dict(self._values), dict(self._local)

    def restore(self, saved: tuple[dict[str, str], dict[str, str]]) -> None:
        """Go back to what was set before."""
        self._values, self._local = dict(saved[0]), dict(saved[1])

    def _check_known(self, name: str) -> None:
        if name.startswith(OWN):
            if name in READ_ONLY:
                raise _read_only(name)
            if name not in OF_QUESTIONS:
                raise _unknown(name)
        elif name in self._fixed:
            return
        elif name not in self._defaults and "." not in name:
            raise _unknown(name)

    def _checked(self, name: str, value: str) -> str:
        """A value as it is remembered, if it may be set."""
        self._check_known(name)
        if len(value) > _LONGEST:
            raise _invalid(name, value[:20] + "…")
        if name in self._fixed:
            return self._unchanged(name, value)
        check = _CHECKS.get(name)
        return value if check is None else check(name, value)

    def _unchanged(self, name: str, value: str) -> str:
        """Settings that cannot change may be set to what they are. That transactions may write is never true."""
        kept = self._fixed[name]
        on, off = ("on", "true", "1", "yes"), ("off", "false", "0", "no")
        same = value.lower() in on if kept == "on" else value.lower() in off if kept == "off" else value == kept
        if not same and not name.endswith("transaction_read_only"):
            raise Refusal(
                f'parameter "{name}" cannot be changed here',
                state="55P02",
                hint=f"It is {kept}.",
            )
        return kept


def startup_settings(given: Mapping[str, str]) -> dict[str, str]:
    """The settings that a client sends at the start: by name, and in `options` as -c name=value."""
    found = {name: value for name, value in given.items() if name.lower() not in ("user", "database", "options")}
    found = {name: value for name, value in found.items() if name != "replication" and not name.startswith("_pq_.")}
    words = [re.sub(r"\\(.)", r"\1", one) for one in re.findall(r"(?:\\.|[^\s\\])+", given.get("options", ""))]
    place = 0
    while place < len(words):
        word = words[place]
        if word == "-c" and place + 1 < len(words):
            place += 1
            word = words[place]
        elif word.startswith("-c"):
            word = word[2:]
        elif word.startswith("--"):
            word = word[2:].replace("-", "_")
        else:
            word = ""
        name, is_set, value = word.partition("=")
        if not name or not is_set:
            raise Refusal(
                "invalid command-line argument in options",
                state="22023",
                hint="Write options=-cdiscreet.epsilon=0.1, with a backslash before each space.",
            )
        found[name] = value
        place += 1
    return found


# --- checks -------------------------------------------------------------------------------------------------


def _number(name: str, value: str) -> str:
    try:
        found = Decimal(value)
    except InvalidOperation:
        found = Decimal("NaN")
    at_most = Decimal(1) if name.endswith(("delta", "confidence")) else Decimal(1000)
    if not found.is_finite() or not 0 <= found <= at_most or (found == 0 and not name.endswith("delta")):
        raise _invalid(name, value, f"Write a positive number, such as {name} = {_EXAMPLES[name]}.")
    if Decimal(repr(float(found))) != found:
        raise _invalid(name, value, "Write at most 15 digits: it is sent as a decimal.")
    return value.strip()


_EXAMPLES = {"discreet.epsilon": "0.1", "discreet.delta": "1e-7", "discreet.confidence": "0.95"}
_NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_PAIR = re.compile(rf"\s*({_NAME})\s*(?:=|:)\s*({_NUMBER})\s*")


def within_of(value: str) -> dict[str, float]:
    """How wrong columns may be, from a text such as n=50, c=2."""
    found: dict[str, float] = {}
    for part in value.split(","):
        pair = _PAIR.fullmatch(part)
        if pair is None:
            raise _invalid("discreet.within", value, "Write the columns of the answer, such as n=50, c=2.")
        name = pair[1][1:-1].replace('""', '"') if pair[1].startswith('"') else pair[1]
        found[name] = float(pair[2])
    return found


_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^",]*[^",\s]))\s*(?:,|$)')


def parts_of(value: str) -> list[str]:
    """The names of parts, from a text such as 2024-01, 2024-02. One with a comma in it is in double quotes."""
    found, place = [], 0
    while place < len(value):
        one = _PART.match(value, place)
        if one is None:
            raise _invalid("discreet.part", value, "Write the names of parts, such as 2024-01, 2024-02.")
        found.append(one[2] if one[1] is None else one[1].replace('""', '"'))
        place = one.end()
    return found


def _part(name: str, value: str) -> str:
    parts_of(value)
    return value


def _within(name: str, value: str) -> str:
    within_of(value)
    return value


def _one_of(*known: str) -> Any:
    def check(name: str, value: str) -> str:
        if value.lower() not in known:
            raise _invalid(name, value, f"Write one of {', '.join(known)}.")
        return value.lower()

    return check


def _encoding(name: str, value: str) -> str:
    if value.strip("'\"").lower().replace("-", "").replace("_", "") not in _UTF8:  # asyncpg quotes it
        raise _invalid(name, value, "All texts are in UTF8.")
    return "UTF8"


def _date_style(name: str, value: str) -> str:
    """Dates are written as 2024-01-31, whatever the order of ambiguous ones is."""
    words = [word.strip().lower() for word in value.split(",")]
    order = "MDY"
    for word in words:
        if word in _ORDERS:
            order = _ORDERS[word]
        elif word not in ("iso", "default"):
            raise _invalid(name, value, "Dates are written in the style ISO.")
    return f"ISO, {order}"


def _digits(name: str, value: str) -> str:
    if not re.fullmatch(r"-?\d{1,2}", value) or not -15 <= int(value) <= 3:
        raise _invalid(name, value, "Write a whole number from -15 to 3. Numbers are always written exactly.")
    return value


def _milliseconds(name: str, value: str) -> str:
    if seconds(value) is None:
        raise _invalid(name, value, "Write milliseconds, or a time such as 30s.")
    return value


def seconds(value: str) -> float | None:
    """A time in the words of PostgreSQL, in seconds. None if it is none."""
    found = re.fullmatch(r"\s*(\d{1,12}(?:\.\d+)?)\s*(us|ms|s|min|h|d)?\s*", value)
    units = {"us": 1e-6, "ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
    return float(found[1]) * units[found[2] or "ms"] if found else None


def _encodable(name: str, value: str) -> str:
    return "".join(mark if mark.isprintable() else "?" for mark in value)[:200]


_CHECKS: dict[str, Any] = {
    "discreet.epsilon": _number,
    "discreet.delta": _number,
    "discreet.confidence": _number,
    "discreet.within": _within,
    "discreet.part": _part,
    "discreet.mode": _one_of(*MODES),
    "discreet.errors": _one_of(*ERRORS),
    "client_encoding": _encoding,
    "datestyle": _date_style,
    "extra_float_digits": _digits,
    "statement_timeout": _milliseconds,
    "application_name": _encodable,
    "intervalstyle": _one_of("postgres", "postgres_verbose", "sql_standard", "iso_8601"),
    "bytea_output": _one_of("hex", "escape"),
}


def _invalid(name: str, value: str, hint: str | None = None) -> Refusal:
    return Refusal(f'invalid value for parameter "{name}": "{value}"', state="22023", hint=hint)


def _unknown(name: str) -> Refusal:
    known = ", ".join([*OF_QUESTIONS, *READ_ONLY]) if name.startswith(OWN) else None
    return Refusal(
        f'unrecognized configuration parameter "{name}"', state="42704", hint=f"Known: {known}." if known else None
    )


def _read_only(name: str) -> Refusal:
    return Refusal(f'parameter "{name}" cannot be changed', state="55P02", hint=f"Write SHOW {name}.")


# --- how a question is asked --------------------------------------------------------------------------------

_WORDS = "epsilon|delta|confidence|mode|errors|answer_after|part|key"
_WITHIN = rf"within\s*[=:]?\s+{_NAME}\s*=\s*{_NUMBER}(?:\s*,\s*(?!(?:{_WORDS}|within)\b){_NAME}\s*=\s*{_NUMBER})*"
_SAID = re.compile(
    rf"\s*(?:(?P<name>{_WORDS})\s*=\s*(?P<value>[^\s,;]+)|(?P<within>{_WITHIN}))\s*(?:[,;]\s*|$|(?<=\s))", re.IGNORECASE
)
_OURS = re.compile(
    rf"\s*(?:discreet\s*[:.]?\s*(?={_WORDS}|within)|(?=(?:eps|epsilon|delta|confidence|answer_after)\s*[=:]|part\s*="
    rf"|mode\s*=\s*(?:{'|'.join(MODES)})\b|errors\s*=\s*(?:{'|'.join(ERRORS)})\b|within\s*[=:]?\s))",
    re.IGNORECASE,
)
"""Other programs write comments, too. A mode or errors are for us if we know their value: to overlook them may cost."""
_BEGINS_WITHIN = re.compile(rf"\s*within\s*[=:]?\s+{_NAME}\s*=", re.IGNORECASE)


def said_in(comments: Iterable[str]) -> dict[str, str]:
    """What the comments of a statement say about how it is asked, such as epsilon=0.1 or within n=50."""
    found: dict[str, str] = {}
    for comment in comments:
        ours = _OURS.match(comment)
        rest = comment[ours.end() :] if ours else ""
        if not ours or (rest[:6].lower() == "within" and not ours[0].strip() and not _BEGINS_WITHIN.match(rest)):
            continue
        while rest.strip():
            said = _SAID.match(rest)
            if said is None:
                raise _unreadable(comment)
            name = (said["name"] or "within").lower()
            value = said["value"] or re.sub(r"^within\s*[=:]?\s+", "", said["within"], flags=re.IGNORECASE)
            if found.get(name, value) != value:
                raise _unreadable(comment, f"The comments of this statement give {name} two values.")
            if f"{OWN}{name}" in _CHECKS:
                value = _CHECKS[f"{OWN}{name}"](f"{OWN}{name}", value)
            found[name] = value
            rest = rest[said.end() :]
    return found


def _unreadable(comment: str, why: str = "A comment says how this question is asked, and cannot be read.") -> Refusal:
    return Refusal(why, state="22023", hint="Write /* epsilon=0.1 */ or /* within n=50 */, or another comment.")


def options_of(comments: Iterable[str], settings: Settings) -> Options:
    """How a question is asked: what its comments say, and else what the session says."""
    said = said_in(comments)
    known = {
        name: settings.get(f"{OWN}{name}") for name in ("delta", "confidence", "mode", "errors", "answer_after", "part")
    }
    if "epsilon" not in said and "within" not in said:
        known |= settings.how_much()
    found = {name: value for name, value in {**known, **said}.items() if value}
    if "epsilon" in found and "within" in found:
        raise Refusal(
            "Both epsilon and within are given.",
            state="22023",
            hint="Say what the answer may cost, or how wrong it may be. RESET discreet.epsilon forgets the first.",
        )
    arguments: dict[str, Any] = {}
    for name in ("epsilon", "delta", "confidence"):
        if name in found:
            arguments[name] = float(found[name])
    if "within" in found:
        arguments["within"] = within_of(found["within"])
    for name in ("answer_after", "key"):
        if name in found:
            arguments[name] = found[name]
    if "part" in found:
        arguments["parts"] = parts_of(found["part"])
    return Options(arguments, cast(Mode, found["mode"]), cast(Any, found["errors"]))

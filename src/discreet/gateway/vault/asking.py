"""A question as it arrives at the gateway: its arguments, checked, and the public names under which it is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidArgument
from discreet.gateway.books.agents import SAID, Agent, read_agent
from discreet.gateway.books.offices import check_arguments
from discreet.gateway.settings import LONGEST, Settings, seconds_in
from discreet.guarantees.accuracy import check_confidence

OPTIONS = ("epsilon", "delta", "within", "confidence", "weights", "bounds", "parts")
"""What a question is asked with, as in `Database.sql`, and the parts in which it is asked, as in `Database.part`."""
_MORE = ("key", "format", "answer_after", "bought_only", "why")
FORMATS = ("json", "csv", "arrow")
_LONGEST_TEXT, _LONGEST_KEY, _LONGEST_REASON = 100_000, 200, 2000
_MOST_PARTS, _LONGEST_PART = 1000, 1000


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question with its options. `length` is how long its slot is, in seconds. `agent` is set if it comes over MCP,
    and `why` is what the audit says about it.
    """

    sql: str
    options: dict[str, Any]
    key: str | None = None
    form: str = "json"
    length: float = 0.0
    bought_only: bool = False
    """Whether only an answer that was bought before is wanted."""
    agent: Agent | None = None
    why: str = ""

    @property
    def words(self) -> str:
        """One name for the same words with the same options."""
        return _digest([self.sql.strip(), self.options])

    @property
    def digest(self) -> str:
        """One name for the same words with the same options and key."""
        return _digest([self.sql.strip(), self.options, self.key])

    @property
    def late_name(self) -> str:
        """What is remembered of a late question: its key, if it has one, and all of it."""
        return self.digest if self.ledger_key is None else f"{self.ledger_key} {self.digest}"

    @property
    def ledger_key(self) -> str | None:
        """The key in the ledger. The charges of one question have keys that are made from it, which nobody who chooses
        a key can try: whether they are used would tell how far a late question came.
        """
        return None if self.key is None else _digest([self.key])


def _digest(content: list[Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_question(arguments: Mapping[str, Any], settings: Settings) -> Asked:
    """The question in the arguments of a request. Without ε and `within`, the owner's default is used."""
    check_arguments("ask", arguments, ("sql",), (*OPTIONS, *_MORE, *SAID))
    options = read_options(arguments, settings)
    key, form = arguments.get("key"), arguments.get("format", "json")
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= _LONGEST_KEY and key.isprintable()):
        raise InvalidArgument(
            f"The Idempotency-Key must be a text of 1 to {_LONGEST_KEY} characters, such as the id of a request.",
            code="ledger-key",
        )
    if form not in FORMATS:
        raise InvalidArgument(f"format must be one of {', '.join(FORMATS)}.", code="not-an-option")
    bought_only = arguments.get("bought_only", False)
    if not isinstance(bought_only, bool):
        raise InvalidArgument("bought_only must be true or false.", code="wrong-type")
    length = settings.answer_after
    if "answer_after" in arguments:
        length = seconds_in(arguments["answer_after"], "answer_after", LONGEST)
        if length < settings.answer_after:
            raise InvalidArgument(
                f"Answers leave after {settings.answer_after:g} s. Choose a longer time, or leave answer_after out.",
                code="gateway-duration",
            )
    why = arguments.get("why") or ""
    if not isinstance(why, str) or len(why) > _LONGEST_REASON:
        raise InvalidArgument(
            f"why must be a sentence of at most {_LONGEST_REASON:,} characters. It is in the audit log.",
            code="gateway-argument",
        )
    given = {"key": key, "form": form, "length": length, "bought_only": bought_only, "why": why}
    return Asked(sql=text_of(arguments), options=options, agent=read_agent(arguments), **given)


def read_options(arguments: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The options of a question, as they are given to `Database.sql`."""
    options = {name: arguments[name] for name in OPTIONS if arguments.get(name) is not None}
    if "confidence" in options:
        options["confidence"] = check_confidence(options["confidence"])
    for name in ("within", "weights", "bounds"):
        if not isinstance(options.get(name, {}), dict):
            raise InvalidArgument(f'{name} must be an object, such as {{"n": 50}}.', code="wrong-type")
    if "parts" in options:
        _check_parts(options["parts"])
    if "epsilon" not in options and "within" not in options:
        if settings.question_default is None:
            raise InvalidArgument(
                "Say what the answer may cost, with epsilon, or how wrong it may be, with within.",
                code="epsilon-or-within",
            )
        options["epsilon"] = float(settings.question_default)
    return options


def _check_parts(parts: Any) -> None:
    """Refuse what names no parts. Whether there are such parts is said by whoever has the declarations."""
    named = isinstance(parts, list) and 0 < len(parts) <= _MOST_PARTS
    if not named or not all(isinstance(one, str) and 0 < len(one) <= _LONGEST_PART for one in parts):
        raise InvalidArgument(
            f'parts must be a list of 1 to {_MOST_PARTS:,} names, such as ["2024-01"]. Leave it out to ask about '
            "everything.",
            code="part-name",
        )


def text_of(arguments: Mapping[str, Any]) -> str:
    """The text of the question."""
    sql = arguments.get("sql")
    if not isinstance(sql, str) or not sql.strip() or len(sql) > _LONGEST_TEXT:
        raise InvalidArgument(
            f'sql must be a question of at most {_LONGEST_TEXT:,} characters, such as "SELECT COUNT(*) FROM visits".',
            code="gateway-question",
        )
    return sql

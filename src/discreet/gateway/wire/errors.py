"""Errors of the vault for a client of PostgreSQL: a SQLSTATE, the message, what to write instead as a hint, and the
place in the client's own text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from discreet.errors import DiscreetError
from discreet.gateway.frames import Frame
from discreet.gateway.wire.format.values import Refusal

OF_CODES = {
    "sql-syntax": "42601",
    "sql-unknown-table": "42P01",
    "sql-unknown-column": "42703",
    "sql-ambiguous-column": "42702",
    "sql-same-name": "42701",
    "sql-position": "42P10",
    "sql-types": "42804",
    "sql-not-a-condition": "42804",
    "sql-not-a-number": "42804",
    "sql-arguments": "42883",
    "sql-large-number": "22003",
    "sql-date": "22007",
    "sql-too-complex": "54001",
    "sql-too-long": "54000",
    "gateway-plan-time": "54001",
    "gateway-question": "54000",
    "gateway-question-limit": "53400",
    "gateway-token-limit": "53400",
    "gateway-session-limit": "53400",
    "gateway-day-limit": "53400",
    "gateway-not-bought": "53400",
    "gateway-approval": "42501",
    "gateway-role": "42501",
    "gateway-scope": "42501",
    "gateway-suspended": "42501",
    "gateway-login": "28P01",
    "gateway-token-ended": "28P01",
    "gateway-busy": "53000",
    "gateway-too-fast": "53000",
    "gateway-late": "57014",
    "gateway-stopped": "57P03",
    "gateway-unavailable": "57P03",
    "gateway-failed": "XX000",
    "engine-statement-failed": "0A000",
}
"""The SQLSTATE of errors by their code."""
OF_KINDS = {
    "QueryError": "42601",
    "NotAllowed": "0A000",
    "InvalidArgument": "22023",
    "IncompatibleGuarantee": "0A000",
    "BudgetExhausted": "53400",
    "LedgerDamaged": "XX001",
    "LedgerUnavailable": "57P03",
    "ServiceUnavailable": "57P03",
    "EntropyUnavailable": "58000",
    "EngineFailed": "57014",
}
"""The SQLSTATE of other errors by their class."""
FAILED = "The gateway failed. What was charged stays charged. Ask the same again: it is free if it was answered."
_HOW_MUCH = (
    "Write /* epsilon=0.1 */ or /* within n=50 */ in the statement, or SET discreet.epsilon = 0.1 before it. "
    "EXPLAIN /* epsilon=0.1 */ SELECT … says for free what to expect for this ε."
)
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-ZΑ-Ω/\"'(])")
_UNDERLINED = re.compile(r"\n  .*\n  *\^+", re.DOTALL)


def refusal_in(frame: Frame, place: Callable[[int], int] | None = None) -> Refusal:
    """The error in a reply of the vault. `place` finds a character of the question in the client's text."""
    said = frame.header
    kind, code = str(said.get("kind", "")), str(said.get("code", ""))
    if kind not in OF_KINDS and code not in OF_CODES:
        return Refusal(FAILED, state="XX000")
    return _refusal(kind, code, str(said.get("message", "")), _position(said.get("position"), place))


def refusal_of(error: DiscreetError) -> Refusal:
    """An error that was raised here, such as that of a vault that does not respond."""
    kinds = [one.__name__ for one in type(error).__mro__]
    return _refusal(next((one for one in kinds if one in OF_KINDS), ""), error.code, str(error), None)


def _position(said: Any, place: Callable[[int], int] | None) -> int | None:
    return place(said) + 1 if type(said) is int and place is not None else None


def _refusal(kind: str, code: str, message: str, position: int | None) -> Refusal:
    if position is not None:  # the client draws the line by itself
        message = _UNDERLINED.sub("", message)
    first, hint = _in_two(message)
    if code == "epsilon-or-within":
        hint = _HOW_MUCH
    state = OF_CODES.get(code) or OF_KINDS.get(kind, "XX000")
    return Refusal(first, state=state, hint=hint, position=position)


def _in_two(message: str) -> tuple[str, str | None]:
    """What is wrong, and what to do about it: the first sentence, and the others."""
    if "\n" in message:
        return message, None
    parts = _SENTENCE.split(message, maxsplit=1)
    return parts[0], parts[1] if len(parts) > 1 else None

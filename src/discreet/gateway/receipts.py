"""The verb that says what a receipt was for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.errors import InvalidArgument
from discreet.gateway import questions
from discreet.gateway.offices import Office, time_text, verb
from discreet.gateway.tokens import Caller


@verb(["receipt"], scope="replay")
def question(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The question of the caller's own with this receipt."""
    found = questions.find_question(office.store, caller.account, arguments["receipt"])
    if found is None:
        raise InvalidArgument(
            "There is no answer with this receipt among yours. See /v1/history.", code="gateway-not-found"
        )
    return {
        "number": found.number,
        "receipt": found.receipt,
        "sql": found.sql,
        "options": {name: value for name, value in found.options.items() if name != "key"},
        "at": time_text(found.at),
    }

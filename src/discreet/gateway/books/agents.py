"""Who asks over MCP, as the desk says it: programs that ask in loops have a limit of their own, and a person confirms
what costs more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidArgument

SAID = ("via", "can_confirm", "confirmed")
"""The arguments of a request that came over MCP."""
_FRACTION = re.compile(r"[0-9]{1,60}(/[1-9][0-9]{0,60})?")


@dataclass(frozen=True, kw_only=True)
class Agent:
    """A program that asks over MCP: whether its client can show a question to a person, and the ε that a person
    confirmed.
    """

    can_confirm: bool = False
    confirmed: Fraction = Fraction(0)


def read_agent(arguments: Mapping[str, Any]) -> Agent | None:
    """What the desk says about a request that came over MCP. None if it came another way."""
    via, can, confirmed = arguments.get("via"), arguments.get("can_confirm", False), arguments.get("confirmed", "0")
    if via is None:
        return None
    if via != "mcp" or not isinstance(can, bool) or not (isinstance(confirmed, str) and _FRACTION.fullmatch(confirmed)):
        raise InvalidArgument(
            'via is "mcp", and only the desk says so. Leave via, can_confirm and confirmed out.',
            code="gateway-argument",
        )
    return Agent(can_confirm=can, confirmed=Fraction(confirmed))

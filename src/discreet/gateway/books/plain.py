"""Values of the gateway as plain ones, for JSON."""

from __future__ import annotations

import datetime

from discreet.exact.rational import readable
from discreet.guarantees.guarantee import Guarantee


def guarantee_numbers(found: Guarantee | None) -> dict[str, float] | None:
    """The numbers of a guarantee by their names."""
    if found is None:
        return None
    names = ("epsilon", "delta", "rho", "mu")
    return {name: float(getattr(found, name)) for name in names if hasattr(found, name)}


def left_numbers(left: Guarantee | None) -> dict[str, float] | None:
    """What is left, rounded down. It is the largest release of one kind: a δ that this kind does not use says nothing
    about the δ that is left.
    """
    found = guarantee_numbers(left)
    return found and {name: readable(value, up=False) for name, value in found.items() if value or name != "delta"}


def time_text(seconds: float) -> str:
    """A time to the second, in UTC."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="seconds")

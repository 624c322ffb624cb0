"""Values of the gateway as plain ones, for JSON."""

from __future__ import annotations

import datetime

from discreet.guarantees.guarantee import Guarantee


def guarantee_numbers(found: Guarantee | None) -> dict[str, float] | None:
    """The numbers of a guarantee by their names."""
    if found is None:
        return None
    names = ("epsilon", "delta", "rho", "mu")
    return {name: float(getattr(found, name)) for name in names if hasattr(found, name)}


def time_text(seconds: float) -> str:
    """A time to the second, in UTC."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="seconds")

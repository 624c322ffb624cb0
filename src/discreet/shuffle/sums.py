"""Sums and means of numbers: one protocol that bounds what a bad client can do, and one with less error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number
from discreet.guarantees.guarantee import Approx
from discreet.shuffle.reals import BitPlanes
from discreet.shuffle.split_and_mix import SplitAndMix


def real_sum(
    *,
    between: Sequence[Number],
    clients: int,
    epsilon: Number,
    delta: Number,
    honest: Number = 1,
    minimum: int | None = None,
    method: str = "digits",
    of: str = "sum",
    **detail: Any,
) -> Any:
    """The sum of one number from each client, clamped to two public bounds.

    By "digits" each binary digit is a randomized bit, of `planes` digits; a bad client moves the sum by up to half of
    the digits in ranges (`influence`). By "split and mix", of `steps` steps, the error is that of a trusted curator,
    and one bad client can move the sum to anything.
    """
    kinds: dict[str, Any] = {"digits": BitPlanes, "split and mix": SplitAndMix}
    if method not in kinds:
        raise InvalidArgument('method must be "digits" or "split and mix".', code="not-an-option")
    goal = Approx(epsilon=epsilon, delta=delta)
    given: dict[str, Any] = {"between": between, "clients": clients, "minimum": minimum, "honest": honest, "of": of}
    return kinds[method].for_guarantee(goal, **given, **detail)


def mean(**given: Any) -> Any:
    """The mean of one number from each client, with the arguments of `real_sum`. The number of reports is public."""
    return real_sum(**given, of="mean")

"""What forms do: they ask the vault for something, and show the page again, with what was done or why not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple, Protocol

from discreet.errors import DiscreetError, InvalidArgument
from discreet.gateway.console.visit import Refusal, Visit
from discreet.gateway.desk.replies import Refused, Reply

_MOST = 10**12


class Again(Protocol):
    """A page that can be shown once more, with a refusal."""

    def __call__(self, visit: Visit, refusal: Refusal | None = None) -> Awaitable[Reply]:
        """The page."""


def shown_on(page: Again) -> Callable[[Callable[[Visit], Awaitable[Reply]]], Callable[[Visit], Awaitable[Reply]]]:
    """Show on this page what refuses a form, so that it can be corrected there."""

    def decorate(handler: Callable[[Visit], Awaitable[Reply]]) -> Callable[[Visit], Awaitable[Reply]]:
        @wraps(handler)
        async def run(visit: Visit) -> Reply:
            try:
                return await handler(visit)
            except Refused:
                raise
            except (Refusal, DiscreetError) as error:
                return await page(visit, as_refusal(error))

        return run

    return decorate


def as_refusal(error: Refusal | DiscreetError) -> Refusal:
    """An error as pages show it."""
    if isinstance(error, Refusal):
        return error
    return Refusal({"kind": type(error).__name__, "code": error.code, "message": str(error)})


def status_of(refusal: Refusal | None) -> int:
    """The status of a page that shows this."""
    return 200 if refusal is None else refusal.status


def number_in(visit: Visit, name: str = "number") -> int:
    """The number in the path."""
    text = visit.arguments[name]
    if not (text.isascii() and text.isdecimal() and len(text) < 13 and 0 < int(text) < _MOST):
        raise InvalidArgument("There is nothing with this number.", code="gateway-not-found")
    return int(text)


def reason_in(visit: Visit) -> str | None:
    """The reason that was given, or None."""
    return visit.form["why"].strip() or None


class Leaf(NamedTuple):
    """A part of a long list: its lines, its number, and how many such parts there are."""

    lines: Sequence[Any]
    number: int
    of: int


def leaf_of(visit: Visit, lines: Sequence[Any], each: int) -> Leaf:
    """The part of a list that `?page=` asks for. The first one if there is no such part."""
    asked, of = visit.query["page"], max(1, -(-len(lines) // each))
    number = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 9 else 1
    number = number if 1 <= number <= of else 1
    return Leaf(lines[(number - 1) * each : number * each], number, of)


def shortened(text: Any, most: int = 200) -> str:
    """The beginning of a long text, for a list."""
    said = str(text)
    return said if len(said) <= most else f"{said[: most - 1]}…"

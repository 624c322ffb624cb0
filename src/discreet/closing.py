"""Errors that hold no data: they keep their message and line numbers, but no reference to a row.

An exception keeps every frame it passed, with its local variables, and the exception that was being handled when it was
raised, even after `from None`. A log or a pickle of it would keep rows. So public calls that take data are `closed`:
when an error leaves one, the frames below it lose their variables, and an error of ours loses its context.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from discreet.errors import DiscreetError

P = ParamSpec("P")
R = TypeVar("R")


def closed(call: Callable[P, R]) -> Callable[P, R]:
    """A decorator for a public call that takes data. Its errors hold no references to the data.

    Promise: of an exception that leaves, no frame from this call down has a local variable; where it is ours,
    `__cause__` is None and `__context__` at most what the caller was handling before. Lines and names of frames stay.
    """

    @wraps(call)
    def entered(*args: P.args, **kwargs: P.kwargs) -> R:
        before = sys.exception()
        try:
            return call(*args, **kwargs)
        except BaseException as error:
            del args, kwargs  # this frame is among those that leave
            drop_references(error, before)
            raise

    entered.__closed__ = True  # type: ignore[attr-defined]
    return entered


class Closed:
    """A class whose public methods are closed, including those of its subclasses."""

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and (name == "__call__" or name[0] != "_") and not is_closed(method):
                setattr(cls, name, closed(method))


def is_closed(call: Any) -> bool:
    """Whether errors that leave this call hold no data."""
    return getattr(call, "__closed__", False)


def drop_references(error: BaseException, before: BaseException | None) -> None:
    """Remove from an error every reference to rows. `before` is what the caller was handling, and is kept."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = {id(before)}
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        traceback.clear_frames(one.__traceback__)  # frames that still run are left alone
        waiting += [one.__cause__, one.__context__]
    if isinstance(error, DiscreetError) and error is not before:
        error.__cause__, error.__context__ = None, before

"""A page: its path, and what answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from discreet.gateway.console.visit import Visit
from discreet.gateway.desk.paths import Place
from discreet.gateway.desk.replies import Reply

Handler = Callable[[Visit], Awaitable[Reply]]


@dataclass(frozen=True, kw_only=True)
class Page(Place):
    """A page. Anybody may see one that is `open`; for all others one must be logged in. The vault decides what an
    account may see or do.
    """

    handler: Handler
    open: bool = False

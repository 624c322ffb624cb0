"""A program that asks over MCP, with the real client of the package `mcp`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitResult

T = TypeVar("T")


class Person:
    """Somebody who is shown questions, and always answers the same."""

    def __init__(self, action: str = "accept", **content: Any) -> None:
        self.read: list[str] = []
        self._answer = ElicitResult(action=action, content=content or None)

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.read.append(params.message)
        return self._answer


@asynccontextmanager
async def agent(url: str, token: str | None, person: Person | None = None, **given: Any) -> AsyncIterator[Client]:
    """A client that is connected."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=120) as http:
        place = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(place, elicitation_callback=person, **given) as client:
            yield client


def with_agent(
    url: str, token: str | None, work: Callable[[Client], Awaitable[T]], person: Person | None = None, **given: Any
) -> T:
    """What a piece of work with a client gives."""

    async def run() -> T:
        async with agent(url, token, person, **given) as client:
            return await work(client)

    return asyncio.run(run())


def call(url: str, token: str | None, tool: str, person: Person | None = None, **arguments: Any) -> CallToolResult:
    """The result of one tool."""
    return with_agent(url, token, lambda client: client.call_tool(tool, arguments), person)

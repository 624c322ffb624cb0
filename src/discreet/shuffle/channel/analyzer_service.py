"""The analyzer over HTTP.

POST /v1/batch     by the shuffler: its batch, with the task's hash as Idempotency-Key     202 · 200 · 400 · 409
GET  /v1/result    200 with the published counts; 404 before there is a batch, 202 while it is opened, 409 when
                   the ledger refuses it
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from discreet.errors import BudgetExhausted, DiscreetError
from discreet.shuffle.channel import service
from discreet.shuffle.channel.analyzer import Analyzer

LARGEST = 2**30
"""Bytes of a batch: what one row of a database holds."""
STATUS = {"received": 202, "analyzed": 200, "another batch": 409, "not accepted": 400}


def application(analyzer: Analyzer, operator: bytes) -> Any:
    """The analyzer's web application."""
    refused: list[tuple[str, str]] = []
    asked = asyncio.Event()

    async def analyze() -> None:
        while True:
            refused.clear()
            try:
                await asyncio.to_thread(analyzer.analyze)
            except DiscreetError as error:
                refused.append(("budget" if isinstance(error, BudgetExhausted) else "failed", str(error)))
            except Exception as error:  # only its class name is reported: its message might hold a value
                refused.append(("failed", f"The analyzer failed: {type(error).__name__}."))
            await asked.wait()
            asked.clear()

    @asynccontextmanager
    async def running(app: Any) -> AsyncIterator[None]:
        task = asyncio.create_task(analyze())
        yield
        task.cancel()
        analyzer.close()

    async def batch(request: Any) -> Any:
        named = request.headers.get("idempotency-key", "")
        if not service.is_operator(request, operator) or named != analyzer.task.hash.hex():
            return service.malformed_response()
        body = await service.body_of(request, LARGEST)
        said = "not accepted" if body is None else await asyncio.to_thread(analyzer.receive, body)
        if said == "received":
            asked.set()
        return service.answer(STATUS[said], {"batch": said})

    async def result(request: Any) -> Any:
        state, found = await asyncio.to_thread(analyzer.store.standing)
        if found is not None:
            return service.answer(200, found)
        if refused:
            kind, why = refused[0]
            reason = {"why": why} if service.is_operator(request, operator) else {}
            return service.answer(409, {"state": state, "refused": kind} | reason)
        return service.answer(404 if state == "waiting" else 202, {"state": state})

    routes = {("POST", "/v1/batch"): batch, ("GET", "/v1/result"): result}
    return service.application(running, routes, "discreet shuffle analyzer")

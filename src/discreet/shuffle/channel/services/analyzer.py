"""The analyzer over HTTP.

POST /v1/batch     by the shuffler: its batch, with the task's hash as Idempotency-Key     202 · 200 · 400 · 409
GET  /v1/result    200 with the published counts; 404 before there is a batch, 202 while it is opened, 409 when
                   the ledger refuses it
GET  /v1/task      the canonical bytes of the task, which are hashed
GET  /             the same as /v1/result, as a page for people
GET  /healthz      200 as long as it runs

Pages of every origin may read the result and the task.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from discreet.errors import BudgetExhausted, DiscreetError
from discreet.shuffle.channel.analyzer import Analyzer
from discreet.shuffle.channel.services.page import SECURITY, draw_page
from discreet.shuffle.channel.services.service import (
    HTML,
    JSON,
    NOT_ACCEPTED,
    OK,
    Answer,
    Application,
    Request,
    Route,
    constant,
    in_json,
)

LARGEST = 2**30
"""Bytes of a batch: what one row of a database holds."""
FOR_BROWSERS: tuple[Route, ...] = (("GET", "/v1/result"), ("GET", "/v1/task"))
STATUS = {"received": 202, "analyzed": 200, "another batch": 409, "not accepted": 400}


def application(analyzer: Analyzer, operator: bytes) -> Application:
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
    async def running() -> AsyncIterator[None]:
        task = asyncio.create_task(analyze())
        yield
        task.cancel()
        analyzer.close()

    async def batch(request: Request) -> Answer:
        if not request.is_from(operator) or request.header(b"idempotency-key") != analyzer.task.hash.hex():
            return NOT_ACCEPTED
        body = await request.body(LARGEST)
        said = "not accepted" if body is None else await asyncio.to_thread(analyzer.receive, body)
        if said == "received":
            asked.set()
        return in_json(STATUS[said], {"batch": said})

    async def result(request: Request) -> Answer:
        state, found = await asyncio.to_thread(analyzer.store.standing)
        if found is not None:
            return in_json(200, found)
        if refused:
            kind, why = refused[0]
            reason = {"why": why} if request.is_from(operator) else {}
            return in_json(409, {"state": state, "refused": kind} | reason)
        return in_json(404 if state == "waiting" else 202, {"state": state})

    async def page(request: Request) -> Answer:
        _, found = await asyncio.to_thread(analyzer.store.standing)
        return Answer(200, draw_page(analyzer.task, found), HTML, SECURITY)

    routes = {
        ("POST", "/v1/batch"): batch,
        ("GET", "/v1/result"): result,
        ("GET", "/v1/task"): constant(Answer(200, analyzer.task.canonical, JSON)),
        ("GET", "/"): page,
        ("GET", "/healthz"): constant(OK),
    }
    return Application(running=running, routes=routes, for_browsers=FOR_BROWSERS)

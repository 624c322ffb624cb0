"""The issuer over HTTP.

POST /v1/admit     a blinded message; the voucher in Authorization: Bearer …   200 with the signature · 400 · 409
GET  /v1/task      the canonical bytes of the task, which are hashed           200
GET  /healthz      200 as long as it runs
GET  /             what this address is for, for people

Pages of every origin may use all of them: the voucher is in the request and not in a cookie.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from discreet.shuffle.channel.issuer import Issuer
from discreet.shuffle.channel.services.service import (
    JSON,
    NOT_ACCEPTED,
    OK,
    TEXT,
    Answer,
    Application,
    Request,
    constant,
)

USED = Answer(409, b"used\n")
ABOUT = b"""This address admits people to a survey: it turns each voucher into one ticket, and cannot tell later whose
a ticket is. It sees no reports.

/v1/task   the survey: what is asked, and what is promised
"""


def application(issuer: Issuer) -> Application:
    """The issuer's web application."""
    length = len(issuer.task.issuer_key)

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        yield
        issuer.close()

    async def admit(request: Request) -> Answer:
        body = await request.body(length)
        if body is None:
            return NOT_ACCEPTED
        said = await asyncio.to_thread(issuer.admit, request.token.hex(), body)
        if said.outcome == "malformed":
            return NOT_ACCEPTED
        return Answer(200, said.signature) if said.outcome == "signed" else USED

    routes = {
        ("POST", "/v1/admit"): admit,
        ("GET", "/v1/task"): constant(Answer(200, issuer.task.canonical, JSON)),
        ("GET", "/healthz"): constant(OK),
        ("GET", "/"): constant(Answer(200, ABOUT, TEXT)),
    }
    return Application(running=running, routes=routes, for_browsers=tuple(routes))

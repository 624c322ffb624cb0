"""The issuer over HTTP.

POST /v1/admit     a blinded message; the voucher in Authorization: Bearer …   200 with the signature · 400 · 409

Pages of every origin may use it: the voucher is in the request and not in a cookie.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from discreet.shuffle.channel import service
from discreet.shuffle.channel.issuer import Issuer

ANY_ORIGIN = {"access-control-allow-origin": "*"}
PREFLIGHT = ANY_ORIGIN | {
    "access-control-allow-methods": "POST",
    "access-control-allow-headers": "authorization, content-type",
    "access-control-max-age": "86400",
}


def application(issuer: Issuer) -> Any:
    """The issuer's web application."""
    length = len(issuer.task.issuer_key)

    @asynccontextmanager
    async def running(app: Any) -> AsyncIterator[None]:
        yield
        issuer.close()

    async def admit(request: Any) -> Any:
        body = await service.body_of(request, length)
        kind, _, voucher = request.headers.get("authorization", "").partition(" ")
        if body is None or kind != "Bearer":
            return _shared(service.malformed_response(), ANY_ORIGIN)
        said = await asyncio.to_thread(issuer.admit, voucher, body)
        if said.outcome == "malformed":
            return _shared(service.malformed_response(), ANY_ORIGIN)
        answer = service.answer(200, said.signature) if said.signature else service.answer(409, b"used\n")
        return _shared(answer, ANY_ORIGIN)

    async def preflight(request: Any) -> Any:
        return _shared(service.answer(204, b""), PREFLIGHT)

    routes = {("POST", "/v1/admit"): admit, ("OPTIONS", "/v1/admit"): preflight}
    return service.application(running, routes, "discreet shuffle issuer")


def _shared(response: Any, headers: dict[str, str]) -> Any:
    """The response with headers that let a page read it."""
    response.headers.update(headers)
    return response

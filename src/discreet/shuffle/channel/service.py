"""What both services share: a server that does not log requests, and one response for everything malformed."""

from __future__ import annotations

import hmac
import json
import socket
from collections.abc import Callable, Mapping
from typing import Any

from discreet.errors import InvalidArgument
from discreet.extras import need

NOT_ACCEPTED = b"not accepted\n"


def application(lifespan: Any, routes: Mapping[tuple[str, str], Callable[[Any], Any]], caller: str) -> Any:
    """A FastAPI application with no documentation pages: (method, path) → handler."""
    fastapi = need("fastapi", "shuffle", caller)
    app = fastapi.FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    for (method, path), handler in routes.items():
        app.add_route(path, handler, methods=[method])
    return app


def answer(status: int, content: Any = None) -> Any:
    """An answer of bytes, or of JSON."""
    responses = need("fastapi.responses", "shuffle", "A service of the shuffler")
    if isinstance(content, bytes):
        return responses.Response(content, status, media_type="application/octet-stream")
    return responses.Response(json.dumps(content).encode(), status, media_type="application/json")


def malformed_response() -> Any:
    """The single response to a malformed request."""
    return answer(400, NOT_ACCEPTED)


def token_in(request: Any) -> bytes:
    """The bearer token. Empty if there is none that can be read."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    try:
        return bytes.fromhex(text) if kind == "Bearer" else b""
    except ValueError:
        return b""


def is_operator(request: Any, operator: bytes) -> bool:
    """Whether the request comes from the other service or from the operator who closes the task."""
    return bool(operator) and hmac.compare_digest(token_in(request), operator)


async def body_of(request: Any, most: int) -> bytes | None:
    """The body. None if it is longer than `most`, and then it is not read to the end, or if the client disconnects."""
    gone = need("starlette.requests", "shuffle", "A service of the shuffler").ClientDisconnect
    parts, length = [], 0
    try:
        async for part in request.stream():
            length += len(part)
            if length > most:
                return None
            parts.append(part)
    except gone:
        return None
    return b"".join(parts)


def serve(app: Any, host: str, port: int, name: str) -> None:
    """Serve until stopped. Neither addresses nor times are written anywhere."""
    uvicorn = need("uvicorn", "shuffle", f"discreet shuffle {name}")
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        raise InvalidArgument(
            f"Port {port} of {host} cannot be used: {error.strerror}. Choose another --port.", code="port-unavailable"
        ) from None
    print(f"{name}: http://{host}:{listening.getsockname()[1]}", flush=True)
    config = uvicorn.Config(
        app, access_log=False, log_level="error", server_header=False, date_header=False, proxy_headers=False
    )
    uvicorn.Server(config).run(sockets=[listening])

"""What both services share: a small web application, one response for everything malformed, and a server without logs.

A route that browsers of every origin may use says so in each of its answers, errors included, and answers their
preflight request with one constant. All other routes say nothing of the kind, so no page can read what they answer.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple

from discreet.errors import InvalidArgument, ServiceUnavailable
from discreet.extras import need
from discreet.listening import is_loopback, load_certificate

BYTES, JSON, TEXT, HTML = (
    "application/octet-stream",
    "application/json",
    "text/plain; charset=utf-8",
    "text/html; charset=utf-8",
)
FIXED = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""In every answer."""
ANY_ORIGIN = ((b"access-control-allow-origin", b"*"),)
PREFLIGHT = (
    *ANY_ORIGIN,
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"86400"),
)
Route = tuple[str, str]
"""A method and a path."""


class Answer(NamedTuple):
    """What is sent back."""

    status: int
    body: bytes
    kind: str = BYTES
    headers: tuple[tuple[bytes, bytes], ...] = ()


NOT_ACCEPTED = Answer(400, b"not accepted\n")
"""The single response to a malformed request."""
NOT_FOUND, OTHER_METHOD, FAILED = (
    Answer(404, b"not found\n", TEXT),
    Answer(405, b"method not allowed\n", TEXT),
    Answer(500, b"failed\n", TEXT),
)
NOTHING = Answer(204, b"", TEXT, PREFLIGHT)
OK = Answer(200, b"ok\n", TEXT)


class Request:
    """One request: its headers, and its body when it is asked for."""

    def __init__(self, scope: Mapping[str, Any], receive: Callable[[], Awaitable[Any]]) -> None:
        self._headers, self._receive = scope["headers"], receive

    def header(self, name: bytes) -> str:
        """The first header of this name, which is in lower case. Empty if there is none."""
        return next((value.decode("latin-1") for key, value in self._headers if key == name), "")

    @property
    def token(self) -> bytes:
        """The bearer token. Empty if there is none that can be read."""
        kind, _, text = self.header(b"authorization").partition(" ")
        try:
            return bytes.fromhex(text) if kind == "Bearer" else b""
        except ValueError:
            return b""

    def is_from(self, operator: bytes) -> bool:
        """Whether it comes from the other service or from the operator who closes the task."""
        return bool(operator) and hmac.compare_digest(self.token, operator)

    async def body(self, most: int) -> bytes | None:
        """The body. None if it is longer than `most`, and then it is not read to the end, or if the client is gone."""
        parts, length = [], 0
        while True:
            event = await self._receive()
            if event["type"] != "http.request":
                return None
            parts.append(event.get("body", b""))
            length += len(parts[-1])
            if length > most:
                return None
            if not event.get("more_body", False):
                return b"".join(parts)


Handler = Callable[[Request], Awaitable[Answer]]


@dataclass(frozen=True, kw_only=True)
class Application:
    """A web application: what answers each method and path, and what runs beside it (ASGI)."""

    running: Callable[[], AbstractAsyncContextManager[None]]
    routes: Mapping[Route, Handler]
    for_browsers: Collection[Route]
    """The routes that pages of every origin may use."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, or start and stop with the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        # the path as it was sent: a proxy that guards /v1/token would let /v1/%74oken pass
        method, path = scope["method"], scope.get("raw_path", scope["path"].encode()).decode("latin-1")
        route = ("GET" if method == "HEAD" else method, path)
        try:
            given = await self._answer(route, Request(scope, receive))
        except Exception:
            await _send(send, self._shared(route, FAILED), head=method == "HEAD")
            raise
        await _send(send, self._shared(route, given), head=method == "HEAD")

    async def _answer(self, route: Route, request: Request) -> Answer:
        if route in self.routes:
            return await self.routes[route](request)
        method, path = route
        if method == "OPTIONS" and any(shared == path for _, shared in self.for_browsers):
            return NOTHING
        return OTHER_METHOD if any(known == path for _, known in self.routes) else NOT_FOUND

    def _shared(self, route: Route, given: Answer) -> Answer:
        return given._replace(headers=given.headers + ANY_ORIGIN) if route in self.for_browsers else given

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


async def _send(send: Any, given: Answer, *, head: bool) -> None:
    length = () if given.status == 204 else ((b"content-length", str(len(given.body)).encode()),)
    headers = [(b"content-type", given.kind.encode()), *length, *FIXED, *given.headers]
    await send({"type": "http.response.start", "status": given.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else given.body})


def in_json(status: int, content: Any) -> Answer:
    """An answer in JSON."""
    return Answer(status, json.dumps(content).encode(), JSON)


def constant(given: Answer) -> Handler:
    """What gives the same answer to everybody."""

    async def answer(request: Request) -> Answer:
        return given

    return answer


# --- serving --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where a service listens, with which certificate, or behind what ends TLS in front of it."""

    host: str = "127.0.0.1"
    port: int = 0
    certificate: str | None = None
    certificate_key: str | None = None
    behind_proxy: bool = False

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.certificate_key is None):
            raise InvalidArgument(
                "TLS needs both --certificate and --certificate-key. Give both, or neither on this machine alone.",
                code="shuffle-tls",
            )
        if self.certificate is None and not self.behind_proxy and not is_loopback(self.host):
            raise InvalidArgument(
                f"{self.host} can be reached from other machines, and tokens would travel there in the clear. Give "
                "--certificate and --certificate-key, or --behind-proxy if a reverse proxy in front of it has TLS.",
                code="shuffle-tls",
            )
        # an empty name, as of a variable that is not set, is no file either: TLS that was asked for never falls away
        if self.certificate is not None and load_certificate(self.certificate, str(self.certificate_key)) is None:
            raise InvalidArgument(
                "The certificate and its key cannot be read, or do not belong together. Name two PEM files that this "
                "user can read.",
                code="shuffle-certificate",
            )


def serve(app: Any, at: Listening, name: str) -> None:
    """Serve until stopped. The address is printed once requests are answered. No address and no time is written."""
    uvicorn = need("uvicorn", "shuffle", f"discreet shuffle {name}")
    try:
        family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
        listening = socket.create_server((at.host, at.port), family=family, backlog=2048)
    except OSError as error:
        raise InvalidArgument(
            f"Port {at.port} of {at.host} cannot be used: {error.strerror}. Choose another --port.",
            code="port-unavailable",
        ) from None
    host = f"[{at.host}]" if ":" in at.host else at.host
    address = f"{'http' if at.certificate is None else 'https'}://{host}:{listening.getsockname()[1]}"

    class Server(uvicorn.Server):  # type: ignore[misc, name-defined]
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                print(f"{name}: {address}", flush=True)

    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="error",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        ssl_certfile=at.certificate,
        ssl_keyfile=at.certificate_key,
    )
    server = Server(config)
    with listening, contextlib.suppress(SystemExit):  # of uvicorn, if the application does not start
        server.run(sockets=[listening])
    if not server.started:
        raise ServiceUnavailable(f"The {name} could not start. Look at what it printed.")

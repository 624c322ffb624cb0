"""The desk over HTTP: it checks the form of a request, passes it on to the vault, and sends back what the vault says.

It has no data, no ledger and no database. It reads a question only as JSON: who may ask it, what it costs and whether
it is allowed is decided by the vault.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl

from discreet.errors import DiscreetError, InvalidArgument
from discreet.gateway.console.cookies import session_of
from discreet.gateway.desk.openapi import description
from discreet.gateway.desk.paths import Paths
from discreet.gateway.desk.rates import Gate, Rates
from discreet.gateway.desk.replies import (
    FAILED,
    SAFE,
    TLS_ONLY,
    Refused,
    Reply,
    check_method,
    refusal_of,
    reply_of,
    too_fast,
)
from discreet.gateway.desk.routes import METRICS, ROUTES, Route
from discreet.gateway.formats import TYPES
from discreet.gateway.frames import BadFrame, Frame, json_bytes, parsed
from discreet.gateway.settings import OidcSettings

if TYPE_CHECKING:
    from discreet.gateway.console.site import Console
    from discreet.gateway.desk.login import BrowserLogin
    from discreet.gateway.desk.mcp import Agents

LONGEST_BODY = 2**20
"""Bytes of a request's body, at most."""
LONGEST_QUERY = 2000
DEEPEST = 32
"""Levels of lists and objects in a body, at most. Python 3.14 would read tens of thousands."""
PATIENCE = 10.0
"""A body must have arrived after so many seconds."""
_TOKEN = re.compile(rb"bearer +([A-Za-z0-9._~+/=-]{1,8192})", re.IGNORECASE)
_KEY = re.compile(rb"[\x20-\x7e]{1,200}")
_FORMS = {kind.partition(";")[0]: form for form, kind in TYPES.items()}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Vault(Protocol):
    """What the desk needs of the vault: `frames.Link` is one."""

    async def call(
        self, verb: str, token: str | None = None, arguments: dict[str, Any] | bytes | None = None, *, address: str = ""
    ) -> Frame:
        """Ask the vault."""


class Request:
    """A request as the server hands it over."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope, self.receive = scope, receive
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: bytes = scope.get("query_string", b"")
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.secure = scope.get("scheme") == "https"
        client = scope.get("client")
        self.address: str = client[0] if client else ""
        found = _TOKEN.fullmatch(self.headers.get(b"authorization", b""))
        self.token: str | None = found[1].decode("ascii") if found else None
        self.is_page = False

    async def body(self) -> bytes:
        """The body, if it is short enough and arrives in time."""
        if int(self.headers.get(b"content-length", b"0")) > LONGEST_BODY:
            raise _too_large()
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._whole_body()
        except TimeoutError:
            raise Refused("The body did not arrive in time. Send it at once.", code="gateway-too-slow") from None

    async def _whole_body(self) -> bytes:
        body = b""
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ConnectionError
            body += bytes(message.get("body", b""))
            if len(body) > LONGEST_BODY:
                raise _too_large()
            if not message.get("more_body", False):
                return body


Handler = Callable[[Request], Awaitable[Reply]]


def make_app(
    vault: Vault,
    *,
    rates: Rates | None = None,
    oidc: OidcSettings | None = None,
    gate: Gate | None = None,
    agents: Agents | None = None,
    console: Console | None = None,
) -> Desk:
    """The web application for analysts: /v1, /healthz and /openapi.json, /mcp for agents, and the pages for people."""
    return Desk(vault, ROUTES, gate=gate or Gate(rates or Rates()), oidc=oidc, agents=agents, console=console)


def make_metrics_app(vault: Vault, *, rates: Rates | None = None) -> Desk:
    """The web application for the listener of metrics."""
    return Desk(vault, METRICS, gate=Gate(rates or Rates()))


class Desk:
    """An ASGI application. One request is one call of the vault, with few steps between them: replays are many."""

    def __init__(
        self,
        vault: Vault,
        routes: tuple[Route, ...],
        *,
        gate: Gate,
        oidc: OidcSettings | None = None,
        agents: Agents | None = None,
        console: Console | None = None,
    ) -> None:
        self._vault, self._gate, self._paths, self._console = vault, gate, Paths(routes), console
        described = Reply(200, b"application/json", description(routes, browser_login=oidc is not None))

        async def describe(_: Request) -> Reply:
            return described

        self._own: dict[str, Handler] = {"/openapi.json": describe}
        self._posted: dict[str, Handler] = {}
        if agents is not None:
            self._posted["/mcp"] = lambda request: agents.answer(request, self._call)
        if oidc is not None:
            from discreet.gateway.desk.login import BrowserLogin

            login = BrowserLogin(oidc)
            self._own["/v1/oidc/start"] = login.start
            self._own["/v1/oidc/return"] = lambda request: self._finish_login(login, request)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            reply = self._file(request) or await self._enter(request)
        except DiscreetError as error:
            reply = self._refuse(request, error)
        except ConnectionError:
            return  # the client has gone
        except Exception:  # whatever it is, it might hold a value: nothing of it is shown or written
            reply = FAILED
        headers = [
            (b"content-type", reply.type),
            (b"content-length", str(len(reply.body)).encode()),
            *(safe for safe in SAFE if all(safe[0] != name for name, _ in reply.headers)),
            *reply.headers,
        ]
        if request.secure:
            headers.append(TLS_ONLY)
        if reply.status in (408, 413, 429):  # the body was not read
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else reply.body})

    def _refuse(self, request: Request, error: DiscreetError) -> Reply:
        """An error: for a person at a browser as a page, for programs as problem+json."""
        if self._console is not None and request.headers.get(b"accept", b"").startswith(b"text/html"):
            return self._console.refuse(request, error)
        return refusal_of(error)

    def _file(self, request: Request) -> Reply | None:
        """A file of the console, which is in memory and the same for everybody."""
        if self._console is None or request.method not in ("GET", "HEAD"):
            return None
        return self._console.file(request.path)

    async def _enter(self, request: Request) -> Reply:
        is_page = self._console is not None and self._console.has(request.path)
        if is_page:
            request.is_page, request.token = True, session_of(request)  # and no bearer token
        wait, key = self._gate.enter(request.address, request.token)
        if wait:
            raise too_fast(wait)
        try:
            if is_page:
                assert self._console is not None
                return await self._console.answer(request, self._call)
            for method, handlers in (("GET", self._own), ("POST", self._posted)):
                own = handlers.get(request.path)
                if own is not None:
                    check_method(request.method, (method,))
                    return await own(request)
            return await self._pass_on(request)
        finally:
            self._gate.leave(key)

    async def _pass_on(self, request: Request) -> Reply:
        found = self._paths.find(request.path)
        if found is None:
            raise Refused("There is nothing here. /openapi.json lists what there is.", code="gateway-unknown-path")
        check_method(request.method, found.places)
        route = found.places[request.method]
        arguments = await _arguments(route, request)
        for name, value in found.arguments.items():
            if name in arguments:
                raise InvalidArgument(f"{name} is in the path. Leave it out of the body.", code="gateway-arguments")
            arguments[name] = int(value) if name == "number" and _is_whole(value) else value
        return await self._ask(route.verb, request, arguments, needs_token=route.token)

    async def _ask(self, verb: str, request: Request, arguments: dict[str, Any], *, needs_token: bool = True) -> Reply:
        return reply_of(await self._call(verb, request, arguments, needs_token=needs_token))

    async def _call(self, verb: str, request: Request, arguments: dict[str, Any], *, needs_token: bool = True) -> Frame:
        """What the vault says. Tokens that it accepts or refuses are noted at the gate."""
        token = request.token if needs_token else None
        try:
            text = json_bytes(arguments)
        except ValueError:  # 1e999, or half of a character
            raise _not_json() from None
        frame = await self._vault.call(verb, token, text, address=request.address)
        if frame.header.get("ok") is True:
            if token is not None:
                self._gate.accept(token)
        elif frame.header.get("code") == "gateway-login":
            if token is not None and request.is_page:  # a session that ended: no login was tried
                self._gate.forget(token)
            else:
                self._gate.fail(request.address, token)
        return frame

    async def _finish_login(self, login: BrowserLogin, request: Request) -> Reply:
        """The session that a provider vouches for: for a browser as a cookie, for programs as a token."""
        frame = await self._call("login", request, await login.finish(request), needs_token=False)
        reply = reply_of(frame)
        if self._console is not None and b"text/html" in request.headers.get(b"accept", b""):
            reply = self._console.enter(request, frame)
        return reply._replace(headers=(*reply.headers, login.forget(request)))


# --- the form of a request ----------------------------------------------------------------------------------


async def _arguments(route: Route, request: Request) -> dict[str, Any]:
    """The arguments of a verb: from the body of a POST, from the query string otherwise, and from headers."""
    arguments = _object(await request.body(), request.headers) if route.method == "POST" else _query(request.query)
    if route.formats:
        form = _form(request.headers.get(b"accept"))
        if form is not None:
            arguments["format"] = form
    if route.verb == "ask" and b"idempotency-key" in request.headers:
        key = request.headers[b"idempotency-key"]
        if not _KEY.fullmatch(key) or arguments.get("key", key.decode()) != key.decode():
            raise InvalidArgument(
                "Idempotency-Key must be a text of 1 to 200 ASCII characters, such as the id of the request, and no "
                "other key may be in the body.",
                code="gateway-key",
            )
        arguments["key"] = key.decode()
    return arguments


def _object(body: bytes, headers: Mapping[bytes, bytes]) -> dict[str, Any]:
    if not body:
        return {}
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise _not_json()
    try:
        found = parsed(body)
    except BadFrame:
        raise _not_json() from None
    if not isinstance(found, dict) or _is_deeper(found, DEEPEST):
        raise _not_json()
    return found


def _query(text: bytes) -> dict[str, Any]:
    try:
        if len(text) > LONGEST_QUERY:
            raise ValueError
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, strict_parsing=bool(text), errors="strict")
        found = {name: int(value) if _is_whole(value) else value for name, value in pairs}
    except ValueError:
        found, pairs = {}, [("", "")]
    if len(found) != len(pairs):
        raise InvalidArgument(
            "The query string cannot be read. Write each name once, such as ?first=1&last=20.", code="gateway-arguments"
        )
    return found


def _is_deeper(found: Any, levels: int) -> bool:
    """Whether lists and objects are nested in more levels."""
    level = [found]
    for _ in range(levels):
        level = [child for one in level if isinstance(one, dict | list) for child in _inside(one)]
    return any(isinstance(one, dict | list) for one in level)


def _inside(one: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return one.values() if isinstance(one, dict) else one


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18


def _form(accept: bytes | None) -> str | None:
    """The form that a client prefers. None if it takes anything."""
    if accept is None or accept == b"*/*":
        return None
    best, weight = "", 0.0
    for part in accept.decode("latin-1").split(","):
        kind, *options = (word.strip().lower() for word in part.split(";"))
        share = next((_share(word[2:]) for word in options if word.startswith("q=")), 1.0)
        form = "json" if kind in ("*/*", "application/*") else "csv" if kind == "text/*" else _FORMS.get(kind, "")
        if form and share > weight:
            best, weight = form, share
    if not best:
        raise Refused(f"Answers are available as {', '.join(_FORMS)}. Accept one of these.", code="gateway-format")
    return best


def _share(text: str) -> float:
    return float(text) if re.fullmatch(r"[01](\.\d{0,3})?", text) else 0.0


def _too_large() -> Refused:
    return Refused("The body is larger than 1 MiB. Ask a shorter question.", code="gateway-body-too-large")


def _not_json() -> InvalidArgument:
    return InvalidArgument(
        'The body must be a JSON object, such as {"sql": "SELECT COUNT(*) FROM visits"}, with the content type '
        "application/json.",
        code="gateway-body-not-json",
    )

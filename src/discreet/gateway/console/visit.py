"""One request of a browser: what it sent, what the vault says to it, and the page that goes back."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlencode

from discreet.errors import InvalidArgument
from discreet.gateway.console.cookies import check_form, check_from_here, form_secret
from discreet.gateway.desk.replies import OF_CODES, OF_KINDS, Reply
from discreet.gateway.frames import Frame

if TYPE_CHECKING:
    from discreet.gateway.console.site import Console
    from discreet.gateway.desk.http import Request

HTML = b"text/html; charset=utf-8"
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    b"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; "
    b"trusted-types fragments"
)
"""What a page may load: nothing but our own files, and no script or style inside the page."""
PAGE_HEADERS = (
    (b"content-security-policy", POLICY),
    (b"referrer-policy", b"same-origin"),  # otherwise browsers do not say where a form comes from
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_MOST_FIELDS = 1000

Call = Callable[..., Awaitable[Frame]]


class Refusal(Exception):
    """An error of the vault: its class, its code, its message, and the character of the question it points at."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self.kind, self.code = str(header.get("kind", "")), str(header.get("code", "gateway-failed"))
        self.message = str(header.get("message", "The gateway failed. Nothing was handed out."))
        place, more = header.get("position"), header.get("more")
        self.position: int | None = place if type(place) is int else None
        self.more: Mapping[str, Any] = more if isinstance(more, dict) else {}
        super().__init__(self.message)

    @property
    def status(self) -> int:
        """The status over HTTP."""
        return OF_CODES.get(self.code) or OF_KINDS.get(self.kind, 500)


class Fields:
    """Names and values as a form or a query string has them. A name that is missing is an empty text."""

    def __init__(self, text: bytes) -> None:
        try:
            self._values = parse_qs(
                text.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
            )
        except ValueError:
            raise InvalidArgument("This form cannot be read. Send it from its page.", code="gateway-form") from None

    def __getitem__(self, name: str) -> str:
        return self._values.get(name, [""])[-1].replace("\r\n", "\n")

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def all(self, name: str) -> list[str]:
        """All values of a name."""
        return self._values.get(name, [])

    def number(self, name: str) -> float | None:
        """The number with this name. None if the field is empty."""
        text = self[name].strip().replace(",", ".")
        if not text:
            return None
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            raise InvalidArgument(f"{name} must be a number, such as 0.5.", code="gateway-form")
        return found


class Visit:
    """A request, and who sent it. `arguments` are those in the path, decoded."""

    def __init__(self, console: Console, request: Request, call: Call, arguments: Mapping[str, str]) -> None:
        self.console, self.request, self.arguments = console, request, arguments
        self._call = call
        self.query = Fields(request.query)
        self.form = Fields(b"")
        self.me: Mapping[str, Any] = {}
        """Who is logged in, as the vault's verb `me` says it. Empty if nobody is."""

    @property
    def role(self) -> str:
        """The role of the account, or an empty text."""
        return str(self.me.get("role", ""))

    @property
    def path(self) -> str:
        """The path and the query string that were asked for."""
        query = self.request.query.decode("latin-1")
        return quote(self.request.path, safe="/%:@") + (f"?{query}" if query else "")

    async def read_form(self) -> None:
        """Read what was posted. Only a form of this session, sent from one of our pages, is read."""
        check_from_here(self.request)  # before the body
        kind = self.request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/x-www-form-urlencoded":
            raise InvalidArgument("This form cannot be read. Send it from its page.", code="gateway-form")
        self.form = Fields(await self.request.body())
        if self.me:
            check_form(self.request, self.request.token or "", self.form["form"])

    async def frame(self, verb: str, **arguments: Any) -> Frame:
        """What the vault says, or its refusal as an error. Arguments that are None are left out."""
        given = {name: value for name, value in arguments.items() if value is not None}
        found = await self._call(verb, self.request, given, needs_token=self.request.token is not None)
        if found.header.get("ok") is not True:
            raise Refusal(found.header)
        return found

    async def ask_vault(self, verb: str, **arguments: Any) -> Any:
        """What the vault says, from JSON."""
        return json.loads((await self.frame(verb, **arguments)).body)

    def page(
        self, template: str, *, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = (), **values: Any
    ) -> Reply:
        """A page, or a part of one, from a template."""
        secret = form_secret(self.request.token) if self.me and self.request.token else ""
        text = self.console.render(template, visit=self, me=self.me, form_secret=secret, **values)
        return Reply(status, HTML, text.encode(), (*PAGE_HEADERS, *headers))

    def go(self, path: str, *, headers: tuple[tuple[bytes, bytes], ...] = (), **query: Any) -> Reply:
        """Let the browser load another page of ours."""
        named = {name: value for name, value in query.items() if value not in (None, "")}
        place = path + (f"?{urlencode(named)}" if named else "")
        return Reply(303, HTML, b"", ((b"location", place.encode()), *PAGE_HEADERS, *headers))


def local_path(text: str) -> str:
    """The path in a text that leads to a page of ours. Otherwise the first page."""
    fine = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isascii() and text.isprintable()
    return text if fine and "\\" not in text else "/"

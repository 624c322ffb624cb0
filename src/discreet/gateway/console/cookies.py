"""Who is at the browser: a session in a cookie, and a secret in every form, so that no other site can send one.

The desk keeps nothing. The cookie is a token of the vault that ends by itself, and the secret of its forms follows
from it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import TYPE_CHECKING

from discreet.errors import NotAllowed

if TYPE_CHECKING:
    from discreet.gateway.desk.http import Request

_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,200}")
_HOST = re.compile(r"(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")


def session_of(request: Request) -> str | None:
    """The token in the cookie of a browser."""
    for part in request.headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == _name(request) and _TOKEN.fullmatch(value):
            return value
    return None


def set_session(request: Request, token: str, seconds: int) -> tuple[bytes, bytes]:
    """The header that begins a session, or ends it with 0 seconds."""
    secure = "; Secure" if request.secure else ""
    text = f"{_name(request)}={token}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{secure}"
    return b"set-cookie", text.encode()


def _name(request: Request) -> str:
    """With the port, if there is no TLS: several gateways of one machine share its cookies."""
    if request.secure:
        return "__Host-discreet"
    port = request.headers.get(b"host", b"").rpartition(b":")[2]
    return f"discreet-{port.decode()}" if port.isdigit() else "discreet"


def form_secret(token: str) -> str:
    """What every form of a session carries."""
    made = hmac.digest(token.encode(), b"a form of the console", hashlib.sha256)
    return base64.urlsafe_b64encode(made).rstrip(b"=").decode()


def check_from_here(request: Request) -> None:
    """Refuse what a page of another site sends. Browsers say where a request comes from."""
    host = request.headers.get(b"host", b"").decode("latin-1")
    origin = request.headers.get(b"origin")
    here = f"{'https' if request.secure else 'http'}://{host}".encode("latin-1")
    site = request.headers.get(b"sec-fetch-site", b"same-origin")
    if not _HOST.fullmatch(host) or (origin is not None and origin != here) or site != b"same-origin":
        raise _from_elsewhere()


def check_form(request: Request, token: str, secret: str) -> None:
    """Refuse a form that is not of this session."""
    check_from_here(request)
    if not hmac.compare_digest(form_secret(token).encode(), secret.encode("utf-8", "replace")):
        raise _from_elsewhere()


def _from_elsewhere() -> NotAllowed:
    return NotAllowed(
        "This form was not sent by a page of your session. Nothing was done. Load the page again, and send it from "
        "there.",
        code="gateway-origin",
    )

"""Login in a browser with an OpenID Connect provider: authorization code with PKCE, state and nonce.

The desk remembers nothing between the two requests. What it needs is in a cookie that only it can read, for ten
minutes. The id token goes to the vault, which alone decides whose it is.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode

from discreet.errors import InvalidArgument, ServiceUnavailable
from discreet.exact.randomness import random_integer
from discreet.extras import need
from discreet.gateway.desk.replies import Reply
from discreet.gateway.oidc import Provider
from discreet.gateway.settings import OidcSettings

if TYPE_CHECKING:
    from discreet.gateway.desk.http import Request

MINUTES = 10
RETURN = "/v1/oidc/return"
REFUSED = {"id_token": "", "nonce": ""}
"""What the vault is told about a login that failed before it: it has the one reply to all of them."""
_HOST = re.compile(rb"(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


class BrowserLogin:
    """Both steps of a login. `start` redirects to the provider, and `finish` gets the id token for its code."""

    def __init__(self, settings: OidcSettings) -> None:
        self._settings, self._provider = settings, Provider(settings.issuer)

    async def start(self, request: Request) -> Reply:
        """Redirect to the provider, with a cookie that binds the login to this browser."""
        state, nonce, verifier = _secret(), _secret(), _secret()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": self._settings.client,
            "redirect_uri": _own_address(request),
            "scope": "openid email" if self._settings.claim == "email" else "openid profile email",
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        try:
            address = await self._provider.address("authorization_endpoint")
        except LookupError:
            raise ServiceUnavailable(
                "The login provider does not respond. Try again later, or ask the owner for a login link.",
                code="gateway-provider",
            ) from None
        place = f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}"
        cookie = _cookie(request, ".".join((state, nonce, verifier)), MINUTES * 60)
        return Reply(302, b"text/plain", b"", ((b"location", place.encode()), cookie))

    async def finish(self, request: Request) -> dict[str, Any]:
        """The id token of the login that began in this browser, and its nonce, for the vault."""
        given = parse_qs(request.query.decode("ascii", "replace")) if len(request.query) < 8192 else {}
        state, code = (given.get(name, [""])[0] for name in ("state", "code"))
        kept = _kept(request)
        if kept is None or not code or not hmac.compare_digest(kept[0].encode(), state.encode("utf-8", "replace")):
            return REFUSED
        _, nonce, verifier = kept
        token = await self._id_token(code, verifier, _own_address(request))
        return REFUSED if token is None else {"id_token": token, "nonce": nonce}

    async def _id_token(self, code: str, verifier: str, returned_to: str) -> str | None:
        httpx = need("httpx", "gateway", "[gateway.oidc]")
        own = self._settings
        sent = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": returned_to,
            "code_verifier": verifier,
            "client_id": own.client,
        }
        login = None if own.secret is None else httpx.BasicAuth(own.client, own.secret)
        try:
            address = await self._provider.address("token_endpoint")
            async with httpx.AsyncClient(timeout=10, follow_redirects=False, trust_env=False) as client:
                reply = await client.post(address, data=sent, auth=login)
            found = reply.json()
        except (LookupError, httpx.HTTPError, httpx.InvalidURL, ValueError):
            return None
        token = found.get("id_token") if reply.status_code == 200 and isinstance(found, dict) else None
        return token if isinstance(token, str) else None

    def forget(self, request: Request) -> tuple[bytes, bytes]:
        """The header that removes the cookie."""
        return _cookie(request, "", 0)


def _secret() -> str:
    """256 random bits as text."""
    return base64.urlsafe_b64encode(random_integer(256).to_bytes(32, "big")).rstrip(b"=").decode()


def _own_address(request: Request) -> str:
    """Where the provider shall redirect to. It knows this address, and refuses any other."""
    host = request.headers.get(b"host", b"")
    if not _HOST.fullmatch(host):
        raise InvalidArgument("The Host header names no address of this gateway.", code="gateway-arguments")
    return f"{'https' if request.secure else 'http'}://{host.decode()}{RETURN}"


def _cookie_name(request: Request) -> str:
    return "__Host-discreet-login" if request.secure else "discreet-login"


def _cookie(request: Request, value: str, seconds: int) -> tuple[bytes, bytes]:
    secure = "; Secure" if request.secure else ""
    text = f"{_cookie_name(request)}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Lax{secure}"
    return b"set-cookie", text.encode()


def _kept(request: Request) -> tuple[str, str, str] | None:
    """State, nonce and verifier of the login that began in this browser."""
    for part in request.headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        secrets = value.split(".")
        if name == _cookie_name(request) and len(secrets) == 3 and all(map(_SECRET.fullmatch, secrets)):
            return secrets[0], secrets[1], secrets[2]
    return None

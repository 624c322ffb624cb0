"""OpenID Connect: who a provider says somebody is, checked in the vault.

Promise: a token gives an account name only if it is signed with a key of the provider, by one of a few fixed
algorithms, for this gateway, and holds now. Whatever else is wrong with it, the reply is the same: no account.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import math
import time
import warnings
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from discreet.errors import InvalidArgument
from discreet.extras import need
from discreet.gateway.settings import OidcSettings
from discreet.listening import is_loopback

ALGORITHMS = ("RS256", "ES256", "EdDSA", "Ed25519")
LEEWAY = 60.0
"""Seconds by which two clocks may differ."""
REFETCH = 60.0
"""An unknown key is looked for at most once in so many seconds."""
STALE = 3600.0
"""Keys older than that are fetched again, so that one that was withdrawn ends."""
LONGEST_TOKEN = 8192
LONGEST_NAME = 200
_LONGEST_DOCUMENT = 2**20
_WAIT = 5.0


class Provider:
    """The provider's public documents: its addresses, and its keys."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        _check_address(issuer)
        self._known: dict[str, Any] | None = None

    async def addresses(self) -> dict[str, Any]:
        """What the provider says about itself. Raises LookupError if it says nothing usable."""
        if self._known is None:
            found = await self.fetch(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
            if found.get("issuer") != self.issuer:
                raise LookupError
            self._known = found
        return self._known

    async def address(self, name: str) -> str:
        """One of its addresses, such as `token_endpoint`."""
        found = (await self.addresses()).get(name)
        if not isinstance(found, str) or not found.isascii() or not found.isprintable() or not is_safe(found):
            raise LookupError
        return found

    async def fetch(self, url: str) -> dict[str, Any]:
        """A JSON object at an address."""
        httpx = need("httpx", "gateway", "[gateway.oidc]")
        if not is_safe(url):
            raise LookupError
        try:
            async with httpx.AsyncClient(timeout=_WAIT, follow_redirects=False, trust_env=False) as client:
                reply = await client.get(url, headers={"Accept": "application/json"})
            found = json.loads(reply.content) if len(reply.content) <= _LONGEST_DOCUMENT else None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
            raise LookupError from None
        if reply.status_code != 200 or not isinstance(found, dict):
            raise LookupError
        return found


class Verifier:
    """Reads the account name from tokens of a provider."""

    def __init__(self, settings: OidcSettings, *, clock: Callable[[], float] = time.time) -> None:
        need("joserfc", "gateway", "[gateway.oidc]")
        self._settings, self._clock = settings, clock
        self._provider = Provider(settings.issuer)
        self._keys: Any = None
        self._fetched = self._tried = -1e18
        self._lock = asyncio.Lock()

    async def account(self, token: str, *, nonce: str | None = None) -> str | None:
        """The account that a token is for. None if it does not hold, for any reason.

        With a `nonce` it must be the id token of a login that began here. Without, a token for the audience of the
        gateway.
        """
        claims = await self._signed(token)
        return None if claims is None else self._name(claims, nonce)

    async def _signed(self, token: Any) -> dict[str, Any] | None:
        """The claims of a token with a valid signature."""
        if not isinstance(token, str) or token.count(".") != 2 or len(token) > LONGEST_TOKEN:
            return None
        if self._keys is None or self._clock() - self._fetched > STALE:
            await self._fetch()
        found = self._decode(token)
        if found is None and self._keys is not None and not self._knows(token):
            await self._fetch()
            found = self._decode(token)
        return found

    def _decode(self, token: str) -> dict[str, Any] | None:
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jws import JWSRegistry

        if self._keys is None or self._clock() - self._fetched > 2 * STALE:
            return None
        rules = JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "EdDSA" is an old name, which providers still write
                return jwt.decode(token, self._keys, registry=rules).claims
        except (JoseError, ValueError, TypeError, KeyError, RecursionError, UnicodeError):
            return None

    def _knows(self, token: str) -> bool:
        """Whether the key that a token names is known. Then another look would find nothing new."""
        from joserfc.errors import JoseError
        from joserfc.jws import extract_compact

        try:
            named = extract_compact(token.encode()).headers().get("kid")
        except (JoseError, ValueError, TypeError, UnicodeError):
            return True
        return not isinstance(named, str) or any(key.kid == named for key in self._keys)

    async def _fetch(self) -> None:
        """Fetch the keys, at most once a minute. One that fails keeps the keys that there are."""
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        async with self._lock:
            if self._clock() - self._tried < REFETCH:
                return
            self._tried = self._clock()
            try:
                found = await self._provider.fetch(await self._provider.address("jwks_uri"))
                own = [key for key in found["keys"] if key.get("kty") in ("RSA", "EC", "OKP")]
                signing = [key for key in own if key.get("use", "sig") == "sig"]
                self._keys = KeySet.import_key_set({"keys": signing})
            except (LookupError, JoseError, ValueError, TypeError, AttributeError):
                return
            self._fetched = self._clock()

    def _name(self, claims: dict[str, Any], nonce: str | None) -> str | None:
        own, now = self._settings, self._clock()
        audience = own.audience if nonce is None else own.client
        meant = claims.get("aud")
        many = meant if isinstance(meant, list) else [meant]
        ends, begins = _time(claims.get("exp")), _time(claims.get("nbf", 0))
        holds = (
            claims.get("iss") == own.issuer
            and audience in many
            and (len(many) == 1 or nonce is None or claims.get("azp") == own.client)
            and begins - LEEWAY <= now < ends + LEEWAY
        )
        if nonce is not None:
            said = claims.get("nonce")
            holds = holds and isinstance(said, str) and bool(nonce) and _equal(said, nonce)
        if own.claim == "email" and claims.get("email_verified", True) is not True:
            holds = False  # whoever can write any address could be anybody
        name = claims.get(own.claim)
        known = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()
        return name if holds and known else None


def is_safe(url: str) -> bool:
    """Whether nobody on the way can read or change what is sent to an address: TLS, or this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        local = is_loopback(host)
    except ValueError:
        return False
    return bool(host) and not parts.username and (parts.scheme == "https" or (parts.scheme == "http" and local))


def _check_address(issuer: str) -> None:
    if not is_safe(issuer):
        raise InvalidArgument(
            'issuer of [gateway.oidc] must be an address with TLS, such as "https://login.example.org".',
            code="gateway-issuer",
        )


def _time(value: Any) -> float:
    """A time in seconds. With NaN, which is neither before nor after anything, nothing holds."""
    return float(value) if type(value) in (int, float) and abs(value) < 1e15 else math.nan


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))

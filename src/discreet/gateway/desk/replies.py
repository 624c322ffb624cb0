"""What the desk sends: replies of the vault, and errors as problem+json. Nothing else of an error ever leaves."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from discreet.errors import DiscreetError, NotAllowed
from discreet.gateway.frames import Frame

PROBLEM = b"application/problem+json"
REMAINS = b"discreet-remains"
"""The header with what remains after an answer, and which limit is nearest, as a JSON string."""
OF_CODES = {
    "gateway-login": 401,
    "gateway-not-bought": 402,
    "gateway-suspended": 403,
    "gateway-role": 403,
    "gateway-scope": 403,
    "gateway-approval": 403,
    "gateway-confirm": 403,
    "gateway-declined": 403,
    "gateway-tile-price": 409,
    "gateway-origin": 403,
    "gateway-not-found": 404,
    "gateway-unknown-path": 404,
    "gateway-method": 405,
    "gateway-format": 406,
    "gateway-too-slow": 408,
    "gateway-body-too-large": 413,
    "gateway-too-fast": 429,
    "gateway-stopped": 503,
    "gateway-unavailable": 503,
    "engine-statement-failed": 422,
    "gateway-late": 504,
}
"""The status of errors by their code."""
OF_KINDS = {
    "InvalidArgument": 400,
    "QueryError": 400,
    "NotAllowed": 422,
    "BudgetExhausted": 402,
    "IncompatibleGuarantee": 422,
    "LedgerDamaged": 503,
    "LedgerUnavailable": 503,
    "ServiceUnavailable": 503,
    "EntropyUnavailable": 503,
    "EngineFailed": 504,
}
"""The status of other errors by their class."""
SAFE: tuple[tuple[bytes, bytes], ...] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Headers of every reply."""
FACTS_HEADER = b"discreet-facts"
"""The header with what is said about an answer in CSV, which has no place for it."""
TLS_ONLY = (b"strict-transport-security", b"max-age=31536000")


class Reply(NamedTuple):
    """A status, a content type, a body, and further headers."""

    status: int
    type: bytes
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Refused(NotAllowed):
    """A request that the desk refuses by itself. `headers` go with the reply."""

    def __init__(self, message: str, *, code: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(message, code=code)
        self.headers = headers


def check_method(method: str, known: Collection[str]) -> None:
    """Refuse another method than the known ones."""
    if method not in known:
        raise Refused(
            f"Use {' or '.join(known)} here. Data is never changed.",
            code="gateway-method",
            headers=((b"allow", ", ".join(known).encode()),),
        )


def too_fast(wait: float) -> Refused:
    """The error for too many requests."""
    seconds = max(1, math.ceil(wait))
    return Refused(
        f"Too many requests. Try again in {seconds} s.",
        code="gateway-too-fast",
        headers=((b"retry-after", str(seconds).encode()),),
    )


def reply_of(frame: Frame) -> Reply:
    """The reply of the vault over HTTP."""
    said = frame.header
    if said.get("ok") is True:
        headers = [(FACTS_HEADER, str(said["beside"]).encode("ascii"))] if "beside" in said else []
        if said.get("remains") is not None:
            headers.append((REMAINS, json.dumps(str(said["remains"])).encode("ascii")))
        return Reply(200, str(said.get("type", "application/json")).encode("ascii"), frame.body, tuple(headers))
    kind, code = str(said.get("kind", "")), str(said.get("code", ""))
    if kind not in OF_KINDS and code not in OF_CODES:
        return FAILED
    more = said.get("more")
    return problem(kind, code, str(said.get("message", "")), more=more if isinstance(more, dict) else None)


def refusal_of(error: DiscreetError) -> Reply:
    """An error of the desk over HTTP."""
    kind = "NotAllowed" if isinstance(error, Refused) else type(error).__name__
    return problem(kind, error.code, str(error), headers=getattr(error, "headers", ()))


def problem(
    kind: str,
    code: str,
    message: str,
    *,
    more: Mapping[str, Any] | None = None,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> Reply:
    """An error as problem+json, with the code and the message that the library has."""
    status = OF_CODES.get(code) or OF_KINDS.get(kind, 500)
    content: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    content |= {"kind": kind, "code": code, "detail": message}
    if more:
        content["more"] = more
    if status == 401:
        headers = (*headers, (b"www-authenticate", b"Bearer"))
    if status in (429, 503) and not any(name == b"retry-after" for name, _ in headers):
        wait = (more or {}).get("retry_after", 1)
        seconds = max(1, math.ceil(wait)) if isinstance(wait, int | float) and math.isfinite(wait) else 1
        headers = (*headers, (b"retry-after", str(seconds).encode()))
    return Reply(status, PROBLEM, json.dumps(content, ensure_ascii=False).encode(), headers)


FAILED = Reply(
    500,
    PROBLEM,
    json.dumps(
        {
            "type": "about:blank",
            "title": HTTPStatus(500).phrase,
            "status": 500,
            "kind": "DiscreetError",
            "code": "gateway-failed",
            "detail": "The gateway failed. What was charged stays charged. Ask again with the same Idempotency-Key.",
        }
    ).encode(),
)
"""The reply when something fails that nobody thought of. It is always the same."""

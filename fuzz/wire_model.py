"""What is sent to the services of a poll, and what they must answer: in a few lines, beside the real ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from discreet.shuffle.channel import keys, wire
from discreet.shuffle.channel.services import shuffler as shuffler_service

MINIMUM = 10
"""Reports of a batch."""
FOR_BROWSERS = ("/v1/task", "/v1/report", "/v1/token", "/v1/state", "/healthz")
"""Paths of the shuffler that pages of every origin may use."""


@dataclass(frozen=True)
class Request:
    """One request, byte by byte. A body comes in pieces; a client may go away before its end."""

    service: str
    method: str
    path: str
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    pieces: int = 1
    goes_away: bool = False

    def header(self, name: bytes) -> str:
        """A header as the services read it."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name), "")

    @property
    def token(self) -> bytes:
        """The bearer token, if there is one."""
        kind, _, text = self.header(b"authorization").partition(" ")
        try:
            return bytes.fromhex(text) if kind == "Bearer" else b""
        except ValueError:
            return b""


@dataclass
class Model:
    """What both services must say, in a few lines: who was counted, with which bytes, and what is closed."""

    poll: Any
    state: str = "collecting"
    counted: dict[bytes, bytes] = field(default_factory=dict)
    batch: bytes | None = None

    def said_to(self, request: Request) -> set[int]:
        """The statuses that may answer it; everything it changes is changed here."""
        everywhere = ("GET /v1/task", "GET /healthz")
        shuffler = ("POST /v1/report", "POST /v1/token", "POST /v1/reports", "POST /v1/close", "GET /v1/state")
        analyzer = ("POST /v1/batch", "GET /v1/result", "GET /")
        known = {"shuffler": shuffler, "analyzer": analyzer}[request.service] + everywhere
        shared = {"shuffler": FOR_BROWSERS, "analyzer": ("/v1/task", "/v1/result")}[request.service]
        if request.method == "OPTIONS" and request.path in shared:
            return {204}
        if f"{request.method.replace('HEAD', 'GET')} {request.path}" not in known:
            return {404, 405}
        if request.goes_away and request.method == "POST":
            return {400}
        match request.path:
            case "/v1/report":
                said = self.report(request.token, request.body)
                return {said, 410} if said == 400 and self._is_over(request) else {said}
            case "/v1/token":
                return {400}  # the poll is not open
            case "/v1/reports":
                return {self.reports(request.body)}
            case "/v1/close":
                return {self.close(request)}
            case "/v1/batch":
                return self.receive(request)
            case "/v1/result":
                return {404} if self.batch is None else {200, 202}
        return {200}

    def _is_over(self, request: Request) -> bool:
        """Whether the keys may be deleted that would show that a report is no sealed one."""
        return self.state == "discarded" and len(request.body) == self.poll.task.shape.report

    def report(self, token: bytes, report: bytes) -> int:
        """One upload."""
        task, issuer = self.poll.task, self.poll.issuer
        name = token[:16]
        right = len(token) == 48 and token == keys.token_for(issuer.registration, task.hash, name)
        opens = right and len(report) == task.shape.report
        if not opens or keys.open_seal(report, issuer.outer, wire.outer(task.hash, name)) is None:
            return 400
        if self.state == "collecting":
            self.counted.setdefault(name, report)
        if name not in self.counted:
            return 410
        return 200 if self.counted[name] == report else 409

    def reports(self, body: bytes) -> int:
        """Many uploads, each as if it came alone, in an order that has nothing to do with theirs."""
        size = self.poll.task.shape.upload
        if not body or len(body) % size or len(body) > shuffler_service.MOST * size:
            return 400
        uploads = [(body[at : at + 48], body[at + 48 : at + size]) for at in range(0, len(body), size)]
        for upload in sorted(uploads, key=lambda one: keys.keyed_hash(self.poll.issuer.nullifiers, b"bytes", one[1])):
            self.report(*upload)
        return 200

    def close(self, request: Request) -> int:
        """By the operator only."""
        if request.token != self.poll.issuer.operator or request.body not in (b"", b'{"discard": true}'):
            return 400
        if self.state == "collecting":
            if request.body:
                self.state, self.counted = "discarded", {}
            elif self.poll.whole(self.counted) >= MINIMUM:
                self.state = "sealed"
        return 200

    def receive(self, request: Request) -> set[int]:
        """A batch, by the operator only, for this task, whole, large enough, and the first."""
        task, body = self.poll.task, request.body
        named = request.header(b"idempotency-key") == task.hash.hex()
        if request.token != self.poll.issuer.operator or not named or len(body) < 72:
            return {400}
        reports = int.from_bytes(body[32:40], "big")
        right = hashlib.sha256(wire.VERSION + b"batch" + body[:40] + body[72:]).digest() == body[40:72]
        width = task.shape.messages * task.shape.message
        if not right or body[:32] != task.hash or reports < MINIMUM or len(body) - 72 != reports * width:
            return {400}
        if self.batch is None:
            self.batch = body
        return {200, 202} if self.batch == body else {409}

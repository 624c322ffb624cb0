"""A client: randomizes one answer, seals it twice, and sends it once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed, closed
from discreet.errors import InvalidArgument, NotAllowed, ServiceUnavailable
from discreet.extras import need
from discreet.shuffle.channel import keys, wire
from discreet.shuffle.channel.admission import VOUCHER, TicketRequest, is_voucher
from discreet.shuffle.channel.task import Task

TRIES = 5
HEADERS = {
    "User-Agent": "discreet",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Content-Type": "application/octet-stream",
}
"""The same for everybody: they tell nothing about the machine."""


class Client(Closed):
    """One client of a task, with its token. Show `task.promise` to the person before they report.

    Promise: whatever the answer is, it makes one request of the same length, with the same number of messages; what is
    sent can be read by the analyzer only, and by it only after the shuffler has taken away whose it is.
    """

    def __init__(self, task: Task, token: bytes) -> None:
        if len(token) != task.shape.token:
            raise InvalidArgument(
                f"A token of this task has {2 * task.shape.token} hexadecimal digits. Ask for a complete one.",
                code="shuffle-not-accepted",
            )
        self.task, self._token = task, token

    @classmethod
    def admitted(
        cls, task: Task, voucher: str, request: TicketRequest | None = None, *, save: Path | None = None
    ) -> Client:
        """A client with a ticket that the issuer signs for a voucher.

        The issuer signs one request for each voucher, and the same one again if an answer is lost. `save` is a new file
        that keeps it: on the next try pass it as `request` (`TicketRequest.load`). It holds what only the device knows.
        """
        if not task.issuer_key:
            raise InvalidArgument(
                "This task has no issuer, so it takes no vouchers. Give a token.", code="shuffle-no-issuer"
            )
        if not is_voucher(voucher):
            raise InvalidArgument(
                f"A voucher has {2 * VOUCHER} hexadecimal digits. Copy all of it.", code="shuffle-not-accepted"
            )
        asked = request or TicketRequest.made(task.issuer_key, task.hash)
        if request is None and save is not None:
            asked.save(save)
        return cls(task, asked.signed(_sign(task.issuer, voucher, asked.blinded)))

    @property
    def token(self) -> bytes:
        """The token or the ticket, which is secret until it is used."""
        return self._token

    def sealed(self, value: Any) -> bytes:
        """The report of one answer: randomized, sealed to the analyzer, then to the shuffler. Every call draws anew."""
        messages: list[int] = []
        with contextlib.suppress(InvalidArgument):  # its message might contain the answer
            messages = self.task.protocol.encode(value)
        if not messages:
            raise InvalidArgument(
                "The task does not take this answer. Its file lists the answers that it takes.", code="unknown-answer"
            )
        return self.envelope(messages)

    def envelope(self, messages: Sequence[int] | NDArray[np.int64]) -> bytes:
        """Messages that are already randomized, as one report."""
        task, length = self.task, self.task.shape.length
        plain, info = task.protocol.packed(messages), wire.inner(task.hash)
        parts = (plain[start : start + length] for start in range(0, len(plain), length))
        inside = b"".join(keys.seal(part, task.analyzer_key, info) for part in parts)
        return keys.seal(inside, task.shuffler_key, wire.outer(task.hash, self._token[: wire.CLIENT]))

    def report(self, value: Any) -> None:
        """Send an answer. If the network fails, the same sealed bytes are sent again."""
        self.send(self.sealed(value))

    def send(self, report: bytes) -> None:
        """Send a sealed report to the shuffler."""
        code, _ = _post(self.task.shuffler, "/v1/report", self._token.hex(), report, "shuffler")
        match code:
            case 200:
                return
            case 409:
                raise NotAllowed(
                    "This client has already reported. A second answer is not accepted.",
                    code="shuffle-reported-already",
                )
            case 410:
                raise NotAllowed("The task is closed. It accepts no more reports.", code="shuffle-closed")
        raise InvalidArgument(
            "The shuffler rejected the report: the token or the task file is not the one it was given. "
            "Ask for both again.",
            code="shuffle-not-accepted",
        )


def ask_for_token(task: Task) -> bytes:
    """A token from the shuffler of an open poll, to which anybody may report."""
    code, token = _post(task.shuffler, "/v1/token", "", b"", "shuffler")
    if code != 200 or len(token) != wire.TOKEN:
        raise InvalidArgument(
            "This poll is not open to everybody. Give the token that you were issued: --token …, or DISCREET_TOKEN=… "
            "in the environment.",
            code="command-token",
        )
    return token


def _sign(issuer: str, voucher: str, blinded: bytes) -> bytes:
    """The issuer's signature of a blinded message."""
    code, answer = _post(issuer, "/v1/admit", voucher, blinded, "issuer")
    match code:
        case 200:
            return answer
        case 409:
            raise NotAllowed(
                "This voucher was used for another ticket. It is good for one, on the device that asked first.",
                code="shuffle-voucher-used",
            )
    raise InvalidArgument(
        "The issuer rejected the voucher, or it has another task file. Ask for both again.", code="shuffle-not-accepted"
    )


def _post(address: str, path: str, token: str, content: bytes, name: str) -> tuple[int, bytes]:
    """What a service answers. The same bytes are sent again if it cannot be reached or fails."""
    httpx = need("httpx", "shuffle", f"A client of the {name}")
    headers = HEADERS | ({"Authorization": f"Bearer {token}"} if token else {})
    for wait in range(TRIES):
        try:
            found = httpx.post(f"{address}{path}", content=content, headers=headers)
        except httpx.HTTPError:
            found = None
        except httpx.InvalidURL:
            raise InvalidArgument(
                f"The {name}'s address in the task file is not a URL. Write one, such as https://{name}.example.",
                code="shuffle-task-unreadable",
            ) from None
        if found is not None and found.status_code < 500:
            return found.status_code, found.content
        time.sleep(0.1 * 2**wait)
    raise ServiceUnavailable(f"The {name} at {address} cannot be reached. Nothing was counted; try again.")


@closed
def uploads(task: Task, tokens: Sequence[bytes], values: Sequence[Any]) -> bytes:
    """Reports of many clients for one request to the shuffler: for relays, simulations and tests."""
    drawn = task.protocol.encode_many(values)
    count = task.shape.messages
    reports = (
        token + Client(task, token).envelope(drawn[count * index : count * (index + 1)])
        for index, token in enumerate(tokens)
    )
    return b"".join(reports)

"""The shuffler over HTTP.

GET  /v1/task      the canonical bytes of the task, which are hashed             200
POST /v1/report    one sealed report; the token in Authorization: Bearer …     200 · 400 · 409 · 410
POST /v1/token     a new token, if anybody may report                            200 with 48 bytes · 400
GET  /v1/state     the state and the minimum; for the operator also how many reports there are, and what is amiss
GET  /healthz      200 as long as it runs
GET  /             what this address is for, for people
POST /v1/reports   many, each with its token before it; one byte of answer each
POST /v1/close     by the operator: seal and hand on, or {"discard": true}     200 with the state and the count

Pages of every origin may use the first five. The last three are not for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from discreet.errors import DiscreetError, InvalidArgument
from discreet.extras import need
from discreet.shuffle.channel.services.service import (
    JSON,
    NOT_ACCEPTED,
    OK,
    TEXT,
    Application,
    Request,
    Route,
    constant,
    in_json,
)
from discreet.shuffle.channel.services.service import Answer as Response
from discreet.shuffle.channel.shuffler import Answer, Reply, Shuffler, Standing

GROUP = 1000
"""So many reports share one commit, at most."""
MOST = 10_000
"""So many reports come in one request, at most."""
CODES: dict[Answer, int] = {"accepted": 200, "malformed": 400, "other bytes": 409, "closed": 410}
MARKS: dict[Answer, bytes] = {"accepted": b"+", "malformed": b"?", "other bytes": b"!", "closed": b"."}
REPLIES: dict[int, Reply] = {200: "analyzed", 202: "received", 409: "another batch"}
FOR_BROWSERS: tuple[Route, ...] = (
    ("GET", "/v1/task"),
    ("POST", "/v1/report"),
    ("POST", "/v1/token"),
    ("GET", "/v1/state"),
    ("GET", "/healthz"),
)
ABOUT = b"""This address takes the sealed reports of a survey. It cannot read them, and it shows no results.

/v1/task   the survey: what is asked, and what is promised
/v1/state  whether it is open

Results are on the page of the other service, the analyzer, after the survey is closed.
"""
STANDINGS: dict[int, Standing] = {200: "analyzed", 202: "received", 404: "waiting", 409: "refused"}


class GroupCommit:
    """Uploads that wait for one writer, which takes all that arrived since its last commit."""

    def __init__(self, shuffler: Shuffler) -> None:
        self._shuffler = shuffler
        self._waiting: asyncio.Queue[tuple[tuple[bytes, bytes], asyncio.Future[Answer]]] = asyncio.Queue()

    async def accept(self, token: bytes, report: bytes) -> Answer:
        """The answer to an upload, once it is on disk."""
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        await self._waiting.put(((token, report), answered))
        return await answered

    async def write(self) -> None:
        """Commit group after group, forever."""
        while True:
            group = [await self._waiting.get()]
            while len(group) < GROUP and not self._waiting.empty():
                group.append(self._waiting.get_nowait())
            try:
                answers = await asyncio.to_thread(self._shuffler.accept, [upload for upload, _ in group])
            except Exception as error:
                for _, answered in group:
                    if not answered.done():
                        answered.set_exception(error)
                continue
            for (_, answered), said in zip(group, answers, strict=True):
                if not answered.done():
                    answered.set_result(said)


def application(shuffler: Shuffler, operator: bytes, analyzer: str, *, anybody: bool = False) -> Application:
    """The shuffler's web application, which sends its batch to the analyzer at this address.

    With `anybody` it issues a token to whoever asks, so nothing limits how often one person reports.
    """
    if anybody and shuffler.task.issuer_key:
        raise InvalidArgument(
            "This task admits people by tickets of its issuer, so its shuffler cannot be open. Leave out --open.",
            code="shuffle-has-issuer",
        )
    shape = shuffler.task.shape
    group = GroupCommit(shuffler)
    deliver, trouble = asyncio.Event(), list[str]()

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        work = (group.write(), _deliver(shuffler, operator, analyzer, deliver, trouble))
        tasks = [asyncio.create_task(one) for one in work]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        shuffler.close()

    async def report(request: Request) -> Response:
        body = await request.body(shape.report)
        if body is None or len(body) != shape.report:
            return NOT_ACCEPTED
        said = await group.accept(request.token, body)
        return NOT_ACCEPTED if said == "malformed" else Response(CODES[said], f"{said}\n".encode())

    async def token(request: Request) -> Response:
        return Response(200, shuffler.new_token()) if anybody and await request.body(0) == b"" else NOT_ACCEPTED

    async def reports(request: Request) -> Response:
        body = await request.body(MOST * shape.upload)
        if not body or len(body) % shape.upload:
            return NOT_ACCEPTED
        found = [_split(body[start : start + shape.upload], shape.token) for start in range(0, len(body), shape.upload)]
        said: list[Answer] = []
        for start in range(0, len(found), MOST // 4):
            said += await asyncio.to_thread(shuffler.accept, found[start : start + MOST // 4])
        return Response(200, b"".join(MARKS[one] for one in said))

    async def close(request: Request) -> Response:
        body = await request.body(1000)
        if not request.is_from(operator) or body not in (b"", b'{"discard": true}'):
            return NOT_ACCEPTED
        await asyncio.to_thread(shuffler.store.discard if body else shuffler.seal)
        deliver.set()
        return await state(request)

    async def state(request: Request) -> Response:
        now, count = await asyncio.to_thread(shuffler.store.standing)
        reply: dict[str, Any] = {"state": now, "minimum": shuffler.task.protocol.minimum}
        if request.is_from(operator):  # a growing count would show others who reports when
            reply |= {"reports": count, "trouble": trouble}
        return in_json(200, reply)

    routes = {
        ("GET", "/v1/task"): constant(Response(200, shuffler.task.canonical, JSON)),
        ("POST", "/v1/report"): report,
        ("POST", "/v1/token"): token,
        ("POST", "/v1/reports"): reports,
        ("POST", "/v1/close"): close,
        ("GET", "/v1/state"): state,
        ("GET", "/healthz"): constant(OK),
        ("GET", "/"): constant(Response(200, ABOUT, TEXT)),
    }
    return Application(running=running, routes=routes, for_browsers=FOR_BROWSERS)


def _split(upload: bytes, token: int) -> tuple[bytes, bytes]:
    return upload[:token], upload[token:]


async def _deliver(
    shuffler: Shuffler, operator: bytes, analyzer: str, asked: asyncio.Event, trouble: list[str]
) -> None:
    """Send the batch to the analyzer, also one that was sealed before a crash, and retry until it is acknowledged.

    The latest problem is stored in `trouble`.
    """
    headers = {"Authorization": f"Bearer {operator.hex()}", "Idempotency-Key": shuffler.task.hash.hex()}

    def post(batch: bytes) -> Reply:
        return REPLIES.get(_status("POST", f"{analyzer}/v1/batch", 600, content=batch, headers=headers), "not accepted")

    def ask() -> Standing:
        return STANDINGS.get(_status("GET", f"{analyzer}/v1/result", 60), "received")

    wait = 0.1
    while True:
        try:
            state = await asyncio.to_thread(shuffler.deliver, post, ask)
            trouble.clear()
            if state not in ("sealed", "forwarded"):
                await asked.wait()
                asked.clear()
                wait = 0.1
                continue
        except _Unreachable:
            trouble[:] = [f"The analyzer at {analyzer} does not answer."]
        except DiscreetError as error:
            trouble[:] = [str(error)]
        except Exception as error:
            trouble[:] = [f"The batch cannot be handed on: {type(error).__name__}."]
        await asyncio.sleep(wait)
        wait = min(2 * wait, 5.0)


class _Unreachable(Exception):
    """The analyzer does not answer."""


def _status(method: str, url: str, timeout: float, **given: Any) -> int:
    """The status of an answer. The client is imported with the first batch, so that the service starts sooner."""
    httpx = need("httpx", "shuffle", "discreet shuffle shuffler")
    try:
        return int(httpx.request(method, url, timeout=timeout, **given).status_code)
    except (httpx.HTTPError, httpx.InvalidURL):
        raise _Unreachable from None

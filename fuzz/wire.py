"""Whatever anybody sends to the shuffler and to the analyzer, over their real applications.

Each request has the answer that a small model gives it: success, or a refusal in the one public text of its kind; never
a failure of the server. A client is counted once, the analyzer charges once, and what is refused changes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import itertools
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from discreet.shuffle.channel import keys, wire
from discreet.shuffle.channel.services import analyzer as analyzer_service
from discreet.shuffle.channel.services import shuffler as shuffler_service
from fuzz.changes import byte_changes, picked
from fuzz.oracle import Broken, foreign, within
from fuzz.wire_model import MINIMUM, Model, Request

SECONDS = 20
POLLS = Path(__file__).resolve().parents[1] / "tests" / "shuffle" / "channel" / "polls.py"
NOWHERE = "http://127.0.0.1:1"
"""Where no analyzer listens: what is sealed stays sealed here."""
PATHS = ("/v1/report", "/v1/reports", "/v1/close", "/v1/state", "/v1/batch", "/v1/result")
PUBLIC_PATHS = ("/v1/task", "/v1/token", "/healthz", "/")
OTHER_PATHS = ("/docs", "/openapi.json", "/v1/report/", "/v1/../x", "/é", "")
NOT_ACCEPTED, BATCH_NOT_ACCEPTED = b"not accepted\n", b'{"batch": "not accepted"}'


class Wire:
    """One task, and fresh services for every input."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.loop = folder, asyncio.new_event_loop()
        self.poll = _Poll(folder)
        own = [self.poll.exact(number, number % 3) for number in range(12)]
        again = [self.poll.exact(number, 0) for number in range(3)]
        self.uploads = own + again + [self.poll.copied(number) for number in (20, 21)]
        self.uploads += [(own[0][0], own[1][1]), (keys.random_bytes(48), own[2][1]), (b"", own[3][1])]
        self.batches = [self.poll.sealed(own[:10]), self.poll.sealed(own[1:12]), self.poll.sealed(own[:10])]
        self.seeds: list[list[Request]] = [
            [self._report(*upload) for upload in own[:10]] + [self._close(b""), self._report(*own[0])],
            [self._reports(own + again), self._close(b""), self._report(*own[11])],
            [self._report(*own[0]), self._close(b'{"discard": true}'), self._report(*own[0]), self._ask("state")],
            [self._batch(self.batches[0]), self._batch(self.batches[1]), self._ask("result")],
        ]

    def _report(self, token: bytes, report: bytes) -> Request:
        bearer = (b"authorization", f"Bearer {token.hex()}".encode())
        return Request("shuffler", "POST", "/v1/report", (bearer,), report)

    def _reports(self, uploads: list[tuple[bytes, bytes]]) -> Request:
        return Request("shuffler", "POST", "/v1/reports", (), b"".join(token + report for token, report in uploads))

    def _operator(self) -> tuple[bytes, bytes]:
        return b"authorization", f"Bearer {self.poll.issuer.operator.hex()}".encode()

    def _close(self, body: bytes) -> Request:
        return Request("shuffler", "POST", "/v1/close", (self._operator(),), body)

    def _batch(self, batch: bytes) -> Request:
        named = (b"idempotency-key", self.poll.task.hash.hex().encode())
        return Request("analyzer", "POST", "/v1/batch", (self._operator(), named), batch)

    def _ask(self, what: str) -> Request:
        return Request("shuffler" if what == "state" else "analyzer", "GET", f"/v1/{what}")

    def inputs(self) -> st.SearchStrategy[list[Request]]:
        """A few requests, one after another: real ones, and real ones changed."""
        bodies = byte_changes(picked(tuple({seed.body for seeds in self.seeds for seed in seeds})))
        uploads = st.lists(picked(self.uploads), max_size=14)
        one = st.one_of(
            picked(self.uploads).map(lambda upload: self._report(*upload)),
            uploads.map(self._reports),
            st.tuples(uploads, st.binary(max_size=60)).map(lambda pair: self._with_tail(*pair)),
            st.sampled_from((b"", b'{"discard": true}', b"{}")).map(self._close),
            picked(self.batches).map(self._batch),
            byte_changes(picked(tuple(self.batches))).map(self._batch),
            byte_changes(picked(tuple(self.batches))).map(self._resealed).map(self._batch),
            self._changed(bodies),
            st.sampled_from(("state", "result")).map(self._ask),
        )
        return st.one_of(st.lists(one, min_size=1, max_size=6), self._sequences())

    def _sequences(self) -> st.SearchStrategy[list[Request]]:
        """A sound sequence with one request of it changed, or left out, or sent twice."""

        @st.composite
        def changed(draw: Any) -> list[Request]:
            sequence = list(draw(picked(self.seeds)))
            at = draw(st.integers(0, len(sequence) - 1))
            other = draw(st.one_of(self._changed(byte_changes(picked((sequence[at].body,)))), st.just(sequence[at])))
            return sequence[:at] + [other] * draw(st.integers(0, 2)) + sequence[at + draw(st.integers(0, 1)) :]

        return changed()

    def _with_tail(self, uploads: list[tuple[bytes, bytes]], tail: bytes) -> Request:
        sound = self._reports(uploads)
        return Request("shuffler", "POST", sound.path, (), sound.body + tail)

    def _resealed(self, batch: bytes) -> bytes:
        """A changed batch whose digest is right."""
        return batch[:40] + hashlib.sha256(wire.VERSION + b"batch" + batch[:40] + batch[72:]).digest() + batch[72:]

    def _changed(self, bodies: st.SearchStrategy[bytes]) -> st.SearchStrategy[Request]:
        tokens = st.one_of(
            st.sampled_from([token.hex().encode() for token, _ in self.uploads]),
            st.sampled_from((self.poll.issuer.operator.hex().encode(), b"", b"zz", b"00", b"\xff", b"0" * 64)),
            st.binary(max_size=50).filter(lambda text: b"\n" not in text),
        )
        bearer = st.tuples(st.sampled_from((b"Bearer ", b"bearer ", b"Basic ", b"", b"Bearer  ")), tokens).map(b"".join)
        task = self.poll.task.hash.hex()
        named = st.sampled_from((task.encode(), task.upper().encode(), b"", b"00", b"\xff"))
        others = st.sampled_from((b"content-length", b"content-type", b"transfer-encoding", b"expect", b"range"))
        values = st.sampled_from((b"-1", b"999999999999", b"application/json", b"multipart/form-data", b"chunked"))
        headers = st.lists(
            st.one_of(
                st.tuples(st.just(b"authorization"), bearer),
                st.tuples(st.just(b"idempotency-key"), named),
                st.tuples(others, values),
            ),
            max_size=4,
        )
        return st.builds(
            Request,
            service=st.sampled_from(("shuffler", "analyzer")),
            method=st.sampled_from(("POST", "POST", "POST", "GET", "PUT", "HEAD", "OPTIONS", "DELETE", "X")),
            path=st.one_of(*[st.sampled_from(PATHS)] * 5, st.sampled_from(PUBLIC_PATHS), st.sampled_from(OTHER_PATHS)),
            headers=headers.map(tuple),
            body=st.one_of(bodies, st.binary(max_size=300), st.just(b'{"discard": true}')),
            pieces=st.integers(1, 4),
            goes_away=st.sampled_from((False,) * 6 + (True,)),
        )

    def check(self, one: list[Request]) -> str:
        """Send all of it to fresh services, and look at what they keep after each request."""
        with within(SECONDS), self.poll.fresh() as poll:
            return self.loop.run_until_complete(self._sent(one, poll.shuffler(), poll.analyzer()))

    async def _sent(self, requests: list[Request], shuffler: Any, analyzer: Any) -> str:
        model = Model(self.poll)
        operator = self.poll.issuer.operator
        apps = {
            "shuffler": shuffler_service.application(shuffler, operator, NOWHERE),
            "analyzer": analyzer_service.application(analyzer, operator),
        }
        status, broken = 0, None
        async with (
            apps["shuffler"].running(),
            apps["analyzer"].running(),
        ):
            try:
                for request in requests:
                    status, body = await _answered(apps[request.service], request)
                    self._check_answer(request, status, body, model.said_to(request))
                    self._check_kept(shuffler, analyzer, model, request)
                await self._check_published(analyzer, model)
            except Broken as found:  # told once both services have ended
                broken = found
        if broken is not None:
            raise broken
        last = requests[-1].path if requests else "nothing"
        return f"{last} {status}, {model.state}, {len(model.counted)}, {model.batch is not None}"

    def _check_answer(self, request: Request, status: int, body: bytes, expected: set[int]) -> None:
        if status not in expected:
            kind = f"{request.method} {request.path} of the {request.service} answers {status}"
            raise Broken(f"{kind}, not {sorted(expected)}", body[:200])
        if status == 400 and body not in (NOT_ACCEPTED, BATCH_NOT_ACCEPTED):
            raise Broken("a refusal in other words", body[:200])

    def _check_kept(self, shuffler: Any, analyzer: Any, model: Model, request: Request) -> None:
        """What is on disk is what the model knows: nobody twice, and nothing of what was refused."""
        state, count = shuffler.store.standing()
        with shuffler.store.database.transaction(write=False) as execute:
            clients = len(shuffler.store.clients.all(execute))
        if state != model.state or clients != len(model.counted):
            raise Broken("the shuffler counts others than it should", (state, clients, request.path))
        if state == "collecting" and count != clients:
            raise Broken("the shuffler keeps other reports than it counts", (count, clients))
        if (analyzer.store.standing()[0] == "waiting") != (model.batch is None):
            raise Broken("the analyzer keeps another batch than it took", analyzer.store.standing()[0])
        if analyzer.ledger.count > (model.batch is not None):
            raise Broken("the analyzer's ledger is charged too often", analyzer.ledger.count)

    async def _check_published(self, analyzer: Any, model: Model) -> None:
        """A batch that was taken is analyzed, and charged once."""
        if model.batch is None:
            return
        for _ in range(2000):
            state, result = analyzer.store.standing()
            if state == "analyzed":
                break
            await asyncio.sleep(0.005)
        else:
            raise Broken("a batch is never analyzed")
        if result["reports"] != int.from_bytes(model.batch[32:40], "big") or analyzer.ledger.count != 1:
            raise Broken("a batch is counted or charged more than once", result)

    def close(self) -> None:
        """Close the loop."""
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


async def _answered(app: Any, request: Request) -> tuple[int, bytes]:
    """The status and the body that an application sends to a request."""
    size = -(-len(request.body) // request.pieces) or 1
    parts = [request.body[start : start + size] for start in range(0, len(request.body), size)] or [b""]
    events = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    events.append({"type": "http.disconnect"} if request.goes_away else {"type": "http.request", "body": b""})
    sent: list[Any] = []

    async def receive() -> Any:
        return events.pop(0) if events else {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        sent.append(event)

    path = request.path
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": request.method}
    scope |= {"scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""}
    scope |= {"headers": list(request.headers), "client": ("127.0.0.1", 9), "server": ("127.0.0.1", 80)}
    try:
        await app(scope, receive, send)
    except Exception as error:
        raise foreign(error) from error
    return sent[0]["status"], b"".join(event.get("body", b"") for event in sent[1:])


class _Poll:
    """A task made once, as the tests of the channel make it; its services begin anew in a folder for every input."""

    def __init__(self, folder: Path) -> None:
        spec = importlib.util.spec_from_file_location("fuzz_polls", POLLS)
        assert spec is not None
        assert spec.loader is not None
        polls = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = polls  # its dataclasses look for their module
        spec.loader.exec_module(polls)
        self.folder, self.first = folder, polls.make_poll(folder, minimum=MINIMUM)
        self.task, self.issuer = self.first.task, self.first.issuer
        polls.Poll.task, polls.Poll.issuer = self.task, self.issuer  # read once: both are worked out from files
        self.exact, self.token, self._numbers = self.first.exact, self.first.token, itertools.count()
        self._files = [path for path in folder.iterdir() if path.is_file()]
        self._copies: set[bytes] = set()

    @contextmanager
    def fresh(self) -> Iterator[Any]:
        """The task and all its keys in another folder: threads of services that have ended may still be at work."""
        here = self.folder / str(next(self._numbers))
        here.mkdir()
        for path in self._files:
            shutil.copy(path, here)
        places = (str(here / "shuffler.db"), str(here / "analyzer.db"), str(here / "ledger"))
        try:
            yield type(self.first)(here / self.first.path.name, *places)
        finally:
            shutil.rmtree(here, ignore_errors=True)

    def copied(self, client: int) -> tuple[bytes, bytes]:
        """An upload with one message twice: it is taken, and left out of the batch."""
        token = self.token(client)
        once = keys.seal(b"\0", self.task.analyzer_key, wire.inner(self.task.hash))
        report = keys.seal(once + once, self.task.shuffler_key, wire.outer(self.task.hash, token[:16]))
        self._copies.add(report)
        return token, report

    def whole(self, counted: dict[bytes, bytes]) -> int:
        """How many of the reports are left when the batch is cut."""
        return sum(report not in self._copies for report in counted.values())

    def sealed(self, uploads: list[tuple[bytes, bytes]]) -> bytes:
        """The batch that a shuffler cuts from these."""
        with self.fresh() as poll:
            shuffler = poll.shuffler()
            shuffler.accept(uploads)
            shuffler.seal()
            _, cut = shuffler.store.batch()
            shuffler.close()
        assert cut is not None
        return wire.pack_batch(wire.Batch(self.task.hash, *cut))

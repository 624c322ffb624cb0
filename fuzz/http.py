"""Whatever anybody sends over HTTP: to the API of programs and to the pages of people, in front of a real vault.

Nothing fails, everything ends, no value of the data and no path of the vault's machine is in a reply, every reply has
the headers that keep it safe, and what a request brings comes back as text, never as markup or as another site's
address. Only an answer is charged: no refusal is, nothing that is read, and nobody who has no budget.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from discreet.gateway.console.cookies import form_secret
from discreet.gateway.console.pages.every_page import PAGES
from discreet.gateway.console.site import Console
from discreet.gateway.desk.replies import SAFE
from discreet.gateway.desk.routes import ROUTES
from discreet.gateway.settings import load_settings
from fuzz.changes import ODD_NUMBERS, ODD_TEXTS, byte_changes, picked, text_changes
from fuzz.oracle import CANARY, Broken, within
from fuzz.sql import WORDS

SECONDS = 30
HOST = b"127.0.0.1:8080"
MARKUP = "<zq7x"
"""What a browser would read as an element; in a page it must be escaped."""
MOST_ASKED = 400
"""So many inputs, then a new house: accounts are suspended, tokens revoked and budgets spent meanwhile."""
PEOPLE = {"olga": "owner", "aude": "auditor", "alice": "analyst", "vera": "viewer"}
SPENDS = ("olga", "alice")
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT city, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY city",
    "SELECT SUM(cost) AS s FROM visits WHERE city = 'Haifa'",
    "SELECT note, COUNT(*) AS n FROM visits GROUP BY note",
    "SELECT price FROM prices",
)
_TEXTS = (*ODD_TEXTS, MARKUP, f'">{MARKUP}', f"';{MARKUP}", "//evil.example", "https://evil.example", "/\\evil", "=1+1")
_NAMES = (*PEOPLE, "robot", "1", "2", "0", "v1", "month", "2024-01", "json", "csv", "approve", "ask", "add", "visits")
_PLACES = re.compile(r"\{(\w+)\}")
_FIELDS = tuple(
    sorted(
        {name for route in ROUTES for name in (*route.takes, *route.asks)}
        | {"seed", "do", "within_n", "table", "by", "next", "link", "form", "find", "page", "most", "sql", "name"}
    )
)
_AS_JSON = ((b"content-type", b"application/json"),)


class Request(NamedTuple):
    """A request of somebody: of a program with a bearer token, or of a browser with a cookie and the form's secret."""

    who: str
    method: str
    path: str
    query: bytes = b""
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    """Of a form; with them, `body` is not sent."""


class Http:
    """A house, made anew after some time, and its desk."""

    def __init__(self, folder: Path) -> None:
        from tests.gateway.console import an_office

        self._office, self._folder = an_office, folder
        self._made, self._asked = 0, 0
        self._open()
        sql = tuple(json.dumps({"sql": one, "epsilon": 0.05}).encode() for one in QUESTIONS)
        asks = [Request("alice", "POST", "/v1/questions", body=one, headers=_AS_JSON) for one in sql]
        asks += [
            Request("alice", "POST", f"/v1/{verb}", body=sql[1], headers=_AS_JSON) for verb in ("plan", "describe")
        ]
        asked = (("sql", QUESTIONS[1]), ("epsilon", "0.05"), ("seed", "0" * 32), ("do", "ask"))
        pages = [Request("alice", "POST", path, fields=asked) for path in ("/ask", "/ask/plan", "/dashboards")]
        reads = [
            Request(who, "GET", _PLACES.sub("1", one.path))
            for one in (*ROUTES, *PAGES)
            if one.method == "GET"
            for who in ("olga", "alice")
        ]
        self.seeds: list[Request] = [*asks, *pages, *reads]

    def _open(self) -> None:
        self._made += 1
        self._stack, office = ExitStack(), self._office
        here = self._folder / str(self._made)
        self._house = office.SmallHouse(here, "answer_after = 0", epsilon=10**5)
        visits = pq.read_table(here / "visits.parquet")
        notes = pa.array([f"{CANARY} {number % 7}" for number in range(len(visits))])
        pq.write_table(visits.append_column("note", notes), here / "visits.parquet")
        self._tokens = {name: self._house.open(name, role, epsilon=1000) for name, role in PEOPLE.items()}
        self._house.start()
        self._stack.callback(shutil.rmtree, here, ignore_errors=True)
        self._stack.callback(self._house.stop)
        self._desk = office.Desk(self._house.socket, Console(load_settings(self._house.policy)[1]))
        self._stack.callback(self._desk.close)
        self._ledger = self._house.ledger
        self._stack.callback(self._ledger.close)

    def inputs(self) -> st.SearchStrategy[Request]:
        """Requests by the lists of routes and pages, with odd values, and known ones changed."""
        values = st.one_of(
            st.sampled_from(_TEXTS),
            st.sampled_from(_NAMES),
            st.sampled_from(QUESTIONS),
            st.sampled_from(ODD_NUMBERS).map(str),
            st.text(max_size=8),
            text_changes(QUESTIONS, WORDS),
        )
        plain = st.recursive(
            st.one_of(values, st.sampled_from(ODD_NUMBERS), st.none(), st.booleans(), st.integers(-3, 3)),
            lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(values, inner, max_size=3)),
            max_leaves=5,
        )
        names = st.one_of(st.sampled_from(_FIELDS), st.text(max_size=5))
        objects = st.dictionaries(names, plain, max_size=4).map(_json)
        fields = st.lists(st.tuples(names, values), max_size=6).map(tuple)
        queries = st.one_of(st.just(b""), fields.map(_query), st.binary(max_size=20))
        headers = st.lists(
            st.one_of(
                st.sampled_from((b"application/json", b"text/csv", b"*/*;q=0", b"text/html", b"\xff")).map(
                    lambda kind: (b"accept", kind)
                ),
                st.sampled_from((b"1", b"", b"\xff", b"x" * 300)).map(lambda key: (b"idempotency-key", key)),
                st.sampled_from((b"http://127.0.0.1:8080", b"http://evil", b"null")).map(lambda o: (b"origin", o)),
                st.sampled_from((b"same-origin", b"cross-site", b"")).map(lambda s: (b"sec-fetch-site", s)),
            ),
            max_size=2,
        ).map(tuple)
        who = st.sampled_from((*PEOPLE, *SPENDS, *SPENDS, "nobody", "a stranger"))
        places = [(one.method, one.path) for one in (*ROUTES, *PAGES) if not one.path.endswith("/rule")]

        @st.composite
        def made(draw: Any) -> Request:
            method, path = draw(picked(places))
            path = _PLACES.sub(lambda _: draw(st.one_of(values, values.map(_quoted))), path)
            method = draw(st.sampled_from((method,) * 12 + ("GET", "POST", "PUT", "HEAD", "OPTIONS", "X")))
            if method != "POST":
                return Request(draw(who), method, path, draw(queries), headers=draw(headers))
            if path.startswith("/v1"):
                body = draw(st.one_of(objects, objects, byte_changes(objects)))
                return Request(draw(who), method, path, draw(queries), body, (*_AS_JSON, *draw(headers)))
            return Request(draw(who), method, path, b"", b"", draw(headers), draw(fields))

        @st.composite
        def changed(draw: Any) -> Request:
            one = draw(picked(self.seeds))
            body = draw(byte_changes(st.just(one.body))) if one.body else b""
            more = (*one.fields, *draw(fields)) if one.fields else ()
            return one._replace(who=draw(who), body=body, fields=more, headers=(*one.headers, *draw(headers)))

        return st.one_of(made(), made(), changed())

    def check(self, one: Request) -> str:
        """Send it, and look at the reply and at the ledger."""
        self._asked += 1
        if self._asked % MOST_ASKED == 0:
            self._stack.close()
            self._open()
        before = self._ledger.count
        with within(SECONDS):
            try:
                status, headers, body = self._desk.run(self._sent(one))
            except TimeoutError:
                raise Broken("a request is never answered", one.path) from None
        found = dict(headers)
        self._check_reply(one, status, found, body)
        self._check_charges(one, status, self._ledger.count - before)
        code = re.search(rb'"code": "([a-z-]+)"|<code>([a-z-]+)</code>', body)
        return f"{one.method} {_shape(one.path)} {status} {(code[1] or code[2]).decode() if code else ''}"

    async def _sent(self, one: Request) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        token = self._tokens.get(one.who, "dsc_nobody_0123456789abcdef" if one.who == "a stranger" else "")
        headers = [(b"host", HOST), *one.headers]
        body = one.body
        if one.path.startswith(("/v1", "/healthz", "/openapi", "/mcp")):
            headers += [(b"authorization", f"Bearer {token}".encode())] if token else []
        else:
            headers += [(b"cookie", f"discreet-8080={token}".encode())] if token else []
            if one.method == "POST":
                secret = form_secret(token) if token else ""
                body = urlencode([("form", secret), *one.fields], errors="surrogatepass").encode()
                headers.append((b"content-type", b"application/x-www-form-urlencoded"))
        headers.append((b"content-length", str(len(body)).encode()))
        scope = {"type": "http", "http_version": "1.1", "method": one.method, "scheme": "http", "path": one.path}
        scope |= {"query_string": one.query, "headers": headers, "client": ("127.0.0.1", 9)}
        events, sent = [{"type": "http.request", "body": body, "more_body": False}], list[Any]()

        async def receive() -> Any:
            return events.pop() if events else {"type": "http.disconnect"}

        async def send(event: Any) -> None:
            sent.append(event)

        async with asyncio.timeout(SECONDS):
            await self._desk._transport.app(scope, receive, send)
        return sent[0]["status"], sent[0]["headers"], sent[1]["body"]

    def _check_reply(self, one: Request, status: int, headers: dict[bytes, bytes], body: bytes) -> None:
        asked = repr(one)
        if status in (500, 504):
            raise Broken(f"{one.method} {_shape(one.path)} answers {status}", body[:300])
        if missing := [name for name, _ in SAFE if name not in headers]:
            raise Broken(f"{one.method} {_shape(one.path)} is sent without headers", missing)
        if b"Traceback" in body or (str(self._folder).encode() in body and one.who != "olga"):
            raise Broken(f"{_shape(one.path)} says something of the machine", body[:300])
        if CANARY.encode() in body and CANARY not in asked:
            raise Broken(f"{_shape(one.path)} says a value of the data", body[:300])
        kind = headers.get(b"content-type", b"")
        if kind.startswith((b"text/html", b"image/svg")) and MARKUP.encode() in body:
            raise Broken(f"{_shape(one.path)} holds markup of the request", body[:300])
        place = headers.get(b"location", b"/")
        if not place.startswith(b"/") or place.startswith((b"//", b"/\\")) or b"\n" in place or b"\r" in place:
            raise Broken(f"{_shape(one.path)} sends people elsewhere", place)
        if status == 200 and one.who in ("nobody", "a stranger") and one.path.startswith("/v1"):
            route = next(route for route in ROUTES if re.fullmatch(_PLACES.sub(".*", route.path), one.path))
            if route.token:
                raise Broken(f"{route.path} answers without a token", body[:300])

    def _check_charges(self, one: Request, status: int, charged: int) -> None:
        if not charged:
            return
        where = f"{one.method} {_shape(one.path)}"
        if one.method != "POST" or status >= 400:
            raise Broken(f"{where} {status} is charged", charged)
        if one.who not in SPENDS and _shape(one.path) not in ("/v1/accounts",):
            raise Broken(f"{where} charges for {one.who}", charged)

    def close(self) -> None:
        """Stop the house."""
        self._stack.close()


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _query(fields: tuple[tuple[str, str], ...]) -> bytes:
    return urlencode(fields, errors="surrogatepass").encode()


def _shape(path: str) -> str:
    """The path without what varies."""
    for one in (*ROUTES, *PAGES):
        if re.fullmatch(_PLACES.sub(".*", one.path), path, re.DOTALL):
            return one.path
    return "elsewhere"

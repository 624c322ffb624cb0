"""The Python client of a gateway: `dp.remote(url, token=…)` is asked like a database."""

from __future__ import annotations

import ast
import copy
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from discreet import errors
from discreet.closing import Closed
from discreet.datasets.description import ColumnDescription, TableDescription, Tables
from discreet.errors import BudgetExhausted, DiscreetError, InvalidArgument, NotAllowed, ServiceUnavailable
from discreet.exact.randomness import random_integer
from discreet.exact.rational import Number, exactly
from discreet.extras import need
from discreet.gateway.oidc import is_safe
from discreet.gateway.remote_answer import RemoteAnswer
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.unit import Unit
from discreet.sql.running.explanation import Explanation
from discreet.sql.terms import QuestionOptions

TRIES = 5
LONGEST_WAIT = 30.0
"""Seconds between two tries, at most."""
PATIENCE = 600.0
"""Seconds until an answer, at most."""
ARROW = "application/vnd.apache.arrow.stream"
_REMAINS = "discreet-remains"
"""The header with what remains after an answer, and which limit is nearest, as a JSON string."""
_AGAIN = ("gateway-too-fast", "gateway-unavailable")
"""What passes by itself, so that the same request is sent again."""
_KINDS: dict[str, type[DiscreetError]] = {
    name: one for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, DiscreetError)
}


def remote(url: str, *, token: str) -> RemoteDatabase:
    """The database behind a gateway, for the account of this token: the same `sql`, `explain` and `tables`.

    The address must be https://. On this machine, http:// is allowed.
    """
    return RemoteDatabase(url, token=token)


class RemoteDatabase(Closed):
    """Tables that a gateway has, queried in SQL. No row leaves it, only released answers."""

    def __init__(self, url: str, *, token: str) -> None:
        if not isinstance(url, str) or not is_safe(url):
            raise InvalidArgument(
                'The address of a gateway begins with https://, such as "https://gateway.example.org". http:// is for '
                "this machine only, because a token could be read on the way.",
                code="remote-address",
            )
        if not isinstance(token, str) or not token or not all("!" <= mark <= "~" for mark in token):
            raise InvalidArgument(
                "token must be the text that the gateway gave, such as os.environ['DISCREET_TOKEN'].",
                code="remote-token",
            )
        self.url, self.parts = url.rstrip("/"), None
        self._httpx = need("httpx", "gateway", "dp.remote")
        self._client = self._httpx.Client(
            headers={"Authorization": f"Bearer {token}", "User-Agent": "discreet"},
            timeout=self._httpx.Timeout(PATIENCE, connect=10.0),
            follow_redirects=False,
            trust_env=url.startswith("https"),  # no proxy may read what is sent without TLS
        )

    parts: tuple[str, ...] | None
    """The parts whose rows count. None if all do."""

    def part(self, *names: str) -> RemoteDatabase:
        """The same tables, of which only the rows in these parts count, as `Database.part` does. Whether there are such
        parts is said by the gateway, when a question is asked.
        """
        if self.parts is not None:
            raise InvalidArgument(
                "This is a part already. Name all the parts at once, on the database: clinic.part(…).",
                code="part-of-part",
            )
        if not names or not all(isinstance(name, str) and name for name in names):
            raise InvalidArgument('Name at least one part, such as "2024-01".', code="part-name")
        other = copy.copy(self)
        other.parts = names
        return other

    @property
    def tables(self) -> Tables:
        """What may be asked: all tables, with the types, ranges and choices of their columns, who is protected, and
        what remains of the budget.
        """
        found = self._json("GET", "/v1/tables")
        try:
            described = {one["name"]: _table(one) for one in found["tables"]}
        except (KeyError, TypeError, ValueError, AttributeError, SyntaxError):
            raise _no_gateway(self.url) from None
        return Tables(described, str(found.get("remains", "")))

    def sql(
        self,
        question: str,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Mapping[str, float] | None = None,
        confidence: float = 0.95,
        weights: Mapping[str, Number] | None = None,
        bounds: Mapping[str, int] | None = None,
        key: str | None = None,
    ) -> RemoteAnswer:
        """Answer a question with noise, as `Database.sql` does. The errors of the answer hold with this confidence.

        If the connection is lost, the same request is sent again with the same key, and is charged once.
        """
        options = QuestionOptions(
            epsilon=epsilon, delta=delta, within=within, confidence=confidence, weights=weights, bounds=bounds
        )
        headers = {"Accept": ARROW, "Idempotency-Key": f"{random_integer(128):032x}" if key is None else _key(key)}
        return self._answer("POST", "/v1/questions", content=_asked(question, options, self.parts), headers=headers)

    def again(self, receipt: str) -> RemoteAnswer:
        """An answer that was bought before, by its receipt, for free."""
        return self._answer("GET", f"/v1/questions/{_quoted(receipt)}", headers={"Accept": ARROW})

    def explain(self, question: str, **options: Unpack[QuestionOptions]) -> Explanation:
        """What a question would cost and how large its error may be, with the options of `sql`. Spends nothing."""
        found = self._json("POST", "/v1/plan", content=_asked(question, options, self.parts))
        text = found.pop("text", None)
        explanation = Explanation(text if isinstance(text, str) else json.dumps(found, ensure_ascii=False, indent=2))
        explanation.data = found
        return explanation

    def budget(self) -> dict[str, Any]:
        """What remains of the budget, of the day's and of the session's, and about how many questions that is."""
        return self._json("GET", "/v1/budget")

    def history(self, first: int | None = None, last: int | None = None) -> list[dict[str, Any]]:
        """The questions of this account, oldest first: each with its number, receipt, text and options."""
        asked = {name: str(number) for name, number in (("first", first), ("last", last)) if number is not None}
        found = self._json("GET", "/v1/history", params=asked).get("questions")
        if not isinstance(found, list):
            raise _no_gateway(self.url)
        return found

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __repr__(self) -> str:
        return f"<RemoteDatabase: {self.url}{'' if self.parts is None else '; in ' + ', '.join(self.parts)}>"

    def _repr_html_(self) -> str:
        return self.tables._repr_html_()

    # --- requests -------------------------------------------------------------------------------------------

    def _answer(self, method: str, path: str, **given: Any) -> RemoteAnswer:
        reply = self._send(method, path, **given)
        found = RemoteAnswer.read(reply.content, _remains_in(reply.headers))
        if found is None:
            raise _no_gateway(self.url)
        return found

    def _json(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        found = _object(self._send(method, path, **given).content)
        if found is None:
            raise _no_gateway(self.url)
        return found

    def _send(self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **given: Any) -> Any:
        """The reply to a request, which is sent again if the connection fails or the gateway asks for patience."""
        kinds = {"Content-Type": "application/json"} if "content" in given else {}
        wait = 0.2
        error: DiscreetError = _unreachable(self.url)
        for number in range(TRIES):
            if number:
                time.sleep(min(wait, LONGEST_WAIT))
            wait = 0.2 * 2**number
            try:
                reply = self._client.request(method, self.url + path, headers={**kinds, **(headers or {})}, **given)
            except self._httpx.HTTPError:
                error = _unreachable(self.url)
                continue
            if reply.status_code == 200:
                return reply
            error = _error_in(reply, self.url)
            if error.code not in _AGAIN:
                break
            told = reply.headers.get("retry-after", "")
            wait = max(wait, float(told)) if told.isdecimal() and len(told) < 6 else wait
        raise error


# --- errors -------------------------------------------------------------------------------------------------


def _error_in(reply: Any, url: str) -> DiscreetError:
    """The error that the library would have raised."""
    said = _object(reply.content)
    if said is None or not isinstance(said.get("code"), str) or not isinstance(said.get("detail"), str):
        return _no_gateway(url)
    kind = _KINDS.get(str(said.get("kind")))
    if kind is None or kind is errors.MissingExtra:
        kind = NotAllowed if reply.status_code < 500 else ServiceUnavailable
    if kind is BudgetExhausted:
        more = said.get("more")
        return BudgetExhausted(
            said["detail"],
            remaining=_guarantee(more.get("remaining")) if isinstance(more, dict) else None,
            code=said["code"],
        )
    return kind(said["detail"], code=said["code"])


def _guarantee(given: Any) -> Guarantee | None:
    try:
        return Approx(epsilon=given["epsilon"], delta=given.get("delta", 0))
    except (TypeError, KeyError, AttributeError, InvalidArgument):
        return None


def _unreachable(url: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"The gateway at {url} does not respond. Check the address, and that it runs. A question that is asked again "
        "with the same key is charged once.",
        code="remote-unreachable",
    )


def _no_gateway(url: str) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"What responds at {url} is not a gateway of this version. Check the address.", code="remote-not-a-gateway"
    )


# --- what is sent and received ------------------------------------------------------------------------------


def _remains_in(headers: Mapping[str, str]) -> str:
    """What remains in the words of the gateway. Empty if it does not say it."""
    try:
        found = json.loads(headers.get(_REMAINS, '""'))
    except (ValueError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _asked(question: str, options: QuestionOptions, parts: Sequence[str] | None) -> bytes:
    """A question as JSON. Numbers mean the same decimals there."""
    if not isinstance(question, str):
        raise InvalidArgument("A question is a text in SQL, such as SELECT COUNT(*) FROM visits.", code="wrong-type")
    sent = {name: _plain(value, name) for name, value in options.items() if value is not None}
    sent |= {} if parts is None else {"parts": list(parts)}
    try:
        return json.dumps({"sql": question, **sent}, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise InvalidArgument(
            "The question has half of a character in it. Write it again.", code="wrong-type"
        ) from None


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InvalidArgument(f'{name} must have names of columns as keys, such as {{"n": 50}}.', code="wrong-type")
        return {key: _plain(one, name) for key, one in value.items()}
    exact = exactly(value, name)
    if exact.denominator == 1:
        return int(exact)
    if exactly(float(exact)) != exact:
        raise InvalidArgument(
            f"{name} must be a number with at most 15 decimal digits, such as 0.1: it is sent as a decimal.",
            code="remote-number",
        )
    return float(exact)


def _key(key: Any) -> str:
    if not isinstance(key, str) or not 0 < len(key) <= 200 or not all(" " <= mark <= "~" for mark in key):
        raise InvalidArgument(
            "key must be a text of 1 to 200 ASCII characters, such as the id of a request.", code="ledger-key"
        )
    return key


def _quoted(receipt: Any) -> str:
    from urllib.parse import quote

    if not isinstance(receipt, str) or not receipt:
        raise InvalidArgument("receipt must be the text that an answer has as its receipt.", code="wrong-type")
    return quote(receipt, safe="")


def _table(found: Mapping[str, Any]) -> TableDescription:
    columns: Sequence[Mapping[str, Any]] = found["columns"]
    return TableDescription(
        name=found["name"],
        protects=None if found["protects"] is None else _unit(found["protects"]),
        columns={one["name"]: _column(one) for one in columns},
        through=found.get("through"),
        rows_per_person=found.get("rows_per_person"),
        groups_per_person=found.get("groups_per_person"),
        rows_per_group=found.get("rows_per_group"),
    )


def _column(found: Mapping[str, Any]) -> ColumnDescription:
    choices, between = found.get("choices"), found.get("between")
    return ColumnDescription(
        name=found["name"],
        type=found["type"],
        between=tuple(between) if isinstance(between, list) else between,
        choices=None if choices is None else tuple(choices),
        other=found.get("other"),
        identifies_people=found.get("identifies_people") is True,
    )


def _unit(text: str) -> Unit:
    """The unit that is written as `person('id')` or `row(neighbors='replace')`."""
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call):
        raise ValueError
    columns = [ast.literal_eval(one) for one in call.args]
    return Unit(*columns, **{str(one.arg): ast.literal_eval(one.value) for one in call.keywords})

"""The Python client: the same answers, errors and words as a database, over a connection that may fail."""

from __future__ import annotations

import contextlib
import json
import logging
import traceback
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import (
    BudgetExhausted,
    EngineFailed,
    InvalidArgument,
    LedgerUnavailable,
    NotAllowed,
    QueryError,
    ServiceUnavailable,
)
from discreet.gateway import RemoteAnswer, RemoteDatabase, remote
from discreet.gateway.formats import FACTS, LONGEST_BESIDE, MORE_NOTES, TYPES, answer_format, facts_beside
from discreet.gateway.frames import BadFrame, Frame, refusal
from discreet.sql.running.written import json_object, json_text

from ..refusing import refuses
from .desk.a_desk import TOKEN, Running, desk, refused, said

CITIES = ["Rome", "Oslo", "=1+1"]
POLICY = {
    "ledger": {"path": ":memory:", "epsilon": 100, "delta": 1e-3},
    "unit": {"person": "id"},
    "tables": {
        "visits": {
            "source": {
                "id": [number % 40 for number in range(120)],
                "city": [CITIES[number % 3] for number in range(120)],
                "year": [2020 + number % 2 for number in range(120)],
                "cost": [float(number) for number in range(120)],
            },
            "version": "1",
            "rows_per_person": 4,
            "columns": {
                "id": {"type": "integer"},
                "city": {"choices": CITIES},
                "year": {"choices": [2020, 2021]},
                "cost": {"between": [0, 100]},
            },
        },
        "cities": {"source": {"city": CITIES, "people": [3, 1, 2]}, "public": True},
    },
}
QUESTIONS = {
    "groups": "SELECT city, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY city",
    "one": "SELECT COUNT(*) FROM visits",
    "quantile": "SELECT MEDIAN(cost) AS middle FROM visits",
    "levels": "SELECT city, year, COUNT(*) AS n FROM visits GROUP BY ROLLUP (city, year)",
    "combined": "SELECT a.n - b.n AS d FROM (SELECT COUNT(*) AS n FROM visits) a, "
    "(SELECT COUNT(*) AS n FROM visits WHERE cost > 50) b",
    "public": "SELECT city, people FROM cities ORDER BY city",
    "listed": "SELECT DISTINCT city FROM visits",
    "empty": "SELECT city, COUNT(*) AS n FROM visits GROUP BY city LIMIT 0",
    "mode": "SELECT MODE(city) AS city FROM visits",
}


@pytest.fixture(scope="module")
def database() -> Iterator[Any]:
    with contextlib.closing(dp.connect(POLICY)) as opened:
        yield opened


def answering(database: Any, answers: dict[str, Any]) -> Callable[[Frame], Frame]:
    """What the vault does with a question, without its accounts and its clock."""

    def ask(frame: Frame) -> Frame:
        given = dict(frame.arguments)
        form, sql = given.pop("format", "json"), given.pop("sql")
        try:
            answer = database.sql(sql, **given)
        except dp.DiscreetError as error:
            return refusal(error)
        answers[sql] = answer
        kind, body = answer_format(answer, form, given.get("confidence", 0.95))
        return said(body, kind)

    return ask


@pytest.fixture(scope="module")
def running(database: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with desk(tmp_path_factory.mktemp("desk")) as found:
        yield found


@pytest.fixture
def answers(running: Running, database: Any) -> dict[str, Any]:
    """What the vault answered, by the text of the question."""
    found: dict[str, Any] = {}
    running.frames.clear()
    running.verbs.clear()
    running.verbs["ask"] = answering(database, found)
    return found


@pytest.fixture
def client(running: Running, answers: dict[str, Any]) -> Iterator[RemoteDatabase]:
    with contextlib.closing(dp.remote(running.url, token=TOKEN)) as opened:
        yield opened


# --- answers ------------------------------------------------------------------------------------------------


@pytest.mark.some_quick(5)
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_an_answer_is_the_same_here_and_there(question: str, client: Any, answers: dict[str, Any]) -> None:
    cost = {} if "cities" in question or "DISTINCT" in question else {"epsilon": 1}
    found = client.sql(question, **cost)
    there = answers[question]
    assert isinstance(found, dp.sql.Answer)
    assert found.table.equals(there.table)
    assert (found.names, found.noisy, found.notes, found._chosen) == (
        *(there.names, there.noisy, there.notes, there._chosen),
    )
    assert (found.cost, found.guarantee, found.receipt) == (there.cost, there.guarantee, there.receipt)
    assert (found.remaining, found.replayed) == (there.remaining, there.replayed)
    assert (found.clipped, found.confidence, found.free) == (there.clipped, 0.95, there.free)
    assert found.columns == there.columns
    assert (str(found), repr(found)) == (str(there), repr(there))
    assert found._repr_html_() == there._repr_html_()
    assert found.as_json() == there.as_json()
    assert list(found) == list(there)
    assert pa.table(found).equals(there.table)
    assert {name: list(rows) for name, rows in found.summed.items()} == {
        name: list(rows) for name, rows in there.summed.items()
    }


@pytest.mark.slow
def test_an_answer_as_frames(client: Any) -> None:
    found = client.sql(QUESTIONS["groups"], epsilon=1)
    assert found.to_pandas().columns.tolist() == found.to_polars().columns == found.table.column_names
    assert found.plot(style="dark") is not None


def test_levels(client: Any, answers: dict[str, Any]) -> None:
    found = client.sql(QUESTIONS["levels"], epsilon=1)
    there = answers[QUESTIONS["levels"]]
    for keys in (["city"], ["CITY", "year"], "city", []):
        assert found.cube(keys).equals(there.cube(keys))
    for keys in (["year"], ["cost"], [5]):
        with refuses(InvalidArgument, "cube-keys"):
            found.cube(keys)
    with refuses(InvalidArgument, "cube-keys"):
        client.sql(QUESTIONS["one"], epsilon=1).cube([])


def test_the_confidence_of_errors(client: Any, answers: dict[str, Any]) -> None:
    found = client.sql(QUESTIONS["one"], epsilon=1, confidence=0.5)
    there = answers[QUESTIONS["one"]]
    assert found.table.equals(there.with_errors(0.5))
    assert found.with_errors(0.5) is found.table
    assert found.as_json() == there.as_json(0.5)
    assert "50%" in found._repr_html_()
    with refuses(InvalidArgument, "remote-confidence"):
        found.with_errors(0.95)


def test_a_repeated_question_is_the_same_answer(client: Any) -> None:
    first, second = (client.sql(QUESTIONS["one"] + " WHERE cost < 7", epsilon=1) for _ in range(2))
    assert (first.replayed, second.replayed) == (False, True)
    assert first.table.equals(second.table)
    assert "answered before" in repr(second)


def test_an_answer_in_test_mode_says_so(client: Any, database: Any, running: Running) -> None:
    ask = running.verbs["ask"]

    def without_noise(frame: Frame) -> Any:
        with dp.testing.no_noise():
            return ask(frame)  # type: ignore[operator]

    running.verbs["ask"] = without_noise
    found = client.sql(QUESTIONS["one"] + " WHERE cost < 8", epsilon=1)
    assert found.not_private
    assert "NOT PRIVATE" in str(found)


def test_the_options_of_a_question_arrive(client: Any, running: Running) -> None:
    running.verbs["ask"] = refused("NotAllowed", "not-allowed")
    with refuses(NotAllowed, "not-allowed"):
        client.sql(
            "SELECT 1",
            epsilon=Decimal("0.1"),
            delta=Fraction(1, 1000),
            confidence=0.9,
            key="k",
            within={"n": 5},
            weights={"n": Fraction(1, 2)},
            bounds={"rows_per_person": 3},
        )
    assert running.frames[-1].arguments == {
        "sql": "SELECT 1",
        "epsilon": 0.1,
        "delta": 0.001,
        "confidence": 0.9,
        "key": "k",
        "format": "arrow",
        "within": {"n": 5},
        "weights": {"n": 0.5},
        "bounds": {"rows_per_person": 3},
    }


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"epsilon": Fraction(1, 3)}, "remote-number"),
        ({"epsilon": "1"}, "not-a-number"),
        ({"epsilon": True}, "not-a-number"),
        ({"epsilon": float("nan")}, "not-a-number"),
        ({"within": {1: 5}}, "wrong-type"),
        ({"within": [5]}, "not-a-number"),
        ({"key": ""}, "ledger-key"),
        ({"key": 201 * "a"}, "ledger-key"),
        ({"key": "a\nb"}, "ledger-key"),
    ],
)
def test_bad_options_are_refused_before_anything_is_sent(
    options: dict[str, Any], code: str, client: Any, running: Running
) -> None:
    with refuses(InvalidArgument, code):
        client.sql("SELECT 1", **options)
    for question in (None, "\ud800"):
        with refuses(InvalidArgument, "wrong-type"):
            client.sql(question, epsilon=1)
    assert running.frames == []


# --- what else may be asked ---------------------------------------------------------------------------------


def test_tables(client: Any, running: Running, database: Any) -> None:
    tables = [
        {
            "name": one.name,
            "protects": None if one.protects is None else repr(one.protects),
            "through": one.through,
            "rows_per_person": one.rows_per_person,
            "groups_per_person": one.groups_per_person,
            "rows_per_group": one.rows_per_group,
            "columns": [vars(column) for column in one.columns.values()],
        }
        for one in database.tables.values()
    ]
    content = {"tables": tables, "remains": database.tables.remains}
    running.verbs["tables"] = said(json.dumps(content, default=str).encode())
    assert client.tables == database.tables
    assert str(client.tables) == str(database.tables)
    assert client._repr_html_() == database._repr_html_()
    assert repr(client) == f"<RemoteDatabase: {running.url}>"


def test_explain(client: Any, running: Running, database: Any) -> None:
    there = database.explain(QUESTIONS["groups"], epsilon=1)
    running.verbs["plan"] = said(json_text({**there.data, "text": str(there)}).encode())
    found = client.explain(QUESTIONS["groups"], epsilon=1)
    assert (found, found.data) == (there, json.loads(json.dumps(there.data)))
    assert running.frames[-1].arguments == {"sql": QUESTIONS["groups"], "epsilon": 1}


def test_budget_history_and_receipts(client: Any, running: Running, answers: dict[str, Any]) -> None:
    bought = client.sql(QUESTIONS["one"], epsilon=1)
    running.verbs |= {"budget": said(b'{"about": "7"}'), "history": said(b'{"questions": [{"number": 2}]}')}
    assert client.budget() == {"about": "7"}
    assert client.history(2, 9) == [{"number": 2}]
    assert running.frames[-1].arguments == {"first": 2, "last": 9}
    running.verbs["again"] = said(answer_format(answers[QUESTIONS["one"]], "arrow", 0.95)[1])
    assert client.again(bought.receipt).table.equals(bought.table)
    assert running.frames[-1].arguments == {"receipt": bought.receipt, "format": "arrow"}
    with refuses(InvalidArgument, "wrong-type"):
        client.again(None)


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "code", "expected"),
    [
        ("QueryError", "sql-unknown-table", QueryError),
        ("InvalidArgument", "out-of-range", InvalidArgument),
        ("NotAllowed", "gateway-login", NotAllowed),
        ("NotBought", "gateway-not-bought", NotAllowed),
        ("LedgerUnavailable", "ledger-unavailable", LedgerUnavailable),
        ("ServiceUnavailable", "gateway-busy", ServiceUnavailable),
        ("EngineFailed", "gateway-late", EngineFailed),
        ("BudgetExhausted", "budget-exhausted", BudgetExhausted),
    ],
)
def test_errors_are_those_of_the_library(kind: str, code: str, expected: Any, client: Any, running: Running) -> None:
    running.verbs["ask"] = refused(kind, code, "What is wrong. What to write.", remaining={"epsilon": 0.5})
    with refuses(expected, code) as found:
        client.sql("SELECT 1", epsilon=1)
    assert type(found.value) is expected
    assert str(found.value) == "What is wrong. What to write."
    if isinstance(found.value, BudgetExhausted):
        assert found.value.remaining == dp.Approx(epsilon=0.5)
    assert len(running.frames) == 1


def test_real_errors_have_the_same_words(client: Any, database: Any) -> None:
    for question in ("SELECT COUNT(*) FROM nothing", "SELECT cost FROM visits", "SELEC"):
        with pytest.raises(dp.DiscreetError) as here:
            database.sql(question, epsilon=1)
        with pytest.raises(dp.DiscreetError) as there:
            client.sql(question, epsilon=1)
        assert (type(there.value), there.value.code, str(there.value)) == (
            *(type(here.value), here.value.code, str(here.value)),
        )


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that would have been waited."""
    waited: list[float] = []
    monkeypatch.setattr(remote.time, "sleep", waited.append)  # type: ignore[attr-defined]
    return waited


def test_a_lost_reply_is_asked_for_with_the_same_key(
    client: Any, running: Running, answers: dict[str, Any], database: Any, no_waiting: list[float]
) -> None:
    ask, lost = running.verbs["ask"], [2]
    before = database.ledger.count

    def sometimes(frame: Frame) -> Any:
        reply = ask(frame)  # type: ignore[operator]
        lost[0] -= 1
        if lost[0] >= 0:
            raise BadFrame  # it was answered and charged, and the connection is gone
        return reply

    running.verbs["ask"] = sometimes
    found = client.sql("SELECT COUNT(*) AS lost FROM visits WHERE cost > 3", epsilon=1)
    assert database.ledger.count == before + 1
    assert found.replayed
    assert len({frame.arguments["key"] for frame in running.frames}) == 1
    assert (len(running.frames), len(no_waiting)) == (3, 2)
    client.sql(QUESTIONS["one"], epsilon=1)
    assert len({frame.arguments["key"] for frame in running.frames}) == 2


def test_too_fast_is_asked_again_after_the_time_that_was_said(
    client: Any, running: Running, no_waiting: list[float]
) -> None:
    running.verbs["budget"] = refused("NotAllowed", "gateway-too-fast", "Too many.", retry_after=7)
    with refuses(NotAllowed, "gateway-too-fast"):
        client.budget()
    assert no_waiting == [7] * (remote.TRIES - 1)  # type: ignore[attr-defined]


def test_nobody_there(no_waiting: list[float]) -> None:
    nowhere = dp.remote("http://127.0.0.1:1", token=TOKEN)
    with refuses(ServiceUnavailable, "remote-unreachable"):
        nowhere.sql("SELECT 1", epsilon=1)
    assert no_waiting == sorted(no_waiting)
    assert len(no_waiting) == remote.TRIES - 1  # type: ignore[attr-defined]
    nowhere.close()


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b"{}", b'{"tables": 5}', b'{"tables": [{"name": "a"}]}', b'{"questions": 5}']
)
def test_something_else_there(body: bytes, client: Any, running: Running) -> None:
    running.verbs |= {verb: said(body, "text/html") for verb in ("ask", "tables", "history")}
    for ask in (lambda: client.sql("SELECT 1", epsilon=1), lambda: client.tables, lambda: client.history()):
        with refuses(ServiceUnavailable, "remote-not-a-gateway"):
            ask()


def test_an_arrow_stream_without_the_facts_is_no_answer(database: Any) -> None:
    answer = database.sql(QUESTIONS["groups"], epsilon=1)
    _, stream = answer_format(answer, "arrow", 0.95)
    table = pa.ipc.open_stream(stream).read_all()
    facts = json.loads(table.schema.metadata[FACTS])
    assert RemoteAnswer.read(stream) is not None
    wrong = [{}, {FACTS: b"{"}, {FACTS: b"[]"}]
    for name in facts:
        wrong.append({FACTS: json.dumps({key: value for key, value in facts.items() if key != name}).encode()})
    wrong.append({FACTS: json.dumps(facts | {"noisy": ["city"]}).encode()})
    wrong.append({FACTS: json.dumps(facts | {"exact": {"cost": "{}", "whole": "{}"}}).encode()})
    accepted = {"guarantee", "remaining", "left_now", "clipped"}  # they are not needed to show an answer
    for metadata in wrong:
        written = pa.BufferOutputStream()
        with pa.ipc.new_stream(written, table.schema.with_metadata(metadata)) as writer:
            writer.write_table(table)
        missing = set(facts) - set(json.loads(metadata.get(FACTS, b"[]"))) if metadata.get(FACTS) != b"{" else {"x"}
        assert (RemoteAnswer.read(written.getvalue().to_pybytes()) is not None) == bool(
            len(missing) == 1 and missing & accepted
        )
    assert RemoteAnswer.read(stream[:50]) is None


# --- addresses and secrets ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["http://gateway.example.org", "ftp://127.0.0.1", "gateway", "", None, "https://a:b@gateway.example.org"]
)
def test_an_address_without_tls_is_refused(url: Any) -> None:
    with refuses(InvalidArgument, "remote-address"):
        dp.remote(url, token=TOKEN)


@pytest.mark.parametrize("token", ["", None, "a b", "ä", "a\r\nX: y", 5])
def test_what_cannot_be_a_token_is_refused(token: Any) -> None:
    with refuses(InvalidArgument, "remote-token"):
        dp.remote("https://gateway.example.org", token=token)


def test_the_token_is_nowhere(
    client: Any, running: Running, no_waiting: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    running.verbs["ask"] = refused("NotAllowed", "gateway-login", "No.")
    nowhere = dp.remote("http://127.0.0.1:1", token=TOKEN)
    shown = [repr(client), str(client), repr(vars(client)), repr(vars(client._client))]
    for one in (client, nowhere):
        with pytest.raises(dp.DiscreetError) as found:
            one.sql("SELECT 1", epsilon=1)
        lines = traceback.TracebackException.from_exception(found.value, capture_locals=True).format()
        shown += [line for line in lines if "tests/" not in line]
    assert TOKEN not in "".join(shown) + caplog.text


# --- other formats ------------------------------------------------------------------------------------------


def test_json_says_whether_it_was_answered_before(database: Any) -> None:
    said = [json_object(database.sql(f"{QUESTIONS['one']} WHERE cost < 9", epsilon=1), 0.95) for _ in range(2)]
    assert [one["replayed"] for one in said] == [False, True]
    assert said[0]["remaining"] == said[1]["remaining"]


def test_what_is_said_beside_csv_fits_a_header(database: Any) -> None:
    answer = database.sql(f"{QUESTIONS['one']} WHERE city = 'Kölnn'", epsilon=1)
    said = facts_beside(answer)
    assert said.isascii()
    assert said.isprintable()
    assert json.loads(said) == {
        "receipt": answer.receipt,
        "replayed": False,
        "not_private": False,
        "notes": [*answer.notes],
    }
    assert any("Kölnn" in note for note in answer.notes)
    answer.notes = ("first", *answer.notes * 99)
    short = facts_beside(answer)
    assert len(short) <= LONGEST_BESIDE
    assert (json.loads(short)["notes"][0], json.loads(short)["notes"][-1]) == ("first", MORE_NOTES)
    answer.notes = ("a" * LONGEST_BESIDE,)
    assert json.loads(facts_beside(answer))["notes"] == [MORE_NOTES]


def test_json_and_csv(database: Any) -> None:
    answer = database.sql(QUESTIONS["groups"].replace("AS n", 'AS "+n"'), epsilon=1)
    kind, body = answer_format(answer, "json", 0.9)
    assert (kind, json.loads(body)) == (TYPES["json"], json.loads(json_text(json_object(answer, 0.9))))
    assert json.loads(body)["notes"] == [*answer.notes]
    assert json.loads(body)["clipped"] == answer.clipped
    kind, body = answer_format(answer, "csv", 0.95)
    lines = body.decode().split("\r\n")
    assert kind == "text/csv; charset=utf-8"
    assert lines[0] == "city,'+n,'+n_error,cost,cost_error"
    assert any(line.startswith("'=1+1,") for line in lines)
    with refuses(InvalidArgument, "not-an-option"):
        answer_format(answer, "xml", 0.95)

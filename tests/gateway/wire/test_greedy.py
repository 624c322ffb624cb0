"""One client over the PostgreSQL protocol that wants all the time or all the memory of the desk."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator

import pytest

from discreet.errors import InvalidArgument, QueryError
from discreet.gateway.frames import LONGEST_HEADER, LONGEST_REQUEST, Frame, Link, serve_frames
from discreet.gateway.wire.format.values import Column, Refusal
from discreet.gateway.wire.portals import MOST_CELLS, Kept, Portal, Prepared, cells_in
from discreet.gateway.wire.text.parameters import Columns, parameters_of
from discreet.gateway.wire.text.statements import read_statements
from discreet.sql.reading.parse import parse_query

from .wire_vault import Client, NoCatalog

COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client()
    yield made
    made.close()


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("word", ["DATE", "STRUCT", "DECIMAL", "CHAR", "UNION", "OBJECT", "TIME"])
def test_types_inside_types_are_not_read_again_and_again(word):
    # each level doubled the time of the parser: two hundred bytes would have kept a thread busy for days
    deep, long = f"SELECT {f'{word}(' * 60}1{')' * 60}", f"SELECT {f'{word}(' * 8}{'1,' * 30_000}1{')' * 8} FROM visits"
    for text in (deep, long):
        with pytest.raises(Refusal, match="nested too deeply") as refused:
            read_statements(text, lambda _: False)
        assert refused.value.state == "54001"
        with pytest.raises(QueryError, match="nested too deeply") as problem:
            parse_query(text)
        assert problem.value.code == "sql-too-complex"


def test_some_types_inside_types_are_read():
    [one] = read_statements("SELECT DATE(DATE(DATE(day))), COUNT(*) FROM visits GROUP BY 1", lambda _: False)
    assert one.what == "query"


def test_the_work_for_a_parameter_grows_with_its_uses_and_not_their_square():
    tables = {"tables": [{"name": "visits", "columns": [{"name": "cost", "type": "number", "between": [0, 100]}]}]}

    def calls(uses):
        """How many functions are called to find the type of a parameter that is used so often."""
        [one] = read_statements(f"{COUNT} WHERE {' OR '.join(['cost=$1'] * uses)}", lambda _: False)
        count = 0

        def counting(*_):
            nonlocal count
            count += 1

        sys.setprofile(counting)
        try:
            found = parameters_of(one, (), Columns(tables))
        finally:
            sys.setprofile(None)
        assert [each.type for each in found] == ["float8"]
        return count

    calls(10)  # what is remembered for the next time
    assert calls(800) < 3 * calls(400)


def test_errors_and_dates_are_not_written_without_end(client):
    assert client.refused(f"SELECT COUNT(*) AS n{',low(n)' * 101} FROM visits").state == "0A000"
    assert len(client.rows(f"SELECT COUNT(*) AS n{',low(n)' * 100} FROM visits")[0]) == 101
    assert client.vault.charges == 1


@pytest.mark.parametrize("number", ["1e-99999999", "0e-99999999", "1e-9999999999999"])
def test_a_short_number_is_not_written_as_a_long_text(client, number):
    client.query(f"PREPARE p (numeric) AS {COUNT} WHERE cost > $1")
    assert client.refused(f"EXECUTE p ('{number}')").state == "22P02"
    assert not client.vault.charges
    assert client.query("EXECUTE p ('1e-9')")[0].rows


def test_a_long_value_that_is_used_often_is_not_written_out(client):
    text = f"{COUNT} WHERE city IN ({','.join(['$1'] * 900)})"
    assert client.refused(text, "x" * 500_000).state == "54000"
    assert [verb for verb, _ in client.vault.calls if verb in ("ask", "describe")] == []


def test_a_request_that_is_too_long_does_not_end_the_link_of_all(tmp_path):
    async def echo(frame: Frame) -> Frame:
        await asyncio.sleep(0.1)
        return Frame({"ok": True})

    async def ask() -> None:
        server = await serve_frames(tmp_path / "vault", echo, {os.getuid()})
        link = Link(tmp_path / "vault")
        other = asyncio.ensure_future(link.call("me"))
        await asyncio.sleep(0.02)
        for long in ({"sql": "x" * LONGEST_HEADER}, b"x" * (LONGEST_REQUEST + 1)):
            with pytest.raises(InvalidArgument, match="too long"):
                await link.call("ask", None, long)
        assert (await other).header["ok"]
        await link.close()
        server.close()

    asyncio.run(ask())


def test_a_reply_that_is_too_long_does_not_end_the_link_of_all(tmp_path):
    async def tell(frame: Frame) -> Frame:
        if frame.header["verb"] == "me":
            await asyncio.sleep(0.1)
            return Frame({"ok": True})
        return Frame({"ok": False, "kind": "QueryError", "code": "x", "more": {"instead": "x" * LONGEST_HEADER}})

    async def ask() -> None:
        server = await serve_frames(tmp_path / "vault", tell, {os.getuid()})
        link = Link(tmp_path / "vault")
        other = asyncio.ensure_future(link.call("me"))
        await asyncio.sleep(0.02)
        assert (await link.call("plan")).header["code"] == "gateway-body"
        assert (await other).header["ok"]
        await link.close()
        server.close()

    asyncio.run(ask())


def test_settings_of_other_programs_have_an_end(client):
    for name, local in (("x.discreet.a", ""), ("my.a", "LOCAL ")):
        client.query("BEGIN")
        texts = "; ".join(f"SET {local}{name}{n} = 'x'" for n in range(210))
        assert client.refused(texts).state == "53400"
        client.query("ROLLBACK")


def test_what_was_set_last_counts_in_a_transaction_too(client):
    client.query("BEGIN; SET LOCAL discreet.epsilon = 5; SET discreet.within = 'n=50'")
    assert client.session.settings.how_much() == {"within": "n=50"}
    client.query("SET LOCAL discreet.epsilon = 5; SET discreet.epsilon = 0.2")
    assert client.session.settings.how_much() == {"epsilon": "0.2"}


@pytest.mark.slow
def test_long_statements_are_not_kept_without_end(client):
    long = "/*" + "x" * 90_000 + "*/"
    client.query("BEGIN")
    for n in range(3):
        client.query(f"PREPARE p{n} AS {COUNT} {long}")
    assert client.refused(f"PREPARE p4 AS {COUNT} {long}").state == "54000"
    client.query("ROLLBACK; BEGIN")
    assert client.refused(f"DECLARE c CURSOR FOR {COUNT} {long}").state == "54000"
    client.query("ROLLBACK; DEALLOCATE ALL")
    client.query(f"PREPARE p4 AS {COUNT} {long}")


class LongTexts(NoCatalog):
    """A catalog whose answers are two long texts."""

    def run(self, query, values, **given):
        return (Column("?column?", "text"),), [("x" * 10_000_000,), ("x",)]


def test_cursors_keep_no_more_than_fits():
    client = Client(catalog=LongTexts())
    client.query("BEGIN")
    client.query("; ".join(f"DECLARE c{n} CURSOR FOR SELECT 1" for n in range(9)))
    for n in range(2):
        client.query(f"FETCH 1 FROM c{n}")
    assert client.refused("FETCH 1 FROM c2").state == "54000"
    client.close()


def test_long_texts_in_portals_count_as_many_values():
    rows = [("x" * 30_000_000, 1)]
    assert cells_in(rows) > MOST_CELLS
    kept, other = Kept(), Portal(Prepared(None))
    kept.bind("one", Portal(Prepared(None), cells=cells_in(rows)))
    with pytest.raises(Refusal, match="not fetched"):
        kept.check_room(other)

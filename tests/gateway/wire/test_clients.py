"""Real clients: psql and psycopg against the server, with a made-up session behind it."""

from __future__ import annotations

import asyncio
import os
import shutil
import struct
import subprocess
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from discreet.gateway.wire import connection as connections
from discreet.gateway.wire.cancels import Cancels

from ...conftest import Install
from . import raw
from .a_wire import eventually, made_up_rows
from .conftest import Doors


@pytest.fixture
def psql(doors: Doors, install: Install) -> Any:
    install(lambda: shutil.which("psql"), "postgresql-client")

    def run(*words: str, **given: Any) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PGCONNECT_TIMEOUT": "20", "PSQLRC": "/dev/null", "PGAPPNAME": "tests"}
        command = ["psql", "-X", "-v", "VERBOSITY=verbose", doors.dsn(), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, **given)

    return run


def test_psql_prints_rows_notices_and_errors(doors: Doors, psql: Any) -> None:
    found = psql("-A", "-t", "-c", "rows 2; notice", "-c", "fail")
    assert found.stdout.splitlines() == ["0|0|city,\t0", "1|0.5|city,\t1", "0|0|city,\t0"]
    assert "NOTICE:  00000: It cost nothing." in found.stderr
    assert "ERROR:  42P01: No such table." in found.stderr
    assert "HINT:  Ask about another." in found.stderr
    assert doors.log.opened[0]["options"]["application_name"] == "tests"


def test_psql_copies_out(psql: Any, tmp_path: Path) -> None:
    assert psql("-c", "copy csv 3").stdout == 'n,x,city\n0,0,"city,\t0"\n1,0.5,"city,\t1"\n2,1,\n'
    assert psql("-c", "copy text 3").stdout == "0\t0\tcity,\\t0\n1\t0.5\tcity,\\t1\n2\t1\t\\N\n"


def test_psql_fetches_in_parts_and_cancels(doors: Doors, psql: Any) -> None:
    found = psql("-A", "-t", input="\\set FETCH_COUNT 0\nrows 300;\n\\bind 5\necho int8\n;\nrows 1\\gx\n")
    assert len(found.stdout.splitlines()) >= 301
    assert psql("-c", "rows 0", "-c", "\\conninfo").returncode == 0


def test_a_wrong_password_in_psql(doors: Doors, install: Install) -> None:
    install(lambda: shutil.which("psql"), "postgresql-client")
    words = ["psql", "-X", "-w", doors.dsn(password="wrong"), "-c", "rows 1"]
    found = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert found.returncode == 2
    assert "password authentication failed" in found.stderr
    assert "a token of it" in found.stderr


def test_psycopg_in_a_transaction(doors: Doors) -> None:
    with psycopg.connect(doors.dsn()) as connection:
        assert connection.execute("rows 2").fetchall() == made_up_rows(2)
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("fail")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("rows 1")
        connection.rollback()
        assert connection.info.server_version // 10_000 == 15


def test_psycopg_prepares_and_pipelines(doors: Doors) -> None:
    with psycopg.connect(doors.dsn(), autocommit=True) as connection:
        for _ in range(8):
            assert connection.execute("rows 2", prepare=True, binary=True).fetchall() == made_up_rows(2)
        with connection.pipeline():
            cursors = [connection.execute(f"rows {number}") for number in range(5)]
            assert [len(cursor.fetchall()) for cursor in cursors] == list(range(5))
    assert len([text for _, text, _ in doors.log.runs if text == "rows 2"]) == 8 + 1


def test_psycopg_copies_out_in_every_format(doors: Doors) -> None:
    with psycopg.connect(doors.dsn(), autocommit=True) as connection, connection.cursor() as cursor:
        with cursor.copy("copy text 4") as copy:
            copy.set_types(["int8", "float8", "text"])
            assert list(copy.rows()) == made_up_rows(4)
        with cursor.copy("copy binary 4") as copy:
            copy.set_types(["int8", "float8", "text"])
            assert list(copy.rows()) == made_up_rows(4)
        for count in (0, 2):
            with cursor.copy(f"copy binary {count}") as copy:
                parts = [bytes(part) for part in copy]
            head = b"PGCOPY\n\xff\r\n\0" + bytes(8)
            assert parts[0].startswith(head + (struct.pack("!h", 3) if count else struct.pack("!h", -1)))
            assert parts[-1].endswith(struct.pack("!h", -1))
            assert len(parts) == count + 1


@pytest.mark.slow
def test_many_rows_are_sent_as_fast_as_they_are_read(doors: Doors) -> None:
    """A client that reads nothing holds up nobody, and the server keeps little of what it could send."""
    client = doors.client()
    client.send(raw.query("rows 200000"))
    other = doors.client()
    assert other.kinds(raw.query("rows 1")) == "TDCZ"
    [stuck] = [one for one in doors.wire.server._connections if one.dialog is not None and one.dialog.is_busy]
    eventually(lambda: stuck._stream._writer.transport.get_write_buffer_size() > 0)
    assert stuck._stream._writer.transport.get_write_buffer_size() < 2**20
    assert other.kinds(raw.query("rows 1")) == "TDCZ"
    found = client.until_ready()
    assert len(found) == 200_003
    client.send(raw.query("rows 200000"))
    eventually(lambda: stuck.dialog.is_busy)
    client.close()
    eventually(lambda: stuck not in doors.wire.server._connections)


# --- cancel -------------------------------------------------------------------------------------------------


def cancel(doors: Doors, process: int, key: int) -> None:
    client = doors.raw()
    client.send(struct.pack("!iiiI", 16, 80877102, process, key))
    assert client.socket.recv(10) == b""
    client.close()


def test_a_statement_is_cancelled_by_its_own_key_only(doors: Doors) -> None:
    client, other = doors.client(), doors.client()
    client.send(raw.query("hang; rows 1"))
    assert doors.log.hanging.wait(20)
    cancel(doors, client.process, client.key ^ 1)
    cancel(doors, other.process, other.key)
    cancel(doors, client.process, other.key)
    cancel(doors, other.process, client.key)
    cancel(doors, 12345, client.key)
    assert other.kinds(raw.query("rows 1")) == "TDCZ"
    client.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.read()
    client.socket.settimeout(20)
    cancel(doors, client.process, client.key)
    [error, ready] = client.until_ready()
    assert error.fields["C"] == "57014"
    assert ready.body == b"I"
    assert [text for _, text, _ in doors.log.runs] == ["hang", "rows 1"]
    cancel(doors, client.process, client.key)  # nothing runs
    assert client.kinds(raw.query("rows 1")) == "TDCZ"


def test_a_cancelled_portal_is_not_run_again(doors: Doors) -> None:
    client = doors.client()
    client.ask(raw.query("begin"))
    client.send(raw.parse("hang"), raw.bind("p"), raw.execute("p"), raw.SYNC)
    assert doors.log.hanging.wait(20)
    cancel(doors, client.process, client.key)
    assert [one.kind for one in client.until_ready()] == ["1", "2", "E", "Z"]
    assert client.ask(raw.execute("p"), raw.SYNC)[0].kind == "E"
    assert len([text for _, text, _ in doors.log.runs if text == "hang"]) == 1


def test_psycopg_cancels(doors: Doors) -> None:
    with psycopg.connect(doors.dsn(), autocommit=True) as connection:

        def soon() -> None:
            doors.log.hanging.wait(20)
            connection.cancel_safe()  # cancel would keep the server from running, which is in this process

        thread = threading.Thread(target=soon)
        thread.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("hang")
        thread.join()
        assert connection.execute("rows 1").fetchall() == made_up_rows(1)


def test_keys_cannot_be_guessed() -> None:
    cancels = Cancels()
    made = {cancels.add(lambda: None) for _ in range(200)}
    assert len({process for process, _ in made}) == len({key for _, key in made}) == 200
    assert max(key for _, key in made) > 2**30
    assert all(0 < process < 2**31 for process, _ in made)
    assert all(key % 2**31 != process for process, key in made)  # one in ten million fails by chance
    process, key = made.pop()
    assert cancels.cancel(process, key)
    cancels.remove(process)
    assert not cancels.cancel(process, key)
    assert not cancels.cancel(0, 0)


# --- other connections --------------------------------------------------------------------------------------


def test_statements_and_portals_of_others_are_not_seen(doors: Doors) -> None:
    one, other = doors.client(), doors.client()
    one.ask(raw.query("begin"))
    one.ask(raw.parse("rows 5", "s"), raw.bind("p", "s"), raw.execute("p", 1), raw.SYNC)
    assert other.ask(raw.execute("p"), raw.SYNC)[0].fields["C"] == "34000"
    assert other.ask(raw.bind("", "s"), raw.SYNC)[0].fields["C"] == "26000"
    assert other.ask(raw.describe("P", "p"), raw.SYNC)[0].fields["C"] == "34000"
    assert other.kinds(raw.close("P", "p"), raw.close("S", "s"), raw.SYNC) == "33Z"
    assert one.kinds(raw.execute("p", 0), raw.SYNC) == "DDDDCZ"


def test_too_many_statements_a_second(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    client = doors.client()
    gate = doors.wire.server.shared.gate
    monkeypatch.setattr(gate, "enter", lambda address, token: (0.5, None))
    assert client.ask(raw.query("rows 1"))[0].fields["C"] == "53000"
    assert doors.log.runs == []


# --- stopping -----------------------------------------------------------------------------------------------


def test_a_server_that_stops_ends_what_runs_first(doors: Doors) -> None:
    busy, idle = doors.client(), doors.client()
    assert idle.kinds(raw.query("rows 1")) == "TDCZ"
    busy.send(raw.query("hang"))
    assert doors.log.hanging.wait(20)
    stopping = asyncio.run_coroutine_threadsafe(doors.wire.server.stop(20), doors.wire.loop)
    assert idle.read().fields["C"] == "57P01"
    assert not stopping.done()
    doors.log.release.set()
    assert [one.kind for one in busy.until_ready()] == ["T", "D", "C", "Z"]
    assert busy.read().fields["C"] == "57P01"
    stopping.result(20)
    with pytest.raises(ConnectionRefusedError):
        doors.wire.connect()


def test_who_has_just_logged_in_may_still_ask(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LINGER", 0.5)
    new, silent = doors.client(), doors.client()
    stopping = asyncio.run_coroutine_threadsafe(doors.wire.server.stop(20), doors.wire.loop)
    assert [one.kind for one in new.ask(raw.query("rows 1"))] == ["T", "D", "C", "Z"]
    assert new.read().fields["C"] == "57P01"
    assert silent.read().fields["C"] == "57P01"
    stopping.result(20)


def test_what_does_not_end_is_ended(doors: Doors) -> None:
    client = doors.client()
    client.send(raw.query("hang"))
    assert doors.log.hanging.wait(20)
    doors.wire.do(doors.wire.server.stop(0.1))
    with pytest.raises((EOFError, ConnectionError)):
        client.read()

"""The order of messages, byte for byte, as PostgreSQL's protocol 3.0 says."""

from __future__ import annotations

import struct

import pytest

from . import raw
from .a_wire import eventually
from .conftest import Doors
from .raw import FLUSH, SYNC, bind, describe, execute, parse, query, startup


def test_a_simple_query_has_columns_rows_and_a_tag(doors: Doors) -> None:
    client = doors.client()
    found = client.ask(query("rows 2"))
    assert [one.kind for one in found] == ["T", "D", "D", "C", "Z"]
    assert found[3].body == b"SELECT 2\0"
    assert found[4].body == b"I"
    assert found[2].body == struct.pack("!hi", 3, 1) + b"1" + struct.pack("!i", 3) + b"0.5" + struct.pack("!i", 7) + (
        b"city,\t1"
    )


def test_several_statements_in_one_query(doors: Doors) -> None:
    client = doors.client()
    assert client.kinds(query("rows 1; begin; rows 0;;")) == "TDCCTCZ"
    assert client.ask(query("rows 1; fail; rows 1"))[-1].body == b"E"
    assert client.kinds(query("rollback")) == "CZ"
    assert client.kinds(query(" ; ")) == "IZ"
    assert client.kinds(query("")) == "IZ"


def test_an_error_has_a_code_a_hint_and_a_place(doors: Doors) -> None:
    client = doors.client()
    [error, ready] = client.ask(query("fail"))
    assert (error.fields["C"], error.fields["S"], error.fields["V"]) == ("42P01", "ERROR", "ERROR")
    assert (error.fields["P"], error.fields["H"]) == ("6", "Ask about another.")
    assert ready.body == b"I"
    assert client.ask(query("1 unreadable"))[0].fields["P"] == "3"
    assert doors.log.failures == 2


def test_an_unexpected_failure_says_nothing(doors: Doors) -> None:
    client = doors.client()
    error = client.ask(query("boom"))[0]
    assert error.fields["C"] == "XX000"
    assert b"secret" not in error.body
    assert client.kinds(query("rows 1")) == "TDCZ"


def test_describe_never_runs(doors: Doors) -> None:
    client = doors.client()
    kinds = client.kinds(parse("rows 3", "s"), describe("S", "s"), bind("p", "s"), describe("P", "p"), SYNC)
    assert kinds == "1tT2TZ"
    assert doors.log.describes == ["rows 3"] * 2
    assert doors.log.runs == []


def test_nothing_is_described_unless_it_is_asked_for(doors: Doors) -> None:
    client = doors.client()
    assert client.kinds(parse("rows 3"), bind(), execute(), SYNC) == "12DDDCZ"
    assert client.kinds(parse("echo int8", "", 20), bind(values=(b"5",)), execute(), SYNC) == "12DCZ"
    assert doors.log.describes == []
    assert client.kinds(parse("echo int8"), bind(values=(b"5",)), execute(), SYNC) == "12DCZ"
    assert doors.log.describes == ["echo int8"]
    assert [values for _, _, values in doors.log.runs] == [(), (5,), (5,)]


def test_rows_in_parts(doors: Doors) -> None:
    client = doors.client()
    sent = (parse("rows 5"), bind("p"), execute("p", 2), execute("p", 2), execute("p", 2), execute("p", 2), SYNC)
    found = client.ask(*sent)
    assert "".join(one.kind for one in found) == "12DDsDDsDCCZ"
    assert [one.body for one in found if one.kind == "C"] == [b"SELECT 1\0", b"SELECT 0\0"]
    assert len(doors.log.runs) == 1
    assert client.ask(execute("p"), SYNC)[0].fields["C"] == "34000"  # it ended with the transaction


def test_a_portal_lasts_as_long_as_its_transaction(doors: Doors) -> None:
    client = doors.client()
    client.ask(query("begin"))
    assert client.kinds(parse("rows 3", "s"), bind("p", "s"), execute("p", 1), SYNC) == "12DsZ"
    assert client.kinds(execute("p", 1), SYNC) == "DsZ"
    assert client.kinds(execute("p", 0), SYNC) == "DCZ"
    client.ask(query("commit"))
    assert client.ask(execute("p"), SYNC)[0].fields["C"] == "34000"
    assert len([text for _, text, _ in doors.log.runs if text == "rows 3"]) == 1


def test_a_portal_of_a_failed_transaction_gives_nothing_more(doors: Doors) -> None:
    client = doors.client()
    client.ask(query("begin"))
    assert client.kinds(parse("rows 3"), bind("p"), execute("p", 1), SYNC) == "12DsZ"
    client.ask(query("fail"))
    assert client.ask(execute("p", 1), SYNC)[0].fields["C"] in ("25P02", "34000")


def test_a_statement_without_rows_is_run_once(doors: Doors) -> None:
    client = doors.client()
    found = client.ask(parse("set a"), bind(), describe("P"), execute(), execute(), SYNC)
    assert "".join(one.kind for one in found) == "12nCSEZ"
    assert found[-2].fields["C"] == "55000"
    assert len(doors.log.runs) == 1


def test_a_portal_that_failed_is_not_run_again(doors: Doors) -> None:
    client = doors.client()
    client.ask(query("begin"))
    assert client.kinds(parse("boom", "s"), bind("p", "s"), execute("p"), SYNC) == "12EZ"
    assert client.ask(execute("p"), SYNC)[0].kind == "E"
    assert len([text for _, text, _ in doors.log.runs if text == "boom"]) == 1


def test_an_error_skips_to_the_next_sync(doors: Doors) -> None:
    client = doors.client()
    sent = (parse("rows 1"), bind(), execute("nobody"), execute(), query("rows 1"), FLUSH, SYNC)
    assert client.kinds(*sent) == "12EZ"
    assert doors.log.runs == []
    assert client.kinds(parse("rows 1"), bind(), execute(), SYNC) == "12DCZ"


def test_many_pipelined_statements(doors: Doors) -> None:
    client = doors.client()
    one = parse("rows 1") + bind() + describe("P") + execute() + SYNC
    client.send(one * 50)
    for _ in range(50):
        assert "".join(found.kind for found in client.until_ready()) == "12TDCZ"


def test_flush_sends_without_ending(doors: Doors) -> None:
    client = doors.client()
    client.send(parse("rows 1"), FLUSH)
    assert client.read().kind == "1"
    client.send(bind(), describe("P"), FLUSH)
    assert [client.read().kind for _ in range(2)] == ["2", "T"]
    assert client.kinds(SYNC) == "Z"


def test_an_error_is_sent_before_sync(doors: Doors) -> None:
    """asyncpg waits for it."""
    client = doors.client()
    client.send(parse("fail", "s"), describe("S", "s"), FLUSH)
    assert client.read().kind == "1"
    assert client.read().fields["C"] == "42P01"
    assert client.kinds(SYNC) == "Z"


def test_a_cursor_is_described_like_a_portal(doors: Doors) -> None:
    """psycopg does so after DECLARE."""
    client = doors.client()
    assert client.kinds(describe("P", "a cursor"), SYNC) == "TZ"
    assert client.kinds(describe("P", "another"), SYNC) == "EZ"


def test_names_of_statements_and_portals(doors: Doors) -> None:
    client = doors.client()
    assert client.kinds(parse("rows 1", "s"), SYNC) == "1Z"
    assert client.ask(parse("rows 2", "s"), SYNC)[0].fields["C"] == "42P05"
    assert client.ask(bind("p", "s"), bind("p", "s"), SYNC)[1].fields["C"] == "42P03"
    assert client.ask(bind("p", "other"), SYNC)[0].fields["C"] == "26000"
    assert client.ask(describe("S", "other"), SYNC)[0].fields["C"] == "26000"
    assert client.ask(describe("P", "other"), SYNC)[0].fields["C"] == "34000"
    assert client.kinds(raw.close("S", "s"), raw.close("S", "s"), raw.close("P", "p"), SYNC) == "333Z"
    assert client.ask(bind("p", "s"), SYNC)[0].fields["C"] == "26000"
    assert client.kinds(parse("rows 1"), parse("rows 2"), bind(), bind(), execute(), SYNC) == "1122DDCZ"
    assert client.kinds(query("rows 1")) == "TDCZ"
    assert client.ask(bind(), SYNC)[0].fields["C"] == "26000"  # a query takes the one without a name


def test_deallocate_all_closes_statements(doors: Doors) -> None:
    client = doors.client()
    assert client.kinds(parse("rows 1", "s"), SYNC) == "1Z"
    client.ask(query("deallocate"))
    assert client.ask(bind("", "s"), SYNC)[0].fields["C"] == "26000"


def test_an_empty_statement_and_two_at_once(doors: Doors) -> None:
    client = doors.client()
    assert client.kinds(parse(""), describe("S"), bind(), describe("P"), execute(), SYNC) == "1tn2nIZ"
    assert client.ask(parse("rows 1; rows 2"), SYNC)[0].fields["C"] == "42601"


def test_columns_that_changed_since_they_were_described(doors: Doors) -> None:
    client = doors.client()
    found = client.ask(parse("changed"), describe("S"), bind(), execute(), SYNC)
    assert [one.kind for one in found] == ["1", "t", "n", "2", "E", "Z"]
    assert found[4].fields["C"] == "0A000"


def test_notices_and_settings(doors: Doors) -> None:
    client = doors.client()
    found = client.ask(query("notice"))
    assert [one.kind for one in found] == ["N", "T", "D", "C", "Z"]
    assert (found[0].fields["M"], found[0].fields["H"]) == ("It cost nothing.", "Good.")
    found = client.ask(query("set psql"))
    assert [one.kind for one in found] == ["C", "S", "Z"]
    assert found[1].body == b"application_name\0psql\0"


def test_what_is_not_supported(doors: Doors) -> None:
    client = doors.client()
    found = client.ask(raw.packed("F", b"\0" * 10))
    assert (found[0].fields["C"], found[1].kind) == ("0A000", "Z")
    assert client.kinds(raw.packed("d", b"data"), raw.packed("c"), raw.packed("f", b"\0"), query("rows 0")) == "TCZ"


@pytest.mark.parametrize(
    "sent",
    [
        raw.packed("Q", b"no end"),
        raw.packed("B", b"\0"),
        raw.packed("P", b"s\0t\0\xff\xff"),
        raw.packed("E", b"\0"),
        raw.packed("D", b"Xname\0"),
        raw.packed("C", b"Xname\0"),
        raw.packed("B", b"\0\0\x00\x00\x00\x01\x7f\xff\xff\xff"),
        raw.packed("Q", b"rows 1\0more"),
    ],
)
def test_an_invalid_message_is_refused(doors: Doors, sent: bytes) -> None:
    client = doors.client()
    client.send(parse("rows 1"), sent, SYNC)
    found = client.until_ready()
    assert [one.kind for one in found[:2]] == ["1", "E"]
    assert found[1].fields["C"] == "08P01"
    if sent[:1] == b"Q":
        client.until_ready()
    assert client.kinds(query("rows 1")) == "TDCZ"


def test_text_that_is_not_utf8(doors: Doors) -> None:
    assert doors.client().ask(raw.packed("Q", b"rows \xff\0"))[0].fields["C"] == "22021"


@pytest.mark.parametrize("sent", [b"?\0\0\0\4", b"Q\x7f\xff\xff\xff", b"Q\0\0\0\0", b"p\0\0\0\4", b"Q\0\x10\0\5"])
def test_what_is_no_message_ends_the_connection(doors: Doors, sent: bytes) -> None:
    client = doors.client()
    client.send(sent)
    error = client.read()
    assert (error.fields["S"], error.fields["C"]) == ("FATAL", "08P01")
    with pytest.raises((EOFError, ConnectionError)):
        client.read()


def test_a_message_of_a_mebibyte(doors: Doors) -> None:
    client = doors.client()
    assert client.kinds(query("rows 1" + " " * (2**20 - 100))) == "TDCZ"


def test_parameters_of_the_wrong_number_or_form(doors: Doors) -> None:
    client = doors.client()
    for sent, code in (
        (bind(values=(b"1",)), "08P01"),
        (bind(values=(b"1", b"2"), formats=(0, 0, 0)), "08P01"),
        (bind(values=(b"1", b"2"), formats=(2,)), "22023"),
        (bind(values=(b"1", b"2"), results=(2,)), "22023"),
        (bind(values=(b"one", b"2")), "22P02"),
        (bind(values=(b"1", b"2"), formats=(1, 0)), "22P03"),
        (bind(values=(str(2**63).encode(), b"2")), "22003"),
    ):
        assert client.ask(parse("echo int8 text"), sent, SYNC)[1].fields["C"] == code, sent
    assert client.kinds(parse("echo int8 text"), bind(values=(None, b"2")), execute(), SYNC) == "12DCZ"
    found = client.ask(parse("rows 1"), bind(results=(0, 1)), describe("P"), SYNC)
    assert found[2].fields["C"] == "08P01"


def test_too_many_statements_and_portals(doors: Doors) -> None:
    client = doors.client()
    client.send(*(parse("", f"s{number}") for number in range(1001)), SYNC)
    found = client.until_ready()
    assert [one.kind for one in found].count("1") == 1000
    assert found[-2].fields["C"] == "54000"
    long = "rows 1" + " " * 900_000
    client.ask(*(raw.close("S", f"s{number}") for number in range(1001)), SYNC)
    client.send(*(parse(long, f"s{number}") for number in range(20)), SYNC)
    assert client.until_ready()[-2].fields["C"] == "54000"


def test_settings_at_the_start(doors: Doors) -> None:
    client = doors.client(
        database="clinic",
        application_name="tests",
        client_encoding="'utf-8'",
        options=r"-c discreet.epsilon=0.1 -cdiscreet.mode=replay --search-path=a\ b",
    )
    opened = doors.log.opened[-1]
    assert (opened["account"], opened["database"]) == ("alice", "clinic")
    assert opened["options"] == {
        "discreet.epsilon": "0.1",
        "discreet.mode": "replay",
        "search_path": "a b",
        "application_name": "tests",
        "client_encoding": "'utf-8'",
    }
    assert client.settings["server_version"].startswith("15.")
    assert client.settings["client_encoding"] == client.settings["server_encoding"] == "UTF8"
    assert client.settings["integer_datetimes"] == client.settings["standard_conforming_strings"] == "on"
    assert client.settings["application_name"] == "tests"
    assert client.settings["session_authorization"] == "alice"


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (startup(2 << 16, user="alice"), "0A000"),
        (startup(database="clinic"), "28000"),
        (startup(user="alice", replication="database"), "0A000"),
        (startup(user="alice", client_encoding="LATIN1"), "22023"),
        (startup(user="alice", options="nonsense"), "42601"),
        (b"\0\0\0\4", "08P01"),
        (b"\x7f\xff\xff\xff", "08P01"),
        (struct.pack("!ii", 20_000, 3 << 16), "08P01"),
        (struct.pack("!ii", 12, 3 << 16) + b"user", "08P01"),
    ],
)
def test_a_wrong_start(doors: Doors, sent: bytes, code: str) -> None:
    client = doors.raw()
    client.send(sent)
    error = client.read()
    assert (error.fields["S"], error.fields["C"]) == ("FATAL", code)
    with pytest.raises((EOFError, ConnectionError)):
        client.read()


def test_newer_versions_are_negotiated(doors: Doors) -> None:
    client = doors.raw()
    client.send(startup((3 << 16) + 2, user="alice", **{"_pq_.new": "1"}))
    found = client.read()
    assert (found.kind, found.body) == ("v", struct.pack("!ii", 3 << 16, 1) + b"_pq_.new\0")
    assert client.read().kind == "R"


def test_no_encryption_is_offered_without_a_certificate(doors: Doors) -> None:
    client = doors.raw()
    for code in (80877104, 80877103):
        client.send(struct.pack("!ii", 8, code))
        assert client.exactly(1) == b"N"
    assert client.log_in("alice", doors.token)[-1].kind == "Z"
    client = doors.raw()
    for code in (80877103, 80877103):
        client.send(struct.pack("!ii", 8, code))
    assert client.exactly(1) == b"N"
    assert client.read().fields["C"] == "08P01"


def test_the_end_of_a_connection(doors: Doors) -> None:
    client = doors.client()
    client.send(raw.TERMINATE)
    with pytest.raises(EOFError):
        client.read()
    eventually(lambda: doors.log.closed == 1 and not len(doors.wire.vault.sessions))
    assert doors.wire.vault.frames[-1][0] == "logout"

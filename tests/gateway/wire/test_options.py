"""Settings of a session, what comments say, and parameters."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from discreet.gateway.wire.format.values import TYPES, Refusal
from discreet.gateway.wire.options import Settings, options_of, said_in, seconds, startup_settings
from discreet.gateway.wire.text.parameters import literal, type_named, value_of

from .wire_vault import Client, LocalVault, names


@pytest.fixture
def client():
    made = Client()
    yield made
    made.close()


# --- comments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "said"),
    {
        "epsilon=0.1": {"epsilon": "0.1"},
        " epsilon = 0.1 ": {"epsilon": "0.1"},
        "epsilon=.5, delta=1e-7": {"epsilon": ".5", "delta": "1e-7"},
        "within n=50": {"within": "n=50"},
        "within n=50, c=2 confidence=0.9": {"within": "n=50, c=2", "confidence": "0.9"},
        'within "my column"=3': {"within": '"my column"=3'},
        "within n = 50, mode=preview": {"within": "n = 50", "mode": "preview"},
        "epsilon=0.1 mode=rehearse errors=off": {"epsilon": "0.1", "mode": "rehearse", "errors": "off"},
        "discreet: mode=replay": {"mode": "replay"},
        "discreet.epsilon=0.1; key=abc": {"epsilon": "0.1", "key": "abc"},
        "mode=preview": {"mode": "preview"},
        " Mode = rehearse, epsilon=0.1": {"mode": "rehearse", "epsilon": "0.1"},
        "errors=off": {"errors": "off"},
        "answer_after=10s": {"answer_after": "10s"},
        "Epsilon=0.2 WITHIN n=50": {"epsilon": "0.2", "within": "n=50"},
        "mode=dev, app=superset": {},
        "mode=previews": {},
        "errors=7": {},
        "epsilon is small": {},
        "within a week": {},
        "controller='index',framework='x'": {},
        "": {},
    }.items(),
)
def test_comments(comment, said):
    assert said_in([comment]) == said


@pytest.mark.parametrize(
    "comments",
    [
        ["epsilon=abc"],
        ["epsilon=0"],
        ["eps=0.1"],
        ["Eps = 0.1 mode=preview"],
        ["mode=preview please"],
        ["epsilon=-1"],
        ["epsilon=inf"],
        ["epsilon=1e999"],
        ["epsilon=0.12345678901234567890"],
        ["epsilon=0.1 and more"],
        ["epsilon: 0.1"],
        ["within: n=x"],
        ["confidence=2"],
        ["epsilon=0.1", "epsilon=0.2"],
        ["discreet mode=guess"],
    ],
)
def test_comments_that_cannot_be_read(comments):
    with pytest.raises(Refusal) as refused:
        said_in(comments)
    assert refused.value.state == "22023"


# --- what a question may cost -------------------------------------------------------------------------------


def test_the_order_of_what_a_question_may_cost(client):
    """The comment, then SET, then the startup option, then the default of the vault."""
    other = Client(client.vault, options="-c discreet.epsilon=0.4")

    def cost(one, text="SELECT COUNT(*) FROM visits"):
        one.query(text)
        return one.vault.calls[-1][1].get("epsilon")

    assert cost(client) is None
    assert cost(other) == 0.4
    other.query("SET discreet.epsilon = 0.3")
    assert cost(other) == 0.3
    other.query("BEGIN; SET LOCAL discreet.epsilon = 0.25")
    assert cost(other) == 0.25
    assert cost(other, "SELECT COUNT(*) /* epsilon=0.2 */ FROM visits") == 0.2
    assert cost(other, "SELECT COUNT(*) FROM visits -- epsilon=0.21") == 0.21
    other.query("COMMIT")
    assert cost(other) == 0.3
    other.query("RESET discreet.epsilon")
    assert cost(other) == 0.4
    other.query("SET discreet.within = 'count=60'")  # the last one counts
    assert cost(other) is None
    assert client.vault.calls[-1][1]["within"] == {"count(*)": 60.0}
    assert cost(other, "/* epsilon=0.5 */ SELECT COUNT(*) FROM visits") == 0.5
    assert "within" not in client.vault.calls[-1][1]
    other.close()


def test_no_cost_at_all():
    client = Client(LocalVault(default=None))
    refused = client.refused("SELECT COUNT(*) FROM visits")
    assert refused.state == "22023"
    assert "SET discreet.epsilon" in refused.hint
    assert client.describe("SELECT COUNT(*) FROM visits").columns is not None
    assert client.refused("/* epsilon=0.1 within n=5 */ SELECT COUNT(*) AS n FROM visits").state == "22023"
    client.close()


def test_other_options_reach_the_vault(client):
    client.query("SET discreet.confidence = 0.9; SET discreet.delta = 1e-7; SET discreet.answer_after = '9s'")
    client.query("/* key=k1 epsilon=0.2 */ SELECT COUNT(*) FROM visits")
    client.query("/* discreet key=k1 epsilon=0.2 */ SELECT COUNT(*) FROM visits")
    given = client.vault.calls[-1][1]
    assert {name: given[name] for name in ("confidence", "delta", "answer_after", "key", "epsilon")} == {
        "confidence": 0.9,
        "delta": 1e-7,
        "answer_after": "9s",
        "key": "k1",
        "epsilon": 0.2,
    }


@pytest.mark.parametrize(("role", "mode"), [("analyst", "answer"), ("owner", "answer"), ("viewer", "replay")])
def test_the_usual_mode_of_a_role(role, mode):
    assert options_of([], Settings("ana", role, {})).mode == mode
    assert options_of([], Settings("ana", "service", {})).mode == "replay"
    assert options_of(["discreet mode=preview"], Settings("ana", role, {})).mode == "preview"


# --- SET, SHOW, RESET ---------------------------------------------------------------------------------------


@pytest.mark.some_quick(9)
@pytest.mark.parametrize(
    ("text", "state"),
    {
        "SET discreet.nothing = 1": "42704",
        "SET discreet.remaining = 1": "55P02",
        "SET discreet.epsilon = 'much'": "22023",
        "SET discreet.mode = guess": "22023",
        "SET discreet.errors = none": "22023",
        "SET discreet.within = 'n'": "22023",
        "SET nothing = 1": "42704",
        "SET client_encoding = 'LATIN1'": "22023",
        "SET DateStyle = 'German'": "22023",
        "SET standard_conforming_strings = off": "55P02",
        "SET server_version = '9'": "55P02",
        "SET extra_float_digits = 99": "22023",
        "SET statement_timeout = 'soon'": "22023",
        "SHOW nothing": "42704",
        "SHOW discreet.nothing": "42704",
        "RESET discreet.nothing": "42704",
        "RESET nothing": "42704",
    }.items(),
)
def test_settings_that_are_refused(client, text, state):
    assert client.refused(text).state == state


def test_settings_are_remembered_shown_and_told(client):
    [result] = client.query("SET application_name = 'tool'")
    assert (result.tag, result.settings) == ("SET", {"application_name": "tool"})
    assert client.show("application_name") == "tool"
    assert client.query("SET SESSION datestyle TO 'ISO', DMY")[0].settings == {"DateStyle": "ISO, DMY"}
    client.query("SET TIME ZONE 'Europe/Rome'; SET extra_float_digits = 3; SET search_path TO public, other")
    assert [client.show(name) for name in ("timezone", "search_path")] == ["Europe/Rome", "public, other"]
    assert names(client.run("SHOW TimeZone")) == ["TimeZone"]
    client.query("SET some.thing = 'x'")
    assert client.show("some.thing") == "x"
    [result] = client.query("RESET ALL")
    assert result.settings == {"application_name": "", "DateStyle": "ISO, MDY", "TimeZone": "UTC"}
    assert client.show("search_path") == '"$user", public'
    assert client.refused("SHOW some.thing").state == "42704"
    assert client.show("transaction isolation level") == "read committed"
    assert client.show("transaction_read_only") == "on"
    client.query("SET default_transaction_read_only = off; SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE")
    assert client.show("default_transaction_read_only") == "on"
    assert client.query("SET standard_conforming_strings = on; SET client_encoding TO 'utf-8'; SET NAMES 'UTF8'")
    shown = {row[0]: row[1] for row in client.rows("SHOW ALL")}
    assert shown["server_version"].startswith("15")
    assert shown["discreet.account"] == "ana"
    assert client.describe("SHOW ALL").columns == client.run("SHOW ALL").columns


def test_what_an_account_is_told_about_itself(client):
    assert client.show("discreet.remaining") == "ε = 100"
    client.query("/* epsilon=0.5 */ SELECT COUNT(*) FROM visits")
    assert client.show("discreet.remaining") == "ε = 99.5"
    assert client.show("discreet.limit") == "ε = 100, δ = 1e-05"
    assert client.show("discreet.role") == "analyst"
    assert client.show("discreet.version")
    assert client.show("discreet.epsilon") == ""


def test_settings_of_a_transaction_end_with_it(client):
    client.query("BEGIN; SET LOCAL discreet.epsilon = 0.3; SET application_name = 'a'")
    assert client.query("COMMIT")[0].settings == {}
    assert (client.show("discreet.epsilon"), client.show("application_name")) == ("", "a")
    client.query("BEGIN; SET application_name = 'b'; SET discreet.epsilon = 0.2")
    assert client.query("ROLLBACK")[0].settings == {"application_name": "a"}
    assert client.show("discreet.epsilon") == ""
    client.query("BEGIN; SET discreet.epsilon = 0.2; SAVEPOINT s; SET discreet.epsilon = 0.3; ROLLBACK TO s; COMMIT")
    assert client.show("discreet.epsilon") == "0.2"
    [result] = client.query("SET LOCAL discreet.epsilon = 0.9")
    assert result.notices[0].code == "25P01"
    assert client.show("discreet.epsilon") == "0.2"
    client.query("BEGIN; SET discreet.epsilon = 0.4; SET LOCAL discreet.epsilon TO DEFAULT")
    assert client.show("discreet.epsilon") == "0.4"


def test_startup_settings():
    said = {"user": "ana", "database": "clinic", "options": r"-c discreet.epsilon=0.1 -cx.y=a\ b --search-path=z"}
    assert startup_settings(said) == {"discreet.epsilon": "0.1", "x.y": "a b", "search_path": "z"}
    settings = Settings("ana", "analyst", {**said, "client_encoding": "'utf-8'", "application_name": "psql"})
    assert settings.reported["client_encoding"] == "UTF8"
    assert settings.reported["session_authorization"] == "ana"
    for wrong in ("-x", "-c", "-c a", "discreet.epsilon=1"):
        with pytest.raises(Refusal):
            startup_settings({"options": wrong})
    for wrong in ({"options": "-c discreet.nothing=1"}, {"client_encoding": "LATIN1"}):
        with pytest.raises(Refusal):
            Settings("ana", "analyst", wrong)


def test_a_statement_ends_in_time():
    client = Client()
    assert [seconds(said) for said in ("0", "250", "2s", "1min", "x")] == [0, 0.25, 2, 60, None]
    client.query("SET statement_timeout = 20")
    client.vault.delay = 5
    assert client.refused("SELECT COUNT(*) FROM visits").state == "57014"
    client.close()


# --- parameters ---------------------------------------------------------------------------------------------

TYPED = {
    "SELECT COUNT(*) FROM visits WHERE city = $1": ["text"],
    "SELECT COUNT(*) FROM visits AS v WHERE $1 < v.cost": ["float8"],
    "SELECT COUNT(*) FROM public.visits WHERE visits.day >= $1 AND day < $2": ["date", "date"],
    "SELECT COUNT(*) FROM visits WHERE stays IN ($1,$2)": ["int8", "int8"],
    "SELECT COUNT(*) FROM visits WHERE cost BETWEEN $1 AND $2": ["float8", "float8"],
    "SELECT COUNT(*) FROM visits WHERE cost > $1::int4": ["int4"],
    "SELECT COUNT(*) FROM visits WHERE day > CAST($1 AS date)": ["date"],
    "SELECT COUNT(*) FROM visits WHERE city LIKE $1": ["text"],
    "SELECT COUNT(*) FROM visits WHERE cost + 1 > $1": ["float8"],
    "SELECT COUNT(*) FROM visits WHERE stays % 2 = $1": ["int8"],
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING COUNT(*) > $1 LIMIT $2": ["int8", "int8"],
    "SELECT COUNT(*) * $1 FROM visits": ["int8"],
    "SELECT AVG(cost) - $1 FROM visits": ["float8"],
    "SELECT SUM(price) FROM prices WHERE price > $1": ["int8"],
}


@pytest.mark.some_quick(7)
@pytest.mark.parametrize(("text", "types"), TYPED.items())
def test_types_of_parameters(client, text, types):
    assert list(client.describe(text).parameters) == types
    assert client.vault.charges == 0


def test_what_a_client_declares_counts(client):
    text = "SELECT COUNT(*) FROM visits WHERE cost > $1 AND city = $2"
    declared = [TYPES["int2"].oid, 0]
    assert client.describe(text, *declared).parameters == ("int2", "text")
    assert client.describe(text, 705, 705).parameters == ("float8", "text")
    with pytest.raises(Refusal) as refused:
        client.describe(text, TYPES["bytea"].oid)
    assert refused.value.state == "0A000"
    assert client.refused("SELECT COUNT(*) FROM visits WHERE cost > $0", 1).state == "42P02"
    assert client.refused("SELECT COUNT(*) FROM visits WHERE cost > $70000", 1).state == "42P02"
    assert client.refused(text, 1).state == "08P01"


def test_a_parameter_is_the_same_question_as_its_literal(client):
    client.query("SELECT COUNT(*) AS n FROM visits WHERE city = 'Haifa' AND cost > 5.5 AND day > DATE '2024-01-02'")
    text = "SELECT COUNT(*) AS n FROM visits WHERE city = $1 AND cost > $2 AND day > $3"
    described, first = client.prepared(text, "Haifa", 5.5, date(2024, 1, 2))
    again = client.run(text, "Haifa", "5.5", "2024-01-02")
    assert described.columns == first.columns == again.columns
    assert list(first.rows) == list(again.rows)
    assert client.vault.charges == 1
    assert client.refused(text, "Haifa", "much", "2024-01-02").state == "22P02"


def test_negative_numbers_are_no_comments(client):
    client.query("SELECT COUNT(*) AS n FROM visits WHERE stays -(-1) > 2")
    client.run("SELECT COUNT(*) AS n FROM visits WHERE stays -$1 > $2", -1, 2)
    assert "--" not in client.vault.calls[-1][1]["sql"]


def test_a_parameter_that_changes_the_columns_is_refused_before_it_costs(client):
    text = "SELECT COUNT(*) + $1 AS x FROM visits"
    described, result = client.prepared(text, 2)
    assert described.columns == result.columns
    before = client.vault.charges
    [statement] = client.session.read(text)
    client.loop.run_until_complete(client.session.describe(statement))
    client.query("SET discreet.errors = off")
    with pytest.raises(Refusal) as refused:
        client.loop.run_until_complete(client.session.run(statement, [2]))
    assert refused.value.state == "0A000"
    assert client.vault.charges == before


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8")))
def test_texts_are_quoted_safely(text):
    [found] = sqlglot.tokenize(literal(text, "text"), read="duckdb")
    assert (found.token_type.name, found.text) == ("STRING", text)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_written_exactly(value):
    assert float(literal(value, "float8").strip("()")) == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_are_written_exactly(value):
    assert int(literal(value, "int8").strip("()")) == value


def test_other_values():
    stamp = datetime(2024, 1, 2, 3, 4, 5, 600)
    assert literal(None, "text") == "NULL"
    assert literal(True, "bool") == "TRUE"
    assert literal(date(2024, 1, 2), "date") == "DATE '2024-01-02'"
    assert literal(stamp, "timestamp") == "TIMESTAMP '2024-01-02 03:04:05.000600'"
    assert literal(stamp.replace(tzinfo=UTC), "timestamptz") == literal(stamp, "timestamp")
    assert literal(Decimal("1.50"), "numeric") == "1.50"
    assert literal(7, "float8") == "7"
    assert literal(stamp, "date") == literal(stamp, "timestamp")
    assert literal(datetime(2024, 1, 2), "date") == "DATE '2024-01-02'"
    for value, kind in (
        (float("nan"), "float8"),
        (float("inf"), "float8"),
        (2**63, "int8"),
        (Decimal("1e999"), "numeric"),
        ("a\0", "text"),
        (b"x", "text"),
        ([1], "text"),
    ):
        with pytest.raises(Refusal):
            literal(value, kind)
    assert type_named("double precision") == "float8"
    assert value_of("t", "bool") is True
    with pytest.raises(Refusal):
        type_named("json")

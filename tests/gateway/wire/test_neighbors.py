"""Sessions over the PostgreSQL protocol on two real vaults that differ only in their rows: one has none, the other has
hostile ones. Everything that a session says is equal but for noise and receipts, and so is the ledger.
"""

from __future__ import annotations

import asyncio
import re
import time

import pytest

from discreet.gateway.frames import Link
from discreet.gateway.wire.format.values import Refusal

from ..house import BY_CITY, COUNT, House
from ..vault.test_neighbors import CANARY, CHARGED, FREE, HOSTILE, REFUSED, Neighbor, both, ordinary
from .wire_vault import Client, names, said

pytestmark = pytest.mark.slow
_RECEIPT = re.compile(r"receipt [^;]+")


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    made = [
        Neighbor(tmp_path_factory.mktemp("wire") / "empty", []),
        Neighbor(tmp_path_factory.mktemp("wire") / "hostile", ordinary() + HOSTILE),
    ]
    both(House.start, made)
    yield made
    both(House.stop, made)
    for house in made:
        house.ledger.verify()


def client_of(house, name, role="analyst", epsilon=3, **options):
    token = house.open(name, role, epsilon)
    made = Client(Link(house.socket), token, **options)
    made.house, made.token = house, token
    return made


@pytest.fixture
def clients(houses, request):
    name = f"w{request.node.name.split('[')[0][5:35]}{time.monotonic_ns() % 10**9}"
    made = [client_of(house, name) for house in houses]
    yield made
    for one in made:
        one.loop.run_until_complete(one.vault.close())
        one.close()


def standing(client):
    """What the ledger and the limits say about an account, and how many charges there are in all."""
    return client.house.call("budget", client.token), len(client.house.charges())


def outcome(client, text):
    """Everything that a client is sent for a text, with its describe: rows and notices as they are."""
    told = []
    try:
        for statement in client.session.read(text):
            described = client.loop.run_until_complete(client.session.describe(statement))
            result = client.loop.run_until_complete(client.session.run(statement))
            if described.columns is not None:
                assert described.columns == result.columns
            told.append((described, result.tag, result.columns, list(result.rows), result.notices, result.copy))
    except Refusal as refusal:
        client.session.fail()
        told.append((refusal.state, refusal.message, refusal.hint, refusal.position))
    told.append(client.session.status)
    return told


WIRE = [
    *("SELECT 1", "SHOW ALL", "SHOW discreet.remaining", "SHOW discreet.nothing", "SET discreet.epsilon = 0.05", ""),
    *(f"EXPLAIN {sql}" for sql in (*CHARGED, *FREE)),
    f"EXPLAIN (FORMAT JSON) {BY_CITY}",
    *(f"/* discreet mode=preview */ {sql}" for sql in (*CHARGED, "SELECT * FROM visits")),
    *(f"/* discreet mode=rehearse */ {sql}" for sql in (*CHARGED, *FREE, "SELECT note FROM visits")),
    *(f"/* discreet mode=replay */ {sql}" for sql in (*CHARGED, *FREE, "SELECT * FROM visits")),
    *FREE,
    *REFUSED,
    *("COPY visits TO STDOUT", "COPY prices TO STDOUT", "COPY visits FROM STDIN", "INSERT INTO visits VALUES (1)"),
    f"DECLARE c CURSOR WITH HOLD FOR {COUNT}; FETCH 0 c; CLOSE c",
    "BEGIN; SELECT note FROM visits",
    f"ROLLBACK; PREPARE p AS {BY_CITY}; DEALLOCATE p",
    "SELECT COUNT(*) AS n, error(m) FROM visits",
    "SELECT COUNT(*) FROM visits, pg_catalog.pg_class",
    "SELECT COUNT(*) FROM clinic.other.visits",
    f"/* epsilon=99 */ {COUNT}",
    f"/* epsilon=abc */ {COUNT}",
    f"/* within n=0 */ {COUNT}",
    "RESET ALL",
]
"""What is never charged."""


def test_what_needs_no_charge_is_equal(clients):
    before = [standing(one) for one in clients]
    for text in WIRE:
        one, other = both(lambda client, text=text: outcome(client, text), clients)
        assert one == other, text
        assert CANARY not in str(one)
    assert [standing(one) for one in clients] == before
    assert before[0] == before[1]


def shape(told):
    """What must be equal of an answer with noise: all but noisy values, their errors and notes, and receipts."""
    if len(told[0]) != 6:
        return told
    described, tag, columns, rows, notices, copy = told[0]
    shown = [column.name for column in columns]
    noisy = {f"{name}{end}" for name in shown if f"{name}_error" in shown for end in ("", "_error", "_low", "_high")}
    keys = [[row[place] for place, name in enumerate(shown) if name not in noisy] for row in rows]
    summary = _RECEIPT.sub("receipt", notices[0].message) if notices else ""
    return described, tag, columns, keys, summary, copy, told[1:]


@pytest.mark.parametrize("sql", CHARGED)
def test_what_is_charged_is_equal_but_for_the_noise(clients, sql):
    text = f"/* epsilon=0.05 */ {sql}"
    before = [standing(one) for one in clients]
    first = both(lambda client: outcome(client, text), clients)
    assert shape(first[0]) == shape(first[1])
    after = [standing(one) for one in clients]
    assert after[0] == after[1]
    answered = len(first[0][0]) == 6
    assert (after != before) == answered
    again = both(lambda client: outcome(client, text), clients)
    assert shape(again[0]) == shape(again[1])
    assert [standing(one) for one in clients] == after
    if answered:
        assert "answered before" in again[0][0][4][0].message
        assert [told[0][3] for told in again] == [told[0][3] for told in first]


# --- one real vault -----------------------------------------------------------------------------------------


@pytest.fixture
def client(clients):
    return clients[1]


def test_a_whole_session(client):
    """Describe, ask, ask again in other words, a cursor, COPY, a parameter: one charge."""
    before = len(client.house.charges())
    text = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    assert client.describe(text).columns == client.describe(text).columns
    assert len(client.house.charges()) == before
    rows = client.rows(f"/* epsilon=0.2 */ {text}")
    assert [row[0] for row in rows] == ["Haifa", "Koper", "Maribor"]
    client.query("SET discreet.epsilon = 0.2")
    assert client.rows(f"{text} LIMIT 1001") == rows
    results = client.query(f"BEGIN; DECLARE c CURSOR FOR {text}; FETCH 1 c; FETCH ALL c; COMMIT")
    assert [*results[2].rows, *results[3].rows] == rows
    assert list(client.run(f"COPY ({text}) TO STDOUT (FORMAT binary)").rows) == rows
    assert client.rows('SELECT "city", COUNT(*) AS "n" FROM "clinic"."public"."visits" GROUP BY "city"') == rows
    assert client.rows(f"/* discreet mode=replay */ {text}") == rows
    assert client.rows("SELECT city, COUNT(*) AS n FROM visits GROUP BY city LIMIT $1", 1001) == rows
    assert len(client.house.charges()) == before + 1
    assert client.show("discreet.remaining") == "ε = 2.8"
    refused = client.refused("SELECT COUNT(*) FROM public.visits WHERE nothing > 1")
    assert (refused.state, refused.position) == ("42703", 42)
    assert client.refused("/* epsilon=1.5 */ SELECT COUNT(*) FROM visits WHERE cost > 11").state == "53400"


def test_replay_is_the_usual_mode_of_tools(houses):
    service = client_of(houses[1], "dashboard", "service")
    before = len(houses[1].charges())
    refused = service.refused(COUNT)
    assert (refused.state, len(houses[1].charges())) == ("53400", before)
    assert service.query(f"SET discreet.mode = answer; {COUNT}")[1].tag == "SELECT 1"
    service.query("RESET ALL")
    assert "answered before" in said(service.run(COUNT))[0]
    viewer = client_of(houses[1], "looker", "viewer", None)
    assert viewer.refused(f"SET discreet.mode = answer; {COUNT}").state in ("53400", "42501")
    assert viewer.run("SELECT SUM(price) AS p FROM prices").rows == [(6,)]
    assert len(houses[1].charges()) == before + 1
    for one in (service, viewer):
        one.loop.run_until_complete(one.vault.close())
        one.close()


def test_who_stops_waiting_is_charged_and_asks_again_for_free(client):
    text = "/* epsilon=0.1 answer_after=2s */ SELECT COUNT(*) AS stopped FROM visits WHERE cost > 12"
    before = len(client.house.charges())

    async def cancel():
        [statement] = client.session.read(text)
        task = asyncio.ensure_future(client.session.run(statement))
        while len(client.house.charges()) == before:
            await asyncio.sleep(0.05)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        client.loop.run_until_complete(cancel())
    client.run(text)
    assert len(client.house.charges()) == before + 1


def test_two_sessions_do_not_meet(houses):
    """Cursors, settings, prepared statements and what was bought belong to one session or account."""
    one, other = (client_of(houses[1], f"meets.{name}") for name in "ab")
    for client in (one, other):
        client.query(f"SET discreet.epsilon = 0.07; DECLARE c CURSOR WITH HOLD FOR {COUNT}")
    one.query("FETCH c; PREPARE p AS SELECT 1")
    assert other.refused("EXECUTE p").state == "26000"
    assert other.refused(f"/* discreet mode=replay */ {COUNT}").state == "53400"
    assert "answered before" not in said(other.run("FETCH c"))[0]
    assert names(one.run(f"/* discreet mode=replay */ {COUNT}")) == ["n", "n_error"]
    for client in (one, other):
        client.loop.run_until_complete(client.vault.close())
        client.close()

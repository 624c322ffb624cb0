"""What accounts see of each other when answers are shared, where a loop of questions ends, and what frames of a desk
that was taken over can do to the vault.
"""

from __future__ import annotations

import json
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.gateway.frames import packed, receive
from discreet.gateway.remote_answer import RemoteAnswer

from ..house import BY_CITY, COUNT, House
from ..small_house import SmallHouse

GATEWAY = 'answer_after = 0\nshare = "everyone"\n[gateway.limits]\nsession = 0.5'
PARTS = (
    "SELECT a.n + b.m AS x FROM (SELECT COUNT(*) AS n FROM visits) a, "
    "(SELECT SUM(cost) AS m FROM visits WHERE cost > {}) b"
)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    made = House(tmp_path_factory.mktemp("others") / "house", GATEWAY).start()
    yield made
    assert made.stop() == 0
    assert made.ledger.verify() > 0


def left(house, token):
    return house.value(token, "budget")["remaining"]["epsilon"]


def charged(house, name):
    return [entry for entry in house.charges() if entry.analyst == name]


# --- shared answers -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_shared_answer_is_free_for_others_who_see_their_own_remaining(house):
    ada, bea = house.open("ada"), house.open("bea", epsilon=1)
    viewer, owner = house.open("vera", "viewer"), house.open("olga", "owner")
    sold = json.loads(house.ask(ada, key="k").body)
    assert sold["remaining"]["epsilon"] == pytest.approx(2.9)
    sold |= {"replayed": True}
    assert json.loads(house.ask(ada).body) == sold  # now it is remembered, with what remained to ada
    for token, remaining in ((bea, 1), (viewer, None), (owner, 7.9), (bea, 1)):
        seen = json.loads(house.ask(token).body)
        assert {key: seen[key] for key in seen if key != "remaining"} == {
            key: sold[key] for key in sold if key != "remaining"
        }
        assert seen["remaining"] == (None if remaining is None else {"epsilon": remaining})
        table = pa.ipc.open_stream(house.ask(token, format="arrow").body).read_all()
        facts = json.loads(table.schema.metadata[b"discreet"])
        assert facts["remaining"] == seen["remaining"]
        assert (facts["left"] is None) == (remaining is None)
    assert left(house, bea) == 1
    assert len(charged(house, "ada")) == 1
    assert not charged(house, "bea")
    assert house.value(bea, "again", receipt=sold["receipt"])["rows"] == sold["rows"]  # it is in her history now
    assert house.ask(bea, BY_CITY, key="k").header["ok"]  # the key is hers: it was ada's for another question
    assert json.loads(house.ask(bea).body)["remaining"]["epsilon"] == left(house, bea) == pytest.approx(0.9)
    assert json.loads(house.ask(ada).body) == sold


def test_what_remains_with_the_answer_of_another_account_is_what_remains_now(tmp_path):
    made = SmallHouse(tmp_path / "house", GATEWAY).start()
    try:
        ada, bea = made.open("ada"), made.open("bea", epsilon=1)
        for token, replayed, then in ((ada, False, False), (ada, True, True), (bea, True, False)):
            answer = RemoteAnswer.read(made.ask(token, format="arrow").body)
            assert (answer.replayed, answer.release.left_then) == (replayed, then)
            assert ("remained when it was asked first" in str(answer)) == then
    finally:
        made.stop()


@pytest.mark.slow
def test_what_the_owner_bought_is_shared_too(house):
    owner, cleo = house.open("otto", "owner"), house.open("cleo")
    sold = json.loads(house.ask(owner, "SELECT SUM(cost) AS owned FROM visits").body)
    seen = json.loads(house.ask(cleo, "SELECT SUM(cost) AS owned FROM visits").body)
    assert seen == sold | {"remaining": {"epsilon": 3}, "replayed": True}
    assert not charged(house, "cleo")


@pytest.mark.slow
def test_who_buys_a_part_pays_for_the_whole_and_the_limits_count_all_of_it(house):
    """Half of the statement was bought by another account. A lane finds only what the asker bought: both parts are
    charged, and both are counted.
    """
    one, two = house.open("dora"), house.open("emma")
    assert house.ask(one, COUNT, epsilon=0.15).header["ok"]
    assert house.ask(two, PARTS.format(7), epsilon=0.3).header["ok"]
    assert len(charged(house, "emma")) == 2
    assert left(house, two) == pytest.approx(2.7)
    assert house.value(two, "budget")["session"]["left"] == pytest.approx(0.2)
    assert json.loads(house.ask(one, PARTS.format(7), epsilon=0.3).body)["remaining"]["epsilon"] == pytest.approx(2.85)


# --- loops --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_loop_of_questions_ends_at_the_session_limit(house, many):
    token = house.open(f"loop{many}")

    def ask(number):
        return house.ask(token, f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number} + {many}")

    with ThreadPoolExecutor(8) as pool:
        headers = [reply.header for reply in pool.map(ask, range(many))]
    assert sum(header["ok"] for header in headers) == 5
    assert {header.get("code") for header in headers} == {None, "gateway-session-limit"}
    assert len(charged(house, f"loop{many}")) == 5
    assert left(house, token) == pytest.approx(2.5)


def test_a_plan_says_which_limit_would_refuse_the_question(house):
    token = house.open("fred")
    assert house.ask(token, COUNT, epsilon=0.4).header["ok"]
    asked = [(COUNT, 0.4), (BY_CITY, 0.1), (BY_CITY, 0.3)]  # the first one is bought
    plans = [house.value(token, "plan", sql=sql, epsilon=epsilon) for sql, epsilon in asked]
    assert [plan["hindrance"] is None for plan in plans] == [True, True, False]
    refused = house.ask(token, BY_CITY, epsilon=0.3).header["message"]
    assert plans[2]["hindrance"] in plans[2]["text"]
    assert plans[2]["hindrance"].endswith(refused.replace(" Nothing was charged.", ""))
    assert all("owes" not in plan for plan in plans)
    assert house.value(house.open("gina", "steward"), "plan", sql=COUNT, epsilon=0.7)["hindrance"] is None


# --- frames of a desk that was taken over -------------------------------------------------------------------

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
VERBS = st.sampled_from(["ask", "again", "plan", "tables", "login", "leaked", "me", "history", "open", "health", "no"])
FRAME = st.fixed_dictionaries(
    {"id": st.just(1) | ANY, "verb": VERBS | ANY},
    optional={"token": st.just("TOKEN") | ANY, "arguments": ANY, "address": ANY, "other": ANY},
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(
        [
            *("sql", "epsilon", "within", "delta", "weights", "bounds", "confidence", "format", "key", "answer_after"),
            *("receipt", "first", "last", "name", "link", "id_token", "nonce", "token", "x"),
        ]
    ),
    ANY | st.just(COUNT),
    max_size=5,
)


def memory(process):
    """The resident memory of a process, in MiB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def connect(house):
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(60)
    link.connect(str(house.socket))
    return link


def replied(house, sent, *, ends=False):
    """The reply to these bytes. None if the vault hangs up. A vault that does neither fails the test."""
    with connect(house) as link:
        link.sendall(sent)
        if ends:
            link.shutdown(socket.SHUT_WR)
        return receive(link)


def is_writable(content):
    try:
        return bool(json.dumps(content, ensure_ascii=False, allow_nan=False).encode())
    except ValueError:
        return False


def others_are_served(house):
    assert house.call("health", None).header["ok"]


LOOSE = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@LOOSE
@given(header=FRAME)
def test_no_header_stops_the_vault(house, header):
    text = json.dumps(header).encode()
    reply = replied(house, struct.pack("!II", len(text), 0) + text)
    if type(header["id"]) is int and is_writable(header):
        assert reply.header["id"] == header["id"]
        assert reply.header["ok"] or reply.header["code"]
    else:
        assert reply is None
    others_are_served(house)


@pytest.mark.slow
@LOOSE
@given(verb=VERBS, arguments=ARGUMENTS)
def test_no_argument_stops_the_vault(house, verb, arguments):
    """A body of JSON always gets a reply: an answer, or a refusal."""
    if not hasattr(house, "fuzzer"):
        house.fuzzer = house.open("fuzzer", "viewer")
    body = json.dumps(arguments).encode()
    reply = replied(house, packed({"id": 1, "verb": verb, "token": house.fuzzer}, body))
    assert reply is not None
    assert reply.header["ok"] or reply.header["code"]
    assert reply.header.get("code") != "gateway-failed"


@LOOSE
@given(sent=st.binary(max_size=60) | st.binary(max_size=60).map(lambda rest: struct.pack("!II", len(rest), 0) + rest))
def test_no_bytes_stop_the_vault(house, sent):
    reply = replied(house, sent, ends=True)
    assert reply is None or "ok" in reply.header


def test_giant_and_deep_frames_take_no_memory(house):
    """Lengths that are too large are refused before anything is read, and deep JSON is no frame."""
    before = memory(house.process)
    deep = b'{"id": 1, "verb": ' + b"[" * 400_000 + b"]" * 400_000 + b"}"
    for sent in (
        struct.pack("!II", 2**32 - 1, 2**32 - 1),
        struct.pack("!II", 2**20 + 1, 0),
        struct.pack("!II", 2, 2**30) + b"{}",
        struct.pack("!II", len(deep), 0) + deep,
    ):
        assert replied(house, sent) is None
    body = deep[18:-1]
    for verb in ("ask", "login", "open"):
        refused = replied(house, packed({"id": 1, "verb": verb, "token": None}, body))
        assert refused.header["code"] in ("gateway-body", "gateway-login")
    open_ends = [connect(house) for _ in range(50)]
    for link in open_ends:  # they promise more than they send
        link.sendall(struct.pack("!II", 2**20, 2**22) + bytes(1000))
    others_are_served(house)
    for link in open_ends:
        link.close()
    assert memory(house.process) < before + 100

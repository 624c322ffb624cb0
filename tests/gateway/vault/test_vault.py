"""The vault: what is free, what is charged, who sees what, and what happens when somebody asks twice."""

from __future__ import annotations

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import discreet as dp
from discreet.gateway.books import accounts, late
from discreet.gateway.books.tokens import COMMAND_LINE

from ..house import BY_CITY, COUNT, House, answer_in


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    made = House(tmp_path_factory.mktemp("house")).start()
    yield made
    assert made.stop() == 0
    assert made.ledger.verify() > 0


def remaining(house, token):
    return house.value(token, "budget")["remaining"]["epsilon"]


@pytest.mark.slow
def test_an_answer_is_charged_once_and_then_free(house):
    token = house.open("ada")
    first = house.ask(token)
    assert first.header["ok"]
    assert remaining(house, token) == pytest.approx(2.9)
    for sql in (
        COUNT,
        COUNT,
        f"{COUNT} LIMIT 1",
        "select count(*) as n from visits",
        "SELECT COUNT(*) AS m FROM visits",
    ):
        again = house.ask(token, sql)
        assert json.loads(again.body)["rows"] == json.loads(first.body)["rows"]
        assert json.loads(again.body)["receipt"] == json.loads(first.body)["receipt"]
    assert answer_in(house.ask(token)) == answer_in(first)
    assert remaining(house, token) == pytest.approx(2.9)
    [mine] = [entry for entry in house.charges() if entry.analyst == "ada"]
    assert mine.state == "answered"


@pytest.mark.slow
def test_a_hundred_connections_pay_once(house):
    token = house.open("bea")
    with ThreadPoolExecutor(100) as pool:
        replies = list(pool.map(lambda _: house.ask(token, BY_CITY), range(100)))
    assert len({(json.dumps(reply.header), json.dumps(answer_in(reply))) for reply in replies}) == 1
    assert sum(entry.analyst == "bea" for entry in house.charges()) == 1
    assert house.value(token, "me")["limits"]["question"]["limit"] == 1


def test_a_key_is_for_one_question(house):
    token = house.open("cleo")
    first = house.ask(token, key="k1")
    assert answer_in(house.ask(token, key="k1")) == answer_in(first)
    other = house.ask(token, BY_CITY, key="k1")
    assert other.header["code"] == "ledger-key-reused"
    assert sum(entry.analyst == "cleo" for entry in house.charges()) == 1


@pytest.mark.slow
def test_answers_of_others_are_not_shared(house):
    one, two = house.open("dora"), house.open("emma")
    first = json.loads(house.ask(one, BY_CITY).body)
    assert house.value(one, "again", receipt=first["receipt"])["rows"] == first["rows"]
    theirs, unknown = (house.call("again", two, receipt=name) for name in (first["receipt"], "999-ffff"))
    assert theirs.header == unknown.header
    assert theirs.header["code"] == "gateway-not-found"
    second = json.loads(house.ask(two, BY_CITY).body)
    assert second["receipt"] != first["receipt"]


def test_a_viewer_buys_nothing(house):
    token, owner = house.open("vera", "viewer"), house.open("olga", "owner")
    before = len(house.charges())
    refused = house.ask(token, "SELECT SUM(cost) AS s FROM visits")
    assert refused.header["code"] == "gateway-not-bought"
    assert len(house.charges()) == before
    bought = house.ask(owner, "SELECT SUM(cost) AS s FROM visits")
    seen = json.loads(house.ask(token, "SELECT SUM(cost) AS s FROM visits").body)
    assert seen == json.loads(bought.body) | {"remaining": None, "replayed": True}  # a viewer has no budget


def test_suspension_and_revocation_hold_at_once(house):
    token = house.open("fay")
    assert house.ask(token).header["ok"]
    store = house.store
    accounts.set_suspended(store, "fay", suspended=True, by=COMMAND_LINE, now=time.time())
    assert house.ask(token).header["code"] == "gateway-suspended"
    accounts.set_suspended(store, "fay", suspended=False, by=COMMAND_LINE, now=time.time())
    assert house.ask(token).header["ok"]
    accounts.revoke_all(store, "fay", by=COMMAND_LINE, now=time.time())
    gone, never = house.ask(token), house.ask("dsc_0123456789abcdef_" + "0" * 64)
    assert gone.header == never.header
    assert gone.header["code"] == "gateway-login"


@pytest.mark.some_quick(6)
@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"sql": "SELECT * FROM visits"}, "sql-not-aggregated"),
        ({"sql": "SELEC"}, "sql-not-a-query"),
        ({"sql": COUNT, "epsilon": 2}, "gateway-question-limit"),
        ({"sql": COUNT, "epsilon": -1}, "out-of-range"),
        ({"sql": COUNT, "epsilon": "1"}, "not-a-number"),
        ({"sql": COUNT, "epsilons": 1}, "gateway-argument"),
        ({"sql": 7}, "gateway-question"),
        ({"sql": COUNT, "within": [1]}, "wrong-type"),
        ({"sql": COUNT, "format": "xml"}, "not-an-option"),
        ({"sql": COUNT, "answer_after": "soon"}, "gateway-duration"),
        ({"sql": COUNT, "key": ""}, "ledger-key"),
    ],
)
def test_refusals_cost_nothing(house, given, code):
    name = f"r{abs(hash(code + str(given))) % 10**6}"
    token = house.open(name)
    count = len(house.charges())
    assert house.call("ask", token, **given).header["code"] == code
    assert len(house.charges()) == count


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["ask", "plan"])
def test_without_a_cost_a_question_that_nothing_helps_is_refused_as_such(silent_house, verb):
    house, token = silent_house
    refused = house.call(verb, token, sql="SELECT cty FROM visits").header
    assert (refused["code"], refused["position"]) == ("sql-unknown-column", 7)
    assert house.call(verb, token, sql="SELECT * FROM visits LIMIT 10").header["code"] == "sql-not-aggregated"
    assert house.call(verb, token, sql=COUNT).header["code"] == "epsilon-or-within"
    assert house.call(verb, token, sql=7).header["code"] == "gateway-question"
    assert not house.charges()


@pytest.fixture(scope="module")
def silent_house(tmp_path_factory):
    """A gateway whose owner does not say what a question costs."""
    made = House(tmp_path_factory.mktemp("silent"))
    made.policy.write_text(made.policy.read_text().replace("default = 0.1\n", ""))
    made.start()
    yield made, made.open("ida")
    made.stop()


@pytest.mark.slow
def test_gaussian_noise_counts_against_the_limits(house):
    """Its guarantee has no largest loss: what was asked for counts."""
    token = house.open("gus")
    counts = ", ".join(f"COUNT(*) FILTER (WHERE cost < {n}) AS n{n}" for n in range(1, 31))
    many = f"SELECT {counts} FROM visits"
    assert house.value(token, "plan", sql=many, epsilon=0.9, delta=1e-6)["noise"] == "Gaussian"
    assert house.ask(token, many, epsilon=1.5, delta=1e-6).header["code"] == "gateway-question-limit"


def test_public_questions_and_plans_are_free(house):
    token = house.open("gail")
    count = len(house.charges())
    exact = json.loads(house.ask(token, "SELECT SUM(price) AS p FROM prices").body)
    assert exact["rows"] == [[6]]
    plan = house.value(token, "plan", sql=COUNT, epsilon=0.5)
    assert plan["guarantee"]
    named = {table["name"] for table in house.value(token, "tables")["tables"]}
    assert named == {"visits", "prices"}
    assert len(house.charges()) == count


@pytest.mark.slow
def test_the_files_may_change_but_the_version_does_not(house):
    """What is published is a copy: nothing derived from the files is shown or decides what is free."""
    token = house.open("hope")
    first = house.ask(token)
    (house.folder / "visits.parquet").write_bytes(b"not even a table")
    assert answer_in(house.ask(token)) == answer_in(first)
    assert house.ask(token, "SELECT AVG(cost) AS a FROM visits").header["ok"]


@pytest.mark.slow
def test_formats(house):
    import pyarrow as pa

    token = house.open("iris")
    table = pa.ipc.open_stream(house.ask(token, format="arrow").body).read_all()
    assert table.column_names == ["n", "n_error"]
    assert house.ask(token, format="csv").body.startswith(b"n,n_error")


@pytest.mark.slow
def test_late_answers_stay_charged_and_stop_the_gateway(tmp_path):
    """Slots that are too short for any answer: all are late."""
    house = House(tmp_path / "late", 'answer_after = "1ms"\nlate_allowed = 1')
    house.start(str(Path(__file__).parents[1] / "programs/hurried.py"))
    token, other = house.open("ada"), house.open("bea")
    first = house.ask(token, key="k")
    assert (first.header["kind"], first.header["code"]) == ("EngineFailed", "gateway-late")
    assert first.body == b""
    assert remaining(house, token) == pytest.approx(2.9)
    assert house.ask(token, key="k").header == first.header  # one key is never charged twice
    assert house.ask(token, BY_CITY, key="k").header["code"] == "ledger-key-reused"
    assert remaining(house, token) == pytest.approx(2.9)
    second = house.ask(token)
    assert second.header == first.header
    assert remaining(house, token) == pytest.approx(2.8)  # to ask again is a new charge
    stopped = house.ask(other, BY_CITY)
    assert stopped.header["code"] == "gateway-stopped"  # the second late answer was one too many, for everybody
    assert remaining(house, other) == pytest.approx(3)
    assert house.value(other, "plan", sql=COUNT)["guarantee"]  # what is free still is
    accounts.set_suspended(house.store, None, suspended=False, by=COMMAND_LINE, now=time.time())
    assert late.late_count(house.store) == 0
    assert house.ask(other, BY_CITY).header["code"] == "gateway-late"
    assert {entry.state for entry in house.charges()} <= {"discarded", "reserved"}
    house.stop()
    assert house.ledger.verify() > 0


@pytest.mark.slow
def test_a_vault_that_is_stopped_finishes_what_it_began(tmp_path):
    house = House(tmp_path / "house", 'answer_after = "3s"').start()
    token = house.open("ada")
    with house.link() as link, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(link.call, "ask", token, sql=COUNT)
        while not house.charges():
            time.sleep(0.01)
        house.process.send_signal(signal.SIGTERM)
        assert waiting.result().header["ok"]
    assert house.process.wait(timeout=30) == 0
    house.start()
    assert house.ask(token).header["ok"]
    assert len(house.charges()) == 1
    assert dp.Ledger.open(house.folder / "clinic.ledger").verify() == 3
    house.stop()

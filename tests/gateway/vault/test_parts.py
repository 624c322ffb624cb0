"""Questions about parts, through the gateway: each part is charged alone, for the account and for the data set."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.frames import Link
from discreet.gateway.settings import load_settings
from discreet.gateway.vault.asking import Asked, read_question
from discreet.gateway.vault.purchase import Purchase
from discreet.gateway.wire.format.values import Refusal
from discreet.gateway.wire.options import Settings, options_of, parts_of
from discreet.ledger import Ledger
from discreet.ledger.texts.record import to_text

from ...refusing import refuses
from ..console.in_process import pages_of
from ..desk.a_desk import desk
from ..house import CITIES, COUNT, House, answer_in
from ..served import Served
from ..small_house import SmallHouse
from ..wire.wire_vault import Client

MONTHS = ("2024-01", "2024-02", "2024-03")
POLICY = """\
[ledger]
path = "clinic.ledger"
epsilon = 8
delta = 1e-5

[unit]
person = "id"
{per}
[tables.visits]
source = "visits.parquet"
rows_per_person = 3
[tables.visits.time]
column = "day"
block = "month"
[tables.visits.columns.city]
choices = ["Haifa", "Koper", "Maribor"]
[tables.visits.columns.id]
type = "integer"

[tables.prices]
source = "prices.parquet"
public = true

[gateway]
{gateway}
[gateway.question]
default = 0.1
most = 1.0
"""


class Months(SmallHouse):
    """A clinic whose units are one person in one month, or a whole person."""

    def __init__(self, folder: Path, gateway: str = "answer_after = 0", *, per: bool = True) -> None:
        super().__init__(folder, gateway)
        self.unit = dp.person("id", per="month" if per else None)
        days = [f"{MONTHS[n % 3]}-01" for n in range(300)]
        found = {"id": [n // 3 for n in range(300)], "city": [CITIES[n % 3] for n in range(300)]}
        visits = pa.table(found | {"day": pa.array(days).cast(pa.date32())})
        pq.write_table(visits, folder / "visits.parquet")
        self.policy.write_text(POLICY.format(per='per = "month"\n' if per else "", gateway=gateway))

    @property
    def ledger(self) -> Ledger:
        limit = dp.Approx(epsilon=self._epsilon, delta=1e-5)
        return Ledger.open(self.folder / "clinic.ledger", protects=self.unit, limit=limit)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Months]:
    made = Months(tmp_path_factory.mktemp("months") / "house")
    made.start()
    made.open("guest")
    yield made
    assert made.stop() == 0
    assert made.ledger.verify() > 0


def spent(house: Months, name: str) -> dict[str, float]:
    """What an account has spent of each part that it charged alone."""
    account = house.ledger.for_analyst(name)
    return {part: float(budget.spent.epsilon) for part, budget in account.parts.items()}


@pytest.mark.slow
def test_each_part_has_the_limit_of_the_account(house: Months) -> None:
    token = house.open("ada", epsilon=1)
    for month in MONTHS[:2]:
        assert house.ask(token, parts=[month], epsilon=1).header["ok"]
    assert spent(house, "ada") == {"2024-01": 1, "2024-02": 1}
    more = "SELECT COUNT(*) AS n FROM visits WHERE city = 'Haifa'"
    for parts in (["2024-01"], ["2024-01", "2024-03"], None):
        given = {} if parts is None else {"parts": parts}
        assert house.ask(token, more, epsilon=0.5, **given).header["kind"] == "BudgetExhausted"
    assert house.ask(token, more, epsilon=0.5, parts=["2024-03"]).header["ok"]
    mine = [entry.parts for entry in house.charges() if entry.analyst == "ada"]
    assert mine == [("2024-01",), ("2024-02",), ("2024-03",)]


def test_what_was_bought_in_a_part_is_free_there_and_nowhere_else(house: Months) -> None:
    token = house.open("bea")
    first = json.loads(house.ask(token, parts=["2024-01"]).body)
    again = json.loads(house.ask(token, f"{COUNT} LIMIT 1", parts=["2024-01"]).body)
    assert (again["rows"], again["receipt"]) == (first["rows"], first["receipt"])
    assert len(spent(house, "bea")) == 1
    for other in ({"parts": ["2024-02"]}, {"parts": ["2024-01", "2024-02"]}, {}):
        assert json.loads(house.ask(token, **other).body)["receipt"] != first["receipt"]
    assert len([one for one in house.charges() if one.analyst == "bea"]) == 4
    found = house.value(token, "again", receipt=first["receipt"])
    assert found["rows"] == first["rows"]
    assert house.value(token, "history")["questions"][0]["options"]["parts"] == ["2024-01"]


def test_a_key_is_for_one_part(house: Months) -> None:
    token = house.open("cleo")
    first = house.ask(token, key="k", parts=["2024-01"])
    assert answer_in(house.ask(token, key="k", parts=["2024-01"])) == answer_in(first)
    for other in ({"parts": ["2024-02"]}, {}):
        assert house.ask(token, key="k", **other).header["code"] == "ledger-key-reused"


@pytest.mark.parametrize("parts", [["2024-1"], ["January"], ["2024-01", "North"], ["2024-13"]])
def test_a_wrong_name_gets_the_words_of_the_library(house: Months, parts: list[str]) -> None:
    token, before = house.token("guest"), len(house.charges())
    library = dp.connect(house.policy)
    with pytest.raises(dp.errors.InvalidArgument) as wrong:
        library.part(*parts)
    for verb in ("ask", "plan"):
        header = house.call(verb, token, sql=COUNT, parts=parts).header
        assert (header["code"], header["message"]) == (wrong.value.code, str(wrong.value))
    assert len(house.charges()) == before
    library.close()


@pytest.mark.parametrize("parts", [[], "2024-01", [3], [""], ["a" * 2000], {"2024-01": 1}, ["2024-01"] * 2000])
def test_what_names_no_parts_is_refused(house: Months, parts: Any) -> None:
    header = house.ask(house.token("guest"), parts=parts).header
    assert header["code"] == "part-name"


def test_a_plan_says_the_parts_and_what_remains_to_them(house: Months) -> None:
    token = house.open("dora", epsilon=1)
    assert house.ask(token, parts=["2024-01"], epsilon=0.75).header["ok"]
    other = "SELECT COUNT(*) AS n FROM visits WHERE city = 'Koper'"
    january, february = (house.value(token, "plan", sql=other, epsilon=0.5, parts=[one]) for one in MONTHS[:2])
    assert january["parts"] == ["2024-01"]
    assert "2024-01" in january["text"]
    assert (january["fits"], february["fits"]) == (False, True)
    assert (january["left"], february["left"]) == ("ε = 0.25", "ε = 1")
    assert february["after"] == "ε = 0.5"
    assert house.value(token, "plan", sql=COUNT, epsilon=0.75, parts=["2024-01"])["bought"]


def test_a_viewer_buys_no_part(house: Months) -> None:
    token = house.open("vera", "viewer")
    assert house.ask(token, parts=["2024-01"]).header["code"] == "gateway-not-bought"


class Processes(Months):
    """The same with a vault in a process of its own, whose lanes can be killed."""

    start, stop = House.start, House.stop  # type: ignore[assignment]


@pytest.mark.slow
def test_a_late_question_is_charged_to_its_part(tmp_path: Path) -> None:
    """Slots that are too short for any answer. However far it came, its part alone is charged, and all of it."""
    house = Processes(tmp_path / "late", 'answer_after = "1ms"\nlate_allowed = 9')
    token = house.open("ada", epsilon=1)
    house.start(str(Path(__file__).parents[1] / "programs/hurried.py"))
    assert house.ask(token, parts=["2024-02"], epsilon=0.5).header["code"] == "gateway-late"
    found = house.ledger.for_analyst("ada").parts
    assert {part: float(budget.spent.epsilon) for part, budget in found.items()} == {"2024-02": 0.5}
    assert [entry.parts for entry in house.charges()] == [("2024-02",)]
    assert house.stop() == 0
    assert house.ledger.verify()


@pytest.mark.parametrize("within", [[["2024-02"], 0], [[], 0]])
def test_what_is_settled_late_is_charged_to_its_parts(tmp_path: Path, within: Any) -> None:
    unit = dp.person("id", per="month")
    ledger = Ledger.open(":memory:", protects=unit, limit=dp.Pure(epsilon=1))
    store = GatewayStore(str(tmp_path / "clinic.gateway"))
    given: Any = {"view": lambda caller: ledger, "store": store, "office": SimpleNamespace(now=time.time)}
    caller: Any = SimpleNamespace(account="ada", role="owner")
    costs = {"owed": [to_text(dp.Pure(epsilon=0.5, protects=unit))] * 2, "epsilon": "1", "within": within, "name": ""}
    late = Purchase(SimpleNamespace(**given), caller, Asked(sql=COUNT, options={}), costs)  # type: ignore[arg-type]
    first = late._ledger.charge(dp.Pure(epsilon=0.5), asked="the first of two", key="k")
    late.settle(SimpleNamespace(reply=None, charging=[("k", None)]))  # type: ignore[arg-type]
    entries = ledger.entries()
    assert [entry.parts for entry in entries] == [tuple(within[0])] * 2
    assert [entry.state for entry in entries] == ["discarded", "reserved"]
    assert first.number == 1
    store.close()


def test_a_late_question_that_is_charged_to_everything_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What remains to other parts would say how far it came."""
    right = Purchase.costs
    monkeypatch.setattr(Purchase, "costs", lambda self, said: right(self, {**said, "within": [[], 0]}))
    with pytest.raises(AssertionError):
        test_what_is_settled_late_is_charged_to_its_parts(tmp_path, [["2024-02"], 0])


def test_a_person_is_charged_for_everything(tmp_path: Path) -> None:
    """One person may be in all months: a part is only a filter."""
    house = Months(tmp_path / "people", per=False)
    token = house.open("ada", epsilon=1)
    house.start()
    january = json.loads(house.ask(token, parts=["2024-01"], epsilon=0.75).body)
    assert january["remaining"]["epsilon"] == 0.25
    assert house.ask(token, parts=["2024-02"], epsilon=0.75).header["kind"] == "BudgetExhausted"
    assert [entry.parts for entry in house.charges()] == [()]
    assert house.stop() == 0


# --- clients ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_python_client_names_parts(house: Months, tmp_path: Path) -> None:
    token = house.open("emma", epsilon=1)
    with desk(tmp_path, vault_at=house.socket) as running:
        clinic = dp.remote(running.url, token=token)
        january = clinic.part("2024-01")
        answer = january.sql(COUNT, epsilon=1)
        assert "2024-01" in " ".join(answer.notes)
        assert clinic.part("2024-02").sql(COUNT, epsilon=1).receipt != answer.receipt
        assert "2024-01" in str(january.explain(COUNT, epsilon=1))
        assert (january.parts, clinic.parts) == (("2024-01",), None)
        assert "2024-01" in repr(january)
        assert january.again(answer.receipt).to_pandas().equals(answer.to_pandas())
        with refuses(dp.errors.InvalidArgument, "part-name"):
            clinic.part("January").sql(COUNT, epsilon=1)
        with refuses(dp.errors.BudgetExhausted, "budget-exhausted"):
            clinic.sql(COUNT, epsilon=1)
        for names in ((), ("",), (3,)):
            with refuses(dp.errors.InvalidArgument, "part-name"):
                clinic.part(*names)  # type: ignore[arg-type]
        with refuses(dp.errors.InvalidArgument, "part-of-part"):
            january.part("2024-02")
        clinic.close()
    assert spent(house, "emma") == {"2024-01": 1, "2024-02": 1}


def test_a_client_of_postgresql_sets_a_part(house: Months) -> None:
    token = house.open("fay", epsilon=1)
    link = Link(house.socket)
    client = Client(link, token)
    try:
        _set_parts(house, client)
    finally:
        client.loop.run_until_complete(link.close())
        client.close()


def _set_parts(house: Months, client: Client) -> None:
    client.query("SET discreet.epsilon = 0.5; SET discreet.part = '2024-01'")
    first = client.rows(COUNT)
    assert client.rows(COUNT) == first
    plan = client.run(f"EXPLAIN {COUNT}")
    assert "2024-01" in str(plan.rows)
    assert client.rows(f"/* part=2024-02 */ {COUNT}") != []
    assert spent(house, "fay") == {"2024-01": 0.5, "2024-02": 0.5}
    assert client.show("discreet.part") == "2024-01"
    client.query("SET discreet.part = 'January'")
    assert "2024-01" in client.refused(COUNT).message + str(client.refused(COUNT).hint)
    client.query("RESET discreet.part")
    assert client.rows(COUNT)
    assert [entry.parts for entry in house.charges() if entry.analyst == "fay"] == [("2024-01",), ("2024-02",), ()]


def test_a_page_keeps_the_parts_of_a_question(house: Months) -> None:
    """The link from an answer asks the same question again, and hostile names do not run."""
    token = house.open("gwen", epsilon=1)
    with pages_of(house) as pages:
        gwen = pages.visitor(token)
        place = gwen.ask(COUNT, epsilon="0.5", part="2024-03").headers["location"]
        assert spent(house, "gwen") == {"2024-03": 0.5}
        answer = gwen.get(place).text
        assert "part=2024-03" in answer
        asked = gwen.get("/ask", sql=COUNT, part=["2024-03", "2024-01"]).text
        assert "Only in 2024-03, 2024-01" in asked
        assert 'name="part" value="2024-01"' in asked
        assert "Only in" not in gwen.get("/ask", sql=COUNT).text
        assert "<i>x" not in gwen.get("/ask", sql=COUNT, part="<i>x").text


@pytest.mark.parametrize(
    ("text", "names"),
    {
        "2024-01": ["2024-01"],
        " 2024-01 , 2024-02 ": ["2024-01", "2024-02"],
        'North Shore, "a, ""b"""': ["North Shore", 'a, "b"'],
    }.items(),
)
def test_the_names_in_a_setting(text: str, names: list[str]) -> None:
    assert parts_of(text) == names
    settings = Settings("ana", "analyst", {})
    settings.set("discreet.part", text)
    assert options_of([], settings).arguments["parts"] == names


@pytest.mark.parametrize("text", [" ", ",", "a,,b", '"a', 'a"b', '""'])
def test_settings_that_name_no_part(text: str) -> None:
    with pytest.raises(Refusal):
        Settings("ana", "analyst", {}).set("discreet.part", text)


def test_two_parts_are_two_questions(house: Months) -> None:
    """Everything that names a question tells its parts apart: what waits, what is late, what is approved."""
    settings = load_settings(house.policy)[1]
    asked = [read_question({"sql": COUNT, **one}, settings) for one in ({}, {"parts": ["a"]}, {"parts": ["b"]})]
    assert len({one.words for one in asked}) == len({one.digest for one in asked}) == 3


class ServedMonths(Served):
    """A whole gateway, with an address for the PostgreSQL protocol."""

    def __init__(self, folder: Path, gateway: str) -> None:
        super().__init__(folder, gateway)
        made = Months(folder, gateway)
        self.unit, self.policy = made.unit, made.policy

    ledger = Months.ledger


@pytest.mark.slow
def test_psycopg_names_a_part(tmp_path: Path) -> None:
    place = 'http = "127.0.0.1:0"\npostgres = "127.0.0.1:0"\nanswer_after = 0'
    house = ServedMonths(tmp_path / "clinic", place)
    token = house.open("ada", epsilon=1)
    house.serve("--not-isolated")
    assert house.process.stdout is not None
    address = urlsplit(house.process.stdout.readline().split()[1])
    assert address.path == "/clinic"
    given = {"host": address.hostname, "port": address.port, "user": "ada", "password": token, "dbname": "clinic"}
    try:
        with psycopg.connect(**given, options="-c discreet.part=2024-01", autocommit=True) as connection:
            connection.execute("SET discreet.epsilon = 1")
            assert connection.execute(COUNT).fetchall() == connection.execute(COUNT).fetchall()
            connection.execute("SET discreet.part = '2024-02'")
            assert connection.execute(COUNT).fetchall()
            connection.execute("SET discreet.part = '2024-2'")
            with pytest.raises(psycopg.Error):
                connection.execute(COUNT)
        reply = house.post(token, COUNT, json={"sql": COUNT, "parts": ["2024-03"], "epsilon": 1})
        assert reply.status_code == 200
        assert [entry.parts for entry in house.charges()] == [(month,) for month in MONTHS]
    finally:
        house.stop()

"""Two gateways that differ only in their rows: one has none, the other has hostile ones. Everything that leaves them is
equal but for noise, receipts and times: bytes of plans, tables and errors, columns, types, what is free, what remains.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.gateway.books import late

from ..house import BY_CITY, CITIES, COUNT, House
from ..small_house import SmallHouse

CANARY = "zq7canary"
"""In no reply, and in no file that the gateway writes, but for the copy of the data."""
COLUMNS = """\
[tables.visits.columns.amount]
between = [-1000, 1000]
[tables.visits.columns.day]
between = ["2020-01-01", "2030-01-01"]

[gateway]"""
SCHEMA = pa.schema(
    {"id": pa.int64(), "city": pa.string(), "cost": pa.float64(), "amount": pa.int64()}
    | {"note": pa.string(), "day": pa.date32()}
)
HOSTILE = [
    (10_000, "Haifa", float("nan"), 2**63 - 1, f"{CANARY} 1", date(2024, 2, 29)),
    (10_000, "Koper", float("inf"), -(2**63), "", date(1, 1, 1)),
    (10_000, "Maribor", float("-inf"), 0, "' OR 1=1 --", date(9999, 12, 31)),
    (10_000, f"{CANARY} 2", 1e308, None, "0x10", None),
    (10_000, None, -1.0, 1, '{"a": [', date(2024, 1, 1)),
    (None, "Haifa", 0.0, 7, None, date(2024, 1, 1)),
    (None, f"{CANARY} 3", None, 0, "(((", date(2024, 1, 1)),
    *[(10_001, "=1+1", 5e-324, n, f"{CANARY} {n}", date(2024, 1, 1)) for n in range(50)],
]


class Neighbor(SmallHouse):
    """A house with these rows, in this process."""

    def __init__(self, folder, rows, gateway="answer_after = 0\nlate_allowed = 100"):
        super().__init__(folder, gateway)
        made = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
        pq.write_table(pa.Table.from_pylist(made, SCHEMA), folder / "visits.parquet")
        self.policy.write_text(self.policy.read_text().replace("[gateway]", COLUMNS, 1))


def ordinary(people=100):
    return [(n // 3, CITIES[n % 3], float(n % 100), n, str(n), date(2024, 1, 1 + n % 28)) for n in range(3 * people)]


def both(call, houses, *others):
    """The same at both gateways, at the same time."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(call, houses, *others))


class Apart(Neighbor):
    """The same with a vault in a process of its own, whose slots may be too short for any answer."""

    def start(self):
        return House.start(self, str(Path(__file__).parents[1] / "programs" / "hurried.py"))

    def stop(self):
        return House.stop(self)


@contextmanager
def two(kind, folder):
    """Two running houses: one without rows, and one with hostile ones."""
    made = [kind(folder / "empty", []), kind(folder / "hostile", ordinary() + HOSTILE)]
    for house in made:
        house.start()
    yield made
    both(kind.stop, made)
    for house in made:
        house.ledger.verify()


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    with two(Neighbor, tmp_path_factory.mktemp("neighbors")) as made:
        yield made


@pytest.fixture(scope="module")
def apart(tmp_path_factory):
    with two(Apart, tmp_path_factory.mktemp("apart")) as made:
        yield made


def opened(houses, name):
    """A token of the same account at each house."""
    known = houses[0].__dict__.setdefault("tokens", {})
    if name not in known:
        known[name] = [house.open(name) for house in houses]
    return known[name]


@pytest.fixture
def tokens(houses, request):
    return opened(houses, request.node.name.split("[")[0][5:45])


def standing(house, token):
    """What the ledger and the limits say about an account, and how many charges there are in all."""
    return house.call("budget", token), len(house.charges())


def shape(reply):
    """What must be equal of an answer with noise: all but the noisy values, their errors, and the receipt."""
    facts = pa.ipc.open_stream(reply.body).read_all()
    said = json.loads(facts.schema.metadata.pop(b"discreet"))
    keys = [facts[name].to_pylist() for name in facts.column_names if name not in _noisy(said)]
    noisy = {"receipt", "rows", "errors", "low", "high", "summed", "clipped", "notes", "chosen"}
    fields = [(field.name, str(field.type), field.nullable) for field in facts.schema]
    return fields, facts.num_rows, keys, {name: value for name, value in said.items() if name not in noisy}


def _noisy(said):
    return {f"{name}{end}" for name in said["noisy"] for end in ("", "_error", "_low", "_high")}


CHARGED = [
    COUNT,
    BY_CITY,
    "SELECT SUM(cost) AS s, MIN(cost) AS low, MEDIAN(cost) AS half FROM visits",
    "SELECT city, COUNT(DISTINCT id) AS n FROM visits GROUP BY city ORDER BY city DESC LIMIT 2",
    "SELECT SUM(amount * amount) AS s FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE 100 / cost > 1",
    "SELECT COUNT(*) AS n FROM visits WHERE ln(cost) > 1 OR sqrt(cost) > 2",
    "SELECT COUNT(*) AS n FROM visits WHERE 1 / amount > 0",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(note AS INTEGER) > 3",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(note AS DATE) > day",
    "SELECT COUNT(*) AS n FROM visits WHERE day + INTERVAL 1 YEAR > DATE '2024-01-01'",
    "SELECT COUNT(*) AS n FROM visits WHERE amount + amount > 3",
    "SELECT EXTRACT(year FROM day) AS y, COUNT(*) AS n FROM visits GROUP BY y",
    "SELECT a.n / b.m AS x FROM (SELECT COUNT(*) AS n FROM visits) a, (SELECT SUM(cost) AS m FROM visits) b",
    f"SELECT COUNT(*) AS n FROM visits WHERE city = '{CANARY[::-1]}'",
]
"""Charged if they are allowed at all."""
REFUSED = [
    *(
        "SELECT 1 AS one",
        "SELECT * FROM visits",
        "SELEC",
        "SELECT 1; SELECT 2",
        "SELECT note FROM visits",
        "SELECT MAX(note) FROM visits",
    ),
    "SELECT json_extract(note, '$.a') AS a, COUNT(*) AS n FROM visits GROUP BY a",
    "SELECT COUNT(*) FROM visits WHERE regexp_matches(note, note)",
    "SELECT COUNT(*) FROM visits WHERE cost = (SELECT cost FROM visits)",
    "SELECT COUNT(*) FROM visits WHERE id IN (SELECT amount FROM visits)",
    "SELECT COUNT(*) FROM visits WHERE error('x') IS NULL",
    "SELECT COUNT(*) FROM visits WHERE random() < 0.5",
    "SELECT COUNT(*) FROM visits WHERE now() > day",
    "SELECT COUNT(*) FROM visits a, visits b",
    "SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 3) AS t",
    "SELECT COUNT(*) FROM visits TABLESAMPLE 10%",
    "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT COUNT(*) FROM t",
    *("SELECT COUNT(*) FROM read_csv('/etc/passwd')", "COPY visits TO '/tmp/x'", "ATTACH 'x.db'", "PRAGMA version"),
    *("SET threads = 1", "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM duckdb_tables()"),
    *("SELECT reltuples FROM pg_catalog.pg_class", "SELECT COUNT(*) FROM information_schema.tables"),
    *("SUMMARIZE visits", "SELECT COUNT(*) FROM nobody", "SELECT COUNT(nothing) FROM visits"),
]
FREE = [
    *("SELECT SUM(price) AS p FROM prices", "SELECT DISTINCT city FROM visits"),
    *("SELECT * FROM visits LIMIT 0", "SELECT COUNT(*) AS n FROM visits LIMIT 0", "SELECT * FROM visits WHERE 1 <> 1"),
    *("SELECT city, cost FROM visits WHERE FALSE", "SELECT DISTINCT city FROM visits ORDER BY city DESC LIMIT 2"),
]


@pytest.mark.slow
def test_what_needs_no_charge_is_equal(houses, tokens):
    """Plans, descriptions, tables, refusals, free questions, and what an account is told about itself."""
    before = both(standing, houses, tokens)
    requests = [("tables", {}), ("history", {}), ("requests", {}), ("record", {}), ("nothing", {})]
    requests += [("again", {"receipt": "7-abcd"}), ("again", {}), ("ask", {}), ("plan", {"sql": COUNT, "epsilon": -1})]
    requests += [(verb, {"sql": sql}) for sql in (*CHARGED, *FREE) for verb in ("plan", "describe")]
    requests += [("ask", {"sql": sql, "format": "arrow"}) for sql in FREE]
    requests += [("ask", {"sql": sql}) for sql in REFUSED]
    requests += [("ask", {"sql": COUNT, **given}) for given in ({"epsilon": 2}, {"within": {"n": 0}}, {"key": ""})]

    def replies(house, token):
        with house.link() as link:
            return [link.call(verb, token, **given) for verb, given in requests]

    empty, hostile = both(replies, houses, tokens)
    for request, one, other in zip(requests, empty, hostile, strict=True):
        assert one == other, request
        assert CANARY.encode() not in one.body + json.dumps(one.header).encode()
    asked = dict(zip([str(one) for one in requests], empty, strict=True))
    assert not any(asked[str(("ask", {"sql": sql}))].header["ok"] for sql in REFUSED)
    assert all(asked[str(("ask", {"sql": sql, "format": "arrow"}))].header["ok"] for sql in FREE)
    assert both(standing, houses, tokens) == before
    assert before[0][0] == before[1][0]
    for verb, own in (("me", {"expires": ""}), ("policy", {"versions": []})):
        one, other = both(lambda house, token, verb=verb: house.value(token, verb), houses, tokens)
        assert one.keys() >= own.keys()
        assert one | own == other | own


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("sql", CHARGED)
def test_what_is_charged_is_equal_but_for_the_noise(houses, tokens, sql):
    given = {"sql": sql, "epsilon": 0.05, "format": "arrow"}
    before = both(standing, houses, tokens)
    replies = both(lambda house, token: house.call("ask", token, **given), houses, tokens)
    assert replies[0].header == replies[1].header
    after = both(standing, houses, tokens)
    (one, had), (other, others) = before
    (later, has), (and_other, and_others) = after
    assert (one, later, has - had) == (other, and_other, and_others - others)
    assert (after[0] != before[0]) == replies[0].header["ok"]
    if replies[0].header["ok"]:
        one, other = map(shape, replies)
        assert one == other
        again = both(lambda house, token: house.call("ask", token, **given), houses, tokens)
        assert shape(again[0]) == shape(again[1])
        assert both(standing, houses, tokens) == after  # what was bought is free on both


@pytest.mark.slow
def test_most_of_them_are_answered(houses):
    """Otherwise the test above would compare refusals only."""
    token = houses[1].open("counter")
    plans = [houses[1].call("plan", token, sql=sql, epsilon=0.05).header for sql in CHARGED]
    assert sum(header["ok"] for header in plans) >= 10


@pytest.mark.slow
def test_who_hangs_up_pays_and_holds_the_lane(apart):
    """The slot lasts until its end, the answer is stored, and to ask again is free."""
    sql = "SELECT COUNT(*) AS hung FROM visits WHERE cost > 50"

    def hang_up(house, token):
        charged = len(house.charges())
        with house.link() as link:
            link.send("ask", token, sql=sql, epsilon=0.05, answer_after="10s", key="hung")
            begun = time.monotonic()
            while len(house.charges()) == charged:
                time.sleep(0.01)
        other = house.open("waits")
        assert house.ask(other, sql).header["ok"]
        assert time.monotonic() - begun > 5  # behind the slot of the one who has gone
        first = standing(house, token)
        assert house.ask(token, sql, epsilon=0.05, key="hung").header["ok"]
        assert standing(house, token) == first
        return first

    one, other = both(hang_up, apart, opened(apart, "hangs-up"))
    assert one == other


def test_two_accounts_at_the_same_time_do_not_meet(houses):
    """Each is charged for itself, gets its own draws, and the receipts of the other are unknown, byte by byte."""
    house = houses[1]
    names = ("meets1", "meets2")
    tokens = [house.open(name) for name in names]
    asked = [(token, f"SELECT COUNT(*) AS n FROM visits WHERE cost > {n}") for n in range(3) for token in tokens]
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda one: house.ask(*one, epsilon=0.05, key="same"), asked[:2]))
        replies += list(pool.map(lambda one: house.ask(*one, epsilon=0.05), asked[2:]))
    receipts = [json.loads(reply.body)["receipt"] for reply in replies]
    assert len(set(receipts)) == 6
    charged = [entry.analyst for entry in house.charges()]
    assert [charged.count(name) for name in names] == [3, 3]
    for (token, _), receipt in zip(asked, receipts, strict=True):
        other = tokens[token == tokens[0]]
        assert house.call("again", token, receipt=receipt).header["ok"]
        assert house.call("again", other, receipt=receipt) == house.call("again", other, receipt="999-ffff")


@pytest.mark.slow
def test_late_answers_leave_the_same(apart):
    """Too short for any answer: the same error, the same charge, nothing stored, with a key and without."""

    def too_late(house, token):
        count = late.late_count(house.store)
        many = "SELECT a.n + b.m AS x FROM (SELECT COUNT(*) AS n FROM visits WHERE cost > 1) a, " + (
            "(SELECT SUM(cost) AS m FROM visits WHERE cost > 1) b"
        )
        given = {"sql": many, "epsilon": 0.1, "answer_after": "1ms"}
        replies = [house.call("ask", token, **given, **key) for key in ({}, {"key": "l"}, {"key": "l"}, {})]
        spent = standing(house, token)
        assert late.late_count(house.store) == count + 3
        assert json.loads(spent[0].body)["remaining"]["epsilon"] == pytest.approx(2.7)
        assert {entry.state for entry in house.charges() if "cost > 1)" in entry.asked} <= {"discarded", "reserved"}
        return replies, spent, house.call("history", token)

    one, other = both(too_late, apart, opened(apart, "late"))
    assert one == other
    assert {reply.header["code"] for reply in one[0]} == {"gateway-late"}


def test_no_canary_is_written(houses):
    """In the copy of the data, and nowhere else: neither the ledger nor the accounts, nor any other file."""
    owner = houses[1].open("olga", "owner")
    for verb in ("metrics", "audit", "record", "accounts"):
        reply = houses[1].call(verb, owner)
        assert reply.header["ok"]
        assert CANARY.encode() not in reply.body
    found = [path for path in houses[1].folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]
    assert {path.name for path in found} == {"visits.parquet"}
    assert len(found) == 2

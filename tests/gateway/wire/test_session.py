"""A session over the PostgreSQL protocol, on a vault in this process."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from discreet.errors import ServiceUnavailable
from discreet.gateway.frames import Frame
from discreet.gateway.wire.errors import OF_CODES, OF_KINDS, refusal_in
from discreet.gateway.wire.format.values import TYPES, Refusal
from discreet.gateway.wire.shapes import pg_type

from .wire_vault import Client, LocalVault, names, said

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_CITY = "SELECT city, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY city"
QUESTIONS = [
    COUNT,
    BY_CITY,
    "SELECT COUNT(*), AVG(cost), SUM(cost), MAX(cost), MIN(stays), MEDIAN(cost), COUNT(DISTINCT id) FROM visits",
    "SELECT city, COUNT(*) FROM public.visits GROUP BY 1 ORDER BY 2 DESC LIMIT 2",
    'SELECT "v"."city" AS "City", COUNT(*) AS "n %" FROM "clinic"."public"."visits" AS "v" GROUP BY "v"."city"',
    "SELECT COUNT(*) > 3 AS many, COUNT(*) / 2 AS half, COUNT(*)::float8, 1 + COUNT(*) FROM visits",
    "SELECT EXTRACT(month FROM day), COUNT(*) FROM visits GROUP BY 1",
    "SELECT DATE_TRUNC('month', day) AS m, SUM(stays) AS s FROM visits GROUP BY m",
    "SELECT day, COUNT(*) AS n FROM visits WHERE day < DATE '2024-01-05' GROUP BY day",
    "SELECT stays, COUNT(*) AS n FROM visits GROUP BY stays HAVING COUNT(*) > 10",
    "SELECT city = 'Haifa' AS here, COUNT(*) FROM visits GROUP BY here",
    "SELECT CASE WHEN cost > 50 THEN 'much' ELSE 'little' END AS how, COUNT(*) FROM visits GROUP BY how",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost) FROM visits",
    "SELECT QUANTILE_CONT(cost, [0.25, 0.75]) AS q FROM visits",
    "SELECT MODE(city) FROM visits",
    "WITH t AS (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) SELECT * FROM t",
    "SELECT COUNT(*) AS n FROM visits UNION ALL SELECT SUM(cost) FROM visits",
    "SELECT city, stays, COUNT(*) FROM visits GROUP BY ROLLUP (city, stays)",
    "SELECT COUNT(*) FILTER (WHERE cost > 3), COUNT(*) FILTER (WHERE cost <= 3) FROM visits",
    "SELECT VARIANCE(cost), STDDEV(cost) FROM visits",
    "SELECT p.price, COUNT(*) FROM visits JOIN public.prices AS p USING (city) GROUP BY p.price",
    "SELECT city, price FROM prices",
    "SELECT AVG(price), MAX(city), COUNT(*) FROM prices",
    "SELECT DISTINCT city FROM visits",
    "SELECT * FROM visits WHERE 1 <> 1",
    "SELECT COUNT(*) AS n, error(n) AS e, low(n), high(n) FROM visits",
    "SELECT MAX(cost) AS m, low(m) AS lo, high(m) AS hi FROM visits",
    "SELECT low(COUNT(*)), city, COUNT(*) FROM visits GROUP BY 2 ORDER BY 3",
    "SELECT price, error(price) AS e, high(price) FROM prices",
    "TABLE prices",
]
"""Questions that are answered."""


@pytest.fixture
def client():
    made = Client()
    yield made
    made.close()


# --- columns ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared():
    made = Client()
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("text", QUESTIONS)
def test_described_and_sent_columns_are_the_same(shared, text):
    """In each mode, and wherever errors are shown. To describe costs nothing."""
    for errors in ("columns", "notice", "off"):
        shared.query(f"SET discreet.errors = {errors}")
        before = shared.vault.charges
        described = shared.describe(text)
        assert shared.vault.charges == before
        columns = {"answer": shared.run(text).columns}
        for mode in ("replay", "preview", "rehearse"):
            before = shared.vault.charges
            result = shared.run(f"/* discreet mode={mode} */ {text}")
            columns[mode] = result.columns
            assert shared.vault.charges == before
            assert all(len(row) == len(result.columns) for row in result.rows)
        assert set(columns.values()) == {described.columns}
        assert shared.prepared(text)[1].columns == described.columns


@pytest.mark.slow
def test_values_have_the_python_types_of_their_columns(client):
    kinds = {"int8": int, "float8": float, "text": str, "bool": bool}
    for text in QUESTIONS:
        for mode in ("answer", "rehearse"):
            result = client.run(f"/* discreet mode={mode} */ {text}")
            for place, column in enumerate(result.columns):
                values = [row[place] for row in result.rows if row[place] is not None]
                kind = kinds.get(column.type)
                assert kind is None or all(type(value) is kind for value in values), (text, column)


def test_names_are_those_of_postgresql(client):
    wanted = {
        "SELECT COUNT(*), AVG(cost), SUM(cost) FROM visits": ["count", "avg", "sum"],
        'SELECT COUNT(*) AS N, COUNT(*) + 1 AS "M" FROM visits': ["n", "M"],
        "SELECT COUNT(*) + 1, COUNT(*)::float8, (COUNT(*)) FROM visits": ["?column?", "count", "count"],
        "SELECT EXTRACT(month FROM day), COUNT(*) FROM visits GROUP BY 1": ["extract", "count"],
        "SELECT City, COUNT(*) FROM visits GROUP BY City": ["city", "count"],
        "SELECT *, price AS p FROM prices": ["city", "price", "p"],
        "SELECT CASE WHEN COUNT(*) > 1 THEN 1 ELSE 0 END, COALESCE(SUM(cost), 0) FROM visits": ["case", "coalesce"],
    }
    client.query("SET discreet.errors = off")
    for text, expected in wanted.items():
        assert names(client.describe(text)) == expected


def test_errors_come_after_all_asked_columns(client):
    result = client.run("SELECT COUNT(*), city, AVG(cost) AS c FROM visits GROUP BY city")
    assert [tuple(column) for column in result.columns] == [
        ("count", "int8"),
        ("city", "text"),
        ("c", "float8"),
        ("count_error", "float8"),
        ("c_error", "float8"),
    ]
    twice = client.run("SELECT COUNT(*) FILTER (WHERE cost > 1), COUNT(*), SUM(cost) AS count_error FROM visits")
    assert names(twice) == ["count", "count", "count_error", "count_error_2", "count_error_3", "count_error_error"]
    client.query("SET discreet.errors = notice")
    result = client.run(COUNT)
    assert names(result) == ["n"]
    assert any(one.startswith("n: ± ") and "95%" in one for one in said(result))


def test_errors_at_their_own_places(client):
    both = client.run("SELECT error(n), COUNT(*) AS n, low(n) AS lo, high(n) AS hi FROM visits")
    error, value, low, high = both.rows[0]
    assert (low, high) == (value - error, value + error)
    assert names(both) == ["error", "n", "lo", "hi"]
    assert "error(" not in client.vault.calls[-1][1]["sql"]
    plain = client.run(COUNT)
    assert plain.rows[0] == (value, error)  # the same question, bought once
    assert client.vault.charges == 1
    exact = client.run("SELECT price, error(price) FROM prices ORDER BY 1")
    assert list(exact.rows) == [(1, 0.0), (2, 0.0), (3, 0.0)]


@pytest.mark.parametrize(
    ("text", "state"),
    {
        "SELECT COUNT(*) AS n, error(m) FROM visits": "42703",
        "SELECT city, COUNT(*) AS n, error(city) FROM visits GROUP BY city": "42804",
        "SELECT error(n) FROM visits": "0A000",
        "SELECT COUNT(*) AS n, error(n) AS e FROM visits ORDER BY e": "0A000",
        "SELECT city, COUNT(*) AS n, error(n) FROM visits GROUP BY city ORDER BY 3": "0A000",
        "SELECT COUNT(*) AS n, error(n) FROM visits UNION ALL SELECT 1, 2 FROM visits": "0A000",
        "SELECT COUNT(*) AS n, error(n) + 1 FROM visits": "0A000",
        "SELECT COUNT(*) FROM visits WHERE error(cost) > 1": "0A000",
    }.items(),
)
def test_errors_that_are_refused(client, text, state):
    assert client.refused(text).state == state
    assert client.vault.charges == 0


def test_types_are_those_of_arrow():
    wanted = {"int64": "int8", "uint8": "int8", "uint64": "numeric", "double": "float8", "float": "float8"}
    wanted |= {"string": "text", "large_string": "text", "bool": "bool", "date32[day]": "date", "null": "text"}
    wanted |= {"timestamp[us]": "timestamp", "timestamp[ns]": "timestamp", "timestamp[us, tz=UTC]": "timestamptz"}
    wanted |= {"decimal128(38, 0)": "numeric", "list<element: double>": "text", "time64[us]": "text"}
    assert {name: pg_type(name) for name in wanted} == wanted
    assert set(wanted.values()) <= set(TYPES)


# --- what is said -------------------------------------------------------------------------------------------


def test_notices(client):
    first, _, again = client.run(BY_CITY), client.run(COUNT), client.run(BY_CITY)
    assert said(first)[0].startswith("cost ε = 0.1; ε = 99.9 remains; receipt ")
    then = said(first)[0].replace(" remains", " remained when it was asked first")
    assert said(again)[0] == then + "; answered before, at no new cost"
    assert list(first.rows) == list(again.rows)
    assert any("not in the ±" in one for one in said(first))
    assert said(client.run("SELECT price FROM prices"))[0].startswith("public tables only: exact, nothing was spent")


def test_explain_is_free(client):
    result = client.run(f"EXPLAIN {COUNT}")
    assert names(result) == ["QUERY PLAN"]
    assert "cost        ε = 0.1" in [row[0] for row in result.rows]
    [[found]] = client.rows(f"EXPLAIN (FORMAT JSON) /* epsilon=0.3 */ {COUNT}")
    assert json.loads(found)[0]["guarantee"] == "ε = 0.3"
    assert client.rows("EXPLAIN SELECT 1")[0][0].startswith("The catalog")
    refused = client.refused(f"EXPLAIN ANALYZE {COUNT}")
    assert (refused.state, "without ANALYZE" in refused.hint) == ("0A000", True)
    assert client.refused(f"EXPLAIN (VERBOSE, ANALYZE) {COUNT}").state == "0A000"
    assert client.refused("EXPLAIN DELETE FROM visits").state == "25006"
    assert client.refused("EXPLAIN (FORMAT XML) SELECT 1").state == "0A000"
    described = client.describe("EXPLAIN SELECT COUNT(*) FROM visits WHERE cost > $1")
    assert (described.parameters, described.columns) == (("float8",), result.columns)
    assert client.run("EXPLAIN SELECT COUNT(*) FROM visits WHERE cost > $1", 5.0).rows
    assert client.vault.charges == 0


def test_modes(client):
    replay = f"/* discreet mode=replay */ {COUNT}"
    refused = client.refused(replay)
    assert (refused.state, "discreet.mode" in refused.hint) == ("53400", True)
    assert client.vault.charges == 0
    answer = client.run(COUNT)
    assert client.run(replay).rows == answer.rows
    preview = client.run(f"/* discreet mode=preview, epsilon=0.7 */ {BY_CITY}")
    assert (preview.tag, list(preview.rows)) == ("SELECT 0", [])
    assert "would cost ε = 0.7" in said(preview)[0]
    assert "more than remains" in said(client.run(f"/* discreet mode=preview, epsilon=700 */ {BY_CITY}"))[0]
    client.vault.hindrance = "Above ε = 0.5, a second person must approve. Asking files a request."
    assert f"preview: {client.vault.hindrance}" in said(client.run(f"/* discreet mode=preview */ {BY_CITY}"))
    first = client.run(f"/* discreet mode=rehearse */ {BY_CITY}")
    assert list(first.rows) == list(client.run(f"/* discreet mode=rehearse */ {BY_CITY}").rows)
    assert [row[0] for row in first.rows] == ["Haifa", "Koper", "Maribor"]
    assert all(0 <= row[2] <= 100 for row in first.rows)
    assert "NOT REAL" in said(first)[0]
    assert first.notices[0].severity == "WARNING"
    assert client.refused("/* discreet mode=rehearse */ SELECT * FROM visits").state == "0A000"
    assert client.refused("/* discreet mode=preview */ SELECT * FROM visits").state == "0A000"
    assert (
        len(client.run("/* discreet mode=rehearse */ SELECT city, stays, day, COUNT(*) FROM visits GROUP BY ALL").rows)
        <= 100
    )
    assert len(client.run(f"/* discreet mode=rehearse */ {BY_CITY} LIMIT 2").rows) == 2
    assert client.vault.charges == 1
    assert {verb for verb, _ in client.vault.calls if verb == "ask"} == {"ask"}


def test_only_the_mode_answer_buys(client):
    for mode in ("replay", "preview", "rehearse"):
        client.vault.calls.clear()
        with contextlib.suppress(Refusal):
            client.run(f"/* discreet mode={mode} */ {COUNT}")
        asked = [given for verb, given in client.vault.calls if verb == "ask"]
        assert all(given["bought_only"] for given in asked)
        assert bool(asked) == (mode == "replay")


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.some_quick(7)
@pytest.mark.parametrize(
    ("text", "state", "at"),
    [
        ("SELECT nothing FROM visits", "42703", "nothing"),
        ("SELECT 1; SELECT COUNT(*) FROM public.visits WHERE nothing > 1", "42703", "nothing"),
        ("SELECT COUNT(*) AS n, error(n) AS e FROM clinic.public.visits WHERE nothing > 1", "42703", "nothing"),
        ("SELECT COUNT(*) FROM nobody", "42P01", "nobody"),
        ("SELECT * FROM visits", "0A000", "*"),
        ("EXPLAIN SELECT coun(*) FROM visits", "0A000", "coun"),
        ("COPY (SELECT note FROM visits) TO STDOUT", "42703", "note"),
        ("COPY nobody TO STDOUT", "42P01", "nobody"),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT note FROM visits", "42703", "note"),
        ("SELECT COUNT(*) FROM other.visits", "3F000", "other"),
        ("SELECT COUNT(*) FROM shop.public.visits", "0A000", "shop"),
        ("SELECT COUNT(*) FROM visits, pg_catalog.pg_class", "0A000", "pg_catalog"),
        ("SELECT COUNT(*) FROM visits WHERE", "42601", ""),
    ],
)
def test_errors_point_at_the_text_of_the_client(client, text, state, at):
    refused = client.refused(text)
    assert refused.state == state
    assert refused.position is not None
    assert text[refused.position - 1 :].startswith(at) or not at
    assert "^" not in refused.message
    assert client.vault.charges == 0


def test_parameters_do_not_move_the_place(client):
    text = "SELECT COUNT(*) FROM visits WHERE city = $1 AND nothing > 1"
    refused = client.refused(text, "a very long name of a city")
    assert text[refused.position - 1 :].startswith("nothing")


def test_explain_without_a_cost_is_told_how_to_write_one():
    client = Client(vault=LocalVault(default=None))
    refused = client.refused(f"EXPLAIN {COUNT}")
    example = refused.hint[refused.hint.index("EXPLAIN /*") : refused.hint.index(" SELECT")]
    assert client.run(f"{example} {COUNT}").rows
    client.close()


def test_refusals_have_a_hint(client):
    refused = client.refused("SELECT city FROM visits")
    assert (refused.state, bool(refused.hint)) == ("0A000", True)
    poor = client.refused("/* epsilon=200 */ SELECT COUNT(*) FROM visits")
    assert poor.state == "53400"
    assert client.refused("LISTEN x").state == "0A000"
    assert client.refused("INSERT INTO visits VALUES (1)").state == "25006"
    assert client.refused("SELECT 'fail'").message.startswith("The gateway failed")


def test_every_kind_of_error_has_a_state():
    def state(**header):
        return refusal_in(Frame({"ok": False, "message": "It is so. Do this.", **header})).state

    for code, expected in OF_CODES.items():
        assert state(kind="NotAllowed", code=code) == expected
    for kind, expected in OF_KINDS.items():
        assert state(kind=kind, code="x") == expected
    assert state(kind="Surprise", code="x") == "XX000"
    table = {
        "gateway-late": "57014",
        "gateway-not-bought": "53400",
        "gateway-day-limit": "53400",
        "gateway-approval": "42501",
        "gateway-unavailable": "57P03",
        "sql-unknown-table": "42P01",
        "sql-unknown-column": "42703",
        "gateway-login": "28P01",
    }
    assert {code: OF_CODES[code] for code in table} == table
    found = refusal_in(Frame({"ok": False, "kind": "NotAllowed", "code": "x", "message": "It is so. Do this."}))
    assert (found.message, found.hint) == ("It is so.", "Do this.")


def test_a_vault_that_does_not_respond(client):
    async def gone(*_, **__):
        raise ServiceUnavailable("It is gone. Try again.", code="gateway-unavailable")

    client.vault.call = gone
    assert client.refused(COUNT).state == "57P03"
    assert client.refused("SHOW discreet.remaining").state == "57P03"


def test_an_unexpected_error_says_nothing_of_itself(client):
    async def broken(*_, **__):
        raise RuntimeError("zq7canary")

    client.vault.call = broken
    refused = client.refused(COUNT)
    assert (refused.state, "canary" in refused.message) == ("XX000", False)


# --- transactions and cursors -------------------------------------------------------------------------------


def test_transactions(client):
    tags = [result.tag for result in client.query("BEGIN; SELECT 1; SAVEPOINT a; RELEASE a; COMMIT")]
    assert tags == ["BEGIN", "SELECT 1", "SAVEPOINT", "RELEASE", "COMMIT"]
    assert client.session.status == "I"
    client.query("START TRANSACTION")
    assert client.session.status == "T"
    client.refused("SELECT nothing FROM visits")
    assert client.session.status == "E"
    assert client.refused("SELECT 1").state == "25P02"
    with pytest.raises(Refusal) as refused:
        client.describe("SELECT 1")
    assert refused.value.state == "25P02"
    assert client.query("COMMIT")[0].tag == "ROLLBACK"
    assert client.session.status == "I"
    client.query("BEGIN; SAVEPOINT a; SAVEPOINT b")
    client.refused("SELECT nothing FROM visits")
    assert client.query("ROLLBACK TO a")[0].tag == "ROLLBACK"
    assert client.session.status == "T"
    assert client.refused("ROLLBACK TO b").state == "3B001"
    client.query("ROLLBACK")
    assert client.refused("SAVEPOINT a").state == "25P01"
    assert client.query("COMMIT")[0].notices[0].code == "25P01"
    assert client.query("BEGIN; BEGIN")[1].notices[0].code == "25001"
    assert client.refused("DISCARD ALL").state == "25001"
    client.query("ROLLBACK AND CHAIN")
    assert client.session.status == "T"
    client.query("ROLLBACK")
    client.refused("SELECT nothing FROM visits")
    assert client.session.status == "I"


def test_what_is_rolled_back_stays_charged(client):
    client.query(f"BEGIN; {COUNT}; ROLLBACK")
    assert client.vault.charges == 1
    assert client.vault.calls[-1][0] == "ask"


def test_a_cursor_is_charged_once_and_only_if_rows_are_wanted(client):
    text = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    client.query(f"BEGIN; DECLARE c CURSOR FOR {text}; CLOSE c; COMMIT")
    client.query(f"BEGIN; DECLARE c CURSOR FOR {text}; FETCH 0 FROM c; ROLLBACK")
    assert client.vault.charges == 0
    results = client.query(f"BEGIN; DECLARE c CURSOR FOR {text}; FETCH 2 FROM c; FETCH ALL IN c; FETCH c; CLOSE c; END")
    assert [result.tag for result in results[1:6]] == [
        "DECLARE CURSOR",
        "FETCH 2",
        "FETCH 1",
        "FETCH 0",
        "CLOSE CURSOR",
    ]
    assert client.vault.charges == 1
    assert [bool(result.notices) for result in results[2:5]] == [True, False, False]
    assert names(results[2]) == names(results[4]) == ["city", "n", "n_error"]
    assert [row[0] for row in (*results[2].rows, *results[3].rows)] == ["Haifa", "Koper", "Maribor"]


def test_cursors_end_with_their_transaction(client):
    text = "SELECT city FROM prices ORDER BY city"
    assert client.refused(f"DECLARE c CURSOR FOR {text}").state == "25P01"
    client.query(f"BEGIN; DECLARE c CURSOR FOR {text}; DECLARE h CURSOR WITH HOLD FOR {text}; COMMIT")
    assert client.refused("FETCH c").state == "34000"
    assert client.rows("FETCH h") == [("Haifa",)]
    client.query(f"BEGIN; DECLARE g CURSOR WITH HOLD FOR {text}; ROLLBACK")
    assert client.refused("FETCH g").state == "34000"
    assert client.rows("FETCH h") == [("Koper",)]
    assert client.refused(f"DECLARE h CURSOR WITH HOLD FOR {text}").state == "42P03"
    assert client.describe("FETCH h").columns == client.run("FETCH h").columns
    assert client.session.describe_cursor("h") == client.describe("FETCH h")
    assert client.session.describe_cursor("unknown") is None
    client.query("CLOSE ALL")
    assert client.refused("CLOSE h").state == "34000"
    with pytest.raises(Refusal) as refused:
        client.describe("FETCH h")
    assert refused.value.state == "34000"
    for number in range(100):
        client.query(f"DECLARE c{number} CURSOR WITH HOLD FOR SELECT 1")
    assert client.refused("DECLARE more CURSOR WITH HOLD FOR SELECT 1").state == "53400"


def test_a_cursor_moves_both_ways(client):
    client.query("DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT city FROM prices ORDER BY city")
    moves = {
        "FETCH 2 c": ["Haifa", "Koper"],
        "FETCH PRIOR c": ["Haifa"],
        "FETCH 0 c": ["Haifa"],
        "FETCH LAST c": ["Maribor"],
        "FETCH BACKWARD ALL c": ["Koper", "Haifa"],
        "FETCH ALL c": ["Haifa", "Koper", "Maribor"],
        "FETCH NEXT c": [],
        "FETCH BACKWARD 2 c": ["Maribor", "Koper"],
        "FETCH ABSOLUTE 3 c": ["Maribor"],
        "FETCH RELATIVE -1 c": ["Koper"],
        "FETCH ABSOLUTE 9 c": [],
        "FETCH ABSOLUTE -3 c": ["Haifa"],
        "FETCH ABSOLUTE 0 c": [],
        "FETCH FIRST c": ["Haifa"],
    }
    for text, cities in moves.items():
        assert [row[0] for row in client.rows(text)] == cities, text
    assert client.run("MOVE ALL c").tag == "MOVE 2"
    client.query("DECLARE n NO SCROLL CURSOR WITH HOLD FOR SELECT city FROM prices; FETCH ALL n")
    assert client.refused("FETCH PRIOR n").state == "55000"


# --- COPY, PREPARE, the catalog -----------------------------------------------------------------------------


def test_copy(client):
    result = client.run(f"COPY ({BY_CITY}) TO STDOUT (FORMAT csv, HEADER)")
    assert (result.tag, result.copy.form, result.copy.header) == ("COPY 3", "csv", True)
    assert result.columns == client.run(BY_CITY).columns
    assert list(result.rows) == list(client.run(BY_CITY).rows)
    assert client.describe(f"COPY ({BY_CITY}) TO STDOUT").columns is None
    assert list(client.run('COPY public."prices" (price) TO STDOUT').rows) == [(1,), (2,), (3,)]
    assert client.refused("COPY visits TO STDOUT").state == "0A000"
    assert client.refused("COPY visits FROM STDIN").state == "25006"
    assert client.refused("COPY prices TO '/tmp/x'").state == "0A000"
    assert client.run("COPY (SELECT 1) TO STDOUT BINARY").copy.form == "binary"
    assert client.vault.charges == 1


def test_prepared_statements(client):
    client.query("PREPARE p (text, double precision) AS SELECT COUNT(*) AS n FROM visits WHERE city = $1 AND cost > $2")
    assert client.vault.charges == 0
    first = client.rows("EXECUTE p ('Haifa', 3)")
    assert client.rows("SELECT COUNT(*) AS n FROM visits WHERE city = 'Haifa' AND cost > 3.0") == first
    assert client.vault.charges == 1
    assert names(client.describe("EXECUTE p ('Haifa', 3)")) == ["n", "n_error"]
    assert client.refused("EXECUTE p ('Haifa')").state == "42601"
    assert client.refused("EXECUTE q").state == "26000"
    assert client.refused("PREPARE p AS SELECT 1").state == "42P05"
    assert client.refused("PREPARE w AS DELETE FROM visits").state == "25006"
    assert client.refused("PREPARE w AS SELECT nothing FROM visits").state == "42703"
    client.query("SET discreet.errors = off")
    assert names(client.run("EXECUTE p ('Haifa', 3)")) == ["n"]
    client.query("DEALLOCATE p; DEALLOCATE unknown; DEALLOCATE ALL")
    assert client.refused("EXECUTE p ('Haifa', 3)").state == "26000"
    tags = ["SELECT 1", "CLOSE CURSOR ALL", "UNLISTEN", "RESET"]
    reset = client.query("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;")
    assert [result.tag for result in reset] == tags
    assert client.query("DISCARD ALL; DISCARD PLANS")[0].tag == "DISCARD ALL"


def test_the_catalog_is_asked_by_tree_only(client):
    catalog = [
        "SELECT 1",
        "SELECT 'FROM visits'",
        "SELECT version()",
        "VALUES (1)",
        "SELECT * FROM pg_catalog.pg_class",
    ]
    catalog += ["SELECT relname FROM pg_class WHERE relname = 'SELECT COUNT(*) FROM visits'"]
    for text in catalog:
        assert client.run(text).rows == [(1,)]
    assert len(client.catalog.ran) == len(catalog)
    assert client.vault.charges == 0
    client.run(COUNT)
    assert len(client.catalog.ran) == len(catalog)


def test_empty_statements(client):
    for text in ("", ";", "-- nothing"):
        [statement] = client.session.read(text)
        assert statement.is_empty
        assert client.describe(text) == ((), None)
    assert client.run("").tag == ""


def test_schemas_and_spellings_are_the_same_question(client):
    """Written in many ways, it is bought once."""
    for text in (
        "SELECT COUNT(*) AS n FROM visits WHERE cost > 5",
        'SELECT COUNT(*) AS "n" FROM "clinic"."public"."visits" WHERE "visits"."cost" > 5',
        "select count(*) n from public.visits where public.visits.cost > 5 limit 1001",
        "/* superset */ SELECT COUNT(*) AS n FROM visits -- x\n WHERE cost > 5;",
        "SELECT COUNT(*) AS n, error(n) AS e FROM visits WHERE cost > 5",
    ):
        client.run(text)
    assert client.vault.charges == 1


def test_whole_numbers_are_divided_as_in_postgresql(client):
    """It is the same question as with // in discreet's SQL. Other numbers are divided exactly."""
    halves = "SELECT stays/2 AS half, COUNT(*) AS n FROM visits GROUP BY stays/2"
    described, result = client.prepared(halves)
    assert [row[0] for row in result.rows] == [0, 1, 2, 3]
    assert [column.type for column in described.columns][:2] == ["int8", "int8"]
    client.vault.database.sql("SELECT stays // 2 AS half, COUNT(*) AS n FROM visits GROUP BY 1", epsilon=0.1)
    client.vault.database.sql("SELECT COUNT(*) AS n FROM visits WHERE cost / 2 > 5", epsilon=0.1)
    client.run("SELECT COUNT(*) AS n FROM visits WHERE cost/2 > 5")
    assert client.vault.charges == 2
    assert client.rows("SELECT 7/2, -7/2, 7/2.0, price/2 FROM prices")[2] == (3, -3, 3.5, 1)
    assert client.rows("SELECT stays/$1*$1 AS h, COUNT(*) FROM visits GROUP BY 1", 4)[-1][0] == 4
    refusal = client.refused("SELECT 1 / 2, COUNT(*) FROM visits WHERE city / 2 = 1")
    assert refusal.position == 1 + len("SELECT 1 / 2, COUNT(*) FROM visits WHERE ")


def test_numeric_without_digits_is_double(client):
    """As in ROUND(AVG(x)::numeric, 2), which PostgreSQL needs. Names, texts and types with digits stay."""
    text = "SELECT ROUND(AVG(cost)::numeric, 2) AS numeric, CAST(COUNT(*) AS decimal) / 7 FROM visits"
    text += " WHERE city <> '::numeric'"
    described = client.describe(text)
    assert [column.type for column in described.columns[:2]] == ["float8", "float8"]
    assert client.vault.calls[-1][1]["sql"] == text.replace("AVG(cost)::numeric", "AVG(cost)::DOUBLE").replace(
        "AS decimal) /", "AS DOUBLE) //"
    )
    for cast in ("cost::numeric(9, 2)", "CAST(cost AS numeric(9, 2))"):
        assert client.refused(f"SELECT AVG({cast}) FROM visits").state == "0A000"


def test_a_share_that_is_rounded_to_a_whole_number_says_so(client):
    """Before and after it is bought. Values of rows and keys may be divided without a word."""
    few = "COUNT(*) FILTER (WHERE stays / 2 = 1)"
    told = "share: the quotient of whole numbers"
    for share, expected in ((f"{few} / COUNT(*)", 1), (f"1.0 * {few} / COUNT(*)", 0), (few, 0)):
        text = f"SELECT stays / 2 AS half, {share} AS share FROM visits GROUP BY 1"
        for mode in ("preview", "answer"):
            notices = said(client.run(f"/* mode={mode} */ {text}"))
            assert sum(one.startswith(told) for one in notices) == expected
        lines = [line for (line,) in client.rows(f"EXPLAIN {text}")]
        assert sum(line.startswith(told) for line in lines) == expected


def test_dates_as_tools_write_them(client):
    plain = client.rows("SELECT COUNT(*) AS n FROM visits WHERE day >= DATE '2024-01-05'")
    assert client.rows("SELECT COUNT(*) AS n FROM visits WHERE day >= TO_DATE('2024-01-05', 'YYYY-MM-DD')") == plain
    stamp = "TO_TIMESTAMP('2024-01-05 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')"
    assert client.rows(f"SELECT COUNT(*) AS n FROM visits WHERE day >= {stamp}")


def test_who_stops_waiting_is_still_charged():
    client = Client()
    ask = client.vault.call

    async def slow(*given, **named):
        reply = await ask(*given, **named)
        await asyncio.sleep(5)
        return reply

    client.vault.call = slow

    async def cancel():
        [statement] = client.session.read(COUNT)
        task = asyncio.ensure_future(client.session.run(statement))
        await asyncio.sleep(0.2)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        client.loop.run_until_complete(cancel())
    client.vault.call = ask
    assert client.vault.charges == 1
    client.run(COUNT)
    assert client.vault.charges == 1
    client.close()


# --- any order of statements --------------------------------------------------------------------------------

FREE = [
    *("SELECT 1", "SHOW discreet.remaining", "SHOW ALL", f"EXPLAIN {COUNT}", "SELECT price FROM prices", "RESET ALL"),
    *(f"/* discreet mode=preview */ {BY_CITY}", f"/* discreet mode=rehearse */ {BY_CITY}", "SELECT * FROM visits"),
    *("DECLARE a CURSOR WITH HOLD FOR SELECT COUNT(*) FROM visits", "CLOSE a", "FETCH 0 a", "DISCARD ALL"),
    *("PREPARE p AS SELECT SUM(cost) FROM visits", "DEALLOCATE p", f"/* discreet mode=replay */ {COUNT}"),
    *("SET discreet.errors = off", "SET discreet.epsilon = 0.2", "SELECT DISTINCT city FROM visits", "nonsense"),
]
CHARGED = [COUNT, BY_CITY, "FETCH 1 a", "MOVE ALL a", "EXECUTE p", f"COPY ({COUNT}) TO STDOUT"]
BORDERS = ["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "RELEASE s"]


class Statements(RuleBasedStateMachine):
    """Whatever the order of statements: rows with noise only after a charge, and one charge for one question."""

    vault: LocalVault | None = None

    def __init__(self):
        super().__init__()
        Statements.vault = Statements.vault or LocalVault()
        self.client = Client(Statements.vault)

    def attempt(self, call):
        found = None
        try:
            return call()
        except Refusal as refusal:
            found = refusal
        assert found.state != "XX000"
        self.client.session.fail()
        return None

    @rule(text=st.sampled_from(FREE + BORDERS))
    def free(self, text):
        before = self.client.vault.charges
        self.attempt(lambda: self.client.query(text))
        assert self.client.vault.charges == before

    @rule(text=st.sampled_from(FREE + CHARGED + BORDERS))
    def describe(self, text):
        before = self.client.vault.charges
        self.attempt(lambda: self.client.describe(text))
        assert self.client.vault.charges == before

    @rule(text=st.sampled_from(CHARGED), number=st.integers(0, 10**9))
    def charged(self, text, number):
        new = text.replace("FROM visits", f"FROM visits WHERE cost > -{number}")
        self.client.vault.calls.clear()
        before = self.client.vault.charges
        results = self.attempt(lambda: self.client.query(new))
        asked = [given for verb, given in self.client.vault.calls if verb == "ask"]
        assert self.client.vault.charges - before <= len(asked) <= 1
        if results and any(result.rows for result in results) and not text.startswith("FETCH"):
            assert asked

    @invariant()
    def status_is_known(self):
        assert self.client.session.status in "ITE"

    def teardown(self):
        self.client.close()


Statements.TestCase.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)
TestStatements = pytest.mark.slow(Statements.TestCase)

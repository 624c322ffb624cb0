"""The page to ask, its plans, and answers by their receipts: for each role, with hostile names, and what is free."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.gateway.console import results

from ..house import BY_CITY, COUNT
from ..small_house import SmallHouse
from ..vault.test_neighbors import HOSTILE, Neighbor, ordinary
from .in_process import pages_of

BAD = "<script>alert(1)</script>"
NAME = "x\"'<b>"
HOSTILE_TABLE = """\
[tables."<img src=x onerror=alert(1)>"]
source = "odd.parquet"
rows_per_person = 3
[tables."<img src=x onerror=alert(1)>".columns."x\\"'<b>"]
choices = ["<script>alert(1)</script>", "=1+1", "it's"]

[gateway]"""
ODD = '"<img src=x onerror=alert(1)>"'
BY_ODD = f'SELECT "x""\'<b>" AS "<i>", COUNT(*) AS n FROM {ODD} GROUP BY 1'


class OddHouse(SmallHouse):
    """A house with names that would run if they were not escaped."""

    def __init__(self, folder, gateway="answer_after = 0"):
        super().__init__(folder, gateway, epsilon=50)
        rows = {"id": pa.array(range(90), pa.int64()), NAME: [BAD, "=1+1", "it's"] * 30}
        pq.write_table(pa.table(rows), folder / "odd.parquet")
        text = self.policy.read_text().replace("[gateway]", HOSTILE_TABLE, 1)
        self.policy.write_text(text + "[gateway.limits]\napprove_above = 0.9\n")


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    made = OddHouse(tmp_path_factory.mktemp("odd"))
    made.tokens = {name: made.open(name, role, 20) for name, role in (("alice", "analyst"), ("bob", "analyst"))}
    made.tokens["vera"] = made.open("vera", "viewer")
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def pages(house):
    with pages_of(house) as made:
        yield made


@pytest.fixture(scope="module")
def alice(pages, house):
    return pages.visitor(house.tokens["alice"])


@pytest.fixture(scope="module")
def answered(alice):
    """The path of an answer of Alice's."""
    return alice.ask(BY_ODD, epsilon="0.3").headers["location"]


def without_secrets(page):
    """The text of a page without what is new on every page."""
    return re.sub(r'name="(form|seed)" value="[^"]*"', "", page.text)


# --- the page and its plan ----------------------------------------------------------------------------------


def test_the_page_lists_tables_and_escapes_names(alice):
    page = alice.get("/ask")
    assert page.status_code == 200
    assert len(page.content) < 60_000
    assert "<img src=x" not in page.text
    assert BAD not in page.text
    assert "&lt;img src=x onerror=alert(1)&gt;" in page.text
    assert "protects each person (id); at most 3 rows of one person" in page.text
    assert "public: exact and free" in page.text


def test_the_address_holds_the_question_and_the_page_its_plan(alice):
    page = alice.get("/ask", sql=BY_CITY, epsilon="0.25").text
    assert "SELECT city, COUNT(*) AS n" in page
    assert "ε = 0.25" in page
    assert re.search(r"<th scope=\"row\">n</th><td>count\(\*\)</td><td>± \d", page)
    assert "at most 3 rows are used" in page


def test_a_plan_is_a_part_of_a_page_and_spends_nothing(alice, house):
    before = len(house.charges())
    part = alice.post("/ask/plan", sql=BY_CITY, epsilon="0.25")
    assert part.status_code == 200
    assert "<html" not in part.text
    assert "Left after it" in part.text
    assert len(house.charges()) == before


def test_within_finds_the_cost(alice):
    part = alice.post("/ask/plan", sql=COUNT, by="within", of="n", within="50").text
    found = float(re.search(r"ε = ([\d.]+)", part)[1])
    assert re.search(r"<td>± (49|50)\b", part)
    assert 0.05 < found < 1
    refused = alice.post("/ask/plan", sql=COUNT, by="within", of="n", within="").text
    assert "epsilon-or-within" in refused
    assert "gateway-form" in alice.post("/ask/plan", sql=COUNT, epsilon="a lot").text


def test_a_refused_question_is_underlined_and_offers_another(alice):
    part = alice.post("/ask/plan", sql="SELECT COUNT(*) AS n\nFROM vists", epsilon="0.1").text
    assert 'data-position="26" data-length="5"' in part
    assert "<mark>vists</mark>" in part
    assert '<pre id="instead">SELECT COUNT(*) AS n\nFROM visits</pre>' in part
    rows = alice.post("/ask/plan", sql=f"SELECT * FROM {ODD}").text
    assert "SELECT COUNT(*) AS n FROM &#34;&lt;img" in rows


def test_the_plan_button_leads_to_an_address(alice):
    gone = alice.post("/ask", sql=COUNT, epsilon="0.2", do="plan")
    assert gone.status_code == 303
    assert gone.headers["location"] == "/ask?sql=SELECT+COUNT%28%2A%29+AS+n+FROM+visits&epsilon=0.2"
    assert alice.post("/ask", sql="x" * 9000, do="plan").status_code == 200
    assert alice.post("/ask", sql="x" * 30_000, do="plan").status_code == 400


def test_a_statement_of_several_questions_says_what_remains_after_all(alice):
    both = "SELECT a.n + b.m AS x FROM (SELECT COUNT(*) AS n FROM visits) a, (SELECT SUM(cost) AS m FROM visits) b"
    part = alice.post("/ask/plan", sql=both, epsilon="0.5").text
    assert "combines 2 questions" in part
    left, after = (re.search(rf"<dt>{name}</dt><dd>ε = ([\d.]+)", part)[1] for name in ("Left now", "Left after it"))
    assert 0 < float(left) - float(after) <= 0.5
    part = alice.post("/ask/plan", sql=both, epsilon="500").text
    assert part.count("Asked now, it would be refused: ") == 1


def test_scripts_import_each_other_by_their_content(pages):
    text = pages.console.file("/static/ask.js").body.decode()
    for name in ("fragments.js", "complete.js"):
        assert f'from ".{pages.console.asset(name).removeprefix("/static")}"' in text


def test_names_for_completion_are_written_as_in_sql(alice):
    tables = {one["name"]: one["columns"] for one in alice.get("/ask/names").json()["tables"]}
    assert tables[ODD] == ["id", '"x""\'<b>"']


def test_public_questions_are_free_and_shown_at_once(alice, house):
    before = len(house.charges())
    assert "Free." in alice.get("/ask", sql="SELECT * FROM prices").text
    page = alice.ask("SELECT * FROM prices ORDER BY price")
    assert page.status_code == 200
    assert "Haifa" in page.text
    assert len(house.charges()) == before


# --- asking -------------------------------------------------------------------------------------------------


def test_a_form_that_is_sent_twice_is_charged_once(alice, house):
    before, seed = len(house.charges()), "0123456789abcdef"
    question = "SELECT COUNT(*) AS twice FROM visits WHERE cost > 3"
    with ThreadPoolExecutor(3) as pool:
        sent = list(pool.map(lambda _: alice.ask(question, seed=seed, epsilon="0.2"), range(3)))
    places = {one.headers["location"] for one in sent}
    assert len(places) == 1
    assert len(house.charges()) == before + 1
    other = alice.ask(question + " AND cost < 90", seed=seed, epsilon="0.2")  # an edited question has another key
    assert other.status_code == 303
    assert other.headers["location"] not in places


def test_every_page_to_ask_has_a_key_of_its_own(alice):
    seeds = {re.search(r'name="seed" value="(\w{32})"', alice.get("/ask").text)[1] for _ in range(3)}
    assert len(seeds) == 3


def test_what_was_bought_is_free(alice, house, answered):
    before = len(house.charges())
    plan = alice.get("/ask", sql=BY_ODD, epsilon="0.3").text
    assert "This was bought before" in plan
    assert alice.ask(BY_ODD, epsilon="0.3").headers["location"] == answered
    assert len(house.charges()) == before


def test_a_refusal_keeps_what_was_typed(alice):
    page = alice.ask(f"SELECT '{BAD}' FROM nowhere", epsilon="0.125")
    assert page.status_code == 400
    assert "&lt;script&gt;" in page.text
    assert BAD not in page.text
    assert 'value="0.125"' in page.text
    assert "sql-unknown-table" in page.text


def test_too_large_a_question_files_a_request(alice, house):
    page = alice.ask("SELECT COUNT(*) AS large FROM visits", epsilon="0.95")
    assert page.status_code == 403
    assert "A request was filed" in page.text
    assert "a second person must approve" in page.text
    assert 'href="/requests"' in page.text
    refused = alice.ask(COUNT, epsilon="7")
    assert refused.status_code == 402
    assert "is too much: one question may cost at most ε = 1." in refused.text


def test_a_viewer_sees_what_was_bought_and_buys_nothing(pages, house):
    vera, before = pages.visitor(house.tokens["vera"]), len(house.charges())
    assert "Show if it was bought" in vera.get("/ask").text
    refused = vera.ask("SELECT COUNT(*) AS seen FROM visits", epsilon="0.1")
    assert refused.status_code == 402
    assert "gateway-not-bought" in refused.text
    assert len(house.charges()) == before


# --- answers ------------------------------------------------------------------------------------------------


def test_an_answer_has_a_table_a_picture_and_its_facts(alice, answered):
    page = alice.get(answered)
    assert page.status_code == 200
    assert len(page.content) < 60_000
    assert BAD not in page.text
    assert "<i>" not in page.text
    assert page.text.count('<svg xmlns="http://www.w3.org/2000/svg" class="picture"') == 2
    assert "± " in page.text
    assert "Asking again is free" in page.text
    assert "ε = 0.3" in page.text
    assert answered.removeprefix("/answers/") in page.text
    assert "<dt>Left when it was asked first</dt>" in page.text
    assert "Left after it" not in page.text


def test_only_ones_own_answers_are_shown(pages, house, alice, answered):
    bob = pages.visitor(house.tokens["bob"])
    unknown = bob.get("/answers/1-0000")
    for ending in ("", ".csv", ".arrow", ".svg"):
        theirs = bob.get(answered + ending)
        assert theirs.status_code == 404
        assert without_secrets(theirs) == without_secrets(unknown)
    assert alice.get(answered + ".exe").status_code == 404


def test_files_have_safe_names_and_no_formulas(alice, answered):
    reply = alice.get(answered + ".csv")
    assert reply.headers["content-type"] == "text/csv; charset=utf-8"
    name = reply.headers["content-disposition"]
    assert re.fullmatch(r'attachment; filename="clinic-[A-Za-z0-9-]+\.csv"', name)
    head, *rows = csv.reader(io.StringIO(reply.text))
    assert head == ["<i>", "n", "n_error"]
    assert {row[0] for row in rows} == {BAD, "'=1+1", "it's"}
    assert all(float(row[1]) for row in rows)
    arrow = alice.get(answered + ".arrow")
    assert pa.ipc.open_stream(arrow.content).read_all().num_rows == 3
    assert "attachment" in arrow.headers["content-disposition"]


def test_a_picture_is_a_file_of_its_own(alice, answered):
    reply = alice.get(answered + ".svg")
    assert reply.headers["content-type"] == "image/svg+xml"
    assert "attachment" in reply.headers["content-disposition"]
    assert "script-src" not in reply.headers["content-security-policy"]
    root = ET.fromstring(reply.text)
    assert "prefers-color-scheme" in reply.text
    assert not [one for one in root.iter() if one.tag.endswith(("script", "img", "image"))]
    texts = [one.text for one in root.iter() if one.tag.endswith("text")]
    assert any(text.startswith("<script>") for text in texts)  # as text, and cut
    assert "prefers-color-scheme" not in alice.get(answered + ".svg", colors="light").text


def test_lists_and_levels_have_cells_and_pictures(alice):
    place = alice.ask("SELECT city, QUANTILE_CONT(cost, [0.25, 0.75]) AS q FROM visits GROUP BY city", epsilon="0.8")
    page = alice.get(place.headers["location"]).text
    assert re.search(r"<td>\[[^<]*\]</td>", page)  # a list, with its own errors
    place = alice.ask("SELECT city, COUNT(*) AS levels FROM visits GROUP BY ROLLUP (city)", epsilon="0.3")
    page = alice.get(place.headers["location"]).text
    assert "<td>(all)</td>" in page
    assert ">(all)</text>" in page


def test_an_answer_of_many_rows_is_shown_page_by_page(pages, alice, monkeypatch):
    place = alice.ask("SELECT FLOOR(cost) AS c, COUNT(*) AS n FROM visits GROUP BY c", epsilon="0.3").headers[
        "location"
    ]
    monkeypatch.setattr(results, "MOST_ROWS", 20)
    monkeypatch.setattr(results, "MOST_DRAWN", 20)
    first = alice.get(place).text
    assert first.count("<tr>") == 21
    assert "<svg" not in first.split("<main")[1]
    assert f'href="{place}?first=20"' in first
    assert alice.get(place, first="100").text.count("<tr>") == 2
    for strange in ("-1", "x", "9" * 30):
        assert alice.get(place, first=strange).text.count("<tr>") == 21
    assert alice.get(place + ".svg").status_code == 404


def test_negative_numbers_stay_numbers_in_csv(alice):
    place = alice.ask("SELECT SUM(cost) - 1000000 AS below FROM visits", epsilon="0.5").headers["location"]
    [_, row] = csv.reader(io.StringIO(alice.get(place + ".csv").text))
    assert float(row[0]) < 0


# --- neighbors ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def neighbors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("neighbors")
    made = [Neighbor(folder / "empty", []), Neighbor(folder / "hostile", ordinary() + HOSTILE)]
    for one in made:
        one.token_of_alice = one.open("alice")
        one.start()
    yield made
    for one in made:
        one.stop()


FREE = [
    ("GET", "/ask", {}),
    ("GET", "/ask", {"sql": BY_CITY, "epsilon": "0.2"}),
    ("GET", "/ask", {"sql": "SELECT note FROM visits"}),
    (
        "POST",
        "/ask/plan",
        {"sql": "SELECT SUM(amount) AS s FROM visits WHERE CAST(note AS INTEGER) > 3", "epsilon": "1"},
    ),
    ("POST", "/ask/plan", {"sql": "SELECT COUNT(*) AS n FROM visits", "by": "within", "of": "n", "within": "7"}),
    ("POST", "/ask/plan", {"sql": "SELECT note, COUNT(*) AS n FROM visits GROUP BY note", "epsilon": "1"}),
    ("POST", "/ask/plan", {"sql": "SELECT nots FROM visits"}),
    ("GET", "/ask/names", {}),
    ("GET", "/guided", {"table": "visits"}),
    ("GET", "/guided", {"table": "visits", "measure": "sum", "of": "amount", "by": "day", "from:cost": "3"}),
]


@pytest.mark.slow
def test_pages_do_not_depend_on_rows(neighbors):
    said = []
    for house in neighbors:
        with pages_of(house) as pages:
            alice = pages.visitor(house.token_of_alice)
            replies = [(alice.get if how == "GET" else alice.post)(path, **given) for how, path, given in FREE]
            alice.ask(COUNT, epsilon="0.5")
            replies.append(alice.get("/ask", sql=COUNT, epsilon="0.5"))
            said.append([(one.status_code, without_secrets(one)) for one in replies])
    assert said[0] == said[1]
    assert all(status == 200 for status, _ in said[0])
    assert "zq7canary" not in json.dumps(said)

"""The pages of the history, the budget, the risk and dashboards, as a browser without scripts uses them."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from contextlib import closing
from datetime import UTC, datetime

import pytest

from discreet.gateway.books import questions
from discreet.gateway.console.burndown import burn_down
from discreet.gateway.console.pages.budgets import forecast, thinned
from discreet.gateway.console.pages.histories import LONGEST_SQL, csv_of
from discreet.gateway.console.tiles import Shown, shown_from

from ...house import BY_CITY, COUNT
from ..small_site import small_site

HOSTILE = "<script>alert(1)</script>\"'&"
LONGEST = 60_000
FREE = ("/history", "/history.csv", "/budget", "/risk", "/risk?people=6&rate=3", "/dashboards", "/dashboards/1")
ROLES = {"olga": "owner", "stefan": "steward", "aude": "auditor", "ada": "analyst", "vera": "viewer"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with small_site(tmp_path_factory.mktemp("books") / "house") as made:
        made.tokens = {name: made.open(name, role) for name, role in ROLES.items()}
        made.start()
        made.receipts = []
        for sql, epsilon in ((COUNT, 0.1), (BY_CITY, 0.5)):
            made.receipts.append(json.loads(made.ask(made.tokens["ada"], sql, epsilon=epsilon).body)["receipt"])
        number = made.value(made.tokens["ada"], "make_dashboard", title=HOSTILE)["number"]
        for receipt in made.receipts:
            given = {"number": number, "receipt": receipt, "title": HOSTILE}
            made.value(made.tokens["ada"], "add_tile", **given)
        made.value(made.tokens["ada"], "publish_dashboard", number=number)
        made.value(made.tokens["olga"], "publish_dashboard", number=number)
        with made.open_desk():
            made.visitors = {name: made.visitor(name) for name in ROLES}
            yield made
            for one in made.visitors.values():
                one.close()


def text_of(page: str) -> str:
    """What people read on a page."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


# --- what everybody sees ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ROLES)
def test_pages_are_there_for_every_role_and_charge_nothing(site, name):
    before = site.ledger.count
    for path in FREE:
        reply = site.visitors[name].get(path)
        assert reply.status_code == 200, path
        assert len(reply.content) <= LONGEST
        assert HOSTILE not in reply.text or path.endswith(".csv")
        assert "<script>alert" not in reply.text
    assert site.ledger.count == before


def test_the_history_says_what_was_asked_and_what_it_cost(site):
    page = site.visitors["ada"].page("/history")
    shown = text_of(page)
    assert "ε = 0.1" in shown
    assert "ε = 0.5" in shown
    assert "v1" in shown
    for receipt in site.receipts:
        assert f'href="/answers/{receipt}"' in page
    only = text_of(site.visitors["ada"].page("/history", find="group by"))
    assert "1 question with this text" in only
    assert "No question has this text" in text_of(site.visitors["ada"].page("/history", find="nothing like it"))


def test_owners_and_auditors_choose_an_account(site):
    for name in ("olga", "aude"):
        page = site.visitors[name].page("/history", account="ada")
        assert "History of ada" in page
        assert "/answers/" not in page  # the answers are those of the account
        assert "Budget of ada" in site.visitors[name].page("/budget", account="ada")
    for name in ("stefan", "vera"):
        assert "History of ada" not in site.visitors[name].page("/history", account="ada")
        assert "of ada" not in site.visitors[name].page("/budget", account="ada")
    assert site.visitors["olga"].get("/history", params={"account": "nobody"}).status_code == 404


def test_the_history_as_a_file_has_no_formulas(site):
    token = site.tokens["ada"]
    questions.note_question(site.store, "ada", "1-aaaa", "=HYPERLINK(1)\nFROM visits", {}, time.time(), since=None)
    rows = list(csv.reader(io.StringIO(site.visitors["ada"].get("/history.csv").text)))
    assert rows[0] == ["number", "time", "question", "epsilon", "charged", "version", "receipt"]
    assert any(row[2].startswith("'=HYPERLINK") for row in rows)
    assert all(not cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row)
    assert len(rows) == 1 + len(site.value(token, "history")["questions"])
    assert csv_of([]).count("\n") == 1


def test_long_histories_are_paged_and_stay_small(site):
    for number in range(120):
        questions.note_question(site.store, "vera", f"{number}-aaaa", "'\"&<" * 50, {}, time.time())
    visitor = site.visitors["vera"]
    first, last = visitor.get("/history").content, visitor.page("/history", page=3)
    assert len(first) <= LONGEST
    assert b"Page 1 of 3" in first
    assert last.count("<tr>") == 21
    assert "Older" not in last
    assert LONGEST_SQL < 200


def test_the_budget_says_what_is_left(site):
    shown = text_of(site.visitors["ada"].page("/budget"))
    for words in ("ε = 3", "ε = 2.4", "20%", "About 8 such questions", "lasts until about", "one question"):
        assert words in shown, words
    whole = site.visitors["olga"].page("/budget")
    assert "Budget of the data set" in whole
    assert 'href="/budget?account=ada"' in whole
    assert "asks nothing new" in site.visitors["vera"].page("/budget")


@pytest.mark.slow
def test_the_risk_is_larger_for_a_household(site):
    def highest(page):
        return [float(one) for one in re.findall(r"(\d+\.?\d*)%", text_of(page.split("What was spent")[1]))]

    one, six = (site.visitors["ada"].page("/risk", people=people, rate=5) for people in (1, 6))
    assert sum(highest(six)) > sum(highest(one))
    assert ">5%<" in one
    for wrong in ("x", "0", "100", "-1", "1e999", "nan"):
        assert 'aria-invalid="true"' in site.visitors["ada"].page("/risk", rate=wrong)
    assert "<option selected>1</option>" in site.visitors["ada"].page("/risk", people="7")


# --- dashboards ---------------------------------------------------------------------------------------------


def test_viewers_see_a_published_dashboard_with_errors_and_version(site):
    page = site.visitors["vera"].page("/dashboards/1")
    shown = text_of(page)
    assert "± 90" in shown
    assert "Version v1" in shown
    assert page.count('class="picture"') == 1
    assert "edit" not in page
    assert "Pay" not in shown
    assert site.visitors["vera"].get("/dashboards/1?edit=1").text == page


def test_hidden_dashboards_look_like_none(site):
    number = site.value(site.tokens["ada"], "make_dashboard", title="Secret plans")["number"]
    for name in ("olga", "vera", "stefan"):
        hidden = site.visitors[name].get(f"/dashboards/{number}")
        unknown = site.visitors[name].get("/dashboards/999999")
        assert hidden.status_code == unknown.status_code == 404
        assert hidden.content == unknown.content
        odd = site.visitors[name].get("/dashboards/1%20OR%201=1")
        assert odd.content == unknown.content


def test_an_author_makes_and_changes_a_dashboard_without_scripts(site):
    ada = site.visitors["ada"]
    ada.page("/dashboards")
    place = ada.fill("/dashboards", title="By hand").headers["location"]
    number = int(place.split("/")[2].split("?")[0])
    path = f"/dashboards/{number}"
    assert "The dashboard was made" in ada.page(place)
    ada.fill(path, do="add", edit="1", title="One", receipt=site.receipts[0])
    ada.fill(path, do="add", edit="1", title="Two", recent=site.receipts[1], receipt="")
    tiles = [one["number"] for one in site.value(site.tokens["ada"], "dashboard", number=number)["tiles"]]
    ada.fill(path, do="down", tile=tiles[0])
    ada.fill(path, do="title", tile=tiles[0], title="Renamed")
    ada.fill(path, do="rename", title="By my hand")
    ada.fill(path, do="rule", rule="rule", epsilon="0,5")
    shown = ada.page(path, edit=1)
    assert shown.index("Two") < shown.index("Renamed")
    assert 'value="0.5"' in shown
    assert ada.fill(path, do="publish").headers["location"].endswith("done=waiting")
    assert ada.fill(path, do="unpublish").headers["location"].endswith("done=draft")
    ada.fill(path, do="drop", tile=tiles[0])
    assert ada.fill(path, do="remove").headers["location"] == "/dashboards?done=removed"
    assert ada.get(path).status_code == 404
    assert ada.fill("/dashboards/1", 400, do="nonsense").status_code == 400
    assert ada.fill("/dashboards/1", 400, do="add", title="x").status_code == 400
    assert site.visitors["vera"].page("/dashboards", done="<b>x") == site.visitors["vera"].page("/dashboards")


def test_an_answer_is_added_from_its_own_page(site):
    ada = site.visitors["ada"]
    link = f"/dashboards?receipt={site.receipts[0]}"
    assert f'href="{link}"' in ada.page(f"/answers/{site.receipts[0]}")
    number = site.value(site.tokens["ada"], "make_dashboard", title="From an answer")["number"]
    assert f"Add the answer {site.receipts[0]}" in ada.page(link)
    fields = {"do": "add", "number": number, "receipt": site.receipts[0], "title": "t"}
    assert ada.fill("/dashboards", **fields).headers["location"] == f"/dashboards/{number}?edit=1&done=added"
    assert len(site.value(site.tokens["ada"], "dashboard", number=number)["tiles"]) == 1
    assert "Add the answer" not in site.visitors["vera"].page("/dashboards", receipt=HOSTILE)
    assert HOSTILE not in ada.page("/dashboards", receipt=HOSTILE)
    ada.fill("/dashboards", 404, **fields | {"number": 999})


def test_forms_of_dashboards_need_the_secret(site):
    ada, before = site.visitors["ada"], site.value(site.tokens["ada"], "dashboards")
    foreign = site.visitors["vera"]
    foreign.page("/me")
    for path in ("/dashboards", "/dashboards/1"):
        for secret in ("", foreign.secret):
            reply = ada.post(path, data={"form": secret, "do": "remove", "title": "x"})
            assert reply.status_code == 403
    assert site.value(site.tokens["ada"], "dashboards") == before


def test_others_cannot_change_what_they_see(site):
    for name in ("vera", "stefan", "olga"):
        visitor = site.visitors[name]
        visitor.page("/me")
        for fields in ({"do": "remove"}, {"do": "rename", "title": "x"}, {"do": "drop", "tile": 1}):
            assert visitor.fill("/dashboards/1", 403, **fields).status_code == 403


@pytest.mark.slow
def test_a_new_version_is_paid_for_on_its_page(tmp_path):
    with small_site(tmp_path / "house") as made:
        tokens = {name: made.open(name, role) for name, role in ROLES.items()}
        made.start()
        asked = made.ask(tokens["ada"], "SELECT COUNT(*) AS n FROM visits", within={"n": 60})
        given = {"receipt": json.loads(asked.body)["receipt"], "title": "t"}
        number = made.value(tokens["ada"], "make_dashboard", title="b")["number"]
        tile = made.value(tokens["ada"], "add_tile", number=number, **given)["tile"]
        made.stop()
        made.publish("v2")
        made.start()
        with made.open_desk(), closing(made.visitor("ada")) as ada:
            page = ada.page(f"/dashboards/{number}")
            assert "Of version v1; the data is now v2." in page
            price = re.search(r'name="most" value="([^"]+)"', page)[1]
            charged = len(made.charges())
            less = ada.fill(f"/dashboards/{number}", 200, do="pay", tile=tile, most=0.01).text
            assert "The price is another one now" in less
            assert len(made.charges()) == charged
            ada.fill(f"/dashboards/{number}", do="pay", tile=tile, most=price)
            ada.fill(f"/dashboards/{number}", do="pay", tile=tile, most=price)
            assert len(made.charges()) == charged + 1
            assert "the data is now v2." not in ada.page(f"/dashboards/{number}").replace("version <strong>", "")


@pytest.mark.slow
def test_pages_of_neighbors_are_equal(tmp_path):
    """Two gateways whose data differ in everything: without a charge, no page differs."""
    made, pages = [], []
    for name, people in (("few", 3), ("many", 400)):
        with small_site(tmp_path / name, people=people, more=500 if people > 3 else 0) as one:
            one.open("ada")
            one.open("olga", "owner")
            one.start()
            one.value(one.token("ada"), "make_dashboard", title="empty")
            with one.open_desk():
                for who in ("ada", "olga"):
                    with closing(one.visitor(who)) as visitor:
                        pages.append([plain(visitor.get(path)) for path in FREE])
        made.append(pages[-2:])
    assert made[0] == made[1]


def plain(reply):
    """A page without its times, its secret and places in pictures, which depend on the time."""
    text = re.sub(r'name="form" value="[^"]+"', "", reply.text)
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?", "", text)
    return reply.status_code, re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)


# --- small parts --------------------------------------------------------------------------------------------


def tile(columns, rows, errors, **more):
    answer = {"columns": columns, "rows": rows, "errors": errors, "confidence": 0.95, "guarantee": {"epsilon": 0.1}}
    return {"number": 1, "title": "t", "sql": "SELECT 1", "answer": answer | more}


def test_tiles_are_numbers_pictures_or_tables():
    one = Shown(tile(["n"], [[12]], [[3.0]]))
    assert one.single == [("n", "12", "± 3")]
    assert one.picture is None
    dates = [[f"2026-01-{day:02}", day] for day in range(1, 20)]
    line = Shown(tile(["day", "n"], dates, [[None, 1.0]] * 19))
    assert 'class="band"' in line.picture
    assert line.left_out == 11
    bars = Shown(tile([HOSTILE, "n"], [[HOSTILE, 5], [None, 6]], [[None, 1.0]] * 2))
    assert 'class="bar"' in bars.picture
    assert "<script>" not in bars.picture
    ends = Shown(tile(["m"], [[5.0]], [[None]], low=[[4.0]], high=[[7.0]]))
    assert ends.single == [("m", "5", "(4 to 7)")]
    assert Shown(tile(["c", "n"], [], [])).picture is None
    assert Shown(tile(["c", "n"], [["a", None]], [[None, 2.0]])).picture is None
    assert Shown(tile(["c"], [["a"]], [[None]]) | {"answer": None}).is_damaged


def test_a_page_has_as_many_tiles_as_fit():
    many = [tile(["c", "n"], [[HOSTILE * 9, 5]] * 50, [[None, 1.0]] * 50) for _ in range(24)]
    shown = shown_from(many, 0, 44_000)
    assert 1 <= len(shown) < 24
    assert len(shown_from(many, 23, 1)) == 1
    assert shown_from(many, 24, 44_000) == []


def at(day: float) -> str:
    return datetime.fromtimestamp(1_800_000_000 + 86_400 * day, UTC).isoformat()


def test_forecasts_are_sentences():
    course = {"points": [{"left": 4.0}], "left": {"epsilon": 4.0}, "typical": 0.1, "until": "2026-12-01", "pace": 0.25}
    first, second = forecast(course)
    assert first.startswith("About 40 such questions are left")
    assert second.endswith("it lasts until about 2026-12-01.")
    assert "hundred years" in forecast(course | {"until": None})[1]
    assert "Nothing was spent" in forecast(course | {"until": None, "pace": 0.0})[1]
    assert forecast(course | {"left": None}) == ["Nothing is left. What was bought can be seen as before."]
    assert forecast(course | {"points": []}) == []


@pytest.mark.parametrize("days", [0.0001, 0.1, 3, 40, 400, 4000])
@pytest.mark.parametrize("width", [350.0, 720.0])
def test_the_picture_of_a_budget(days, width):
    points = [{"at": at(0), "left": 3.0, "limit": 3.0}, {"at": at(days / 2), "left": 1.0, "limit": 3.0}]
    now = 1_800_000_000 + 86_400 * days
    picture = burn_down(points, now, 0.5, title=HOSTILE, width=width)
    assert all(f'class="{kind}"' in picture for kind in ("curve", "limit", "guess", "band"))
    assert "<script>" not in picture
    assert 2 <= picture.count('text-anchor="middle"') <= 9
    assert 'class="guess"' not in burn_down(points, now, 0.0, title="t")
    assert len(thinned([{"n": n} for n in range(500)])) == 60

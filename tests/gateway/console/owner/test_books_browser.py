"""History, budget, risk and dashboards in a real browser: roles, desktop and phone, light and dark, no scripts."""

from __future__ import annotations

import json

import pytest

from ...house import BY_CITY, COUNT
from ..browser import check_accessible, check_fits, check_small, save_picture

pytestmark = pytest.mark.slow
HOSTILE = "<img src=x onerror=alert(1)>"
PATHS = {"history": "/history", "budget": "/budget", "risk": "/risk?people=3&rate=5", "dashboards": "/dashboards"}


@pytest.fixture(scope="module")
def receipts(site):
    """Receipts of an analyst, one of them on a published dashboard with the number 1."""
    token, owner = site.token("alice"), site.token("olga", "owner")
    found = []
    for sql, epsilon in ((COUNT, 0.5), (BY_CITY, 1.0)):
        reply = site.post(token, sql, json={"sql": sql, "epsilon": epsilon})
        found.append(json.loads(reply.text)["receipt"])
    link = {"Authorization": f"Bearer {token}"}
    made = site.api("POST", "/v1/dashboards", link, title=HOSTILE)
    for receipt in found:
        site.api("POST", f"/v1/dashboards/{made['number']}/tiles", link, receipt=receipt, title=HOSTILE)
    site.api("POST", f"/v1/dashboards/{made['number']}/publish", link)
    site.api("POST", f"/v1/dashboards/{made['number']}/publish", {"Authorization": f"Bearer {owner}"})
    return found


@pytest.fixture(scope="module", autouse=True)
def api(site):
    """Requests of programs to the gateway."""
    import httpx

    def call(method, path, headers, **given):
        reply = httpx.request(method, f"{site.url}{path}", headers=headers, json=given, trust_env=False, timeout=60)
        assert reply.status_code == 200, reply.text
        return reply.json()

    site.api = call


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [("alice", "desktop", "light"), ("olga", "phone", "dark"), ("vera", "phone", "light"), ("aude", "desktop", "dark")],
)
def test_pages_fit_and_are_accessible(site, browser, axe, receipts, name, size, scheme):
    page = browser.open(site.login_link(name), size=size, scheme=scheme)
    for what, path in {**PATHS, "dashboard": "/dashboards/1"}.items():
        page.goto(path)
        check_accessible(page, axe)
        check_fits(page)
        check_small(page)
        save_picture(page, f"{what}-{name}-{size}-{scheme}")
    assert page.locator("img").count() == 0  # the hostile title is text
    assert page.get_by_text(HOSTILE).count() > 0


def test_an_analyst_looks_at_what_was_asked(site, browser, receipts):
    page = browser.open(site.login_link("alice"))
    page.goto("/history")
    page.get_by_label("Text in the question").fill("group by")
    page.keyboard.press("Enter")
    page.get_by_text("1 question with this text").wait_for()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download CSV").click()
    assert download.value.suggested_filename == "history.csv"
    page.get_by_role("link", name=receipts[1]).click()
    page.get_by_role("heading", level=1).wait_for()
    assert "/answers/" in page.url


def test_a_household_is_chosen_with_the_keyboard(site, browser, receipts):
    page = browser.open(site.login_link("alice"))
    page.goto("/budget")
    page.get_by_role("link", name="The whole picture").click()
    page.get_by_label("People in a household").select_option("4")
    page.get_by_label("Base rate, in percent").fill("2")
    page.keyboard.press("Enter")
    page.get_by_text("for 4 people of one household together").first.wait_for()
    assert page.get_by_role("rowheader", name="2%").count() == 2


@pytest.mark.parametrize("scripts", [True, False])
def test_an_author_builds_a_dashboard_and_a_viewer_looks(site, browser, receipts, scripts):
    page = browser.open(site.login_link("alice"), scripts=scripts)
    page.goto("/dashboards")
    title = f"Numbers {scripts}"
    page.get_by_label("Title").fill(title)
    page.get_by_role("button", name="Make it").click()
    page.get_by_text("The dashboard was made").wait_for()
    form = page.locator("form", has=page.get_by_role("button", name="Add it"))
    form.get_by_label("Title").fill("People")
    form.get_by_label("One of your last answers").select_option(receipts[0])
    page.get_by_role("button", name="Add it").click()
    page.get_by_text("The tile was added. Nothing was charged.").wait_for()
    page.get_by_role("button", name="Ask to publish it").click()
    page.get_by_text("An owner or a steward will look").wait_for()
    steward = browser.open(site.login_link("stefan"), scripts=scripts)
    steward.goto("/dashboards")
    steward.get_by_role("link", name=title).click()
    steward.get_by_role("button", name="Publish").click()
    steward.get_by_text("every account sees it").wait_for()
    before = site.ledger.count
    viewer = browser.open(site.login_link("vera"), size="phone", scripts=scripts)
    viewer.goto("/dashboards")
    viewer.get_by_role("link", name=title).click()
    viewer.get_by_role("heading", name="People").wait_for()
    assert viewer.get_by_role("link", name="Edit").count() == 0
    assert site.ledger.count == before
    page.reload()
    page.get_by_role("button", name="Take it back").click()
    page.get_by_text("yours alone again").wait_for()
    assert viewer.goto(page.url.split("?")[0]).status == 404

"""Coming in through a browser: one-time links, sessions that other sites cannot use, and logging out."""

from __future__ import annotations

import re

import httpx
import pytest

from ..house import CITIES
from .browser import check_accessible, check_fits, check_small, save_picture
from .conftest import serving_here

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with serving_here(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture
def client(site):
    with httpx.Client(base_url=site.url, follow_redirects=False) as one:
        yield one


def log_in(client, link):
    """A session with a link, as a browser without scripts would begin it."""
    reply = client.post("/login", data={"link": link, "next": "/"})
    assert reply.status_code == 303, reply.text
    return reply


def secret_of(text):
    """The secret of a page's forms."""
    return re.search(r'name="form" value="([^"]+)"', text)[1]


def test_a_link_begins_one_session(site, client):
    link = site.login_link("alice")
    cookie = log_in(client, link).headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="))
    assert client.get("/me").status_code == 200
    with httpx.Client(base_url=site.url) as other:
        assert other.post("/login", data={"link": link}).status_code == 401
        assert "set-cookie" not in other.post("/login", data={"link": link}).headers


def test_a_session_that_somebody_planted_is_not_used(site, client):
    client.cookies.set(f"discreet-{client.base_url.port}", "dsc_planted_secret")
    token = re.search(r"discreet-\d+=([^;]+)", log_in(client, site.login_link("alice")).headers["set-cookie"])[1]
    assert "planted" not in token


@pytest.mark.parametrize(
    "wrong", [{"Origin": "https://elsewhere.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_forms_from_elsewhere_are_refused(site, client, wrong):
    link = site.login_link("alice")
    assert client.post("/login", data={"link": link}, headers=wrong).status_code == 403
    log_in(client, link)  # it was not used up
    secret = secret_of(client.get("/me").text)
    assert client.post("/logout", data={"form": secret}, headers=wrong).status_code == 403
    assert client.get("/me").status_code == 200


def test_a_form_needs_the_secret_of_its_session(site, client):
    log_in(client, site.login_link("alice"))
    with httpx.Client(base_url=site.url) as other:
        log_in(other, site.login_link("stefan"))
        foreign = secret_of(other.get("/me").text)
    for data in ({"other": "x"}, {"form": ""}, {"form": foreign}):
        assert client.post("/logout", data=data).status_code == 403
    assert client.get("/me").status_code == 200


def test_who_logs_out_is_out_everywhere(site, client):
    log_in(client, site.login_link("alice"))
    kept = dict(client.cookies)
    assert client.post("/logout", data={"form": secret_of(client.get("/me").text)}).status_code == 303
    with httpx.Client(base_url=site.url, cookies=kept) as thief:
        assert thief.get("/me").headers["location"].startswith("/login")


def test_pages_need_the_cookie_and_programs_the_token(site, client):
    token = site.token("alice")
    assert client.get("/me", headers={"Authorization": f"Bearer {token}"}).status_code == 303
    log_in(client, site.login_link("alice"))
    assert client.get("/v1/me").status_code == 401


@pytest.mark.parametrize("target", ["//elsewhere.example", "/\\elsewhere.example", "https://elsewhere.example", "a"])
def test_a_login_leads_only_to_our_pages(site, client, target):
    reply = client.post("/login", data={"link": site.login_link("alice"), "next": target})
    assert reply.headers["location"] == "/"
    shown = client.get("/login", params={"next": target}).text
    assert "elsewhere" not in shown


@pytest.mark.slow
def test_every_page_forbids_frames_scripts_and_storing(site, client):
    log_in(client, site.login_link("olga"))
    for path in ("/login", "/me", "/nothing-here"):
        headers = client.get(path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"], path
        assert headers["cache-control"] == "no-store", path
        assert headers["x-content-type-options"] == "nosniff", path
        assert "unsafe" not in headers["content-security-policy"], path


@pytest.mark.slow
@pytest.mark.parametrize("size", ["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_login_page(site, browser, axe, size, scheme):
    page = browser.open(size=size, scheme=scheme)
    page.goto(site.login_link("alice"))
    assert "#" not in page.url  # the secret is in the form, and not in the address
    check_accessible(page, axe)
    check_fits(page)
    check_small(page)
    save_picture(page, f"login-{size}-{scheme}")
    page.keyboard.press("Enter")  # the button has the focus
    page.get_by_role("button", name="Log out").wait_for()


@pytest.mark.slow
def test_without_scripts_one_pastes_the_link(site, browser):
    browser.open(site.login_link("alice"), scripts=False)


@pytest.mark.slow
def test_a_person_asks_and_sees_the_answer(site, browser):
    before = site.ledger.count
    page = browser.open(site.login_link("alice"))
    page.get_by_label("Question in SQL").fill("SELECT city, COUNT(*) AS n FROM visits GROUP BY city")
    page.get_by_text("Expected error").wait_for()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**/answers/*")
    for city in CITIES:
        assert page.get_by_role("cell", name=city).is_visible()
    assert page.locator("svg[role=img]").first.is_visible()
    assert site.ledger.count == before + 1

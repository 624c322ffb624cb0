"""What holds for every page of the console, whoever wrote it: forms, headers, sizes, and nothing inside a page that a
content security policy would have to allow.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

import httpx
import pytest

from discreet.gateway.console.pages.every_page import PAGES
from discreet.gateway.console.site import HERE, NAVIGATION

from .conftest import ACCOUNTS, serving_here
from .test_login import log_in

ASKED = {"name": "alice", "receipt": "000000000000", "number": "1", "id": "0000"}
"""What stands in a path for a name, a receipt, a number or an id."""
LONGEST = 60_000


def path_of(page):
    """A path that leads to this page."""
    return re.sub(r"\{(\w+)\}", lambda found: ASKED[found[1]], page.path)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with serving_here(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture(scope="module")
def sessions(site):
    """A session of each role."""
    found = {}
    for name, role in ACCOUNTS.items():
        found[role] = httpx.Client(base_url=site.url, timeout=60)
        log_in(found[role], site.login_link(name))
    yield found
    for one in found.values():
        one.close()


class Reader(HTMLParser):
    """Reads a page as strictly as a reviewer: what runs, what styles, and what forms send."""

    def __init__(self):
        super().__init__()
        self.wrong, self.forms, self.in_form = [], [], None

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.wrong += [f"{name} on <{tag}>" for name in given if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and not given.get("src", "").startswith("/static/")):
            self.wrong.append(f"<{tag}>")
        for name in ("href", "src", "action", "formaction"):
            place = given.get(name)
            if place is not None and not place.startswith(("/", "#", "?")):
                self.wrong.append(f"{name}={place}")
        if tag == "form":
            self.forms.append(given | {"fields": set()})
        if tag == "input" and self.forms:
            self.forms[-1]["fields"].add(given.get("name"))


@pytest.mark.parametrize("role", ACCOUNTS.values())
def test_pages_hold_what_all_pages_hold(sessions, role):
    for page in PAGES:
        if page.method != "GET" or page.open:
            continue
        reply = sessions[role].get(path_of(page), follow_redirects=False)
        where = f"{page.path} for {role}"
        assert reply.status_code in (200, 303, 400, 403, 404), where
        assert "unsafe" not in reply.headers["content-security-policy"], where
        assert "frame-ancestors 'none'" in reply.headers["content-security-policy"], where
        assert reply.headers["cache-control"] == "no-store", where
        assert len(reply.content) <= LONGEST, where
        if not reply.headers["content-type"].startswith("text/html"):
            continue
        reader = Reader()
        reader.feed(reply.text)
        assert not reader.wrong, where
        assert all("form" in form["fields"] for form in reader.forms if form.get("method") == "post"), where


def test_links_in_the_navigation_lead_somewhere(sessions):
    for item in NAVIGATION:
        for role in item.roles:
            assert sessions[role].get(item.path).status_code == 200, (item.path, role)


@pytest.mark.slow
def test_no_form_is_taken_without_its_secret(sessions, site):
    before = site.ledger.count
    for page in PAGES:
        if page.method != "POST" or page.open:
            continue
        for data in ({"x": "y"}, {"form": "AAAA", "x": "y"}):
            reply = sessions["owner"].post(path_of(page), data=data)
            assert reply.status_code == 403, page.path
            assert "gateway-origin" in reply.text
        wrong = {"Origin": "https://elsewhere.example"}
        assert sessions["owner"].post(path_of(page), data={"form": "A"}, headers=wrong).status_code == 403, page.path
    assert site.ledger.count == before


def test_without_a_session_every_page_leads_to_the_login(site):
    with httpx.Client(base_url=site.url) as client:
        for page in PAGES:
            if not page.open and page.method == "GET":
                reply = client.get(path_of(page))
                assert (reply.status_code, reply.headers["location"][:6]) == (303, "/login"), page.path


def test_few_pages_are_open():
    assert {page.path for page in PAGES if page.open} == {"/login", "/leaked"}


def test_every_file_of_the_pages_is_used():
    known = "".join(file.read_text() for file in (HERE / "templates").rglob("*.html"))
    known += "".join(file.read_text() for file in (HERE / "static").glob("*.js"))
    for file in (HERE / "static").iterdir():
        assert file.name in known, file.name


def test_no_template_trusts_a_value():
    for file in (HERE / "templates").rglob("*.html"):
        assert not re.search(r"\|\s*safe\b|autoescape\s+false", file.read_text()), file.name

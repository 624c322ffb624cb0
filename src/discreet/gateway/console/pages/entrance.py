"""Coming and going: the login page for one-time links, the first page, and logging out.

The secret of a link stands after its #, which browsers do not send. The page puts it into its form, and only the
button uses it up, so that programs that follow links in mails do not. Without scripts, one pastes the link.
"""

from __future__ import annotations

import datetime
import time

from discreet.gateway.console.cookies import set_session
from discreet.gateway.console.page import Page
from discreet.gateway.console.visit import Refusal, Visit, local_path
from discreet.gateway.desk.replies import Reply

LONGEST_LINK = 500
FIRST = {"owner": "/accounts", "steward": "/requests", "auditor": "/record", "viewer": "/dashboards"}
"""Where a role begins. All others begin with a question."""
FIRST |= {"setup": "/setup", "starting": "/setup/starting"}  # of a first run


async def first_page(visit: Visit) -> Reply:
    """The page with which this role begins."""
    path = FIRST.get(visit.role, "/ask")
    return visit.go(path if visit.console.has(path) else "/me")


async def login_page(visit: Visit) -> Reply:
    """Ask for a login link."""
    return _login(visit, 200, None)


def _login(visit: Visit, status: int, refusal: Refusal | None) -> Reply:
    following = local_path((visit.form if "next" in visit.form else visit.query)["next"])
    oidc = visit.console.settings.oidc is not None
    return visit.page("login.html", status=status, refusal=refusal, following=following, oidc=oidc)


async def log_in(visit: Visit) -> Reply:
    """Use a link up, and begin a new session. A cookie that the browser had before is replaced."""
    given = visit.form["link"].strip()[:LONGEST_LINK].rpartition("#")[2]
    visit.request.token = None
    try:
        begun = await visit.ask_vault("login", link=given)
    except Refusal as refusal:
        return _login(visit, refusal.status, refusal)
    return visit.go(local_path(visit.form["next"]), headers=(session_header(visit, begun),))


def session_header(visit: Visit, begun: dict[str, str]) -> tuple[bytes, bytes]:
    """The cookie of a session that the vault began."""
    left = datetime.datetime.fromisoformat(begun["expires"]).timestamp() - time.time()
    return set_session(visit.request, begun["token"], max(0, int(left)))


async def own_page(visit: Visit) -> Reply:
    """Who one is here, and until when."""
    return visit.page("me.html")


async def log_out(visit: Visit) -> Reply:
    """End the session, in the browser and in the vault."""
    try:
        await visit.ask_vault("end_session")
    except Refusal as refusal:
        if refusal.code != "gateway-login":
            raise
    gone = (b"clear-site-data", b'"cache", "storage"')
    return visit.go("/login", headers=(set_session(visit.request, "", 0), gone))


PAGES = (
    Page(method="GET", path="/", handler=first_page),
    Page(method="GET", path="/login", handler=login_page, open=True),
    Page(method="POST", path="/login", handler=log_in, open=True),
    Page(method="GET", path="/me", handler=own_page),
    Page(method="POST", path="/logout", handler=log_out),
)

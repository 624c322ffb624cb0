"""The pages about tokens: one's own, those that the owner manages, and one that somebody found."""

from __future__ import annotations

from discreet.gateway.console.deeds import shown_on, status_of
from discreet.gateway.console.page import Page
from discreet.gateway.console.pages.accounts import DONE, make_token, newest, place, secret_page
from discreet.gateway.console.visit import Refusal, Visit
from discreet.gateway.desk.replies import Reply


async def tokens_page(visit: Visit, refusal: Refusal | None = None) -> Reply:
    """One's own tokens, and a form for a new one."""
    found = (await visit.ask_vault("tokens", account=visit.me["account"]))["tokens"]
    return visit.page(
        "owner/tokens.html",
        status=status_of(refusal),
        refusal=refusal,
        done=DONE.get(visit.query["done"]),
        tokens=newest(found),
        scopes=visit.me["scopes"],
        given=visit.form,
    )


@shown_on(tokens_page)
async def new_token(visit: Visit) -> Reply:
    """A new token of one's own, on this page only."""
    return await make_token(visit, None, "/tokens")


@shown_on(tokens_page)
async def revoke(visit: Visit) -> Reply:
    """Revoke a token."""
    await visit.ask_vault("revoke", id=visit.arguments["id"])
    return visit.go(_back(visit), done="revoked")


@shown_on(tokens_page)
async def rotate(visit: Visit) -> Reply:
    """Give a token a new secret, which is on this page only."""
    made = await visit.ask_vault("rotate", id=visit.arguments["id"])
    return secret_page(visit, made["account"], token=made["token"], until=made["expires"], back=_back(visit))


def _back(visit: Visit) -> str:
    """The page from which the form came: that of an account, or one's own tokens."""
    account = visit.form["account"]
    return place(account) if account else "/tokens"


async def leaked_page(visit: Visit) -> Reply:
    """Where anybody reports a token that they found."""
    return visit.page("owner/leaked.html", received=visit.query["done"] == "received")


async def report_leaked(visit: Visit) -> Reply:
    """Revoke a token that was found. The reply is always the same."""
    visit.request.token = None
    await visit.ask_vault("leaked", token=visit.form["token"].strip())
    return visit.go("/leaked", done="received")


PAGES = (
    Page(method="GET", path="/tokens", handler=tokens_page),
    Page(method="POST", path="/tokens", handler=new_token),
    Page(method="POST", path="/tokens/{id}/revoke", handler=revoke),
    Page(method="POST", path="/tokens/{id}/rotate", handler=rotate),
    Page(method="GET", path="/leaked", handler=leaked_page, open=True),
    Page(method="POST", path="/leaked", handler=report_leaked, open=True),
)

"""The pages about accounts: who may do what, how much is left to each, and what the owner changes about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from discreet.errors import InvalidArgument
from discreet.gateway.books.accounts import CHARGED
from discreet.gateway.books.tokens import ROLES, SCOPES
from discreet.gateway.console.deeds import leaf_of, reason_in, shown_on, status_of
from discreet.gateway.console.page import Page
from discreet.gateway.console.visit import Refusal, Visit
from discreet.gateway.desk.replies import Reply

EACH = 80
"""Accounts on one page."""
ABOUT = {
    "owner": "decides everything",
    "steward": "approves requests, suspends accounts",
    "auditor": "reads the record and the audit",
    "analyst": "asks, within limits",
    "viewer": "sees what was bought",
    "service": "asks like an analyst, for programs",
}
"""What each role is for."""
DONE = {
    "suspended": "The account is suspended. Its tokens are refused from now on.",
    "resumed": "The account is resumed.",
    "stopped": "All charged questions are stopped.",
    "going": "Charged questions are answered again.",
    "raised": "The limit is raised.",
    "renewed": "A new period has begun, with a new limit.",
    "role": "The role is changed.",
    "revoked": "The token is revoked. It is refused from now on.",
    "all-revoked": "All tokens and login links of the account are revoked.",
}
"""What was done, by the code in the address."""


async def accounts_page(visit: Visit, refusal: Refusal | None = None) -> Reply:
    """All accounts, and a form for a new one."""
    found = await visit.ask_vault("accounts")
    leaf = leaf_of(visit, [with_spent(one) for one in found["accounts"]], EACH)
    return visit.page(
        "owner/accounts.html",
        status=status_of(refusal),
        refusal=refusal,
        done=DONE.get(visit.query["done"]),
        found=found,
        leaf=leaf,
        roles=ABOUT,
        given=visit.form,
    )


def with_spent(one: Mapping[str, Any]) -> dict[str, Any]:
    """An account with what its page shows of a limit in ε, and nothing of others."""
    limit, left = ((one[key] or {}).get("epsilon") for key in ("limit", "remaining"))
    return {**one, "most": limit, "left": left, "spent": None if limit is None else one["spent"]}


@shown_on(accounts_page)
async def open_account(visit: Visit) -> Reply:
    """Open an account. Its login link is on this page only."""
    role = visit.form["role"]
    terms = {key: visit.form.number(key) for key in ("epsilon", "delta")} if role in CHARGED else {}
    made = await visit.ask_vault("open", name=visit.form["name"].strip(), role=role, **terms)
    shown = {"link": made["link"], "until": made["expires"], "warning": made.get("warning")}
    return secret_page(visit, made["account"], **shown, back=place(made["account"]))


def secret_page(visit: Visit, account: str, **values: Any) -> Reply:
    """The page that shows a link or a token, once."""
    known: dict[str, Any] = {"link": None, "token": None, "until": None, "warning": None, **values}
    return visit.page("owner/secret.html", account=account, **known)


def place(name: str) -> str:
    """The address of the page of an account."""
    return f"/accounts/{quote(name, safe='')}"


@shown_on(accounts_page)
async def stop_all(visit: Visit) -> Reply:
    """Stop all charged questions."""
    await visit.ask_vault("suspend")
    return visit.go("/accounts", done="stopped")


@shown_on(accounts_page)
async def resume_all(visit: Visit) -> Reply:
    """Answer charged questions again."""
    await visit.ask_vault("resume")
    return visit.go("/accounts", done="going")


# --- one account --------------------------------------------------------------------------------------------


async def account_page(visit: Visit, refusal: Refusal | None = None) -> Reply:
    """One account, with what may be changed about it."""
    name = visit.arguments["name"]
    known = (await visit.ask_vault("accounts"))["accounts"]
    one = next((one for one in known if one["name"].lower() == name.lower()), None)
    if one is None:
        raise InvalidArgument("There is no such account.", code="gateway-not-found")
    held: list[Any] = []
    if visit.role == "owner":
        held = (await visit.ask_vault("tokens", account=one["name"]))["tokens"]
    return visit.page(
        "owner/account.html",
        status=status_of(refusal),
        refusal=refusal,
        done=DONE.get(visit.query["done"]),
        account=with_spent(one),
        tokens=newest(held),
        roles=ABOUT,
        scopes=ROLES[one["role"]],
        charged=one["role"] in CHARGED,
        given=visit.form,
    )


def newest(tokens: list[Any], most: int = 50) -> list[Any]:
    """Tokens that can be used first, then the newest. Logins that ended are left out."""
    shown = [one for one in tokens if not (one["revoked"] and one["name"] == "login")]
    shown.sort(key=lambda one: one["made"], reverse=True)
    shown.sort(key=lambda one: one["revoked"])
    return shown[:most]


def _changes(verb: str, done: str, *, numbers: tuple[str, ...] = (), reason: bool = False) -> Any:
    """A form of an account that asks the vault for one verb."""

    @shown_on(account_page)
    async def change(visit: Visit) -> Reply:
        name = visit.arguments["name"]
        given: dict[str, Any] = {key: visit.form.number(key) for key in numbers}
        if reason:
            given["why"] = reason_in(visit)
        await visit.ask_vault(verb, name=name, **given)
        return visit.go(place(name), done=done)

    return change


@shown_on(account_page)
async def change_role(visit: Visit) -> Reply:
    """Give an account another role. One that asks questions needs a limit, unless it has had one."""
    name, role = visit.arguments["name"], visit.form["role"]
    terms = {"epsilon": visit.form.number("epsilon")} if role in CHARGED else {}
    await visit.ask_vault("role", name=name, role=role, **terms)
    return visit.go(place(name), done="role")


@shown_on(account_page)
async def new_link(visit: Visit) -> Reply:
    """A new login link, on this page only."""
    name = visit.arguments["name"]
    made = await visit.ask_vault("link", name=name)
    return secret_page(visit, made["account"], link=made["link"], until=made["expires"], back=place(name))


@shown_on(account_page)
async def new_token(visit: Visit) -> Reply:
    """A new token of an account, on this page only."""
    return await make_token(visit, visit.arguments["name"], place(visit.arguments["name"]))


async def make_token(visit: Visit, account: str | None, back: str) -> Reply:
    """Make a token as a form asks for it: its name, scopes, end and limit."""
    scopes = [scope for scope in visit.form.all("scope") if scope in SCOPES] or None
    made = await visit.ask_vault(
        "token",
        account=account,
        name=visit.form["token_name"].strip() or None,
        scopes=scopes,
        expires=visit.form["expires"].strip() or None,
        epsilon=visit.form.number("token_epsilon"),
    )
    return secret_page(visit, made["account"], token=made["token"], until=made["expires"], back=back)


@shown_on(account_page)
async def revoke_all(visit: Visit) -> Reply:
    """Revoke all tokens and links of an account."""
    name = visit.arguments["name"]
    await visit.ask_vault("revoke", account=name)
    return visit.go(place(name), done="all-revoked")


PAGES = (
    Page(method="GET", path="/accounts", handler=accounts_page),
    Page(method="POST", path="/accounts", handler=open_account),
    Page(method="POST", path="/stop", handler=stop_all),
    Page(method="POST", path="/resume", handler=resume_all),
    Page(method="GET", path="/accounts/{name}", handler=account_page),
    Page(method="POST", path="/accounts/{name}/suspend", handler=_changes("suspend", "suspended")),
    Page(method="POST", path="/accounts/{name}/resume", handler=_changes("resume", "resumed")),
    Page(
        method="POST",
        path="/accounts/{name}/raise",
        handler=_changes("raise", "raised", numbers=("epsilon", "delta"), reason=True),
    ),
    Page(
        method="POST",
        path="/accounts/{name}/renew",
        handler=_changes("renew", "renewed", numbers=("epsilon", "delta"), reason=True),
    ),
    Page(method="POST", path="/accounts/{name}/role", handler=change_role),
    Page(method="POST", path="/accounts/{name}/link", handler=new_link),
    Page(method="POST", path="/accounts/{name}/token", handler=new_token),
    Page(method="POST", path="/accounts/{name}/revoke", handler=revoke_all),
)

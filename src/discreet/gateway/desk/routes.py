"""What the desk answers over HTTP: each route, the verb of the vault it stands for, and what is said about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.gateway.desk.paths import Place


@dataclass(frozen=True, kw_only=True)
class Route(Place):
    """A method and a path, such as /v1/questions/{receipt}, and the verb that answers it.

    `takes` are the properties of the request's JSON object, `needs` those that it must have, `asks` the parameters of
    the query string, and `gives` the properties of the reply. With `formats`, Accept chooses the form of the reply.
    """

    verb: str
    about: str
    more: str = ""
    token: bool = True
    formats: bool = False
    takes: Mapping[str, Any] = field(default_factory=dict)
    needs: Sequence[str] = ()
    asks: Mapping[str, Any] = field(default_factory=dict)
    gives: Mapping[str, Any] = field(default_factory=dict)


# --- what is said in the description ------------------------------------------------------------------------


def _text(about: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": about, **more}


def _number(about: str, **more: Any) -> dict[str, Any]:
    return {"type": "number", "description": about, **more}


def _whole(about: str, **more: Any) -> dict[str, Any]:
    return {"type": "integer", "description": about, **more}


def _object(about: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "description": about, **more}


def _list(about: str, of: str = "object") -> dict[str, Any]:
    return {"type": "array", "description": about, "items": {"type": of}}


_GUARANTEE = {
    "type": "object",
    "properties": {"epsilon": {"type": "number"}, "delta": {"type": "number"}},
    "required": ["epsilon", "delta"],
}
_LEFT = {**_GUARANTEE, "required": ["epsilon"]}
_NUMBERS = {"type": "object", "additionalProperties": {"type": "number"}}
_WHY = _text("Why, in a sentence. It is in the audit log.")
_TOKEN = _text("The secret, shown this once. It is the bearer of later requests.")
PAGE = {
    "first": _whole("The number of the first line."),
    "last": _whole("The number of the last line."),
}
_SQL = _text("One query in SQL, such as SELECT city, COUNT(*) AS n FROM visits GROUP BY city.")
QUESTION = {
    "sql": _SQL,
    "epsilon": _number("The cost ε of the whole question. By default that of the gateway.", exclusiveMinimum=0),
    "within": {
        **_NUMBERS,
        "description": 'Instead of epsilon: the largest error of columns, such as {"n": 50}. The smallest ε is used '
        "that keeps it.",
    },
    "delta": _number("The δ of the question. By default that of the policy.", minimum=0),
    "confidence": _number("The confidence of errors, 0.95 by default.", exclusiveMinimum=0, exclusiveMaximum=1),
    "weights": {**_NUMBERS, "description": 'How ε is divided among the columns, such as {"n": 2, "cost": 1}.'},
    "bounds": _object('Bounds below those of the policy, such as {"rows_per_person": 3}.'),
    "parts": _list(
        'Only the rows in these parts count, such as ["2024-01"]. Only they are charged if each unit lives in one.',
        "string",
    ),
}
ANSWER_AFTER = _text("A longer time until the answer than that of the gateway, such as 10s.")
_ANSWER = {
    "columns": _list("The names of the columns.", "string"),
    "rows": {"type": "array", "description": "The rows, in the order of columns.", "items": {"type": "array"}},
    "errors": {
        "type": "array",
        "description": "The error of each value: half an interval, and null for a key.",
        "items": {"type": "array"},
    },
    "confidence": _number("The confidence with which each error holds."),
    "guarantee": {**_GUARANTEE, "description": "What the answer cost, rounded up to six digits."},
    "remaining": {
        "anyOf": [_LEFT, {"type": "null"}],
        "description": "The largest release that still fitted when it was asked first, rounded down: `GET /v1/budget` "
        "says what fits now. Of an answer that another account bought, what fits now. Without delta, it has none: that "
        "says nothing of the δ that is left. The header discreet-remains of a new answer names the nearest limit.",
    },
    "receipt": {"type": ["string", "null"], "description": "The entry of the ledger. GET it to read the answer again."},
    "replayed": {"type": "boolean", "description": "Whether it was answered before. If so, it cost nothing this time."},
    "notes": _list("What the errors do not cover, and what else is known about the answer.", "string"),
    "clipped": _object("The estimated part of a count or a sum that is lost to limits that were found, or null."),
    "not_private": {"type": "boolean", "description": "Whether it was made in test mode."},
}
_SESSION = {
    "token": _TOKEN,
    "account": _text("The name of the account."),
    "expires": _text("When the token ends."),
}

ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path="/healthz",
        verb="health",
        about="Whether the gateway answers",
        token=False,
        gives={"ok": {"type": "boolean"}},
    ),
    Route(
        method="POST",
        path="/v1/login",
        verb="login",
        about="Exchange a one-time link for a session token",
        more="The token holds for 12 hours. The link can be used once.",
        token=False,
        takes={"link": _text("The secret of the link that the owner sent.")},
        needs=["link"],
        gives=_SESSION,
    ),
    Route(
        method="GET",
        path="/v1/me",
        verb="me",
        about="Who I am, and what I may do",
        gives={
            "account": _text("The name of the account."),
            "role": _text("owner, steward, auditor, analyst, viewer or service."),
            "database": _text("The name of the data set, which is the database of clients of PostgreSQL."),
            "scopes": _list("What the token may do.", "string"),
            "expires": {"type": ["string", "null"], "description": "When the token ends."},
            "limits": _object(
                "The limit of the account (`account`), and those of questions, sessions, tokens and days."
            ),
            "suspended": {"type": "boolean", "description": "Whether the account is suspended."},
        },
    ),
    Route(
        method="GET",
        path="/v1/tables",
        verb="tables",
        about="What may be asked",
        more="All tables with the types, ranges and choices of their columns, and who is protected. All of it is "
        "public, and it costs nothing.",
        gives={"tables": _list("The tables."), "version": _text("The version of the data.")},
    ),
    Route(
        method="POST",
        path="/v1/describe",
        verb="describe",
        about="The columns of an answer",
        more="No ε is needed, nothing is spent, and no row is read.",
        takes={"sql": _SQL},
        needs=["sql"],
        gives={"columns": _list("Each with its name, its type, and whether it is noisy.")},
    ),
    Route(
        method="POST",
        path="/v1/plan",
        verb="plan",
        about="What a question would cost, and how large its error may be",
        more="Nothing is spent and no row is read. The object is that of `discreet explain --format json`, and what "
        "the gateway adds. A refusal may have a question in `more.instead` that can be answered.",
        takes=QUESTION,
        needs=["sql"],
        gives={
            "guarantee": _text("The cost in words."),
            "columns": _list("Each column with its expected error."),
            "epsilon": _number("The cost ε of the whole question."),
            "bought": {"type": "boolean", "description": "Whether it was bought before, and is free now."},
            "left": {"type": ["string", "null"], "description": "What remains now, in words, with the nearest limit."},
            "remaining": {
                "type": ["string", "null"],
                "description": "What would remain after it, as `after` says. In a budget, `remaining` is now.",
            },
            "fits": {"type": "boolean", "description": "Whether all of it fits what is left to the account."},
            "hindrance": {
                "type": ["string", "null"],
                "description": "What would stop it now, as the refusal says it: what is left to the account, another "
                "limit, or that a second person must approve it.",
            },
            "after": {"type": ["string", "null"], "description": "What would remain after all of it, in words."},
            "spends": {"type": "boolean", "description": "Whether this account has a budget. Others see none."},
        },
    ),
    Route(
        method="POST",
        path="/v1/questions",
        verb="ask",
        about="Answer a question with noise, and charge it",
        more="The ledger is charged before noise is drawn. The same question on the same data gets the same answer, "
        "for free. Every charged answer leaves a fixed time after the question arrived. With an Idempotency-Key, a "
        "request that is sent again is charged once. JSON is the object of `discreet query --format json`. In an "
        "Arrow stream, the metadata of the schema has that object under `discreet`, without the rows. With CSV, the "
        "header Discreet-Facts has its notes, receipt and `replayed`, as JSON.",
        formats=True,
        takes={
            **QUESTION,
            "answer_after": ANSWER_AFTER,
            "bought_only": {"type": "boolean", "description": "Whether only an answer bought before is wanted."},
            "why": _WHY,
        },
        needs=["sql"],
        gives=_ANSWER,
    ),
    Route(
        method="GET",
        path="/v1/questions/{receipt}",
        verb="again",
        about="Read an answer again, for free",
        more="Only your own. The receipt of another account is unknown.",
        formats=True,
        gives=_ANSWER,
    ),
    Route(
        method="GET",
        path="/v1/history",
        verb="history",
        about="The questions of this account",
        more="By number, oldest first; or with find or page, newest first. Owners and auditors may name an account.",
        asks={
            **PAGE,
            "account": _text("Whose questions. By default your own."),
            "find": _text("A text that is in the question."),
            "page": _whole("The number of a page."),
            "most": _whole("How many questions a page has."),
        },
        gives={"questions": _list("Each with its receipt, the version of the data, and the ε that it cost.")},
    ),
    Route(
        method="GET",
        path="/v1/spending",
        verb="spending",
        about="What was left of the budget over time",
        more="As of the last answer that has left. Owners and auditors may name an account, or ask for the data set.",
        asks={
            "account": _text("Whose budget. By default your own."),
            "whole": _whole("1 for the data set."),
            "points": _whole("How many points at most, from 20 to 200."),
        },
        gives={
            "points": _list("Each with its time, what was left then, and the limit."),
            "typical": {"type": ["number", "null"], "description": "The mean ε of the last questions."},
            "pace": _number("The ε per day in the last 7 days."),
            "until": {"type": ["string", "null"], "description": "Until when it lasts at this pace."},
        },
    ),
    Route(
        method="GET",
        path="/v1/budget",
        verb="budget",
        about="What remains of the budget",
        gives={
            "limit": _object("The limit of the account."),
            "remaining": {"description": "The largest question that still fits now, rounded down, or null."},
            "remains": _text("What remains now in words, with the nearest limit: ε = 2.05 remains, 0.05 of it today."),
            "day": {"description": "What remains of today's limit, or null."},
            "session": {"description": "What remains of the session's limit, or null."},
            "about": _text("How many questions that is, and how many of them a limit allows now."),
        },
    ),
    Route(
        method="GET",
        path="/v1/dashboards",
        verb="dashboards",
        about="The dashboards that this account may see",
        gives={"dashboards": _list("Each with its number, title, author and state.")},
    ),
    Route(
        method="POST",
        path="/v1/dashboards",
        verb="make_dashboard",
        about="Make a dashboard",
        takes={"title": _text("Its title.")},
        needs=["title"],
        gives={"number": _whole("Its number.")},
    ),
    Route(
        method="GET",
        path="/v1/dashboards/{number}",
        verb="dashboard",
        about="A dashboard with its tiles, for free",
        more="Each tile has its answer as it was released, and the version of the data that it is of. A dashboard of "
        "another account that is not published looks as if it were not there.",
        gives={"title": _text("Its title."), "tiles": _list("The tiles.")},
    ),
    Route(method="DELETE", path="/v1/dashboards/{number}", verb="remove_dashboard", about="Remove a dashboard"),
    Route(
        method="POST",
        path="/v1/dashboards/{number}/tiles",
        verb="add_tile",
        about="Add an answer of yours to a dashboard, for free",
        takes={"receipt": _text("The receipt of the answer."), "title": _text("The title of the tile.")},
        needs=["receipt", "title"],
        gives={"tile": _whole("The number of the tile.")},
    ),
    Route(
        method="POST",
        path="/v1/dashboards/{number}/refresh",
        verb="refresh_tile",
        about="Pay for a tile of the newest version of the data",
        more="For its author and the owner of the data, each from their own budget. Above `most`, nothing is charged.",
        takes={"tile": _whole("The number of the tile."), "most": _number("The ε that it may cost at most.")},
        needs=["tile", "most"],
        gives={"version": _text("The version that the tile shows now.")},
    ),
    Route(
        method="POST",
        path="/v1/dashboards/{number}/rule",
        verb="set_rule",
        about="How the tiles of a dashboard get a new version",
        takes={
            "rule": _text("by hand, or rule.", enum=["by hand", "rule"]),
            "epsilon": _number("What the rule may spend in all."),
        },
        needs=["rule"],
    ),
    Route(
        method="POST",
        path="/v1/dashboards/{number}/publish",
        verb="publish_dashboard",
        about="Publish a dashboard for every account, or ask for it",
        takes={"content": _text("What was looked at, as the dashboard says. Anything else is not published.")},
        gives={"state": _text("published, or waiting for an owner or a steward.")},
    ),
    Route(
        method="POST",
        path="/v1/dashboards/{number}/unpublish",
        verb="unpublish_dashboard",
        about="Show a dashboard to its author only",
    ),
    Route(
        method="GET",
        path="/v1/requests",
        verb="requests",
        about="Questions that wait for an approval",
        gives={"requests": _list("Each with its number, its question and its cost.")},
    ),
    Route(
        method="POST",
        path="/v1/requests/{number}",
        verb="decide",
        about="Approve or refuse a question",
        more="For owners and stewards, never for the account that asks.",
        takes={"decision": _text("The decision.", enum=["approve", "refuse"]), "why": _WHY},
        needs=["decision"],
    ),
    Route(
        method="GET",
        path="/v1/accounts",
        verb="accounts",
        about="All accounts",
        gives={"accounts": _list("Each with its role and its limits.")},
    ),
    Route(
        method="POST",
        path="/v1/accounts",
        verb="open",
        about="Open an account",
        more="The reply has a link with which its holder logs in, once.",
        takes={
            "name": _text("The name."),
            "role": _text("owner, steward, auditor, analyst, viewer or service."),
            "epsilon": _number("The limit ε of the account."),
            "delta": _number("The limit δ of the account."),
        },
        needs=["name"],
    ),
    *(
        Route(method="POST", path=f"/v1/accounts/{{name}}/{verb}", verb=verb, about=about, takes={**takes, "why": _WHY})
        for verb, about, takes in (
            ("suspend", "Suspend an account", {}),
            ("resume", "Resume an account", {}),
            ("raise", "Raise the limit of an account", {"epsilon": _number("The new limit ε.")}),
            ("renew", "Begin a new budget for an account", {"epsilon": _number("The new limit ε.")}),
            ("role", "Change the role of an account", {"role": _text("The new role.")}),
        )
    ),
    Route(
        method="GET",
        path="/v1/tokens",
        verb="tokens",
        about="The tokens of this account; for owners, of all",
        gives={"tokens": _list("Each with its id, scopes and end, never the secret.")},
    ),
    Route(
        method="POST",
        path="/v1/tokens",
        verb="token",
        about="Make a token",
        takes={
            "account": _text("Whose token. By default your own."),
            "scopes": _list("What it may do.", "string"),
            "expires": _text("How long it holds, such as 90d."),
            "epsilon": _number("What it may spend."),
        },
        gives={"token": _TOKEN, "id": _text("Its id, which is no secret.")},
    ),
    Route(method="DELETE", path="/v1/tokens/{id}", verb="revoke", about="Revoke a token, at once"),
    Route(
        method="POST",
        path="/v1/tokens/{id}/rotate",
        verb="rotate",
        about="Replace a token by a new one",
        gives={"token": _TOKEN, "id": _text("Its id.")},
    ),
    Route(
        method="GET",
        path="/v1/policy",
        verb="policy",
        about="The policy, and its earlier versions",
        gives={"text": _text("The policy as the owner wrote it, without secrets."), "versions": _list("The versions.")},
    ),
    Route(
        method="POST",
        path="/v1/policy",
        verb="propose",
        about="Propose another policy",
        takes={"text": _text("The whole policy, in TOML."), "why": _WHY},
        needs=["text"],
    ),
    Route(
        method="POST",
        path="/v1/policy/{number}",
        verb="decide_policy",
        about="Approve or refuse a proposal",
        more="For owners and stewards, never for its author.",
        takes={"decision": _text("The decision.", enum=["approve", "refuse"]), "why": _WHY},
        needs=["decision"],
    ),
    Route(
        method="GET",
        path="/v1/record",
        verb="record",
        about="The entries of the ledger",
        more="For owners and auditors.",
        asks=PAGE,
        gives={"entries": _list("The entries.")},
    ),
    Route(
        method="GET",
        path="/v1/audit",
        verb="audit",
        about="The lines of the audit log",
        more="For owners and auditors. Each line has the hash of the one before it.",
        asks=PAGE,
        gives={"lines": _list("The lines.")},
    ),
    Route(
        method="GET",
        path="/v1/trail",
        verb="trail",
        about="Search the audit log",
        more="For owners and auditors. The newest lines come first, 40 at a time.",
        asks={
            "before": _whole("Only lines with a smaller number."),
            "who": _text("Only lines of this account."),
            "what": _text("Only lines whose event begins with this text."),
        },
        gives={"lines": _list("The lines."), "older": {"description": "Where to go on, or null."}},
    ),
    Route(
        method="POST",
        path="/v1/verify",
        verb="verify",
        about="Verify the records",
        more="For owners and auditors: every entry of the ledger, every line of the audit and every version of the "
        "policy.",
        gives={"whole": {"type": "boolean", "description": "Whether nothing is damaged."}},
    ),
    Route(
        method="GET",
        path="/v1/status",
        verb="status",
        about="The state of the gateway",
        more="For owners, stewards and auditors. Nothing in it depends on rows.",
        gives={"version": _text("The version of the program."), "late": _object("Late answers, and their bits.")},
    ),
    Route(
        method="POST",
        path="/v1/leaked",
        verb="leaked",
        about="Revoke a token that was found in the open",
        more="Whoever holds a token may revoke it. The reply is always the same.",
        token=False,
        takes={"token": _text("The token.")},
        needs=["token"],
    ),
)
METRICS: tuple[Route, ...] = (
    ROUTES[0],
    Route(
        method="GET",
        path="/metrics",
        verb="metrics",
        about="Counts for Prometheus",
        more="For owners, auditors, and service tokens with the scope metrics. No time and no number depends on rows.",
    ),
)
"""What the listener of metrics answers."""

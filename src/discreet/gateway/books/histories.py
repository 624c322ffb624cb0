"""The verb `history`: what an account asked, when, of which version of the data, and what each question cost.

Owners and auditors may look at the history of any account: every question is in the record that they read anyway.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.rational import readable
from discreet.gateway.books import questions
from discreet.gateway.books.accounts import Account, find_account
from discreet.gateway.books.offices import Office, page_of, verb
from discreet.gateway.books.plain import time_text
from discreet.gateway.books.questions import Question
from discreet.gateway.books.tokens import Caller
from discreet.ledger.book import WHOLE
from discreet.ledger.reports.course import charges_in

PAGE, LONGEST_PAGE = 50, 1000
_LONGEST_TEXT = 200
_LOOKING = ("owner", "auditor")


@verb(may=["first", "last", "account", "find", "page", "most"])
def history(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The questions of an account: from one number to another, or those with a text in them, newest first."""
    account, role = whose(office, caller, arguments.get("account"))
    paged = any(arguments.get(name) is not None for name in ("find", "page", "most"))
    if not paged:
        first, last = page_of(arguments, questions.count(office.store, account))
        found = questions.history(office.store, account, first, last)
        return {"account": account, "questions": shown(office, account, role, found)}
    page, most = (_whole(arguments, name, known) for name, known in (("page", 1), ("most", PAGE)))
    last = _whole(arguments, "last", 2**31 - 1)
    most = min(most, LONGEST_PAGE)
    find = arguments.get("find") or ""
    if not isinstance(find, str) or len(find) > _LONGEST_TEXT:
        raise InvalidArgument(f"find is a text of at most {_LONGEST_TEXT} characters.", code="gateway-argument")
    count, found = questions.search(office.store, account, find, last, (page - 1) * most, most)
    pages = max(1, -(-count // most))
    listed = shown(office, account, role, found)
    return {"account": account, "count": count, "page": page, "pages": pages, "questions": listed}


def whose(office: Office, caller: Caller, named: Any) -> tuple[str, str]:
    """The account that is meant, and its role: one's own, or for owners and auditors any."""
    if named is None or (isinstance(named, str) and named.lower() == caller.account.lower()):
        return caller.account, caller.role
    check_looks(caller)
    with office.store.read() as execute:
        found: Account = find_account(execute, named)
    return found.name, found.role


def check_looks(caller: Caller) -> None:
    """Refuse all but owners and auditors, with a token that may manage."""
    if not looks(caller):
        raise NotAllowed(
            "Only owners and auditors see the questions and budgets of other accounts. Leave account out.",
            code="gateway-role",
        )


def looks(caller: Caller) -> bool:
    """Whether a caller may see what other accounts asked and spent."""
    return caller.role in _LOOKING and "manage" in caller.scopes


def shown(office: Office, account: str, role: str, found: Sequence[Question]) -> list[dict[str, Any]]:
    """Questions as plain values. `cost` is the ε that was charged for each: 0 if earlier answers imply it, and null if
    it was bought before.
    """
    costs = costs_of(office, account, role, found)
    return [
        {"number": one.number, "receipt": one.receipt, "sql": one.sql, "options": one.options}
        | {"at": time_text(one.at), "version": one.version, "cost": cost}
        for one, cost in zip(found, costs, strict=True)
    ]


def costs_of(office: Office, account: str, role: str, found: Sequence[Question]) -> list[float | None]:
    """What was charged for each question, and for this account: all of its entries, also of what was found first."""
    own = {account, WHOLE} if role == "owner" else {account}
    wanted = [questions.entries_of(one) for one in found]
    known = charges_in(office.ledger, sorted({number for numbers in wanted for number in numbers}))
    costs: list[float | None] = []
    for one, numbers in zip(found, wanted, strict=True):
        made = [known[number] for number in numbers if number in known]
        paid = [charge.epsilon for charge in made if charge.analyst in own]
        free = 0.0 if one.receipt.startswith(questions.FREE) else None
        cost = readable(float(sum(paid)), up=True) if paid else free
        if len(paid) > 1:  # what several entries amount to, each with a δ of its own, may be a bit more
            cost = min(cost or 0.0, one.options.get("epsilon", math.inf))
        costs.append(cost)
    return costs


def _whole(arguments: Mapping[str, Any], name: str, otherwise: int) -> int:
    given = arguments.get(name)
    if given is None:
        return otherwise
    if type(given) is not int or not 0 < given < 2**31:
        raise InvalidArgument(f"{name} is a whole number from 1.", code="gateway-argument")
    return given

"""The verb `spending`: what is left of a budget over time, how fast it is used, and how long it may last.

Nothing of a slot that runs is seen: everything is as of the last entry before it. The times of an account's points are
those at which its answers left, and not when a lane charged them, which may depend on the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.errors import InvalidArgument
from discreet.gateway.books import questions
from discreet.gateway.books.accounts import CHARGED
from discreet.gateway.books.histories import check_looks, costs_of, looks, whose
from discreet.gateway.books.offices import Office, verb
from discreet.gateway.books.plain import guarantee_numbers, left_numbers, time_text
from discreet.gateway.books.tokens import Caller
from discreet.guarantees.guarantee import NoLoss
from discreet.ledger import Ledger
from discreet.ledger.reports.course import (
    MOST,
    Moment,
    Stage,
    charges_in,
    course_of,
    lifetime_of,
    moments_of,
    sample,
    stage_at,
)
from discreet.ledger.texts.record import to_text

DAY = 86_400.0
PACE_DAYS = 7
_TYPICAL = 20
"""A typical question costs the mean of so many last ones."""
_FEWEST_POINTS = 20
_LONGEST_FORECAST = 36_500
"""Days: nobody plans further."""
MOST_ACCOUNTS = 200


@verb(may=["account", "whole", "points"])
def spending(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What is left of the budget of an account over time. Owners and auditors also see that of the data set, and what
    is left to every account.
    """
    last = office.as_of()
    last = office.ledger.count if last is None else last
    whole, most = arguments.get("whole"), arguments.get("points") or MOST
    if whole not in (None, True, False) or type(most) is not int or not _FEWEST_POINTS <= most <= MOST:
        raise InvalidArgument(
            f"whole is true or false, and points a whole number from {_FEWEST_POINTS} to {MOST}.",
            code="gateway-argument",
        )
    account, role = whose(office, caller, arguments.get("account"))
    if whole or role == "owner":  # the times of all charges are in it, as they are in the record
        check_looks(caller)
        view, stages = office.ledger, course_of(office.ledger, moments_of(office.ledger, last, most), last)
        typical = _typical(office, list(range(max(1, last - _TYPICAL + 1), last + 1)))
        account = ""
    elif role in CHARGED and account in office.ledger.analysts:
        view = office.ledger.for_analyst(account)
        moments = _moments(office, account, last, most)
        stages = course_of(view, moments, last)
        typical = _typical_of(office, account, role, last)
    else:
        return {"account": account, "limit": None, "left": None, "guarantee": None, "points": []} | _everyone(
            office, caller, last
        )
    said = _described(view, stages, last, office.now(), typical)
    return {"account": account or None} | said | _everyone(office, caller, last)


def _moments(office: Office, account: str, last: int, most: int) -> list[Moment]:
    """The last entries of the questions of an account, or of some of them, with the times at which answers left."""
    numbers = sample(1, questions.count(office.store, account), most)
    found = questions.picked(office.store, account, numbers)
    moments = [Moment(max(questions.entries_in(receipt), default=0), at) for receipt, at in found]
    return [one for one in moments if 0 < one.number <= last]


def _typical(office: Office, numbers: Sequence[int]) -> float | None:
    """The mean cost of these charges. None if there are none."""
    costs = [one.epsilon for one in charges_in(office.ledger, numbers).values()]
    return float(sum(costs) / len(costs)) if costs else None


def _typical_of(office: Office, account: str, role: str, last: int) -> float | None:
    """The mean cost of the last questions of an account that cost something, each with all of its charges."""
    count = questions.count(office.store, account)
    recent = questions.history(office.store, account, max(1, count - _TYPICAL + 1), count)
    seen = [one for one in recent if max(questions.entries_in(one.receipt), default=0) <= last]
    costs = [cost for cost in costs_of(office, account, role, seen) if cost]
    return sum(costs) / len(costs) if costs else None


def _described(view: Ledger, stages: Sequence[Stage], last: int, now: float, typical: float | None) -> dict[str, Any]:
    left, limit = view.remaining_at(last), view.limit
    whole, spent = lifetime_of(view, last) if stages else (limit, None)
    pace, lasts = pace_of(stages, now), float(stages[-1].left) if stages else 0.0
    until = now + lasts / pace * DAY if pace and lasts / pace < _LONGEST_FORECAST else None
    return {
        "limit": guarantee_numbers(limit),
        "left": left_numbers(left),
        "guarantee": to_text(whole),
        "spent": None if spent is None or isinstance(spent, NoLoss) else to_text(spent),
        "points": [{"at": time_text(one.at), "left": float(one.left), "limit": float(one.limit)} for one in stages],
        "typical": typical,
        "pace": pace,
        "until": None if until is None else time_text(until)[:10],
    }


def pace_of(stages: Sequence[Stage], now: float) -> float:
    """The ε that were used per day in the last 7 days, or since the limit was last changed if that is less."""
    if not stages:
        return 0.0
    begun = now - PACE_DAYS * DAY
    changed = max((place for place in range(1, len(stages)) if stages[place].left > stages[place - 1].left), default=0)
    before = [place for place, one in enumerate(stages) if one.at <= begun]
    first = max([changed, *before[-1:]])
    days = max(1.0, (now - max(begun, stages[first].at)) / DAY)
    return max(0.0, float(stages[first].left - stages[-1].left) / days)


def _everyone(office: Office, caller: Caller, last: int) -> dict[str, Any]:
    """What is left to every account, for owners and auditors."""
    if not looks(caller):
        return {}
    stages = {name: stage_at(office.ledger.for_analyst(name), last) for name in office.ledger.analysts[:MOST_ACCOUNTS]}
    shown = [
        {"name": name, "limit": float(one.limit), "left": float(one.left)}
        for name, one in stages.items()
        if one is not None
    ]
    return {"accounts": shown}

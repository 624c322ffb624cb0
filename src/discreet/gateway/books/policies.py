"""Versions of the policy's public text, chained by their hashes, and proposals to change it.

A proposal that is accepted changes nothing by itself: the owner edits the policy and starts the gateway again, which
records the new version.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidArgument, LedgerDamaged, NotAllowed
from discreet.gateway.books import audit
from discreet.gateway.books.approvals import DECIDING, LONGEST_REASON, storable
from discreet.gateway.books.audit import microseconds
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tokens import Caller
from discreet.ledger.stores.store import Execute
from discreet.ledger.texts.record import canonical

LONGEST = 200_000
"""The longest proposal, in characters."""
MOST_OPEN, MOST_DECIDED = 10, 200
"""How many proposals of one account may wait, and how many that were decided are listed."""
_COLUMNS = "number, author, content, diff, why, base, at, state, decided_by, decided_at, decided_why"


@dataclass(frozen=True, kw_only=True)
class PolicyVersion:
    """One version of the public text."""

    number: int
    content: str
    at: float
    chain: str


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A change that somebody proposes to version `base`: "open", "accepted" or "refused"."""

    number: int
    author: str
    content: str
    diff: str
    why: str
    base: int
    at: float
    state: str
    decided_by: str | None
    decided_at: float | None
    decided_why: str | None


def record_policy(store: GatewayStore, text: str, now: float) -> PolicyVersion:
    """The version of this text: the newest one, or a new one if the text changed."""
    with store.write() as execute:
        last = _newest(execute)
        if last is not None and last.content == storable(text):
            return last
        number, before = (1, "") if last is None else (last.number + 1, last.chain)
        at, content = microseconds(now), storable(text)
        chain = _chain(before, number, content, at)
        execute("INSERT INTO policies (number, content, at, chain) VALUES (?, ?, ?, ?)", number, content, at, chain)
        audit.append(execute, now, "(gateway)", "policy", {"version": number, "chain": chain})
    return PolicyVersion(number=number, content=content, at=at / 1e6, chain=chain)


def versions(store: GatewayStore) -> list[PolicyVersion]:
    """Every version, oldest first, after checking that they are chained."""
    with store.read() as execute:
        found = execute("SELECT number, content, at, chain FROM policies ORDER BY number")
    before, expected = "", 1
    for number, content, at, chain in found:
        if number != expected or chain != _chain(before, number, content, at):
            raise LedgerDamaged(
                f"Version {expected} of the policy was changed or removed in the gateway's database. Compare it with "
                "the newest backup.",
                code="gateway-policy-changed",
            )
        before, expected = chain, number + 1
    return [PolicyVersion(number=number, content=text, at=at / 1e6, chain=chain) for number, text, at, chain in found]


def _newest(execute: Execute) -> PolicyVersion | None:
    found = execute("SELECT number, content, at, chain FROM policies ORDER BY number DESC LIMIT 1")
    if not found:
        return None
    number, content, at, chain = found[0]
    return PolicyVersion(number=number, content=content, at=at / 1e6, chain=chain)


def _chain(before: str, number: int, content: str, at: int) -> str:
    return hashlib.sha256(f"{before}\n{canonical([number, content, at])}".encode()).hexdigest()


# --- proposals ----------------------------------------------------------------------------------------------


def propose(store: GatewayStore, caller: Caller, text: Any, why: Any, now: float) -> Proposal:
    """Store a proposed text with its difference from the newest version."""
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        raise InvalidArgument(
            f"A proposal is the whole text of the policy as you would have it, of at most {LONGEST:,} characters.",
            code="gateway-proposal",
        )
    content, reason = storable(text), storable(str(why or ""))[:LONGEST_REASON]
    with store.write() as execute:
        last = _newest(execute)
        base, old = (0, "") if last is None else (last.number, last.content)
        diff = difference(old, content)
        if not diff:
            raise InvalidArgument("The proposed text is the newest version already.", code="gateway-proposal")
        open_ones = execute("SELECT COUNT(*) FROM proposals WHERE author = ? AND state = 'open'", caller.account)
        if open_ones[0][0] >= MOST_OPEN:
            raise NotAllowed(
                f"{MOST_OPEN} proposals of this account wait for a decision. Wait for one of them.",
                code="gateway-approval",
            )
        number = int(execute("SELECT COALESCE(MAX(number), 0) + 1 FROM proposals")[0][0])
        execute(
            "INSERT INTO proposals (number, author, content, diff, why, base, at, state) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, 'open')",
            *(number, caller.account, content, diff, reason, base, microseconds(now)),
        )
        details = {"proposal": number, "base": base, "why": reason}
        audit.append(execute, now, caller.account, "policy proposed", details)
        return _find(execute, number)


def decide_policy(store: GatewayStore, number: Any, by: Caller, decision: Any, why: Any, now: float) -> Proposal:
    """Accept or refuse a proposal. Its author cannot decide."""
    if decision not in ("approve", "refuse"):
        raise InvalidArgument('decision must be "approve" or "refuse".', code="not-an-option")
    if by.role not in DECIDING:
        raise NotAllowed("Only an owner or a steward decides proposals.", code="gateway-role")
    reason = storable(str(why or ""))[:LONGEST_REASON]
    with store.write() as execute:
        proposal = _find(execute, number)
        if proposal.author == by.account:
            raise NotAllowed("Somebody else must decide this proposal: it is yours.", code="gateway-approval")
        if proposal.state != "open":
            raise InvalidArgument(f"Proposal {number} is {proposal.state} already.", code="gateway-decided")
        state = "accepted" if decision == "approve" else "refused"
        execute(
            "UPDATE proposals SET state = ?, decided_by = ?, decided_at = ?, decided_why = ? WHERE number = ?",
            *(state, by.account, microseconds(now), reason, number),
        )
        details = {"proposal": number, "author": proposal.author, "why": reason}
        audit.append(execute, now, by.account, f"proposal {state}", details)
        return _find(execute, number)


def proposals(store: GatewayStore, author: str | None = None) -> list[Proposal]:
    """The proposals of an account, or of all, newest first: all that wait, and the last ones that were decided."""
    where, given = ("", []) if author is None else (" AND author = ?", [author])
    known = f"SELECT {_COLUMNS} FROM proposals WHERE state"
    with store.read() as execute:
        waiting = execute(f"{known} = 'open'{where}", *given)
        decided = execute(f"{known} <> 'open'{where} ORDER BY number DESC LIMIT {MOST_DECIDED}", *given)
    return sorted(map(_proposal, (*waiting, *decided)), key=lambda one: -one.number)


def difference(old: str, new: str) -> str:
    """The unified difference of two texts, line by line. JSON is compared with one line for each value."""
    return "\n".join(
        difflib.unified_diff(_lines(old), _lines(new), "policy", "proposal", lineterm="", n=2),
    )


def _lines(text: str) -> list[str]:
    try:
        return json.dumps(json.loads(text), indent=1, sort_keys=True, ensure_ascii=False).splitlines()
    except (ValueError, RecursionError):
        return text.splitlines()


def _find(execute: Execute, number: Any) -> Proposal:
    whole = type(number) is int and 0 < number < 2**62
    found = execute(f"SELECT {_COLUMNS} FROM proposals WHERE number = ?", number) if whole else []
    if not found:
        raise InvalidArgument(f"There is no proposal with the number {number!s:.20}.", code="gateway-not-found")
    return _proposal(found[0])


def _proposal(row: tuple[Any, ...]) -> Proposal:
    number, author, content, diff, why, base, at, state, by, decided_at, decided_why = row
    return Proposal(
        number=number,
        author=author,
        content=content,
        diff=diff,
        why=why,
        base=base,
        at=at / 1e6,
        state=state,
        decided_by=by,
        decided_at=None if decided_at is None else decided_at / 1e6,
        decided_why=decided_why,
    )

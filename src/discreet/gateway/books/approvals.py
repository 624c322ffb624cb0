"""Questions that a second person must approve: filed once, decided by an owner or a steward, used once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.rational import LEDGER_UNIT, round_up
from discreet.gateway.books import audit
from discreet.gateway.books.audit import microseconds
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tokens import Caller
from discreet.ledger.stores.store import Execute

MOST_OPEN = 100
"""How many requests of one account may wait at the same time."""
MOST_DECIDED = 1000
"""How many requests that are no longer open are listed."""
DECIDING = ("owner", "steward")
LONGEST_REASON = 10_000
"""A longer reason of a decision is cut, in characters."""
_COLUMNS = "number, account, digest, sql, units, at, state, decided_by, decided_at, why"


@dataclass(frozen=True, kw_only=True)
class ApprovalRequest:
    """A question that waits for a second person, or was decided: "open", "approved", "refused" or "used"."""

    number: int
    account: str
    digest: str
    sql: str
    epsilon: Fraction
    at: float
    state: str
    decided_by: str | None
    decided_at: float | None
    why: str | None


def ask_approval(
    store: GatewayStore, caller: Caller, request_digest: str, sql: str, epsilon: Fraction, now: float
) -> int:
    """The number of the request for a question. The same question with no more ε files one request."""
    with store.write() as execute:
        return file_request(execute, caller, request_digest, sql, epsilon, now)


def file_request(execute: Execute, caller: Caller, digest: str, sql: str, epsilon: Fraction, now: float) -> int:
    """The same, inside a transaction."""
    waiting = execute(
        "SELECT number, digest, units FROM requests "
        "WHERE account = ? AND state IN ('open', 'approved') ORDER BY number",
        caller.account,
    )
    for number, known, units in waiting:
        if known == digest and round_up(epsilon) <= int(units):
            return int(number)
    if len(waiting) >= MOST_OPEN:
        raise NotAllowed(
            f"{MOST_OPEN} requests of this account wait for a decision. Wait for one of them.", code="gateway-approval"
        )
    number = int(execute("SELECT COALESCE(MAX(number), 0) + 1 FROM requests")[0][0])
    execute(
        "INSERT INTO requests (number, account, digest, sql, units, at, state) VALUES (?, ?, ?, ?, ?, ?, 'open')",
        *(number, caller.account, digest, storable(sql), str(round_up(epsilon)), microseconds(now)),
    )
    details = {"request": number, "sql": sql, "epsilon": f"{float(epsilon):.12g}"}
    audit.append(execute, now, caller.account, "approval requested", details)
    return number


def refusal_of(execute: Execute, caller: Caller, digest: str) -> str:
    """The refusal of a question that is asked again, in words, inside a transaction. Empty if the last request for it
    was not refused.
    """
    found = execute(
        "SELECT number, state, why FROM requests WHERE account = ? AND digest = ? ORDER BY number DESC LIMIT 1",
        *(caller.account, digest),
    )
    if not found or found[0][1] != "refused":
        return ""
    number, _, why = found[0]
    reason = " ".join(str(why or "").split())[:500].rstrip(".")
    return f"Request {number} for this question was refused{reason and f': {reason}'}. "


def decide(store: GatewayStore, number: Any, by: Caller, decision: Any, why: Any, now: float) -> ApprovalRequest:
    """Approve or refuse a request. Whoever asked cannot decide."""
    if decision not in ("approve", "refuse"):
        raise InvalidArgument('decision must be "approve" or "refuse".', code="not-an-option")
    if by.role not in DECIDING:
        raise NotAllowed("Only an owner or a steward decides requests.", code="gateway-role")
    reason = storable(str(why or ""))[:LONGEST_REASON]
    with store.write() as execute:
        request = _find(execute, number)
        if request.account == by.account:
            raise NotAllowed("Somebody else must decide this request: it is yours.", code="gateway-approval")
        if request.state != "open":
            raise InvalidArgument(f"Request {number} is {request.state} already.", code="gateway-decided")
        state = "approved" if decision == "approve" else "refused"
        execute(
            "UPDATE requests SET state = ?, decided_by = ?, decided_at = ?, why = ? WHERE number = ?",
            *(state, by.account, microseconds(now), reason, request.number),
        )
        details = {"request": request.number, "account": request.account, "why": reason}
        audit.append(execute, now, by.account, f"request {state}", details)
        return _find(execute, number)


def use(store: GatewayStore, caller: Caller, request_digest: str, epsilon: Fraction) -> bool:
    """Whether an approval covers this very question with no more ε. If so, it is used up."""
    with store.write() as execute:
        return consume(execute, caller, request_digest, epsilon) is not None


def consume(execute: Execute, caller: Caller, digest: str, epsilon: Fraction) -> int | None:
    """Use an approval, inside a transaction. Returns the number of its request, or None if there is none."""
    found = execute(
        "SELECT number, units FROM requests WHERE account = ? AND digest = ? AND state = 'approved' ORDER BY number",
        *(caller.account, digest),
    )
    for number, units in found:
        if round_up(epsilon) <= int(units):
            execute("UPDATE requests SET state = 'used' WHERE number = ?", number)
            return int(number)
    return None


def give_back(execute: Execute, number: int) -> None:
    """An approval that was used for a question that was never charged is valid again, inside a transaction."""
    execute("UPDATE requests SET state = 'approved' WHERE number = ? AND state = 'used'", number)


def requests_of(store: GatewayStore, account: str | None = None) -> list[ApprovalRequest]:
    """The requests of an account, or of all, newest first: all that wait, and the last ones that were decided."""
    where, given = ("", []) if account is None else (" AND account = ?", [account])
    known = f"SELECT {_COLUMNS} FROM requests WHERE state"
    with store.read() as execute:
        waiting = execute(f"{known} = 'open'{where}", *given)
        decided = execute(f"{known} <> 'open'{where} ORDER BY number DESC LIMIT {MOST_DECIDED}", *given)
    return sorted(map(_request, (*waiting, *decided)), key=lambda one: -one.number)


def _find(execute: Execute, number: Any) -> ApprovalRequest:
    whole = type(number) is int and 0 < number < 2**62
    found = execute(f"SELECT {_COLUMNS} FROM requests WHERE number = ?", number) if whole else []
    if not found:
        raise InvalidArgument(f"There is no request with the number {number!s:.20}.", code="gateway-not-found")
    return _request(found[0])


def _request(row: tuple[Any, ...]) -> ApprovalRequest:
    number, account, digest, sql, units, at, state, decided_by, decided_at, why = row
    return ApprovalRequest(
        number=number,
        account=account,
        digest=digest,
        sql=sql,
        epsilon=Fraction(int(units), LEDGER_UNIT),
        at=at / 1e6,
        state=state,
        decided_by=decided_by,
        decided_at=None if decided_at is None else decided_at / 1e6,
        why=why,
    )


def storable(text: str) -> str:
    """Text that any database can store."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()

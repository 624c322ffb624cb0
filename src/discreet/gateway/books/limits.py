"""Limits below the ledger's: of one question, one token, one session and one day, of programs over MCP, and when a
person must agree.

All are checked and counted in one transaction before an answer is started, so that questions asked at the same time
cannot exceed them together. The ledger's own limits stay the truth: these only make it spend more slowly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from discreet.errors import BudgetExhausted, NotAllowed, ServiceUnavailable
from discreet.exact.rational import LEDGER_UNIT, check_epsilon, exactly, readable, round_down, round_up
from discreet.gateway.books import approvals, audit
from discreet.gateway.books.agents import Agent
from discreet.gateway.books.audit import microseconds
from discreet.gateway.books.store import GatewayStore, numbers_in_meta, set_number
from discreet.gateway.books.tokens import Caller, login_error, suspended_error
from discreet.gateway.settings import Settings
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.ledger import Ledger
from discreet.ledger.accounts import size_of
from discreet.ledger.stores.store import Execute

PAUSE = 30 * 60.0
"""A session ends when its token has asked nothing for this many seconds."""
_DAY = 86_400.0
_ONE = "one question"
_NOTHING = Fraction(1, 10**9)
"""Less than this is what rounding has left."""
NEAR = {"session": "in this session", "day": "today", "token": "with this token", "mcp": "in this session over MCP"}
"""The limits of several questions, as an account is told which of them is nearest."""
WHOLE = ""
"""The alert of the whole data set, next to those of accounts."""


@dataclass(frozen=True)
class Reservation:
    """What was counted for one question, so that it can be undone if the ledger refuses it."""

    number: int
    account: str
    epsilon: Fraction


class NotConfirmed(NotAllowed):
    """A question over MCP that a person must confirm. `more` is what the person is shown."""

    code = "gateway-confirm"

    def __init__(self, epsilon: Fraction, above: Fraction) -> None:
        super().__init__(
            f"Over MCP, a person must confirm a question above ε = {shown(above)}. This one costs "
            f"ε = {shown(epsilon)}. Nothing was charged."
        )
        self.more = {"epsilon": str(epsilon)}


def reserve(
    store: GatewayStore,
    settings: Settings,
    caller: Caller,
    epsilon: Fraction,
    now: float,
    *,
    digest: str = "",
    sql: str = "",
    agent: Agent | None = None,
    why: str = "",
) -> Reservation:
    """Count a question against every limit and write it into the audit, or refuse it and count nothing.

    A question above `approve_above` uses up the approval of the request with this `digest`. If there is none, a request
    is filed, and the error says why the last one was refused. Over MCP, a question above `confirm_above` needs a
    person: one who confirms it, or one who approves it. A caller who was suspended or revoked since they were
    authenticated is refused. What was charged before and never answered costs 0, and is counted as a question.
    """
    epsilon = Fraction(0) if epsilon == 0 else check_epsilon(epsilon)
    made: Reservation | None = None
    with store.write() as execute:
        state = _State(execute, settings, caller, now)
        state.agent = agent
        state.check_running()
        state.check_caller()
        state.check_limits(epsilon)
        above, request = settings.approve_above, None
        needed = above is not None and epsilon > above
        alone = agent is not None and epsilon > max(settings.mcp_confirm_above, agent.confirmed)
        if needed or alone:
            request = approvals.consume(execute, caller, digest, epsilon)
        if alone and not needed and request is None and agent is not None and agent.can_confirm:
            raise NotConfirmed(epsilon, settings.mcp_confirm_above)
        if (needed or alone) and request is None:
            refused = approvals.refusal_of(execute, caller, digest)
            number = approvals.file_request(execute, caller, digest, sql, epsilon, now)
        else:
            made = state.add(epsilon, request)
            details = {"sql": sql, "epsilon": f"{float(epsilon):.12g}"}
            details |= ({} if agent is None else {"via": "mcp"}) | ({"why": approvals.storable(why)} if why else {})
            audit.append(execute, now, caller.account, "asked", details)
    if made is None:  # raised after the request is stored
        least = above if needed and above is not None else settings.mcp_confirm_above
        advice = "" if needed else " Or let a person ask it, without MCP: this client cannot ask one to confirm it."
        raise NotAllowed(
            f"{refused}A question above ε = {shown(least)} needs the approval of a second person. It is request "
            f"{number}: ask the same question again when it is approved.{advice} Nothing was charged.",
            code="gateway-approval",
        )
    return made


def undo(store: GatewayStore, reservation: Reservation) -> None:
    """Uncount a question that the ledger refused without charging. A second call changes nothing.

    It stays among the questions that time may tell something of: more of them promise less, never more.
    """
    with store.write() as execute:
        found = execute(
            "SELECT token, units, day, session_start, request, mcp FROM reservations WHERE number = ?",
            reservation.number,
        )
        if not found:
            return
        token, units, day, start, request, mcp = found[0]
        execute("DELETE FROM reservations WHERE number = ?", reservation.number)
        _set_day(execute, reservation.account, day, _day_spent(execute, reservation.account, day) - int(units))
        counts = execute("SELECT spent, session_start, session_spent, mcp_spent FROM tokens WHERE id = ?", token)
        if counts:
            spent, now_start, session, agents = counts[0]
            back = int(units) if now_start == start else 0
            execute(
                "UPDATE tokens SET spent = ?, session_spent = ?, mcp_spent = ? WHERE id = ?",
                *(str(int(spent) - int(units)), str(int(session) - back), str(int(agents) - (back if mcp else 0))),
                token,
            )
        if request is not None:
            approvals.give_back(execute, request)


class _Window(NamedTuple):
    """One limit: its ε, the units that were spent of it, what it is for, and what to do when it is used up."""

    limit: Fraction | None
    spent: int
    what: str
    remedy: str
    code: str

    @property
    def left(self) -> int:
        """The units that are left."""
        return max(0, round_down(self.limit or Fraction(0)) - self.spent)

    def exceeded_by(self, epsilon: Fraction, after: str = " ") -> str:
        """What is said of an ε that is more than is left. What happened to the budget is said `after` it."""
        rest, limit = Fraction(self.left, LEDGER_UNIT), self.limit or Fraction(0)
        said = (
            f"ε = {shown(epsilon)} exceeds what is left for {self.what}: ε = {shown_left(rest)} of {shown_left(limit)}."
        )
        if self.what == _ONE:
            said = f"ε = {shown(epsilon)} is too much: one question may cost at most ε = {shown_left(limit)}."
        return f"{said}{after}{self.remedy}"

    def refusal(self, epsilon: Fraction) -> BudgetExhausted:
        """The refusal of an ε that is more than is left."""
        rest = Pure(epsilon=Fraction(self.left, LEDGER_UNIT)) if self.left else None
        return BudgetExhausted(self.exceeded_by(epsilon, " Nothing was charged. "), remaining=rest, code=self.code)


class _State:
    """What counts for one caller at one time, read inside a transaction."""

    def __init__(self, execute: Execute, settings: Settings, caller: Caller, now: float) -> None:
        self.execute, self.settings, self.caller = execute, settings, caller
        self.agent: Agent | None = None
        self.at, self.day = microseconds(now), int(now // _DAY)
        self.numbers = numbers_in_meta(execute)
        self.day_spent = _day_spent(execute, caller.account, self.day)
        self.row: tuple[Any, ...] | None = None
        self.token_spent, self.session_start, self.session_spent, self.mcp_spent = 0, 0, 0, 0
        if caller.token is not None:
            self._read_token(caller.token)

    def _read_token(self, token: str) -> None:
        found = self.execute(
            "SELECT tokens.revoked, tokens.expires, accounts.suspended, tokens.spent, tokens.session_start, "
            "tokens.session_last, tokens.session_spent, tokens.mcp_spent "
            "FROM tokens JOIN accounts ON accounts.name = tokens.account WHERE tokens.id = ? AND accounts.name = ?",
            *(token, self.caller.account),
        )
        if not found:
            return
        self.row = found[0]
        *_, spent, start, last, session, agents = self.row
        self.token_spent, self.session_start, self.session_spent = int(spent), start, int(session)
        self.mcp_spent = int(agents)
        if not start or self.at - last > microseconds(PAUSE):
            self.session_start, self.session_spent, self.mcp_spent = self.at, 0, 0

    def check_running(self) -> None:
        """Refuse all while the owner must look."""
        if self.numbers["stopped"] or self.numbers["late"] > self.settings.late_allowed:
            raise ServiceUnavailable(
                "The gateway charges nothing until the owner of the data has looked. Stored answers and plans are "
                "there. The owner starts it again: discreet account … resume.",
                code="gateway-stopped",
            )

    def check_caller(self) -> None:
        """Refuse a caller who was suspended or revoked meanwhile. The command line and rules have no token."""
        if self.caller.token is None:
            if self.execute("SELECT 1 FROM accounts WHERE name = ? AND suspended = 1", self.caller.account):
                raise suspended_error()
            return
        if self.row is None or self.row[0] or self.at >= self.row[1]:
            raise login_error()
        if self.row[2]:
            raise suspended_error()

    def windows(self) -> list[_Window]:
        """Every limit that is set."""
        said, token = self.settings, self.caller.epsilon
        pause = f"A new session begins after {PAUSE / 60:.0f} minutes without a question."
        found = [
            _Window(said.question_most, 0, _ONE, "Ask with a smaller ε.", code="gateway-question-limit"),
            _Window(said.day, self.day_spent, "this day", "A new day begins at 0:00 UTC.", code="gateway-day-limit"),
        ]
        if self.caller.token is not None:
            other = "Ask the owner for another token."
            found += [
                _Window(token, self.token_spent, "this token", other, code="gateway-token-limit"),
                _Window(said.session, self.session_spent, "this session", pause, code="gateway-session-limit"),
            ]
        if self.agent is not None:
            person = f"{pause} Or let a person ask, without MCP."
            spent = self.mcp_spent
            found.append(_Window(said.mcp_session, spent, "this session over MCP", person, code="gateway-mcp-limit"))
        return [one for one in found if one.limit is not None]

    def exceeded(self, epsilon: Fraction) -> _Window | None:
        """The first limit that an ε exceeds."""
        return next((window for window in self.windows() if round_up(epsilon) > window.left), None)

    def check_limits(self, epsilon: Fraction) -> None:
        """Refuse an ε that exceeds one of the limits."""
        window = self.exceeded(epsilon)
        if window is not None:
            raise window.refusal(epsilon)

    def add(self, epsilon: Fraction, request: int | None) -> Reservation:
        """Count it everywhere."""
        units, execute, caller = round_up(epsilon), self.execute, self.caller
        mcp = int(self.agent is not None)
        number = self.numbers["reservations"] + 1
        set_number(execute, "reservations", number)
        set_number(execute, "asked", self.numbers["asked"] + 1)
        execute(
            "INSERT INTO reservations (number, account, token, units, day, session_start, request, mcp) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *(number, caller.account, caller.token, str(units), self.day, self.session_start, request, mcp),
        )
        _set_day(execute, caller.account, self.day, self.day_spent + units)
        if caller.token is not None:
            execute(
                "UPDATE tokens SET spent = ?, session_start = ?, session_last = ?, session_spent = ?, mcp_spent = ? "
                "WHERE id = ?",
                *(str(self.token_spent + units), self.session_start, self.at, str(self.session_spent + units)),
                *(str(self.mcp_spent + units * mcp), caller.token),
            )
        return Reservation(number, caller.account, epsilon)


def standing(
    store: GatewayStore, settings: Settings, caller: Caller, now: float, agent: Agent | None = None
) -> dict[str, dict[str, Fraction]]:
    """The limits of a caller that are set, each with its ε and what is left of it: question, token, session, day, and
    mcp for an agent.
    """
    with store.read() as execute:
        state = _State(execute, settings, caller, now)
        state.agent = agent
        found = state.windows()
    return {
        one.code.split("-")[1]: {"limit": one.limit, "left": Fraction(one.left, LEDGER_UNIT)}
        for one in found
        if one.limit is not None
    }


def remains(left: Guarantee | None, standing: Mapping[str, Mapping[str, Fraction]]) -> str:
    """What remains of an account, and of it what a nearer limit leaves, with the name of that limit: ε = 2.05 remains,
    0.05 of it today.
    """
    return f"{left_text(left)} remains{near_text(left, standing)}"


def left_text(left: Guarantee | None) -> str:
    """What remains of an account, alone."""
    size = getattr(left, "epsilon", None)
    if size is None:
        return str(left or "nothing")
    return f"ε = {shown_left(exactly(size))}" if exactly(size) >= _NOTHING else "nothing"


def near_text(left: Guarantee | None, standing: Mapping[str, Mapping[str, Fraction]]) -> str:
    """What is said after what remains of an account if another limit leaves less of it now: ", 0.05 of it today"."""
    size, near = getattr(left, "epsilon", None), nearest(standing)
    if left_text(left) == "nothing" or near is None or (size is not None and near[0] >= exactly(size)):
        return ""
    amount = f"{'ε = ' if size is None else ''}{shown_left(near[0])}" if near[0] >= _NOTHING else "nothing"
    return f", {amount} of it {near[1]}"


def nearest(standing: Mapping[str, Mapping[str, Fraction]]) -> tuple[Fraction, str] | None:
    """What the limit of several questions leaves that leaves least, and its name."""
    return min(((standing[name]["left"], said) for name, said in NEAR.items() if name in standing), default=None)


def about(each: Fraction, left: Guarantee | None, standing: Mapping[str, Mapping[str, Fraction]]) -> str:
    """How many questions with this ε a budget is, and how many of them the nearest limit allows now."""
    whole = exactly(getattr(left, "epsilon", 0)) // each
    said = f"about {whole:,} question{'' if whole == 1 else 's'} with ε = {shown(each)}"
    near = nearest(standing)
    return said if near is None or near[0] // each >= whole else f"{said}, {near[0] // each:,} of them {near[1]}"


def hindrance(store: GatewayStore, settings: Settings, caller: Caller, epsilon: Fraction, now: float) -> str | None:
    """What would stop a question of this ε if it were asked now: a limit, or that a second person must approve it."""
    with store.read() as execute:
        window = _State(execute, settings, caller, now).exceeded(epsilon)
    above = settings.approve_above
    if window is not None:
        return refused_now(window.exceeded_by(epsilon))
    if above is not None and epsilon > above:
        return f"Above ε = {shown(above)}, a second person must approve. Asking files a request."
    return None


def refused_now(why: str) -> str:
    """What a plan says of a question that would be refused, in the words of the refusal."""
    return f"Asked now, it would be refused: {why}"


def standing_after(standing: Mapping[str, Mapping[str, Fraction]], epsilon: Fraction) -> dict[str, dict[str, Fraction]]:
    """What limits would leave after a question of this ε."""
    return {name: {**one, "left": max(Fraction(0), one["left"] - epsilon)} for name, one in standing.items()}


def _day_spent(execute: Execute, account: str, day: int) -> int:
    found = execute("SELECT spent FROM days WHERE account = ? AND day = ?", account, day)
    return int(found[0][0]) if found else 0


def _set_day(execute: Execute, account: str, day: int, units: int) -> None:
    execute(
        "INSERT INTO days (account, day, spent) VALUES (?, ?, ?) "
        "ON CONFLICT (account, day) DO UPDATE SET spent = excluded.spent",
        *(account, day, str(units)),
    )


def shown(amount: Fraction) -> str:
    """An ε that is asked for or set, for people: with six digits, rounded up."""
    return f"{readable(amount, up=True):.7g}"


def shown_left(amount: Fraction) -> str:
    """An ε that is left, rounded down: who asks for as much as this is not refused."""
    return f"{readable(amount, up=False):.7g}"


# --- alerts -------------------------------------------------------------------------------------------------


def check_alerts(store: GatewayStore, settings: Settings, ledger: Ledger, account: str | None, now: float) -> list[str]:
    """What is new: that the data set, or this account, has used `alert_at` of its limit or more. Said once for each."""
    views = {WHOLE: ledger}
    if account is not None and account in ledger.analysts:
        views[account] = ledger.for_analyst(account)
    new = []
    for name, view in views.items():
        said = alert_of(settings, name, view.remaining, view.limit)
        if said is None:
            _drop_alert(store, name)
        elif _add_alert(store, name, said, now):
            new.append(said)
    return new


def alert_of(settings: Settings, name: str, left: Guarantee | None, limit: Guarantee) -> str | None:
    """What the owner should know of a limit of which this is left. None if less than `alert_at` of it is used."""
    share = Fraction(0) if left is None else min(Fraction(1), size_of(left) / size_of(limit))
    return (
        None if 1 - share < settings.alert_at else f"{name or 'The data set'} has {left or 'nothing'} left of {limit}."
    )


def alerts(store: GatewayStore) -> dict[str, str]:
    """What was said to the owner, by account, as it was then. The data set has the name ""."""
    with store.read() as execute:
        return dict(execute("SELECT account, said FROM alerts ORDER BY account"))


def _has_alert(execute: Execute, name: str) -> bool:
    return bool(execute("SELECT 1 FROM alerts WHERE account = ?", name))


def _drop_alert(store: GatewayStore, name: str) -> None:
    with store.read() as execute:
        present = _has_alert(execute, name)
    if present:
        with store.write() as execute:
            execute("DELETE FROM alerts WHERE account = ?", name)


def _add_alert(store: GatewayStore, name: str, said: str, now: float) -> bool:
    """Whether the alert is new."""
    with store.read() as execute:
        if _has_alert(execute, name):
            return False
    with store.write() as execute:
        if _has_alert(execute, name):
            return False
        execute("INSERT INTO alerts (account, at, said) VALUES (?, ?, ?)", name, microseconds(now), said)
        audit.append(execute, now, name, "alert", {"said": said})
    return True

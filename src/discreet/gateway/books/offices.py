"""The verbs about accounts, tokens, requests, the policy and the records: what each caller may do, and what they get.

A verb is a function of the office, the caller and the arguments. It checks the role, the scope of the token and the
names of the arguments, and returns plain values. The vault and the command line call the same verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, wraps
from typing import Any, cast

from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.rational import check_epsilon, readable
from discreet.gateway.books import accounts, approvals, audit, late, limits, policies, tokens
from discreet.gateway.books.accounts import find_account
from discreet.gateway.books.agents import SAID, read_agent
from discreet.gateway.books.approvals import ApprovalRequest
from discreet.gateway.books.plain import guarantee_numbers, left_numbers, time_text
from discreet.gateway.books.policies import Proposal
from discreet.gateway.books.store import GatewayStore, numbers_in_meta
from discreet.gateway.books.tokens import ROLES, Caller, TokenRow, login_error
from discreet.gateway.settings import Settings, seconds_in
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger import Ledger
from discreet.ledger.accounts import size_of
from discreet.ledger.reports.course import stage_at

LONGEST_PAGE = 1000
"""The most lines of a record in one reply."""
_PAGE = 100


@dataclass(frozen=True, kw_only=True)
class Office:
    """Everything that the verbs need: the gateway's database, the owner's view of the ledger, the settings and time."""

    store: GatewayStore
    open_ledger: Callable[[], Ledger]
    settings: Settings
    now: Callable[[], float]
    as_of: Callable[[], int | None] = lambda: None
    """The entry as of which an account sees what remains. None for the last one."""

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger, opened when a verb needs it: who is suspended or loses a token does not depend on it."""
        return self.open_ledger()


Verb = Callable[[Office, Caller | None, Mapping[str, Any]], dict[str, Any]]
_Body = Callable[[Office, Caller, Mapping[str, Any]], dict[str, Any]]
VERBS: dict[str, Verb] = {}
"""Every verb of this file by its name."""


def verb(
    needs: Collection[str] = (),
    may: Collection[str] = (),
    *,
    roles: Collection[str] = tuple(ROLES),
    scope: str | None = None,
    anybody: bool = False,
    name: str | None = None,
) -> Callable[[_Body], Verb]:
    """Register a verb that needs some arguments and may have others, for these roles or for anybody."""

    def register(body: _Body) -> Verb:
        called = name or body.__name__

        @wraps(body)
        def run(office: Office, caller: Caller | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
            if not anybody:
                check_caller(caller, called, roles, scope)
            check_arguments(called, arguments, needs, may)
            return body(office, cast(Caller, caller), arguments)

        VERBS[called] = run
        return run

    return register


def check_caller(caller: Caller | None, verb: str, roles: Collection[str], scope: str | None) -> None:
    """Refuse a caller whose role or token does not allow a verb."""
    if caller is None:
        raise login_error()
    allowed = [role for role in roles if scope is None or scope in ROLES[role]]  # no token of others can have it
    if caller.role not in allowed:
        raise NotAllowed(f"{verb} is for the roles {', '.join(allowed)}. Yours is {caller.role}.", code="gateway-role")
    if scope is not None and scope not in caller.scopes:
        raise NotAllowed(
            f"{verb} needs a token with the scope {scope}. Log in with a link, or ask for such a token.",
            code="gateway-role",
        )


def check_arguments(verb: str, arguments: Mapping[str, Any], needs: Collection[str], may: Collection[str]) -> None:
    """Refuse arguments that are missing or unknown. What only the desk says is not named."""
    for name in arguments:
        if name not in needs and name not in may:
            known = ", ".join(one for one in (*needs, *may) if one not in SAID) or "nothing"
            raise InvalidArgument(f"{verb} has no argument {name!r:.80}. It takes {known}.", code="gateway-argument")
    for name in needs:
        if arguments.get(name) is None:
            raise InvalidArgument(f"{verb} needs {name}.", code="gateway-argument")


# --- logging in, and oneself --------------------------------------------------------------------------------


@verb(["link"], anybody=True)
def login(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Use a login link: a token for some hours."""
    found = accounts.login(office.store, arguments["link"], office.now())
    return {"token": found.text, "account": found.account, "expires": time_text(found.expires)}


@verb()
def end_session(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Revoke the token that calls."""
    with office.store.write() as execute:
        gone = tokens.revoke(execute, identity=caller.token)
        audit.append(execute, office.now(), caller.account, "logout", {"token": caller.token})
    return {"revoked": gone}


@verb()
def me(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Who the caller is, and what they may do."""
    with office.store.read() as execute:
        stopped = _is_stopped(office, execute)
    view, own = ledger_view(office, caller), dict[str, Any]()
    if view is not None:
        left = left_numbers(account_left(office, view))
        own["account"] = {"limit": guarantee_numbers(view.limit), "left": left}
    return {
        "account": caller.account,
        "role": caller.role,
        "database": office.settings.name,
        "scopes": [scope for scope in tokens.SCOPES if scope in caller.scopes],
        "expires": None if caller.expires is None else time_text(caller.expires),
        "limits": own | _as_numbers(limits.standing(office.store, office.settings, caller, office.now())),
        "suspended": stopped,
    }


@verb(may=["via"])
def budget(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the caller may still spend, and about how many questions that is."""
    view = ledger_view(office, caller)
    standing = limits.standing(office.store, office.settings, caller, office.now(), read_agent(arguments))
    found: dict[str, Any] = {"limit": None, "remaining": None, **_as_numbers(standing)}
    if view is None:
        return found | {"about": "this account asks nothing new"}
    left = account_left(office, view)
    found |= {"limit": guarantee_numbers(view.limit), "remaining": left_numbers(left)}
    found["remains"] = limits.remains(left, standing)
    found["about"] = limits.about(office.settings.question_default or check_epsilon(0.1), left, standing)
    bits = late.promised_bits(office.store, office.settings.late_at_most)
    return found | {"promise": f"{view.limit} plus {bits:g} bits that times may have told"}


def account_left(office: Office, view: Ledger) -> Guarantee | None:
    """What remains of a limit, as an account sees it now."""
    return _left(view, office.as_of())


def _left(view: Ledger, as_of: int | None) -> Guarantee | None:
    """What remains of a limit: nothing of a slot that runs is seen."""
    return view.remaining if as_of is None else view.remaining_at(as_of)


def _spent(view: Ledger, last: int) -> float:
    """What an account has used of its own limit, in the unit of that limit."""
    stage = stage_at(view, last)
    return 0.0 if stage is None else float(stage.limit - stage.left)


def _warning(office: Office, name: str, *, fresh: bool = True) -> dict[str, str]:
    """That an account may spend more than the data set has left. If its limit is not `fresh`, some of it may be spent:
    then only that its limit is above that of the data set.
    """
    if name not in office.ledger.analysts:
        return {}
    own, limit, left = office.ledger.for_analyst(name).limit, office.ledger.limit, _left(office.ledger, office.as_of())
    most = left if fresh else limit
    if most is not None and size_of(own) <= size_of(most):
        return {}
    said = (
        f"{name} may spend {own}, but the data set has {left or 'nothing'} left of {limit}, for all accounts together"
    )
    return {"warning": f"{said}. When that is spent, nobody can ask more."}


def ledger_view(office: Office, caller: Caller) -> Ledger | None:
    """The ledger as this caller is charged: their own account, the owner's whole view, or None."""
    if caller.role == "owner":
        return office.ledger
    return office.ledger.for_analyst(caller.account) if caller.role in accounts.CHARGED else None


def _as_numbers(standing: Mapping[str, Mapping[str, Fraction]]) -> dict[str, Any]:
    return {
        name: {"limit": float(one["limit"]), "left": readable(one["left"], up=False)} for name, one in standing.items()
    }


# --- accounts -----------------------------------------------------------------------------------------------


@verb(roles=("owner", "steward", "auditor"), scope="manage", name="accounts")
def list_accounts(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """All accounts with their limits, and what the owner should know."""
    alerted, now = limits.alerts(office.store), office.now()
    with office.store.read() as execute:
        known, stopped = accounts.all_accounts(execute), _is_stopped(office, execute)
        valid = [one.account for one in tokens.tokens_of(execute) if not one.revoked and one.expires > now]
    charged, as_of = set(office.ledger.analysts), office.as_of()
    last = office.ledger.count if as_of is None else as_of

    def alert(name: str, view: Ledger) -> str | None:
        return limits.alert_of(office.settings, name, _left(view, as_of), view.limit) if name in alerted else None

    shown = []
    for account in known:
        view = office.ledger.for_analyst(account.name) if account.name in charged else None
        shown.append(
            {
                "name": account.name,
                "role": account.role,
                "suspended": account.suspended,
                "limit": None if view is None else guarantee_numbers(view.limit),
                "remaining": None if view is None else left_numbers(_left(view, as_of)),
                "spent": None if view is None else _spent(view, last),
                "tokens": valid.count(account.name),
                "alert": None if view is None else alert(account.name, view),
            }
        )
    return {
        "accounts": shown,
        "stopped": stopped,
        "alert": alert(limits.WHOLE, office.ledger),
        "late": {
            "count": late.late_count(office.store),
            "allowed": office.settings.late_allowed,
            "bits": late.promised_bits(office.store, office.settings.late_at_most),
        },
    }


@verb(["name"], ["role", "epsilon", "delta"], roles=("owner",), scope="manage", name="open")
def open_account(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Open an account. Returns a login link for its holder."""
    role = arguments.get("role") or "analyst"
    terms = {key: arguments.get(key) for key in ("epsilon", "delta")}
    name = arguments["name"]
    secret = accounts.open_account(office.store, office.ledger, name, role, **terms, by=caller, now=office.now())
    return {"account": name, "role": role, **_link(office, secret), **_warning(office, name)}


@verb(["name"], roles=("owner",), scope="manage")
def link(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A new login link for an account. Earlier links are no longer valid."""
    secret = accounts.new_link(office.store, arguments["name"], by=caller, now=office.now())
    return {"account": arguments["name"], **_link(office, secret)}


def _link(office: Office, secret: str) -> dict[str, str]:
    return {"link": f"{office.settings.url}/login#{secret}", "expires": time_text(office.now() + accounts.LINK)}


@verb([], ["name"], roles=("owner", "steward"), scope="manage")
def suspend(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Suspend an account at once, or stop all charged questions."""
    return _set_suspended(office, caller, arguments, suspended=True)


@verb([], ["name"], roles=("owner",), scope="manage")
def resume(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Resume an account, or all charged questions, which clears the count of late answers."""
    return _set_suspended(office, caller, arguments, suspended=False)


def _set_suspended(office: Office, caller: Caller, arguments: Mapping[str, Any], *, suspended: bool) -> dict[str, Any]:
    name, most = arguments.get("name"), office.settings.late_at_most
    accounts.set_suspended(office.store, name, suspended=suspended, by=caller, now=office.now(), late_at_most=most)
    return {"account": name, "suspended": suspended}


@verb(["name", "epsilon", "why"], ["delta"], roles=("owner",), scope="manage", name="raise")
def raise_limit(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Raise the limit of an account."""
    name, epsilon, delta, why = (arguments.get(key) for key in ("name", "epsilon", "delta", "why"))
    found = accounts.raise_limit(
        office.store, office.ledger, str(name), epsilon, delta, why=why, by=caller, now=office.now()
    )
    return {"account": name, "limit": guarantee_numbers(found), **_warning(office, str(name), fresh=False)}


@verb(["name", "why"], ["epsilon", "delta"], roles=("owner",), scope="manage")
def renew(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Begin a new period of an account."""
    name, epsilon, delta, why = (arguments.get(key) for key in ("name", "epsilon", "delta", "why"))
    found = accounts.renew(office.store, office.ledger, str(name), epsilon, delta, why=why, by=caller, now=office.now())
    return {"account": name, "limit": guarantee_numbers(found), **_warning(office, str(name))}


@verb(["name", "role"], ["epsilon", "delta"], roles=("owner",), scope="manage")
def role(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Change the role of an account."""
    terms = {key: arguments.get(key) for key in ("epsilon", "delta")}
    name, wanted = arguments["name"], arguments["role"]
    accounts.set_role(office.store, office.ledger, name, wanted, **terms, by=caller, now=office.now())
    return {"account": name, "role": wanted}


# --- tokens -------------------------------------------------------------------------------------------------


@verb(may=["account"], scope="manage", name="tokens")
def list_tokens(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The tokens of the caller. The owner sees those of an account, or all."""
    named = arguments.get("account")
    with office.store.read() as execute:
        everyone = caller.role == "owner" and named is None
        found = tokens.tokens_of(execute, None if everyone else _account(execute, caller, named))
    return {"tokens": [_token(one) for one in found]}


@verb(may=["account", "name", "scopes", "expires", "epsilon"], scope="manage")
def token(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Make a token, whose text is in this reply only."""
    given = {key: value for key, value in arguments.items() if value is not None}
    epsilon = check_epsilon(given["epsilon"]) if "epsilon" in given else None
    lifetime = tokens.LIFETIME
    if "expires" in given:
        lifetime = seconds_in(given["expires"], "expires", tokens.LONGEST_LIFETIME)
    name = given.get("name", "token")
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 64 or not lifetime:
        raise InvalidArgument(
            'A token has a name of at most 64 characters, and a time until it expires, such as "30d".',
            code="gateway-argument",
        )
    if caller.role != "owner" and caller.epsilon is not None:
        raise NotAllowed("A token with its own limit cannot make others. Log in with a link.", code="gateway-role")
    made, now = tokens.new_token(), office.now()
    with office.store.write() as execute:
        account = find_account(execute, _account(execute, caller, given.get("account")))
        scopes = tokens.scopes_for(account.role, _scopes(given.get("scopes")))
        if caller.role != "owner" and not caller.scopes >= set(scopes):
            raise NotAllowed("A token can have only the scopes of the token that makes it.", code="gateway-role")
        if caller.role != "owner" and tokens.made_since(execute, account.name, now - 86_400) >= tokens.MOST_A_DAY:
            raise NotAllowed(
                f"An account makes at most {tokens.MOST_A_DAY} tokens in a day. Use one of them, or wait.",
                code="gateway-role",
            )
        terms: dict[str, Any] = {"name": name, "scopes": scopes, "now": now, "lifetime": lifetime, "epsilon": epsilon}
        tokens.add_token(execute, made, account.name, **terms)
        details = {
            "account": account.name,
            "token": made.id,
            "scopes": list(scopes),
            "expires": time_text(now + lifetime),
        }
        details |= {} if epsilon is None else {"epsilon": limits.shown(epsilon)}
        audit.append(execute, now, caller.account, "token made", details)
        shown = tokens.token_row(execute, made.id)
    assert shown is not None
    return {"token": made.text, **_token(shown)}


def _scopes(given: Any) -> Collection[str] | None:
    if given is None:
        return None
    if not isinstance(given, list | tuple) or not given or not all(isinstance(one, str) for one in given):
        raise InvalidArgument(f"scopes is a list of {', '.join(tokens.SCOPES)}.", code="gateway-scope")
    return given


@verb(may=["id", "account"], scope="manage")
def revoke(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Revoke a token at once, or all tokens and login links of an account."""
    identity, account = arguments.get("id"), arguments.get("account")
    if (identity is None) == (account is None):
        raise InvalidArgument("revoke needs the id of a token, or an account.", code="gateway-argument")
    now = office.now()
    if account is not None:
        with office.store.read() as execute:
            name = _account(execute, caller, account)
        return {"revoked": accounts.revoke_all(office.store, name, by=caller, now=now)}
    with office.store.write() as execute:
        found = _own_token(execute, caller, identity)
        gone = tokens.revoke(execute, identity=found.id)
        audit.append(execute, now, caller.account, "token revoked", {"account": found.account, "token": found.id})
    return {"revoked": gone}


@verb(["id"], scope="manage")
def rotate(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Give a token a new secret. The old one is no longer valid. Its scopes, end and limit stay."""
    now = office.now()
    with office.store.write() as execute:
        found = _own_token(execute, caller, arguments["id"])
        if found.revoked or found.expires <= now:
            raise InvalidArgument("This token is expired or revoked. Make a new one.", code="gateway-token-ended")
        if caller.role != "owner" and not caller.scopes >= set(found.scopes):
            raise NotAllowed("This token has scopes that yours has not. Log in with a link.", code="gateway-role")
        made = tokens.new_token(found.id)
        tokens.change_secret(execute, made)
        audit.append(execute, now, caller.account, "token rotated", {"account": found.account, "token": found.id})
    return {"token": made.text, **_token(found)}


@verb(["token"], anybody=True)
def leaked(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Revoke a token that was found somewhere. The reply is always the same."""
    with office.store.write() as execute:
        identity = tokens.is_right(execute, str(arguments["token"]))
        if identity is not None and tokens.revoke(execute, identity=identity):
            audit.append(execute, office.now(), "(anybody)", "token reported as leaked", {"token": identity})
    return {"received": True}


def _account(execute: Any, caller: Caller, named: Any) -> str:
    """The account that is meant: one's own, or for the owner any."""
    if named is None:
        return caller.account
    if caller.role == "owner":
        return find_account(execute, named).name
    if not isinstance(named, str) or named.lower() != caller.account.lower():
        raise NotAllowed("Only the owner acts for other accounts.", code="gateway-role")
    return caller.account


def _own_token(execute: Any, caller: Caller, identity: Any) -> TokenRow:
    """A token of the caller, or for the owner any. One of another account looks like none."""
    found = tokens.token_row(execute, str(identity))
    if found is None or (caller.role != "owner" and found.account != caller.account):
        raise InvalidArgument("There is no token with this id.", code="gateway-not-found")
    return found


def _token(row: TokenRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "account": row.account,
        "name": row.name,
        "scopes": list(row.scopes),
        "made": time_text(row.at),
        "expires": time_text(row.expires),
        "revoked": row.revoked,
        "epsilon": None if row.epsilon is None else float(row.epsilon),
        "spent": float(row.spent),
    }


# --- requests and the policy --------------------------------------------------------------------------------


@verb()
def requests(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Questions that wait for a second person: one's own, or for who decides all."""
    everyone = caller.role in approvals.DECIDING and "manage" in caller.scopes
    found = approvals.requests_of(office.store, None if everyone else caller.account)
    return {"requests": [_request(one) for one in found]}


@verb(["number", "decision"], ["why"], roles=approvals.DECIDING, scope="manage")
def decide(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Approve or refuse a question."""
    number, decision, why = (arguments.get(key) for key in ("number", "decision", "why"))
    return _request(approvals.decide(office.store, number, caller, decision, why, office.now()))


def _request(one: ApprovalRequest) -> dict[str, Any]:
    return {
        "number": one.number,
        "account": one.account,
        "sql": one.sql,
        "epsilon": float(one.epsilon),
        "at": time_text(one.at),
        "state": one.state,
        "decided_by": one.decided_by,
        "why": one.why,
    }


@verb()
def policy(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The public text of the policy, its versions, and proposals: one's own, or all for who decides or audits."""
    found = policies.versions(office.store)
    everyone = caller.role in (*approvals.DECIDING, "auditor")
    shown = policies.proposals(office.store, None if everyone else caller.account)
    return {
        "version": found[-1].number if found else 0,
        "text": found[-1].content if found else "",
        "versions": [{"number": one.number, "at": time_text(one.at), "chain": one.chain} for one in found],
        "proposals": [_proposal(one) for one in shown],
    }


@verb(["text"], ["why"], roles=("owner", "steward", "analyst", "service"), scope="explain")
def propose(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Propose another text of the policy."""
    found = policies.propose(office.store, caller, arguments["text"], arguments.get("why"), office.now())
    return _proposal(found)


@verb(["number", "decision"], ["why"], roles=approvals.DECIDING, scope="manage")
def decide_policy(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Accept or refuse a proposal."""
    number, decision, why = (arguments.get(key) for key in ("number", "decision", "why"))
    return _proposal(policies.decide_policy(office.store, number, caller, decision, why, office.now()))


def _proposal(one: Proposal) -> dict[str, Any]:
    return {
        "number": one.number,
        "author": one.author,
        "why": one.why,
        "base": one.base,
        "diff": one.diff,
        "at": time_text(one.at),
        "state": one.state,
        "decided_by": one.decided_by,
        "decided_why": one.decided_why,
    }


# --- the records --------------------------------------------------------------------------------------------


@verb(may=["first", "last"], roles=("owner", "auditor"), scope="manage")
def record(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of the ledger, by number. Without numbers, the last ones."""
    as_of = office.as_of()  # when a slot that runs charges may depend on the data
    count = office.ledger.count if as_of is None else as_of
    first, last = page_of(arguments, count)
    return {"count": count, "entries": [entry.exported() for entry in office.ledger.entries(first, last)]}


@verb(may=["first", "last"], roles=("owner", "auditor"), scope="manage", name="audit")
def read_audit(office: Office, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The lines of the audit, by number. Without numbers, the last ones."""
    count = audit.count(office.store)
    first, last = page_of(arguments, count)
    shown = [
        {"number": one.number, "at": time_text(one.at / 1e6), "who": one.who, "what": one.what, "details": one.content}
        | {"chain": one.chain}
        for one in audit.lines(office.store, first, last)
    ]
    return {"count": count, "lines": shown}


def page_of(arguments: Mapping[str, Any], count: int) -> tuple[int, int]:
    """The first and the last number that are wanted: at most a page."""
    given = [arguments.get(key) for key in ("first", "last")]
    if any(one is not None and (type(one) is not int or not 0 < one < 2**31) for one in given):
        raise InvalidArgument("first and last are whole numbers from 1.", code="gateway-argument")
    first, last = given
    if first is None:
        first = max(1, (count if last is None else last) - _PAGE + 1)
    return first, min(count, count if last is None else last, first + LONGEST_PAGE - 1)


def _is_stopped(office: Office, execute: Any) -> bool:
    numbers = numbers_in_meta(execute)
    return bool(numbers["stopped"]) or numbers["late"] > office.settings.late_allowed

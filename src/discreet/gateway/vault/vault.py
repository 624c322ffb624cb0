"""The vault: the only process with the data, the ledger and the accounts. It decides, and the desk only carries.

Each request names a verb and brings a token. What is free is answered at once, by processes that have no private row.
What is charged waits for a lane, and leaves at the end of its slot.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from discreet.errors import (
    DiscreetError,
    InvalidArgument,
    LedgerDamaged,
    LedgerUnavailable,
    QueryError,
    ServiceUnavailable,
)
from discreet.gateway.books import audit, late, limits, policies, questions
from discreet.gateway.books.accounts import Login, begin_session
from discreet.gateway.books.offices import Office, check_arguments, check_caller
from discreet.gateway.books.opening import open_books
from discreet.gateway.books.scram import PREFIX, Exchanges, Sessions
from discreet.gateway.books.store import GatewayStore, check_held, only_gateway
from discreet.gateway.books.tokens import ROLES, Caller, Callers, digest_of, login_error
from discreet.gateway.frames import BadFrame, Frame, refusal, serve_frames
from discreet.gateway.isolation import harden
from discreet.gateway.oidc import Verifier
from discreet.gateway.settings import Settings, load_settings
from discreet.gateway.vault import budgets, tiles
from discreet.gateway.vault.asking import OPTIONS, Asked, read_options, read_question, text_of
from discreet.gateway.vault.clock import Lanes, Slot
from discreet.gateway.vault.counters import Counters
from discreet.gateway.vault.inspection import INSPECTIONS
from discreet.gateway.vault.planning import LEFT
from discreet.gateway.vault.processes import Readers, error_in, without_places
from discreet.gateway.vault.purchase import Purchase, account_of, late_error, note, spends, stopping_error
from discreet.gateway.vault.remembered import Remembered
from discreet.gateway.vault.snapshot import publish
from discreet.gateway.vault.verbs import VERBS
from discreet.ledger import Ledger
from discreet.ledger.book import WHOLE
from discreet.ledger.stores.store import URLS
from discreet.ledger.texts.request import key_reused_error
from discreet.ledger.views import NotBought

T = TypeVar("T")
_OPEN = ("login", "leaked")
"""The verbs that need no token."""
_MOST_WAITING = 1000
_MOST_OF_ONE = 200
"""How many questions may wait for a lane, of all accounts and of one."""
_READER_MEMORY = "1GB"
_PLANNED = 4
"""A question may take this part of its slot to be planned: the lane plans it again."""
_ALERTS_AFTER = 10.0
_MOST_SESSIONS = 10_000
_LONGEST_REFUSED = 2000
"""So many characters of a refused question are in the audit."""


class Vault:
    """The state of a running vault."""

    def __init__(self, settings: Settings, ledger: Ledger, store: GatewayStore, opening: Mapping[str, Any]) -> None:
        self.settings, self.ledger, self.store = settings, ledger, store
        self.office = Office(
            store=store, open_ledger=lambda: ledger, settings=settings, now=time.time, as_of=self._as_of
        )
        self.counters = Counters()
        self._callers = Callers(store)
        self._verifier = None if settings.oidc is None else Verifier(settings.oidc)
        self._sessions: dict[str, str] = {}
        self._exchanges, self._connected = Exchanges(store), Sessions()
        self._views: dict[str, Ledger] = {}
        self._alerted: set[str] = set()
        cores = os.cpu_count() or 1
        # one core stays free for those who ask: their free requests must not wait for a lane
        lane = {"memory": settings.lane_memory, "threads": max(1, (cores - 1) // settings.lanes)}
        self._lanes = Lanes(settings.lanes, {**opening, **lane})
        self._readers = Readers(min(4, max(2, cores // 2)), {**opening, "threads": 1, "memory": _READER_MEMORY})
        self._books = ThreadPoolExecutor(1, thread_name_prefix="books")
        self._clerk = ThreadPoolExecutor(1, thread_name_prefix="clerk")
        self._remembered = Remembered()
        self._running: dict[tuple[Any, ...], asyncio.Task[Frame]] = {}
        self.purchases: set[Purchase] = set()
        """What is bought in the slots that run now."""
        self._keeping_up: asyncio.Task[None] | None = None
        self._ending = False
        self.is_unsettled = False
        """Whether a late question could not be settled. Then nothing is charged until the vault is started again."""
        self.is_verifying = False
        self.since, self.engine = time.time(), ""
        """When it was started, and the kind of its engine."""

    @property
    def waiting(self) -> int:
        """How many questions wait for a lane."""
        return self._lanes.waiting

    async def start(self) -> None:
        """Start the processes that plan and answer."""
        await asyncio.gather(self._lanes.start(), self._readers.start())
        self._keeping_up = asyncio.get_running_loop().create_task(tiles.keep_up(self))

    async def drain(self) -> None:
        """Charge nothing new, wait for the slots that are running, and end."""
        self._ending = True
        while self._running:
            await asyncio.wait(self._running.values())
        if self._keeping_up is not None:
            await asyncio.wait([self._keeping_up])
        self._lanes.stop()
        self._readers.stop()
        self._books.shutdown()
        self._clerk.shutdown()

    async def in_books(self, call: Callable[..., T], *given: Any, **named: Any) -> T:
        """Run what reads or writes a database without holding up the others."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._books, lambda: call(*given, **named))

    @property
    def is_ending(self) -> bool:
        """Whether nothing new is charged any more."""
        return self._ending

    # --- requests -------------------------------------------------------------------------------------------

    async def handle(self, frame: Frame) -> Frame:
        """The reply to a request of the desk. An error says only what its class and its code say."""
        verb = frame.header.get("verb")
        verb = verb if isinstance(verb, str) else ""
        try:
            reply = await self._handle(verb, frame)
        except BadFrame:
            reply = refusal(InvalidArgument("The body must be one JSON object.", code="gateway-body"))
        except (LedgerDamaged, LedgerUnavailable) as error:  # its message names places of files: it is for the owner
            print(f"error [{error.code}]: {error}", file=sys.stderr, flush=True)
            reply = refusal(without_places(error))
        except DiscreetError as error:
            reply = refusal(error)
        except Exception:  # a fault of ours: its message could say too much
            reply = refusal(DiscreetError("The gateway failed. Nothing was handed out.", code="gateway-failed"))
        self.counters.count(verb if verb in _KNOWN else "other", reply.header)
        return reply

    async def _handle(self, verb: str, frame: Frame) -> Frame:
        if verb == "health":
            return json_frame({"ok": not self._ending})
        if verb == "login" and "id_token" in frame.arguments:
            return json_frame(await self._login(frame.arguments))
        if verb in _SCRAM:
            return json_frame(await _SCRAM[verb](self, frame.arguments))
        if verb == "logout":
            self._connected.end(str(frame.header.get("token")))
            return json_frame({})
        if verb in _OPEN:
            return json_frame(await self.in_books(VERBS[verb], self.office, None, frame.arguments))
        caller = await self._caller(frame.header.get("token"))
        if verb in _VERBS:
            try:
                answered: Frame = await _VERBS[verb](self, caller, frame.arguments)
            except DiscreetError as error:
                if verb == "ask":
                    said = {"code": error.code, "sql": str(frame.arguments.get("sql"))[:_LONGEST_REFUSED]}
                    self._clerk.submit(audit.record, self.store, time.time(), caller.account, "refused", **said)
                raise
            return answered
        if verb in INSPECTIONS:
            return json_frame(await INSPECTIONS[verb](self, caller, frame.arguments))
        if verb in tiles.VERBS:
            return json_frame(await tiles.VERBS[verb](self, caller, frame.arguments))
        if verb in VERBS:
            return json_frame(await self.in_books(VERBS[verb], self.office, caller, frame.arguments))
        raise InvalidArgument("There is no such request.", code="gateway-not-found")

    async def _caller(self, token: Any) -> Caller:
        """Who calls. A token of the login provider begins a session here, once."""
        if isinstance(token, str) and token.startswith(PREFIX):
            session = self._connected.find(token)
            known = (session.token, session.digest, time.time())
            if self.settings.store.startswith(URLS):
                return await self.in_books(self._callers.holder, *known)
            return self._callers.holder(*known)
        if self._verifier is not None and isinstance(token, str) and token.count(".") == 2:
            token = await self._session_of(token)
        if self.settings.store.startswith(URLS):
            return await self.in_books(self._callers.caller, token, time.time())
        return self._callers.caller(token, time.time())

    async def _session_of(self, token: str) -> str:
        """The session of a token of the login provider, which is checked each time."""
        assert self._verifier is not None
        name, digest = await self._verifier.account(token), digest_of(token)
        if name is None:
            self._sessions.pop(digest, None)
            raise login_error()
        if digest not in self._sessions:
            if len(self._sessions) >= _MOST_SESSIONS:
                self._sessions.clear()
            self._sessions[digest] = (await self._begin_session(name)).text
        return self._sessions[digest]

    async def _login(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A session for whoever the login provider says has come from this login."""
        check_arguments("login", arguments, ("id_token", "nonce"), ())
        name = None
        if self._verifier is not None and isinstance(arguments["nonce"], str):
            name = await self._verifier.account(arguments["id_token"], nonce=arguments["nonce"])
        if name is None:
            raise login_error()
        begun = await self._begin_session(name)
        return {"token": begun.text, "account": begun.account, "expires": begun.expires}

    async def _begin_session(self, name: str) -> Login:
        try:
            return await self.in_books(begin_session, self.store, name, "by the login provider", time.time())
        except InvalidArgument:  # somebody whom the provider knows, but who has no account here
            raise login_error() from None

    async def _scram_first(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return self._exchanges.first(arguments)

    async def _scram_final(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A session for whoever has a token of the account that the login named."""
        now = time.time()
        proven = await self.in_books(self._exchanges.final, arguments, now)
        said = {"how": "over PostgreSQL", "token": proven.token}
        self._clerk.submit(audit.record, self.store, now, proven.account, "login", **said)
        session = self._connected.begin(proven)
        return {"message": proven.server_final, "session": session, "account": proven.account}

    # --- questions ------------------------------------------------------------------------------------------

    async def ask(self, caller: Caller, arguments: Mapping[str, Any]) -> Frame:
        """Answer a question: at once if it was bought before, otherwise at the end of its slot."""
        check_caller(caller, "ask", ROLES, "replay")
        with_cost = partial(read_question, arguments, self.settings)
        asked = await self._after_reading(caller, arguments, with_cost)
        return await budgets.with_remains(self, caller, asked, await self.answer(caller, asked))

    async def answer(self, caller: Caller, asked: Asked) -> Frame:
        """The answer to a question. Those who ask the same at the same time share one."""
        name = (f"{caller.role} {caller.account}", asked.words, asked.form)
        found, key = self._remembered.get(name), asked.ledger_key
        if found is not None and (key is None or await self.in_books(self._is_new, caller, key)):
            return found
        same = (caller.account, _buys(caller, asked), asked.length, asked.digest, asked.form, asked.agent)
        if same not in self._running:
            self._check_room(caller)
            task = asyncio.get_running_loop().create_task(self._find_or_buy(caller, asked, name))
            self._running[same] = task
            task.add_done_callback(lambda done: self._forget(same, done))
        return await asyncio.shield(self._running[same])

    async def price(self, caller: Caller, asked: Asked) -> Fraction:
        """The ε that a question would cost now: 0 if it was bought before."""
        reply = await self._readers.ask("ask", await self._given(caller, asked), caller.account)
        if not reply.header.get("ok"):
            raise _failure(reply)
        return Fraction(reply.header["epsilon"] if reply.header.get("bought") is False else 0)

    async def _find_or_buy(self, caller: Caller, asked: Asked, name: tuple[str, str, str]) -> Frame:
        key = asked.ledger_key
        before = None if key is None else await self.in_books(late.late_with, self.store, caller.account, key)
        if before is not None:  # one key is charged once, whatever came of it, and however far it came
            raise late_error() if before == asked.late_name else key_reused_error()
        given = await self._given(caller, asked)
        if _buys(caller, asked) and not asked.length:  # in a slot there is time, and others must not wait for a plan
            self._lanes.prepare(given)
        reply = await self._readers.ask("ask", given, caller.account)
        if not reply.header.get("ok"):
            raise _failure(reply)
        if reply.header.get("bought") is not False:
            await self.in_books(note, self, caller, asked, reply.header)
            if reply.header["receipt"] is not None and reply.header["own"]:  # otherwise it says what remains now
                self._remembered.put(name, answer_frame(reply))
            return answer_frame(reply)
        if not _buys(caller, asked):
            raise NotBought("This was not bought before, and only what was bought is shown here.")
        if asked.length and reply.header["planned"] * _PLANNED > asked.length:
            raise QueryError(
                f"This question takes too long to plan for a slot of {asked.length:g} s. Nothing was charged. Simplify "
                'it, or ask the owner for a longer time, such as answer_after = "10s".',
                code="gateway-plan-time",
            )
        budgets.check_fits(reply)
        return await self._buy(caller, asked, given, reply.header)

    def _forget(self, same: tuple[Any, ...], done: asyncio.Task[Frame]) -> None:
        """A question that is answered or refused. Its error is known, even if nobody waits for it any more."""
        self._running.pop(same, None)
        if not done.cancelled():
            done.exception()

    def _is_new(self, caller: Caller, key: str) -> bool:
        """Whether this key was not used before. One that was must be of the same question."""
        try:
            self.view(caller).check_new_key(key)
        except InvalidArgument:
            return False
        return True

    def view(self, caller: Caller) -> Ledger:
        """The ledger as a caller sees it."""
        name = account_of(caller)
        if name not in self._views:
            self._views[name] = self.ledger.for_analyst(name) if name else self.ledger
        return self._views[name]

    async def _given(self, caller: Caller, asked: Asked) -> dict[str, Any]:
        """What a worker is told about a question."""
        others, until, as_of = await self.in_books(self._others, account_of(caller))
        return {
            "sql": asked.sql,
            "options": asked.options,
            "analyst": account_of(caller),
            "form": asked.form,
            "key": asked.ledger_key,
            "others": others,
            "until": until,
            "as_of": as_of,
            "spends": spends(caller),
        }

    def _others(self, account: str) -> tuple[list[str], dict[str, int], int]:
        """Whose answers an account sees besides its own, up to which entry it sees those of each, and as of which entry
        it sees what remains: nothing of a slot is seen before it ends, or times would be.
        """
        others = [WHOLE, *self.ledger.analysts] if self.settings.share == "everyone" else []
        count = self.ledger.count
        until = dict.fromkeys((account, *others), count)
        for one in tuple(self.purchases):
            if one.account in until:
                until[one.account] = min(until[one.account], one.before)
        return others, until, min((one.before for one in tuple(self.purchases)), default=count)

    def _as_of(self) -> int | None:
        """The last entry before the slots that run now. None if none runs."""
        return min((one.before for one in tuple(self.purchases)), default=None)

    def _check_room(self, caller: Caller) -> None:
        own = sum(account == caller.account for account, *_ in self._running)
        if self._ending or self.is_unsettled:
            raise stopping_error()
        if own >= _MOST_OF_ONE or len(self._running) >= _MOST_WAITING:
            raise ServiceUnavailable(
                "Too many questions are waiting. Nothing was charged. Ask again later.", code="gateway-busy"
            )

    async def _buy(self, caller: Caller, asked: Asked, given: Mapping[str, Any], costs: Mapping[str, Any]) -> Frame:
        """Count the question against the limits, answer it in a lane, and return at the end of the slot."""
        purchase = Purchase(self, caller, asked, costs)
        own = any(one.account == purchase.account for one in tuple(self.purchases))
        sent = {**given, "others": []}

        async def begin() -> None:
            if own:  # what the account was buying when this was looked up may be there now
                newer = await self._given(caller, asked)
                found = await self._readers.ask("ask", newer, caller.account)
                if found.header.get("ok") and found.header.get("bought") is not False:
                    raise _Bought(found)
                if found.header.get("ok"):
                    budgets.check_fits(found)
                    purchase.costs(found.header)
                    sent.update({name: newer[name] for name in ("until", "as_of")})  # the lane finds the same price
            await self.in_books(purchase.begin)

        async def settle(slot: Slot) -> None:
            if asked.length or slot.reply is None:
                await self.in_books(purchase.settle, slot)
            else:  # an answer that leaves at once does not wait for what is noted about it
                self._books.submit(purchase.settle, slot)

        try:
            alone = len(costs["owed"]) > 1
            slot = await self._lanes.run(sent, asked.length, begin, settle, alone=alone)
        except _Bought as bought:
            await self.in_books(note, self, caller, asked, bought.reply.header)
            return answer_frame(bought.reply)
        finally:
            self.purchases.discard(purchase)
        self._check_alerts_later(account_of(caller))
        if slot.reply is None:
            raise late_error()
        if not slot.reply.header.get("ok"):
            raise _failure(slot.reply)
        return answer_frame(slot.reply, **{LEFT: slot.reply.header[LEFT]})

    def _check_alerts_later(self, account: str) -> None:
        """See soon whether a limit is nearly used up, once for all questions that are asked until then."""
        if account not in self._alerted:
            self._alerted.add(account)
            asyncio.get_running_loop().call_later(_ALERTS_AFTER, self._check_alerts, account)

    def _check_alerts(self, account: str) -> None:
        self._alerted.discard(account)
        if not self._ending:
            self._clerk.submit(limits.check_alerts, self.store, self.settings, self.ledger, account, time.time())

    # --- free requests --------------------------------------------------------------------------------------

    async def again(self, caller: Caller, arguments: Mapping[str, Any]) -> Frame:
        """The stored answer with a receipt of the caller's own."""
        check_caller(caller, "again", ROLES, "replay")
        check_arguments("again", arguments, ("receipt",), ("format",))
        found = await self.in_books(questions.find_question, self.store, caller.account, arguments.get("receipt"))
        if found is None:
            raise InvalidArgument(
                "There is no answer with this receipt among yours. See /v1/history.", code="gateway-not-found"
            )
        known = {name: value for name, value in found.options.items() if name != "answer_after"}
        asked = read_question({"sql": found.sql, **known, "format": arguments.get("format", "json")}, self.settings)
        reply = await self._readers.ask("ask", await self._given(caller, asked), caller.account)
        if reply.header.get("bought") is False and any(one.account == account_of(caller) for one in self.purchases):
            raise ServiceUnavailable(
                "Another question of this account is being answered. Until then, answers that came meanwhile are not "
                "shown. Nothing was charged. Load this again.",
                code="gateway-busy",
            )
        if reply.header.get("bought") is False or reply.header.get("code") == "ledger-key-reused":
            raise InvalidArgument(
                "This answer was bought for other declarations or another version of the data. Ask the question again.",
                code="gateway-not-found",
            )
        if not reply.header.get("ok"):
            raise _failure(reply)
        options = {name: value for name, value in known.items() if name != "key"}
        return answer_frame(reply, asked={"sql": found.sql, "options": options, "at": found.at})

    async def plan(self, caller: Caller, arguments: Mapping[str, Any]) -> Frame:
        """Explain a question, for free, and say what would stop it."""
        check_caller(caller, "plan", ROLES, "explain")
        check_arguments("plan", arguments, ("sql",), OPTIONS)
        with_cost = partial(read_options, arguments, self.settings)
        options, sql = await self._after_reading(caller, arguments, with_cost), text_of(arguments)
        others, _, _ = await self.in_books(self._others, account_of(caller))
        finds = "replay" in caller.scopes  # whether something was bought is for those who may see it
        reply = await self._read("plan", caller, sql=sql, options=options, others=others, finds=finds)
        return await budgets.with_hindrance(self, caller, reply)

    async def _after_reading(self, caller: Caller, arguments: Mapping[str, Any], read: Callable[[], T]) -> T:
        """What is read of the arguments. If they do not say what a question may cost, it is refused first if it is one
        that no ε can help.
        """
        try:
            return read()
        except InvalidArgument as error:
            if error.code == "epsilon-or-within" and "explain" in caller.scopes:
                await self._read("describe", caller, sql=text_of(arguments))
            raise

    async def describe(self, caller: Caller, arguments: Mapping[str, Any]) -> Frame:
        """The columns that an answer would have, for free and without an ε."""
        check_caller(caller, "describe", ROLES, "explain")
        check_arguments("describe", arguments, ("sql",), ())
        return await self._read("describe", caller, sql=text_of(arguments))

    async def tables(self, caller: Caller, arguments: Mapping[str, Any]) -> Frame:
        """What may be asked."""
        check_caller(caller, "tables", ROLES, "explain")
        check_arguments("tables", arguments, (), ())
        return await self._read("tables", caller, near=await self.in_books(budgets.near, self, caller))

    async def metrics(self, caller: Caller, arguments: Mapping[str, Any]) -> Frame:
        """Counts of requests and refusals for the owner's monitoring. Nothing in them depends on an answer."""
        check_caller(caller, "metrics", ROLES, "metrics")
        check_arguments("metrics", arguments, (), ())
        standing = await self.in_books(self._standing)
        return Frame({"ok": True, "type": Counters.TYPE}, self.counters.exposed(self._lanes.waiting, standing))

    def _standing(self) -> dict[str, float]:
        asked, count = late.charged_count(self.store), late.late_count(self.store)
        return {"late": count, "charged": asked, "bits": late.promised_bits(self.store, self.settings.late_at_most)}

    async def _read(self, verb: str, caller: Caller, **given: Any) -> Frame:
        _, until, as_of = await self.in_books(self._others, account_of(caller))
        seen = {"analyst": account_of(caller), "spends": spends(caller), "until": until, "as_of": as_of}
        reply = await self._readers.ask(verb, {**seen, **given}, caller.account)
        if not reply.header.get("ok"):
            raise _failure(reply)
        return reply


_VERBS: dict[str, Any] = {
    name: getattr(Vault, name) for name in ("ask", "again", "plan", "describe", "tables", "metrics")
}

_SCRAM: dict[str, Any] = {"scram_first": Vault._scram_first, "scram_final": Vault._scram_final}
"""The two steps of a login of the PostgreSQL protocol. Neither needs a token."""

_KNOWN = {*_VERBS, *_SCRAM, *INSPECTIONS, *VERBS, *tiles.VERBS, "logout"}


def _buys(caller: Caller, asked: Asked) -> bool:
    """Whether an answer is bought if it was not before."""
    return "ask" in caller.scopes and not asked.bought_only


class _Bought(Exception):
    """A question that waited for a lane was bought meanwhile."""

    def __init__(self, reply: Frame) -> None:
        self.reply = reply


def _failure(reply: Frame) -> DiscreetError:
    """The error in the reply of a worker."""
    if reply.header.get("failed"):
        return DiscreetError("The gateway failed. Nothing was handed out.", code="gateway-failed")
    return error_in(reply)


def answer_frame(reply: Frame, **said: Any) -> Frame:
    """An answer of a worker as it leaves the vault."""
    beside = {"beside": reply.header["beside"]} if "beside" in reply.header else {}
    return Frame({"ok": True, "type": reply.header["type"], **beside, **said}, reply.body)


def json_frame(content: Any) -> Frame:
    """A reply in JSON."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, default=str)
    return Frame({"ok": True, "type": "application/json"}, text.encode())


# --- the process --------------------------------------------------------------------------------------------


def open_vault(policy_file: str | Path, locks: Collection[int] | None = None) -> Vault:
    """A vault on the data, the ledger and the gateway's database that a policy names. A new version of the data is
    published first. With `locks`, other databases than those are refused: the policy may have changed.
    """
    file = Path(policy_file).resolve()
    policy, settings = load_settings(file)
    if locks is not None:
        check_held(locks, settings.store, str(policy.ledger))
    opening = {
        "policy": file.read_text(encoding="utf-8"),
        "folder": str(file.parent),
        "version": settings.version,
        "copies": settings.copies,
        "slots": settings.answer_after > 0,
    }
    ledger, store = open_books(policy, settings)
    publish(policy, settings, store)
    policies.record_policy(store, policy.public_text(), time.time())
    vault = Vault(settings, ledger, store, opening)
    vault.engine = policy.engine.kind
    return vault


async def serve_vault(vault: Vault, path: Path, users: Collection[int]) -> None:
    """Serve a vault at a Unix socket until the process is told to stop."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await vault.start()
    server = await serve_frames(path, vault.handle, users, mode=0o660)
    print("ready", flush=True)
    await stopped.wait()
    await vault.drain()
    server.close()


def main() -> None:
    """Run a vault: its policy, the path of its socket, the user id of the desk, and the locks of who supervises it."""
    policy, path, desk = sys.argv[1:4]
    is_supervised = sys.argv[4:5] == ["supervised"]
    harden(ends_with_parent=is_supervised)
    os.umask(0o077)
    try:
        locks = [int(lock) for lock in sys.argv[5:]]
        if not is_supervised:
            known, settings = load_settings(policy)
            locks = [*only_gateway(settings.store, str(known.ledger))]
        asyncio.run(serve_vault(open_vault(policy, locks), Path(path), {int(desk), os.getuid()}))
    except DiscreetError as error:
        print(f"error [{error.code}]: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()

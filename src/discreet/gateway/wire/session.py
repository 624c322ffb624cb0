"""A session over the PostgreSQL protocol: it knows statements, and no bytes. One per connection, made after the login.

`describe` never charges. Only `run` of a question in the mode answer may.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from discreet._version import __version__
from discreet.errors import DiscreetError
from discreet.gateway.wire.asking import Answered, Asker, Vault
from discreet.gateway.wire.catalogs import Catalog, Catalogs
from discreet.gateway.wire.cursors import Cursor, Cursors
from discreet.gateway.wire.errors import FAILED, refusal_in, refusal_of
from discreet.gateway.wire.format.values import TYPES, Column, Described, Notice, Refusal, Result
from discreet.gateway.wire.options import OF_QUESTIONS, READ_ONLY, Settings, seconds
from discreet.gateway.wire.text.parameters import type_named, value_of
from discreet.gateway.wire.text.statement import Statement
from discreet.gateway.wire.text.statements import is_question, read_statements
from discreet.gateway.wire.transactions import Transactions

T = TypeVar("T")
_PLAN = (Column("QUERY PLAN"),)
_ALL = (Column("name"), Column("setting"), Column("description"))
_MOST_PREPARED, _LONGEST_PREPARED = 200, 300_000
"""Prepared statements and cursors of a session, and characters of all their texts, at most."""
_MOST_REMEMBERED, _LONGEST_REMEMBERED = 50, 2000
_CHANGING = ("set", "reset", "discard", "commit", "rollback", "rollback to")
"""What may change a setting that clients are told."""
KNOWN_FOR = 1.0
"""For so many seconds nobody asks the vault whether a token still holds, if nothing else is asked of it."""
_OF_CATALOG = "The catalog: names and types only. Nothing private is read, and nothing is charged."


class _Prepared(NamedTuple):
    statement: Statement
    declared: tuple[int, ...]


async def open_session(
    vault: Vault,
    catalogs: Catalogs,
    token: str,
    *,
    account: str,
    database: str,
    options: Mapping[str, str],
    cancelled: Callable[[], bool] | None = None,
) -> Session:
    """A session for whoever has this token. `options` are the parameters of the startup message."""
    me = await _json(vault, token, "me")
    try:
        tables = await _json(vault, token, "tables")
    except Refusal as refusal:
        if refusal.state != "42501":  # a token that explains nothing still asks
            raise
        tables = {"tables": []}
    if me.get("database", database) != database:
        raise Refusal(f'database "{database}" does not exist', state="3D000", hint=f"Connect to {me['database']}.")
    settings = Settings(account, str(me.get("role", "")), options)
    catalog = await asyncio.to_thread(catalogs.find, tables, database)
    return Session(vault, catalog, token, settings=settings, database=database, tables=tables, cancelled=cancelled)


async def _json(vault: Vault, token: str, verb: str) -> dict[str, Any]:
    """The object that the vault replies."""
    try:
        reply = await vault.call(verb, token, {})
    except DiscreetError as error:
        raise refusal_of(error) from None
    if reply.header.get("ok") is not True:
        raise refusal_in(reply)
    found = json.loads(reply.body)
    return found if isinstance(found, dict) else {}


class Session:
    """What one connection has: settings, a transaction, cursors and prepared statements."""

    def __init__(
        self,
        vault: Vault,
        catalog: Catalog,
        token: str,
        *,
        settings: Settings,
        database: str,
        tables: Mapping[str, Any],
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self._vault, self._catalog, self._token, self._cancelled = vault, catalog, token, cancelled
        self.settings = settings
        self._asker = Asker(vault, token, settings, database, tables)
        self._cursors = Cursors()
        self._transactions = Transactions(settings, self._cursors)
        self._prepared: dict[str, _Prepared] = {}
        self._read: dict[str, list[Statement]] = {}
        self._declared: WeakKeyDictionary[Statement, Sequence[int]] = WeakKeyDictionary()
        self._known_until = time.monotonic() + KNOWN_FOR

    @property
    def status(self) -> str:
        """I if idle, T in a transaction, E in a failed one."""
        return self._transactions.status

    @property
    def reported(self) -> dict[str, str]:
        """The settings that a client is told at the start."""
        return self.settings.reported

    def fail(self) -> None:
        """After an error, a transaction has failed."""
        self._transactions.fail()

    async def close(self) -> None:
        """Forget everything."""
        self._cursors.close("")
        self._prepared.clear()

    # --- the three steps ------------------------------------------------------------------------------------

    def read(self, text: str) -> list[Statement]:
        """The statements of a text. It runs nothing, and may run in a thread."""
        try:
            found = self._read.get(text)
            if found is None:
                found = read_statements(text, self._catalog.answers)
                if len(text) <= _LONGEST_REMEMBERED:
                    self._read[text] = found
                while len(self._read) > _MOST_REMEMBERED:
                    self._read.pop(next(iter(self._read)), None)
            return [replace(one) for one in found]
        except RecursionError:
            raise Refusal("The statement is nested too deeply. Simplify it.", state="54001") from None

    async def describe(self, statement: Statement, declared: Sequence[int] = ()) -> Described:
        """The parameters and the columns of a statement. Nothing is run or charged."""
        return await _guarded(self._describe(statement, declared))

    def describe_cursor(self, name: str) -> Described | None:
        """The columns of a cursor, which in the protocol is a portal of this name. None if there is none."""
        return Described((), self._cursors.find(name).columns) if name in self._cursors.names else None

    async def run(self, statement: Statement, values: Sequence[Any] = ()) -> Result:
        """Run a statement. A question may be charged here."""
        if statement.what not in _CHANGING:
            return await _guarded(self._in_time(statement, values))
        before = self.settings.reported
        result = await _guarded(self._in_time(statement, values))
        after = self.settings.reported
        changed = {name: value for name, value in after.items() if before[name] != value}
        return replace(result, settings={**changed, **result.settings}) if changed else result

    async def _in_time(self, statement: Statement, values: Sequence[Any]) -> Result:
        """Run a statement, as long as statement_timeout says. What was charged stays charged."""
        limit = seconds(self.settings.get("statement_timeout") or "0")
        if not limit:
            return await self._run(statement, values)
        try:
            async with asyncio.timeout(limit):
                return await self._run(statement, values)
        except TimeoutError:
            raise Refusal(
                "canceling statement due to statement timeout",
                state="57014",
                hint="What it costs stays charged. To ask the same again is free, if it was answered meanwhile.",
            ) from None

    async def _describe(self, statement: Statement, declared: Sequence[int]) -> Described:
        self._transactions.check(statement)
        _check_allowed(statement)
        match statement.what:
            case "query":
                return await self._described(statement, declared)
            case "explain":
                assert statement.inner is not None
                inner = await self._described(statement.inner, declared)
                return Described(inner.parameters, _PLAN)
            case "fetch":
                return Described((), self._cursors.find(statement.name).columns)
            case "execute":
                ready = self._find_prepared(statement.name)
                return Described((), (await self._described(replace(ready.statement), ready.declared)).columns)
            case "show":
                return Described((), self._shown_columns(statement.name))
        return Described((), None)

    async def _check_token(self) -> None:
        """Refuse whoever's token was revoked meanwhile, also where the vault has no part. It is asked now and then."""
        if time.monotonic() >= self._known_until:
            await _json(self._vault, self._token, "me")
            self._known_until = time.monotonic() + KNOWN_FOR

    async def _run(self, statement: Statement, values: Sequence[Any]) -> Result:
        await self._check_token()
        self._transactions.check(statement)
        _check_allowed(statement)
        if statement.is_empty:
            return Result("")
        if statement.what == "query":
            return _selected(await self._answered(statement, values))
        run = _RUN[statement.what]
        if statement.what == "explain":
            return await self._explain(statement, values)
        found = run(self, statement)
        return found if isinstance(found, Result) else await found

    # --- questions ------------------------------------------------------------------------------------------

    async def _described(self, statement: Statement, declared: Sequence[int]) -> Described:
        if is_question(statement):
            return await self._asker.describe(statement, declared)
        self._declared[statement] = declared
        return await asyncio.to_thread(self._catalog.describe, statement.query, declared)  # type: ignore[arg-type]

    async def _answered(self, statement: Statement, values: Sequence[Any] = ()) -> Answered:
        if is_question(statement):
            return await self._asker.answer(statement, values)
        settings, user = self.settings.all, self.settings.account
        columns, rows = await asyncio.to_thread(
            self._catalog.run,
            statement.query,  # type: ignore[arg-type]
            values,
            user=user,
            settings=settings,
            declared=self._declared.get(statement, ()),
        )
        return Answered(columns, rows, ())

    async def _explain(self, statement: Statement, values: Sequence[Any]) -> Result:
        assert statement.inner is not None
        if is_question(statement.inner):
            plan = await self._asker.explain(statement.inner, values)
        else:
            plan = {"text": _OF_CATALOG}
        if statement.given["form"] == "json":
            shown = {name: value for name, value in plan.items() if name != "text"} or plan
            rows = [(json.dumps([shown], ensure_ascii=False, indent=2),)]
        else:
            rows = [(line,) for line in str(plan["text"]).split("\n")]
        return Result("EXPLAIN", _PLAN, rows)

    async def _copy(self, statement: Statement) -> Result:
        assert statement.inner is not None
        if statement.inner.parameters:
            raise Refusal("COPY takes no parameters.", state="0A000", hint="Write the values into the question.")
        found = await self._answered(statement.inner)
        return Result(f"COPY {len(found.rows)}", found.columns, found.rows, found.notices, copy=statement.given)

    # --- cursors --------------------------------------------------------------------------------------------

    async def _declare(self, statement: Statement) -> Result:
        """Declare a cursor. What is wrong with its question is said now, and it is asked when rows are fetched."""
        assert statement.inner is not None
        hold = statement.given["hold"]
        if not hold:
            self._transactions.need("DECLARE CURSOR")
        self._cursors.check_new(statement.name)
        self._check_room(statement)
        if statement.inner.parameters:
            raise Refusal("A cursor takes no parameters.", state="0A000", hint="Write the values into the question.")
        described = await self._described(statement.inner, ())
        cursor = Cursor(statement.inner, described.columns or (), hold=hold, scroll=statement.given["scroll"])
        self._cursors.add(statement.name, cursor)
        return Result("DECLARE CURSOR")

    async def _fetch(self, statement: Statement) -> Result:
        cursor, rows, new = await self._cursors.fetch(statement.name, statement.given, self._answered)
        notices = () if new is None else new.notices
        if statement.what == "move":
            return Result(f"MOVE {len(rows)}", notices=notices)
        return Result(f"FETCH {len(rows)}", cursor.columns, rows, notices)

    def _close(self, statement: Statement) -> Result:
        self._cursors.close(statement.name)
        return Result("CLOSE CURSOR" if statement.name else "CLOSE CURSOR ALL")

    # --- settings -------------------------------------------------------------------------------------------

    def _set(self, statement: Statement) -> Result:
        given = statement.given
        if not statement.name:
            return Result("SET")
        if given["local"] and self.status == "I":
            said = Notice("SET LOCAL can only be used in transaction blocks", None, "WARNING", "25P01")
            return Result("SET", notices=(said,))
        self.settings.set(statement.name, given["value"], local=given["local"])
        return Result("SET")

    def _reset(self, statement: Statement) -> Result:
        if statement.name:
            self.settings.set(statement.name, None)
        else:
            self.settings.reset_all()
        return Result("RESET")

    def _shown_columns(self, name: str) -> tuple[Column, ...]:
        if not name:
            return _ALL
        return (Column(name if name in READ_ONLY else self.settings.shown(name)[0]),)

    async def _show(self, statement: Statement) -> Result:
        name, columns = statement.name, self._shown_columns(statement.name)
        if not name:
            told = {**OF_QUESTIONS, **READ_ONLY}
            known = {**self.settings.all, **await self._own_settings()}
            return Result(
                "SHOW", columns, [(one, known[one], told.get(one, "")) for one in sorted(known, key=str.lower)]
            )
        if name in READ_ONLY:
            return Result("SHOW", columns, [((await self._own_settings())[name],)])
        return Result("SHOW", columns, [(self.settings.shown(name)[1],)])

    async def _own_settings(self) -> dict[str, str]:
        """What the vault says about this account."""
        budget = await _json(self._vault, self._token, "budget")
        return {
            "discreet.remaining": _left(budget),
            "discreet.limit": _amount(budget.get("limit")),
            "discreet.about": str(budget.get("about", "")),
            "discreet.account": self.settings.account,
            "discreet.role": self.settings.role,
            "discreet.version": __version__,
        }

    def _discard(self, statement: Statement) -> Result:
        if statement.name == "ALL":
            if self.status != "I":
                raise Refusal("DISCARD ALL cannot run inside a transaction block", state="25001")
            self._cursors.close("")
            self._prepared.clear()
            self.settings.reset_all()
        return Result(f"DISCARD {statement.name}")

    # --- prepared statements --------------------------------------------------------------------------------

    async def _prepare(self, statement: Statement) -> Result:
        assert statement.inner is not None
        if statement.name in self._prepared:
            raise Refusal(f'prepared statement "{statement.name}" already exists', state="42P05")
        if len(self._prepared) >= _MOST_PREPARED:
            raise Refusal(f"A session has at most {_MOST_PREPARED} prepared statements.", state="53400")
        self._check_room(statement)
        _check_allowed(statement.inner)
        declared = tuple(TYPES[type_named(words)].oid for words in statement.given)
        await self._described(replace(statement.inner), declared)
        self._prepared[statement.name] = _Prepared(statement.inner, declared)
        return Result("PREPARE")

    def _check_room(self, statement: Statement) -> None:
        """Refuse to keep another statement while the others are long."""
        kept = sum(len(one.statement.text) for one in self._prepared.values()) + self._cursors.texts
        if kept + len(statement.text) > _LONGEST_PREPARED:
            raise Refusal(
                "The prepared statements and cursors of the session are too long.",
                state="54000",
                hint="Write DEALLOCATE ALL or CLOSE ALL.",
            )

    def _find_prepared(self, name: str) -> _Prepared:
        if name not in self._prepared:
            raise Refusal(f'prepared statement "{name}" does not exist', state="26000")
        return self._prepared[name]

    async def _execute(self, statement: Statement) -> Result:
        ready = self._find_prepared(statement.name)
        fresh = replace(ready.statement)
        described = await self._described(fresh, ready.declared)
        if len(described.parameters) != len(statement.given):
            raise Refusal(
                f'wrong number of parameters for prepared statement "{statement.name}"',
                state="42601",
                hint=f"Expected {len(described.parameters)}.",
            )
        pairs = zip(statement.given, described.parameters, strict=True)
        return _selected(await self._answered(fresh, [value_of(said, kind) for said, kind in pairs]))

    def _deallocate(self, statement: Statement) -> Result:
        """Forget a prepared statement. One of the protocol's own has another memory, so none need be here."""
        if statement.name:
            self._prepared.pop(statement.name, None)
            return Result("DEALLOCATE")
        self._prepared.clear()
        return Result("DEALLOCATE ALL")


_RUN: dict[str, Callable[[Session, Statement], Result | Awaitable[Result]]] = {
    "explain": lambda session, one: session._explain(one, ()),
    "copy": Session._copy,
    "declare": Session._declare,
    "fetch": Session._fetch,
    "move": Session._fetch,
    "close": Session._close,
    "begin": lambda session, one: session._transactions.begin(one),
    "commit": lambda session, one: session._transactions.commit(one),
    "rollback": lambda session, one: session._transactions.rollback(one),
    "savepoint": lambda session, one: session._transactions.savepoint(one),
    "release": lambda session, one: session._transactions.release(one),
    "rollback to": lambda session, one: session._transactions.rollback_to(one),
    "set": Session._set,
    "show": Session._show,
    "reset": Session._reset,
    "discard": Session._discard,
    "prepare": Session._prepare,
    "execute": Session._execute,
    "deallocate": Session._deallocate,
    "unlisten": lambda session, one: Result("UNLISTEN"),
}


async def _guarded(call: Awaitable[T]) -> T:
    """Whatever fails unexpectedly says always the same: its message might hold a value."""
    try:
        return await call
    except Refusal:
        raise
    except DiscreetError as error:
        raise refusal_of(error) from None
    except RecursionError:
        raise Refusal("The statement is nested too deeply. Simplify it.", state="54001") from None
    except Exception:
        raise Refusal(FAILED, state="XX000") from None


def _check_allowed(statement: Statement) -> None:
    """Refuse what writes, and what there is not."""
    if statement.what == "write":
        raise Refusal(
            f"cannot execute {statement.name} in a read-only transaction",
            state="25006",
            hint="Data is never changed here. Ask with SELECT.",
        )
    if statement.what == "other":
        raise Refusal(f"{statement.name} is not supported", state="0A000", hint="Ask with SELECT.")
    if statement.what == "explain":
        assert statement.inner is not None
        if statement.given["analyze"]:
            raise Refusal(
                "EXPLAIN ANALYZE is not supported: how long a question takes could tell something about people.",
                state="0A000",
                hint="Write EXPLAIN without ANALYZE. It is free, and says the cost and the expected error.",
            )
        _check_allowed(statement.inner)
        if statement.inner.what != "query":
            raise Refusal("EXPLAIN is for questions.", state="0A000", hint="Write EXPLAIN SELECT ….")


def _selected(found: Answered) -> Result:
    return Result(f"SELECT {len(found.rows)}", found.columns, found.rows, found.notices)


def _left(budget: Mapping[str, Any]) -> str:
    """What remains, and which limit is nearest: ε = 2.05, 0.05 of it today."""
    remains = budget.get("remains")
    return _amount(budget.get("remaining")) if remains is None else str(remains).replace(" remains", "", 1)


def _amount(said: Any) -> str:
    """What remains or is allowed, in words."""
    if not isinstance(said, dict):
        return "nothing"
    epsilon, delta = float(said.get("epsilon", 0)), float(said.get("delta", 0))
    return f"ε = {epsilon:.12g}" + (f", δ = {delta:.12g}" if delta else "")

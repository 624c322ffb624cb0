"""The writer of a ledger in one process: threads that write at the same time share one transaction.

The thread that comes first writes for all that wait: their jobs run one after another in one transaction, each on what
the jobs before it left. None of them returns before the transaction is durable and the checkpoint has seen it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from discreet.errors import DiscreetError, LedgerUnavailable
from discreet.ledger import accounts, answers, book, opening, parts
from discreet.ledger import heads as of_parts
from discreet.ledger.accounts import Account, Charged, Standing, account_in
from discreet.ledger.book import WHOLE, EntryRow, Head, Stored
from discreet.ledger.heads import Heads
from discreet.ledger.parts import Own
from discreet.ledger.stores.checkpoint import Checkpoint, LockedCheckpoint
from discreet.ledger.stores.elsewhere import second_checkpoint
from discreet.ledger.stores.store import Execute, Rows, Statement, Store

T = TypeVar("T")
TOGETHER = 64
"""At most this many jobs share a transaction."""
_FOLLOWED, _REMEMBERED = 4, 1000
"""At most this many entries of others are followed from one known state to the next: to read the newest state is faster
than to follow more. At most this many accounts are remembered.
"""


class Known(NamedTuple):
    """An entry whose place in the chain was checked, and accounts after it. Its chain value proves all of them."""

    last: EntryRow
    accounts: Mapping[str, Account]
    at: Head
    heads: Mapping[str, Heads] = MappingProxyType({})
    """The accounts whose parts were read."""

    def after(self, rows: Sequence[EntryRow], at: Head) -> Known:
        """The state after more entries, which are chained to this one. `at` is the head then."""
        if not rows:
            return self._replace(at=at)
        terms = {name: account.terms for name, account in self.accounts.items()}
        terms |= {row.analyst: row.content for row in rows if row.kind != "charge"}
        newest = {row.analyst: row for row in rows} | {WHOLE: rows[-1]}
        changed = {name: account_in(row, name, terms[name]) for name, row in newest.items() if name in terms}
        return Known(rows[-1], {**self.accounts, **changed}, at, self._heads_after(rows) if self.heads else self.heads)

    def _heads_after(self, rows: Sequence[EntryRow]) -> Mapping[str, Heads]:
        heads = dict(self.heads)
        for row in rows:
            found: dict[str, dict[str, Own]] = {}
            for account, part in parts.owns_in(book.vectors(row.totals), row.number):
                if account in heads:
                    found.setdefault(account, {})[part] = of_parts.own_in(row, account, part)
            for account, owns in found.items():
                heads[account] = heads[account].after(owns)
        return heads


class Draft:
    """What one transaction will write. Each job sees what the jobs before it have written here."""

    def __init__(self, execute: Execute, at: Head, known: Known | None) -> None:
        self._execute, self._before, self.at = execute, at, at
        self.rows: tuple[EntryRow, ...] = ()
        self.answers: Mapping[int, Stored] = {}
        self._last = None if known is None else known.last
        self.accounts: Mapping[str, Account] = {} if known is None else known.accounts
        self._first = self.accounts
        """The accounts as they are in the database."""
        self.heads: Mapping[str, Heads] = {} if known is None else known.heads
        self.charged: Mapping[str, dict[str, int]] = {}
        """The last entry here that charged each part, by account."""
        self.failed = False

    def execute(self, statement: str, *parameters: Any) -> Rows:
        """Run a statement. What is written here is not in the database yet."""
        try:
            return self._execute(statement, *parameters)
        except BaseException:
            self.failed = True
            raise

    def standing(self, analyst: str) -> Standing:
        """Each account that a charge affects: its rule, and what was spent."""
        if WHOLE not in self.accounts or analyst not in self.accounts:
            # an account that is not here is not in a row of this draft either
            read = accounts.standing(self.execute, analyst, self._before)
            self.accounts, self._first = {**read, **self.accounts}, {**read, **self._first}
        return {WHOLE: self.accounts[WHOLE], analyst: self.accounts[analyst]}

    def find(self, analyst: str, column: str, value: str) -> EntryRow | None:
        """The charge in this draft with this `retry_key` or `identity`."""
        return next((row for row in self.rows if row.analyst == analyst and getattr(row, column) == value), None)

    def owns(self, account: str, wanted: Collection[str] | None) -> dict[str, Own]:
        """What parts of an account have lost alone in this period: those that are named, or all."""
        heads = self.heads.get(account, Heads({}))
        if not heads.knows(wanted):
            asked = wanted and [part for part in wanted if part not in heads.owns]
            first = self._first.get(account)
            read = of_parts.read_heads(self.execute, account, first and first.divided, asked)
            # what was charged in this draft is newer than what was read
            heads = Heads({**heads.owns, **read, **heads.owns}, complete=wanted is None)
            self.heads = {**self.heads, account: heads}
        return of_parts.current(heads.found(wanted), self.accounts[account].divided)

    def append(self, facts: Mapping[str, Any], after: Mapping[str, Charged]) -> EntryRow:
        """Append an entry, and the accounts and parts as they are after it."""
        number = self.at.number + 1
        changed, owns, totals = accounts.effect_of(after, number, lambda name, part: self.heads[name].number(part))
        row = book.entry_after(self.at, {**facts, "totals": totals})
        self.rows, self.at = (*self.rows, row), Head(row.number, row.chain, self.at.answers)
        self.accounts = {**self.accounts, **changed}
        if owns:
            self.heads = {**self.heads, **{name: self.heads[name].after(own) for name, own in owns.items()}}
            numbers = {name: self.charged.get(name, {}) | dict.fromkeys(own, number) for name, own in owns.items()}
            self.charged = {**self.charged, **numbers}
        return row

    def answer(self, number: int, stored: Stored) -> None:
        """Store an answer, and count it."""
        self.answers = {**self.answers, number: stored}
        self.at = self.at._replace(answers=self.at.answers + 1)

    def discard(self, row: EntryRow, stored: Stored | None) -> None:
        """Put a mark in place of the answer of an entry. An answer that is there is removed."""
        mark = answers.discarded(row.chain)
        if stored is None and row.number not in self.answers:
            self.answer(row.number, mark)
        elif stored is None:
            self.answers = {**self.answers, row.number: mark}
        else:
            self.execute(
                "UPDATE answers SET data = NULL, digest = ?, not_private = 0 WHERE number = ?", mark.digest, row.number
            )

    def try_job(self, job: _Job) -> None:
        """Run one job. If it fails, it leaves nothing here, and the others go on."""
        kept = self.rows, self.at, self.answers, self.accounts, self.heads, self.charged
        job.error = None
        try:
            job.result = job.decide(self, *job.found)
        except Exception as error:
            if self.failed:  # the database cannot go on with this transaction
                raise
            self.rows, self.at, self.answers, self.accounts, self.heads, self.charged = kept
            job.error = error

    def statements(self) -> list[Statement]:
        """What writes it all."""
        if self.at == self._before:
            return []
        statements = book.moving(self._before, self.at, self.rows, self.answers)
        for account, numbers in self.charged.items():
            statements += of_parts.moving(account, numbers, self.at)
        return statements

    def known(self) -> Known | None:
        """What is known once it is written. None if the last entry was not checked."""
        last = self.rows[-1] if self.rows else self._last
        if last is None or len(self.accounts) > _REMEMBERED:
            return last and Known(last, {}, self.at)
        return Known(last, self.accounts, self.at, {name: heads.kept() for name, heads in self.heads.items()})


class _Job:
    """One thread's part of a transaction, and the lock at which the thread waits until it is done, or has to lead."""

    __slots__ = ("decide", "done", "error", "found", "leads", "reads", "result", "wake")

    def __init__(self, decide: Callable[..., Any], reads: Sequence[Statement]) -> None:
        self.decide, self.reads = decide, reads
        self.found: list[Rows] = []
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = self.leads = False
        self.wake = threading.Lock()
        self.wake.acquire()


class Writer:
    """Writes for all threads of this process, and remembers what the last entry proves."""

    def __init__(self, store: Store, ledger: str) -> None:
        self.store, self.ledger = store, ledger
        self.checkpoint: Checkpoint | None = store.checkpoint_of(ledger)
        self.second = second_checkpoint(ledger, self.checkpoint, store.shown)
        self.known: Known | None = None
        self._begin_process()
        _writers.add(self)

    def _begin_process(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._waiting: list[_Job] = []
        self._leader: int | None = None

    def write(self, decide: Callable[..., T], *reads: Statement) -> T:
        """What `decide(draft, *found)` returns, once what it wrote is durable. `found` are the rows of `reads`."""
        if self._process != os.getpid():  # a fork that Python did not see
            self._begin_process()
        job, thread = _Job(decide, reads), threading.get_ident()
        try:
            with self._lock:
                if self._leader == thread:
                    raise RuntimeError("a transaction of a ledger inside another one")
                self._waiting.append(job)
                job.leads = self._leader is None
                if job.leads:
                    self._leader = thread
            if not job.leads:
                job.wake.acquire()
            if not job.done:
                self._lead(job)
        finally:
            self._leave(job)
        if job.error is not None:
            raise job.error
        return job.result  # type: ignore[no-any-return]

    def _lead(self, own: _Job) -> None:
        """Write for all that wait now."""
        group: list[_Job] = []
        try:
            with self._lock:
                self._leader = threading.get_ident()
                group, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
            self._write_together(group)
        except BaseException as error:
            for job in group:
                job.error = job.error or (error if job is own else _error_for_others(error))
        finally:
            for job in group:
                job.done = True
                if job is not own:
                    job.wake.release()

    def _leave(self, job: _Job) -> None:
        """Let the next one lead, if this one did. A job that was interrupted before it was begun is dropped."""
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
            if not job.leads:
                return
            self._leader = None
            if self._waiting:
                following = self._waiting[0]
                following.leads, self._leader = True, -1
                following.wake.release()

    def _write_together(self, group: Sequence[_Job]) -> None:
        if self.second is not None:
            self.second.try_folder()
        with self.store.alone(), self._turn() as turn:
            draft = self._write_at_once(group, turn) or self._write_after_reading(group, turn)
            self.known = draft.known() or self.known
            note = turn or self.checkpoint
            if note is not None:  # also for a job that found its entry: the checkpoint may still be missing
                state = opening.state_of(self.store, self.ledger, draft.at)
                note.advance(state)
                if self.second is not None:
                    self.second.advance(state)

    def _turn(self) -> AbstractContextManager[LockedCheckpoint | None]:
        """The lock of the checkpoint, if processes wait for each other there, or their turn to use the database."""
        if self.checkpoint is None:
            return nullcontext()
        if self.store.queues:
            return self.checkpoint.locked("Nothing was spent. Check that process, and ask again.")
        return self.checkpoint.turn()

    def _write_at_once(self, group: Sequence[_Job], turn: LockedCheckpoint | None) -> Draft | None:
        """What was written from the state that is known here, without reading. None if nothing was written: others have
        written since, or a job has to read.

        The checkpoint is compared with the known state, and the statements write nothing if the head is in another.
        """
        known, checkpoint = self.known, turn or self.checkpoint
        if known is None or checkpoint is None or not self.store.at_once or any(job.reads for job in group):
            return None
        state = opening.state_of(self.store, self.ledger, known.at)
        elsewhere = self.second.read() if self.second else None
        if checkpoint.read() != state or elsewhere not in (None, state):
            return None
        draft = Draft(_read_nothing, known.at, known)
        try:
            for job in group:
                draft.try_job(job)
        except _MustRead:
            return None
        statements = draft.statements()
        if not statements:  # a refusal, for instance: it counts only if nobody has written since
            return None
        with self.store.transaction(write=True):
            changed = self.store.finish(statements)
        return draft if _is_moved(changed) else None

    def _write_after_reading(self, group: Sequence[_Job], turn: LockedCheckpoint | None) -> Draft:
        """What was written after the head was locked and read."""
        with self.store.transaction(write=True):
            draft = self._draft(self._execute, group, turn)
            for job in group:
                draft.try_job(job)
            changed = self.store.finish(draft.statements())
        if not _is_moved(changed):
            raise LedgerUnavailable(
                "Another process wrote to the ledger first. Nothing was spent. Ask again.", code="ledger-busy"
            )
        return draft

    def _execute(self, statement: str, *parameters: Any) -> Rows:
        """Run one statement, which the database prepares once."""
        return self.store.run([(statement, *parameters)])[0]

    def _draft(self, execute: Execute, group: Sequence[_Job], turn: LockedCheckpoint | None) -> Draft:
        """An empty draft, after the head is locked and was compared with the checkpoint."""
        known = self.known
        reads: list[Statement] = [(book.HEAD + self.store.lock_head,)]
        if known is not None:
            reads.append(book.since(known.last.number, _FOLLOWED))
        for job in group:
            reads += job.reads
        found = iter(self.store.run(reads))
        at = book.head_in(next(found))
        chains: dict[int, str] = {}
        if known is not None:
            rows = book.followed(known.last, at, next(found))
            if rows:
                chains = {row.number: row.chain for row in (known.last, *rows)}
            known = None if rows is None else known.after(rows, at)
        for job in group:
            job.found = [next(found) for _ in job.reads]
        # with the head locked, the checkpoint cannot be ahead of it
        seen = turn.read() if turn else self.checkpoint.read() if self.checkpoint else None
        opening.check_seen(execute, at, seen, self.ledger, chains)
        elsewhere = self.second.read() if self.second else None
        opening.check_seen(execute, at, elsewhere, self.ledger, chains, by=opening.named_second(self.second))
        return Draft(execute, at, known)

    def standing(self, analyst: str) -> Standing:
        """Each account that a charge of this analyst affects, as it is now."""
        known = self.known
        if known is not None and {WHOLE, analyst} <= known.accounts.keys():
            head, found = self.store.look((book.HEAD,), book.since(known.last.number, _FOLLOWED))
            at = book.head_in(head)
            rows = book.followed(known.last, at, found)
            if rows is not None:
                known = self.known = known.after(rows, at)
                return {name: known.accounts[name] for name in dict.fromkeys((WHOLE, analyst))}
        with self.store.transaction(write=False) as execute:
            at = book.head(execute)
            standing = accounts.standing(execute, analyst, at)
            last = book.row(execute, at.number)
        kept = known is not None and known.last == last and len(known.accounts) < _REMEMBERED
        self.known = (
            known._replace(accounts={**known.accounts, **standing}, at=at)
            if known is not None and kept
            else Known(last, standing, at)
        )
        return standing

    def read(self, decide: Callable[[Draft], T]) -> T:
        """What `decide(draft)` finds in the state of now. It writes nothing."""
        with self.store.alone(), self.store.transaction(write=False) as execute:
            at, known = book.head(execute), self.known
            if known is not None:
                rows = book.followed(known.last, at, execute(*book.since(known.last.number, _FOLLOWED)))
                known = None if rows is None else known.after(rows, at)
            draft = Draft(execute, at, known or Known(book.last_row(execute, at), {}, at))
            found = decide(draft)
            self.known = draft.known() or self.known
        return found


class _MustRead(Exception):
    """A job needs more than what is known."""


def _read_nothing(*_: Any) -> Rows:
    raise _MustRead


def _is_moved(changed: Sequence[int]) -> bool:
    """Whether the statements of a draft were run on the head for which they were made."""
    return changed.count(1) == len(changed)


def _error_for_others(error: BaseException) -> BaseException:
    """The error of a transaction, for a thread that another one wrote for."""
    if isinstance(error, DiscreetError):
        return type(error)(str(error), code=error.code)
    return LedgerUnavailable(
        "The thread that wrote to the ledger was stopped. A charge may have been recorded: ask again with the same key="
        "."
    )


_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


def _after_in_child() -> None:
    """The threads that waited, or wrote for others, are not in a forked child."""
    for writer in list(_writers):
        writer._begin_process()


os.register_at_fork(after_in_child=_after_in_child)

"""One account for every release on a data set: charged before anything is read or drawn, never refunded."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self

from discreet.errors import BudgetExhausted, DiscreetError, InvalidArgument, LedgerDamaged
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.rules import CLOSED, Rule, Vector
from discreet.guarantees.unit import Unit
from discreet.ledger import answers, book, opening, verification
from discreet.ledger.book import WHOLE, Head, Row
from discreet.ledger.entry import Entry, entry_of
from discreet.ledger.request import Identity, Request, public_text, request_of
from discreet.ledger.store import Execute, Store, open_store
from discreet.rational import LEDGER_UNIT, exactly

Standing = dict[str, tuple[Rule, Vector]]
"""For each account its rule, and what was spent."""
_in_memory: weakref.WeakValueDictionary[str, Ledger] = weakref.WeakValueDictionary()


class Ledger:
    """What may be spent on one data set, and what was; in a file, in PostgreSQL, or in memory for trying things out.

    Promise: however the questions are chosen, by however many processes, everything charged here together keeps `limit`
    for one unit of `protects`.

    >>> ledger = Ledger.open(":memory:", protects=Unit("patient_id"), limit=Pure(epsilon=1))
    >>> ledger.remaining
    Pure(epsilon=1.0)
    """

    def __init__(self, store: Store, terms: opening.Terms, analyst: str = WHOLE) -> None:
        self._store, self._terms, self._analyst = store, terms, analyst
        self._checkpoint = store.checkpoint_of(terms.ledger)

    @classmethod
    def open(
        cls,
        target: Any,
        *,
        protects: Unit | None = None,
        limit: Guarantee | None = None,
        rule: str | Rule | None = None,
        checkpoint: Any = None,
    ) -> Self:
        """The ledger at `target`: a path, `postgresql://host/database#schema`, or ":memory:".

        It is made when missing, which takes `protects` and `limit`; `rule` is then the natural one for the limit unless
        named. When present, terms that are given must be its own. `checkpoint` names the file that remembers the last
        entry, so that an old copy put back is noticed: by default beside the ledger, or for PostgreSQL in the user's
        folder for state.
        """
        store = open_store(str(target), None if checkpoint is None else str(checkpoint))
        ledger = cls(store, opening.opened(store, protects, limit, rule))
        if str(target) == ":memory:":
            _in_memory[ledger._terms.ledger] = ledger
        return ledger

    @classmethod
    def adopt(cls, target: Any, *, why: str, checkpoint: Any = None) -> Self:
        """Open a ledger that was moved or restored without its checkpoint, and record that you answer for it.

        Do this only when no other copy of it was charged since: what was spent there is not known here.
        """
        reason = _reason(why)
        store = open_store(str(target), None if checkpoint is None else str(checkpoint))
        ledger = cls(store, opening.adopted(store))
        with store.transaction(write=True) as execute:
            at, rule, spent = ledger._now(execute)
            row = ledger._decree(execute, at, "adoption", reason, rule, spent)
        ledger._note(row)
        return ledger

    def for_analyst(self, name: str, *, limit: Guarantee | None = None, rule: str | Rule | None = None) -> Self:
        """The same ledger, seen and charged by one analyst, within a limit of their own under that of the data set.

        The account is made when missing, which takes `limit`. Its entries, keys and answers are the analyst's alone.
        """
        if not isinstance(name, str) or not name or name != public_text(name):
            raise InvalidArgument("An analyst needs a name: a short text, such as the user name of a person.")
        account = type(self)(self._store, self._terms, name)
        with self._store.transaction(write=False) as execute:
            present = book.terms(execute, name)
        if present is not None:
            opening.check_same(present.rule, limit, rule, f"The account of {name}")
            return account
        if limit is None:
            raise InvalidArgument(f"{name} has no account here yet. Say what they may spend, with limit=.")
        own = opening.checked_rule(limit, rule, self.protects).fixed()
        if type(self._like(own)) is not type(self._like(self.rule)):
            raise InvalidArgument("An analyst's limit must be of the kind of the data set's: both in ε, or both in ρ.")
        with self._store.transaction(write=True) as execute:
            at = book.head(execute, self._store.lock_head)
            present = book.terms(execute, name)
            if present is None:
                row = account._decree(execute, at, "account", f"an account for {name}", own, own.nothing)
        if present is not None:  # made by another process at this moment
            return self.for_analyst(name, limit=limit, rule=rule)
        account._note(row)
        return account

    # --- the terms ----------------------------------------------------------------------------------------

    @property
    def protects(self) -> Unit:
        """Who is protected."""
        return self._terms.protects

    @property
    def rule(self) -> Rule:
        """How costs add up, and when the limit is reached."""
        with self._store.transaction(write=False) as execute:
            return self._accounts(execute)[self._analyst]

    @property
    def limit(self) -> Guarantee:
        """What may be spent in all, or by this analyst."""
        return self.rule.limit

    @property
    def analyst(self) -> str | None:
        """Whose account is charged beside that of the data set; None for the owner's own view."""
        return self._analyst or None

    def raise_limit(self, limit: Guarantee, *, why: str) -> Entry:
        """Raise the limit, as an entry by the owner. What was spent stays spent; the promise is now the new limit."""
        checked = opening.checked_limit(limit, self.protects)
        with self._store.transaction(write=True) as execute:
            at, rule, spent = self._now(execute)
            row = self._decree(execute, at, "limit", why, rule.raised(checked), spent)
        return self._note(row)

    def renew(self, limit: Guarantee | None = None, *, why: str) -> Entry:
        """Begin a new period with a fresh limit (by default as large as the last), as an entry by the owner.

        People who are in the data in both periods are protected by both limits together: their ε and δ add.
        """
        with self._store.transaction(write=True) as execute:
            at, rule, _ = self._now(execute)
            fresh = rule if limit is None else opening.checked_rule(limit, rule.name, self.protects).fixed()
            row = self._decree(execute, at, "renewal", why, fresh, fresh.nothing)
        return self._note(row)

    def _now(self, execute: Execute) -> tuple[Head, Rule, Vector]:
        """The head, locked, and the rule and the total of this account."""
        at = book.head(execute, self._store.lock_head)
        return at, self._accounts(execute)[self._analyst], book.spent(execute, self._analyst, at)

    def _decree(self, execute: Execute, at: Head, kind: str, why: str, rule: Rule, total: Vector) -> Row:
        """Record an entry of the owner's own, which sets the rule and the total of one account."""
        totals = {WHOLE: book.spent(execute, WHOLE, at), self._analyst: total}
        facts = {"kind": kind, "analyst": self._analyst, "asked": _reason(why), "content": book.with_rule(rule)}
        return book.append(execute, at, facts | {"costs": {}, "totals": totals})

    # --- charging -----------------------------------------------------------------------------------------

    def charge(
        self,
        guarantee: Guarantee,
        *,
        asked: str,
        mechanism: str = "",
        key: str | None = None,
        identity: Identity | None = None,
    ) -> Entry:
        """Reserve the cost of a release, durably, before any data is read; BudgetExhausted, and nothing recorded, when
        it passes the limit.

        A request that was made before, with the same `key` or the same public `identity`, finds its own reservation
        again at no cost. A key that was used for another request is refused.
        """
        stated = guarantee.stated_for(self.protects)
        request = request_of(stated, asked, mechanism, key, identity)
        if request.can_be_known:
            with self._store.transaction(write=False) as execute:
                if (found := self._made_before(execute, request)) is not None:
                    return found
        seen = self._checkpoint.read() if self._checkpoint else None
        with self._store.transaction(write=True) as execute:
            at = book.head(execute, self._store.lock_head)
            if (found := self._made_before(execute, request)) is not None:
                return found
            opening.check_seen(execute, at, seen, self._terms.ledger)
            standing = self._standing(execute, at)
            totals = {name: rule.spend(spent, stated) for name, (rule, spent) in standing.items()}
            refused = [name for name, (rule, _) in standing.items() if not rule.fits(totals[name])]
            row = None if refused else self._append_charge(execute, at, request, standing, totals)
        if row is None:
            raise self._refusal(stated, standing, refused[0])
        return self._note(row)

    def _append_charge(
        self, execute: Execute, at: Head, request: Request, standing: Standing, totals: dict[str, Vector]
    ) -> Row:
        costs = {
            name: tuple(new - old for new, old in zip(totals[name], spent, strict=True))
            for name, (_, spent) in standing.items()
        }
        facts = {"kind": "charge", "analyst": self._analyst, "costs": costs, "totals": totals}
        return book.append(execute, at, request._asdict() | facts)

    def _refusal(self, stated: Guarantee, standing: Standing, refused: str) -> BudgetExhausted:
        """Why a charge is refused, and the largest of its kind that every account would still take."""
        remaining = self._largest(standing, stated)
        text = standing[refused][0].refusal(stated, remaining)
        if self._analyst:
            text += f" The limit is that of {'all analysts together' if refused == WHOLE else refused}."
        return BudgetExhausted(text, remaining=remaining)

    def _made_before(self, execute: Execute, request: Request) -> Entry | None:
        """The reservation of a request that was made before."""
        for column in ("retry_key", "identity"):
            value = getattr(request, column)
            row = value and book.known(execute, self._analyst, column, value)
            if not row:
                continue
            if row.request != request.request:
                raise InvalidArgument(
                    "This key was used for another request: another mechanism, guarantee or question. "
                    "Nothing was spent. Use a new key for a new request."
                )
            return entry_of(row, answered=bool(execute("SELECT 1 FROM answers WHERE number = ?", row.number)))
        return None

    def _accounts(self, execute: Execute, *names: str) -> dict[str, Rule]:
        """The rules in force: that of the data set, and the analyst's own."""
        found = {name: book.terms(execute, name) for name in names or dict.fromkeys((WHOLE, self._analyst))}
        return {name: row.rule for name, row in found.items() if row is not None}

    def _note(self, row: Row) -> Entry:
        """The new entry, once it is durable and its checkpoint noted."""
        if self._checkpoint is not None:
            self._checkpoint.advance(opening.seen_of(self._store, self._terms.ledger, Head(row.number, row.chain)))
        return entry_of(row, answered=False)

    # --- answers ------------------------------------------------------------------------------------------

    def keep(self, entry: Entry, value: Any, *, not_private: bool = False) -> tuple[Any, bool]:
        """Store what was drawn for a reservation, before it is handed out; back comes what is to be handed out, and
        whether it was made in test mode. The first to store decides.
        """
        return answers.keep(self._store, entry, value, not_private=not_private)

    def answer(self, entry: Entry) -> tuple[Any, bool]:
        """What was stored for an answered entry, and whether it was made in test mode. Analysts have their own only."""
        if self._analyst not in (WHOLE, entry.analyst):
            raise InvalidArgument(f"{self._analyst} has no answer with the receipt {entry.receipt}.")
        return answers.kept(self._store, entry)

    # --- looking ------------------------------------------------------------------------------------------

    @property
    def spent(self) -> dict[str, float]:
        """The coordinates used so far, by name; infinite where one no longer counts. The guarantee is the limit."""
        rule, vector = self._standing_now()[self._analyst]
        return {
            label: math.inf if units >= CLOSED else units / LEDGER_UNIT
            for label, units in zip(rule.labels, vector, strict=True)
        }

    @property
    def remaining(self) -> Guarantee | None:
        """The largest single pure release (of the limit's kind, for a limit not in ε) that would still fit, or None."""
        return self._largest(self._standing_now())

    def remaining_after(self, entry: Entry) -> Callable[[], Guarantee | None]:
        """What remained after an entry, worked out only when it is called for."""
        return partial(self._left_after, entry)

    def _left_after(self, entry: Entry) -> Guarantee | None:
        with self._store.transaction(write=False) as execute:
            rules = self._accounts(execute)
        return self._largest({name: (rule, entry.totals[name]) for name, rule in rules.items()})

    def _standing_now(self) -> Standing:
        with self._store.transaction(write=False) as execute:
            return self._standing(execute, book.head(execute))

    def _standing(self, execute: Execute, at: Head) -> Standing:
        """Each account that a charge touches: its rule, and what was spent."""
        return {name: (rule, book.spent(execute, name, at)) for name, rule in self._accounts(execute).items()}

    @classmethod
    def _largest(cls, standing: Standing, like: Guarantee | None = None) -> Guarantee | None:
        left = [rule.largest(vector, like or cls._like(rule)) for rule, vector in standing.values()]
        known = [one for one in left if one is not None]
        return min(known, key=_size) if len(known) == len(left) else None

    @staticmethod
    def _like(rule: Rule) -> Guarantee:
        return Pure(epsilon=1) if isinstance(rule.limit, Approx) else rule.limit

    @property
    def count(self) -> int:
        """How many entries there are, besides the opening."""
        with self._store.transaction(write=False) as execute:
            return book.head(execute).number

    @property
    def analysts(self) -> tuple[str, ...]:
        """Who has an account of their own."""
        with self._store.transaction(write=False) as execute:
            return book.analysts(execute) if self._analyst == WHOLE else (self._analyst,)

    @property
    def target(self) -> str:
        """Where the ledger is kept, as it may be printed: without a password."""
        return self._store.shown

    def entries(self, first: int = 1, last: int | None = None) -> tuple[Entry, ...]:
        """The record, oldest first: all of it, or from one number to another. An analyst sees their own entries."""
        return tuple(self._walk(first, last))

    def recall(self, version: str) -> tuple[Entry, ...]:
        """The releases that a version of this package made: those to look at when it is found to be wrong."""
        return tuple(e for e in self._walk(1, None) if e.code_version == version and e.kind == "charge")

    def _walk(self, first: int, last: int | None) -> Iterator[Entry]:
        for row, answered in verification.walked(self._store, first, last):
            if self._analyst in (WHOLE, row.analyst):
                yield entry_of(row, answered=answered)

    def verify(self) -> int:
        """Walk the whole record: every hash, every cost from its recorded guarantee, every total, every answer.

        Gives back the number of entries, the opening included; LedgerDamaged when anything is amiss.
        """
        return verification.verified(self._store, self._terms.ledger)

    def close(self) -> None:
        """Let go of the database; the ledger opens it again when it is used."""
        self._store.close()

    def __repr__(self) -> str:
        rule = self.rule
        terms = f"protects={self.protects!r}, limit={rule.limit!r}, rule={rule.name!r}"
        return f"<Ledger {self.target}{f' for {self._analyst}' if self._analyst else ''}: {terms}>"

    # --- never a second purse -----------------------------------------------------------------------------

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened_again, (self._store.again(), self._terms.ledger, self._analyst)


def _opened_again(again: tuple[str, str | None], identity: str, analyst: str) -> Ledger:
    """The very ledger that was pickled."""
    if again[0] == ":memory:":
        ledger = _in_memory.get(identity)
        if ledger is None:
            raise DiscreetError(
                "A ledger in memory cannot go to another process: there must not be a second purse. "
                'Use a file: Ledger.open("clinic.ledger", …).'
            )
    else:
        ledger = Ledger.open(again[0], checkpoint=again[1])
    if ledger._terms.ledger != identity:
        raise LedgerDamaged("Another ledger is now where the pickled one was. Put the right one back.")
    return ledger.for_analyst(analyst) if analyst else ledger


def _reason(why: Any) -> str:
    if not isinstance(why, str) or not why.strip():
        raise InvalidArgument('Say why, for the record: why="the ethics board agreed on 3 May".')
    return public_text(why)


def _size(guarantee: Guarantee) -> Any:
    return next(exactly(getattr(guarantee, name)) for name in ("epsilon", "rho", "mu") if hasattr(guarantee, name))

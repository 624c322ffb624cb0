"""One account for all releases from a data set: charged before anything is read or drawn, never refunded."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar

from discreet.errors import DiscreetError, InvalidArgument, LedgerDamaged
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.rules.best_of import Rule
from discreet.guarantees.unit import Unit
from discreet.ledger import accounts, answers, book, heads, marks, opening, parts, verification
from discreet.ledger.accounts import Account, Charged, Standing, account_in
from discreet.ledger.book import WHOLE, Stored
from discreet.ledger.entry import Entry, entry_of
from discreet.ledger.parts import FindOwns, check_names, naming
from discreet.ledger.periods import PartBudget, Period, budgets_of, periods_of
from discreet.ledger.reports import showing
from discreet.ledger.stores.opening import open_store
from discreet.ledger.stores.store import IN_MEMORY, Rows, Statement, Store
from discreet.ledger.texts.record import state_for
from discreet.ledger.texts.request import Identity, Request, key_reused_error, reason_of, request_of
from discreet.ledger.writer import Draft, Writer

_in_memory: weakref.WeakValueDictionary[str, Store] = weakref.WeakValueDictionary()
T = TypeVar("T")


class Ledger:
    """The budget of one data set, and what was spent: in a file, in PostgreSQL, or in memory to try things out.

    Promise: however the questions are chosen, by however many processes, everything charged here together keeps `limit`
    for one unit of `protects`. So do charges on parts alone, if each reads nothing but its parts: decision 0024.

    >>> from discreet import Pure, person
    >>> ledger = Ledger.open(":memory:", protects=person("patient_id"), limit=Pure(epsilon=1))
    >>> ledger.remaining
    Pure(epsilon=1.0)
    """

    _prepaid = False  # whether a charge costs its own account only, because that was paid before

    def __init__(
        self,
        store: Store,
        terms: opening.LedgerTerms,
        analyst: str = WHOLE,
        writer: Writer | None = None,
        parts: tuple[str, ...] = (),
        division: int = 0,
    ) -> None:
        self._store, self._terms, self._analyst, self._parts, self._division = store, terms, analyst, parts, division
        self._writer = writer or Writer(store, terms.ledger)
        self._marks = marks.Marks()
        self._replay: tuple[str, Stored | None] = ("", None)

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

        A new ledger is created if none exists, which needs `protects` and `limit`. If `rule` is not given, the natural
        rule for the limit is used. If the ledger exists, the given terms must match its own. `checkpoint` is the file
        that remembers the last entry, so that an old copy of the ledger is noticed. By default it is next to the
        ledger, or for PostgreSQL in the user's state directory.
        """
        store = open_store(target, checkpoint)
        ledger = cls(store, opening.open_ledger(store, protects, limit, rule))
        if store.shown == IN_MEMORY:
            _in_memory[ledger._terms.ledger] = store
        return ledger

    @classmethod
    def adopt(cls, target: Any, *, why: str, checkpoint: Any = None) -> Self:
        """Open a ledger that was moved or restored without its checkpoint, and record that you take responsibility for
        it.

        Do this only if no other copy of it was charged since. What was spent there is not known here.
        """
        reason = reason_of(why)
        store = open_store(target, checkpoint)
        ledger = cls(store, opening.adopt_ledger(store))
        ledger._decree("adoption", reason, lambda account, *_: accounts.unchanged(account))
        return ledger

    def for_analyst(self, name: str, *, limit: Guarantee | None = None, rule: str | Rule | None = None) -> Self:
        """The same ledger, seen and charged by one analyst, within their own limit under the limit of the data set.

        The account is created if it does not exist, which needs `limit`. Only the analyst sees its entries, keys and
        answers.
        """
        self._check_owner()
        present = opening.terms_of_analyst(self._store, name)
        account = type(self)(self._store, self._terms, name, self._writer, self._parts, self._division)
        if present is None:
            if limit is None:
                raise InvalidArgument(
                    f"{name} has no account here yet. The owner of the ledger opens one: "
                    f"ledger.for_analyst({name!r}, limit=dp.Approx(epsilon=1, delta=1e-7)).",
                    code="ledger-no-account",
                )
            own = opening.validate_rule(limit, rule, self.protects).fixed()
            accounts.check_same_kind(own, self.rule)
            if self._writer.write(partial(account._open_account, own)):
                return account
            with self._store.transaction(write=False) as execute:
                present = book.terms(execute, name)
        assert present is not None
        opening.check_same(present.rule, self.protects, limit, rule, f"The account of {name}")
        return account

    def _within(self, *names: str, division: int = 0) -> Self:
        """The same ledger, which charges only these parts of the data, and shows what remains to them: for code that
        makes the engine read nothing else. `division` is a number for the declarations that say who is in which part.
        """
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        view._parts = check_names(names, self.protects, self._parts)
        view._division = division or self._division
        view._marks, view._replay = marks.Marks(), ("", None)
        return view

    # --- the terms ----------------------------------------------------------------------------------------

    @property
    def protects(self) -> Unit:
        """Who is protected."""
        return self._terms.protects

    @property
    def rule(self) -> Rule:
        """How costs add up, and when the limit is reached."""
        return self._writer.standing(self._analyst)[self._analyst].rule

    @property
    def limit(self) -> Guarantee:
        """The total budget, or the budget of this analyst."""
        return self.rule.limit

    @property
    def analyst(self) -> str | None:
        """The analyst whose account is also charged. None for the owner's view."""
        return self._analyst or None

    def raise_limit(self, limit: Guarantee, *, why: str, analyst: str | None = None) -> Entry:
        """Raise the limit of the data set, or of an analyst, as an entry by the owner. What was spent stays spent. The
        promise is now the new limit.
        """
        checked = opening.validate_limit(limit, self.protects)

        def raised(account: Account, *_: Any) -> Charged:
            return accounts.unchanged(account._replace(terms=book.with_rule(account.rule.raised(checked))))

        return self._account(analyst)._decree("limit", why, raised)

    def renew(self, limit: Guarantee | None = None, *, why: str, analyst: str | None = None) -> Entry:
        """Begin a new period with a new limit (by default the same as the last), as an entry by the owner. Other
        accounts do not change.

        People who are in the data in both periods are protected by both limits together: their ε and δ add up. A view
        of parts renews only these.
        """
        if self._parts and limit is not None:
            raise InvalidArgument(
                "A part is renewed with the limit of its account, which is the same for all parts: leave out limit.",
                code="ledger-part-limit",
            )

        own = self._account(analyst)

        def renewed(account: Account, number: int, find: FindOwns) -> Charged:
            if own._parts:
                return accounts.renew_parts(own._analyst, account, own._parts, self.protects, find, own._division)
            rule = account.rule
            if limit is not None:
                same = opening.validate_limit(limit, self.protects).__class__ is rule.limit.__class__
                rule = opening.validate_rule(limit, rule.name if same else None, self.protects).fixed()
            return accounts.renew_all(account, rule, number)

        return own._decree("renewal", why, renewed)

    def _account(self, analyst: str | None) -> Self:
        self._check_owner()
        return self if analyst is None else self.for_analyst(analyst)

    def _check_owner(self) -> None:
        if self._analyst:
            raise InvalidArgument(
                f"This is {self._analyst}'s view of the ledger. Only the owner can open and change accounts.",
                code="ledger-owner-only",
            )

    def _open_account(self, rule: Rule, draft: Draft) -> bool:
        """Open the account of this analyst, unless another process or thread was faster."""
        if self._analyst in draft.accounts or book.terms(draft.execute, self._analyst) is not None:
            return False
        own = Account(book.with_rule(rule), rule.nothing)
        self._append(draft, "account", f"an account for {self._analyst}", accounts.unchanged(own))
        return True

    def _decree(self, kind: str, why: str, change: Callable[[Account, int, FindOwns], Charged]) -> Entry:
        """Record an entry by the owner, which sets the rule and the total of this account."""
        reason = reason_of(why)

        def decide(draft: Draft) -> Entry:
            account = draft.standing(self._analyst)[self._analyst]
            return self._append(draft, kind, reason, change(account, draft.at.number + 1, draft.owns))

        return self._writer.write(decide)

    def _append(self, draft: Draft, kind: str, why: str, changed: Charged) -> Entry:
        content = book.with_rule(changed.account.rule)
        whole = accounts.unchanged(draft.standing(WHOLE)[WHOLE])
        facts: dict[str, Any] = {"kind": kind, "analyst": self._analyst, "asked": why, "content": content}
        facts["costs"] = naming(changed.owns, self._division)
        after = {WHOLE: whole, self._analyst: changed._replace(account=changed.account._replace(terms=content))}
        return entry_of(draft.append(facts, after), "reserved")

    # --- charging -----------------------------------------------------------------------------------------

    def charge(
        self,
        guarantee: Guarantee,
        *,
        asked: str,
        mechanism: Any = "",
        key: str | None = None,
        identity: Identity | None = None,
        about: Any = None,
        mark: str = "",
    ) -> Entry:
        """Reserve the cost of a release, durably, before any data is read. If it exceeds the limit, raise
        BudgetExhausted and record nothing.

        A request that was made before, with the same `key` or the same public `identity`, gets its existing reservation
        at no cost. A key that was used for a different request is refused: another mechanism, guarantee, text or
        identity, or a difference in anything else that it is `about`. `mark` says what is measured, for `marked`.
        """
        if not isinstance(guarantee, Guarantee):
            raise InvalidArgument("The charge must be a guarantee, such as dp.Pure(epsilon=0.1).", code="wrong-type")
        stated = state_for(guarantee, self.protects)
        request = request_of(stated, asked, mechanism, key, identity, about, self._parts)
        self._announce(request)
        while True:
            found, request = self._known(request)
            if found is not None and found.state == "answered":
                return found
            columns = request.columns()
            columns["asked"] = marks.add_mark(request.asked, marks.with_question(mark, request.question))
            made = self._writer.write(partial(self._reserve, request, columns), *self._lookups(request))
            if not isinstance(made, Entry):
                raise accounts.refusal_of(stated, *made, of_analyst=bool(self._analyst))
            if made.state != "discarded":  # otherwise it was discarded just now
                return made

    def _announce(self, request: Request) -> None:
        """Hear of a request that is about to be charged."""

    def _reserve(
        self, request: Request, columns: dict[str, Any], draft: Draft, *found: Rows
    ) -> Entry | tuple[Standing, str]:
        """The entry of a request, or the accounts and the one of them that refuses it."""
        before = self._made_before(request, found, draft)
        if before is not None:
            return before
        everyone = draft.standing(self._analyst)
        standing = {self._analyst: everyone[self._analyst]} if self._prepaid else everyone
        costs = {name: account.cost(request.content) for name, account in standing.items()}
        after, refused = accounts.charge_all(standing, costs, self._parts, self.protects, draft.owns, self._division)
        if refused:
            return self._seen(standing, draft.owns), refused[0]
        after = {name: accounts.unchanged(account) for name, account in everyone.items()} | after
        costs |= naming(self._parts, self._division)
        row = draft.append({**columns, "kind": "charge", "analyst": self._analyst, "costs": costs}, after)
        return entry_of(row, "reserved", costs=costs, totals={name: one.account.spent for name, one in after.items()})

    def _lookups(self, request: Request) -> list[Statement]:
        """The statements that look for a request that was made before."""
        return [book.charged(self._analyst, column, value) for column, value in request.known_by()]

    def _known(self, request: Request) -> tuple[Entry | None, Request]:
        """The reservation of a request that was made before, and the request as it would be recorded: one whose answer
        was discarded is made anew.
        """
        while True:
            reads = self._lookups(request)
            found = self._made_before(request, self._store.look(*reads)) if reads else None
            if found is None or found.state != "discarded":
                return found, request
            request = request.again()

    def _made_before(self, request: Request, found: Sequence[Rows], draft: Draft | None = None) -> Entry | None:
        """The reservation of a request that was made before: in what its look-ups found, or in a draft."""
        for (column, value), rows in zip(request.known_by(), found, strict=True):
            drafted = draft and draft.find(self._analyst, column, value)
            row, stored = (drafted, None) if drafted else book.with_answer(rows) or (None, None)
            if row is None:
                continue
            if not request.is_of(row.request):
                raise key_reused_error()
            state = answers.state_of(row.chain, stored and stored.digest)
            if state == "discarded" and column == "retry_key":
                raise answers.discarded_error()
            if stored is not None:
                self._replay = row.chain, stored
            return entry_of(row, state)
        return None

    def knows(
        self, guarantee: Guarantee, *, asked: str, mechanism: Any, key: str | None, identity: Identity | None
    ) -> bool:
        """Whether `charge` with the same arguments would find an existing reservation, at no cost."""
        stated = guarantee.stated_for(self.protects)
        request = request_of(stated, asked, mechanism, key, identity, parts=self._parts)
        return self._known(request)[0] is not None

    def check_new_key(self, key: str) -> None:
        """Refuse a key of a charge that was made before."""
        if self._store.look(book.charged(self._analyst, "retry_key", key)) != [[]]:
            raise key_reused_error()

    def marked(self, first: str) -> tuple[Entry, ...]:
        """The charges of this analyst on these parts whose mark begins with these 32 characters, oldest first."""
        with self._store.transaction(write=False) as execute:
            numbers = self._marks.numbers(execute, self._analyst, first)
            found = [book.with_answer(execute(*book.numbered(number))) for number in numbers]
        entries = (
            entry_of(row, answers.state_of(row.chain, stored and stored.digest)) for row, stored in filter(None, found)
        )
        return tuple(entry for entry in entries if entry.parts == self._parts)

    def after(self, *guarantees: Guarantee) -> Guarantee | None:
        """What would remain after these releases, if nothing else is charged before. Raises BudgetExhausted if they do
        not fit. Charges nothing.
        """
        return self._look(partial(self._after, guarantees))

    def _after(self, guarantees: Sequence[Guarantee], standing: Standing, find: FindOwns) -> Guarantee | None:
        begun = standing, find  # what first parts leave is not what the analyst has left
        for guarantee in guarantees:
            stated = guarantee.stated_for(self.protects)
            costs = {name: account.rule.coordinates(stated) for name, account in standing.items()}
            charged, refused = accounts.charge_all(standing, costs, self._parts, self.protects, find, self._division)
            if refused:
                seen, of_analyst = self._seen(*begun), bool(self._analyst)
                raise accounts.refusal_of(stated, seen, refused[0], of_analyst=of_analyst, whole=guarantees)
            standing = {name: one.account for name, one in charged.items()}
            find = partial(parts.with_owns, find, {name: one.owns for name, one in charged.items()})
        return accounts.largest(self._seen(standing, find))

    # --- answers ------------------------------------------------------------------------------------------

    def keep(self, entry: Entry, value: Any, *, not_private: bool = False) -> tuple[Any, bool]:
        """Store what was drawn for a reservation, before it is returned to the caller. Returns what to hand out, and
        whether it was made in test mode. If several processes store an answer, the first one wins.
        """
        self._check_own(entry)
        drawn = answers.Kept(entry, value, not_private=not_private)
        if self._writer.write(partial(self._store_answer, drawn), book.numbered(entry.number)):
            return value, not_private
        return self.answer(entry)

    @staticmethod
    def _store_answer(drawn: answers.Kept, draft: Draft, found: Rows) -> bool:
        """Store what was drawn, unless another answer was stored before."""
        entry = drawn.entry
        if answers.find_stored(found, entry) is not None or entry.number in draft.answers:
            return False
        draft.answer(entry.number, drawn.stored())
        return True

    def answer(self, entry: Entry) -> tuple[Any, bool]:
        """What was stored for an answered entry, and whether it was made in test mode. Analysts can read only their
        own.
        """
        self._check_own(entry)
        (chain, stored), self._replay = self._replay, ("", None)
        if chain != entry.chain:  # not the one that `charge` has just found
            stored = answers.find_stored(self._store.look(book.numbered(entry.number))[0], entry)
        return answers.read_stored(stored, entry)

    def discard(
        self,
        requests: Sequence[answers.Named],
        *,
        after: int,
        owed: Sequence[Guarantee] = (),
        asked: str = "",
        key: str | None = None,
    ) -> tuple[Entry, ...]:
        """Discard what was drawn for requests: nobody gets it, what it cost stays charged, and to ask again is a new
        charge. Requests that were answered up to entry `after` are left alone.

        `owed` is what all of them would have cost in their order. What was not charged of it is charged now, as far as
        it fits, so that what remains does not tell how many of them were. `key` is used up. Returns the entries that
        were discarded.
        """
        stated = [cost.stated_for(self.protects) for cost in owed]
        rest = [
            request_of(cost, asked, "discarded", key if place == len(stated) else None, None, parts=self._parts)
            for place, cost in enumerate(stated, 1)
        ]

        def decide(draft: Draft) -> tuple[Entry, ...]:
            found = answers.charges_in(draft.execute, self._analyst, requests, after)
            for row, stored in found:
                draft.discard(row, stored)
            charged = sum(row.number > after for row, _ in found)
            for request in rest[charged:]:
                if any(draft.execute(*one) for one in self._lookups(request)):
                    request = request._replace(retry_key=None)  # the key was used up before
                self._reserve(request, request.columns(), draft, *([] for _ in request.known_by()))
            return tuple(entry_of(row, "discarded") for row, _ in found)

        return self._writer.write(decide)

    def charges_of(self, requests: Sequence[answers.Named], *, after: int) -> tuple[Entry, ...]:
        """The charges of requests that were made after an entry."""
        with self._store.transaction(write=False) as execute:
            found = answers.charges_in(execute, self._analyst, requests, after)
        return tuple(
            entry_of(row, answers.state_of(row.chain, stored and stored.digest))
            for row, stored in found
            if row.number > after
        )

    def _check_own(self, entry: Entry) -> None:
        if self._analyst not in (WHOLE, entry.analyst):
            raise InvalidArgument(
                f"{self._analyst} has no answer with the receipt {entry.receipt}. Choose one of entries().",
                code="ledger-no-answer",
            )

    # --- looking ------------------------------------------------------------------------------------------

    @property
    def spent(self) -> dict[str, float]:
        """The coordinates used so far, by name. Infinite if a coordinate no longer counts. The guarantee is the
        limit.
        """
        return self._standing_now()[self._analyst].coordinates()

    @property
    def remaining(self) -> Guarantee | None:
        """The largest single pure release that would still fit, or None. If the limit is not in ε, the largest of its
        kind.
        """
        return accounts.largest(self._standing_now())

    def remaining_at(self, number: int) -> Guarantee | None:
        """What remained after the entry with this number. Of an account that was opened later, what remains now."""
        return accounts.largest(self._standing_at(number))

    def _look(self, use: Callable[[Standing, FindOwns], T]) -> T:
        """What `use` finds in the accounts of now."""
        standing = None if self._parts else self._writer.standing(self._analyst)
        if standing is not None and all(account.divided is None for account in standing.values()):
            return use(standing, parts.none_alone)
        return self._writer.read(lambda draft: use(draft.standing(self._analyst), draft.owns))

    def _look_at(self, number: int, use: Callable[[Standing, FindOwns], T]) -> T:
        """What `use` finds in the accounts after an entry. Of an account that was opened later, in those of now."""
        with self._store.transaction(write=False) as execute:
            terms = accounts.terms_of(execute, self._analyst, number)
            if self._analyst in terms:
                rows = {name: book.row_at(execute, name, number) for name in terms}
                standing = {name: account_in(rows[name], name, row.content) for name, row in terms.items()}
                return use(standing, partial(heads.find_at, execute, standing, number))
        return Ledger._look(self, use)

    def _seen(self, standing: Standing, find: FindOwns) -> Standing:
        """The accounts as this view sees them."""
        return accounts.seen_by(standing, self._parts, self.protects, find)

    def _standing_at(self, number: int) -> Standing:
        return self._look_at(number, self._seen)

    def remaining_after(self, entry: Entry) -> Callable[[], Guarantee | None]:
        """What remained after an entry, computed only when it is called."""
        return partial(self._left_after, entry)

    def _left_after(self, entry: Entry) -> Guarantee | None:
        if self.protects.lives_in_one is not None:
            return accounts.largest(self._standing_at(entry.number))
        with self._store.transaction(write=False) as execute:
            terms = accounts.terms_of(execute, self._analyst, entry.number)
        found = {name: Account(row.content, entry.totals[name]) for name, row in terms.items()}
        return accounts.largest({name: account.checked() for name, account in found.items()})

    def _standing_now(self) -> Standing:
        return self._look(self._seen)

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
    def periods(self) -> tuple[Period, ...]:
        """What was allowed and spent from each renewal to the next, oldest first."""
        with self._store.transaction(write=False) as execute:
            return periods_of(execute, self._analyst, self.protects, parts=self._parts)

    @property
    def parts(self) -> Mapping[str, PartBudget]:
        """What was spent of each part of the data that was charged alone, and what remains. Of other parts, what was
        charged to everything is spent. Analysts see only the parts that they have charged.
        """
        return self._look(partial(budgets_of, self._analyst, self.protects, self._parts))

    @property
    def target(self) -> str:
        """Where the ledger is stored, in printable form: without a password."""
        return self._store.shown

    def entries(self, first: int = 1, last: int | None = None) -> tuple[Entry, ...]:
        """The record, oldest first: all of it, or from one number to another. Analysts see only their own entries."""
        return tuple(self._walk(first, last))

    def recall(self, version: str) -> tuple[Entry, ...]:
        """The releases made by a version of this package. Use it to check them if that version turns out to be
        wrong.
        """
        return tuple(e for e in self._walk(1, None) if e.code_version == version and e.kind == "charge")

    def _walk(self, first: int, last: int | None) -> Iterator[Entry]:
        for row, state in verification.walk_entries(self._store, first, last):
            if self._analyst in (WHOLE, row.analyst):
                yield entry_of(row, state)

    def verify(self) -> int:
        """Check the whole record: every hash, every cost from its recorded guarantee, every total, every answer.

        Returns the number of entries, including the opening. Raises LedgerDamaged if anything is wrong.
        """
        return verification.verify_entries(self._store, self._terms.ledger, self.protects)

    def close(self) -> None:
        """Close the database. The ledger opens it again when it is used."""
        self._store.close()

    def __repr__(self) -> str:
        rule = self.rule
        terms = f"protects={self.protects!r}, limit={rule.limit!r}, rule={rule.name!r}"
        who = (f" for {self._analyst}" if self._analyst else "") + (
            f" in {', '.join(self._parts)}" if self._parts else ""
        )
        return f"<Ledger {self.target}{who}: {terms}>"

    def _repr_html_(self) -> str:
        return showing.ledger_html(self)

    # --- never a second purse -----------------------------------------------------------------------------

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._store.again(), self._terms.ledger, self._analyst, self._parts, self._division)


def _reopen(again: tuple[str, str | None], identity: str, analyst: str, *within: Any) -> Ledger:
    """The same ledger that was pickled."""
    if again[0] == IN_MEMORY:
        store = _in_memory.get(identity)
        if store is None:
            raise DiscreetError(
                "A ledger in memory cannot be used in another process: that would be a second copy of the budget. "
                'Use a file: Ledger.open("clinic.ledger", …).',
                code="ledger-in-memory",
            )
        ledger = Ledger(store, opening.open_ledger(store, None, None, None))
    else:
        ledger = Ledger.open(again[0], checkpoint=again[1])
    if ledger._terms.ledger != identity:
        raise LedgerDamaged(
            "Another ledger is now in the place of the pickled one. Restore the right one.", code="ledger-replaced"
        )
    view = ledger.for_analyst(analyst) if analyst else ledger
    parts, division = (*within, 0)[:2] if within else ((), 0)
    return view._within(*parts, division=division) if parts else view

"""Views of a ledger: one finds what was bought and charges nothing, others say or list what is charged, and one finds
charges by their receipts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self, TypeVar

from discreet.errors import BudgetExhausted, NotAllowed
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.rules.best_of import Rule
from discreet.ledger.accounts import Standing
from discreet.ledger.book import WHOLE
from discreet.ledger.entry import Entry
from discreet.ledger.ledger import Ledger
from discreet.ledger.marks import question_in
from discreet.ledger.parts import FindOwns
from discreet.ledger.reports.receipts import rule_at
from discreet.ledger.stores.store import Rows
from discreet.ledger.texts.record import state_for, to_text
from discreet.ledger.texts.request import Request, request_of
from discreet.ledger.writer import Draft

T = TypeVar("T")


class NotBought(NotAllowed):
    """The answer was not bought before, and this view of the ledger buys nothing."""

    code = "gateway-not-bought"


class Replays(Ledger):
    """A ledger that charges nothing. What an analyst bought before is found, and so is what `others` bought.

    Promise: nothing is ever written.
    """

    others: Sequence[str] = ()
    until: Mapping[str, int] = MappingProxyType({})
    """The last entry of each account that is found, if later ones are not: what is still answered is not told."""
    as_of: int | None = None
    """What remains is what remained after this entry: later charges may be those of an answer that is not there yet."""
    spends: bool = True
    """Whether the reader has a budget, so that something remains of it."""
    found_elsewhere: bool = False
    """Whether anything was found that another account bought, since this was last set to False."""

    @classmethod
    def of(cls, ledger: Ledger) -> Self:
        """The same ledger, which charges nothing."""
        if isinstance(ledger, cls):
            return ledger
        view = cls(ledger._store, ledger._terms, ledger._analyst, parts=ledger._parts, division=ledger._division)
        view.until = ledger.until if isinstance(ledger, Watched) else {}
        return view

    def charge(self, guarantee: Guarantee, **given: Any) -> Entry:
        """The charge that was made before, with its answer. Raises NotBought if there is none."""
        facts = {name: given.get(name) for name in ("key", "identity", "about")}
        stated = guarantee.stated_for(self.protects)
        request = request_of(stated, given["asked"], given.get("mechanism", ""), **facts, parts=self._parts)
        found, _ = self._known(request)
        if found is None or found.state != "answered":
            raise NotBought("This was not bought before, and this account shows only what was.")
        return found

    def _known(self, request: Request) -> tuple[Entry | None, Request]:
        found, request = super()._known(request)
        if found is not None or not self.others:
            return found, request
        for name in self.others:
            view = type(self)(self._store, self._terms, name)
            view.until = self.until
            theirs, _ = view._known(request._replace(retry_key=None))
            if theirs is not None and theirs.state == "answered":
                self.found_elsewhere = True
                return theirs, request
        return None, request

    def _made_before(self, request: Request, found: Sequence[Rows], draft: Draft | None = None) -> Entry | None:
        entry = super()._made_before(request, found, draft)
        return entry if entry is None or self._is_shown(entry) else None

    def marked(self, first: str) -> tuple[Entry, ...]:
        """The charges of this analyst with this mark, as far as they are found."""
        return tuple(entry for entry in super().marked(first) if self._is_shown(entry))

    def _is_shown(self, entry: Entry) -> bool:
        return entry.number <= self.until.get(self._analyst, entry.number)

    def read_by(self, others: Sequence[str], *, spends: bool) -> Self:
        """The same view for a reader who also sees what others bought, and who may have no budget."""
        view = type(self)(self._store, self._terms, self._analyst, parts=self._parts, division=self._division)
        view.others, view.spends = tuple(name for name in others if name != self._analyst), spends
        return view

    def _check_own(self, entry: Entry) -> None:
        if (entry.analyst or WHOLE) not in self.others:
            super()._check_own(entry)

    def _left_after(self, entry: Entry) -> Guarantee | None:
        """What remained to the reader. After an answer that another account bought, it is what remains to the reader
        now: nobody sees what remains to others.
        """
        own = self.spends and (entry.analyst or WHOLE) == self._analyst
        return super()._left_after(entry) if own else self.remaining

    def _look(self, use: Callable[[Standing, FindOwns], T]) -> T:
        return super()._look(use) if self.as_of is None else self._look_at(self.as_of, use)

    def after(self, *guarantees: Guarantee) -> Guarantee | None:
        """What would remain to the reader. Who has no budget is not told what others left."""
        if self.spends:
            return super().after(*guarantees)
        try:
            super().after(*guarantees)
        except BudgetExhausted:
            raise BudgetExhausted(
                "This was not bought before, and nothing new is asked here.", remaining=None
            ) from None
        return None

    @property
    def remaining(self) -> Guarantee | None:
        """What remains to the reader now. None if they have no budget."""
        return super().remaining if self.spends else None


class Watched(Ledger):
    """A ledger that says which requests it is about to charge, before it does.

    Promise: what a question costs does not depend on answers that have not left: when they were ready may depend on
    rows.
    """

    told: Callable[[str | None, str | None], None] | None = None
    until: Mapping[str, int] = MappingProxyType({})
    """The answers of each account up to this entry have left."""
    as_of: int | None = None
    """The same for accounts that are not in `until`."""

    def marked(self, first: str) -> tuple[Entry, ...]:
        """The charges of this analyst with this mark whose answers have left."""
        last = self.until.get(self._analyst)
        return tuple(entry for entry in super().marked(first) if last is None or entry.number <= last)

    def _announce(self, request: Request) -> None:
        if self.told is not None:
            self.told(request.retry_key, request.identity)


class Listed(Ledger):
    """A ledger that lists its charges, in the order in which they were asked for."""

    @classmethod
    def of(cls, ledger: Ledger) -> Self:
        """The same ledger, which lists what is charged from now on."""
        view = cls(ledger._store, ledger._terms, ledger._analyst, ledger._writer)
        view.listed = []
        return view

    listed: list[Entry]

    def charge(self, guarantee: Guarantee, **given: Any) -> Entry:
        """Charge as the ledger does, and list the entry."""
        entry = super().charge(guarantee, **given)
        self.listed.append(entry)
        return entry


class NotRecorded(NotAllowed):
    """A ledger has no such charge among the receipts that it was given."""

    code = "publish-not-recorded"


class Receipts(Ledger):
    """A ledger that finds charges among given receipts, by what was asked under which declarations, its mechanism and
    its guarantee. The data need not be there: what was stored is all that is read.

    Promise: nothing is ever written, and nothing is drawn. Under other declarations nothing is found.
    """

    receipts: Sequence[Entry] = ()
    used: set[int]

    @classmethod
    def of(cls, ledger: Ledger, receipts: Sequence[Entry]) -> Self:
        """The same ledger, limited to these charges."""
        view = cls(ledger._store, ledger._terms, WHOLE, ledger._writer)
        view.receipts, view.used = tuple(receipts), set()
        return view

    def charge(self, guarantee: Guarantee, **given: Any) -> Entry:
        """The charge among the receipts, with its answer. Raises NotRecorded if there is none."""
        found = self._find(guarantee, given)
        if found is None:
            raise NotRecorded(f"No receipt of the publication is a charge for: {given['asked']}")
        self.used.add(found.number)
        return found

    def knows(self, guarantee: Guarantee, **given: Any) -> bool:
        """Whether such a charge is among the receipts."""
        return self._find(guarantee, given) is not None

    def _find(self, guarantee: Guarantee, given: Mapping[str, Any]) -> Entry | None:
        stated = state_for(guarantee, self.protects)
        request = request_of(stated, given["asked"], given.get("mechanism", ""), None, given.get("identity"))
        facts = request.columns()
        for entry in self.receipts:
            same = entry.asked == facts["asked"] and entry.mechanism == facts["mechanism"]
            same = same and question_in(entry.mark) == request.question
            if same and entry.state == "answered" and to_text(entry.guarantee) == facts["content"]:
                return entry
        return None

    def after(self, *guarantees: Guarantee) -> Guarantee | None:
        """None: nothing is charged here."""
        return None

    @property
    def rule(self) -> Rule:
        """The rule that was in force when the first of the receipts was written."""
        if not self.receipts:
            return super().rule
        return rule_at(self, self.receipts[0].number)

"""What is paid in advance: one charge for many steps, and for each step an account of its own that costs nobody more.

A standing question is one charge on the data set (and on the analyst who asks), followed by an entry with its public
definition. Each step has an account whose limit was paid with that charge. Why this adds up: decision 0028.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Self, TypeVar

from discreet.errors import InvalidArgument
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.rules.best_of import Rule
from discreet.ledger import accounts, answers, book
from discreet.ledger.accounts import Account, Standing
from discreet.ledger.book import WHOLE, EntryRow
from discreet.ledger.entry import Entry, entry_of
from discreet.ledger.ledger import Ledger
from discreet.ledger.parts import FindOwns, named_in
from discreet.ledger.steps import Steps, key_after, name_of, read_name, steps_in
from discreet.ledger.stores.store import Rows
from discreet.ledger.texts.record import canonical
from discreet.ledger.texts.request import Identity, Request, public_text, request_of
from discreet.ledger.views import NotBought
from discreet.ledger.writer import Draft

T = TypeVar("T")
_BATCH = 500
"""So many steps are looked up in one statement."""


def batched(names: Iterable[str]) -> Iterator[list[str]]:
    """Names, a few hundred at a time."""
    left = iter(names)
    while some := list(islice(left, _BATCH)):
        yield some


@dataclass(frozen=True)
class Paid:
    """A standing question as it is recorded: the entry of its charge, its steps, and its definition."""

    entry: Entry
    steps: Steps
    definition: Mapping[str, Any]


def pay(ledger: Ledger, guarantee: Guarantee, steps: Steps, definition: Mapping[str, Any], *, asked: str) -> Paid:
    """Charge all steps at once, and record what they are. The same definition is charged once.

    Promise: the charge and the definition are one transaction: there is never one without the other.
    """
    stated = guarantee.stated_for(ledger.protects)
    if not steps.is_paid_by(stated, ledger.protects):
        raise InvalidArgument("The steps cost more than the charge. Charge more.", code="standing-steps")
    identity = Identity(question=canonical(definition), data_version="standing", arguments=steps.written())
    request = request_of(stated, asked, "a standing question", None, identity, parts=ledger._parts)
    content = book.with_rule(steps.each, {"paid": steps.written(), "standing": dict(definition)})

    def decide(draft: Draft, *found: Rows) -> Any:
        before = len(draft.rows)
        made = ledger._reserve(request, request.columns(), draft, *found)
        if isinstance(made, Entry) and len(draft.rows) > before:
            name = name_of(made.number)
            draft.answer(made.number, answers.Kept(made, name, not_private=False).stored())
            facts = {"kind": "standing", "analyst": name, "asked": public_text(asked), "content": content, "costs": {}}
            _append_account(draft, facts, name, Account(content, steps.each.nothing))
        return made

    made = ledger._writer.write(decide, *ledger._lookups(request))
    if not isinstance(made, Entry):
        raise accounts.refusal_of(stated, *made, of_analyst=ledger.analyst is not None)
    return next(one for one in all_paid(ledger) if one.entry.number == made.number)


def pay_again(payer: Ledger, paid: Paid, step: str) -> None:
    """Charge a step again if a new period has begun since it was last paid. Nothing happens otherwise.

    Promise: the answers of each period keep its limit, also those that were paid in an earlier one. If a unit lives in
    one part, only this part is charged, and with joint steps all parts of the horizon.
    """
    account, number, within = paid.entry.analyst or WHOLE, paid.entry.number, paid.entry.parts
    with payer._store.transaction(write=False) as execute:
        renewals = execute(
            "SELECT number, costs FROM entries WHERE kind = 'renewal' AND number > ? AND analyst IN (?, ?) "
            "ORDER BY number",
            number,
            WHOLE,
            account,
        )
    after = [row for row, costs in renewals if step in paid.steps.renewed_by(named_in(book.vectors(costs)))]
    if not after:
        return
    alone = bool(within) and not paid.steps.joint
    view = Ledger(payer._store, payer._terms, account, payer._writer)
    view = view._within(*((step,) if alone else within)) if within else view
    key = key_after(number, after[-1], step if alone else "")
    identity = Identity(question=key, data_version="standing")
    asked, stated = f"in a new period: {paid.entry.asked}", paid.entry.guarantee
    request = request_of(stated, asked, "a standing question", key, identity, parts=view._parts)

    def decide(draft: Draft, *found: Rows) -> Any:
        before = len(draft.rows)
        made = view._reserve(request, request.columns(), draft, *found)
        if isinstance(made, Entry) and len(draft.rows) > before:
            draft.answer(made.number, answers.Kept(made, key, not_private=False).stored())
        return made

    made = payer._writer.write(decide, *view._lookups(request))
    if not isinstance(made, Entry):
        raise accounts.refusal_of(stated, *made, of_analyst=bool(account))


def _append_account(draft: Draft, facts: Mapping[str, Any], name: str, account: Account) -> EntryRow:
    whole = draft.standing(WHOLE)[WHOLE]
    return draft.append(facts, {WHOLE: accounts.unchanged(whole), name: accounts.unchanged(account)})


def all_paid(ledger: Ledger) -> list[Paid]:
    """The standing questions of this view, oldest first: of one analyst, or for the owner all."""
    found = []
    with ledger._store.transaction(write=False) as execute:
        for (number,) in execute("SELECT number FROM entries WHERE kind = 'standing' ORDER BY number"):
            row = book.row(execute, number)
            named = read_name(row.analyst)
            if named is None:
                raise book.damage_error(f"entry {number} has the wrong name", code="ledger-steps-wrong")
            charge = book.row(execute, named[0])
            if ledger._analyst in (WHOLE, charge.analyst):
                definition = book.part_of(row.content).get("standing")
                known = definition if isinstance(definition, dict) else {}
                found.append(Paid(entry_of(charge, "answered"), steps_in(row), known))
    return found


class Prepaid(Ledger):
    """The account of one step: it was paid when the standing question was asked, and its charges cost nobody else.

    Only for code that makes the engine read nothing but what the step is about.

    Promise: what is charged here stays within the limit of the step, and nothing else changes.
    """

    _prepaid = True
    payer: Ledger
    """Whose budget is shown as what remains."""
    asks: bool = True
    """Whether anything new may be drawn. Otherwise only what was released is found."""

    @classmethod
    def step_of(cls, payer: Ledger, paid: Paid, step: str, *, asks: bool = True) -> Self:
        """The account of a step. If it `asks`, it is opened if it is not there yet."""
        if step not in paid.steps.names:
            raise InvalidArgument("This step was not paid. Name one of the horizon.", code="standing-steps")
        view = cls(payer._store, payer._terms, name_of(paid.entry.number, step), payer._writer)
        view.payer, view.asks = payer, asks
        if asks:
            payer._writer.write(partial(view._open, paid.steps.each))
        return view

    @staticmethod
    def find(payer: Ledger, paid: Paid, step: str, key: str) -> Entry | None:
        """The charge of a step with this key, if it was answered."""
        [rows] = payer._store.look(book.charged(name_of(paid.entry.number, step), "retry_key", key))
        found = book.with_answer(rows)
        if found is None or found[1] is None:
            return None
        entry = entry_of(found[0], answers.state_of(found[0].chain, found[1].digest))
        return entry if entry.state == "answered" else None

    @staticmethod
    def answered(payer: Ledger, paid: Paid, key: str) -> set[str]:
        """The steps that have an answer with this key."""
        names = {name_of(paid.entry.number, step): step for step in paid.steps.names}
        found: set[str] = set()
        for some in batched(names):
            marks = ", ".join("?" for _ in some)
            [rows] = payer._store.look(
                (
                    "SELECT entries.analyst FROM entries JOIN answers ON answers.number = entries.number "
                    f"WHERE entries.analyst IN ({marks}) AND entries.retry_key = ? AND answers.data IS NOT NULL",
                    *some,
                    key,
                )
            )
            found |= {names[name] for (name,) in rows}
        return found

    @staticmethod
    def has_entries(payer: Ledger, paid: Paid, step: str) -> bool:
        """Whether anything was charged in a step."""
        name = name_of(paid.entry.number, step)
        [rows] = payer._store.look(("SELECT 1 FROM entries WHERE analyst = ? AND kind = 'charge' LIMIT 1", name))
        return bool(rows)

    def _reserve(self, request: Request, columns: dict[str, Any], draft: Draft, *found: Rows) -> Any:
        if not self.asks:
            raise NotBought("This block is not answered yet. Run the standing question.")
        return super()._reserve(request, columns, draft, *found)

    def _open(self, rule: Rule, draft: Draft) -> None:
        if self._analyst in draft.accounts or book.terms(draft.execute, self._analyst) is not None:
            return
        content = book.with_rule(rule)
        facts = {"kind": "step", "analyst": self._analyst, "asked": "a step", "content": content, "costs": {}}
        _append_account(draft, facts, self._analyst, Account(content, rule.nothing))

    def _look(self, use: Callable[[Standing, FindOwns], T]) -> T:
        return super()._look(lambda standing, find: use({self._analyst: standing[self._analyst]}, find))

    def _look_at(self, number: int, use: Callable[[Standing, FindOwns], T]) -> T:
        return super()._look_at(number, lambda standing, find: use({self._analyst: standing[self._analyst]}, find))

    def _left_after(self, entry: Entry) -> Guarantee | None:
        """What remains to the one who paid."""
        return self.payer.remaining

    def __reduce__(self) -> tuple[Any, ...]:
        raise InvalidArgument(
            "The account of a step cannot be copied to another process. Open the standing question there.",
            code="standing-steps",
        )

"""Verification of the whole record: every hash, every cost, every total, every answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from discreet._version import __version__
from discreet.errors import InvalidArgument
from discreet.guarantees.rules.best_of import Vector
from discreet.guarantees.unit import Unit
from discreet.ledger import answers, book, heads, opening
from discreet.ledger.accounts import Account, Charged, charge_one, effect_of, renew_all, renew_parts, unchanged
from discreet.ledger.book import WHOLE, EntryRow
from discreet.ledger.entry import State
from discreet.ledger.parts import Own, check_names, digest_of, division_in, named_in, of_accounts
from discreet.ledger.steps import Verified
from discreet.ledger.stores.elsewhere import second_checkpoint
from discreet.ledger.stores.store import Execute, Store

_BATCH, _BATCH_OF_ANSWERS = 1000, 100
_PLATFORM = 10**9
"""Costs may differ by one part in this many between machines, whose `exp` and `log` differ in the last digits."""


def walk_entries(store: Store, first: int, last: int | None) -> Iterator[tuple[EntryRow, State]]:
    """Entries with the states of charges, oldest first, one batch at a time."""
    with store.transaction(write=False) as execute:
        newest = book.head(execute).number
    end = newest if last is None else min(last, newest)
    for start in range(max(first, 0), end + 1, _BATCH):
        stop = min(end, start + _BATCH - 1)
        with store.transaction(write=False) as execute:
            found = _all_of(execute, start, stop)
            kept = execute("SELECT number, digest FROM answers WHERE number BETWEEN ? AND ?", start, stop)
        digests: dict[int, str] = dict(kept)
        yield from ((row, answers.state_of(row.chain, digests.get(row.number))) for row in found)


def _all_of(execute: Execute, first: int, last: int) -> list[EntryRow]:
    """The entries with these numbers. A missing one ends the walk, because the numbers after it could go on without
    end.
    """
    found = book.rows(execute, first, last)
    there = {row.number for row in found}
    if len(there) <= last - first:
        raise book.damage_error(f"entry {next(n for n in range(first, last + 1) if n not in there)} is missing")
    return found


def _with_answers(store: Store, last: int) -> Iterator[tuple[EntryRow, tuple[Any, str, int] | None]]:
    """Entries with their answers, oldest first, few at a time: an answer may be large."""
    statement = "SELECT number, data, digest, not_private FROM answers WHERE number BETWEEN ? AND ?"
    for start in range(0, last + 1, _BATCH_OF_ANSWERS):
        stop = min(last, start + _BATCH_OF_ANSWERS - 1)
        with store.transaction(write=False) as execute:
            found = _all_of(execute, start, stop)
            kept = {number: (data, digest, mark) for number, data, digest, mark in execute(statement, start, stop)}
        yield from ((row, kept.get(row.number)) for row in found)


class _State:
    """The accounts and their parts, computed again from the entries so far."""

    def __init__(self, protects: Unit) -> None:
        self.protects = protects
        self.accounts: dict[str, Account] = {}
        self.owns: dict[str, dict[str, Own]] = {}
        self.steps = Verified(protects)

    def find(self, account: str, wanted: Collection[str] | None) -> dict[str, Own]:
        """What parts of an account have lost alone."""
        every = self.owns.get(account, {})
        found = every if wanted is None else {part: every[part] for part in wanted if part in every}
        return heads.current(found, self.accounts[account].divided)

    def follow(self, row: EntryRow, after: Mapping[str, Charged]) -> bool:
        """Go on to the next entry. Whether its totals are those that follow."""
        changed, owns, totals = effect_of(after, row.number, self._number)
        self.accounts |= changed
        for name, own in owns.items():
            self.owns.setdefault(name, {}).update(own)
        return totals == book.vectors(row.totals)

    def _number(self, account: str, part: str) -> int | None:
        own = self.owns.get(account, {}).get(part)
        return None if own is None else own.number

    def table(self) -> set[tuple[str, str, int, int]]:
        """What the table of parts must hold."""
        every = [(name, part, own.number) for name, owns in self.owns.items() for part, own in owns.items()]
        return {(*row, digest_of(*row)) for row in every}


def verify_entries(store: Store, ledger: str, protects: Unit) -> int:
    """The number of entries, after checking all of them. Raises LedgerDamaged otherwise."""
    checkpoint = store.checkpoint_of(ledger)
    seen = checkpoint.read() if checkpoint else None
    second = second_checkpoint(ledger, checkpoint, store.shown)
    elsewhere = second.read() if second else None
    with store.transaction(write=False) as execute:
        at = book.head(execute)
        opening.check_seen(execute, at, seen, ledger)
        opening.check_seen(execute, at, elsewhere, ledger, by=opening.named_second(second))
        beyond = execute("SELECT COUNT(*) FROM entries WHERE number > ? OR number < 0", at.number)[0][0]
        kept = execute("SELECT COUNT(*) FROM answers")[0][0]
        divided = protects.lives_in_one is not None
        table = set(execute("SELECT account, part, number, digest FROM parts")) if divided else set()
    if beyond or kept != at.answers:
        raise book.damage_error("it has entries outside its chain, or answers are missing")
    before, number, state = "", 0, _State(protects)
    for row, answer in _with_answers(store, at.number):
        if row.chained_to(before) != row.chain:
            raise book.damage_error(
                f"entry {number}, or the one before it, was changed after it was written", code="ledger-entry-changed"
            )
        _check_totals(row, state)
        if answer is not None:
            kept -= 1
            _check_answer(row, *answer)
        before, number = row.chain, number + 1
    if number != at.number + 1 or before != at.chain or kept > 0:
        raise book.damage_error("its head does not match its last entry, or an answer has no entry")
    if table != state.table():
        raise heads.table_error()
    return number


def _check_totals(row: EntryRow, state: _State) -> None:
    """Compute the cost of the entry and the totals after it, and compare them with the recorded ones."""
    costs = book.vectors(row.costs)
    (named, division), paid = _parts_of(row, costs, state.protects), of_accounts(costs)
    state.steps.follow(row, named)
    if row.kind != "charge":
        _check_decree(row, state, named, division)
        return
    if state.steps.payers(row.analyst) != set(paid) or not set(paid) <= set(state.accounts):
        raise book.damage_error(f"entry {row.number} does not charge the right accounts", code="ledger-totals-wrong")
    after = {}
    for name, cost in paid.items():
        account = state.accounts[name]
        due = account.cost(row.content)
        if len(cost) != len(due) or not all(_enough(paid, owed, row) for paid, owed in zip(cost, due, strict=True)):
            raise book.damage_error(
                f"entry {row.number} of version {row.code_version} cost other than its guarantee does in {__version__}",
                code="ledger-totals-wrong",
            )
        after[name] = _bound(row, charge_one, name, account, cost, named, state.protects, state.find, division)
    rules = {name: account.rule for name, account in state.accounts.items()}
    _follow(row, state, {name: unchanged(state.accounts[name]) for name in (WHOLE, row.analyst)} | after)
    for name, one in after.items():
        if not one.fits:
            raise book.damage_error(
                f"entry {row.number} passes the limit of {rules[name].limit}", code="ledger-totals-wrong"
            )


def _follow(row: EntryRow, state: _State, after: Mapping[str, Charged]) -> None:
    if not state.follow(row, after):
        raise book.damage_error(f"the totals after entry {row.number} do not add up", code="ledger-totals-wrong")


def _parts_of(row: EntryRow, costs: Mapping[str, Vector], protects: Unit) -> tuple[tuple[str, ...], int]:
    """The parts that an entry charges or renews alone, where a unit lives in one, and of which division they are."""
    named, division = named_in(costs), division_in(costs)
    well = division >= 0
    try:
        well = well and (not named or check_names(named, protects, ()) == tuple(sorted(named)))
    except InvalidArgument:
        well = False
    if not well or (named and row.kind not in ("charge", "renewal")):
        raise book.damage_error(f"entry {row.number} does not charge the right parts", code="ledger-totals-wrong")
    return named, division


def _bound(row: EntryRow, change: Callable[..., Charged], *given: Any) -> Charged:
    """An account after an entry. Its parts must be those of one division."""
    try:
        return change(*given)
    except InvalidArgument:
        pass
    raise book.damage_error(f"entry {row.number} does not charge the right parts", code="ledger-totals-wrong")


def _enough(paid: int, owed: int, row: EntryRow) -> bool:
    """Whether a recorded cost is what is owed: to the digits that all machines agree on, and never less in any
    version.
    """
    slack = owed // _PLATFORM + 1
    return owed - slack <= paid and (paid <= owed + slack or row.code_version != __version__)


def _check_decree(row: EntryRow, state: _State, named: tuple[str, ...], division: int = 0) -> None:
    """Check that an entry by the owner sets one account, and does not change the total of the data set."""
    later = row.kind in ("limit", "renewal", "adoption")
    if not {WHOLE, row.analyst} <= state.accounts.keys() | (set() if later else {row.analyst}):
        raise book.damage_error(f"entry {row.number} names an account that does not exist", code="ledger-totals-wrong")
    account = state.accounts[row.analyst] if later else Account(row.content, row.rule.nothing)
    if named:
        if account.rule != row.rule:
            raise book.damage_error(f"entry {row.number} does not set one limit", code="ledger-totals-wrong")
        changed = _bound(row, renew_parts, row.analyst, account, named, state.protects, state.find, division)
    else:
        changed = renew_all(account, row.rule, row.number) if row.kind == "renewal" else unchanged(account)
    whole = {} if row.analyst == WHOLE else {WHOLE: unchanged(state.accounts[WHOLE])}
    _follow(row, state, whole | {row.analyst: changed._replace(account=changed.account._replace(terms=row.content))})


def _check_answer(row: EntryRow, data: Any, digest: str, not_private: int) -> None:
    if row.kind != "charge" or not answers.is_bound(row.chain, data, digest, not_private):
        raise book.damage_error(
            f"the answer of entry {row.number} was changed after it was written", code="ledger-answer-changed"
        )

"""Verification of the whole record: every hash, every cost, every total, every answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from discreet._version import __version__
from discreet.guarantees.rules.best_of import Vector
from discreet.ledger import answers, book, opening
from discreet.ledger.accounts import Account
from discreet.ledger.book import WHOLE, EntryRow
from discreet.ledger.entry import State
from discreet.ledger.store import Execute, Store

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


def verify_entries(store: Store, ledger: str) -> int:
    """The number of entries, after checking all of them. Raises LedgerDamaged otherwise."""
    checkpoint = store.checkpoint_of(ledger)
    seen = checkpoint.read() if checkpoint else None
    with store.transaction(write=False) as execute:
        at = book.head(execute)
        opening.check_seen(execute, at, seen, ledger)
        beyond = execute("SELECT COUNT(*) FROM entries WHERE number > ? OR number < 0", at.number)[0][0]
        kept = execute("SELECT COUNT(*) FROM answers")[0][0]
    if beyond or kept != at.answers:
        raise book.damage_error("it has entries outside its chain, or answers are missing")
    before, number = "", 0
    accounts: dict[str, Account] = {}
    for row, answer in _with_answers(store, at.number):
        if row.chained_to(before) != row.chain:
            raise book.damage_error(
                f"entry {number}, or the one before it, was changed after it was written", code="ledger-entry-changed"
            )
        _check_totals(row, accounts)
        if answer is not None:
            kept -= 1
            _check_answer(row, *answer)
        before, number = row.chain, number + 1
    if number != at.number + 1 or before != at.chain or kept > 0:
        raise book.damage_error("its head does not match its last entry, or an answer has no entry")
    return number


def _check_totals(row: EntryRow, accounts: dict[str, Account]) -> None:
    """Compute the cost of the entry and the totals after it, and compare them with the recorded ones."""
    totals = book.vectors(row.totals)
    if row.kind != "charge":
        _check_decree(row, accounts, totals)
        return
    costs = book.vectors(row.costs)
    if {WHOLE, row.analyst} != set(costs) or set(costs) != set(totals) or not set(costs) <= set(accounts):
        raise book.damage_error(f"entry {row.number} does not charge the right accounts", code="ledger-totals-wrong")
    for name in costs:
        account = accounts[name]
        due = account.cost(row.content)
        if not all(_enough(paid, owed, row) for paid, owed in zip(costs[name], due, strict=True)):
            raise book.damage_error(
                f"entry {row.number} of version {row.code_version} cost other than its guarantee does in {__version__}",
                code="ledger-totals-wrong",
            )
        if totals[name] != account.rule.add(account.spent, costs[name]):
            raise book.damage_error(f"the totals after entry {row.number} do not add up", code="ledger-totals-wrong")
        if not account.rule.fits(totals[name]):
            raise book.damage_error(
                f"entry {row.number} passes the limit of {account.rule.limit}", code="ledger-totals-wrong"
            )
        accounts[name] = account._replace(spent=totals[name])


def _enough(paid: int, owed: int, row: EntryRow) -> bool:
    """Whether a recorded cost is what is owed: to the digits that all machines agree on, and never less in any
    version.
    """
    slack = owed // _PLATFORM + 1
    return owed - slack <= paid and (paid <= owed + slack or row.code_version != __version__)


def _check_decree(row: EntryRow, accounts: dict[str, Account], totals: dict[str, Vector]) -> None:
    """Check that an entry by the owner sets one account, and does not change the total of the data set."""
    if row.kind in ("limit", "renewal", "adoption") and row.analyst not in accounts:
        raise book.damage_error(f"entry {row.number} names an account that does not exist", code="ledger-totals-wrong")
    untouched = accounts[WHOLE].spent if WHOLE in accounts else row.rule.nothing
    expected = accounts[row.analyst].spent if row.kind in ("limit", "adoption") else row.rule.nothing
    if row.analyst != WHOLE and totals.get(WHOLE) != untouched:
        raise book.damage_error(f"the totals after entry {row.number} do not add up", code="ledger-totals-wrong")
    if totals.get(row.analyst) != expected:
        raise book.damage_error(f"the totals after entry {row.number} do not add up", code="ledger-totals-wrong")
    accounts[row.analyst] = Account(row.content, expected)


def _check_answer(row: EntryRow, data: Any, digest: str, not_private: int) -> None:
    if row.kind != "charge" or not answers.is_bound(row.chain, data, digest, not_private):
        raise book.damage_error(
            f"the answer of entry {row.number} was changed after it was written", code="ledger-answer-changed"
        )

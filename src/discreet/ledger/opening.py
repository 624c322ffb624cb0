"""Opening a ledger: its terms are fixed when it is created, and checked every time it is opened again."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from discreet.errors import InvalidArgument, LedgerDamaged
from discreet.exact.randomness import random_integer
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.rules.best_of import Rule, rule_for
from discreet.guarantees.unit import Unit
from discreet.ledger import book
from discreet.ledger.book import WHOLE, EntryRow, Head
from discreet.ledger.stores.checkpoint import Seen
from discreet.ledger.stores.elsewhere import SecondCheckpoint, second_checkpoint
from discreet.ledger.stores.store import PARTS, Execute, Store
from discreet.ledger.texts import record
from discreet.ledger.texts.request import public_text

FORMAT = 1
LOOKED_AT = 256
"""So many of the last entries are checked at every opening; `verify` checks all."""
_NAME = re.compile("[0-9a-f]{32}")


class LedgerTerms(NamedTuple):
    """What never changes: the identity of this ledger, and who is protected."""

    ledger: str
    protects: Unit


def validate_limit(limit: Any, protects: Unit) -> Guarantee:
    """A limit as it is recorded: for the ledger's unit, which the limit does not have to name."""
    if not isinstance(limit, Guarantee):
        raise InvalidArgument(
            "limit must be a guarantee, such as dp.Approx(epsilon=10, delta=1e-5).", code="wrong-type"
        )
    if limit.protects not in (None, protects):
        raise InvalidArgument(
            f"The limit is stated for {limit.protects!r}, but the ledger protects {protects!r}. "
            "State it for the same unit.",
            code="ledger-other-unit",
        )
    return replace(limit, protects=None)


def validate_rule(limit: Any, rule: str | Rule | None, protects: Unit) -> Rule:
    """The rule that enforces a limit."""
    checked = validate_limit(limit, protects)
    if isinstance(rule, Rule):
        own = validate_limit(rule.limit, protects)
        if record.to_text(own) == record.to_text(checked):  # the same numbers, perhaps of other types
            checked = own
        rule = replace(rule, limit=own)
    return rule_for(checked, rule)


def check_same(
    present: Rule, protects: Unit, limit: Guarantee | None, rule: str | Rule | None, what: str = "This ledger"
) -> None:
    """Refuse terms that differ from the current ones. Terms that are not given are not compared."""
    if limit is not None and record.to_text(validate_limit(limit, protects)) != record.to_text(present.limit):
        raise InvalidArgument(
            f"{what} has a limit of {present.limit}, not {limit}. Open it with its own limit or without one; "
            "in a policy, the limit is epsilon and delta of [ledger]. "
            "To change it, use ledger.raise_limit(…, why=…) or ledger.renew(…, why=…).",
            code="ledger-other-terms",
        )
    same = rule in (None, present.name)
    if isinstance(rule, Rule):
        same = record.to_text(validate_rule(rule.limit, rule, protects).fixed()) == record.to_text(present)
    if not same:
        raise InvalidArgument(
            f"{what} was opened with the rule {present.name!r}, which cannot change. Name that rule, or none.",
            code="ledger-other-terms",
        )


def terms_of_analyst(store: Store, name: Any) -> EntryRow | None:
    """The entry with the terms of an analyst's account. None if there is none. Steps of standing questions are
    nobody's accounts.
    """
    if not isinstance(name, str) or not name or name != public_text(name):
        raise InvalidArgument("An analyst needs a name: a short text, such as a user name.", code="ledger-analyst-name")
    with store.transaction(write=False) as execute:
        present = book.terms(execute, name)
    if name.startswith("standing/") and (present is None or present.kind in ("standing", "step")):
        raise InvalidArgument(
            "Names that begin with standing/ are those of standing questions. Choose another name.",
            code="ledger-analyst-name",
        )
    return present


def open_ledger(store: Store, protects: Unit | None, limit: Guarantee | None, rule: str | Rule | None) -> LedgerTerms:
    """Create the ledger, or find it, and check that it is the newest and has these terms."""
    if protects is not None and not isinstance(protects, Unit):
        raise InvalidArgument('protects must be dp.person("column") or dp.row().', code="wrong-type")
    fresh = None if limit is None or protects is None else validate_rule(limit, rule, protects).fixed()
    if not store.exists():
        _check_not_lost(store)
        if fresh is None or protects is None:
            raise InvalidArgument(
                f"There is no ledger at {store.shown}. To create one: Ledger.open(…, protects=…, limit=…).",
                code="ledger-not-found",
            )
        _make(store, protects, fresh)
    for second_look in (False, True):
        try:
            terms, present = _inspect(store)
            break
        except _Suspicious as suspicion:  # another process may have charged between two reads
            if second_look:
                raise suspicion.damage from None
    if protects not in (None, terms.protects):
        raise InvalidArgument(
            f"This ledger protects {terms.protects!r}, not {protects!r}. Use another ledger for another unit.",
            code="ledger-other-unit",
        )
    check_same(present, terms.protects, limit, rule)
    return terms


def adopt_ledger(store: Store) -> LedgerTerms:
    """The terms of a ledger whose checkpoint is missing or belongs to another file. The owner takes responsibility."""
    if not store.exists():
        raise InvalidArgument(f"There is no ledger at {store.shown}. Name one that exists.", code="ledger-not-found")
    with store.transaction(write=False) as execute:
        terms = _terms(book.row(execute, 0))
        _check_end(execute)
    return terms


def state_of(store: Store, ledger: str, at: Head) -> Seen:
    """What a checkpoint records."""
    return Seen(ledger, at.number, at.chain, store.file_number(), at.answers)


def check_seen(
    execute: Execute,
    at: Head,
    seen: Seen | None,
    ledger: str,
    chains: Mapping[int, str] | None = None,
    *,
    by: str = "its checkpoint",
) -> None:
    """Refuse a ledger that is older than what was seen of it, or has a different history. `chains` are values that were
    checked before, by number. `by` names the checkpoint that has seen it.
    """
    if seen is None:
        return
    if seen.ledger != ledger:
        raise book.damage_error(f"{by} belongs to another ledger")
    if seen.number > at.number:
        raise _lost_entries(at, seen, by)
    chain = at.chain if seen.number == at.number else (chains or {}).get(seen.number)
    chain = chain or book.row(execute, seen.number).chain
    if chain != seen.chain:
        raise book.damage_error(f"entry {seen.number} is not the one in {by}", code="ledger-old-copy")
    if at.answers < seen.answers:
        raise book.damage_error(
            f"it has {at.answers} answers, but {by} has seen {seen.answers}: an old file was restored",
            code="ledger-old-copy",
        )


def named_second(second: SecondCheckpoint | None) -> str:
    """The second checkpoint, as an error names it."""
    return "" if second is None else f"the second checkpoint ({second.path})"


def _lost_entries(at: Head, seen: Seen, by: str) -> LedgerDamaged:
    return book.damage_error(
        f"it ends with entry {at.number}, but {by} has seen entry {seen.number}: an old file was restored, "
        "or its -wal file was deleted",
        code="ledger-old-copy",
    )


class _Suspicious(Exception):
    def __init__(self, damage: LedgerDamaged) -> None:
        self.damage = damage


def _inspect(store: Store) -> tuple[LedgerTerms, Rule]:
    """The terms of an existing ledger, and its rule, after checking that its end and its checkpoint agree."""
    with store.transaction(write=False) as execute:
        terms = _terms(book.row(execute, 0))
    checkpoint = store.checkpoint_of(terms.ledger)
    seen = None if checkpoint is None else checkpoint.read()
    second = second_checkpoint(terms.ledger, checkpoint, store.shown)
    elsewhere = None if second is None else second.read()
    with store.transaction(write=False) as execute:
        at = _check_end(execute)
        check_seen(execute, at, seen, terms.ledger)
        check_seen(execute, at, elsewhere, terms.ledger, by=named_second(second))
        rule = book.terms(execute, WHOLE)
    if checkpoint is not None and seen is None:
        if at.number and store.file_number():
            raise _Suspicious(_not_beside(store, "it has no checkpoint next to it"))
        checkpoint.advance(state_of(store, terms.ledger, at))
    elif seen is not None and seen.file != store.file_number():
        raise _Suspicious(_not_beside(store, "its checkpoint belongs to another file"))
    if rule is None:
        raise book.damage_error("it has no entry with its limit")
    return terms, rule.rule


def _not_beside(store: Store, what: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"{store.shown} may be an old copy: {what}. Move it back to its place, with its .checkpoint file. "
        "If it was moved or restored, and no other copy was charged since, adopt it: "
        f'discreet ledger {shlex.quote(store.shown)} --adopt "why"',
        code="ledger-old-copy",
    )


def _check_not_lost(store: Store) -> None:
    checkpoint = store.checkpoint_of("")
    seen = None if checkpoint is None else checkpoint.read()
    if checkpoint is not None and seen is not None and seen.number and not store.exists():  # and not created just now
        raise LedgerDamaged(
            f"The ledger {store.shown} is missing, but its checkpoint has seen {seen.number} entries. Restore it. "
            f"To start over, which forgets what was spent and breaks the old guarantee, delete {checkpoint.path}.",
            code="ledger-missing",
        )


def _check_end(execute: Execute) -> Head:
    """The head, after checking that the last entries are chained correctly."""
    at = book.head(execute)
    last = book.rows(execute, max(0, at.number - LOOKED_AT), at.number + 1)
    if not last or last[-1].number != at.number or last[-1].chain != at.chain:
        raise book.damage_error("its head does not match its last entry")
    before = last[0].chain
    for row in last[1:]:
        if row.chained_to(before) != row.chain:
            raise book.damage_error(
                f"entry {row.number}, or the one before it, was changed after it was written",
                code="ledger-entry-changed",
            )
        before = row.chain
    return at


def _make(store: Store, protects: Unit, rule: Rule) -> None:
    ledger = f"{random_integer(128):032x}"
    with store.create() as execute:
        if execute("SELECT number FROM head"):
            return  # another process was faster
        if protects.lives_in_one is not None:
            execute(PARTS.format(by_key=store.by_key))
        content = {"format": FORMAT, "ledger": ledger, "protects": json.loads(record.to_text(protects))}
        facts = {"kind": "opening", "analyst": WHOLE, "asked": "opened", "content": book.with_rule(rule, content)}
        first = book.entry_after(None, facts | {"costs": {}, "totals": {WHOLE: rule.nothing}})
        book.begin(execute, first)
    checkpoint = store.checkpoint_of(ledger)
    if checkpoint is not None:
        checkpoint.advance(state_of(store, ledger, Head(0, first.chain)), durable=True)


def _terms(first: EntryRow) -> LedgerTerms:
    content = book.part_of(first.content)
    if content.get("format") != FORMAT:
        raise LedgerDamaged(
            f"This ledger has format {content.get('format')}, but this version of discreet reads {FORMAT}. "
            "Use another version.",
            code="ledger-other-version",
        )
    name = str(content.get("ledger"))
    if not _NAME.fullmatch(name):  # files are named after it
        raise book.damage_error("its name is not one that discreet gives", code="ledger-entry-changed")
    return LedgerTerms(name, record.read_unit(record.canonical(content.get("protects"))))

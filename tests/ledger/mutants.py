"""Broken ledgers, put in place of the right one inside a worker: each must be caught by a test of processes."""

from __future__ import annotations

import threading
import time

import discreet as dp
from discreet import door
from discreet.guarantees.rules.filters import Basic
from discreet.ledger import book, writer
from discreet.ledger.ledger import Ledger
from discreet.ledger.stores.checkpoint import LockedCheckpoint
from discreet.ledger.stores.sqlite import SqliteStore
from discreet.ledger.writer import Draft
from discreet.releases import Release


def read_then_write():
    """Look at what is left, then write, with nothing that ties the two together."""
    charge, standing, first = Ledger.charge, Draft.standing, []

    def look_first(self, guarantee, **facts):
        account = self._standing_now()[book.WHOLE]
        rule = first[0] if first else account.rule  # what is written later has the larger limit
        first.append(rule)
        if not rule.fits(rule.spend(account.spent, guarantee.stated_for(self.protects))):
            raise dp.BudgetExhausted("nothing is left")
        time.sleep(0.01)
        return charge(self, guarantee, **facts)

    def without_limit(self, analyst):
        larger = book.with_rule(Basic(limit=dp.Pure(epsilon=10**6)).fixed())
        return {name: account._replace(terms=larger) for name, account in standing(self, analyst).items()}

    Ledger.charge, Draft.standing = look_first, without_limit


def debit_after_release():
    """Draw and hand out first, charge afterwards, in a thread that nobody waits for."""

    def hasty(read, mechanism, guarantee, *, ledger, asked="", key=None, **given):
        value = mechanism._draw(read())
        charge = threading.Timer(0.2, lambda: ledger.charge(guarantee, asked=asked, mechanism=repr(mechanism), key=key))
        charge.daemon = True
        charge.start()
        return Release(value=value, guarantee=guarantee, receipt="0-soon", _mechanism=mechanism, _sizes={})

    door.through = hasty


def retry_draws_again():
    """Charge a key once, but hand out every draw."""
    Ledger.keep = lambda self, entry, value, not_private: (value, not_private)


def key_forgotten():
    """Charge every retry."""
    Ledger._made_before = lambda self, request, found, draft=None: None
    inner = book.entry_after

    def without_key(after, facts):
        return inner(after, dict(facts) | {"retry_key": None, "identity": None})

    book.entry_after = without_key


def checkpoint_first():
    """Write down what will be seen, then commit."""
    enter, finish = LockedCheckpoint.__enter__, SqliteStore.finish
    held = []

    def enter_and_keep(self):
        held[:] = [self]
        return enter(self)

    def note_first(self, statements):
        for _, number, chain, answers, *_ in statements[:1]:
            seen = held[0].read()
            held[0].advance(seen._replace(number=number, chain=chain, answers=answers))
        return finish(self, statements)

    LockedCheckpoint.__enter__, SqliteStore.finish = enter_and_keep, note_first


def follower_returns_early():
    """Wake those who wait as soon as their job has run, before the commit."""
    try_job = Draft.try_job

    def wake(self, job):
        try_job(self, job)
        if not job.leads:
            job.done = True
            job.wake.release()
            job.wake = threading.Lock()  # it is released once more
            job.wake.acquire()

    Draft.try_job = wake


def limit_before_the_group():
    """Compare every charge of a group with what was spent before all of them."""
    standing = Draft.standing

    def before(self, analyst):
        self.first = getattr(self, "first", None) or standing(self, analyst)
        return self.first

    Draft.standing = before


def error_for_one():
    """Report the error of a commit only to the thread that wrote."""
    writer._error_for_others = lambda error: None


MUTANTS = {
    mutant.__name__: mutant
    for mutant in (
        read_then_write,
        debit_after_release,
        retry_draws_again,
        key_forgotten,
        checkpoint_first,
        follower_returns_early,
        limit_before_the_group,
        error_for_one,
    )
}

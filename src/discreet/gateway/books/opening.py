"""Opening the books of a gateway: its database belongs to one ledger, and another one, or a new one, is refused.

Without this, a ledger that is lost with its checkpoints, or a mistyped path, would be a budget of which nothing is
spent.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from discreet.datasets.ledgers import open_policy_ledger
from discreet.datasets.policy import Policy
from discreet.errors import InvalidArgument
from discreet.gateway.books import audit
from discreet.gateway.books.store import GatewayStore
from discreet.gateway.books.tokens import COMMAND_LINE
from discreet.gateway.settings import Settings
from discreet.ledger import Ledger
from discreet.ledger.reports.receipts import name_of
from discreet.ledger.stores.store import URLS, Execute


def open_books(policy: Policy, settings: Settings) -> tuple[Ledger, GatewayStore]:
    """The ledger and the database of a gateway."""
    with ExitStack() as opened:
        store = opened.enter_context(GatewayStore(settings.store))
        ledger = open_ledger(policy, settings, store)
        opened.pop_all()
        return ledger, store


def open_ledger(
    policy: Policy, settings: Settings, store: GatewayStore, by: Callable[[Policy], Ledger] = open_policy_ledger
) -> Ledger:
    """The ledger that the accounts of a gateway belong to. It is created if its database knows none."""
    with ExitStack() as opened:
        with store.read() as execute:
            is_empty = not execute("SELECT name FROM accounts WHERE name <> '' LIMIT 1")
            is_known = _ledger_in(execute) is not None
        if is_known or not is_empty:  # an older discreet did not remember its ledger
            _check_there(policy, settings, store)
        ledger = opened.enter_context(closing(by(policy)))
        with store.write() as execute:
            if _ledger_in(execute) is None:
                _remember(execute, ledger)
            elif _ledger_in(execute) != name_of(ledger):
                raise _other_ledger(settings, store)
        if is_empty and ledger.analysts:
            print(
                f"WARNING: the ledger has accounts of analysts, but the gateway's database {store.shown} has none. If "
                "it was lost, restore its backup: otherwise late answers and what they tell count from 0 again.",
                file=sys.stderr,
            )
        opened.pop_all()
        return ledger


def adopt_books(policy: Policy, settings: Settings, why: str, checkpoint: str | None = None) -> Ledger:
    """Adopt the ledger that a policy names now, and let the accounts of its gateway go on with it. If they belong to
    another one, it may be new.
    """
    with ExitStack() as opened:
        is_there = settings.store.startswith(URLS) or Path(settings.store).exists()
        store = opened.enter_context(GatewayStore(settings.store)) if is_there else None
        known = None if store is None else _known(store)
        try:
            ledger = Ledger.adopt(policy.ledger, why=why, checkpoint=checkpoint)
        except InvalidArgument as error:
            if error.code != "ledger-not-found" or known is None:
                raise
            open_policy_ledger(policy).close()
            print(f"WARNING: {policy.ledger} is new, and nothing of its limit is spent.", file=sys.stderr)
            ledger = Ledger.adopt(policy.ledger, why=why, checkpoint=checkpoint)
        if store is not None and known not in (None, name_of(ledger)):
            with store.write() as execute:
                _remember(execute, ledger)
                details = {"ledger": name_of(ledger), "before": known, "why": why}
                audit.append(execute, time.time(), COMMAND_LINE.account, "ledger adopted", details)
        return ledger


def _known(store: GatewayStore) -> str | None:
    with store.read() as execute:
        return _ledger_in(execute)


def _ledger_in(execute: Execute) -> str | None:
    """The ledger that the accounts belong to. None before the first one was seen."""
    found = execute("SELECT name FROM seen WHERE what = 'ledger'")
    return found[0][0] if found else None


def _remember(execute: Execute, ledger: Ledger) -> None:
    execute("DELETE FROM seen WHERE what = 'ledger'")
    execute("INSERT INTO seen (what, name) VALUES ('ledger', ?)", name_of(ledger))


def _check_there(policy: Policy, settings: Settings, store: GatewayStore) -> None:
    """Refuse if there is no ledger where the policy says, instead of creating one."""
    try:
        Ledger.open(policy.ledger).close()
    except InvalidArgument as error:
        if error.code == "ledger-not-found":
            raise _other_ledger(settings, store) from None
        raise


def _other_ledger(settings: Settings, store: GatewayStore) -> InvalidArgument:
    return InvalidArgument(
        f"The accounts in {store.shown} belong to another ledger, and not to one at the path in [ledger]. A new ledger "
        "would forget what was spent. Correct the path, or restore the ledger: docs/ledger.md. To go on with this one, "
        "lower its limit by what the other one has spent, and record why: discreet ledger "
        f'{settings.name}.toml --adopt "why"',
        code="gateway-other-ledger",
    )

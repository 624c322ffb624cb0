"""The ledger of a policy. Its limit may be edited until the first charge, and then only by a recorded decision."""

from __future__ import annotations

import difflib
import os
from contextlib import closing, suppress
from pathlib import Path

from discreet.datasets.policy import Policy
from discreet.errors import DiscreetError, InvalidArgument
from discreet.ledger import Ledger, book
from discreet.ledger.first_terms import replace_unused_terms
from discreet.ledger.stores.opening import open_store
from discreet.ledger.stores.store import URLS

OTHER = "ledger-other-terms"
_ALIKE = 0.75
"""How alike two names of files are, if one may be the other with a typing error."""


def open_policy_ledger(policy: Policy) -> Ledger:
    """The ledger that a policy names, with the policy's terms. It is created if it does not exist."""
    try:
        return Ledger.open(policy.ledger, protects=policy.unit, limit=policy.limit, rule=policy.rule)
    except InvalidArgument as error:
        if error.code != OTHER:
            raise
    with closing(Ledger.open(policy.ledger, protects=policy.unit)) as ledger:
        if not replace_unused_terms(ledger, policy.limit, policy.rule):
            raise _other_limit(policy, ledger)
    return Ledger.open(policy.ledger, protects=policy.unit, limit=policy.limit, rule=policy.rule)


def _other_limit(policy: Policy, ledger: Ledger) -> InvalidArgument:
    """What to do about a policy that was edited after the first charge."""
    if policy.rule not in (None, ledger.rule.name):
        return InvalidArgument(
            f"The policy says rule = {policy.rule!r}, but its ledger has charged answers by the rule "
            f"{ledger.rule.name!r}, which cannot change any more. Write that rule, or none.",
            code=OTHER,
        )
    return InvalidArgument(
        f"The policy says {policy.limit}, but its ledger has charged answers under {ledger.limit}. Write that limit "
        "back into [ledger]. Or record the new one, with a reason: if you promise less to the same people, run "
        '"discreet ledger POLICY --raise WHY"; if the people are new, "--renew WHY". Both take the new limit.',
        code=OTHER,
    )


def beginning(policy: Policy) -> str | None:
    """That opening the ledger of a policy creates it, and with what limit, in words. None if it is there."""
    with suppress(DiscreetError), closing(open_store(policy.ledger, None)) as store:
        if not store.exists():
            return f"A new ledger begins: {store.shown}, with {policy.limit}."
    return None


def mistyped(policy: Policy) -> str | None:
    """That the folder of a ledger which does not exist has one with entries and nearly the same name, in words. With a
    mistyped path, what was spent would be forgotten.
    """
    place = Path(policy.ledger)
    if str(policy.ledger).startswith(URLS) or os.path.lexists(place):
        return None
    with suppress(OSError):
        names = [one.name for one in place.parent.iterdir() if one.suffix == place.suffix and one.is_file()]
        for name in difflib.get_close_matches(place.name, names, cutoff=_ALIKE):
            if entries := _entries(place.with_name(name)):
                many = "1 entry" if entries == 1 else f"{entries:,} entries"
                return f"{name} is there, and has {many}: is the path {place} mistyped?"
    return None


def _entries(place: Path) -> int:
    """How many entries a file has. 0 if it is not a ledger, or cannot be read."""
    with suppress(DiscreetError, OSError), closing(open_store(place, None)) as store:
        if store.exists():
            with store.transaction(write=False) as execute:
                return book.head(execute).number
    return 0

"""The ledger of a policy. Its limit may be edited until the first charge, and then only by a recorded decision."""

from __future__ import annotations

from contextlib import closing

from discreet.datasets.policy import Policy
from discreet.errors import InvalidArgument
from discreet.ledger import Ledger
from discreet.ledger.first_terms import replace_unused_terms

OTHER = "ledger-other-terms"


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

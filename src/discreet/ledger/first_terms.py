"""The terms of a ledger that has not charged anything yet. Until then they can be replaced: nothing was promised."""

from __future__ import annotations

from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.rules.best_of import Rule
from discreet.ledger import accounts, opening
from discreet.ledger.book import WHOLE
from discreet.ledger.ledger import Ledger
from discreet.ledger.writer import Draft

_USES = "SELECT number FROM entries WHERE kind IN ('charge', 'standing', 'step') LIMIT 1"
_WHY = "another limit, before the first charge"


def replace_unused_terms(ledger: Ledger, limit: Guarantee, rule: str | Rule | None) -> bool:
    """Give a ledger another limit, recorded as an entry. False, and nothing is changed, if it has charged anything.

    Promise: the limit holds for everything that was ever charged, because there was nothing before it.
    """
    fresh = opening.validate_rule(limit, rule, ledger.protects).fixed()

    def decide(draft: Draft) -> bool:
        # in the transaction that writes: another process may charge at this moment
        if draft.execute(_USES) or any(row.kind == "charge" for row in draft.rows):
            return False
        account = draft.standing(WHOLE)[WHOLE]
        ledger._append(draft, "renewal", _WHY, accounts.renew_all(account, fresh, draft.at.number + 1))
        return True

    return ledger._writer.write(decide)

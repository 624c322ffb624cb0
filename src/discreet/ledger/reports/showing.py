"""A ledger in a notebook: its terms, what remains of it and of its parts, and its last entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet import html
from discreet.ledger.accounts import size_of

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger

_SHOWN = 20
"""So many of the last entries are shown, and so many parts."""


def ledger_html(ledger: Ledger) -> str:
    """A ledger as HTML."""
    rule, left, count = ledger.rule, ledger.remaining, ledger.count
    used = 0.0 if left is None else float(size_of(left) / size_of(rule.limit))
    terms = {"ledger": ledger.target} | ({"analyst": ledger.analyst} if ledger.analyst else {})
    terms |= {"protects": repr(ledger.protects), "limit": str(rule.limit), "rule": rule.name}
    terms |= {"remains": f"{left or 'nothing'} of {rule.limit}"}
    names = ("receipt", "time", "kind", "asked", "guarantee", "state")
    last = [entry.exported() for entry in ledger.entries(max(1, count - _SHOWN + 1), count)]
    entries = html.table(names, [[one[name] for name in names] for one in reversed(last)]) if last else ""
    return html.facts(terms) + html.bar(used) + _parts(ledger) + entries


def _parts(ledger: Ledger) -> str:
    budgets = sorted(ledger.parts.items())
    shown = [[part, str(one.spent), str(one.remaining or "nothing")] for part, one in budgets[-_SHOWN:]]
    return html.table(("part", "spent", "remains"), shown) if shown else ""

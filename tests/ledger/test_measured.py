"""Charges by the vectors that they measured, on both databases: whose, on which parts, and only what was answered."""

from __future__ import annotations

from typing import Any

import discreet as dp
from discreet.ledger import Identity
from discreet.ledger.reports.measured import measured_before

FIRST, SECOND = "a" * 32, "b" * 32
COST = dp.Pure(epsilon=0.1)


def charged(ledger: Any, text: str, *vectors: str, answer: Any = None) -> Any:
    sums = ", ".join(f"{vector} x80" for vector in vectors)
    mark = f"{'c' * 32}: {'d' * 32} Laplace 1; cells - in 1; sums {sums}"
    identity = Identity(question=text, data_version="1")
    entry = ledger.charge(COST, asked=text, identity=identity, mark=mark)
    if answer is not None:
        ledger.keep(entry, answer)
    return entry


def found(ledger: Any, vector: str, *, shared: bool = False) -> list[tuple[int, Any]]:
    return [(one.entry.number, one.value) for one in measured_before(ledger, vector, shared=shared)]


def test_charges_are_found_by_what_they_measured(place: Any) -> None:
    ledger = place.open(dp.Pure(epsilon=9))
    one = charged(ledger, "one", FIRST, answer=[1])
    assert found(ledger, FIRST) == [(one.number, [1])]
    both = charged(ledger, "both", FIRST, SECOND, answer=[2, 3])
    waiting = charged(ledger, "waiting", FIRST)
    ledger.charge(COST, asked=f"a text\n-- measured {'c' * 32}: x; sums {FIRST} x80")
    assert found(ledger, FIRST) == [(one.number, [1]), (both.number, [2, 3])]
    assert found(ledger, SECOND) == [(both.number, [2, 3])]
    ledger.keep(waiting, [4])
    assert [number for number, _ in found(ledger, FIRST)] == [one.number, both.number, waiting.number]
    ana = ledger.for_analyst("ana", limit=dp.Pure(epsilon=1))
    own = charged(ana, "own", FIRST, answer=[5])
    assert found(ana, FIRST) == [(own.number, [5])]
    assert [number for number, _ in found(ana, FIRST, shared=True)][:1] == [one.number]
    assert own.number not in [number for number, _ in found(ledger, FIRST)]
    again = place.open()
    assert found(again, SECOND) == [(both.number, [2, 3])]
    [[[identity]]] = ledger._store.look(("SELECT identity FROM entries WHERE number = ?", both.number))
    ledger.discard([(None, identity)], after=both.number - 1)
    assert found(ledger, SECOND) == found(again, SECOND) == []

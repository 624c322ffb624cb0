"""One line of the record, as it is shown to people."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any, Literal

from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.rules.best_of import Vector
from discreet.ledger.book import WHOLE, EntryRow, vectors
from discreet.ledger.marks import split_mark
from discreet.ledger.parts import named_in, of_accounts
from discreet.ledger.texts.record import read_guarantee

Kind = Literal["opening", "charge", "limit", "renewal", "account", "adoption", "standing", "step"]
State = Literal["recorded", "reserved", "answered", "discarded"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What was asked, its guarantee, its cost, and the chain of all previous entries.

    `kind` is "charge" for a release. The owner's own entries set limits, and have the limit as their guarantee. `cost`
    and `totals` are in units of 10^-18. `state` is "reserved" until an answer is stored, then "answered", or
    "discarded" if it came too late. A `repeatable` entry has a key or a public identity, with which its answer can be
    requested again. `mark` says what was measured, if its numbers may answer another question. `parts` are the parts of
    the data that it touches alone. If there are none, it touches everything.
    """

    number: int
    kind: Kind
    analyst: str | None
    asked: str
    mark: str
    mechanism: str
    guarantee: Guarantee
    cost: Vector
    totals: dict[str, Vector] = field(hash=False)
    key: str | None
    code_version: str
    time: float
    state: State
    repeatable: bool
    chain: str
    parts: tuple[str, ...] = ()

    @property
    def receipt(self) -> str:
        """A short name for the entry, to be quoted next to the answer."""
        return f"{self.number}-{self.chain[:4]}"

    def exported(self) -> dict[str, Any]:
        """The entry as plain values, for a spreadsheet or another program."""
        return {
            "number": self.number,
            "receipt": self.receipt,
            "time": datetime.datetime.fromtimestamp(self.time, datetime.UTC).isoformat(timespec="milliseconds"),
            "kind": self.kind,
            "analyst": self.analyst,
            "asked": self.asked,
            "mechanism": self.mechanism,
            "guarantee": str(self.guarantee),
            "parts": ", ".join(self.parts) or None,
            "state": self.state,
            "key": self.key,
            "code_version": self.code_version,
            "chain": self.chain,
        }


def entry_of(
    row: EntryRow,
    state: State,
    *,
    costs: dict[str, Vector] | None = None,
    totals: dict[str, Vector] | None = None,
) -> Entry:
    """The entry in a row. `state` is that of a charge. Costs and totals are read from the row, unless it was just made
    from them.
    """
    charge = row.kind == "charge"
    costs = vectors(row.costs) if costs is None else costs
    asked, mark = split_mark(row.asked)
    return Entry(
        number=row.number,
        kind=row.kind,  # type: ignore[arg-type]
        analyst=row.analyst or None,
        asked=asked,
        mark=mark,
        mechanism=row.mechanism,
        guarantee=read_guarantee(row.content) if charge else row.rule.limit,
        cost=costs.get(WHOLE, ()),
        totals=of_accounts(vectors(row.totals)) if totals is None else totals,
        key=row.retry_key,
        code_version=row.code_version,
        time=row.microseconds / 1e6,
        state=state if charge else "recorded",
        repeatable=row.retry_key is not None or row.identity is not None,
        chain=row.chain,
        parts=named_in(costs),
    )

"""One charged question, from its reservation to its record, and what is said if it has no answer."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.errors import BudgetExhausted, EngineFailed, ServiceUnavailable
from discreet.gateway.books import late, limits, questions
from discreet.gateway.books.accounts import CHARGED
from discreet.gateway.books.tokens import Caller
from discreet.gateway.vault.asking import Asked
from discreet.gateway.vault.clock import Slot
from discreet.ledger.texts.record import read_guarantee

if TYPE_CHECKING:
    from discreet.gateway.vault.vault import Vault


class Purchase:
    """One charged question, from its reservation to its record. Everything here runs in the thread of the books."""

    def __init__(self, vault: Vault, caller: Caller, asked: Asked, costs: Mapping[str, Any]) -> None:
        self._vault, self._caller, self._asked = vault, caller, asked
        self.account, self.before = account_of(caller), 0
        self.costs(costs)

    def costs(self, said: Mapping[str, Any]) -> None:
        """What the question costs, and which parts it is charged to, as a reader says. A late question is charged like
        one that is answered: to these alone, if its lane read nothing else.
        """
        self._owed, self._epsilon, self._name = said["owed"], Fraction(said["epsilon"]), said["name"]
        parts, division = said["within"]
        whole = self._vault.view(self._caller)
        self._ledger = whole._within(*parts, division=division) if parts else whole

    def begin(self) -> None:
        """Count the question against every limit, before anything is charged."""
        vault = self._vault
        if vault.is_unsettled:
            raise stopping_error()
        asked = self._asked
        self._reserved = limits.reserve(
            *(vault.store, vault.settings, self._caller, self._epsilon, vault.office.now()),
            digest=self._name,
            sql=asked.sql,
            agent=asked.agent,
            why=asked.why,
        )
        self.before = self._ledger.count
        vault.purchases.add(self)

    def settle(self, slot: Slot) -> None:
        """Record what became of the question, before its slot ends."""
        vault, now = self._vault, self._vault.office.now()
        if slot.reply is None:
            vault.is_unsettled = True
            self._ledger.discard(  # how far it came must not show in what remains
                slot.charging,
                after=self.before,
                owed=[read_guarantee(text) for text in self._owed],
                asked=f"{self._asked.sql} (not answered in time)",
                key=self._asked.ledger_key,
            )
            late.record_late(vault.store, self._caller.account, self._asked.late_name, now)
            vault.is_unsettled = False
            return
        header = slot.reply.header
        refused = header.get("kind") == BudgetExhausted.__name__
        if not (header.get("ok") or refused):
            return
        # nothing was charged if the same was bought while this question waited
        charged = [entry.number for entry in self._ledger.charges_of(slot.charging, after=self.before)]
        if header.get("ok"):
            note(vault, self._caller, self._asked, header, since=self.before, charged=charged)
        if self._epsilon and not charged:
            limits.undo(vault.store, self._reserved)


def note(
    vault: Vault,
    caller: Caller,
    asked: Asked,
    said: Mapping[str, Any],
    *,
    since: int | None = None,
    charged: Iterable[int] = (),
) -> None:
    """Remember what a receipt was for, so that its answer can be asked for again. What was charged for it are the
    entries `charged`, which are after `since`. What earlier answers imply has no entry, and a name of its own. Public
    answers are not noted.
    """
    receipt = said["receipt"]
    if receipt is None:
        if not said["derived"]:
            return
        receipt, since = f"{questions.FREE}{asked.words[:16]}", None
    options = {**asked.options, **({} if asked.key is None else {"key": asked.key})}
    if asked.length > vault.settings.answer_after:  # a tile that is bought anew needs as much time
        options["answer_after"] = f"{asked.length:.12g}s"
    given = (vault.store, caller.account, receipt, asked.sql, options, time.time())
    questions.note_question(*given, version=vault.settings.version, since=since, charged=charged)


def account_of(caller: Caller) -> str:
    """The account in the ledger that a caller's questions are charged to. The owner's are the data set's own."""
    return caller.account if caller.role in CHARGED else ""


def spends(caller: Caller) -> bool:
    """Whether a caller has a budget, so that something remains of it."""
    return caller.role == "owner" or caller.role in CHARGED


def late_error() -> EngineFailed:
    """What leaves at the end of a slot if no answer did: the same, whatever the reason."""
    return EngineFailed(
        "There is no answer: it was not ready in time, or could not be computed. What the question costs stays "
        "charged, and to ask again is a new charge. Ask for less, or choose a longer time before you ask, such as "
        'answer_after = "10s".',
        code="gateway-late",
    )


def stopping_error() -> ServiceUnavailable:
    """What is said when nothing is charged any more."""
    return ServiceUnavailable(
        "The gateway is stopping. Nothing was charged. Ask again with the same Idempotency-Key.",
        code="gateway-unavailable",
    )

"""Errors as exit codes, which scripts can act on."""

from __future__ import annotations

from discreet.errors import (
    BudgetExhausted,
    DiscreetError,
    EngineFailed,
    EntropyUnavailable,
    LedgerDamaged,
    LedgerUnavailable,
    NotAllowed,
    ServiceUnavailable,
)


def exit_code(error: DiscreetError) -> int:
    """The status a script can act on.

    >>> exit_code(BudgetExhausted("nothing is left")), exit_code(NotAllowed("SELECT * shows rows of single people"))
    (4, 3)
    """
    match error:
        case BudgetExhausted():
            return 4
        case NotAllowed():
            return 3
        case EntropyUnavailable() | LedgerDamaged() | LedgerUnavailable() | ServiceUnavailable() | EngineFailed():
            return 1
        case _:
            return 2

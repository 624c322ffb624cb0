"""Every error this package raises.

    DiscreetError
    ├── InvalidArgument        a parameter is out of its domain; nothing was read or spent (also a ValueError)
    │   └── QueryError         a question is not a query, or names an unknown table or column
    ├── NotAllowed             a question is valid, but cannot be answered privately
    ├── IncompatibleGuarantee  two promises are stated for different units or neighbor relations
    ├── BudgetExhausted        a release would exceed the ledger's limit; nothing was spent
    ├── LedgerDamaged          a ledger was modified, truncated, copied or restored; nothing more is released
    ├── LedgerUnavailable      a ledger's database is busy or unreachable; nothing was returned
    ├── EngineFailed           DuckDB, PostgreSQL or Spark could not compute an answer; what was charged stays charged
    ├── ServiceUnavailable     a shuffler or an analyzer does not respond
    ├── EntropyUnavailable     the operating system provided no randomness: no noise, no answer
    ├── SealedValue            something tried to look at a true value
    └── MissingExtra           an optional package is needed (also an ImportError)

Every error has a stable `code` such as "budget-exhausted". Programs and tests compare it; the message is for people:
it says what is wrong and what to write instead, and never holds a private value. `error_codes/` explains each code.
"""

from __future__ import annotations


class DiscreetError(Exception):
    """The root of all errors raised here. `code` names what went wrong and stays the same between versions."""

    code: str = "error"
    place: tuple[str, int] | None = None
    """The text of a question, and which of its characters the message points at, from 0."""

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code

    def _render_traceback_(self) -> list[str]:
        """How notebooks show it: the caller's own lines, the code and the message, and no line of this package."""
        import traceback

        lines = []
        for frame, number in traceback.walk_tb(self.__traceback__):
            room = str(frame.f_globals.get("__name__", "")).partition(".")[0]
            if room == "discreet":
                break
            (step,) = traceback.StackSummary.extract(iter([(frame, number)]), capture_locals=False)
            if room not in ("IPython", "ipykernel") and not (step.line or "").startswith("get_ipython()"):
                where = "" if room == "__main__" else f"{step.filename}, "
                lines.append(f"{where}line {step.lineno}: {step.line}")
        said = f"{type(self).__name__} [{self.code}]: {self}"
        return [*lines, *said.splitlines(), *getattr(self, "__notes__", ())]


class InvalidArgument(DiscreetError, ValueError):
    """A parameter is outside its domain. Raised before any data is read."""

    code = "invalid-argument"


class QueryError(InvalidArgument):
    """A question that cannot be read: it is not a query, or names an unknown table or column."""

    code = "sql-unreadable"


class NotAllowed(DiscreetError):
    """A question that is valid, but cannot be answered privately. The message says what to write instead."""

    code = "not-allowed"


class IncompatibleGuarantee(DiscreetError):
    """Two guarantees are for different units, relations or trust models and cannot be added."""

    code = "incompatible-guarantee"


class BudgetExhausted(DiscreetError):
    """The release would exceed the ledger's limit. Nothing was charged.

    `remaining` is the largest guarantee of the same kind that would still fit, or None if nothing does.
    """

    code = "budget-exhausted"

    def __init__(self, message: str, *, remaining: object | None = None, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.remaining = remaining


class LedgerDamaged(DiscreetError):
    """The record of what was spent cannot be trusted, so nothing is released. The message says how to continue."""

    code = "ledger-damaged"


class LedgerUnavailable(DiscreetError):
    """The ledger's database is busy, unreachable or full. Nothing was returned."""

    code = "ledger-unavailable"


class EngineFailed(DiscreetError):
    """The engine could not answer. Its own message is not passed on, because it may quote values."""

    code = "engine-failed"


class ServiceUnavailable(DiscreetError):
    """A shuffler or an analyzer does not respond, or fails. Try again: nothing is counted or charged twice."""

    code = "service-unavailable"


class EntropyUnavailable(DiscreetError):
    """The operating system could not provide random bytes. Nothing is drawn without them."""

    code = "entropy-unavailable"


class SealedValue(DiscreetError):
    """A sealed true value was printed, compared, pickled or converted."""

    code = "sealed-value"


class MissingExtra(DiscreetError, ImportError):
    """An optional dependency is missing. The message has the exact pip command."""

    code = "missing-extra"

"""What every mechanism offers, and the search for the least noise that keeps a promise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, Protocol, TypeGuard, TypeVar, runtime_checkable

from discreet.errors import IncompatibleGuarantee, InvalidArgument, NotAllowed
from discreet.exact.rational import SMALLEST_EPSILON, Number, exactly, significant
from discreet.exact.search import bisect, bracket
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Approx, GaussianTradeoff, Guarantee, Renyi, ZeroConcentrated
from discreet.guarantees.rules.coordinates import stated_rho
from discreet.guarantees.unit import Unit, row
from discreet.queries.query import largest_change
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.rows.containers import Data

M = TypeVar("M")
TIGHT, TAUGHT = "tight", "taught"


@runtime_checkable
class Mechanism(Protocol):
    """A frozen value whose fields are the noise really drawn, never ε."""

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        """What releasing an answer of this sensitivity promises."""

    def error(self, confidence: float) -> Accuracy | tuple[Accuracy, ...]:
        """How wrong an answer may be; one accuracy for each part of an answer in several parts."""

    def _draw(self, value: Any) -> Any: ...


# --- what a mechanism may offer besides: it has the methods, and the door uses them -----------------------------


@runtime_checkable
class ReadsSensitivity(Protocol):
    """Reads a sensitivity that is a plain number for the shape and type of the answer, both public."""

    def sensitivity_for(self, sensitivity: SensitivityLike, value: Data) -> Any:
        """The sensitivity that `guarantee` takes."""


@runtime_checkable
class ChecksShape(Protocol):
    """Looks at a value before anything is charged."""

    def check(self, value: Data) -> None:
        """Raise if the value cannot be read. Only its shape and type decide, never its content."""


@runtime_checkable
class StatesSizes(Protocol):
    """Has an error that depends on a public size of the value."""

    def sizes(self, value: Data) -> dict[str, int]:
        """The arguments that `error` takes besides the confidence."""


@runtime_checkable
class NeedsRecords(Protocol):
    """Promises something only if enough records take part. Their number is public."""

    @property
    def at_least(self) -> int:
        """How many records must be readable."""


@runtime_checkable
class CountsRecords(Protocol):
    """Counts the records in hand that can be read."""

    def count_records(self, value: Data) -> int:
        """How many there are."""


@runtime_checkable
class AsksItself(Protocol):
    """Asks a query of its own of the rows."""

    @property
    def query(self) -> Any: ...


@runtime_checkable
class ShowsProgress(Protocol):
    """Tells someone how far it is, while it draws."""

    @property
    def progress(self) -> Any: ...


@runtime_checkable
class HasNorm(Protocol):
    """Adds noise for a sensitivity in one norm."""

    @property
    def norm(self) -> Any: ...


@runtime_checkable
class GoesOn(Protocol):
    """Answers again and again, at one cost for all: what `dp.stream` takes."""

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        """What all that it will ever say promises."""

    def error(self, confidence: float) -> Any:
        """How large the error of any output may be, for all outputs at once."""

    def _start(self) -> Any: ...


Part = TypeVar("Part")


def offers(mechanism: object, part: type[Part]) -> TypeGuard[Part]:
    """Whether a mechanism has all members of an optional part, as `isinstance` says it, much faster on Python 3.11."""
    return all(hasattr(mechanism, name) for name in _members(part))  # type: ignore[arg-type]


@cache
def _members(part: Any) -> tuple[str, ...]:
    return tuple(name for name in vars(part) if not name.startswith(("__", "_abc", "_is_")))


def check_enough_records(mechanism: Any, readable: int) -> None:
    """A typed error for fewer records than the mechanism's promise counts on.

    A mechanism whose promise depends on how many take part says so (`NeedsRecords`), and how many of those in hand can
    be read (`CountsRecords`). That number is public, as such a promise is for a replaced record; where records are
    added or removed no promise depends on it, and nothing compares it with a declared one.
    """
    needed = mechanism.at_least if offers(mechanism, NeedsRecords) else 0
    if readable < needed:
        raise NotAllowed(
            f"{readable} of {needed} reports can be read, so nothing is released. Collect more reports.",
            code="too-few-reports",
        )


def tidy(value: Fraction) -> Number:
    """The same number in its plainest exact form: an int, a float that prints as it, or the fraction."""
    if value.denominator == 1:
        return int(value)
    try:
        return float(value) if exactly(float(value)) == value else value
    except OverflowError:
        return value


def check_calibration(calibration: Any) -> None:
    """A typed error unless the calibration is 'tight' or 'taught'."""
    if calibration not in (TIGHT, TAUGHT):
        raise InvalidArgument(
            "calibration must be 'tight' (the least noise) or 'taught' (the documents' formula).", code="not-an-option"
        )


def plain_sensitivity(sensitivity: SensitivityLike, norm: str = "L1", dimension: int = 1) -> Sensitivity:
    """A sensitivity as given, or a plain number read as a bound in `norm` for the ledger's own unit."""
    if isinstance(sensitivity, Sensitivity):
        return sensitivity
    if sensitivity is None:
        raise InvalidArgument(
            "A sensitivity is needed: how far one unit can move the answer, such as sensitivity=1.",
            code="sensitivity-missing",
        )
    return Sensitivity(sensitivity, norm=norm, dimension=dimension)  # type: ignore[arg-type]


def rows_moved(unit: Unit, rows_per_person: int = 1) -> Sensitivity:
    """How many rows one unit can add, remove or replace."""
    return Sensitivity(largest_change(unit, rows_per_person, added=1, replaced=1), "L1", unit, grain=1)


def rows_in(sensitivity: SensitivityLike) -> Sensitivity:
    """The rows of one unit: one added or removed row by default, or this many for a plain number."""
    return rows_moved(row()) if sensitivity is None else plain_sensitivity(sensitivity)


def for_rows(guarantee: Guarantee) -> Guarantee:
    """The guarantee, for added or removed rows if no unit was named."""
    return guarantee if guarantee.protects is not None else replace(guarantee, neighbors="add_or_remove")


def is_pure(guarantee: Guarantee) -> TypeGuard[Approx]:
    """Whether ε alone is asked for, without a δ."""
    return isinstance(guarantee, Approx) and not exactly(guarantee.delta)


def meets(drawn: Guarantee, asked: Guarantee) -> bool:
    """Whether what is drawn keeps what was asked for."""
    match asked:
        case Approx():
            return drawn.delta_at(epsilon=asked.epsilon) <= exactly(asked.delta)
        case ZeroConcentrated():
            rho = stated_rho(drawn)
            return not drawn.infinite and rho is not None and rho <= exactly(asked.rho)
        case Renyi():
            return not drawn.infinite and drawn.renyi(float(asked.order)) <= exactly(asked.epsilon)
        case GaussianTradeoff():
            raise IncompatibleGuarantee(
                "Noise on a lattice is close to a Gaussian trade-off but not one. "
                "Ask for ZeroConcentrated(rho=mu**2/2) or for Approx(epsilon=…, delta=…)."
            )
    raise InvalidArgument(
        f"A mechanism cannot be calibrated for {type(asked).__name__}. Ask for Pure or Approx.",
        code="guarantee-not-supported",
    )


def stated_at(guarantee: Guarantee, delta: Fraction) -> Approx | None:
    """The (ε,δ) that a guarantee satisfies at this δ, for ledgers that add up nothing else. None if there is no such ε.

    ε and δ are each rounded up on grids of their own: ε is raised until the guarantee surely keeps both.
    """
    least = guarantee.epsilon_at(delta=delta)
    if not math.isfinite(least):
        return None
    for tries in range(40):
        epsilon = significant(exactly(least) * (1 + Fraction(2**tries - 1, 10**7)), up=True)
        stated = Approx(epsilon=max(epsilon, SMALLEST_EPSILON), delta=delta)
        if meets(guarantee, stated):
            return replace(stated, protects=guarantee.protects, trust=guarantee.trust, neighbors=guarantee.neighbors)
    return None


def least_noise(make: Callable[[Fraction], M], keeps: Callable[[M], bool], start: Fraction) -> M:
    """The mechanism with the smallest scale that keeps the promise, to 1 part in 10^9; `start` is a first
    guess.

    The returned scale was itself checked: bisection chooses it, the exact law decides.
    """

    def enough(scale: Fraction) -> bool:
        return keeps(make(scale))

    found = bracket(enough, start, least=Fraction(1, 2**1000), most=start * 2**200)
    if found is None:
        raise InvalidArgument(
            "No amount of this noise keeps the guarantee. Ask for a weaker one.", code="guarantee-out-of-reach"
        )
    least = bisect(enough, *found, relative=1e-9)
    rounded = significant(least, up=True, digits=10)
    return make(rounded) if enough(rounded) else make(least)

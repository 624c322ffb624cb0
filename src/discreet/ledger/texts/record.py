"""Guarantees, units and rules as JSON text, and back. An entry stores them so that its cost can be computed again.

Every value here is a frozen dataclass of numbers, so one pair of functions handles all of them. A fraction is written
as `{"ratio": "1/3"}`, a value as `{"is": "Pure", …}` with all its fields.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from discreet.errors import InvalidArgument, LedgerDamaged
from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Approx, GaussianTradeoff, Guarantee, Pure, Renyi, ZeroConcentrated
from discreet.guarantees.privacy_loss import derived_pairs, finite_pairs, pairs, randomized_bits, shuffled_pairs
from discreet.guarantees.privacy_loss.compose import LossDistribution
from discreet.guarantees.rules import advanced, filters, once
from discreet.guarantees.rules import best_of as rules
from discreet.guarantees.unit import Unit
from discreet.mechanisms.learning.minimizers.minimizer_pair import MinimizerPair
from discreet.mechanisms.protocol import tidy

KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Unit,
        Pure,
        Approx,
        ZeroConcentrated,
        Renyi,
        GaussianTradeoff,
        LossDistribution,
        pairs.LaplacePair,
        pairs.GaussianPair,
        pairs.TradeoffPair,
        finite_pairs.FinitePair,
        finite_pairs.ResponsePair,
        derived_pairs.SubsampledPair,
        derived_pairs.NearPair,
        derived_pairs.ConcentratedPair,
        derived_pairs.RenyiPair,
        derived_pairs.RenyiCurvePair,
        derived_pairs.BoundedRangePair,
        derived_pairs.EitherPair,
        shuffled_pairs.ShiftedBinomialPair,
        shuffled_pairs.TwoCountsPair,
        randomized_bits.RandomizedBitsPair,
        MinimizerPair,
        rules.BestOf,
        filters.Basic,
        filters.ZeroConcentratedRule,
        filters.RenyiRule,
        filters.GaussianRule,
        advanced.AdaptiveAdvanced,
        advanced.Heterogeneous,
        once.Once,
    )
}

T = TypeVar("T")
_SIMPLE = (Pure, Approx, ZeroConcentrated)
"""Guarantees whose fields are numbers, text and a unit."""
_NUMBERS = ("epsilon", "delta", "rho", "order", "mu", "conversion")


_CANONICAL = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)


def canonical(content: Any) -> str:
    """JSON in canonical form: the same content gives the same text."""
    return _CANONICAL.encode(content)


def to_text(value: Guarantee | filters.Rule | Unit) -> str:
    """A guarantee, a rule or a unit as text. Equal meanings give equal text: 1, 1.0 and Fraction(1) are written
    alike.
    """
    kind: Any = type(value)
    return _simple_text(kind, *_values(value)) if kind in _SIMPLE else canonical(_plain(value))


def state_for(guarantee: Guarantee, unit: Unit) -> Guarantee:
    """The same as `guarantee.stated_for(unit)`, which checks its numbers again: here they are remembered."""
    kind: Any = type(guarantee)
    return _simple_for(unit, kind, *_values(guarantee)) if kind in _SIMPLE else guarantee.stated_for(unit)


# both remember by type, too: 0.1 and Fraction(0.1) are equal, and mean different decimals
@lru_cache(maxsize=1024, typed=True)
def _simple_text(kind: type, *values: Any) -> str:
    return canonical(_plain(_simple(kind, values)))


@lru_cache(maxsize=1024, typed=True)
def _simple_for(unit: Unit, kind: type, *values: Any) -> Guarantee:
    return _simple(kind, values).stated_for(unit)


def _simple(kind: type, values: tuple[Any, ...]) -> Guarantee:
    return kind(**dict(zip(_form_of(kind)[1], values, strict=True)))  # type: ignore[no-any-return]


def _values(value: Any) -> list[Any]:
    kind: Any = type(value)
    return [getattr(value, name) for name in _form_of(kind)[1]]


@lru_cache(maxsize=1024)
def from_text(text: str) -> Any:
    """The value that was written. Raises LedgerDamaged if this version would not write such a text."""
    try:
        return _build(json.loads(text))
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError):
        raise LedgerDamaged(
            "An entry of the ledger is not in the form it was written in. Restore the newest undamaged copy."
        ) from None


def read_guarantee(text: str) -> Guarantee:
    """The guarantee that was written."""
    return _of_kind(Guarantee, text)


def read_rule(text: str) -> filters.Rule:
    """The rule that was written."""
    return _of_kind(filters.Rule, text)


def read_unit(text: str) -> Unit:
    """The unit that was written."""
    return _of_kind(Unit, text)


def _of_kind(kind: type[T], text: str) -> T:
    found = from_text(text)
    if not isinstance(found, kind):
        raise LedgerDamaged(
            f"An entry of the ledger has no {kind.__name__} where one was written. Restore the newest undamaged copy."
        )
    return found


def _plain(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if not is_dataclass(value):
        return _ratio(value)
    name, names, said = _form_of(type(value))  # type: ignore[arg-type]
    if KINDS.get(name) is not type(value):
        raise InvalidArgument(
            f"A ledger cannot record {name}. State the guarantee as Pure, Approx, ZeroConcentrated or Renyi, such as "
            "stated=dp.Pure(epsilon=1) in release.",
            code="ledger-cannot-record",
        )
    written: dict[str, Any] = {"is": name}
    for field in names:
        part = getattr(value, field)
        if part is not None:
            written[field] = _ratio(part) if said and field in _NUMBERS else _plain(part)
    return written


@lru_cache(maxsize=256)
def _form_of(kind: type) -> tuple[str, tuple[str, ...], bool]:
    """The name of a class, those of its fields, and whether its numbers are what a person wrote. Those of pairs are
    exact.
    """
    names = tuple(field.name for field in fields(kind) if field.init)
    return kind.__name__, names, issubclass(kind, Guarantee | filters.Rule)


def _ratio(number: Any) -> dict[str, str]:
    exact = exactly(number)
    return {"ratio": f"{exact.numerator}/{exact.denominator}"}


def _build(content: Any) -> Any:
    if isinstance(content, list):
        return tuple(map(_build, content))
    if not isinstance(content, dict):
        return content
    if "ratio" in content:
        numerator, denominator = content["ratio"].split("/")
        return Fraction(int(numerator), int(denominator))
    kind = KINDS.get(content.get("is", ""))
    if kind is None:
        raise LedgerDamaged(
            "This version of discreet does not know the content of an entry. Open the ledger with a newer version.",
            code="ledger-other-version",
        )
    built = {field: _build(part) for field, part in content.items() if field != "is"}
    if issubclass(kind, Guarantee):
        built = {field: tidy(part) if isinstance(part, Fraction) else part for field, part in built.items()}
    return kind(**built)

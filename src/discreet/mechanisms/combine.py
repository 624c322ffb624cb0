"""Mechanisms made of mechanisms: every record alone, several answers at once, a random sample of the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from discreet.errors import IncompatibleGuarantee, InvalidArgument
from discreet.exact import samplers
from discreet.exact.rational import Number, check_count, check_positive, check_probability, exactly
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.privacy_loss.compose import LossDistribution, compose, pair_of
from discreet.guarantees.privacy_loss.derived_pairs import subsampled
from discreet.guarantees.unit import row
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import HasNorm, NeedsRecords, ReadsSensitivity, least_noise, meets, offers
from discreet.mechanisms.reports.randomized_response import RandomizedResponse
from discreet.queries.sensitivity import Sensitivity, SensitivityLike
from discreet.queries.space import Categories, Grid, Integers, Interval, Space
from discreet.rows import cells, column, columns_of, has, names_of, none_of, parts_of, some
from discreet.rows.containers import Data


@dataclass(frozen=True)
class Each:
    """Randomizes every record alone: a sanitized database, or the local model; one object, run in two places.

    A record is one value of `spaces[0]`, or a tuple with one value of each space; `mechanisms` has one for each:
    Laplace or Gaussian noise for numbers, which are clamped into their space first, randomized response for categories.

    Promise: (ε,δ) for one replaced record is that of one record's mechanism [T.4.7]; the columns of a record add. n is
    public.
    Error: of one record, column by column. Source: [T.3.6], [T.4.3], [T.4.7], [T.4.9], [T.4.10].
    """

    mechanisms: tuple[Any, ...]
    spaces: tuple[Space, ...] = ()

    def __post_init__(self) -> None:
        mechanisms = self.mechanisms if isinstance(self.mechanisms, Sequence) else (self.mechanisms,)
        listed = tuple(self.spaces) if isinstance(self.spaces, Sequence) else (self.spaces,)
        if not listed:  # categories say themselves where they live
            listed = tuple(Categories(m.choices) for m in mechanisms if isinstance(m, RandomizedResponse))
        if len(mechanisms) != len(listed) or not listed:
            raise InvalidArgument(
                "Each needs one mechanism for each space of a record: Each(mechanisms, spaces).", code="wrong-shape"
            )
        for mechanism, space in zip(mechanisms, listed, strict=True):
            _check_column(mechanism, space)
        object.__setattr__(self, "mechanisms", tuple(mechanisms))
        object.__setattr__(self, "spaces", listed)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """The columns of one record composed; any two points of the spaces are neighbors."""
        unit = row(neighbors="replace")
        parts = []
        for mechanism, space in zip(self.mechanisms, self.spaces, strict=True):
            part = mechanism.guarantee(
                None if isinstance(space, Categories) else Sensitivity(space.diameter, unit=unit)
            )
            parts.append(replace(part, protects=unit, trust="local"))
        return parts[0] if len(parts) == 1 else compose(parts)

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, spaces: Space | Sequence[Space], calibration: str = "tight"
    ) -> Self:
        """Equal shares of (ε,δ) for the columns: Laplace noise for numbers, randomized response for categories."""
        if not isinstance(guarantee, Approx):
            raise InvalidArgument(
                "Each is calibrated for Pure and Approx. Ask for one of them.", code="guarantee-not-supported"
            )
        listed = tuple(spaces) if isinstance(spaces, Sequence) else (spaces,)
        columns = len(listed)
        share = replace(guarantee, epsilon=exactly(guarantee.epsilon) / columns)
        if exactly(guarantee.delta):
            share = replace(share, delta=exactly(guarantee.delta) / columns)
        chosen = [
            RandomizedResponse.for_guarantee(share, choices=space.points())
            if isinstance(space, Categories)
            else Laplace.for_guarantee(share, sensitivity=space.diameter, calibration=calibration)
            for space in listed
        ]
        return cls(mechanisms=tuple(chosen), spaces=listed)

    @classmethod
    def for_error(
        cls, amounts: Number | Sequence[Number], *, spaces: Space | Sequence[Space], confidence: float = 0.95
    ) -> Self:
        """Noise within an amount for each column: a distance for numbers, the fraction of wrong records for
        categories.
        """
        listed = tuple(spaces) if isinstance(spaces, Sequence) else (spaces,)
        wanted = tuple(amounts) if isinstance(amounts, Sequence) else (amounts,)
        chosen = [
            RandomizedResponse.for_error(amount, choices=space.points())
            if isinstance(space, Categories)
            else Laplace.for_error(amount, confidence=confidence)
            for amount, space in zip(wanted, listed, strict=True)
        ]
        return cls(mechanisms=tuple(chosen), spaces=listed)

    def error(self, confidence: float) -> Accuracy | tuple[Accuracy, ...]:
        """The error of one record: one accuracy, or one for each column."""
        errors = tuple(mechanism.error(confidence) for mechanism in self.mechanisms)
        return errors[0] if len(errors) == 1 else errors

    def check(self, value: Data) -> None:
        """Raise if the value cannot be read. Only its shape and type decide, never its content."""
        self._draw(none_of(value))

    def _draw(self, value: Any) -> Any:
        if len(self.spaces) == 1:
            return self._column(0, value)
        columns = [self._column(i, part) for i, part in enumerate(_columns_of(value, len(self.spaces)))]
        return list(zip(*(part.tolist() if hasattr(part, "tolist") else part for part in columns), strict=True))

    def _column(self, index: int, records: Any) -> Any:
        space, mechanism = self.spaces[index], self.mechanisms[index]
        if isinstance(space, Interval | Integers | Grid):
            return mechanism._draw_between(space.clamp(column(records)), *space.ends)
        return mechanism._draw(cells(records))


def _columns_of(records: Any, width: int) -> list[Any]:
    """The columns of a frame, a matrix or a list of records; all parts of a record of another width are missing."""
    names = names_of(records)
    if names is not None:
        shape, parts = len(names), columns_of(records)
    elif getattr(records, "ndim", 1) == 2:
        shape, parts = records.shape[1], list(records.T)
    else:
        nothing = [None] * width
        lines = [parts_of(record, width) or nothing for record in cells(records)]
        shape, parts = width, [[line[place] for line in lines] for place in range(width)]
    if shape != width:
        raise InvalidArgument(f"A record has {width} values, one for each space.", code="wrong-shape")
    return parts


def _check_column(mechanism: Any, space: Any) -> None:
    """A typed error unless the mechanism randomizes single values of the space."""
    if isinstance(space, Categories):
        if not isinstance(mechanism, RandomizedResponse) or mechanism.choices != space.points():
            raise InvalidArgument(
                "A column of categories needs a RandomizedResponse over the same choices.", code="part-does-not-fit"
            )
    elif not isinstance(space, Interval | Integers | Grid):
        raise InvalidArgument(
            "The columns of a record must be numbers or categories. For a vector, give one space for each coordinate.",
            code="wrong-type",
        )
    elif not isinstance(mechanism, Laplace | Gaussian):
        raise InvalidArgument("A column of numbers needs Laplace or Gaussian noise.", code="part-does-not-fit")


@dataclass(frozen=True, kw_only=True)
class Composed:
    """Answers several questions at once, one mechanism for each; all of them are fixed before the first is
    drawn.

    Promise: the numerically tight composition of the parts. Error: of each part.
    """

    mechanisms: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.mechanisms, Sequence) or not self.mechanisms:
            raise InvalidArgument(
                "Composed needs a list of at least one mechanism.",
                code="empty" if isinstance(self.mechanisms, Sequence) else "wrong-type",
            )
        object.__setattr__(self, "mechanisms", tuple(self.mechanisms))

    def _parts(self, sensitivity: Any) -> tuple[Any, ...]:
        shared = not isinstance(sensitivity, Sequence)
        parts = (sensitivity,) * len(self.mechanisms) if shared else tuple(sensitivity)
        if len(parts) != len(self.mechanisms):
            raise InvalidArgument("Give one sensitivity for all parts, or one for each.", code="wrong-shape")
        return parts

    def sensitivity_for(self, sensitivity: SensitivityLike | Sequence[SensitivityLike], value: Data) -> tuple[Any, ...]:
        """Each part's own reading of its sensitivity, for the shape and type of its answer."""
        parts = self._parts(sensitivity)
        self.guarantee(sensitivity)  # refuses a bad sensitivity before the answers are looked at
        if len(value) != len(self.mechanisms):
            raise InvalidArgument(f"Give {len(self.mechanisms)} answers, one for each mechanism.", code="wrong-shape")
        return tuple(
            m.sensitivity_for(s, v) if offers(m, ReadsSensitivity) else s
            for m, s, v in zip(self.mechanisms, parts, value, strict=True)
        )

    def guarantee(self, sensitivity: SensitivityLike | Sequence[SensitivityLike]) -> LossDistribution:
        return compose(m.guarantee(s) for m, s in zip(self.mechanisms, self._parts(sensitivity), strict=True))

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, of: Callable[[Fraction], Sequence[Any]], sensitivity: SensitivityLike
    ) -> Self:
        """The least noise of a family `of(scale)` whose composition keeps `guarantee`."""
        return least_noise(
            lambda scale: cls(mechanisms=tuple(of(scale))),
            lambda m: meets(m.guarantee(sensitivity), guarantee),
            Fraction(1),
        )

    @classmethod
    def for_error(
        cls, amounts: Sequence[Any], *, of: Callable[..., Any] = Laplace.for_error, confidence: float = 0.95
    ) -> Self:
        """One part for each amount, all within their amounts at once with this confidence."""
        each = 1 - (1 - check_confidence(confidence)) / len(amounts)
        return cls(mechanisms=tuple(of(amount, confidence=each) for amount in amounts))

    def error(self, confidence: float) -> tuple[Accuracy, ...]:
        """The error of each part, all at once with this confidence (a union bound)."""
        each = 1 - (1 - check_confidence(confidence)) / len(self.mechanisms)
        return tuple(m.error(each) for m in self.mechanisms)

    def _draw(self, value: Sequence[Any]) -> tuple[Any, ...]:
        if len(value) != len(self.mechanisms):
            raise InvalidArgument(f"Give {len(self.mechanisms)} answers, one for each mechanism.", code="wrong-shape")
        return tuple(m._draw(v) for m, v in zip(self.mechanisms, value, strict=True))


def _refuse_minimum(mechanism: Any) -> None:
    """A typed error for a mechanism that counts on a number of records, which groups and samples keep private."""
    if offers(mechanism, NeedsRecords) and mechanism.at_least:
        raise InvalidArgument(
            "The promise of this mechanism needs a minimum number of records, and the number of records in a group "
            "or a sample is private. Apply the mechanism to all records.",
            code="size-is-private",
        )


@dataclass(frozen=True, kw_only=True)
class PerGroup:
    """Answers one question in every group; one unit is in at most `groups` of them.

    Promise: the numerically tight composition of `groups` answers, however many groups there are.
    Error: of the answer in one group.
    """

    mechanism: Any
    groups: int = 1

    def __post_init__(self) -> None:
        check_count(self.groups, "groups")
        _refuse_minimum(self.mechanism)

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        return compose([self.mechanism.guarantee(sensitivity)] * self.groups)

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, of: Callable[[Fraction], Any], sensitivity: SensitivityLike, groups: int = 1
    ) -> Self:
        """The least noise of a family `of(scale)` that satisfies `guarantee` for a unit in this many groups."""
        return least_noise(
            lambda scale: cls(mechanism=of(scale), groups=groups),
            lambda m: meets(m.guarantee(sensitivity), guarantee),
            Fraction(1),
        )

    def error(self, confidence: float) -> Accuracy:
        return self.mechanism.error(confidence)  # type: ignore[no-any-return]

    def _draw(self, value: Sequence[Any]) -> list[Any]:
        return [self.mechanism._draw(one) for one in value]


@dataclass(frozen=True, kw_only=True)
class Subsampled:
    """Asks `query` of a Poisson sample of the rows, each kept with probability `rate`, and answers by
    `mechanism`.

    Promise: add or remove one row: with it the output is the mixture (1−rate)·Q + rate·P, and the loss is
    computed from that mixture, in both directions. Right only when every row is kept by its own independent
    coin, as it is here.
    Error: none is stated, since what a sample leaves out depends on the data; `mechanism.error` is that of the answer
    about the SAMPLE.
    """

    mechanism: Any
    rate: Number
    query: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        check_probability(self.rate, "rate")
        _refuse_minimum(self.mechanism)

    def sensitivity_for(self, sensitivity: SensitivityLike, value: Data) -> Any:
        """A plain number read for the shape of the answer about no rows at all, which says nothing about the data."""
        if isinstance(sensitivity, Sensitivity) or not offers(self.mechanism, HasNorm):
            return sensitivity
        amount = check_positive(sensitivity, "sensitivity")
        if self.query is None:
            return sensitivity
        shape = np.shape(self.query(none_of(value)))
        return Sensitivity(amount, self.mechanism.norm, dimension=max(math.prod(shape), 1))

    def guarantee(self, sensitivity: SensitivityLike) -> Guarantee:
        base = self.mechanism.guarantee(sensitivity)
        factors = pair_of(base)
        if base.relation != "add_or_remove" or (base.protects is not None and not base.protects.same_kind(row())):
            raise IncompatibleGuarantee(
                "Poisson subsampling is proved for row(), added or removed: each row has a coin, so a person or a few "
                "rows have several. State the sensitivity for row()."
            )
        if len(factors) != 1 or factors[0][1] != 1:
            raise IncompatibleGuarantee("Subsample one mechanism at a time, and compose the subsampled ones.")
        pair = subsampled(factors[0][0], check_probability(self.rate))
        return LossDistribution(factors=((pair, 1),), protects=row())

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        of: Callable[[Fraction], Any],
        rate: Number,
        sensitivity: SensitivityLike,
        times: int = 1,
        query: Callable[[Any], Any] | None = None,
    ) -> Self:
        """The least noise of a family `of(scale)` for which `times` subsampled answers together keep `guarantee`."""
        return least_noise(
            lambda scale: cls(mechanism=of(scale), rate=rate, query=query),
            lambda m: meets(compose([m.guarantee(sensitivity)] * times), guarantee),
            Fraction(1),
        )

    @classmethod
    def for_error(
        cls, amount: Number, *, rate: Number, confidence: float = 0.95, query: Callable[[Any], Any] | None = None
    ) -> Self:
        """Laplace noise within `amount` of the answer about the sample."""
        return cls(mechanism=Laplace.for_error(amount, confidence=confidence), rate=rate, query=query)

    def error(self, confidence: float) -> Accuracy:
        sure, why = check_confidence(confidence), "what a sample leaves out depends on the data"
        return Accuracy(amount=None, confidence=sure, reason=f"{why}; of the sample's own answer: mechanism.error")

    def check(self, value: Data) -> None:
        """Raise if the value cannot be read. Only its shape and type decide, never its content."""
        if self.query is not None:
            self.query(none_of(value))

    def _draw(self, value: Any) -> Any:
        if self.query is None:
            raise InvalidArgument(
                "Subsampled needs a query to ask of the sampled rows: Subsampled(mechanism=…, rate=…, query=…).",
                code="missing-argument",
            )
        rows = value if has(value, "__len__") else list(value)
        count = len(next(iter(rows.values()), ())) if isinstance(rows, Mapping) else len(rows)
        kept = samplers.bernoulli(exactly(self.rate), count)
        return self.mechanism._draw(self.query(some(rows, kept)))

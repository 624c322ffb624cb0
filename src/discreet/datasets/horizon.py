"""The horizon of a standing question: which blocks of time it is about, and its definition as it is recorded."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any, Required, TypedDict

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_delta, check_epsilon, exactly
from discreet.guarantees.guarantee import Approx, Pure
from discreet.guarantees.unit import BLOCKS, Block
from discreet.ledger.steps import MOST_STEPS
from discreet.mechanisms.protocol import tidy
from discreet.sql.blocks import EXAMPLES, FirstBlocks, blocks_from, name_of, next_start, read_name
from discreet.sql.pricing.bounds import validate_bounds
from discreet.sql.schema import Schema


class StandingOptions(TypedDict, total=False):
    """The options of a standing question: those of `Database.standing`."""

    every: Required[Block]
    times: Required[int]
    epsilon: Required[Number]
    delta: Number | None
    first: str | None
    totals: bool
    blocks_per_person: int | None
    weights: Mapping[str, Number] | None
    bounds: Mapping[str, int] | None
    today: datetime.date | None


@dataclass(frozen=True, kw_only=True)
class Horizon:
    """A question that is asked of each of `times` blocks of time, and what all answers together may cost.

    With `totals`, the answers add up: their running totals have little noise. With `blocks_per_person`, only the first
    few blocks of a person count.
    """

    question: str
    every: Block
    first: str
    times: int
    epsilon: Fraction
    delta: Fraction
    totals: bool = False
    blocks_per_person: int | None = None
    weights: Mapping[str, Fraction] = field(default_factory=dict)
    bounds: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.question, str):
            raise InvalidArgument('A question is a text in SQL: "SELECT COUNT(*) AS n FROM visits".', code="wrong-type")
        if self.every not in BLOCKS:
            raise InvalidArgument(f"every must be one of {', '.join(BLOCKS)}.", code="not-an-option")
        if check_count(self.times, "times") > MOST_STEPS:
            raise InvalidArgument(f"times must be at most {MOST_STEPS:,}.", code="too-large")
        if not isinstance(self.totals, bool):
            raise InvalidArgument("totals must be True or False.", code="wrong-type")
        if self.blocks_per_person is not None and check_count(self.blocks_per_person, "blocks_per_person") > self.times:
            raise InvalidArgument("A person is in at most all blocks: lower blocks_per_person.", code="standing-turns")
        if read_name(self.every, self.first) is None:
            raise InvalidArgument(
                f'A horizon begins with a block of time, such as first="{EXAMPLES[self.every]}".', code="part-name"
            )
        if len(self.blocks) < self.times:
            raise InvalidArgument("The horizon goes beyond the year 9999. Lower times.", code="out-of-range")
        check_epsilon(self.epsilon)
        check_delta(self.delta)

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """The names of the blocks, in order."""
        return tuple(islice(blocks_from(self.every, self.first), self.times))

    @property
    def limit(self) -> Approx:
        """What all answers together may cost."""
        epsilon = tidy(self.epsilon)
        return Approx(epsilon=epsilon, delta=tidy(self.delta)) if self.delta else Pure(epsilon=epsilon)

    def ended(self, today: datetime.date) -> tuple[str, ...]:
        """The blocks that have ended: those whose last day is before today."""
        return tuple(name for name in self.blocks if _end(self.every, name) <= today)

    def in_order(self, name: Any) -> int:
        """The place of a block, from 0."""
        if name not in self.blocks:
            raise InvalidArgument(
                f"This block is not in the horizon, which is from {self.blocks[0]} to {self.blocks[-1]}.",
                code="standing-block",
            )
        return self.blocks.index(name)

    def schema(self, schema: Schema, *names: str) -> Schema:
        """The schema in which only the rows in these blocks count."""
        return replace(schema, parts=names, first_blocks=self.turns)

    @property
    def turns(self) -> FirstBlocks | None:
        """Which blocks of a person count, if not all do."""
        if self.blocks_per_person is None:
            return None
        return FirstBlocks(self.blocks[0], self.blocks[-1], self.blocks_per_person)

    def same_but_for_time(self, other: Horizon) -> bool:
        """Whether both ask the same, whenever they began."""
        mine, theirs = self.written(), other.written()
        return {**mine, "first": None} == {**theirs, "first": None}

    def written(self) -> dict[str, Any]:
        """As it is recorded: plain text and numbers."""
        return {
            "question": self.question,
            "every": self.every,
            "first": self.first,
            "times": self.times,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "totals": self.totals,
            "blocks_per_person": self.blocks_per_person,
            "weights": {name: str(exactly(weight)) for name, weight in self.weights.items()},
            "bounds": dict(self.bounds),
        }

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Horizon:
        """The horizon that was recorded."""
        known = {name: said[name] for name in ("question", "every", "first", "times", "totals", "blocks_per_person")}
        weights = {name: Fraction(weight) for name, weight in said["weights"].items()}
        amounts: dict[str, Any] = {name: Fraction(said[name]) for name in ("epsilon", "delta")}
        return cls(**known, **amounts, weights=weights, bounds=dict(said["bounds"]))


def _end(every: Block, name: str) -> datetime.date:
    """The first day after a block."""
    start = read_name(every, name)
    assert start is not None
    try:
        return next_start(every, start)
    except OverflowError:
        return datetime.date.max


def horizon_of(
    question: Any,
    delta_per_question: Number,
    *,
    every: Block,
    times: int,
    epsilon: Number,
    delta: Number | None = None,
    first: str | None = None,
    totals: bool = False,
    blocks_per_person: int | None = None,
    weights: Mapping[str, Number] | None = None,
    bounds: Mapping[str, int] | None = None,
    today: datetime.date | None = None,
) -> Horizon:
    """The horizon of a question with the options of `Database.standing`. It begins today if no block is named."""
    day = check_day(today)
    if every not in BLOCKS:
        raise InvalidArgument(f"every must be one of {', '.join(BLOCKS)}.", code="not-an-option")
    if not isinstance(weights, Mapping | None):
        raise InvalidArgument('weights must name columns of the answer, such as {"visits": 2}.', code="wrong-type")
    return Horizon(
        question=question,
        every=every,
        first=name_of(every, day) if first is None else first,
        times=times,
        epsilon=check_epsilon(epsilon),
        delta=check_delta(delta_per_question if delta is None else delta),
        totals=totals,
        blocks_per_person=blocks_per_person,
        weights={name: exactly(weight, "weight") for name, weight in (weights or {}).items()},
        bounds=validate_bounds(bounds),
    )


def check_day(today: Any) -> datetime.date:
    """A day, by default today in UTC."""
    if today is None:
        return datetime.datetime.now(datetime.UTC).date()
    if isinstance(today, datetime.datetime) or not isinstance(today, datetime.date):
        raise InvalidArgument("today must be a date, such as datetime.date(2025, 1, 31).", code="wrong-type")
    return today

"""Earlier answers that measured the same vector, and all that they say about its cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from discreet.guarantees.guarantee import Guarantee
from discreet.ledger import Ledger
from discreet.ledger.reports.measured import Measured, measured_before
from discreet.sql.estimates.cells import LinearQuestion, Places
from discreet.sql.estimates.law import Noise
from discreet.sql.estimates.least_squares import Block, Floats, Information, spread_places
from discreet.sql.estimates.points import MOST_CELLS
from discreet.sql.estimates.written import read_linear
from discreet.sql.running.stored import Mark, noise_in

Columns = tuple[int, ...]
_MOST_KEPT = 64
"""So many sets of columns are kept factored for one ledger."""


@dataclass(frozen=True, eq=False)
class Source:
    """One measure of an answered charge: which cells it added up, with which noise, and the noisy numbers."""

    number: int
    receipt: str
    sizes: dict[int, int]
    groups: int
    places: Places
    noise: Noise
    values: Floats
    guarantee: Guarantee
    not_private: bool
    place: int

    def block(self, columns: Columns, sizes: Sequence[int]) -> Block:
        """The same over the cells of more columns."""
        shape = [self.sizes.get(column, 1) for column in columns]
        places = np.broadcast_to(self.places.reshape(shape), sizes).ravel()
        rows = spread_places(places, self.groups)
        return Block(self.number, self.receipt, rows, self.noise, self.values, self.place)


@dataclass
class _Kept:
    """What is known of one ledger: sources by entry and vector, which δ they need, and information that is factored."""

    sources: dict[tuple[int, str], tuple[Source, ...]] = field(default_factory=dict)
    finite: dict[tuple[int, Fraction], bool] = field(default_factory=dict)
    information: dict[Any, tuple[tuple[int, ...], Information]] = field(default_factory=dict)


_KEPT: WeakKeyDictionary[Ledger, _Kept] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Known:
    """What earlier answers say about a vector, over the cells of `columns`."""

    columns: Columns
    sizes: tuple[int, ...]
    information: Information
    sources: dict[int, Source]

    def rows_of(self, question: LinearQuestion, measure: int) -> Floats:
        """The sums that a question asks for, over these cells."""
        own = dict(zip(question.columns, question.sizes, strict=True))
        shape = [own.get(column, 1) for column in self.columns]
        places = np.broadcast_to(question.measures[measure].places.reshape(shape), self.sizes).ravel()
        return spread_places(places, question.groups)


def known_about(
    ledger: Ledger, question: LinearQuestion, measure: int, *, shared: bool, delta: Fraction, before: int | None = None
) -> Known:
    """What answers that were released before say about a measure of a question. `delta` is what the question may use:
    numbers that keep their promise only with more are left out. So are entries from the one numbered `before` on.
    """
    kept, vector = _KEPT.setdefault(ledger, _Kept()), question.measures[measure].vector
    found = list[Source]()
    for one in measured_before(ledger, vector, shared=shared):
        if before is not None and one.entry.number >= before:
            break
        name = one.entry.number, vector
        if name not in kept.sources:
            kept.sources[name] = tuple(_sources_in(one, vector))
        if kept.sources[name] and _is_finite(kept, one, delta):
            found += kept.sources[name]
    sizes = _chosen_columns(question, found)
    columns = tuple(sorted(sizes))
    chosen = [one for one in found if all(sizes.get(column) == size for column, size in one.sizes.items())]
    lengths = tuple(sizes[column] for column in columns)
    information = _factored(kept, (vector, columns, delta, shared, before), chosen, lengths, columns)
    return Known(columns, lengths, information, {one.number: one for one in chosen})


def _factored(kept: _Kept, name: Any, chosen: list[Source], sizes: tuple[int, ...], columns: Columns) -> Information:
    """The information of these sources: what was factored before, and those that are new."""
    numbers = tuple(one.number for one in chosen)
    before, information = kept.information.pop(name, ((), Information(math.prod(sizes))))
    if before != numbers[: len(before)]:
        before, information = (), Information(math.prod(sizes))
    information = information.with_blocks([one.block(columns, sizes) for one in chosen[len(before) :]])
    kept.information[name] = numbers, information
    if len(kept.information) > _MOST_KEPT:
        del kept.information[next(iter(kept.information))]
    return information


def _sources_in(one: Measured, vector: str) -> list[Source]:
    """The measures of a charge that measured a vector."""
    mark, linear = Mark.read(one.entry.mark), read_linear(one.entry.mark)
    if mark is None or linear is None or not len(linear[0].measures) == len(mark.noise) == len(one.value):
        return []
    question, found = linear[0], list[Source]()
    for place, measure in enumerate(question.measures):
        noise, values = noise_in(mark.noise[place]), np.asarray(one.value[place], dtype=np.float64)
        if measure.vector != vector or noise is None or values.shape != (question.groups,):
            continue
        sizes = dict(zip(question.columns, question.sizes, strict=True))
        facts = one.entry.number, one.entry.receipt, sizes, question.groups, measure.places, noise, values
        found.append(Source(*facts, one.entry.guarantee, one.not_private, place))
    return found


def _is_finite(kept: _Kept, one: Measured, delta: Fraction) -> bool:
    """Whether a charge keeps its promise with this δ."""
    name = one.entry.number, delta
    if name not in kept.finite:
        guarantee = one.entry.guarantee
        pure = guarantee.largest_loss is not None and not guarantee.infinite
        kept.finite[name] = pure or (bool(delta) and math.isfinite(guarantee.epsilon_at(delta=delta)))
    return kept.finite[name]


def _chosen_columns(question: LinearQuestion, sources: list[Source]) -> dict[int, int]:
    """The columns of an estimate: those of the question, and more as long as the cells are not too many. Those that
    make the fewest cells come first, and where it is equal, those of the most sources.
    """
    chosen = dict(zip(question.columns, question.sizes, strict=True))
    kinds: dict[tuple[tuple[int, int], ...], int] = {}
    for one in sources:
        name = tuple(sorted(one.sizes.items()))
        kinds[name] = kinds.get(name, 0) + 1
    while kinds:
        fits = {
            name: many
            for name, many in kinds.items()
            if math.prod((chosen | dict(name)).values()) <= MOST_CELLS
            and all(chosen.get(column, size) == size for column, size in name)
        }
        if not fits:
            break
        added = min(fits, key=lambda name: (math.prod((chosen | dict(name)).values()), -kinds[name], name))
        chosen |= dict(added)
        del kinds[added]
    return chosen

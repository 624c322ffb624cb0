"""Which rows a study uses, how many there are, and which methods it may use: decided before any row is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.adaptive.reading import columns_of, people_of
from discreet.adaptive.sample import Sample
from discreet.door import Session, stream, through
from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.rational import check_count, check_positive, exactly
from discreet.guarantees.accuracy import at_most
from discreet.guarantees.guarantee import Approx
from discreet.guarantees.unit import Unit, check_one_row, check_whole_person, row
from discreet.ledger import Ledger, cost_of
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.sampling import random_order
from discreet.queries.sensitivity import Sensitivity
from discreet.releases import Release

COUNTED = 20
"""The scale of the Laplace noise that counts rows, where their number is not public: it costs ε = 0.05."""
DELTA = Fraction(1, 10**9)
"""The δ at which a study is charged to a ledger that adds up ε and δ; a tenth of the limit's where that is less."""


@dataclass(frozen=True)
class Source:
    """Rows for a study. They are `protected` unless the caller says that they belong to nobody.

    `declared` is the public number of rows, if the caller gives one. `sized` says that the actual number is public.
    """

    read: Callable[[], dict[str, Any]]
    count: Callable[[], int]
    counted: Callable[[], Release]
    ledger: Ledger | None
    protected: bool
    declared: int | None
    sized: bool

    @property
    def unit(self) -> Unit:
        """What is protected. Without a ledger it is a row, which is replaced if the exact number of rows is used."""
        if self.ledger is not None:
            return self.ledger.protects
        return row(neighbors="replace" if self.declared is None else "add_or_remove")

    def size(self, miss: float) -> tuple[int, float]:
        """The public number of rows: the declared one, the actual one if that is public, or a noisy lower bound.

        Promise: Laplace noise of scale `COUNTED` on one count, charged. It is returned with the probability that there
        are fewer rows: at most `miss`, and 0 if nothing is counted.
        """
        if self.declared is not None:
            return self.declared, 0.0
        if self.sized:
            return self.count(), 0.0
        counted = self.counted()
        rows = int(counted.value) - math.ceil(float(counted.error(1 - 2 * miss)))
        if rows < 1:
            raise InvalidArgument(
                "The noisy count of rows is too small for a study. Use more rows, or declare their public number: "
                "size=.",
                code="study-too-few-rows",
            )
        return rows, miss

    def opened(self, size: int, *, mixed: bool = False) -> Sample:
        """The rows themselves. Call it only after the charge."""
        return Sample(self.read(), size, guarded=self.ledger is not None, mixed=mixed)

    def pure(self) -> bool:
        """Whether only pure guarantees fit the ledger."""
        limit = None if self.ledger is None else self.ledger.rule.limit
        return isinstance(limit, Approx) and not exactly(limit.delta)

    def session(self, mechanism: Any, asked: str) -> Session:
        """Start a session, after everything it will return is charged."""
        bound = mechanism.sensitivity(self.unit)
        own = mechanism.guarantee(bound)
        cost = cost_of(self.ledger, own, shares=(10,), most=DELTA)
        stated = None if cost is own else cost
        return stream(mechanism, sensitivity=bound, ledger=self.ledger, stated=stated, asked=asked)


def source_of(sample: Any, ledger: Ledger | None, unprotected: Any, size: Any = None) -> Source:
    """The rows of a table under a ledger, or of arrays, with or without a ledger. `size` is their public number."""
    declared = None if size is None else check_count(size, "size")
    if not isinstance(unprotected, bool):
        raise InvalidArgument("unprotected must be True or False.", code="wrong-type")
    if hasattr(sample, "_ledger_of_study"):
        own = sample._ledger_of_study()
        if ledger is not None and ledger is not own:
            raise InvalidArgument(
                "The table has its own ledger, which is charged. Leave out ledger=.", code="conflicting-arguments"
            )
        if unprotected:
            raise NotAllowed("Rows under a ledger are protected. Leave out unprotected=.", code="study-protected")
        counted = lambda: sample._counted_for_study(Fraction(1, COUNTED))  # noqa: E731
        sized = sample._size_is_public()
        return Source(sample._columns_of_study, sample._rows_of_study, counted, own, True, declared, sized)
    if ledger is not None and not isinstance(ledger, Ledger):
        raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).", code="wrong-type")
    if ledger is not None and unprotected:
        raise NotAllowed("Rows under a ledger are protected. Leave out unprotected=.", code="study-protected")
    if ledger is not None:
        check_one_row(ledger.protects, "A study of a sample")
    columns = columns_of(sample, protects=None if ledger is None else ledger.protects)
    if ledger is not None and ledger.protects.column is not None:
        check_whole_person(ledger.protects, "A study of a sample")
        columns = _one_of_each(sample, columns, ledger.protects.column)

    def count() -> int:
        return len(next(iter(columns.values())))

    noise = Laplace(scale=COUNTED, step=1)
    unit = None if ledger is None else ledger.protects
    return Source(
        lambda: columns,
        count,
        lambda: through(
            count,
            noise,
            noise.guarantee(Sensitivity(1, unit=unit, grain=1)),
            ledger=ledger,
            asked="the rows of a study",
        ),
        ledger,
        not unprotected,
        declared,
        unit is None or (unit.neighbors == "replace" and unit.column is None),
    )


def _one_of_each(sample: Any, columns: dict[str, Any], person: str) -> dict[str, Any]:
    """One row per person, chosen at random, because rows of one person are not independent. Rows without a person are
    left out.
    """
    if person not in columns:
        raise InvalidArgument(
            f"The ledger protects people, so the sample needs the column {person}: one row of each person is used. "
            "Or pass a table, dp.table(…), which knows the column.",
            code="study-sample",
        )
    people = people_of(sample, person)
    seen: dict[Any, int] = {}
    for place in random_order(len(people)).tolist():
        if people[place] is not None:
            seen.setdefault(people[place], place)
    kept = np.sort(np.array(list(seen.values()), dtype=np.int64))
    return {name: column[kept] for name, column in columns.items()}


def candidate_methods(asked: Any, methods: dict[str, bool], protected: bool) -> list[str]:
    """The methods that may be tried. `methods` says for each whether it is private."""
    if asked != "auto" and asked not in methods:
        raise InvalidArgument(f"method must be one of auto, {', '.join(methods)}.", code="not-an-option")
    if asked == "auto":
        return [name for name, private in methods.items() if private or not protected]
    if protected and not methods[asked]:
        raise NotAllowed(
            f'method="{asked}" publishes exact functions of the sample. '
            "If its rows belong to nobody, pass unprotected=True; otherwise leave out method=.",
            code="study-protected",
        )
    return [asked]


def check_accuracy(accuracy: Any, width: float, size: int, queries: int) -> None:
    """Raise a clear error if the requested accuracy cannot be reached."""
    if accuracy is not None and width > float(check_positive(accuracy, "accuracy")):
        raise InvalidArgument(
            f"{size} rows can answer {queries} questions within {at_most(width)} of the population, not within "
            f"{float(exactly(accuracy)):.3g}. Ask fewer questions, or use more rows: see dp.adaptive.plan.",
            code="study-too-few-rows",
        )

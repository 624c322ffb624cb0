"""Training with privately chosen settings: one mechanism, charged once for all its tries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, Self

from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count, exactly
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee, ZeroConcentrated
from discreet.guarantees.rules.coordinates import stated_rho
from discreet.guarantees.unit import Unit, check_rows, row
from discreet.mechanisms.learning.descent.descent import Descent
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.selection.private_selection import NegativeBinomialTries, PoissonTries, Selection
from discreet.queries.sensitivity import Sensitivity, SensitivityLike

SCORED = Fraction(1, 10)
"""The share of the ρ of a try that is for its score."""


class Judged(NamedTuple):
    """The data of the tries: rows, and a function that gives each row from 0 to `most` points for its scores."""

    examples: Any
    judge: Callable[[Any, Any], Any]


@dataclass(frozen=True, kw_only=True)
class TunedDescent:
    """Trains a random number of times, each with one of the `candidates` drawn at random, and releases the best.

    A try is a descent and its noisy score: the sum of the points of all rows, each a whole number from 0 to `most`. The
    result is a dict with the index of the `candidate`, its `score`, and its `output`. If there was no try at all
    (`PoissonTries`), the candidate is None.

    Promise: that of `selection`, because every try keeps `run`. Error: none is known for the best of several tries.
    """

    candidates: tuple[Descent, ...]
    selection: Selection
    scoring: Gaussian
    most: int = 1
    rows: int = 1

    def __post_init__(self) -> None:
        if not self.candidates:
            raise InvalidArgument("At least one setting is needed to choose from.", code="empty")
        limit = stated_rho(self.selection.run)
        for one in self.candidates:
            trained, scored = stated_rho(one.guarantee(self._moved(one))), stated_rho(self._scored())
            if (
                trained is None
                or scored is None
                or limit is None
                or trained + scored > limit * (1 + Fraction(1, 10**9))
            ):
                raise InvalidArgument(
                    "A try costs more than the selection allows for. Use for_guarantee.", code="part-does-not-fit"
                )

    @property
    def unit(self) -> Unit | None:
        """The unit that a try protects."""
        return self.selection.run.protects

    def _moved(self, one: Descent) -> Sensitivity:
        return one.sensitivity(self.unit, self.rows)

    def _scored(self) -> Guarantee:
        return self.scoring.guarantee(_marks_moved(self.unit, self.rows, self.most))

    def guarantee(self, sensitivity: SensitivityLike = None) -> Approx:
        """The guarantee for the unit and the number of rows for which the tries were calibrated."""
        return self.selection.guarantee(sensitivity)

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        candidates: list[dict[str, Any]],
        tries: NegativeBinomialTries | PoissonTries,
        unit: Unit | None = None,
        rows_per_person: int = 1,
        most: int = 1,
    ) -> Self:
        """The settings are for `Descent.for_guarantee`. All get the least noise for which the whole keeps
        `guarantee`.
        """
        if not isinstance(guarantee, Approx) or not exactly(guarantee.delta):
            raise InvalidArgument("A private search needs a delta, such as 1e-6.", code="needs-delta")
        who, rows = row() if unit is None else unit, check_rows(unit, rows_per_person)
        chosen = Selection.for_guarantee(guarantee, tries=tries)
        whole = exactly(chosen.run.rho)  # type: ignore[attr-defined]
        run = ZeroConcentrated(rho=tidy(whole), protects=who)
        part = ZeroConcentrated(rho=tidy(whole * (1 - SCORED) * (1 - Fraction(1, 10**6))))
        made = tuple(Descent.for_guarantee(part, unit=who, rows_per_person=rows, **one) for one in candidates)
        moved = _marks_moved(who, rows, most)
        scoring = Gaussian.for_guarantee(ZeroConcentrated(rho=tidy(whole * SCORED)), sensitivity=moved, step=1)
        selection = replace(chosen, run=run)
        return cls(candidates=made, selection=selection, scoring=scoring, most=most, rows=rows)

    def error(self, confidence: float) -> Accuracy:
        sure, why = check_confidence(confidence), "the best of several tries was chosen by its noisy score"
        return Accuracy(amount=None, confidence=sure, of="excess risk", reason=why)

    def _draw(self, value: Judged) -> dict[str, Any]:
        def run(place: int) -> tuple[float, Any]:
            drawn = self.candidates[place]._draw(value.examples)
            marks = value.examples.judged(drawn["weights"], value.judge)
            return float(self.scoring._draw(marks)), drawn

        found = self.selection.choose(run, range(len(self.candidates)))
        return {"candidate": found.candidate, "score": found.score, "output": found.output}


def _marks_moved(unit: Unit | None, rows: int, most: int) -> Sensitivity:
    """How far one unit can move a sum of points from 0 to `most`. A row moves it by its points, also if it is
    replaced.
    """
    return Sensitivity(rows * check_count(most, "most"), unit=unit, grain=1)

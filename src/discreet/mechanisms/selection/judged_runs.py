"""Runs that are judged: each is drawn, finished and measured against the data with noise. One is released, the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, Self

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_probability, exactly, significant
from discreet.exact.search import bisect, bracket, geometric
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee, ZeroConcentrated
from discreet.guarantees.rules.coordinates import stated_delta, stated_rho
from discreet.guarantees.unit import Unit, check_rows
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.protocol import meets, rows_moved, tidy
from discreet.mechanisms.selection.private_selection import Selection, Tries
from discreet.queries.sensitivity import Sensitivity, SensitivityLike

JUDGING = Fraction(1, 10)
"""The share of the ρ of a run that pays for its judgment."""
_SLACK = 1 + Fraction(1, 10**9)


class Judge(Protocol):
    """What is made of a run, and how far it is from the data. All of it but the data is public."""

    def finish(self, drawn: Any) -> Any:
        """What would be released of a run. It sees released numbers only."""

    def measure(self, data: Any, finished: Any) -> list[int]:
        """How far a finished run is from the data, one exact integer for each criterion."""

    def moved(self, *, replaced: bool) -> tuple[int, ...]:
        """How far one row, added or removed or else replaced, moves each measurement of any finished run."""

    def score(self, finished: Any, noisy: Sequence[int]) -> float:
        """How good a run is, from what would be released of it."""


@dataclass(frozen=True, kw_only=True)
class JudgedRuns:
    """Draws one of the `candidates`, finishes it, and measures it against the data with Gaussian noise. With a
    `selection`, it does so a random number of times with random candidates, and releases the run that scores best.

    `rows` is how many rows one `unit` has. The result is a dict with the index of the `candidate`, what was `finished`,
    and the noisy measurements (`judged`). The number of runs is not in it, and must not leave.

    Promise: a run pays for its candidate and then for its measurements, which are fixed by what the candidate released:
    adaptive composition in ρ. `run` is at least the sum for the dearest candidate, which is checked. A single run keeps
    `run`; the best of a random number of runs keeps what `selection` states for it. Finishing and scoring see released
    numbers only. Error: of the measurements, see `judged_error`. Source: Liu-Talwar 2019, Papernot-Steinke 2022.
    """

    candidates: tuple[Any, ...]
    judge: Any
    noises: tuple[Gaussian, ...]
    run: ZeroConcentrated
    unit: Unit
    rows: int = 1
    selection: Selection | None = None

    def __post_init__(self) -> None:
        if not self.candidates:
            raise InvalidArgument("At least one candidate is needed to choose from.", code="empty")
        if self.selection is None and len(self.candidates) > 1:
            raise InvalidArgument(
                "Several candidates need a random number of tries. Give tries, or one candidate.",
                code="part-does-not-fit",
            )
        if self.selection is not None and self.selection.run != self.run:
            raise InvalidArgument(
                "The selection must be for the guarantee of one run. Use for_guarantee.", code="part-does-not-fit"
            )
        moved = self._moved()
        if len(moved) != len(self.noises):
            raise InvalidArgument("Each criterion needs a noise of its own.", code="wrong-shape")
        judged = sum((_rho(noise.guarantee(self._sensitivity(most))) for noise, most in self._judged()), Fraction(0))
        for one in self.candidates:
            if _rho(one.guarantee(self._rows())) + judged > exactly(self.run.rho) * _SLACK:
                raise InvalidArgument(
                    "A run costs more than is stated for it. Use for_guarantee.", code="part-does-not-fit"
                )

    def _moved(self) -> tuple[int, ...]:
        """How far one unit moves each measurement."""
        replaced = self.unit.neighbors == "replace"
        return tuple(self.rows * most for most in self.judge.moved(replaced=replaced))

    def _judged(self) -> list[tuple[Gaussian, int]]:
        return list(zip(self.noises, self._moved(), strict=True))

    def _sensitivity(self, most: int) -> Sensitivity:
        return Sensitivity(most, unit=self.unit, grain=1)

    def _rows(self) -> Sensitivity:
        return rows_moved(self.unit, self.rows)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """For the unit and the number of rows for which the runs were calibrated."""
        if sensitivity is not None:
            raise InvalidArgument(
                "The runs know their unit and its rows. Leave sensitivity= out.", code="sensitivity-not-taken"
            )
        return self.run if self.selection is None else self.selection.guarantee()

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        of: Sequence[Callable[[ZeroConcentrated, Sensitivity], Any]],
        judge: Judge,
        unit: Unit,
        rows: int = 1,
        tries: Tries | None = None,
        judging: Number = JUDGING,
    ) -> Self:
        """The least noise for which the whole keeps `guarantee`. Each of `of` makes a candidate that keeps the given ρ
        for the given number of rows. `judging` is the share of the ρ of a run that pays for its measurements.
        """
        count, share = check_rows(unit, rows), check_probability(judging, "judging")
        if not isinstance(guarantee, Approx | ZeroConcentrated) or not exactly(getattr(guarantee, "delta", 1)):
            raise InvalidArgument("Judged runs need a delta, such as 1e-6.", code="needs-delta")
        selection = None if tries is None else Selection.for_guarantee(guarantee, tries=tries)
        whole = _largest_rho(guarantee) if selection is None else exactly(selection.run.rho)  # type: ignore[attr-defined]
        run = ZeroConcentrated(rho=tidy(whole), protects=unit)
        replaced = unit.neighbors == "replace"
        moved = tuple(count * most for most in judge.moved(replaced=replaced))
        part = share if moved else Fraction(0)
        each = ZeroConcentrated(rho=tidy(significant(whole * (1 - part) / _SLACK**3, up=False)))
        made = tuple(one(each, rows_moved(unit, count)) for one in of)
        noises = []
        for most in moved:
            own = ZeroConcentrated(rho=tidy(significant(whole * part / len(moved) / _SLACK**3, up=False)))
            noises.append(Gaussian.for_guarantee(own, sensitivity=Sensitivity(most, unit=unit, grain=1), step=1))
        return cls(
            candidates=made,
            judge=judge,
            noises=tuple(noises),
            run=run,
            unit=unit,
            rows=count,
            selection=None if selection is None else Selection(tries=selection.tries, run=run, delta=selection.delta),
        )

    @property
    def expected_tries(self) -> float:
        """How many runs there are on average."""
        return 1.0 if self.selection is None else float(self.selection.tries.mean)

    def judged_error(self, confidence: float) -> tuple[float, ...]:
        """How far each released measurement is from the exact one, for all criteria at once.

        Promise: at least with this confidence, also of the best of several runs: runs that are wrong somewhere number
        at most (1 − confidence) on average, by Wald's equation.
        """
        sure = check_confidence(confidence)
        wrong = (1 - sure) / self.expected_tries / max(len(self.noises), 1)
        return tuple(float(noise.error(1 - wrong)) for noise in self.noises)

    def error(self, confidence: float) -> Accuracy:
        sure, why = check_confidence(confidence), "what a run leaves out depends on the data"
        return Accuracy(amount=None, confidence=sure, reason=f"{why}; `judged_error` is that of the measurements")

    def _draw(self, value: Any) -> dict[str, Any]:
        def run(place: int) -> tuple[float, Any]:
            finished = self.judge.finish(self.candidates[place]._draw(value))
            exact = self.judge.measure(value, finished)
            noisy = [int(noise._draw(int(one))) for noise, one in zip(self.noises, exact, strict=True)]
            return self.judge.score(finished, noisy), {"finished": finished, "judged": noisy}

        if self.selection is None:
            return {"candidate": 0, **run(0)[1]}
        found = self.selection.choose(run, range(len(self.candidates)))
        return {"candidate": found.candidate, **(found.output or {"finished": None, "judged": []})}


def _rho(guarantee: Guarantee) -> Fraction:
    found = stated_rho(guarantee)
    if found is None or stated_delta(guarantee):
        raise InvalidArgument("A run must keep a ρ. Use candidates with Gaussian noise.", code="part-does-not-fit")
    return exactly(found)


def _largest_rho(guarantee: Guarantee) -> Fraction:
    """The largest ρ that keeps a guarantee, to 1 part in 10^6."""
    if isinstance(guarantee, ZeroConcentrated):
        return exactly(guarantee.rho)

    def keeps(rho: Fraction) -> bool:
        return meets(ZeroConcentrated(rho=tidy(significant(rho, up=False, digits=10))), guarantee)

    found = bracket(keeps, Fraction(1), least=Fraction(1, 2**60), most=Fraction(2**40), factor=4, falling=True)
    if found is None:
        raise InvalidArgument("No run is private enough. Ask for a weaker guarantee.", code="guarantee-out-of-reach")
    return significant(bisect(keeps, *found, relative=1e-6, middle=geometric), up=False, digits=10)

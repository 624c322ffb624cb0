"""A synthetic table: measure the columns, then the pairs that the model gets most wrong, fit it, draw rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly, significant
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.mechanisms.counts.residuals import rows_of
from discreet.mechanisms.protocol import least_noise, meets, tidy
from discreet.mechanisms.selection.allowance import Allowance, guarantee_of_caps
from discreet.queries.sensitivity import SensitivityLike
from discreet.queries.workload import Domain, Workload
from discreet.synthetic.bins import Bins, merge_rare
from discreet.synthetic.junction_tree import Columns, largest_clique
from discreet.synthetic.model import Fit, Floats, NoisyMarginal

Progress = Callable[[str], None]
COLUMNS = Fraction(2, 5)
"""The part of what may be measured that goes to single columns."""
CHOOSING = Fraction(1, 10)
"""The part of the whole that goes to choices."""
WORTH = math.sqrt(2 / math.pi) / 2
"""Noise of deviation 1 leaves about so much L1 error in a cell, once a model of counts ≥ 0 is fitted to it."""
LITTLE = 0.1
"""A measurement is of little use if it moves the model by fewer deviations per cell than this."""
MOST_ROWS = 10**7
"""No more rows are made unless they are asked for: with much noise the noisy number of rows may be anything."""

_LARGEST = 2.0**50  # larger row counts and penalties carry no information, and would not fit machine integers


@dataclass(frozen=True, kw_only=True)
class Synthesis:
    """Draws synthetic rows of `domain` with marginals close to those of the true rows.

    All columns are measured first, and values too rare to be seen are merged (`ordered` columns: with their
    neighbors). Then, round by round, a pair of columns (or a triple of the workload inside what is modeled already) is
    chosen by how far the model's counts are from the true ones, measured with Gaussian noise, and the model is fitted
    again: the maximum-entropy law on a junction tree whose cliques have at most `cells` cells. The variance is halved
    when a measurement added little information, and the last round takes what is left.

    Promise: whatever is chosen on the way, Σ 1/(2·variance) ≤ `measuring` and Σ rate²/2 ≤ `choosing`, kept by an
    `Allowance` in exact rationals; one row added or removed pays (measuring + choosing)-zCDP, k rows k² times that,
    replaced rows (2·measuring + 4·choosing)·k². Fitting and drawing rows see released numbers only.
    Error: of what was measured, see `SyntheticSample.error`. Before the draw none is stated: what the model leaves out
    depends on the data.
    Source: select-measure-generate, McKenna-Miklau-Sheldon 2021 (MST) and McKenna-Mullins-Sheldon-Miklau 2022 (AIM).
    """

    domain: Domain
    measuring: Number
    choosing: Number
    ordered: tuple[str, ...] = ()
    workload: Workload | None = None
    rounds: int | None = None
    cells: int = 2**14
    rows: int | None = None
    progress: Progress | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_positive(self.measuring, "measuring")
        check_positive(self.choosing, "choosing")
        check_count(self.cells, "cells")
        for name, count in (("rounds", self.rounds), ("rows", self.rows)):
            if count is not None:
                object.__setattr__(self, name, check_count(count, name, at_least=0))
        if self.rows is not None and self.rows > 100 * MOST_ROWS:
            raise InvalidArgument(f"rows must be at most {100 * MOST_ROWS:,}.", code="too-large")
        if not isinstance(self.domain, Domain):
            raise InvalidArgument("domain must be a Domain of public columns.", code="wrong-type")
        object.__setattr__(self, "ordered", tuple(self.ordered))
        self.domain.axes(self.ordered)
        if self.workload is not None and (self.workload.domain != self.domain or self.workload.kind != "cells"):
            raise InvalidArgument("workload must be marginals of the same domain.", code="part-does-not-fit")

    def guarantee(self, sensitivity: SensitivityLike = 1) -> Guarantee:
        """`sensitivity` is how many rows one unit has: an integer (of rows added or removed), or a count's
        sensitivity.
        """
        return guarantee_of_caps(self.measuring, self.choosing, *rows_of(sensitivity))

    @classmethod
    def for_guarantee(
        cls, guarantee: Guarantee, *, domain: Domain, sensitivity: SensitivityLike = 1, **options: Any
    ) -> Self:
        """The largest caps that satisfy `guarantee` for a unit with `sensitivity` rows."""

        def make(scale: Fraction) -> Any:
            whole = significant(1 / (2 * scale**2), up=False)
            return cls(
                domain=domain, measuring=tidy(whole * (1 - CHOOSING)), choosing=tidy(whole * CHOOSING), **options
            )

        kept: Self = least_noise(make, lambda m: meets(m.guarantee(sensitivity), guarantee), Fraction(1))
        return kept

    def error(self, confidence: float) -> Accuracy:
        why = "what the model leaves out depends on the data; SyntheticSample.error bounds what was measured"
        return Accuracy(amount=None, confidence=check_confidence(confidence), reason=why)

    def candidates(self) -> list[Columns]:
        """The pairs, and the triples of the workload, that may be measured."""
        if self.workload is None:
            return list(itertools.combinations(range(len(self.domain.names)), 2))
        sets = [tuple(sorted(self.domain.axes(names))) for names in self.workload.sets]
        return sorted({p for s in sets for ways in (2, 3) for p in itertools.combinations(s, ways)})

    def _draw(self, value: Any) -> dict[str, Any]:
        """Plain values: the synthetic rows as codes, the noisy counts behind them, the bins of each column."""
        run = _Run(self, self.domain.codes(value))
        run.measure_columns()
        run.measure_sets()
        return run.sample_rows()


class _Run:
    """One draw. Only `self.left` sees true counts. All decisions use only what it returns."""

    def __init__(self, plan: Synthesis, codes: NDArray[np.int64]) -> None:
        self.plan, self.codes = plan, codes
        self.left = Allowance(measuring=plan.measuring, choosing=plan.choosing)
        self.measured: list[NoisyMarginal] = []
        self.kept: dict[Columns, NDArray[np.int64]] = {}
        self.candidates = plan.candidates()
        rounds = max(1, 3 * len(plan.domain.names) - 6) if plan.rounds is None else plan.rounds
        self.rounds = min(rounds, len(self.candidates))

    def say(self, what: str) -> None:
        if self.plan.progress is not None:
            self.plan.progress(what)

    def counts(self, columns: Columns) -> NDArray[np.int64]:
        """The true counts of the bins of these columns."""
        if columns not in self.kept:
            shape = [self.sizes[i] for i in columns]
            places = np.ravel_multi_index([self.codes[:, i] for i in columns], shape)
            self.kept[columns] = np.bincount(places, minlength=math.prod(shape)).reshape(shape)
        return self.kept[columns]

    def measure_columns(self) -> None:
        """Noisy counts of every column, and from them the bins, the number of rows and a first model."""
        shape = self.plan.domain.shape
        share = self.left.measuring * (COLUMNS if self.rounds else 1)
        variance = significant(len(shape) / (2 * share), up=True)
        deviation = math.sqrt(variance)
        self.say(f"measuring {len(shape)} columns, each count to within {2 * deviation:.3g}")
        noisy: list[Floats] = []
        for i, n in enumerate(shape):
            counts = np.bincount(self.codes[:, i], minlength=n)
            noisy.append(self.left.measure(counts, variance).astype(np.float64))
        # a column's sum has variance n·σ²
        self.total = float(np.average([y.sum() for y in noisy], weights=[1 / len(y) for y in noisy]))
        self.noisy, self.deviation = noisy, deviation
        self.bins: list[Bins] = [
            merge_rare(y, deviation, ordered=name in self.plan.ordered)
            for name, y in zip(self.plan.domain.names, noisy, strict=True)
        ]
        self.sizes = tuple(bins.size for bins in self.bins)
        self.codes = np.stack([bins.bin_of[self.codes[:, i]] for i, bins in enumerate(self.bins)], axis=1)
        self.measured = [
            NoisyMarginal((i,), bins.merged(y), deviation * np.sqrt(bins.widths))
            for i, (bins, y) in enumerate(zip(self.bins, noisy, strict=True))
        ]
        self.fit = Fit(self.sizes, self.total)
        self.model = self.fit.to(self.measured, steps=200)

    def measure_sets(self) -> None:
        """Round by round: choose, measure, fit, and choose the noise of the next round."""
        if not self.rounds:
            return
        variance, chance = self.rounds / (2 * self.left.measuring), self.left.choosing / self.rounds
        chosen: list[Columns] = []
        for number in range(1, self.rounds + 1):
            last = number == self.rounds or 1 / variance > self.left.measuring
            if last:
                variance, chance = 1 / (2 * self.left.measuring), self.left.choosing
            guesses = self.guesses(chosen)
            if not guesses:
                return
            deviation = math.sqrt(variance)
            columns = self.choose(guesses, WORTH * deviation, chance)
            chosen.append(columns)
            names = " × ".join(self.plan.domain.names[i] for i in columns)
            self.say(f"round {number} of at most {self.rounds}: {names}, each count to within {2 * deviation:.3g}")
            rounded = significant(variance, up=True)
            noisy = self.left.measure(self.counts(columns), rounded).astype(np.float64)
            self.measured.append(NoisyMarginal(columns, noisy, math.sqrt(rounded)))
            self.model = self.fit.to(self.measured, steps=20)
            moved = self.total * float(np.abs(self.model.marginal(columns) - guesses[columns]).sum())
            if last:
                return
            if moved <= LITTLE * deviation * noisy.size:  # the next ones need less noise
                variance, chance = variance / 2, chance * 2
            chance = min(chance, self.left.choosing / 2)

    def guesses(self, chosen: list[Columns]) -> dict[Columns, Floats]:
        """The model's probabilities for every set that may be measured next."""
        tree = self.model.tree
        open_sets = []
        for columns in self.candidates:
            if columns in chosen:
                continue
            inside = tree.clique_of(columns) is not None
            if inside or (len(columns) == 2 and largest_clique([*chosen, columns], self.sizes) <= self.plan.cells):
                open_sets.append(columns)
        pairs = {a: self.model.pairs_with(a) for a in {columns[0] for columns in open_sets if len(columns) == 2}}
        return {c: pairs[c[0]][c[1]] if len(c) == 2 else self.model.marginal(c) for c in open_sets}

    def choose(self, guesses: dict[Columns, Floats], worth: float, chance: Fraction) -> Columns:
        """A set that the model gets wrong by more than the error that measuring it would leave.

        A score is a whole number, the L1 distance from public whole counts less a public penalty: one row moves it by
        at most 1.
        """
        scores, rows = [], min(max(self.total, 0.0), _LARGEST)
        for columns, guess in guesses.items():
            public = np.rint(rows * guess).astype(np.int64)
            distance = int(np.abs(self.counts(columns) - public).sum())
            scores.append(distance - round(min(worth * guess.size, _LARGEST)))
        rate = significant(Fraction(math.sqrt(2 * chance) * (1 - 1e-12)), up=False)
        return list(guesses)[self.left.choose(np.array(scores, dtype=np.int64), rate)]

    def sample_rows(self) -> dict[str, Any]:
        """The last fit, and rows drawn from it. From here on nothing private is read."""
        self.say("fitting the model and drawing rows")
        model = self.fit.to(self.measured, steps=500)
        rows = min(max(0, round(self.total)), MOST_ROWS) if self.plan.rows is None else self.plan.rows
        drawn = model.sample(rows)
        codes = [bins.values(drawn[:, i]) for i, bins in enumerate(self.bins)]
        names = self.plan.domain.names
        columns = [((names[i],), y, self.deviation) for i, y in enumerate(self.noisy)]
        sets = [(tuple(names[i] for i in m.columns), m.counts, float(m.stddev)) for m in self.measured[len(names) :]]
        return {
            "rows": np.stack(codes, axis=1),
            "measured": [*columns, *sets],
            "bins": [bins.bin_of for bins in self.bins],
            "total": self.total,
            "spent": (
                exactly(self.plan.measuring) - self.left.measuring,
                exactly(self.plan.choosing) - self.left.choosing,
            ),
        }

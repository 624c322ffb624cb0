"""Regressions of a table. Each method builds an offer, which explains itself or makes the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_delta
from discreet.guarantees.guarantee import Pure
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.noise.steps import Steps
from discreet.releases import Release
from discreet.sql.running.explanation import IMAGINED, Explanation
from discreet.stats.inference.noisy_shares import Noise
from discreet.stats.regression.designs import Coded, Design
from discreet.stats.regression.formula import Formula, parse_formula
from discreet.stats.regression.linear import CoefficientOf, NoisyRegression
from discreet.stats.regression.released_moments import Layout, best_layout
from discreet.stats.regression.results import Regression
from discreet.stats.regression.rows import RegressionRows, codes_of, scores_of, square_reach, square_sensitivity
from discreet.stats.samples.sample import Sample, StatisticsOfTable, sample
from discreet.tables.methods import Between
from discreet.tables.offer import Drawing, FoundFirst, Offer, convert_release

Floats = NDArray[np.float64]
Robust = Literal["HC"] | None
SQUARES = Fraction(1, 4)
"""The part of ε for the squares of scores, if residuals may have different variances."""
TOO_NOISY = (
    "The noise is too large next to the spread of the terms, so nothing is known about the coefficients. Spend more "
    "epsilon, declare narrower ranges with between=, or use fewer terms."
)


class RegressionMethods(StatisticsOfTable):
    """Regression tables."""

    def ols(
        self,
        formula: str,
        *,
        between: Mapping[str, Between] | None = None,
        levels: Mapping[str, Sequence[Any]] | None = None,
        robust: Robust = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Regression]:
        """A linear regression by least squares, such as "cost ~ age + treated".

        `between` declares the ranges of columns of numbers; others are found privately. `levels` lists the values of
        columns that are not numbers; the first is the reference. Rows without a value, or with another level, are left
        out. `a:b` is a product and `- 1` removes the intercept. With `robust="HC"`, residuals may have different
        variances: a quarter of ε measures that. If people have several rows, this is always done, by person.
        """
        if robust not in (None, "HC"):
            raise InvalidArgument('robust must be "HC", or left out.', code="not-an-option")
        parsed = parse_formula(formula)
        taken = regression_sample(self, parsed, between, levels, where=where, epsilon=epsilon, delta=delta)
        if self.table.table.person is not None and self.table.table.rows_per_person != 1:
            robust = "HC"  # decided by what is declared: how many rows a person has may still have to be found
        described = {"formula": str(parsed), "between": between, "levels": levels, "robust": robust}
        return RegressionOffer(
            taken, lambda known: LeastSquares(known, parsed, robust).drawing(described), parsed, robust
        )


def regression_sample(
    statistics: StatisticsOfTable,
    formula: Formula,
    between: Mapping[str, Any] | None,
    levels: Mapping[str, Sequence[Any]] | None,
    **terms: Any,
) -> Sample:
    """The columns of a formula: numbers and conditions, with their ranges, and factors with their levels."""
    ranges, listed = dict(between or {}), dict(levels or {})
    unused = [name for name in (*ranges, *listed) if name not in formula.columns]
    if unused:
        raise InvalidArgument(
            f"{unused[0]} is not in the formula. Remove it from between= and levels=.", code="formula"
        )
    both = [name for name in ranges if name in listed]
    if both or formula.outcome in listed:
        name = both[0] if both else formula.outcome
        raise InvalidArgument(
            f"{name} needs to be a number. Remove it from levels=, or use it as a term only.", code="formula"
        )
    for name in formula.columns:
        kind = statistics.table._column(name).type
        if name not in listed and name not in ranges and kind == "text":
            raise InvalidArgument(
                f'{name} is text. List its values, the reference first: levels={{"{name}": ["a", "b"]}}.',
                code="choices-missing",
            )
    numbers = {name: ranges.get(name) for name in formula.columns if name not in listed}
    return sample(statistics.table, numbers, listed, **terms)


def design_of(known: Sample, formula: Formula) -> Design:
    """The design of a formula for the ranges and levels of a sample."""
    fields = {field.name: field.type for field in known.plan.relation.fields}

    def coded(name: str) -> Coded:
        if name in known.levels:
            return Coded(name, levels=tuple(known.levels[name]))
        if fields[name] == "boolean":
            return Coded(name, levels=(False, True))
        return Coded(name, ends=known.ends(name))

    return Design(formula, tuple(coded(name) for name in formula.columns))


def assumed_ranges(known: Sample) -> tuple[str, ...]:
    """What has to hold of ranges that were found."""
    return tuple(
        f"values of {name} lie between {low:g} and {high:g}, the range that was found"
        for name in known.numbers
        if known.is_found(name)
        for low, high in [known.ends(name)]
    )


@dataclass(frozen=True)
class LeastSquares:
    """A linear regression of a sample: what is released, with which noise, and what follows from it."""

    known: Sample
    formula: Formula
    robust: Robust

    @cached_property
    def design(self) -> Design:
        return design_of(self.known, self.formula)

    @cached_property
    def _chosen(self) -> tuple[Layout, Steps | Laplace | Gaussian, Any]:
        """The layout and the noise with the least error in a typical score, and the sensitivity."""
        rows = self.known.rows
        found = [self._with_norm("L1")]
        if not isinstance(rows.allowed, Pure) and check_delta(rows.plan.terms.delta):
            found.append(self._with_norm("L2"))
        return min(found, key=lambda one: one[0].variance(_first(one[1]).variance))

    def _with_norm(self, norm: str) -> tuple[Layout, Steps | Laplace | Gaussian, Any]:
        rows = self.known.rows
        layout = best_layout(self.design, norm, rows.unit, rows.of_one)
        bound = layout.query.sensitivity(rows.unit, rows.of_one, norm=norm)
        kind: Any = Laplace if norm == "L1" else Gaussian
        if self.robust is None:
            return layout, kind.for_guarantee(rows.allowed, sensitivity=bound), bound
        bounds = (bound, square_sensitivity(len(self.design.terms), rows.unit, norm))
        allowed = Pure(epsilon=rows.plan.terms.epsilon) if norm == "L1" else rows.allowed
        return layout, Steps.for_guarantee(allowed, sensitivity=bounds, parts=(1 - SQUARES, SQUARES)), bounds

    @property
    def layout(self) -> Layout:
        return self._chosen[0]

    @property
    def mechanism(self) -> Steps | Laplace | Gaussian:
        return self._chosen[1]

    def model(self, numbers: Any, squares: Any = None) -> NoisyRegression:
        """What follows from released numbers."""
        plain = NoisyRegression(
            np.asarray(numbers, dtype=np.float64),
            self.layout.matrices,
            self.layout.of_count,
            _first(self.mechanism),
            self.design.bound,
        )
        if squares is None or not isinstance(self.mechanism, Steps):
            return plain
        return replace(
            plain,
            squares=np.asarray(squares, dtype=np.float64),
            square_noise=Noise.of(self.mechanism.noises[1]),
            square_reach=self.reach(plain),
        )

    def reach(self, model: NoisyRegression) -> Floats:
        """Where the squares of scores are cut off."""
        noise = Noise.of(self.mechanism.noises[1]) if isinstance(self.mechanism, Steps) else Noise()
        return square_reach(model, self.design, self.known.of_one, float(np.sqrt(noise.variance)))

    def scores(self, first: Any) -> Callable[[Floats], Floats]:
        """The scores of rows at the coefficients that follow from the first answer."""
        model = self.model(first)
        reach = np.sqrt(self.reach(model))
        return lambda values: scores_of(model, values) / reach

    def imagined(self, rows: int) -> NoisyRegression:
        """The model that would follow if columns were independent and spread evenly, without the noise itself."""
        numbers = rows * self.layout.expected
        if self.robust is None:
            return self.model(numbers)
        plain = self.model(numbers)
        squares = plain.residual_squares / rows / np.diagonal(plain.inverse)
        return self.model(numbers, squares / self.reach(plain))

    def drawing(self, described: Mapping[str, Any]) -> Drawing[Regression]:
        """The release."""
        layout, mechanism, bounds = self._chosen

        def read() -> Any:
            numbers, chosen, owners = self.known.read()
            codes = codes_of(self.design.columns, numbers, chosen)
            asked = RegressionRows(layout, codes, owners, self.scores)
            return asked.answer([]) if self.robust is None else asked

        return self.known.rows.drawing(
            mechanism,
            bounds,
            asked=f"the regression {self.formula} in the population",
            old_text=f"the regression {self.formula}",
            method="stats.ols",
            arguments=dict(described),
            read=read,
            finish=self.finish,
        )

    def finish(self, release: Release) -> Regression:
        """The release as a regression table."""
        first, second = (release.value, None) if self.robust is None else release.value
        model, design = self.model(first, second), self.design
        inferences = {
            name: CoefficientOf(model, place, float(unit))
            for place, (name, unit) in enumerate(zip(design.names, design.units, strict=True))
        }
        deviations = model.deviations() * np.abs(design.units)
        by_person = self.known.of_one > 1
        errors = "by person" if by_person else "HC, of any variance" if self.robust else "one variance"
        said = "residuals have one variance, whatever the terms are, and few are more than 8 deviations away"
        if self.robust:
            said = "units whose scores are more than 8 deviations away add little to the variance"
        found: Regression = convert_release(
            Regression,
            release,
            value={name: one.value for name, one in inferences.items()},
            model="OLS",
            formula=str(self.formula),
            errors=errors,
            assumed=(*assumed_ranges(self.known), said),
            reason=None if bool(model.is_known) else TOO_NOISY,
            facts=self._facts(model),
            _inferences=inferences,
            _deviations=dict(zip(design.names, map(float, deviations), strict=True)),
            _sizes={},
        )
        return found

    def _facts(self, model: NoisyRegression) -> dict[str, float]:
        moments, unit = model.moments, self.design.outcome_unit
        whole = moments[-1, -1]
        if () in self.formula.terms:
            whole = whole - moments[0, -1] ** 2 / max(moments[0, 0], 1.0)
        known, squares = bool(model.is_known), float(model.residual_squares)
        explained = 1 - squares / whole if known and whole > 0 else np.nan
        return {
            "nobs": float(model.count),
            "rsquared": float(np.clip(explained, 0.0, 1.0)),
            "residual_variance": max(squares, 0.0) / float(model.freedom) * unit**2 if known else np.nan,
        }


def _first(mechanism: Steps | Laplace | Gaussian) -> Noise:
    """The noise of the sums."""
    return Noise.of(mechanism.noises[0] if isinstance(mechanism, Steps) else mechanism)


@dataclass(frozen=True)
class RegressionOffer(FoundFirst[Sample, Regression]):
    """A regression. It says how wide its intervals would be before anything is spent."""

    formula: Formula = None  # type: ignore[assignment]
    robust: Robust = None

    def explain(self) -> Explanation:
        plain = super().explain()
        if self.rows.plan.automatic:
            return plain
        squares = LeastSquares(self.rows, self.formula, self.robust)
        lines = [str(plain).rsplit("; ", 1)[0]]
        for rows in IMAGINED:
            model = squares.imagined(rows)
            shown = []
            for place, (name, unit) in enumerate(zip(squares.design.names, squares.design.units, strict=True)):
                low, high = model.interval(place, 0.95)
                shown.append(f"{name} ± {(high - low) / 2 * abs(float(unit)):.3g}")
            lines.append(f"{', '.join(shown)} (95%) if there are {rows:,} evenly spread rows")
        return Explanation("\n".join(lines))

"""Logistic and Poisson regressions of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_delta
from discreet.guarantees.guarantee import Pure
from discreet.mechanisms.noise.steps import Steps
from discreet.releases import Release
from discreet.stats.inference.noisy_shares import Noise
from discreet.stats.regression.designs import Design
from discreet.stats.regression.formula import Formula, parse_formula
from discreet.stats.regression.likelihood import Family, Features, LikelihoodRows, Link, NoisyScore, outcome_share
from discreet.stats.regression.linear import CoefficientOf, NoisyRegression
from discreet.stats.regression.methods import TOO_NOISY, assumed_ranges, design_of, regression_sample
from discreet.stats.regression.released_moments import Layout, best_layout
from discreet.stats.regression.results import Regression
from discreet.stats.regression.rows import codes_of
from discreet.stats.samples.cells import one_row_each
from discreet.stats.samples.sample import Sample, StatisticsOfTable
from discreet.tables.methods import Between
from discreet.tables.offer import Drawing, FoundFirst, Offer, convert_release

Floats = NDArray[np.float64]
PARTS = (Fraction(1, 5), Fraction(1, 5), Fraction(3, 5))
"""The parts of ε for the start, the first Newton step and the last."""


class LikelihoodMethods(StatisticsOfTable):
    """Regressions by maximum likelihood."""

    def logistic(
        self,
        formula: str,
        *,
        between: Mapping[str, Between] | None = None,
        levels: Mapping[str, Sequence[Any]] | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Regression]:
        """A logistic regression of a condition, such as "readmitted ~ age + treated". Coefficients are log odds.

        The arguments are those of `ols`. Of people with several rows, one row is used, chosen at random.
        """
        return self._likelihood("logistic", formula, between, levels, epsilon=epsilon, delta=delta, where=where)

    def poisson(
        self,
        formula: str,
        *,
        between: Mapping[str, Between] | None = None,
        levels: Mapping[str, Sequence[Any]] | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Regression]:
        """A Poisson regression of a count, such as "visits ~ age + treated". Coefficients are of the logarithm of the
        mean.

        The arguments are those of `ols`. The range of the count begins at 0. Of people with several rows, one row is
        used, chosen at random.
        """
        return self._likelihood("poisson", formula, between, levels, epsilon=epsilon, delta=delta, where=where)

    def _likelihood(
        self, family: Family, formula: str, between: Any, levels: Any, **terms: Any
    ) -> FoundFirst[Sample, Regression]:
        parsed = parse_formula(formula)
        kind = self.table._column(parsed.outcome).type
        is_condition = kind == "boolean"
        if is_condition != (family == "logistic"):
            wanted = "a condition" if family == "logistic" else "a count"
            way = "Choose another outcome."
            if kind == "text":
                kind, values = (
                    ("boolean", "true and false, or yes and no") if family == "logistic" else ("integer", "numbers")
                )
                way = f'If its text holds {values}, give its type: types={{"{parsed.outcome}": "{kind}"}} in dp.table.'
            raise InvalidArgument(f"{parsed.outcome} must be {wanted}. {way}", code="column-type")
        ends = (between or {}).get(parsed.outcome, "auto")
        if family == "poisson" and ends != "auto" and ends[0] != 0:
            raise InvalidArgument(f"The range of {parsed.outcome} must begin at 0.", code="out-of-range")
        taken = regression_sample(replace(self, table=one_row_each(self.table)), parsed, between, levels, **terms)
        described = {"formula": str(parsed), "between": between, "levels": levels}
        return FoundFirst(taken, lambda known: Likelihood(known, parsed, family).drawing(described))


@dataclass(frozen=True)
class Likelihood:
    """A regression by maximum likelihood: what is released, with which noise, and what follows from it."""

    known: Sample
    formula: Formula
    family: Family

    @cached_property
    def design(self) -> Design:
        return design_of(self.known, self.formula)

    @cached_property
    def features(self) -> Features:
        return Features(self.design)

    @cached_property
    def link(self) -> Link:
        column = self.design.columns[-1]
        return Link(self.family, 1.0 if column.ends is None else max(column.ends[1], 1e-9))

    @cached_property
    def _chosen(self) -> tuple[Layout, Steps, Any]:
        rows = self.known.rows
        choices = [self._with_norm("L1")]
        if not isinstance(rows.allowed, Pure) and check_delta(rows.plan.terms.delta):
            choices.append(self._with_norm("L2"))
        return min(choices, key=lambda one: Noise.of(one[1].noises[-1]).variance)

    def _with_norm(self, norm: str) -> tuple[Layout, Steps, Any]:
        rows = self.known.rows
        layout = best_layout(self.design, norm, rows.unit, 1)
        step = self.features.sensitivity(self.link, rows.unit, norm)
        bounds = (layout.query.sensitivity(rows.unit, 1, norm=norm), step, step)
        allowed = Pure(epsilon=rows.plan.terms.epsilon) if norm == "L1" else rows.allowed
        return layout, Steps.for_guarantee(allowed, sensitivity=bounds, parts=PARTS), bounds

    def step(self, numbers: Any, noise: Noise) -> NoisyScore:
        """What follows from one step: how far the coefficients are from where it was taken."""
        matrices = self.features.matrices
        return NoisyScore(
            np.asarray(numbers, dtype=np.float64),
            matrices,
            np.zeros(len(matrices)),
            noise,
            self.design.bound,
            most=self.link.most,
            largest_variance=float(self.link.largest_variance),
        )

    def fit(self, earlier: list[Any]) -> Floats:
        """The coefficients of the terms after these answers, the last step aside."""
        layout, mechanism, _ = self._chosen
        noises = [Noise.of(noise) for noise in mechanism.noises]
        matrices = layout.matrices.copy()  # with the outcome in units of its largest value
        matrices[:, -1] *= outcome_share(self.design, self.link)
        matrices[:, :, -1] *= outcome_share(self.design, self.link)
        first = np.asarray(earlier[0], dtype=np.float64)
        moments = NoisyRegression(first, matrices, layout.of_count, noises[0], self.design.bound)
        at = self.link.start(moments, () in self.formula.terms)
        for numbers, noise in zip(earlier[1:], noises[1:], strict=False):
            found = self.step(numbers, noise)
            values, vectors = found._spectrum
            least = 0.02 * max(float(values[-1]), 1.0)
            shift = vectors @ ((vectors.T @ found.moments[:-1, -1]) / np.maximum(values, least))
            size = float(self.design.bound(np.append(shift, 0.0)))
            at = at + shift * min(1.0, 3.0 / max(size, 1e-12))
        return np.asarray(at)

    def drawing(self, described: Mapping[str, Any]) -> Drawing[Regression]:
        """The release."""
        layout, mechanism, bounds = self._chosen

        def read() -> LikelihoodRows:
            numbers, chosen, _ = self.known.read()
            codes = codes_of(self.design.columns, numbers, chosen)
            return LikelihoodRows(layout, self.features, self.link, codes, self.fit)

        return self.known.rows.drawing(
            mechanism,
            bounds,
            asked=f"the {self.family} regression {self.formula} in the population",
            old_text=f"the {self.family} regression {self.formula}",
            method=f"stats.{self.family}",
            arguments=dict(described),
            read=read,
            finish=self.finish,
        )

    def finish(self, release: Release) -> Regression:
        """The release as a regression table."""
        layout, mechanism, _ = self._chosen
        start, design = self.fit(release.value[:-1]), self.design
        model = self.step(release.value[-1], Noise.of(mechanism.noises[-1]))
        units = design.units / design.outcome_unit
        inferences = {
            name: CoefficientOf(model, place, float(unit), float(start[place]))
            for place, (name, unit) in enumerate(zip(design.names, units, strict=True))
        }
        deviations = model.deviations() * np.abs(units)
        kind = {"logistic": "Logistic", "poisson": "Poisson"}[self.family]
        said = "the model holds: its mean, and the variance that belongs to it"
        found: Regression = convert_release(
            Regression,
            release,
            value={name: one.value for name, one in inferences.items()},
            model=kind,
            formula=str(self.formula),
            errors="as the model says",
            assumed=(*assumed_ranges(self.known), said),
            reason=None if bool(model.is_known) else TOO_NOISY,
            facts={"nobs": float(np.asarray(release.value[0]) @ layout.of_count)},
            _inferences=inferences,
            _deviations=dict(zip(design.names, map(float, deviations), strict=True)),
            _sizes={},
        )
        return found

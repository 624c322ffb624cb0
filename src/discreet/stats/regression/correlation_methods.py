"""The correlation of two columns of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_delta
from discreet.guarantees.guarantee import Pure
from discreet.mechanisms.noise.steps import Steps
from discreet.releases import Release
from discreet.stats.inference.correlations import NoisyCorrelation
from discreet.stats.inference.noisy_shares import Noise
from discreet.stats.regression.formula import Formula
from discreet.stats.regression.methods import SQUARES, assumed_ranges, design_of, regression_sample
from discreet.stats.regression.released_moments import Layout, best_layout
from discreet.stats.regression.rows import RegressionRows, codes_of, square_sensitivity
from discreet.stats.results import Estimate
from discreet.stats.samples.sample import Sample, StatisticsOfTable
from discreet.tables.methods import Between
from discreet.tables.offer import Drawing, FoundFirst, Offer, convert_release

FAR_AWAY = "units that are many deviations away add little to the variance"


class CorrelationMethods(StatisticsOfTable):
    """The correlation of two columns."""

    def correlation(
        self,
        first: str,
        second: str,
        *,
        between: Mapping[str, Between] | None = None,
        epsilon: Number,
        delta: Number = 0,
        where: str | None = None,
    ) -> Offer[Estimate]:
        """Pearson's correlation of two columns in the population, with an interval for distributions of any shape.

        Rows without one of the values are left out. A quarter of ε measures the sampling error.
        """
        if first == second:
            raise InvalidArgument("Name two different columns.", code="duplicates")
        formula = Formula(second, ((), (first,)))
        taken = regression_sample(self, formula, between, None, where=where, epsilon=epsilon, delta=delta)
        described = {"columns": (first, second), "between": between}
        return FoundFirst(taken, lambda known: correlation_of(known, formula, described))


def correlation_of(known: Sample, formula: Formula, described: Mapping[str, Any]) -> Drawing[Estimate]:
    """The correlation of the two columns of a formula as one release."""
    rows, design = known.rows, design_of(known, formula)
    first, second = design.columns
    choices: list[tuple[Layout, Steps, Any]] = []
    for norm in ("L1", "L2"):
        if norm == "L2" and (isinstance(rows.allowed, Pure) or not check_delta(rows.plan.terms.delta)):
            continue
        layout = best_layout(design, norm, rows.unit, rows.of_one)
        bounds = (
            layout.query.sensitivity(rows.unit, rows.of_one, norm=norm),
            square_sensitivity(1, rows.unit, norm),
        )
        allowed = Pure(epsilon=rows.plan.terms.epsilon) if norm == "L1" else rows.allowed
        noise = Steps.for_guarantee(allowed, sensitivity=bounds, parts=(1 - SQUARES, SQUARES))
        choices.append((layout, noise, bounds))
    layout, noise, bounds = min(choices, key=lambda one: one[0].variance(Noise.of(one[1].noises[0]).variance))
    ends = [(c.center - 1, c.center + 1) if c.levels is None else (0.0, 1.0) for c in (first, second)]

    def model(numbers: Any) -> NoisyCorrelation:
        released = np.asarray(numbers, dtype=np.float64)
        one, other = map(Noise.of, noise.noises)
        return NoisyCorrelation(released, layout.matrices, one, np.array(ends), other, of_one=known.of_one)

    def read() -> RegressionRows:
        numbers, chosen, owners = known.read()
        codes = codes_of(design.columns, numbers, chosen)
        return RegressionRows(layout, codes, owners, lambda released: model(released).scores)

    def finish(release: Release) -> Estimate:
        inferred = replace(model(release.value[0]), squares=np.asarray(release.value[1])[0])
        found: Estimate = convert_release(
            Estimate,
            release,
            value=inferred.value,
            what=f"correlation of {first.name} and {second.name}",
            assumed=(*assumed_ranges(known), FAR_AWAY),
            _inference=inferred,
            _sizes={},
        )
        return found

    return rows.drawing(
        noise,
        bounds,
        asked=f"the correlation of {first.name} and {second.name} in the population",
        old_text=f"the correlation of {first.name} and {second.name}",
        method="stats.correlation",
        arguments=dict(described),
        read=read,
        finish=finish,
    )

"""Attacks every private estimator with canaries: what is proved at ε = 1, and whether too little noise is noticed.

`python -m bench.audits.model_audits` fits each estimator a few times on generated rows, as `discreet audit model` does,
and prints the lower bound on ε next to the claim; then the same for fits that spend more than they claim. It ends with
status 3 when a claim is refuted, or a model without noise is not noticed. `--runs 2` fits less often.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from bench.report import line, machine, notes, section, table, verdict
from discreet.audit.generated import CANARIES, FEATURES, audit_named, model_names
from discreet.audit.models import ModelAudit
from discreet.audit.one_run import OneRun
from discreet.guarantees.guarantee import GaussianTradeoff

REFUTED, SIMULATED = 3, 1000
CLAIM, DELTA = 1, 1e-6
SPENT = (1, 2, 4, 1000)
ABOUT = f"""Private estimators with a claim of ε = {CLAIM} at δ = {DELTA:g}, attacked from outside: {CANARIES} canaries
are hidden in each fit, each by a fair coin, in generated rows of {FEATURES} features (fewer of both for mixtures). The
attacker guesses a fifth of them from the fitted model. The bounds hold with 95% confidence. The first column of bounds
is for the model as it is; the others are for models that spend 2, 4 and 1000 times the ε that they claim, which is
about a half, a quarter and a thousandth of the noise. A bound in bold refutes the claim, by its whole curve."""
MINUTES = ("AdditiveClassifier", "AdditiveRegressor")
"""Models that are attacked only if they are named."""


def shown(result: ModelAudit) -> str:
    told = f"{result.epsilon_lower:.2f} ({result.gaussian_lower:.2f})"
    return told if result.passed else f"**{told}**"


def main(names: list[str], runs: int) -> int:
    section("Audits of models", "audits.model_audits", ABOUT)
    table("model", "claimed ε", *("as it is" if one == 1 else f"{one} ε" for one in SPENT), "guesses right")
    start, false, unseen, noticed = time.perf_counter(), [], [], [0, 0]
    for name in names:
        print(f"attacking {name}", end="   \r", file=sys.stderr, flush=True)
        found = [audit_named(name, epsilon=CLAIM, delta=DELTA, fitted_epsilon=one, runs=runs) for one in SPENT]
        false += [] if found[0].passed else [name]
        unseen += [name] if found[-1].passed else []
        noticed = [count + (not one.passed) for count, one in zip(noticed, found[1:3], strict=True)]
        right = ", ".join(f"{one.run.correct / one.run.guesses:.0%}" for one in found)
        line(name, CLAIM, *map(shown, found), right)
    alarms, half = by_simulation(1), by_simulation(2)
    verdict(
        {
            f"every claim stands ({len(names) - len(false)} of {len(names)})": not false,
            f"a model without noise is noticed ({len(names) - len(unseen)} of {len(names)})": not unseen,
        }
    )
    notes(
        "In parentheses: the bound if the noise is known to be Gaussian, as it is in most of them.",
        f"{runs} fits for each number, with up to {runs * CANARIES:,} canaries and {runs * CANARIES // 5:,} guesses. "
        f"A quarter of the noise is noticed in {noticed[1]} of {len(names)} models, and half of it in {noticed[0]}: an "
        "attack from the fitted model alone sees only a part of what was spent.",
        f"The test itself, on sums of canaries with Gaussian noise, each in its own coordinate, {SIMULATED:,} times: "
        f"2,000 canaries and 400 guesses refute a true claim in {alarms:.1%} of the runs, and half the noise in "
        f"{half:.0%}.",
        f"Not in the table, because they take minutes: {', '.join(MINUTES)}. Slow tests attack them.",
        f"{time.perf_counter() - start:.0f} s in all, {machine()}.",
    )
    return REFUTED if false or unseen else 0


def by_simulation(times: float) -> float:
    """How often a Gaussian sum with `times` less noise than claimed is refuted."""
    mu, m, r = 0.2365, 2000, 400
    claim, random = GaussianTradeoff(mu=mu), np.random.default_rng(1)
    fires = next(v for v in range(r // 2, r) if OneRun(canaries=m, guesses=r, correct=v).refutes(claim, delta=DELTA))
    count = 0
    for _ in range(SIMULATED):
        inside = random.random(m) < 0.5
        order = np.argsort(times * mu * inside + random.normal(size=m))
        count += int((~inside[order[: r // 2]]).sum() + inside[order[m - r // 2 :]].sum()) >= fires
    return count / SIMULATED


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=[one for one in model_names() if one not in MINUTES])
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    sys.exit(main(given.names, given.runs))

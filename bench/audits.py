"""Attacks every mechanism that `discreet audit` knows: the vectorized ones at 10⁸ outputs on each neighbor.

`python bench/audits.py` prints what each claims and the most that was proved against it, with 99.999% confidence for
each line; then the same with half the noise, which must be found out. `--samples 1e6` attacks with fewer.
"""

from __future__ import annotations

import argparse
import resource
import sys
from dataclasses import replace
from typing import Any

from discreet.audit.auditor import Audit, audit
from discreet.audit.mechanisms import ONE_BY_ONE, SUBJECTS, TOGETHER, Subject, halved, subject
from discreet.mechanisms.randomized_response import RandomizedResponse

FEWER, BROKEN = ONE_BY_ONE, 2 * TOGETHER
"""Outputs of mechanisms that answer one by one, and of those that must be found out, on each neighbor."""


def attacked(name: str, *, broken: bool = False) -> Subject:
    """The neighbors of `discreet audit`; yes and no are 1 and 0 here, so that a hundred million of them fit."""
    found = subject(name, epsilon=1, delta=1e-6 if name in ("gaussian", "key_selection") else 0)
    if isinstance(found.mechanism, RandomizedResponse):
        found = replace(found, mechanism=replace(found.mechanism, choices=[1, 0]), first=1, second=0)
    return replace(found, mechanism=halved(found.mechanism)) if broken else found


def run(one: Subject, samples: int) -> Audit:
    claim = one.claim
    return audit(one.draw, one.first, one.second, samples=samples, epsilon=claim.epsilon, delta=claim.delta)


def line(*cells: Any) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def main(names: list[str], samples: int) -> int:
    line("mechanism", "outputs on each neighbor", "claimed ε", "at δ", "ε proved", "of it", "half the noise")
    line(*["---"] * 7)
    wrong = 0
    for name in names:
        one = attacked(name)
        together = one.samples == TOGETHER
        result = run(one, samples if together else min(samples, FEWER))
        broken = run(attacked(name, broken=True), min(samples, BROKEN if together else FEWER))
        wrong += broken.passed or not result.passed
        claimed = float(one.claim.epsilon)
        line(
            name.replace("_", " "),
            f"{result.samples:,}",
            f"{claimed:.4f}",
            f"{float(one.claim.delta):.3g}",
            f"{result.epsilon_lower:.4f}" if result.passed else f"{result.epsilon_lower:.4f} **FIRED**",
            f"{result.epsilon_lower / claimed:.1%}",
            "**not seen**" if broken.passed else f"found out: ε ≥ {broken.epsilon_lower:.3f}",
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\n{len(names)} mechanisms, {wrong} of them wrong; at most {peak:.1f} GB of memory")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=list(SUBJECTS), help="only these mechanisms")
    parser.add_argument("--samples", type=float, default=1e8)
    given = parser.parse_args()
    sys.exit(main(given.names, int(given.samples)))

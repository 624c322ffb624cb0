"""Attacks every mechanism that `discreet audit` knows: the vectorized ones at 10⁸ outputs on each neighbor.

`python -m bench.audits.audits` prints what each claims and the most that was proved against it, with 99.999% confidence
for each line; and the same with half the noise, which must be found out. `--samples 1e6` attacks with fewer. It ends
with status 1 when a claim is refuted, or half the noise is not seen.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Iterator
from dataclasses import replace

from bench.audits.audited import MORE, Attack
from bench.report import line, notes, section, table, verdict
from discreet.audit.auditor import Audit, audit
from discreet.audit.mechanisms import ONE_BY_ONE, SUBJECTS, TOGETHER, Subject, subject, with_half_noise
from discreet.mechanisms.reports.randomized_response import RandomizedResponse

REFUTED = 3
"""How it ends when a claim is refuted, or half the noise not seen: everything was measured, and something is wrong."""
FEWER, BROKEN = ONE_BY_ONE, 2 * TOGETHER
"""Outputs of mechanisms that answer one by one, and of those that must be found out, on each neighbor."""
ABOUT = """Every mechanism that `discreet audit` knows, attacked from outside: many outputs on each of two neighbors,
and a search for the event that distinguishes them best. The attack proves a lower bound on ε, with 99.999% confidence
for each line. A bound above the claim would refute the claim. A bound far below it would mean a weak attack. The same
mechanism with half its noise must be detected."""
ABOUT_MORE = """The same attack on what finds limits, chooses keys, adds up blocks of time, tests guesses, reports from
devices and shuffles polls. A vector is attacked through one number that tells most."""


def attacked(name: str, *, broken: bool = False) -> Subject:
    """The neighbors of `discreet audit`; yes and no are 1 and 0 here, so that a hundred million of them fit."""
    found = subject(name, epsilon=1, delta=1e-6 if name in ("gaussian", "key_selection") else 0)
    if isinstance(found.mechanism, RandomizedResponse):
        found = replace(found, mechanism=replace(found.mechanism, choices=[1, 0]), first=1, second=0)
    return replace(found, mechanism=with_half_noise(found.mechanism)) if broken else found


def run(one: Subject | Attack, samples: int) -> Audit:
    claim = one.claim
    return audit(one.draw, one.first, one.second, samples=samples, epsilon=claim.epsilon, delta=claim.delta)


def subjects(names: list[str], samples: int) -> Iterator[tuple[str, Subject | Attack, Subject | Attack, int, int]]:
    """Each mechanism and the same with half its noise, and how many outputs of both are drawn."""
    for name in names:
        if name in MORE:
            one = MORE[name](False)
            yield name, one, MORE[name](True), min(samples, one.samples), min(samples, one.samples, BROKEN)
            continue
        one = attacked(name)
        together = one.samples == TOGETHER
        sizes = samples if together else min(samples, FEWER), min(samples, BROKEN if together else FEWER)
        yield name.replace("_", " "), one, attacked(name, broken=True), *sizes


def main(names: list[str], samples: int, *, more: bool = False) -> int:
    if more:
        section("Audits of further mechanisms", "audits.audits", f"With `--more`. {ABOUT_MORE}")
    else:
        section("Audits", "audits.audits", ABOUT)
    table("mechanism", "outputs on each neighbor", "claimed ε", "at δ", "ε proved", "of it", "half the noise")
    false, unseen = [], []
    for said, one, half, count, fewer in subjects(names, samples):
        print(f"attacking {said}", end="   \r", file=sys.stderr, flush=True)
        result, broken = run(one, count), run(half, fewer)
        if not result.passed:
            false.append(said)
        if broken.passed:
            unseen.append(said)
        claimed = float(one.claim.epsilon)
        line(
            said,
            f"{result.samples:,}",
            f"{claimed:.4f}",
            f"{float(one.claim.delta):.3g}",
            f"{result.epsilon_lower:.4f}" if result.passed else f"{result.epsilon_lower:.4f} **FIRED**",
            f"{result.epsilon_lower / claimed:.1%}",
            "**not seen**" if broken.passed else f"found out: ε ≥ {broken.epsilon_lower:.3f}",
        )
    verdict(
        {
            f"every claim stands{among(false, names)}": not false,
            f"half the noise is detected{among(unseen, names)}": not unseen,
        }
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    one_by_one = "Mechanisms that answer one by one get fewer outputs, so their bounds are weaker."
    if more:
        notes(
            f"""Running sums and polls are tested at a δ where a few outputs are informative. {one_by_one}
            For a report or a poll, half the noise is that of two or three times the ε.
            Mechanisms that are in neither list have their laws enumerated: `pytest tests/claims`.""",
            f"At most {peak:.1f} GB of memory.",
        )
    else:
        notes(
            f"""A Gaussian is tested at a large δ, where a few outputs are informative. Its whole curve follows from the
            same law.
            {one_by_one}""",
            f"At most {peak:.1f} GB of memory. One mechanism at a time: `discreet audit laplace --epsilon 1`.",
        )
    return REFUTED if false or unseen else 0


def among(wrong: list[str], names: list[str]) -> str:
    """How many of all were as they should be, and which were not."""
    return f" ({len(names) - len(wrong)} of {len(names)}{'; not ' if wrong else ''}{', '.join(wrong)})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="only these mechanisms")
    parser.add_argument("--more", action="store_true", help="those that `discreet audit` does not name")
    parser.add_argument("--samples", type=float, default=1e8)
    given = parser.parse_args()
    known = list(MORE if given.more else SUBJECTS)
    sys.exit(main(given.names or known, int(given.samples), more=given.more))

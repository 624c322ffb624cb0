"""Mechanisms that `discreet audit` does not name, each on two neighbors where it is nearly at its worst.

Where many outputs can be drawn at once, a hundred million are: reports of devices, and the steps of running sums of as
many groups. A vector is attacked through one number: its likelihood ratio, or a sum that is close to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import discreet as dp
from discreet.audit.mechanisms import with_half_noise
from discreet.exact.rational import exactly
from discreet.mechanisms.adaptive.guess_tests import GuessTests
from discreet.mechanisms.counts.sums_over_time import SumsOverTime
from discreet.mechanisms.noise.joint import JointNoise
from discreet.mechanisms.noise.smoothed import SmoothedCount
from discreet.mechanisms.reports.bit_response import SubsetSelection, UnaryResponse
from discreet.mechanisms.reports.frequency_oracle import DirectResponse
from discreet.mechanisms.reports.geometric_response import HadamardResponse, ProjectiveResponse
from discreet.mechanisms.reports.local_hashing import LocalHashing
from discreet.mechanisms.selection.person_limits import PersonLimits
from discreet.queries.sensitivity import Sensitivity

EPSILON = dp.Pure(epsilon=1)
ROW = dp.row()
LAST = Sensitivity(1, "Linf", grain=1, monotone=True)
CLIENTS = 100
MANY, PART = 100_000_000, 5_000_000
"""How many outputs are drawn if they can be drawn together, and how many at a time."""


@dataclass(frozen=True)
class Attack:
    """How outputs are drawn, two neighbors, the (ε,δ) to be refuted, and how many outputs are drawn of each."""

    draw: Callable[[Any, int], Any]
    first: Any
    second: Any
    claim: Any
    samples: int


def in_parts(draw: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    """The same outputs, with the memory of a part of them."""

    def drawn(data: Any, size: int) -> Any:
        if size <= PART:
            return draw(data, size)
        return np.concatenate([draw(data, min(PART, size - start)) for start in range(0, size, PART)])

    return drawn


def together(draw: Callable[[Any, int], Any], first: Any, second: Any, claim: Any) -> Attack:
    return Attack(in_parts(draw), first, second, claim, MANY)


def one_by_one(
    mechanism: Any, first: Any, second: Any, claim: Any, seen: Callable[[Any], Any] = lambda one: one
) -> Attack:
    return Attack(lambda data, size: [seen(mechanism._draw(data)) for _ in range(size)], first, second, claim, 50_000)


def often(curve: Any) -> Any:
    """A curve at a large δ, where few outputs tell much."""
    delta = curve.delta_at(epsilon=0) / 2
    return dp.Approx(epsilon=curve.epsilon_at(delta=delta), delta=delta)


def halved(mechanism: Any, *names: str) -> Any:
    return replace(mechanism, **{name: exactly(getattr(mechanism, name)) / 2 for name in names})


def doubled(mechanism: Any, *names: str) -> Any:
    return replace(mechanism, **{name: 2 * exactly(getattr(mechanism, name)) for name in names})


# --- noise ------------------------------------------------------------------------------------------------------------


def smoothed_count(half: bool) -> Attack:
    made = SmoothedCount.for_guarantee(EPSILON, sensitivity=1)
    drawn = SmoothedCount(halved(made.noise, "scale")) if half else made
    return one_by_one(drawn, 0, 1, EPSILON, lambda one: round(one, 1))


def joint_noise(half: bool) -> Attack:
    """The clipped sums of one person, all moved: the sum of their signs is the likelihood ratio, nearly."""
    bound = Sensitivity(4, "L1", dimension=4, grain=1)
    made = JointNoise.for_guarantee(EPSILON, sensitivity=bound, noise=dp.Laplace)
    drawn = replace(made, noise=halved(made.noise, "scale")) if half else made

    def draw(data: int, size: int) -> Any:
        found = drawn._draw([np.full(size, data)] * 4)
        return np.sum([np.clip(one, 0, 1) for one in found], axis=0)

    return together(draw, 0, 1, EPSILON)


def sums_over_time(half: bool) -> Attack:
    """Running totals of a standing question: one unit in the first of eight blocks, in many groups at once."""
    bound = Sensitivity(1, "L2", ROW, 1)
    made = SumsOverTime(points=8, stddevs=(4,), steps=1)
    claim = often(made.guarantee([bound]))
    drawn = SumsOverTime(points=8, stddevs=(2,), steps=1) if half else made
    zero, one = (np.zeros((8, 1), dtype=np.int64), np.eye(8, 1, dtype=np.int64))
    quiet = SumsOverTime(points=8, stddevs=(1,), steps=1)
    column = [_exact(quiet, one, place) for place in range(8)]

    def draw(data: Any, size: int) -> Any:
        found = np.zeros(size)
        for place in range(8):
            rows = np.broadcast_to(data[: place + 1], (place + 1, size))
            found += column[place] * drawn.step(place)._draw([rows])[0]
        return np.round(found, 3)

    return together(draw, zero, one, claim)


def _exact(sums: SumsOverTime, counts: Any, place: int) -> float:
    """What one step measures, without noise."""
    from discreet import testing

    with testing.no_noise():
        return float(sums.step(place)._draw([counts[: place + 1]])[0][0])


# --- choices ----------------------------------------------------------------------------------------------------------


def top_k(half: bool) -> Attack:
    made = dp.mechanisms.TopK.for_guarantee(EPSILON, k=2, sensitivity=1)
    scores = [1] * 2 + [0] * 8, [0] * 2 + [1] * 8
    return one_by_one(doubled(made, "rate") if half else made, *scores, EPSILON, lambda one: str(sorted(one)))


def person_limits(half: bool) -> Attack:
    """How clipping finds a limit: one person more above all but the last one."""
    made = PersonLimits.for_guarantee(EPSILON, limits=((1, 2, 4, 8),), people=1, sensitivity=LAST)
    drawn = replace(made, searches=tuple(with_half_noise(one) for one in made.searches)) if half else made
    enough = made.searches[0].enough
    first = [np.array([3] * enough)]
    return one_by_one(drawn, first, [np.append(first[0], 2)], EPSILON, str)


def key_votes(half: bool) -> Attack:
    """Votes of people for groups that are not declared, with a threshold."""
    promise = dp.Approx(epsilon=1, delta=1e-3)
    made = dp.mechanisms.KeySelection.for_guarantee(promise)
    drawn = halved(made, "scale") if half else made
    data = {"key": made.threshold}, {"key": made.threshold + 1}
    return one_by_one(drawn, *data, promise, len)


def guess_tests(half: bool) -> Attack:
    """Three guesses just pass and a fourth just fails, or the other way round."""
    made = GuessTests(tolerance=2, threshold_scale=2, answer_scale=4)
    claim = dp.Pure(epsilon=made.guarantee(1).epsilon_at(delta=0))
    drawn = halved(made, "threshold_scale", "answer_scale") if half else made

    def run(counts: list[int]) -> int:
        going, passed = drawn._start(), 0
        for count in counts:
            if not going._draw(([0], [count])):
                break
            passed += 1
        return passed

    return Attack(lambda data, size: [run(data) for _ in range(size)], [1, 1, 1, 2], [2, 2, 2, 1], claim, 50_000)


# --- reports and polls ------------------------------------------------------------------------------------------------


def oracle(kind: Any, seen: Callable[[Any, Any], Any]) -> Callable[[bool], Attack]:
    """One report of a device about one of twelve values."""

    def build(half: bool) -> Attack:
        drawn = kind.for_guarantee(dp.Pure(epsilon=2) if half else EPSILON, size=12)

        def draw(data: int, size: int) -> Any:
            return seen(drawn, drawn._draw(np.full(size, data, dtype=np.int64)))

        return together(draw, 0, 1, EPSILON)

    return build


def as_it_is(oracle: Any, reports: Any) -> Any:
    return reports


def first_bits(oracle: Any, reports: Any) -> Any:
    """What a report says of the first two values: nothing else depends on which of them is true."""
    if getattr(oracle, "listed", False):
        return 2 * (reports == 0).any(axis=1) + (reports == 1).any(axis=1)
    return reports[:, 0] >> 6


def first_cells(oracle: Any, reports: Any) -> Any:
    """Whether a report supports each of the first two values."""
    a, b, cell = (reports[:, place] for place in range(3))
    hit = [((a * value + b) % oracle.prime * oracle.cells // oracle.prime) == cell for value in (0, 1)]
    return 2 * hit[0].astype(np.int64) + hit[1]


def local_mean(method: str) -> Callable[[bool], Attack]:
    def build(half: bool) -> Attack:
        asked = dp.local.mean(between=(0, 1), epsilon=2 if half else 1, method=method)
        return together(lambda data, size: np.asarray(asked.encode_many(np.full(size, data))), 0.0, 1.0, EPSILON)

    return build


def poll(
    build_poll: Callable[..., Any], first: Any, second: Any, seen: Callable[[Any], Any]
) -> Callable[[bool], Attack]:
    """A whole poll: the others say the same, one client says one thing or another, and all messages are shuffled."""

    def build(half: bool) -> Attack:
        made = build_poll(clients=CLIENTS, epsilon=1, delta=1e-3)
        drawn = build_poll(clients=CLIENTS, epsilon=3, delta=1e-2) if half else made
        claim = often(made.guarantee())

        def draw(data: Any, size: int) -> Any:
            values = np.full((size, CLIENTS), first)
            values[:, 0] = data
            messages = np.asarray(drawn.encode_many(values.reshape(-1)))
            return seen(messages.reshape(size, -1))

        return Attack(draw, first, second, claim, 200_000)

    return build


MORE: dict[str, Callable[[bool], Attack]] = {
    "smoothed count": smoothed_count,
    "joint noise of clipped people": joint_noise,
    "running sums of eight blocks": sums_over_time,
    "top k": top_k,
    "limits of people": person_limits,
    "keys shown by votes": key_votes,
    "tests of guesses": guess_tests,
    "report by direct response": oracle(DirectResponse, as_it_is),
    "report by a subset": oracle(SubsetSelection, first_bits),
    "report by bits": oracle(UnaryResponse, first_bits),
    "report by a Hadamard code": oracle(HadamardResponse, as_it_is),
    "report by a projective plane": oracle(ProjectiveResponse, as_it_is),
    "report by hashing": oracle(LocalHashing, first_cells),
    "mean of devices, hybrid": local_mean("hybrid"),
    "mean of devices, piecewise": local_mean("piecewise"),
    "sum of bits, shuffled": poll(dp.shuffle.bit_sum, 0, 1, lambda found: (found % 2).sum(axis=1)),
}

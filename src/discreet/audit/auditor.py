"""Audit any randomized function: run it on two neighbors, attack its outputs, and state what could have been found."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.audit.bounds import Finding, delta_lower_bound, lower_bound
from discreet.audit.features import to_samples
from discreet.audit.power import Power, power_of
from discreet.closing import closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_delta, check_epsilon, exactly
from discreet.guarantees.accuracy import check_confidence
from discreet.mechanisms.protocol import Mechanism, offers
from discreet.queries.sensitivity import SensitivityLike
from discreet.rows.containers import Data

Draw = Callable[[Any, int], Iterable[Any]]
"""From data and a size to that many independent outputs."""
Progress = Callable[[int, int], None]
"""Told how many outputs are drawn, and how many there will be."""

CHUNK = 50_000


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What the outputs on two neighbors prove about a mechanism.

    Promise: if the mechanism is (`claimed`, `delta`)-private and its runs are independent, `passed` is False
    with probability at most 1 − `confidence`. Passing is not a proof: `power` says what would have been seen.

    `epsilon_lower` bounds ε at `delta`, `delta_lower` bounds δ at ε = `claimed` (0 without a finite claim). Both hold
    together with probability `confidence`: half of the error is spent on each, as their findings say.
    """

    epsilon_lower: float
    delta_lower: float
    delta: float
    confidence: float
    claimed: float | None
    event: str
    power: Power | None
    samples: int
    finding: Finding
    delta_finding: Finding | None

    @property
    def passed(self) -> bool:
        """Whether the claim survived both bounds; without a claim there is nothing to refute."""
        return self.claimed is None or (self.epsilon_lower <= self.claimed and self.delta_lower <= self.delta)

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FIRED: the claim is false"
        claim = f"{verdict}; claimed ε = {self.claimed:.6g}" if self.claimed is not None else "nothing claimed"
        lines = [f"{claim}, δ = {self.delta:.4g}", str(self.finding)]
        if (found := self.delta_finding) is not None:
            at = f"at ε = {found.epsilon:.4g} (confidence {found.confidence:.10g})"
            lines.append(f"δ ≥ {self.delta_lower:.4g} {at}: {found.event}")
        return "\n".join([*lines, f"power: {self.power}"] if self.power else lines)


@closed
def audit(
    mechanism: Any,
    first: Data,
    second: Data,
    *,
    samples: int = 200_000,
    epsilon: Number | None = None,
    delta: Number = 0.0,
    confidence: float = 0.99999,
    sensitivity: SensitivityLike = None,
    progress: Progress | None = None,
) -> Audit:
    """Attack a mechanism, or any function `f(data, size)` or `f(data)`, on two neighboring inputs.

    A function of two arguments returns `size` independent outputs; one of one argument is called `samples`
    times. A mechanism is drawn through `discreet.release`; its claim, unless `epsilon` is given, is its own
    guarantee for `sensitivity` at `delta`. The audit fires (`passed` is False) when the lower bound on ε at
    `delta`, or the one on δ at the claimed ε, exceeds the claim.

    >>> audit(lambda data, size: [data] * size, "ill", "well", epsilon=1).passed
    False
    """
    count, allowed = check_count(samples, "samples", at_least=8), float(check_delta(delta))
    check_confidence(confidence)
    draw = drawing(mechanism, sensitivity)
    claimed = None if epsilon is None else float(check_epsilon(epsilon))
    if claimed is None and offers(mechanism, Mechanism):
        claimed = mechanism.guarantee(sensitivity=sensitivity).epsilon_at(delta=delta)

    def progress_from(start: int) -> Progress | None:
        return None if progress is None else lambda done, _: progress(start + done, 2 * count)

    outputs = draw_all(draw, first, count, progress_from(0)), draw_all(draw, second, count, progress_from(count))
    stated = None if claimed is None or math.isinf(claimed) else claimed
    each = confidence if stated is None else 1 - (1 - exactly(confidence)) / 2
    finding = lower_bound(*outputs, delta=delta, confidence=each)
    delta_finding = None if stated is None else delta_lower_bound(*outputs, epsilon=stated, confidence=each)
    return Audit(
        epsilon_lower=finding.epsilon,
        delta_lower=0.0 if delta_finding is None else delta_finding.delta,
        delta=allowed,
        confidence=float(confidence),
        claimed=claimed,
        event=finding.event,
        power=None if stated is None else power_of(finding, stated),
        samples=count,
        finding=finding,
        delta_finding=delta_finding,
    )


def drawing(mechanism: Any, sensitivity: SensitivityLike = None) -> Draw:
    """The mechanism or function as one `draw(data, size)`."""
    if offers(mechanism, Mechanism):
        from discreet.audit.mechanisms import draw_through_door

        return draw_through_door(mechanism, sensitivity)
    if not callable(mechanism):
        raise InvalidArgument("audit needs a mechanism, or a function f(data, size) or f(data).", code="wrong-type")
    if _takes_size(mechanism):
        return mechanism  # type: ignore[no-any-return]
    return lambda data, size: [mechanism(data) for _ in range(size)]


def _takes_size(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # some builtins do not say
        return False
    needed = [p for p in parameters.values() if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD]
    return len(needed) == 2 or "size" in parameters


def draw_all(draw: Draw, data: Data, count: int, progress: Progress | None = None) -> Any:
    """`count` outputs as one array (a list if they are not arrays). `progress` is called after each chunk."""
    chunk = CHUNK if progress is None else max(1, min(CHUNK, count // 20))
    parts: list[Any] = []
    for done in range(0, count, chunk):
        size = min(chunk, count - done)
        parts.append(to_samples(draw(data, size)))
        if len(parts[-1]) != size:
            raise InvalidArgument(
                f"f(data, size) returned {len(parts[-1])} outputs for a size of {size}. Return one for each run.",
                code="wrong-shape",
            )
        if progress is not None:
            progress(done + size, count)
    arrays = all(isinstance(part, np.ndarray) for part in parts)
    if arrays and len({(part.shape[1:], part.dtype) for part in parts}) == 1:
        return np.concatenate(parts)
    return [item for part in parts for item in part]

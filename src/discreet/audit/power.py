"""What an audit could have seen: silence from a test without power means nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.audit.bounds import Finding, epsilon_proved
from discreet.exact.search import bisect

SURE = 0.99
FAR = 100.0


@dataclass(frozen=True, kw_only=True)
class Power:
    """The reach of an audit, for the event it tested and the number of outputs it had.

    `expected` is the ε it would typically prove if the event's true ratio were exactly the claim. `detects`
    is the smallest true ε, at this event's probability, on which it fires with probability 0.99 or more
    (infinity: none). `halved_noise`: would halved noise, which about doubles the log-ratio seen, reach it?
    """

    expected: float
    detects: float
    halved_noise: bool

    def __str__(self) -> str:
        if math.isinf(self.detects):
            return "too few outputs to refute this claim, whatever the truth: draw more"
        return (
            f"at the claim it would show about ε ≥ {self.expected:.4g}; it fires with probability {SURE} "
            f"from a true ε of {self.detects:.4g}, "
            f"{'and so' if self.halved_noise else 'but maybe not'} on halved noise"
        )


def power_of(finding: Finding, claimed: float) -> Power:
    """The power of the test behind `finding` against a claim of ε = `claimed` at the same δ."""
    p, q = finding.probabilities
    n, m = finding.trials
    excess = max(0.0, p - finding.delta)

    def proved(hits: int, other_hits: int) -> float:
        return float(epsilon_proved(hits, other_hits, finding.trials, finding.delta, finding.confidence))

    def fires(true: float) -> bool:
        # an unlucky draw on each side: together they are missed with probability at most 1 - SURE
        few, many = quantile(n, p, (1 - SURE) / 2), quantile(m, excess * math.exp(-true), (1 + SURE) / 2)
        return proved(few, many) > claimed

    far = claimed + FAR
    detects = bisect(fires, far, claimed, relative=1e-6) if fires(far) else math.inf
    seen = math.inf if q == 0 else math.log(excess / q) if excess else -math.inf
    return Power(
        expected=proved(round(n * p), round(m * excess * math.exp(-claimed))),
        detects=detects,
        halved_noise=math.isfinite(detects) and 2 * seen >= detects,
    )


def quantile(trials: int, probability: float, level: float) -> int:
    """The smallest count that a binomial variable does not pass with probability at least `level`.

    >>> quantile(100, 0.5, 0.005), quantile(100, 0.0, 0.995), quantile(100, 1.0, 0.005)
    (37, 0, 100)
    """
    from scipy.special import bdtr

    return bisect(lambda count: not bdtr(count, trials, probability) < level, trials, -1)

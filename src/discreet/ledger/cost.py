"""What a release costs under a ledger's rule. Only this module decides between its own guarantee and a stated one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from discreet.errors import IncompatibleGuarantee
from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger.ledger import Ledger
from discreet.mechanisms.protocol import stated_at

SHARES = (10**6, 10**4, 100, 10, 1)
"""The parts of the limit's δ at which an ε is looked for, where none was asked for."""


def cost_of(
    ledger: Ledger | None,
    guarantee: Guarantee,
    goal: Guarantee | Callable[[], Guarantee] | None = None,
    *,
    proved: bool = False,
    shares: Sequence[int] = SHARES,
    most: Fraction = Fraction(1),
) -> Guarantee:
    """What a release with this guarantee is charged to a ledger.

    It is the guarantee itself, unless the ledger's rule adds up only stated ε and δ. Then it is `goal`, the (ε,δ) that
    the noise was made for; a function is called only then. `proved` says that the caller has shown that the noise
    satisfies it. Otherwise this is checked here. Without a goal, the cost is the ε that the guarantee satisfies at a
    small δ: the first of the `shares` of the limit's δ, each at most `most`, for which there is one.

    Promise: the guarantee keeps what is returned, for the unit that it protects.
    """
    if ledger is None or not (rule := ledger.rule).adds_stated:
        return guarantee
    if goal is not None:
        return rule.charged(guarantee, goal if isinstance(goal, Guarantee) else goal(), proved=proved)
    limit = exactly(getattr(rule.limit, "delta", 0))
    if not limit and guarantee.largest_loss is not None and not guarantee.infinite:
        return guarantee
    for share in shares if limit else ():
        if (stated := stated_at(guarantee, min(most, limit / share))) is not None:
            return stated
    raise IncompatibleGuarantee(
        "This ledger adds up ε and δ, and there is no ε at its δ for this release. Open a ledger with a larger δ or "
        "another rule. A poll also takes stated=dp.Approx(epsilon=…, delta=…).",
        code="no-epsilon-at-delta",
    )

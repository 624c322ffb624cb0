"""The rule of one step of a release that was paid in advance: the step is drawn once, at the cost that was paid."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import IncompatibleGuarantee
from discreet.exact.rational import LEDGER_UNIT
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.rules.filters import SHOWN_AT, Rule, Vector


@dataclass(frozen=True, kw_only=True)
class Once(Rule):
    """One release whose guarantee is exactly the limit, and no other.

    Promise: everything that is charged under it is one release with the guarantee `limit`.
    """

    name = "once"

    @property
    def labels(self) -> tuple[str, ...]:
        return "δ", "releases"

    def coordinates(self, guarantee: Guarantee) -> Vector:
        if guarantee != self.limit:
            raise IncompatibleGuarantee(
                f"{self.limit} was paid in advance, and {guarantee} is another release. Keep the declarations that "
                "the noise was made for.",
                code="not-the-one-paid",
            )
        return 0, LEDGER_UNIT

    def total(self, vector: Vector) -> Approx:
        delta = max(Fraction(self.limit.infinite), SHOWN_AT)
        return Approx(epsilon=Fraction(self.limit.epsilon_at(delta=delta)), delta=delta)

    def fits(self, vector: Vector) -> bool:
        return vector[1] <= LEDGER_UNIT

    def largest(self, vector: Vector, like: Guarantee, times: int = 1) -> Guarantee | None:
        """The limit while nothing is drawn, and then nothing."""
        return None if vector[1] or times > 1 else self.limit

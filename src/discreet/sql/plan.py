"""Plans: everything that is decided from public facts before any row is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.mechanisms.protocol import tidy
from discreet.releases import Release
from discreet.sql.bounded_rows import BoundedRows
from discreet.sql.measuring.groups import Groups
from discreet.sql.pricing.automatic_bounds import AutomaticBound
from discreet.sql.pricing.clipping import Clip, Clipping
from discreet.sql.pricing.price import Price
from discreet.sql.pricing.relation import Relation
from discreet.sql.question import Bounds, Question
from discreet.sql.terms import Terms


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How one question will be answered, and what that costs.

    `automatic` are the bounds to find privately before the answer. Until they are found, errors are stated for public
    defaults. `found` describes what was found. `spent_first` is the ε for all of it, `each_bound` for one bound, and
    `each_center` for the center of one mean.

    `clipping` says how people are scaled down if nobody declared how much one may add, and `clip` to which limits. They
    are an example until they are found. `goal` is what a choice of groups may cost, which comes first if their keys are
    not declared (`open_keys`), and `bar` is how many people a group needs who are in one group each, or in many. If no
    group has enough people, `nothing` is the release that says so. With `positive`, no number of a cube is below 0
    if it cannot be.
    """

    question: Question
    bounds: Bounds | None
    groups: Groups | None
    price: Price
    terms: Terms
    automatic: tuple[AutomaticBound, ...] = ()
    found: tuple[str, ...] = ()
    spent_first: Fraction = Fraction(0)
    each_bound: Fraction = Fraction(0)
    each_center: Fraction = Fraction(0)
    clipping: Clipping | None = None
    clip: Clip | None = None
    goal: Approx | None = None
    bar: dict[int, float] | None = None
    open_keys: tuple[str, ...] = ()
    nothing: Release | None = None
    positive: bool = False

    @property
    def searched(self) -> Fraction | None:
        """The ε for finding limits on people, if there are any to find."""
        return None if self.clipping is None else self.clipping.searched

    @property
    def relation(self) -> Relation:
        """The rows that it reads."""
        return self.question.relation

    @property
    def meaning(self) -> str:
        """The identity of what it measures."""
        return self.question.meaning

    @property
    def enforced(self) -> Bounds | None:
        """The bounds that the engine enforces. There are none if single rows are protected."""
        return None if self.question.relation.person is None else self.bounds

    def __str__(self) -> str:
        return f"a plan for {self.cost}: explain says what is found first, and how large errors may be"

    @property
    def charges(self) -> list[Guarantee]:
        """What it charges, release by release, if nothing of it was bought before."""
        return [*(bound.guarantee for bound in self.automatic), self.price.guarantee]

    @property
    def cost(self) -> Approx:
        """The cost of the answer, including the bounds found for it."""
        if self.nothing is not None and self.goal is not None:
            return Approx(epsilon=tidy(self.spent_first), delta=self.goal.delta)
        whole = self.price.cost
        if not self.spent_first:
            return whole
        delta = exactly(whole.delta) + (0 if self.goal is None else exactly(self.goal.delta))
        epsilon = tidy(exactly(whole.epsilon) + self.spent_first)
        return Approx(epsilon=epsilon, delta=tidy(delta)) if delta else replace(whole, epsilon=epsilon)


@dataclass(frozen=True)
class RowsPlan:
    """Rows within bounds, what a release of them may cost, and which bounds are found first, each for `each_bound`."""

    rows: BoundedRows
    terms: Terms
    automatic: tuple[AutomaticBound, ...] = ()
    found: tuple[str, ...] = ()
    each_bound: Fraction = Fraction(0)

    @property
    def relation(self) -> Relation:
        """The rows that it reads."""
        return self.rows.relation

    @property
    def meaning(self) -> str:
        """What the rows are, as one text."""
        return self.rows.asked.meaning

    @property
    def bounds(self) -> Bounds | None:
        """What one unit may contribute to them."""
        return self.rows.bounds

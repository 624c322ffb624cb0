"""How a question is answered: what is decided before data is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Approx
from discreet.mechanisms.protocol import tidy
from discreet.sql.pricing.price import Price
from discreet.sql.question import Bounds, Question
from discreet.sql.running.groups import Cells


@dataclass(frozen=True)
class Plan:
    """A question, what it costs and how it will be answered: everything that is decided before data is read."""

    question: Question
    bounds: Bounds | None
    cells: Cells | None
    price: Price
    first: tuple[Any, ...] = ()
    """What is to be found before; errors are told for public defaults until then."""
    found: tuple[str, ...] = ()
    """What was found."""
    terms: Mapping[str, Any] = field(default_factory=dict)
    """The ε, δ and weights it was priced with."""
    before: Fraction = Fraction(0)
    """The ε of what is, or was, found before."""

    @property
    def enforced(self) -> Bounds | None:
        """The bounds that the engine sees to: where single rows are protected there are none."""
        return None if self.question.relation.person is None else self.bounds

    @property
    def cost(self) -> Approx:
        """What the answer costs, with what is found for it."""
        whole = self.price.cost
        return whole if not self.before else replace(whole, epsilon=tidy(exactly(whole.epsilon) + self.before))

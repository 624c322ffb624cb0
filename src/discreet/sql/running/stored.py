"""Stored numbers that answer another question, if they contain its measures and are at least as accurate.

The ledger's record of a measurement ends with its mark: its rows and groups and, for each measure in the order of the
stored numbers, the noise. Everything in a mark is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.exact.rational import exactly
from discreet.ledger import Entry, Identity, Ledger
from discreet.ledger.exact import digest, exact_text
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import tidy
from discreet.sql.measurement import identities_apart
from discreet.sql.plan import Plan
from discreet.sql.pricing.price import Price
from discreet.sql.schema import Schema

_DISTRIBUTIONS: dict[str, Any] = {
    "Laplace": lambda scale: Laplace(scale=tidy(Fraction(scale)), step=1),
    "Gaussian": lambda deviation: Gaussian(stddev=tidy(Fraction(deviation))),
}


@dataclass(frozen=True)
class Mark:
    """The identity of a stored measurement: its rows and groups, and each measure with its noise.

    `threshold` is how many people a group needs to be shown, if keys are not declared.
    """

    groups: str
    measures: tuple[str, ...]
    noise: tuple[str, ...]
    threshold: int | None = None

    def __str__(self) -> str:
        shown = "" if self.threshold is None else f"; keys of {self.threshold}"
        return f"{self.groups}: {', '.join(map(' '.join, zip(self.measures, self.noise, strict=True)))}{shown}"

    @staticmethod
    def read(text: str) -> Mark | None:
        """The mark in a record. None if there is none."""
        groups, _, rest = text.partition(": ")
        listed, _, shown = rest.partition("; keys of ")
        parts = [part.partition(" ") for part in listed.split(", ")]
        if not all(noise for _, _, noise in parts) or not (shown.isdecimal() or not shown):
            return None
        measures, noise = tuple(name for name, _, _ in parts), tuple(law for _, _, law in parts)
        return Mark(groups, measures, noise, int(shown) if shown else None)


def mark_of(plan: Plan, schema: Schema, identity: Identity) -> Mark:
    """The mark of a plan's measurement. `identity` is that of its question, for its data and declarations."""
    groups, measures = identities_apart(plan.question, schema)
    facts = (groups, plan.bounds, identity.data_version, identity.policy, dict(identity.arguments))
    chosen = plan.price.selection
    return Mark(
        digest(exact_text(facts))[:32],
        tuple(digest(text)[:32] for text in measures),
        tuple(map(_noise, plan.price.parts)),
        None if chosen is None else chosen.threshold,
    )


def _noise(part: Any) -> str:
    """The distribution of a part of a price, in a form that can be read back. For a choice, a digest to compare."""
    match part:
        case Laplace(scale=scale):
            return f"Laplace {exactly(scale)}"
        case Gaussian(stddev=deviation):
            return f"Gaussian {exactly(deviation)}"
    return f"selection {digest(exact_text(part))[:32]}"


def find_reusable(ledger: Ledger, mark: Mark, price: Price) -> tuple[Entry, Price, list[int]] | None:
    """The newest charge whose stored numbers are at least as accurate as those the price would buy: with its own noise,
    and the positions of the measures among its numbers.
    """
    for entry in reversed(ledger.marked(mark.groups)):
        known = Mark.read(entry.mark)
        if known is None or not set(mark.measures) <= set(known.measures) or entry.state != "answered":
            continue
        places = [known.measures.index(measure) for measure in mark.measures]
        if (known.threshold or 0) > (mark.threshold or 0):  # a higher threshold would hide groups
            continue
        parts = [_if_as_accurate(known.noise[place], part) for place, part in zip(places, price.parts, strict=True)]
        if all(part is not None for part in parts):
            return entry, replace(price, parts=tuple(parts)), places
    return None


def _if_as_accurate(noise: str, part: Any) -> Any:
    """The stored noise, if it is not larger than that of the part, or None. Different laws are compared at 95%."""
    law, _, size = noise.partition(" ")
    if law not in _DISTRIBUTIONS:
        return part if noise == _noise(part) else None
    if not isinstance(part, Laplace | Gaussian):
        return None
    own, _, wanted = _noise(part).partition(" ")
    known = _DISTRIBUTIONS[law](size)
    if own == law:
        return known if Fraction(size) <= Fraction(wanted) else None
    return known if float(known.error(0.95)) <= float(part.error(0.95)) else None


def chosen_numbers(value: Any, plan: Plan, places: Sequence[int]) -> Any:
    """The stored numbers of the measures at these positions, as if only these had been measured."""
    if plan.groups is None:
        keys, noisy = value
        return keys, [noisy[place] for place in places]
    return [value[place] for place in places]

"""Stored numbers that answer another question, if they contain its measures and are at least as accurate.

The ledger's record of a measurement ends with its mark: its rows and groups and, for each measure in the order of the
stored numbers, the noise. Everything in a mark is public.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet.exact.rational import exactly
from discreet.ledger import Entry, Identity, Ledger
from discreet.ledger.texts.exact import digest, exact_text
from discreet.mechanisms.combine import Composed
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.selection.threshold import SelectedGroups
from discreet.sql.measurement import identities_apart
from discreet.sql.plan import Plan
from discreet.sql.pricing.price import Price
from discreet.sql.schema import Schema

_LAWS: dict[str, Callable[[Fraction], Laplace | Gaussian]] = {
    "Laplace": lambda scale: Laplace(scale=tidy(scale), step=1),
    "Gaussian": lambda deviation: Gaussian(stddev=tidy(deviation)),
}
_NUMBER = r"[0-9]+(?:/[1-9][0-9]*)?"
_NOISE = rf"(?:Laplace|Gaussian) {_NUMBER}|selection [0-9a-f]{{32}}"
_MEASURE = rf"[0-9a-f]{{32}} (?:{_NOISE})"
_KEYS = rf"; keys of ([0-9]+) at ({_NUMBER})"
_MARK = re.compile(
    rf"([0-9a-f]{{32}}): ({_MEASURE}(?:, {_MEASURE})*)(?:{_KEYS})?(; cells .*?)?(?:; asked [0-9a-f]{{32}})?"
)


@dataclass(frozen=True)
class Mark:
    """The identity of a stored measurement: its rows and groups, and each measure with its noise.

    `threshold` is how many people a group needs to be shown if keys are not declared, and `scale` the noise of that
    count. `more` says which cells each number adds up, if that is known: see `sql/estimates/written.py`.
    """

    groups: str
    measures: tuple[str, ...]
    noise: tuple[str, ...]
    threshold: int = 0
    scale: Fraction = Fraction(0)
    more: str = ""

    def __str__(self) -> str:
        shown = f"; keys of {self.threshold} at {self.scale}" if self.threshold else ""
        measured = ", ".join(map(" ".join, zip(self.measures, self.noise, strict=True)))
        return f"{self.groups}: {measured}{shown}{self.more}"

    @staticmethod
    def read(text: str) -> Mark | None:
        """The mark in a record. None if there is none."""
        found = _MARK.fullmatch(text)
        if found is None:
            return None
        groups, listed, threshold, scale, more = found.groups()
        parts = [part.partition(" ") for part in listed.split(", ")]
        measures, noise = tuple(name for name, _, _ in parts), tuple(law for _, _, law in parts)
        return Mark(groups, measures, noise, int(threshold or 0), Fraction(scale or 0), more or "")


def mark_of(plan: Plan, schema: Schema, identity: Identity) -> Mark:
    """The mark of a plan's measurement. `identity` is that of its question, for its data and declarations."""
    groups, measures = identities_apart(plan.question, schema)
    facts = (groups, plan.bounds, identity.data_version, identity.policy, dict(identity.arguments))
    chosen = plan.price.selection
    return Mark(
        digest(exact_text(facts))[:32],
        tuple(digest(text)[:32] for text in measures),
        tuple(map(_noise, plan.price.parts)),
        *(() if chosen is None else (chosen.threshold, exactly(chosen.scale))),
    )


def _noise(part: Any) -> str:
    """The distribution of a part of a price, in a form that can be read back. For a choice, a digest to compare."""
    match part:
        case Laplace(scale=scale):
            return f"Laplace {exactly(scale)}"
        case Gaussian(stddev=deviation):
            return f"Gaussian {exactly(deviation)}"
    return f"selection {digest(exact_text(part))[:32]}"


def noise_in(text: str) -> Laplace | Gaussian | None:
    """The noise that a mark names. None for a choice."""
    law, _, size = text.partition(" ")
    return _LAWS[law](Fraction(size)) if law in _LAWS else None


def find_reusable(ledger: Ledger, mark: Mark, price: Price) -> tuple[Entry, Price, list[int]] | None:
    """The newest charge whose stored numbers are at least as accurate as those the price would buy: the price of those
    numbers, with their own noise and guarantee, and the positions of the measures among them.
    """
    for entry in reversed(ledger.marked(mark.groups)):
        known = Mark.read(entry.mark)
        if known is None or not set(mark.measures) <= set(known.measures) or entry.state != "answered":
            continue
        if known.threshold > mark.threshold or known.scale > mark.scale:  # some groups would be hidden
            continue
        if not math.isfinite(entry.guarantee.epsilon_at(delta=price.delta)):  # another δ than the one asked for
            continue
        places = [known.measures.index(measure) for measure in mark.measures]
        parts = [_if_as_accurate(known.noise[place], part) for place, part in zip(places, price.parts, strict=True)]
        if all(part is not None for part in parts):
            return entry, _price_of(entry, known, parts, price), places
    return None


def _price_of(entry: Entry, mark: Mark, parts: Sequence[Any], price: Price) -> Price:
    """The price of stored numbers: what was paid for all of them, and the noise of those that are used."""
    mechanism: Composed | SelectedGroups = Composed(mechanisms=tuple(parts))
    if isinstance(price.mechanism, SelectedGroups):
        shown = replace(price.mechanism.selection, threshold=mark.threshold, scale=tidy(mark.scale))
        mechanism = SelectedGroups(selection=shown, answers=mechanism)
    return replace(price, mechanism=mechanism, parts=tuple(parts), guarantee=entry.guarantee, epsilon=Fraction(0))


def _if_as_accurate(noise: str, part: Any) -> Any:
    """The stored noise, if it is not larger than that of the part, or None.

    Gaussian noise has the lighter tails: if it is not larger than Laplace noise at 50%, it is not at any higher
    confidence. Laplace noise is never as good as Gaussian noise at all of them.
    """
    known = noise_in(noise)
    if known is None:
        return part if noise == _noise(part) else None
    match known, part:
        case Laplace(), Laplace():
            return known if exactly(known.scale) <= exactly(part.scale) else None
        case Gaussian(), Gaussian():
            return known if exactly(known.stddev) <= exactly(part.stddev) else None
        case Gaussian(), Laplace():
            return known if float(known.error(0.5)) <= float(part.error(0.5)) else None
    return None


def chosen_numbers(value: Any, plan: Plan, places: Sequence[int]) -> Any:
    """The stored numbers of the measures at these positions, as if only these had been measured."""
    if plan.groups is None:
        keys, noisy = value
        return keys, [noisy[place] for place in places]
    return [value[place] for place in places]

"""Which groups an answer shows if their keys are not declared: those that enough people are in, chosen before the rest.

People share their vote among their keys, so that nobody has to say how many keys one person may have. After the choice
the groups are known, and only they count in what one person adds.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.engines.engine import Engine
from discreet.errors import InvalidArgument, NotAllowed
from discreet.guarantees.guarantee import Approx
from discreet.guarantees.unit import Unit
from discreet.mechanisms.selection.common_keys import CommonKeys
from discreet.mechanisms.selection.key_holders import DEGREES
from discreet.mechanisms.selection.threshold import order_of
from discreet.mechanisms.selection.weighted_keys import WeightedKeys
from discreet.sql.measurement import identity_of
from discreet.sql.measuring.person_keys import read_person_keys
from discreet.sql.pricing.automatic_bounds import AutomaticBound
from discreet.sql.question import Question
from discreet.sql.schema import Schema

FEW_KEYS = 2
"""If nobody may have more keys, one noisy count of people for each key is better than shared votes."""


SMALL = Fraction(1, 50)
"""With a smaller ε, coins take seconds to prepare, and few groups have enough people anyway."""


def has_open_keys(question: Question) -> bool:
    """Whether the groups of a question are not known."""
    return question.shown is None and any(key.domain is None for key in question.keys)


def chooses_first(question: Question, most: int | None, *, clipped: bool) -> bool:
    """Whether the groups are chosen before the answer. `most` is the declared number of groups of one person. What one
    person adds is limited in all groups together, so people can be clipped only if the groups are known. Levels are
    sums of known groups, too.
    """
    many = question.relation.person is not None and (most is None or most > FEW_KEYS)
    return has_open_keys(question) and (clipped or many or bool(question.levels))


def key_choice(question: Question, unit: Unit, goal: Approx, most: int | None, *, by_weights: bool) -> AutomaticBound:
    """How the groups are chosen: by coins, or by weights, for which the goal is that of one added or removed person.
    `most` is the declared number of groups of one person.
    """
    given = {} if most is None else {"keys_per_person": min(most, DEGREES[-1])}
    kind: Any = WeightedKeys if by_weights else CommonKeys
    chosen = kind.for_guarantee(goal, **given)
    used = chosen.keys_per_person if by_weights or most is not None else DEGREES[-1]

    def read(engine: Engine) -> Any:
        return read_person_keys(question, engine, used)

    return AutomaticBound(
        "which groups have enough people",
        question.relation,
        read,
        chosen,
        None,
        lambda found: [tuple(key) for key in found],
        question,
        stated=chosen.guarantee().stated_for(unit),
    )


def with_shown(question: Question, keys: list[tuple[Any, ...]], schema: Schema) -> Question:
    """The question about the groups that are shown, and no others."""
    columns = [dict.fromkeys(key[place] for key in keys) for place in range(len(question.keys))]
    known = tuple(
        replace(key, domain=tuple(sorted(values, key=order_of)))
        for key, values in zip(question.keys, columns, strict=True)
    )
    shown = replace(question, keys=known, shown=tuple(keys))
    return replace(shown, meaning=identity_of(shown, schema))


def check_votes(unit: Unit) -> None:
    """Refuse to choose groups by votes if a unit has several of them."""
    if unit.most_rows > 1:
        raise NotAllowed(
            "Several rows are protected at once, and groups whose keys are not declared are then supported for one "
            "level, and for values with ranges. Declare the keys (choices), or ask for each level by itself.",
            code="sql-several-rows-keys",
        )


def need_delta(delta: Fraction) -> None:
    """Refuse undeclared keys without a delta."""
    if not delta:
        raise InvalidArgument(
            "Groups whose keys are not declared need a delta. Write delta=1e-8, declare the keys (choices), or set "
            "delta_per_question in the policy.",
            code="needs-delta",
        )

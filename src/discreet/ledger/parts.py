"""Totals of parts: what a unit has lost whose data are in one part alone. Why they may replace the sum: decision 0024.

The total of a part is that of the charges on everything since it was renewed, and of the charges on the part alone. If
neighbors replace a unit, it may move from one part to another, and what both have lost counts.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement
from typing import Any, NamedTuple

from discreet.errors import InvalidArgument
from discreet.guarantees.rules.best_of import Filter, Rule, Vector
from discreet.guarantees.unit import Unit
from discreet.ledger.texts.request import public_text

_SIGN = "\0"
"""Divides the name of an account from that of a part: neither holds it."""
_LONGEST, _MOST = 200, 10_000
_PAIRS = 10**5
"""At most this many pairs of parts are compared one by one. If there are more, the largest coordinates decide."""


class Own(NamedTuple):
    """What the charges on one part alone have cost, and what those on everything had cost, when it was last renewed.
    `number` is the entry that says so, and `previous` the one before it that charged this part, or 0.
    """

    added: Vector
    before: Vector
    number: int = 0
    previous: int = 0

    def written(self) -> Vector:
        """As it is recorded. Most parts were never renewed."""
        return (*self.added, *(self.before if any(self.before) else ()), self.previous)


class Divided(NamedTuple):
    """The state of an account some of whose parts were charged: the total of the charges on everything, the entry that
    last renewed it, and the sum of the digests of the table that says which entry was the last to charge each part.
    `division` is a number for the declarations that say who is in which part, or 0 if nothing but the data does.
    """

    base: Vector
    since: int
    digest: int
    division: int = 0

    def written(self) -> Vector:
        """As it is recorded."""
        return (*self.base, self.since, self.digest, *((self.division,) if self.division else ()))

    def bound_to(self, division: int) -> Divided:
        """The same, after a part of this division was charged or renewed.

        Promise: since the last renewal, all parts were those of one division. With another, the same people would be in
        other parts, and lose what both have lost.
        """
        if self.division not in (0, division):
            raise InvalidArgument(
                "The declared values of lives_in are no longer those for which parts were charged: people who were in "
                "one part would be in another, with a budget of its own. Declare them as before, ask about everything "
                "without part(…), or begin a new period with ledger.renew(why=…).",
                code="ledger-other-parts",
            )
        return self._replace(division=self.division or division)


FindOwns = Callable[[str, Collection[str] | None], dict[str, Own]]
"""Finds what parts of an account have lost alone: those that are named, or all that were ever charged."""


def none_alone(*_: Any) -> dict[str, Own]:
    """Finds nothing, where no part was charged."""
    return {}


def with_owns(
    find: FindOwns, later: Mapping[str, Mapping[str, Own]], account: str, wanted: Collection[str] | None
) -> dict[str, Own]:
    """What parts have lost alone, with what they would lose."""
    more = {part: own for part, own in later[account].items() if wanted is None or part in wanted}
    return {**find(account, wanted), **more}


def check_names(parts: Sequence[Any], protects: Unit, within: Collection[str]) -> tuple[str, ...]:
    """The names of parts, each once, in order. Refuses them where no unit lives in one part."""
    if protects.lives_in_one is None:
        raise InvalidArgument(
            f"The ledger protects {protects!r}, who may be in every part of the data: a part has no budget of its own. "
            'Protect what a person has in one block of time, dp.person("patient_id", per="month"), or people who '
            'live in one part, dp.person("patient_id", lives_in="region").',
            code="ledger-no-parts",
        )
    named = all(isinstance(part, str) and 0 < len(part) <= _LONGEST and part == public_text(part) for part in parts)
    if not named or not 0 < len(parts) <= _MOST or (within and not set(parts) <= set(within)):
        raise InvalidArgument(
            f"Name 1 to {_MOST} parts, each by a text of 1 to {_LONGEST} characters, such as '2024-01'. "
            "A part of a part must be one of its own.",
            code="ledger-part-name",
        )
    return tuple(sorted(set(parts)))


# --- how it is recorded: in the costs and totals of an entry, under names that no account has ------------------


def key_of(account: str, part: str = "") -> str:
    """The name under which the totals of an entry hold a part of an account, or what concerns all of them."""
    return f"{account}{_SIGN}{part}"


def named_in(costs: Mapping[str, Vector]) -> tuple[str, ...]:
    """The parts that a charge names, from its costs. None if it charged everything."""
    return tuple(name[1:] for name in costs if name[:1] == _SIGN)


def naming(parts: Iterable[str], division: int = 0) -> dict[str, Vector]:
    """What the costs of a charge hold besides its costs: the parts, and of which division they are."""
    return {key_of("", part): (division,) if division else () for part in parts}


def division_in(costs: Mapping[str, Vector]) -> int:
    """The division of the parts that a charge names, from its costs. -1 if they are not in the form that is written."""
    named = named_in(costs)
    division = next((vector[0] for part in named if (vector := costs[key_of("", part)])), 0)
    others = {name: vector for name, vector in costs.items() if _SIGN in name}
    return division if others == naming(named, division) and division >= 0 else -1


def of_accounts(vectors: Mapping[str, Vector]) -> dict[str, Vector]:
    """The costs or totals of whole accounts."""
    return {name: vector for name, vector in vectors.items() if _SIGN not in name}


def owns_in(totals: Mapping[str, Vector], number: int) -> dict[tuple[str, str], Own | None]:
    """What an entry says about single parts, by account and part. None if it is not in the form that is written."""
    found: dict[tuple[str, str], Own | None] = {}
    for name, vector in totals.items():
        account, sign, part = name.partition(_SIGN)
        if not sign or not part:
            continue
        length = len(totals.get(account, ()))
        added, before, rest = vector[:length], vector[length : 2 * length], vector[-1:]
        if len(vector) == length + 1:
            before = (0,) * length
        well = len(vector) in (length + 1, 2 * length + 1) and 0 <= rest[0] < number
        found[account, part] = Own(added, before, number, rest[0]) if well else None
    return found


def divided_in(totals: Mapping[str, Vector], account: str) -> Divided | None:
    """The state of an account with parts, from the totals of an entry. None if no part was charged yet."""
    vector, length = totals.get(key_of(account)), len(totals.get(account, ()))
    if vector is None:
        return None
    rest = vector[length:]
    return Divided(vector[:length], *rest) if len(rest) in (2, 3) else Divided((), -1, -1)


def digest_of(account: str, part: str, number: int) -> int:
    """A digest of a row of the table of parts, small enough that a database can add up millions of them."""
    text = f"{account}{_SIGN}{part}{_SIGN}{number}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:5])


def digest_after(digest: int, account: str, part: str, before: int | None, number: int) -> int:
    """The sum of the digests after one more entry has charged a part."""
    old = 0 if before is None else digest_of(account, part, before)
    return digest - old + digest_of(account, part, number)


# --- how it adds up -------------------------------------------------------------------------------------------


def lost(base: Vector, own: Own) -> Vector:
    """What a unit has lost whose data are in this part."""
    return tuple([all_ + one - old for all_, one, old in zip(base, own.added, own.before, strict=True)])


def _lost_by_move(base: Vector, one: Own, other: Own) -> Vector:
    """What a unit has lost that may be in either of two parts."""
    each = zip(base, one.added, other.added, one.before, other.before, strict=True)
    return tuple([all_ + a + b - min(first, second) for all_, a, b, first, second in each])


def worst(vectors: Iterable[Vector]) -> Vector:
    """The largest of each coordinate."""
    return tuple(map(max, *found)) if len(found := list(vectors)) > 1 else found[0]


def nothing_alone(base: Vector) -> Own:
    """The state of a part that was never charged alone."""
    return Own((0,) * len(base), (0,) * len(base))


def losses(base: Vector, owns: Mapping[str, Own], parts: Collection[str], protects: Unit) -> Iterator[Vector]:
    """What the units have lost that these parts may hold, or without parts all units: one vector for each case.

    If neighbors replace a unit, `owns` must hold all parts. Some part was never charged alone: there may always be one.
    """
    fresh = nothing_alone(base)
    replaced = protects.neighbors == "replace"
    if not parts:
        cases = [fresh, *_distinct(owns.values(), 2 if replaced else 1)]
        if not replaced:
            yield from (lost(base, own) for own in cases)
        elif len(cases) ** 2 <= 2 * _PAIRS:
            for (n, one), (m, other) in combinations_with_replacement(list(enumerate(cases)), 2):
                if n != m or one is fresh:
                    yield _lost_by_move(base, one, other)
        else:
            yield _lost_at_most(base, cases)
        return
    for part in parts:
        own = owns.get(part, fresh)
        if not replaced:
            yield lost(base, own)
            continue
        others = [other for name, other in owns.items() if name != part]
        yield from (_lost_by_move(base, own, other) for other in (fresh, *_distinct(others, 1)))


def losses_between(base: Vector, owns: Mapping[str, Own], parts: Collection[str]) -> Iterator[Vector]:
    """What the units have lost that may move from one of these parts to another: what is charged to both, they lose
    twice.
    """
    fresh = nothing_alone(base)
    cases = _distinct((owns.get(part, fresh) for part in parts), 2)
    if len(cases) ** 2 <= 2 * _PAIRS:
        yield from (_lost_by_move(base, one, other) for one, other in combinations(cases, 2))
    else:
        yield _lost_at_most(base, cases)


def _lost_at_most(base: Vector, cases: Collection[Own]) -> Vector:
    """What a unit has lost at most that may be in any two of many parts: the two largest of each coordinate."""
    tops = [sorted(column)[-2:] for column in zip(*(own.added for own in cases), strict=True)]
    return tuple([all_ + sum(two) for all_, two in zip(base, tops, strict=True)])


def _distinct(owns: Iterable[Own], most: int) -> list[Own]:
    """Parts that have lost the same count as one, or as two."""
    counted = Counter((own.added, own.before) for own in owns)
    return [Own(*case) for case, times in counted.items() for _ in range(min(times, most))]


def all_fit(rule: Rule, vectors: Iterable[Vector]) -> bool:
    """Whether each of these totals fits."""
    return all(map(rule.fits, vectors))


def is_exact(rule: Rule) -> bool:
    """Whether the largest of each coordinate fits exactly if each total does: there is one box, and not a choice."""
    return isinstance(rule, Filter)


def renewed(base: Vector, own: Own) -> Own:
    """A part at the beginning of a new period."""
    return Own((0,) * len(base), base, previous=own.number)

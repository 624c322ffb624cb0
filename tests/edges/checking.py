"""How a call is tried: without the odd record and with it, and what must not change between the two."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet import testing

from .records import HOSTILE, WORST, CannotHold, Container, Odd, again

PLACES = ("first", "middle", "last")
Distance = Callable[[Any, Any], float]
Combination = tuple[str, str, list[str], str]
"""A container, where in a record, which odd ones, and where among the others."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One public call that takes data.

    `run` gives its answer without noise. One record, added or (if `replaced`) put in the place of another, moves it by
    at most `most` in the distance `moved`; without a number, by at most twice what the valid records `extremes` do.
    `ways` are the places inside of one record where something odd can be: the whole of it, one cell, the label.
    `fields` of an answer that name its type, its shape and its keys stay as they are.
    """

    name: str
    covers: tuple[str, ...]
    base: Sequence[Any]
    run: Callable[[Any], Any]
    moved: Distance
    most: float | None
    containers: Mapping[str, Container]
    ways: Mapping[str, Callable[[Any], Any]] = field(default_factory=lambda: {"record": lambda odd: odd})
    extremes: Sequence[Any] = ()
    replaced: bool = False
    frozen: bool = False
    """The same noise each time, where none at all would never end: a number of tries that is itself drawn."""
    odd: Mapping[str, Any] | None = None
    """Odd records of its own, such as the lines of a file, in place of those that all calls share."""
    heavy: bool = False
    """Slow, or much like another: in the quick test only the worst records, all at once, and one in each container."""
    together: int = 1
    """So many odd records are tried at once in the quick test: they may move the answer so many times as far."""

    def __str__(self) -> str:
        return self.name

    @cached_property
    def _known(self) -> dict[str, Any]:
        return {}

    def without(self, container: str) -> Seen:
        """What is seen without the odd record."""
        if container not in self._known:
            self._known[container] = self.seen(container, self.base)
        return self._known[container]  # type: ignore[no-any-return]

    def seen(self, container: str, records: Sequence[Any]) -> Seen:
        """What the one who asks can see, noise left aside."""
        held = self.containers[container](records)
        error, answer = None, None
        noise = testing.frozen(7) if self.frozen else testing.no_noise()
        with warnings.catch_warnings(record=True) as caught, noise:
            warnings.simplefilter("always")
            try:
                answer = self.run(held)
            except Exception as raised:
                error = f"{type(raised).__name__}: {_text(raised)}"
        return Seen(answer, error, frozenset(f"{one.category.__name__}: {one.message}" for one in caught))

    @cached_property
    def limit(self) -> float:
        """How far one record may move the answer."""
        if self.most is not None:
            return self.most
        container = next(iter(self.containers))
        alone = [self.seen(container, self.placed([Odd(one)], "middle")) for one in self.extremes]
        return 2 * max(self.moved(self.without(container).answer, one.answer) for one in alone)

    @cached_property
    def numbers(self) -> int:
        """How many numbers are given back for the records, one of each: no record has two in another container."""
        return len(numbers_in(self.without(next(iter(self.containers))).answer))

    def placed(self, odd: Sequence[Any], place: str) -> list[Any]:
        """The records with the odd ones: first, in the middle or last."""
        at = {"first": 0, "middle": len(self.base) // 2, "last": len(self.base)}[place]
        if self.replaced:
            at = min(at, len(self.base) - len(odd))
            return [*self.base[:at], *odd, *self.base[at + len(odd) :]]
        return [*self.base[:at], *odd, *self.base[at:]]

    def trouble(self, container: str, way: str, names: Sequence[str], place: str) -> str | None:
        """What these odd records change that they must not; None where all is well, or where none can be there."""
        odd = [Odd(self.ways[way](self._odd(name))) for name in names]
        try:
            without, found = self.without(container), self.seen(container, self.placed(odd, place))
        except CannotHold:
            return None
        said = self._difference(without, found, len(names))
        return said and f"{self.name} [{container}; {way} = {', '.join(names)}; {place}]: {said}"

    def _odd(self, name: str) -> Any:
        if name.startswith("extreme "):
            return self.extremes[int(name.split()[1])]
        return again(name) if self.odd is None else self.odd[name]

    @property
    def names(self) -> list[str]:
        """The odd records that it is tried with."""
        return list(HOSTILE if self.odd is None else self.odd)

    def _difference(self, without: Seen, found: Seen, count: int) -> str | None:
        if found.error != without.error:
            return f"raises {_short(found.error)}, and {_short(without.error)} without it"
        if found.warned - without.warned:
            return f"warns {_short(sorted(found.warned - without.warned)[0])}"
        if without.error is not None:
            return None
        if self.moved is reports and len(numbers_in(found.answer)) != self.numbers:
            return f"gives {len(numbers_in(found.answer))} numbers for these records, in place of {self.numbers}"
        if shape_of(found.answer) != shape_of(without.answer):
            return f"is {_short(shape_of(found.answer))}, and {_short(shape_of(without.answer))} without it"
        far = self.moved(without.answer, found.answer)
        allowed = count * self.limit * (1 + 1e-9) + 1e-9
        return None if far <= allowed else f"moves by {far:.6g}, and may by {count * self.limit:.6g}"


@dataclass(frozen=True)
class Seen:
    """An answer or an error, and all warnings."""

    answer: Any
    error: str | None
    warned: frozenset[str]


def _text(raised: BaseException) -> str:
    try:
        return str(raised)
    except Exception:
        return "(no text)"


def _short(text: Any) -> str:
    shown = str(text)
    return shown if len(shown) <= 160 else shown[:157] + "…"


# --- what must stay -----------------------------------------------------------------------------------------------


def shape_of(answer: Any) -> Any:
    """Types, shapes, keys and their order, all the way down; no value."""
    if isinstance(answer, np.ndarray):
        return ("array", answer.dtype.str, answer.shape)
    if isinstance(answer, Mapping):
        return (type(answer).__name__, *((_shown(key), shape_of(value)) for key, value in answer.items()))
    if isinstance(answer, list | tuple):
        inside = [shape_of(one) for one in answer]
        same = len(inside) > 3 and all(one == inside[0] for one in inside)
        return (type(answer).__name__, len(inside), inside[0] if same else tuple(inside))
    if is_dataclass(answer) and not isinstance(answer, type):
        parts = ((one.name, shape_of(getattr(answer, one.name))) for one in fields(answer))
        return (type(answer).__name__, *parts)
    return type(answer).__name__


# --- how far two answers are apart --------------------------------------------------------------------------------


def numbers_in(answer: Any) -> list[Any]:
    """All numbers of an answer, in order."""
    if isinstance(answer, np.ndarray):
        return list(answer.reshape(-1).tolist())
    if isinstance(answer, Mapping):
        return [one for value in answer.values() for one in numbers_in(value)]
    if isinstance(answer, list | tuple):
        return [one for value in answer for one in numbers_in(value)]
    if is_dataclass(answer) and not isinstance(answer, type):
        return [one for part in fields(answer) for one in numbers_in(getattr(answer, part.name))]
    return [answer.item() if isinstance(answer, np.generic) else answer]


def _changes(a: Any, b: Any) -> Iterator[float]:
    first, second = numbers_in(a), numbers_in(b)
    if len(first) != len(second):
        yield math.inf
        return
    for x, y in zip(first, second, strict=True):
        if isinstance(x, int | float | Fraction) and isinstance(y, int | float | Fraction):
            both_nan = x != x and y != y
            change = 0.0 if both_nan or x == y else abs(float(x - y)) if isinstance(x - y, float) else float(abs(x - y))
            yield math.inf if math.isnan(change) else change
        else:
            yield 0.0 if _shown(x) == _shown(y) else math.inf


def largest(a: Any, b: Any) -> float:
    """L∞."""
    return max(_changes(a, b), default=0.0)


def total(a: Any, b: Any) -> float:
    """L1."""
    return sum(_changes(a, b))


def length(a: Any, b: Any) -> float:
    """L2."""
    return math.sqrt(sum(change**2 for change in _changes(a, b)))


def reports(a: Any, b: Any) -> float:
    """How many of the reports, one for each record, are different."""
    first, second = (_listed(one) for one in (a, b))
    if len(first) != len(second):
        return math.inf
    return sum(one != other for one, other in zip(first, second, strict=True))


def _listed(answer: Any) -> list[str]:
    rows = answer.tolist() if isinstance(answer, np.ndarray) else answer
    return [_shown(row) for row in rows] if isinstance(rows, list | tuple) else [_shown(rows)]


def _shown(value: Any) -> str:
    try:
        return f"{type(value).__name__} {value!r}"
    except Exception:  # the odd record itself
        return type(value).__name__


BY_NORM: dict[str, Distance] = {"L1": total, "L2": length, "Linf": largest}


# --- which combinations are tried -----------------------------------------------------------------------------------


def quick_records(call: Call) -> Iterator[Combination]:
    """Every record in one container, in the ways and places by turns; the valid extremes first."""
    container = next(iter(call.containers))
    names = list(WORST) if call.heavy and call.odd is None else call.names
    together = len(names) if call.heavy else call.together
    for number, _ in enumerate(call.extremes):
        yield container, _whole(call), [f"extreme {number}"], PLACES[number % 3]
    for turn, way in enumerate(call.ways):
        for number in range(0, len(names), together):
            place = PLACES[(number // together + turn) % 3]
            yield container, way, names[number : number + together], place


def quick_containers(call: Call) -> Iterator[Combination]:
    """Every container with a few of the worst records, others in each."""
    ways, worst = list(call.ways), list(WORST) if call.odd is None else call.names
    for number, container in enumerate(call.containers):
        for turn in range(1 if call.heavy else 3):
            name = worst[(3 * number + turn) % len(worst)]
            yield container, ways[(number + turn) % len(ways)], [name], PLACES[(number + turn) % 3]
        for extreme, _ in enumerate(call.extremes[:1]):
            yield container, _whole(call), [f"extreme {extreme}"], "last"


def all_of_them(call: Call) -> Iterator[Combination]:
    """The whole product."""
    extremes = [f"extreme {number}" for number, _ in enumerate(call.extremes)]
    for container in call.containers:
        for place in PLACES:
            for way in call.ways:
                for name in call.names:
                    yield container, way, [name], place
            for name in extremes:
                yield container, _whole(call), [name], place


def _whole(call: Call) -> str:
    """The way in which a valid record is given as it is."""
    return "record" if "record" in call.ways else next(iter(call.ways))


def troubles(call: Call, combinations: Iterator[Combination]) -> list[str]:
    """All that goes wrong; of several records at once, which of them alone."""
    found: list[str] = []
    for container, way, names, place in combinations:
        said = call.trouble(container, way, names, place)
        if said is None:
            continue
        alone = [call.trouble(container, way, [name], place) for name in names] if len(names) > 1 else [said]
        found += [one for one in alone if one is not None] or [said]
    return found

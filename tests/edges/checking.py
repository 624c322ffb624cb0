"""How a call is tried: without the odd record and with it, and what must not change between the two."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from zlib import crc32

from discreet import testing

from .containers import CannotHold, Container, Odd
from .distances import Distance, numbers_in, reports, shape_of
from .records import HOSTILE, WORST, again

PLACES = ("first", "middle", "last")
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
    heavy: int = 0
    """Slow, or much like another: in the quick test with one record in each container; or with 2, only with the worst
    records, all at once, in the first two ways, and in every fourth container; or with 3, in the first container only.
    """
    alike: bool = False
    """Much like another call: only the slow test tries it."""
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
        with _without_complaints():
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
        if self.moved is reports and len(numbers_in(found.answer)) > self.numbers:
            return f"gives {len(numbers_in(found.answer))} numbers for these records, and {self.numbers} are theirs"
        if shape_of(found.answer) != shape_of(without.answer):
            return f"is {_short(shape_of(found.answer))}, and {_short(shape_of(without.answer))} without it"
        far = self.moved(without.answer, found.answer)
        allowed = count * self.limit * (1 + 1e-9) + 1e-9
        return None if far <= allowed else f"moves by {far:.6g}, and may by {count * self.limit:.6g}"


@contextmanager
def _without_complaints() -> Iterator[None]:
    """Libraries of containers drop errors of odd objects, and pytest would show what was dropped, with their repr."""
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = before


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


# --- which combinations are tried -----------------------------------------------------------------------------------


def quick_records(call: Call) -> Iterator[Combination]:
    """Records in one container, in the ways and places by turns; the valid extremes first.

    Each call is tried with the worst records and with every third of the others: every record with a third of the
    calls. `all_of_them` tries each with each.
    """
    container = next(iter(call.containers))
    names = list(WORST) if call.heavy > 1 and call.odd is None else call.names
    if call.odd is None and call.heavy <= 1:
        turn = crc32(call.name.encode()) % 3
        names = [name for number, name in enumerate(names) if name in WORST or number % 3 == turn]
    together = len(names) if call.heavy > 1 else call.together
    for number, _ in enumerate(call.extremes[: (9, 2, 1, 1)[call.heavy]]):
        yield container, _whole(call), [f"extreme {number}"], PLACES[number % 3]
    for turn, way in enumerate(call.ways):
        if call.heavy > 1 and turn > 3 - call.heavy:
            break
        for number in range(0, len(names), together):
            place = PLACES[(number // together + turn) % 3]
            yield container, way, names[number : number + together], place


def quick_containers(call: Call) -> Iterator[Combination]:
    """Every container with a few of the worst records, others in each."""
    ways, worst = list(call.ways), list(WORST) if call.odd is None else call.names
    for number, container in enumerate(call.containers):
        if call.heavy > 2 or (call.heavy > 1 and number % 4):
            continue
        for turn in range(1 if call.heavy else 2):
            name = worst[(2 * number + turn) % len(worst)]
            yield container, ways[(number + turn) % len(ways)], [name], PLACES[(number + turn) % 3]
        if call.extremes and not call.heavy:
            yield container, _whole(call), ["extreme 0"], "last"


def all_of_them(call: Call) -> Iterator[Combination]:
    """The whole product; of a heavy call every record in one container, and the worst in all of them."""
    places, ways = (PLACES[:1], PLACES)[not call.heavy], list(call.ways)
    worst = list(WORST) if call.heavy and call.odd is None else call.names
    for number, container in enumerate(call.containers):
        for at, place in enumerate(places):
            for turn, way in enumerate(ways):
                names = call.names if call.heavy < 3 and not number else worst
                for count, name in enumerate(names):
                    moved = PLACES[(number + turn + count) % 3] if call.heavy else place
                    yield container, way, [name], moved
            if not at:
                for extreme, _ in enumerate(call.extremes):
                    yield container, _whole(call), [f"extreme {extreme}"], PLACES[extreme % 3]


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

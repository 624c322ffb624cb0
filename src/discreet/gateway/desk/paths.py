"""Where requests go: methods and paths with arguments in them, such as /v1/questions/{receipt}."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

LONGEST_PART = 2000
"""Characters of a name or a receipt in a path."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A method and a path."""

    method: str
    path: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The path, part by part."""
        return tuple(self.path.strip("/").split("/"))

    @property
    def names(self) -> list[str]:
        """The arguments that stand in the path."""
        return [part[1:-1] for part in self.parts if part.startswith("{")]


P = TypeVar("P", bound=Place)


class Found(NamedTuple, Generic[P]):
    """The places of a path by their methods, and the arguments in the path."""

    places: Mapping[str, P]
    arguments: Mapping[str, str]


class Paths(Generic[P]):
    """Places by their path."""

    def __init__(self, places: Sequence[P]) -> None:
        self._fixed: dict[str, Found[P]] = {}
        self._open: dict[tuple[str | None, ...], dict[str, P]] = {}
        for place in places:
            if place.names:
                shape = tuple(None if part.startswith("{") else part for part in place.parts)
                self._open.setdefault(shape, {})[place.method] = place
            else:
                known = self._fixed.get(place.path)
                self._fixed[place.path] = Found({**(known.places if known else {}), place.method: place}, {})

    def find(self, path: str) -> Found[P] | None:
        """What a path leads to. None if nothing."""
        fixed = self._fixed.get(path)
        if fixed is not None or not path.startswith("/"):
            return fixed
        parts = path[1:].split("/")
        for shape, places in self._open.items():
            if len(shape) == len(parts) and all(
                0 < len(part) <= LONGEST_PART if own is None else own == part
                for own, part in zip(shape, parts, strict=True)
            ):
                [names, *_] = (place.names for place in places.values())
                values = (part for own, part in zip(shape, parts, strict=True) if own is None)
                return Found(places, dict(zip(names, values, strict=True)))
        return None

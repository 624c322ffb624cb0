"""Objects that fail whenever they are asked: what somebody may put in a list of records."""

from __future__ import annotations

from typing import Any


class Raises(float):
    """A number that fails in whatever it is asked."""

    def _fail(self, *_: Any) -> Any:
        raise RuntimeError("secret")

    __float__ = __int__ = __round__ = __eq__ = __lt__ = __gt__ = __hash__ = __repr__ = __str__ = _fail  # type: ignore[assignment]


class Hides:
    """An object that does not even tell its class."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("secret")

    def __float__(self) -> float:
        raise RuntimeError("secret")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("secret")

    def __hash__(self) -> int:
        raise RuntimeError("secret")

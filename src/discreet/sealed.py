"""True values on their way to the noise. They cannot be printed, compared, converted or pickled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

from discreet.errors import SealedValue

T = TypeVar("T")
R = TypeVar("R")


class Sealed(Generic[T]):
    """Holds a true value for the door. Only `open_with` looks inside.

    >>> Sealed(41)
    Sealed(…)
    """

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def open_with(self, use: Callable[[T], R]) -> R:
        """Pass the value to `use` and return its result."""
        return use(self._value)

    def __repr__(self) -> str:
        return "Sealed(…)"

    def _refuse(self, *_: Any) -> NoReturn:
        raise SealedValue("A sealed true value cannot be printed, compared, converted or pickled. Release it instead.")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __int__ = __float__ = __iter__ = __len__ = _refuse
    __reduce_ex__ = __copy__ = __deepcopy__ = __array__ = __format__ = __index__ = __complex__ = _refuse
    __hash__ = None  # type: ignore[assignment]

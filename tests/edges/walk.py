"""From a released object to everything that can be reached from it: does any of it lead to the rows it was made from?

`Planted` says what must not be found: the sources themselves, whatever shares their memory, and canaries, a text and a
number that one row has and nobody would write. `reached(object, planted)` lists the ways that lead to one of them.
"""

from __future__ import annotations

import gc
import io
import pickle
import struct
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import DiscreetError

TEXT = "c4n4ry-7f3a91"
NUMBER = 73.14159271828
"""Eight bytes that no noise lands on: the canary of columns of doubles."""
WHOLE = 918_273_645_546_372
_SAID = (TEXT, str(NUMBER), str(WHOLE))
_BYTES = (struct.pack("<d", NUMBER), struct.pack("<q", WHOLE), *(text.encode() for text in _SAID))
_HANDLES = {
    "PrivateTable",
    "ExplainedTable",
    "Methods",
    "Planner",
    "BoundedRows",
    "Database",
    "DuckDB",
    "Study",
    "Holdout",
    "Ladder",
    "Sample",
    "Session",
    "Sealed",
}
"""What holds data by design, and is therefore never part of what leaves."""
_FOREIGN_HANDLES = {"DuckDBPyConnection", "DuckDBPyRelation"}
_ENDS = (types.ModuleType, types.CodeType, weakref.ReferenceType, type, types.BuiltinFunctionType)


@dataclass
class Planted:
    """The sources of one release."""

    sources: list[Any] = field(default_factory=list)

    def add(self, source: Any) -> Any:
        """A source, with the containers and the memory that it is made of."""
        self.sources.append(source)
        return source

    @property
    def parts(self) -> list[Any]:
        found: list[Any] = []
        for source in self.sources:
            found.append(source)
            if isinstance(source, dict):
                found += [part for part in source.values() if isinstance(part, list | np.ndarray)]
            elif hasattr(source, "columns") and hasattr(source, "to_numpy"):
                found += [source[name].to_numpy() for name in source.columns]
        return found

    def memory(self) -> list[tuple[int, int]]:
        """Where the numbers of the sources lie."""
        return [span for part in self.parts for span in _spans(part)]


def reached(root: Any, planted: Planted) -> list[str]:
    """The ways from an object to a source, a handle, a canary, or memory of a source; empty if there is none."""
    own = {id(part) for part in planted.parts}
    spans = planted.memory()
    found: list[str] = []
    waiting: deque[tuple[str, Any]] = deque([(type(root).__name__, root)])
    seen: dict[int, Any] = {}
    while waiting:
        way, one = waiting.popleft()
        if id(one) in seen or isinstance(one, _ENDS):
            continue
        seen[id(one)] = one  # kept alive: an id is one object's only as long as it lives
        if id(one) in own:
            found.append(f"{way} is a source")
        elif why := _tells(one, spans):
            found.append(f"{way} {why}")
        else:
            waiting.extend((f"{way}{step}", inner) for step, inner in _inside(one))
    return found


def leaks(released: Any, planted: Planted) -> list[str]:
    """All ways out of a released object: what it reaches, also once it was looked at, says, and is when pickled."""
    found = reached([dict(_looked_at(released)), released], planted)  # looked at first: what is worked out is kept
    return found + [f"pickle holds {what!r}" for what in _BYTES if what in pickled(released)]


def pickled(released: Any) -> bytes:
    """What of an object can be written: all of it, or what was written before it refused."""
    written = io.BytesIO()
    try:
        pickle._Pickler(written, protocol=2).dump(released)  # type: ignore[attr-defined]  # it keeps nothing back
    except (pickle.PicklingError, AttributeError, TypeError, DiscreetError):  # a function of a function, a handle
        return written.getvalue()
    return written.getvalue()


# --- what tells of a row -------------------------------------------------------------------------------------


def _tells(one: Any, spans: list[tuple[int, int]]) -> str:
    kind = type(one)
    if kind.__module__.startswith("discreet.") and kind.__name__ in _HANDLES:
        return f"is a {kind.__name__}"
    if kind.__name__ in _FOREIGN_HANDLES:
        return f"is a {kind.__name__}"
    if isinstance(one, str):
        return "says the canary" if any(text in one for text in _SAID) else ""
    if isinstance(one, bytes | bytearray | memoryview):
        return "holds the canary" if any(what in bytes(one) for what in _BYTES) else ""
    if isinstance(one, Decimal) and one.is_snan():  # it equals nothing, and says so with an error
        return ""
    if isinstance(one, int | float | Decimal | Fraction | np.number):
        return "is the number" if one in (NUMBER, WHOLE) else ""
    if any(_overlap(span, other) for span in _spans(one) for other in spans):
        return "shares memory with a source"
    if any(what in part for part in _memory(one) for what in _BYTES):
        return "holds the canary"
    return ""


def _spans(one: Any) -> list[tuple[int, int]]:
    """Addresses of the memory that an array, or a column of Arrow, lies in."""
    if isinstance(one, np.ndarray):
        low, high = np.lib.array_utils.byte_bounds(one)
        return [(low, high)] if one.size else []
    return [(buffer.address, buffer.address + buffer.size) for buffer in _buffers(one) if buffer.size]


def _memory(one: Any) -> Iterator[bytes]:
    if isinstance(one, np.ndarray):
        if one.dtype.kind != "O":
            yield one.tobytes()
        if one.dtype.kind == "U":
            yield one.tobytes().decode("utf-32-le", "replace").encode()  # it may be made by np.empty
    for buffer in _buffers(one):
        yield buffer.to_pybytes()
    if type(one).__module__.startswith("pandas.") and hasattr(one, "to_numpy"):
        yield str(one.to_numpy().tolist()).encode()
    if type(one).__module__.startswith("polars."):  # numpy has no integers of 128 bits
        listed = getattr(one, "rows", None) or getattr(one, "to_list", None)
        yield b"" if listed is None else str(listed()).encode()


def _buffers(one: Any) -> list[Any]:
    """The buffers of an Arrow table, batch, column or array."""
    if not type(one).__module__.startswith("pyarrow"):
        return []
    if hasattr(one, "itercolumns"):
        return [buffer for column in one.itercolumns() for buffer in _buffers(column)]
    if hasattr(one, "chunks"):
        return [buffer for chunk in one.chunks for buffer in _buffers(chunk)]
    return [buffer for buffer in one.buffers() if buffer is not None] if hasattr(one, "buffers") else []


def _overlap(first: tuple[int, int], second: tuple[int, int]) -> bool:
    return first[0] < second[1] and second[0] < first[1]


# --- where it leads ------------------------------------------------------------------------------------------


def _inside(one: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, with the step that leads there. Modules, classes and globals are nobody's rows."""
    if isinstance(one, types.FunctionType):
        yield from _named(one, "__closure__", "__defaults__", "__kwdefaults__", "__dict__")
    elif isinstance(one, types.MethodType):
        yield from _named(one, "__self__", "__func__")
    elif isinstance(one, types.FrameType):
        if one.f_globals.get("__name__", "").split(".")[0] == "discreet":
            yield from ((f" local {name}", value) for name, value in one.f_locals.items())
    elif isinstance(one, types.TracebackType):
        yield from _named(one, "tb_frame", "tb_next")
    elif isinstance(one, types.GeneratorType):
        yield ".gi_frame", one.gi_frame
    elif isinstance(one, dict):
        yield from ((f"[{key!r:.40}]", value) for key, value in one.items())
        yield from ((" key", key) for key in one)
    elif isinstance(one, list | tuple | set | frozenset | deque):
        yield from ((f"[{place}]", value) for place, value in enumerate(one))
    else:
        if isinstance(one, BaseException):
            yield from _named(one, "args", "__cause__", "__context__", "__traceback__")
        if isinstance(one, np.ndarray):
            yield ".base", one.base
            if one.dtype.kind == "O":
                yield " cells", one.ravel().tolist()
        yield from ((f".{name}", value) for name, value in getattr(one, "__dict__", {}).items())
        yield from ((" holds", value) for value in gc.get_referents(one))


def _named(one: Any, *names: str) -> Iterator[tuple[str, Any]]:
    return ((f".{name}", getattr(one, name, None)) for name in names)


def _looked_at(released: Any) -> Iterable[tuple[str, Any]]:
    """What an object says of itself: its properties, which may be worked out only now, and how it is shown."""
    kind = type(released)
    if not kind.__module__.startswith("discreet."):
        return
    shown: dict[str, Callable[[], Any]] = {"repr": lambda: repr(released), "str": lambda: str(released)}
    if hasattr(kind, "_repr_html_"):
        shown["html"] = released._repr_html_
    for name in dir(kind):
        if not name.startswith("__") and not callable(getattr(kind, name, None)):
            shown[name] = lambda name=name: getattr(released, name, None)
    for name, look in shown.items():
        try:
            yield name, look()
        except Exception as failed:
            yield f"{name} failed", failed

"""What every target shares: how a broken promise is told, whose errors are ours, and how long an input may take."""

from __future__ import annotations

import re
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from hypothesis.strategies import SearchStrategy

from discreet.errors import DiscreetError

CANARY = "canary7c1e"
"""In every text of the private data, and nowhere else."""
_SOURCES = Path(__file__).resolve().parents[1]
_VARIES = re.compile(r"\n.*|\"[^\"]*\"|'[^']*'|[“`][^”`]*[”`]|\S*\d\S*|\S*/\S*", re.DOTALL)


class Target(Protocol):
    """One surface. It is opened on an empty folder, and may use no other."""

    seeds: list[Any]

    def __init__(self, folder: Path) -> None: ...

    def inputs(self) -> SearchStrategy[Any]:
        """What to try: the seeds, changed."""

    def check(self, one: Any) -> str:
        """A name for what happened, the same for what is alike; Broken when a promise is."""

    def close(self) -> None:
        """Let go of everything."""


class Broken(AssertionError):
    """A promise that an input broke. `kind` is the same for one cause, whatever the input."""

    def __init__(self, kind: str, detail: object = "") -> None:
        super().__init__(f"{kind}: {detail}" if detail != "" else kind)
        self.kind = kind


class _TooLong(BaseException):
    """Not an Exception: nothing under test may catch it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Work that must not use the processor for longer. A busy machine makes nothing late."""

    def late(number: int, frame: Any) -> None:
        raise _TooLong("".join(traceback.format_stack(frame)[-6:]))

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.5)  # again, where the first one is swallowed
    try:
        yield
    except _TooLong as where:
        raise Broken(f"more than {seconds:g} s for one input", where) from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def attempt(work: Callable[[], Any]) -> tuple[Any, DiscreetError | None]:
    """What work gives, or the error of ours that it ends with; any other exception is a broken promise."""
    try:
        return work(), None
    except DiscreetError as error:
        if not str(error).strip():
            raise Broken(f"a {type(error).__name__} without a message") from None
        for one in chained(error):
            one.__traceback__ = None  # whose frames would hold files open
        return None, error
    except Exception as error:
        raise foreign(error) from error


def foreign(error: BaseException) -> Broken:
    """An exception that is not ours, told by its type and by where it left our code."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if str(_SOURCES / "src") in frame.filename]
    where = f"{Path(frames[-1].filename).name}, {frames[-1].name}" if frames else "nowhere of ours"
    return Broken(f"{type(error).__name__} from {where}", str(error)[:300])


def chained(error: BaseException) -> Iterator[BaseException]:
    """An error and all that hang on it: who catches it can read those, too, whatever a traceback shows."""
    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [next_one for next_one in (one.__cause__, one.__context__) if next_one is not None]


def words_of(error: BaseException) -> str:
    """Everything that an error and those behind it say."""
    return "\n".join(f"{one!r} {one} {one.args!r} {vars(one)!r}" for one in chained(error))


def label(error: DiscreetError | None, otherwise: str = "answered") -> str:
    """An error without what varies: names, numbers, paths and quotations."""
    return (
        otherwise if error is None else f"{type(error).__name__} ({error.code}): {_VARIES.sub('·', str(error))[:160]}"
    )

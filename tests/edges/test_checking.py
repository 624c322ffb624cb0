"""The check itself: each way in which one record could change another's part is planted, and must be found."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.rows import columns

from .calls.mechanisms import NUMBER
from .calls.queries import MIXED, QUERIES
from .checking import Call, quick_containers, quick_records, troubles
from .containers import NUMBERS, Container
from .distances import largest, reports


def planted(run: Callable[[Any], Any], **given: Any) -> Call:
    """A call with a bug."""
    settings: dict[str, Any] = {
        "name": "planted", "covers": (), "base": MIXED, "run": run, "moved": largest, "most": 1,
        "containers": NUMBERS, "extremes": (1.0,),
    }  # fmt: skip
    return Call(**(settings | given))


def found(call: Call) -> str:
    """All that the quick test finds."""
    return "\n".join([*troubles(call, quick_records(call)), *troubles(call, quick_containers(call))])


def numbers(rows: Any) -> list[float]:
    """Rows as a sound call reads them: each by itself, whatever it is."""
    return columns.doubles(rows).tolist()


def test_a_sound_call_has_no_trouble() -> None:
    assert found(planted(lambda rows: sum(not math.isnan(one) for one in numbers(rows)))) == ""


BUGS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "one type for all rows": (
        lambda rows: int(np.count_nonzero(np.asarray(rows, dtype=None).astype(str) == "17")),
        "raises ValueError",
    ),
    "doubles for all rows": (lambda rows: int(2**53 + 1 in np.asarray(list(rows)).tolist()) * 9, "moves by 9"),
    "all rows flattened": (lambda rows: np.asarray(rows, dtype=object).size, "moves by 3, and may by 1"),
    "an error of its own": (lambda rows: sum(float(row) > 4 for row in rows), "raises TypeError"),
    "an error that is the package's": (
        lambda rows: _refusing(rows),
        "raises InvalidArgument: Numbers are needed., and None without it",
    ),
    "a warning": (lambda rows: _warning(rows), "warns UserWarning: A row has no number."),
    "the type of the answer": (lambda rows: 5 if all(map(math.isfinite, numbers(rows))) else 5.0, "is float, and int"),
    "the keys of the answer": (
        lambda rows: dict.fromkeys("ab" if all(map(math.isfinite, numbers(rows))) else "ba", 0),
        "is ('dict', (\"str 'b'\"",
    ),
    "the shape of the answer": (
        lambda rows: np.zeros(1 + any(map(math.isnan, numbers(rows)))),
        "is ('array', '<f8', (2,)), and ('array', '<f8', (1,)) without it",
    ),
}


def _refusing(rows: Any) -> int:
    if any(isinstance(row, str) for row in rows):
        raise dp.InvalidArgument("Numbers are needed.")
    return 0


def _warning(rows: Any) -> int:
    if any(map(math.isnan, numbers(rows))):
        warnings.warn("A row has no number.", stacklevel=1)
    return 0


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    run, said = BUGS[bug]
    assert said in found(planted(run))


def test_a_record_that_is_told_twice_is_found() -> None:
    def told(rows: Any) -> list[float]:
        return np.nan_to_num(np.asarray(rows, dtype=object).reshape(-1) != 0).tolist()

    few: dict[str, Container] = {name: NUMBERS[name] for name in ("list", "objects, three columns")}
    call = planted(told, moved=reports, replaced=True, containers=few, extremes=())
    assert "numbers for these records, and 12 are theirs" in found(call)


def test_a_record_that_changes_another_report_is_found() -> None:
    def told(rows: Any) -> list[float]:
        known = numbers(rows)
        return [one if math.isnan(sum(known)) else 0.0 for one in known]

    assert "moves by" in found(planted(told, moved=reports, replaced=True))


READINGS: dict[str, Callable[[Any], Any]] = {
    "one type for all": np.asarray,
    "a cell that raises": lambda rows: [float(row) for row in rows],
    "rows that are flattened": np.ravel,
}


@pytest.mark.parametrize("bug", READINGS)
def test_a_bug_where_a_query_reads_its_rows_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sound, read = dp.Sum.__call__, READINGS[bug]
    monkeypatch.setattr(dp.Sum, "__call__", lambda self, data: sound(self, read(data)))
    totals = next(call for call in QUERIES if call.name == "Sum, added")
    assert found(planted(totals.run, most=totals.most, extremes=totals.extremes))


def test_the_noise_is_left_aside() -> None:
    call = planted(lambda rows: dp.release(rows, NUMBER).value, moved=reports, replaced=True)
    assert call.seen("list", MIXED).answer.tolist() == call.seen("list", MIXED).answer.tolist()

"""A new public call that takes data must be tried with odd records: it joins the registry, or says why it need not."""

from __future__ import annotations

from typing import Any

import pytest

import discreet

from . import surface
from .registry import CALLS, NO_DATA

COVERED = {name for call in CALLS for name in call.covers}


def left_out(taking: dict[str, list[str]]) -> list[str]:
    """The calls that may take data and are neither tried nor said to take none."""
    return [
        f"{name}({', '.join(given)})"
        for name, given in taking.items()
        if name not in COVERED and not surface.matches(name, NO_DATA)
    ]


def test_every_public_call_that_takes_data_is_tried() -> None:
    missing = left_out(surface.may_take_data())
    assert not missing, (
        "These public calls may take data. Add a Call to tests/edges/calls/ that tries odd records in each, or a "
        "line to NO_DATA in tests/edges/registry.py with the reason why it takes none:\n" + "\n".join(missing)
    )


def test_a_new_call_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def mode(records: Any, *, epsilon: float) -> Any:
        """The most common record."""

    class Median:
        """A query."""

        def __call__(self, data: Any) -> Any:
            return data

        def told(self, epsilon: float) -> float:
            return epsilon

    for value in (mode, Median, Median.__call__, Median.told):
        monkeypatch.setattr(value, "__module__", "discreet.new", raising=False) if value is not Median else None
    monkeypatch.setattr(discreet, "mode", mode, raising=False)
    monkeypatch.setattr(discreet, "Median", Median, raising=False)
    monkeypatch.setattr(discreet, "__all__", [*discreet.__all__, "mode", "Median"])
    assert {"Median.__call__(data)", "mode(records)"} <= set(left_out(surface.may_take_data()))
    assert not [name for name in left_out(surface.may_take_data()) if name.startswith("Median.told")]


def test_a_new_mechanism_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mode:
        """A mechanism that takes rows."""

        def _draw(self, value: Any) -> Any:
            return value

    monkeypatch.setattr(discreet, "Mode", Mode, raising=False)
    monkeypatch.setattr(discreet, "__all__", [*discreet.__all__, "Mode"])
    assert "release(Mode)(value)" in left_out(surface.may_take_data())


def test_no_line_of_the_list_is_stale() -> None:
    taking = surface.may_take_data()
    unused = [line for line in NO_DATA if not any(surface.matches(name, [line]) for name in taking)]
    assert not unused, f"These lines of NO_DATA fit no public call: {unused}"
    assert all(len(reason.split()) >= 5 for reason in NO_DATA.values())


def test_nothing_is_both_tried_and_said_to_take_none() -> None:
    """A line with a star may be of a kind of calls, of which some are tried anyway."""
    assert not COVERED & set(NO_DATA)


def test_what_is_tried_gives_an_answer_without_the_odd_record() -> None:
    """Otherwise the same error with and without it would show nothing."""
    found = {call.name: call.without(next(iter(call.containers))).error for call in CALLS}
    assert not {name: error for name, error in found.items() if error is not None}


def test_odd_records_that_are_tried_together_leave_most_of_the_others() -> None:
    assert not [call.name for call in CALLS if call.together > len(call.base) / 2]

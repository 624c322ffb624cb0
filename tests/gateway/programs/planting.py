"""Seeded bugs of the gateway's books: a changed copy of a function or a class in place of the right one."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from discreet.gateway.books import offices

from ..clinics import Clinic


class Bug(NamedTuple):
    """A piece of source, what it is replaced by, and the check that must notice."""

    module: ModuleType
    name: str
    old: str
    new: str
    check: Callable[[Clinic], None]


def plant(monkeypatch: pytest.MonkeyPatch, bug: Bug, modules: Sequence[ModuleType]) -> None:
    """Put a changed copy in place of the right one, wherever one of these modules imported it."""
    right = getattr(bug.module, bug.name)
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(right)))
    assert source.count(bug.old) == 1, "the source has changed: plant the bug again"
    wrong: dict[str, Any] = {}
    registered = dict(offices.VERBS)
    exec(compile(source.replace(bug.old, bug.new), "planted", "exec"), vars(bug.module), wrong)
    offices.VERBS.update(registered)  # a verb registers itself
    for module in modules:
        for name, value in list(vars(module).items()):
            if value is right:
                monkeypatch.setattr(module, name, wrong[bug.name])
    for verb, value in registered.items():
        if value is right:
            monkeypatch.setitem(offices.VERBS, verb, wrong[bug.name])

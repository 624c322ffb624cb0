"""A plugin of pytest that records which test meets which refusal, for `page.py`:

    python -m pytest -p tests.refusals.record --refusals FOLDER

Every error of ours notes the places it was built at; what `pytest.raises` caught counts as shown, the rest as met.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from _pytest.raises import RaisesExc

from discreet.errors import DiscreetError

from .sites import SOURCE, Site, sites

ERRORS = str(SOURCE / "errors.py")
ABOVE = 6
"""So many callers are looked through for the one that gave the words."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refusals", metavar="FOLDER", help="record here which test meets which refusal")


def pytest_configure(config: pytest.Config) -> None:
    if folder := config.getoption("--refusals"):
        config.pluginmanager.register(Record(Path(folder)))


class Record:
    """What was met in this process: by site and test, whether `pytest.raises` caught it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.places = Places(sites())
        self.met: dict[str, dict[str, bool]] = {}
        self.test = ""
        self.built: weakref.WeakKeyDictionary[BaseException, str] = weakref.WeakKeyDictionary()
        self._patch()

    def _patch(self) -> None:
        record = self
        caught = RaisesExc.__exit__

        def build(error: DiscreetError, *args: Any, **named: Any) -> None:
            super(DiscreetError, error).__init__(*args, **named)
            frame = sys._getframe(1)
            key = record.places.of_frame(frame) or record.places.unseen(frame)
            if record.test and key:
                record.built[error] = key
                record.met.setdefault(key, {}).setdefault(record.test, False)

        def leave(context: Any, kind: Any, error: Any, trace: Any) -> Any:
            expected = caught(context, kind, error, trace)
            key = record.built.get(error) if isinstance(error, DiscreetError) else None
            if expected and record.test and key:
                record.met.setdefault(key, {})[record.test] = True
            return expected

        DiscreetError.__init__ = build  # type: ignore[method-assign]
        RaisesExc.__exit__ = leave  # type: ignore[method-assign]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.test = item.nodeid if isinstance(item, pytest.Function) else ""
        try:
            return (yield)
        finally:
            self.test = ""

    def pytest_sessionfinish(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{os.getpid()}.json").write_text(json.dumps(self.met), "utf-8")


class Places:
    """Finds the site that a frame stands at."""

    def __init__(self, known: list[Site]) -> None:
        self.sites: dict[str, list[Site]] = {}
        for site in known:
            path = str(SOURCE.joinpath(*site.module.split(".")).with_suffix(".py"))
            self.sites.setdefault(path, []).append(site)

    def of_frame(self, frame: FrameType | None) -> str:
        """The site that an error is built at, or the nearest caller that is one."""
        for _ in range(ABOVE):
            if frame is None:
                break
            if found := self._at(frame):
                return found
            frame = frame.f_back
        return ""

    def unseen(self, frame: FrameType | None) -> str:
        """The line of the source that builds an error and is no site, after a question mark."""
        while frame is not None and frame.f_code.co_filename == ERRORS:
            frame = frame.f_back
        if frame is None or not frame.f_code.co_filename.startswith(str(SOURCE)):
            return ""
        return f"?{Path(frame.f_code.co_filename).relative_to(SOURCE).as_posix()}:{frame.f_lineno}"

    def _at(self, frame: FrameType) -> str:
        line = frame.f_lineno
        here = self.sites.get(frame.f_code.co_filename, ())
        found = [site for site in here if site.lines[0] <= line <= site.lines[1]]
        if len(found) > 1:  # the one that is called, or else the innermost
            _, _, column, _ = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
            found = [site for site in found if site.column == column] or found
        return min(found, key=lambda site: site.lines[1] - site.lines[0]).key if found else ""

"""What commands refuse when a file cannot be written or a service does not answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from discreet.cli import query, sanitize, study
from discreet.cli.shuffle import close, init, report
from discreet.errors import DiscreetError, InvalidArgument, NotAllowed, ServiceUnavailable

from ..refusing import refuses

NOWHERE = Path("no") / "such" / "folder" / "out.csv"


def refused(asked: Callable[[], Any], code: str, kind: type[DiscreetError] = InvalidArgument) -> None:
    with refuses(kind, code):
        asked()


def full(*_: Any, **__: Any) -> None:
    """What a disk does that is full."""
    raise OSError(28, "No space left on device")


def test_a_picture_or_a_copy_that_finds_no_room() -> None:
    answer = SimpleNamespace(plot=lambda confidence, style: SimpleNamespace(savefig=full))
    refused(lambda: query._draw(answer, 0.95, NOWHERE, "light"), "file-not-writable")
    refused(lambda: study._draw(SimpleNamespace(plot=full), NOWHERE), "file-not-writable")
    refused(lambda: sanitize._write(pa.table({}), NOWHERE, force=False), "file-not-writable")


def test_a_copy_of_a_table_elsewhere() -> None:
    copy, table = SimpleNamespace(columns=[], mechanism=None), SimpleNamespace(name="visits")
    elsewhere = SimpleNamespace(engine=object(), ledger=None)
    refused(lambda: sanitize.release_columns(elsewhere, table, copy), "sanitize-engine", NotAllowed)


def test_a_task_that_is_there_already(tmp_path: Path) -> None:
    (tmp_path / "poll.toml").touch()
    terms: dict[str, Any] = {"clients": 1000, "epsilon": 1.0, "delta": 1e-6, "minimum": None, "honest": 1}
    services = {"shuffler": "http://localhost:1", "analyzer": "http://localhost:2"}
    refused(
        lambda: init.write_task(tmp_path / "poll.toml", bit=True, **services, **terms),
        "file-exists",
    )


def test_an_answer_that_is_neither_yes_nor_no() -> None:
    yes_or_no = SimpleNamespace(protocol=object())
    refused(lambda: report._answer(yes_or_no, "perhaps"), "unknown-answer")


def test_a_service_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    httpx = pytest.importorskip("httpx", reason='needs pip install "discreet[shuffle]"')
    ask = lambda: close._request("GET", "http://localhost:1", "analyzer")  # noqa: E731
    answers = {
        400: ("shuffle-wrong-keys", InvalidArgument),
        500: ("service-unavailable", ServiceUnavailable),
    }
    for status, (code, kind) in answers.items():
        monkeypatch.setattr(httpx, "request", lambda *_, status=status, **__: httpx.Response(status))
        refused(ask, code, kind)

    def gone(*_: Any, **__: Any) -> None:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(httpx, "request", gone)
    refused(ask, "service-unavailable", ServiceUnavailable)

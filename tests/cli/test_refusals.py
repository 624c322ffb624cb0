"""What commands refuse when a file cannot be written or a service does not answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from discreet.cli import query_command, sanitize_command, shuffle_command, study_command
from discreet.errors import DiscreetError, InvalidArgument, NotAllowed, ServiceUnavailable

NOWHERE = Path("no") / "such" / "folder" / "out.csv"


def refused(asked: Callable[[], Any], said: str, kind: type[DiscreetError] = InvalidArgument) -> None:
    with pytest.raises(kind, match=re.escape(said)):
        asked()


def full(*_: Any, **__: Any) -> None:
    """What a disk does that is full."""
    raise OSError(28, "No space left on device")


def test_a_picture_or_a_copy_that_finds_no_room() -> None:
    answer = SimpleNamespace(plot=lambda confidence: SimpleNamespace(savefig=full))
    refused(lambda: query_command._draw(answer, 0.95, NOWHERE), "No space left on device. Name another: it is free")
    refused(lambda: study_command._draw(SimpleNamespace(plot=full), NOWHERE), "Name another with --chart")
    refused(lambda: sanitize_command._write(pa.table({}), NOWHERE, force=False), "It is charged: name another file")


def test_a_copy_of_a_table_elsewhere() -> None:
    copy, table = SimpleNamespace(columns=[], mechanism=None), SimpleNamespace(name="visits")
    elsewhere = SimpleNamespace(engine=object(), ledger=None)
    refused(lambda: sanitize_command.released(elsewhere, table, copy), "Export the table to Parquet", NotAllowed)


def test_a_task_that_is_there_already(tmp_path: Path) -> None:
    (tmp_path / "poll.toml").touch()
    terms: dict[str, Any] = {"clients": 1000, "epsilon": 1.0, "delta": 1e-6, "minimum": None, "honest": 1}
    services = {"shuffler": "http://localhost:1", "analyzer": "http://localhost:2"}
    refused(
        lambda: shuffle_command.init(tmp_path / "poll.toml", bit=True, **services, **terms),
        "poll.toml exists. A new task needs new keys",
    )


def test_an_answer_that_is_neither_yes_nor_no() -> None:
    yes_or_no = SimpleNamespace(protocol=object())
    refused(lambda: shuffle_command._answer(yes_or_no, "perhaps"), "This poll takes yes or no, or 1 or 0")


def test_a_service_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    httpx = pytest.importorskip("httpx", reason='needs pip install "discreet[shuffle]"')
    ask = lambda: shuffle_command._asked("GET", "http://localhost:1", "analyzer")  # noqa: E731
    answers = {
        400: ("The analyzer does not accept the keys beside the task file", InvalidArgument),
        500: ("The analyzer failed. Look at what it printed", ServiceUnavailable),
    }
    for status, (said, kind) in answers.items():
        monkeypatch.setattr(httpx, "request", lambda *_, status=status, **__: httpx.Response(status))
        refused(ask, said, kind)

    def gone(*_: Any, **__: Any) -> None:
        raise httpx.ConnectError("refused")

    monkeypatch.setattr(httpx, "request", gone)
    refused(ask, "does not answer. Start it: discreet shuffle analyzer", ServiceUnavailable)

"""What the encrypted channel refuses: files, keys, tokens, places and batches that are not of the task."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import DiscreetError, InvalidArgument, LedgerUnavailable, NotAllowed, ServiceUnavailable
from discreet.shuffle.channel import client as clients
from discreet.shuffle.channel import keys, spark_job, wire
from discreet.shuffle.channel.analyzer import Analyzer, check
from discreet.shuffle.channel.client import Client
from discreet.shuffle.channel.results import AnalyzerStore
from discreet.shuffle.channel.services.service import Listening, serve
from discreet.shuffle.channel.shuffler import Shuffler
from discreet.shuffle.channel.store import ShufflerStore
from discreet.shuffle.channel.task import Task
from discreet.shuffle.fakes import Fakes

from ...refusing import refuses

httpx = pytest.importorskip("httpx", reason='the channel needs pip install "discreet[shuffle]"')
SHUFFLER, ANALYZER = keys.ShufflerKeys.made(), keys.AnalyzerKeys.made()
POLL = Fakes(clients=10_000, minimum=10, honest=0.8, choices=("a", "b", "c"), fakes=0.99)
TASK = Task(
    description=POLL.described(),
    epsilon=8.0,
    delta=0.05,
    shuffler_key=keys.public_of(SHUFFLER.outer),
    analyzer_key=keys.public_of(ANALYZER.inner),
)
TOKEN = keys.token_for(SHUFFLER.registration, TASK.hash)


def refused(asked: Callable[[], Any], code: str, kind: type[DiscreetError] = InvalidArgument) -> None:
    with refuses(kind, code):
        asked()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    TASK.save(tmp_path / "poll.toml")
    return tmp_path / "poll.toml"


@pytest.fixture
def ledger() -> dp.Ledger:
    limit = dp.Approx(epsilon=100, delta=0.1)
    return dp.Ledger.open(":memory:", protects=dp.row(neighbors="replace"), limit=limit)


# --- the task and its keys --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('format = "', "format = ", "shuffle-task-unreadable"),
        ('format = "', 'format = "old ', "shuffle-task-unreadable"),
        ("[keys]", "[locks]", "shuffle-task-unreadable"),
        ('shuffler = "', 'shuffler = "zz', "shuffle-task-unreadable"),
        ("epsilon = 8.0", 'epsilon = "8"', "shuffle-task-unreadable"),
        ("epsilon = 8.0", "epsilon = 1.0", "shuffle-promise-not-kept"),
        ("[protocol]", "[protocol]\nsize = 3", "shuffle-task-unreadable"),
        ('kind = "', "honest_ = 1\nkind = 3 # ", "not-an-option"),
    ],
)
def test_a_task_file_that_was_changed(file: Path, old: str, new: str, code: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), "utf-8")
    refused(lambda: Task.load(file), code)


def test_files_that_are_there_or_cannot_be(file: Path) -> None:
    refused(lambda: TASK.save(file), "file-exists")
    refused(lambda: TASK.save(file / "poll.toml"), "file-not-writable")
    refused(lambda: Task.load(file.with_name("other.toml")), "file-not-found")
    refused(lambda: replace(TASK, description={"kind": None}).save(file.with_name("x")), "wrong-type")
    refused(lambda: SHUFFLER.save(file / "key"), "file-not-writable")
    refused(lambda: keys.ShufflerKeys.load(file.with_name("key")), "file-not-readable")
    file.chmod(0o600)
    refused(lambda: keys.ShufflerKeys.load(file), "shuffle-wrong-keys")
    file.chmod(0o644)
    refused(lambda: keys.ShufflerKeys.load(file), "shuffle-keys-exposed")


def test_a_protocol_of_another_version(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(task: Task) -> None:
        raise KeyError("fakes")

    monkeypatch.setattr(Task, "check", unknown)
    refused(lambda: Task.load(file), "shuffle-task-unreadable")


# --- both services ----------------------------------------------------------------------------------------


def test_keys_and_places_of_another_task(tmp_path: Path, ledger: dp.Ledger) -> None:
    reports, results = str(tmp_path / "reports.db"), str(tmp_path / "results.db")
    store, received = ShufflerStore(reports, TASK.hash), AnalyzerStore(results, TASK.hash)
    refused(lambda: ShufflerStore(reports, b"other"), "shuffle-other-task")
    refused(lambda: AnalyzerStore(results, b"other"), "shuffle-other-task")
    refused(lambda: ShufflerStore(str(tmp_path / "no" / "x.db"), TASK.hash), "no-such-folder")
    refused(lambda: Shuffler(TASK, keys.ShufflerKeys.made(), store), "shuffle-wrong-keys")
    refused(lambda: check(TASK, keys.AnalyzerKeys.made(), ledger), "shuffle-wrong-keys")
    gone, lost = replace(SHUFFLER, outer=b""), replace(ANALYZER, inner=b"")
    refused(lambda: Shuffler(TASK, gone, store), "shuffle-keys-deleted", DiscreetError)
    refused(lambda: Analyzer(TASK, lost, received, ledger), "shuffle-keys-deleted", DiscreetError)


def test_a_database_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "reports.db"
    file.write_bytes(b"this is no database, and it is long enough to be looked at" * 99)
    refused(lambda: ShufflerStore(str(file), TASK.hash), "ledger-unavailable", LedgerUnavailable)


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused(lambda: serve(None, Listening(port=port), "shuffler"), "port-unavailable")


def test_a_service_that_cannot_start(capsys: pytest.CaptureFixture[str]) -> None:
    async def failing(scope: Any, receive: Any, send: Any) -> None:
        raise OSError("the disk is full")

    refused(lambda: serve(failing, Listening(), "shuffler"), "service-unavailable", ServiceUnavailable)
    assert "http" not in capsys.readouterr().out  # the address is printed by what answers


def test_a_batch_that_the_analyzer_does_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shuffler = Shuffler(TASK, SHUFFLER, ShufflerStore(str(tmp_path / "reports.db"), TASK.hash))
    sealed = type("Sealed", (tuple,), {"reports": 10})((10, b"digest", b""))
    monkeypatch.setattr(shuffler.store, "batch", lambda: ("sealed", sealed))
    deliver = lambda: shuffler.deliver(lambda packed: "another batch", lambda: "waiting")  # noqa: E731
    refused(deliver, "shuffle-not-accepted", DiscreetError)


# --- a client ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "shuffle-not-accepted", InvalidArgument),
        (409, "shuffle-reported-already", NotAllowed),
        (410, "shuffle-closed", NotAllowed),
        (503, "service-unavailable", ServiceUnavailable),
    ],
)
def test_what_the_shuffler_answers(
    monkeypatch: pytest.MonkeyPatch, status: int, code: str, kind: type[DiscreetError]
) -> None:
    monkeypatch.setattr(httpx, "post", lambda *_, **__: httpx.Response(status))
    monkeypatch.setattr(clients.time, "sleep", lambda seconds: None)
    refused(lambda: Client(TASK, TOKEN).send(b""), code, kind)


def test_what_a_client_cannot_send() -> None:
    refused(lambda: Client(TASK, b"short"), "shuffle-not-accepted")
    nowhere = replace(TASK, shuffler="http://shuffler:port")
    refused(lambda: Client(nowhere, TOKEN).send(b""), "shuffle-task-unreadable")


# --- the analyzer as a job --------------------------------------------------------------------------------


def test_a_batch_in_parquet_that_is_not_whole(tmp_path: Path) -> None:
    batch = tmp_path / "batch.parquet"
    refused(lambda: spark_job.write(b"cut", TASK, batch), "shuffle-batch-damaged")
    batch.write_bytes(b"no parquet")
    refused(lambda: spark_job._verify(TASK, batch), "shuffle-batch-damaged")
    batch.unlink()
    packed = wire.pack_batch(wire.Batch(TASK.hash, 0, wire.digest(TASK.hash, 0, b""), b""))
    spark_job.write(packed, TASK, batch)
    other = replace(TASK, epsilon=9.0)
    refused(lambda: spark_job._verify(other, batch), "shuffle-batch-damaged")


@pytest.mark.parametrize(("reports", "messages"), [(-1, [b""]), (2**64, [b""]), (1, [None]), (1, [7])])
def test_a_batch_in_parquet_that_somebody_else_wrote(reports: int, messages: list[Any], tmp_path: Path) -> None:
    facts = {"discreet.reports": str(reports).encode().hex(), "discreet.task": TASK.hash.hex()}
    batch = tmp_path / "batch.parquet"
    pq.write_table(pa.table({"message": messages}).replace_schema_metadata(facts), batch)
    refused(lambda: spark_job._verify(TASK, batch), "shuffle-batch-damaged")


def test_a_job_with_too_few_reports(tmp_path: Path, ledger: dp.Ledger) -> None:
    pytest.importorskip("pyspark", reason='needs pip install "discreet[spark]"')
    batch = tmp_path / "batch.parquet"
    spark_job.write(wire.pack_batch(wire.Batch(TASK.hash, 0, wire.digest(TASK.hash, 0, b""), b"")), TASK, batch)
    few = lambda: spark_job.analyze(None, TASK, ANALYZER, batch, ledger)  # noqa: E731
    refused(few, "too-few-reports", NotAllowed)

"""The analyzer as a Spark job says what the service says, and refuses what it refuses."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.cli.shuffle.options import files_of
from discreet.errors import InvalidArgument, NotAllowed
from discreet.shuffle.channel import keys, wire

from ...refusing import refuses
from .polls import Poll, counts, make_poll

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture(scope="module")
def spark(java: None) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # where this package is
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = (
        SparkSession.builder.master("local[2]").appName("channel").config("spark.ui.enabled", "false").getOrCreate()
    )
    yield session
    session.stop()


def sealed(poll: Poll, reports: int) -> bytes:
    shuffler = poll.shuffler()
    shuffler.accept([poll.exact(number, number % 3) for number in range(reports)])
    shuffler.seal()
    return wire.pack_batch(wire.Batch(poll.task.hash, *shuffler.store.batch()[1]))


@pytest.mark.filterwarnings("default")
def test_a_batch_in_parquet(spark: Any, tmp_path: Path) -> None:
    from discreet.shuffle.channel import spark_job

    poll, path = make_poll(tmp_path), tmp_path / "batch.parquet"
    secrets = keys.AnalyzerKeys.load(files_of(poll.path).analyzer_key)
    spark_job.write(sealed(poll, 50), poll.task, path)
    result = spark_job.analyze(spark, poll.task, secrets, path, poll.ledger())
    assert counts(result) == [17, 17, 16]
    assert result["reports"] == 50
    assert spark_job.analyze(spark, poll.task, secrets, path, poll.ledger()) == result
    assert poll.ledger().count == 1


@pytest.mark.filterwarnings("default")
def test_what_is_not_the_batch_is_refused(spark: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from discreet.shuffle.channel import spark_job

    poll, path = make_poll(tmp_path), tmp_path / "batch.parquet"
    secrets, batch = keys.AnalyzerKeys.load(files_of(poll.path).analyzer_key), sealed(poll, 20)
    with refuses(InvalidArgument, "shuffle-batch-damaged"):
        spark_job.write(batch[:-1], poll.task, path)
    spark_job.write(batch, poll.task, path)
    table = pq.read_table(path)
    for other in (table.slice(2), table.take([1, 0, *range(2, len(table))]), table.replace_schema_metadata({})):
        pq.write_table(other, path)
        with refuses(InvalidArgument, "shuffle-batch-damaged"):
            spark_job.analyze(spark, poll.task, secrets, path, poll.ledger())
    small = poll.task.hash, 5, bytes(5 * 2 * poll.task.shape.message)
    spark_job.write(wire.pack_batch(wire.Batch(*small[:2], wire.digest(*small), small[2])), poll.task, path)
    with refuses(NotAllowed, "too-few-reports"):
        spark_job.analyze(spark, poll.task, secrets, path, poll.ledger())
    assert poll.ledger().count == 0

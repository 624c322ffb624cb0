"""The analyzer as a Spark job: one sealed batch in Parquet, opened by all executors, counted, published.

`write` stores a batch as Parquet as the shuffler packed it. `analyze` verifies its digest, charges the ledger, and only
then lets Spark read it. Executors need this package and receive the private key of the messages: they are part of the
analyzer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument, NotAllowed
from discreet.extras import need
from discreet.ledger import Ledger
from discreet.shuffle.channel import keys, wire
from discreet.shuffle.channel.analyzer import check, release_result, result_of
from discreet.shuffle.channel.task import Task

_ROWS = 65_536
_EACH = 10_000
"""Reports of one Spark task, which takes some seconds."""


def write(packed: bytes, task: Task, path: Path) -> None:
    """A packed batch as Parquet: a column of sealed messages, with its number of reports and digest as metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        batch = wire.unpack_batch(packed, task.shape)
    except wire.Malformed:
        raise InvalidArgument(
            "This is not a complete batch of the task. Fetch it again from the shuffler.", code="shuffle-batch-damaged"
        ) from None
    width = task.shape.message
    facts = {b"task": batch.task, b"reports": str(batch.reports).encode(), b"digest": batch.digest}
    named = {b"discreet." + name: value.hex().encode() for name, value in facts.items()}
    column = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), len(batch.blob) // width, [None, pa.py_buffer(batch.blob)]
    )
    schema = pa.schema([pa.field("message", pa.binary(width), nullable=False)], metadata=named)
    pq.write_table(pa.Table.from_arrays([column], schema=schema), path, row_group_size=_ROWS, compression="none")


def analyze(spark: Any, task: Task, secrets: keys.AnalyzerKeys, path: Path, ledger: Ledger) -> dict[str, Any]:
    """The published result of a batch in Parquet.

    Promise: the digest is verified and the ledger charged, once for the task, before a message is opened; a batch below
    the minimum is refused, and so is, once it is charged and opened, one in which too few reports can be read. Delete
    the key afterwards with `keys.forget`.
    """
    need("pyspark", "spark", "The analyzer as a Spark job")
    check(task, secrets, ledger)
    reports = _verify(task, path)
    if reports < task.protocol.minimum:
        raise NotAllowed(
            f"Only {reports} of the {task.protocol.minimum} required reports have arrived, so nothing is released. "
            "Collect more.",
            code="too-few-reports",
        )
    release = release_result(task, ledger, reports, lambda: _messages(spark, task, secrets.inner, path, reports))
    return result_of(release)


def _verify(task: Task, path: Path) -> int:
    """The number of reports, after checking the digest of the content. It streams, whatever the size of the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        facts = {
            name: bytes.fromhex(value.decode())
            for name, value in (file.schema_arrow.metadata or {}).items()
            if name.startswith(b"discreet.")
        }
        reports = int(facts[b"discreet.reports"])
        digest = wire.start_digest(task.hash, reports)
        rows = 0
        for part in file.iter_batches(_ROWS, columns=["message"]):
            digest.update(b"".join(part.column(0).to_pylist()))
            rows += part.num_rows
    except (OSError, KeyError, OverflowError, TypeError, ValueError, pa.ArrowException):
        raise InvalidArgument(
            f"{path} is not a sealed batch in Parquet. Write it again.", code="shuffle-batch-damaged"
        ) from None
    whole = digest.digest() == facts.get(b"discreet.digest") and facts.get(b"discreet.task") == task.hash
    if not whole or rows != reports * task.shape.messages:
        raise InvalidArgument(
            f"{path} is not the batch that was sealed for this task: its digest differs. Write it again.",
            code="shuffle-batch-damaged",
        )
    return reports


def _messages(spark: Any, task: Task, private: bytes, path: Path, reports: int) -> NDArray[np.int64]:
    """All messages of the domain, rebuilt from the executors' counts. Their order does not matter."""
    protocol, info = task.protocol, wire.inner(task.hash)

    def count(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            opened = (keys.open_seal(one, private, info) for one in batch.column(0).to_pylist())
            found = protocol.unpacked(b"".join(one for one in opened if one is not None))
            values, times = np.unique(found[found >= 0], return_counts=True)
            yield pa.RecordBatch.from_arrays([pa.array(values), pa.array(times)], names=["message", "times"])

    sealed = spark.read.parquet(str(path)).distinct().repartition(1 + reports // _EACH)  # a copy counts once
    counted = sealed.mapInArrow(count, "message long, times long").groupBy("message").sum("times").collect()
    values, times = ([int(row[place]) for row in counted] for place in (0, 1))
    return np.repeat(np.array(values, dtype=np.int64), times)

"""A standalone cluster of Spark on loopback: one master, two workers, each a process that can be killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark

_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_SUBMIT = _CLASS.with_name("spark-submit")
_PATIENCE_S = 120


class Cluster:
    """Started with the object; every process of it ends with `close`."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        master = ("org.apache.spark.deploy.master.Master", "--port", "0", "--webui-port", "0")
        self.processes = [self._started("master", *master)]
        self.url = self._said("master", r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            name = f"worker{number}"
            options = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder / name))
            self.processes.append(self._started(name, "org.apache.spark.deploy.worker.Worker", *options, self.url))
        for number in range(workers):
            self._said(f"worker{number}", r"(Successfully registered with master)")

    def _started(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        settings = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_MASTER_HOST": "127.0.0.1"}
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [str(_CLASS), *words, "--host", "127.0.0.1"] if "Master" in words[0] else [str(_CLASS), *words],
                stdout=log,
                stderr=log,
                env=settings,
                start_new_session=True,
            )

    def _said(self, name: str, pattern: str) -> str:
        """What a process wrote into its log, as soon as it has."""
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            found = re.search(pattern, (self.folder / f"{name}.log").read_text())
            if found:
                return found[1]
            time.sleep(0.2)
        raise RuntimeError(f"{name} did not start: {(self.folder / f'{name}.log').read_text()[-2000:]}")

    @property
    def workers(self) -> list[int]:
        """The processes of the workers; each leads a group of its own, executors included."""
        return [process.pid for process in self.processes[1:]]

    def close(self) -> None:
        for process in self.processes:
            killed(process.pid)
            process.wait()


@contextlib.contextmanager
def connect_server(folder: Path, port: int) -> Iterator[None]:
    """A server of Spark Connect on this port."""
    words = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"]
    told = {"spark.connect.grpc.binding.port": port, "spark.connect.grpc.binding.address": "127.0.0.1"}
    for key, value in (told | {"spark.ui.enabled": "false"}).items():
        words += ["--conf", f"{key}={value}"]
    log = (folder / "connect.log").open("wb")
    command = [str(_SUBMIT), *words, "spark-internal"]
    process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.2)
        yield
    finally:
        killed(process.pid)
        process.wait()
        log.close()


def killed(leader: int) -> None:
    """Kill a process and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)

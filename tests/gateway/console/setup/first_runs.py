"""`discreet serve --new` in a process of its own, for tests."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet

from ...served import COMMAND, ENVIRONMENT


class FirstRun:
    """A first run, and what it printed."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        with open(folder / "errors", "ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, *COMMAND, "serve", *words, "--not-isolated"],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=ENVIRONMENT,
                cwd=folder,
            )
        assert self.process.stdout is not None
        assert self._line() == "ready", self.errors
        self.url, self.link = (self._line().split()[1] for _ in range(2))

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def wait_until_served(self) -> None:
        """Wait until the gateway itself runs, and the set-up has gone."""
        assert self._line().startswith("serving"), self.errors
        for _ in range(300):
            reply = httpx.get(f"{self.url}/setup/limits", trust_env=False, follow_redirects=False)
            if reply.status_code == 404:
                return
            time.sleep(0.1)
        raise AssertionError("the set-up is still there")

    @property
    def errors(self) -> str:
        return (self.folder / "errors").read_text()


@contextmanager
def running_first_run(folder: Path, *words: str) -> Iterator[FirstRun]:
    """A first run that is stopped at the end."""
    made = FirstRun(folder, *words)
    try:
        yield made
    finally:
        made.process.terminate()
        made.process.wait(60)
        assert made.process.stdout is not None
        made.process.stdout.close()


def write_visits(folder: Path) -> None:
    """Visits of some people."""
    table = {
        "patient_id": [one // 3 for one in range(3000)],
        "city": [("Haifa", "Koper")[one % 2] for one in range(3000)],
        "cost": [float(one % 100) for one in range(3000)],
    }
    pyarrow.parquet.write_table(pa.table(table), folder / "visits.parquet")

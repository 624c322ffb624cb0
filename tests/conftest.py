"""What tests of more than one kind need: the fuzzers at the project's root, and Java, for Spark."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # the fuzzers are there, next to `src`


settings.register_profile("no clock", deadline=None)  # no test depends on how fast a machine is
settings.load_profile("no clock")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test with `some_quick(n)`, the first n cases are quick and the others slow."""
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("some_quick")
        if mark is not None:
            test = item.nodeid.partition("[")[0]
            seen[test] += 1
            if seen[test] > mark.args[0]:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def java() -> None:
    """Java and pyspark. Debian's Java is installed where it is missing and we may; without it tests are skipped."""
    pytest.importorskip("pyspark", reason='needs pip install "discreet[spark]"')
    with (Path(tempfile.gettempdir()) / "discreet_java_install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _found() and os.geteuid() == 0 and shutil.which("apt-get"):
            environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
            for words in (["update", "-q"], ["install", "-y", "-q", "openjdk-17-jre-headless"]):
                subprocess.run(["apt-get", *words], env=environment, capture_output=True, check=False)
    if not _found():
        pytest.skip("Java 17 is missing and may not be installed here: install it for the tests of Spark")


def _found() -> bool:
    return shutil.which("java") is not None or "JAVA_HOME" in os.environ

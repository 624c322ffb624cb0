"""What tests of more than one kind need: Java, for Spark."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


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

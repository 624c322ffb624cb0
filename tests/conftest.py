"""What tests of more than one kind need: the fuzzers at the project's root, and programs that Debian has."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # the fuzzers are there, next to `src`

# each core has its worker: threads of linear algebra would wait for each other, and keep the cores busy with it
for _threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

settings.register_profile("no clock", deadline=None)  # no test depends on how fast a machine is
settings.load_profile("no clock")


MEMORY = Path("/dev/shm")
"""A folder in memory. On a disk, every charge of a ledger waits until it is written."""


def pytest_configure() -> None:
    """Temporary files are in memory if there is room and programs may be run there. Workers inherit the folder. Second
    checkpoints are switched off, so that no file of a test stays in a home directory.
    """
    os.environ.setdefault("DISCREET_STATE", "off")
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK):
        facts = os.statvfs(MEMORY)
        if facts.f_bavail * facts.f_frsize >= 4 * 2**30 and not facts.f_flag & os.ST_NOEXEC:
            os.environ["TMPDIR"], tempfile.tempdir = str(MEMORY), None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Tests have no doctests: nothing looks for any, and what is no test is imported only by tests that use it."""
    found = yield
    return [one for one in found if type(one) is pytest.Module]


def pytest_collectstart() -> None:
    """Almost all that is made while tests are collected stays until the end: nothing is searched for garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """From here on garbage is searched among new objects only, and not as often as where memory is short."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def pytest_unconfigure() -> None:
    """At the end everything may be taken apart."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test with `some_quick(n)`, the first n cases are quick and the others slow. So are tests that plant a bug
    and see that it is caught: `make mutants` runs them.
    """
    seen: Counter[str] = Counter()
    mutants = tomllib.loads((ROOT / "tests" / "threats.toml").read_text("utf-8"))["mutant"]
    planting = {test for mutant in mutants if "file" not in mutant for test in mutant["killed_by"]}
    for item in items:
        test = item.nodeid.partition("[")[0]
        mark = item.get_closest_marker("some_quick")
        seen[test] += mark is not None
        if (mark is not None and seen[test] > mark.args[0]) or {test, item.nodeid} & planting:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every client of httpx reads all authorities of the web anew. No test reaches the web: one of them is enough."""
    import certifi

    end = "-----END CERTIFICATE-----"
    path = tmp_path_factory.mktemp("authority") / "one.pem"
    path.write_text(Path(certifi.where()).read_text("utf-8").partition(end)[0] + end + "\n", "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certifi, "where", lambda: str(path))
        yield


@pytest.fixture(scope="session", autouse=True)
def lent_engines() -> Iterator[None]:
    """An engine in memory gets the DuckDB that another one has left."""
    from .lent import lending

    with lending():
        yield


class Install(Protocol):
    """Installs Debian's packages where something is missing and we may. Without them the test is skipped."""

    def __call__(self, is_there: Callable[[], object], *packages: str) -> None: ...


@pytest.fixture(scope="session")
def install() -> Install:
    """How a test gets the programs that it needs."""

    def installed(is_there: Callable[[], object], *packages: str) -> None:
        with (Path(tempfile.gettempdir()) / "discreet_install.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # one process at a time
            if not is_there() and os.geteuid() == 0 and shutil.which("apt-get"):
                environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
                for words in (["update", "-q"], ["install", "-y", "-q", *packages]):
                    subprocess.run(["apt-get", *words], env=environment, capture_output=True, check=False)
        if not is_there():
            pytest.skip(f"this test needs Debian's {' '.join(packages)}, which may not be installed here")

    return installed


@pytest.fixture(scope="session")
def java(install: Install) -> None:
    """Java and pyspark."""
    pytest.importorskip("pyspark", reason='needs pip install "discreet[spark]"')
    install(lambda: shutil.which("java") or "JAVA_HOME" in os.environ, "openjdk-17-jre-headless")

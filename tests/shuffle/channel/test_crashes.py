"""kill -9 of either half at every step: one batch, one charge, the right counts, and keys that are gone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from .polls import Poll, Service, counts, make_poll

WORKER = Path(__file__).with_name("worker.py")
EXACT = [4.0, 3.0, 3.0]


def killed_everywhere(folder: Path, place: str, step: int, first: int = 1) -> None:
    (folder / "template").mkdir()
    make_poll(folder / "template")
    command = [sys.executable, str(WORKER), "crash", folder, place, step, first]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["events"] > 50
    assert said["killed"] == len(said["runs"]) == 2 * len(range(first, said["events"] + 1, step))
    for run in said["runs"]:
        assert run["counts"] == EXACT, run
        assert run["entries"] == ["answered"], run
        assert run["state"] == "acknowledged", run
        assert run["blob"], run
        assert not run["keys"], run
        assert run["sealed"] in (None, run["digest"]), run
    assert any(run["sealed"] for run in said["runs"])


@pytest.mark.slow
def test_kill_at_some_statements(tmp_path: Path) -> None:
    killed_everywhere(tmp_path, "", 7, 3)


@pytest.mark.slow
def test_kill_at_every_statement(tmp_path: Path) -> None:
    killed_everywhere(tmp_path, "", 1)


@pytest.mark.slow
def test_kill_at_every_statement_in_postgres(tmp_path: Path, postgres: str) -> None:
    killed_everywhere(tmp_path, postgres, 1)


STEPS = (
    ("shuffler", "before ShufflerStore.seal"),
    ("shuffler", "after ShufflerStore.seal"),
    ("shuffler", "before ShufflerStore.forwarded"),
    ("shuffler", "after ShufflerStore.forwarded"),
    ("shuffler", "before ShufflerStore.acknowledged"),
    ("shuffler", "after ShufflerStore.acknowledged"),
    ("analyzer", "before AnalyzerStore.receive"),
    ("analyzer", "after AnalyzerStore.receive"),
    ("analyzer", "before Analyzer._messages"),
    ("analyzer", "after Analyzer._messages"),
    ("analyzer", "before AnalyzerStore.publish"),
    ("analyzer", "after AnalyzerStore.publish"),
)


def served(poll: Poll, folder: Path, name: str, step: str, port: str, *arguments: str) -> Service:
    store = poll.shuffler_at if name == "shuffler" else poll.analyzer_at
    command = [sys.executable, str(WORKER), "serve", name, step, str(poll.path)]
    return Service([*command, "--port", port, "--store", store, *arguments], folder / f"{name}.log")


def closed_through_a_crash(poll: Poll, folder: Path, name: str, step: str) -> None:
    poll.ledger().close()
    dying = {"shuffler": "", "analyzer": ""} | {name: step}
    started: dict[str, Service] = {}

    def start(which: str, fault: str, port: str = "0") -> None:
        extra = ["--ledger", poll.ledger_at] if which == "analyzer" else ["--analyzer", started["analyzer"].url]
        started[which] = served(poll, folder, which, fault, port, *extra)
        assert started[which].url  # it listens

    try:
        start("analyzer", dying["analyzer"])
        start("shuffler", dying["shuffler"])
        url, headers = started["shuffler"].url, {"Authorization": f"Bearer {poll.issuer.operator.hex()}"}
        for number in range(10):
            token, report = poll.exact(number, number % 3)
            bearer = {"Authorization": f"Bearer {token.hex()}"}
            assert httpx.post(f"{url}/v1/report", content=report, headers=bearer).status_code == 200
        try:
            httpx.post(f"{url}/v1/close", headers=headers)
        except httpx.HTTPError:
            assert name == "shuffler"
        started[name].process.wait(30)  # it has killed itself
        assert started[name].process.returncode == -9
        start(name, "", started[name].url.rpartition(":")[2])  # and comes back where it was
        deadline = time.monotonic() + 60
        while httpx.get(f"{url}/v1/state").json()["state"] != "acknowledged":
            if httpx.get(f"{url}/v1/state").json()["state"] == "collecting":
                httpx.post(f"{url}/v1/close", headers=headers)
            assert time.monotonic() < deadline
            time.sleep(0.05)
        result = httpx.get(f"{started['analyzer'].url}/v1/result").json()
    finally:
        for service in started.values():
            service.stop()
    assert counts(result) == EXACT
    assert [entry.state for entry in poll.ledger().entries()] == ["answered"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "step"), STEPS)
def test_a_service_comes_back_from_every_step(poll: Poll, tmp_path: Path, name: str, step: str) -> None:
    closed_through_a_crash(poll, tmp_path, name, step)

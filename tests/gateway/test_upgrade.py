"""An upgrade, a stop and a crash, with real clients: every question gets its answer, and is charged once."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

import discreet as dp

from .served import killed, served

pytestmark = pytest.mark.slow
CLIENTS = 6


def question(client: int, number: int) -> str:
    return f"SELECT COUNT(*) AS n FROM visits WHERE cost < {client * 100 + number + 1}"


def wait_until(said) -> None:
    """Wait for something that happens for sure."""
    deadline = time.monotonic() + 120
    while not said():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def running(tmp_path):
    with served(tmp_path / "house", f'answer_after = 0\nlog = "{tmp_path}/log"') as made:
        made.token = made.open("ada", epsilon=7)
        yield made.serve("--not-isolated")


def log_of(running) -> str:
    return (running.folder.parent / "log").read_text()


def test_an_upgrade_while_questions_run(running):
    """Clients with a new connection for each question. All of them are answered, and each question is charged once."""
    upgraded = threading.Event()

    def client(number: int) -> list[int]:
        codes = []
        while not upgraded.is_set() or len(codes) < 3:
            sql, given = question(number, len(codes) % 50), {"epsilon": 0.01}
            codes.append(running.post(running.token, sql, json={"sql": sql, **given}).status_code)
        return codes

    before = running.children()
    with ThreadPoolExecutor(CLIENTS) as pool:
        asking = [pool.submit(client, number) for number in range(CLIENTS)]
        for times in (1, 2):
            running.process.send_signal(signal.SIGHUP)
            wait_until(lambda: log_of(running).count("replaced") == times)  # noqa: B023 -- it is called here
        upgraded.set()
        codes = [one.result() for one in asking]
    assert {code for some in codes for code in some} == {200}
    charges = running.charges()
    assert len(charges) == sum(min(50, len(some)) for some in codes)
    assert {entry.state for entry in charges} == {"answered"}
    assert set(before.values()).isdisjoint(running.children().values())


def test_a_client_that_keeps_its_connection(running):
    """It is told to open another one, and `dp.remote` does so by itself, with the same key."""
    with closing(dp.remote(running.url, token=running.token)) as database:
        database.sql(question(0, 0), epsilon=0.01)
        running.process.send_signal(signal.SIGHUP)
        asked = 1
        while "replaced" not in log_of(running) or asked < 5:
            asked += 1
            database.sql(question(0, asked), epsilon=0.01)
    assert len(running.charges()) == asked


def test_a_stop_lets_questions_finish(running):
    with ThreadPoolExecutor(CLIENTS) as pool:
        asked = [pool.submit(running.post, running.token, question(n, 0)) for n in range(CLIENTS)]
        wait_until(running.charges)
        running.process.send_signal(signal.SIGTERM)
        codes = [one.result().status_code for one in asked]
    assert codes == [200] * CLIENTS
    assert running.process.wait(timeout=60) == 0
    assert len(running.charges()) == CLIENTS
    with pytest.raises(httpx.ConnectError):
        running.post(running.token, question(0, 0))


@pytest.mark.parametrize("which", ["desk.process", "vault.vault"])
def test_a_process_that_is_killed_is_started_again(running, which):
    """A client whose connection broke asks again with the same key, which costs nothing more."""
    sql = question(1, 1)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(running.post, running.token, sql, key="k")
        wait_until(running.charges)
        old = running.children()[which]
        killed(old)
        with suppress(httpx.HTTPError):  # the connection broke, or the desk says that the vault is gone
            assert asked.result().status_code in (503, 200)  # or the answer was faster than the signal
    wait_until(lambda: "started again" in log_of(running))
    assert running.children()[which] != old
    with closing(dp.remote(running.url, token=running.token)) as database:
        first = database.sql(sql, epsilon=0.1, key="k")
        assert database.sql(sql, epsilon=0.1, key="k").receipt == first.receipt
        assert database.budget()["remaining"]["epsilon"] == pytest.approx(6.9)
    assert len(running.charges()) == 1


def test_a_supervisor_that_is_killed_leaves_nothing(running):
    children = running.children()
    killed(running.process.pid)
    running.process.wait()
    wait_until(lambda: not any(Path(f"/proc/{number}").exists() for number in children.values()))
    with pytest.raises(httpx.ConnectError):
        running.post(running.token, question(0, 0))


def test_what_cannot_start_does_not_replace_what_runs(running):
    before, text = running.children(), running.policy.read_text()
    for bad in ("nonsense", text.replace("visits.parquet", "gone.parquet").replace("= 0", '= 0\nversion = "2"', 1)):
        tries = log_of(running).count("was kept")
        running.policy.write_text(bad)
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: log_of(running).count("was kept") > tries)  # noqa: B023 -- it is called here
        assert running.children() == before
    assert running.post(running.token, question(0, 0)).status_code == 200
    running.policy.write_text(text.replace("127.0.0.1:0", "127.0.0.1:1"))
    running.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "Restart it" in log_of(running))
    assert running.children() == before


def test_a_log_that_is_moved_away(running):
    log = running.folder.parent / "log"
    moved = log.rename(log.with_name("log.1"))
    running.process.send_signal(signal.SIGHUP)
    wait_until(lambda: log.exists() and "replaced" in log.read_text())
    assert "started" in moved.read_text()
    assert "visits" not in log.read_text() + moved.read_text()
    assert "ada" not in log.read_text() + moved.read_text()
    assert os.stat(log).st_mode & 0o002 == 0

"""The gateway next to the library alone: what it adds to a question, how many replays it serves, how many questions its
lanes answer, and what connections cost that are only open.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import discreet as dp
from bench import report
from bench.gateway import gateways
from bench.gateway.timing import write_visits

QUESTION = "SELECT city, COUNT(*) AS n, AVG(cost) AS c FROM visits WHERE cost <= {limit} GROUP BY city"
ROUNDS, SECONDS, IDLE = 60, 8, 1000
LANES = (1, 2, 4)
SLOT = 1.0


def overhead(folder: Path, source: Path) -> tuple[list[float], list[float]]:
    """Times until the JSON of the same questions, new each time: of the library, and over HTTP without a deadline."""
    own = folder / "library"
    own.mkdir()
    policy = own / "clinic.toml"
    policy.write_text(gateways.POLICY.format(source=source, more=""))
    database = dp.connect(policy)
    analyst = database.seen_by(database.ledger.for_analyst("ada", limit=dp.Approx(epsilon=10_000, delta=1e-5)))
    library, served = [], []
    with gateways.gateway(folder / "gateway", source, "answer_after = 0") as desk:
        client = desk.connect(desk.token("ada"))
        for number in range(ROUNDS + 5):
            question = QUESTION.format(limit=100 + number)
            here = gateways.timed(lambda question=question: json.dumps(analyst.sql(question, epsilon=1).as_json()))
            there = gateways.timed(lambda question=question: client.ask(question, epsilon=1))
            if number >= 5:
                library.append(here)
                served.append(there)
    database.close()
    return library, served


def replays(desk: gateways.Desk, token: str) -> tuple[float, str]:
    """Replays a second of one answer, over connections that stay open."""
    question = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 1}
    client = desk.connect(token)
    for _ in range(3):
        client.ask(**question)
    if shutil.which("wrk") is None:
        return _replays_by_threads(desk, token, question), "8 threads of Python (install wrk for a faster client)"
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(
            f"wrk.method = 'POST'\nwrk.body = [[{json.dumps(question)}]]\n"
            f"wrk.headers['Authorization'] = 'Bearer {token}'\nwrk.headers['Content-Type'] = 'application/json'\n"
        )
        script.flush()
        printed = subprocess.run(
            ["wrk", "-t1", "-c32", f"-d{SECONDS}s", "-s", script.name, f"{desk.url}/v1/questions"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    sent = int(printed.partition(" requests in")[0].split()[-1])
    refused = (
        int(printed.partition("responses:")[2].split()[0]) if "Non-2xx" in printed else 0
    )  # too fast for one token
    return (sent - refused) / SECONDS, "wrk, 32 connections of one token"


def _replays_by_threads(desk: gateways.Desk, token: str, question: dict[str, object]) -> float:
    end = time.perf_counter() + SECONDS

    def run(_: int) -> int:
        client, count = desk.connect(token), 0
        while time.perf_counter() < end:
            client.ask(**question)
            count += 1
        return count

    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(run, range(8))) / SECONDS


def memory(pid: int) -> float:
    """The memory of a process and of all below it, in MB."""
    total = 0.0
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                status = (folder / "status").read_text()
            except OSError:
                continue
            facts = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
            if int(folder.name) == pid or pid in _ancestors(int(folder.name)):
                total += int(facts.get("VmRSS", "0").split()[0]) / 1000
    return total


def _ancestors(pid: int) -> list[int]:
    found: list[int] = []
    while pid > 1:
        try:
            pid = int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            break
        found.append(pid)
    return found


def idle(desk: gateways.Desk) -> tuple[float, float, bool]:
    """The memory of all processes without and with connections that do nothing, and whether others are answered."""
    where = urlsplit(desk.url)
    before = memory(desk.pid)
    # from twenty addresses of this machine: one alone may not have as many
    sources = [(f"127.0.0.{2 + n % 20}", 0) for n in range(IDLE)]
    held = [socket.create_connection((where.hostname, where.port), source_address=one) for one in sources]
    try:
        time.sleep(1)
        after = memory(desk.pid)
        status, _ = gateways.Client(desk.url, "").send("GET", "/healthz")
    finally:
        for one in held:
            one.close()
    return before, after, status == 200


def until_planned(client: gateways.Client, text: str) -> None:
    """Ask again as long as so many plans at once take too long for a slot, which costs nothing."""
    while True:
        try:
            client.ask(text, epsilon=1)
            return
        except RuntimeError as error:
            if "gateway-plan-time" not in str(error):
                raise


def by_lanes(folder: Path, source: Path, lanes: int) -> float:
    """Charged questions a minute, asked at once."""
    more = f'answer_after = "{SLOT}s"\nlanes = {lanes}\nlate_allowed = 100'
    with gateways.gateway(folder / f"lanes-{lanes}", source, more) as desk:
        token, number = desk.token("ada"), 10 * lanes
        begun = time.perf_counter()
        with ThreadPoolExecutor(number) as pool:
            list(pool.map(lambda n: until_planned(desk.connect(token), QUESTION.format(limit=100 + n)), range(number)))
        return 60 * number / (time.perf_counter() - begun)


def main() -> None:
    report.section(
        "The gateway",
        "gateway.gateway",
        f"""100,000 rows on DuckDB, a question by city with two aggregates, a ledger in SQLite, HTTP on this machine;
        the client runs on the same cores. {report.machine()}.""",
    )
    goals = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "visits.parquet"
        write_visits(source, person=False, rows=100_000)
        library, served = overhead(folder, source)
        here, there = statistics.median(library), statistics.median(served)
        report.table("a new question, without a deadline", "median")
        report.line("the library alone", f"{1000 * here:.1f} ms")
        report.line("over HTTP", f"{1000 * there:.1f} ms")
        report.line("the gateway adds", f"{1000 * (there - here):.1f} ms")
        goals["the gateway adds at most 5 ms to a question"] = there - here <= 0.005
        with gateways.gateway(folder / "replays", source, "answer_after = 0") as desk:
            rate, how = replays(desk, desk.token("ada"))
            before, after, fine = idle(desk)
        print(flush=True)
        report.table("what", "measured")
        report.line(f"replays a second ({how})", f"{rate:,.0f}")
        report.line(
            f"memory of all its processes, then with {IDLE:,} idle connections", f"{before:.0f} MB, {after:.0f} MB"
        )
        for lanes in LANES:
            report.line(
                f"charged questions a minute, {lanes} lanes, slots of {SLOT:g} s",
                f"{by_lanes(folder, source, lanes):.0f}",
            )
        goals["at least 2,000 replays a second"] = rate >= 2000
        goals[f"{IDLE:,} idle connections: others are answered, less than 50 MB"] = fine and after - before < 50
    report.notes(
        f"With slots of {SLOT:g} s, one lane answers at most {60 / SLOT:.0f} questions a minute: that is the price of "
        "a fixed time.",
        f"{os.cpu_count()} cores are shared by the desk, the vault, its readers and lanes, and the client.",
    )
    report.verdict(goals)


if __name__ == "__main__":
    main()

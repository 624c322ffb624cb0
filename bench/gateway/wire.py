"""The gateway over the protocol of PostgreSQL, next to PostgreSQL itself: replays, connections, and first answers."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from bench import report
from bench.gateway import gateways
from bench.gateway.gateway import memory
from bench.gateway.timing import write_visits

QUESTION = "SELECT COUNT(*) AS n FROM visits"
SECONDS, CLIENTS, ROUNDS, IDLE = 8, 16, 20, 1000
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server that has the same table, and asks for a password, too."""
    if not PROGRAMS:
        raise RuntimeError("install Debian's postgresql: it is the peer, and has pgbench")
    programs, become = PROGRAMS[-1], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
            become = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        (folder / "password").write_text("a password")
        (folder / "password").chmod(0o644)
        made = ["-A", "scram-sha-256", f"--pwfile={folder}/password", "-U", "postgres"]
        _run(*become, programs / "initdb", "-D", folder / "data", *made)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories= -c max_connections=1100"
        control = [*become, programs / "pg_ctl", "-w", "-D", folder / "data"]
        with (folder.parent / f"{folder.name}.log").open("w") as log:
            subprocess.run([*map(str, control), "-o", options, "start"], check=True, stdout=log, stderr=log, cwd="/")
        try:
            url = f"postgresql://postgres:a%20password@127.0.0.1:{port}/postgres"
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("CREATE TABLE visits (id bigint, city text, cost double precision)")
                filled = "SELECT n, 'a', n % 100 FROM generate_series(1, 1000) AS n"
                connection.execute(f"INSERT INTO visits {filled}")
            yield url
        finally:
            _run(*control, "-m", "immediate", "stop")
            (folder.parent / f"{folder.name}.log").unlink()


def _run(*command: object) -> None:
    subprocess.run([*map(str, command)], check=True, capture_output=True, cwd="/")


def rate(url: str, form: str) -> float:
    """Answers a second to one question over connections that stay open, as pgbench counts them."""
    where = urlsplit(url)
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(f"{QUESTION};")
        script.flush()
        said = ["-n", "-h", where.hostname, "-p", where.port, "-U", where.username, "-M", form, "-c", CLIENTS, "-j", 1]
        command = [PROGRAMS[-1] / "pgbench", *said, "-T", SECONDS, "-f", script.name, where.path[1:]]
        password = {"PGPASSWORD": (where.password or "").replace("%20", " ")}
        printed = subprocess.run(
            [*map(str, command)], check=True, capture_output=True, text=True, env=os.environ | password
        ).stdout
    failed = int(printed.partition("failed transactions: ")[2].split()[0])
    if failed:
        raise RuntimeError(f"{failed} of the questions failed")
    return float(printed.partition("tps = ")[2].split()[0])


def connects(url: str) -> tuple[float, float]:
    """Median milliseconds until a new connection is ready, and until it has its first answer."""
    ready, answered = [], []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        with psycopg.connect(url, autocommit=True) as connection:
            ready.append(time.perf_counter() - begun)
            connection.execute(QUESTION).fetchall()
            answered.append(time.perf_counter() - begun)
    return 1000 * statistics.median(ready), 1000 * statistics.median(answered)


def idle(desk: gateways.Desk, url: str) -> tuple[float, float]:
    """The memory of all processes of the gateway, without and with connections that have logged in and do nothing."""
    before = memory(desk.pid)
    held = [psycopg.connect(url, autocommit=True) for _ in range(IDLE)]
    try:
        held[IDLE // 2].execute(QUESTION).fetchall()
        return before, memory(desk.pid)
    finally:
        for one in held:
            one.close()


def main() -> None:
    report.section(
        "The protocol of PostgreSQL",
        "gateway.wire",
        f"""The gateway next to PostgreSQL, which counts rows without privacy: {CLIENTS} connections of pgbench,
        one question, logins by SCRAM-SHA-256, all on this machine. The gateway serves an answer that was bought before.
        {report.machine()}.""",
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "visits.parquet"
        write_visits(source, person=False, rows=1000)
        more = 'postgres = "127.0.0.1:0"\nanswer_after = 0'
        with gateways.gateway(folder / "gateway", source, more) as desk, postgres() as peer:
            where = urlsplit(desk.postgres)
            token = desk.token("ada", epsilon=100)
            own = f"postgresql://ada:{token}@{where.hostname}:{where.port}/clinic?options=-cdiscreet.epsilon%3D1"
            with psycopg.connect(own, autocommit=True) as connection:
                connection.execute(QUESTION).fetchall()
            ours = f"postgresql://ada:{token}@{where.hostname}:{where.port}/clinic"
            os.environ["PGOPTIONS"] = "-cdiscreet.epsilon=1"
            simple, prepared = rate(ours, "simple"), rate(ours, "prepared")
            del os.environ["PGOPTIONS"]
            theirs = rate(peer, "simple"), rate(peer, "prepared")
            own_connects, their_connects = connects(own), connects(peer)
            before, after = idle(desk, own)
    report.table("what", "discreet", "PostgreSQL")
    report.line("answers a second, simple protocol", f"{simple:,.0f}", f"{theirs[0]:,.0f}")
    report.line("answers a second, prepared", f"{prepared:,.0f}", f"{theirs[1]:,.0f}")
    report.line("connect, median", f"{own_connects[0]:.1f} ms", f"{their_connects[0]:.1f} ms")
    report.line("connect and first answer, median", f"{own_connects[1]:.1f} ms", f"{their_connects[1]:.1f} ms")
    report.line(f"memory, then with {IDLE:,} idle connections", f"{before:.0f} MB, {after:.0f} MB", "")
    report.notes("Clients answered of those tried: tests/gateway/clients, with what each did.")
    report.verdict(
        {
            "at least 2,000 replays a second": max(simple, prepared) >= 2000,
            f"{IDLE:,} idle connections use less than 100 MB": after - before < 100,
        }
    )


if __name__ == "__main__":
    main()

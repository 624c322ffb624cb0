"""Every client that people use, as they use it: connect, list, ask, ask again for free, be refused, cancel.

The clients run as programs of their own, in environments that are made next to the one of the tests. What they see is
the same for all of them. Each has its own account, so that the ledger says what each was charged.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ..served import Served, served

HERE = Path(__file__).parent
BESIDE = Path(sys.prefix)
"""Environments of clients are made in the one of the tests, and removed with it."""
JDBC = Path("/usr/share/java/postgresql.jar")
QUESTION = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY city"
TASK = {
    "ask": f"/* epsilon=0.1 */ {QUESTION}",
    "scan": "SELECT * FROM visits",
    "budget": "/* epsilon=0.9 */ SELECT SUM(cost) AS s FROM visits",
    "slow": "/* epsilon=0.1 */ SELECT AVG(cost) AS c FROM visits",
}
PYTHONS = (
    *("psycopg", "psycopg2", "asyncpg", "pg8000", "sqlalchemy", "sqlalchemy-psycopg2", "pandas", "polars", "adbc"),
    *("odbc", "odbc-fetching", "pgcli", "jupysql"),
)
IN_WORDS = ("pgcli", "jupysql")
"""Clients that show the message of an error, and not its SQLSTATE. They leave out comments, so that ε is SET there."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway whose answers leave after three seconds: that is long enough to cancel."""
    text = 'http = "127.0.0.1:0"\npostgres = "127.0.0.1:0"\nanswer_after = "3s"\nlanes = 2\nlate_allowed = 1000'
    with served(tmp_path_factory.mktemp("clients") / "house", text, epsilon=100) as running:
        running.serve("--not-isolated")
        assert running.process.stdout is not None
        where = urlsplit(running.process.stdout.readline().split()[1])
        running.postgres = where.hostname, where.port
        yield running


@pytest.fixture
def task(gateway: Served, request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a client is told: where the gateway is, who it is, and what to ask."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name).strip("-")
    host, port = gateway.postgres
    token = gateway.open(name, epsilon=0.5)
    return {"host": host, "port": port, "user": name, "password": token, "database": "clinic", **TASK}


@pytest.fixture(scope="session")
def python() -> str:
    """The Python of an environment that has the clients, and not the project."""
    return environment("clients", "requirements.txt")


@pytest.fixture(scope="session")
def superset() -> str:
    """The Python of an environment that has Superset."""
    return environment("superset", "requirements-superset.txt")


def environment(name: str, requirements: str) -> str:
    """The Python of an environment with these packages. It is made once."""
    folder, wanted = BESIDE / name, (HERE / requirements).read_text()
    made, program = folder / "made", folder / "bin" / "python"
    with _alone(name):
        if not made.exists() or made.read_text() != wanted:
            venv.create(folder, with_pip=True, clear=True)
            command = [program, "-m", "pip", "install", "--quiet", "-r", HERE / requirements]
            subprocess.run(command, check=True, capture_output=True)
            made.write_text(wanted)
    return str(program)


@pytest.fixture(scope="session")
def node(install) -> Path:
    """A folder with the clients for Node."""
    install(lambda: shutil.which("node") and shutil.which("npm"), "nodejs", "npm")
    folder = BESIDE / "clients-node"
    with _alone("clients-node"):
        if not (folder / "made").exists():
            folder.mkdir(exist_ok=True)
            (folder / "package.json").write_text('{"type": "module"}')
            command = ["npm", "install", "--no-audit", "--no-fund", "pg@8", "postgres@3"]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
            (folder / "made").touch()
        shutil.copy(HERE / "in_node.mjs", folder)
    return folder


class _alone:
    """One process at a time makes an environment."""

    def __init__(self, name: str) -> None:
        self._path = BESIDE / f".{name}.lock"

    def __enter__(self) -> None:
        self._file = self._path.open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()


def run(command: list[Any], **given: Any) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False, **given)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def last_object(printed: str) -> dict[str, Any]:
    """The last JSON object among what a program printed: some clients say more."""
    return json.loads(next(line for line in reversed(printed.splitlines()) if line.startswith("{")))


def check(gateway: Served, task: dict[str, Any], saw: dict[str, Any], *, in_words: bool = False) -> None:
    """What every client must have seen, and what it was charged."""
    assert sorted(saw["tables"]) == ["prices", "visits"]
    assert [row[0] for row in saw["rows"]] == ["Haifa", "Koper", "Maribor"]
    assert all(len(row) == 3 for row in saw["rows"])  # the error comes after all columns that were asked for
    assert saw["again"] == saw["after"] == saw["rows"]
    if in_words:
        assert "would show rows of individual people" in saw["scan"]
        assert "answered" not in saw["budget"]
    else:
        assert saw["scan"] == "0A000"
        assert saw["budget"] == "53400"
    cancels = saw.get("cancel", "no way to cancel")
    assert cancels in ("57014", "no way to cancel", "HY008")
    more = saw.get("more", {})
    others = 1 + (cancels != "no way to cancel") + ("parameters" in more) + ("prepared" in saw)
    charges = [one for one in gateway.charges() if one.analyst == task["user"]]
    assert len(charges) == others, [one.asked for one in charges]  # asked again, described, paged: free


@pytest.mark.parametrize("name", PYTHONS)
def test_a_client_in_python(name, gateway, task, python, install):
    if name.startswith("odbc"):
        install(lambda: [*Path("/usr/lib").glob("*/odbc/psqlodbcw.so")], "odbc-postgresql", "unixodbc")
    if name in IN_WORDS:
        task |= {
            "ask": f"SET discreet.epsilon = 0.1; {QUESTION}",
            "budget": f"SET discreet.epsilon = 0.9; {task['budget']}",
        }
    saw = last_object(run([python, HERE / "in_python.py", name], input=json.dumps(task)))
    check(gateway, task, saw, in_words=name in IN_WORDS)
    more = saw["more"]
    for way in ("binary", "cursor", "built"):
        if way in more:
            assert [row[:2] for row in more[way]] == [row[:2] for row in saw["rows"]]
    for both in more.get("pipeline", ()):
        assert both == saw["rows"]
    if "copy" in more:
        assert [[city, int(n), float(error)] for city, n, error in more["copy"]] == saw["rows"]
    if "reflected" in more:
        assert more["reflected"] == ["prices", "visits"]
        assert more["types"] == {"id": "BIGINT", "city": "TEXT", "cost": "DOUBLE PRECISION"}


@pytest.mark.parametrize("name", ["node-pg", "postgres.js"])
def test_a_client_in_node(name, gateway, task, node):
    saw = json.loads(run(["node", "in_node.mjs", name], cwd=node, input=json.dumps(task)))
    check(gateway, task, saw)


def test_jdbc(gateway, task, tmp_path, install):
    install(lambda: shutil.which("javac") and JDBC.exists(), "openjdk-17-jdk-headless", "libpostgresql-jdbc-java")
    run(["javac", "-d", tmp_path, HERE / "InJava.java"])
    where = f"jdbc:postgresql://{task['host']}:{task['port']}/{task['database']}"
    said = [where, task["user"], task["password"], *(task[name] for name in ("ask", "scan", "budget", "slow"))]
    saw = json.loads(run(["java", "-cp", f"{tmp_path}:{JDBC}", "InJava", *said]))
    check(gateway, task, saw)
    assert saw["columns"] == ["id", "city", "cost"]
    assert saw["keys"] == []
    assert saw["pages"] == saw["rows"]
    assert all(one == saw["prepared"][0] for one in saw["prepared"])  # binary from the sixth on


def test_r(gateway, task, install):
    install(lambda: Path("/usr/lib/R/site-library/RPostgreSQL").exists(), "r-base-core", "r-cran-rpostgresql")
    said = [task[name] for name in ("host", "port", "user", "password", "database", "ask", "scan", "budget")]
    lines = [line.split("\t") for line in run(["Rscript", HERE / "in_r.R", *said]).splitlines() if "\t" in line]
    saw: dict[str, Any] = dict(lines)
    for name in ("rows", "again", "after"):
        saw[name] = [[cell.split("=")[0], cell.split("=")[1], ""] for cell in saw[name].split("|")]
    check(gateway, task, saw | {"tables": saw["tables"].split("|")}, in_words=True)


def test_superset(gateway, task, superset):
    """A database, a dataset, a chart, and a dashboard that is refreshed: one charge."""
    saw = last_object(run([superset, HERE / "in_superset.py"], input=json.dumps(task)))
    assert saw["tested"] == "OK"
    assert saw["schemas"] == ["public"]
    assert saw["tables"] == ["prices", "visits"]
    assert saw["columns"] == {"id": "BIGINT", "city": "TEXT", "cost": "DOUBLE PRECISION"}
    assert sorted(city for city, _ in saw["chart"]) == ["Haifa", "Koper", "Maribor"]
    assert all(one == saw["chart"] for one in saw["refreshed"])
    assert saw["on the dashboard"]
    assert sorted(row[:2] for row in saw["rows"]) == sorted(saw["chart"])  # SQL Lab asks for the same measurement
    assert "errors" in saw["scan"]
    assert len([one for one in gateway.charges() if one.analyst == task["user"]]) == 1

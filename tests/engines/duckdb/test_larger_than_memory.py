"""Folders of files that need more memory than the engine may use: the same exact answers, and what is written meanwhile
is nobody else's and does not stay.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.datasets import policy
from discreet.engines.duckdb import engine as duckdb
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.spill import Spill
from discreet.errors import EngineFailed, InvalidArgument
from discreet.sql.measuring.compile import Statement

from ...refusing import refuses

MEMORY, ROWS = "100MB", 1_200_000
TEXT = "SELECT k, COUNT(*) AS n, SUM(x) AS s, COUNT(DISTINCT pid) AS p FROM t GROUP BY k"


def files(folder: Path, rows: int) -> str:
    """Four files of people with two rows on average, in fifty groups."""
    for number in range(4):
        draw, size = np.random.default_rng(number), rows // 4
        columns = {name: draw.integers(0, most, size) for name, most in (("pid", rows // 2), ("k", 50), ("x", 100))}
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")
    return str(folder)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    return files(tmp_path_factory.mktemp("rows"), ROWS)


def words(source: str, **engine) -> dict:
    known = {"k": {"between": [0, 49]}, "x": {"between": [0, 100]}}
    bounds = {"rows_per_person": 50, "groups_per_person": 2, "rows_per_group": 1}
    return {
        "ledger": {"path": ":memory:", "epsilon": 100, "delta": 1e-3},
        "unit": {"person": "pid"},
        "engine": {"kind": "duckdb", **engine},
        "tables": {"t": {"source": source, "person": "pid", **bounds, "columns": known}},
    }


def measures(source: str, text: str = TEXT, **engine) -> list[tuple]:
    """The exact bounded aggregates; the same groups of a person are kept each time."""
    asked = dp.connect(words(source, **engine))
    plan = asked.plan(text, epsilon=1)
    found = asked.engine.rows(Statement(plan.question, asked.engine, plan.bounds, seed=1).additive())
    asked.close()
    return sorted(found)


@contextmanager
def watched(parent: Path) -> Iterator[dict[str, int]]:
    """The modes of folders inside of one, and the most bytes that are in their files at once."""
    seen, done = {"bytes": 0}, threading.Event()

    def look() -> None:
        while not done.wait(0.002):
            try:
                for folder in parent.iterdir():
                    seen[folder.name] = stat.S_IMODE(folder.stat().st_mode)
                seen["bytes"] = max(seen["bytes"], sum(file.stat().st_size for file in parent.glob("*/*")))
            except OSError:
                continue  # removed meanwhile

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def check_same_with_less(source: str, spill: Path, memory: str) -> None:
    with watched(spill) as seen:
        found = measures(source, memory=memory, spill=str(spill))
    assert seen.pop("bytes") > 10**6  # it did spill
    assert seen
    assert not any(mode & (stat.S_IRWXG | stat.S_IRWXO) for name, mode in seen.items() if name.startswith("discreet-s"))
    assert not list(spill.iterdir())
    assert found == measures(source)
    assert len(found) == 50


@pytest.mark.slow
def test_answers_with_little_memory_are_the_same(source, tmp_path):
    check_same_with_less(source, tmp_path, MEMORY)


@pytest.mark.slow
def test_answers_that_need_ten_times_the_memory_are_the_same(tmp_path):
    spill = tmp_path / "spill"
    spill.mkdir()
    check_same_with_less(files(tmp_path, 12_000_000), spill, "200MB")


@pytest.mark.slow
def test_without_a_folder_it_fails_with_the_one_error_and_stays_charged(source):
    asked = dp.connect(words(source, memory=MEMORY, spill=False))
    with refuses(EngineFailed, "engine-failed") as caught:
        asked.sql(TEXT, epsilon=1)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    (entry,) = asked.ledger.entries()
    assert entry.state == "reserved"
    assert asked.ledger.spent != dp.connect(words(source)).ledger.spent


@pytest.mark.slow
def test_values_are_ranked_with_little_memory(source, tmp_path):
    """A rank for every row needs the most memory. Nobody has as many rows as one may have, so that none is left out."""
    found = []
    for engine in ({}, {"memory": MEMORY, "spill": str(tmp_path)}):
        asked = dp.connect(words(source, **engine))
        plan = asked.plan("SELECT MEDIAN(x) AS m FROM t", epsilon=1)
        bounds = replace(plan.bounds, per_group=50)
        found.append(sorted(asked.engine.rows(Statement(plan.question, asked.engine, bounds, seed=1).values(0))))
        asked.close()
    assert found[0] == found[1]
    assert sum(count for _, count in found[0]) == ROWS


# --- the folder ---------------------------------------------------------------------------------------------


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """The system's folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_rows_of_files_spill_and_rows_in_memory_do_not(temporary, tmp_path_factory):
    table = pa.table({"a": [1]})
    file = tmp_path_factory.mktemp("data") / "t.parquet"
    pq.write_table(table, file)
    for given, spills in (
        ({}, False),
        ({"spill": True}, True),
        ({"spill": temporary}, True),
    ):
        engine = DuckDB({"t": table}, **given)
        assert len(list(temporary.iterdir())) == spills
        engine.close()
        assert not list(temporary.iterdir())
    DuckDB({"t": file}, spill=False)
    DuckDB({"t": file, "u": table})
    assert not list(temporary.iterdir())
    engine = DuckDB({"t": file})
    (folder,) = temporary.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    del engine
    assert not folder.exists()


def test_where_no_folder_can_be_made_it_answers_without_one(temporary, tmp_path_factory, monkeypatch):
    file = tmp_path_factory.mktemp("data") / "t.parquet"
    pq.write_table(pa.table({"a": [1]}), file)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "gone"))
    assert DuckDB({"t": file}).columns("t") == {"a": "integer"}
    with refuses(InvalidArgument, "spill-folder"):
        DuckDB({"t": file}, spill=True)


def test_nothing_else_can_be_read_beside_the_folder(temporary):
    (temporary / "other.csv").write_text("a\n1\n")
    engine = DuckDB({"t": pa.table({"a": [1]})}, spill=True)
    for statement in (
        f"SELECT * FROM read_csv('{temporary}/other.csv')",
        f"SELECT * FROM read_text('{engine._spill.folder}/../other.csv')",
        f"SELECT * FROM glob('{temporary}/*')",
        f"SET temp_directory = '{temporary}'",
        "SET memory_limit = '1GB'",
    ):
        with pytest.raises(EngineFailed):
            engine.rows(statement)


def python(script: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)


def test_what_a_killed_process_left_is_removed(tmp_path):
    script = """
import os, signal, sys
from discreet.engines.duckdb.spill import Spill
spill = Spill(sys.argv[1])
(spill.folder / "rows").write_text("secret")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert python(script, str(tmp_path)).returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert (left / "rows").exists()
    living = Spill(tmp_path)
    assert list(tmp_path.iterdir()) == [living.folder]
    other = Spill(tmp_path)
    assert living.folder.exists()  # in use
    other.close()
    living.close()
    assert not list(tmp_path.iterdir())


def test_it_goes_with_its_process_and_not_with_a_forked_child(tmp_path):
    script = """
import os, sys
from discreet.engines.duckdb.spill import Spill
spill = Spill(sys.argv[1])
if (child := os.fork()) == 0:
    sys.exit()
os.waitpid(child, 0)
print(spill.folder.exists())
"""
    done = python(script, str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
    assert not list(tmp_path.iterdir())


def test_folders_of_other_makers_are_left_alone(tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "in-use").touch()
    spill = tmp_path / "spill"
    (spill / "discreet-spill-of-a-user").mkdir(parents=True)
    (spill / "discreet-spill-link").symlink_to(target)
    Spill(spill).close()
    assert (target / "in-use").exists()
    assert len(list(spill.iterdir())) == 2


# --- the policy ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", ["", "8", "8 gigabytes", "99MB", "-1GB", "1e9GB", "8GB; SELECT 1", 8, True, "NaNGB"])
def test_an_amount_of_memory_has_a_unit_and_is_enough(source, memory):
    with refuses(InvalidArgument, "engine-memory"):
        policy.load(words(source, memory=memory))


def test_amounts_of_memory():
    assert [duckdb.memory_in_bytes(text) for text in ("8GB", "1.5 GiB", "100000KB")] == [8 * 10**9, 3 * 2**29, 10**8]


@pytest.mark.parametrize("spill", ["", 1, ["a"]])
def test_spill_is_a_folder_or_says_whether(source, spill):
    with refuses(InvalidArgument, "wrong-type"):
        policy.load(words(source, spill=spill))


def test_a_folder_to_spill_into_must_exist(source, tmp_path):
    with refuses(InvalidArgument, "spill-folder"):
        dp.connect(words(source, spill=str(tmp_path / "nowhere")))


def test_a_folder_in_a_policy_file_is_relative_to_it(source, tmp_path):
    text = f"""
ledger = {{ path = "a.ledger", epsilon = 1 }}
unit = {{ person = "pid" }}
engine = {{ kind = "duckdb", memory = "1GB", spill = "spilled" }}
tables = {{ t = {{ source = "{source}", rows_per_person = 1 }} }}
"""
    (tmp_path / "a.toml").write_text(text)
    (tmp_path / "spilled").mkdir()
    asked = dp.connect(tmp_path / "a.toml")
    assert len(list((tmp_path / "spilled").iterdir())) == 1
    setting = "SELECT current_setting('memory_limit'), current_setting('threads')"
    assert asked.engine.rows(setting) == [("953.6 MiB", min(10, os.cpu_count() or 1))]
    asked.close()
    assert not list((tmp_path / "spilled").iterdir())


def test_they_are_for_duckdb_alone(source):
    other = words("public.t") | {"engine": {"kind": "postgres", "url": "postgresql://host/database", "memory": "1GB"}}
    with refuses(InvalidArgument, "policy-unknown-key"):
        policy.load(other)


# --- progress -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_progress_is_coarse_and_only_for_who_asks(source, monkeypatch, capfd):
    monkeypatch.setattr(duckdb, "_PATIENCE", 0.001)
    asked, told = dp.connect(words(source)), []
    asked.engine.progress = told.append
    asked.sql(TEXT, epsilon=1)
    assert told
    falls = sum(after <= before for before, after in pairwise(told))
    assert falls <= 2  # one for each further statement of the question
    assert all(0 < percent <= 100 and percent % 5 == 0 for percent in told)
    told.clear()
    asked.engine.progress = None
    asked.sql(TEXT, epsilon=2)
    assert not told
    assert capfd.readouterr() == ("", "")
    asked.close()

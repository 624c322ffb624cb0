"""`discreet publish` and `discreet verify` on real files: what they print, their statuses, and an example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet.cli import main

POLICY = """
[ledger]
path = "clinic.ledger"
epsilon = 20.0
delta = 1e-5
[unit]
person = "patient_id"
[tables.visits]
source = "visits.parquet"
rows_per_person = 3
[tables.visits.columns.city]
choices = ["Bled", "Haifa", "Kiel"]
[tables.visits.columns.sex]
choices = ["f", "m"]
[tables.visits.columns.age]
between = [0, 99]
[tables.visits.columns.visits]
between = [1, 9]
"""
PLAN = """
title = "Visits"
policy = "clinic.toml"
[tables.by_city]
title = "Visits by city"
sql = "SELECT city, COUNT(*) AS visits FROM visits GROUP BY city"
epsilon = 1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(1)
    age = np.clip(rng.normal(45, 15, 12_000).round(), 10, 99).astype(int)
    columns = {
        "patient_id": rng.integers(0, 6000, 12_000),
        "city": np.array(["Bled", "Haifa", "Kiel"])[rng.choice(3, 12_000, p=[0.3, 0.4, 0.3])],
        "sex": np.array(["f", "m"])[rng.integers(0, 2, 12_000)],
        "age": age,
        "visits": np.clip(1 + rng.poisson(age / 30), 1, 9),
    }
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "visits.parquet")
    (tmp_path / "clinic.toml").write_text(POLICY)
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_publish_explain_and_verify(folder: Path, capsys: Any) -> None:
    status, out, _ = run(capsys, "publish", "plan.toml", "--explain")
    assert status == 0
    assert "tables.by_city: ε = 1" in out
    assert "remains of" in out
    assert not (folder / "out").exists()
    status, out, _ = run(capsys, "publish", "plan.toml", "out")
    assert status == 0
    assert "Visits by city: 3 rows" in out
    assert "cost     ε = 1, for one person" in out
    status, out, _ = run(capsys, "publish", "plan.toml", "out")
    assert status == 0
    assert "Nothing was charged" in out
    status, out, _ = run(capsys, "verify", "out", "clinic.ledger")
    assert status == 0
    assert "is what the ledger says" in out
    assert "FAILED" not in out
    (folder / "out" / "by_city.csv").write_text("city,visits\r\n")
    status, out, _ = run(capsys, "verify", "out", "clinic.ledger")
    assert status == 1
    assert "FAILED  file by_city.csv: it was changed" in out
    status, out, _ = run(capsys, "verify", "out", "clinic.ledger", "--json")
    assert status == 1
    assert json.loads(out)["holds"] is False


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (("publish",), 2, "publish-arguments"),
        (("publish", "plan.toml"), 2, "publish-arguments"),
        (("publish", "none.toml", "out"), 2, "plan-file"),
        (("publish", "plan.toml", "clinic.toml"), 2, "publish-exists"),
        (("publish", "plan.toml", "no/out"), 2, "no-such-folder"),
        (("publish", "plan.toml", "--example"), 2, "file-exists"),
        (("publish", "no/plan.toml", "--example"), 2, "file-not-writable"),
        (("verify", ".", "clinic.ledger"), 2, "verify-no-proof"),
    ],
)
def test_refusals(folder: Path, capsys: Any, arguments: tuple[str, ...], status: int, code: str) -> None:
    found, _, err = run(capsys, *arguments)
    assert found == status
    assert f"error [{code}]" in err
    assert not (folder / "clinic.ledger").exists()


@pytest.mark.slow
def test_criteria_that_are_not_met_are_an_error_with_its_own_status(folder: Path, capsys: Any) -> None:
    run(capsys, "publish", "example.toml", "--example")
    text = (folder / "example.toml").read_text()
    (folder / "example.toml").write_text(text.replace("at_most = 0.05", "at_most = 1e-9", 1))
    status, _, err = run(capsys, "publish", "example.toml", "out")
    assert status == 3
    assert "error [publish-not-accepted]" in err
    assert not (folder / "out").exists()


@pytest.mark.slow
def test_the_example_is_published(folder: Path, capsys: Any) -> None:
    status, out, _ = run(capsys, "publish", "--example", "example.toml")
    assert status == 0
    assert "example.toml" in out
    status, out, err = run(capsys, "publish", "example.toml", "out")
    assert status == 0, err
    assert "NOT MET" not in out
    status, out, _ = run(capsys, "verify", "out", "clinic.ledger")
    assert status == 0, out

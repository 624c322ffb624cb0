"""`discreet query --part` and `discreet explain --part`."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.cli import explain, query
from discreet.errors import InvalidArgument

POLICY = """
[ledger]
path = "clinic.ledger"
epsilon = 1.0
[unit]
person = "pid"
per = "month"
[tables.visits]
source = "visits.parquet"
rows_per_person = 1
[tables.visits.time]
column = "day"
block = "month"
"""
TEXT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def policy(tmp_path: Path) -> str:
    days = [datetime.date(2024, month, 1) for month in (1, 1, 2)]
    pq.write_table(pa.table({"pid": [1, 2, 1], "day": days}), tmp_path / "visits.parquet")
    (tmp_path / "clinic.toml").write_text(POLICY)
    return str(tmp_path / "clinic.toml")


def test_each_part_is_asked_and_charged_alone(policy: str, capsys: Any) -> None:
    for part in ("2024-01", "2024-02"):
        query.main(policy, TEXT, epsilon=1, parts=[part])
        assert f"Only rows in {part} count." in capsys.readouterr().out
    explain.main(policy, TEXT, epsilon=1, parts=["2024-03"], form="json")
    said = json.loads(capsys.readouterr().out)
    assert said["parts"] == ["2024-03"]
    assert said["fits"]
    explain.main(policy, TEXT, epsilon=1, form="json")
    assert not json.loads(capsys.readouterr().out)["fits"]
    query.main(policy, "SHOW TABLES", parts=["2024-02"])
    assert "nothing of ε = 1 remains" in capsys.readouterr().out


def test_a_part_that_cannot_be_is_refused(policy: str) -> None:
    with pytest.raises(InvalidArgument, match="A month is written"):
        query.main(policy, TEXT, epsilon=1, parts=["January"])

"""Answers on pages: what is computed for a page stays little, however long an answer is."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from contextlib import closing

import pytest

import discreet as dp
from discreet.gateway.console import results
from discreet.gateway.console.charts import Key, Measure, draw_chart, svg_file
from discreet.gateway.console.results import Result
from discreet.gateway.formats import answer_format
from discreet.gateway.remote_answer import RemoteAnswer


def result_of(groups: int, sql: str = "SELECT k, COUNT(*) AS n FROM t GROUP BY k") -> Result:
    """An answer with so many groups, as the vault sends it."""
    columns = {"id": {"type": "integer"}, "k": {"choices": list(range(groups))}}
    table = {"source": {"id": [1, 2], "k": [0, 1]}, "rows_per_person": 1, "columns": columns}
    policy = {"ledger": {"path": ":memory:", "epsilon": 10}, "unit": {"person": "id"}, "tables": {"t": table}}
    with closing(dp.connect(policy)) as database:
        return Result(answer_format(database.sql(sql, epsilon=1), "arrow", 0.95)[1])


def test_a_long_answer_is_not_written_out_for_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def written(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(RemoteAnswer, "as_json", written)
    found = result_of(500)
    assert (found.epsilon, found.left) == (1.0, 9.0)
    assert len(found.rows()) == results.MOST_ROWS


def test_a_very_long_answer_has_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MOST_DRAWN", 100)
    assert result_of(101).chart("many") is None
    assert result_of(100).chart("few") is not None


def test_signs_of_a_terminal_do_not_end_a_picture() -> None:
    keys = [Key("city", False, ["a\x00b", "c\x1b[31m", "\ufffe"])]
    measure = Measure("n\x08", [1.0, 2.0, 3.0], [0.0] * 3, [4.0] * 3)
    drawing = draw_chart(keys, [measure], title="SELECT '\x0b'")
    ET.fromstring(svg_file(drawing))

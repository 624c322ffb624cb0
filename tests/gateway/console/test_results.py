"""Answers on pages: what is computed for a page stays little, however long an answer is."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from contextlib import closing

import pytest

import discreet as dp
from discreet.gateway.console import results
from discreet.gateway.console.charts import MOST_BARS, Key, Measure, draw_chart, svg_file
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
    assert (found.guarantee, found.remaining) == ({"epsilon": 1.0}, {"epsilon": 9.0})
    assert len(found.rows()) == results.MOST_ROWS


def test_a_picture_looks_at_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def drawn(keys, measures, **given):
        seen.extend(len(one.values) for one in (*keys, *measures))
        return draw_chart(keys, measures, **given)

    monkeypatch.setattr(results, "draw_chart", drawn)
    monkeypatch.setattr(results, "MOST_DRAWN", 100)
    text = svg_file(result_of(300).chart("many"))
    assert seen == [100, 100]
    assert f"The first {MOST_BARS} groups are drawn" in text
    assert 'class="curve"' not in text  # a line would look like all of the answer
    assert 'class="curve"' in svg_file(result_of(100).chart("few"))


def test_signs_of_a_terminal_do_not_end_a_picture() -> None:
    keys = [Key("city", False, ["a\x00b", "c\x1b[31m", "\ufffe"])]
    measure = Measure("n\x08", [1.0, 2.0, 3.0], [0.0] * 3, [4.0] * 3)
    drawing = draw_chart(keys, [measure], title="SELECT '\x0b'")
    ET.fromstring(svg_file(drawing))

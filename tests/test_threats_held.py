"""Cases of the threat model that no other test is about."""

from __future__ import annotations

import logging
import math
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.engines.duckdb.engine import DuckDB
from discreet.mechanisms.learning.moments import Moments
from discreet.sql.schema import Column

from .test_threats_planted import CANARY, COLUMNS, GROUPED, TYPES, ledger_of, opened, table_of


def test_a_product_of_bounds_that_is_too_large_is_refused_at_planning() -> None:
    asked = opened(table_of("a"))
    with pytest.raises(dp.NotAllowed):
        asked.plan("SELECT SUM(far * far) AS s FROM t", epsilon=1)
    with pytest.raises(dp.NotAllowed):
        asked.sql("SELECT SUM(far * far) AS s FROM t", epsilon=1)
    assert asked.ledger.entries() == ()


def test_a_product_of_two_columns_up_to_a_hundred_moves_by_ten_thousand() -> None:
    """A regression multiplies feature and target: neither end of (0, 100) may be taken for both."""
    assert Moments(features=1, feature_norm=100, target_bound=100, product=1).sensitivity().exact >= 100 * 100
    measure = opened(table_of("a")).plan("SELECT SUM(x * x) AS s FROM t", epsilon=1).question.measures[0]
    assert measure.reach * measure.step >= 100 * 100


@pytest.mark.slow
def test_no_row_one_row_and_a_million_look_alike() -> None:
    """The same columns, types and number of rows."""
    many = np.arange(10**6)
    columns = [many, np.take(["a", "b"], many % 2), many % 200 * 1.0, many * 1.0, np.full(10**6, "1")]
    tables = [table_of(""), table_of("b"), pa.table(dict(zip(TYPES, columns, strict=True)))]
    shown = [opened(data).sql(GROUPED, epsilon=1).table for data in tables]
    assert all((one.schema, one.num_rows) == (shown[0].schema, 3) for one in shown)


def test_a_thousand_rows_of_one_person_show_no_key() -> None:
    """Groups that are not declared are chosen by people, not by rows."""
    alone = table_of("a" * 1000, "rare").set_column(0, "pid", pa.array([1000] * 1000))
    asked = opened(pa.concat_tables([table_of("a" * 300, "common"), alone]), rows=1000)
    with testing.no_noise():
        shown = asked.sql("SELECT s, COUNT(*) AS n FROM t GROUP BY s", epsilon=20, delta=1e-6).table
    assert shown.column("s").to_pylist() == ["common"]


@pytest.mark.parametrize("name", ["select", 'x"; DROP TABLE t; --', "it's"])
def test_names_that_are_words_or_statements_of_sql_are_names(name: str) -> None:
    columns = {"pid": COLUMNS["pid"], name: Column(name=name, type="integer", between=(0, 9))}
    asked = opened(pa.table({"pid": [1, 2, 3], name: [4, 5, 6]}), columns=columns)
    quoted = name.replace('"', '""')
    with testing.no_noise():
        shown = asked.sql(f'SELECT SUM("{quoted}") AS "{quoted}" FROM t', epsilon=1).table
    assert shown.column(name).to_pylist() == [15]


def test_what_remains_and_what_is_refused_depend_on_no_data() -> None:
    seen = []
    for keys in ("", "a", "abcabcabc"):
        asked = opened(table_of(keys, CANARY), ledger_of(limit=1.5))
        answer = asked.sql(GROUPED, epsilon=1)
        with pytest.raises(dp.BudgetExhausted) as caught:
            asked.sql(GROUPED, epsilon=0.6)
        remaining = (str(answer.remaining), str(asked.ledger.remaining), asked.ledger.spent)
        seen.append((remaining, str(caught.value), [entry.cost for entry in asked.ledger.entries()]))
    assert seen[0] == seen[1] == seen[2]


def test_a_question_that_is_cancelled_stays_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = opened(table_of("ab"))

    def cancelled(self: DuckDB, *given: Any) -> Any:
        raise KeyboardInterrupt

    asked.explain(GROUPED, epsilon=1)  # its statements are known to run
    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "_run", cancelled)
        with pytest.raises(KeyboardInterrupt):
            asked.sql(GROUPED, epsilon=1, key="k")
    spent = asked.ledger.spent
    assert [entry.state for entry in asked.ledger.entries()] == ["reserved"]
    asked.sql(GROUPED, epsilon=1, key="k")
    assert asked.ledger.spent == spent


def test_no_canary_is_in_a_log_a_file_or_what_is_printed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "clinic.ledger"
    asked = opened(table_of("abca", CANARY), ledger_of(place=path))
    said = [
        str(asked.sql(GROUPED, epsilon=1)),
        repr(asked),
        repr(asked.engine),
        repr(asked.explain(GROUPED, epsilon=1)),
    ]
    said.append(str(asked.sql("SELECT COUNT(DISTINCT s) AS n FROM t WHERE CAST(s AS INTEGER) > 1", epsilon=1)))
    with pytest.raises(dp.DiscreetError) as caught:
        asked.sql("SELECT s, COUNT(*) AS n FROM t", epsilon=1)
    said += ["".join(traceback.format_exception(caught.value)), caplog.text, *capfd.readouterr()]
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert len(kept) > 1000
    assert not any(CANARY in one for one in said)
    assert CANARY.encode() not in kept


@pytest.mark.parametrize("noise", [dp.Laplace(scale=3), dp.Gaussian(stddev=3)], ids=lambda one: type(one).__name__)
def test_errors_hold_in_a_hundred_thousand_releases(noise: Any) -> None:
    """Six deviations of the share have a false alarm below 1e-8; errors of 0.93 times their size would be found."""
    size = 10**5
    drawn = np.abs(noise._draw(np.zeros(size)))
    for confidence in (0.5, 0.95):
        slack = 6 * math.sqrt(confidence * (1 - confidence) / size)
        half = float(noise.error(confidence))
        assert (drawn <= half).mean() >= confidence - slack
        assert (drawn <= 0.93 * half).mean() < confidence - slack

"""What is computed from released numbers: windows, QUALIFY, DISTINCT, ties, and the errors of all of them."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet import testing
from discreet.sql.running import redrawn
from discreet.sql.running.intervals import Columns
from discreet.sql.running.redrawn import _Mixed

from ...refusing import refuses

GROUPS, EACH = 240, 6
SIZES = np.random.default_rng(3).integers(300, 500, GROUPS)
"""240 groups, in 40 parts of 6."""


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    people = np.repeat(np.arange(GROUPS), SIZES)
    table = pa.table({"pid": np.arange(len(people)), "part": people // EACH, "g": people % EACH})
    known = {"part": {"between": [0, GROUPS // EACH - 1]}, "g": {"between": [0, EACH - 1]}}
    path = tmp_path_factory.mktemp("released") / "t.parquet"
    pq.write_table(table, path)
    tables = {"t": {"source": str(path), "rows_per_person": 1, "columns": known}}
    words = {"ledger": {"path": ":memory:", "epsilon": 100_000}, "unit": {"person": "pid"}}
    return dp.connect(words | {"tables": tables})


COLUMNS = {
    "share": ("100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY part)", lambda n: 100 * n / n.sum(1, keepdims=True)),
    "running": ("SUM(COUNT(*)) OVER (PARTITION BY part ORDER BY g)", lambda n: n.cumsum(1)),
    "more": ("COUNT(*) - LAG(COUNT(*), 1, 0) OVER (PARTITION BY part ORDER BY g)", lambda n: np.diff(n, prepend=0)),
    "root": ("log10(COUNT(*))", np.log10),
    "most": ("MAX(COUNT(*)) OVER (PARTITION BY part)", None),
}


def misses(answer, name, truth):
    """Which rows of an answer miss the truth."""
    value, half = (np.array(answer.table.column(c).to_pylist(), float) for c in (name, f"{name}_error"))
    return np.abs(value - truth) > half * (1 + 1e-9)


@pytest.mark.slow
def test_errors_of_windows_hold_the_truth(asked):
    """Over 4 answers of 40 independent parts: a 95% that is fair is missed by so many more with probability 1e-7."""
    shown = ", ".join(f"{text} AS {name}" for name, (text, _) in COLUMNS.items())
    true = SIZES.reshape(-1, EACH).astype(float)
    missed = {name: [] for name in COLUMNS}
    for number in range(4):
        text = f"SELECT part, g, {shown} FROM t WHERE pid > -{number + 1} GROUP BY part, g ORDER BY part, g"
        answer = asked.sql(text, epsilon=0.5)
        for name, (_, computed) in COLUMNS.items():
            if computed is not None:
                missed[name].append(misses(answer, name, computed(true).reshape(-1)).reshape(-1, EACH).mean(1))
    slack = 5.2 * math.sqrt(0.05 * 0.95 / (4 * GROUPS // EACH))  # as if the rows of a part missed together
    for name, found in missed.items():
        if found:
            assert np.mean(found) <= 0.05 + slack, name
            assert np.mean(found) >= 0.01, f"{name}: far too wide"


@pytest.mark.slow
def test_errors_of_chosen_rows_hold_at_once(asked):
    """The largest of groups with noise are those with the largest noise: 25 answers, all ten rows of each."""
    true = SIZES.reshape(-1, EACH)
    missed = plain = 0
    for number in range(25):
        text = f"SELECT part, g, COUNT(*) AS n FROM t WHERE pid > -{100 + number} GROUP BY part, g"
        every = asked.sql(text, epsilon=0.02)
        few = asked.sql(f"{text} ORDER BY n DESC LIMIT 10", epsilon=0.02)
        assert few.release.replayed
        rows = few.table.to_pylist()
        places = [row["part"] * EACH + row["g"] for row in rows]
        missed += bool(misses(few, "n", true.reshape(-1)[places]).any())
        plain += bool(misses(every, "n", true.reshape(-1))[places].any())
    assert missed <= 9  # 5% of 25 is more than 9 with probability 2e-7
    assert plain > 12  # bars of single groups would not do


def test_what_chooses_rows_widens_only_the_columns_it_has_noise_of(asked):
    text = "SELECT part, COUNT(*) AS n, SUM(g) AS s FROM t GROUP BY part"
    plain, chosen = (asked.sql(text + more, epsilon=1).table for more in ("", " HAVING COUNT(*) > 0"))
    assert chosen["n_error"][0].as_py() > plain["n_error"][0].as_py()
    assert chosen["s_error"][0].as_py() == plain["s_error"][0].as_py()
    by_key = asked.sql(text + " ORDER BY part LIMIT 3", epsilon=1).table
    assert by_key["n_error"][0].as_py() == plain["n_error"][0].as_py()


def test_ranks_and_distinct_have_no_error_and_say_why(asked):
    ranked = asked.sql("SELECT g, RANK() OVER (ORDER BY COUNT(*)) AS r FROM t GROUP BY g", epsilon=1)
    assert ranked.table["r_error"].null_count == EACH
    assert "No ± for r" in str(ranked)
    sizes = "SELECT DISTINCT CASE WHEN COUNT(*) > 15000 THEN 1 ELSE 2 END AS size FROM t GROUP BY g"
    some = asked.sql(sizes, epsilon=1)
    assert "DISTINCT shows equal rows once" in str(some)
    assert some.table["size_error"].null_count == some.table.num_rows


def test_rows_that_are_equal_to_the_last_are_shown_too(asked):
    text = "SELECT g, part FROM t GROUP BY g, part HAVING COUNT(*) > 0 ORDER BY g FETCH FIRST 3 ROWS"
    with testing.no_noise():
        assert asked.sql(f"{text} ONLY", epsilon=1).table.num_rows == 3
        assert asked.sql(f"{text} WITH TIES", epsilon=1).table.num_rows == GROUPS // EACH


def test_the_same_measurement_with_other_windows_is_free(asked):
    first = asked.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=1)
    for text in (
        "SELECT g, SUM(COUNT(*)) OVER () AS n FROM t GROUP BY g",
        "SELECT g, COUNT(*) AS n FROM t GROUP BY g QUALIFY RANK() OVER (ORDER BY n) = 1",
        "SELECT DISTINCT COUNT(*) AS n FROM t GROUP BY g",
    ):
        again = asked.sql(text, epsilon=1)
        assert again.release.replayed
        assert again.receipt == first.receipt


def test_errors_are_the_same_each_time(asked):
    text = "SELECT g, SUM(COUNT(*)) OVER (ORDER BY g) AS n FROM t GROUP BY g"
    first, second = (asked.sql(text, epsilon=1).table for _ in range(2))
    assert first.equals(second)


def test_too_many_groups_have_no_simulated_error(asked, monkeypatch):
    monkeypatch.setattr(redrawn, "MOST_CELLS", 100 * EACH)
    table = asked.sql("SELECT g, SUM(COUNT(*)) OVER () AS n FROM t GROUP BY g", epsilon=1).table
    assert table["n_error"].null_count == EACH


def test_mixed_numbers_are_spread_evenly():
    mixed = _Mixed()
    first, second = mixed((1000, 100)), mixed((1000, 100))
    assert first.min() > 0
    assert first.max() < 1
    expected = math.sqrt(1 / 12 / first.size)
    assert abs(first.mean() - 0.5) < 5 * expected
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 5 / math.sqrt(first.size)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT g, RANK() OVER () AS r FROM t GROUP BY g", "sql-window"),
        ("SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING SUM(COUNT(*)) OVER () > 1", "sql-window"),
        ("SELECT g, NTILE(0) OVER (ORDER BY g) AS n FROM t GROUP BY g", "sql-limit"),
        ("SELECT g, LAG(COUNT(*), g) OVER (ORDER BY g) AS n FROM t GROUP BY g", "sql-limit"),
        ("SELECT g, SUM(pid) OVER () AS n FROM t GROUP BY g", "sql-shows-people"),
        ("SELECT g, LIST(COUNT(*)) OVER () AS n FROM t GROUP BY g", "sql-window"),
        ("SELECT g, SUM(COUNT(*)) OVER (ORDER BY g RANGE 2 PRECEDING) AS n FROM t GROUP BY g", "sql-window"),
        ("SELECT g, COUNT(*) AS n FROM t GROUP BY g FETCH FIRST 3 ROWS WITH TIES", "sql-limit"),
        ("SELECT DISTINCT ON (g) g, COUNT(*) AS n FROM t GROUP BY g", "sql-distinct"),
        ("SELECT g, printf('%1000000000d', COUNT(*)) AS n FROM t GROUP BY g", "sql-not-literal"),
        ("SELECT g, lpad('x', 1000000000, 'y') AS n, COUNT(*) AS m FROM t GROUP BY g", "sql-limit"),
        ("SELECT g, getenv('HOME') AS n, COUNT(*) AS m FROM t GROUP BY g", "sql-function"),
        ("SELECT g, SUM(SUM(COUNT(*)) OVER ()) OVER () AS n FROM t GROUP BY g", "sql-window"),
    ],
)
def test_what_is_not_a_window_is_refused_before_it_costs(asked, text, code):
    with refuses((dp.NotAllowed, dp.QueryError), code):
        asked.sql(text, epsilon=1)


@pytest.mark.slow
def test_mutant_chosen_rows_keep_the_errors_of_single_groups(asked, monkeypatch):
    monkeypatch.setattr(Columns, "is_chosen_by", lambda self, expr: False)
    with pytest.raises(AssertionError):
        test_errors_of_chosen_rows_hold_at_once(asked)


@pytest.mark.slow
def test_mutant_the_noise_is_drawn_once_for_all_groups(asked, monkeypatch):
    drawn = Columns.redrawn

    def together(self, part, draws, uniform):
        again = drawn(self, part, draws, uniform)
        return self.noisy[part] + (again - self.noisy[part])[:, :1]

    monkeypatch.setattr(Columns, "redrawn", together)
    with pytest.raises(AssertionError):
        test_errors_of_windows_hold_the_truth(asked)

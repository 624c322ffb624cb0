"""In a notebook: answers for other libraries, HTML, short tracebacks, and the `%%discreet` magic."""

from __future__ import annotations

import atexit
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import discreet as dp
from discreet import html, testing
from discreet.errors import EngineFailed

from ..refusing import refuses

ODD = "<script>alert('x')</script> & \"more\" </td>"
Clinic = Callable[[list[str]], Any]
BY_CITY = "SELECT city, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY city"
POLICY = """
[ledger]
path = "clinic.ledger"
epsilon = 10.0
[unit]
person = "pid"
[tables.visits]
source = "visits.parquet"
rows_per_person = 1
[tables.visits.columns.city]
choices = ["Acre", "Bled"]
"""


def visits(rows: int = 100) -> pa.Table:
    cities = ["Acre", "Bled"] * (rows // 2)
    return pa.table({"pid": range(rows), "city": cities, "cost": [float(row % 10) for row in range(rows)]})


@pytest.fixture
def clinic() -> Iterator[Clinic]:
    """Databases in memory, by the choices of their cities. They are closed after the test."""
    with ExitStack() as opened:
        yield lambda choices: opened.enter_context(closing(connected(choices)))


def connected(choices: list[str]) -> Any:
    columns = {"city": {"choices": choices}, "cost": {"between": [0, 10]}}
    words = {
        "ledger": {"path": ":memory:", "epsilon": 1000},
        "unit": {"person": "pid"},
        "tables": {"visits": {"source": visits(), "rows_per_person": 1, "columns": columns}},
    }
    return dp.connect(words)


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    """A shell of its own, with the magic loaded."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    one = InteractiveShell(config=config)
    one.run_line_magic("load_ext", "discreet")
    yield one
    one.run_line_magic("unload_ext", "discreet")
    atexit.unregister(one.atexit_operations)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    pyarrow.parquet.write_table(visits(), tmp_path / "visits.parquet")
    path = tmp_path / "clinic.toml"
    path.write_text(POLICY, "utf-8")
    return path


class Page(HTMLParser):
    """Which tags a page has, and what it says. A tag that is not closed in order is an error."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.said: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said.append(data)


# --- for other libraries ------------------------------------------------------------------------------------


def test_other_libraries_take_an_answer(clinic: Clinic) -> None:
    answer = clinic(["Acre", "Bled"]).sql(BY_CITY, epsilon=1)
    assert pa.table(answer) == answer.table
    assert pl.DataFrame(answer).equals(answer.to_polars())
    assert pd.DataFrame.from_arrow(answer).equals(answer.to_pandas())
    pd.testing.assert_frame_equal(pd.DataFrame(answer), answer.to_pandas(), check_dtype=False)
    assert duckdb.sql("SELECT sum(n) FROM answer").fetchall() == [(sum(row["n"] for row in answer),)]
    assert duckdb.sql("FROM answer").columns == ["city", "n", "n_error", "cost", "cost_error"]


def test_other_libraries_take_synthetic_rows() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("pid"), limit=dp.Approx(epsilon=10, delta=1e-3))
    table = dp.table(visits(), ledger=ledger, rows_per_person=1)
    rows = table.synthesize({"city": ["Acre", "Bled"]}, epsilon=5, delta=1e-4, rows=30)
    assert pa.table(rows) == rows.table
    assert len(pl.DataFrame(rows)) == 30


# --- as a page ----------------------------------------------------------------------------------------------


def test_answers_are_pages_with_errors_and_notes(clinic: Clinic) -> None:
    database = clinic(["Acre", ODD])
    answer = database.sql(BY_CITY, epsilon=1)
    page = Page(answer._repr_html_())
    assert "script" not in page.tags
    assert ODD in page.said, "the key is shown as text"
    shown = [answer.shown(row) for row in answer]
    assert {cell for row in shown for cell in row.values()} <= set(page.said)
    assert any("±" in text for text in page.said)
    assert set(answer.notes) <= set(page.said)
    assert len(answer.notes) > 0
    assert any(str(answer.cost) in text for text in page.said)


def test_a_long_answer_says_how_much_is_not_shown(clinic: Clinic) -> None:
    answer = clinic([f"city {number}" for number in range(html.MOST_ROWS + 7)]).sql(BY_CITY, epsilon=1)
    page = Page(answer._repr_html_())
    assert "… and 7 more rows" in page.said
    assert sum(text.startswith("city ") for text in page.said) == html.MOST_ROWS


def test_an_answer_made_in_test_mode_says_so(clinic: Clinic) -> None:
    with testing.no_noise():
        answer = clinic(["Acre", "Bled"]).sql(BY_CITY, epsilon=1)
    assert "NOT PRIVATE" in answer._repr_html_()


def test_plans_ledgers_and_databases_are_pages(clinic: Clinic) -> None:
    database = clinic(["Acre", ODD])
    explained = database.explain(BY_CITY, epsilon=1)
    said = Page(explained._repr_html_()).said
    assert all(column["name"] in said for column in explained.data["columns"])
    assert database.ledger.count == 0
    database.sql("SELECT COUNT(*) AS \"<b>n</b>\" FROM visits WHERE city = '<i>'", epsilon=1)
    for shown in (database, database.tables, database.tables["visits"], database.ledger):
        assert not Page(shown._repr_html_()).tags & {"script", "i"}
    ledger = Page(database.ledger._repr_html_()).said
    assert any("<b>n</b>" in text for text in ledger)
    assert any(str(database.ledger.remaining) in text for text in ledger)
    assert any(str(database.ledger.remaining) in text for text in Page(database._repr_html_()).said)
    assert "cost" in Page(database._repr_html_()).said
    assert "visits" in repr(database)


def test_an_analyst_sees_only_their_own_entries() -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=10))
    ada, bea = (ledger.for_analyst(name, limit=dp.Pure(epsilon=1)) for name in ("ada", "bea"))
    for account, asked in ((ada, "asked by ada"), (bea, "asked by bea")):
        account.charge(dp.Pure(epsilon=0.1), asked=asked)
    assert "asked by ada" in ada._repr_html_()
    assert "asked by bea" not in ada._repr_html_()
    assert "asked by bea" in ledger._repr_html_()


def test_pages_have_no_colors_of_their_own(clinic: Clinic) -> None:
    """So they can be read on a dark page, too."""
    database = clinic(["Acre", "Bled"])
    answer = database.sql(BY_CITY, epsilon=1)
    for shown in (answer, database, database.ledger, database.explain(BY_CITY, epsilon=1)):
        assert not re.search(r"color|background|#[0-9a-f]{3}", shown._repr_html_())


# --- errors -------------------------------------------------------------------------------------------------


def test_a_traceback_has_the_lines_of_the_cell_and_none_of_the_package(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], clinic: Clinic
) -> None:
    shell.user_ns["clinic"] = clinic(["Acre", "Bled"])
    done = shell.run_cell("x = 1\nclinic.sql('SELECT cost FROM visits', epsilon=1)")
    assert isinstance(done.error_in_exec, dp.NotAllowed)
    out, err = capsys.readouterr()
    shown = out + err
    assert "line 2: clinic.sql('SELECT cost FROM visits', epsilon=1)" in shown
    assert f"NotAllowed [{done.error_in_exec.code}]" in shown
    assert "^" in shown
    assert "discreet/" not in shown
    assert len(shown.splitlines()) < 8


def test_the_lines_of_a_called_file_are_shown(
    shell: InteractiveShell, tmp_path: Path, capsys: Any, clinic: Clinic
) -> None:
    (tmp_path / "weekly.py").write_text("def asked(clinic):\n    return clinic.sql('SELECT 1', epsilon=-1)\n")
    shell.user_ns["clinic"] = clinic(["Acre", "Bled"])
    shell.run_cell(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport weekly\nweekly.asked(clinic)")
    shell.run_cell(f"sys.path.remove({str(tmp_path)!r}); del sys.modules['weekly']")
    out, err = capsys.readouterr()
    assert "line 3: weekly.asked(clinic)" in out + err
    assert "weekly.py, line 2: return clinic.sql('SELECT 1', epsilon=-1)" in out + err


# --- the magic ----------------------------------------------------------------------------------------------


def test_a_cell_of_sql_is_answered(shell: InteractiveShell, policy: Path) -> None:
    cell = "SELECT city, COUNT(*) AS n\nFROM visits\nGROUP BY city"
    answer = shell.run_cell_magic("discreet", f"{policy} --epsilon 1 --out found", cell)
    assert answer.table.column_names == ["city", "n", "n_error"]
    assert shell.user_ns["found"] is answer
    assert float(answer.cost.largest_loss) == 1
    again = shell.run_cell_magic("discreet", f"{policy} --epsilon 1", cell)
    assert again.replayed
    assert again.table == answer.table
    shown = shell.run_line_magic("discreet", str(policy))
    assert list(shown.tables) == ["visits"]
    assert "ε = 9" in repr(shown)


def test_a_variable_may_hold_the_database(shell: InteractiveShell, clinic: Clinic) -> None:
    shell.user_ns["clinic"] = clinic(["Acre", "Bled"])
    count = "SELECT COUNT(*) AS n, COUNT(DISTINCT pid) AS m FROM visits"
    answer = shell.run_cell_magic("discreet", "clinic --within n=20 --within m=30 --weight n=2 --confidence .9", count)
    assert answer.cost.largest_loss < 1
    explained = shell.run_cell_magic("discreet", "clinic --epsilon 2 --explain", count)
    assert explained.data["question"]
    assert shell.user_ns["clinic"].ledger.count == 1


def test_a_cell_may_ask_for_tables(shell: InteractiveShell, policy: Path) -> None:
    assert list(shell.run_cell_magic("discreet", str(policy), "SHOW TABLES")) == ["visits"]
    assert shell.run_cell_magic("discreet", str(policy), "DESCRIBE visits\n").name == "visits"


def test_a_changed_policy_is_read_again(shell: InteractiveShell, policy: Path) -> None:
    assert list(shell.run_line_magic("discreet", str(policy)).tables) == ["visits"]
    policy.write_text(POLICY.replace("tables.visits", "tables.stays"), "utf-8")
    assert list(shell.run_line_magic("discreet", str(policy)).tables) == ["stays"]


@pytest.mark.parametrize(
    "line",
    [
        "clinic --eps 1",
        "clinic --epsilon much",
        "clinic --epsilon 1 --within 5",
        "clinic --epsilon 1 --within n=x",
        "clinic --epsilon 1 --out 'two words'",
        "clinic 'open",
        "clinic more --epsilon 1",
        "clinic --epsilon 1 --analyst ada",
    ],
)
def test_odd_options_are_refused(shell: InteractiveShell, line: str, clinic: Clinic) -> None:
    shell.user_ns["clinic"] = clinic(["Acre", "Bled"])
    with refuses(dp.InvalidArgument, "magic-options"):
        shell.run_cell_magic("discreet", line, "SELECT COUNT(*) FROM visits")
    assert shell.user_ns["clinic"].ledger.count == 0


def test_an_unloaded_magic_is_gone(shell: InteractiveShell, policy: Path) -> None:
    database = shell.run_line_magic("discreet", str(policy))
    shell.run_line_magic("unload_ext", "discreet")
    assert shell.find_cell_magic("discreet") is None
    assert shell.find_line_magic("discreet") is None
    with refuses(EngineFailed, "engine-failed"):
        database.engine.rows("SELECT 1")


# --- seeded bugs --------------------------------------------------------------------------------------------


def test_mutant_text_is_not_escaped(monkeypatch: pytest.MonkeyPatch, clinic: Clinic) -> None:
    answer = clinic(["Acre", "<script>x</script>"]).sql(BY_CITY, epsilon=1)
    assert "script" not in Page(answer._repr_html_()).tags
    monkeypatch.setattr(html, "escape", lambda text: text)
    assert "script" in Page(answer._repr_html_()).tags


def test_mutant_an_analyst_sees_all_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Pure(epsilon=10))
    ada, bea = (ledger.for_analyst(name, limit=dp.Pure(epsilon=1)) for name in ("ada", "bea"))
    bea.charge(dp.Pure(epsilon=0.1), asked="asked by bea")
    assert "asked by bea" not in ada._repr_html_()
    monkeypatch.setattr(type(ada), "entries", lambda self, first, last: ledger._walk(first, last))
    assert "asked by bea" in ada._repr_html_()

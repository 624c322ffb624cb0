"""Text files as their owner declares them: compressed, without names, with any separator, dates and decimal commas."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.text_format import TextFormat, parsing_pattern, shape_of
from discreet.errors import InvalidArgument

from ...refusing import refuses

NAMES = ("who", "weight", "day")
TYPES = {"who": "text", "weight": "number", "day": "date"}


def read(path: Path, content: str | bytes, declared: TextFormat | None = None, types: Any = TYPES) -> list[Any]:
    """The rows of a file."""
    plain = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(plain) if path.suffix == ".gz" else plain)
    formats = {} if declared is None else {"t": declared}
    engine = DuckDB({"t": path}, types={"t": types}, formats=formats)
    return engine.rows(f"SELECT * REPLACE (CAST(day AS VARCHAR) AS day) FROM {engine.relations['t']} ORDER BY ALL")


ROWS = [("a", 1.5, "2024-03-05"), ("b", 2.0, None)]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("t.csv.gz", "who,weight,day\na,1.5,2024-03-05\nb,2,\n", {}),
        ("t.tsv.gz", "who\tweight\tday\na\t1.5\t2024-03-05\nb\t2\t\n", {}),
        ("t.txt", "who;weight;day\na;1.5;2024-03-05\nb;2;\n", {}),
        ("t.txt", "who  weight day\n a   1.5 2024-03-05 \n\nb 2\n", {}),
        ("t.txt.gz", "a   1.5\t2024-03-05\r\n  \r\n b 2\r\n", {"header": False, "separator": " "}),
        ("t.csv", "a,1.5,2024-03-05\nb,2\n", {"header": False, "separator": ","}),
        ("t.csv", "a;1,5;05.03.2024\nb;2;5/3/2024\n", {"header": False, "separator": ";", "decimal": ","}),
        ("t.csv", "who~weight~day\na~1.5~5.3.2024\nb~2~31.02.2024\n", {"separator": "~"}),
    ],
)
def test_files_of_many_kinds_have_the_same_rows(name: str, text: str, words: Any, tmp_path: Path) -> None:
    names = NAMES if words.get("header") is False else ()
    dates = {"day": "dd.mm.yyyy"} if ".2024" in text else {}
    assert read(tmp_path / name, text, TextFormat(**words, names=names, dates=dates)) == ROWS


def test_json_may_be_compressed_and_have_dates_of_its_own(tmp_path: Path) -> None:
    lines = "".join(
        json.dumps(one) + "\r\n" for one in ({"who": "a", "weight": 1.5, "day": "05-MAR-2024"}, {"who": "b"})
    )
    found = read(tmp_path / "t.jsonl.gz", lines, TextFormat(dates={"day": "dd-mon-yyyy"}))
    assert found == [("a", 1.5, "2024-03-05"), ("b", None, None)]


ENDS = (("\n", "\r\n", "\n"), ("\r\n", "\r", "\n"), ("\r\n", "\r\n", "\r\n"), ("\r", "\r", "\r"), ("\n", "\r", "\r\n"))


def test_a_line_is_one_row_however_it_ends(tmp_path: Path) -> None:
    """However it ends, and whatever lines before it do: a row must neither count twice nor take others with it."""
    for at, ends in enumerate(ENDS):
        rows = ["1 {0}", "2 {0}", "3 {0}"]
        texts = {"one.csv": ["x", "1", "2", "3"], "t.csv": ["x,y", "1,{0}", "2,{0}", "3,{0}"], "b.txt": ["x y", *rows]}
        texts["o.json"] = [json.dumps({"x": n}) for n in (1, 2, 3)]
        for name, lines in texts.items():
            each = (*ends[: len(lines) - 3], *ends)
            path = tmp_path / f"{at}{name}"
            path.write_text("".join(f"{line}{end}" for line, end in zip(lines, each, strict=True)), newline="")
            engine = DuckDB({"t": path}, types={"t": {"x": "integer"}})
            counted = engine.rows(f"SELECT count(*), sum(x) FROM {engine.relations['t']}")
            assert (name, ends, counted) == (name, ends, [(3, 6)])


@pytest.mark.parametrize(
    ("cell", "day"),
    [
        ("05.03.2024", "2024-03-05"),
        (" 5.3.2024 ", "2024-03-05"),
        *dict.fromkeys(
            ("31.02.2024", "05.03.24", "infinity", "epoch", "2024-03-05", "05.03.20240", "x5.03.2024")
        ).items(),
    ],
)
def test_a_date_is_what_its_format_says_or_null(cell: str, day: str | None, tmp_path: Path) -> None:
    found = read(tmp_path / "t.csv", f"who,weight,day\na,1,{cell}\n", TextFormat(dates={"day": "dd.mm.yyyy"}))
    assert found == [("a", 1.0, day)]


def test_a_format_is_a_pattern_and_no_regular_expression() -> None:
    assert parsing_pattern("DD.MM.YYYY hh:mi") == "%d.%m.%Y %H:%M"
    assert shape_of("dd.mon(yyyy") == r"\d{1,2}\.[A-Za-z]{3}\(\d{4}"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"separator": "::"}, "format-separator"),
        ({"separator": "a"}, "format-separator"),
        ({"separator": 3}, "format-separator"),
        ({"header": False, "names": ["a"]}, "format-separator"),
        ({"header": False, "separator": ","}, "format-names"),
        ({"header": False, "separator": ",", "names": ["a", "A "]}, "format-names"),
        ({"names": ["a"]}, "format-names"),
        ({"header": "no"}, "wrong-type"),
        ({"decimal": "'"}, "not-an-option"),
    ],
)
def test_a_format_that_cannot_be_is_refused(words: Any, code: str) -> None:
    with refuses(InvalidArgument, code):
        TextFormat(**words)


def clinic(table: Any, **engine: Any) -> Any:
    words: Any = {"ledger": {"path": ":memory:", "epsilon": 9}, "unit": {"row": True}, "tables": {"t": table}}
    return dp.connect(words | ({"engine": engine} if engine else {}))


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ({"format": "d.m.y"}, "format-date"),
        ({"format": "dd.mm.yyyy.dd"}, "format-date"),
        ({"format": "dd.mm.yyyy %Y"}, "format-date"),
        ({"format": 7}, "format-date"),
        ({"format": "dd.mm.yyyy", "type": "number"}, "format-date"),
    ],
)
def test_a_format_of_dates_that_cannot_be_is_refused(column: Any, code: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("day,x\n05.03.2024,1\n")
    with refuses(InvalidArgument, code):
        clinic({"source": str(tmp_path / "t.csv"), "columns": {"day": column}})


def test_a_format_is_for_text_files(tmp_path: Path) -> None:
    with refuses(InvalidArgument, "format-not-text"):
        clinic({"source": {"day": ["x"]}, "columns": {"day": {"format": "dd.mm.yyyy"}}})
    (tmp_path / "t.json").write_text("{}\n")
    with refuses(InvalidArgument, "format-not-text"):
        clinic({"source": str(tmp_path / "t.json"), "format": {"decimal": ","}, "columns": {"x": {"type": "number"}}})
    with refuses(InvalidArgument, "format-not-text"):
        table = {"source": "a.b", "format": {"separator": ";"}}
        clinic(table, kind="postgres", url="postgresql://localhost/x")


def test_a_format_is_part_of_what_identifies_an_answer(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("day,x\n05.03.2024,1\n")
    columns = [{"format": "dd.mm.yyyy"}, {"format": "mm.dd.yyyy"}]
    made = [clinic({"source": str(tmp_path / "t.csv"), "columns": {"day": one}}) for one in columns]
    assert made[0].planner.policy != made[1].planner.policy
    assert made[0].schema.tables["t"].columns["day"].type == "date"


def test_a_damaged_archive_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    for content in (b"no archive", gzip.compress(b"a,b\n1,2\n" * 99)[:12]):
        (tmp_path / "t.csv.gz").write_bytes(content)
        with refuses(InvalidArgument, "source-unreadable"):
            DuckDB({"t": tmp_path / "t.csv.gz"})


def test_no_row_is_taken_for_names(tmp_path: Path) -> None:
    declared = TextFormat(header=False, separator=",", names=NAMES)
    assert len(read(tmp_path / "t.csv", "a,1,\nb,2,\n", declared)) == 2

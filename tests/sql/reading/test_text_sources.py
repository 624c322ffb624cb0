"""CSV and JSON sources: types are declared and never guessed from private rows, and no row can stop a question."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import DiscreetError, InvalidArgument, QueryError

from ...refusing import refuses

CANARY = "canary-7c1e"
HEADER = b"patient_id,city,cost,day,smokes\n"
ROWS = b"".join(
    b"%d,%s,%d,2024-01-%02d,true\n" % (n, b"Haifa" if n % 2 else b"Koper", n, 1 + n % 28) for n in range(40)
)
POLICY = {
    "cost": {"between": [0, 100]},
    "city": {"choices": ["Haifa", "Koper"]},
    "day": {"between": ["2024-01-01", "2024-12-31"]},
    "smokes": {"type": "boolean"},
}
TYPES = {"patient_id": "text", "city": "text", "cost": "number", "day": "date", "smokes": "boolean"}
QUESTIONS = (
    "SELECT COUNT(*) AS n, SUM(cost) AS cost, AVG(cost) AS mean, MEDIAN(cost) AS middle FROM visits",
    "SELECT city, COUNT(DISTINCT patient_id) AS people FROM visits GROUP BY city",
    "SELECT COUNT(*) FILTER (WHERE smokes AND day >= DATE '2024-01-02') AS n FROM visits WHERE patient_id <> '5'",
)
BAD = {
    "text for a number": b"41,Haifa,canary-7c1e,2024-01-01,true\n",
    "no date": b"41,Haifa,5,canary-7c1e,true\n",
    "neither true nor false": b"41,Haifa,5,2024-01-01,canary-7c1e\n",
    "too large a number": b"41,Haifa,1e999,2024-01-01,true\n",
    "too few fields": b"41,Haifa\n",
    "too many fields": b"41,Haifa,5,2024-01-01,true,canary-7c1e,6,7\n",
    "an empty line": b"\n",
    "no text at all": b"41,canary-7c1e\xff\xfe,5,2024-01-01,true\n",
    "a zero byte": b"41,Hai\x00fa,5,2024-01-01,true\n",
    "an open quote": b'41,"canary-7c1e,5,2024-01-01,true\n',
    "a quote inside": b'41,can"ary-7c1e,5,2024-01-01,true\n',
    "a quote closed too early": b'41,"canary"-7c1e,5,2024-01-01,true\n',
    "another line ending": b"41,Haifa,5,2024-01-01,true\r\n",
    "a line break in quotes": b'41,"Hai\nfa",5,2024-01-01,true\n',
    "a long line": b"41," + b"x" * 3_000_000 + b",5,2024-01-01,true\n",
}


def clinic(path: Path, columns: dict[str, Any] = POLICY) -> Any:
    visits = {"source": str(path), "rows_per_person": 1, "columns": columns}
    words = {"ledger": {"path": ":memory:", "epsilon": 1000}, "unit": {"person": "patient_id"}}
    return dp.connect(words | {"tables": {"visits": visits}})


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def shape(path: Path, columns: dict[str, Any] = POLICY) -> Any:
    """What an analyst sees beside the noisy values: types, names, numbers of rows, or the words of an error."""
    asked = clinic(path, columns)
    seen: list[Any] = [{name: c.type for name, c in asked.schema.tables["visits"].columns.items()}]
    for question in (*QUESTIONS, "SELECT SUM(city) FROM visits", "SELECT COUNT(*) FROM visits WHERE cost = 'x'"):
        try:
            table = asked.sql(question, epsilon=1).table
            seen.append((table.column_names, table.schema.types, table.num_rows))
        except DiscreetError as error:
            seen.append((type(error).__name__, str(error)))
    assert CANARY not in str(seen)
    return [*seen, asked.ledger.spent]


# --- no row can stop a question -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def good_rows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What is seen of the rows that are all good."""
    return shape(written(tmp_path_factory.mktemp("good") / "good.csv", HEADER + ROWS))


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("where", ["first", pytest.param("last", marks=pytest.mark.slow)])
def test_a_bad_row_changes_nothing_that_is_seen(bad: bytes, where: str, tmp_path: Path, good_rows: Any) -> None:
    rows = bad + ROWS if where == "first" else ROWS + bad
    good = good_rows
    assert good[0] == TYPES
    assert shape(written(tmp_path / "bad.csv", HEADER + rows)) == good


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("rows", [b"", b"\n\n", b"\xff\xfe\n", ROWS[:20]])
def test_a_header_is_enough(rows: bytes, tmp_path: Path, good_rows: Any) -> None:
    good = good_rows
    assert shape(written(tmp_path / "few.csv", HEADER + rows)) == good
    assert shape(written(tmp_path / "none.csv", HEADER.rstrip())) == good


def test_a_late_row_of_another_type(tmp_path: Path) -> None:
    many = b"".join(b"%d,Haifa,1,2024-01-01,true\n" % n for n in range(100_000))
    path = written(tmp_path / "late.csv", HEADER + many + BAD["text for a number"].replace(b"41", b"-1"))
    with testing.no_noise():
        found = clinic(path).sql("SELECT COUNT(cost) AS n, SUM(cost) AS cost FROM visits", epsilon=1).table
    assert (found["n"][0].as_py(), found["cost"][0].as_py()) == (100_000, 100_000)


def test_good_rows_beside_bad_ones_are_read(tmp_path: Path) -> None:
    path = written(tmp_path / "bad.csv", HEADER + b"".join(b for n, b in BAD.items() if "quote" not in n) + ROWS)
    with testing.no_noise():
        found = clinic(path).sql("SELECT COUNT(DISTINCT patient_id) AS n FROM visits", epsilon=1).table
    assert found["n"][0].as_py() == 41


@pytest.mark.parametrize("sniffed", [(), ("t",)])
def test_a_cast_drops_no_row(sniffed: tuple[str, ...], tmp_path: Path) -> None:
    """The engine would have the reader of the file do it, which drops the row or fails."""
    path = written(tmp_path / "v.csv", HEADER + BAD["text for a number"] + ROWS)
    engine = DuckDB({"t": path}, sniffed=sniffed)
    shown = "count(*), count(TRY_CAST(cost AS DOUBLE)), count(TRY_CAST(city AS DATE))"
    assert engine.rows(f"SELECT {shown} FROM {engine.relations['t']}") == [(41, 40, 0)]
    with testing.no_noise():
        found = clinic(path).sql("SELECT COUNT(*) AS n, COUNT(cost) AS known, SUM(cost) AS cost FROM visits", epsilon=1)
    assert found.table.select(["n", "known"]).to_pylist() == [{"n": 41, "known": 40}]


@pytest.mark.slow
def test_what_one_person_wrote_is_no_row_of_another(tmp_path: Path) -> None:
    """Read in parallel, the engine takes lines inside of quotes for rows: their writer would count for anybody."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for person in range(400):
        writer.writerow([person, "\n1,Haifa,3,2024-01-01,true" * 4000, 1, "2024-01-01", "true"])
    path = written(tmp_path / "notes.csv", HEADER + text.getvalue().encode())
    assert path.stat().st_size > 2**25
    engine = DuckDB({"t": path})
    assert engine.rows(f"SELECT count(*), count(DISTINCT patient_id) FROM {engine.relations['t']}") == [(400, 400)]


# --- types are declared ---------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["1", "1.5", "x", "2024-01-01", "true", ""])
def test_types_do_not_depend_on_the_rows(value: str, tmp_path: Path) -> None:
    path = written(tmp_path / "v.csv", HEADER + ",".join([value] * 5).encode() * 3)
    assert {name: c.type for name, c in clinic(path).schema.tables["visits"].columns.items()} == TYPES
    assert DuckDB({"t": path}).columns("t") == dict.fromkeys(TYPES, "text")


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({}, "text"),
        ({"between": [0, 5]}, "number"),
        ({"between": [0, 5], "choices": [1, 2]}, "integer"),
        ({"between": ["2024-01-01", "2024-12-31"]}, "date"),
        ({"between": ["2024-01-01", "2024-12-31T12:00"]}, "timestamp"),
        ({"choices": [1, 2]}, "integer"),
        ({"choices": [1, 2.5]}, "number"),
        ({"choices": ["1", "2"]}, "text"),
        ({"choices": [True]}, "boolean"),
        ({"type": "integer", "between": [0, 5]}, "integer"),
        ({"type": "timestamp", "between": ["2024-01-01", "2024-12-31"]}, "timestamp"),
        ({"type": "date", "choices": ["2024-01-01"]}, "date"),
    ],
)
def test_the_type_is_declared_or_that_of_the_bounds_or_text(told: dict[str, Any], kind: str, tmp_path: Path) -> None:
    path = written(tmp_path / "v.csv", b"patient_id,x\n1,2\n")
    assert clinic(path, {"x": told}).schema.tables["visits"].columns["x"].type == kind


def test_a_type_that_is_not_known_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "v.csv", HEADER)
    for kind in ("float", "other", 3, ["text"], True):
        with refuses(InvalidArgument, "not-an-option"):
            clinic(path, {"cost": {"type": kind}})
    with refuses(InvalidArgument, "column-no-range"):
        clinic(path, {"cost": {"type": "text", "between": [0, 1]}})
    with refuses(InvalidArgument, "column-choices-type"):
        clinic(path, {"cost": {"type": "integer", "choices": ["a"]}})


def test_a_source_with_types_keeps_its_own() -> None:
    words = {"ledger": {"path": ":memory:", "epsilon": 1}, "unit": {"row": True}}
    table = {"source": {"age": np.array([1, 2])}, "columns": {"age": {"type": "integer"}}}
    assert dp.connect(words | {"tables": {"t": table}}).schema.tables["t"].columns["age"].type == "integer"
    table["columns"] = {"age": {"type": "number"}}
    with refuses(InvalidArgument, "column-type"):
        dp.connect(words | {"tables": {"t": table}})


def test_another_type_is_another_question(tmp_path: Path) -> None:
    path, texts = written(tmp_path / "v.csv", HEADER + ROWS), set()
    for kind in ("integer", "number", "text"):
        texts.add(clinic(path, {"cost": {"type": kind}}).planner.policy)
    assert len(texts) == 3


def test_a_public_file_is_sniffed_unless_its_types_are_declared(tmp_path: Path) -> None:
    written(tmp_path / "v.csv", HEADER + ROWS)
    written(tmp_path / "zip.csv", b"zip,area\n01234,5\n02345,6\n")
    words = {"ledger": {"path": ":memory:", "epsilon": 1}, "unit": {"person": "patient_id"}}
    visits = {"source": str(tmp_path / "v.csv"), "rows_per_person": 1}
    zips: dict[str, Any] = {"source": str(tmp_path / "zip.csv"), "public": True}
    found = dp.connect(words | {"tables": {"v": visits, "z": zips}}).schema.tables["z"].columns
    assert found["area"].type == "integer"
    zips["columns"] = {"zip": {"type": "text"}}
    found = dp.connect(words | {"tables": {"v": visits, "z": zips}}).schema.tables["z"].columns
    assert found["zip"].choices == ("01234", "02345")


def test_what_to_do_about_text_is_said(tmp_path: Path) -> None:
    asked = clinic(written(tmp_path / "v.csv", HEADER + ROWS), {})
    with refuses(QueryError, "sql-not-a-number"):
        asked.sql("SELECT SUM(cost) FROM visits", epsilon=1)
    with testing.no_noise():
        cast = "SELECT SUM(LEAST(GREATEST(CAST(cost AS DOUBLE), 0), 100)) AS cost FROM visits"
        assert asked.sql(cast, epsilon=1).table["cost"][0].as_py() == sum(range(40))


# --- names are those of the first line ------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"patient_id,,cost\n",
        b"patient_id,cost,Cost\n",
        b"patient_id,17\n",
        b"1,canary-7c1e,3.5\n",
        b"patient_id,canary-7c1e\xff\n",
        b"patient_id," + b"x" * 200_000,
    ],
)
def test_a_file_must_begin_with_names(text: bytes, tmp_path: Path) -> None:
    with refuses(InvalidArgument, "source-header") as error:
        DuckDB({"t": written(tmp_path / "v.csv", text)})
    assert CANARY not in str(error.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("v.csv", b'patient_id,note\n1,a\n2,"b, c"\n'),
        ("v.csv", b'\xef\xbb\xbfpatient_id,note\n1,a\n2,"b, c"\n'),
        ("v.csv", b"patient_id;note\n1;a\n2;b, c\n"),
        ("v.csv", b"patient_id|note\r\n1|a\r\n2|b, c\r\n"),
        ("v.tsv", b"patient_id\tnote\n1\ta\n2\tb, c\n"),
        ("v.jsonl", b'{"patient_id": 1, "note": "a"}\n{"note": "b, c", "patient_id": "2"}\n'),
        ("v.json", b'\xef\xbb\xbf{"patient_id": 1, "note": "a"}\r\n{"note": "b, c", "patient_id": 2}'),
    ],
)
def test_files_that_hold_the_same_read_the_same(name: str, text: bytes, tmp_path: Path) -> None:
    types = {"patient_id": "integer", "note": "text"}
    engine = DuckDB({"t": written(tmp_path / name, text)}, types={"t": types})
    assert engine.columns("t") == types
    found = engine.rows(f"SELECT * FROM {engine.relations['t']} ORDER BY patient_id NULLS LAST")
    assert found == [(1, "a"), (2, "b, c")] if not text.startswith(b"\xef\xbb\xbf{") else found[-1:] == [(2, "b, c")]


def test_odd_names_are_names(tmp_path: Path) -> None:
    names = ['a "b"', "it's", "select", "x/y~z", "ünï", "{a: 1}", "found", "line"]
    text = io.StringIO()
    csv.writer(text).writerows([names, range(len(names))])
    types = dict.fromkeys(names, "integer")
    rows = written(tmp_path / "v.csv", text.getvalue().encode())
    objects = written(tmp_path / "v.json", json.dumps({name: n for n, name in enumerate(names)}).encode())
    for path in (rows, objects):
        engine = DuckDB({"t": path}, types={"t": types})
        assert engine.columns("t") == types
        assert engine.rows(f"SELECT * FROM {engine.relations['t']}") == [tuple(range(len(names)))]


def test_a_folder_of_files_has_one_header(tmp_path: Path) -> None:
    folder = tmp_path / "city=Haifa"
    folder.mkdir()
    for part in range(3):
        written(folder / f"{part}.csv", HEADER + ROWS)
    engine = DuckDB({"t": tmp_path})
    assert list(engine.columns("t")) == list(TYPES)
    assert engine.rows(f"SELECT count(*) FROM {engine.relations['t']}") == [(120,)]
    written(folder / "3.csv", b"city,patient_id,cost,day,smokes\n" + ROWS)
    with refuses(InvalidArgument, "source-files-differ"):
        DuckDB({"t": tmp_path})


# --- JSON -----------------------------------------------------------------------------------------------

OBJECTS = b"".join(
    b'{"patient_id": %d, "city": "Haifa", "cost": %d, "day": "2024-01-01", "smokes": true}\n' % (n, n)
    for n in range(40)
)
BAD_OBJECTS = {
    "no object": b"5\n",
    "a list": b"[1, 2]\n",
    "cut off": b'{"patient_id": 41, "city": "canary-7c1e\n',
    "not text": b'{"patient_id": 41, "city": "canary-7c1e\xff"}\n',
    "half a pair": b'{"patient_id": 41, "city": "\\ud800"}\n',
    "other types": b'{"patient_id": {"a": "canary-7c1e"}, "city": [1], "cost": "x", "day": 7, "smokes": 7}\n',
    "other names": b'{"canary-7c1e": 5}\n',
    "twice the same": b'{"patient_id": 41, "patient_id": 42, "cost": 1e999}\n',
    "deep": b'{"patient_id": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "long": b'{"patient_id": "' + b"x" * 20_000_000 + b'"}\n',
    "nothing": b"\n",
    "a control character": b'{"patient_id": "\x01", "city": 5}\n',
}


@pytest.fixture(scope="module")
def good_objects(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What is seen of the objects that are all good, which is what is seen of none."""
    good = shape(written(tmp_path_factory.mktemp("good") / "good.json", OBJECTS))
    assert shape(written(tmp_path_factory.mktemp("good") / "none.json", b"")) == good
    return good


@pytest.mark.slow
@pytest.mark.parametrize("bad", BAD_OBJECTS.values(), ids=BAD_OBJECTS)
def test_a_bad_object_changes_nothing_that_is_seen(bad: bytes, tmp_path: Path, good_objects: Any) -> None:
    good = good_objects
    assert good[0] == {**{name: TYPES[name] for name in POLICY}, "patient_id": "text"}
    assert shape(written(tmp_path / "bad.json", OBJECTS + bad + OBJECTS)) == good
    assert shape(written(tmp_path / "worse.json", bad)) == good


def test_objects_are_read(tmp_path: Path) -> None:
    path = written(tmp_path / "v.json", b"".join(BAD_OBJECTS.values()) + OBJECTS)
    with testing.no_noise():
        found = clinic(path).sql("SELECT COUNT(*) AS n, SUM(cost) AS cost FROM visits WHERE smokes", epsilon=1).table
    assert (found["n"][0].as_py(), found["cost"][0].as_py()) == (40, sum(range(40)))


def test_json_without_declared_columns_is_refused(tmp_path: Path) -> None:
    with refuses(InvalidArgument, "source-types"):
        DuckDB({"t": written(tmp_path / "v.json", OBJECTS)})


@pytest.mark.parametrize("first", [b'[{"a": 7}]\n', b'\n [ {"a": 7},\n', b"\xef\xbb\xbf[{\n", b"[[\n"])
def test_no_line_decides_whether_a_file_of_objects_is_opened(first: bytes, tmp_path: Path) -> None:
    """One person's line, the first of the file, is a row without values."""
    path = written(tmp_path / "v.json", first + b'{"a": 1}\n{"a": 2}\n')
    engine = DuckDB({"t": path}, types={"t": {"a": "integer"}})
    assert engine.rows(f"SELECT sum(a) FROM {engine.relations['t']}") == [(3,)]


# --- by methods -----------------------------------------------------------------------------------------


def opened(path: Path, **terms: Any) -> dp.tables.PrivateTable:
    ledger = dp.Ledger.open(":memory:", protects=dp.person("patient_id"), limit=dp.Pure(epsilon=100))
    return dp.table(path, ledger=ledger, rows_per_person=1, **terms)


@pytest.mark.parametrize("types", [None, {"cost": "integer"}, {"cost": "number", "smokes": "boolean"}])
def test_bounds_say_what_a_column_is(types: dict[str, str] | None, tmp_path: Path) -> None:
    table = opened(written(tmp_path / "v.csv", HEADER + BAD["text for a number"] + ROWS), types=types)
    assert table.columns == dict.fromkeys(TYPES, "text") | (types or {})
    with testing.no_noise():
        assert table.sum("cost", between=(0, 100), epsilon=1).value == sum(range(40))
        assert table.histogram("city", choices=["Haifa", "Acre"], epsilon=1).value == {"Acre": 0, "Haifa": 21}
        assert table.histogram("cost", choices=[1, 2, 77], epsilon=1).value == {1: 1, 2: 1, 77: 0}
        assert table.count(epsilon=1, where="CAST(cost AS INTEGER) < 10").value == 10
    assert table.explain.median("cost", between=(0, 100), epsilon=1)


def test_types_of_a_table_are_checked(tmp_path: Path) -> None:
    path = written(tmp_path / "v.csv", HEADER + ROWS)
    with refuses(InvalidArgument, "not-an-option"):
        opened(path, types={"cost": "float"})
    with refuses(InvalidArgument, "unknown-column"):
        opened(path, types={"costs": "number"})
    with refuses(InvalidArgument, "column-type"):
        opened({"patient_id": np.array([1]), "age": np.array([5])}, types={"age": "text"})  # type: ignore[arg-type]
    with refuses(InvalidArgument, "column-no-range"):
        opened(path, types={"city": "text"}).sum("city", between=(0, 1), epsilon=1)

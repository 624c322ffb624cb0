"""`discreet init` asks for the person's column, and writes a policy that holds as it is: no value and no guess."""

from __future__ import annotations

import datetime
import io
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.cli import init as init_command
from discreet.cli import main
from discreet.datasets.drafts import find_people, policy_text
from discreet.datasets.policy import load
from discreet.datasets.sources import Source

from ..refusing import refuses

CANARY = "canary-7c1e"


class Said(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def init(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Run `discreet init` in a folder with data."""
    visits = {
        "visit_id": [7_654_321, 2, 3],
        "patient_id": [8_765_432, 8_765_433, 8_765_434],
        "cost": [1234.5, 2.5, 3.5],
        "city": [CANARY, "Haifa", "Haifa"],
        "day": [datetime.date(1987, 6, 5)] * 3,
        "smokes": [True, False, True],
        'odd "name"\n[unit]': [1, 2, 3],
    }
    pyarrow.parquet.write_table(pa.table(visits), tmp_path / "visits.parquet")
    pyarrow.csv.write_csv(pa.table({"city": ["Haifa", CANARY], "country": ["Israel", "?"]}), tmp_path / "cities.csv")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Said:
        with pytest.raises(SystemExit) as exit_info:
            main(["init", *map(str, arguments)])
        code = exit_info.value.code
        return Said(code if isinstance(code, int) else 0, *capsys.readouterr())

    return run


def test_a_policy_is_written_without_any_value(init, tmp_path: Path) -> None:
    said = init("visits.parquet", "cities.csv", "--header", "--out", "clinic.toml")
    assert (said.status, said.err) == (0, "")
    assert "clinic.toml is written" in said.out
    text = (tmp_path / "clinic.toml").read_text("utf-8")
    for value in (CANARY, "Haifa", "Israel", "7654321", "8765432", "1234", "1987"):
        assert value not in text + said.out
    assert tomllib.loads(text) == {
        "ledger": {"path": "clinic.ledger", "epsilon": 1.0, "delta": 1e-6},
        "unit": {"person": "patient_id"},
        "tables": {"visits": {"source": "visits.parquet"}},
    }


def test_the_policy_can_be_used_as_it_is(init, tmp_path: Path) -> None:
    said = init("visits.parquet", "cities.csv", "--header")
    clinic = dp.connect(tmp_path / "policy.toml")
    assert clinic.schema.unit == dp.person("patient_id")
    assert clinic.ledger.limit == dp.Approx(epsilon=1.0, delta=1e-6)
    assert len(clinic.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.5).table) == 1
    command = re.search(r'discreet explain policy.toml "(.*)" --epsilon 0.1', said.out)
    assert command is not None
    assert "ε" in clinic.explain(command[1], epsilon=0.1)


def test_a_table_without_the_person_is_left_out_and_told(init, tmp_path: Path) -> None:
    """Its lines are there as comments, and make a policy once one of them is chosen."""
    said = init("visits.parquet", "cities.csv", "--header")
    assert "left out for now: cities" in said.out
    policy = tmp_path / "policy.toml"
    text = policy.read_text("utf-8")
    assert "cities" not in tomllib.loads(text)["tables"]
    head, _, rest = text.partition("# [tables.cities]")
    every = head + re.sub(r"^# ", "", "# [tables.cities]" + rest, flags=re.MULTILINE)
    policy.write_text(every, "utf-8")
    with pytest.raises(dp.DiscreetError):  # as it stands, nobody has decided that it is public
        dp.connect(policy)
    policy.write_text(re.sub(r"^person = \"\?\".*$", "", every, flags=re.MULTILINE), "utf-8")
    tables = dp.connect(policy).schema.tables
    assert tables["cities"].public


def test_a_file_without_names_keeps_its_types_while_it_is_left_out(init, tmp_path: Path) -> None:
    """Its lines, with a name for the person's column, are all that is needed."""
    rows = "".join(f"M{n % 50},{n % 28 + 1}.03.2024,{n}.5\n" for n in range(200))
    (tmp_path / "stays.txt").write_text(rows, "utf-8")
    (tmp_path / "people.csv").write_text("mrn,age\n" + "".join(f"M{n},{n + 20}\n" for n in range(50)), "utf-8")
    assert init("people.csv", "stays.txt", "--person", "mrn").status == 0
    policy = tmp_path / "policy.toml"
    head, _, rest = policy.read_text("utf-8").partition("# [tables.stays]")
    text = head + re.sub(r"^# ", "", "# [tables.stays]" + rest, flags=re.MULTILINE)
    text = re.sub(r"^(public = true|person = \"\?\").*$", "", text, flags=re.MULTILINE)
    policy.write_text(text.replace('"column1"', '"mrn"'), "utf-8")
    stays = dp.connect(policy).schema.tables["stays"]
    assert not stays.public
    assert {name: column.type for name, column in stays.columns.items()} == {
        "mrn": "text",
        "column2": "date",
        "column3": "number",
    }


@pytest.mark.parametrize(
    ("column", "status"), [("patient_id", 0), ("visit_id", 0), ("city", 0), ("height", 2), ("cost", 2)]
)
def test_the_owner_says_whose_a_row_is(column: str, status: int, init, tmp_path: Path) -> None:
    said = init("visits.parquet", "--person", column)
    assert said.status == status
    if status:
        assert not (tmp_path / "policy.toml").exists()
    else:
        assert dp.connect(tmp_path / "policy.toml").schema.unit == dp.person(column)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "person"), [("\n", "patient_id"), ("visit_id\n", "visit_id")])
def test_a_person_is_asked_one_question(
    typed: str, person: str, init, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    said = init("visits.parquet")
    assert said.status == 0
    assert said.out.count("?") == 1
    assert load(tmp_path / "policy.toml").unit == dp.person(person)


def test_who_is_asked_without_a_proposal_sees_the_columns(
    init, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyarrow.parquet.write_table(pa.table({"age": [1, 2], "city": ["a", "b"]}), tmp_path / "data.parquet")
    monkeypatch.setattr("sys.stdin", Terminal("city\n"))
    said = init("data.parquet")
    assert said.status == 0
    assert "Columns: age, city" in said.out


@pytest.mark.parametrize(
    ("columns", "person"),
    [
        (["visit_id", "patient_id"], "patient_id"),
        (["id", "userId"], "userId"),
        (["CUSTOMER_ID", "order_id"], "CUSTOMER_ID"),
        (["id", "age"], None),  # an id of what?
        (["patient_id", "employee_id"], None),  # which of the two?
        (["age", "city", "paid"], None),
    ],
)
def test_a_script_gets_no_guess(columns: list[str], person: str | None, tmp_path: Path) -> None:
    """Only a single name that is that of people is taken without a word."""
    data, out = tmp_path / "data.parquet", tmp_path / "policy.toml"
    pyarrow.parquet.write_table(pa.table({name: [1, 2] for name in columns}), data)
    if person is None:
        with refuses(dp.InvalidArgument, "command-person"):
            init_command.main([data], out)
        assert not out.exists()
    else:
        init_command.main([data], out)
        assert load(out).unit == dp.person(person)


def test_a_person_that_is_no_key_is_refused(tmp_path: Path) -> None:
    data, out = tmp_path / "data.parquet", tmp_path / "policy.toml"
    pyarrow.parquet.write_table(pa.table({"patient": [1.5, 2.5]}), data)
    with refuses(dp.InvalidArgument, "person-type"):
        init_command.main([data], out, person="patient")
    with refuses(dp.InvalidArgument, "unknown-column"):
        init_command.main([data], out, person="doctor")
    assert not out.exists()


def test_sources_are_relative_to_the_policy(init, tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    assert init("visits.parquet", "--out", "policies/clinic.toml").status == 0
    text = (tmp_path / "policies" / "clinic.toml").read_text("utf-8")
    assert 'source = "../visits.parquet"' in text
    assert 'path = "clinic.ledger"' in text


def test_nothing_is_overwritten(init, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("mine", "utf-8")
    said = init("visits.parquet")
    assert (said.status, said.out) == (2, "")
    assert "exists and is left as it is" in said.err
    assert (tmp_path / "policy.toml").read_text("utf-8") == "mine"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gone.parquet",), "There is no file or folder gone.parquet"),
        (("visits.parquet", "--out", "no/such/folder.toml"), "cannot be written"),
        (("notes.doc",), "must be a Parquet, CSV, TSV, TXT or JSON file"),
        (("broken.csv.gz",), "cannot be read as a table"),
        (("visits.parquet", "postgresql://localhost/x"), "one URL at a time"),
        (("broken.parquet",), "cannot be read as a table"),
        ((), "Missing argument"),
    ],
)
def test_bad_arguments_are_status_2(arguments: tuple[str, ...], said: str, init, tmp_path: Path) -> None:
    for name in ("notes.doc", "broken.csv.gz"):
        (tmp_path / name).write_text(CANARY, "utf-8")
    (tmp_path / "broken.parquet").write_text(CANARY, "utf-8")
    found = init(*arguments)
    assert (found.status, found.out) == (2, "")
    assert said in found.err
    assert CANARY not in found.err
    assert not (tmp_path / "policy.toml").exists()


def test_names_of_files_become_names_of_tables(init, tmp_path: Path) -> None:
    (tmp_path / "2024 visits").mkdir()
    for place in ("2024 visits/a.parquet", "Visits.parquet"):
        (tmp_path / place).write_bytes((tmp_path / "visits.parquet").read_bytes())
    assert init("2024 visits", "visits.parquet", "Visits.parquet").status == 0
    text = (tmp_path / "policy.toml").read_text("utf-8")
    assert re.findall(r"^\[tables\.(\w+)\]", text, flags=re.MULTILINE) == ["data_2024_visits", "visits", "visits_2"]


def test_a_table_that_is_left_out_says_how_it_may_lead_to_people() -> None:
    tables = {
        "visits": {"patient_id": "integer", "visit_id": "integer", "city": "text"},
        "sales": {"customer_id": "integer", "city": "text"},
        "drugs": {"visit_id": "integer"},
    }
    source = Source(places=dict.fromkeys(tables, "x.parquet"), tables=tables)
    text = policy_text(source, "clinic", find_people("patient_id", source))
    assert list(tomllib.loads(text)["tables"]) == ["visits"]
    sales, drugs = text.split("# [tables.sales]")[1].split("# [tables.drugs]")
    assert re.search(r'^# person = "customer_id" ', sales, flags=re.MULTILINE)
    assert "# through = " not in sales
    assert re.search(r'^# through = "visits.visit_id" ', drugs, flags=re.MULTILINE)
    for part in (sales, drugs):
        assert re.search(r"^# public = true ", part, flags=re.MULTILINE)


def test_types_of_a_csv_are_read_once_and_then_declared(init, tmp_path: Path) -> None:
    rows = "".join(f"{n},{n}.5,Haifa,2024-01-01,true\n" for n in range(200))
    (tmp_path / "people.csv").write_text(f"person_id,cost,city,day,smokes\n{rows}", "utf-8")
    assert init("people.csv").status == 0
    (tmp_path / "people.csv").write_text(f"person_id,cost,city,day,smokes\n{rows}x,{CANARY},1,2,3,4\n", "utf-8")
    people = dp.connect(tmp_path / "policy.toml")
    types = {name: column.type for name, column in people.schema.tables["people"].columns.items()}
    assert types == {"person_id": "text", "cost": "number", "city": "text", "day": "date", "smokes": "boolean"}
    question = "SELECT COUNT(*) FROM people WHERE smokes AND day < DATE '2025-01-01' AND cost < 100"
    assert people.sql(question, epsilon=0.5).table.num_rows == 1


def test_a_person_of_a_csv_is_text_unless_a_table_with_types_knows_better(init, tmp_path: Path) -> None:
    """No row decides it, and none is lost: 007 and 7 are two people."""
    rows = "".join(f"{n},{n}\n" for n in range(20))
    (tmp_path / "people.csv").write_text(f"patient_id,cost\n{rows}", "utf-8")
    assert init("people.csv").status == 0
    columns = dp.connect(tmp_path / "policy.toml").schema.tables["people"].columns
    assert (columns["patient_id"].type, columns["cost"].type) == ("text", "integer")
    assert init("people.csv", "visits.parquet", "--out", "both.toml").status == 0
    assert dp.connect(tmp_path / "both.toml").schema.tables["people"].columns["patient_id"].type == "integer"


ROWS = "Noa,Haifa,{c}\nBar,Acre,flu\nDan,Haifa,flu\n"


@pytest.mark.some_quick(3)
@pytest.mark.parametrize(
    "text",
    [
        ROWS,  # all columns are text: a row looks like any other
        "Noa,34,{c}\nBar,41,flu\nDan,29,flu\n",
        "Noa,unknown,{c}\nBar,41,flu\nDan,29,flu\n",  # the first person's age is not known
        "Noa,2024-01-05,{c}\nBar,41,flu\nDan,29,flu\n",
        "noa@example.org,{c},x7\n1,2,3\n3,4,5\n",
        "person,,{c}\n1,2,3\n4,5,6\n",
        "{c},{c},day\n1,2,3\n4,5,6\n",
        "{c}\n",
    ],
)
def test_a_first_row_is_not_taken_for_names(text: str, init, tmp_path: Path) -> None:
    """Nothing of it gets into the policy or into what is said."""
    (tmp_path / "people.csv").write_text(text.format(c=CANARY), "utf-8")
    said = init("people.csv")
    assert said.status == 2
    assert not (tmp_path / "policy.toml").exists()
    assert all(word not in said.out + said.err for word in (CANARY, "Noa", "34", "noa@"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "1.csv").write_text(text.format(c=CANARY), "utf-8")
    assert init("folder").status == 2


def test_names_that_look_like_a_row_are_taken_where_the_owner_says_so(init, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,city\nNoa,Haifa\nBar,Acre\n", "utf-8")
    assert init("people.csv", "--person", "name").status == 2
    assert init("people.csv", "--person", "name", "--header").status == 0
    written = (tmp_path / "policy.toml").read_text("utf-8")
    assert set(dp.connect(tmp_path / "policy.toml").schema.tables["people"].columns) == {"name", "city"}
    assert "Noa" not in written


def test_keys_of_json_are_no_names_without_a_word(tmp_path: Path) -> None:
    """Whoever has a key of their own would get it into the policy."""
    data, out = tmp_path / "people.json", tmp_path / "policy.toml"
    data.write_text('{"pid": 1, "x": 2}\n' * 20 + '{"pid": 3, "Alice Smith has HIV": 1}\n')
    with refuses(dp.InvalidArgument, "command-header") as refused:
        init_command.main([data], out, person="pid")
    assert "Alice" not in str(refused.value)
    assert not out.exists()
    init_command.main([data], out, person="pid", header=True)
    assert "pid" in out.read_text()

"""`discreet init` writes a policy from names and types: every guess is marked, and no value is in it."""

from __future__ import annotations

import datetime
import re
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
from discreet.cli.init import policy_text
from discreet.datasets.policy import load

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
    assert re.search(r'^person = "patient_id" +# GUESS', text, flags=re.MULTILINE)
    assert re.search(r"^epsilon = .* # GUESS", text, flags=re.MULTILINE)
    assert re.search(r"^# rows_per_person = 20 +# DECIDE", text, flags=re.MULTILINE)
    assert re.search(r"^\[tables.visits.columns.cost\] +# number\n# between = ", text, flags=re.MULTILINE)
    assert re.search(r"^\[tables.visits.columns.city\] +# text\n# choices = ", text, flags=re.MULTILINE)
    assert re.search(
        r'^\[tables.cities.columns.country\]\ntype = "text" +# GUESS.*\n# choices = ', text, flags=re.MULTILINE
    )
    assert "columns.patient_id" not in text


def test_every_line_that_is_not_a_comment_is_a_guess_or_a_name(init, tmp_path: Path) -> None:
    init("visits.parquet", "cities.csv", "--header")
    lines = (tmp_path / "policy.toml").read_text("utf-8").splitlines()
    for line in lines:
        told = line.startswith(("#", "[", "path = ", "source = ")) or not line
        assert told or "# GUESS" in line, line


def test_the_policy_holds_once_it_is_filled_in(init, tmp_path: Path) -> None:
    init("visits.parquet", "cities.csv", "--header")
    policy = tmp_path / "policy.toml"
    with refuses(dp.InvalidArgument, "rows-per-person-missing"):
        dp.connect(policy)
    text = policy.read_text("utf-8").replace("# rows_per_person", "rows_per_person", 1)
    for column, told in (("cost", "between = [0, 5000]"), ("city", 'choices = ["Haifa"]')):
        section = f"[tables.visits.columns.{column}]"
        text = re.sub(rf"^{re.escape(section)}.*\n.*", f"{section}\n{told}", text, flags=re.MULTILINE)
    policy.write_text(text.replace("# public = true", "public = true"), "utf-8")
    tables = load(policy).tables
    assert tables["visits"].rows_per_person == 20
    assert tables["visits"].columns["cost"].between == (0, 5000)
    clinic = dp.connect(policy)
    assert clinic.schema.unit == dp.person("patient_id")
    assert clinic.ledger.limit == dp.Approx(epsilon=1.0, delta=1e-6)
    assert len(clinic.sql("SELECT AVG(cost) FROM visits", epsilon=0.5).table) == 1


def test_every_commented_line_is_toml_once_it_is_filled_in(init, tmp_path: Path) -> None:
    init("visits.parquet", "cities.csv", "--header")
    text = (tmp_path / "policy.toml").read_text("utf-8")
    filled = re.sub(r"^# (?=rows.*DECIDE|groups.*DECIDE|between.*DECIDE|choices.*DECIDE)", "", text, flags=re.MULTILINE)
    filled = filled.replace("[LOW, HIGH]", "[0, 9]").replace("[FIRST, LAST]", "[2020-01-01, 2024-12-31]")
    filled = filled.replace('["…", "…"]', '["a", "b"]').replace('# person = "…"', 'person = "city"')
    (tmp_path / "policy.toml").write_text(filled, "utf-8")
    schema = dp.connect(tmp_path / "policy.toml").schema
    assert schema.tables["visits"].columns['odd "name"\n[unit]'].between == (0, 9)
    assert schema.tables["visits"].columns["day"].between is not None
    assert schema.tables["cities"].columns["country"].choices == ("a", "b")


def test_columns_of_which_nothing_is_said_are_as_if_they_were_not_listed(init, tmp_path: Path) -> None:
    init("visits.parquet")
    text = (tmp_path / "policy.toml").read_text("utf-8").replace("# rows_per_person", "rows_per_person")
    (tmp_path / "policy.toml").write_text(text, "utf-8")
    (tmp_path / "short.toml").write_text(text.partition("#\n[tables.visits.columns")[0], "utf-8")
    assert len(load(tmp_path / "policy.toml").tables["visits"].columns) == 6
    assert not load(tmp_path / "short.toml").tables["visits"].columns
    assert dp.connect(tmp_path / "policy.toml").schema == dp.connect(tmp_path / "short.toml").schema


@pytest.mark.parametrize(
    ("data", "guessed"), [(["visits.parquet"], False), (["visits.parquet", "cities.csv", "--header"], True)]
)
def test_only_files_without_types_are_said_to_have_none(data: list[str], guessed: bool, init, tmp_path: Path) -> None:
    init(*data)
    assert ("guessed from its rows" in (tmp_path / "policy.toml").read_text("utf-8")) is guessed


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
        (("notes.txt",), "must be a Parquet, CSV or JSON file"),
        (("broken.parquet",), "cannot be read as a table"),
        ((), "Missing argument"),
    ],
)
def test_bad_arguments_are_status_2(arguments: tuple[str, ...], said: str, init, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(CANARY, "utf-8")
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


@pytest.mark.parametrize(
    ("tables", "person"),
    [
        ({"a": ["visit_id", "patient_id"]}, "patient_id"),
        ({"a": ["id", "userId"]}, "userId"),
        ({"a": ["CUSTOMER_ID", "order_id"]}, "CUSTOMER_ID"),
        ({"a": ["id", "order_id"], "b": ["order_id", "account_id"]}, "order_id"),
        ({"a": ["id", "age"]}, "id"),
        ({"a": ["age", "city", "paid"]}, None),
    ],
)
def test_the_person_is_guessed_by_name(tables: dict[str, list[str]], person: str | None) -> None:
    types = {name: dict.fromkeys(columns, "integer") for name, columns in tables.items()}
    text = policy_text(dict.fromkeys(tables, "x.parquet"), types, "clinic")
    found = re.search(r'^\[unit\]\nperson = "(.*?)"', text, flags=re.MULTILINE)
    assert (found and found[1]) == person
    if person is None:
        assert re.search(r'^# person = "…" +# DECIDE', text, flags=re.MULTILINE)


def test_a_table_with_another_name_for_the_person_is_marked() -> None:
    tables = {"visits": {"patient_id": "integer"}, "sales": {"customer_id": "integer"}, "rooms": {"room_id": "integer"}}
    text = policy_text(dict.fromkeys(tables, "x.parquet"), tables, "clinic")
    sales, rooms = text.split("[tables.sales]")[1].split("[tables.rooms]")
    assert re.search(r'^person = "customer_id" +# GUESS', sales, flags=re.MULTILINE)
    assert re.search(r"^# public = true +# DECIDE", rooms, flags=re.MULTILINE)


def test_types_of_a_csv_are_guessed_once_and_then_declared(init, tmp_path: Path) -> None:
    rows = "".join(f"{n},{n}.5,Haifa,2024-01-01,true\n" for n in range(200))
    (tmp_path / "people.csv").write_text(f"person_id,cost,city,day,smokes\n{rows}", "utf-8")
    assert init("people.csv").status == 0
    text = (tmp_path / "policy.toml").read_text("utf-8")
    assert re.search(r'^\[tables.people.columns.cost\]\ntype = "number" +# GUESS', text, flags=re.MULTILINE)
    (tmp_path / "policy.toml").write_text(text.replace("# rows_per_person", "rows_per_person"), "utf-8")
    (tmp_path / "people.csv").write_text(f"person_id,cost,city,day,smokes\n{rows}x,{CANARY},1,2,3,4\n", "utf-8")
    people = dp.connect(tmp_path / "policy.toml")
    types = {name: column.type for name, column in people.schema.tables["people"].columns.items()}
    assert types == {"person_id": "integer", "cost": "number", "city": "text", "day": "date", "smokes": "boolean"}
    question = "SELECT COUNT(*) FROM people WHERE smokes AND day < DATE '2025-01-01' AND cost < 100"
    assert people.sql(question, epsilon=0.5).table.num_rows == 1


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
    assert init("people.csv").status == 2
    assert init("people.csv", "--header").status == 0
    written = (tmp_path / "policy.toml").read_text("utf-8")
    assert "[tables.people.columns.city]" in written
    assert "Noa" not in written


def test_keys_of_json_are_no_names_without_a_word(tmp_path: Path) -> None:
    """Whoever has a key of their own would get it into the policy."""
    data, out = tmp_path / "people.json", tmp_path / "policy.toml"
    data.write_text('{"pid": 1, "x": 2}\n' * 20 + '{"pid": 3, "Alice Smith has HIV": 1}\n')
    with refuses(dp.InvalidArgument, "command-header") as refused:
        init_command.main([data], out)
    assert "Alice" not in str(refused.value)
    assert not out.exists()
    init_command.main([data], out, header=True)
    assert "pid" in out.read_text()

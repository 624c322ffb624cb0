"""`discreet init` on what data owners really have: archives, files without names, dates and numbers of other places."""

from __future__ import annotations

import gzip
import io
import tomllib
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet import testing
from discreet.cli import init as init_command
from discreet.datasets.drafts import find_people, policy_text
from discreet.datasets.people import place_of
from discreet.datasets.sources import Source
from discreet.datasets.texts import drafts as text_drafts
from discreet.engines.postgres.catalog import ForeignKey
from discreet.errors import InvalidArgument

from ..refusing import refuses

CANARY = "canary-7c1e"


def clinic_lines(odd: str = "NA") -> str:
    """Semicolons, decimal commas, dates with points, and a hundredth of the weights that are none."""
    rows = (f"{n};{odd if n % 100 == 7 else f'{n % 90},5'};{1 + n % 28:02}.03.2024;0{n % 7}000" for n in range(300))
    return "mrn;weight;seen;zip\n" + "".join(f"{row}\n" for row in rows)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def said_by_init(data: Path, out: Path, monkeypatch: pytest.MonkeyPatch, *, seen: bool, **given: Any) -> str:
    """What is printed, on a terminal or in a log."""
    screen = Terminal() if seen else io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", screen)
        init_command.main([data], out, **given)
    return screen.getvalue()


def test_counts_are_for_the_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path
    data = folder / "weights.csv.gz"
    data.write_bytes(gzip.compress(clinic_lines(CANARY).encode()))
    seen = said_by_init(data, folder / "seen.toml", monkeypatch, seen=True, person="mrn")
    assert "column weight: 3 of 300 values are not numbers such as 1234,50; they will be NULL" in seen
    logged = said_by_init(data, folder / "logged.toml", monkeypatch, seen=False, person="mrn")
    written = (folder / "logged.toml").read_text("utf-8")
    assert written == (folder / "seen.toml").read_text("utf-8").replace("seen.ledger", "logged.ledger")
    for text in (logged.replace(str(folder), ""), written):
        assert "3 of" not in text
        assert "300" not in text
    assert CANARY not in seen + logged + written


def test_an_archive_with_odd_numbers_and_dates_can_be_asked_at_once(tmp_path: Path) -> None:
    (tmp_path / "weights.csv.gz").write_bytes(gzip.compress(clinic_lines().encode()))
    init_command.main([tmp_path / "weights.csv.gz"], tmp_path / "policy.toml")
    words = tomllib.loads((tmp_path / "policy.toml").read_text("utf-8"))
    assert words["unit"] == {"person": "mrn"}
    assert words["tables"]["weights"] == {
        "source": "weights.csv.gz",
        "format": {"decimal": ","},
        "columns": {"weight": {"type": "number"}, "seen": {"type": "date", "format": "dd.mm.yyyy"}},
    }
    asked = dp.connect(tmp_path / "policy.toml")
    question = "SELECT COUNT(*) AS n, COUNT(weight) AS w, COUNT(seen) AS d FROM weights WHERE seen < DATE '2025-01-01'"
    with testing.no_noise():
        found = asked.sql(question, epsilon=1, bounds={"rows_per_person": 1}).table
    assert [found[name][0].as_py() for name in ("n", "w", "d")] == [300, 297, 300]


@pytest.mark.parametrize("more", [{}, {"header": False, "separator": " "}])
def test_a_file_of_blanks_without_names(more: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"  s{n % 50:03}   {n % 9}.25 {n % 4}\n" for n in range(200))
    (tmp_path / "sensor.txt").write_text(rows)
    init_command.main([tmp_path / "sensor.txt"], tmp_path / "policy.toml", person="column1", **more)
    assert "its columns are column1, column2, …: sensor" in capsys.readouterr().out
    words = tomllib.loads((tmp_path / "policy.toml").read_text("utf-8"))["tables"]["sensor"]
    assert words["format"] == {"header": False, "separator": " ", "names": ["column1", "column2", "column3"]}
    assert words["columns"] == {"column2": {"type": "number"}, "column3": {"type": "integer"}}
    asked = dp.connect(tmp_path / "policy.toml")
    with testing.no_noise():
        found = asked.sql(
            "SELECT COUNT(*) AS n FROM sensor WHERE column2 < 100", epsilon=1, bounds={"rows_per_person": 4}
        )
    assert found.table["n"][0].as_py() == 200


def types_of(folder: Path, *cells: str, header: bool | None = True) -> Any:
    """What is proposed for one column."""
    path = folder / "t.csv"
    path.write_text("who,x\n" + "".join(f"a,{cell}\n" for cell in cells))
    made = text_drafts.draft_text("t", path, [path], header=header)
    return made.types["x"], made.dates.get("x", ""), made.unsure


@pytest.mark.some_quick(7)
@pytest.mark.parametrize(
    ("cells", "kind", "written"),
    [
        (["1", "2", "-3"], "integer", ""),
        (["1.5", "2", "1e3"], "number", ""),
        (["01234", "02345", "99999"], "text", ""),  # postal codes
        (["true", "FALSE"], "boolean", ""),
        (["1", "0"], "integer", ""),
        (["2024-01-31", "2024-12-01"], "date", ""),
        (["2024-01-31T10:00", "2024-12-01 11:00:05"], "timestamp", ""),
        (["31.01.2024", "1.2.2024"], "date", "dd.mm.yyyy"),
        (["01/31/2024", "02/01/2024"], "date", "mm/dd/yyyy"),
        (["31/01/2024", "02/01/2024"], "date", "dd/mm/yyyy"),
        (["31.01.2024 10:05", "1.2.2024 7:00"], "timestamp", "dd.mm.yyyy hh:mi"),
        (["31-JAN-2024", "01-feb-2024"], "date", "dd-mon-yyyy"),
        (["", "", ""], "text", ""),
        (["Haifa", "7", "31.01.2024"], "text", ""),
    ],
)
def test_what_nearly_all_values_are(cells: list[str], kind: str, written: str, tmp_path: Path) -> None:
    assert types_of(tmp_path, *cells)[:2] == (kind, written)


def test_no_single_row_decides_a_type(tmp_path: Path) -> None:
    path, usual = tmp_path / "t.csv", ["5", "5.5", "2024-01-31", "31.01.2024", "true"]

    def proposed(*odd: str) -> Any:
        rows = [*([one] * len(usual) for one in odd), *[usual] * 200]
        path.write_text("a,b,c,d,e\n" + "".join(",".join(row) + "\n" for row in rows))
        made = text_drafts.draft_text("t", path, [path], header=True)
        return made.types, made.dates, made.words()

    alone = proposed()
    assert list(alone[0].values()) == ["integer", "number", "date", "date", "boolean"]
    for odd in (CANARY, "", "9.75", "07", "2024-01-01", "1.1.2020", "true"):
        assert proposed(odd) == alone


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(
    "odd",
    [
        '3,"' + "x;y;z\n" * 150 + '",4,5',
        '3,"' + "x;y;z;" * 100_000 + '",4,5',
        '3,"' + "x\ty" * 100_000 + '"',
        '3,"a ""b""\n' + "c|d\n" * 150 + '"',
    ],
)
def test_no_single_row_decides_a_separator(odd: str, header: bool, tmp_path: Path) -> None:
    """A row counts once, however many lines it has, and however long they are."""
    rows = [f"{n % 9},{n}.5,Haifa,2" for n in range(300)]

    def proposed(*lines: str) -> Any:
        (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d"] * header + [*lines, *rows]) + "\n")
        made = text_drafts.draft_text("t", tmp_path / "t.csv", [tmp_path / "t.csv"], header=header)
        return made.types, made.words()

    assert proposed(rows[0], odd) == proposed() == proposed(odd)


def test_a_name_of_a_column_is_no_line_of_the_policy(tmp_path: Path) -> None:
    """A line break in a name would end the comment in which it is, and what follows would be read as TOML."""
    rows = "".join(f"{n % 9},0{1 + n % 9}/0{1 + n % 7}/2024,{n}\n" for n in range(200))
    (tmp_path / "t.csv").write_text('pid,"day\npublic = true\n#",n\n' + rows)
    init_command.main([tmp_path / "t.csv"], tmp_path / "policy.toml", person="pid", header=True)
    table = tomllib.loads((tmp_path / "policy.toml").read_text("utf-8"))["tables"]["t"]
    assert set(table) == {"source", "columns"}
    assert "cannot be told apart" in (tmp_path / "policy.toml").read_text("utf-8")


@pytest.mark.slow
def test_days_and_months_that_cannot_be_told_apart_are_told(tmp_path: Path) -> None:
    kind, written, [said] = types_of(tmp_path, "01/02/2024", "03/04/2024")
    assert (kind, written) == ("date", "dd/mm/yyyy")
    assert "cannot be told apart" in said
    assert '"mm/dd/yyyy"' in said
    assert types_of(tmp_path, "01/02/2024", "31/04/2024")[2] == []


@pytest.mark.parametrize(
    "name",
    ["MRN", "patient_id", "Member No", "ssn", "SUBJECT", "pid", "nhs_number", "KundenNr", "emso", "USUBJID", "idUser"],
)
def test_columns_that_identify_people_by_their_names(name: str) -> None:
    assert place_of(name) < place_of("visit_id") < place_of("city")


def test_a_file_with_an_unnamed_first_column(tmp_path: Path) -> None:
    """Many programs write the number of a row without a name for it."""
    (tmp_path / "t.csv").write_text(",patient_id,age\n0,7,30\n1,8,40\n")
    init_command.main([tmp_path / "t.csv"], tmp_path / "policy.toml")
    assert list(dp.connect(tmp_path / "policy.toml").schema.tables["t"].columns) == ["column1", "patient_id", "age"]


# --- databases ----------------------------------------------------------------------------------------------


def database(**tables: str) -> Source:
    """Tables of a database: "id user_id>users.id" has a foreign key."""
    keys, columns = [], {}
    for table, words in tables.items():
        names = [word.partition(">")[0] for word in words.split()]
        columns[table] = dict.fromkeys(names, "integer")
        keys += [ForeignKey(table, "id", table, "id")] if "id" in names else []
        keys += [
            ForeignKey(table, word.partition(">")[0], *word.partition(">")[2].split("."))
            for word in words.split()
            if ">" in word
        ]
    places = {name: f"public.{name}" for name in tables}
    return Source(places=places, tables=columns, url="postgresql://h/d", foreign_keys=keys)


CLINIC = database(
    cities="id name",
    labs="id visit>visits.id value",
    patients="id city_id>cities.id",
    results="id lab_id>labs.id",
    staff="id boss_id>staff.id",
    visits="id patient_id>patients.id",
)


@pytest.mark.parametrize("person", ["patient_id", "patients.id"])
def test_foreign_keys_lead_to_people(person: str) -> None:
    people = find_people(person, CLINIC)
    assert people.unit == "patient_id"
    assert people.columns == {"patients": "id", "visits": "patient_id"}
    assert people.through == {"labs": "visit -> visits.id", "results": "lab_id -> labs.id"}
    text = policy_text(CLINIC, "clinic", people)
    tables = tomllib.loads(text)["tables"]
    assert list(tables) == ["labs", "patients", "results", "visits"]
    assert tables["patients"] == {"source": "public.patients", "person": "id"}
    assert "# [tables.cities]" in text


def test_the_key_of_a_table_is_not_taken_for_its_people() -> None:
    employees = database(employees="id boss_id>employees.id", sales="id employee>employees.id")
    assert find_people("employees.id", employees).columns["employees"] == "id"


def test_rows_about_two_people_are_left_out_until_somebody_decides() -> None:
    """Only one of them is protected by the row; what leads through it is left out, too."""
    letters = database(
        users="id boss_id>users.id",
        letters="id sender_id>users.id reader_id>users.id",
        stamps="letter_id>letters.id",
        visits="id user_id>users.id before_id>visits.id",
    )
    people = find_people("users.id", letters)
    assert list(people.columns) == ["users", "visits"]
    assert people.through == {}
    text = policy_text(letters, "x", people)
    assert list(tomllib.loads(text)["tables"]) == ["users", "visits"]
    assert (
        "decide: a row of letters is about several people (sender_id, reader_id), and protects one of them only" in text
    )
    assert '# person = "sender_id" ' in text
    for marked in ("boss_id", "before_id"):
        assert f"decide: its rows may be about more people: {marked}." in text


def test_two_kinds_of_data_are_refused(tmp_path: Path) -> None:
    with refuses(InvalidArgument, "setup-source"):
        init_command.main(["postgresql://h/d", "postgresql://h/e"], tmp_path / "policy.toml")


def test_a_policy_is_for_its_owner_to_read(tmp_path: Path) -> None:
    """It may hold a password."""
    (tmp_path / "t.csv").write_text("patient_id,age\n7,30\n")
    init_command.main([tmp_path / "t.csv"], tmp_path / "policy.toml")
    assert (tmp_path / "policy.toml").stat().st_mode & 0o077 == 0


def written_numbers(folder: Path, *cells: str) -> tuple[Any, list[Any], list[Any]]:
    """How numbers are said to be written in a file of one column, their type, and the values that are read."""
    path, out = folder / "costs.csv", folder / "costs.toml"
    path.write_text("who;cost\n" + "".join(f"p{n};{cell}\n" for n, cell in enumerate(cells)), "utf-8")
    out.unlink(missing_ok=True)
    init_command.main([path], out, person="who", header=True)
    words = tomllib.loads(out.read_text("utf-8"))["tables"]["costs"]
    kinds = {name: one["type"] for name, one in words.get("columns", {}).items()}
    declared = text_drafts.TextFormat(**words.get("format", {}))
    engine = text_drafts.DuckDB({"t": path}, types={"t": {"who": "text", **kinds}}, formats={"t": declared})
    read = [row[0] for row in engine.rows(f"SELECT cost FROM {engine.relations['t']}")]
    return words.get("format", {}), list(kinds.values()), read


@pytest.mark.parametrize(
    ("cells", "declared", "values"),
    [
        (["1.234,50", "12,5", "999"], {"decimal": ",", "thousands": "."}, [1234.5, 12.5, 999]),
        (["1,234.50", "12.5", "1,234,567"], {"thousands": ","}, [1234.5, 12.5, 1234567]),
        (["1,234", "12", "12,345"], {"thousands": ","}, [1234, 12, 12345]),
        (["0,125", "1,234", "2,5"], {"decimal": ","}, [0.125, 1.234, 2.5]),
        (["1'234.50", "12", "2.25"], {"thousands": "'"}, [1234.5, 12, 2.25]),
        (["1 234,50", "12", "2,25"], {"decimal": ",", "thousands": " "}, [1234.5, 12, 2.25]),
        (["1.234", "1.5", "12"], {}, [1.234, 1.5, 12]),
    ],
)
def test_marks_of_thousands_are_found(cells: list[str], declared: Any, values: list[Any], tmp_path: Path) -> None:
    assert written_numbers(tmp_path, *cells) == (declared, ["number"], values)


def test_one_row_does_not_decide_how_numbers_are_written(tmp_path: Path) -> None:
    declared, kinds, read = written_numbers(tmp_path, *["1.5"] * 200, "1,234.5")
    assert (declared, kinds) == ({}, ["number"])
    assert read == [1.5] * 200 + [None]


@pytest.mark.some_quick(1)
@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["1,234", "12"], "1,234 is read as one thousand and more"),
        (["1.234", "12"], "1.234 is read as 1 and a fraction"),
        (["1,234", "12.5"], ""),
        (["1,234,567", "1,234"], ""),
        (["1.234,50", "1.234"], ""),
        (["1.234", "1.5"], ""),
        (["0,125", "1,234"], ""),
        (["1'234", "12"], ""),
    ],
)
def test_numbers_that_can_be_read_in_two_ways_are_left_to_decide(
    cells: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log hears of it, too. One row makes no difference."""
    path, out, heard = tmp_path / "costs.csv", tmp_path / "costs.toml", set()
    for odd in ([], ["7.25"], ["7,25"], [CANARY]):
        rows = [*cells * 60, *odd]
        path.write_text("who;cost\n" + "".join(f"p{n};{cell}\n" for n, cell in enumerate(rows)), "utf-8")
        logged = said_by_init(path, out, monkeypatch, seen=False, person="who", header=True)
        heard.add((logged, out.read_text("utf-8")))
        out.unlink()
    [texts] = heard
    for text in texts:
        assert ("is read as" in text) == bool(said)
        assert said in text

"""`discreet query` and `discreet explain` on real files and a real ledger: answers, costs, statuses, and no leak."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.cli import main
from discreet.cli.app import exit_code
from discreet.errors import EngineFailed, NotAllowed, QueryError
from discreet.sql.running.explanation import describe_plan, explain_plan

CANARY = "canary-7c1e"
PEOPLE, ROWS = 1000, 3000
HAIFA = 1500
QUESTION = """SELECT city, COUNT(*) AS visits, AVG(cost) AS cost
              FROM visits JOIN cities USING (city) WHERE age >= 18 GROUP BY city"""
CLINIC = """
[ledger]
path = "clinic.ledger"
epsilon = 10.0
delta = 1e-5
delta_per_question = 0
[unit]
person = "patient_id"
[tables.visits]
source = "visits.parquet"
rows_per_person = 3
[tables.visits.columns.cost]
between = [0, 100]
[tables.visits.columns.age]
between = [0, 120]
[tables.visits.columns.city]
choices = ["Haifa", "Ljubljana"]
[tables.cities]
source = "cities.csv"
public = true
"""


class Said(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    rows = range(ROWS)
    visits = {
        "patient_id": [row % PEOPLE for row in rows],
        "age": [18 + row % 80 for row in rows],
        "cost": [float(row % 100) for row in rows],
        "city": ["Haifa" if row % 2 else "Ljubljana" for row in rows],
        "note": [f"{CANARY}-{row}" for row in rows],
    }
    pyarrow.parquet.write_table(pa.table(visits), folder / "visits.parquet")
    cities = pa.table({"city": ["Haifa", "Ljubljana"], "country": ["Israel", "Slovenia"]})
    pyarrow.csv.write_csv(cities, folder / "cities.csv")
    return folder


@pytest.fixture
def clinic(data: Path, tmp_path: Path) -> Path:
    """A policy with a ledger of its own, on data that all tests share."""
    policy = tmp_path / "clinic.toml"
    policy.write_text(CLINIC.replace('source = "', f'source = "{data}/'), "utf-8")
    return policy


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Run a command: its status, and what it printed."""

    def discreet(*arguments: object) -> Said:
        monkeypatch.setenv("COLUMNS", "100")
        with pytest.raises(SystemExit) as exit_info:
            main([*map(str, arguments)])
        code = exit_info.value.code
        shown = capsys.readouterr()
        # each test begins a ledger, which tests/gateway/test_new_ledger.py looks at
        told = re.sub(r"^A new ledger begins: .*clinic\.ledger, with ε = .*\n", "", shown.err)
        said = Said(code if isinstance(code, int) else 0, shown.out, told)
        assert CANARY not in said.out + said.err
        assert "Traceback" not in said.err
        return said

    return discreet


def ledger(policy: Path) -> dp.Ledger:
    return dp.Ledger.open(policy.with_name("clinic.ledger"))


def spent(policy: Path) -> float:
    return ledger(policy).spent["ε"]


# --- answers --------------------------------------------------------------------------------------------


def test_what_is_declared_is_listed_for_free(clinic: Path, run) -> None:
    text = "SELECT DISTINCT city FROM visits ORDER BY city DESC"
    said = run("query", clinic, text)
    assert [line.strip() for line in said.out.splitlines()[2:4]] == ["Ljubljana", "Haifa"]
    assert "cost  what is declared, not what occurs: exact, nothing was spent" in said.out
    shown = json.loads(run("query", clinic, text, "--format", "json").out)
    assert shown["rows"] == [["Ljubljana"], ["Haifa"]]
    assert shown["guarantee"] == {"epsilon": 0, "delta": 0}
    assert "nothing is charged" in run("explain", clinic, text).out
    refused = run("query", clinic, QUESTION)  # others need to know what they may cost
    assert refused.status
    assert "--epsilon" in refused.err
    assert spent(clinic) == 0


def test_a_probe_shows_the_names_of_columns_for_free(clinic: Path, run) -> None:
    said = run("query", clinic, "SELECT * FROM visits LIMIT 0", "--format", "csv")
    assert said.out.split() == ["patient_id,age,cost,city,note"]
    assert run("query", clinic, "SELECT note FROM visits LIMIT 0").out.splitlines()[0].strip() == "note"
    assert spent(clinic) == 0


def test_a_table_for_people(clinic: Path, run) -> None:
    said = run("query", clinic, QUESTION, "--epsilon", 2)
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0].split() == ["city", "visits", "cost"]
    for city, line in zip(("Haifa", "Ljubljana"), lines[2:4], strict=True):
        found = re.fullmatch(rf"{city} +([\d,]+) ± ([\d,]+) +([\d,.]+) ± ([\d,.]+)", line.strip())
        assert found is not None, line
        visits, error, cost, _ = (float(number.replace(",", "")) for number in found.groups())
        assert abs(visits - HAIFA) < 4 * error  # misses with probability below 1e-5
        assert 0 <= cost <= 100
    receipt = ledger(clinic).entries()[-1].receipt
    assert "cost     ε = 2, for one person (all rows of one patient_id)" in lines
    assert "remains  ε = 8 of ε = 10, δ = 1e-05" in lines
    assert f"receipt  {receipt}" in lines
    assert any("95% confidence" in line for line in lines)


def test_the_same_question_again_costs_nothing_and_says_so(clinic: Path, run) -> None:
    first = run("query", clinic, QUESTION, "--epsilon", 1)
    again = run("query", clinic, " ".join(QUESTION.split()), "--epsilon", 1.0)
    assert "answered before" not in first.out
    assert "answered before, at no new cost" in again.out
    assert "remains  ε = 9 of" in again.out
    assert first.out.splitlines()[:4] == again.out.splitlines()[:4]
    assert len(ledger(clinic).entries()) == 1


@pytest.mark.slow
def test_a_retry_with_a_key_costs_nothing(clinic: Path, run) -> None:
    first = run("query", clinic, QUESTION, "--epsilon", 1, "--key", "r1", "--format", "json")
    again = run("query", clinic, QUESTION, "--epsilon", 1, "--key", "r1", "--format", "json")
    assert (first.err, json.loads(again.out)) == (again.err, json.loads(first.out) | {"replayed": True})
    said = run("query", clinic, QUESTION, "--epsilon", 2, "--key", "r1")
    assert (said.status, said.out) == (2, "")
    assert "This key was used for another request" in said.err


def test_json_has_the_shape_of_the_tour(clinic: Path, run) -> None:
    said = run("query", clinic, QUESTION, "--epsilon", 0.5, "--format", "json")
    assert (said.status, said.err) == (0, "")
    answer = json.loads(said.out)
    about = ["confidence", "guarantee", "remaining", "receipt", "replayed", "notes", "clipped", "not_private"]
    assert list(answer) == ["columns", "rows", "errors", *about]
    assert (answer["replayed"], answer["not_private"]) == (False, False)
    assert any("not in the ±" in note for note in answer["notes"])
    assert answer["columns"] == ["city", "visits", "cost"]
    assert [row[0] for row in answer["rows"]] == ["Haifa", "Ljubljana"]
    assert [len(row) for row in answer["errors"]] == [3, 3]
    for row, errors in zip(answer["rows"], answer["errors"], strict=True):
        assert isinstance(row[1], int)
        assert isinstance(row[2], float)
        assert errors[0] is None
        assert errors[1] > 0
        assert errors[2] > 0
    assert answer["confidence"] == 0.95
    assert answer["guarantee"] == {"epsilon": 0.5, "delta": 0.0}
    assert answer["remaining"] == {"epsilon": 9.5}
    assert answer["receipt"] == ledger(clinic).entries()[-1].receipt


def test_csv_has_values_and_errors(clinic: Path, run) -> None:
    said = run("query", clinic, QUESTION, "--epsilon", 0.5, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert list(rows[0]) == ["city", "visits", "visits_error", "cost", "cost_error"]
    assert [row["city"] for row in rows] == ["Haifa", "Ljubljana"]
    assert all(float(row["visits_error"]) > 0 for row in rows)
    assert "remains  ε = 9.5 of" in said.err


@pytest.mark.some_quick(4)
@pytest.mark.parametrize(
    ("question", "cells"),
    [
        ("SELECT COUNT(*) AS n, SUM(cost) AS s, VARIANCE(cost) AS v, STDDEV(cost) AS d FROM visits", 4),
        ("SELECT MEDIAN(age) AS m, QUANTILE_CONT(age, 0.9) AS q, MIN(age) AS low, MAX(age) AS high FROM visits", 4),
        ("SELECT COUNT(DISTINCT patient_id) AS people, COUNT(DISTINCT age) AS ages FROM visits", 2),
        ("SELECT SUM(cost) / COUNT(*) AS mean, COUNT(*) FILTER (WHERE age < 40) AS young FROM visits", 2),
        ("SELECT CASE WHEN age < 40 THEN 'young' ELSE 'old' END AS a, COUNT(*) AS n FROM visits GROUP BY 1", 4),
        ("SELECT CASE WHEN COUNT(*) > 10 THEN 'many' ELSE 'few' END AS size FROM visits", 1),
        ("SELECT city, COUNT(*) FROM visits JOIN cities USING (city) GROUP BY city HAVING COUNT(*) > 1e9", 0),
        ("SELECT note, COUNT(*) AS n FROM visits GROUP BY note", 0),
        ("WITH adults AS (SELECT * FROM visits WHERE age >= 40) SELECT COUNT(*) AS n, 1 AS one FROM adults", 2),
    ],
)
def test_everyday_questions(question: str, cells: int, clinic: Path, run) -> None:
    asked = ("query", clinic, question, "--epsilon", 1, "--delta", 1e-8 if "note" in question else 0)
    said = run(*asked)
    assert (said.status, said.err) == (0, "")
    assert ("(no group is shown)" in said.out) == (cells == 0)
    assert ("each ± holds with 95% confidence, for what the bounds below leave in" in said.out) == (cells > 0)
    answer = json.loads(run(*asked, "--format", "json").out)
    assert sum(map(len, answer["rows"])) == cells
    assert len(ledger(clinic).entries()) == 1


def test_accuracy_first(clinic: Path, run) -> None:
    said = run("query", clinic, QUESTION, "--within", "visits=50", "--confidence", 0.99, "--format", "json")
    answer = json.loads(said.out)
    assert answer["confidence"] == 0.99
    assert all(48 <= errors[1] <= 50 for errors in answer["errors"])
    assert 0 < answer["guarantee"]["epsilon"] == pytest.approx(spent(clinic))


def test_weights_move_the_error(clinic: Path, run) -> None:
    plain, heavy = (
        json.loads(run("query", clinic, QUESTION, "--epsilon", 1, *more, "--format", "json").out)["errors"][0][1]
        for more in ((), ("--weight", "visits=3"))
    )
    assert heavy == pytest.approx(plain * 2 / 3, rel=0.05)  # three quarters of ε instead of a half


@pytest.mark.slow
def test_delta_may_be_given(clinic: Path, run) -> None:
    many = ", ".join(f"SUM(cost + {number}) AS s{number}" for number in range(12))
    question = f"SELECT {many} FROM visits"
    pure = json.loads(run("query", clinic, question, "--epsilon", 1, "--delta", 0, "--format", "json").out)
    assert pure["guarantee"] == {"epsilon": 1.0, "delta": 0.0}
    gaussian = json.loads(run("query", clinic, question, "--epsilon", 1, "--delta", 1e-7, "--format", "json").out)
    assert gaussian["guarantee"]["delta"] == pytest.approx(1e-7)
    assert gaussian["guarantee"]["epsilon"] <= 1
    assert gaussian["errors"][0][0] < pure["errors"][0][0]


def test_an_analyst_is_charged(clinic: Path, run) -> None:
    dp.connect(clinic).ledger.for_analyst("ana", limit=dp.Approx(epsilon=1, delta=1e-6))
    assert "remains  ε = 0.4 of ε = 1," in run("query", clinic, QUESTION, "--epsilon", 0.6, "--analyst", "ana").out
    assert run("query", clinic, QUESTION, "--epsilon", 3, "--analyst", "ana").status == 4
    said = run("query", clinic, QUESTION, "--epsilon", 0.7, "--analyst", "bob")
    assert said.status == 2
    assert "The owner of the ledger opens one: ledger.for_analyst('bob', limit=" in said.err


@pytest.mark.slow
def test_groups_that_are_not_shown_come_with_a_way_out(clinic: Path, run) -> None:
    asked = ("query", clinic, "SELECT note, city, COUNT(*) AS n FROM visits GROUP BY note, city", "--epsilon", 1)
    told = " ".join(run(*asked, "--delta", 1e-8).out.split())
    assert "To see more, spend more ε, or ask the owner to declare choices for note" in told


# --- pictures -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_picture_is_drawn(suffix: str, clinic: Path, run, tmp_path: Path) -> None:
    picture = tmp_path / f"out.{suffix}"
    question = QUESTION.replace("visits, AVG", 'visits, MEDIAN(age) AS "$x$ of $\\age", AVG')
    said = run("query", clinic, question, "--epsilon", 1, "--plot", picture)
    assert said.status == 0
    assert picture.stat().st_size > 5000
    dark = picture.with_name("dark.png")
    assert run("query", clinic, question, "--epsilon", 1, "--plot", dark, "--style", "dark").status == 0
    assert dark.read_bytes() != picture.read_bytes()


def test_a_picture_without_groups(clinic: Path, run, tmp_path: Path) -> None:
    assert run("query", clinic, "SELECT COUNT(*) FROM visits", "--epsilon", 1, "--plot", tmp_path / "o.png").status == 0
    text = "SELECT CASE WHEN COUNT(*) > 10 THEN 'many' ELSE 'few' END AS size FROM visits"
    assert run("query", clinic, text, "--epsilon", 1, "--plot", tmp_path / "text.png").status == 2


@pytest.mark.parametrize("name", ["out.doc", "out", "no/such/folder/out.png"])
def test_a_bad_picture_is_told_before_anything_is_spent(name: str, clinic: Path, run, tmp_path: Path) -> None:
    said = run("query", clinic, QUESTION, "--epsilon", 1, "--plot", tmp_path / name)
    assert (said.status, said.out) == (2, "")
    assert "cannot be a picture" in said.err
    assert not clinic.with_name("clinic.ledger").exists()


# --- refusals -------------------------------------------------------------------------------------------


@pytest.mark.some_quick(4)
@pytest.mark.parametrize(
    ("question", "status", "said", "underlined"),
    [
        ("SELEC COUNT(*) FROM visits", 2, "does not parse", None),
        ("SELECT COUNT(*) FROM visits; SELECT 1", 2, "Only one query at a time", None),
        ("", 2, "A query must be text in SQL", None),
        ("SELECT COUNT(*)\n  FROM visit", 2, "Unknown table visit. Did you mean visits? Known: cities,", "visit"),
        ("SELECT COUNT(*)\nFROM visits\nWHERE agee > 3", 2, "Unknown column agee. Did you mean age? Known:", "agee"),
        ("SELECT * FROM visits", 3, "SELECT * would show rows of individual people.", None),
        ("SELECT note FROM visits", 3, "note is a value of individual people.", "note"),
        ("SELECT MODE(note) FROM visits", 3, "MODE chooses among declared values", "MODE(note"),
        ("SELECT COUNT(*) FROM visits a JOIN visits b ON a.age = b.age", 3, "joined on the person", None),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 3)", 3, "LIMIT inside a query in FROM", None),
        ("DROP TABLE visits", 3, "DROP is not supported.", None),
        ("SELECT COUNT(*) FROM read_csv('/etc/passwd')", 3, "This source is not supported.", None),
    ],
)
def test_a_refused_question_is_underlined_and_has_a_status(
    question: str, status: int, said: str, underlined: str | None, clinic: Path, run
) -> None:
    found = run("query", clinic, question, "--epsilon", 1)
    assert (found.status, found.out) == (status, "")
    assert found.err.startswith("error [")
    assert said in found.err
    if underlined is not None:
        *_, line, marks = found.err.splitlines()
        place = marks.index("^")
        assert line[place : place + len(underlined)] == underlined
    assert spent(clinic) == 0
    assert run("explain", clinic, question, "--epsilon", 1) == found


@pytest.mark.some_quick(6)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--epsilon 0.5, or how wrong a column of the answer may be, --within COLUMN=50"),
        (("--epsilon", 1, "--within", "visits=5"), "--epsilon 0.5, or how wrong"),
        (("--epsilon", 0), "epsilon must be between"),
        (("--epsilon", "nan"), "epsilon must be finite"),
        (("--epsilon", 1, "--delta", 2), "delta must be"),
        (("--epsilon", 1, "--confidence", 1), "confidence must be strictly between 0 and 1"),
        (("--epsilon", 1, "--weight", "visits"), "Write --weight COLUMN=50"),
        (("--epsilon", 1, "--weight", "=2"), "Write --weight COLUMN=50"),
        (("--epsilon", 1, "--weight", "nobody=2"), "weights names nobody"),
        (("--epsilon", 1, "--weight", "visits=-1"), "weight of visits must be above 0"),
        (("--within", "visits=many"), "Write --within COLUMN=50"),
        (("--within", "nobody=5"), "within names nobody"),
        (("--within", "visits=0"), "must be an error above 0"),
    ],
)
def test_bad_options_cost_nothing(options: tuple[object, ...], said: str, clinic: Path, run) -> None:
    found = run("query", clinic, QUESTION, *options)
    assert (found.status, found.out) == (2, "")
    assert said in " ".join(found.err.split())
    assert not clinic.with_name("clinic.ledger").exists() or spent(clinic) == 0


def test_accuracy_of_a_mean_cannot_be_promised(clinic: Path, run) -> None:
    said = run("query", clinic, QUESTION, "--within", "cost=5")
    assert (said.status, said.out) == (3, "")
    assert "depends on the data" in said.err


def test_an_exhausted_budget_has_its_own_status(clinic: Path, run) -> None:
    assert run("query", clinic, "SELECT COUNT(*) AS n FROM visits", "--epsilon", 8).status == 0
    said = run("query", clinic, QUESTION, "--epsilon", 3)
    assert (said.status, said.out) == (4, "")
    assert "The largest that still fits is ε = 2.\n" in said.err  # and not what its first parts would leave
    assert said.err.count("\n") == 1
    assert (
        "asked now, it would be refused: ε = 3 passes the limit of ε ="
        in run("explain", clinic, QUESTION, "--epsilon", 3).out
    )


def test_a_bad_policy_is_status_2(clinic: Path, run, tmp_path: Path) -> None:
    said = run("query", tmp_path / "gone.toml", QUESTION, "--epsilon", 1)
    assert (said.status, said.out) == (2, "")
    assert "cannot be read" in said.err
    clinic.write_text(clinic.read_text("utf-8").replace("rows_per_person", "rows_per_persons"), "utf-8")
    said = run("explain", clinic, QUESTION, "--epsilon", 1)
    assert (said.status, said.out) == (2, "")
    assert "Did you mean rows_per_person?" in said.err


def test_a_failure_of_the_machine_is_status_1(clinic: Path, run, tmp_path: Path) -> None:
    assert exit_code(EngineFailed("out of memory")) == 1
    assert exit_code(NotAllowed("no")) == 3
    assert exit_code(QueryError("no")) == 2
    run("query", clinic, QUESTION, "--epsilon", 1)
    (tmp_path / "clinic.ledger.checkpoint").unlink()
    said = run("query", clinic, QUESTION, "--epsilon", 1)
    assert (said.status, said.out) == (1, "")


# --- explain --------------------------------------------------------------------------------------------


def test_explain_tells_the_plan_and_spends_nothing(clinic: Path, run) -> None:
    said = run("explain", clinic, QUESTION, "--epsilon", 0.6, "--weight", "visits=2")
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert "protects    one person (all rows of one patient_id)" in lines
    assert "one person  at most 3 rows, 2 groups, 3 rows in a group" in lines
    assert "groups      2, by city" in lines
    assert "noise       Laplace" in lines
    assert "cost        ε = 0.6" in lines
    assert "then        ε = 9.4 would remain" in lines
    head = next(number for number, line in enumerate(lines) if line.startswith("column "))
    table = {line.split()[0]: line for line in lines[head + 2 : head + 5]}
    assert "none" in table["city"]
    assert "± 22" in table["visits"]  # Laplace of scale 3 / 0.4, at 95%
    assert "depends on the data" in table["cost"]
    assert any(line.startswith("rows for count(*)") and " 66.7% " in line for line in lines)
    assert "Nothing was spent." in said.out
    assert spent(clinic) == 0


def test_what_explain_expects_is_what_an_answer_has(clinic: Path, run) -> None:
    question = (
        "SELECT COUNT(*) AS n, SUM(cost) AS s, COUNT(DISTINCT patient_id) AS p, COUNT(*) * 2 AS twice FROM visits"
    )
    plan = json.loads(run("explain", clinic, question, "--epsilon", 1, "--format", "json").out)
    answer = json.loads(run("query", clinic, question, "--epsilon", 1, "--format", "json").out)
    expected = {column["name"]: column["error"] for column in plan["columns"]}
    found = dict(zip(answer["columns"], answer["errors"][0], strict=True))
    assert {name: expected[name] for name in ("n", "s", "p")} == pytest.approx({n: found[n] for n in ("n", "s", "p")})
    assert expected["twice"] is None
    assert plan["columns"][3]["error_by_rows"]["100000"] == pytest.approx(found["twice"])
    assert sum(measure["share"] for measure in plan["measures"]) == pytest.approx(1)
    assert plan["guarantee"] == "ε = 1"
    assert plan["remaining"] == "ε = 9"


def test_the_error_for_an_imagined_size_is_that_of_a_real_one(clinic: Path, run) -> None:
    question = "SELECT AVG(cost) AS mean FROM visits"
    plan = json.loads(run("explain", clinic, question, "--epsilon", 5, "--format", "json").out)
    answer = json.loads(run("query", clinic, question, "--epsilon", 5, "--format", "json").out)
    small, large = plan["columns"][0]["error_by_rows"].values()
    assert large < answer["errors"][0][0] < small  # of 3,000 rows, between 1,000 and 100,000
    assert small == pytest.approx(3 * answer["errors"][0][0], rel=0.5)


@pytest.mark.slow
def test_explain_for_quantiles_and_groups_that_are_not_declared(clinic: Path, run) -> None:
    said = run("explain", clinic, "SELECT MEDIAN(age) AS m FROM visits", "--epsilon", 1)
    assert re.search(r"^m +median\(age\) +± [\d.]+ ranks$", said.out, flags=re.MULTILINE)
    question = "SELECT note, COUNT(*) AS n, STDDEV(cost) AS d FROM visits GROUP BY note"
    said = run("explain", clinic, question, "--epsilon", 1, "--delta", 1e-8)
    assert re.search(
        r"^groups +those with enough people .about [\d,]+ each, if nobody is in several., by note",
        said.out,
        flags=re.MULTILINE,
    )
    plan = json.loads(run("explain", clinic, question, "--epsilon", 1, "--delta", 1e-8, "--format", "json").out)
    assert plan["groups"] is None
    assert sum(measure["share"] for measure in plan["measures"]) == pytest.approx(1)
    assert spent(clinic) == 0


def test_explained_without_a_ledger_says_nothing_of_what_remains(clinic: Path) -> None:
    plan = dp.connect(clinic).plan("SELECT COUNT(*) FROM visits", epsilon=1)
    assert "would remain" not in explain_plan(plan)
    assert "remaining" not in describe_plan(plan)

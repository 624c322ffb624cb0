"""Publications: what is written, what it costs, what is refused before a charge, and what is never paid twice."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dp
from discreet import testing
from discreet.publication import explain_publication, verify_publication
from discreet.publication.plan import load_plan, plan_in

from ..refusing import refuses
from .conftest import policy_in, write_data

Plan = Callable[..., dict[str, Any]]


def charges(folder: Path) -> int:
    """How many charges the ledger has."""
    ledger = dp.Ledger.open(folder / "clinic.ledger")
    found = sum(entry.kind == "charge" for entry in ledger.entries())
    ledger.close()
    return found


def test_a_publication_is_written_verified_and_paid_once(clinic: Path, plan: Plan) -> None:
    lines: list[str] = []
    made = dp.publish(plan(), clinic / "out", progress=lines.append)
    names = ["by_city", "by_country", "city_sex", "people"]
    assert [one["name"] for one in made.facts["parts"]] == names
    assert any("of 4: people" in line for line in lines)
    files = {f"{name}.{kind}" for name in names for kind in ("csv", "parquet")}
    assert set(made.files) == files | {"card.md", "card.html", "proof.json", "public/cities.parquet"}
    for name in names:
        table = pyarrow.parquet.read_table(clinic / "out" / f"{name}.parquet")
        text = pyarrow.csv.read_csv(clinic / "out" / f"{name}.csv")
        assert text.column_names == table.column_names
        assert text.num_rows == table.num_rows
    people = pyarrow.parquet.read_table(clinic / "out" / "people.parquet").to_pylist()
    assert not [row for row in people if row["city"] == "Kiel" and row["age"] < 15]
    assert all(0 <= row["age"] <= 100 for row in people)
    checked = verify_publication(clinic / "out", clinic / "clinic.ledger")
    assert checked.holds, str(checked)
    assert "cannot be checked" in str(checked)
    assert charges(clinic) == 4 == len(made.facts["receipts"])
    again = dp.publish(plan(), clinic / "out")
    assert again.already
    assert charges(clinic) == 4
    assert "already" in str(again)
    elsewhere = dp.publish(plan(), clinic / "other")
    assert not elsewhere.already
    assert charges(clinic) == 4
    assert (clinic / "other" / "proof.json").read_bytes() == (clinic / "out" / "proof.json").read_bytes()
    assert not list(clinic.glob(".*.part"))


UNITS = [{"row": True}, {"row": True, "neighbors": "replace"}, {"person": "patient_id", "neighbors": "replace"}]


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_all_units_and_relations(clinic: Path, plan: Plan, unit: Any) -> None:
    words = plan("by_city", "people", **unit)
    words["anyway"] = True  # how good the table is depends on luck
    made = dp.publish(words, clinic / "out")
    checked = verify_publication(clinic / "out", clinic / "clinic.ledger")
    assert checked.holds, str(checked)
    ledger = dp.Ledger.open(clinic / "clinic.ledger")
    assert repr(ledger.protects) == made.facts["ledger"]["protects"]
    mechanism = ledger.entries()[-1].mechanism
    assert f"rows={1 if 'row' in unit else 3}" in mechanism


@pytest.mark.slow
def test_rows_per_person_that_nobody_declares_are_found_and_charged(clinic: Path, plan: Plan) -> None:
    words = plan("people")
    words["anyway"] = True  # how good the table is depends on luck
    del words["policy"]["tables"]["visits"]["rows_per_person"]
    made = dp.publish(words, clinic / "out")
    assert len(made.facts["receipts"]) == 2 == charges(clinic)
    assert "Found privately" in made.facts["parts"][0]["notes"][0]
    assert verify_publication(clinic / "out", clinic / "clinic.ledger").holds
    assert dp.publish(words, clinic / "out").already
    assert charges(clinic) == 2


@pytest.mark.slow
def test_the_best_of_several_candidates_is_charged_by_its_theorem(clinic: Path, plan: Plan) -> None:
    words = plan("people", "by_city")
    words["synthetic"]["people"] |= {"candidates": [{"rounds": 1}, {"rounds": 0}], "tries": 2, "at_least": 3}
    lines: list[str] = []
    explained = str(explain_publication(words))
    assert "best of 2 tries on average, of 2 candidates" in explained
    assert charges(clinic) == 0
    made = dp.publish(words, clinic / "out", progress=lines.append)
    assert [one["name"] for one in made.facts["parts"]] == ["by_city", "people"]
    assert not [line for line in lines if "round" in line or "measuring" in line], "tries must not be counted"
    entry = made.facts["receipts"][-1]
    assert "Selection(" in entry["mechanism"]
    assert "tries" in entry["mechanism"]
    assert verify_publication(clinic / "out", clinic / "clinic.ledger").holds


@pytest.mark.slow
def test_explaining_spends_nothing(clinic: Path, plan: Plan) -> None:
    shown = str(explain_publication(plan()))
    assert charges(clinic) == 0
    for part in ("tables.by_city: ε = 1", "cubes.city_sex", "synthetic.people", "remains of", "measured to within"):
        assert part in shown
    dp.publish(plan("by_city"), clinic / "out")
    assert "(paid before)" not in str(explain_publication(plan("by_country")))
    assert "(paid before)" in str(explain_publication(plan("by_city")))


@pytest.mark.slow
def test_criteria_that_are_not_met_are_not_published(clinic: Path, plan: Plan) -> None:
    words = plan("people")
    words["synthetic"]["people"]["criteria"][0]["at_most"] = 1e-9
    with refuses(dp.NotAllowed, "publish-not-accepted"):
        dp.publish(words, clinic / "out")
    assert not (clinic / "out").exists()
    assert charges(clinic) == 1
    made = dp.publish(words | {"anyway": True, "edition": "2"}, clinic / "out")
    assert charges(clinic) == 1, "the same rows, whatever is done with them"
    assert not made.facts["parts"][0]["criteria"][0]["met"]
    assert "NOT MET" in (clinic / "out" / "card.md").read_text()


def test_nothing_is_spent_unless_all_of_it_fits(clinic: Path, plan: Plan) -> None:
    words = plan()
    words["policy"]["ledger"] |= {"epsilon": 3, "delta": 1e-5}
    with refuses(dp.BudgetExhausted, "budget-exhausted"):
        dp.publish(words, clinic / "out")
    assert charges(clinic) == 0
    assert not (clinic / "out").exists()


@pytest.mark.slow
def test_what_is_there_is_left_alone(clinic: Path, plan: Plan) -> None:
    (clinic / "mine").mkdir()
    (clinic / "mine" / "notes.txt").write_text("mine")
    (clinic / "file").write_text("mine")
    for place in ("mine", "file"):
        with refuses(dp.InvalidArgument, "publish-exists"):
            dp.publish(plan("by_city"), clinic / place)
    with refuses(dp.InvalidArgument, "no-such-folder"):
        dp.publish(plan("by_city"), clinic / "no" / "out")
    assert not (clinic / "clinic.ledger").exists(), "nothing was opened, so nothing was charged"
    (clinic / "empty").mkdir()
    dp.publish(plan("by_city"), clinic / "empty")
    with refuses(dp.InvalidArgument, "publish-exists"):
        dp.publish(plan("by_country"), clinic / "empty")
    (clinic / "empty" / "more.txt").write_text("mine")
    with refuses(dp.InvalidArgument, "publish-exists"):
        dp.publish(plan("by_city"), clinic / "empty")
    assert (clinic / "mine" / "notes.txt").read_text() == "mine"


@pytest.mark.some_quick(1)
@pytest.mark.parametrize("part", ["by_city", "people"])
def test_new_data_need_a_new_edition(clinic: Path, plan: Plan, part: str) -> None:
    dp.publish(plan(part), clinic / "out")
    write_data(clinic, rows=900, seed=2)
    os.utime(clinic / "visits.parquet", ns=(1, 1))
    with refuses(dp.NotAllowed, "publish-other-data"):
        dp.publish(plan(part), clinic / "new")
    assert charges(clinic) == 1
    dp.publish(plan(part) | {"edition": "2"}, clinic / "new")
    assert charges(clinic) == 2
    assert verify_publication(clinic / "out", clinic / "clinic.ledger").holds
    assert verify_publication(clinic / "new", clinic / "clinic.ledger").holds


@pytest.mark.slow
def test_data_without_a_version_are_refused(clinic: Path, plan: Plan) -> None:
    words = plan("by_city")
    table = pyarrow.parquet.read_table(clinic / "visits.parquet")
    words["policy"]["tables"]["visits"]["source"] = table
    with refuses(dp.NotAllowed, "publish-no-version"):
        dp.publish(words, clinic / "out")
    assert charges(clinic) == 0
    words["policy"]["tables"]["visits"]["version"] = "1"
    dp.publish(words, clinic / "out")
    words["policy"]["ledger"]["path"] = ":memory:"
    with refuses(dp.InvalidArgument, "policy-ledger-in-memory"):
        dp.publish(words, clinic / "out2")


@pytest.mark.slow
def test_an_analyst_is_charged_and_the_ledger_still_confirms_it(clinic: Path, plan: Plan) -> None:
    words = plan("by_city")
    ledger = dp.connect(words["policy"]).ledger
    ledger.for_analyst("ada", limit=dp.Approx(epsilon=2, delta=1e-5))
    ledger.close()
    made = dp.publish(words, clinic / "out", analyst="ada")
    assert made.facts["receipts"][0]["analyst"] == "ada"
    assert verify_publication(clinic / "out", clinic / "clinic.ledger").holds


def test_test_mode_is_stated_and_does_not_pass(clinic: Path, plan: Plan) -> None:
    with testing.no_noise():
        made = dp.publish(plan("by_city"), clinic / "out")
    assert made.facts["not_private"]
    assert "NOT PRIVATE" in (clinic / "out" / "card.html").read_text()
    checked = verify_publication(clinic / "out", clinic / "clinic.ledger")
    assert not checked.holds
    assert [one.what for one in checked.checks if not one.holds] == ["the noise was not under control"]


@pytest.mark.slow
def test_nothing_that_is_not_charged_is_written(clinic: Path, plan: Plan) -> None:
    """Neither the path, the size nor the time of the data, nor when charges were made, is in a file."""
    dp.publish(plan(), clinic / "out")
    size = (clinic / "visits.parquet").stat().st_size
    for file in ("proof.json", "card.md", "card.html"):
        text = (clinic / "out" / file).read_text()
        assert str(clinic) not in text
        assert "visits.parquet" not in text
        assert not re.search(rf"(?<![0-9a-f]){size}(?![0-9a-f])", text)  # it may be a part of a digest
    proof = json.loads((clinic / "out" / "proof.json").read_text())
    assert "time" not in proof["receipts"][0]
    assert len(proof["date"]) == 10


@pytest.mark.slow
def test_the_shape_of_a_synthetic_table_follows_from_noise_alone(clinic: Path, plan: Plan) -> None:
    """A row with an odd value changes only its own part: it is left out."""
    table = pyarrow.parquet.read_table(clinic / "visits.parquet")
    odd = pa.table({"patient_id": [10**6], "city": ["Atlantis"], "sex": [None], "age": [10**9]}, schema=table.schema)
    sizes = []
    for name, rows in (("a", table), ("b", pa.concat_tables([table, odd]))):
        folder = clinic / name
        folder.mkdir()
        write_data(folder)
        pyarrow.parquet.write_table(rows, folder / "visits.parquet")
        words = plan("people") | {"policy": policy_in(folder)}
        with testing.no_noise():
            dp.publish(words, folder / "out")
        sizes.append(pyarrow.parquet.read_table(folder / "out" / "people.parquet").num_rows)
    assert sizes[0] == sizes[1]


# --- plans ------------------------------------------------------------------------------------------------------


def changed(words: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    """The plan with another value at a place, such as "synthetic.people.bins". None removes it."""
    *path, last = place.split(".")
    at = words
    for name in path:
        at = at[int(name)] if name.isdigit() else at[name]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return words


@pytest.mark.parametrize(
    ("place", "value", "code"),
    [
        ("policy", None, "plan-missing-key"),
        ("titel", "x", "plan-unknown-key"),
        ("tables", "visits", "plan-section"),
        ("title", 3, "wrong-type"),
        ("anyway", "yes", "wrong-type"),
        ("confidence", 2, "out-of-range"),
        ("tables.by_city.epsilon", None, "plan-missing-key"),
        ("tables.by_city.sql", None, "plan-missing-key"),
        ("tables.By City", {"sql": "SELECT 1", "epsilon": 1}, "plan-name"),
        ("tables.a/b", {"sql": "SELECT 1", "epsilon": 1}, "plan-name"),
        ("tables.people", {"sql": "SELECT 1", "epsilon": 1}, "duplicates"),
        ("cubes.city_sex.by", None, "plan-missing-key"),
        ("cubes.city_sex.by", 5, "plan-missing-key"),
        ("synthetic.people.columns", None, "plan-missing-key"),
        ("synthetic.people.columns", "age", "wrong-type"),
        ("synthetic.people.columns", ["age", "age"], "duplicates"),
        ("synthetic.people.bins", 0, "out-of-range"),
        ("synthetic.people.never", [3], "wrong-type"),
        ("synthetic.people.candidates", [], "wrong-type"),
        ("synthetic.people.candidates", [{}, {}], "plan-missing-key"),
        ("synthetic.people.candidates", [{"steps": 1}], "plan-unknown-key"),
        ("synthetic.people.tries", 1, "out-of-range"),
        ("synthetic.people.criteria", "all", "wrong-type"),
        ("synthetic.people.criteria.0.kind", "error", "plan-criterion"),
        ("synthetic.people.criteria.0.kind", ["error"], "plan-criterion"),
        ("synthetic.people.criteria.0.at_most", None, "plan-missing-key"),
        ("synthetic.people.criteria.0.of", "age", "plan-unknown-key"),
    ],
)
def test_a_plan_is_refused_before_the_data_are_opened(plan: Plan, place: str, value: Any, code: str) -> None:
    with refuses(dp.InvalidArgument, code):
        plan_in(changed(plan(), place, value), None)


def test_text_that_is_not_unicode_is_refused(plan: Plan, clinic: Path) -> None:
    with refuses(dp.InvalidArgument, "wrong-type"):
        dp.publish(plan("by_city") | {"title": "\ud800"}, clinic / "out")


def test_plans_that_need_criteria_or_publish_nothing_are_refused(plan: Plan, clinic: Path) -> None:
    words = plan("people")
    words["synthetic"]["people"] |= {"tries": 2, "criteria": []}
    with refuses(dp.InvalidArgument, "plan-missing-key"):
        plan_in(words, None)
    with refuses(dp.InvalidArgument, "plan-missing-key"):
        plan_in({"policy": "clinic.toml"}, None)
    twice = plan("people")
    twice["synthetic"]["people"]["tries"] = 2
    twice["synthetic"]["others"] = dict(twice["synthetic"]["people"])
    with refuses(dp.InvalidArgument, "plan-selected-twice"):
        plan_in(twice, None)
    del twice["synthetic"]["others"]["tries"]
    last = plan_in(twice, None).parts[-1]  # nothing that follows tells how long it took
    assert (last.name, last.is_selected) == ("people", True)
    with refuses(dp.InvalidArgument, "plan-file"):
        load_plan(clinic / "none.toml")
    (clinic / "bad.toml").write_text("title = ")
    with refuses(dp.InvalidArgument, "plan-not-toml"):
        load_plan(clinic / "bad.toml")
    with refuses(dp.InvalidArgument, "wrong-type"):
        load_plan(3)
    with refuses(dp.InvalidArgument, "wrong-type"):
        dp.publish(plan("by_city"), 3)  # type: ignore[arg-type]


@pytest.mark.some_quick(4)
@pytest.mark.parametrize(
    ("place", "value", "code"),
    [
        ("synthetic.people.table", "nobody", "unknown-table"),
        ("synthetic.people.columns", ["city", "weight"], "unknown-column"),
        ("synthetic.people.columns", ["city", "patient_id"], "plan-undeclared"),
        ("synthetic.people.delta", 0, "needs-delta"),
        ("synthetic.people.never", [{"weight": [1, 2]}], "plan-never"),
        ("synthetic.people.never", [{"city": ["Atlantis"]}], "plan-never"),
        ("synthetic.people.never", [{"age": [9, 2]}], "plan-never"),
        ("synthetic.people.criteria.0.ways", 9, "out-of-range"),
        ("synthetic.people.criteria.1.of", "weight", "unknown-column"),
        ("synthetic.people.criteria.1.of", "city", "duplicates"),
        ("synthetic.people.criteria.1.of", "sex", "column-type"),
        ("synthetic.people.criteria.1", {"kind": "slopes", "of": "age", "on": ["age"], "at_most": 1}, "duplicates"),
        (
            "synthetic.people.criteria.1",
            {"kind": "matched", "columns": ["age"], "join": {"city": 2}, "at_most": 1},
            "unknown-column",
        ),
    ],
)
def test_a_plan_that_does_not_fit_its_policy_is_refused_before_a_charge(
    clinic: Path, plan: Plan, place: str, value: Any, code: str
) -> None:
    words = plan("by_city", "people")
    if place.rpartition(".")[2].isdigit():
        words["synthetic"]["people"]["criteria"][1] = value
    else:
        changed(words, place, value)
    with refuses(dp.InvalidArgument, code):
        dp.publish(words, clinic / "out")
    assert charges(clinic) == 0
    assert not (clinic / "out").exists()


@pytest.mark.slow
def test_dates_choices_of_numbers_and_conditions(clinic: Path, plan: Plan) -> None:
    table = pyarrow.parquet.read_table(clinic / "visits.parquet")
    days = np.array(["2024-01-01"], "datetime64[D]") + np.arange(table.num_rows) % 60
    more = table.append_column("day", pa.array(days)).append_column("grade", pa.array(np.arange(len(days)) % 4))
    pyarrow.parquet.write_table(more, clinic / "visits.parquet")
    words = plan("people")
    import datetime

    ends = [datetime.date(2024, 1, 1), datetime.date(2024, 2, 29)]
    words["policy"]["tables"]["visits"]["columns"] |= {"day": {"between": ends}, "grade": {"choices": [0, 1, 2, 3]}}
    words["synthetic"]["people"] = {
        "table": "visits",
        "columns": ["day", "grade", "age"],
        "where": "sex = 'f'",
        "epsilon": 8,
        "delta": 1e-6,
        "bins": 4,
        "rows": 100,
        "candidates": [{"rounds": 1}],
        "criteria": [
            {"kind": "slopes", "of": "grade", "on": ["age"], "at_most": 100},
            {"kind": "matched", "columns": ["day", "grade"], "join": {"day": 2}, "at_most": 2, "title": "Partners"},
            {"kind": "counts", "at_least": 20, "at_most": 90},
        ],
    }
    made = dp.publish(words, clinic / "out")
    rows = pyarrow.parquet.read_table(clinic / "out" / "people.parquet")
    assert rows.num_rows == 100
    assert rows.schema.field("day").type == pa.date32()
    assert made.facts["parts"][0]["criteria"][1]["criterion"] == "Partners"
    checked = verify_publication(clinic / "out", clinic / "clinic.ledger")
    assert checked.holds, str(checked)

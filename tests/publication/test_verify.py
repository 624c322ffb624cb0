"""Verification with the ledger alone: every kind of tampering is found, and an honest publication passes."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.publication import Checked, verify_publication
from discreet.publication.writing import digest, table_files

from ..refusing import refuses
from .conftest import plan_in, write_data

Plan = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clinic with a publication, made once."""
    folder = tmp_path_factory.mktemp("published")
    write_data(folder)
    dp.publish(plan_in(folder, "by_city", "people"), folder / "out")
    return folder


@pytest.fixture
def original(clinic: Path, plan: Plan) -> Path:
    """A publication, of which the data are gone, next to a ledger that may be opened: a copy of one may not."""
    dp.publish(plan("by_city", "people"), clinic / "out")
    (clinic / "visits.parquet").unlink()
    return clinic / "out"


@pytest.fixture
def out(published: Path, clinic: Path) -> Path:
    """A copy of the publication and of its ledger, without the data."""
    shutil.copytree(published, clinic, dirs_exist_ok=True)
    (clinic / "visits.parquet").unlink()
    return clinic / "out"


def failed(checked: Checked) -> list[str]:
    return [one.what for one in checked.checks if not one.holds]


def verified(out: Path) -> list[str]:
    return failed(verify_publication(out, out.parent / "clinic.ledger"))


def change_proof(out: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    proof = json.loads((out / "proof.json").read_text())
    change(proof)
    (out / "proof.json").write_text(json.dumps(proof))


def replace_files(out: Path, files: dict[str, bytes]) -> None:
    """Replace files, and their digests in the proof: what somebody does who knows how it is checked."""
    for name, data in files.items():
        (out / name).write_bytes(data)
    change_proof(out, lambda proof: proof["files"].update({name: digest(data) for name, data in files.items()}))


def copy_ledger(source: Path, to: Path) -> None:
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(to)) as written:
        read.backup(written)


@pytest.mark.slow
def test_an_honest_publication_passes_without_the_data(original: Path) -> None:
    before = (original.parent / "clinic.ledger").read_bytes()
    assert verified(original) == []
    assert (original.parent / "clinic.ledger").read_bytes() == before, "nothing is written to the ledger"
    copy = original.parent / "elsewhere"
    copy.mkdir()
    copy_ledger(original.parent / "clinic.ledger", copy / "copy.ledger")
    assert verify_publication(original, copy / "copy.ledger").holds, "a copy without its checkpoint is enough"
    assert sorted(copy.iterdir()) == [copy / "copy.ledger"]
    with closing(dp.Ledger.open(original.parent / "clinic.ledger")) as ledger:
        assert verify_publication(original, ledger).holds


@pytest.mark.slow
def test_a_publication_by_month_passes(clinic: Path, plan: Plan) -> None:
    words = plan("by_city", "city_sex", person="patient_id", per="month")
    days = pa.array(np.datetime64("2024-01-01") + np.arange(800) % 90)
    visits = pa.parquet.read_table(clinic / "visits.parquet").append_column("day", days)
    pa.parquet.write_table(visits, clinic / "visits.parquet")
    words["policy"]["tables"]["visits"]["time"] = {"column": "day", "block": "month"}
    dp.connect(words["policy"]).part("2024-01").sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
    dp.publish(words, clinic / "out")
    (clinic / "visits.parquet").unlink()
    assert verified(clinic / "out") == []


@pytest.mark.slow
def test_later_charges_and_changes_of_the_limit_do_not_matter(original: Path) -> None:
    with closing(dp.Ledger.open(original.parent / "clinic.ledger")) as ledger:
        dp.release(5, dp.Laplace(scale=10), sensitivity=1, ledger=ledger)
        ledger.raise_limit(dp.Approx(epsilon=60, delta=1e-4), why="agreed")
        ledger.renew(dp.Approx(epsilon=5, delta=1e-5), why="a new year")
    assert verified(original) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["by_city.csv", "by_city.parquet", "people.csv", "card.md", "public/cities.parquet"])
def test_a_changed_file_is_found(out: Path, name: str) -> None:
    data = bytearray((out / name).read_bytes())
    data[len(data) // 2] ^= 1
    (out / name).write_bytes(bytes(data))
    assert f"file {name}" in verified(out)


def test_a_missing_file_and_one_too_many_are_found(out: Path) -> None:
    (out / "by_city.csv").unlink()
    (out / "more.csv").write_text("a\r\n1\r\n")
    found = verified(out)
    assert "file by_city.csv" in found
    assert "file more.csv" in found


def test_a_replaced_answer_is_found_even_if_the_proof_is_changed_with_it(out: Path) -> None:
    table = pyarrow.parquet.read_table(out / "by_city.parquet")
    visits = pa.array([one + 100 for one in table.column("visits").to_pylist()])
    other = table.set_column(1, "visits", visits)
    replace_files(out, table_files("by_city", other))
    assert "by_city: the published numbers are the stored answers" in verified(out)


@pytest.mark.slow
def test_replaced_synthetic_rows_are_found(out: Path) -> None:
    table = pyarrow.parquet.read_table(out / "people.parquet")
    replace_files(out, table_files("people", table.slice(1)))
    assert "people: the published numbers are the stored answers" in verified(out)


@pytest.mark.slow
def test_a_receipt_of_another_ledger_is_found(out: Path, plan: Plan, clinic: Path) -> None:
    other = clinic / "other"
    other.mkdir()
    write_data(other)
    words = plan("by_city", "people")
    words["policy"]["ledger"]["path"] = str(other / "clinic.ledger")
    words["policy"]["tables"]["visits"]["source"] = str(other / "visits.parquet")
    dp.publish(words, other / "out")
    assert failed(verify_publication(other / "out", other / "clinic.ledger")) == []
    found = failed(verify_publication(out, other / "clinic.ledger"))
    assert "the ledger is the one that is named" in found
    assert "the ledger reaches the last receipt" in found
    assert any(what.startswith("receipt ") for what in found)
    theirs = json.loads((other / "out" / "proof.json").read_text())["receipts"]
    change_proof(out, lambda proof: proof["receipts"].__setitem__(0, theirs[0]))
    found = verified(out)
    assert f"receipt {theirs[0]['receipt']}" in found
    assert "the published numbers are the stored answers" in found


@pytest.mark.slow
def test_an_older_copy_of_the_ledger_is_found(clinic: Path, plan: Plan) -> None:
    dp.publish(plan("by_country"), clinic / "first")
    old = clinic / "old"
    old.mkdir()
    copy_ledger(clinic / "clinic.ledger", old / "clinic.ledger")
    dp.publish(plan("by_city"), clinic / "out")
    assert verify_publication(clinic / "first", old / "clinic.ledger").holds
    checked = verify_publication(clinic / "out", old / "clinic.ledger")
    assert "the ledger reaches the last receipt" in failed(checked)
    assert "older than the publication" in str(checked)


@pytest.mark.some_quick(3)
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda p: p["cost"].update(text="ε = 0.1"), "cost as stated"),
        (lambda p: p["spent_by_then"].update(epsilon=0.1), "spent by then as stated"),
        (lambda p: p["limit"].update(epsilon=1.0), "limit as stated"),
        (lambda p: p["meaning"]["rows"][0].__setitem__(1, "0%"), "meaning as stated"),
        (lambda p: p["parts"][1]["criteria"][0].update(value=-1.0), "parts as stated"),
        (lambda p: p["parts"][0].update(largest_errors={"visits": 1.0}), "parts as stated"),
        (lambda p: p.update(date="2020-01-01"), "date as stated"),
        (lambda p: p["receipts"][0]["cost"].__setitem__(0, 1), "receipt"),
        (lambda p: p["receipts"][0]["total_after"].__setitem__(1, 1), "receipt"),
        (lambda p: p["receipts"][0].update(mechanism="Laplace(scale=1)"), "receipt"),
        (lambda p: p["receipts"][0]["guarantee"].update(more=1), "receipt"),
        (lambda p: p["receipts"][0].update(answer="0" * 64), "receipt"),
        (lambda p: p["receipts"].pop(0), "the published numbers"),
        (lambda p: p["plan"]["tables"]["by_city"].update(epsilon=0.5), "the plan is the one that is named"),
        (lambda p: p["policy"]["tables"]["visits"].update(rows_per_person=1), "the published numbers"),
        (lambda p: p["policy"]["tables"].pop("visits"), "the published numbers"),
        (lambda p: p.update(delta_per_question="none"), "the published numbers"),
        (lambda p: p["ledger"].update(last_entry=1), "ledger as stated"),
        (lambda p: p.update(not_private=True), "the noise was not under control"),
    ],
)
def test_a_changed_proof_is_found(out: Path, change: Any, what: str) -> None:
    change_proof(out, change)
    found = verified(out)
    assert any(one.startswith(what) for one in found), found


def test_a_changed_card_is_found_even_if_its_digest_is_changed_with_it(out: Path) -> None:
    text = (out / "card.md").read_text().replace("ε", "e")
    replace_files(out, {"card.md": text.encode()})
    assert verified(out) == ["card.md says what the proof states"]


@pytest.mark.some_quick(1)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE answers SET data = x'00' WHERE number = 1",
        "UPDATE entries SET totals = replace(totals, '1', '2') WHERE number = 1",
        "UPDATE entries SET asked = 'something else' WHERE number = 1",
        "DELETE FROM answers WHERE number = 1",
    ],
)
def test_a_changed_ledger_is_found(out: Path, statement: str) -> None:
    with closing(sqlite3.connect(out.parent / "clinic.ledger")) as database, database:
        database.execute(statement)
    assert verified(out)


@pytest.mark.slow
def test_what_is_no_publication_or_no_ledger_is_refused(out: Path, clinic: Path) -> None:
    with refuses(dp.InvalidArgument, "verify-no-proof"):
        verify_publication(clinic, clinic / "clinic.ledger")
    with refuses(dp.InvalidArgument, "ledger-not-found"):
        verify_publication(out, clinic / "none.ledger")
    with refuses(dp.InvalidArgument, "wrong-type"):
        verify_publication(out, 3)
    (clinic / "text.ledger").write_text("this is not a database, and is longer than a header of one would be" * 9)
    with refuses(dp.InvalidArgument, "ledger-not-found"):
        verify_publication(out, clinic / "text.ledger")
    change_proof(out, lambda proof: proof.update(format=99))
    with refuses(dp.InvalidArgument, "verify-no-proof"):
        verify_publication(out, clinic / "clinic.ledger")
    (out / "proof.json").write_text("[]")
    with refuses(dp.InvalidArgument, "verify-no-proof"):
        verify_publication(out, clinic / "clinic.ledger")
    shutil.rmtree(out)

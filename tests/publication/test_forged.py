"""Forged publications: somebody who knows the format changes it and makes every file again. The ledger finds it."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.publication import verify_publication
from discreet.publication.card import card_html, card_markdown
from discreet.publication.plan import plan_digest
from discreet.publication.writing import digest

from ..refusing import refuses
from .bugs import (
    declarations_of_another,
    links_and_notes_are_found,
    more_than_is_known_is_found,
    the_time_of_writing_is_not_kept,
)
from .conftest import CITIES
from .test_verify import change_proof, replace_files, verified

Plan = Callable[..., dict[str, Any]]


@pytest.fixture
def out(clinic: Path, plan: Plan) -> Path:
    dp.publish(plan("by_city", "by_country"), clinic / "out")
    return clinic / "out"


def of_visits(name: str, **declared: Any) -> Callable[[Any], None]:
    return lambda policy: policy["tables"]["visits"]["columns"][name].update(declared)


def of_cities(policy: Any) -> None:
    policy["tables"]["cities"]["columns"]["country"].update(choices=["AA", "BB", "CC"])


FORGED: dict[str, tuple[Callable[[Any], None], dict[str, list[str]]]] = {
    "a label": (of_visits("city", choices=["Bled", "Haifa", "Paris"]), {"city": ["Bled", "Haifa", "Paris"]}),
    "the order of labels": (of_visits("city", choices=CITIES[::-1]), {}),
    "a range": (of_visits("age", between=[900, 1000]), {}),
    "a public table": (of_cities, {"country": ["AA", "BB", "CC"]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGED)
def test_numbers_under_other_declarations_are_not_found(out: Path, name: str) -> None:
    """The stored numbers have no labels: these come from the declarations, which the record of a charge binds."""
    change, public = FORGED[name]
    declarations_of_another(out, change, public)


def test_a_test_that_is_said_to_be_private_is_found(clinic: Path, plan: Plan) -> None:
    with dp.testing.no_noise():
        dp.publish(plan("by_city"), clinic / "out")
    change_proof(clinic / "out", lambda proof: proof.update(not_private=False))
    assert "the noise was not under control" in verified(clinic / "out")


def test_links_other_things_and_notes_in_files_are_found(clinic: Path, plan: Plan) -> None:
    links_and_notes_are_found(clinic, plan)


@pytest.mark.slow
def test_what_is_neither_a_file_nor_used_is_found(out: Path) -> None:
    os.mkfifo(out / "pipe.csv")
    (out / "more").mkdir()
    (out / "gone.csv").symlink_to("nowhere")
    assert verified(out) == ["file gone.csv", "file more", "file pipe.csv"]


def test_more_than_is_known_is_found(clinic: Path, plan: Plan) -> None:
    more_than_is_known_is_found(clinic, plan)


@pytest.mark.slow
def test_a_file_too_many_is_found_even_if_the_proof_lists_it(out: Path) -> None:
    replace_files(out, {"more.csv": b"a\r\n1\r\n"})
    assert verified(out) == ["the proof states this and nothing else"]


@pytest.mark.parametrize("name", ["../../cities", "/etc/cities"])
def test_a_public_table_is_read_from_the_folder_only(out: Path, name: str) -> None:
    cities = json.loads((out / "proof.json").read_text())["policy"]["tables"]["cities"]
    change_proof(out, lambda proof: proof["policy"]["tables"].update({name: cities}))
    assert "the published numbers are the stored answers" in verified(out)


def test_other_titles_and_texts_are_not_confirmed(out: Path) -> None:
    """A forged title makes it another plan, for which nothing was charged. The card would have to say so."""
    proof = json.loads((out / "proof.json").read_text())
    proof["plan"] |= {"title": "Exact numbers", "edition": "2030"}
    proof["plan_digest"] = plan_digest(proof["plan"])
    cards = {"card.md": card_markdown(proof).encode(), "card.html": card_html(proof).encode()}
    for name, data in cards.items():
        (out / name).write_bytes(data)
    proof["files"] |= {name: digest(data) for name, data in cards.items()}
    (out / "proof.json").write_text(json.dumps(proof))
    assert {"parts as stated", "card.md says what the proof states"} <= set(verified(out))


def test_numbers_that_were_charged_before_are_published_for_free_and_the_card_says_so(clinic: Path, plan: Plan) -> None:
    dp.publish(plan("by_city"), clinic / "out")
    again = plan("by_city") | {"title": "Another title"}
    with closing(dp.Ledger.open(clinic / "clinic.ledger")) as ledger:
        many = len(ledger.entries())
        made = dp.publish(again, clinic / "again")
        assert len(ledger.entries()) == many
    assert not made.facts["parts"][0]["charged_for_this_plan"]
    assert "not the titles and texts of this plan" in (clinic / "again" / "card.md").read_text()
    checked = verify_publication(clinic / "again", clinic / "clinic.ledger")
    assert checked.holds
    assert "not the titles and texts" in str(checked)
    assert "not the titles and texts" not in (clinic / "out" / "card.md").read_text()


def test_the_time_of_writing_is_in_no_file(clinic: Path, plan: Plan) -> None:
    the_time_of_writing_is_not_kept(clinic, plan)


@pytest.mark.some_quick(3)
@pytest.mark.parametrize(
    "name", ["plan", "ledger", "receipts", "files", "cost", "policy", "plan_digest", "parts", "format", "not_private"]
)
@pytest.mark.parametrize("value", [None, 5, "x", [], [1], {}, True])
def test_a_proof_of_another_form_is_refused_or_found(out: Path, name: str, value: Any) -> None:
    change_proof(out, lambda proof: proof.update({name: value}))
    try:
        found = verified(out)
    except dp.InvalidArgument as error:
        found = [str(error.code)]
    assert found


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": 1, "format": 1}', '{"format": true}'])
def test_what_is_no_proof_is_refused(out: Path, text: str) -> None:
    (out / "proof.json").write_text(text)
    with refuses(dp.InvalidArgument, "verify-no-proof"):
        verify_publication(out, out.parent / "clinic.ledger")


def test_a_statement_that_is_given_twice_is_refused(out: Path) -> None:
    """A reader may show the first of two, and the check reads the last."""
    text = (out / "proof.json").read_text()
    (out / "proof.json").write_text(text.replace('"format": 1,', '"format": 1, "date": "2020-01-01",', 1))
    with refuses(dp.InvalidArgument, "verify-no-proof"):
        verify_publication(out, out.parent / "clinic.ledger")


def test_a_day_is_the_day_of_the_first_charge(out: Path) -> None:
    day = json.loads((out / "proof.json").read_text())["date"]
    assert datetime.date.fromisoformat(day)
    assert pa.parquet.read_table(out / "by_city.parquet").num_rows == len(CITIES)

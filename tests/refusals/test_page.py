"""The page of refusals says what the source says, and every refusal has a test that is there."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import discreet as dp
from discreet.learn.plots import _mean_and_spread
from discreet.ledger import book

from .page import PAGE, ROOMS, Record, Row, Shown, exists, made, places_of, room_of, rows_on, written
from .record import Places
from .sites import Site, sites

AGAIN = "Write the page again, as it says on top."
SENTENCES = (".", "?", "›", "…", '--adopt "why"')
"""How a message may end: as a sentence, or with a line to be run."""


@pytest.fixture(scope="module")
def grouped() -> dict[Shown, list[Site]]:
    return places_of(sites())


@pytest.fixture(scope="module")
def text() -> str:
    return PAGE.read_text("utf-8")


def test_every_refusal_is_on_the_page_in_its_own_words(grouped: dict[Shown, list[Site]], text: str) -> None:
    on_page = rows_on(text, grouped)
    assert [shown for shown in grouped if shown not in on_page] == [], AGAIN


def test_the_page_holds_no_refusal_that_is_gone(grouped: dict[Shown, list[Site]], text: str) -> None:
    rooms = text[text.index("\n## ") :]
    lines = [line for line in rooms.splitlines() if line.startswith("| ")]
    headings = sum(line.startswith("| message |") for line in lines)
    assert len(lines) - headings == len(grouped), AGAIN


def test_every_refusal_has_a_test_that_exists(grouped: dict[Shown, list[Site]], text: str) -> None:
    rows = rows_on(text, grouped).values()
    assert [row for row in rows if not row.tests or not all(map(exists, row.tests))] == [], AGAIN


def test_a_message_ends_as_a_sentence_does(grouped: dict[Shown, list[Site]]) -> None:
    assert [message for _, _, message in grouped if not message.endswith(SENTENCES)] == []


def test_every_package_is_where_a_person_would_look(grouped: dict[Shown, list[Site]]) -> None:
    assert {room_of(module) for module, _, _ in grouped} <= set(ROOMS)
    with pytest.raises(ValueError, match="not enough values"):
        room_of("cellar.door")


# --- the reader of the source -----------------------------------------------------------------------------

ERRORS = """
class DiscreetError(Exception): ...
class InvalidArgument(DiscreetError, ValueError): ...
class EngineFailed(DiscreetError): ...
"""
OFFICE = """
from errors import InvalidArgument
REMEDY = "Choose another."
MOST = 1000
def plain(size, names):
    if size > MOST:
        raise InvalidArgument(f"size must be at most {MOST}, not {size}. {REMEDY}")
    if names:
        raise InvalidArgument(
            f"There is no {', '.join(names)} among "
            f"{len(names)}."
        )
def late(path):
    what = f"{path} is gone."
    return InvalidArgument(what)
class Desk:
    def refuse(self, node, what, instead="Ask."):
        raise InvalidArgument(f"{what} {instead}")
    def broken(self, what):
        self.refuse(None, f"{what} is broken.")
    def use(self):
        self.refuse(self, "No tea.", "Have coffee.")
        self.broken("The pot")
class Corner:
    def refuse(self, node):
        self.desk.refuse(node, "No room.", "Stand.")
def attempt(said, error: type[DiscreetError] = EngineFailed):
    raise error(said)
def tried():
    attempt("It failed.")
    attempt("It was wrong.", InvalidArgument)
    raise ValueError("not ours")
"""


def read(folder: Path, source: str) -> list[Site]:
    (folder / "errors.py").write_text(ERRORS, "utf-8")
    (folder / "office.py").write_text(source, "utf-8")
    return sites(folder)


def test_refusals_are_read_with_what_is_filled_in(tmp_path: Path) -> None:
    assert [(site.function, site.kind, site.message) for site in read(tmp_path, OFFICE)] == [
        ("plain", "InvalidArgument", "size must be at most 1,000, not ‹size›. Choose another."),
        ("plain", "InvalidArgument", "There is no ‹names› among ‹number›."),
        ("late", "InvalidArgument", "‹path› is gone."),
        ("Desk.use", "InvalidArgument", "No tea. Have coffee."),
        ("Desk.use", "InvalidArgument", "The pot is broken. Ask."),
        ("Corner.refuse", "InvalidArgument", "No room. Stand."),
        ("tried", "EngineFailed", "It failed."),
        ("tried", "InvalidArgument", "It was wrong."),
    ]


def test_a_site_keeps_its_name_when_lines_change_and_not_when_its_words_do(tmp_path: Path) -> None:
    before = [site.key for site in read(tmp_path, OFFICE)]
    assert len(set(before)) == len(before)
    assert [site.key for site in read(tmp_path, "\n\n" + OFFICE)] == before
    after = [site.key for site in read(tmp_path, OFFICE.replace("No tea", "No milk"))]
    assert len(set(before) - set(after)) == 1


def test_an_error_is_known_by_where_it_was_built(grouped: dict[Shown, list[Site]]) -> None:
    places = Places([site for group in grouped.values() for site in group])
    built = {
        lambda: dp.person(""): "guarantees.unit:person:1",  # by itself
        lambda: book.part_of("{"): "ledger.book:part_of:1",  # by a function that speaks for it
        lambda: _mean_and_spread((math.nan, 1)): "learn.plots:_mean_and_spread:1",  # by one of two on a line
        lambda: _mean_and_spread((1, math.nan)): "learn.plots:_mean_and_spread:2",
    }
    for asked, key in built.items():
        with pytest.raises(dp.DiscreetError) as caught:
            asked()
        frames = [entry.frame.raw for entry in caught.traceback]
        assert places.of_frame(frames[-1]).startswith(f"{key} ")


# --- the page ---------------------------------------------------------------------------------------------

SITE = Site("office", "plain", 1, "InvalidArgument", "size_of [it] must be 2**k | 1, not ‹size›.", (1, 2))
SHOWN = f"{Path(__file__).relative_to(PAGE.parents[2]).as_posix()}::test_a_row_is_read_as_it_was_written"


def test_a_row_is_read_as_it_was_written() -> None:
    row = Row(*SITE.shown, 1, (SHOWN, SHOWN))
    assert rows_on(f"# Refusals\n{row}\n", places_of([SITE])) == {SITE.shown: row}
    assert rows_on(f"{row}\n".replace("must", "may"), places_of([SITE])) == {}
    assert rows_on(f"{row}\n", places_of([SITE, SITE])) == {}


def test_a_test_that_is_gone_is_noticed() -> None:
    assert exists(SHOWN)
    assert not exists(f"{SHOWN}_once_more")
    assert not exists("tests/nowhere.py::test_nothing")


def test_the_test_that_catches_a_refusal_shows_it_best(tmp_path: Path) -> None:
    other = SHOWN.replace("a_row_is_read_as_it_was_written", "a_test_that_is_gone_is_noticed")
    (tmp_path / "1.json").write_text(json.dumps({SITE.key: {f"{other}[one]": False, SHOWN: False}}), "utf-8")
    (tmp_path / "2.json").write_text(json.dumps({SITE.key: {f"{other}[two]": True, "tests/gone.py::test_it": True}}))
    record = Record(tmp_path)
    assert record.best(SITE) == other
    assert record.best(SITE, preferred=[SHOWN]) == SHOWN
    assert Record(tmp_path / "empty").best(SITE) is None


def test_a_refusal_that_no_test_met_is_missing_until_the_page_names_one(
    tmp_path: Path, grouped: dict[Shown, list[Site]], text: str
) -> None:
    rows, missing = made(Record(tmp_path), "", grouped)
    assert len(missing) == sum(map(len, grouped.values()))
    assert not any(row.tests for row in rows)
    rows, missing = made(Record(tmp_path), text, grouped)
    assert missing == []
    assert written(rows) == text, AGAIN

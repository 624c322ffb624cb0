"""People who live in one part, over every small database: one person moves that part only. Wrong rules are caught."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.sql.measuring import parts

from .worlds import measured, sensitivity_of

REGIONS = ("N", "S", "?", None)
DOMAIN = [(who, region) for who in (1, 2) for region in REGIONS]
WORLDS = [world for n in range(4) for world in itertools.combinations_with_replacement(DOMAIN, n)]
PARTS = ("N", "S", "other", "null")
PLACES = {"N": 0, "S": 1, "?": 2}
QUESTIONS = tuple(
    f"SELECT world, {what} AS n FROM {table} GROUP BY world"
    for what in ("COUNT(*)", "COUNT(DISTINCT pid)")
    for table in ("people", "visits")
)


def home_of(world: Any, who: int) -> str:
    """Where a person lives, by hand."""
    found = [PLACES[region] for person, region in world if person == who and region is not None]
    return PARTS[min(found)] if found else "null"


def database() -> Any:
    """All worlds. Everybody in them has one visit."""
    people = [(f"{n}-{who}", n, region) for n, world in enumerate(WORLDS) for who, region in world]
    visits = sorted({(pid, n) for pid, n, _ in people})
    worlds = {"choices": list(range(len(WORLDS)))}
    bounds = {"rows_per_person": 1, "groups_per_person": 1}
    tables = {
        "people": {
            "source": pa.table(
                {k: list(c) for k, c in zip(("pid", "world", "region"), zip(*people, strict=True), strict=True)}
            ),
            "columns": {"world": worlds, "region": {"choices": ["N", "S"]}},
            **bounds,
        },
        "visits": {
            "source": pa.table({k: list(c) for k, c in zip(("pid", "world"), zip(*visits, strict=True), strict=True)}),
            "columns": {"world": worlds},
            **bounds,
        },
    }
    unit = {"person": "pid", "lives_in": "region"}
    return dp.connect({"ledger": {"path": ":memory:", "epsilon": 9}, "unit": unit, "tables": tables})


def check_one_person() -> None:
    asked = database()
    places = {tuple(sorted(map(repr, world))): n for n, world in enumerate(WORLDS)}
    for text in QUESTIONS:
        most = sensitivity_of(asked, text)
        found = {part: measured(asked, text, part) for part in PARTS}
        whole = measured(asked, text)
        for n, world in enumerate(WORLDS):
            assert whole[n] == sum(found[part][n] for part in PARTS), "the parts are not the whole"
            for who in {person for person, _ in world}:
                left = places[tuple(sorted(repr(row) for row in world if row[0] != who))]
                for part in PARTS:
                    moved = abs(found[part][n] - found[part][left])
                    assert moved <= (most if part == home_of(world, who) else 0), f"a person of {part} moves {text}"


def test_a_person_moves_the_part_where_they_live_and_no_other() -> None:
    check_one_person()


def _plant_every_row_where_it_says(patch: pytest.MonkeyPatch) -> None:
    """Each row is in the part that it names, so one person is in several."""
    right = parts._of_homes

    def wrong(rows: str, shown: Any, scan: Any, homes: Any, engine: Any) -> str:
        return right(rows, shown, scan, homes, engine).replace(
            "min(place) AS home", "unnest(list(DISTINCT place)) AS home"
        )

    patch.setattr(parts, "_of_homes", wrong)


def _plant_home_of_everybody(patch: pytest.MonkeyPatch) -> None:
    """Where a person lives depends on the rows of the others in the world."""
    right = parts._of_homes

    def wrong(rows: str, shown: Any, scan: Any, homes: Any, engine: Any) -> str:
        whole = "min(min(place)) OVER (PARTITION BY split_part(resident, '-', 1)) AS home"
        return right(rows, shown, scan, homes, engine).replace("min(place) AS home", whole)

    patch.setattr(parts, "_of_homes", wrong)


def _plant_no_home_is_everywhere(patch: pytest.MonkeyPatch) -> None:
    """Who lives nowhere is in every part."""
    right = parts._of_homes

    def wrong(rows: str, shown: Any, scan: Any, homes: Any, engine: Any) -> str:
        text = right(rows, shown, scan, homes, engine)
        head, found, tail = text.rpartition("coalesce(home, 3) IN (")
        return f"{head}coalesce(home, 3) IN (3, {tail}" if found else text

    patch.setattr(parts, "_of_homes", wrong)


def test_people_do_not_move_to_another_budget_with_the_declared_values(tmp_path: Path) -> None:
    """A new value takes people out of `other`, another order moves those with two values, and another name is fresh."""
    data = pa.table({"pid": [1, 2, 2], "region": ["E", "N", "S"]})

    def asked(**declared: Any) -> Any:
        table = {"source": data, "version": "1", "rows_per_person": 1, "columns": {"region": declared}}
        policy = {
            "ledger": {"path": str(tmp_path / "a"), "epsilon": 1},
            "unit": {"person": "pid", "lives_in": "region"},
        }
        return dp.connect(policy | {"tables": {"people": table}})

    text = "SELECT COUNT(*) AS n FROM people"
    asked(choices=["N", "S"]).part("other").sql(text, epsilon=1)
    for declared, part in (
        ({"choices": ["N", "S", "E"]}, "E"),
        ({"choices": ["S", "N"]}, "S"),
        ({"choices": ["N", "S"], "other": "elsewhere"}, "elsewhere"),
    ):
        with pytest.raises(InvalidArgument, match="no longer those for which parts were charged"):
            asked(**declared).part(part).sql(text, epsilon=1)
    asked(choices=["N", "S"]).part("N").sql(text, epsilon=1)
    asked(choices=["N", "S"]).ledger.renew(why="East has a clinic of its own")
    asked(choices=["N", "S", "E"]).part("E").sql(text, epsilon=1)


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "every_row_where_it_says": _plant_every_row_where_it_says,
    "the_home_of_others": _plant_home_of_everybody,
    "no_home_is_everywhere": _plant_no_home_is_everywhere,
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_bug_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    with pytest.raises(AssertionError, match=r"moves SELECT|not the whole"):
        check_one_person()

"""Units that live in one block of time, over every small database: what one unit changes. Wrong rules are caught."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.sql.measuring import parts

from .worlds import (
    PARTS,
    QUESTIONS,
    WORLDS,
    block_of,
    check_one_unit,
    check_replaced,
    database_of,
    measured,
    neighbors,
    sensitivity_of,
)

COUNTED, SUMMED = QUESTIONS[:2]


@pytest.mark.slow
@pytest.mark.parametrize("late", [None, "drop", "next"])
def test_one_unit_moves_its_own_part_only_and_by_at_most_the_sensitivity(late: Any) -> None:
    check_one_unit(database_of(late), late, QUESTIONS if late is None else QUESTIONS[1:2])


@pytest.mark.slow
@pytest.mark.parametrize("late", ["drop", "next"])
def test_one_unit_moves_its_own_part_only_with_late_rows(late: Any) -> None:
    check_one_unit(database_of(late), late)


@pytest.mark.parametrize("late", [None, "next"])
def test_a_replaced_unit_moves_an_answer_by_at_most_its_sensitivity(late: Any) -> None:
    check_replaced(late)


@pytest.mark.parametrize("late", [None, "drop", "next"])
def test_rows_are_counted_in_the_blocks_that_the_rule_says(late: Any) -> None:
    """A unit of at most one row, so that no bound takes any away: the rows of the parts are those by hand."""
    database = database_of(late)
    found = {part: measured(database, COUNTED, part) for part in PARTS}
    for n, world in enumerate(WORLDS):
        if len(world) == 1:
            assert {part: found[part][n] for part in PARTS} == {
                part: int(block_of(world[0], late) == part) for part in PARTS
            }


def test_bounding_a_person_over_all_months_does_not_protect_a_month() -> None:
    """The wrong rule: the rows of a whole person are scaled, and the price is that of one month."""
    wrong = database_of(unit={"person": "pid"})
    most = sensitivity_of(wrong, SUMMED)
    assert most == sensitivity_of(database_of(), SUMMED)
    whole = measured(wrong, SUMMED)
    assert max(abs(whole[a] - whole[b]) for a, b, _ in neighbors(None)) > most


def test_parts_that_overlap_are_seen() -> None:
    """The wrong rule: a late row counts in its own block and in the one in which it came in."""
    late = database_of("next")
    own = {part: measured(database_of(), COUNTED, part) for part in PARTS}
    both = {part: [a + b for a, b in zip(own[part], measured(late, COUNTED, part), strict=True)] for part in PARTS}
    assert any(
        both[part][first] != both[part][second]
        for first, second, block in neighbors("next")
        for part in PARTS
        if part != block
    )


def _plant_block_of_the_data(patch: pytest.MonkeyPatch) -> None:
    """Blocks begin at the first day of the table: a boundary that is read from rows."""
    right = parts._start

    def wrong(time: Any, blocks: Any, engine: Any) -> str:
        day = right(time, blocks, engine)
        return f"({day} - min({day}) OVER (PARTITION BY split_part(c0, '-', 1)) + 19723)"

    patch.setattr(parts, "_start", wrong)


def _plant_person_alone(patch: pytest.MonkeyPatch) -> None:
    """The key of a unit is the person: all months of a person are bounded together."""
    from discreet.engines.duckdb import dialect

    patch.setattr(dialect, "unit_key", lambda block, person: f"CAST({person} AS VARCHAR)")


def _plant_block_alone(patch: pytest.MonkeyPatch) -> None:
    """The key of a unit is the block: all people of a month are one unit."""
    from discreet.engines.duckdb import dialect

    patch.setattr(
        dialect, "unit_key", lambda block, person: f"coalesce(CAST({block} AS VARCHAR), 'null') || left({person}, 0)"
    )


def _plant_no_filter(patch: pytest.MonkeyPatch) -> None:
    """A part has the rows of all parts."""
    patch.setattr(parts, "_is_among", lambda block, blocks: "TRUE")


def _plant_null_everywhere(patch: pytest.MonkeyPatch) -> None:
    """Rows without a time are in every part."""
    right = parts._is_among
    patch.setattr(parts, "_is_among", lambda block, blocks: f"({right(block, blocks)} OR {block} IS NULL)")


def _plant_join_of_people(patch: pytest.MonkeyPatch) -> None:
    """Rows of one person meet across months."""
    from discreet.sql.reading.joins import Joins

    patch.setattr(Joins, "of_person", lambda self, first, second, pairs, condition: condition)


def _plant_later_rows_counted_twice(patch: pytest.MonkeyPatch) -> None:
    """A late row counts in the block in which it came in, and belongs to a unit of its own block."""
    right = parts._in_blocks

    def wrong(rows: str, shown: Any, blocks: Any, person: Any, engine: Any) -> str:
        text = right(rows, shown, blocks, person, engine)
        return text.replace("(block IN (", "(happened IN (") if blocks.late == "next" else text

    patch.setattr(parts, "_in_blocks", wrong)


MUTANTS = {
    "blocks_begin_where_the_rows_do": (_plant_block_of_the_data, None),
    "the_key_is_the_person_alone": (_plant_person_alone, None),
    "the_key_is_the_block_alone": (_plant_block_alone, None),
    "a_part_is_not_filtered": (_plant_no_filter, None),
    "rows_without_a_time_are_in_every_part": (_plant_null_everywhere, None),
    "people_meet_across_months": (_plant_join_of_people, None),
    "late_rows_are_filtered_by_another_block": (_plant_later_rows_counted_twice, "next"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_bug_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, late = MUTANTS[name]
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=r"\d > \d+ in SELECT|moves with a unit of"):
        check_one_unit(database_of(late), late)

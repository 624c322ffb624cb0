"""Fills the tables and pictures of docs/reproduce-course.md: `python docs/make/course.py`.

A table stands between `<!-- name -->` and `<!-- end -->`. It has no observed columns, so that it is the same in every
run. `tests/reproduce/test_lectures.py` fails when a table is not what the command computes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from discreet.reproduce import pictures
from discreet.reproduce.experiment import Experiment
from discreet.reproduce.lectures import (
    lecture_3,
    lecture_6,
    lecture_8,
    lecture_10,
    thesis_examples,
    thesis_table_1,
    thesis_vectors,
    thesis_voters,
)
from discreet.reproduce.lectures.pictures import PICTURES

PAGE = Path(__file__).parents[1] / "reproduce-course.md"
IMAGES = Path(__file__).parents[1] / "images" / "course"
SHOWN = ("l6-composition", "l8-sum", "t-table-1", "t-images-and-curves")
TABLES: dict[str, Callable[[], Experiment]] = {
    "l3-election": lecture_3.election,
    "l3-counting-queries": lecture_3.thresholds,
    "l6-composition": lecture_6.pure_composition,
    "l6-composition-delta": lecture_6.approximate_composition,
    "l6-generalization": lecture_6.generalization,
    "l8-sum": lecture_8.bit_sums,
    "l8-histogram": lecture_8.histograms,
    "l10-descent": lecture_10.descents,
    "t-voters": thesis_voters.linked,
    "t-table-1": thesis_table_1.attack,
    "t-hobbies": thesis_examples.hobbies,
    "t-records": thesis_examples.records,
    "t-images-and-curves": thesis_vectors.vectors,
}


def parts_of(page: str, name: str) -> tuple[str, str, str]:
    """The page before this table, the table, and the page after it."""
    before, start, rest = page.partition(f"<!-- {name} -->\n")
    table, end, after = rest.partition("<!-- end -->")
    assert start, f"the page has no place for {name}"
    assert end, f"the table {name} has no end"
    return before + start, table, end + after


def with_table(page: str, experiment: Experiment) -> str:
    """The page with the table of this experiment."""
    before, _, after = parts_of(page, experiment.name)
    return before + experiment.markdown(observed=False) + after


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    for name, run in TABLES.items():
        made = run()
        text = with_table(text, made)
        if name in SHOWN:
            IMAGES.mkdir(exist_ok=True)
            pictures.save(made, IMAGES, PICTURES[name])
    PAGE.write_text(text, "utf-8")
    print(PAGE)

"""CSV that spreadsheets read: no cell is a formula, whatever separates cells there, and everything can be read back."""

from __future__ import annotations

import csv
import datetime
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.sql.running.written import csv_lines, csv_text

FORMULA = "=HYPERLINK(1)"


@pytest.mark.parametrize("begin", ["", "x;", "x\t", "x,", "x\n", 'x";', "\n", "＝", "\t", '"'])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_no_cell_is_a_formula_with_any_separator(begin, separator):
    text = csv_text(pa.table({f"{begin}{FORMULA}": [f"{begin}{FORMULA}"], "n": [1.5]}))
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
        for cell in row:
            assert not cell.startswith(("=", "＝", "\t=", "\n=")), (text, row)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=2, max_size=4))
def test_texts_are_read_back(cells):
    found = next(csv.reader(io.StringIO(csv_lines([cells]), newline="")))
    assert [one.removeprefix("'") for one in found] == [one.removeprefix("'") for one in cells]


def test_numbers_and_times_are_as_before():
    day = datetime.date(2026, 1, 31)
    assert csv_lines([["a", 1, 0.1, -2.5, None, True, day]]) == "a,1,0.1,-2.5,,True,2026-01-31\r\n"

"""One odd record of a table of made-up rows is left out, and changes no other's codes."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from discreet.synthetic import Declared, declared

from ..odd_objects import Hides
from ..refusing import refuses

LARGE = 2**60 + 1


ODD = [
    None, math.nan, "text", b"bytes", [], [1], {}, {1}, Decimal("sNaN"), 1j, pd.NA, np.zeros((2, 2)), Hides(),
]  # fmt: skip
"""None of them is a number or a choice."""
COLUMNS: dict[str, Any] = {"whole": (LARGE, LARGE + 9), "real": (0.0, 1.0), "choice": ["a", "b"]}
ROWS: dict[str, list[Any]] = {
    "whole": [LARGE, LARGE + 1, LARGE + 4], "real": [0.125, 0.5, math.inf], "choice": ["a", "b", "b"]
}  # fmt: skip
CODES = [[0, 12, 0], [1, 50, 1], [4, 99, 1]]


def test_one_odd_cell_leaves_its_own_row_out() -> None:
    known = Declared(COLUMNS)
    assert known.codes(ROWS).tolist() == CODES
    for name in COLUMNS:
        for place in (0, 1, 3):
            more = {n: [*cells[:place], *([cells[0]] * len(ODD)), *cells[place:]] for n, cells in ROWS.items()}
            more[name] = [*ROWS[name][:place], *ODD, *ROWS[name][place:]]
            assert known.codes(more).tolist() == CODES
        for odd in (None, 0.5, "text"):
            one = {n: [*cells, cells[0] if n != name else odd] for n, cells in ROWS.items()}
            assert known.codes(one).tolist()[:3] == CODES


def test_containers_with_a_type_are_read_by_it() -> None:
    known = Declared(COLUMNS)
    for frame in (pa.table, pl.DataFrame, pd.DataFrame):
        assert known.codes({name: frame(ROWS)[name] for name in ROWS}).tolist() == CODES
    gap = {"whole": pa.array([*ROWS["whole"], None]), "real": [*ROWS["real"], 0.1], "choice": [*ROWS["choice"], "a"]}
    assert known.codes(gap).tolist() == CODES
    with refuses(dp.InvalidArgument, "not-a-column"):
        known.codes({**ROWS, "real": np.zeros((3, 2))})


# --- seeded bugs: the readings of 0.1 ------------------------------------------------------------------------------


def test_a_type_guessed_over_all_cells_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = declared.wholes
    monkeypatch.setattr(declared, "wholes", lambda cells: sound(np.array(cells, dtype=float)))
    with pytest.raises(AssertionError):
        test_containers_with_a_type_are_read_by_it()


def test_fractions_and_numpy_scalars_are_numbers() -> None:
    cells = [Fraction(1, 8), np.float32(0.5), Decimal("0.999")]
    assert Declared({"real": (0.0, 1.0)}).codes({"real": cells}).tolist() == [[12], [50], [99]]

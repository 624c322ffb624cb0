"""What an owner types in a form is read as the column's file is written, or as a policy is, and never in two ways."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.errors import InvalidArgument
from discreet.gateway.setup.typed import Writing, typed, typed_range

from ....refusing import refuses

USUAL, COMMA, BOTH = Writing(), Writing(","), Writing(",", ".")


@pytest.mark.parametrize(
    ("text", "kind", "writing", "value"),
    [
        ("5000.5", "number", USUAL, 5000.5),
        ("1e3", "number", USUAL, 1000),
        ("5,000.50", "number", USUAL, 5000.5),
        ("5000,00", "number", COMMA, 5000),
        ("5.000,00", "number", COMMA, 5000),
        ("-5.000,25", "number", BOTH, -5000.25),
        ("1.234.567", "number", BOTH, 1234567),
        ("5000.5", "number", BOTH, 5000.5),
        ("5.000", "integer", BOTH, 5000),
        ("20,0000", "number", BOTH, 20),
        ("20.0000", "number", BOTH, 20),
        ("0,125", "number", BOTH, 0.125),
        ("1250,125", "number", BOTH, 1250.125),
        ("37.125", "number", USUAL, 37.125),
        ("12 000,5", "number", Writing(",", " "), 12000.5),
        ("01.02.2024", "date", Writing(date="dd.mm.yyyy"), "2024-02-01"),
        ("2024-02-01", "date", Writing(date="dd.mm.yyyy"), "2024-02-01"),
        ("01.02.2024 03:04", "timestamp", Writing(date="dd.mm.yyyy hh:mi"), "2024-02-01 03:04:00"),
        ("01.02.2024", "text", Writing(date="dd.mm.yyyy"), "01.02.2024"),
    ],
)
def test_the_columns_own_way_of_writing(text: str, kind: str, writing: Writing, value: Any) -> None:
    assert typed(text, kind, "cost", writing) == value


@pytest.mark.parametrize(
    ("text", "kind", "writing"),
    [
        ("1.234", "number", BOTH),
        ("1.234", "number", COMMA),
        ("1,234", "number", USUAL),
        ("20,000", "number", BOTH),
        ("20,000", "number", COMMA),
        ("-20,125", "number", COMMA),
        ("20.000", "number", USUAL),
        ("5000,00", "number", USUAL),
        ("5.00,0", "number", BOTH),
        ("1,5", "integer", COMMA),
        ("inf", "number", USUAL),
    ],
)
def test_what_is_unclear_is_refused(text: str, kind: str, writing: Writing) -> None:
    with refuses(InvalidArgument, "column-choices-type"):
        typed(text, kind, "cost", writing)


@pytest.mark.parametrize(
    ("text", "writing"), [("20,000", BOTH), ("20.000", BOTH), ("20,000", USUAL), ("20.000", USUAL)]
)
def test_what_the_refusal_proposes_is_accepted(text: str, writing: Writing) -> None:
    with refuses(InvalidArgument, "column-choices-type") as refused:
        typed(text, "number", "cost", writing)
    assert "Write 20000, or 20.0000 for the smaller number." in str(refused.value)
    assert typed("20000", "number", "cost", writing) == 20_000
    assert typed("20.0000", "number", "cost", writing) == 20


def test_one_empty_end_is_named_as_that() -> None:
    with refuses(InvalidArgument, "wrong-shape"):
        typed_range("0", "", "number", "cost", USUAL)

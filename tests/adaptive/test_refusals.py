"""What is wrong with a study, a leaderboard or a survey, said before a row is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.adaptive.guarded import GuardedColumn
from discreet.errors import DiscreetError, InvalidArgument, NotAllowed

from ..refusing import refuses

ROWS = {"age": np.arange(400.0), "city": np.array(["Bled", "Koper"] * 200), "X": np.zeros((400, 2))}
LIMIT = dp.Approx(epsilon=100, delta=1e-3)


def ledger(**unit: Any) -> dp.Ledger:
    return dp.Ledger.open(":memory:", protects=dp.row(**unit), limit=LIMIT)


def refused(asked: Callable[[], Any], code: str, kind: type[DiscreetError] = InvalidArgument) -> None:
    with refuses(kind, code):
        asked()


@pytest.fixture(scope="module")
def study() -> Any:
    return dp.adaptive.study(ROWS, queries=50, ledger=ledger(neighbors="replace"))


@pytest.mark.parametrize(
    ("question", "code", "kind"),
    [
        (lambda rows: rows["city"] + 1, "study-types", InvalidArgument),
        (lambda rows: rows["X"] + np.ones((1, 3)), "study-types", InvalidArgument),
        (lambda rows: rows.apply(len), "empty", InvalidArgument),
        (lambda rows: np.ones(400), "study-question", InvalidArgument),
    ],
)
def test_a_question_that_a_study_does_not_take(
    study: Any, question: Callable[[Any], Any], code: str, kind: type[DiscreetError]
) -> None:
    refused(lambda: study.mean(question), code, kind)


def test_columns_of_two_samples_do_not_meet() -> None:
    one, all_rows = GuardedColumn(np.ones(1)), GuardedColumn(np.ones(400))
    refused(lambda: one + all_rows, "study-row-by-row", NotAllowed)


def test_a_table_under_a_ledger_is_protected() -> None:
    table = dp.table(pa.table({"age": [1, 2]}), ledger=ledger())
    refused(lambda: dp.adaptive.study(table, queries=2, unprotected=True), "study-protected", NotAllowed)


def test_a_study_of_fewer_rows_than_noise_hides() -> None:
    refused(lambda: dp.adaptive.study({"age": np.ones(2)}, queries=2, ledger=ledger()), "study-too-few-rows")


def test_a_column_of_something_else() -> None:
    refused(lambda: dp.adaptive.study({"z": np.zeros(9, complex)}, queries=2, unprotected=True), "study-sample")


def test_a_loss_that_says_nothing_of_each_row() -> None:
    board = dp.adaptive.leaderboard(
        np.array([0, 1, 0]), submissions=2, loss=lambda labels, given: 0.5, unprotected=True
    )
    refused(lambda: board.submit([0, 1, 1]), "study-question")

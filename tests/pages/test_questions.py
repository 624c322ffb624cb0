"""The sixty everyday questions of `examples/sql/questions.sql` have plans, and columns that are described. The example
compares the answers with exact ones, which is slow.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parents[2] / "examples" / "sql" / "questions.py"
_spec = importlib.util.spec_from_file_location("questions", PATH)
assert _spec is not None
assert _spec.loader is not None
everyday: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(everyday)
QUESTIONS = everyday.questions()


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Any:
    database = everyday.clinic(tmp_path_factory.mktemp("questions"))
    yield database
    database.close()


def test_there_are_sixty() -> None:
    assert len(QUESTIONS) == 60
    assert len({text for _, text in QUESTIONS}) == 60
    assert all(asked and text.startswith(("SELECT", "WITH")) for asked, text in QUESTIONS)


@pytest.mark.some_quick(4)
@pytest.mark.parametrize(("asked", "text"), QUESTIONS[::-1], ids=[asked for asked, _ in QUESTIONS[::-1]])
def test_every_question_has_a_plan(clinic: Any, asked: str, text: str) -> None:
    explained = clinic.explain(text, epsilon=everyday.EPSILON)
    assert explained.data["fits"]


@pytest.mark.some_quick(2)
@pytest.mark.parametrize(("asked", "text"), QUESTIONS, ids=[asked for asked, _ in QUESTIONS])
def test_every_answer_has_the_columns_that_are_described(clinic: Any, asked: str, text: str) -> None:
    described = clinic.describe(text)
    assert described == clinic.sql(text, epsilon=everyday.EPSILON).columns

"""Seeded bugs in publications: each is planted, and a check sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .bugs import BUGS, Plan

NAMES = [
    "charges_that_do_not_fit_together",
    "verify_trusts_the_proof",
    "receipts_by_their_question_alone",
    "mode_of_a_test_forgotten",
    "progress_of_tries",
    "selected_before_the_others",
    "ledger_not_verified",
    "receipts_whatever_was_declared",
    "links_are_followed",
    "notes_are_not_read",
    "other_statements_are_ignored",
    "files_have_their_time",
]


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("name", NAMES)
def test_a_seeded_bug_is_seen(name: str, clinic: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(NAMES) == set(BUGS)
    plant, check = BUGS[name]
    plant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(clinic, plan)

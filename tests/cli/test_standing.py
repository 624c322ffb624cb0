"""`discreet standing` and `discreet schedule` on real files: opened once, answered when due, found again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.cli import main

from ..datasets.test_standing import written_policy

QUESTION = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(list(words))
    code = stopped.value.code
    return code if isinstance(code, int) else 1 if code else 0


def opened(policy: Path, *more: str) -> int:
    return run("standing", str(policy), QUESTION, "--every", "month", "--times", "3", "--epsilon", "2", *more)


def test_a_question_is_opened_answered_when_due_and_listed(tmp_path: Path, capsys: Any) -> None:
    policy = written_policy(tmp_path)
    assert opened(policy, "--first", "2024-01", "--explain") == 0
    assert "charged once" in capsys.readouterr().out
    assert run("schedule", str(policy)) == 0
    assert "no standing questions" in capsys.readouterr().out
    assert opened(policy, "--first", "2024-01") == 0
    assert "from 2024-01 to 2024-03" in capsys.readouterr().out
    assert opened(policy, "--first", "2024-01", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["receipt"].startswith("1-")
    assert run("schedule", str(policy), "--list", "--until", "2024-03-01", "--format", "json") == 0
    [listed] = json.loads(capsys.readouterr().out)
    assert (listed["due"], listed["answered"], listed["answered_now"]) == (["2024-01", "2024-02"], 0, [])
    assert run("schedule", str(policy), "--until", "2024-03-01", "--format", "json") == 0
    [done] = json.loads(capsys.readouterr().out)
    assert (done["due"], done["answered_now"]) == ([], ["2024-01", "2024-02"])
    assert run("schedule", str(policy), "--until", "2024-04-01") == 0
    assert "now" in capsys.readouterr().out
    database = dp.connect(policy)
    assert database.standings[0].answered == ("2024-01", "2024-02", "2024-03")
    database.ledger.verify()


@pytest.mark.slow
def test_statuses_say_what_went_wrong(tmp_path: Path, capsys: Any) -> None:
    policy = written_policy(tmp_path, 'person = "pid"')
    assert opened(policy, "--first", "2024-01", "--epsilon", "20") == 4
    assert opened(policy, "--first", "January") == 2
    assert run("schedule", str(policy), "--until", "soon") == 2
    assert "command-day" in capsys.readouterr().err
    assert opened(policy, "--first", "2024-01", "--totals", "--blocks-per-person", "2") == 3
    assert opened(policy, "--first", "2024-01") == 0
    assert opened(policy, "--first", "2024-02", "--totals", "--epsilon", "1") == 0
    policy.write_text(policy.read_text().replace("rows_per_person = 2", "rows_per_person = 1"))
    capsys.readouterr()
    assert run("schedule", str(policy), "--until", "2024-06-01") == 2
    said = capsys.readouterr()
    assert "standing-declarations" in said.err
    assert said.out.count("answered") == 2

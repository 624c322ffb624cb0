"""kill -9 of the vault and of its lanes at every step: never an answer without a charge, never two for one key."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from ..house import BY_CITY, House, answer_in

PROGRAM = str(Path(__file__).parents[1] / "programs/stopped.py")
MORE = "answer_after = 0\nlate_allowed = 100"


def remaining(house, token):
    return house.value(token, "budget")["remaining"]["epsilon"]


@pytest.fixture
def killed(tmp_path, monkeypatch):
    """A gateway whose vault or lane is killed at a step."""
    made = House(tmp_path / "house", MORE)

    def start(step):
        monkeypatch.setenv("STEP", step)
        monkeypatch.setenv("STEP_DONE", str(tmp_path / "done"))
        return made.start(PROGRAM)

    yield start
    made.stop()
    assert (tmp_path / "done").exists()  # it was killed
    assert made.ledger.verify() > 0


@pytest.mark.slow
@pytest.mark.parametrize("what", ["reserve", "note", "settle"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_the_vault_is_killed(killed, when, what):
    house = killed(f"vault:{when} {what}")
    token, answers = house.open("ada"), []
    with contextlib.suppress(ConnectionError):  # an answer that leaves at once may do so before it is noted
        answers.append(answer_in(house.ask(token, BY_CITY, key="k")))
    assert house.process.wait() != 0
    charged = len(house.charges())
    assert charged == (0 if what == "reserve" else 1)
    house.start()
    answer = house.ask(token, BY_CITY, key="k")
    assert answer.header["ok"]
    assert all(one == answer_in(answer) for one in answers)
    assert charged or not answers
    assert answer_in(house.ask(token, BY_CITY)) == answer_in(answer)
    assert len(house.charges()) == 1
    assert remaining(house, token) == pytest.approx(2.9)
    assert house.value(token, "again", receipt=json.loads(answer.body)["receipt"])


@pytest.mark.slow
@pytest.mark.parametrize("what", ["charge", "keep", "format"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lane_is_killed(killed, when, what):
    """What remains is the same wherever it was killed, and so is the error."""
    house = killed(f"lane:{when} {what}")
    token = house.open("ada")
    first = house.ask(token, BY_CITY, key="k")
    assert first.header["code"] == "gateway-late"
    assert remaining(house, token) == pytest.approx(2.9)
    assert house.ask(token, BY_CITY, key="k").header == first.header
    assert remaining(house, token) == pytest.approx(2.9)
    assert not [entry for entry in house.charges() if entry.state == "answered"]
    assert house.ask(token, BY_CITY).header["ok"]  # a new charge
    assert remaining(house, token) == pytest.approx(2.8)


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("step", ["after charge", "before keep", "after keep"])
def test_all_is_killed(killed, step, key):
    """The power fails: what was charged is answered later, at no further cost, and counted as a question."""
    house = killed(f"all:{step}")
    token, given = house.open("ada"), {} if key is None else {"key": key}
    with pytest.raises(ConnectionError):
        house.ask(token, BY_CITY, **given)
    house.process.wait()
    assert len(house.charges()) == 1
    house.start()
    answer = house.ask(token, BY_CITY, **given)
    assert answer.header["ok"]
    assert answer_in(house.ask(token, BY_CITY)) == answer_in(answer)
    assert len(house.charges()) == 1
    assert remaining(house, token) == pytest.approx(2.9)

"""What is wrong with a poll in the shuffle model, said before anybody is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.cli import main
from discreet.errors import InvalidArgument
from discreet.shuffle import bit_sum, histogram, protocol
from discreet.shuffle.bit_sums import BitSum, TwoMessageBitSum
from discreet.shuffle.fakes import Fakes, least_fakes
from discreet.shuffle.hashed import HashedHistogram
from discreet.shuffle.histograms import ParallelSums, ResponseHistogram
from discreet.shuffle.reals import BitPlanes
from discreet.shuffle.simulation import simulate
from discreet.shuffle.split_and_mix import SplitAndMix

from ..refusing import refuses

Asked = Callable[[], Any]
TEN: dict[str, Any] = {"clients": 10, "minimum": 10}
MANY: dict[str, Any] = {"clients": 10_000, "minimum": 10_000}
ONE = dp.Approx(epsilon=1, delta=1e-6)
TIGHT = dp.Approx(epsilon=1e-9, delta=1e-12)
"""What no two clients can keep."""
SPLIT: dict[str, Any] = {
    **MANY,
    "low": 0,
    "high": 1,
    "steps": 255,
    "scale": 255,
    "bits": 30,
    "shares": 99,
    "security": 40,
}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: BitSum(**TEN, lie=0.5), "out-of-range"),
        (lambda: TwoMessageBitSum(**TEN, chance=1), "out-of-range"),
        (lambda: HashedHistogram(**TEN, fakes=0, rows=1, buckets=2), "out-of-range"),
        (lambda: ResponseHistogram(**TEN, choices=["a"], lie=0.1), "too-few-choices"),
        (lambda: ParallelSums(**TEN, choices=[0, 1], chance=2), "out-of-range"),
        (lambda: BitPlanes(**TEN, low=0, high=1, lies=(0.5,)), "out-of-range"),
        (lambda: BitPlanes(**TEN, low=0, high=1, lies=(0.1,), of="median"), "not-an-option"),
        (lambda: SplitAndMix(**SPLIT | {"low": 1}), "ends-out-of-order"),
        (lambda: SplitAndMix(**SPLIT | {"of": "median"}), "not-an-option"),
        (lambda: SplitAndMix(**SPLIT | {"bits": 57}), "too-large"),
        (lambda: BitSum(**TEN, lie=0.1, honest=0.1), "shuffle-too-few-clients"),
        (lambda: simulate(choices=65), "too-large"),
        (
            lambda: histogram(choices=[0, 1], clients=100, epsilon=1, delta=1e-6, method="fakes", calibration="taught"),
            "formula-does-not-apply",
        ),
    ],
)
def test_a_poll_that_cannot_be(asked: Asked, code: str) -> None:
    with refuses(InvalidArgument, code):
        asked()


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: BitSum.for_guarantee(TIGHT, clients=2), "guarantee-out-of-reach"),
        (lambda: TwoMessageBitSum.for_guarantee(TIGHT, clients=2), "guarantee-out-of-reach"),
        (lambda: ParallelSums.for_guarantee(TIGHT, choices=[0, 1], clients=2), "guarantee-out-of-reach"),
        (lambda: BitPlanes.for_guarantee(TIGHT, between=(0, 1), clients=2), "guarantee-out-of-reach"),
        (lambda: least_fakes(dp.Approx(epsilon=1e-9, delta=1e-300), 2, 2), "guarantee-out-of-reach"),
        (lambda: SplitAndMix.for_guarantee(ONE, between=1, clients=10_000), "wrong-type"),
        (lambda: BitSum.for_guarantee(dp.Approx(epsilon=0, delta=0.1), clients=100), "out-of-range"),
    ],
)
def test_a_promise_that_so_few_clients_cannot_keep(asked: Asked, code: str) -> None:
    with refuses(InvalidArgument, code):
        asked()


def test_a_search_that_finds_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    least_fakes.cache_clear()
    monkeypatch.setattr(protocol, "meets", lambda *_: False)
    with refuses(InvalidArgument, "guarantee-out-of-reach"):
        ResponseHistogram.for_guarantee(ONE, choices=[0, 1], clients=100)
    with refuses(InvalidArgument, "guarantee-out-of-reach"):
        Fakes.for_guarantee(ONE, choices=[0, 1], clients=100)


def test_an_answer_that_does_not_keep_what_is_stated() -> None:
    poll = bit_sum(clients=100, epsilon=1, delta=1e-6)
    messages = poll.encode_many([0, 1] * 50)
    with refuses(InvalidArgument, "stated-not-kept"):
        poll.analyze(messages, stated=dp.Approx(epsilon=0.1, delta=1e-6))


@pytest.mark.slow
def test_numbers_come_one_for_each_client() -> None:
    poll = BitPlanes.for_guarantee(ONE, between=(0, 1), clients=1000, planes=2)
    with refuses(InvalidArgument, "not-a-column"):
        poll.encode_many(np.zeros((2, 2)))


@pytest.mark.slow
def test_a_picture_that_cannot_be_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason='needs pip install "discreet[plot]"')
    shown = simulate(clients=100, epsilon=4, delta=1e-2, runs=2)
    with refuses(InvalidArgument, "picture-not-written"):
        shown.plot(str(tmp_path / "nowhere" / "poll.png"))


def test_a_picture_is_checked_before_anybody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason='needs pip install "discreet[plot]"')
    monkeypatch.setattr("discreet.shuffle.simulation.simulate", lambda **_: pytest.fail("it was simulated"))
    with pytest.raises(SystemExit) as ended:
        main(["shuffle", "simulate", "--chart", str(tmp_path / "poll.txt")])
    assert ended.value.code == 2
    assert "cannot be a picture" in capsys.readouterr().err

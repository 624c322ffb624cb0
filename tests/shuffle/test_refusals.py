"""What is wrong with a poll in the shuffle model, said before anybody is asked."""

from __future__ import annotations

import re
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
    ("asked", "said"),
    [
        (lambda: BitSum(**TEN, lie=0.5), "lie must be between 0 and one half"),
        (lambda: TwoMessageBitSum(**TEN, chance=1), "chance must be between 0 and 1"),
        (lambda: HashedHistogram(**TEN, fakes=0, rows=1, buckets=2), "fakes must be above 0"),
        (lambda: ResponseHistogram(**TEN, choices=["a"], lie=0.1), "A histogram needs at least two choices"),
        (lambda: ParallelSums(**TEN, choices=[0, 1], chance=2), "chance must be between 0 and 1, and inverted"),
        (lambda: BitPlanes(**TEN, low=0, high=1, lies=(0.5,)), "lies must be between 0 and one half"),
        (lambda: BitPlanes(**TEN, low=0, high=1, lies=(0.1,), of="median"), 'of must be "sum" or "mean"'),
        (lambda: SplitAndMix(**SPLIT | {"low": 1}), "low must be below high"),
        (lambda: SplitAndMix(**SPLIT | {"of": "median"}), 'of must be "sum" or "mean"'),
        (lambda: SplitAndMix(**SPLIT | {"bits": 57}), "Shares have at most 56 bits: take fewer steps"),
        (lambda: BitSum(**TEN, lie=0.1, honest=0.1), "At least two honest clients must be in a batch"),
        (lambda: simulate(choices=65), "A simulation shows up to 64 choices"),
        (
            lambda: histogram(choices=[0, 1], clients=100, epsilon=1, delta=1e-6, method="fakes", calibration="taught"),
            'The taught noise belongs to method="parallel"',
        ),
    ],
)
def test_a_poll_that_cannot_be(asked: Asked, said: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(said)):
        asked()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: BitSum.for_guarantee(TIGHT, clients=2), "No randomized bit keeps"),
        (lambda: TwoMessageBitSum.for_guarantee(TIGHT, clients=2), "No noise bit keeps"),
        (lambda: ParallelSums.for_guarantee(TIGHT, choices=[0, 1], clients=2), "No noise bit keeps"),
        (lambda: BitPlanes.for_guarantee(TIGHT, between=(0, 1), clients=2), "No digits keep"),
        (lambda: least_fakes(dp.Approx(epsilon=1e-9, delta=1e-300), 2, 2), "No number of fakes keeps"),
        (lambda: SplitAndMix.for_guarantee(ONE, between=1, clients=10_000), "between must be a pair of public ends"),
        (lambda: BitSum.for_guarantee(dp.Approx(epsilon=0, delta=0.1), clients=100), "epsilon must be above 0"),
    ],
)
def test_a_promise_that_so_few_clients_cannot_keep(asked: Asked, said: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(said)):
        asked()


def test_a_search_that_finds_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    least_fakes.cache_clear()
    monkeypatch.setattr(protocol, "meets", lambda *_: False)
    with pytest.raises(InvalidArgument, match="No k-ary response keeps"):
        ResponseHistogram.for_guarantee(ONE, choices=[0, 1], clients=100)
    with pytest.raises(InvalidArgument, match=r"No number of fakes keeps .* with so few clients"):
        Fakes.for_guarantee(ONE, choices=[0, 1], clients=100)


def test_an_answer_that_does_not_keep_what_is_stated() -> None:
    poll = bit_sum(clients=100, epsilon=1, delta=1e-6)
    messages = poll.encode_many([0, 1] * 50)
    with pytest.raises(InvalidArgument, match="The protocol does not keep"):
        poll.analyze(messages, stated=dp.Approx(epsilon=0.1, delta=1e-6))


def test_numbers_come_one_for_each_client() -> None:
    poll = BitPlanes.for_guarantee(ONE, between=(0, 1), clients=1000, planes=2)
    with pytest.raises(InvalidArgument, match="Give one value for each person"):
        poll.encode_many(np.zeros((2, 2)))


def test_a_picture_that_cannot_be_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason='needs pip install "discreet[plot]"')
    shown = simulate(clients=100, epsilon=4, delta=1e-2, runs=2)
    with pytest.raises(InvalidArgument, match="cannot be a picture"):
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

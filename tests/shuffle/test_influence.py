"""What fake clients can do at most, against every possible message of theirs and all reports of the others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.guarantees.influence import Influence

from ..refusing import refuses
from .every_poll import POLLS, poll

GIVEN: dict[str, Any] = {"clients": 100, "minimum": 2, "honest": 1}
CHOICES = ("a", "b", "c")
SMALL: dict[str, Any] = {
    "bit": dp.shuffle.BitSum(**GIVEN, lie=0.3),
    "two messages": dp.shuffle.TwoMessageBitSum(**GIVEN, chance=0.3),
    "response": dp.shuffle.ResponseHistogram(**GIVEN, choices=CHOICES, lie=0.2),
    "one fake": dp.shuffle.Fakes(**GIVEN, choices=CHOICES, fakes=1),
    "fakes": dp.shuffle.Fakes(**GIVEN, choices=("a", "b"), fakes=1.5),
    "parallel": dp.shuffle.ParallelSums(**GIVEN, choices=("a", "b"), chance=0.3),
    "inverted": dp.shuffle.ParallelSums(**GIVEN, choices=("a", "b"), chance=0.3, inverted=True),
    "digits": dp.shuffle.BitPlanes(**GIVEN, low=-1, high=2, lies=(0.1, 0.2, 0.4)),
    "digits far from zero": dp.shuffle.BitPlanes(**GIVEN, low=100, high=101, lies=(0.1, 0.2)),
    "negative digits": dp.shuffle.BitPlanes(**GIVEN, low=-101, high=-100, lies=(0.1, 0.2)),
    "one digit": dp.shuffle.BitPlanes(**GIVEN, low=0, high=1, lies=(0.2,)),
    "mean": dp.shuffle.BitPlanes(**GIVEN, low=-1, high=2, lies=(0.1, 0.2), of="mean"),
    "mean of lies": dp.shuffle.BitPlanes(**GIVEN, low=0, high=1, lies=(0.45, 0.45), of="mean"),
}
HONEST = {"inverted": 5}


def honest_reports(name: str, one: Any) -> list[tuple[int, ...]]:
    """All that a client who follows the protocol may send."""
    match name:
        case "bit" | "response" | "two messages":
            return list(itertools.product(range(one.alphabet), repeat=one.messages))
        case "one fake" | "fakes":
            size = len(one.choices)
            named = itertools.product(range(size), repeat=one.messages)
            empty = ((*some, size) for some in itertools.product(range(size), repeat=one.messages - 1))
            return [*named, *(empty if one._whole[1] else ())]
        case "parallel" | "inverted":
            size = len(one.choices)
            return [
                tuple(2 * at + bit for at in range(size) for bit in ((at == own) != one.inverted, noise[at]))
                for own in range(size)
                for noise in itertools.product((0, 1), repeat=size)
            ]
    return [tuple(2 * at + bit for at, bit in enumerate(bits)) for bits in itertools.product((0, 1), repeat=one.planes)]


def batches(reports: list[tuple[int, ...]], count: int) -> Iterator[np.ndarray]:
    """All that so many clients may send together, each set of messages once."""
    every = itertools.combinations_with_replacement(reports, count)
    for batch in sorted({tuple(sorted(itertools.chain(*some))) for some in every}):
        yield np.array(batch, dtype=np.int64)


def published(one: Any, messages: np.ndarray, reports: int) -> np.ndarray:
    value = one._draw((messages, reports))
    return np.array(list(value.values()) if isinstance(value, dict) else [value])


@pytest.mark.some_quick(7)
@pytest.mark.parametrize(("fakes", "name"), [*itertools.product((1, 2), SMALL)])
def test_the_bound_is_the_worst_of_all_messages(fakes: int, name: str) -> None:
    """Every set of messages, junk included, next to every set of honest reports: the largest change is the bound."""
    one, others = SMALL[name], HONEST.get(name, 2)
    if name == "inverted" and fakes == 2:
        others = 9
    bound = one.influence(fakes, reports=others + fakes)
    anything = [(message,) for message in range(-1, one.alphabet)]
    fake = [*batches(anything, fakes * one.messages)]
    up = down = together = 0.0
    honest = [*batches(honest_reports(name, one), others)]
    for batch in honest[:: max(1, len(honest) * len(fake) // 40_000)] + honest[:1] + honest[-1:]:
        alone = published(one, batch, others)
        for added in fake:
            change = published(one, np.concatenate([batch, added]), others + fakes) - alone
            up, down = max(up, change.max()), max(down, -change.min())
            together = max(together, np.abs(change).sum())
    assert up <= bound.up + 1e-9
    assert down <= bound.down + 1e-9
    assert bound.together is None or together <= bound.together + 1e-9
    if len(honest) * len(fake) <= 40_000:
        assert up == pytest.approx(bound.up)
        assert down == pytest.approx(bound.down)
        assert bound.together is None or together == pytest.approx(bound.together)


@pytest.mark.parametrize("fakes", [1, 2])
def test_the_bound_of_hashed_counts(fakes: int) -> None:
    """All messages in one cell, for each cell: no value is frequent enough to be taken out."""
    one = dp.shuffle.HashedHistogram(clients=50, minimum=20, fakes=1, rows=4, buckets=5, choices=tuple("abcdefgh"))
    honest = one.encode_many(["a", "b"] * 20).reshape(-1)
    bound = one.influence(fakes, reports=40 + fakes)
    alone = np.array(list(one.analyze(honest).value.values()))
    up = down = together = 0.0
    for cell in range(one.alphabet):
        added = np.full(fakes * one.messages, cell)
        with_fakes = one.analyze(np.concatenate([honest, added]), reports=40 + fakes).value
        change = np.array(list(with_fakes.values())) - alone
        up, down, together = max(up, change.max()), max(down, -change.min()), max(together, np.abs(change).sum())
    assert (up, down, together) == pytest.approx((bound.up, bound.down, bound.together))
    crowd = one._crowd()
    assert crowd == max(np.bincount(one.cells(one._places(one.choices), np.full(8, row))).max() for row in range(4))


def test_hashed_counts_that_are_published_can_change_by_more_and_the_text_says_so() -> None:
    one = dp.shuffle.HashedHistogram(clients=5000, minimum=20, fakes=1, rows=4, buckets=50, choices=tuple("abcdefgh"))
    honest, fakes = one.encode_many(list("abcdefgh") * 500), 300
    bound = one.influence(fakes, reports=4000 + fakes)
    alone, lowered = one.analyze(honest).value, 0.0
    for cell in range(one.alphabet - 1):
        added = np.full(fakes * one.messages, cell)
        shown = one.analyze(np.concatenate([honest, added]), reports=4000 + fakes).value
        lowered = max(lowered, max(alone[choice] - shown[choice] for choice in alone))
    assert lowered > bound.down
    assert "Published counts can change by more." in str(bound)


def test_a_large_list_of_choices_counts_as_one_crowd() -> None:
    one = dp.shuffle.HashedHistogram(
        clients=50, minimum=20, fakes=1, rows=2**16, buckets=5, choices=tuple(map(str, range(100)))
    )
    assert one._crowd() == 100
    assert dp.shuffle.HashedHistogram(clients=50, minimum=20, fakes=1, rows=2, buckets=5).influence(1).together is None


def test_one_share_moves_a_split_sum_anywhere() -> None:
    one = poll("split and mix")
    found = one.influence(1, reports=301)
    assert found.up == found.down == math.inf
    assert "to anything" in str(found)
    messages = one.encode_many(np.zeros(300)).copy()
    messages[0] = (messages[0] + one.alphabet // 2) % one.alphabet
    assert one.analyze(messages).value > 450  # more than all of them have together
    assert one.influence(1).left is None  # all 300 were to add noise
    assert dp.shuffle.sum(
        between=(0, 1), clients=300, epsilon=1, delta=1e-6, honest=0.5, method="split and mix"
    ).influence(150).left.epsilon == pytest.approx(1, rel=0.02)


@pytest.mark.some_quick(5)
@pytest.mark.parametrize("name", POLLS)
def test_without_fakes_nothing_moves_and_the_promise_is_whole(name: str) -> None:
    found = poll(name).influence(0)
    assert (found.up, found.down, found.together or 0.0) == (0, 0, 0)
    assert float(found.left.epsilon) <= 1 + 1e-6
    assert not found.can_withhold


@pytest.mark.slow
def test_fewer_honest_clients_have_a_weaker_promise() -> None:
    """The promise is that of the same noise among the honest ones: also as an exact enumeration says."""
    one = dp.shuffle.BitSum(clients=1000, minimum=1000, honest=0.8, lie=0.05)
    losses = [one.influence(fakes).left.epsilon for fakes in (0, 100, 200, 500, 990, 999)]
    assert losses == sorted(losses)
    assert losses[0] < losses[-1]
    fewer = dp.shuffle.BitSum(clients=500, minimum=500, lie=0.05)
    assert one.influence(500).left.epsilon == fewer.guarantee().epsilon_at(delta=1e-6)
    assert one.influence(999).left.epsilon == one.if_they_collude.epsilon_at(delta=1e-6)  # its own lie is left
    nobody = dp.shuffle.Fakes(clients=100, minimum=100, choices=CHOICES, fakes=2).influence(99)
    assert nobody.left is None
    assert "Nothing is promised" in str(nobody)


def test_a_batch_is_withheld_when_too_few_reports_can_be_read() -> None:
    one = dp.shuffle.Fakes(clients=10, minimum=10, honest=0.8, choices=("a", "b"), fakes=2)
    for fakes in range(5):
        junk = np.full(fakes * one.messages, -1)
        messages = np.concatenate([one.encode_many(["a"] * (10 - fakes)), junk])
        found = one.influence(fakes)
        assert found.can_withhold == (fakes > 2)
        if found.can_withhold:
            with refuses(dp.NotAllowed, "too-few-reports"):
                one.analyze(messages, reports=10)
        else:
            one.analyze(messages, reports=10)
        assert ("prevent" in str(found)) == found.can_withhold


@pytest.mark.slow
def test_influence_reads_as_a_sentence() -> None:
    one = dp.shuffle.BitSum(clients=1000, minimum=1000, honest=0.8, lie=0.25)
    said = str(one.influence(50))
    assert said.startswith("50 of 1,000 clients who send whatever they like can raise the sum by at most 75 and lower")
    assert "The others are promised ε = " in said
    assert str(Influence(fakes=1, reports=2, of="one count", up=1.23451, down=123456.2, together=0.0, left=None)) == (
        "1 of 2 clients who send whatever they like can raise one count by at most 1.235 and lower it by at most "
        "123,457, and change all counts together by at most 0. Nothing is promised to the others: too few of them "
        "add noise."
    )
    assert "raise the sum by at most 10,000 and" in str(
        Influence(fakes=1, reports=2, of="the sum", up=9999.5, down=0, left=None)
    )


@pytest.mark.parametrize("fakes", [10, -1])
def test_odd_numbers_of_fakes_are_refused(fakes: int) -> None:
    with refuses(InvalidArgument, "out-of-range"):
        dp.shuffle.BitSum(clients=10, minimum=10, lie=0.25).influence(fakes)

"""What one client sends is drawn through the door, and promises alone what its class says."""

from __future__ import annotations

import math

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.mechanisms.protocol import Mechanism
from discreet.mechanisms.reports import shuffle_clients
from discreet.mechanisms.reports.shuffle_clients import (
    BitAndNoise,
    ChoiceAmongFakes,
    ChoiceBits,
    HashedAmongFakes,
    InRandomOrder,
    NoisyShares,
    TurnedBit,
    TurnedDigits,
)
from discreet.shuffle import protocol as protocols

from ..refusing import refuses
from .every_poll import POLLS
from .every_poll import poll as made

VALUES = {"bit": 1, "two messages": 1, "digits": 0.3, "split and mix": 0.3}
"""What a client answers; all others choose."""


@pytest.mark.some_quick(5)
@pytest.mark.parametrize("name", POLLS)
def test_messages_are_drawn_through_the_door(name, monkeypatch):
    poll, value, passed = made(name), VALUES.get(name, "y"), []

    def watched(read, mechanism, guarantee, **given):
        passed.append((mechanism, guarantee))
        return through(read, mechanism, guarantee, **given)

    through = protocols.through
    monkeypatch.setattr(protocols, "through", watched)
    assert len(poll.encode(value)) == poll.messages
    assert poll.encode_many([value] * 3).shape == (3 * poll.messages,)
    assert [mechanism for mechanism, _ in passed] == [InRandomOrder(messages=poll.client), poll.client]
    assert all(isinstance(mechanism, Mechanism) and guarantee == poll.guarantee() for mechanism, guarantee in passed)


@pytest.mark.slow
def test_every_kind_of_protocol_is_here():
    assert {type(made(name)).kind for name in POLLS} == protocols.KINDS.keys()


def test_what_a_client_promises_alone():
    """Enumerated: a turned bit tells ln((1−lie)/lie); a bit as it is tells all."""
    turned, digits = TurnedBit(lie=0.25), TurnedDigits(lies=(0.25, 0.2))
    for bit in (0, 1):
        law = testing.exact_law(lambda bit=bit: int(turned._draw(np.array([bit]))[0, 0])).law
        assert law[bit] == 3 * law[1 - bit]
    assert turned.guarantee().epsilon_at(delta=0) == pytest.approx(math.log(3))
    assert digits.guarantee().epsilon_at(delta=0) == pytest.approx(math.log(3) + math.log(4))
    for messages in (BitAndNoise(chance=0.5), ChoiceAmongFakes(size=2, fakes=1)):
        assert messages.guarantee().delta_at(epsilon=10) == 1
        assert InRandomOrder(messages=messages).guarantee().delta_at(epsilon=10) == 1
    assert turned.error(0.95).amount is None


def test_the_order_of_a_report_is_uniform():
    """The real message is first, or second, equally often: six deviations of 4,000 coins, a false alarm below 1e-8."""
    shown = InRandomOrder(messages=BitAndNoise(chance=0))._draw(np.ones(4000, dtype=np.int64))
    assert (shown.sum(axis=1) == 1).all()
    assert abs(int(shown[:, 0].sum()) - 2000) < 6 * math.sqrt(1000)


@pytest.mark.parametrize(
    "made_of",
    [
        *(lambda lie=lie: TurnedBit(lie=lie) for lie in (-1, 0, 0.5, 0.9, 1, 2)),
        lambda: TurnedDigits(lies=()),
        lambda: TurnedDigits(lies=(1e-6, 1 - 1.1e-6)),
        lambda: TurnedDigits(lies=(0.25,) * 63),
        lambda: BitAndNoise(chance=1.5),
        lambda: ChoiceBits(size=0, chance=0.5, inverted=False),
        lambda: ChoiceBits(size=2, chance=-0.5, inverted=True),
        lambda: ChoiceAmongFakes(size=2, fakes=-1),
        lambda: HashedAmongFakes(rows=0, buckets=4, seed="s", fakes=1),
        lambda: HashedAmongFakes(rows=2, buckets=0, seed="s", fakes=1),
        lambda: NoisyShares(steps=5, scale=0, parts=9, bits=40, shares=3),
        lambda: NoisyShares(steps=5, scale=1, parts=9, bits=63, shares=3),
    ],
)
def test_a_client_whose_noise_makes_no_sense_is_refused(made_of):
    """Lies above one half once were charged with the other sign: almost nothing."""
    with refuses(dp.InvalidArgument, "out-of-range"):
        made_of()


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1e300, -3.0])
def test_a_number_outside_is_sent_as_the_middle_without_a_warning(odd):
    for client in (TurnedDigits(lies=(0.25, 0.25)), NoisyShares(steps=3, scale=1, parts=9, bits=40, shares=3)):
        with testing.no_noise():
            assert client._draw(np.array([1.0, odd])).tolist() == client._draw(np.array([1.0, 1.0])).tolist()


def test_lies_charged_with_the_other_sign_are_caught(monkeypatch):
    """A client that lies nearly always tells as much as one that never does."""
    monkeypatch.setattr(shuffle_clients, "_check_lie", lambda lie: None)
    assert TurnedDigits(lies=(1e-6, 1 - 1.1e-6)).guarantee().epsilon_at(delta=0) < 0.1
    with pytest.raises(pytest.fail.Exception):
        test_a_client_whose_noise_makes_no_sense_is_refused(lambda: TurnedDigits(lies=(1e-6, 1 - 1.1e-6)))

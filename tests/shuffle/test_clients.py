"""What one client sends is drawn through the door, and promises alone what its class says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet import testing
from discreet.mechanisms.protocol import Mechanism
from discreet.mechanisms.reports.shuffle_clients import (
    BitAndNoise,
    ChoiceAmongFakes,
    InRandomOrder,
    TurnedBit,
    TurnedDigits,
)
from discreet.shuffle import protocol as protocols

from .every_poll import POLLS
from .every_poll import poll as made

VALUES = {"bit": 1, "two messages": 1, "digits": 0.3, "split and mix": 0.3}
"""What a client answers; all others choose."""


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

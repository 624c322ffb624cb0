"""What one client of a shuffled poll sends: its value as messages, with noise of its own. And the shuffler's order.

Each client mechanism takes the indices of values in a public domain, −1 for a value outside, and draws one row of
messages for each. Messages are integers. The promise of a poll is that of all messages in a random order
(`shuffle/protocol.py`). `guarantee` here is what remains against someone who sees which client sent which message.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.randomness import random_words
from discreet.exact.rational import Number, check_count, check_positive, exactly, log_bounds
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee, Pure
from discreet.guarantees.privacy_loss.compose import LossDistribution
from discreet.guarantees.privacy_loss.finite_pairs import ResponsePair
from discreet.guarantees.unit import row
from discreet.mechanisms.reports.local_records import Places, in_the_middle, inside
from discreet.mechanisms.reports.randomized_response import RandomizedResponse
from discreet.queries.sensitivity import SensitivityLike
from discreet.rows.containers import Data

PRIME = 2**61 - 1
"""Values are hashed as whole numbers below this."""
_MOST_BITS = 62
"""Messages are 64-bit integers."""
_NO_PROMISE = LossDistribution(
    factors=((ResponsePair(Fraction(0), Fraction(1)), 1),), protects=row(neighbors="replace"), trust="local"
)


class _Messages:
    """What all messages of a client have in common."""

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        """What they promise against someone who sees who sent them: nothing (δ = 1), unless a class says otherwise."""
        return _NO_PROMISE

    def error(self, confidence: float) -> Accuracy:
        """Unknown: only the messages of all clients together are an answer."""
        reason = "the messages of one client are no answer. Ask the poll for its error."
        return Accuracy(amount=None, confidence=check_confidence(confidence), reason=reason)


@dataclass(frozen=True, kw_only=True)
class InRandomOrder(_Messages):
    """The messages of each client in a random order, so that their order does not show which one is real.

    Promise: that of `messages`.
    """

    messages: Data

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        return self.messages.guarantee(sensitivity)  # type: ignore[no-any-return]

    def _draw(self, value: Places) -> Places:
        drawn = self.messages._draw(value)
        for sent in drawn:
            sent[:] = sent[samplers.permutation(len(sent))]
        return drawn  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class RandomOrder(_Messages):
    """The messages of all clients in one uniformly random order, as a shuffler does it.

    Promise: none alone. The guarantee of a poll counts on it.
    """

    def _draw(self, value: NDArray[Any]) -> NDArray[Any]:
        return value[samplers.permutation(len(value))]


@dataclass(frozen=True, kw_only=True)
class TurnedBit(_Messages):
    """A bit, turned with probability `lie`. A value outside is sent as a uniform bit.

    Promise: ln((1−lie)/lie), to whoever sees who sent it.
    """

    lie: Number

    def __post_init__(self) -> None:
        _check_lie(self.lie)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        return _of_turned(exactly(self.lie))

    def _draw(self, value: Places) -> Places:
        bits = inside(value, 2)
        return np.asarray(bits ^ samplers.bernoulli(exactly(self.lie), len(bits)), dtype=np.int64)[:, None]


@dataclass(frozen=True, kw_only=True)
class TurnedDigits(_Messages):
    """A number of steps, rounded at random to a whole one, as binary digits: each a message 2·place + digit, turned
    with the probability that `lies` has for it. A value outside is sent as the middle.

    Promise: the sum of ln((1−lie)/lie) over all digits, to whoever sees who sent them.
    """

    lies: tuple[Number, ...]

    def __post_init__(self) -> None:
        _check_bits(len(self.lies), "the number of lies")
        for lie in self.lies:
            _check_lie(lie)

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        return _of_turned(*(exactly(lie) for lie in self.lies))

    def _draw(self, value: NDArray[np.float64]) -> Places:
        digits = len(self.lies)
        steps = int(2**digits) - 1
        whole = in_the_middle(round_at_random(value, steps), steps)
        columns = []
        for place, lie in enumerate(self.lies):
            bits = (whole >> (digits - 1 - place)) & 1
            columns.append(2 * place + (bits ^ samplers.bernoulli(exactly(lie), len(whole))))
        return np.column_stack(columns).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class BitAndNoise(_Messages):
    """A bit as it is, and a noise bit that is 1 with probability `chance`. A value outside is sent as a uniform bit.

    Promise: none alone.
    """

    chance: Number

    def __post_init__(self) -> None:
        _check_chance(self.chance)

    def _draw(self, value: Places) -> Places:
        bits = inside(value, 2)
        return np.stack([bits, samplers.bernoulli(exactly(self.chance), len(bits))], axis=1).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class ChoiceBits(_Messages):
    """For each of `size` choices a bit and a noise bit, 1 with probability `chance`, as messages 2·choice + bit.

    The bit is 1 at the client's own choice, or, `inverted`, at every other one. A value outside is sent as a uniform
    choice.

    Promise: none alone.
    """

    size: int
    chance: Number
    inverted: bool

    def __post_init__(self) -> None:
        check_count(self.size, "size")
        _check_chance(self.chance)

    def _draw(self, value: Places) -> Places:
        every = np.arange(self.size)
        own = (inside(value, self.size)[:, None] == every) ^ self.inverted
        noise = samplers.bernoulli(exactly(self.chance), len(value) * self.size).reshape(-1, self.size)
        return np.concatenate([2 * every + own, 2 * every + noise], axis=1).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class ChoiceResponse(_Messages):
    """The index of a choice, by randomized response. A value outside is sent as a uniform choice.

    Promise: that of `response`.
    """

    response: RandomizedResponse

    def guarantee(self, sensitivity: SensitivityLike = None) -> Guarantee:
        return self.response.guarantee(sensitivity)

    def _draw(self, value: Places) -> Places:
        return self.response._report(inside(value, len(self.response.choices)))[:, None]


@dataclass(frozen=True, kw_only=True)
class ChoiceAmongFakes(_Messages):
    """A choice of `size`, and `fakes` messages that are uniform choices; a fraction of a fake is sent with that
    probability, and the empty message `size` otherwise. A value outside is sent as a uniform choice.

    Promise: none alone.
    """

    size: int
    fakes: Number

    def __post_init__(self) -> None:
        check_count(self.size, "size")
        _check_fakes(self.fakes)

    def _draw(self, value: Places) -> Places:
        own = inside(value, self.size)
        return np.column_stack([own, *fake_messages(exactly(self.fakes), self.size, len(own))])


@dataclass(frozen=True, kw_only=True)
class HashedAmongFakes(_Messages):
    """The cell of a value by one of `rows` public hash functions, which is picked at random, and `fakes` as
    `ChoiceAmongFakes` has them, over all cells. A value outside is sent as a uniform one.

    Promise: none alone.
    """

    rows: int
    buckets: int
    seed: str
    fakes: Number

    def __post_init__(self) -> None:
        check_count(self.rows, "rows")
        check_count(self.buckets, "buckets")
        _check_fakes(self.fakes)

    def cells(self, keys: Places, rows: NDArray[Any]) -> Places:
        """The cell of each value, by its key, in the given row: row·buckets + bucket."""
        first, second = hash_functions(self.seed, self.rows)
        hashed = hash_keys(keys.astype(np.uint64), first[rows], second[rows], self.buckets)
        return (rows * self.buckets + hashed).astype(np.int64)

    def _draw(self, value: Places) -> Places:
        keys, count = inside(value, PRIME), len(value)
        own = self.cells(keys, samplers.uniform_below(self.rows, count).astype(np.int64))
        return np.column_stack([own, *fake_messages(exactly(self.fakes), self.rows * self.buckets, count)])


@dataclass(frozen=True, kw_only=True)
class NoisyShares(_Messages):
    """A number of `steps`, rounded at random to a whole one, and one of `parts` parts of Laplace noise of this
    `scale`; sent as `shares` numbers below 2^`bits` that are uniform but for their sum. A value outside is sent as the
    middle.

    Promise: none alone.
    """

    steps: int
    scale: Number
    parts: int
    bits: int
    shares: int

    def __post_init__(self) -> None:
        check_positive(self.scale, "scale")
        for name in ("steps", "parts", "shares"):
            check_count(getattr(self, name), name)
        _check_bits(self.bits, "bits")

    def _draw(self, value: NDArray[np.float64]) -> Places:
        whole = in_the_middle(round_at_random(value, self.steps), self.steps)
        size, mask = len(whole), (1 << self.bits) - 1
        noise = [samplers.polya(self.parts, exactly(self.scale), size) for _ in range(2)]
        shares = [samplers.uniform_below(1 << self.bits, size).astype(np.int64) for _ in range(self.shares - 1)]
        last = whole + noise[0] - noise[1]
        for one in shares:
            last = (last - one) & mask
        return np.column_stack([*shares, last & mask]).astype(np.int64)


def _check_lie(lie: Number) -> None:
    """With more lies than truth, the promise would have another sign."""
    if not 0 < exactly(lie, "lie") < Fraction(1, 2):
        raise InvalidArgument("lie must be above 0 and below one half.", code="out-of-range")


def _check_chance(chance: Number) -> None:
    if not 0 <= exactly(chance, "chance") <= 1:
        raise InvalidArgument("chance must be from 0 to 1.", code="out-of-range")


def _check_bits(bits: int, name: str) -> None:
    if check_count(bits, name) > _MOST_BITS:
        raise InvalidArgument(f"{name} must be at most {_MOST_BITS}.", code="out-of-range")


def _check_fakes(fakes: Number) -> None:
    if exactly(fakes, "fakes") < 0:
        raise InvalidArgument("fakes must be at least 0.", code="out-of-range")


def _of_turned(*lies: Fraction) -> Pure:
    epsilon = sum((log_bounds((1 - lie) / lie)[1] for lie in lies), Fraction(0))
    return Pure(epsilon=epsilon, protects=row(neighbors="replace"), trust="local")


def round_at_random(scaled: NDArray[np.float64], steps: int) -> Places:
    """Numbers from 0 to `steps` as integers, rounded up or down without bias. Any other is −1.

    Noise that is added later hides the number, so these coins do not have to be exact.
    """
    scaled = np.where((scaled >= 0) & (scaled <= steps), scaled, -1.0)
    whole = np.floor(scaled).astype(np.int64)
    up = (random_words(len(whole)) >> np.uint64(11)) * 2.0**-53 < scaled - whole
    return np.minimum(whole + up, steps)


def fake_messages(fakes: Fraction, choices: int, clients: int) -> list[Places]:
    """The fakes of each client as columns. The last may be empty, which is the message after the last choice."""
    whole, part = math.floor(fakes), fakes % 1
    columns = [samplers.uniform_below(choices, clients).astype(np.int64) for _ in range(whole)]
    if part:
        last = samplers.uniform_below(choices, clients).astype(np.int64)
        columns.append(np.where(samplers.bernoulli(part, clients), last, choices))
    return columns


# --- public hash functions ----------------------------------------------------------------------------------


def hash_functions(seed: str, rows: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The numbers a and b of the public functions x → ((a·x + b) mod 2^61−1) mod buckets, from the seed."""
    drawn = hashlib.shake_256(f"discreet/hashed/{seed}".encode()).digest(16 * rows)
    words = np.frombuffer(drawn, dtype=">u8").astype(np.uint64) % np.uint64(PRIME)
    return np.maximum(words[:rows], np.uint64(1)), words[rows:]


def hash_keys(keys: NDArray[np.uint64], first: Any, second: Any, buckets: int) -> NDArray[np.int64]:
    """(a·x + b mod 2^61−1) mod buckets, in 64-bit words: a·x in parts of 32 bits."""
    prime, low_mask = np.uint64(PRIME), np.uint64(2**32 - 1)
    shift = np.uint64(32)
    a, b = np.asarray(first, dtype=np.uint64), np.asarray(second, dtype=np.uint64)
    a_low, a_high, x_low, x_high = a & low_mask, a >> shift, keys & low_mask, keys >> shift
    # (2^32·ah + al)(2^32·xh + xl): each product is below 2^64, and 2^64 = 8, 2^61 = 1 mod the prime
    cross = _reduce(a_low * x_high) + _reduce(a_high * x_low)
    cross = _reduce(cross)
    total = _reduce(a_low * x_low) + _times_power(cross, 32) + _times_power(_reduce(a_high * x_high), 64)
    return (_reduce(_reduce(total) + b) % prime % np.uint64(buckets)).astype(np.int64)


def _reduce(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The same modulo 2^61−1, below 2^61 + 8."""
    return np.asarray((value & np.uint64(PRIME)) + (value >> np.uint64(61)))


def _times_power(value: NDArray[np.uint64], power: int) -> NDArray[np.uint64]:
    """value·2^power modulo 2^61−1, by rotating its 61 bits."""
    turn = power % 61
    value = value % np.uint64(PRIME)
    kept = value & np.uint64((1 << (61 - turn)) - 1)
    return np.asarray((kept << np.uint64(turn)) | (value >> np.uint64(61 - turn)))

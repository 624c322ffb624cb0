"""How fast the desk may be asked: buckets for addresses and tokens, and waiting times after failed logins.

Nothing of it is written anywhere. Addresses are forgotten when the desk stops, and the oldest ones before.
"""

from __future__ import annotations

import hashlib
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

REMEMBERED = 10_000
"""So many addresses or tokens are remembered, at most."""

Clock = Callable[[], float]


class Rate(NamedTuple):
    """So many requests a second in the long run, and so many at once."""

    each_second: float
    at_once: float


OF_AN_ADDRESS = Rate(20, 200)
OF_A_TOKEN = Rate(4000, 8000)


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What one address may ask before it shows a token that holds, what one token may ask, and how many requests run
    at the same time: of everybody, and of one token.

    After `free_failures` failed logins, an address waits a second, then two, four and so on up to `longest_wait`.
    """

    address: Rate = OF_AN_ADDRESS
    token: Rate = OF_A_TOKEN
    running: int = 1024
    running_each: int = 128
    free_failures: int = 5
    longest_wait: float = 300.0


class Buckets:
    """A token bucket for each key."""

    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._rate, self._clock = rate, clock
        self._left: OrderedDict[object, tuple[float, float]] = OrderedDict()

    def take(self, key: object) -> float:
        """Take one from the bucket of this key. Returns 0, or the seconds until there is one."""
        now, (speed, most) = self._clock(), self._rate
        left, at = self._left.get(key, (most, now))
        left = min(most, left + speed * (now - at))
        wait = 0.0 if left >= 1 else (1 - left) / speed
        self._left[key] = (left if wait else left - 1, now)
        _forget_oldest(self._left, key)
        return wait


class Backoff:
    """Waiting times after failures, longer after each."""

    def __init__(self, free: int, longest: float, clock: Clock) -> None:
        self._free, self._longest, self._clock = free, longest, clock
        self._failures: OrderedDict[object, tuple[int, float]] = OrderedDict()

    def fail(self, key: object) -> None:
        """Note a failure. Failures are forgotten after the longest wait without one, never by a success."""
        count, at = self._failures.get(key, (0, 0.0))
        now = self._clock()
        self._failures[key] = (1 if now - at > 2 * self._longest else count + 1, now)
        _forget_oldest(self._failures, key)

    def wait(self, key: object) -> float:
        """The seconds until the next try."""
        count, at = self._failures.get(key, (0, 0.0))
        if count <= self._free:
            return 0.0
        return max(0.0, at + min(self._longest, 2.0 ** min(count - self._free - 1, 60)) - self._clock())


def _forget_oldest(
    known: OrderedDict[object, tuple[float, float]] | OrderedDict[object, tuple[int, float]], key: object
) -> None:
    known.move_to_end(key)
    if len(known) > REMEMBERED:
        known.popitem(last=False)


class Gate:
    """Lets requests in, or says how long to wait."""

    def __init__(self, rates: Rates, clock: Clock = time.monotonic) -> None:
        self.rates = rates
        self._addresses, self._tokens = Buckets(rates.address, clock), Buckets(rates.token, clock)
        self._backoff = Backoff(rates.free_failures, rates.longest_wait, clock)
        self._accepted: OrderedDict[object, tuple[int, float]] = OrderedDict()
        self._running: dict[object, int] = {}
        self.running = 0

    def enter(self, address: str, token: str | None) -> tuple[float, object]:
        """The seconds to wait, 0 if the request may run, and the key under which it runs until `leave`."""
        digest = None if token is None else digest_of(token)
        known = digest is not None and digest in self._accepted
        key = digest if known else network_of(address)
        wait = self._tokens.take(key) if known else max(self._backoff.wait(key), self._addresses.take(key))
        full = self.running >= self.rates.running or self._running.get(key, 0) >= self.rates.running_each
        if wait or full:
            return wait or 1.0, None
        self.running += 1
        self._running[key] = self._running.get(key, 0) + 1
        return 0.0, key

    def leave(self, key: object) -> None:
        """The request has ended."""
        self.running -= 1
        left = self._running[key] - 1
        if left:
            self._running[key] = left
        else:
            del self._running[key]

    def accept(self, token: str) -> None:
        """The vault has answered this token: it has a bucket of its own from now on."""
        digest = digest_of(token)
        self._accepted[digest] = (0, 0.0)
        _forget_oldest(self._accepted, digest)

    def forget(self, token: str) -> None:
        """The vault no longer answers this token."""
        self._accepted.pop(digest_of(token), None)

    def fail(self, address: str, token: str | None) -> None:
        """The vault has refused a login."""
        if token is not None:
            self.forget(token)
        self._backoff.fail(network_of(address))


def digest_of(token: str) -> bytes:
    """What is remembered of a token."""
    return hashlib.sha256(token.encode()).digest()


def network_of(address: str) -> str:
    """Who is behind an address: of IPv6, the network of 64 bits that one customer has."""
    if ":" not in address:
        return address
    try:
        whole = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(whole.ipv4_mapped or ipaddress.IPv6Network((int(whole) >> 64 << 64, 64)))

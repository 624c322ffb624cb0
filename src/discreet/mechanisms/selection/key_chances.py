"""How likely a key is shown, from how many people have it: curves that rise as fast as a promise allows.

Only which keys are shown is released, so no noisy number is drawn: each key is a coin. A person who has t keys may move
t coins. The curves are made so that each of these coins moves by at most 1/t of what the person may move in all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument

Floats = NDArray[np.float64]
Logs = tuple[Floats, Floats]
"""The logarithms of the chances of heads and of tails."""
_STEPS = 8
"""Into how many steps a vote is divided at most. People with more keys than a curve is made for cast fewer of them."""
SLACK = 1e-8
"""The part of a loss, and of a leak, that is always kept for rounding. See `kept`."""
_MOST_KEPT = 0.01
"""Where rounding may need more than this part of a loss, no curve is made."""
_FARTHEST = 700.0
"""Log-odds are at most this, so that the chance of tails is a normal double."""
_SMALLEST = 1e-290
"""The smallest part of a leak that a vote of one step may have."""
_MOST_ROOM = 600.0
"""One vote uses no more than this, so that its exponential is a double."""
_SLOWEST = 2e-6
"""If one vote moves the log-odds of an even coin by less, a curve would need millions of votes."""
_FIRST = 24
"""The first votes, in which a leak matters, are decided step by step."""
_COARSE = 0.5
"""If one vote moves the log-odds of an even coin by more than this, the whole curve is decided step by step."""


@dataclass(frozen=True, eq=False)
class Curve:
    """The chances of a key after 0, 1, 2, … steps of votes, for people with up to `keys` keys.

    The first chance is 0 and the last one 1. Before `middle` the chance that a key is shown is `small`, and from there
    on the chance that it is hidden is `small`, so that no digit is lost.
    """

    keys: int
    steps: int
    small: Floats
    middle: int

    def votes(self, keys: int) -> int:
        """The steps that a person with this many keys casts for each of them.

        With w steps a coin moves by at most w²/(steps²·self.keys) of what a person may move. That is at most 1/keys.
        """
        return min(self.steps, math.isqrt(self.steps**2 * self.keys // keys))

    @property
    def chances(self) -> Floats:
        """The chances that a key is shown, as the nearest doubles."""
        return np.where(np.arange(len(self.small)) < self.middle, self.small, 1 - self.small)

    def logs(self) -> Logs:
        """Of the chances that a key is shown, and that it is hidden."""
        with np.errstate(divide="ignore"):
            near, far = np.log(self.small), np.log1p(-self.small)
        lower = np.arange(len(self.small)) < self.middle
        return np.where(lower, near, far), np.where(lower, far, near)


def sizes_up_to(keys: int) -> tuple[int, ...]:
    """For how many keys a person curves are made: powers of two, and the last one."""
    return (*(2**power for power in range((keys - 1).bit_length())), keys)


@lru_cache(maxsize=32)
def curves(order: float, loss: float, leak: float, keys: int) -> tuple[Curve, ...]:
    """The curves for people with up to `keys` keys, at a Rényi divergence of `loss` and a leak with probability `leak`.

    Promise: a person with t keys changes the chance p of each to some q. With ℓ = leak/t and E = exp((order−1)·loss/t),
    (q−ℓ)^order·p^(1−order) + (1−q)^order·(1−p)^(1−order) ≤ E, and the same holds if 1−q takes the place of p, and 1−p
    that of q. Both sums are convex in p and in q, and at most 1 where p = q. So what holds for two curves also holds if
    each key takes the larger of both: a key may take the best of all curves.
    """
    steps = checked(order, loss, leak, keys)
    found = _made(order, loss, leak, sizes_up_to(keys), steps)
    # a curve of whole votes rises a little faster, which matters if it is short
    short = tuple(curve.keys for curve in found if curve.middle < 60 * steps)
    return (*found, *(_made(order, loss, leak, short, 1) if short else ()))


@lru_cache(maxsize=64)
def checked(order: float, loss: float, leak: float, keys: int) -> int:
    """Into how many steps a vote is divided. Refuses numbers for which doubles make no curve that keeps its promise."""
    steps = _STEPS
    fits = order > 1 and loss > 0 and math.isfinite(order * loss) and leak / (_STEPS**2 * keys) >= _SMALLEST
    if fits:
        slowest = float(_Rising(order, loss, leak, (keys,), 1).even()[0])
        while steps > 2 and slowest < 0.08 / steps:  # thousands of votes: their parts matter less
            steps //= 2
        fits = slowest >= _SLOWEST and kept(order, loss, leak, keys, steps) <= _MOST_KEPT
    if not fits:
        raise InvalidArgument(
            "No chances can be computed for this order, loss, leak and keys_per_person: one is too large or too small.",
            code="out-of-range",
        )
    return steps


def rounding(order: float, farthest: float) -> float:
    """More than what rounding adds to the logarithm of a sum P^order·Q^(1−order), if no mass is below exp(−farthest).

    Promise: log-odds, logarithms and powers are functions whose results have a relative error of at most 2^-52. So the
    logarithm of a mass has an error of at most farthest·2^-52, and a mass that is made from log-odds a relative one of
    at most 2·(farthest + 1)·2^-52. A term has a power of at most `order` of two masses, each computed twice.
    """
    return order * (8 * farthest + 32) * 2.0**-52


def kept(order: float, loss: float, leak: float, keys: int, steps: int) -> float:
    """The part of a loss that is kept for rounding, so that the exact sums of the chances that are drawn are in bounds.

    Promise: a vote of one step of a person with the most keys has the least room. Log-odds are at most −ln(leak of one
    step) before a vote that matters. After it, the chance of tails to the power of 1 − order is at most exp(room) times
    what it was, which bounds how far they may rise. Twice the rounding is enough for `divergence`, too. As for the
    leak, SLACK of it is more than the error of a mass that is up to 10,000 times as large. Of a larger mass, what is
    left after the leak has nearly the same relative error as the mass.
    """
    room, parts = (order - 1) * loss, steps**2 * keys
    last = -math.log(leak / parts)
    farthest = min(_FARTHEST, last + (min(room, _MOST_ROOM) + last) / (order - 1))
    return 2 * SLACK + 2 * rounding(order, farthest) / min(room / parts, _MOST_ROOM)


def divergence(made: tuple[Curve, ...], order: float, leak: float) -> float:
    """The largest Rényi divergence of this order that one person causes, by the chances themselves, rounded up."""
    worst = 0.0
    for curve in made:
        shown, hidden = curve.logs()
        more = rounding(order, -math.log(curve.small[curve.small > 0].min()))
        for vote in range(1, curve.steps + 1):
            share = vote * vote / (curve.steps**2 * curve.keys)
            # more votes than the last chance needs change nothing
            q = np.append(shown[vote:], np.zeros(vote)), np.append(hidden[vote:], np.full(vote, -np.inf))
            moved = spread((shown, hidden), q, leak * share * (1 - SLACK / 2), order)
            worst = max(worst, (float(moved.max()) + more) / share)
    return worst / (order - 1) * (1 + SLACK)


def spread(p: Logs, q: Logs, leak: Floats | float, order: float) -> Floats:
    """(order − 1) times the divergence of a coin whose chance rises from p to q, the larger of both directions.

    A part `leak` of the mass of heads is set aside going up, and as much of the mass of tails going down.
    """
    heads, tails = _without(q[0], leak), _without(p[1], leak)
    up = np.logaddexp(_weighed(order, heads, p[0]), _weighed(order, q[1], p[1]))
    down = np.logaddexp(_weighed(order, tails, q[1]), _weighed(order, p[0], q[0]))
    return np.asarray(np.maximum(up, down))


def _without(log: Floats, leak: Floats | float) -> Floats:
    """The logarithm of a mass after a part is set aside."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.asarray(np.where(np.isneginf(log), log, log + np.log1p(-np.minimum(leak * np.exp(-log), 1.0))))


def _weighed(order: float, inside: Floats, outside: Floats) -> Floats:
    """The logarithm of P^order·Q^(1−order). It is −∞ where P has no mass."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(inside), -np.inf, inside + (order - 1) * (inside - outside))


def _logs(odds: Floats) -> Logs:
    """Of coins with these log-odds."""
    small = np.log1p(np.exp(-np.abs(odds)))
    return np.minimum(odds, 0) - small, -np.maximum(odds, 0) - small


def _made(order: float, loss: float, leak: float, sizes: tuple[int, ...], steps: int) -> tuple[Curve, ...]:
    made = []
    less = loss * (1 - kept(order, loss, leak, max(sizes), steps))
    for size, odds in zip(sizes, _Rising(order, less, leak * (1 - SLACK), sizes, steps).odds(), strict=True):
        near = np.exp(-np.abs(odds))
        small = np.where(np.isneginf(odds), 0.0, near / (1 + near))
        made.append(Curve(size, steps, np.append(small, 0.0), int(np.searchsorted(odds, 0.0, side="right"))))
    return tuple(made)


class _Votes:
    """Coins with these log-odds, and what a vote that makes them rise, and adds a leak below ½, moves."""

    def __init__(self, odds: Floats, leak: Floats, order: float) -> None:
        near = np.exp(-np.abs(odds))
        high, low = 1 / (1 + near), near / (1 + near)
        self.heads, self.tails = np.where(odds < 0, low, high), np.where(odds < 0, high, low)
        self.leak, self.order = leak, order

    def after(self, rise: Floats) -> tuple[Floats, Floats]:
        """The chances of heads and of tails after the vote."""
        return self._after(rise)[1:]

    def _after(self, rise: Floats) -> tuple[Floats, Floats, Floats]:
        heads, tails = self.heads, self.tails * np.exp(-rise)
        both = heads + tails
        heads, tails = heads / both, tails / both
        leak = np.where(heads < 0.5, self.leak, 0.0)
        return heads, heads + leak, tails - leak

    def moved(self, rise: Floats) -> Floats:
        """exp(`spread`) − 1, without the leak of tails."""
        kept, heads, tails = self._after(rise)
        p, s, power = self.heads, self.tails, self.order - 1
        up = kept * (kept / p) ** power + tails * (tails / s) ** power
        down = s * (s / tails) ** power + p * (p / heads) ** power
        return np.asarray(np.maximum(up, down) - 1)


class _Rising:
    """The log-odds of several curves at once, each a row, that rise as fast as the votes before allow."""

    def __init__(self, order: float, loss: float, leak: float, sizes: tuple[int, ...], steps: int) -> None:
        self.order, self.steps, self.rows = order, steps, np.arange(len(sizes))
        shares = (np.arange(1, steps + 1) / steps) ** 2 / np.array(sizes, dtype=np.float64)[:, None]
        self.room, self.leak = np.minimum((order - 1) * loss * shares, _MOST_ROOM), leak * shares
        self.last = -np.log(self.leak[:, 0])  # from here on one step may hide a key with its leak

    def even(self) -> Floats:
        """How far one vote may raise the log-odds of an even coin."""
        none = np.zeros(len(self.rows))
        return self._rise(none, self.room[:, -1], none, none + 1)

    def odds(self) -> list[Floats]:
        """Each curve, to where its last chance may be 1."""
        coarse = self.even() > _COARSE
        found = self._stepwise(self.rows[coarse], None) | self._stepwise(self.rows[~coarse], _FIRST * self.steps)
        rest = [row for row in self.rows.tolist() if found[row][-1] <= self.last[row]]
        found |= self._smooth(np.array(rest), found) if rest else {}
        return [found[row] for row in self.rows.tolist()]

    def _rise(self, odds: Floats, room: Floats, leak: Floats, guess: Floats) -> Floats:
        """How far log-odds may rise, rounded down: a secant in logarithms from a guess, and halvings where it fails."""
        last, now = guess * 0.99, guess
        votes = _Votes(odds, leak, self.order)
        most = np.expm1(room)
        with np.errstate(all="ignore"):
            at_last = np.log(votes.moved(last) / most)
            for _ in range(3):
                at_now = np.log(votes.moved(now) / most)
                slope = (at_now - at_last) / np.log(now / last)
                last, now, at_last = now, now * np.exp(-np.clip(at_now / slope, -1, 1)), at_now
            low, high = np.zeros_like(guess), guess * 1.5
            now = np.where(now > 0, now, high) * (1 - 1e-6)
            fits = votes.moved(now) <= most
            if (fits & (votes.moved(now * (1 + 1e-4)) > most)).all():
                return now
            low, high = np.where(fits, now, low), np.where(fits, np.maximum(high, now), np.minimum(high, now))
            for _ in range(60):
                inside = votes.moved(high) <= most
                if not inside.any():
                    break
                low, high = np.where(inside, high, low), np.where(inside, 2 * high, high)
            for _ in range(24):
                middle = (low + high) / 2
                inside = votes.moved(middle) <= most
                low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        return low

    def _stepwise(self, rows: NDArray[np.intp], length: int | None) -> dict[int, Floats]:
        """The log-odds that every vote of 1, 2, … steps may lead to, from what was that many steps before."""
        room, leak, last = self.room[rows], self.leak[rows], self.last[rows]
        columns, guess = [np.full(len(rows), -np.inf)], np.ones_like(room)
        while (columns[-self.steps :][0] <= last).any() and (length is None or len(columns) <= length):
            before = np.stack(columns[: -self.steps - 1 : -1], axis=1)
            votes, new = before.shape[1], np.isneginf(before)
            some = np.where(new, -1.0, np.minimum(before, last[:, None]))
            rise = self._rise(some, room[:, :votes], leak[:, :votes], guess[:, :votes])
            guess[:, :votes] = rise
            alone = np.log(leak[:, :votes]) - np.log1p(-leak[:, :votes])
            with np.errstate(divide="ignore"):
                heads, tails = _Votes(some, leak[:, :votes], self.order).after(rise)
                reached = np.where(new, alone, np.log(heads) - np.log(tails)).min(axis=1)
            columns.append(np.minimum(np.maximum(reached, before[:, 0]), _FARTHEST))
        return {
            row: odds[: int(np.searchsorted(odds, end, side="right")) + self.steps]
            for row, end, odds in zip(rows.tolist(), last, np.stack(columns, axis=1), strict=True)
        }

    def _smooth(self, rows: NDArray[np.intp], first: dict[int, Floats]) -> dict[int, Floats]:
        """The other log-odds, by the rate at which they may rise without a leak; lowered until every vote fits."""
        found: dict[int, Floats] = {}
        ease = dict.fromkeys(rows.tolist(), 1.0)
        while left := [row for row in ease if row not in found]:
            for row, odds in zip(left, self._paced(left, [ease[row] for row in left], first), strict=True):
                over = self._excess(row, odds)
                if over <= 1:
                    found[row] = odds
                ease[row] *= 0.997 / max(over, 1)
        return found

    def _paced(self, rows: list[int], eases: list[float], first: dict[int, Floats]) -> Iterator[Floats]:
        start = np.array([first[row][-1] for row in rows])
        grid = start[:, None] + (self.last[rows] - start + 1)[:, None] * np.linspace(0, 1, 250)
        none, ease, guess = np.zeros((len(rows), 1)), np.array(eases)[:, None], np.ones_like(grid)
        parts = sorted({1, max(1, self.steps // 2), self.steps})
        rates = [
            self._rise(grid, self.room[rows, vote - 1 : vote] * ease, none, guess) * (self.steps / vote)
            for vote in parts
        ]
        pace = 1 / np.minimum.reduce(rates)
        taken = np.cumsum((pace[:, 1:] + pace[:, :-1]) / 2 * np.diff(grid, axis=1), axis=1)
        for row, spent, odds in zip(rows, taken, grid, strict=True):
            steps = np.arange(1, math.ceil(spent[-1] * self.steps) + self.steps) / self.steps
            yield np.append(first[row], np.interp(steps, np.append(0.0, spent), odds))

    def _excess(self, row: int, odds: Floats) -> float:
        """How much of what it may move the worst vote of a curve moves."""
        logs = _logs(odds[(_FIRST - 1) * self.steps :])
        worst = 0.0
        for vote in range(1, self.steps + 1):
            p, q = (logs[0][:-vote], logs[1][:-vote]), (logs[0][vote:], logs[1][vote:])
            moved = spread(p, q, self.leak[row, vote - 1], self.order)
            worst = max(worst, float(moved.max()) / self.room[row, vote - 1])
        return worst

"""Histograms of very many choices, or of any strings: a hashed cell among fakes, with frequent values peeled off."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, exactly
from discreet.guarantees.accuracy import Accuracy, bernstein, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.influence import Moves
from discreet.guarantees.privacy_loss.compose import Factors
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.reports.local_records import FOREIGN, one_column
from discreet.mechanisms.reports.shuffle_clients import PRIME, HashedAmongFakes, hash_functions, hash_keys
from discreet.rows.containers import Data
from discreet.shuffle.fakes import fakes_pair, least_fakes, readable_with_fakes
from discreet.shuffle.protocol import Ints, PollRelease, Protocol, each_of, honest_clients, validate_goal

_ROWS, MOST_ROWS = 512, 2**16
_PASSES = 3
_MOST_LOOKED_AT = 2**22


@dataclass(frozen=True, kw_only=True)
class HashedHistogram(Protocol):
    """Each client picks one of `rows` public hash functions, sends its number and the cell its value falls in, of
    `buckets`; and `fakes` messages that are uniform over all cells.

    Any text, bytes or number can be counted, a number as the text of its digits, and any value equal to one of the
    `choices`, the values of interest that are known in advance. Anything else is reported as a uniform value. What is
    drawn are the counts of the cells: `analyze(messages, candidates=[…])` computes counts of any values from them.

    Promise: that of fakes over `buckets` choices: a value's cells are one in each row, and how likely a view is depends
    on the sum over them. Together, shuffler and analyzer learn the cell.
    Error: √(n·(fakes + 1)/buckets), and what heavy values add to cells they share with others until they are peeled.
    Source: Luo-Wang-Yi 2022; the exact δ is that of `Fakes`.
    """

    fakes: Number
    rows: int
    buckets: int
    seed: str = "discreet"
    choices: Sequence[Hashable] = ()
    kind: ClassVar[str] = "hashed histogram"

    def __post_init__(self) -> None:
        super().__post_init__()
        if check_count(self.rows, "rows") > MOST_ROWS:
            raise InvalidArgument(f"rows must be at most {MOST_ROWS}.", code="too-large")
        check_count(self.buckets, "buckets", at_least=2)
        object.__setattr__(self, "choices", tuple(self.choices))
        if exactly(self.fakes) <= 0:
            raise InvalidArgument("fakes must be above 0.", code="out-of-range")

    @classmethod
    def for_guarantee(
        cls,
        guarantee: Guarantee,
        *,
        choices: Sequence[Hashable] = (),
        clients: int,
        minimum: int | None = None,
        honest: Number = 1,
        fakes: int = 1,
        rows: int = _ROWS,
        seed: str = "discreet",
    ) -> Self:
        """As many buckets as `fakes` messages per client can hide a value among."""
        least = clients if minimum is None else minimum
        count, goal = honest_clients(least, honest), validate_goal(guarantee)
        wanted = check_count(fakes, "fakes")
        # fakes per client grow with the buckets: the most buckets for which these fakes suffice
        one = least_fakes(goal, 2, count) / 2
        buckets = max(2, math.floor(wanted / one))
        while buckets > 2 and least_fakes(goal, buckets, count) > wanted:
            buckets = max(2, buckets * 999 // 1000)
        exact = max(least_fakes(goal, buckets, count), Fraction(wanted)) if buckets > 2 else least_fakes(goal, 2, count)
        return cls(
            clients=clients,
            minimum=least,
            honest=honest,
            fakes=tidy(exact),
            rows=rows,
            buckets=buckets,
            seed=seed,
            choices=choices,
        )

    @property
    def messages(self) -> int:
        return 1 + math.ceil(exactly(self.fakes))

    @property
    def alphabet(self) -> int:
        return self.rows * self.buckets + 1

    def _factors(self, honest: int) -> Factors:
        return ((fakes_pair(exactly(self.fakes), self.buckets, honest), 1),)

    publishes: ClassVar[str] = "one count"
    _remark: ClassVar[str] = (
        "This is before frequent values are taken out of the cells of others. Published counts can change by more."
    )

    @property
    def takes(self) -> str:
        return "text, bytes and numbers"

    @cached_property
    def _by_choice(self) -> dict[Hashable, int]:
        return {choice: place for place, choice in enumerate(self.choices)}

    def _places(self, values: Any) -> Ints:
        """The 61 bits that stand for each value. −1 for an unsupported value."""
        records = one_column(values)
        listed = records.tolist() if isinstance(records, np.ndarray) else records
        return np.fromiter(map(self._key, listed), np.int64, len(listed))

    def _key(self, value: Any) -> int:
        """A value as 61 bits, the same on every machine."""
        try:
            if isinstance(value, bytes | str):
                return _key(value)
            place = self._by_choice.get(value)
            if place is not None:
                return _key(str(self.choices[place]))
            if isinstance(value, int | np.integer | np.bool_):
                return _key(str(int(value)))
            if isinstance(value, float | np.floating | Decimal | Fraction) and math.isfinite(value):
                number = float(value)
                return _key(str(int(number) if number.is_integer() else number))
        except Exception:  # not hashable, more digits than Python prints, or a user-defined class that fails
            return FOREIGN
        return FOREIGN

    @property
    def client(self) -> HashedAmongFakes:
        return HashedAmongFakes(rows=self.rows, buckets=self.buckets, seed=self.seed, fakes=self.fakes)

    def cells(self, keys: Ints, rows: NDArray[Any]) -> Ints:
        """The cell of each value, by its key, in the given row: row·buckets + bucket."""
        return self.client.cells(keys, rows)

    def _readable(self, known: Ints) -> int:
        whole = math.floor(exactly(self.fakes))
        return readable_with_fakes(known, self.rows * self.buckets, self.messages, whole)

    def _estimate(self, counts: NDArray[Any], reports: int) -> NDArray[Any]:
        return counts[: self.rows * self.buckets].reshape(self.rows, self.buckets)

    def analyze(self, messages: Data, *, candidates: Iterable[Any] | None = None, **given: Any) -> PollRelease:
        """Counts of the candidates (by default the choices), as {value: count}."""
        listed = list(self.choices if candidates is None else candidates)
        if not listed or (self._places(listed) < 0).any():
            raise InvalidArgument("Name the values to count, as text or numbers: candidates=[…].", code="candidates")
        release = super().analyze(messages, **given)
        table, reports = release.value, release.heard
        estimates = self._peeled(np.asarray(table, dtype=np.float64), listed, reports)
        return replace(release, value=dict(zip(listed, (float(one) for one in estimates), strict=True)))

    def _peeled(self, table: NDArray[np.float64], listed: list[Any], reports: int) -> NDArray[np.float64]:
        """Estimates from the cells. Frequent values, far above all noise, are removed from the cells of others."""
        first, second = hash_functions(self.seed, self.rows)
        keys = self._places(listed).astype(np.uint64)
        uniform = table.sum() / self.buckets  # messages of others, and fakes, fall anywhere
        found = np.zeros(len(listed))
        heavy = np.zeros(len(listed), dtype=bool)
        rest = table.copy()
        for _ in range(_PASSES):
            sums = np.zeros(len(listed))
            for row in range(self.rows):
                sums += rest[row, hash_keys(keys, first[row], second[row], self.buckets)]
            spread = math.sqrt(max(uniform, 1.0)) * (1 + math.sqrt(2 * math.log(20 * len(listed))))
            estimates = np.where(heavy, found, 0) + sums - rest.sum() / self.buckets
            collisions = _spread_of_heavy(np.where(heavy, 0, np.maximum(estimates, 0)), self.rows, self.buckets)
            new = (estimates > 4 * (spread + collisions)) & (estimates > 0)
            for place in np.flatnonzero(new | heavy).tolist():
                change = estimates[place] - (found[place] if heavy[place] else 0.0)
                found[place], heavy[place] = estimates[place], True
                for row in range(self.rows):
                    rest[row, int(hash_keys(keys[place : place + 1], first[row], second[row], self.buckets)[0])] -= (
                        change / self.rows
                    )
        return np.asarray(estimates)

    @property
    def deviation(self) -> float:
        return math.sqrt(self.clients * (float(self.fakes) + 1) / self.buckets)

    def error(self, confidence: float, *, reports: int | None = None) -> Accuracy:
        """The error of each of the choices, or of one candidate: Bernstein, without what unpeeled frequent
        values add.
        """
        sure, count = check_confidence(confidence), self.clients if reports is None else reports
        log = math.log(2 / each_of(1 - sure, max(1, len(self.choices))))
        variance = count * (float(self.fakes) + 1) / self.buckets
        return Accuracy(amount=bernstein(variance, 1, log), confidence=sure, of="every value")

    def _moves(self, fakes: int, reports: int) -> Moves:
        """All messages name one cell. Together: the cell with the most of the choices, if they are known."""
        sent = fakes * self.messages
        off = Fraction(1, self.buckets)
        together = None
        if self.choices:
            crowd, size = self._crowd(), len(self.choices)
            together = float(sent * (crowd * (1 - off) + (size - crowd) * off))
        return Moves(float(sent * (1 - off)), float(sent * off), together)

    def _crowd(self) -> int:
        """The largest number of choices in one cell. All of them, where that takes long to find out."""
        if len(self.choices) * self.rows > _MOST_LOOKED_AT:
            return len(self.choices)
        keys = self._places(self.choices)
        return max(
            int(np.bincount(self.cells(keys, np.full(len(keys), row)) % self.buckets).max()) for row in range(self.rows)
        )


def _spread_of_heavy(counts: NDArray[np.float64], rows: int, buckets: int) -> float:
    """The deviation that values add to each other by sharing cells: their squares over all cells."""
    return math.sqrt(float((counts**2).sum()) / (rows * buckets))


def _key(value: str | bytes) -> int:
    said = value if isinstance(value, bytes) else str.encode(value, "utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "big") % PRIME

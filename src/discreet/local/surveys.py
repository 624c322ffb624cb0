"""A survey that does not trust the collector: each device reports its choice with deniability."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.door import in_test_mode
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.influence import Influence
from discreet.ledger import Ledger
from discreet.local.devices import Device, check_ledger, fingerprints, promise
from discreet.local.estimates import (
    Counted,
    check_candidates,
    check_fakes,
    check_reports,
    check_some,
    nearest_counts,
)
from discreet.mechanisms.reports.frequency_oracle import FrequencyOracle
from discreet.mechanisms.reports.local_hashing import OPEN, LocalHashing
from discreet.mechanisms.reports.local_records import Places, places_among, places_below
from discreet.mechanisms.reports.oracle_choice import best_oracle
from discreet.queries.space import Categories
from discreet.rows.containers import Data

_WORDS = {
    "direct": "randomized response",
    "subset": "subset selection",
    "unary": "optimized unary encoding",
    "hashing": "optimized local hashing",
    "hadamard": "Hadamard response",
    "projective": "projective geometry response",
}


def survey(
    *,
    choices: Sequence[Hashable] | None = None,
    domain_size: int | None = None,
    domain: str | None = None,
    epsilon: Number,
    delta: Number = 0,
    method: str = "auto",
    ledger: Ledger | None = None,
) -> Survey:
    """A survey of `choices`, of integers below `domain_size`, or of any text with `domain="strings"`.

    Each report satisfies (ε,δ) whatever the collector does. The method with the smallest variance is used unless one is
    named. `ledger` belongs to the device: every report is charged to it before it is drawn.

    >>> poll = survey(choices=["yes", "no"], epsilon=1)
    >>> poll.encode("yes") in (0, 1)
    True
    """
    if sum(given is not None for given in (choices, domain_size, domain)) != 1:
        raise InvalidArgument(
            "A survey needs exactly one of choices=[…], domain_size= and domain='strings'.", code="survey-domain"
        )
    stated = promise(epsilon, delta)
    check_ledger(ledger)
    if domain is not None:
        if domain != "strings" or method not in ("auto", "hashing"):
            raise InvalidArgument("domain must be 'strings', with method='hashing' or none.", code="survey-domain")
        return Survey(mechanism=best_oracle(stated, OPEN), stated=stated, domain="strings", ledger=ledger)
    if choices is not None:
        listed = Categories(choices).points()
        if len(listed) < 2:
            raise InvalidArgument("A survey needs at least two choices.", code="too-few-choices")
        oracle = best_oracle(stated, len(listed), method)
        return Survey(mechanism=oracle, stated=stated, choices=listed, ledger=ledger)
    size = check_count(domain_size, "domain_size", at_least=2)
    return Survey(mechanism=best_oracle(stated, size, method), stated=stated, ledger=ledger)


@dataclass(frozen=True, kw_only=True)
class Survey(Device):
    """Both sides of a survey: `encode` on the device, `analyze` at the collector.

    `oracle` is the mechanism, which `dp.verify` checks if it is small, and `guarantee` what one report promises. A
    value matches a choice if they are equal: True, 1 and 1.0 are one value, 1 and "1" are two.
    """

    choices: tuple[Hashable, ...] | None = None
    domain: str | None = None

    @property
    def oracle(self) -> FrequencyOracle:
        """The mechanism that randomizes one value and estimates the counts of many."""
        return self.mechanism  # type: ignore[no-any-return]

    @property
    def method(self) -> str:
        """The method of a report: 'direct', 'subset', 'unary', 'hashing', 'hadamard' or 'projective'."""
        return self.oracle.method

    @property
    def size(self) -> int:
        """The number of possible values."""
        return self.oracle.size

    def __str__(self) -> str:
        among = "any text" if self.domain else f"{self.size:,} choices"
        sent = self.oracle.report_bits
        sure = 100 * math.sqrt(self.oracle.variance / 10_000)
        return (
            f"A survey of {among} by {_WORDS[self.method]}: {self.guarantee} for each report of {sent} bits, whoever "
            f"collects it; a share is off by about {sure:.2g} percentage points with 10,000 reports"
        )

    def laws(self) -> Mapping[Hashable, Mapping[Hashable, Fraction]]:
        """The exact distribution of a report for each choice, for `dp.verify`. Small surveys only."""
        found = self.oracle.laws()
        return found if self.choices is None else dict(zip(self.choices, found.values(), strict=True))

    def error(self, confidence: float = 0.95, *, users: int) -> Accuracy:
        """How far the counts will be off at most, for all choices at once. It can be called before the survey."""
        values = None if self.domain is None else 1
        return self.oracle.error(confidence, records=users, values=values)

    def influence(self, fakes: int, *, users: int) -> Influence:
        """What `fakes` of the users can do at most to the unbiased counts if they report whatever they like.

        A report supports some of the choices: each of them gains (1 − lie)/gap, and every other loses lie/gap.
        """
        check_fakes(fakes, users)
        lie, each = self.oracle.support.lie, Fraction(fakes) / (self.oracle.support.truth - self.oracle.support.lie)
        supported, size = self.oracle.most_supported, self.size
        together = None if self.domain is not None else supported * (1 - lie) + (size - supported) * lie
        return Influence(
            fakes=fakes,
            reports=users,
            of="one count",
            up=float(each * (1 - lie)),
            down=float(each * lie),
            together=None if together is None else float(each * together),
            left=self.guarantee,
            remark="This is about unbiased counts. Those that are shown sum to the number of reports, and one of them "
            "can change by more.",
        )

    # --- on the device ---------------------------------------------------------------------------------------

    @property
    def asked(self) -> str:
        """The number of choices, and the method."""
        return f"one of {'any text' if self.domain else self.size}, {self.method}"

    def places(self, values: Data) -> Places:
        """The indices of values in the public order. −1 for a value that is not a choice."""
        if self.domain is not None:
            return fingerprints(values)
        if self.choices is not None:
            return places_among(values, self._known)
        return places_below(values, self.size)

    @cached_property
    def _known(self) -> dict[Hashable, int]:
        return {choice: place for place, choice in enumerate(self.choices or ())}

    @property
    def takes(self) -> str:
        """The accepted values, in words."""
        if self.domain is not None:
            return "text"
        return f"whole numbers from 0 to {self.size - 1}" if self.choices is None else "one of its choices"

    # --- at the collector ------------------------------------------------------------------------------------

    def analyze(self, reports: Data, *, simplex: bool = True, candidates: Sequence[Any] | None = None) -> Counted:
        """The counts of all choices, or of the given `candidates`, with error bars.

        A value that is not a report of this survey is left out, whatever the others are. `rejected` says how many there
        were.
        """
        given = check_reports(reports)
        names = self._named(candidates)
        valid = self.oracle.valid(reports)
        return self.counted(valid, names, candidates, rejected=given - check_some(valid), simplex=simplex)

    def counted(
        self, valid: Any, names: Sequence[Any], candidates: Any, *, rejected: int = 0, simplex: bool = True
    ) -> Counted:
        """The counts from reports that are already checked."""
        oracle, total = self.oracle, len(valid)
        supported = self._supported(valid, candidates)
        raw = oracle.counts(supported, total)
        shown = nearest_counts(raw, total, all_named=candidates is None) if simplex else raw
        return Counted(
            value=dict(zip(names, shown.tolist(), strict=True)),
            raw=dict(zip(names, raw.tolist(), strict=True)),
            guarantee=self.guarantee,
            not_private=in_test_mode(),
            reports=total,
            rejected=rejected,
            method=self.method,
            simplex=simplex,
            _intervals=lambda confidence: oracle.intervals(supported, total, confidence),
            _deviations=deviations(oracle, raw, total),
        )

    def _named(self, candidates: Any) -> Sequence[Any]:
        if candidates is None:
            if self.domain is not None or self.size > 2**20:
                raise InvalidArgument(
                    "This domain is too large to count everything. Name what to count: candidates=[…].",
                    code="candidates",
                )
            return self.choices if self.choices is not None else range(self.size)
        return check_candidates(candidates)

    def _supported(self, valid: Any, candidates: Any) -> Any:
        if candidates is None:
            return self.oracle.supported(valid)
        places = self.places(list(candidates))
        if (places < 0).any():
            raise InvalidArgument(f"candidates must be answers that the survey takes: {self.takes}.", code="candidates")
        if isinstance(self.oracle, LocalHashing):
            return self.oracle.supported_among(valid, places)
        return self.oracle.supported(valid)[places]


def deviations(oracle: FrequencyOracle, raw: Any, total: int) -> Any:
    """The standard deviation of each count, at the estimated counts."""
    truth, lie, _ = (float(one) for one in oracle.support)
    holders = np.clip(raw, 0, total)
    spread = holders * truth * (1 - truth) + (total - holders) * lie * (1 - lie)
    return np.sqrt(spread) / oracle.gap

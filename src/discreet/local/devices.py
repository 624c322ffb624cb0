"""The device's side of every survey: a value becomes an index, is charged to the device's ledger, and is randomized."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.closing import Closed
from discreet.door import through
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.unit import row
from discreet.ledger import Ledger
from discreet.mechanisms.reports.local_records import FOREIGN, Places, one_column
from discreet.rows import text_of
from discreet.rows.containers import Data

LOCAL = row(neighbors="replace")


@dataclass(frozen=True, kw_only=True)
class Device(Closed):
    """The part of a survey that runs on the device: `mechanism` randomizes, and `guarantee` is what one report
    promises.
    """

    mechanism: Any
    stated: Approx
    ledger: Ledger | None = None

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one report promises: the exact loss of its distribution, or the requested (ε,δ) that it was
        fitted to.
        """
        return self.stated if exactly(self.stated.delta) else self.mechanism.guarantee(None)

    def encode(self, value: Data, *, key: str | None = None) -> Any:
        """One report, made on the device of the person who sends it. An unsupported value is refused.

        With a ledger, every call is a new report and is charged anew; a retry with the same `key` is not.
        """
        places = self.place_of(value)
        return self._make_reports(lambda: places, key)[0].tolist()

    def encode_many(self, values: Data) -> Any:
        """The reports of many people, one value each, as an array with one row per report.

        Each value is read by itself. An unsupported value is replaced by a uniform one (a number by the middle of its
        range), so that no error can reveal it. With a ledger they are one charge, because each row reports once
        [T.4.7].
        """
        column = one_column(values)
        return self._make_reports(lambda: self.places(column), None)

    def _make_reports(self, places: Callable[[], Places], key: str | None) -> Any:
        return make_reports(
            places,
            self.mechanism,
            self.guarantee,
            ledger=self.ledger,
            asked=f"local reports of {self.asked}",
            key=key,
        )

    def place_of(self, value: Data) -> Places:
        """The value as the mechanism expects it. Raises an error that does not show the value."""
        places = self.places([value])
        if places[0] < 0:
            raise InvalidArgument(
                f"The survey does not take this answer. It takes {self.takes}.", code="unknown-answer"
            )
        return places

    @property
    def takes(self) -> str:
        """The accepted values, in words."""
        raise NotImplementedError

    def places(self, values: Data) -> Places:
        """The values as the mechanism expects them, each read by itself. −1 for an unsupported value."""
        raise NotImplementedError

    @property
    def asked(self) -> str:
        """What is reported, as a public line for the ledger."""
        raise NotImplementedError


def promise(epsilon: Number, delta: Number = 0) -> Approx:
    """The requested (ε,δ), checked."""
    if exactly(delta, "delta") == 0:
        return Pure(epsilon=epsilon, protects=LOCAL, trust="local")
    return Approx(epsilon=epsilon, delta=delta, protects=LOCAL, trust="local")


def make_reports(
    read: Callable[[], Any], mechanism: Any, guarantee: Guarantee, *, ledger: Ledger | None, asked: str, key: str | None
) -> Any:
    """Reports through the door: charged first to the device's ledger, if there is one."""
    if key is not None and ledger is None:
        raise InvalidArgument(
            "A key is kept in a ledger. Give the survey a ledger=, or leave out key=.", code="missing-argument"
        )
    return through(read, mechanism, guarantee, ledger=ledger, asked=asked, key=key).value


def check_ledger(ledger: Ledger | None) -> None:
    """Raise unless it is an open ledger, or None."""
    if ledger is not None and not isinstance(ledger, Ledger):
        raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).", code="wrong-type")


def fingerprints(values: Data) -> Places:
    """60 bits of a public hash of each text. −1 for a value that is not text."""
    listed = one_column(values)
    return np.fromiter((_fingerprint(value) for value in listed), np.int64, len(listed))


def _fingerprint(value: Any) -> int:
    if (text := text_of(value)) is not None:
        value = text.encode("utf-8", "surrogatepass")
    if type(value) is not bytes:
        return FOREIGN
    return int.from_bytes(hashlib.blake2b(value, digest_size=8, person=b"discreet local").digest(), "big") >> 4

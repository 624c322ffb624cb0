"""The device's side of every survey: a value is made a place, charged to the device's ledger, and told with noise."""

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
from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.unit import row
from discreet.ledger import Ledger
from discreet.mechanisms.reports.local_records import FOREIGN, Places, one_column
from discreet.rows import text_of

LOCAL = row(neighbors="replace")


@dataclass(frozen=True, kw_only=True)
class Device(Closed):
    """What a survey has on the device: `mechanism` tells, and `guarantee` is what one report promises."""

    mechanism: Any
    stated: Approx
    ledger: Ledger | None = None

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one report promises: the exact loss of its law, or (ε,δ) as asked, which the law was fitted to."""
        return self.stated if exactly(self.stated.delta) else self.mechanism.guarantee(None)

    def encode(self, value: Any, *, key: str | None = None) -> Any:
        """One report, on the device of the one who gives it. A value that cannot be told is refused.

        With a ledger, every call is a new report and is charged anew; a retry with the same `key` is not.
        """
        places = self.place_of(value)
        return self._told(lambda: places, key)[0].tolist()

    def encode_many(self, values: Any) -> Any:
        """The reports of many, one value each, as an array with one row a report.

        Each value is read by itself. One that cannot be told is told as a uniform one (a number as the middle of its
        range), so that no error can tell. With a ledger they are one charge, as each row is told once [T.4.7].
        """
        column = one_column(values)
        return self._told(lambda: self.places(column), None)

    def _told(self, places: Callable[[], Places], key: str | None) -> Any:
        return tell(
            places,
            self.mechanism,
            self.guarantee,
            ledger=self.ledger,
            asked=f"local reports of {self.asked}",
            key=key,
        )

    def place_of(self, value: Any) -> Places:
        """The one value as the mechanism takes it, or a typed error that does not show it."""
        places = self.places([value])
        if places[0] < 0:
            raise InvalidArgument(
                f"The survey does not take this answer. It takes {self.takes}.", code="unknown-answer"
            )
        return places

    @property
    def takes(self) -> str:
        """What can be told, in public words."""
        raise NotImplementedError

    def places(self, values: Any) -> Places:
        """The values as the mechanism takes them, each read by itself; −1 for what cannot be told."""
        raise NotImplementedError

    @property
    def asked(self) -> str:
        """What is told, in public words for the ledger."""
        raise NotImplementedError


def promise(epsilon: Any, delta: Any = 0) -> Approx:
    """(ε,δ) as asked, checked."""
    if exactly(delta, "delta") == 0:
        return Pure(epsilon=epsilon, protects=LOCAL, trust="local")
    return Approx(epsilon=epsilon, delta=delta, protects=LOCAL, trust="local")


def tell(
    read: Callable[[], Any], mechanism: Any, guarantee: Guarantee, *, ledger: Ledger | None, asked: str, key: str | None
) -> Any:
    """Reports through the door: charged to the device's ledger first, when there is one."""
    if key is not None and ledger is None:
        raise InvalidArgument(
            "A key is kept in a ledger. Give the survey a ledger=, or leave out key=.", code="missing-argument"
        )
    return through(read, mechanism, guarantee, ledger=ledger, asked=asked, key=key).value


def check_ledger(ledger: Any) -> None:
    """A typed error unless it is an open ledger, or none."""
    if ledger is not None and not isinstance(ledger, Ledger):
        raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).", code="wrong-type")


def fingerprints(values: Any) -> Places:
    """60 bits of a public hash of each text; −1 for what is no text."""
    listed = one_column(values)
    return np.fromiter((_fingerprint(value) for value in listed), np.int64, len(listed))


def _fingerprint(value: Any) -> int:
    if (text := text_of(value)) is not None:
        value = text.encode("utf-8", "surrogatepass")
    if type(value) is not bytes:
        return FOREIGN
    return int.from_bytes(hashlib.blake2b(value, digest_size=8, person=b"discreet local").digest(), "big") >> 4

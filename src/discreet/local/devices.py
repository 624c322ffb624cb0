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
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.unit import row
from discreet.ledger import Ledger
from discreet.local.estimates import check_values
from discreet.mechanisms.local_reports import Places
from discreet.rational import exactly

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
        """One report. A value outside is told as one inside (`places` says which), so that no error can tell.

        With a ledger, every call is a new report and is charged anew; a retry with the same `key` is not.
        """
        return self._told([value], key)[0].tolist()

    def encode_many(self, values: Any) -> Any:
        """The reports of many, one value each, as an array with one row a report.

        With a ledger they are one charge, as each row is told once [T.4.7].
        """
        return self._told(check_values(values), None)

    def _told(self, values: Any, key: str | None) -> Any:
        return tell(
            lambda: self.places(values),
            self.mechanism,
            self.guarantee,
            ledger=self.ledger,
            asked=f"local reports of {self.asked}",
            key=key,
        )

    def places(self, values: Any) -> Any:
        """The values as the mechanism takes them."""
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
        raise InvalidArgument("A key is kept in a ledger: give the survey a ledger=, or leave the key out.")
    return through(read, mechanism, guarantee, ledger=ledger, asked=asked, key=key).value


def check_ledger(ledger: Any) -> None:
    """A typed error unless it is an open ledger, or none."""
    if ledger is not None and not isinstance(ledger, Ledger):
        raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).")


def fingerprints(values: Any) -> Places:
    """60 bits of a public hash of each text; what is no text stands for the empty one."""
    return np.fromiter((_fingerprint(value) for value in values), np.int64, len(values))


def _fingerprint(value: Any) -> int:
    text = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    data = text if isinstance(text, bytes) else b""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, person=b"discreet local").digest(), "big") >> 4

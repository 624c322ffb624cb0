"""The one door: sensitivity, guarantee, charge, draw, store, return. Every release passes through it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from discreet.closing import Closed, closed
from discreet.errors import DiscreetError, InvalidArgument
from discreet.exact import samplers
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Approx, Guarantee, Renyi, ZeroConcentrated
from discreet.ledger import Entry, Identity, Ledger
from discreet.mechanisms.protocol import (
    AsksItself,
    ChecksShape,
    CountsRecords,
    GoesOn,
    Mechanism,
    ReadsSensitivity,
    ShowsProgress,
    StatesSizes,
    check_enough_records,
    meets,
    offers,
)
from discreet.queries.query import Query
from discreet.queries.sensitivity import SensitivityLike
from discreet.releases import Release
from discreet.rows import none_of
from discreet.rows.arrays import is_spark_dataframe
from discreet.rows.containers import Data
from discreet.sealed import Sealed


def in_test_mode() -> bool:
    """Whether a test controls the draws now. Results made meanwhile are not private, and say so."""
    return not samplers.is_private()


def through(
    read: Callable[[], Any],
    mechanism: Mechanism,
    guarantee: Guarantee,
    *,
    ledger: Ledger | None,
    asked: str = "",
    key: str | None = None,
    identity: Identity | None = None,
    sizes: dict[str, int] | None = None,
    readable: int | None = None,
    about: Any = None,
    mark: str = "",
) -> Release:
    """Reserve, compute, store, return: the path of every release.

    Promise: the charge is durable before `read` touches any data, and the answer is stored before it leaves. A crash in
    between leaves the budget spent and nothing out. Of several that answer one request at once, the first to store
    decides what all of them return.

    An analyst who repeats a request with the same public `identity` gets the stored answer for free. So does a retry
    with the same `key`, if the request is the same: text, mechanism, guarantee, identity, and everything else that it
    is `about`. `readable` is the number of records that can be read, if that is public. If it is below the mechanism's
    `at_least`, the request is refused before anything is charged.
    """
    if readable is not None:
        check_enough_records(mechanism, readable)
    if ledger is None:
        drawn = Sealed(read()).open_with(mechanism._draw)
        made_in_test = in_test_mode()
        return Release(
            value=drawn, guarantee=guarantee, not_private=made_in_test, _mechanism=_quiet(mechanism), _sizes=sizes or {}
        )
    entry = ledger.charge(
        guarantee, asked=asked, mechanism=mechanism, key=key, identity=identity, about=about, mark=mark
    )
    if replayed := entry.state == "answered":
        value, not_private = ledger.answer(entry)
    else:
        drawn = Sealed(read()).open_with(mechanism._draw)
        value, not_private = ledger.keep(entry, drawn, not_private=in_test_mode())
    return Release(
        value=value,
        guarantee=entry.guarantee,
        receipt=entry.receipt,
        not_private=not_private,
        replayed=replayed,
        _mechanism=_quiet(mechanism),
        _sizes=sizes or {},
        _left=ledger.remaining_after(entry),
    )


def again(entry: Entry, mechanism: Mechanism, *, ledger: Ledger) -> Release:
    """Return the stored value of an answered entry. Nothing is charged, read or drawn."""
    value, not_private = ledger.answer(entry)
    return Release(
        value=value,
        guarantee=entry.guarantee,
        receipt=entry.receipt,
        not_private=not_private,
        replayed=True,
        _mechanism=_quiet(mechanism),
        _left=ledger.remaining_after(entry),
    )


@closed
def release(
    value: Data,
    mechanism: Mechanism,
    *,
    sensitivity: SensitivityLike = None,
    ledger: Ledger | None = None,
    query: Query | None = None,
    rows_per_person: int | None = None,
    stated: Guarantee | None = None,
    asked: str | None = None,
    key: str | None = None,
) -> Release:
    """Answer with noise: charge `ledger` (if given), then draw, then return.

    `value` is the true answer, and `sensitivity` how much one unit can change it: a number, in the mechanism's own
    norm, or a `Sensitivity`. With `query`, `value` is the data: the query runs behind the door and knows its own
    sensitivity, for a person with at most `rows_per_person` rows (which the caller guarantees). `stated` is a guarantee
    to charge instead of the mechanism's own loss distribution. The mechanism must satisfy it, as it does the Approx it
    was made for. A ledger with basic composition needs this for Gaussian noise. `asked` is a public line for the
    ledger's record.

    Every call charges and draws anew, unless `key` names an earlier request: a retry with the same key gets the stored
    answer at no cost.
    """
    if isinstance(mechanism, type) or not offers(mechanism, Mechanism):
        raise InvalidArgument(
            "The second argument must be a mechanism, such as dp.Laplace(scale=2).", code="wrong-type"
        )
    if ledger is not None and not isinstance(ledger, Ledger):
        raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).", code="wrong-type")
    if key is not None and ledger is None:
        raise InvalidArgument(
            "A key is stored in a ledger. Give ledger= too, or leave the key out.", code="missing-argument"
        )
    if query is not None:
        sensitivity = _sensitivity_of(query, mechanism, sensitivity, ledger, rows_per_person)
    else:
        sensitivity = _read_sensitivity(mechanism, sensitivity, value)
    _check_shape(value, query, mechanism)
    guarantee = mechanism.guarantee(sensitivity)
    if stated is not None:
        guarantee = _restate(guarantee, stated)
    return through(
        lambda: value if query is None else query(value),
        mechanism,
        guarantee,
        ledger=ledger,
        asked=asked or (f"a value of sensitivity {sensitivity}" if query is None else repr(query)),
        key=key,
        sizes=mechanism.sizes(value) if query is None and offers(mechanism, StatesSizes) else {},
        readable=mechanism.count_records(value) if query is None and offers(mechanism, CountsRecords) else None,
        about=None if query is None else (query, rows_per_person),
    )


class Session(Closed):
    """A release that continues over time: charged once, before its first output, for everything it will ever return.

    Its inputs stay sealed inside. It cannot be copied to another process or restarted.
    """

    def __init__(self, mechanism: Any, entry: Entry | None, guarantee: Guarantee) -> None:
        self.mechanism, self.guarantee = mechanism, guarantee
        self.receipt = None if entry is None else entry.receipt
        self.not_private = in_test_mode()
        self._running, self._process, self._lock = Sealed(mechanism._start()), os.getpid(), threading.Lock()

    def add(self, value: Any) -> Any:
        """The output after more input."""
        if os.getpid() != self._process:
            raise DiscreetError(
                "A session cannot continue in two processes: one step would get two noises. Start a session in each "
                "process.",
                code="session-in-two-processes",
            )
        self.not_private = self.not_private or in_test_mode()
        with self._lock:
            return self._running.open_with(lambda running: running._draw(value))

    def error(self, confidence: float = 0.95) -> Accuracy:
        """How large the error of any output may be, for all outputs at once."""
        return self.mechanism.error(confidence)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<Session of {self.mechanism!r}: {self.guarantee}; receipt {self.receipt}>"


@closed
def stream(
    mechanism: Any,
    *,
    sensitivity: SensitivityLike,
    ledger: Ledger | None = None,
    stated: Guarantee | None = None,
    asked: str | None = None,
) -> Session:
    """Start a release that continues over time, such as the running sums of `PrefixSums`, after its whole cost is
    charged.

    `sensitivity` is how much one unit can change the whole stream. For `PrefixSums` it is how many rows of the stream
    belong to one unit, or `m.sensitivity(unit, rows_per_person)`.
    """
    if not offers(mechanism, GoesOn):
        raise InvalidArgument(
            "This mechanism answers once. Use dp.release. dp.stream takes mechanisms such as dp.mechanisms.PrefixSums.",
            code="not-a-stream",
        )
    guarantee = mechanism.guarantee(sensitivity)
    if stated is not None:
        guarantee = _restate(guarantee, stated)
    entry = None
    if ledger is not None:
        entry = ledger.charge(guarantee, asked=asked or f"a stream for {mechanism!r}", mechanism=mechanism)
    return Session(mechanism, entry, guarantee)


def _quiet(mechanism: Mechanism) -> Any:
    """The mechanism as it is kept in a release, without its progress callback."""
    shown = offers(mechanism, ShowsProgress) and mechanism.progress is not None
    return replace(mechanism, progress=None) if shown else mechanism  # type: ignore[type-var]


def _sensitivity_of(query: Any, mechanism: Any, sensitivity: Any, ledger: Ledger | None, rows: int | None) -> Any:
    """The query's own sensitivity for the ledger's unit."""
    if ledger is None or sensitivity is not None:
        raise InvalidArgument(
            "A query takes its sensitivity from the ledger's unit. Give ledger=, and leave sensitivity= out.",
            code="sensitivity-not-taken",
        )
    if offers(mechanism, AsksItself):
        raise InvalidArgument(
            "This mechanism has a query of its own. Give the query to the mechanism, and not to release.",
            code="conflicting-arguments",
        )
    if ledger.protects.column is not None and rows is None:
        raise InvalidArgument(
            "The ledger protects a person. Give rows_per_person=, the most rows of one person, and make sure that "
            "nobody has more.",
            code="rows-per-person-missing",
        )
    return query.sensitivity(ledger.protects, ledger.protects.most_rows if rows is None else rows)


def _read_sensitivity(mechanism: object, sensitivity: SensitivityLike, value: Data) -> Any:
    """A plain number as the mechanism reads it; anything else as it is."""
    return mechanism.sensitivity_for(sensitivity, value) if offers(mechanism, ReadsSensitivity) else sensitivity


def _check_shape(value: Any, query: Any, mechanism: Any) -> None:
    """Refuse before the charge what shape and type decide: a query runs on no records, a mechanism checks for
    itself.
    """
    if query is None:
        if offers(mechanism, ChecksShape):
            mechanism.check(value)
        return
    refused = None
    try:
        if not is_spark_dataframe(value):
            query(none_of(value))
    except DiscreetError as error:
        refused = error
    except Exception:  # a user-defined query that needs a record
        refused = None
    if refused is not None:
        raise refused


def _restate(guarantee: Guarantee, stated: Guarantee) -> Guarantee:
    """The guarantee that the caller wants to charge instead, after checking that it holds."""
    if not isinstance(stated, Approx | ZeroConcentrated | Renyi):
        raise InvalidArgument("stated must be Pure, Approx, ZeroConcentrated or Renyi.", code="wrong-type")
    if stated.protects is not None and stated.protects != guarantee.protects:
        raise InvalidArgument(
            "stated must not name a unit: the sensitivity or the ledger names it.", code="conflicting-arguments"
        )
    if not meets(guarantee, stated):
        raise InvalidArgument(
            f"The mechanism does not keep {stated}: it promises {guarantee}. Add noise.", code="stated-not-kept"
        )
    return replace(stated, protects=guarantee.protects, trust=guarantee.trust, neighbors=guarantee.neighbors)

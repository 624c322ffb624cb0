"""Whose rows a study asks, how many there are, and which methods it may use: settled before any row is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from discreet.adaptive.sample import Sample, columns_of
from discreet.door import Session, release, stream
from discreet.errors import InvalidArgument, NotAllowed
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.loss import LossDistribution
from discreet.ledger import Ledger
from discreet.mechanisms.laplace import Laplace
from discreet.rational import check_count, check_positive, exactly, significant

COUNTED = 20
"""The scale of the Laplace noise that counts rows, where their number is not public: it costs ε = 0.05."""
DELTA = 1e-9
"""The δ at which a study is charged to a ledger that adds up ε and δ."""


class Table(Protocol):
    """Rows under a ledger, such as those of `dp.table`: they are read once the ledger is charged."""

    def _ledger_of_study(self) -> Ledger: ...
    def _rows_of_study(self) -> int: ...
    def _columns_of_study(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Source:
    """Rows to be asked of; `protected` unless the caller says that they belong to nobody."""

    read: Callable[[], dict[str, Any]]
    count: Callable[[], int]
    ledger: Ledger | None
    protected: bool

    def size(self, declared: Any, miss: float) -> tuple[int, float]:
        """The public number of rows: as declared, or theirs where it is public, or counted with noise, from below.

        Promise: Laplace noise of scale `COUNTED` on one count, charged. Beside it the probability that there are fewer
        rows: at most `miss`, and 0 where nothing is counted.
        """
        if declared is not None:
            return check_count(declared, "size"), 0.0
        if self.ledger is None or self.ledger.protects.neighbors == "replace":
            return self.count(), 0.0
        noise = Laplace(scale=COUNTED, step=1)
        counted = release(self.count(), noise, sensitivity=1, ledger=self.ledger, asked="how many rows a study has")
        rows = int(counted.value) - math.ceil(float(noise.error(1 - 2 * miss)))
        if rows < 1:
            raise InvalidArgument("A study needs more rows than the noise of their count hides: give size=.")
        return rows, miss

    def opened(self, size: int) -> Sample:
        """The rows themselves. Not before the charge."""
        return Sample(self.read(), size, guarded=self.ledger is not None)

    def pure(self) -> bool:
        """Whether only pure guarantees fit the ledger."""
        limit = None if self.ledger is None else self.ledger.rule.limit
        return isinstance(limit, Approx) and not exactly(limit.delta)

    def session(self, mechanism: Any, asked: str) -> Session:
        """Begin, once all that will be said is charged."""
        unit = None if self.ledger is None else self.ledger.protects
        bound = None if unit is None else mechanism.sensitivity(unit)
        stated = None if self.ledger is None else self._stated(mechanism.guarantee(bound))
        return stream(mechanism, sensitivity=bound, ledger=self.ledger, stated=stated, asked=asked)

    def _stated(self, guarantee: LossDistribution) -> Guarantee | None:
        """(ε,δ) where the ledger's rule adds up nothing else."""
        assert self.ledger is not None
        if self.ledger.rule.name not in ("basic", "advanced") or self.pure():
            return None
        epsilon = significant(exactly(guarantee.epsilon_at(delta=DELTA)), up=True, digits=9)
        return Approx(epsilon=epsilon, delta=DELTA)


def source_of(sample: Any, ledger: Any, unprotected: Any) -> Source:
    """The rows of a table under a ledger, or of arrays, with a ledger or without."""
    if not isinstance(unprotected, bool):
        raise InvalidArgument("unprotected must be True or False.")
    if hasattr(sample, "_ledger_of_study"):
        own = sample._ledger_of_study()
        if ledger is not None and ledger is not own:
            raise InvalidArgument("The table has a ledger of its own, which is charged: leave ledger= out.")
        ledger, read, count = own, sample._columns_of_study, sample._rows_of_study
    else:
        columns = columns_of(sample)
        read, count = (lambda: columns), (lambda: len(next(iter(columns.values()))))
    if ledger is not None and not isinstance(ledger, Ledger):
        raise InvalidArgument("ledger must be an open ledger: ledger=dp.Ledger.open(…).")
    if ledger is not None and unprotected:
        raise NotAllowed("Rows under a ledger are protected: leave unprotected= out.")
    return Source(read, count, ledger, not unprotected)


def chosen_method(asked: Any, methods: dict[str, bool], protected: bool) -> list[str]:
    """The methods that may be tried; `methods` says of each whether it is private."""
    if asked != "auto" and asked not in methods:
        raise InvalidArgument(f"method must be one of auto, {', '.join(methods)}.")
    if asked == "auto":
        return [name for name, private in methods.items() if private or not protected]
    if protected and not methods[asked]:
        raise NotAllowed(
            f'method="{asked}" publishes exact functions of the sample. If its rows belong to nobody, say '
            "unprotected=True; otherwise leave method= out."
        )
    return [asked]


def check_accuracy(accuracy: Any, width: float, size: int, queries: int) -> None:
    """A clear refusal when what is wished for cannot be kept."""
    if accuracy is not None and width > float(check_positive(accuracy, "accuracy")):
        raise InvalidArgument(
            f"{size} rows answer {queries} questions within {width:.3g} of the population at best, not within "
            f"{float(exactly(accuracy)):.3g}. Ask fewer questions, or of more rows: see dp.adaptive.plan."
        )

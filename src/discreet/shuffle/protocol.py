"""What every shuffled protocol shares: who must take part, how messages are sent, and the call of the door."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.closing import Closed
from discreet.door import through
from discreet.errors import InvalidArgument, NotAllowed
from discreet.exact.canonical import from_plain, plain
from discreet.exact.rational import Number, check_count, exactly, significant
from discreet.exact.search import bisect, geometric
from discreet.guarantees.accuracy import Accuracy
from discreet.guarantees.guarantee import Approx, Guarantee, Pure
from discreet.guarantees.influence import Influence, Moves
from discreet.guarantees.privacy_loss.compose import Factors, LossDistribution
from discreet.guarantees.unit import row
from discreet.ledger import Ledger, cost_of
from discreet.mechanisms.protocol import Mechanism, check_enough_records, meets
from discreet.mechanisms.reports.shuffle_clients import InRandomOrder, RandomOrder
from discreet.queries.sensitivity import SensitivityLike
from discreet.releases import Release
from discreet.rows.containers import Data
from discreet.shuffle.messages import Ints as Ints
from discreet.shuffle.messages import Once, whole_messages

KINDS: dict[str, type[Protocol]] = {}
MOST_CLIENTS, MOST_SENT = 10**10, 2**16


@dataclass(frozen=True, kw_only=True)
class PollRelease(Release):
    """The answer of a poll. Of the `reports` that arrived, `heard` could be read."""

    reports: int
    heard: int

    def notes(self) -> list[str]:
        """The notes of any release, and how many reports could not be read."""
        unreadable = [f"{self.heard:,} of {self.reports:,} reports could be read"] if self.heard < self.reports else []
        return [*super().notes(), *unreadable]


@dataclass(frozen=True, kw_only=True)
class Protocol(Closed):
    """A randomizer that every client runs on its own, and an estimate from the shuffled messages of all clients.

    `clients` are expected. A batch of fewer than `minimum` reports is never opened, and at least the fraction `honest`
    of the minimum is assumed to follow the protocol: their noise alone satisfies the promise. Nothing is released from
    a batch with fewer readable reports than that (`at_least`). The other fields of a protocol are the noise that is
    really drawn.

    Promise: for a replaced client, the number of reports being public; against an analyzer who sees messages in a
    random order. `if_they_collude` says what is left when the shuffler tells it the order.
    """

    clients: int
    minimum: int
    honest: Number = 1

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" in cls.__dict__:
            KINDS[cls.kind] = cls

    def __post_init__(self) -> None:
        if check_count(self.clients, "clients", at_least=2) > MOST_CLIENTS:
            raise InvalidArgument("clients must be at most 10 billion.", code="too-large")
        check_count(self.minimum, "minimum", at_least=2)
        check_honest(self.honest)
        if self.minimum > self.clients:
            raise InvalidArgument("minimum must be at most clients.", code="out-of-range")
        if honest_clients(self.minimum, self.honest) < 2:
            raise InvalidArgument(
                "A batch must have at least two honest clients. Raise minimum or honest.",
                code="shuffle-too-few-clients",
            )

    def _check_size(self) -> None:
        """Raise for a protocol in which one report would fill a client's memory."""
        if self.messages > MOST_SENT or self.alphabet > 2**56:
            raise InvalidArgument(
                f"A client may send at most {MOST_SENT} messages of at most 56 bits. Choose fewer choices or digits.",
                code="too-large",
            )

    # --- what a protocol says of itself ---------------------------------------------------------------------

    @property
    def messages(self) -> int:
        """How many messages every client sends. It is always the same number."""
        raise NotImplementedError

    @property
    def alphabet(self) -> int:
        """Messages are integers below this."""
        raise NotImplementedError

    def _factors(self, honest: int) -> Factors:
        """The dominating pairs of what the analyzer sees, given the noise of this many honest clients."""
        raise NotImplementedError

    def _places(self, values: Any) -> NDArray[Any]:
        """Each value as `client` expects it, read by itself. −1 for an unsupported value."""
        raise NotImplementedError

    @property
    def takes(self) -> str:
        """The accepted values, in words."""
        raise NotImplementedError

    @property
    def client(self) -> Mechanism:
        """What each client runs on its own device: it draws the messages of an index, one row for each."""
        raise NotImplementedError

    def _readable(self, known: Ints) -> int:
        """The maximum number of complete reports that these messages, all of the alphabet, can come from."""
        return len(known) // self.messages

    def _estimate(self, counts: NDArray[Any], reports: int) -> Any:
        """The answer, from how often each message came."""
        raise NotImplementedError

    def error(self, confidence: float, *, reports: int | None = None) -> Accuracy:
        """How large the error may be, for all numbers at once. Before the poll, it is for `clients` reports."""
        raise NotImplementedError

    @property
    def deviation(self) -> float:
        """The standard deviation of one number of the answer, for `clients` reports."""
        raise NotImplementedError

    @property
    def if_they_collude(self) -> Guarantee | None:
        """What is promised if the shuffler and the analyzer collude. None if nothing is."""
        return None

    @property
    def publishes(self) -> str:
        """What `influence` is about: the sum, the mean or one count."""
        raise NotImplementedError

    def _moves(self, fakes: int, reports: int) -> Moves:
        """How far this many of the reports can move what is published, by any messages at all."""
        raise NotImplementedError

    # --- what all of them do --------------------------------------------------------------------------------

    def guarantee(self, sensitivity: SensitivityLike = None) -> LossDistribution:
        """For one replaced client. `sensitivity` is not used: any two values are neighbors."""
        honest = honest_clients(self.minimum, self.honest)
        return LossDistribution(factors=self._factors(honest), protects=row(neighbors="replace"), trust="shuffled")

    @cached_property
    def _promise(self) -> LossDistribution:
        return self.guarantee()

    @property
    def length(self) -> int:
        """The bytes of a message."""
        return max(1, ((self.alphabet - 1).bit_length() + 7) // 8)

    def encode(self, value: Any) -> list[int]:
        """The messages of one client, made on its own device. An unsupported value is refused."""
        places = self._places([value])
        if places[0] < 0:
            raise InvalidArgument(f"The poll does not take this answer. It takes {self.takes}.", code="unknown-answer")
        return [int(one) for one in self._sent(places, InRandomOrder(messages=self.client))[0]]

    def encode_many(self, values: Data) -> Ints:
        """The messages of many clients, one client after another: for simulations and tests.

        Each value is read by itself. An unsupported value is replaced by a uniform one, so that no error can reveal it.
        """
        return self._sent(self._places(values), self.client).reshape(-1)

    def shuffled(self, messages: NDArray[Any]) -> NDArray[Any]:
        """The messages of all clients in a uniformly random order: what the shuffler does, and the guarantee needs."""
        mixed: NDArray[Any] = through(lambda: messages, RandomOrder(), self._promise, ledger=None).value
        return mixed

    def _sent(self, places: NDArray[Any], client: Mechanism) -> Ints:
        """Messages through the door. The analyzer's ledger pays once for the whole batch, so clients do not pay."""
        sent: Ints = through(lambda: places, client, self._promise, ledger=None).value
        return sent

    def packed(self, messages: Iterable[int]) -> bytes:
        """Messages as bytes, `length` for each."""
        whole = np.asarray(list(messages) if not isinstance(messages, np.ndarray) else messages).astype(">u8")
        return whole.view(np.uint8).reshape(-1, 8)[:, 8 - self.length :].tobytes()

    def unpacked(self, blob: bytes) -> Ints:
        """Bytes as messages. −1 for bytes that are not a message."""
        if len(blob) % self.length:
            raise InvalidArgument(
                f"Each message has {self.length} bytes. Pass complete messages.", code="foreign-reports"
            )
        wide = np.zeros((len(blob) // self.length, 8), dtype=np.uint8)
        wide[:, 8 - self.length :] = np.frombuffer(blob, dtype=np.uint8).reshape(-1, self.length)
        whole = wide.reshape(-1).view(">u8").astype(np.uint64)
        return np.where(whole < self.alphabet, whole, np.uint64(2**64 - 1)).astype(np.int64)

    def analyze(
        self,
        messages: Data,
        *,
        reports: int | None = None,
        ledger: Ledger | None = None,
        key: str | None = None,
        stated: Approx | None = None,
    ) -> PollRelease:
        """The answer from all messages, in any order. Fewer readable reports than `at_least` are refused.

        `messages` is an array, or a function that fetches them after the ledger is charged. `reports` is then the
        number of clients. With `key`, such as the name of a batch, the same batch is charged once. `stated` is the
        (ε,δ) to charge instead of the loss distribution, such as the one that clients were promised.
        """
        if stated is not None and not meets(self.guarantee(), stated):
            raise InvalidArgument(
                f"The protocol does not guarantee {stated}. It guarantees {self.guarantee()}: "
                "state that, or a weaker one.",
                code="stated-not-kept",
            )
        known: Ints | None = None
        if not callable(messages):
            known = whole_messages(messages)
            reports = known.size // self.messages if reports is None else reports
        if reports is None:
            raise InvalidArgument(
                "Give the number of clients who sent the messages: reports=.", code="missing-argument"
            )
        self._check_reports(check_count(reports, "reports", at_least=0))
        read = Once(messages if known is None else lambda: known)
        cost = replace(stated, protects=row(neighbors="replace"), trust="shuffled") if stated else None
        release = through(
            lambda: (read(), reports),
            self,
            cost or cost_of(ledger, self.guarantee()),
            ledger=ledger,
            asked=f"a shuffled {self.kind} of {reports} reports",
            key=key,
            readable=None if known is None else self.count_records((known, reports)),
        )
        readable = self.count_records((read(), reports))
        named = {one.name: getattr(release, one.name) for one in fields(release)}
        return PollRelease(**(named | {"_sizes": {"reports": readable}}), reports=reports, heard=readable)

    def _check_reports(self, reports: int) -> None:
        """Refuse a batch by the number of its reports, which is public, before anything is charged."""
        if reports < self.minimum:
            raise NotAllowed(
                f"Only {reports} of the {self.minimum} required reports have arrived, so nothing is released. "
                "Collect more.",
                code="too-few-reports",
            )

    @property
    def at_least(self) -> int:
        """How many reports must be readable: those of the honest clients of the smallest batch always are."""
        return honest_clients(self.minimum, self.honest)

    def count_records(self, value: tuple[Any, int]) -> int:
        """How many of the reports can be read, from all messages and how many clients sent them.

        It does not depend on the answer of anyone who follows the protocol: every report of theirs can be read.
        """
        messages, reports = value
        return min(reports, self._readable(self._known(messages)))

    def _known(self, messages: Any) -> Ints:
        whole = whole_messages(messages)
        return whole[(whole >= 0) & (whole < self.alphabet)]

    def _draw(self, value: tuple[Any, int]) -> Any:
        """The estimate. The noise is in the messages. Unreadable messages are ignored."""
        messages, reports = value
        self._check_reports(reports)
        check_enough_records(self, readable := self.count_records(value))
        return self._estimate(np.bincount(self._known(messages), minlength=self.alphabet), readable)

    def influence(self, fakes: int, *, reports: int | None = None, delta: Number = 1e-6) -> Influence:
        """What `fakes` clients can do at most if they send whatever they like, in a batch of `reports` (the minimum).

        The promise that is left to the others is stated at `delta`: only their own noise hides them.
        """
        count = self.minimum if reports is None else check_count(reports, "reports", at_least=1)
        check_count(fakes, "fakes", at_least=0)
        if fakes >= count:
            raise InvalidArgument(
                f"fakes must be below the number of reports, which is {count}. Give the real number: reports=.",
                code="out-of-range",
            )
        moves = self._moves(fakes, count)
        return Influence(
            fakes=fakes,
            reports=count,
            of=self.publishes,
            **moves._asdict(),
            left=self._left(count - fakes, delta),
            can_withhold=count - fakes < self.at_least,
            remark=self._remark,
        )

    _remark: ClassVar[str] = ""

    def _left(self, honest: int, delta: Number) -> Guarantee | None:
        """What is promised at `delta` by the noise of this many clients, or of a single one."""
        found = [] if self.if_they_collude is None else [self.if_they_collude.epsilon_at(delta=delta)]
        if honest >= 2:
            found.append(LossDistribution(factors=self._factors(honest)).epsilon_at(delta=delta))
        least = min(found, default=math.inf)
        if math.isinf(least):
            return None
        return Approx(epsilon=least, delta=delta, protects=row(neighbors="replace"), trust="shuffled")

    def described(self) -> dict[str, Any]:
        """Everything that a client must know, as plain values: the same for everyone who takes part."""
        return {"kind": self.kind, **{field.name: plain(getattr(self, field.name)) for field in fields(self)}}

    @classmethod
    def _from(cls, described: dict[str, Any]) -> Self:
        names = {field.name for field in fields(cls)}
        if set(described) != names:
            raise InvalidArgument(
                f"The description of a shuffled {cls.kind} has exactly these parts: {', '.join(sorted(names))}.",
                code="shuffle-task-unreadable",
            )
        return cls(**{name: from_plain(value) for name, value in described.items()})


def from_description(described: dict[str, Any]) -> Protocol:
    """The protocol that `described` wrote."""
    kind = described.get("kind")
    if kind not in KINDS:
        raise InvalidArgument(f"kind must be one of {', '.join(KINDS)}.", code="not-an-option")
    made = KINDS[str(kind)]._from({name: value for name, value in described.items() if name != "kind"})
    made._check_size()
    return made


def check_honest(honest: Number) -> Fraction:
    """A fraction above 0 and up to 1. Raises for anything else."""
    exact = exactly(honest, "honest")
    if not 0 < exact <= 1:
        raise InvalidArgument("honest must be above 0 and at most 1, such as 0.8.", code="out-of-range")
    return exact


def honest_clients(minimum: int, honest: Number) -> int:
    """The minimum number of clients of the smallest batch that follow the protocol."""
    return math.floor(check_honest(honest) * check_count(minimum, "minimum"))


def validate_goal(guarantee: Guarantee) -> Approx:
    """(ε,δ) with δ above 0: counts that are exact now and then cannot be pure."""
    if not isinstance(guarantee, Approx) or isinstance(guarantee, Pure) or not exactly(guarantee.delta):
        raise InvalidArgument(
            "A shuffled protocol needs Approx(epsilon=…, delta=…) with delta above 0.", code="needs-delta"
        )
    if exactly(guarantee.epsilon) <= 0:
        raise InvalidArgument("epsilon must be above 0.", code="out-of-range")
    return guarantee


def least_that_keeps(
    pairs: Callable[[Fraction], Factors], goal: Approx, low: Fraction, high: Fraction, what: str
) -> Fraction:
    """The least amount of noise between two that satisfies (ε,δ), to 1 part in 10⁶. The returned amount was checked.

    With few clients, δ does not have to decrease with the noise. Then a larger amount that satisfies it may be
    returned.
    """

    def keeps(amount: Fraction) -> bool:
        return meets(LossDistribution(factors=pairs(amount)), goal)

    if not keeps(high):
        raise InvalidArgument(
            f"No {what} guarantees {goal} with this number of clients. Ask more clients, or choose a weaker guarantee.",
            code="guarantee-out-of-reach",
        )
    return bisect(keeps, high, low, relative=1e-6, middle=_nine_digits)


def _nine_digits(low: Fraction, high: Fraction) -> Fraction:
    return significant(geometric(low, high), up=True, digits=9)


def far_off(law: tuple[int, NDArray[np.float64]], center: float, miss: float) -> float:
    """How far from `center` a count with this distribution is at most, except with probability `miss`."""
    first, masses = law
    away = np.abs(first + np.arange(len(masses)) - center)
    order = np.argsort(-away, kind="stable")
    beyond = np.cumsum(masses[order]) * (1 + 1e-9) + 1e-30
    place = int(np.searchsorted(beyond, miss, side="right"))
    return float(away[order][min(place, len(order) - 1)])


def each_of(miss: float, count: int) -> float:
    """The probability with which each of this many may miss, so that all hold together."""
    return miss / count

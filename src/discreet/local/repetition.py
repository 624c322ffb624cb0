"""The same question in many rounds: a permanent answer is drawn once, stored on the device, and reported again."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
from collections.abc import Hashable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from discreet.closing import Closed
from discreet.door import through
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count, check_epsilon, exactly
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.privacy_loss.compose import compose
from discreet.local.estimates import Counted
from discreet.local.surveys import Survey
from discreet.mechanisms.protocol import tidy
from discreet.mechanisms.reports.frequency_oracle import DirectResponse
from discreet.mechanisms.reports.local_reports import ratio_of
from discreet.rows import key_of
from discreet.rows.containers import Data


def repeated(survey: Survey, *, memory: Any = None, each_round: Any = None) -> Repeated:
    """A survey that asks the same devices again and again.

    `memory` belongs to the device: a dict, or the path of a file. The permanent answer to a value is drawn once,
    charged once to the survey's ledger, and reported in every round. Without a memory every round is a new report and a
    new charge.

    `each_round` is an ε for fresh noise on the permanent answer. One round alone then reveals less than all together,
    and rounds with the same value look different. It needs method="direct".
    """
    if not isinstance(survey, Survey):
        raise InvalidArgument(
            "repeated takes a survey: repeated(survey(choices=[…], epsilon=1), memory={}).", code="wrong-type"
        )
    kept: MutableMapping[str, Any] | Path | None
    if memory is None or isinstance(memory, MutableMapping):
        kept = memory
    elif isinstance(memory, str | os.PathLike):
        kept = Path(memory)
    else:
        raise InvalidArgument("memory must be a dict or the path of a file on the device.", code="wrong-type")
    fresh = None
    if each_round is not None:
        if survey.method != "direct" or kept is None:
            raise InvalidArgument(
                "each_round= needs memory= and a survey with method='direct'.", code="conflicting-arguments"
            )
        check_epsilon(each_round, "each_round")
        fresh = DirectResponse(size=survey.size, odds=tidy(ratio_of(each_round)))
    return Repeated(survey=survey, memory=kept, fresh=fresh)


@dataclass(frozen=True, kw_only=True)
class Repeated(Closed):
    """Both sides of a repeated survey.

    `guarantee` holds for ALL rounds together while the value stays the same. Each new value costs the same again
    (`for_values`), and WHEN a value changes is not hidden: a change of the permanent answer reveals it.
    """

    survey: Survey
    memory: MutableMapping[str, Any] | Path | None
    fresh: DirectResponse | None = None

    @property
    def guarantee(self) -> Guarantee:
        """What all rounds promise together, for a value that stays the same. Without a memory, what one round
        promises.
        """
        return self.survey.guarantee

    def for_values(self, values: int) -> Guarantee:
        """What all rounds promise together if the value takes this many different values. The times of change are not
        protected.
        """
        return compose([self.guarantee] * check_count(values, "values"))

    def for_rounds(self, rounds: int) -> Guarantee:
        """What this many rounds promise together, for a value that stays the same."""
        count = check_count(rounds, "rounds")
        return self.guarantee if self.memory is not None else compose([self.guarantee] * count)

    @cached_property
    def one_round(self) -> DirectResponse | None:
        """What one round promises against those who see no other: randomized response of a randomized response."""
        if self.fresh is None:
            return None
        first, second = self.survey.oracle.support, self.fresh.support
        others = self.survey.size - 1
        truth = first.truth * second.truth + others * first.lie * second.lie
        lie = Fraction(1 - truth) / others
        return DirectResponse(size=self.survey.size, odds=truth / lie)

    # --- on the device ---------------------------------------------------------------------------------------

    def encode(self, value: Data) -> Any:
        """The report of one round."""
        if self.memory is None:
            return self.survey.encode(value)
        permanent = self._permanent(value)
        if self.fresh is None:
            return permanent
        return (
            through(lambda: self.survey.oracle.as_reports([permanent]), self.fresh, self.fresh.guarantee(), ledger=None)
            .value[0]
            .tolist()
        )

    def _permanent(self, value: Any) -> Any:
        place = int(self.survey.place_of(value)[0])
        names = [f"{digest}/{place}" for digest in (self._digest, self._digest_before)]
        if isinstance(self.memory, Path):
            with _alone(self.memory):
                known = _read_memory(self.memory)
                kept = next((name for name in names if name in known), None)
                if kept is None:  # stored before it is reported, or a crash would draw another
                    _write(self.memory, known | {names[0]: self.survey.encode(value)})
                return _read_memory(self.memory)[kept or names[0]]
        assert self.memory is not None  # the caller has checked
        kept = next((name for name in names if name in self.memory), names[0])
        if kept not in self.memory:
            self.memory[kept] = self.survey.encode(value)
        return self.memory[kept]

    @cached_property
    def _digest(self) -> str:
        """The survey that an answer belongs to: an answer drawn with less noise is never reported for another survey.

        It is identified by meaning, not by spelling: 1, 1.0 and a Fraction are one ε. Otherwise the device would draw a
        second answer, which is a second report.
        """
        choices = getattr(self.survey, "choices", None)
        listed = None if choices is None else [repr(key_of(choice)) for choice in choices]
        said = json.dumps(
            [_canonical_value(self.survey.oracle), listed, _canonical_value(self.survey.stated)], sort_keys=True
        )
        return hashlib.sha256(said.encode()).hexdigest()[:32]

    @cached_property
    def _digest_before(self) -> str:
        """The name of the same survey in version 0.1, so that its answers stay permanent."""
        said = repr((self.survey.oracle, getattr(self.survey, "choices", None), self.survey.stated))
        return hashlib.sha256(said.encode()).hexdigest()[:32]

    # --- at the collector ------------------------------------------------------------------------------------

    def analyze(self, reports: Data, *, simplex: bool = True, candidates: Sequence[Hashable] | None = None) -> Counted:
        """The counts of one round. Rounds are not independent: averaging them does not remove permanent noise."""
        if self.one_round is None:
            return self.survey.analyze(reports, simplex=simplex, candidates=candidates)
        one_round = replace(self.survey, mechanism=self.one_round)
        return replace(one_round.analyze(reports, simplex=simplex, candidates=candidates), guarantee=self.guarantee)


def _canonical_value(value: Any) -> Any:
    """A public value by its meaning: numbers exactly, a part by its name, everything else as it is written."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {
            one.name: _canonical_value(getattr(value, one.name)) for one in dataclasses.fields(value) if one.compare
        }
        return [type(value).__name__, parts]
    if isinstance(value, tuple | list):
        return [_canonical_value(part) for part in value]
    try:
        return str(exactly(value))
    except InvalidArgument:  # not a number
        return repr(value)


def _read_memory(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        # drawing again would report a second answer to the same value
        raise InvalidArgument(
            "The memory file cannot be read. Restore it, or name a new one and start over.", code="survey-memory"
        )
    return found


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time: two would each draw their own answer."""
    lock = os.open(path.with_name(f".{path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _write(path: Path, known: dict[str, Any]) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    # the answers of one person: nobody else reads them
    with os.fdopen(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        json.dump(known, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)

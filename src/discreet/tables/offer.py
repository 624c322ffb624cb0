"""Offers: what a table method would do. An offer explains itself at no cost, and makes the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar

from discreet.door import through
from discreet.exact.rational import check_delta, exactly
from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.guarantees.guarantee import Guarantee
from discreet.guarantees.unit import Unit
from discreet.ledger import Identity, cost_of
from discreet.releases import Release
from discreet.sql.measurement import line_before
from discreet.sql.plan import Plan, RowsPlan
from discreet.sql.planner import Planner
from discreet.sql.pricing.automatic_bounds import about
from discreet.sql.running.answer import Answer
from discreet.sql.running.answering import answer_plan
from discreet.sql.running.explanation import Explanation, explain_plan
from discreet.sql.running.notes import FOUND

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


class Offer(Protocol[R_co]):
    """What a method would do."""

    def explain(self) -> Explanation:
        """What the release would cost and how large its error may be. Spends nothing."""

    def release(self) -> R_co:
        """Charge, read, draw, store and return."""


# --- answers in SQL -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SqlOffer:
    """A question in SQL, and how a method uses its answer: `value_of` reads the columns, `error_of` the intervals."""

    planner: Planner
    plan: Plan
    value_of: Callable[[dict[str, list[Any]]], Any]
    error_of: Callable[[Answer, float], Accuracy]

    def explain(self) -> Explanation:
        return explain_plan(self.plan)

    def release(self) -> Release:
        return self._release_of(self._answer())

    def _answer(self) -> Answer:
        return answer_plan(self.planner, self.plan)

    def _release_of(self, answer: Answer) -> Release:
        shown = {name: answer.table.column(name).to_pylist() for name in answer.table.column_names}
        error, clipped = _Error(partial(self.error_of, answer)), set(answer.clipped.values())
        lost = clipped.pop() if len(clipped) == 1 else None
        said = tuple(note for note in answer.notes if not note.startswith(FOUND))
        value = self.value_of(shown)
        return replace(answer.release, value=value, clipped=lost, _mechanism=error, _sizes={}, _said=said)


class _Error:
    """The error of an answer, computed when it is requested."""

    def __init__(self, of: Callable[[float], Accuracy]) -> None:
        self._of = of

    def error(self, confidence: Any) -> Accuracy:
        return self._of(check_confidence(confidence))


def error_of_one(answer: Answer, confidence: float) -> Accuracy:
    """Half the interval of the single value. For a quantile, the bound in ranks comes with it."""
    quantile = answer.question.aggregates[0].kind == "quantile"
    ranks = float(answer.price.parts[0].error(confidence)) if quantile else None
    return _half(answer, ["value"], confidence, ranks)


def error_of_all(answer: Answer, confidence: float) -> Accuracy:
    """Half the widest interval of the quantiles. All intervals hold at once."""
    each = 1 - (1 - confidence) / len(answer.price.parts)
    ranks = max(float(part.error(each)) for part in answer.price.parts)
    return _half(answer, [output.name for output in answer.question.outputs], each, ranks, confidence)


def error_of_counts(answer: Answer, confidence: float, n: str = "n") -> Accuracy:
    """The error of each count: its noise and, if people were scaled down, what is lost to that."""
    noise: Accuracy = answer.price.parts[0].error(confidence)
    if answer.clipped[n] is None:
        return noise
    errors = answer.with_errors(confidence).column(f"{n}_error").to_pylist()
    return replace(noise, amount=max([float(noise), *(half for half in errors if half is not None)]))


def error_of_choice(answer: Answer, confidence: float) -> Accuracy:
    """How many rows more another value may have than the chosen one. Holds for one group."""
    return Accuracy(amount=float(answer.price.parts[0].error(confidence)), confidence=confidence, of="score")


def error_of_largest(answer: Answer, confidence: float, *, of: str, n: str = "n") -> Accuracy:
    """How far the true counts of the values with the largest noisy counts may be from the largest true ones. Values
    that are not shown are left out: too few people have them.
    """
    each = 1 - (1 - confidence) / max(1, answer.table.num_rows)
    return Accuracy(amount=2 * float(error_of_counts(answer, each, n)), confidence=confidence, of=of)


def _half(
    answer: Answer, names: Sequence[str], each: float, ranks: float | None, confidence: float | None = None
) -> Accuracy:
    table, sure = answer.with_errors(each), each if confidence is None else confidence
    halves = [table.column(f"{name}_error").to_pylist()[0] for name in names]
    of = "value" if len(names) == 1 else "every value"
    if any(half is None for half in halves):
        reason = "the interval is drawn with the answer, for 95%" if ranks else "no interval is known for this answer"
        return Accuracy(amount=None, confidence=sure, of=of, reason=reason, ranks=ranks)
    return Accuracy(amount=max(halves), confidence=sure, of=of, ranks=ranks)


# --- releases drawn from rows -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Drawing(Generic[R]):
    """A release drawn from rows: what is read, drawn and charged, and how the result is built.

    `asked` is the sentence that the ledger records. `method` and `arguments` distinguish this release from other
    releases of the same rows. `old_text` is the line that version 0.1 recorded, if no other release had the same line.
    """

    planner: Planner
    plan: RowsPlan | Plan
    asked: str
    method: str
    arguments: Mapping[str, Any]
    mechanism: Any
    guarantee: Guarantee
    read: Callable[[], Any]
    finish: Callable[[Release], R]
    old_text: str | None = None
    key: str | None = None

    @property
    def identity(self) -> Identity:
        """The method, all of its arguments, the meaning of its rows, and the bounds found for them."""
        plan = self.plan
        meant = (self.method, dict(self.arguments), plan.meaning, plan.bounds)
        return self.planner.identity(plan.relation, meant, old_text=self.old_text, found=list(plan.found))

    @property
    def is_known(self) -> bool:
        """Whether this was released before, and is free."""
        return self.planner.ledger.knows(
            self.guarantee, asked=self.asked, mechanism=self.mechanism, key=self.key, identity=self.identity
        )

    @property
    def most(self) -> Guarantee:
        """The most that it costs, also after its bounds are found: noise is calibrated to them."""
        terms = self.plan.terms
        return self.guarantee if check_delta(terms.delta) else terms.allowed

    def explain(self) -> Explanation:
        cost = self.guarantee.epsilon_at(delta=float(exactly(self.plan.terms.delta)))
        if self.plan.automatic:
            then = f"then costs ε = {cost:.4g}; how large its error may be depends on what is found"
            return Explanation("\n".join([self.asked, found_first(self.plan), then]))
        return Explanation(f"{self.asked}\n{self.mechanism!r}\ncosts ε = {cost:.4g}; {self.mechanism.error(0.95)}")

    def release(self) -> R:
        if self.plan.automatic:
            raise AssertionError("a release is drawn before its bounds are found")
        release = through(
            self.read,
            self.mechanism,
            self.guarantee,
            ledger=self.planner.ledger,
            asked=self.asked,
            key=self.key,
            identity=self.identity,
        )
        return self.finish(replace(release, found=self.plan.found))


class Bounded(Protocol):
    """What a release reads, within bounds that may still have to be found."""

    @property
    def planner(self) -> Planner: ...

    @property
    def plan(self) -> RowsPlan | Plan: ...

    def settled(self) -> Self:
        """The same after its bounds are found. Each bound is a release of its own."""


B = TypeVar("B", bound=Bounded)


@dataclass(frozen=True)
class FoundFirst(Generic[B, R]):
    """A release after the bounds that it depends on are found. If everything is declared, it is the release alone."""

    rows: B
    drawing: Callable[[B], Drawing[R]]

    def explain(self) -> Explanation:
        return self.drawing(self.rows).explain()

    def release(self) -> R:
        planner, automatic = self.rows.planner, self.rows.plan.automatic
        if unpaid := planner.unpaid(automatic):
            planner.ledger.after(*unpaid, self.drawing(self.rows).most)  # refused before anything is spent
        return self.drawing(self.rows.settled()).release()


def found_first(plan: RowsPlan | Plan) -> str:
    """The line that says which bounds are found before a release, and what they cost."""
    cost = float(plan.each_bound * len(plan.automatic))
    listed = [
        bound.what + (f" (if about {about(bound.people)} people have values near each other)" if bound.people else "")
        for bound in plan.automatic
    ]
    return f"found first: {', '.join(listed)}, for ε = {cost:.4g}"


@dataclass(frozen=True)
class TableRows:
    """Rows of a table within bounds, for one method. `line` is the SQL that version 0.1 recorded for the same rows."""

    planner: Planner
    plan: RowsPlan
    where: str | None
    line: str

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self.planner.schema.unit

    @property
    def of_one(self) -> int:
        """The maximum number of rows per person."""
        return self.plan.rows.of_one

    @property
    def allowed(self) -> Guarantee:
        """What a release may cost."""
        return self.plan.terms.allowed

    def settled(self) -> Self:
        """The same rows after their bounds are found."""
        return replace(self, plan=self.planner.settle_rows(self.plan))

    def drawing(self, mechanism: Any, sensitivity: Any, *, asked: str, old_text: str, **parts: Any) -> Drawing[Any]:
        """A release under the ledger. It is stated as (ε,δ) if the ledger's rule can add only that. `old_text` is the
        prefix that version 0.1 put in front of the recorded line.
        """
        guarantee = cost_of(self.planner.ledger, mechanism.guarantee(sensitivity), self.allowed)
        return Drawing(
            planner=self.planner,
            plan=self.plan,
            mechanism=mechanism,
            guarantee=guarantee,
            asked=in_words(asked, self.where),
            old_text=old_line(old_text, self.line),
            **parts,
        )


def in_words(asked: str, where: str | None) -> str:
    """A description of the request, with its condition, on one line."""
    return asked if where is None else f"{asked} where {' '.join(where.split())}"


def old_line(text: str, line: str) -> str | None:
    """What version 0.1 recorded. None if another release had the same record."""
    known = line_before(line)
    return None if known is None else f"{text} {known}"


def convert_release(kind: type[Any], release: Release, **parts: Any) -> Any:
    """The release as an instance of a class with more attributes."""
    return kind(**({one.name: getattr(release, one.name) for one in fields(Release)} | parts))

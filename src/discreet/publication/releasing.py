"""Every part of a publication, planned and then released: what it costs, what it became, and its receipts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.datasets.database import Database
from discreet.datasets.prepared import Prepared
from discreet.errors import InvalidArgument, NotAllowed
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger import Entry
from discreet.publication.plan import Part, PublicationPlan
from discreet.publication.synthetic import Accepted, Judged, SyntheticPart
from discreet.releases import Release
from discreet.sql.running.answer import Answer

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Made:
    """A part that was released: an Arrow table, its largest errors by column, and its receipts."""

    part: Part
    table: Any
    receipts: tuple[Entry, ...]
    errors: Mapping[str, float | None] = field(default_factory=dict)
    criteria: tuple[Judged, ...] = ()
    notes: tuple[str, ...] = ()
    not_private: bool = False
    rows_estimated: float | None = None


def prepare(database: Database, plan: PublicationPlan, progress: Progress | None = None) -> list[Any]:
    """Every part, planned. Whatever can be refused is refused here. Nothing is spent."""
    return [_prepared(database, part, plan, progress) for part in plan.parts]


def _prepared(database: Database, part: Part, plan: PublicationPlan, progress: Progress | None) -> Any:
    words = part.words
    cost = {name: words[name] for name in ("epsilon", "delta") if name in words}
    match part.kind:
        case "tables":
            return Question(part, database.prepare(words["sql"], **cost), plan)
        case "cubes":
            by = [tuple(one) if isinstance(one, list) else one for one in words["by"]]
            options = {name: words[name] for name in ("total", "where", "positive") if name in words}
            planned = database.plan_cube(words["table"], by, **options, **cost)
            return Question(part, Prepared(database.planner, planned), plan)
    return Rows(part, SyntheticPart(part, database, plan.confidence, plan.key(part), progress))


@dataclass(frozen=True)
class Question:
    """A table or a cube: one question in SQL."""

    part: Part
    prepared: Prepared
    plan: PublicationPlan

    def owed(self) -> list[Guarantee]:
        with _same_data(self.part):
            return self.prepared.owed(key=self.plan.key(self.part))

    def explain(self) -> list[str]:
        return str(self.prepared.explain(self.plan.confidence, budget=False)).splitlines()

    def release(self) -> tuple[Any, Mapping[str, Any]]:
        """The table, and what the card says of it."""
        with _same_data(self.part):
            answer = self.prepared.answer(key=self.plan.key(self.part))
        return answer.with_errors(self.plan.confidence), {
            "errors": _largest_errors(answer, self.plan.confidence),
            "notes": answer._given,
            "not_private": answer.receipt is not None and answer.not_private,
        }


@dataclass(frozen=True)
class Rows:
    """A synthetic table."""

    part: Part
    synthetic: SyntheticPart

    def owed(self) -> list[Guarantee]:
        offer = self.synthetic.offer()
        unpaid = offer.rows.planner.unpaid(offer.rows.plan.automatic)
        drawing = offer.drawing(offer.rows)
        if unpaid or offer.rows.plan.automatic:
            return [*unpaid, drawing.most]
        with _same_data(self.part):
            return [] if drawing.is_known else [drawing.guarantee]

    def explain(self) -> list[str]:
        return self.synthetic.explain()

    def release(self) -> tuple[Any, Mapping[str, Any]]:
        """The table, and what the card says of it."""
        with _same_data(self.part):
            accepted: Accepted = self.synthetic.offer().release()
        release: Release = accepted.release
        return accepted.table, {
            "criteria": accepted.criteria,
            "notes": tuple(f"Found privately: {one}." for one in release.found),
            "not_private": release.not_private,
            "rows_estimated": accepted.rows_estimated,
        }


def released(prepared: Any, ledger: Any) -> Made:
    """A part that is released now, or was before, with its receipts. `ledger` lists its charges."""
    start = len(ledger.listed)
    table, facts = prepared.release()
    receipts = {entry.number: entry for entry in ledger.listed[start:]}
    return Made(prepared.part, table, tuple(receipts[number] for number in sorted(receipts)), **facts)


def check_versions(database: Database) -> None:
    """Refuse data that is known only while it is open: a run that was killed could not go on."""
    for table in database.schema.tables.values():
        in_file = database.engine.reads_files and isinstance(table.source, str | Path)
        if not table.public and table.version is None and not in_file:
            raise NotAllowed(
                f"{table.name} has no version, so a publication that is interrupted would be paid twice. Declare one "
                f'in the policy: [tables.{table.name}] version = "2024-05".',
                code="publish-no-version",
            )


def missed(made: Sequence[Made]) -> list[tuple[Part, Judged]]:
    """The criteria that are not met."""
    return [(one.part, criterion) for one in made for criterion in one.criteria if not criterion.met]


def _largest_errors(answer: Answer, confidence: float) -> dict[str, float | None]:
    """The largest error of each noisy column. None if it has none."""
    table, found = answer.with_errors(confidence), {}
    for name in answer.noisy:
        column = f"{name}_error"
        errors = (
            [one for one in table.column(column).to_pylist() if one is not None] if column in table.schema.names else []
        )
        flat = [part for one in errors for part in (one if isinstance(one, list) else [one]) if part is not None]
        found[name] = max(flat) if flat else None
    return found


@contextmanager
def _same_data(part: Part) -> Iterator[None]:
    """Say what to do if the plan was published before, for other data."""
    try:
        yield
    except InvalidArgument as error:
        if error.code != "ledger-key-reused":
            raise
        raise NotAllowed(
            f"{part.where} was published before with this plan, for other data or other declarations. Nothing was "
            'spent on it. For new data, name the edition in the plan: edition = "2025".',
            code="publish-other-data",
        ) from None

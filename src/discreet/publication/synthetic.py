"""The synthetic part of a publication: from the words of a plan to a release that was judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from discreet.datasets.database import Database
from discreet.engines.duckdb.dialect import quote
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_delta
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger import cost_of
from discreet.mechanisms.selection.judged_runs import JUDGING, JudgedRuns
from discreet.mechanisms.selection.private_selection import NegativeBinomialTries
from discreet.publication.plan import Part
from discreet.queries.domain import MOST_CELLS
from discreet.releases import Release
from discreet.sql.reading.parse import Conditioned
from discreet.sql.schema import Table, is_auto
from discreet.synthetic import Declared, Synthesis, SyntheticSample
from discreet.synthetic.acceptance import Acceptance
from discreet.synthetic.criteria import Made, MarginalError, MeanError, RelativeError, SlopeError, Unmatched
from discreet.tables.distributions import arrow_of, declare
from discreet.tables.offer import Drawing, FoundFirst, TableRows, found_first, in_words

AT_LEAST = 2
"""How many rows are equal to each row, if the plan does not say."""
Progress = Callable[[str], None]
NOTHING = Made(np.zeros((0, 1), dtype=np.int64), (1,), 1.0)
"""No synthetic rows: what a step means often does not depend on them."""


@dataclass(frozen=True)
class Judged:
    """A criterion on the card: its title, its noisy value, how sure that is, its limit, and whether it is met."""

    title: str
    value: float
    error: float | None
    at_most: float
    met: bool
    is_share: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {
            "criterion": self.title,
            "value": float(f"{self.value:.4g}"),
            "error": None if self.error is None else float(f"{self.error:.3g}"),
            "at_most": self.at_most,
            "met": self.met,
            "is_share": self.is_share,
        }


@dataclass(frozen=True)
class Accepted:
    """A synthetic table that was released, and how it was judged."""

    table: Any
    release: Release
    criteria: tuple[Judged, ...]
    rows_estimated: float

    @property
    def missed(self) -> list[Judged]:
        """The criteria that are not met."""
        return [one for one in self.criteria if not one.met]


@dataclass(frozen=True)
class SyntheticPart:
    """Synthetic rows of one table, planned. Until it is released, nothing private is read, and nothing is spent."""

    part: Part
    database: Database
    confidence: float
    key: str
    progress: Progress | None = None

    @property
    def table(self) -> Table:
        known, name = self.database.schema.tables, self.part.words["table"]
        if name not in known:
            raise InvalidArgument(
                f"{self.part.where}: unknown table {name}. Known: {', '.join(known)}.", code="unknown-table"
            )
        return known[name]

    @property
    def columns(self) -> dict[str, Any]:
        """What the policy declares of each column: two ends, or a list of choices."""
        found: dict[str, Any] = {}
        for name in self.part.words["columns"]:
            column = self.table.columns.get(name)
            if column is None:
                raise InvalidArgument(
                    f"{self.part.where}: unknown column {name}. Known: {', '.join(self.table.columns)}.",
                    code="unknown-column",
                )
            if column.choices is None and (column.between is None or is_auto(column.between)):
                raise InvalidArgument(
                    f"{self.part.where}: {name} needs between or choices in the policy, from what you know.",
                    code="plan-undeclared",
                )
            found[name] = tuple(column.between) if column.choices is None else list(column.choices)
        return found

    @property
    def _kinds(self) -> dict[str, str]:
        return {name: self.table.columns[name].type for name in self.columns}

    def offer(self) -> FoundFirst[TableRows, Accepted]:
        """What would be released, after the rows of one person are bounded if nothing declares how many they are."""
        words, planner = self.part.words, self.database.planner
        delta = words.get("delta", planner.delta_per_question)
        if not check_delta(delta):
            raise InvalidArgument(f"{self.part.where} needs a delta, such as delta = 1e-6.", code="needs-delta")
        text, where = f"SELECT * FROM {quote(self.table.name)}", words.get("where")
        question = text if where is None else Conditioned(text, where, "", "")
        plan = planner.rows(question, epsilon=words["epsilon"], delta=delta)
        return FoundFirst(TableRows(planner, plan, where, text), self._drawing)

    def _drawing(self, taken: TableRows) -> Drawing[Accepted]:
        words, columns, kinds = self.part.words, self.columns, self._kinds
        declared, read_as = declare(columns, kinds, words.get("bins", 100))
        acceptance = acceptance_of(self.part, declared)
        tries = NegativeBinomialTries.for_mean(words["tries"]) if self.part.is_selected else None
        made = JudgedRuns.for_guarantee(
            taken.allowed,
            of=[partial(self._candidate, declared, dict(one)) for one in words.get("candidates", [{}])],
            judge=acceptance,
            unit=taken.unit,
            rows=taken.of_one,
            tries=tries,
            judging=words.get("judging", JUDGING),
        )
        guarantee = cost_of(taken.planner.ledger, made.guarantee(), taken.allowed)
        return Drawing(
            planner=taken.planner,
            plan=taken.plan,
            asked=in_words(f"synthetic rows of {', '.join(columns)} from {self.table.name}, judged", taken.where),
            method="published synthetic rows",
            arguments={"words": _plain(words), "columns": dict(columns), "kinds": dict(kinds)},
            mechanism=made,
            guarantee=guarantee,
            read=lambda: declared.codes(taken.plan.rows.columns(list(columns), read_as)),
            finish=lambda release: self._accepted(release, made, declared),
            key=self.key,
        )

    def _candidate(self, declared: Declared, setting: dict[str, Any], rho: Guarantee, rows: Any) -> Synthesis:
        # the number of tries must stay secret: no progress of them is reported
        progress = None if self.part.is_selected else self.progress
        options = {"rows": self.part.words.get("rows"), "progress": progress, **setting}
        return Synthesis.for_guarantee(
            rho, domain=declared.domain, sensitivity=rows, ordered=declared.ordered, **options
        )

    def _accepted(self, release: Release, made: JudgedRuns, declared: Declared) -> Accepted:
        drawn, acceptance = release.value["finished"], made.judge
        drawn = dict(drawn) | {"rows": drawn["rows"].astype("int64")}
        table = arrow_of(SyntheticSample(drawn, declared), self.columns, self._kinds)
        values = acceptance.values(drawn, release.value["judged"])
        errors = [unit * far for unit, far in zip(drawn["units"], made.judged_error(self.confidence), strict=True)]
        titles = [title_of(one) for one in self.part.words.get("criteria", [])]
        judged = [
            Judged(title, value, error, float(one.at_most), value + error <= float(one.at_most), is_share(one))
            for title, value, error, one in zip(titles, values, errors, acceptance.criteria, strict=True)
        ]
        rarest = acceptance.rarest(drawn["rows"])
        if acceptance.at_least > 1:
            enough = rarest >= acceptance.at_least or not len(drawn["rows"])
            title = f"Rows with fewer than {acceptance.at_least} equal rows"
            judged.append(Judged(title, 0.0 if enough else 1.0, None, 0.0, enough))
        if acceptance.never:
            impossible = int(acceptance.impossible(drawn["rows"]).sum())
            judged.append(Judged("Rows that are impossible", float(impossible), None, 0.0, not impossible))
        return Accepted(table, release, tuple(judged), max(float(drawn["total"]), 0.0))

    def explain(self) -> list[str]:
        """What would be done, what it costs, and how sure the criteria are. Spends nothing."""
        offer = self.offer()
        drawing = offer.drawing(offer.rows)
        made: JudgedRuns = drawing.mechanism
        lines = [drawing.asked]
        if offer.rows.plan.automatic:
            lines.append(found_first(offer.rows.plan))
        one = made.candidates[0]
        share = float(one.measuring)
        columns, rounds = len(one.domain.names), one.rounds
        count = max(1, 3 * columns - 6) if rounds is None else rounds
        single, pair = (columns / (0.8 * share)) ** 0.5, (max(count, 1) / (1.2 * share)) ** 0.5
        lines.append(
            f"counts of single columns are measured with a standard deviation of about {single:.3g} rows, and up to "
            f"{count} pairs with about {pair:.3g}"
        )
        if made.selection is not None:
            chance = made.selection.chance(len(made.candidates))
            lines.append(
                f"the best of {made.expected_tries:.3g} tries on average, of {len(made.candidates)} candidates: each "
                f"is tried with probability {chance:.0%}. One try keeps {made.run}"
            )
        listed = self.part.words.get("criteria", [])
        for words, one, noise in zip(listed, made.judge.criteria, made.noises, strict=True):
            steps = float(noise.error(self.confidence))
            lines.append(f"{title_of(words)}: measured {_planned(one, steps)} ({self.confidence:.0%})")
        return lines


def is_share(criterion: Any) -> bool:
    """Whether a criterion is a part of a whole, and shown in percent."""
    return isinstance(criterion, MarginalError | RelativeError | Unmatched)


def _planned(criterion: Any, steps: float) -> str:
    """How far the noise moves a criterion, as far as that is known before the rows are there."""
    match criterion:
        case MarginalError() | Unmatched():
            return f"to within {steps / (2 if isinstance(criterion, Unmatched) else 1):,.3g} rows"
        case RelativeError() | MeanError():
            return f"to within {steps * criterion.unit(NOTHING):.3g}"
    return "to within what depends on the synthetic rows"


def acceptance_of(part: Part, declared: Declared) -> Acceptance:
    """The criteria in a plan, for the columns as they are declared."""
    names, words = declared.domain.names, part.words
    never = []
    for one in words.get("never", []):
        found = []
        for name, values in one.items():
            codes = None
            if name in names and isinstance(values, list | tuple) and values:
                codes = declared.codes_of(name, tuple(values))
            if codes is None:
                raise InvalidArgument(
                    f"never of {part.where}: {name} must be a published column, with two numbers from low to high, or "
                    "a list of its choices.",
                    code="plan-never",
                )
            found.append((names.index(name), codes))
        never.append(tuple(found))
    criteria = tuple(_criterion(part, one, declared) for one in words.get("criteria", []))
    return Acceptance(
        names=tuple(names),
        shape=declared.domain.shape,
        criteria=criteria,
        never=tuple(never),
        at_least=words.get("at_least", AT_LEAST),
    )


def _criterion(part: Part, words: Mapping[str, Any], declared: Declared) -> Any:
    names, limit = declared.domain.names, float(words["at_most"])

    def place(name: str) -> int:
        if name not in names:
            raise InvalidArgument(
                f"A criterion of {part.where} names {name}, which is not published. Columns: {', '.join(names)}.",
                code="unknown-column",
            )
        return names.index(name)

    def numbers(name: str) -> tuple[float, ...]:
        place(name)
        found = declared.centers(name)
        if found is None:
            raise InvalidArgument(
                f"A criterion of {part.where} needs numbers, and {name} has none. Name a column of numbers.",
                code="column-type",
            )
        return found

    match words["kind"]:
        case "marginals":
            if words["ways"] > len(names):
                raise InvalidArgument(f"ways of {part.where} is above its number of columns.", code="out-of-range")
            return MarginalError(ways=words["ways"], at_most=limit)
        case "counts":
            return RelativeError(at_least=words["at_least"], at_most=limit)
        case "means":
            of, by = place(words["of"]), place(words["by"])
            if of == by:
                raise InvalidArgument(f"of and by of {part.where} are the same column.", code="duplicates")
            return MeanError(of=of, by=by, values=numbers(words["of"]), at_least=words["at_least"], at_most=limit)
        case "slopes":
            of, on = place(words["of"]), tuple(place(name) for name in words["on"])
            if of in on:
                raise InvalidArgument(f"{words['of']} of {part.where} cannot explain itself.", code="duplicates")
            _check_cells(part, [words["of"], *words["on"]], declared)
            values = tuple(numbers(name) for name in (words["of"], *words["on"]))
            return SlopeError(of=of, on=on, values=values, at_most=limit)
    columns, joined = words["columns"], words.get("join", {})
    for name in joined:
        if name not in columns:
            raise InvalidArgument(f"join of {part.where} names {name}, which is not matched.", code="unknown-column")
    widths = tuple(joined.get(name, 1) for name in columns)
    made = Unmatched(columns=tuple(place(name) for name in columns), joined=widths, at_most=limit)
    _check_cells(part, columns, declared, widths)
    return made


def _check_cells(part: Part, columns: Any, declared: Declared, widths: Any = None) -> None:
    """Refuse, before anything is charged, a criterion over more cells than fit into memory."""
    cells = 1
    for name, width in zip(columns, widths or [1] * len(columns), strict=True):
        cells *= -(-declared.domain.shape[declared.domain.axis(name)] // width)
    if cells > MOST_CELLS // 10:
        raise InvalidArgument(
            f"A criterion of {part.where} has {cells:,} cells. Name fewer columns, or use fewer bins.", code="too-large"
        )


def title_of(words: Mapping[str, Any]) -> str:
    """What a criterion says, for the public."""
    if "title" in words:
        return str(words["title"])
    match words["kind"]:
        case "marginals":
            ways = {1: "single columns", 2: "pairs of columns"}.get(words["ways"], f"{words['ways']} columns")
            return f"Largest error of a count of {ways}, as a share of all rows"
        case "counts":
            return f"Largest relative error of a count of one column, of those with {words['at_least']:,} rows or more"
        case "means":
            groups = f"in groups of {words['at_least']:,} or more"
            return f"Largest error of the mean of {words['of']} by {words['by']}, {groups}"
        case "slopes":
            return f"Largest error of a coefficient of {words['of']} on {', '.join(words['on'])}"
    return f"Rows without a partner that agrees in {', '.join(words['columns'])}, as a share of all rows"


def _plain(words: Any) -> Any:
    """Words of a plan as plain values."""
    if isinstance(words, Mapping):
        return {key: _plain(value) for key, value in words.items()}
    return [_plain(one) for one in words] if isinstance(words, list | tuple) else words

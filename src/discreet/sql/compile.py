"""From a plan to the engine's SQL: exact aggregates of each group, once what one person can contribute is bounded.

Only what is listed is printed, in the engine's own words. A person's surplus groups are dropped at random; in a group
with too many rows of one person their sum is scaled down as if a random choice of them had its expected value, so no
row needs a rank. All of it depends on that person's rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from discreet.engines import duckdb as engine
from discreet.sql.expressions import Call, Const, Expr, Ref
from discreet.sql.plan import Measure, Question
from discreet.sql.relation import Filter, Join, Project, Relation, Scan


@dataclass(frozen=True)
class Bounds:
    """What one person may have in an answer: rows in all, groups, and rows in each group."""

    rows: int
    groups: int
    per_group: int


def printed(expr: Expr) -> str:
    """An expression in the engine's words."""
    match expr:
        case Ref(field=field):
            return engine.quoted(field.id)
        case Const(value=value):
            return engine.literal(value)
        case Call(op="and" | "or" as op, args=args):
            return f"({f' {op.upper()} '.join(map(printed, args))})"
        case Call(op="in", args=(first, *others)):
            return f"({printed(first)} IN ({', '.join(map(printed, others))}))"
        case Call(op="case", args=args):
            whens = zip(args[:-1:2], args[1:-1:2], strict=True)
            branches = " ".join(f"WHEN {printed(when)} THEN {printed(then)}" for when, then in whens)
            return f"CASE {branches} ELSE {printed(args[-1])} END"
        case Call(op="subtract", args=(first, second)) if first.type in ("date", "timestamp"):
            return engine.WORDS["days_between"].format(printed(second), printed(first))
        case Call(op=op, args=args, detail=detail):
            texts = [printed(arg) for arg in args]
            shown = engine.TYPES[detail] if op == "cast" else detail
            return engine.WORDS[op].format(*texts, all=", ".join(texts), detail=shown)
    raise AssertionError(f"an expression that nobody listed: {type(expr).__name__}")


def safe(expr: Expr) -> str:
    """An expression that is NULL where it cannot be computed."""
    return printed(expr) if isinstance(expr, Ref | Const) else engine.total(printed(expr))


def rows_of(relation: Relation, sources: dict[str, str]) -> str:
    """A relation as a query."""
    match relation:
        case Scan(table=table, fields=fields):
            columns = ", ".join(f"{engine.quoted(f.name)} AS {engine.quoted(f.id)}" for f in fields)
            return f"SELECT {columns} FROM {sources[table.name]}"
        case Filter(source=source, condition=condition):
            return f"SELECT * FROM ({rows_of(source, sources)}) WHERE {safe(condition)}"
        case Project(source=source, columns=columns, person=person):
            shown = [f"{safe(expr)} AS {engine.quoted(field.id)}" for field, expr in columns]
            if person is not None and source.person is not None:
                shown.append(f"{engine.quoted(source.person.id)} AS {engine.quoted(person.id)}")
            return f"SELECT {', '.join(shown)} FROM ({rows_of(source, sources)})"
        case Join(left=left, right=right, condition=condition, kind=kind):
            join = "LEFT JOIN" if kind == "left" else "JOIN"
            return (
                f"SELECT * FROM ({rows_of(left, sources)}) {join} ({rows_of(right, sources)}) ON {printed(condition)}"
            )
    raise AssertionError(f"a relation that nobody listed: {type(relation).__name__}")


class Statement:
    """The statements that compute the measures of a question."""

    def __init__(self, question: Question, sources: dict[str, str], bounds: Bounds | None, seed: int) -> None:
        self.question, self.bounds, self.seed = question, bounds, seed
        self.keys = [f"k{n}" for n in range(len(question.keys))]
        self.steps: list[tuple[str, str]] = [("source", rows_of(question.relation, sources))]
        self._prepare()

    def _prepare(self) -> None:
        """Each row with its person, its keys, and the whole number it adds to each measure."""
        question = self.question
        columns = [f"{safe(key.expr)} AS {name}" for name, key in zip(self.keys, question.keys, strict=True)]
        if question.relation.person is not None:
            columns.append(f"{engine.quoted(question.relation.person.id)} AS person")
        for number, measure in enumerate(question.measures):
            columns += self._row_of(number, measure)
        self.steps.append(("prepared", f"SELECT {', '.join(columns)} FROM source"))
        conditions = [
            _member(name, key.domain) for name, key in zip(self.keys, question.keys, strict=True) if key.domain
        ]
        if question.relation.person is not None:
            conditions.append("person IS NOT NULL")
        self._from = "prepared"
        if conditions:
            self.steps.append(("declared", f"SELECT * FROM prepared WHERE {' AND '.join(conditions)}"))
            self._from = "declared"

    def _row_of(self, number: int, measure: Measure) -> list[str]:
        counts = "TRUE" if measure.where is None else f"coalesce({safe(measure.where)}, FALSE)"
        columns = [f"{counts} AS w{number}"]
        if measure.kind in ("sum", "quantile") and measure.value is not None:
            steps = engine.clamped_steps(safe(measure.value), float(measure.center), float(measure.step), measure.reach)
            columns.append(f"{steps} AS v{number}")
        elif measure.value is not None:
            columns.append(f"{safe(measure.value)} AS v{number}")
        return columns

    def _query(self, last: str) -> str:
        steps = ", ".join(f"{name} AS ({text})" for name, text in self.steps)
        return f"WITH {steps} {last}"

    def _grouped(self, columns: Iterable[str], source: str, keys: list[str]) -> str:
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join([*keys, *columns])} FROM {source}{group}"

    # --- sums and counts ----------------------------------------------------------------------------------

    def additive(self) -> str:
        """One row for each group, one column for each measure that is a sum."""
        listed = [(n, m) for n, m in enumerate(self.question.measures) if m.kind in ("count", "sum", "people")]
        if self.bounds is None:
            columns = [f"{_row_total(number, measure)} AS m{number}" for number, measure in listed]
            return self._query(self._grouped(columns, self._from, self.keys))
        source = self._bounded_rows()
        parts = []
        for number, measure in listed:
            parts.append(f"count(*) FILTER (w{number}) AS n{number}")
            if measure.kind == "sum":
                parts.append(f"{engine.exact_sum(_powered(number, measure))} FILTER (w{number}) AS s{number}")
        self.steps.append(("pairs", self._grouped(parts, source, ["person", *self.keys])))
        kept = self._bounded_groups("pairs")
        columns = [f"{self._pair_total(number, measure)} AS m{number}" for number, measure in listed]
        return self._query(self._grouped(columns, kept, self.keys))

    def _bounded_rows(self) -> str:
        """The rows, at most so many of one person; no pass is made where the bounds on groups see to it."""
        assert self.bounds is not None
        if not self.keys or self.bounds.groups * self.bounds.per_group <= self.bounds.rows:
            return self._from
        over = f"SELECT person FROM {self._from} GROUP BY person HAVING count(*) > {self.bounds.rows}"
        self.steps.append(("many_rows", over))
        self.steps.append(("drawn", f"SELECT *, random() AS draw FROM {self._from} SEMI JOIN many_rows USING (person)"))
        rank = "row_number() OVER (PARTITION BY person ORDER BY draw)"
        self.steps.append(
            (
                "bounded",
                f"SELECT * FROM {self._from} ANTI JOIN many_rows USING (person) UNION ALL "
                f"SELECT * EXCLUDE (draw, place) FROM (SELECT *, {rank} AS place FROM drawn) "
                f"WHERE place <= {self.bounds.rows}",
            )
        )
        return "bounded"

    def _bounded_groups(self, source: str) -> str:
        """Pairs of person and group, at most so many of one person."""
        assert self.bounds is not None
        if not self.keys or self.bounds.groups >= self.bounds.rows:
            return source
        over = f"SELECT person FROM {source} GROUP BY person HAVING count(*) > {self.bounds.groups}"
        self.steps.append(("many_groups", over))
        rank = engine.random_rank("person", self.keys, self.seed)
        self.steps.append(
            (
                "kept",
                f"SELECT * FROM {source} ANTI JOIN many_groups USING (person) UNION ALL "
                f"SELECT * EXCLUDE (place) FROM (SELECT *, {rank} AS place FROM {source} "
                f"SEMI JOIN many_groups USING (person)) WHERE place <= {self.bounds.groups}",
            )
        )
        return "kept"

    def _pair_total(self, number: int, measure: Measure) -> str:
        assert self.bounds is not None
        most = self.bounds.per_group
        if measure.kind == "people":
            return f"count(*) FILTER (n{number} > 0)"
        if measure.kind == "count":
            return f"coalesce({engine.exact_sum(f'least(n{number}, {most})')}, 0)"
        scaled = f"CASE WHEN n{number} > {most} THEN s{number} * {most} // n{number} ELSE s{number} END"
        return f"coalesce({engine.exact_sum(scaled)}, 0)"

    # --- values -------------------------------------------------------------------------------------------

    def _bounded_values(self, number: int, measure: Measure) -> str:
        """The values of a measure, at most so many of one person in one group; the same ones count once if distinct."""
        assert self.bounds is not None
        source, whose, joined = self._bounded_rows(), ", ".join(["person", *self.keys]), ""
        if self.keys:
            self.steps.append(("pairs", f"SELECT DISTINCT {whose} FROM {source}"))
            joined = f" SEMI JOIN {self._bounded_groups('pairs')} USING ({whose})"
        unique = "DISTINCT " if measure.kind == "distinct" else ""
        self.steps.append(("seen", f"SELECT {unique}{whose}, v{number} FROM {source}{joined} WHERE w{number}"))
        self.steps.append(("drawn_values", "SELECT *, random() AS draw FROM seen"))
        rank = f"row_number() OVER (PARTITION BY {whose} ORDER BY draw)"
        self.steps.append(("ranked", f"SELECT *, {rank} AS place FROM drawn_values"))
        self.steps.append(("few", f"SELECT * FROM ranked WHERE place <= {self.bounds.per_group}"))
        return "few"

    def values(self, number: int) -> str:
        """For a quantile, or a count of different values: the values of each group, with how often they are there."""
        measure = self.question.measures[number]
        source = self._from
        if self.bounds is not None:
            source = self._bounded_values(number, measure)
        where = f" WHERE w{number}" if source == self._from else ""
        if measure.kind == "distinct":
            columns = f"count(DISTINCT v{number}) AS m{number}"
            group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
            return self._query(f"SELECT {', '.join([*self.keys, columns])} FROM {source}{where}{group}")
        names = [*self.keys, f"v{number}"]
        return self._query(
            f"SELECT {', '.join(names)}, count(*) AS m{number} FROM {source}{where} GROUP BY {', '.join(names)}"
        )


def _row_total(number: int, measure: Measure) -> str:
    if measure.kind == "sum":
        return f"coalesce({engine.exact_sum(_powered(number, measure))} FILTER (w{number}), 0)"
    return f"count(*) FILTER (w{number})"


def _powered(number: int, measure: Measure) -> str:
    return f"v{number}" if measure.power == 1 else f"v{number} * v{number}"


def _member(name: str, domain: tuple[Any, ...]) -> str:
    """Whether a key has a declared value."""
    known = [value for value in domain if value is not None]
    null = f"{name} IS NULL" if len(known) < len(domain) else ""
    whole = all(type(value) is int for value in known) and len(known) > 2
    if whole and len(known) == max(known) - min(known) + 1:
        inside = f"{name} BETWEEN {min(known)} AND {max(known)}"
    else:
        inside = f"{name} IN ({', '.join(map(engine.literal, known))})" if known else ""
    return f"({' OR '.join(part for part in (inside, null) if part)})"

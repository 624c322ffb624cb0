"""Answers that are combined: each question in a statement is answered by itself, and the statement runs on the answers.

The ε of the statement is divided evenly among the questions. What runs on their answers is free.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlglot import exp

from discreet.engines.duckdb.dialect import TYPES, quote
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.engine import Engine
from discreet.errors import EngineFailed, NotAllowed, QueryError
from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Approx, NoLoss
from discreet.ledger import Ledger
from discreet.mechanisms.protocol import tidy
from discreet.releases import Release
from discreet.rows.arrow import cleared
from discreet.rows.key_columns import arrow_type
from discreet.sql.plan import Plan
from discreet.sql.question import Question
from discreet.sql.reading.combined import Combination, name_of
from discreet.sql.reading.parse import without_alias
from discreet.sql.running.answer import CONFIDENCE, Answer, listed
from discreet.sql.running.notes import SOME_GROUPS
from discreet.sql.running.redrawn import interval_of, redrawn_table
from discreet.sql.running.shown import DRAW, PLACE
from discreet.sql.schema import Table, Type
from discreet.sql.terms import QuestionOptions

DRAWS = 300
"""The statement runs on so many simulated answers, to say how large its errors may be."""
SECONDS, MEMORY = 60, "2GB"
"""What a statement over answers may take: a short text can ask for all pairs of all rows, again and again."""

EXACT = "public tables only: exact, nothing was spent"
"""What is said of a statement that reads nothing private."""
ON_SHOWN = "The statement runs on the groups that are shown. Others are missing from its sums, and no ± covers that."
"""What is said of a statement if noise decides which groups of its answers are shown."""


@dataclass(frozen=True)
class CombinedPlan:
    """A statement over answers, and how each of its questions will be answered."""

    combination: Combination
    plans: tuple[Plan, ...]
    options: QuestionOptions

    def check(self) -> None:
        """Refuse, before anything is charged, a statement that cannot be computed from the answers."""
        check_statement(self.combination, [plan.question for plan in self.plans])


def check_statement(combination: Combination, questions: Sequence[Question]) -> None:
    """Refuse a statement that cannot be computed from the answers to its questions."""
    if any(listed(output.expr) for question in questions for output in question.outputs):
        raise NotAllowed(
            "A statement over answers cannot use lists. Nothing was charged. Ask for each quantile in a column of "
            "its own.",
            code="sql-not-computable",
        )
    columns = {
        name_of(number): {output.name: output.expr.type for output in question.outputs}
        for number, question in enumerate(questions)
    }
    for table in combination.public:
        columns[table.name.lower()] = _typed(table)
    _check_names(combination, {name for listed in columns.values() for name in listed})
    engine = DuckDB({})
    texts = [_placed(combination, {n: _nulls(k, many) for n, k in columns.items()}) for many in (0, 1)]
    fine = all(map(engine.computes, texts))
    named = engine.table(texts[0]).column_names if fine else []
    engine.close()
    if not fine:
        raise NotAllowed(
            "The statement around the questions cannot be computed from their columns. Nothing was charged. Check "
            "the names and types of the columns that it uses.",
            code="sql-not-computable",
        )
    both = [name.lower() for name in (*named, *(f"{name}_error" for name in named))]
    if len(set(both)) < len(both):
        what = "Two columns of the answer have the same name, or one has that of another's error. Rename one with AS."
        raise QueryError(what, code="sql-same-name")


def _check_names(combination: Combination, columns: set[str]) -> None:
    """Name a column that neither the answers and tables have, nor the statement itself makes."""
    statement: Any = combination.statement
    made = {alias.alias for alias in statement.find_all(exp.Alias)}
    made |= {name.name for alias in statement.find_all(exp.TableAlias) for name in alias.args.get("columns") or ()}
    known = {name.lower() for name in columns | made}
    for node in statement.find_all(exp.Column):
        if not isinstance(node.this, exp.Star) and node.name.lower() not in known:
            listed = ", ".join(sorted(columns | made))
            what = f"Unknown column {node.name}. Known: {listed}."
            combination.sql.unknown(node, what, code="sql-unknown-column")


def _typed(table: Table) -> dict[str, Type]:
    """The columns of a table that can be read here, with their types."""
    return {column.name: column.type for column in table.columns.values() if column.type in TYPES}


def rows_of_tables(combination: Combination, engine: Engine, *, shown: bool = True) -> dict[str, Any]:
    """The public tables that a statement reads, without their rows unless they are `shown`. Tables of people have no
    rows here: none of them could change what it says.
    """
    import pyarrow as pa

    found = {}
    for table in combination.public:
        kinds, limit = _typed(table), "" if shown else " LIMIT 0"
        if table.public:
            listed = ", ".join(map(engine.dialect.quote, kinds))
            found[table.name.lower()] = engine.table(f"SELECT {listed} FROM {engine.relations[table.name]}{limit}")
        else:
            found[table.name.lower()] = pa.schema({n: arrow_type(k) for n, k in kinds.items()}).empty_table()
    return found


def last_answer(parts: Sequence[Answer], ledger: Ledger) -> Answer:
    """The last answer, with the cost of all: the others were asked first, for their numbers."""
    last, cost = copy.copy(parts[-1]), _sum([part.cost for part in parts])
    last.cost, last.release = cost, replace(_release(parts, cost, ledger), value=last.release.value)
    last._given = (*dict.fromkeys(note for part in parts[::-1] for note in part._given), _asked_first(parts))
    last.notes = (*last._given, *parts[-1].notes[len(parts[-1]._given) :])
    return last


def _asked_first(parts: Sequence[Answer]) -> str:
    many = len(parts)
    return (
        f"{many} questions were answered, each with an equal part of ε. What was asked first is used as it was "
        "released: no ± includes its noise."
    )


class CombinedAnswer(Answer):
    """What a statement makes of public tables and of the answers to its questions, which are in `parts`."""

    def __init__(
        self,
        combination: Combination,
        parts: Sequence[Answer],
        public: Mapping[str, Any],
        ledger: Ledger,
        *,
        free: str = EXACT,
    ) -> None:
        self.combination, self.parts, self._public = combination, tuple(parts), dict(public)
        self.cost = _sum([part.cost for part in parts])
        self.release = _release(parts, self.cost, ledger)
        self.free = free if isinstance(self.cost, NoLoss) else ""
        tables = {name_of(number): part.table.select(part.names) for number, part in enumerate(parts)}
        self._result = _run(combination, tables | self._public)
        self._passed, self._places = self._passed_through(tables)
        self._given = (*dict.fromkeys(note for part in parts for note in part._given), *self._own_notes())
        self.table = self.with_errors(CONFIDENCE)
        self.notes = (*self._given, *self._note_on_large_errors("row"))

    @property
    def _divides(self) -> bool:
        return self.combination.statement.find(exp.Div, exp.IntDiv, exp.Mod, exp.AggFunc) is not None

    @property
    def names(self) -> list[str]:
        return list(self._result.column_names)

    @property
    def noisy(self) -> list[str]:
        return [name for name, fixed in zip(self.names, self._fixed(), strict=True) if not fixed]

    @property
    def summed(self) -> dict[str, Any]:
        return {}

    @property
    def _chosen(self) -> list[str]:
        return []  # what is made of chosen values is a value like any other

    @property
    def clipped(self) -> dict[str, float | None]:
        """For each noisy column of the answers that it is made of, the estimated part that is lost."""
        return {name: share for part in self.parts for name, share in part.clipped.items()}

    def with_errors(self, confidence: float) -> Any:
        import pyarrow as pa

        own = None if not self._passed else self.parts[self.combination.used[0]].with_errors(confidence)
        errors = {} if set(self.noisy) <= set(self._passed) else self._errors(confidence)
        table: dict[str, Any] = {}
        taken = {name.lower() for name in self.names}
        for name in self.names:
            table[name] = self._result.column(name)
            if own is not None and name in self._passed:
                source = self._passed[name]
                both = not taken & {f"{name}_low".lower(), f"{name}_high".lower()}
                for end in ("error", "low", "high") if both else ("error",):
                    if f"{source}_{end}" in own.column_names:
                        table[f"{name}_{end}"] = own.column(f"{source}_{end}").take(self._places)
            elif name in self.noisy:
                known = errors.get(name)
                half = np.full(self._result.num_rows, np.nan) if known is None else known
                table[f"{name}_error"] = pa.array(half, pa.float64(), mask=~np.isfinite(half))
        return pa.table(table)

    def _passed_through(self, tables: Mapping[str, Any]) -> tuple[dict[str, str], Any]:
        """The noisy columns that a statement only shows again, by the columns of its one answer that they are, and the
        place in that answer of each row. They keep their own intervals. None if noise chooses rows, or anything is
        computed.
        """
        read = plain_columns(self.combination)
        if read is None or PLACE in self.parts[self.combination.used[0]].names:
            return {}, None
        number = self.combination.used[0]
        part, name = self.parts[number], name_of(number)
        statement: Any = self.combination.statement.copy()
        statement.set("expressions", [*statement.expressions, exp.column(PLACE, quoted=True)])
        table = tables[name].append_column(PLACE, [np.arange(tables[name].num_rows)])
        with suppress(EngineFailed):
            found = _run(replace(self.combination, statement=statement), {name: table})
            self._result = found.drop_columns([PLACE])  # of rows that are equal in their order, either may be first
            sources = {one.lower(): one for one in part.names}
            shown = {new: sources[old] for new, old in zip(self.names, read, strict=True)}
            passed = {new: old for new, old in shown.items() if old in part.noisy and old not in part._chosen}
            return passed, found.column(PLACE).to_numpy()
        return {}, None

    def _errors(self, confidence: float) -> dict[str, Any]:
        """Half of the interval of each noisy number, from the statement over simulated answers. Rows are the same if
        their keys are.
        """
        if not self.noisy or self.free:
            return {}
        # answers with one receipt are the same released numbers, and have the same noise
        first = {part.receipt: number for number, part in reversed(list(enumerate(self.parts)))}
        streams = [number if part.receipt is None else first[part.receipt] for number, part in enumerate(self.parts)]
        drawn = {
            name_of(number): redrawn_table(part.question, part._columns, part._shown[0], DRAWS, streams[number])
            for number, part in enumerate(self.parts)
            if number in self.combination.used
        }
        keys = [name for name in self.names if name not in self.noisy]
        rows = _identities(self._result, keys)
        if any(table is None for table in drawn.values()) or len(set(rows)) < len(rows) or not rows:
            return {}
        used = [self.parts[number] for number in self.combination.used]
        if any(part._columns.parts_of(*part.question.chosen_by) for part in used):
            return {}  # the rows with the largest noise are the first to be chosen: what is made of them is too large
        try:
            known = self._known()
            found = _run_drawn(self.combination.unchosen(lambda part: _is_fixed(part, known)), drawn, self._public)
        except EngineFailed:  # the answer is there all the same
            return {}
        draws, met = found.column(0).to_numpy(), _identities(found, keys)
        shown = len(rows)  # rows that are not shown could have been chosen, too
        known_rows = set(rows)
        unseen = (row for row, draw in zip(met, draws, strict=True) if draw == 0 and row not in known_rows)
        rows += dict.fromkeys(unseen)
        place = {row: number for number, row in enumerate(rows)}
        where = np.array([place.get(row, -1) for row in met], dtype=np.int64)
        cells = draws[where >= 0] * len(rows) + where[where >= 0]
        if len(np.unique(cells)) < len(cells):
            return {}  # rows that are left out share their keys with those that are shown
        halves, extreme = {}, self._extreme()
        for name in self.noisy:
            if name in extreme:
                continue
            if str(self._result.column(name).type) not in ("int64", "double"):
                continue
            values = np.full((DRAWS + 1, len(rows)), np.nan)
            values[draws[where >= 0], where[where >= 0]] = _floats(found.column(name))[where >= 0]
            values[0, :shown] = _floats(self._result.column(name))
            low, high = interval_of(values, confidence, self.combination.chooses)
            with np.errstate(invalid="ignore"):
                halves[name] = np.maximum(high - values[0], values[0] - low)[:shown]
        return halves

    def _extreme(self) -> set[str]:
        """The columns that use the largest or smallest of noisy numbers, which noise moves to one side, or values that
        were chosen, which are right or wrong.
        """
        known, statement = self._known(), self.combination.statement

        chosen = {name.lower() for number in self.combination.used for name in self.parts[number]._chosen}

        def is_extreme(item: Any) -> bool:
            read = {column.name.lower() for column in _columns(item)}
            return bool(read & chosen) or any(not _is_fixed(one.this, known) for one in item.find_all(*_EXTREMES))

        aliases = list(statement.find_all(exp.Alias))
        named = {alias.alias.lower() for alias in aliases if is_extreme(alias.this)}
        for _ in aliases:  # what is computed from such a column is such a column
            read = {alias.alias.lower() for alias in aliases if named & {c.name.lower() for c in _columns(alias.this)}}
            if read <= named:
                break
            named |= read
        found = set()
        for select in self.combination.branches():
            if any(isinstance(item, exp.Star) for item in select.expressions):
                if named:
                    return set(self.noisy)
                found |= {name for name in self.noisy if name.lower() in chosen}
                continue
            for name, item in zip(self.names, select.expressions, strict=False):
                if is_extreme(item) or named & {column.name.lower() for column in _columns(item)}:
                    found.add(name)
        return found

    def _fixed(self) -> list[bool]:
        """Which columns of the result hold keys or constants, and so no noise."""
        if not self.parts:
            return [True] * len(self.names)
        known = self._known()
        listed = []
        for select in self.combination.branches():
            items: list[Any] = [without_alias(item) for item in select.expressions]
            if any(isinstance(item, exp.Star) for item in items):
                items = [exp.column(name) for name in self._names_of(select)]
            fixed = [_is_fixed(item, known) for item in items]
            listed.append(fixed if len(fixed) == len(self.names) else [False] * len(self.names))
        return [all(column) for column in zip(*listed, strict=True)]

    def _known(self) -> dict[str, bool]:
        """For each name of a column: whether all columns of this name hold no noise, wherever they stand."""
        known = {name.lower(): True for table in self._public.values() for name in table.column_names}
        for part in (self.parts[number] for number in self.combination.used):
            known |= {name.lower(): known.get(name.lower(), True) and name not in part.noisy for name in part.names}
        statement: Any = self.combination.statement
        for alias in statement.find_all(exp.TableAlias):
            known |= {name.name.lower(): False for name in alias.args.get("columns") or ()}
        aliases = list(statement.find_all(exp.Alias))
        known = {alias.alias.lower(): True for alias in aliases} | known
        for _ in aliases:  # an alias of an alias of a noisy column is noisy
            noisy = {alias.alias.lower(): False for alias in aliases if not _is_fixed(alias.this, known)}
            if all(not known[name] for name in noisy):
                break
            known |= noisy
        return known

    def _names_of(self, select: exp.Select) -> list[str]:
        """The columns of SELECT *: those of an answer, or of the result."""
        source: Any = select.args["from_"].this
        numbers = {name_of(number): part for number, part in enumerate(self.parts)}
        alone = isinstance(source, exp.Table) and not select.args.get("joins")
        return numbers[source.name].names if alone and source.name in numbers else self.names

    def _own_notes(self) -> list[str]:
        many = len(self.parts)
        if self.free:
            return []
        notes = [f"{many} questions were answered, each with an equal part of ε."] if many > 1 else []
        if any(asked.needs for asked in self.combination.questions):
            notes = [_asked_first(self.parts)]
        if extreme := [name for name in self.names if name in self._extreme()]:
            notes.append(
                f"No ± for {', '.join(extreme)}: noise moves the largest and smallest of many numbers to one side, and "
                "a chosen value is right or wrong."
            )
        if any(note.startswith(SOME_GROUPS) for number in self.combination.used for note in self.parts[number]._given):
            notes.append(ON_SHOWN)
        if self._passed and set(self.noisy) <= set(self._passed):
            return notes
        return [*notes, "What is computed from the answers is free; its ± is simulated from the law of the noise."]


def plain_columns(combination: Combination) -> list[str] | None:
    """The columns of one answer that a statement shows unchanged, in any order of rows. None if it does more."""
    statement: Any = combination.statement
    if len(combination.used) != 1 or combination.public or not isinstance(statement, exp.Select):
        return None
    inner: Any = getattr(statement.args.get("from_"), "this", None)
    renamed = any(alias.args.get("columns") for alias in statement.find_all(exp.TableAlias))
    if renamed or not isinstance(inner, exp.Subquery | exp.Table):
        return None
    selects = [statement, inner.this] if isinstance(inner, exp.Subquery) else [statement]
    if not all(isinstance(one, exp.Select) for one in selects) or statement.find(exp.Window, exp.AggFunc, exp.CTE):
        return None
    given = [{name for name, value in one.args.items() if value} for one in selects]
    items = [without_alias(item) for item in statement.expressions]
    inside = selects[1].expressions if len(selects) > 1 else [exp.Star()]
    fine = given[0] <= {"expressions", "from_", "order"} and all(one <= {"expressions", "from_"} for one in given[1:])
    if not fine or inner.args.get("joins") or not all(isinstance(one, exp.Star) for one in inside):
        return None
    named = [
        item.name.lower() for item in items if isinstance(item, exp.Column) and not isinstance(item.this, exp.Star)
    ]
    return named if len(named) == len(items) else None


def _release(parts: Sequence[Answer], cost: Approx | NoLoss, ledger: Ledger) -> Release:
    if not parts:
        left = ledger.remaining
        return Release(value=None, guarantee=cost, _left=lambda: left)
    receipts = dict.fromkeys(part.receipt for part in parts if part.receipt is not None)
    return Release(
        value=None,
        guarantee=cost,
        receipt=", ".join(receipts) or None,
        not_private=any(part.not_private for part in parts),
        replayed=all(part.replayed for part in parts),
        found=tuple(found for part in parts for found in part.release.found),
        _left=parts[-1].release._left,
    )


def _sum(costs: Sequence[Approx | NoLoss]) -> Approx | NoLoss:
    """The cost of all of them: both parts are added, which holds for any way in which they depend on each other."""
    if all(isinstance(cost, NoLoss) for cost in costs):
        return NoLoss()
    epsilon, delta = (
        sum((exactly(getattr(cost, name)) for cost in costs), exactly(0)) for name in ("epsilon", "delta")
    )
    return Approx(epsilon=tidy(epsilon), delta=tidy(delta))


def _run(combination: Combination, tables: Mapping[str, Any]) -> Any:
    """The statement on the answers and public tables."""
    engine = _opened(tables)
    sources = {name: f"(SELECT * FROM {engine.relations[f'part{number}']})" for number, name in enumerate(tables)}
    found = None
    with suppress(EngineFailed):
        found = cleared(_plain(engine.table(_placed(combination, sources), seconds=SECONDS)))
    engine.close()
    if found is None:
        raise EngineFailed(
            "The questions were answered and charged, but the statement over their answers could not be computed: it "
            "takes too long, or a query that stands for one value has several. Ask the same questions alone.",
            code="engine-statement-failed",
        )
    return found


def _opened(tables: Mapping[str, Any]) -> DuckDB:
    return DuckDB({f"part{number}": table for number, table in enumerate(tables.values())}, memory=MEMORY, threads=1)


def _run_drawn(combination: Combination, drawn: Mapping[str, Any], public: Mapping[str, Any]) -> Any:
    """The statement on every draw of the answers, with the draw next to each row."""
    tables = {**drawn, **public}
    engine = _opened(tables)
    sources, draws = {}, quote("all draws")
    for number, name in enumerate(tables):
        relation = engine.relations[f"part{number}"]
        one = f"(SELECT * EXCLUDE ({quote(DRAW)}) FROM {relation} WHERE {quote(DRAW)} = {draws}.{quote(DRAW)})"
        sources[name] = one if name in drawn else f"(SELECT * FROM {relation})"
    each = _placed(combination, sources)
    numbers = f"range({DRAWS + 1}) AS {draws}({quote(DRAW)})"
    found = engine.table(f"SELECT {draws}.{quote(DRAW)}, q.* FROM {numbers}, LATERAL ({each}) AS q", seconds=SECONDS)
    engine.close()
    return _plain(found)


def _placed(combination: Combination, sources: dict[str, str]) -> str:
    """The statement with a query in the place of each answer."""
    unused = "__part"
    while unused in combination.sql.text:
        unused += "_"
    marks = {name: f"{unused}_{number}__" for number, name in enumerate(sources)}
    text = combination.text(marks)
    for name, mark in marks.items():
        text = text.replace(mark, sources[name])
    return text


def _nulls(kinds: Mapping[str, Type], many: int) -> str:
    """A query with these columns, and no row or one."""
    null = {kind: f"CAST(NULL AS {TYPES[kind]})" if kind in TYPES else "NULL" for kind in kinds.values()}
    columns = ", ".join(f"{null[kind]} AS {quote(name)}" for name, kind in kinds.items())
    return f"(SELECT {columns} WHERE {'TRUE' if many else 'FALSE'})"


def _plain(table: Any) -> Any:
    """A table without the wide numbers that DuckDB makes of sums."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        kind = field.type
        if pa.types.is_decimal(kind) or pa.types.is_float32(kind):
            whole = pa.types.is_decimal(kind) and kind.scale == 0
            column = table.column(place).cast(pa.float64())
            column = column.cast(pa.int64(), safe=False) if whole else column
        elif pa.types.is_integer(kind) and kind != pa.int64():
            column = table.column(place).cast(pa.int64(), safe=False)
        else:
            continue
        table = table.set_column(place, field.name, column)
    return table


def _floats(column: Any) -> Any:
    return column.cast("float64").to_numpy(zero_copy_only=False)


def _is_fixed(item: Any, known: Mapping[str, bool]) -> bool:
    """Whether an expression is computed from keys and constants only, for each row by itself."""
    if item.find(exp.AggFunc, exp.Window, exp.Query, exp.Star) is not None:
        return False
    return all(known.get(column.name.lower(), False) for column in item.find_all(exp.Column))


_EXTREMES = (exp.Max, exp.Min, exp.ArgMax, exp.ArgMin, exp.FirstValue, exp.LastValue)


def _columns(item: Any) -> Any:
    return item.find_all(exp.Column)


def _identities(table: Any, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    """What tells rows apart."""
    columns = [table.column(key).to_pylist() for key in keys]
    return list(zip(*columns, strict=True)) if keys else [()] * table.num_rows

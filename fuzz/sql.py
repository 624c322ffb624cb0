"""Questions in SQL, asked of a clinic and of its neighbors.

Whatever the text is: it is answered, or refused by an error of ours; neither the engine's words nor a value of the data
is in anything that the error holds. A refusal costs nothing, an answer what its plan says. All that is seen but
the numbers is the same when one person more, whose every value is hostile, or one person less is in the data.
"""

from __future__ import annotations

import datetime
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from discreet import testing
from discreet.datasets.database import Database
from discreet.errors import EngineFailed
from fuzz.changes import text_changes
from fuzz.oracle import CANARY, Broken, attempt, label, within, words_of

TESTS = Path(__file__).resolve().parents[1] / "tests"
SECONDS = 10
ENGINE_WORDS = ("Error:", "LINE 1", "INTERNAL", "duckdb", "Traceback", "Arrow")
_WORDS = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET DISTINCT AS JOIN LEFT FULL CROSS USING ON UNION ALL EXCEPT WITH
RECURSIVE CASE WHEN THEN ELSE END AND OR NOT NULL IS IN EXISTS BETWEEN LIKE ILIKE CAST TRY_CAST FILTER OVER PARTITION
ROWS WITHIN QUALIFY WINDOW VALUES LATERAL PIVOT UNNEST TABLESAMPLE INTERVAL DATE TIMESTAMP EXTRACT COUNT SUM AVG MIN MAX
MEDIAN VARIANCE STDDEV QUANTILE_CONT ROUND ABS LN EXP POWER SQRT LENGTH LOWER SUBSTRING CONCAT COALESCE NULLIF LEAST
date_trunc month random now error read_csv COPY ATTACH PRAGMA SET INSERT EXPLAIN visits people cities prescriptions
results person_id visit_id city reason urgent floor cost minutes discount note day seen_at age active height born drug
dose price filled level region population n v * + - / // % ** || :: = <> < >= ( ) , ; . ' " $1 ? @ # -- /* */ \\ 0 1 -1
0.5 1e3 1e400 9223372036854775807 9223372036854775808 99999999999999999999999999999999999999999999 '' 'x' TRUE INTEGER
BIGINT HUGEINT DOUBLE VARCHAR DECIMAL(38,10) BLOB JSON MAP STRUCT main. "visits" 0x1F 1_000 $$ COUNT(*)
"""
WORDS = (*_WORDS.split(), "9" * 5000, " ", "\n", "GROUP BY ALL")
HOSTILE = {  # by the type of the column
    pa.int64(): (2**63 - 1, None, -(2**63), 0),
    pa.int32(): (2**31 - 1, None, -(2**31), 0),
    pa.float64(): (float("nan"), float("inf"), None, -1e308),
    pa.string(): (f"{CANARY} hostile", "", None, "\0"),
    pa.bool_(): (True, None, False, None),
    pa.date32(): (datetime.date.max, datetime.date.min, None, datetime.date(2024, 2, 29)),
    pa.timestamp("us"): (datetime.datetime.max, None, datetime.datetime.min, datetime.datetime(2024, 2, 29)),
}
_NUMBERED = re.compile(r"\d+")


def _loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Sql:
    """A clinic, the same with a hostile person more, and with a person less."""

    def __init__(self, folder: Path) -> None:
        clinic, self.grammar = (_loaded(TESTS / "sql" / name) for name in ("conftest.py", "test_random_questions.py"))
        self.clinic = clinic.Clinic()
        data = {name: _marked(table) for name, table in self.clinic.data.items()}
        more = {name: table if name == "cities" else _with_hostile(name, table) for name, table in data.items()}
        less = {name: _without_last(table) for name, table in data.items()}
        self.databases = [self.clinic.opened(rows, rows_per_person=20) for rows in (data, more, less)]
        self.seeds = [text for path in clinic.CORPUS for _, _, text in clinic.fixtures_in(path)]
        self.seeds += [json.loads(line)[0] for line in (clinic.FIXTURES / "refusals.jsonl").read_text().splitlines()]

    def inputs(self) -> st.SearchStrategy[str]:
        """Questions of the corpus, changed, questions by a grammar, and any text at all."""
        changed = text_changes(tuple(self.seeds), WORDS)
        return st.one_of(*[changed] * 6, *[self.grammar.questions()] * 4, st.text(max_size=80))

    def check(self, one: str) -> str:
        """Ask it three times, once of each clinic."""
        with within(SECONDS):
            seen = [self._asked(database, one) for database in self.databases]
        for other in seen[1:]:
            if other != seen[0]:
                differ = [(a, b) for a, b in zip(seen[0], other, strict=False) if a != b]
                raise Broken("one person can be seen", differ or (seen[0], other))
        return str(seen[0][0])

    def _asked(self, database: Database, text: str) -> tuple[Any, ...]:
        """All that is seen of an answer but its numbers."""
        before = _standing(database)
        sent, run = [], database.engine._run

        def recorded(statement: str, fetch: Any) -> Any:
            sent.append(_NUMBERED.sub("0", statement))  # hidden names are numbered through the life of a program
            return run(statement, fetch)

        database.engine._run = recorded
        try:
            free, _ = attempt(lambda: database._free(text))
            combined, refused = attempt(lambda: database._combined(text, {"epsilon": 1, "delta": 1e-6}))
            plan = None
            if combined is None and refused is None:
                plan, refused = attempt(lambda: database.plan(text, epsilon=1, delta=1e-6))
            if _standing(database) != before:
                raise Broken("a plan was charged")
            with testing.frozen(3) as tape:
                answer, error = attempt(lambda: database.sql(text, epsilon=1, delta=1e-6))
        finally:
            del database.engine._run
        if error is not None:
            self._check_error(error, text)
            if (refused is None) or str(refused) != str(error) or isinstance(error, EngineFailed):
                raise Broken("a question with a plan is not answered", error)
            if _standing(database) != before:
                raise Broken("a refusal was charged", error)
            return label(error), str(error), sent
        if free is not None:
            if _standing(database) != before:
                raise Broken("what is free was charged")
            return "free", answer.table.schema, answer.table.to_pylist(), sent
        if refused is not None:
            raise Broken("a question without a plan was answered", refused)
        after = _standing(database)
        paid = tuple(now - then for now, then in zip(after[1], before[1], strict=True))
        shape = answer.table.schema
        if combined is not None:  # a part that was measured before is free
            costs = [database.ledger.rule.coordinates(part.price.guarantee) for part in combined.plans]
            if any(one > sum(each[place] for each in costs) for place, one in enumerate(paid)):
                raise Broken("more was charged than the plans say", (paid, costs))
            return f"{len(costs)} combined", shape, str(answer.guarantee), sent
        assert plan is not None
        cost = database.ledger.rule.coordinates(plan.price.guarantee)
        if after[0] != before[0] + 1 or paid != cost:
            raise Broken("the charge is not that of the plan", (before, after, cost))
        named = f"answered: {len(plan.question.keys)} keys, {sorted({str(field.type) for field in shape})}"
        if plan.groups is None:  # which keys are found is noise, and so is how many
            return named, shape, str(answer.guarantee), sent
        declared = not any(word in text.upper() for word in ("HAVING", "LIMIT", "OFFSET", "QUALIFY", "TOP"))
        return named, shape, str(answer.guarantee), sent, _noise(tape), declared and answer.table.num_rows

    def _check_error(self, error: Exception, text: str) -> None:
        said = words_of(error)
        for word in (CANARY, *ENGINE_WORDS):
            if word in said and word not in text:
                raise Broken(f"an error says {word}", said)

    def close(self) -> None:
        """Close the clinics."""
        for database in self.databases:
            database.close()
        self.clinic.database.close()
        self.clinic.plain.close()


def _noise(tape: testing.Tape) -> list[Any]:
    """Every draw; of a choice among gaps between values only that it was made: nobody sees how many there are."""
    return [call if call[0].startswith("discrete") else call[0] for call in tape.calls]


def _standing(database: Database) -> tuple[int, tuple[int, ...]]:
    """How many entries there are, and the exact total."""
    count = database.ledger.count
    last = database.ledger._walk(count, count) if count else ()
    totals = [entry.totals[""] for entry in last]
    return count, totals[-1] if totals else database.ledger.rule.nothing


def _marked(table: pa.Table) -> pa.Table:
    """The table with a canary in each of its notes."""
    if "note" not in table.column_names:
        return table
    notes = [None if note is None else f"{CANARY} {note}" for note in table.column("note").to_pylist()]
    return table.set_column(table.column_names.index("note"), "note", pa.array(notes, pa.string()))


def _with_hostile(name: str, table: pa.Table) -> pa.Table:
    """One person more, whose every value is at the end of its type."""
    rows = []
    for number in range(1 if name == "people" else 8):
        row = {field.name: HOSTILE[field.type][(number + at) % 4] for at, field in enumerate(table.schema)}
        rows.append(row | {"person_id": 999_983, "visit_id": 10**6 + number, "visit": 10**6 + number})
    columns = {field.name: [row[field.name] for row in rows] for field in table.schema}
    return pa.concat_tables([table, pa.table(columns, schema=table.schema)])


def _without_last(table: pa.Table) -> pa.Table:
    """The rows of all but person 40; laboratory results follow their visits."""
    if "person_id" not in table.column_names:
        return table
    kept = [person != 40 for person in table.column("person_id").to_pylist()]
    return table.filter(pa.array(kept))

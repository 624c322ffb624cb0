"""Seeded bugs around the numbers of an answer: each is planted, and the check that sound code passes must see it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet import door, testing
from discreet.datasets.database import Database
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import EngineFailed
from discreet.ledger import Identity, book
from discreet.ledger.texts import request as requests
from discreet.mechanisms.selection.allowance import Allowance
from discreet.queries.workload import Domain
from discreet.sql.planner import Planner
from discreet.sql.reading.sources import Sources
from discreet.sql.running import answer as answers
from discreet.sql.running import answering
from discreet.sql.schema import Column, Schema, Table
from discreet.synthetic import Synthesis, synthesis

from .refusing import refuses

Plant = Callable[[pytest.MonkeyPatch], None]
CANARY = "canary-51c9"
PERSON = dp.person("pid")
COLUMNS = {
    "pid": Column(name="pid", type="integer"),
    "k": Column(name="k", type="text", choices=("a", "b", "c")),
    "x": Column(name="x", type="number", between=(0, 100)),
    "far": Column(name="far", type="number", between=(0, 10**10)),
    "s": Column(name="s", type="text"),
}
TYPES = {"pid": pa.int64(), "k": pa.string(), "x": pa.float64(), "far": pa.float64(), "s": pa.string()}
GROUPED = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k"


def ledger_of(limit: float = 1000, place: Any = ":memory:") -> dp.Ledger:
    return dp.Ledger.open(place, protects=PERSON, limit=dp.Approx(epsilon=limit, delta=0.1), rule="basic")


def table_of(keys: str, words: str = "1", x: float = 1.0) -> pa.Table:
    """One person and row for each key."""
    rows = [(number, key, x, 1.0, words) for number, key in enumerate(keys)]
    return pa.table({name: pa.array([row[n] for row in rows], kind) for n, (name, kind) in enumerate(TYPES.items())})


def opened(data: pa.Table, ledger: dp.Ledger | None = None, columns: Any = COLUMNS, rows: int = 2) -> Database:
    table = Table(name="t", columns=columns, person="pid", rows_per_person=rows, groups_per_person=1)
    return Database(Schema(unit=PERSON, tables={"t": table}), DuckDB({"t": data}), ledger or ledger_of())


# --- seeded bugs: the checks ----------------------------------------------------------------------------------


def a_limit_inside_is_refused() -> None:
    with refuses(dp.NotAllowed, "sql-inner-clause"):
        opened(table_of("abc")).sql("SELECT COUNT(*) AS n FROM (SELECT * FROM t LIMIT 2) AS u", epsilon=1)


def having_reads_noisy_counts_only() -> None:
    """With the same noise, the rows that HAVING leaves are those of the whole answer whose shown count passes."""
    asked = opened(table_of("aaaabbbbb"))
    for seed in range(12):
        shown = []
        for having in ("", " HAVING COUNT(*) > 3"):
            with testing.frozen(seed):
                shown.append(asked.sql(GROUPED + having, epsilon=1).table.select(["k", "n", "s"]).to_pylist())
        assert shown[1] == [row for row in shown[0] if row["n"] > 3], "true counts decide what is shown"


def rows_come_in_the_order_of_their_keys() -> None:
    for keys in ("abbccc", "aaabbc", "c", ""):
        with testing.no_noise():
            shown = opened(table_of(keys)).sql(GROUPED, epsilon=1).table
        assert shown.column("k").to_pylist() == ["a", "b", "c"], "the order tells of true counts"


def noise_and_price_are_public() -> None:
    """With the same noise, tables of small and of large values ask for the same draws at the same price."""
    seen = []
    for x in (1.0, 50.0):
        with testing.frozen(1) as tape:
            seen.append((opened(table_of("abc", x=x)).sql(GROUPED, epsilon=1).guarantee, tape.calls))
    assert seen[0] == seen[1], "the noise follows the data"


def bins_follow_what_was_released() -> None:
    """Given the same noisy counts, a table and its neighbor have the same bins, however rare the row between them."""
    plan = Synthesis(domain=Domain({"c": 4}), measuring=0.5, choosing=0.05)
    for rare in range(1, 20):
        codes, sizes = np.repeat([[0], [1], [2], [3]], [30, 30, 1, rare], axis=0), []
        for rows in (codes, codes[:-1]):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Allowance, "measure", lambda self, counts, variance: np.full(counts.shape, 20))
                run = synthesis._Run(plan, rows)
                run.measure_columns()
            sizes.append(run.sizes)
        assert sizes[0] == sizes[1], "bins tell of true counts"


def failures_quote_nothing() -> None:
    engine = opened(table_of("a", CANARY)).engine
    with pytest.raises(EngineFailed) as caught:
        engine.rows(f"SELECT CAST(s AS INTEGER) FROM {engine.relations['t']}")
    assert CANARY not in "".join(traceback.format_exception(caught.value)), "the engine's words are passed on"


def only_the_very_same_question_is_answered_from_memory() -> None:
    ledger, noise = ledger_of(), dp.Laplace(scale=10)

    def ask(ledger: dp.Ledger, **changed: str) -> Any:
        identity = Identity(**({"question": "q", "data_version": "1", "policy": "p"} | changed))
        return door.through(lambda: 5, noise, noise.guarantee(1), ledger=ledger, asked="q", identity=identity)

    ask(ledger)
    assert ask(ledger).replayed
    for changed in ({"data_version": "2"}, {"policy": "q"}):
        assert not ask(ledger, **changed).replayed, "an answer about something else is handed out"
    another = ledger.for_analyst("bob", limit=dp.Approx(epsilon=9, delta=0.01))
    assert not ask(another).replayed, "another's answer is handed out"


CHECKS = [
    a_limit_inside_is_refused,
    having_reads_noisy_counts_only,
    rows_come_in_the_order_of_their_keys,
    noise_and_price_are_public,
    bins_follow_what_was_released,
    failures_quote_nothing,
    only_the_very_same_question_is_answered_from_memory,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_sound_code_passes(check: Callable[[], None]) -> None:
    check()


# --- seeded bugs: the bugs ------------------------------------------------------------------------------------


def limit_in_a_sub_query(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Sources, "check_clauses", lambda self, node: None)


def shown_by_the_truth(patch: pytest.MonkeyPatch, chosen: Callable[[Any, Any], Any]) -> None:
    """Which rows are shown, and in which order, is decided by true counts."""
    true: list[Any] = []
    measured, shown = answering.read_measures, answers.shown_rows

    def remembered(*given: Any) -> Any:
        found = measured(*given)
        true[:] = [found[0]]
        return found

    def wrong(question: Any, columns: Any) -> Any:
        places, values = shown(replace(question, having=None), columns)
        kept = chosen(question, true[0][places])
        return places[kept], {name: column.take(pa.array(kept)) for name, column in values.items()}

    patch.setattr(answering, "read_measures", remembered)
    patch.setattr(answers, "shown_rows", wrong)


def having_on_true_counts(patch: pytest.MonkeyPatch) -> None:
    shown_by_the_truth(patch, lambda question, true: np.flatnonzero((true > 3) | (question.having is None)))


def sorted_by_true_count(patch: pytest.MonkeyPatch) -> None:
    shown_by_the_truth(patch, lambda question, true: np.argsort(-true, kind="stable"))


def sensitivity_from_the_maximum(patch: pytest.MonkeyPatch) -> None:
    sound = Planner.plan

    def plan(self: Planner, question: str, **given: Any) -> Any:
        [(most,)] = self.engine.rows(f"SELECT max(x) FROM {self.engine.relations['t']}")
        columns = COLUMNS | {"x": replace(COLUMNS["x"], between=(0, most))}
        schema = Schema(unit=PERSON, tables={"t": replace(self.schema.tables["t"], columns=columns)})
        return sound(replace(self, schema=schema), question, **given)

    patch.setattr(Planner, "plan", plan)


def bins_from_true_counts(patch: pytest.MonkeyPatch) -> None:
    merge, sound = synthesis.merge_rare, synthesis._Run.measure_columns

    def measure_columns(self: Any) -> None:
        true = iter([np.bincount(codes, minlength=4).astype(float) for codes in self.codes.T])
        patch.setattr(synthesis, "merge_rare", lambda noisy, *given, **kept: merge(next(true), *given, **kept))
        sound(self)

    patch.setattr(synthesis._Run, "measure_columns", measure_columns)


def error_text_passed_through(patch: pytest.MonkeyPatch) -> None:
    def run(self: DuckDB, statement: str, fetch: Callable[[Any], Any]) -> Any:
        try:
            return fetch(self._connection.execute(statement))
        except Exception as error:
            raise EngineFailed(f"The engine could not compute this: {error}") from None

    patch.setattr(DuckDB, "_run", run)


def remembered_without(patch: pytest.MonkeyPatch, field: str) -> None:
    sound = requests._identify
    patch.setattr(requests, "_identify", lambda identity: sound(replace(identity, **{field: ""})))


def memory_without_the_data_version(patch: pytest.MonkeyPatch) -> None:
    remembered_without(patch, "data_version")


def memory_without_the_policy(patch: pytest.MonkeyPatch) -> None:
    remembered_without(patch, "policy")


def memory_without_the_analyst(patch: pytest.MonkeyPatch) -> None:
    sound = book.charged
    patch.setattr(book, "charged", lambda analyst, *given: sound(book.WHOLE, *given))
    patch.setattr(dp.Ledger, "_check_own", lambda self, entry: None)


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (limit_in_a_sub_query, a_limit_inside_is_refused),
        (having_on_true_counts, having_reads_noisy_counts_only),
        (sorted_by_true_count, rows_come_in_the_order_of_their_keys),
        (sensitivity_from_the_maximum, noise_and_price_are_public),
        (bins_from_true_counts, bins_follow_what_was_released),
        (error_text_passed_through, failures_quote_nothing),
        (memory_without_the_data_version, only_the_very_same_question_is_answered_from_memory),
        (memory_without_the_policy, only_the_very_same_question_is_answered_from_memory),
        (memory_without_the_analyst, only_the_very_same_question_is_answered_from_memory),
    ],
    ids=lambda one: one.__name__,
)
def test_a_seeded_bug_is_seen(plant: Plant, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check()

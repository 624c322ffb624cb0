"""The door of SQL: the sampler replaced by its exact law, all neighbors of tiny tables.

The exact δ(ε), both ways, is at most what was charged; the same check fails on seeded mutants.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pyarrow as pa
import pytest

import discreet as dp
from discreet import testing
from discreet.datasets.database import Database
from discreet.engines.duckdb.engine import DuckDB
from discreet.sql.pricing import choice_of_noise
from discreet.sql.running import answering
from discreet.sql.schema import Column, Schema, Table

EPSILONS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.2, 1.5, 2.0, 3.0)
PERSON = dp.person("pid")
COLUMNS = {
    "pid": Column(name="pid", type="integer"),
    "k": Column(name="k", type="text", choices=("a", "b")),
    "y": Column(name="y", type="integer", between=(0, 2)),
}
A, B, TWO, BOTH = [("a", 1)], [("b", 0)], [("a", 2), ("a", 2)], [("a", 2), ("b", 2), ("a", 1)]
TABLES = {
    "nobody": [],
    "one": [A],
    "two rows": [TWO],
    "both keys": [BOTH],
    "two people": [A, B],
    "three people": [A, B, BOTH],
    "many rows": [[("a", 2)] * 5],
    "many ones": [[("a", 1)] * 5],
}
NEIGHBORS = [("nobody", "one"), ("nobody", "two rows"), ("nobody", "both keys"), ("one", "two people"),
             ("two people", "three people"), ("nobody", "many rows")]  # fmt: skip
COUNT = "SELECT COUNT(*) AS n FROM t"
SUM = "SELECT SUM(y) AS s FROM t"
GROUPED = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
MEAN = "SELECT AVG(y) AS m FROM t"
MODE = "SELECT MODE(y) AS m FROM t"
MODE_OF_KEYS = "SELECT k, MODE(y) AS m FROM t GROUP BY k"
MEDIAN = "SELECT MEDIAN(y) AS m FROM t"
PEOPLE = "SELECT k, COUNT(DISTINCT pid) AS n FROM t GROUP BY k"


class NotPrivate(AssertionError):
    """Two neighbors are told apart better than is claimed."""


class _Plain:
    """What leaves, without the table that is made of it: arithmetic on released numbers costs nothing."""

    def __init__(self, question, columns, release, **given):
        self.release = release


def opened(people, **bounds):
    rows = [(number, *row) for number, rows in enumerate(people) for row in rows]
    types = {"pid": pa.int64(), "k": pa.string(), "y": pa.int64()}
    data = pa.table({name: pa.array([row[n] for row in rows], kind) for n, (name, kind) in enumerate(types.items())})
    table = Table(name="t", columns=COLUMNS, person="pid", **bounds)
    ledger = dp.Ledger.open(":memory:", protects=PERSON, limit=dp.Approx(epsilon=100_000, delta=0.1), rule="basic")
    return Database(Schema(unit=PERSON, tables={"t": table}), DuckDB({"t": data}), ledger)


@pytest.fixture(autouse=True)
def _light(monkeypatch):
    """The engine is asked once for each text: one table always has the same measures here."""
    monkeypatch.setattr(answering, "Answer", _Plain)
    original, known = DuckDB.table, {}

    def table(engine, text):
        if (engine, text) not in known:  # the key holds the engine, so that no other can have its identity
            known[engine, text] = original(engine, text)
        return known[engine, text]

    monkeypatch.setattr(DuckDB, "table", table)
    monkeypatch.setattr("discreet.sql.measuring.measure.random_integer", lambda bits: 7)


def law_of(people, text, window, **bounds):
    asked, claims = opened(people, **bounds), []
    plan = asked.plan(text, epsilon=1)

    def once():
        release = asked.answer(plan).release
        assert release.not_private
        claims.append(release.guarantee)
        return tuple(tuple(part) if hasattr(part, "__len__") else part for part in release.value)

    found = testing.exact_law(once, window=window)
    assert all(claim == claims[0] for claim in claims)
    return {y: float(p) for y, p in found.law.items()}, float(found.unresolved), claims[0]


def check(text, window, pairs, **bounds):
    """No pair of neighbors is told apart better than is charged. Gives the largest share of the charge that is used."""
    laws = {name: law_of(TABLES[name], text, window, **bounds) for name in {n for pair in pairs for n in pair}}
    share = 0.0
    for first, second in pairs:
        for a, b in ((laws[first], laws[second]), (laws[second], laws[first])):
            assert a[2] == b[2], "the claim must not depend on the data"
            for epsilon in EPSILONS:
                ratio, claimed = math.exp(epsilon), a[2].delta_at(epsilon=epsilon)
                delta = sum(max(0.0, p - ratio * b[0].get(y, 0.0)) for y, p in a[0].items())
                if delta > claimed + ratio * b[1] + 1e-12:
                    raise NotPrivate(f"{text}, {first} against {second}: δ({epsilon}) is {delta}, not {claimed}")
                share = max(share, delta / claimed if claimed > 1e-6 else 0.0)
    return share


TWO_CELLS = [("nobody", "both keys"), ("one", "two people")]
CASES = [
    (COUNT, 24, NEIGHBORS, {"rows_per_person": 3}, 0.9),
    (SUM, 32, NEIGHBORS[1:3] + NEIGHBORS[5:], {"rows_per_person": 2}, 0.9),
    (GROUPED, 7, TWO_CELLS, {"rows_per_person": 3, "groups_per_person": 1}, 0.2),
    (GROUPED, 7, TWO_CELLS, {"rows_per_person": 3, "groups_per_person": 2, "rows_per_group": 1}, 0.2),
    (PEOPLE, 7, TWO_CELLS, {"rows_per_person": 3, "groups_per_person": 2}, 0.2),
    (MEAN, 8, [("nobody", "two rows"), ("nobody", "one")], {"rows_per_person": 2}, 0.2),
    (MODE, 5, NEIGHBORS, {"rows_per_person": 3}, 0.5),
    (MODE_OF_KEYS, 5, NEIGHBORS, {"rows_per_person": 3, "groups_per_person": 2}, 0.2),
    (MEDIAN, 5, NEIGHBORS, {"rows_per_person": 3}, 0.01),  # three choices and a count, on three points: slow
]


@pytest.mark.some_quick(1)
@pytest.mark.parametrize(
    ("text", "window", "pairs", "bounds", "used"),
    [pytest.param(*c, marks=[pytest.mark.slow] * (c[0] in (MEDIAN, MEAN, PEOPLE)), id=c[0] + str(c[3])) for c in CASES],
)
def test_the_charge_covers_what_is_learned(text, window, pairs, bounds, used):
    """[T.R7.2]: the sensitivity derived from the question covers all neighbors."""
    assert check(text, window, pairs, **bounds) > used


def killed(text, window, pairs, **bounds):
    with pytest.raises(NotPrivate):
        check(text, window, pairs, **bounds)


@pytest.mark.slow
def test_mutant_contribution_halved(monkeypatch):
    original = choice_of_noise.contribution

    def halved(*given):
        found = original(*given)
        return replace(found, l1=max(1, found.l1 // 2), squared=max(1, found.squared // 4))

    monkeypatch.setattr(choice_of_noise, "contribution", halved)
    killed(COUNT, 30, [("nobody", "many rows")], rows_per_person=4)
    killed(SUM, 40, [("nobody", "two rows")], rows_per_person=2)
    killed(MEAN, 8, [("nobody", "two rows")], rows_per_person=2)


def loosen(monkeypatch, **wider):
    """Measures are taken with wider bounds than those that were priced."""
    original = answering.read_measures
    monkeypatch.setattr(answering, "read_measures", lambda q, e, bounds, c: original(q, e, replace(bounds, **wider), c))


def test_mutant_groups_are_not_bounded(monkeypatch):
    loosen(monkeypatch, groups=3)
    killed(PEOPLE, 7, [("nobody", "both keys")], rows_per_person=3, groups_per_person=1)


def test_mutant_rows_are_not_bounded(monkeypatch):
    loosen(monkeypatch, rows=100, per_group=100)
    killed(COUNT, 20, [("nobody", "many rows")], rows_per_person=2)


def replaced(monkeypatch):
    """One person is replaced by another."""
    monkeypatch.setitem(globals(), "PERSON", dp.person("pid", neighbors="replace"))


def test_the_most_common_value_if_a_person_is_replaced(monkeypatch):
    replaced(monkeypatch)
    assert check(MODE, 5, [("two rows", "one"), ("one", "many rows")], rows_per_person=3) > 0.3


def test_mutant_choices_take_a_replaced_person_for_an_added_one(monkeypatch):
    replaced(monkeypatch)
    original = choice_of_noise.Sensitivity
    monkeypatch.setattr(
        choice_of_noise, "Sensitivity", lambda *given, monotone=False, **named: original(*given, monotone=True, **named)
    )
    killed(MODE, 5, [("two rows", "many ones")], rows_per_person=3)


def test_mutant_choices_ignore_rows_of_one_person(monkeypatch):
    monkeypatch.setattr(choice_of_noise, "largest_change", lambda unit, rows, **moved: 1)
    killed(MODE, 5, [("nobody", "many rows")], rows_per_person=3)


def test_mutant_keys_from_the_data(monkeypatch):
    original = answering.read_measures
    monkeypatch.setattr(answering, "read_measures", lambda *given: [v[v != 0] for v in original(*given)])
    killed(GROUPED, 6, [("nobody", "one")], rows_per_person=3, groups_per_person=1)


def test_mutant_noise_halved(monkeypatch):
    from discreet.exact import samplers

    original = samplers.discrete_laplace
    monkeypatch.setattr(samplers, "discrete_laplace", lambda scale, size: original(scale / 2, size))
    killed(COUNT, 20, [("nobody", "many rows")], rows_per_person=2)


@pytest.mark.slow
def test_mutant_each_measure_gets_all_of_epsilon(monkeypatch):
    original = choice_of_noise.shares_of
    monkeypatch.setattr(choice_of_noise, "shares_of", lambda *given: tuple(1 for _ in original(*given)))
    monkeypatch.setattr(choice_of_noise.Composed, "guarantee", lambda self, s: self.mechanisms[0].guarantee(s[0]))
    killed(MEAN, 8, [("nobody", "two rows")], rows_per_person=2)


@pytest.mark.slow
def test_all_small_histories_of_one_person():
    """Every person with up to two rows over two keys and three values, against nobody."""
    rows = list(product("ab", (0, 1, 2)))
    histories = [[r] for r in rows] + [[r, s] for r in rows for s in rows if r <= s]
    nobody = law_of([], SUM, 24, rows_per_person=2)
    seen = {}
    for history in histories:
        total = sum(y for _, y in history)
        if total not in seen:  # equal sums have equal laws
            seen[total] = law_of([history], SUM, 24, rows_per_person=2)
        law, _, claim = seen[total]
        for epsilon in EPSILONS:
            delta = sum(max(0.0, p - math.exp(epsilon) * nobody[0].get(y, 0.0)) for y, p in law.items())
            assert delta <= claim.delta_at(epsilon=epsilon) + math.exp(epsilon) * nobody[1] + 1e-12


@pytest.mark.parametrize("pair", [("one", "both keys"), ("both keys", "many rows"), ("two rows", "both keys")])
def test_modes_by_group_if_a_person_is_replaced(monkeypatch, pair):
    """Rows that are spread over groups cost no more than those of one group."""
    replaced(monkeypatch)
    for per_group in (3, 1):
        bounds = {"rows_per_person": 3, "groups_per_person": 2, "rows_per_group": per_group}
        assert check(MODE_OF_KEYS, 5, [pair], **bounds) > 0.05


def test_mutant_groups_of_choices_are_forgotten(monkeypatch):
    monkeypatch.setattr(choice_of_noise.NoiseChoice, "_full_groups", 1)
    killed(MODE_OF_KEYS, 5, [("nobody", "both keys")], rows_per_person=2, groups_per_person=2, rows_per_group=1)

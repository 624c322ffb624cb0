"""Small databases: paths against a list of all of them, the exact law, all neighbors, and the error promised."""

from __future__ import annotations

import inspect
import math
import sys
import textwrap
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import testing
from discreet.exact.rational import exp_minus_bits
from discreet.mechanisms.counts import monotone_paths, small_database
from discreet.mechanisms.counts.monotone_paths import Paths, blocks
from discreet.mechanisms.counts.small_database import SmallDatabase, taught_accuracy, taught_rows
from discreet.queries import Domain, Workload

from ...refusing import refuses

ROW, REPLACED = dp.row(), dp.row(neighbors="replace")
FIVE = Workload.prefixes(Domain({"x": 5}))
FIVE_LISTED = Workload.prefixes(Domain({"x": 5, "one": 1}), "x")  # two columns: listed, not drawn as paths
PAIRS = Workload.marginals(Domain({"a": 2, "b": 2}), 1)


def error_of(workload: Workload, data: Any, database: tuple[int, ...], size: int) -> Fraction:
    """max_c |c(X) − (n/m)·c(Y)|, from the definition."""
    histogram = np.bincount(np.array(database), minlength=workload.domain.size)
    drawn = workload.answers(histogram=histogram).tolist()
    return max(
        abs(Fraction(int(true)) - Fraction(size * own, len(database)))
        for true, own in zip(workload.answers(data).tolist(), drawn, strict=True)
    )


def brute_force(workload: Workload, data: Any, rows: int, size: int, rate: Fraction) -> dict[Any, Fraction]:
    """The law by the definition: all multisets, each with its own weight."""
    weights = {}
    for database in combinations_with_replacement(range(workload.domain.size), rows):
        histogram = tuple(np.bincount(np.array(database), minlength=workload.domain.size).tolist())
        energy = rate * error_of(workload, data, database, size)
        weights[histogram] = Fraction(exp_minus_bits(energy, 300)[0], 2**300)
    total = sum(weights.values())
    return {histogram: w / total for histogram, w in weights.items()}


def flat(value: Any) -> tuple[int, ...]:
    return tuple(np.ravel(value).tolist())


def exact_law(mechanism: SmallDatabase, data: Any) -> dict[Any, Fraction]:
    found = testing.exact_law(lambda: flat(dp.release(data, mechanism).value))
    assert found.unresolved < Fraction(1, 2**200)
    return found.law


@pytest.mark.some_quick(5)
@pytest.mark.parametrize("data", [[], [2], [0, 0, 4], [1, 1, 1], [4, 3, 2, 1, 0, 9, None]], ids=str)
@pytest.mark.parametrize("size", [1, 3, 5])
def test_the_law_over_paths_is_that_of_the_definition(data: list[Any], size: int) -> None:
    """|D| = 5 and m = 4: 70 multisets; rows outside the domain, and a size that is not the true one, too."""
    rate = Fraction(3, 10)
    found = exact_law(SmallDatabase(workload=FIVE, size=size, rows=4, rate=rate), data)
    expected = brute_force(FIVE, data, 4, size, rate)
    assert found.keys() == expected.keys()
    assert len(found) == 70
    assert all(abs(found[y] - p) < Fraction(1, 2**200) for y, p in expected.items())


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_law_over_a_list_is_that_of_the_definition(rows: int) -> None:
    data = [(0, 0), (1, 1), (1, 0), (7, 0)]
    found = exact_law(SmallDatabase(workload=PAIRS, size=3, rows=rows, rate=1), data)
    expected = brute_force(PAIRS, data, rows, 3, Fraction(1))
    assert all(abs(found[y] - p) < Fraction(1, 2**200) for y, p in expected.items())
    as_paths = exact_law(SmallDatabase(workload=FIVE, size=3, rows=rows, rate=1), [0, 3, 3])
    as_list = exact_law(SmallDatabase(workload=FIVE_LISTED, size=3, rows=rows, rate=1), [(x, 0) for x in (0, 3, 3)])
    assert all(abs(as_paths[y] - p) < Fraction(1, 2**200) for y, p in as_list.items())


def random_paths(rng: np.random.Generator) -> tuple[Paths, dict[int, set[tuple[int, ...]]]]:
    cells, rows, size = (int(rng.integers(1, high)) for high in (6, 5, 6))
    truth = np.cumsum(np.bincount(rng.integers(0, cells, int(rng.integers(0, 8))), minlength=cells))
    by_error: dict[int, set[tuple[int, ...]]] = {}
    for database in combinations_with_replacement(range(cells), rows):
        path = np.cumsum(np.bincount(np.array(database), minlength=cells))
        by_error.setdefault(int(np.abs(rows * truth - size * path).max()), set()).add(tuple(path.tolist()))
    return Paths(truth, rows, size), by_error


def test_paths_are_counted_and_numbered_like_a_list_of_them() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        paths, by_error = random_paths(rng)
        assert max(by_error) < paths.above_all
        assert paths.total == sum(map(len, by_error.values()))
        for end in range(1, paths.above_all + 2):
            assert paths.below(end) == sum(len(found) for error, found in by_error.items() if error < end)
            start = int(rng.integers(0, end))
            expected = [path for error, found in by_error.items() if start <= error < end for path in found]
            listed = [tuple(paths.nth(i, start, end)) for i in range(paths.below(end) - paths.below(start))]
            assert sorted(listed) == sorted(expected)
            assert all(start <= paths.error_of(list(path)) < end for path in listed)


@pytest.mark.parametrize("ratio", [1.5, 4.0, 50.0])
def test_the_law_is_the_same_when_errors_are_taken_in_stretches(ratio: float) -> None:
    """One try, given that it is kept, has the law of the definition, however coarse the stretches."""
    data, rate = [0, 0, 3, 4, 4, 4], Fraction(1, 2)
    paths = Paths(FIVE.answers(data), 3, 6)
    parts = blocks(paths, float(rate / 3), ratio, most=0)
    assert sum(count for *_, count in parts) == paths.total == 35
    assert any(end - start > 1 for start, end, _ in parts)
    found = testing.exact_law(lambda: small_database._try_path(paths, rate / 3, parts)).law
    kept = 1 - found.pop(None)
    assert kept >= 1 / ratio
    expected = brute_force(FIVE, data, 3, 6, rate)
    for path, mass in found.items():
        assert abs(mass / kept - expected[flat(np.diff(path, prepend=0))]) < Fraction(1, 2**200)
    assert len(found) == 35


def check_neighbors(exact: Any, workload: Workload = FIVE, unit: dp.Unit = ROW, rate: Any = 1) -> float:
    mechanism = SmallDatabase(workload=workload, size=2, rows=2, rate=rate)
    rows: list[Any] = [0, 2, 4, 9] if workload is FIVE else [(0, 0), (1, 0), (1, 1)]
    bound = mechanism.sensitivity(unit)
    tables = [t for n in range(3) for t in combinations_with_replacement(rows, n)]
    runs = {t: exact.run(mechanism, list(t), bound, shown=flat) for t in tables}
    pairs = []
    for t in tables:
        for i in range(len(t)):
            less = t[:i] + t[i + 1 :]
            if unit is ROW:
                pairs.append((runs[t], runs[less]))
            else:
                pairs += [
                    (runs[t], runs[tuple(sorted((*less, other), key=rows.index))]) for other in rows if other != t[i]
                ]
    return exact.check(pairs, orders=(1.5, 2, 8))


@pytest.mark.some_quick(2)
@pytest.mark.parametrize("unit", [ROW, REPLACED])
@pytest.mark.parametrize("workload", [FIVE, PAIRS], ids=["paths", "list"])
def test_neighbors(exact: Any, workload: Workload, unit: dp.Unit) -> None:
    assert check_neighbors(exact, workload, unit) > 0.1


@pytest.mark.parametrize(
    ("owner", "name", "old", "new"),
    [
        (SmallDatabase, "guarantee", "monotone=False", "monotone=True"),
        (SmallDatabase, "guarantee", "rate=self.rate", "rate=exactly(self.rate) / 2"),
        (SmallDatabase, "_draw", "exactly(self.rate) / self.rows", "exactly(self.rate)"),
        (monotone_paths.Paths, "nth", "index -= ways", "index = 0"),
    ],
)
def test_mutants(exact: Any, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, old: str, new: str) -> None:
    source = textwrap.dedent(inspect.getsource(getattr(owner, name)))
    assert source.count(old) == 1
    space = dict(vars(sys.modules[owner.__module__]))
    exec(source.replace(old, new), space)
    monkeypatch.setattr(owner, name, space[name])
    if name == "nth":  # paths are missed, and others drawn twice
        with pytest.raises(AssertionError):
            test_paths_are_counted_and_numbered_like_a_list_of_them()
    else:
        exact.killed(lambda: [check_neighbors(exact, w, u) for u in (ROW, REPLACED) for w in (FIVE, PAIRS)])


@pytest.mark.slow
@pytest.mark.parametrize("workload", [FIVE, PAIRS], ids=["paths", "list"])
def test_some_database_is_as_good_as_is_said_and_most_draws_are(workload: Workload) -> None:
    """[L3.CQ], all tables of `size` rows: the best error is within its bound, and the law keeps the confidence."""
    values: list[Any] = list(range(5)) if workload is FIVE else [(0, 0), (0, 1), (1, 0), (1, 1)]
    made = SmallDatabase(workload=workload, size=4, rows=2, rate=3)
    amount = Fraction(float(made.error(0.9)))
    for table in combinations_with_replacement(values, 4):
        errors = {
            tuple(np.bincount(np.array(y), minlength=workload.domain.size).tolist()): error_of(workload, table, y, 4)
            for y in combinations_with_replacement(range(workload.domain.size), 2)
        }
        assert min(errors.values()) <= small_database._best(workload, 4, 2)
        law = brute_force(workload, table, 2, 4, Fraction(3))
        assert sum(p for y, p in law.items() if errors[y] > amount) <= Fraction(1, 10)


@pytest.mark.slow
def test_a_cdf_of_a_thousand_values() -> None:
    """[L3.CDF] with |D| = 1024, m = 128, n = 10^4: drawn exactly, and within the error promised."""
    workload = Workload.prefixes(Domain({"x": 1024}))
    rows = np.clip(np.random.default_rng(1).normal(500, 100, 10_000), 0, 1023).astype(np.int64)
    made = SmallDatabase.for_guarantee(dp.Pure(epsilon=1), workload=workload, size=10_000, rows=128)
    drawn = dp.release(rows, made).value
    assert drawn.sum() == 128
    assert np.abs(made.answers(drawn) - workload.answers(rows)).max() < 400 < float(made.error(0.95))
    paths = Paths(workload.answers(rows), 128, 10_000)
    parts = blocks(paths, 1 / 256)
    for start, end, count in parts[:: len(parts) // 4]:
        found = [paths.nth(index, start, end) for index in (0, count // 3, count // 3 + 1, count - 1)]
        assert len(set(map(tuple, found))) == min(4, count)
        assert all(start <= paths.error_of(path) < end and sorted(path) == path for path in found)
    assert sum(count for *_, count in parts) == math.comb(1024 + 127, 128)
    upper, lower = (
        sum(math.exp(math.log(count) - at / 256 - 300) for at, count in ends)
        for ends in ([(start, count) for start, _, count in parts], [(end - 1, count) for _, end, count in parts])
    )
    assert upper <= 4.001 * lower  # so at least one try in four is kept
    assert len(parts) < 100


def test_rows_are_chosen_for_the_least_error_and_taught_ones_as_taught() -> None:
    """[L3.CQ]: taught, m = ⌈2·ln(2|C|)/α²⌉ rows and n ≥ (4/(αε))·ln(|D|^m/β)."""
    workload = Workload.prefixes(Domain({"x": 100}))
    made = SmallDatabase.for_guarantee(dp.Pure(epsilon=1), workload=workload, size=5000)
    assert made.rate == 0.5
    for rows in (made.rows - 1, made.rows + 1):
        assert float(SmallDatabase(workload=workload, size=5000, rows=rows, rate=0.5).error(0.95)) >= float(
            made.error(0.95)
        )
    alpha = taught_accuracy(workload, 10**6, 1)
    m = taught_rows(workload, alpha)
    assert m == math.ceil(2 * math.log(200) / alpha**2)
    assert 4 / alpha * (m * math.log(100) + math.log(20)) <= 10**6
    less = alpha * 0.999
    assert 4 / less * (taught_rows(workload, less) * math.log(100) + math.log(20)) > 10**6
    taught = SmallDatabase.for_guarantee(
        dp.Pure(epsilon=1), workload=Workload.prefixes(Domain({"x": 4})), size=10**5, calibration="taught"
    )
    assert taught.rows == taught_rows(taught.workload, taught_accuracy(taught.workload, 10**5, 1))
    assert float(taught.error(0.95)) < 10**5 * taught_accuracy(taught.workload, 10**5, 1)
    with refuses(dp.InvalidArgument, "formula-does-not-apply"):
        taught_accuracy(workload, 100, 1)


def test_calibration() -> None:
    promises = (dp.Pure(epsilon=1), dp.Approx(epsilon=1, delta=1e-6), dp.ZeroConcentrated(rho=0.1))
    for promise in promises:
        for unit in (ROW, REPLACED, dp.person("id")):
            made = SmallDatabase.for_guarantee(promise, workload=FIVE, size=100, unit=unit, rows_per_person=2)
            claim = made.guarantee(made.sensitivity(unit, 2))
            assert claim.protects == unit
            if isinstance(promise, dp.Approx):
                assert claim.delta_at(epsilon=1) <= promise.delta
                assert float(made.rate) >= 0.2499
            else:
                assert claim.rho() == pytest.approx(0.1, rel=1e-6)
    within = SmallDatabase.for_error(40, workload=FIVE, size=1000, confidence=0.9)
    assert 39.9 < float(within.error(0.9)) <= 40
    with refuses(dp.InvalidArgument, "error-out-of-reach"):
        SmallDatabase.for_error(1, workload=FIVE, size=10**6, rows=3)


def test_edges() -> None:
    one = Workload.prefixes(Domain({"x": ("only",)}))
    assert dp.release([], SmallDatabase(workload=one, size=3, rows=2, rate=1)).value.tolist() == [2]
    with testing.no_noise():
        made = SmallDatabase(workload=FIVE, size=4, rows=4, rate=1)
        assert dp.release([1, 1, 3, 3], made).value.tolist() == [0, 2, 0, 2, 0]
        assert made.answers([0, 2, 0, 2, 0]).tolist() == [0, 2, 2, 4, 4]
        listed = SmallDatabase(workload=PAIRS, size=2, rows=2, rate=1)
        assert listed.answers(dp.release([(0, 1), (1, 1)], listed).value).tolist() == [1, 1, 0, 2]


def test_a_ledger_keeps_what_was_drawn() -> None:
    ledger = dp.Ledger.open(":memory:", protects=ROW, limit=dp.Pure(epsilon=2))
    made = SmallDatabase(workload=FIVE, size=4, rows=2, rate=0.5)
    first = dp.release([1, 2, 3], made, ledger=ledger, key="again")
    again = dp.release([1, 2, 3], made, ledger=ledger, key="again")
    assert again.replayed
    assert again.value.tolist() == first.value.tolist()
    assert len(ledger.entries()) == 1
    assert "every value" in str(first.error(0.9))


WIDE = Workload.marginals(Domain({f"c{i}": 2 for i in range(12)}), 2)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: SmallDatabase(workload="x", size=4, rows=2, rate=1),
        lambda: SmallDatabase(workload=FIVE, size=0, rows=2, rate=1),
        lambda: SmallDatabase(workload=FIVE, size=4, rows=0, rate=1),
        lambda: SmallDatabase(workload=FIVE, size=4, rows=2, rate=0),
        lambda: SmallDatabase(workload=FIVE, size=4, rows=2, rate=float("nan")),
        lambda: SmallDatabase(workload=WIDE, size=4, rows=20, rate=1),
        lambda: SmallDatabase(workload=Workload.prefixes(Domain({"x": 10**6})), size=4, rows=2000, rate=1),
        lambda: SmallDatabase.for_guarantee(dp.GaussianTradeoff(mu=1), workload=FIVE, size=4),
        lambda: SmallDatabase.for_guarantee(dp.ZeroConcentrated(rho=1), workload=FIVE, size=4, calibration="taught"),
        lambda: SmallDatabase(workload=FIVE, size=4, rows=2, rate=1).error(1),
        lambda: dp.release(np.full((1, 3), "secret"), SmallDatabase(workload=PAIRS, size=4, rows=2, rate=1)),
    ],
)
def test_bad_input(bad: Any) -> None:
    with pytest.raises((dp.InvalidArgument, dp.errors.IncompatibleGuarantee)) as caught:
        bad()
    assert "secret" not in str(caught.value)


def test_a_refusal_says_why_and_what_to_do() -> None:
    with refuses(dp.InvalidArgument, "too-large"):
        SmallDatabase(workload=WIDE, size=4, rows=20, rate=1)
    with refuses(dp.InvalidArgument, "too-large"):
        SmallDatabase(workload=Workload.prefixes(Domain({"x": 10**6})), size=4, rows=2000, rate=1)

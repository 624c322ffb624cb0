"""Criteria of synthetic tables: how far one row moves each, by enumeration; and rows that are replaced."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.synthetic import acceptance as acceptances
from discreet.synthetic.acceptance import Acceptance
from discreet.synthetic.criteria import (
    STEPS,
    Made,
    MarginalError,
    MeanError,
    RelativeError,
    SlopeError,
    Unmatched,
    count_cells,
)
from discreet.synthetic.refit import drawn_cells, refit

from ..refusing import refuses

SHAPE = (3, 2, 2)
CELLS = [np.array(one) for one in itertools.product(*map(range, SHAPE))]
NUMBERS = (1.0, 4.0), (0.0, 10.0), (-1.0, 0.0, 5.0)
CRITERIA: dict[str, Any] = {
    "marginals of one": MarginalError(ways=1, at_most=0.1),
    "marginals of two": MarginalError(ways=2, at_most=0.1),
    "relative": RelativeError(at_least=2, at_most=0.1),
    "means": MeanError(of=1, by=0, values=NUMBERS[0], at_least=1, at_most=0.1),
    "means of few": MeanError(of=2, by=1, values=NUMBERS[1], at_least=3, at_most=0.1),
    "slopes": SlopeError(of=0, on=(1, 2), values=(NUMBERS[2], NUMBERS[0], NUMBERS[1]), at_most=0.1),
    "unmatched": Unmatched(columns=(0, 1, 2), joined=(1, 1, 1), at_most=0.1),
    "unmatched, joined": Unmatched(columns=(0, 2), joined=(2, 1), at_most=0.1),
}


def tables() -> list[np.ndarray[Any, Any]]:
    """Tables of few rows, with every cell in some of them."""
    rng = np.random.default_rng(1)
    drawn = [rng.integers(0, SHAPE, (size, 3)) for size in (1, 2, 3, 5, 8) for _ in range(3)]
    return [np.zeros((0, 3), dtype=np.int64), *drawn]


MADE = [Made(rows, SHAPE, total) for rows in tables()[1:] for total in (1.0, 4.3, 9.0)]


def most_moved(criterion: Any, *, replaced: bool) -> int:
    """The largest change of a measurement by one row, over many tables, all rows, and many synthetic tables."""
    worst = 0
    for made in MADE[::5]:
        for rows in tables()[::3]:
            before = criterion.measure(rows, made)
            if replaced and len(rows):
                others = [np.vstack([rows[1:], one[None]]) for one in CELLS]
            elif not replaced:
                others = [np.vstack([rows, one[None]]) for one in CELLS]
            else:
                others = []
            worst = max([worst, *(abs(criterion.measure(other, made) - before) for other in others)])
    return worst


@pytest.mark.some_quick(5)
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("name", CRITERIA)
def test_one_row_moves_a_measurement_by_no_more_than_is_stated(name: str, replaced: bool) -> None:
    criterion = CRITERIA[name]
    stated = criterion.moved(replaced=replaced)
    found = most_moved(criterion, replaced=replaced)
    assert found <= stated
    assert found >= stated / 4, "the bound is far too large, or the test is blind"


@pytest.mark.parametrize("name", ["marginals of one", "unmatched", "means", "slopes"])
def test_a_bound_that_is_too_small_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant states a fourth of what a replaced row moves."""
    criterion, whole = CRITERIA[name], CRITERIA[name].moved(replaced=True)
    monkeypatch.setattr(type(criterion), "moved", lambda self, *, replaced: whole / 4)
    assert most_moved(criterion, replaced=True) > criterion.moved(replaced=True)


def test_a_part_that_is_not_cut_off_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant does not cut off the part of a row in a slope that no synthetic row is like."""
    criterion = CRITERIA["slopes"]
    monkeypatch.setattr(np, "clip", lambda values, low, high: np.asarray(values))
    assert most_moved(criterion, replaced=False) > criterion.moved(replaced=False)


def test_values_are_errors_in_the_units_of_their_limits() -> None:
    rng = np.random.default_rng(2)
    true = rng.integers(0, SHAPE, (4000, 3))
    made = Made(np.vstack([true, true[:400]]), SHAPE, 4400.0)
    same = Made(true, SHAPE, 4000.0)
    for criterion in CRITERIA.values():
        assert criterion.measure(true, same) * criterion.unit(same) < 0.01
    shares = MarginalError(ways=1, at_most=1)
    far = max(
        np.abs(count_cells(true, (one,), SHAPE) - count_cells(made.codes, (one,), SHAPE)).max() for one in range(3)
    )
    assert shares.measure(true, made) * shares.unit(made) == pytest.approx(far / 4400)
    whole = Unmatched(columns=(0, 1, 2), joined=(1, 1, 1), at_most=1)
    assert whole.measure(true, made) * whole.unit(made) == pytest.approx(400 / 8800)


def test_the_error_of_a_mean_and_of_a_slope() -> None:
    rng = np.random.default_rng(3)
    group, value = rng.integers(0, 3, 20_000), rng.integers(0, 2, 20_000)
    true = np.stack([group, value, value], axis=1)
    moved = np.where((group == 1) & (rng.random(20_000) < 0.1), 1, value)
    made = Made(np.stack([group, moved, value], axis=1), SHAPE, 20_000.0)
    mean = MeanError(of=1, by=0, values=(1.0, 4.0), at_least=1000, at_most=1)
    error = abs(4 * value[group == 1].mean() - 4 * moved[group == 1].mean()) * 3 / 4
    assert mean.measure(true, made) * mean.unit(made) == pytest.approx(error, rel=0.01)
    slope = SlopeError(of=1, on=(2,), values=((1.0, 4.0), (0.0, 1.0)), at_most=1)
    exact = [np.polyfit(value, 1 + 3 * column, 1)[0] for column in (value, moved)]
    assert slope.measure(true, made) * slope.unit(made) == pytest.approx(abs(exact[0] - exact[1]), rel=0.05)


# --- rows that are replaced -------------------------------------------------------------------------------------


NAMES = ("a", "b", "c")
NEVER = (((0, (0,)), (1, (1,))),)


@pytest.mark.parametrize("at_least", [1, 2, 3])
def test_no_row_is_alone_or_impossible(at_least: int) -> None:
    rng = np.random.default_rng(4)
    judge = Acceptance(names=NAMES, shape=(6, 5, 4), never=(((0, (0, 1)), (2, (3,))),), at_least=at_least)
    for size in (1, 2, 7, 50, 400):
        rows = rng.integers(0, (6, 5, 4), (size, 3))
        found = judge.repaired(rows)
        assert not judge.impossible(found).any()
        if not judge.impossible(rows).all():
            assert len(found) == size
            assert judge.rarest(found) >= min(at_least, size)
    assert len(judge.repaired(np.zeros((0, 3), dtype=np.int64))) == 0
    assert len(judge.repaired(np.array([[0, 0, 3]] * 4))) == 0


def test_counts_stay_when_rare_rows_are_joined() -> None:
    rng = np.random.default_rng(5)
    shape = (12, 10, 10)
    rows = np.stack([rng.integers(0, 12, 5000), *(rng.binomial(9, 0.5, 5000) for _ in range(2))], axis=1)
    found = Acceptance(names=NAMES, shape=shape, at_least=2).repaired(rows)
    for column in range(3):
        apart = np.abs(count_cells(rows, (column,), shape) - count_cells(found, (column,), shape))
        assert apart.max() < 60


def synthetic(rows: Any, shape: tuple[int, ...], **options: Any) -> Any:
    domain = dp.queries.Domain(dict(zip(NAMES, shape, strict=True)))
    made = dp.synthetic.Synthesis.for_guarantee(dp.ZeroConcentrated(rho=0.5), domain=domain, **options)
    return dp.release(rows, made, sensitivity=1).value


def test_a_refit_is_nearer_to_the_noisy_counts_and_has_no_impossible_row() -> None:
    rng = np.random.default_rng(6)
    first = rng.binomial(5, 0.4, 3000)
    rows = np.stack([first, np.clip(first + rng.integers(-1, 2, 3000), 0, 4), rng.integers(0, 3, 3000)], axis=1)
    shape = (6, 5, 3)
    drawn = synthetic(rows, shape, rounds=3)
    judge = Acceptance(names=NAMES, shape=shape, never=(((0, (0,)), (1, (3, 4))),), at_least=2)
    finished = judge.finish(drawn)
    codes = finished["rows"].astype(np.int64)
    assert len(codes) == len(drawn["rows"])
    assert finished["rows"].dtype == np.uint8
    assert not judge.impossible(codes).any()
    assert judge.rarest(codes) >= 2
    scale = drawn["total"] / len(codes)
    off = np.abs(count_cells(rows, (0, 1), shape) - scale * count_cells(codes, (0, 1), shape)).max()
    assert off < 40
    law = refit(drawn, NAMES)
    assert law is not None
    assert law.sum() == pytest.approx(1)
    assert abs(len(drawn_cells(law, 100)) - 100) == 0


def test_a_table_that_is_too_large_keeps_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.synthetic.refit.MOST_CELLS", 2)
    monkeypatch.setattr(acceptances, "MOST_CELLS", 2)
    drawn = synthetic(np.zeros((50, 3), dtype=np.int64), (2, 2, 2), rounds=0)
    judge = Acceptance(names=NAMES, shape=(2, 2, 2), never=NEVER)
    found = judge.finish(drawn)["rows"].astype(np.int64)
    assert not judge.impossible(found).any()
    assert refit(drawn, NAMES) is None


def test_refusals() -> None:
    with refuses(dp.InvalidArgument, "empty"):
        Acceptance(names=NAMES, shape=SHAPE, never=((),))
    with refuses(dp.InvalidArgument, "too-few-choices"):
        MeanError(of=0, by=1, values=(1.0, 1.0), at_least=1, at_most=1)
    with refuses(dp.InvalidArgument, "wrong-shape"):
        SlopeError(of=0, on=(), values=((1.0, 2.0),), at_most=1)
    with refuses(dp.InvalidArgument, "empty"):
        Unmatched(columns=(), joined=(), at_most=1)
    assert CRITERIA["means"].moved(replaced=True) == 2 * STEPS

"""Wide rows as small integers: a row adds its own part, at most the clip, and no product leaves what floats hold."""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.rows.gradients import coarse_rows as module
from discreet.rows.gradients import unit_rows
from discreet.rows.gradients.coarse_rows import CoarseRows
from discreet.rows.gradients.examples import Examples, unit_of
from discreet.rows.gradients.losses import Softmax
from discreet.rows.gradients.unit_rows import UnitRows, unit_length

from ..refusing import refuses

COLUMNS, CLASSES = 300, 4
LOSS = Softmax(CLASSES)


def data(count: int, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    rows = unit_length(rng.standard_normal((count, COLUMNS)) * rng.exponential(1, (count, COLUMNS)) + 1)
    return rows, rng.integers(0, CLASSES, count).astype(float), rng.standard_normal((CLASSES, COLUMNS + 1)) * 2


def made(rows: Any, goal: Any, scale: float = 3.0) -> CoarseRows:
    return CoarseRows(rows, goal, np.full(rows.shape[1], 0.04), scale)


# --- the checks -----------------------------------------------------------------------------------------------


def a_sum_is_that_of_its_rows() -> None:
    """To the last bit, in any order and for any division among blocks and threads."""
    rows, goal, weights = data(230)
    together = made(rows, goal).sums(weights, LOSS, 0.5)
    assert together.dtype == np.int64
    alone = [made(rows[i : i + 1], goal[i : i + 1]).sums(weights, LOSS, 0.5) for i in range(len(rows))]
    assert (sum(alone, start=np.zeros_like(together)) == together).all(), "a row depends on others"
    order = np.random.default_rng(1).permutation(len(rows))
    assert (made(rows[order], goal[order]).sums(weights, LOSS, 0.5) == together).all(), "the order counts"


def no_row_passes_the_clip() -> None:
    """In exact arithmetic, with long rows and short ones, for clips of any digits and many classes."""
    for classes, clip in ((2, 0.5), (4, 0.7), (10, 0.999), (40, 0.3)):
        rng, most = np.random.default_rng(classes), (Fraction(str(clip)) / unit_of(clip)) ** 2
        rows = unit_length(np.vstack([rng.standard_normal((12, COLUMNS)), np.eye(5, COLUMNS), np.zeros((1, COLUMNS))]))
        largest = 0.0
        for scale in (64.0, 0.01, 1.0):
            weights = rng.standard_normal((classes, COLUMNS + 1)) * 20
            for i in range(len(rows)):
                one = CoarseRows(rows[i : i + 1], np.array([i % classes + 0.0]), np.zeros(COLUMNS), scale)
                squared = sum(int(x) ** 2 for x in one.sums(weights, Softmax(classes), clip).ravel())
                assert squared <= most, "a row passes the clip"
                largest = max(largest, float(squared / most))
        assert largest > 0.95  # and the clip binds


def sums_of_the_longest_rows_are_exact() -> None:
    """Rows that are alike and at the clip, nearly in one coordinate: 2,000 of them add 2,000 times as much as one."""
    rows, goal = np.zeros((2000, COLUMNS), np.float32), np.zeros(2000)
    rows[:, 7:9] = 0.999, 0.0447  # an odd number of units: no product has zeros in its last bits
    weights = np.zeros((CLASSES, COLUMNS + 1))
    weights[:, 7] = [-40.0, 7.123, 39.9, 0.01]
    for clip in (0.5, 0.7, 0.7072, 0.999, 1.0):
        whole = CoarseRows(rows, goal, np.zeros(COLUMNS), 64.0).sums(weights, LOSS, clip)
        one = CoarseRows(rows[:1], goal[:1], np.zeros(COLUMNS), 64.0).sums(weights, LOSS, clip)
        assert (whole == 2000 * one).all(), "a sum was rounded"


def scores_are_exact() -> None:
    """No partial sum of a score exceeds 2^24, by the norms of both, whatever the weights and the width."""
    rng = np.random.default_rng(3)
    for columns in (256, 3969, 2**17):
        longest = 2**10 + math.sqrt(columns) / 2
        for size in (1e-100, 1e-5, 1.0, 1e100, 1e140):
            few = np.zeros(columns)
            few[3] = -size
            weights = np.stack([rng.standard_normal(columns) * size, few, np.full(columns, size), np.zeros(columns)])
            whole, worth = module._small_integers(weights)
            near = np.abs(whole * worth[:, None] - weights).max()
            lengths = [math.isqrt(int((row * row).sum()) + 1) + 1 for row in whole.astype(np.int64)]
            assert max(lengths) * longest <= 2**24, "a score may be rounded"
            assert near < 0.06 * size


CHECKS: list[Callable[[], None]] = [
    a_sum_is_that_of_its_rows,
    no_row_passes_the_clip,
    sums_of_the_longest_rows_are_exact,
    scores_are_exact,
]


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_is_wrong(check: Callable[[], None]) -> None:
    check()


# --- what it is -----------------------------------------------------------------------------------------------


def test_it_is_the_gradient() -> None:
    """That of rows in double precision, up to a hundredth."""
    rows, goal, weights = data(2000)
    found = made(rows, goal, 64.0).sums(weights, LOSS, 0.5).astype(float)
    known = Examples(rows, goal, offset=np.full(COLUMNS, 0.04), scale=np.full(COLUMNS, 64.0)).sums(weights, LOSS, 0.5)
    assert np.linalg.norm(found - known.astype(float)) < 0.01 * np.linalg.norm(known.astype(float))


def test_blocks_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, goal, weights = data(500)
    known = made(rows, goal).sums(weights, LOSS, 0.7)
    for threads, together in ((1, 1024), (3, 64), (7, 5)):
        monkeypatch.setattr(module.os, "cpu_count", lambda threads=threads: threads)
        monkeypatch.setattr(module, "_TOGETHER", together)
        assert (made(rows, goal).sums(weights, LOSS, 0.7) == known).all()


def test_more_rows_than_machine_integers_hold_are_added_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, goal, weights = data(50)
    known = made(rows, goal).sums(weights, LOSS, 0.7)
    wide = Examples(rows, goal).sums(weights, LOSS, 0.7)
    monkeypatch.setattr(module, "MACHINE_ROWS", 49)
    monkeypatch.setattr("discreet.rows.gradients.examples.MACHINE_ROWS", 49)
    found = made(rows, goal).sums(weights, LOSS, 0.7)
    assert found.dtype == object
    assert (found == known).all()
    assert Examples(rows, goal).sums(weights, LOSS, 0.7).dtype == object
    assert (Examples(rows, goal).sums(weights, LOSS, 0.7) == wide).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_rows_that_are_no_numbers_are_left_out(bad: float) -> None:
    rows, goal, weights = data(20)
    known = made(rows, goal).sums(weights, LOSS, 1)
    more = np.vstack([rows, rows[:1]])
    assert (made(more, np.append(goal, np.nan)).sums(weights, LOSS, 1) == known).all()
    more[-1, 3] = bad
    found = made(more, np.append(goal, 1.0)).sums(weights, LOSS, 1)
    assert (found == known).all() if not np.isfinite(bad) else (found != known).any()
    assert made(rows[:0], goal[:0]).sums(weights, LOSS, 1).tolist() == np.zeros_like(known).tolist()


@pytest.mark.parametrize("size", [0.0, 1e100, 2.0**399, 1e306])
def test_huge_weights_leave_sums_exact(size: float) -> None:
    rows, goal, weights = data(30)
    known = made(rows[1:], goal[1:]).sums(weights * size, LOSS, 1)
    one = made(rows[:1], goal[:1]).sums(weights * size, LOSS, 1)
    assert (made(rows, goal).sums(weights * size, LOSS, 1) == known + one).all()


def test_wide_rows_are_coarse_where_products_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, goal, _ = data(9)
    assert isinstance(UnitRows(rows, goal).less(np.zeros(COLUMNS), 1.0), CoarseRows)
    assert isinstance(UnitRows(rows[:, :99], goal).less(np.zeros(99), 1.0), Examples)
    monkeypatch.setattr(module, "_products_are_exact", lambda: False)
    assert isinstance(UnitRows(rows, goal).less(np.zeros(COLUMNS), 1.0), Examples)


class Fewer(np.ndarray):
    """Floats whose products keep 16 bits, as a library can be set to do."""

    def __matmul__(self, other: Any) -> Any:
        exact = self.view(np.ndarray) @ np.asarray(other)
        return exact if exact.dtype.kind == "i" else np.rint(exact / 2**8) * 2**8


class OtherOrder(np.ndarray):
    """Floats whose products are added by columns with an even place first, as some processors do."""

    def __matmul__(self, other: Any) -> Any:
        one, two = self.view(np.ndarray), np.asarray(other)
        return one[:, ::2] @ two[::2] + one[:, 1::2] @ two[1::2]


@pytest.mark.parametrize(("kind", "exact"), [(Fewer, False), (OtherOrder, True)])
def test_products_of_fewer_bits_are_noticed(monkeypatch: pytest.MonkeyPatch, kind: type, exact: bool) -> None:
    module._products_are_exact.cache_clear()
    assert module._products_are_exact()
    honest = np.where
    monkeypatch.setattr(module.np, "where", lambda *given: honest(*given).view(kind))
    assert module._products_are_exact.__wrapped__() is exact


class Elsewhere(np.ndarray):
    """An array that says it lives on a device: the code for devices, without one."""

    def get(self) -> Any:
        """A copy here."""
        return self.view(np.ndarray).copy()


Elsewhere.__module__ = "cupy.core"


def test_rows_on_a_device_stay_there_and_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", np)
    rng = np.random.default_rng(4)
    plain, goal = rng.standard_normal((40, COLUMNS)), rng.integers(0, 3, 40).astype(float)
    plain[3, 4], goal[7] = np.nan, np.nan
    here, there = unit_length(plain), unit_length(plain.view(Elsewhere))
    assert (here == there).all()
    known, found = UnitRows(here, goal), UnitRows(there.view(Elsewhere), goal)
    assert (known.total() == found.total()).all()
    assert isinstance(found.less(np.zeros(COLUMNS), 2.0), Examples)
    assert unit_rows.is_numpy(here)


def test_rows_do_not_travel() -> None:
    rows, goal, _ = data(3)
    assert repr(made(rows, goal)) == "<CoarseRows of 300 features>"
    with refuses(InvalidArgument, "not-pickled"):
        pickle.dumps(made(rows, goal))
    with refuses(InvalidArgument, "wrong-shape"):
        made(rows, goal[1:])


# --- the bugs -------------------------------------------------------------------------------------------------


def change(patch: pytest.MonkeyPatch, name: str, by: float) -> None:
    """Multiply one number of a step."""
    honest = module._Step.__init__

    def wrong(self: Any, *given: Any) -> None:
        honest(self, *given)
        setattr(self, name, type(getattr(self, name))(getattr(self, name) * by))

    patch.setattr(module._Step, "__init__", wrong)


def slopes_rounded_past_the_clip(patch: pytest.MonkeyPatch) -> None:
    change(patch, "rounding", 0)


def a_larger_clip(patch: pytest.MonkeyPatch) -> None:
    change(patch, "clip", 1.1)


def too_many_rows_together(patch: pytest.MonkeyPatch) -> None:
    change(patch, "together", 4)


def weights_too_fine(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "_WHOLE", 26)


def the_constant_is_not_in_the_norm(patch: pytest.MonkeyPatch) -> None:
    honest = CoarseRows._whole

    def wrong(self: Any, *given: Any) -> Any:
        rows, worth, inverse = honest(self, *given)
        return rows, worth, np.where(inverse > 0, 1.0, 0.0)

    patch.setattr(CoarseRows, "_whole", wrong)


def norms_of_all_rows_together(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "_squares", lambda whole: np.full(len(whole), (whole * whole).sum(1).mean()))


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (slopes_rounded_past_the_clip, no_row_passes_the_clip),
        (a_larger_clip, no_row_passes_the_clip),
        (too_many_rows_together, sums_of_the_longest_rows_are_exact),
        (weights_too_fine, scores_are_exact),
        (the_constant_is_not_in_the_norm, no_row_passes_the_clip),
        (norms_of_all_rows_together, a_sum_is_that_of_its_rows),
    ],
    ids=lambda one: one.__name__,
)
def test_a_seeded_bug_is_seen(
    plant: Callable[[pytest.MonkeyPatch], None], check: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check()

"""Fused sums of gradients: no row passes the clip, whatever is rounded, and every row adds its own integers."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.errors import InvalidArgument, MissingExtra
from discreet.exact.rational import sqrt_up
from discreet.rows.gradients import kernels
from discreet.rows.gradients.examples import unit_of
from discreet.rows.gradients.kernels import BITS, LOSSES, MOST_COLUMNS, FusedPass, cut_at, unit_for

from ..refusing import refuses

CLIP = 2**BITS
SHAPES = {
    "huber": {"threshold": 0.5},
    "huber_hinge": {"smoothing": 0.5},
    "pinball": {"quantile": 0.3, "smoothing": 0.2},
    "poisson": {"most": 4},
}
f32 = np.float32


# --- the cut: what rounding can do, exactly and by brute force ---------------------------------------------


def within(columns: int, cut: float, clip: Fraction | int = CLIP) -> bool:
    """Whether the bound in the module's docstring stays within the clip: exact arithmetic, squared to be rational."""
    e, p = Fraction(1, 2**24), Fraction(1, 2**22)
    grown = (Fraction(cut) * (1 + e) ** 3 * (1 + p) / (1 - p)) ** 2 / (1 - e) ** (columns + 5)
    return grown <= (clip - sqrt_up(Fraction(columns + 1)) / 2 - Fraction(1, 2**85)) ** 2


@pytest.mark.slow
def test_the_cut_leaves_room_for_every_rounding() -> None:
    for columns in range(1, MOST_COLUMNS + 1):
        assert within(columns, cut_at(columns))
        assert cut_at(columns) == float(f32(cut_at(columns)))
        assert 1 - cut_at(columns) / CLIP < 1e-4, "more than a ten-thousandth of the clip is given away"


@pytest.mark.parametrize("clip", [0.7071, 1.0, 1.5, 3])
def test_a_clip_is_so_many_powers_of_two(clip: float) -> None:
    exact = Fraction(str(clip))
    units = exact / unit_for(exact)
    assert 2 ** (BITS - 1) < units <= 2**BITS
    assert (unit_for(exact) / unit_of(clip)).denominator == 1
    for columns in (1, 3, 128, 777, MOST_COLUMNS):
        assert within(columns, cut_at(columns, units), units)


def test_a_cut_without_that_room_is_caught() -> None:
    assert not within(128, CLIP)
    assert not within(128, CLIP - 129**0.5 / 2)


@pytest.mark.parametrize("columns", [0, MOST_COLUMNS + 1])
def test_the_cut_knows_its_limits(columns: int) -> None:
    with refuses(InvalidArgument, "out-of-range"):
        cut_at(columns)


def hard_rows(columns: int, count: int, seed: int = 0) -> NDArray[np.float32]:
    """Rows of equal numbers, of one number, of a few; at the feature norm 1; tiny, huge and subnormal ones."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, columns))
    rows[::3] = np.sign(rows[::3])
    rows[1::7, 1:] = 0
    few = rng.integers(1, columns + 1, count)
    rows[::5] *= np.arange(columns) < few[::5, None]
    lengths = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    rows /= np.where(lengths > 0, lengths, 1)
    scale = 10.0 ** rng.uniform(-45, 18.9, (count, 1))
    scale[::2] = 1 + rng.integers(-8, 9, (count, 1))[::2] * 2.0**-24
    return np.asarray(rows * scale, f32)


def integers(
    x: NDArray[np.float32],
    r: NDArray[np.float32],
    *,
    cut: float,
    intercept: bool,
    off: tuple[float, float] = (0, 0),
    tiny: float = 2.0**-100,
) -> NDArray[np.int64]:
    """A row's integers as the kernel takes them, in float32, at feature norm 1 and slope r·unit.

    `off` is how far each `rsqrt` errs, and the squares are added one by one, the worst order there is.
    """
    with np.errstate(all="ignore"):
        total = np.zeros(len(x), f32)
        for column in x.T:
            total = np.asarray(total.astype(np.float64) + column.astype(np.float64) ** 2, f32)
        S = total + f32(tiny)
        rs = f32(1 / np.sqrt(S.astype(np.float64)) * (1 + off[0]))
        t, g = np.minimum(rs, f32(1)), np.minimum(S * rs, f32(1))
        size2 = g * g + f32(intercept)
        edge = f32(cut) * f32(1 / np.sqrt(size2.astype(np.float64)) * (1 + off[1]))
        s0 = np.where(np.isfinite(S), np.clip(r, -edge, edge), f32(0))
        s = t * s0
        parts = np.rint(s[:, None].astype(np.float64) * np.where(np.isfinite(S)[:, None], x, 0).astype(np.float64))
        return np.column_stack([parts, np.rint(s0.astype(np.float64)) * intercept]).astype(np.int64)


OFF = 2**-22.9


@pytest.mark.parametrize("columns", [1, 3, 100, 128, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("intercept", [True, False])
def test_no_row_passes_the_clip_when_everything_errs(columns: int, intercept: bool) -> None:
    x = hard_rows(columns, 4000)
    r = f32(10.0 ** np.random.default_rng(1).uniform(-3, 38, len(x)))
    longest = 0
    for off in [(a, b) for a in (-OFF, 0, OFF) for b in (-OFF, 0, OFF)]:
        q = integers(x, r, cut=cut_at(columns), intercept=intercept, off=off)
        longest = max(longest, int((q * q).sum(axis=1).max()))
    assert 0.9998 * CLIP**2 < longest <= CLIP**2


def test_without_the_room_a_row_would_pass() -> None:
    x, r = hard_rows(128, 4000), np.full(4000, 1e30, f32)
    q = integers(x, r, cut=CLIP, intercept=False, off=(OFF, OFF))
    assert (q * q).sum(axis=1).max() > CLIP**2


def test_without_the_constant_a_tiny_row_would_pass() -> None:
    """The squares of 4.5e-23 lose a third to underflow, and the row's size would with them."""
    x, r = np.full((1, 128), 4.5e-23, f32), np.full(1, 1e35, f32)
    kept = integers(x, r, cut=cut_at(128), intercept=False)
    assert (kept * kept).sum() <= CLIP**2
    lost = integers(x, r, cut=cut_at(128), intercept=False, tiny=0)
    assert (lost * lost).sum() > 1.4 * CLIP**2


# --- what is said before a GPU is needed -------------------------------------------------------------------


def test_tiles_fit_a_processor_and_depend_on_width_and_type_alone() -> None:
    for columns in range(1, MOST_COLUMNS + 1):
        for half in (False, True):
            tile = kernels._tile(columns, half)
            assert tile.cols & (tile.cols - 1) == tile.rows & (tile.rows - 1) == 0
            assert tile.cols * (tile.chunks - 1) < columns <= tile.cols * tile.chunks
            assert tile.rows * tile.cols * tile.chunks * (2 if half else 4) * (tile.stages - 1) <= 96 * 1024


@pytest.mark.parametrize(
    ("wrong", "shape"),
    [
        ({"loss": "hinge"}, {}),
        ({"loss": "huber"}, {}),
        ({"loss": "logistic"}, {"threshold": 1}),
        ({"loss": "pinball"}, {"quantile": 1, "smoothing": 0.1}),
        ({"clip": 0}, {}),
        ({"clip": 2**41}, {}),
        ({"feature_norm": float("inf")}, {}),
    ],
)
def test_arguments_are_checked_first(wrong: dict[str, Any], shape: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        FusedPass(None, None, **({"loss": "logistic", "clip": 1, "feature_norm": 1} | wrong), **shape)


def test_it_imports_without_torch_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys; import discreet.rows.gradients.kernels; assert not {'torch', 'triton'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match="torch"):
        FusedPass(None, None, loss="logistic", clip=1, feature_norm=1)


# --- on a GPU ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch() -> Any:
    """torch, where it sees a GPU."""
    package = pytest.importorskip("torch", reason="torch is not installed: the kernel itself is not run")
    pytest.importorskip("triton", reason="Triton is not installed: the kernel itself is not run")
    if not package.cuda.is_available():
        pytest.skip("torch sees no CUDA device: the kernel itself is not run")
    return package


def test_rsqrt_is_as_good_as_the_bound_needs(torch: Any) -> None:
    """Every float from 2^-100 to the largest, against doubles."""
    import triton
    import triton.language as tl

    def roots(x_at, roots_at, SIZE: tl.constexpr):
        at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        tl.store(roots_at + at, tl.rsqrt(tl.load(x_at + at)))

    kernel, worst = triton.jit(roots), 0.0
    for exponent in range(127 - 100, 255):
        x = (torch.arange(2**23, device="cuda", dtype=torch.int32) + (exponent << 23)).view(torch.float32)
        found = torch.empty_like(x)
        kernel[(2**13,)](x, found, 2**10)
        worst = max(worst, float((found.double() * x.double().sqrt() - 1).abs().max()))
    print(f"rsqrt is off by at most {worst:.3e}, of {2**-22:.3e} allowed for")
    assert 0 < worst < 2**-22


def made(torch: Any, rows: int, columns: int, dtype: str, loss: str = "logistic") -> tuple[Any, Any, Any, float]:
    """Rows of norm about 1, targets, weights."""
    rng = np.random.default_rng(columns)
    x = torch.tensor(rng.normal(size=(rows, columns)) / columns**0.5, dtype=getattr(torch, dtype), device="cuda")
    y = rng.integers(0, 2, rows) * (2 if loss == "huber_hinge" else 1) - (loss == "huber_hinge")
    return x, torch.tensor(y, dtype=torch.float32, device="cuda"), rng.normal(size=columns), 0.1


def in_doubles(x: Any, y: Any, w: Any, b: float, loss: str, intercept: bool, clip: float, norm: float) -> Any:
    """Each row's scaled gradient in doubles, not rounded."""
    x, y, (first, *rest) = np.float64(x.float().cpu()), np.float64(y.cpu()), (*SHAPES.get(loss, {0: 0}).values(),)
    length = np.sqrt((x * x).sum(axis=1))
    t = np.minimum(1, norm / np.maximum(length, 1e-30))
    z = t * (x @ w) + b
    with np.errstate(over="ignore"):
        r = {
            "logistic": lambda: 1 / (1 + np.exp(-z)) - y,
            "squared": lambda: z - y,
            "huber": lambda: np.clip(z - y, -first, first),
            "huber_hinge": lambda: np.where(
                y * z < 1 - first, -y, np.where(y * z > 1 + first, 0, -y * (1 + first - y * z) / (2 * first))
            ),
            "pinball": lambda: np.clip((z - y) / (2 * rest[0]) + 0.5, 0, 1) - first,
            "poisson": lambda: np.minimum(np.exp(z), first) - y,
        }[loss]()
    size = np.sqrt((t * length) ** 2 + intercept)
    u = r * np.minimum(1, clip / np.maximum(np.abs(r) * size, 1e-30)) / float(unit_for(Fraction(str(clip))))
    return np.column_stack([(u * t)[:, None] * x, u * intercept])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [True, False])
def test_the_sum_is_that_of_doubles(torch: Any, loss: str, dtype: str, intercept: bool) -> None:
    x, y, w, b = made(torch, 5003, 104, dtype, loss)
    fast = FusedPass(x, y, loss=loss, clip=0.7, feature_norm=0.9, intercept=intercept, **SHAPES.get(loss, {}))
    sums, last = fast.sums(w, b)
    wanted = in_doubles(x, y, w, b, loss, intercept, 0.7, 0.9).sum(axis=0)
    # a row is off by its rounding, and by what the cut and the slope lose: some 2^-16 of its part
    assert np.abs(np.append(sums, last) - wanted).max() < 5003 * 8
    assert sums.dtype == np.int64
    assert intercept or last == 0


@pytest.mark.parametrize("columns", [1, 3, 8, 99, 100, 104, 128, 200, 257, 512, 1024])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_one_row_more_adds_its_own_integers(torch: Any, columns: int, dtype: str) -> None:
    options = {"loss": "squared", "clip": 1, "feature_norm": 1}
    x, y, w, b = made(torch, 3001, columns, dtype)

    def sums(x: Any, y: Any) -> NDArray[np.int64]:
        return np.append(*FusedPass(x.clone(), y.clone(), **options).sums(w, b))

    every, one = sums(x, y), sums(x[:1], y[:1])
    assert np.array_equal(every - sums(x[1:], y[1:]), one), "each of the others has moved by one place"
    order = torch.randperm(len(x), device="cuda")
    assert np.array_equal(sums(x[order], y[order]), every)
    halves = [sums(x[part], y[part]) for part in (slice(1700), slice(1700, None))]
    assert np.array_equal(halves[0] + halves[1], every)
    assert one.any()
    assert not sums(x[:0], y[:0]).any()


def alone(torch: Any, x: Any, y: Any, w: Any, **options: Any) -> Any:
    """Each row's own integers, from the same kernel: rows of NaN, which add nothing, fill up its tile."""
    high = kernels._tile(x.shape[1], x.dtype == torch.bfloat16).rows
    at = torch.arange(len(x), device="cuda") * high + torch.arange(len(x), device="cuda") % high
    wide = torch.full((len(x) * high, x.shape[1]), float("nan"), dtype=x.dtype, device="cuda")
    tall = torch.full((len(x) * high,), float("nan"), dtype=torch.float32, device="cuda")
    wide[at], tall[at] = x, y
    fast = FusedPass(wide, tall, **options)
    total = np.append(*fast.sums(w, 0.3))
    parts = torch.empty((len(x), x.shape[1] + 1), dtype=torch.int64, device="cuda")
    fast._launch(parts, fast.rows)
    assert np.array_equal(parts.sum(0).cpu(), total)
    return parts


@pytest.mark.parametrize("columns", [1, 100, 128, 1000])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("intercept", [True, False])
def test_no_row_passes_the_clip_on_the_gpu(torch: Any, columns: int, dtype: str, intercept: bool) -> None:
    rng = np.random.default_rng(columns)
    x = torch.tensor(hard_rows(columns, 20_000), dtype=getattr(torch, dtype), device="cuda")
    y = torch.tensor(10.0 ** rng.uniform(-3, 38, len(x)) * rng.choice([-1, 1], len(x)), device="cuda").float()
    options = {"loss": "squared", "clip": 1, "feature_norm": 1, "intercept": intercept}
    parts = alone(torch, x, y, rng.normal(size=columns), **options)
    longest = int((parts * parts).sum(1).max())
    assert 0.9998 * CLIP**2 < longest <= CLIP**2


@pytest.mark.parametrize("sign", [1, -1])
def test_an_int32_holds_the_rows_of_a_program(torch: Any, sign: int) -> None:
    """2047 turns, each row as long as can be and all the same way; one program does what many would."""
    turns, high = 2 ** (31 - BITS) - 1, kernels._tile(128, False).rows
    x = torch.zeros((turns * high, 128), device="cuda")
    x[:, 5] = 1
    y = torch.full((len(x),), sign * -1e30, device="cuda")
    fast = FusedPass(x, y, loss="squared", clip=1, feature_norm=1, intercept=False)
    sums, _ = fast.sums(np.zeros(128))
    one = torch.empty((1, 129), dtype=torch.int64, device="cuda")
    fast._launch(one, fast.rows)
    assert int(one[0, 5]) == sums[5] == sign * len(x) * round(cut_at(128))
    assert len(fast._parts) * turns * high >= fast.rows


def test_what_is_not_finite_adds_nothing(torch: Any) -> None:
    x, y, w, b = made(torch, 1000, 104, "float32")
    options = {"loss": "squared", "clip": 1, "feature_norm": 1}
    whole = FusedPass(x[7:].clone(), y[7:].clone(), **options).sums(w, b)
    nan, inf = float("nan"), float("inf")
    x[0, 3], x[1, 4], x[2, 5], x[3], y[4], y[5], y[6] = nan, inf, -inf, 2e19, nan, inf, -inf
    found = FusedPass(x, y, **options).sums(w, b)
    assert np.array_equal(found[0], whole[0])
    assert found[1] == whole[1]


def test_tensors_it_cannot_read_are_refused(torch: Any) -> None:
    x, y, w, _ = made(torch, 64, 99, "float32")
    for a, b in [(x.cpu(), y), (x.double(), y), (x.T, y), (x[1:], y[1:]), (x, y[1:]), (x, y.double()), (x[0], y)]:
        with pytest.raises(InvalidArgument):
            FusedPass(a, b, loss="logistic", clip=1, feature_norm=1)
    fast = FusedPass(x, y, loss="logistic", clip=1, feature_norm=1)
    for bad in (w[1:], np.append(w[1:], np.nan), np.append(w[1:], 1e39)):
        with pytest.raises(InvalidArgument):
            fast.sums(bad)

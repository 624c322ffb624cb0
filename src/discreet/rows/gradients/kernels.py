"""Sums of clipped gradients on a GPU: the rows are read once, and integers add up exactly.

A row x with target y moves a linear model by r·(t·x, 1): t shortens x to `feature_norm`, r is the slope of the loss at
the score t·(x·w) + b, and the last part is that of the intercept. The row is scaled to a norm below the clip, and each
coordinate is rounded to whole `unit`s, at most 2^20 per clip, before anything is added. Every row goes through the same
instructions wherever it is stored: each rounding is explicit and not left to the compiler, and the layout of rows over
threads depends only on their width and type. So the integers of a row are a function of the row and the weights, and
one more row changes the sum by exactly its own integers.

**Why no row passes the clip.** Let e = 2^-24, the rounding of a float, and p = 2^-22, the 2 ulp that NVIDIA states for
`rsqrt` (a test tries every float). For d columns, in the kernel's names and with F the feature norm:

- S is Σx² + 2^-100. A square is rounded at most d times on its way into the sum, in any order, and the whole once more;
  what underflows, below 2d·2^-126, the constant makes up for. So ‖x‖ ≤ √S·(1−e)^(−(d+1)/2).
- t = min(1, F·rs) and g = min(S·rs, F), where rs = rsqrt(S). As √S ≤ S·rs/((1−e)(1−p)) and F·rs·√S ≤ F·(1+p), t·‖x‖ is
  at most g·(1+e)/((1−e)(1−p))·(1−e)^(−(d+1)/2).
- The row's length is size, size² = (t·‖x‖)² + 1, or (t·‖x‖)² without an intercept. Taken from g instead, size² loses at
  most two more roundings; nothing underflows, as g ≥ 2^-51.
- The intercept's part s0 is cut at ±B·rsqrt(size²), a product rounded once, and s = t·s0 is rounded once more (what
  underflows there is below 2^-149, times ‖x‖ < 2^64 as S is finite).

So ‖(s·x, s0)‖ ≤ B·(1+e)³·(1+p)/(1−p)·(1−e)^(−(d+1)/2−2) + 2^-85. One `fma` multiplies by x and rounds to a whole
number: that moves each coordinate by at most ½, the row by at most √(d+1)/2. `cut_at(d)` is a B with which all this is
at most 2^20. The slope may be anything: whatever is wrong with a score, a weight or a target, the cut holds.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, no_type_check

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_positive, float_down, power_of_two_below, sqrt_up
from discreet.extras import need

BITS = 20
"""The clip is at most 2^BITS units, where a unit is a power of two. A row fits 21 bits, and 2^11 − 1 rows an int32."""
MOST_COLUMNS = 1024
LOSSES: dict[str, tuple[str, ...]] = {
    "logistic": (),
    "squared": (),
    "huber": ("threshold",),
    "huber_hinge": ("smoothing",),
    "pinball": ("quantile", "smoothing"),
    "poisson": ("most",),
}
"""The losses by name, each with its parameters. The `slope` of the kernel has their derivatives."""

_MAGIC = 1.5 * 2**23  # floats from 2^23 to 2^24 are integers: adding this rounds, and the lowest bit is worth 1
_MAGIC_BITS = 0x4B400000
_TINY = 2.0**-100
# threads per row, and the widest rows for them, in single and half precision: the fastest of those tried on an H200
_WIDEST = ({2: 16, 4: 32, 8: 256, 16: 512, 32: 1024}, {2: 32, 4: 128, 8: 256, 16: 512, 32: 1024})


def cut_at(columns: int, units: Fraction | int = 2**BITS) -> float:
    """B: the number of units at which a row is clipped, so that rounding errors cannot move it beyond `units`, the
    clip.

    Promise: it is a float32, and B·(1+e)³·(1+p)/(1−p)·(1−e)^(−(d+1)/2−2) + 2^-85 + √(d+1)/2 ≤ units for d = columns up
    to 1024 (e = 2^-24, p = 2^-22). To first order the factor is 1 + (d/2 + 13½)·e; 1 + (d + 32)·e is allowed for.

    >>> 1 - cut_at(128) / 2**BITS < 2e-5
    True
    """
    if not 1 <= columns <= MOST_COLUMNS:
        raise InvalidArgument(f"A row must have 1 to {MOST_COLUMNS} columns.", code="out-of-range")
    room = (units - sqrt_up(Fraction(columns + 1)) / 2) * (1 - Fraction(columns + 32, 2**24))
    bound = np.float32(float_down(room))
    return float(bound if Fraction(float(bound)) <= room else np.nextafter(bound, np.float32(0)))


def unit_for(clip: Fraction) -> Fraction:
    """The power of two for which the clip is more than 2^19 and at most 2^20 units."""
    below = power_of_two_below(clip)
    return (below if below == clip else 2 * below) * Fraction(1, 2**BITS)


class _Tile(NamedTuple):
    """How rows are distributed over threads."""

    cols: int
    chunks: int
    rows: int
    warps: int
    stages: int = 3


def _tile(columns: int, half: bool) -> _Tile:
    """The layout, from width and type alone: loads of 16 bytes if rows allow it, at most 2 rows and 32 numbers per
    thread.

    A row lies within one warp. Narrow rows use fewer threads, because each thread repeats the work that is done once
    per row.
    """
    lanes = next(n for n, widest in _WIDEST[half].items() if columns <= widest)
    size, warps = 2 if half else 4, 8 if columns <= 128 else 4
    cols = min(lanes * math.gcd(16, columns * size) // size, 1 << (columns - 1).bit_length())
    chunks = -(-columns // cols)
    rows = 1 << (warps * 1024 // (cols * chunks)).bit_length() - 1
    return _Tile(cols, chunks, min(rows, 64 * warps // lanes), warps)


class FusedPass:
    """Sums of clipped gradients over rows that stay on the GPU.

    `x` is a contiguous CUDA tensor of rows, float32 or bfloat16, and `y` one float32 target a row (0 or 1 for
    `"logistic"`, −1 or 1 for `"huber_hinge"`). `loss` is a name in `LOSSES`, whose parameters are keywords:
    `FusedPass(x, y, loss="huber", threshold=1, clip=1, feature_norm=1)`. With `intercept` a feature that is always 1
    counts in a row's norm. A row with a number that is not finite, or whose norm passes 2^64, adds nothing.

    Promise: one row added or removed moves (sums, sum of the intercept) by at most `clip` in L2, and by the same
    integers for any other rows. Norms are computed again in each pass.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        *,
        loss: str,
        clip: Number,
        feature_norm: Number,
        intercept: bool = True,
        **shape: Number,
    ) -> None:
        exact = _between(clip, "clip")
        self.unit = unit_for(exact)
        norm, constants = float(_between(feature_norm, "feature_norm")), _constants(loss, shape)
        torch = need("torch", "torch", "FusedPass")
        _check_rows(torch, x, y)
        self.rows, self.columns = map(int, x.shape)
        self.tile = _tile(self.columns, x.dtype == torch.bfloat16)
        self._x, self._y, self._kernel = x, y, _kernel()
        self._weights = torch.zeros(self.columns + 1, dtype=torch.float32, device=x.device)
        self._scalars = (float(1 / self.unit), cut_at(self.columns, exact / self.unit), norm, *constants)
        self._fixed = {"LOSS": loss, "INTERCEPT": bool(intercept)}
        with torch.cuda.device(x.device):
            self._prepare(torch, self._programs(torch))

    def _programs(self, torch: Any) -> int:
        """The number of programs: at least twice as many as run at once, and enough that no int32 inside one can
        overflow. At most one per tile.
        """
        card, tile = torch.cuda.get_device_properties(self._x.device), self.tile
        place = {"dtype": torch.int64, "device": self._x.device}
        made = self._launch(torch.empty((1, self.columns + 1), **place), rows=0)
        memory = getattr(card, "shared_memory_per_multiprocessor", 2**17)
        fit = min(2**16 // (32 * tile.warps * made.n_regs), memory // (made.metadata.shared + 2**10), 32)
        tiles, at_once = -(-self.rows // tile.rows), card.multi_processor_count * max(1, fit)
        waves = max(2, -(-tiles // (at_once * (2 ** (31 - BITS) - 1))))
        return int(max(1, min(tiles, at_once * waves)))

    def _prepare(self, torch: Any, programs: int) -> None:
        """Create every buffer once, and record the copies and the two kernels. A pass is then one call of the
        driver.
        """
        place = {"device": self._x.device}
        self._parts = torch.empty((programs, self.columns + 1), dtype=torch.int64, **place)
        self._total = torch.empty(self.columns + 1, dtype=torch.int64, **place)
        self._weights_here = torch.zeros(self.columns + 1, dtype=torch.float32, pin_memory=True)
        self._total_here = torch.zeros(self.columns + 1, dtype=torch.int64, pin_memory=True)
        self._torch, self._graph = torch, torch.cuda.CUDAGraph()
        self._enqueue()  # compile now, because a recording may not
        torch.cuda.synchronize()
        with torch.cuda.graph(self._graph):
            self._enqueue()

    def _enqueue(self) -> None:
        self._weights.copy_(self._weights_here, non_blocking=True)
        self._launch(self._parts, self.rows)
        self._torch.sum(self._parts, 0, out=self._total)
        self._total_here.copy_(self._total, non_blocking=True)

    def _launch(self, parts: Any, rows: int) -> Any:
        """The kernel alone: program i of len(parts) takes every tile i, i + len(parts), … and writes `parts[i]`."""
        return self._kernel[(len(parts),)](
            self._x,
            self._y,
            self._weights,
            parts,
            rows,
            *self._scalars,
            **self._fixed,
            COLUMNS=self.columns,
            COLS=self.tile.cols,
            CHUNKS=self.tile.chunks,
            ROWS=self.tile.rows,
            STAGES=self.tile.stages,
            TINY=_TINY,
            MAGIC=_MAGIC,
            MAGIC_BITS=_MAGIC_BITS,
            num_warps=self.tile.warps,
            enable_fp_fusion=False,  # each rounding is explicit, so it cannot differ between rows
        )

    def sums(self, weights: Any, intercept: float = 0.0) -> tuple[NDArray[np.int64], int]:
        """The sum of the integers of all rows at these weights, and that of the intercept (0 without one), in `unit`s.

        Only one call at a time, because the buffers are shared.
        """
        there = self._weights_here.numpy()
        with np.errstate(over="ignore"):
            there[:-1], there[-1] = _vector(weights, self.columns), float(intercept)
        if not np.isfinite(there).all():
            raise InvalidArgument("Weights must be finite float32 numbers.", code="not-a-number")
        with self._torch.cuda.device(self._x.device):
            self._graph.replay()
            self._torch.cuda.current_stream().synchronize()
        total = self._total_here.numpy().copy()
        return total[:-1], int(total[-1])


def _between(value: Number, name: str) -> Fraction:
    exact = check_positive(value, name)
    if not Fraction(1, 2**40) <= exact <= 2**40:
        raise InvalidArgument(f"{name} must lie between 2^-40 and 2^40.", code="out-of-range")
    return exact


def _constants(loss: str, shape: dict[str, Number]) -> tuple[float, float]:
    if loss not in LOSSES:
        raise InvalidArgument(f"loss must be one of {', '.join(LOSSES)}.", code="not-an-option")
    if set(shape) != set(LOSSES[loss]):
        raise InvalidArgument(
            f"The loss {loss} takes {' and '.join(LOSSES[loss]) or 'no parameter'}.", code="not-an-option"
        )
    values = [_between(shape[name], name) for name in LOSSES[loss]]
    if loss == "pinball" and values[0] >= 1:
        raise InvalidArgument("quantile must lie strictly between 0 and 1, such as 0.5.", code="out-of-range")
    first, second, *_ = (*map(float, values), 0.0, 0.0)
    return first, second


def _check_rows(torch: Any, x: Any, y: Any) -> None:
    if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and x.is_cuda and y.device == x.device):
        raise InvalidArgument("x and y must be torch tensors on one CUDA device.", code="wrong-type")
    if x.ndim != 2 or x.dtype not in (torch.float32, torch.bfloat16) or not x.is_contiguous():
        raise InvalidArgument(
            "x must be a contiguous matrix of float32 or bfloat16, one row a record.", code="wrong-type"
        )
    if not 1 <= x.shape[1] <= MOST_COLUMNS or x.shape[0] >= 2**42:
        raise InvalidArgument(f"x must have 1 to {MOST_COLUMNS} columns, and fewer than 2^42 rows.", code="wrong-shape")
    # otherwise loads would be narrower, and the sum of a row in another order
    if x.data_ptr() % 16 or y.data_ptr() % 16:
        raise InvalidArgument(
            "x and y must start at multiples of 16 bytes: pass x.clone() for a slice.", code="not-aligned"
        )
    if y.shape != x.shape[:1] or y.dtype != torch.float32 or not y.is_contiguous():
        raise InvalidArgument("y must be a contiguous vector of float32, one target a row.", code="wrong-shape")


def _vector(weights: Any, columns: int) -> NDArray[np.float64]:
    vector = np.asarray(weights, dtype=np.float64)
    if vector.shape != (columns,):
        raise InvalidArgument(f"The weights must be a vector of {columns} numbers.", code="wrong-shape")
    return vector


@cache
def _kernel() -> Any:
    """The Triton kernel. It is built when first needed, because Triton is not a dependency."""
    triton, tl = need("triton", "torch", "FusedPass"), need("triton.language", "torch", "FusedPass")

    @no_type_check
    def slope(z, y, first, second, LOSS: tl.constexpr):
        # the derivative of the loss in the score z
        if LOSS == "logistic":  # y is 0 or 1
            r = 1.0 / (1.0 + tl.exp(-z)) - y
        elif LOSS == "squared":
            r = z - y
        elif LOSS == "huber":  # linear beyond the threshold
            r = tl.minimum(tl.maximum(z - y, -first), first)
        elif LOSS == "huber_hinge":  # y of -1 or 1: -y below a margin of 1 - h, 0 above 1 + h, linear between
            r = -y * tl.minimum(tl.maximum((1.0 - y * z + first) / (2.0 * first), 0.0), 1.0)
        elif LOSS == "pinball":  # rises from -q at z = y - h to 1 - q at z = y + h
            r = tl.minimum(tl.maximum((z - y + second) / (2.0 * second), 0.0), 1.0) - first
        else:  # poisson, its rate at most `first`
            r = tl.minimum(tl.exp(z), first) - y
        return r

    slope = triton.jit(slope)

    @no_type_check
    def fused(
        x_at,
        y_at,
        weights_at,
        parts_at,
        rows,
        units,
        cut,
        norm,
        first,
        second,
        LOSS: tl.constexpr,
        INTERCEPT: tl.constexpr,
        COLUMNS: tl.constexpr,
        COLS: tl.constexpr,
        CHUNKS: tl.constexpr,
        ROWS: tl.constexpr,
        STAGES: tl.constexpr,
        TINY: tl.constexpr,
        MAGIC: tl.constexpr,
        MAGIC_BITS: tl.constexpr,
    ):
        program, programs = tl.program_id(0), tl.num_programs(0)
        row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
        w, sums = (), ()
        for c in tl.static_range(CHUNKS):
            w += (tl.load(weights_at + c * COLS + col, mask=c * COLS + col < COLUMNS, other=0.0),)
            sums += (tl.zeros((ROWS, COLS), tl.int32),)
        b = tl.load(weights_at + COLUMNS)
        sums0 = tl.zeros((ROWS,), tl.int32)
        magic = tl.full((ROWS, COLS), MAGIC, tl.float32)
        turns = tl.cdiv(tl.cdiv(rows, ROWS) - program, programs)
        for turn in tl.range(0, turns, num_stages=STAGES):
            start = (program + turn * programs).to(tl.int64) * ROWS
            there = row < rows - start
            y = tl.load(y_at + start + row, mask=there, other=0.0)
            x = ()
            for c in tl.static_range(CHUNKS):
                at = x_at + start * COLUMNS + (row[:, None] * COLUMNS + (c * COLS + col)[None, :])
                mask = there[:, None]
                if COLUMNS % COLS:
                    mask = mask & (c * COLS + col < COLUMNS)[None, :]
                x += (tl.load(at, mask=mask, other=0.0).to(tl.float32),)
            squares, products = x[0] * x[0], x[0] * w[0][None, :]
            for c in tl.static_range(1, CHUNKS):
                squares = tl.fma(x[c], x[c], squares)
                products = tl.fma(x[c], tl.broadcast_to(w[c][None, :], (ROWS, COLS)), products)
            S = tl.sum(squares, axis=1) + TINY
            rs = tl.rsqrt(S)
            t, g = tl.minimum(norm * rs, 1.0), tl.minimum(S * rs, norm)
            z = tl.fma(t, tl.sum(products, axis=1), b)
            r = slope(z, y, first, second, LOSS)
            size2 = g * g
            if INTERCEPT:
                size2 = size2 + 1.0
            edge = cut * tl.rsqrt(size2)
            good = there & (S * 0.0 == 0.0) & (y * 0.0 == 0.0) & (z == z)
            s0 = tl.where(good, tl.minimum(tl.maximum(r * units, -edge), edge), 0.0)
            s = tl.broadcast_to(tl.where(good, t * s0, 0.0)[:, None], (ROWS, COLS))
            added = ()
            for c in tl.static_range(CHUNKS):
                whole = tl.fma(s, tl.where(good[:, None], x[c], 0.0), magic)
                added += (sums[c] + whole.to(tl.int32, bitcast=True),)
            sums = added
            if INTERCEPT:
                sums0 += (s0 + MAGIC).to(tl.int32, bitcast=True)
        # the sums of bits wrapped around; after subtracting the bits of the magic number they are small and exact
        parts_at += program.to(tl.int64) * (COLUMNS + 1)
        for c in tl.static_range(CHUNKS):
            part = tl.sum((sums[c] - turns.to(tl.int32) * MAGIC_BITS).to(tl.int64), axis=0)
            tl.store(parts_at + c * COLS + col, part, mask=c * COLS + col < COLUMNS)
        if INTERCEPT:
            sums0 -= turns.to(tl.int32) * MAGIC_BITS
        tl.store(parts_at + COLUMNS, tl.sum(sums0.to(tl.int64), axis=0))

    return triton.jit(fused, do_not_specialize=["rows"])

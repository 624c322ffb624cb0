"""Clipped gradients of a linear model on a GPU: one fused pass here, beside reading the rows, two products, vmap(grad).

`python bench/gpu.py` needs torch with CUDA, and Triton; without them it says so and stops. All of a table is measured
in one run, on the same rows: 40 million of 128 normal numbers, or as many as fill a fifth of the GPU's memory.
"Reading" is the faster of torch's sum and maximum of the whole matrix. The products are X·w and Xᵀ·v in the type of X:
they clip nothing, and their sums depend on the order. `vmap(grad)` is what training with clipped gradients does
elsewhere: the gradient of each example, its norm, the clip, the sum. A step is what a training loop waits for: weights
up, the pass, integers down, exact Gaussian noise on the host, new weights.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

COLUMNS, ROWS, STEPS, EXAMPLES = 128, 40_000_000, 100, (200_000, 4_000_000)
OPTIONS: dict[str, Any] = {"loss": "logistic", "clip": 1, "feature_norm": 8}
GOAL = {"float32": 0.80, "bfloat16": 0.70}
WIDTHS = (8, 32, 100, 104, 128, 256, 512, 1024)
HARD = 1_000_000


def missing() -> str:
    for package in ("torch", "triton"):
        try:
            importlib.import_module(package)
        except ImportError:
            return f"{package} is not installed"
    import torch

    return "" if torch.cuda.is_available() else "torch sees no CUDA device"


def milliseconds(work: Callable[[], Any], repeat: int = 9) -> float:
    """The median time between two marks on the device, after two runs to warm up."""
    import torch

    spent = []
    for i in range(repeat + 2):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        work()
        last.record()
        torch.cuda.synchronize()
        if i > 1:
            spent.append(first.elapsed_time(last))
    return sorted(spent)[repeat // 2]


def data(rows: int, columns: int, dtype: str) -> tuple[Any, Any]:
    import torch

    x = torch.empty((rows, columns), dtype=getattr(torch, dtype), device="cuda")
    for part in x.split(2_000_000):
        part.normal_()
    return x, (torch.rand(rows, device="cuda") < 0.5).float()


def reading(x: Any) -> float:
    """Milliseconds to read the matrix, by torch's faster reduction."""
    import torch

    raw = x.view(torch.int32)
    return min(milliseconds(work) for work in (x.sum, raw.amax, raw.view(torch.float32).sum))


def products(x: Any, w: Any) -> float:
    weights, v = w.to(x.dtype), x[:, 0].contiguous()
    return milliseconds(lambda: x @ weights) + milliseconds(lambda: x.T @ v)


def per_example(x: Any, y: Any, w: Any, batch: int) -> float:
    """Examples a second by vmap(grad), clipped and summed, in batches of this size."""
    import torch
    from torch.func import grad, vmap

    def loss(weights: Any, row: Any, target: Any) -> Any:
        z = row @ weights[:-1] + weights[-1]
        return torch.nn.functional.softplus(z) - target * z

    x, y = x[:batch], y[:batch].to(x.dtype)
    weights = torch.cat([w, w[:1]]).to(x.dtype)
    each = vmap(grad(loss), in_dims=(None, 0, 0))

    def work() -> Any:
        rows = each(weights, x, y)
        return (1 / rows.norm(dim=1)).clamp(max=1) @ rows

    return len(x) / milliseconds(work) * 1e3


def steps(fast: Any, count: int = STEPS) -> float:
    """Seconds for a training loop of so many steps, each with noise for 4 clips drawn exactly on the host."""
    from discreet.samplers import discrete_gaussian

    variance, weights = Fraction(4**2 * 4**20), np.zeros(fast.columns + 1)
    spent = []
    for _ in range(2):
        start = time.perf_counter()
        for _ in range(count):
            sums = np.append(*fast.sums(weights[:-1], weights[-1])) + discrete_gaussian(variance, fast.columns + 1)
            weights = weights - 0.5 / max(fast.rows, 1) * float(fast.unit) * sums.astype(np.float64)
        spent.append(time.perf_counter() - start)
    return min(spent)


def passes(rows: int) -> None:
    import torch

    from discreet.queries.fused import FusedPass

    few, many = EXAMPLES
    print(
        f"{rows:,} × {COLUMNS}, logistic loss; goals: 80% of reading in float32, 70% in bfloat16; 100 steps in 0.8 s;"
    )
    print(f"35 times vmap(grad), which is given batches of {few:,} and of {many:,}")
    print(
        "           reading        fused pass                           X·w, Xᵀ·v      vmap(grad), Mrows/s        100"
    )
    print(
        "type       ms     TB/s    ms     TB/s   of reading  Grows/s    ms     ÷       few    ÷    many    ÷      steps"
    )
    for dtype in ("float32", "bfloat16"):
        x, y = data(rows, COLUMNS, dtype)
        w = torch.randn(COLUMNS, device="cuda") / COLUMNS**0.5
        fast = FusedPass(x, y, **OPTIONS)
        fast.sums(w.cpu().numpy(), 0.1)
        size = x.numel() * x.element_size() / 1e9
        read, here, plain = reading(x), milliseconds(fast._graph.replay), products(x, w)
        slow = [per_example(x, y, w, batch) / 1e6 for batch in EXAMPLES]
        beside = " ".join(f"{each:7.0f} {rows / here / each / 1e3:4.0f}×" for each in slow)
        print(
            f"{dtype:9} {read:6.3f} {size / read:6.2f} {here:8.3f} {size / here:6.2f} {read / here:9.0%} "
            f"{rows / here / 1e6:10.2f} {plain:8.2f} {plain / here:4.1f}× {beside} {steps(fast):8.3f} s",
            flush=True,
        )
        exact(x, y, w.cpu().numpy())
        del x, y, fast


def exact(x: Any, y: Any, w: Any) -> None:
    """The same rows, moved: one put first, and all of them in another order."""
    import torch

    from discreet.queries.fused import FusedPass

    def sums(x: Any, y: Any) -> Any:
        return np.append(*FusedPass(x, y, **OPTIONS).sums(w, 0.1))

    every = sums(x, y)
    one_x, one_y = x[-1:].clone(), 1 - y[-1:]
    moved = sums(torch.cat([one_x, x]), torch.cat([one_y, y]))
    order = torch.randperm(len(x), device="cuda")
    mixed = sums(x[order], y[order])
    assert np.array_equal(moved - every, sums(one_x, one_y)), "a row put first changed another row's integers"
    assert np.array_equal(mixed, every), "the sum depends on the order"
    print(f"{'':9} exact: a row put first adds its {len(every)} integers and no more; a permutation changes nothing")


def hard(dtype: str, seed: int, columns: int) -> Any:
    """Rows of equal numbers, of a few, at the feature norm and far below and above it."""
    import torch

    torch.manual_seed(seed)
    rows = torch.randn((HARD, columns), device="cuda")
    rows[::3] = rows[::3].sign()
    rows[::5] *= torch.arange(columns, device="cuda") < torch.randint(
        1, columns + 1, (len(rows[::5]), 1), device="cuda"
    )
    scale = 10 ** (torch.rand((HARD, 1), device="cuda", dtype=torch.float64) * 60 - 42)
    scale[::2] = 8 * (1 + torch.randint(-8, 9, (len(scale[::2]), 1), device="cuda") * 2.0**-24)
    rows = rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-20)
    return (rows.double() * scale).to(getattr(torch, dtype))


def longest(dtype: str, seed: int, columns: int = COLUMNS) -> float:
    """The longest of a million hard rows, in clips, exactly: each lies in a tile of rows that add nothing."""
    import torch

    from discreet.queries.fused import BITS, FusedPass, _tile

    rows = hard(dtype, seed, columns)
    high = _tile(columns, dtype == "bfloat16").rows
    at = torch.arange(HARD, device="cuda") * high + torch.arange(HARD, device="cuda") % high
    x = torch.full((HARD * high, columns), float("nan"), dtype=rows.dtype, device="cuda")
    y = torch.full((HARD * high,), float("nan"), device="cuda")
    x[at], y[at] = rows, (10 ** (torch.rand(HARD, device="cuda") * 41 - 3) * torch.randn(HARD, device="cuda").sign())
    fast = FusedPass(x, y, loss="squared", clip=1, feature_norm=8, intercept=bool(seed % 2))
    fast.sums(np.ones(columns), 0.5)
    parts = torch.empty((HARD, columns + 1), dtype=torch.int64, device="cuda")
    fast._launch(parts, fast.rows)
    found = int((parts * parts).sum(1).max())
    assert found <= 4**BITS, "a row passes the clip"
    return float(found**0.5 / 2**BITS)


def widths(rows: int) -> None:
    """Other numbers of columns, at the same number of bytes; and few rows."""
    from discreet.queries.fused import FusedPass

    print(f"\nother widths, about {rows * 128 * 4 / 1e9:.0f} GB each, rows no multiple of a tile")
    print("columns    float32: TB/s   of reading   Grows/s      bfloat16: TB/s   of reading   Grows/s")
    for columns in WIDTHS:
        line = f"{columns:7}"
        for dtype, size in (("float32", 4), ("bfloat16", 2)):
            x, y = data(rows * 128 * 4 // (columns * size) - 13, columns, dtype)
            fast = FusedPass(x, y, **OPTIONS)
            fast.sums(np.ones(columns) / columns, 0.1)
            here, read = milliseconds(fast._graph.replay), reading(x)
            gigabytes = x.numel() * size / 1e9
            line += f" {gigabytes / here:15.2f} {read / here:12.0%} {len(x) / here / 1e6:9.2f}    "
            del x, y, fast
        print(line, flush=True)
    print("\nfew rows, × 128 float32: microseconds for one call of sums, round trip included")
    for few in (0, 1, 1000, 100_000, 1_000_000):
        x, y = data(few, COLUMNS, "float32")
        fast, w = FusedPass(x, y, **OPTIONS), np.ones(COLUMNS) / COLUMNS
        spent = []
        for _ in range(200):
            start = time.perf_counter()
            fast.sums(w, 0.1)
            spent.append(time.perf_counter() - start)
        print(f"{few:9,} rows {sorted(spent)[100] * 1e6:8.0f}", flush=True)


def main() -> None:
    lack = missing()
    if lack:
        print(f"{lack}: nothing is measured. This benchmark needs a GPU with CUDA, torch and Triton.")
        return
    import torch
    import triton

    from discreet.queries.fused import BITS, cut_at

    card = torch.cuda.get_device_properties(0)
    rows = min(ROWS, card.total_memory // 5 // (COLUMNS * 4))
    print(f"{card.name}, torch {torch.__version__}, Triton {triton.__version__}; medians of 9 by the device's clock")
    passes(rows)
    found = [longest(dtype, seed) for dtype in GOAL for seed in range(4)]
    print(
        f"\n{len(found) * HARD:,} hard rows (equal numbers, tiny, huge, at the feature norm; slopes to 1e38): the "
        f"longest is {max(found):.7f} clips; rows are cut at {cut_at(COLUMNS) / 2**BITS:.7f}"
    )
    widths(rows // 8)


if __name__ == "__main__":
    main()

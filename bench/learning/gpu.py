"""Clipped gradients of a linear model on a GPU: one fused pass here, beside reading the rows, two products, vmap(grad).

`python -m bench.learning.gpu` needs torch with CUDA, and Triton; without them it says so and ends with status 2. All of
a table is measured in one run, on the same rows: 40 million of 128 normal numbers, or as many as fill a fifth of the
memory. "Reading" is the fastest of torch's reductions of the whole matrix. The products are X·w and Xᵀ·v in the type of
X: they clip nothing, and their sums depend on the order. Other libraries train with clipped gradients by `vmap(grad)`:
the gradient of each example, its norm, the clip, the sum. A step is what a training loop waits for: weights up, the
pass, integers down, exact Gaussian noise on the host, new weights.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from bench.report import line, notes, section, table, verdict

COLUMNS, ROWS, STEPS, EXAMPLES = 128, 40_000_000, 100, (200_000, 4_000_000)
OPTIONS: dict[str, Any] = {"loss": "logistic", "clip": 1, "feature_norm": 8}
GOAL = {"float32": 0.80, "bfloat16": 0.70}
"""The share of the speed of reading, for each type."""
SECONDS, FASTER = 0.8, 35
"""Goals for all steps, and beside vmap(grad)."""
WIDTHS = (8, 32, 100, 104, 128, 256, 512, 1024)
FEW = (0, 1, 1000, 100_000, 1_000_000)
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
    """Milliseconds to read the matrix, by torch's fastest reduction."""
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
    from discreet.exact.samplers import discrete_gaussian

    variance, weights = Fraction(4**2 * 4**20), np.zeros(fast.columns + 1)
    spent = []
    for _ in range(2):
        start = time.perf_counter()
        for _ in range(count):
            sums = np.append(*fast.sums(weights[:-1], weights[-1])) + discrete_gaussian(variance, fast.columns + 1)
            weights = weights - 0.5 / max(fast.rows, 1) * float(fast.unit) * sums.astype(np.float64)
        spent.append(time.perf_counter() - start)
    return min(spent)


def fit(x: Any, y: Any, rows: int) -> float | None:
    """Seconds for as many steps of the estimator, the better of two; None without scikit-learn, which it needs."""
    try:
        from discreet.learn import LogisticRegression
    except ImportError:
        return None
    settings: dict[str, Any] = {"epsilon": 1, "delta": 1e-12, "classes": [0, 1], "n_samples": rows}
    model = LogisticRegression(**settings, feature_norm=OPTIONS["feature_norm"], clip=OPTIONS["clip"], steps=STEPS)
    spent = []
    for _ in range(2):
        start = time.perf_counter()
        model.fit(x, y)
        spent.append(time.perf_counter() - start)
    return min(spent)


def measured(dtype: str, rows: int) -> tuple[dict[str, str | None], dict[str, bool]]:
    """The cells of a column, by what was measured, and which goals are met."""
    import torch

    from discreet.rows.gradients.kernels import FusedPass

    x, y = data(rows, COLUMNS, dtype)
    w = torch.randn(COLUMNS, device="cuda") / COLUMNS**0.5
    fast = FusedPass(x, y, **OPTIONS)
    fast.sums(w.cpu().numpy(), 0.1)
    size = x.numel() * x.element_size() / 1e9
    read, here, plain = reading(x), milliseconds(fast._graph.replay), products(x, w)
    slow = {batch: per_example(x, y, w, batch) for batch in EXAMPLES}
    times = {batch: rows / here * 1e3 / each for batch, each in slow.items()}
    loop, whole, share = steps(fast), fit(x, y, rows), read / here
    exact(x, y, w.cpu().numpy())
    speed = f"{here:.2f} ms, {size / here:.2f} TB/s, {share:.0%} of reading, {rows / here / 1e6:.1f} billion rows/s"
    cells: dict[str, str | None] = {
        "reading X once": f"{read:.2f} ms, {size / read:.2f} TB/s",
        "one clipped gradient, exact integer sum": speed,
        "plain, not private: X·w and Xᵀ·v": f"{plain:.2f} ms ({plain / here:.1f} ×)",
    }
    for batch, each in slow.items():
        cells[f"`vmap(grad)`, batches of {batch:,}"] = f"{each / 1e9:.2f} billion rows/s ({times[batch]:.0f} ×)"
    cells[f"{STEPS} steps, noise and round trips included"] = f"{loop:.2f} s"
    cells[f"`LogisticRegression(…).fit`, {STEPS} steps"] = None if whole is None else f"{whole:.2f} s"
    met = {
        f"{GOAL[dtype]:.0%} of reading in {dtype} ({share:.0%})": share >= GOAL[dtype],
        f"{STEPS} steps in {SECONDS} s, {dtype} ({loop:.2f} s)": loop <= SECONDS,
    }
    for batch, ratio in times.items():
        met[f"{FASTER} × `vmap(grad)` in batches of {batch:,}, {dtype} ({ratio:.0f} ×)"] = ratio >= FASTER
    return cells, met


def exact(x: Any, y: Any, w: Any) -> None:
    """The same rows, moved: one put first, and all of them in another order."""
    import torch

    from discreet.rows.gradients.kernels import FusedPass

    def sums(x: Any, y: Any) -> Any:
        return np.append(*FusedPass(x, y, **OPTIONS).sums(w, 0.1))

    every = sums(x, y)
    one_x, one_y = x[-1:].clone(), 1 - y[-1:]
    moved = sums(torch.cat([one_x, x]), torch.cat([one_y, y]))
    order = torch.randperm(len(x), device="cuda")
    mixed = sums(x[order], y[order])
    assert np.array_equal(moved - every, sums(one_x, one_y)), "a row put first changed another row's integers"
    assert np.array_equal(mixed, every), "the sum depends on the order"


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

    from discreet.rows.gradients.kernels import BITS, FusedPass, _tile

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
    """Other numbers of columns, at the same number of bytes."""
    from discreet.rows.gradients.kernels import FusedPass

    print(
        f"\nOther widths, about {rows * 128 * 4 / 1e9:.0f} GB each; the number of rows is not a multiple of a tile:\n"
    )
    table("columns", *(f"{dtype}, {what}" for dtype in GOAL for what in ("TB/s", "of reading", "billion rows/s")))
    for columns in WIDTHS:
        cells = []
        for dtype, size in (("float32", 4), ("bfloat16", 2)):
            x, y = data(rows * 128 * 4 // (columns * size) - 13, columns, dtype)
            fast = FusedPass(x, y, **OPTIONS)
            fast.sums(np.ones(columns) / columns, 0.1)
            here, read = milliseconds(fast._graph.replay), reading(x)
            gigabytes = x.numel() * size / 1e9
            cells += [f"{gigabytes / here:.2f}", f"{read / here:.0%}", f"{len(x) / here / 1e6:.2f}"]
            del x, y, fast
        line(columns, *cells)


def few_rows() -> None:
    from discreet.rows.gradients.kernels import FusedPass

    print(f"\nFew rows × {COLUMNS} in float32, one call including its round trip:\n")
    table("rows", "µs")
    for few in FEW:
        x, y = data(few, COLUMNS, "float32")
        fast, w = FusedPass(x, y, **OPTIONS), np.ones(COLUMNS) / COLUMNS
        spent = []
        for _ in range(200):
            start = time.perf_counter()
            fast.sums(w, 0.1)
            spent.append(time.perf_counter() - start)
        line(f"{few:,}", f"{sorted(spent)[100] * 1e6:.0f}")


def main() -> None:
    if lack := missing():
        print(f"{lack}: nothing is measured. This needs a GPU with CUDA, torch and Triton.", file=sys.stderr)
        sys.exit(2)
    import torch
    import triton

    from discreet.rows.gradients.kernels import BITS, cut_at

    card = torch.cuda.get_device_properties(0)
    section(
        "Learning on a GPU",
        "learning.gpu",
        f"""One {card.name}, torch {torch.__version__}, Triton {triton.__version__}; medians of 9, timed on the
        device. Reading is the fastest of torch's reductions. (×): how much longer than the clipped gradient.""",
    )
    rows = min(ROWS, card.total_memory // 5 // (COLUMNS * 4))
    columns, met = zip(*(measured(dtype, rows) for dtype in GOAL), strict=True)
    table(f"{rows:,} × {COLUMNS}, logistic loss", *GOAL)
    for what in columns[0]:
        line(what, *(cells[what] for cells in columns))
    widths(rows // 8)
    few_rows()
    verdict(met[0] | met[1])
    lengths = [longest(dtype, seed) for dtype in GOAL for seed in range(4)]
    notes(
        f"""A row inserted at the front adds exactly its {COLUMNS + 1} integers, and a permutation changes nothing.
        This was checked on all {rows:,} rows.""",
        f"""Of {len(lengths) * HARD:,} hard rows (equal numbers, tiny, huge, at the feature norm; slopes to 1e38) the
        longest is {max(lengths):.7f} clips; rows are clipped at {cut_at(COLUMNS) / 2**BITS:.7f} so that no rounding
        can move one beyond the clip.""",
        """The products clip nothing, and their sums depend on the order. Other libraries train with clipped gradients
        by `vmap(grad)`: the gradient of each example, its norm, the clip, the sum.""",
    )


if __name__ == "__main__":
    main()

"""How fast a clipped gradient is, beside the same gradient that is not private, and beside Opacus.

`python -m bench.learning.learning_speed` times one gradient of a logistic loss over all rows, here and plain in turn,
for rows that fit into the caches and for a million; then what Opacus takes for the million.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench import peers
from bench.report import line, machine, notes, table, verdict

FEW, MANY, WIDE, BATCH, ROUNDS = 40_000, 1_000_000, 104, 6000, 3
CLIP = math.sqrt(2) / 2  # what LogisticRegression takes for rows of norm 1 and an intercept
LONGEST, FASTER = 1.3, 50
"""Goals: at most so many times the gradient that is not private, so many times as fast as Opacus."""
OPACUS = {
    "gradients": "gradient of each example",
    "clipped": "gradient of each example, clipped and summed",
    "training": "training loop",
}


def rows_for_speed(dtype: str, rows: int = MANY) -> tuple[Any, Any, Any]:
    """Zeros and ones like those of categories, targets and weights."""
    rng = np.random.default_rng(0)
    x = np.empty((rows, WIDE), dtype)
    for part in np.array_split(x, 20):
        part[:] = rng.random(part.shape, dtype=np.float32) < 0.12
    return x, (rng.random(rows) < 0.25).astype(dtype), (rng.normal(size=WIDE) * 0.3).astype(dtype)


def clock(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def per_example(repeat: int = 3) -> Iterator[dict[str, Any]]:
    """Seconds Opacus takes for so many rows; twenty batches stand for all of the small ones."""
    import torch
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    x, y, _ = (torch.tensor(array) for array in rows_for_speed("float32"))
    loss = torch.nn.BCEWithLogitsLoss()
    for batch in (BATCH, MANY):
        model = GradSampleModule(torch.nn.Linear(WIDE, 1))
        inner = torch.optim.SGD(model.parameters(), lr=1.0)
        optimizer = DPOptimizer(inner, noise_multiplier=1.0, max_grad_norm=0.5, expected_batch_size=batch)
        starts = range(0, min(MANY, 20 * batch), batch)

        def work(clip: bool, model: Any = model, optimizer: Any = optimizer, starts: Any = starts) -> None:
            for start in starts:
                some = slice(start, start + starts.step)
                optimizer.zero_grad()
                loss(model(x[some])[:, 0], y[some]).backward()
                if clip:
                    optimizer.clip_and_accumulate()

        for what, clip in (("gradients", False), ("clipped", True)):
            spent = [clock(lambda work=work, clip=clip: work(clip)) for _ in range(1 + repeat)][1:]
            scale = MANY / (len(starts) * batch)
            yield {"what": what, "batch": batch, "seconds": [each * scale for each in spent]}
    yield {"what": "training", "batch": BATCH, "seconds": [training(x, y, loss)]}


def training(x: Any, y: Any, loss: Any, batches: int = 60) -> float:
    """As its examples have it: a loader of Poisson batches, gradients, clip, noise, step."""
    import torch
    from opacus import PrivacyEngine

    model = torch.nn.Linear(WIDE, 1)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=0.5,
    )
    start, done = time.perf_counter(), 0
    for _, (some, goal) in zip(range(batches), loader, strict=False):
        optimizer.zero_grad()
        loss(model(some)[:, 0], goal).backward()
        optimizer.step()
        done += len(some)
    return (time.perf_counter() - start) * MANY / done


class Gradients:
    """The same gradient, private and not, timed in turn."""

    def __init__(self, dtype: str, rows: int) -> None:
        from discreet.rows.gradients.examples import Examples

        self.dtype, self.rows = dtype, rows
        self.x, self.y, self.w = rows_for_speed(dtype, rows)
        start = time.perf_counter()
        self.examples = Examples(self.x, self.y)
        self.preparation = time.perf_counter() - start
        self.ours: list[float] = []
        self.theirs: list[float] = []

    def plain(self) -> Any:
        slopes = 1 / (1 + np.exp(-(self.x @ self.w + self.w[0]))) - self.y
        return self.x.T @ slopes, slopes.sum()

    def time(self, repeat: int) -> None:
        from discreet.rows.gradients.examples import one_product_at_a_time
        from discreet.rows.gradients.losses import Logistic

        weights = np.append(self.w, self.w[0]).astype(float)

        def sums() -> Any:
            return self.examples.sums(weights, Logistic(), CLIP)

        for _ in range(repeat):
            self.plain()
            self.theirs.append(clock(self.plain))
            with one_product_at_a_time(self.examples):
                sums()  # the other's threads wait busily for a while
                sums()
                self.ours.append(clock(sums))


def rounds() -> tuple[list[Gradients], dict[tuple[str, int], list[float]]]:
    """Ours and plain gradients, and the seconds of Opacus, in turn."""
    all_rows = [Gradients(dtype, rows) for dtype in ("float32", "float64") for rows in (MANY, FEW)]
    found: dict[tuple[str, int], list[float]] = {}
    for turn in range(ROUNDS):
        print(f"speed, round {turn + 1} of {ROUNDS}", end="   \r", file=sys.stderr, flush=True)
        for each in all_rows:
            each.time(5 if each.rows == MANY else 20)
        if turn == 0 or found:  # who is missing is told once
            for row in peers.measure(__spec__.name, "opacus"):
                found.setdefault((row["what"], row["batch"]), []).extend(row["seconds"])
    return all_rows, found


def beside_plain(all_rows: list[Gradients]) -> dict[str, bool]:
    print(f"\nAll rows × {WIDE}, the shortest of all rounds:\n")
    table(
        "rows",
        "here, ms",
        "median, ms",
        "million rows/s",
        "not private: X·w, σ, Xᵀ·r, ms",
        "here takes",
        "rounding once, s",
    )
    met = {}
    for each in all_rows:
        least, plain = min(each.ours), min(each.theirs)
        name, ratio = f"{each.rows:,} in {each.dtype}", f"{least / plain:.2f} ×"
        speed, middle = f"{each.rows / least / 1e6:.2f}", f"{np.median(each.ours) * 1e3:.1f}"
        line(name, f"{least * 1e3:.1f}", middle, speed, f"{plain * 1e3:.1f}", ratio, f"{each.preparation:.2f}")
        met[f"at most {LONGEST} × the plain gradient, {name} ({ratio})"] = least / plain <= LONGEST
    return met


def beside_opacus(ours: float, found: dict[tuple[str, int], list[float]]) -> dict[str, bool]:
    print(f"\nOpacus 1.6.0, {MANY:,} rows in float32:\n")
    table("Opacus", "batches of", "shortest, ms", "median, ms", "million rows/s", "here is faster by")
    met = {}
    for (what, batch), spent in found.items():
        least, times = min(spent), min(spent) / ours
        speed = f"{MANY / least / 1e6:.2f}"
        line(
            OPACUS[what], f"{batch:,}", f"{least * 1e3:,.0f}", f"{np.median(spent) * 1e3:,.0f}", speed, f"{times:.1f} ×"
        )
        name = f"{OPACUS[what]}, batches of {batch:,}"
        met[f"{FASTER} × as fast as Opacus's {name} ({times:.1f} ×)"] = times >= FASTER
    return met


def whole_fit() -> str:
    from discreet.learn import LogisticRegression

    x, y, _ = rows_for_speed("float32")
    model = LogisticRegression(epsilon=1, delta=1e-12, classes=[0, 1], n_samples=MANY)
    model.guarantee(n_features=WIDE)  # the noise is found before the clock starts
    spent = clock(lambda: model.fit(x, y))
    return f"`LogisticRegression` of {MANY:,} × {WIDE} in float32, {model.n_iter_} steps: {spent:.1f} s in all."


def main() -> None:
    print(
        "### The speed of a gradient\n`python -m bench.learning.learning_speed` · One clipped gradient of all rows, "
        f"summed exactly. Rows are rounded once, before the first step; {machine()}.\n"
    )
    all_rows, found = rounds()
    met = beside_plain(all_rows)
    if found:
        met |= beside_opacus(min(all_rows[0].ours), found)
    verdict(met)
    notes(
        whole_fit(),
        f"{FEW:,} rows fit in the caches, so the plain gradient does not wait for memory.",
        """Opacus's training loop is that of its examples: Poisson batches, gradients, clip, noise, step. Its gradient
        alone leaves out the loader, the noise and the step.""",
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        for row in per_example():
            print(json.dumps(row), flush=True)
    else:
        main()

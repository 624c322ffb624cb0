"""Exact integer noise: millions of draws a second here, by OpenDP's exact samplers, by numpy's inexact ones.

`python bench/samplers.py` measures all in one run, on one core, and then whether the time of a single draw tells
anything about the value drawn: Spearman's rank correlation of |noise| and nanoseconds over 10^5 draws (chance
alone gives about ±0.003).
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import peers

SCALES = {"laplace": [1, 10, 1000, 2**20, 2**40], "gaussian": [1, 10, 1000, 2**20, 2**30]}
GOAL = {"laplace": 10.0, "gaussian": 5.0}
HERE, THERE, SCALAR = 2**20, 20_000, 100_000


def name(scale: int) -> str:
    return str(scale) if scale < 2**20 else f"2^{scale.bit_length() - 1}"


def millions(draw: Callable[[], Any], count: int, repeat: int) -> float:
    return count / peers.best(draw, repeat)[0] / 1e6


def opendp() -> Iterator[dict[str, Any]]:
    """Vector measurements over 64-bit integers; the list that goes in and comes out is a small part of the time."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    make = {
        "laplace": lambda scale: dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(scale)),
        "gaussian": lambda scale: dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=float(scale)),
    }
    zeros = [0] * THERE
    for law, scales in SCALES.items():
        for scale in scales:
            noisy = make[law](scale)
            yield {"law": law, "scale": scale, "rate": millions(lambda noisy=noisy: noisy(zeros), THERE, 3)}


def spearman(x: Any, y: Any) -> float:
    """Rank correlation, ties sharing their mean rank."""
    import numpy as np

    def ranks(values: Any) -> Any:
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(counts) - (counts - 1) / 2)[place]

    return float(np.corrcoef(ranks(x), ranks(y))[0, 1])


def timing(draw: Callable[[], Any]) -> float:
    """Spearman(|noise|, nanoseconds) over single draws, the collector off; slow drifts hit all values alike."""
    import numpy as np

    values, spent = [0] * SCALAR, [0] * SCALAR
    for _ in range(1000):
        draw()
    gc.disable()
    for i in range(SCALAR):
        start = time.perf_counter_ns()
        drawn = draw()
        spent[i] = time.perf_counter_ns() - start
        values[i] = abs(int(drawn[0]))
    gc.enable()
    return spearman(np.array(values, dtype=np.float64), np.array(spent))


def main() -> None:
    peers.one_core()
    import numpy as np

    from discreet.samplers import discrete_gaussian, discrete_laplace

    unsafe = np.random.default_rng()
    ours = {
        "laplace": lambda scale, size: discrete_laplace(Fraction(scale), size),
        "gaussian": lambda scale, size: discrete_gaussian(Fraction(scale) ** 2, size),
    }
    inexact = {
        "laplace": lambda scale, size: np.rint(unsafe.laplace(0.0, scale, size)).astype(np.int64),
        "gaussian": lambda scale, size: np.rint(unsafe.normal(0.0, scale, size)).astype(np.int64),
    }
    print(f"one core, load {os.getloadavg()[0]:.1f} at the start; M/s is millions of draws a second, best of several")
    rates = {(row["law"], row["scale"]): row["rate"] for row in peers.measure(__file__, "opendp")}
    print("law       scale   here M/s   goal   OpenDP M/s   ratio   numpy M/s   Spearman(|noise|, time)")
    for law, scales in SCALES.items():
        for scale in scales:
            here = millions(lambda law=law, scale=scale: ours[law](scale, HERE), HERE, 15)
            numpy = millions(lambda law=law, scale=scale: inexact[law](scale, HERE), HERE, 9)
            there = rates.get((law, scale), float("nan"))
            told = timing(lambda law=law, scale=scale: ours[law](scale, 1))
            print(
                f"{law:9} {name(scale):>5} {here:10.1f} {GOAL[law]:6.0f} {there:12.4f} {here / there:6.0f}×"
                f" {numpy:11.1f} {told:+17.4f}",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:] == ["opendp"]:
        print(*map(json.dumps, opendp()), sep="\n")
    else:
        main()

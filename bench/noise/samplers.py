"""Exact integer noise: millions of draws a second here, by OpenDP's exact samplers, by numpy's inexact ones.

`python -m bench.noise.samplers` measures all in one run, on one core, and then whether the time of a single draw
reveals anything about its value: Spearman's rank correlation of |noise| and nanoseconds over 10^5 draws.
"""

from __future__ import annotations

import gc
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from bench import peers
from bench.report import line, machine, notes, section, table, verdict

SCALES = {"laplace": [1, 10, 1000, 2**20, 2**40], "gaussian": [1, 10, 1000, 2**20, 2**30]}
LAWS = {"laplace": "discrete Laplace", "gaussian": "discrete Gaussian"}
MILLIONS, TIMES, TELLING = {"laplace": 10, "gaussian": 5}, 50, 0.02
"""The goals: draws a second, how many times OpenDP's, and how much time may tell."""
HERE, THERE, SCALAR = 2**20, 20_000, 100_000
"""How many are drawn at once here and by OpenDP, and one by one."""
ABOUT = """Exact integer noise, compared with OpenDP's exact samplers and numpy's inexact ones, and whether the time
of a
single draw reveals anything about its value"""


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

    from discreet.exact.samplers import discrete_gaussian, discrete_laplace

    unsafe = np.random.default_rng()
    ours = {
        "laplace": lambda scale, size: discrete_laplace(Fraction(scale), size),
        "gaussian": lambda scale, size: discrete_gaussian(Fraction(scale) ** 2, size),
    }
    inexact = {
        "laplace": lambda scale, size: np.rint(unsafe.laplace(0.0, scale, size)).astype(np.int64),
        "gaussian": lambda scale, size: np.rint(unsafe.normal(0.0, scale, size)).astype(np.int64),
    }
    section("Samplers", "noise.samplers", f"{ABOUT}. On one of {machine()}.")
    rates = {(row["law"], row["scale"]): row["rate"] for row in peers.measure(__spec__.name, "opendp")}
    print("\nMillions of draws a second, the best of several:\n")
    other = f"OpenDP {peers.version('opendp')}"
    table("law", "scale", "here, M/s", f"{other}, M/s", "ratio", "numpy, not private, M/s", "Spearman")
    found = []
    for law, scales in SCALES.items():
        for scale in scales:
            here = millions(lambda law=law, scale=scale: ours[law](scale, HERE), HERE, 15)
            numpy = millions(lambda law=law, scale=scale: inexact[law](scale, HERE), HERE, 9)
            told = timing(lambda law=law, scale=scale: ours[law](scale, 1))
            there = rates.get((law, scale))
            ratio = here / there if there else None
            beside = (None, None) if there is None else (f"{there:.4f}", f"{ratio:.0f}")
            shown = f"{told:+.4f}".replace("-", "−")
            line(LAWS[law], name(scale), f"{here:.1f}", *beside, f"{numpy:.1f}", shown)
            found.append((law, here, ratio, told))
    verdict(goals(found))
    notes(
        f"""Here: arrays of {name(HERE)} draws. OpenDP: its vector measurement on {THERE:,} zeros, including the
        conversion of the list (a small part).""",
        """numpy rounds a float from a generator that is not cryptographic. It is a reference for speed, not a
        mechanism.""",
        f"""Spearman's rank correlation of |noise| and time is over {SCALAR:,} single draws; chance alone gives about
        ±{1 / math.sqrt(SCALAR):.3f}. It detects only a monotone dependence.""",
    )


def goals(found: list[tuple[str, float, float | None, float]]) -> dict[str, bool]:
    """Of what was measured: a law, millions of draws a second, how many times OpenDP's, and what time tells."""
    met = {
        f"{LAWS[law]} ≥ {least} million a second for scales {name(SCALES[law][0])} … {name(SCALES[law][-1])}": all(
            rate >= least for drawn, rate, _, _ in found if drawn == law
        )
        for law, least in MILLIONS.items()
    }
    ratios = [ratio for _, _, ratio, _ in found if ratio is not None]
    if ratios:
        met[f"both ≥ {TIMES} times OpenDP's integer samplers"] = min(ratios) >= TIMES
    return met | {f"Spearman within ±{TELLING}": all(abs(told) < TELLING for *_, told in found)}


if __name__ == "__main__":
    if sys.argv[1:] == ["opendp"]:
        print(*map(json.dumps, opendp()), sep="\n")
    else:
        main()

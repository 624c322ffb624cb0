"""Prefix sums: the noise of all methods here, and of the dyadic tree; and how long all sums of a vector take.

`python -m bench.noise.prefix_sums` computes the standard deviation of the noisiest sum exactly, for 1,024 to 2^20
points, and times the draw of all sums. `StreamSums` takes its steps one by one, as in a stream.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bench import peers
from bench.report import line, machine, section, table, verdict
from discreet.mechanisms.counts.count_tree import CountTree, best_branches, levels_of, prefix_variances
from discreet.mechanisms.counts.factorization import PrefixSums
from discreet.mechanisms.counts.stream_sums import StreamSums

RUNS = 2


def prefixes() -> None:
    """The largest standard deviation of a prefix sum, per unit of noise for sensitivity 1."""
    print(
        "\nPrefix sums: the standard deviation of the noisiest one, per unit of Gaussian noise for sensitivity 1 (add "
        "or remove), and of the best tree at pure ε = 1:\n"
    )
    table(
        "points",
        "square-root factor, normalized",
        "square-root factor",
        "few buffers (numbers kept)",
        "dyadic tree",
        "ratio",
        "tree, pure ε = 1 (branches)",
        "seconds: factor, few buffers, tree",
    )
    near = {}
    for points in (1024, 4096, 65536, 2**20):
        root, few = PrefixSums(points=points, stddev=1), StreamSums(points=points, stddev=1)
        dyadic = dyadic_tree(points)
        branches = best_branches(points)
        wide = levels_of(points, branches)
        pure = wide * math.sqrt(2 * float(prefix_variances(points, branches).max()))
        counts = np.random.default_rng(0).poisson(10, points)
        tree = CountTree(points=points, scale=wide, branches=branches)
        spent = [peers.best(lambda m=m, counts=counts: m._draw(counts), RUNS)[0] for m in (root, few, tree)]
        line(
            points if points < 2**20 else "2^20",
            f"{root.spread:.3f}",
            f"{replace(root, normalized=False).spread:.3f}",
            f"{few.spread:.3f} ({few.remembered})",
            f"{dyadic:.2f}",
            f"{dyadic / root.spread:.2f}",
            f"{pure:.1f} ({branches})",
            ", ".join(f"{seconds:.3f}" for seconds in spent),
        )
        near[f"few buffers within 10% at {points} points"] = few.spread <= 1.1 * root.spread
    verdict(near)


def dyadic_tree(points: int) -> float:
    """A row is in log2(points)+1 ranges, and the worst prefix is made of log2(points) of them: no reconciling."""
    levels = int(math.log2(points))
    return math.sqrt((levels + 1) * levels)


def main() -> None:
    peers.one_core()
    section("Prefix sums", "noise.prefix_sums", f"All prefix sums of a vector of counts. On one of {machine()}.")
    prefixes()


if __name__ == "__main__":
    main()

"""Shuffled protocols: their error beside the lecture's, the local and the central model; messages, bytes and speed.

python bench/shuffle.py [error|numbers|speed]
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any

import numpy as np

import discreet as dp

DELTA = 1e-6
SIZES, EPSILONS = (10**4, 10**5, 10**6), (0.1, 0.5, 1.0)
TABLE = {  # what the research page computed: one randomized bit, two messages, fakes
    0.1: (37.5, 37.5, 51.39),
    0.5: (9.50, 9.49, 11.67),
    1.0: (5.84, 5.84, 6.53),
}


def taught(make: Any) -> str:
    try:
        return f"{make().deviation:.1f}"
    except dp.InvalidArgument:
        return "no probability"


def local(epsilon: float, clients: int, choices: int) -> float:
    grown = math.exp(epsilon)
    return math.sqrt(clients * (choices - 2 + grown)) / (grown - 1)


def seen(poll: Any, values: Any, true: Any, runs: int) -> tuple[float, float]:
    """The root mean square and the largest error of `runs` polls."""
    off = []
    for _ in range(runs):
        value = poll.analyze(poll.encode_many(values)).value
        off.append(np.array(list(value.values()) if isinstance(value, dict) else [value]) - true)
    every = np.concatenate(off)
    return float(np.sqrt((every**2).mean())), float(np.abs(every).max())


def errors() -> None:
    print(
        f"\nstandard deviation of a count, δ = {DELTA:g}; seen: root mean square and largest error of several polls\n"
    )
    print(
        "| clients | ε | one bit | seen | table | two messages | as taught | fakes, 10 choices | seen | table | "
        "as taught | local, one bit | central Laplace, one bit |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    worst = 0.0
    for clients in SIZES:
        for epsilon in EPSILONS:
            given: dict[str, Any] = {"clients": clients, "epsilon": epsilon, "delta": DELTA}
            bit, two = dp.shuffle.bit_sum(**given), dp.shuffle.bit_sum(**given, method="two messages")
            counts = dp.shuffle.histogram(choices=range(10), **given)
            fakes = counts.deviation / math.sqrt(1 - 1 / 10)
            runs = 200 if clients == 10**4 else 20 if clients == 10**5 else 4
            bits, values = np.arange(clients) < clients // 3, np.arange(clients) % 7
            rms, largest = seen(bit, bits, clients // 3, runs)
            rms_h, largest_h = seen(counts, values, np.bincount(values, minlength=10), runs)
            old = taught(lambda: dp.shuffle.bit_sum(**given, method="two messages", calibration="taught"))  # noqa: B023
            old_h = taught(
                lambda: dp.shuffle.histogram(choices=range(10), **given, method="parallel", calibration="taught")  # noqa: B023
            )
            goal = TABLE[epsilon]
            worst = max(worst, bit.deviation / goal[0] - 1, two.deviation / goal[1] - 1, fakes / goal[2] - 1)
            print(
                f"| {clients:,} | {epsilon} | {bit.deviation:.2f} | {rms:.2f}, {largest:.0f} | {goal[0]} | "
                f"{two.deviation:.2f} | {old} | {fakes:.2f} | {rms_h:.2f}, {largest_h:.0f} | {goal[2]} | {old_h} | "
                f"{local(epsilon, clients, 2):.0f} | {math.sqrt(2) / epsilon:.2f} |",
                flush=True,
            )
    print(f"\nat most {100 * worst:.2f}% above the tables (goal: 1%)")


def numbers() -> None:
    print("\nsums of numbers in [0,1], ε = 1; deviation in ranges; central Laplace is 1.41\n")
    print(
        "| clients | by digits | messages | bytes | split and mix | messages | bytes |\n|---|---|---|---|---|---|---|"
    )
    for clients in SIZES[:2]:
        given: dict[str, Any] = {"between": (0, 1), "clients": clients, "epsilon": 1, "delta": DELTA}
        one, two = dp.shuffle.sum(**given), dp.shuffle.sum(**given, method="split and mix")
        cells = [f"{poll.deviation:.2f} | {poll.messages} | {poll.messages * poll.length}" for poll in (one, two)]
        print(f"| {clients:,} | {cells[0]} | {cells[1]} |", flush=True)
    print("\nhashed histogram of strings, 100,000 clients, ε = 1\n")
    poll = dp.shuffle.HashedHistogram.for_guarantee(dp.Approx(epsilon=1, delta=DELTA), clients=10**5)
    rng = np.random.default_rng(1)
    values = [f"word {v}" for v in rng.zipf(1.1, 10**5) % 10**5]
    names, counts = np.unique(values, return_counts=True)
    true = dict(zip(names.tolist(), counts.tolist(), strict=True))
    candidates = [f"word {k}" for k in range(20_000)]
    start = time.perf_counter()
    answer = poll.analyze(poll.encode_many(values), candidates=candidates).value
    off = np.array([answer[name] - true.get(name, 0) for name in candidates])
    print("| predicted | root mean square | largest | messages | bytes | 20,000 candidates, s |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {poll.deviation:.2f} | {np.sqrt((off**2).mean()):.2f} | {np.abs(off).max():.0f} | {poll.messages} | "
        f"{poll.messages * poll.length} | {time.perf_counter() - start:.1f} |"
    )


def speed() -> None:
    print("\nmillions of clients a second on one core, ε = 1, 10^6 clients\n")
    print("| protocol | encode | analyze | messages | bytes | calibration, s |\n|---|---|---|---|---|---|")
    given: dict[str, Any] = {"clients": 10**6, "epsilon": 1, "delta": 1e-7}
    makers = {
        "bit sum": (lambda: dp.shuffle.bit_sum(**given), np.arange(10**6) % 2),
        "histogram, 10 choices": (lambda: dp.shuffle.histogram(choices=range(10), **given), np.arange(10**6) % 10),
        "histogram, 1000 choices": (
            lambda: dp.shuffle.histogram(choices=range(1000), **given),
            np.arange(10**6) % 1000,
        ),
    }
    for name, (make, values) in makers.items():
        start = time.perf_counter()
        poll: Any = make()
        made = time.perf_counter() - start
        start = time.perf_counter()
        messages = poll.encode_many(values)
        encoded = time.perf_counter() - start
        start = time.perf_counter()
        poll.analyze(messages)
        analyzed = time.perf_counter() - start
        size = poll.messages * poll.length
        print(f"| {name} | {1 / encoded:.1f} | {1 / analyzed:.1f} | {poll.messages} | {size} | {made:.2f} |")


TASKS = {"error": errors, "numbers": numbers, "speed": speed}

if __name__ == "__main__":
    for task in sys.argv[1:] or list(TASKS):
        TASKS[task]()

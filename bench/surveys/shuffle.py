"""Shuffled protocols: their error beside the lecture's, the local and the central model; messages, bytes and speed.

`python -m bench.surveys.shuffle` measures everything, `python -m bench.surveys.shuffle speed` a part: error, numbers,
strings, speed.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any

import numpy as np

import discreet as dp
from bench.report import line, machine, notes, section, table, verdict

DELTA = 1e-6
POLLS = {10**4: 200, 10**5: 20, 10**6: 4}
"""How many polls are held of so many clients."""
EPSILONS = (0.1, 0.5, 1.0)
ABOVE = 0.01
"""Goal: how far deviations may be above those of the table."""
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


def seen(poll: Any, values: Any, true: Any, runs: int) -> str:
    """The root mean square and the largest error of `runs` polls."""
    off = []
    for _ in range(runs):
        value = poll.analyze(poll.encode_many(values)).value
        off.append(np.array(list(value.values()) if isinstance(value, dict) else [value]) - true)
    every = np.concatenate(off)
    return f"{np.sqrt((every**2).mean()):.2f}, {np.abs(every).max():.0f}"


def errors() -> None:
    polls = ", ".join(map(str, POLLS.values()))
    print(
        f"The standard deviation of a count at δ = {DELTA:g}, and the observed root mean square and largest error "
        f"({polls} polls). Columns of tables: calculated in advance. No probability: the lecture's formula needs one "
        "above 1.\n"
    )
    bits = ("one bit", "seen", "table", "two messages", "as taught")
    fakes = ("fakes, 10 choices", "seen, 10 choices", "table, 10 choices", "as taught, 10 choices")
    table("clients", "ε", *bits, *fakes, "local, one bit", "central Laplace, one bit")
    worst = 0.0
    for clients, runs in POLLS.items():
        for epsilon in EPSILONS:
            given: dict[str, Any] = {"clients": clients, "epsilon": epsilon, "delta": DELTA}
            bit, two = dp.shuffle.bit_sum(**given), dp.shuffle.bit_sum(**given, method="two messages")
            counts = dp.shuffle.histogram(choices=range(10), **given)
            fake = counts.deviation / math.sqrt(1 - 1 / 10)
            answers, values = np.arange(clients) < clients // 3, np.arange(clients) % 7
            seen_bits = seen(bit, answers, clients // 3, runs)
            seen_counts = seen(counts, values, np.bincount(values, minlength=10), runs)
            old = taught(lambda: dp.shuffle.bit_sum(**given, method="two messages", calibration="taught"))  # noqa: B023
            old_counts = taught(
                lambda: dp.shuffle.histogram(choices=range(10), **given, method="parallel", calibration="taught")  # noqa: B023
            )
            goal = TABLE[epsilon]
            worst = max(worst, bit.deviation / goal[0] - 1, two.deviation / goal[1] - 1, fake / goal[2] - 1)
            cells = [f"{bit.deviation:.2f}", seen_bits, goal[0], f"{two.deviation:.2f}", old]
            cells += [f"{fake:.2f}", seen_counts, goal[2], old_counts]
            line(f"{clients:,}", epsilon, *cells, f"{local(epsilon, clients, 2):.0f}", f"{math.sqrt(2) / epsilon:.2f}")
    verdict({f"at most {ABOVE:.0%} above the tables ({worst:.2%})": worst <= ABOVE})
    notes(
        f"""A bit is one message of {bit.length} byte; a choice among ten takes {counts.messages} messages. The local
        model is k-ary response at the same ε."""
    )


def numbers() -> None:
    print(
        f"\nSums of numbers in [0,1] at ε = 1, deviations in ranges; a trusted curator with Laplace noise has "
        f"{math.sqrt(2):.2f}:\n"
    )
    ways = ("by digits", "split and mix")
    table("clients", *(title for way in ways for title in (way, f"{way}, messages", f"{way}, bytes")))
    for clients in list(POLLS)[:2]:
        given: dict[str, Any] = {"between": (0, 1), "clients": clients, "epsilon": 1, "delta": DELTA}
        polls = dp.shuffle.sum(**given), dp.shuffle.sum(**given, method="split and mix")
        cells = [(f"{poll.deviation:.2f}", poll.messages, poll.messages * poll.length) for poll in polls]
        line(f"{clients:,}", *cells[0], *cells[1])


def strings(clients: int = 10**5, words: int = 10**5, asked: int = 20_000) -> None:
    print(f"\nCounts of strings, {clients:,} clients, ε = 1, Zipf-distributed over {words:,} words:\n")
    poll = dp.shuffle.HashedHistogram.for_guarantee(dp.Approx(epsilon=1, delta=DELTA), clients=clients)
    rng = np.random.default_rng(1)
    values = [f"word {v}" for v in rng.zipf(1.1, clients) % words]
    names, counts = np.unique(values, return_counts=True)
    true = dict(zip(names.tolist(), counts.tolist(), strict=True))
    candidates = [f"word {k}" for k in range(asked)]
    start = time.perf_counter()
    answer = poll.analyze(poll.encode_many(values), candidates=candidates).value
    spent = time.perf_counter() - start
    off = np.array([answer[name] - true.get(name, 0) for name in candidates])
    table("predicted", "root mean square", "largest", "messages", "bytes", f"{asked:,} candidates, s")
    errors = f"{np.sqrt((off**2).mean()):.2f}", f"{np.abs(off).max():.0f}"
    line(f"{poll.deviation:.2f}", *errors, poll.messages, poll.messages * poll.length, f"{spent:.1f}")


def speed(clients: int = 10**6) -> None:
    given: dict[str, Any] = {"clients": clients, "epsilon": 1, "delta": 1e-7}
    print(f"\nMillions of clients a second in one process, at ε = 1, δ = {given['delta']:g} and {clients:,} clients:\n")
    table("protocol", "encode", "analyze", "messages", "bytes", "calibration, s")
    makers = {
        "bit sum": (lambda: dp.shuffle.bit_sum(**given), 2),
        "histogram, 10 choices": (lambda: dp.shuffle.histogram(choices=range(10), **given), 10),
        "histogram, 1000 choices": (lambda: dp.shuffle.histogram(choices=range(1000), **given), 1000),
    }
    for name, (make, choices) in makers.items():
        values = np.arange(clients) % choices
        start = time.perf_counter()
        poll: Any = make()
        made = time.perf_counter()
        messages = poll.encode_many(values)
        encoded = time.perf_counter()
        poll.analyze(messages)
        analyzed = time.perf_counter()
        speeds = [f"{clients / 1e6 / spent:.1f}" for spent in (encoded - made, analyzed - encoded)]
        line(name, *speeds, poll.messages, poll.messages * poll.length, f"{made - start:.2f}")


TASKS = {"error": errors, "numbers": numbers, "strings": strings, "speed": speed}


def main() -> None:
    section(
        "The shuffle model",
        "surveys.shuffle",
        f"""Errors of polls with shuffled messages, compared with the same polls without trust and with full trust,
        and their messages, bytes and speed; {machine()}.""",
    )
    for task in sys.argv[1:] or TASKS:
        TASKS[task]()


if __name__ == "__main__":
    main()

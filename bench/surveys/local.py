"""Local reports: the variance a report and the time of both sides, here and by pure-ldp and multi-freq-ldpy.

`python -m bench.surveys.local` tells one of 1024 Zipf values at ε = 1, on one core. Reports are made and counted in
memory. The error is the mean over all values of the squared error of a count, over the number of users, beside its
formula; peers that go report by report get as many users as fit in two seconds a side. Then means of a number, per
user.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench import peers
from bench.report import line, machine, notes, section, table, verdict

CHOICES, EPSILON, USERS, SECONDS = 1024, 1.0, 200_000, 2.0
GOAL = 100_000
"""Reports a second, on both sides."""
METHODS = ("auto", "direct", "subset", "unary", "hashing", "hadamard", "projective")


def data(users: int) -> Any:
    import numpy as np

    weights = 1 / np.arange(1, CHOICES + 1) ** 1.1
    return np.random.default_rng(0).choice(CHOICES, size=users, p=weights / weights.sum())


def row(
    name: str, encode: Callable[[Any], Any], count: Callable[[Any], Any], users: int, **more: Any
) -> dict[str, Any]:
    """Both sides timed once; `count` gives estimated counts."""
    import numpy as np

    x = data(users)
    start = time.perf_counter()
    reports = encode(x)
    middle = time.perf_counter()
    found = np.asarray(count(reports), dtype=float)
    end = time.perf_counter()
    error = float(np.mean((found - np.bincount(x, minlength=CHOICES)) ** 2)) / users
    return {
        "name": name,
        "users": users,
        "device": (middle - start) / users,
        "collector": (end - middle) / users,
        "variance": error,
        **more,
    }


def fitting(one: Callable[[], Any], tried: int = 40) -> int:
    """How many users fit in the time."""
    start = time.perf_counter()
    for _ in range(tried):
        one()
    return max(300, min(USERS, int(SECONDS * tried / (time.perf_counter() - start))))


def ours() -> Iterator[dict[str, Any]]:
    from discreet import local

    for method in METHODS:
        survey = local.survey(domain_size=CHOICES, epsilon=EPSILON, method=method)
        survey.analyze(survey.encode_many(data(1000)))  # to warm up
        name = f"discreet, {survey.method}" + (" (the default)" if method == "auto" else "")
        yield row(
            name,
            survey.encode_many,
            lambda reports, survey=survey: list(survey.analyze(reports).raw.values()),
            USERS,
            formula=survey.oracle.variance,
            bits=survey.oracle.report_bits,
        )


def pure_ldp() -> Iterator[dict[str, Any]]:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    same = {"index_mapper": lambda value: value}
    hadamard = HadamardResponseServer(EPSILON, CHOICES, **same)
    pairs = {
        "direct": (DEClient(EPSILON, CHOICES, **same), DEServer(EPSILON, CHOICES, **same)),
        "unary": tuple(kind(EPSILON, CHOICES, use_oue=True, **same) for kind in (UEClient, UEServer)),
        "hashing": tuple(kind(EPSILON, CHOICES, use_olh=True, **same) for kind in (LHClient, LHServer)),
        "hadamard": (HadamardResponseClient(EPSILON, CHOICES, hadamard.get_hash_funcs(), **same), hadamard),
    }
    for method, (client, server) in pairs.items():
        users = fitting(lambda client=client, server=server: server.aggregate(client.privatise(3)))
        server.reset()

        def count(reports: list[Any], server: Any = server) -> Any:
            for report in reports:
                server.aggregate(report)
            return server.estimate_all(list(range(CHOICES)), suppress_warnings=True)

        made = lambda x, client=client: [client.privatise(int(v)) for v in x]  # noqa: E731
        yield row(f"pure-ldp 1.2.0, {method}", made, count, users)


def multi_freq() -> Iterator[dict[str, Any]]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    pairs: dict[str, tuple[Any, Any]] = {
        "direct": (lambda v: GRR_Client(v, CHOICES, EPSILON), lambda r: GRR_Aggregator_MI(r, CHOICES, EPSILON)),
        "unary": (lambda v: UE_Client(v, CHOICES, EPSILON, True), lambda r: UE_Aggregator_MI(r, EPSILON, True)),
        "hashing": (
            lambda v: LH_Client(v, CHOICES, EPSILON, True),
            lambda r: LH_Aggregator_MI(r, CHOICES, EPSILON, True),
        ),
        "subset": (lambda v: SS_Client(v, CHOICES, EPSILON), lambda r: SS_Aggregator_MI(r, CHOICES, EPSILON)),
    }
    for method, (client, aggregate) in pairs.items():
        aggregate([client(3) for _ in range(20)])  # numba compiles here
        users = fitting(lambda client=client, aggregate=aggregate: aggregate([client(3)]))
        made = lambda x, client=client: [client(int(v)) for v in x]  # noqa: E731
        count = lambda reports, aggregate=aggregate: aggregate(reports) * len(reports)  # noqa: E731
        # its estimates are cut at 0 and scaled to 1: smaller than an unbiased error, and biased
        yield row(f"multi-freq-ldpy 0.2.5, {method}", made, count, users, cut=True)


def oracles() -> dict[str, bool]:
    """A line for each oracle, and whether ours meet the goal."""
    found = [*ours(), *peers.measure(__spec__.name, "local")]
    print(
        f"\n{CHOICES} choices, ε = {EPSILON:g}, one core. Peers process as many users as they can in a few seconds. "
        "Some of their estimates are clipped at 0 and scaled, so their variance is not comparable.\n"
    )
    seen = f"variance a report, seen (±{200 * math.sqrt(2 / CHOICES):.0f}%)"
    table("oracle", "users", seen, "formula", "bits", "reports/s, device", "reports/s, collector")
    slowest = {}
    for one in found:
        formula = f"{one['formula']:.4g}" if "formula" in one else "cut at 0, scaled" if one.get("cut") else None
        speeds = [1 / one[side] for side in ("device", "collector")]
        said = (f"{one['users']:,}", f"{one['variance']:.3g}", formula, one.get("bits"))
        line(one["name"], *said, *(f"{speed:,.0f}" for speed in speeds))
        if "formula" in one:
            slowest[one["name"]] = min(speeds)
    default, worst = next(iter(slowest)), min(slowest, key=lambda name: slowest[name])
    goal = f"at least {GOAL:,} reports a second on both sides by"
    return {
        f"{goal} the default ({slowest[default]:,.0f})": slowest[default] >= GOAL,
        f"{goal} every method ({slowest[worst]:,.0f} by {worst})": slowest[worst] >= GOAL,
    }


def means() -> None:
    from discreet import local

    methods = ("hybrid", "piecewise", "Duchi", "Laplace")
    print("\nThe variance of one number from −1 to 1, at its worst:\n")
    table("ε", *methods, "hybrid of Wang et al. 2019")
    for epsilon, known in {0.5: 16.7, 1: 4.29, 2: 1.04, 4: 0.219}.items():
        given: dict[str, Any] = {"between": (-1, 1), "epsilon": epsilon}
        line(epsilon, *(f"{local.mean(**given, method=one.lower()).stddev ** 2:.4g}" for one in methods), known)


def main() -> None:
    peers.one_core()
    if len(sys.argv) > 1:
        for found in (*pure_ldp(), *multi_freq()):
            print(json.dumps(found), flush=True)
        return
    about = "The time of a report, and the errors of counts and means if nobody is trusted with raw answers"
    section("Surveys without trust", "surveys.local", f"{about}; {machine()}.")
    met = oracles()
    means()
    verdict(met)
    notes(
        """The variance of a report is the mean squared error of all counts over the number of users. Formula: the
        promised value.""",
        """Our window of the piecewise method is optimized for the discrete law that is drawn. For large ε it is
        better than the published continuous one.""",
    )


if __name__ == "__main__":
    main()

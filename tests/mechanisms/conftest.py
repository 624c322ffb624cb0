"""Exact laws of tiny runs, and the check that no pair of neighbors is told apart better than is claimed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import discreet as dp
from discreet import testing

EPSILONS = (0.0, 0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)


class NotPrivate(AssertionError):
    """Two neighbors are told apart better than is claimed."""


@dataclass(frozen=True)
class Run:
    """One input's exact law of outputs, the mass outside the window, and what the release claims."""

    law: dict[Any, float]
    unresolved: float
    claim: dp.Guarantee


def _run(
    mechanism: Any, value: Any, sensitivity: Any = None, *, window: int = 8, shown: Callable[[Any], Any] = lambda v: v
) -> Run:
    claims = []

    def once() -> Any:
        answer = dp.release(value() if callable(value) else value, mechanism, sensitivity=sensitivity)
        assert answer.not_private
        claims.append(answer.guarantee)
        return shown(answer.value)

    found = testing.exact_law(once, window=window)
    assert all(claim == claims[0] for claim in claims), "the claim must not depend on the noise"
    return Run({y: float(p) for y, p in found.law.items()}, float(found.unresolved), claims[0])


def _check(pairs: Iterable[tuple[Run, Run]], orders: tuple[float, ...] = ()) -> float:
    """No pair attains more δ, or Rényi divergence, than is claimed; the largest share of the claim that is attained."""
    share, count = 0.0, 0
    for first, second in pairs:
        assert first.claim == second.claim, "the claim must not depend on the data"
        for a, b in ((first, second), (second, first)):
            count += 1
            for epsilon in EPSILONS:
                claimed, ratio = a.claim.delta_at(epsilon=epsilon), math.exp(epsilon)
                delta = sum(max(0.0, p - ratio * b.law.get(y, 0.0)) for y, p in a.law.items())
                if delta > claimed + ratio * b.unresolved + 1e-12:
                    raise NotPrivate(f"δ({epsilon}) is {delta}, not {claimed}")
                if claimed > 1e-6:
                    share = max(share, (delta - ratio * b.unresolved) / claimed)
            for order in orders:
                moment = sum(p * (p / b.law[y]) ** (order - 1) for y, p in a.law.items() if y in b.law)
                if math.log(moment) / (order - 1) > a.claim.renyi(order) * (1 + 1e-9) + 1e-12:
                    raise NotPrivate(f"the Rényi divergence of order {order} is too large")
    assert count > 0
    return share


def _killed(check: Callable[[], Any]) -> None:
    """The check must fail, by finding neighbors told apart and not by an accident."""
    with pytest.raises(NotPrivate):
        check()


@pytest.fixture(scope="session")
def exact() -> SimpleNamespace:
    return SimpleNamespace(run=_run, check=_check, killed=_killed, Run=Run)

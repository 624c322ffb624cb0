"""The least error of any private mechanism: the thesis's table, and the mechanisms that attain it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.guarantees.finite.least_error import least_error
from discreet.guarantees.guarantee import Approx, GaussianTradeoff, Pure, ZeroConcentrated
from discreet.guarantees.unit import row
from discreet.queries import Categories, Integers, Interval, Product


@pytest.mark.parametrize(("epsilon", "delta", "error"), [(0.1, 0.1, 640), (2, 0.5, 89), (11, 0.7, 0.0075)])
def test_salaries_of_the_thesis(epsilon: float, delta: float, error: float) -> None:
    """[T.5.3], as the thesis prints it."""
    bound = least_error(Interval(0, 2996), Approx(epsilon=epsilon, delta=delta))
    assert float(f"{bound:.2g}" if error < 1 else round(bound)) == error
    assert bound <= (1 - delta) * 2996 / (2 * (1 + math.exp(epsilon))) * (1 + 1e-15)


@pytest.mark.parametrize(("epsilon", "delta", "error"), [(0.1, 0.1, 0.879), (2, 0.5, 0.432), (7, 0.6, 0.016)])
def test_states_of_the_thesis(epsilon: float, delta: float, error: float) -> None:
    """[T.5.5], as the thesis prints it; [T.5.6]: randomized response attains it."""
    bound = least_error(Categories(range(48)), Approx(epsilon=epsilon, delta=delta))
    assert round(bound, 3) == error
    # randomized response (T.4.10) is wrong with probability pm, exactly the bound
    p = (1 - delta) / (47 + math.exp(epsilon))
    assert bound == pytest.approx(47 * p, rel=1e-14)


def lattice(parts: int, outputs: int) -> Any:
    """All laws over this number of outputs whose probabilities are multiples of 1/parts."""
    found = [p for p in itertools.product(range(parts + 1), repeat=outputs) if sum(p) == parts]
    return np.array(found) / parts


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_no_mechanism_errs_less(epsilon: float) -> None:
    """[T.5.3], [T.5.5]: every mechanism of a fine lattice, its exact δ, and its worst mean error."""
    # two rows, 0 and 1, reported as 0, 1/2 or 1
    laws, places = lattice(8, 3), np.array([0, 0.5, 1])
    delta = np.maximum(0, laws[:, None] - math.exp(epsilon) * laws[None]).sum(-1)
    error = np.maximum((laws @ places)[:, None], (laws @ (1 - places))[None])
    check(Interval(0, 1), epsilon, np.maximum(delta, delta.T), error)
    # three categories, reported as one of them
    laws = lattice(6, 3)
    delta = np.maximum(0, laws[:, None] - math.exp(epsilon) * laws[None]).sum(-1)
    delta = np.maximum(delta, delta.T)
    worst = np.maximum(np.maximum(delta[:, :, None], delta[:, None, :]), delta[None])
    wrong = 1 - laws
    error = np.maximum(np.maximum(wrong[:, None, None, 0], wrong[None, :, None, 1]), wrong[None, None, :, 2])
    check(Categories(range(3)), epsilon, worst, error)


def check(space: Any, epsilon: float, delta: Any, error: Any) -> None:
    for one in np.unique(delta[delta < 1]):
        bound = least_error(space, Approx(epsilon=epsilon, delta=float(one)))
        assert error[delta == one].min() >= bound * (1 - 1e-9) - 1e-12


def test_the_larger_bound_is_taken() -> None:
    wide = Integers(0, 1000)
    assert least_error(wide, Pure(epsilon=1)) == pytest.approx(1000 / (2 * (1 + math.e)))
    narrow = Integers(0, 2)
    assert least_error(narrow, Pure(epsilon=1)) == pytest.approx(2 / (2 + math.e))
    huge = Product(Integers(0, 2**62), Integers(0, 2**62))  # more points than len() can say
    assert least_error(huge, Pure(epsilon=1)) > 2**60
    assert least_error(Interval(0, 1), Pure(epsilon=1e6)) == 0.0


@pytest.mark.slow
def test_every_pair_of_a_curve_is_a_bound() -> None:
    for guarantee in (ZeroConcentrated(rho=0.5), GaussianTradeoff(mu=1)):
        bound = least_error(Interval(0, 1), guarantee)
        pairs = [(e, guarantee.delta_at(epsilon=e)) for e in (0.0, 0.25, 0.5, 1.0, 2.0)]
        assert bound >= max((1 - d) / (2 * (1 + math.exp(e))) for e, d in pairs) * (1 - 1e-12)
        assert 0 < bound < 0.25
    assert least_error(Interval(0, 1), ZeroConcentrated(rho=2)) < least_error(Interval(0, 1), ZeroConcentrated(rho=1))


def test_the_relation_is_respected() -> None:
    plain = least_error(Interval(0, 1), Pure(epsilon=1))
    replaced = Pure(epsilon=1, protects=row(neighbors="replace"))
    added = Pure(epsilon=1, protects=row())
    assert least_error(Interval(0, 1), replaced) == plain
    assert least_error(Interval(0, 1), added) == least_error(Interval(0, 1), Pure(epsilon=2))
    assert least_error(Interval(0, 1), Approx(epsilon=3, delta=0.5, protects=row())) == 0.0


def test_only_a_diameter_is_needed() -> None:
    @dataclass
    class Line:
        diameter: Fraction

    assert least_error(Line(Fraction(2)), Pure(epsilon=1)) == pytest.approx(1 / (1 + math.e))
    for bad in (0, math.nan, math.inf):
        with pytest.raises(InvalidArgument):
            least_error(Line(bad), Pure(epsilon=1))  # type: ignore[arg-type]

"""Warnings about limits that protect hardly anybody."""

from __future__ import annotations

import pytest

from discreet.datasets.limits import warnings_on_limit


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0), (10, 1e-4), (3, 1e-6)])
def test_a_usual_limit_needs_no_warning(epsilon: float, delta: float) -> None:
    assert warnings_on_limit(epsilon, delta) == []


def test_an_epsilon_above_ten_is_said_in_odds() -> None:
    [warning] = warnings_on_limit(10.5, 1e-6)
    assert "ε = 10.5:" in warning
    assert "to 99.8%." in warning  # e^10.5 / (e^10.5 + 99), rounded up
    [warning] = warnings_on_limit(1000, 0)
    assert "to >99.9%." in warning  # never "100%": nothing is called certain that is not


def test_a_delta_above_one_in_ten_thousand_is_said_as_a_share_of_people() -> None:
    [warning] = warnings_on_limit(3, 0.1)
    assert warning.startswith("δ = 0.1: for 10% of all people")
    [warning] = warnings_on_limit(3, 0.00011)
    assert "0.011% of all people" in warning
    assert len(warnings_on_limit(1000, 0.1)) == 2

"""Numbers and words as clients read them."""

from __future__ import annotations

from fractions import Fraction

import pytest

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.exact.rational import readable
from discreet.gateway.books.offices import check_arguments
from discreet.gateway.books.plain import left_numbers
from discreet.gateway.vault.asking import read_question

from ..clinics import Clinic


@pytest.mark.parametrize(
    ("exact", "down", "up"),
    [
        (2.1500000000003747, 2.15, 2.15),
        (0.4999999999994351, 0.5, 0.5),
        (Fraction(1, 3), 0.333333, 0.333334),
        (1e-8 / 3, 3.33333e-9, 3.33334e-9),
        (0.0999995, 0.0999995, 0.0999995),
        (123456.78, 123456.7, 123456.8),
        (0, 0.0, 0.0),
    ],
)
def test_what_is_left_is_rounded_down_and_a_cost_up(exact, down, up):
    assert readable(exact, up=False) == pytest.approx(down, rel=2e-6)
    assert readable(exact, up=False) <= float(f"{float(exact):.12g}") <= readable(exact, up=True)
    assert readable(exact, up=True) == pytest.approx(up, rel=2e-6)
    if exact:
        assert left_numbers(dp.Pure(epsilon=exact)) == {"epsilon": readable(exact, up=False)}
        assert len(repr(readable(exact, up=True))) <= 12


def test_a_delta_that_is_left_is_said():
    assert left_numbers(dp.Approx(epsilon=1, delta=1e-6)) == {"epsilon": 1.0, "delta": 1e-6}
    assert left_numbers(None) is None


def test_only_what_a_client_may_send_is_listed(clinic: Clinic) -> None:
    with pytest.raises(InvalidArgument) as info:
        read_question({"sql": "SELECT 1", "wrong": 1}, clinic.settings)
    assert info.value.code == "gateway-argument"
    assert "epsilon" in str(info.value)
    assert not [one for one in ("via", "can_confirm", "confirmed") if one in str(info.value)]
    with pytest.raises(InvalidArgument, match="takes nothing"):
        check_arguments("tables", {"via": "mcp"}, (), ())

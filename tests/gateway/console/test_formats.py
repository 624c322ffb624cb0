"""Numbers on pages: costs and risks are never shown smaller than they are, and what is left never larger."""

from __future__ import annotations

import re
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.gateway.console import formats
from discreet.gateway.console.pages.budgets import forecast
from discreet.gateway.console.pages.risks import described
from discreet.gateway.console.site import HERE
from discreet.ledger.texts.record import to_text

_SLACK = Fraction(1, 10**11)


@given(st.floats(1e-9, 1e6))
def test_costs_round_up_and_what_is_left_rounds_down(value):
    up, down = (Fraction(one(value).removeprefix("ε = ")) for one in (formats.epsilon, formats.left))
    assert down * (1 - _SLACK) <= Fraction(value) <= up * (1 + _SLACK)
    assert up <= down * (1 + Fraction(1, 10**5))


def test_plain_numbers_stay_plain():
    shown = [formats.epsilon(one) for one in (0.1, 0.1 + 0.2, 3, 2.5, {"epsilon": 1.0}, None)]
    assert shown == ["ε = 0.1", "ε = 0.3", "ε = 3", "ε = 2.5", "ε = 1", "–"]
    assert formats.left(0.7 + 0.1) == "ε = 0.8"


def test_nothing_uncertain_is_called_certain():
    assert formats.at_most(0.99996) == ">99.9%"
    assert formats.at_most(0.73141) == "73.2%"
    assert formats.at_least(0.73149) == "73.1%"
    assert formats.at_least(1e-9) == "<0.001%"
    assert formats.times(2.7182818) == "2.72"


def test_risks_are_shown_in_the_words_of_risk():
    found = described(to_text(dp.Approx(epsilon=8, delta=1e-6)), 1, None, "limit")
    assert [row[0] for row in found["rows"]] == ["0.1%", "1%", "10%", "50%"]
    assert found["rows"][-1][2] == ">99.9%"  # and not 100%
    assert all("100%" not in cell and cell != "0%" for row in found["rows"] for cell in row)


def test_no_page_rounds_a_risk_to_the_nearest_number():
    for name in ("analyst/risk.html", "analyst/budget.html"):
        text = (HERE / "templates" / name).read_text(encoding="utf-8")
        rounded = re.findall(r"(\w+)\)? *\| *(?:percent|number)\b", text)
        assert set(rounded) <= {"base_rate", "false_positives", "limit"}, name  # what is used up is no risk


def test_a_budget_in_another_unit_is_not_said_to_be_used_up():
    course = {"points": [{"left": 0.5}], "left": {"rho": 0.5}, "typical": None, "until": None, "pace": 0.0}
    assert forecast(course) == ["Nothing was spent in the last 7 days."]
    assert forecast(course | {"left": None})[0].startswith("Nothing is left.")

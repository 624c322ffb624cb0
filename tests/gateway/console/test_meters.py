"""Meters say amounts as people write them, also where sums of floats have a tail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import discreet.gateway.console

TEMPLATES = Path(discreet.gateway.console.__file__).parent / "templates"


@pytest.mark.parametrize("name", ["parts.html", "owner/account.html", "owner/accounts.html"])
def test_the_text_of_a_meter_is_rounded(name: str) -> None:
    jinja2 = pytest.importorskip("jinja2")
    [(spent, limit)] = re.findall(
        r"<meter[^>]*>(\{\{.+?\}\}) of (\{\{.+?\}\})</meter>", (TEMPLATES / name).read_text("utf-8")
    )
    one = {"spent": 1.2999999999987075, "most": 5.0}
    shown = jinja2.Environment(autoescape=True).from_string(f"{spent} of {limit}")
    assert shown.render(one=one, account=one, spent=one["spent"], limit=one["most"]) == "1.3 of 5"

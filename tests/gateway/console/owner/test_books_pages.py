"""Pages about budgets: what they say holds for the answers that they are about."""

from __future__ import annotations

import re
from contextlib import ExitStack, closing

import pytest

from ...house import COUNT
from ..small_site import small_site

SQL = COUNT
OTHERS = "answers to other accounts may learn more"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with small_site(tmp_path_factory.mktemp("books") / "house") as made:
        tokens = {name: made.open(name, role) for name, role in (("alice", "analyst"), ("olga", "owner"))}
        made.open("vera", "viewer")
        made.start()
        made.ask(tokens["alice"], SQL, epsilon=0.5)
        with made.open_desk(), ExitStack() as stack:
            yield {name: stack.enter_context(closing(made.visitor(name))) for name in ("alice", "olga", "vera")}


def test_a_risk_says_of_whose_answers_it_is(site):
    alice, olga, vera = site.values()
    own, whole, of_alice = alice.page("/risk"), olga.page("/risk"), olga.page("/risk", account="alice")
    assert OTHERS in own
    assert OTHERS in of_alice
    assert OTHERS not in whole
    assert "to this account alone" in alice.page("/budget")
    assert "to this account alone" in olga.page("/budget", account="alice")
    assert "to this account alone" not in olga.page("/budget")
    assert vera.page("/risk").count("has no guarantee of its own") == 1


def test_risks_are_not_rounded_to_certainty(site):
    for text in (site["olga"].page("/risk"), site["olga"].page("/budget")):
        assert "&gt;99.9%" in text
        assert not re.search(r"(?:at most|<td class=\"n\">)\s*(?:100|0)%", text)


def test_a_viewer_is_not_told_what_is_left_to_the_data_set(site):
    text = site["vera"].page("/ask", sql=SQL, epsilon="0.1")
    assert "Left now" not in text
    assert "Left after it" not in text
    assert "Left after it" in site["alice"].page("/ask", sql=SQL, epsilon="0.9")

"""The card for the public: it says what was done, what ε means and what cannot be checked, and nothing is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet.publication.card import NOT_CHECKED, card_html, card_markdown


class Balanced(HTMLParser):
    """Counts tags that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_card_says_what_matters(clinic: Path, plan: Callable[..., dict[str, Any]]) -> None:
    made = dp.publish(plan(), clinic / "out")
    text, page = card_markdown(made.facts), card_html(made.facts)
    assert (clinic / "out" / "card.md").read_text() == text
    assert (clinic / "out" / "card.html").read_text() == page
    for said in ("one person (all rows of one patient_id)", made.cost, NOT_CHECKED, "discreet verify", "met"):
        assert said in text
    assert "odds that this person is in the data" in text
    assert "Visits \\| to the" not in text.split("\n")[0], "a heading is no cell of a table"
    reader = Balanced()
    reader.feed(page)
    assert reader.open == []
    assert "script" not in reader.seen
    assert "link" not in reader.seen
    assert "img" not in reader.seen
    assert "&lt;clinic&gt;" in page
    assert not re.search(r"https?://", page), "nothing is loaded from elsewhere"
    assert "<i>" not in card_html(marked(made.facts)), "what a plan, a policy or a ledger says is no markup"


def marked(value: Any, name: str = "") -> Any:
    """The same facts, with markup in every text. The kind of a table is one of three words."""
    if isinstance(value, str):
        return value if name == "kind" else f"{value}<i>"
    if isinstance(value, dict):
        return {own: marked(one, own) for own, one in value.items()}
    return [marked(one) for one in value] if isinstance(value, list | tuple) else value


@pytest.mark.slow
def test_a_table_of_public_data_costs_nothing_and_the_card_says_so(
    clinic: Path, plan: Callable[..., dict[str, Any]]
) -> None:
    words = plan("by_city")
    words["tables"] = {"countries": {"sql": "SELECT country, COUNT(*) AS n FROM cities GROUP BY country", "epsilon": 1}}
    made = dp.publish(words, clinic / "out")
    assert made.facts["receipts"] == []
    assert "it reads public tables only" in card_markdown(made.facts)
    assert dp.publication.verify_publication(clinic / "out", clinic / "clinic.ledger").holds

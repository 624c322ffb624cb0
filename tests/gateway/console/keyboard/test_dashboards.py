"""Dashboards with a keyboard alone: an owner makes and shares one, an analyst asks to publish, a viewer looks."""

from __future__ import annotations

import itertools
import re

import pytest

from ..conftest import serving
from .keyboard import Keyboard
from .test_analyst import ask

pytestmark = pytest.mark.slow
VERSIONS = itertools.count(2)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A gateway that serves the first version of its data."""
    with serving(tmp_path_factory.mktemp("site"), 'version = "v1"') as made:
        yield made


def publish(site):
    """Serve another version of the data from now on."""
    site.stop()
    text = re.sub(r'version = "[^"]*"', f'version = "v{next(VERSIONS)}"', site.policy.read_text())
    site.policy.write_text(text)
    site.serve("--not-isolated")


def make(keys: Keyboard, title: str) -> None:
    """A dashboard with two answers that were just bought."""
    keys.follow("Ask")
    first = ask(keys, f"SELECT city, COUNT(*) AS {title} FROM visits GROUP BY city", "0.2")
    keys.follow("Add it to a dashboard")
    keys.check_walk()
    keys.write("Title", title)
    keys.press("Make it")
    keys.says("The dashboard was made.")
    keys.write("Title", "Towns")
    keys.choose("One of your last answers", first)
    keys.press("Add it")
    keys.says("The tile was added. Nothing was charged.")
    keys.follow("Ask")
    ask(keys, f"SELECT COUNT(*) AS {title} FROM visits", "0.2")
    keys.follow("Add it to a dashboard")
    keys.choose("To the dashboard", title)
    keys.write("Title of the tile", "People")
    keys.press("Add it")
    keys.says("The tile was added. Nothing was charged.")


def test_an_owner_makes_shares_and_renews_a_dashboard(keyboard, browser, site):
    keys = keyboard("olga")
    title = "seen" if keys.scripts else "shown"
    make(keys, title)
    keys.check_walk()
    keys.press("Earlier People")
    keys.says("The tile was moved.")
    assert keys.page.locator("article h2").all_inner_texts() == ["People", "Towns"]
    keys.write("Title of the tile", "Everybody")  # of the first one
    keys.press("Save")
    keys.says("The new title is saved.")
    keys.reach("radio", "by hand: nothing is paid until somebody chooses to")
    keys.page.keyboard.press("ArrowDown")
    keys.look()
    keys.write("The rule may spend in all, from now on (ε)", "0.3")
    keys.press("Save the rule")
    keys.says("The rule is saved.")
    keys.reach("radio", "by a rule: each tile is bought anew for each version, from your budget")
    keys.page.keyboard.press("ArrowUp")
    keys.press("Save the rule")
    keys.follow("Done")
    keys.press("Publish")
    keys.says("every account sees it, for free")
    keys.check_walk()
    publish(site)
    browser.url = site.url
    keys, before = keyboard("olga"), site.ledger.count
    keys.follow("Dashboards")
    keys.follow(title)
    keys.check_walk()
    pays = keys.page.get_by_role("button", name="for the new version Everybody")
    keys.press(pays.inner_text().replace("\n", " "))
    keys.says("The tile shows the new version.")
    assert site.ledger.count == before + 1
    keys.press("Take it back")
    keys.says("yours alone again")
    keys.follow("Edit")
    keys.press("Remove Towns")
    keys.says("It was removed.")
    keys.press("Remove the dashboard")
    keys.says("It was removed.")


def test_an_analyst_asks_to_publish_and_a_viewer_looks(keyboard, site):
    keys = keyboard("alice")
    title = "told" if keys.scripts else "said"
    make(keys, title)
    keys.press("Ask to publish it")
    keys.says("An owner or a steward will look")
    other = keyboard("olga" if keys.scripts else "stefan")
    other.follow("Dashboards")
    other.follow(title)
    other.press("Publish")
    other.says("every account sees it, for free")
    before = site.ledger.count
    viewer = keyboard("vera")
    viewer.follow("Dashboards")
    viewer.check_walk()
    viewer.follow(title)
    viewer.unfold("The numbers")
    viewer.reach("region", viewer.page.locator("article .wide").first.get_attribute("aria-label"))
    viewer.unfold("The question")
    viewer.check_walk()
    assert viewer.page.get_by_role("link", name="Edit").count() == 0
    viewer.follow("Budget")
    viewer.says("asks nothing new, so it has no budget")
    viewer.follow("History")
    viewer.says("Nothing was asked yet.")
    viewer.follow("Policy")
    viewer.follow("vera")
    viewer.press("Log out")
    assert site.ledger.count == before

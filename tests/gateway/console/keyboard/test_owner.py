"""Owners, stewards and auditors with a keyboard alone: accounts, requests, the policy, the records, the health."""

from __future__ import annotations

import pytest

from ..conftest import serving
from .keyboard import Keyboard
from .test_analyst import labels

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A gateway where questions above ε = 0.5 need a second person."""
    with serving(tmp_path_factory.mktemp("site"), "[gateway.limits]\napprove_above = 0.5") as made:
        yield made


def test_accounts_from_the_first_link_to_the_end(keyboard):
    keys = keyboard("olga")
    name = "lee" if keys.scripts else "mia"
    keys.follow("Accounts")
    keys.write("Name", name)
    keys.choose("Role", "analyst")
    keys.write("Limit ε", "2")
    keys.press("Open the account")
    keys.check_walk()
    assert "/login#" in keys.reach("textbox", "Link").input_value()
    if keys.scripts:
        keys.turn("button", "Copy", "Enter")
        keys.page.get_by_text("Copied.").or_(keys.page.get_by_text("Press Ctrl-C")).wait_for()
        keys.look()
    keys.follow("Done")
    keys.check_walk()
    _change_limits(keys)
    _give_a_token(keys)
    keys.press("Make a login link")
    keys.follow("Done")
    keys.press("Suspend this account")
    keys.says("The account is suspended.")
    keys.press("Resume this account")
    keys.says("The account is resumed.")
    keys.choose("Role", "viewer")
    keys.press("Change")
    keys.says("The role is changed.")
    keys.press("Revoke all tokens and links")
    keys.says("All tokens and login links of the account are revoked.")
    keys.follow("All accounts")
    keys.follow(name)


def _change_limits(keys: Keyboard) -> None:
    keys.write("New limit ε, in all", "3")
    keys.write("Why", "More questions.")
    keys.press("Raise")
    keys.says("The limit is raised.")
    keys.write("New limit ε, in all", "1")  # less than before
    keys.write("Why", "Fewer questions.")
    keys.press("Raise")
    keys.page.get_by_role("alert").wait_for()
    keys.check_walk()
    keys.write("Limit ε", "1")
    keys.write("Why", "A new year.")  # the next one on the way
    keys.press("Begin")
    keys.says("A new period has begun")


def _give_a_token(keys: Keyboard) -> None:
    keys.write("Name", "notebook")
    keys.write("Ends after", "30d")
    keys.write("May spend ε", "0.5")
    keys.turn("checkbox", "explain")
    keys.press("Make the token")
    assert keys.reach("textbox", "Token").input_value().startswith("dsc_")
    keys.follow("Done")
    keys.press(labels(keys, "New secret for notebook")[0])
    keys.follow("Done")
    keys.press(labels(keys, "Revoke notebook")[0])
    keys.says("The token is revoked.")


def test_all_charged_questions_are_stopped(keyboard):
    keys = keyboard("olga")
    keys.follow("Accounts")
    keys.press("Stop all charged questions")
    keys.says("All charged questions are stopped.")
    keys.check_walk()
    keys.press("Answer them again")
    keys.says("Charged questions are answered again.")


@pytest.mark.parametrize("decides", ["olga", "stefan"])
def test_a_large_question_is_decided(keyboard, site, decides):
    analyst = keyboard("alice")
    sql = f"SELECT COUNT(*) AS n FROM visits WHERE cost > {len(decides) + 10 * analyst.scripts}"
    analyst.write("Question in SQL", sql)
    analyst.write("ε", "0.9")
    analyst.press("Ask")
    analyst.follow("See your requests.")
    analyst.check_walk()
    number = analyst.page.get_by_role("rowheader").first.inner_text()
    other = keyboard(decides)
    other.follow("Requests")
    other.follow(number)
    other.check_walk()
    other.write("Why (optional)", "For the yearly report.")
    other.press("Approve" if decides == "olga" else "Refuse")
    other.says("The question is approved." if decides == "olga" else "The question is refused.")
    analyst.follow(number)
    analyst.follow("All requests")
    before = site.ledger.count
    analyst.follow("Ask")
    analyst.write("Question in SQL", sql)
    analyst.write("ε", "0.9")
    analyst.press("Ask")
    assert site.ledger.count == before + (decides == "olga")


@pytest.mark.parametrize(("decides", "decision"), [("olga", "Accept"), ("stefan", "Refuse")])
def test_a_proposal_is_written_and_decided(keyboard, decides, decision):
    keys = keyboard("alice")
    keys.follow("Policy")
    keys.follow("Propose a change")
    keys.check_walk()
    town = "Izola" if keys.scripts else "Piran"
    text = keys.reach("textbox", "Text")
    keys.page.keyboard.press("Control+Home")
    for _ in range(300):
        if text.evaluate("""one => one.value.slice(0, one.selectionStart).includes('"Haifa"')"""):
            break
        keys.page.keyboard.press("ArrowDown")
    keys.page.keyboard.press("Home")
    keys.page.keyboard.type(f'"{town}",\n')
    keys.write("Why (optional)", "One more town.")
    keys.press("Propose")
    keys.says("Your proposal is stored.")
    number = keys.page.get_by_role("heading", level=1).inner_text()
    other = keyboard(decides)
    other.follow("Policy")
    other.follow(number)
    other.check_walk()
    other.reach("region", "The difference")
    assert any(town in one for one in other.page.locator("ins").all_inner_texts())
    other.write("Why (optional)", "As declared.")
    other.press(decision)
    other.says("The proposal is accepted." if decision == "Accept" else "The proposal is refused.")
    other.unfold("Decided before")
    other.check_walk()
    other.follow(number)
    other.follow("The policy")
    other.reach("region", "The text")
    other.follow("The whole text")
    assert other.page.url.endswith("/policy/text")


@pytest.mark.parametrize("name", ["olga", "aude"])
def test_the_records_are_read_and_verified(keyboard, name):
    keys = keyboard(name)
    keys.follow("Record")
    keys.press("Verify the records")
    keys.says("Everything is whole.")
    keys.check_walk()
    keys.reach("region", "Entries of the ledger")
    keys.follow("Audit")
    keys.write("Account", name)
    keys.write("Event begins with", "log", role="combobox")
    keys.page.keyboard.press("Escape")  # no suggestion of the browser
    keys.press("Search")
    assert "what=log" in keys.page.url
    assert set(keys.page.locator("tbody tr td:nth-child(3)").all_inner_texts()) == {name}
    keys.check_walk()
    keys.follow("All")
    keys.reach("region", "Lines of the audit")
    keys.follow("Health")
    keys.says("Nothing on this page depends on a row of the data.")
    assert keys.page.get_by_text("does not answer").count() == 0
    keys.follow("Budget")
    keys.follow("alice")
    keys.follow("What alice asked")
    keys.write("Account", "alice")
    keys.press("Search")
    keys.check_walk()

"""An analyst with a keyboard alone: asking, the form without SQL, answers and their files, the history, the budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from .keyboard import Keyboard

pytestmark = pytest.mark.slow
SQL = "Question in SQL"


def ask(keys: Keyboard, sql: str, epsilon: str) -> str:
    """Ask on the page that is open, and give the receipt."""
    keys.write(SQL, sql)
    if keys.scripts:
        keys.page.keyboard.press("Escape")  # no suggestion
    keys.write("ε", epsilon)
    keys.press("Ask")
    keys.page.wait_for_url("**/answers/*")
    return keys.page.locator("dl.facts a").inner_text()


def test_from_a_question_to_its_files(keyboard, site):
    keys = keyboard("alice")
    page, before = keys.page, site.ledger.count
    keys.reach("textbox", SQL)
    keys.page.keyboard.type("SELECT city, COUNT(*) AS n FROM visits GROUP BY ")
    keys.page.keyboard.type("city" if not keys.scripts else "cit")
    if keys.scripts:
        page.get_by_role("listbox", name="Suggestions").wait_for()
        page.keyboard.press("Tab")  # takes the suggestion
        assert page.input_value("#sql").endswith("GROUP BY city")
        keys.reach("slider", "less noise costs more")
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        assert float(page.input_value("#epsilon")) > 0.1
        keys.says("3, by city")
    else:
        keys.write("ε", "0.21")
        keys.enter()  # shows the plan, and charges nothing
    assert site.ledger.count == before
    keys.unfold("How ε is divided")
    keys.check_walk()
    keys.press("Ask")
    page.wait_for_url("**/answers/*")
    assert site.ledger.count == before + 1
    keys.check_walk()
    place, receipt = page.url, page.locator("dl.facts a").inner_text()
    for name, starts in (("CSV", b"city,n"), ("Arrow", b"\xff\xff\xff\xff"), ("SVG", b"<?xml")):
        with keys.download(name) as file:
            assert Path(file.path()).read_bytes().startswith(starts)
    if keys.scripts:
        with keys.download("PNG", role="button") as file:
            assert Path(file.path()).read_bytes().startswith(b"\x89PNG")
        page.wait_for_function("() => document.activeElement.id === 'png-file'")  # the focus stays
    keys.follow(receipt)  # the address that lasts
    assert page.url == place
    keys.reach("region", "Table")
    keys.follow("Change the question.")
    keys.says("This was bought before")
    keys.follow("History")
    keys.write("Text in the question", "group by", role="searchbox")
    keys.enter()
    keys.check_walk()
    with keys.download("Download CSV") as file:
        assert receipt in Path(file.path()).read_text()
    keys.follow(receipt)
    assert page.url == place
    assert site.ledger.count == before + 1


def test_without_sql(keyboard, site):
    keys = keyboard("alice")
    keys.follow("Build a question without SQL.")
    keys.choose("Table", "visits")
    keys.press("Next")
    keys.choose("What", "Average")
    keys.choose("Of the column", "cost")
    keys.turn("checkbox", "city")
    keys.unfold("Filters")
    keys.check_walk()
    keys.write("cost to", "90" if keys.scripts else "80")
    keys.write("Cost ε", "0.2")
    keys.press("Show the question")
    keys.says("GROUP BY")
    keys.check_walk()
    keys.press("Show the plan")
    keys.says("avg(cost)")
    before = site.ledger.count
    keys.press("Ask", key="Space")
    keys.page.wait_for_url("**/answers/*")
    assert site.ledger.count == before + 1


def test_within_an_error(keyboard, site):
    keys = keyboard("alice")
    keys.write(SQL, "SELECT COUNT(*) AS n FROM visits")
    if keys.scripts:
        keys.page.keyboard.press("Escape")
        keys.page.locator("#plan", has_text="Expected error").wait_for()
    else:
        keys.press("Show the plan")
    keys.reach("radio", "At a cost")
    keys.page.keyboard.press("ArrowDown")
    keys.look()
    assert keys.page.get_by_role("radio", name="Within an error").is_checked()
    keys.write("± of n", "40")
    if keys.scripts:
        keys.page.locator("#plan", has_text="± 40").wait_for()
    else:
        keys.enter()
        keys.says("± 40")
    keys.check_walk()
    keys.press("Ask")
    keys.page.wait_for_url("**/answers/*")


def test_a_refused_question_is_replaced(keyboard):
    keys = keyboard("alice")
    keys.write(SQL, "SELECT COUNT(*) AS m FROM vistis")
    if not keys.scripts:
        keys.press("Show the plan")
    keys.reach("link", "Use this instead")
    keys.check_walk()
    keys.reach("link", "Use this instead")
    keys.page.keyboard.press("Enter")
    keys.page.locator("#plan", has_text="Expected error").wait_for()
    assert keys.page.input_value("#sql").endswith("FROM visits")
    if keys.scripts:
        keys.look()
        keys.turn("button", "cost", "Enter")  # a name on the left
        assert keys.page.input_value("#sql").endswith("FROM visits cost")
        keys.page.keyboard.type(" GRO")
        keys.page.get_by_role("listbox", name="Suggestions").wait_for()
        keys.tab(back=True)  # leaves the text, and takes nothing
        assert keys.page.input_value("#sql").endswith(" GRO")
        assert keys.page.locator(".suggestions").is_hidden()


@pytest.mark.parametrize("keyboard", ["desktop"], indirect=True)
def test_the_focus_stays_while_the_plan_changes(keyboard):
    keys = keyboard("alice")
    keys.write(SQL, "SELECT SUM(cost) AS s FROM visits")
    keys.page.keyboard.press("Escape")
    keys.page.locator("#plan", has_text="Expected error").wait_for()
    keys.unfold("How ε is divided")
    held = []
    keys.page.route("**/ask/plan", lambda route: held.append(route))
    with keys.page.expect_request("**/ask/plan"):
        keys.write("ε", "0.3")
    keys.reach_fold("How ε is divided")
    for route in held:
        route.continue_()
    keys.page.locator("#plan", has_text="ε = 0.3").wait_for()
    keys.look()
    assert keys.page.evaluate("() => document.activeElement.tagName") == "SUMMARY"
    assert keys.page.locator("#plan details").evaluate("one => one.open")


@pytest.mark.parametrize("keyboard", ["desktop"], indirect=True)
def test_the_focus_stays_while_one_waits(keyboard):
    keys = keyboard("alice")
    keys.write(SQL, "SELECT SUM(cost) AS w FROM visits")
    keys.page.keyboard.press("Escape")
    keys.page.locator("#plan", has_text="Expected error").wait_for()
    sent = []

    def take(route):
        sent.append(route.request.method)
        route.fulfill(status=204)  # the page stays as it is while one waits

    keys.page.route("**/ask", take)
    keys.reach("button", "Ask")
    for _ in range(2):  # the second time sends nothing
        keys.page.keyboard.press("Enter")
        keys.says("Asking …")
    keys.look()
    assert keys.page.evaluate("() => document.activeElement.id") == "ask-now"
    assert sent == ["POST"]


def test_what_is_left_and_what_it_means(keyboard):
    keys = keyboard("alice")
    ask(keys, f"SELECT COUNT(*) AS {'left' if keys.scripts else 'rest'} FROM visits WHERE cost > 9", "0.15")
    keys.follow("Budget")
    keys.unfold("What was left, newest first")
    keys.check_walk()
    keys.follow("The whole picture: odds, attacks, households")
    keys.choose("People in a household", "4")
    keys.write("Base rate, in percent", "2")
    keys.press("Show")
    keys.says("for 4 people of one household together")
    keys.check_walk()
    assert keys.page.get_by_role("rowheader", name="2%").count() == 2


def test_tokens_and_the_way_out(keyboard):
    keys = keyboard("alice")
    keys.follow("alice")
    keys.follow("Your tokens")
    name = f"notebook-{'s' if keys.scripts else 'n'}"
    keys.write("Name", name)
    keys.write("Ends after", "30d")
    keys.turn("checkbox", "explain")
    keys.press("Make the token")
    keys.check_walk()
    token = keys.reach("textbox", "Token").input_value()
    assert token.startswith("dsc_")
    if keys.scripts:
        keys.turn("button", "Copy", "Enter")
        keys.page.get_by_text("Copied.").or_(keys.page.get_by_text("Press Ctrl-C")).wait_for()
        keys.look()
    keys.follow("Done")
    keys.check_walk()
    keys.press(labels(keys, f"New secret for {name}")[0])
    keys.follow("Done")
    keys.press(labels(keys, f"Revoke {name}")[0])
    keys.says("The token is revoked.")
    keys.follow("Report it.")
    keys.write("Token", token, role=None)
    keys.press("Report it")
    keys.says("If it was a valid token, it no longer is.")
    keys.check_walk()
    keys.follow("discreet clinic")
    keys.press("Log out")
    keys.says("The owner of the data gives you a login link.")


def labels(keys: Keyboard, start: str) -> list[str]:
    """The names of the buttons that begin with a text."""
    found = keys.page.get_by_role("button", name=start)
    found.first.wait_for()
    return [one.get_attribute("aria-label") for one in found.all()]

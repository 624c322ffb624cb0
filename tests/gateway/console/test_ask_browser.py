"""Asking in a real browser: by keyboard, with and without scripts, on a desktop and a phone, light and dark."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

from ..house import BY_CITY
from .browser import check_accessible, check_fits, check_small, save_picture

pytestmark = pytest.mark.slow


def asked(sql, epsilon="0.2"):
    return f"/ask?{urlencode({'sql': sql, 'epsilon': epsilon})}"


def plan_has(page, text):
    """Wait until the plan shows a text."""
    page.locator("#plan", has_text=text).wait_for()


def reach(page, locator):
    """Press Tab until an element has the focus."""
    for _ in range(60):
        if locator.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("it cannot be reached by Tab")


def test_by_keyboard_alone(site, browser):
    page = browser.open(site.login_link("alice"))
    page.goto("/ask")
    assert page.input_value("#epsilon") == "0.1"  # the owner's default
    reach(page, page.locator("#sql"))
    page.keyboard.type("SELECT city, COUNT(*) AS n FROM vis")
    page.get_by_role("listbox", name="Suggestions").wait_for()
    assert page.locator("#sql").get_attribute("aria-activedescendant") == "suggestion-0"
    page.keyboard.press("Tab")  # takes the suggestion, and stays in the text
    assert page.input_value("#sql").endswith("FROM visits")
    page.keyboard.type(" GROUP BY ci")
    page.locator(".suggestions [role=option]").first.wait_for()
    page.keyboard.press("Escape")
    assert page.locator(".suggestions").is_hidden()
    page.keyboard.type("t")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert page.input_value("#sql").endswith("GROUP BY city")
    plan_has(page, "3, by city")
    assert "sql=SELECT+city" in page.url  # the address follows
    reach(page, page.get_by_role("button", name="Ask", exact=True))
    page.keyboard.press("Enter")
    page.wait_for_url("**/answers/**")
    assert page.locator("svg.picture .bar").first.is_visible()
    assert page.locator("table tbody tr").count() == 3


def test_the_plan_follows_the_slider_and_the_error(site, browser):
    page = browser.open(site.login_link("alice"))
    page.goto(asked("SELECT COUNT(*) AS n FROM visits"))
    plan_has(page, "ε = 0.2")
    before = page.locator("#plan tbody td").nth(1).inner_text()
    page.locator("#epsilon-slider").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    epsilon = page.input_value("#epsilon")
    assert float(epsilon) > 0.2
    plan_has(page, f"ε = {float(epsilon):g}")
    assert page.locator("#plan tbody td").nth(1).inner_text() != before
    page.get_by_label("± of n").fill("40")
    assert page.get_by_label("Within an error").is_checked()
    plan_has(page, "± 40")
    assert page.get_by_label("± of n").input_value() == "40"  # it was not replaced while one types
    assert "within=40" in page.url
    assert page.input_value("#epsilon") != epsilon  # the slider follows the error, too
    plan_has(page, f"ε = {page.input_value('#epsilon')}")
    page.locator("#sql").fill("SELECT COUNT(*) AS m FROM visits WHERE cost > 1")
    page.get_by_label("At a cost").check()
    page.get_by_label("± of m").wait_for()


def test_a_refused_question_is_underlined_and_can_be_replaced(site, browser, axe):
    page = browser.open(site.login_link("alice"))
    page.goto("/ask")
    page.locator("#sql").fill("SELECT COUNT(*) AS n -- 𝒳\nFROM vistis")
    page.locator(".shadow mark").wait_for()
    assert page.locator(".shadow mark").inner_text() == "vistis"
    check_accessible(page, axe)
    save_picture(page, "ask-refused")
    page.get_by_role("link", name="Use this instead").click()
    plan_has(page, "Left after it")
    assert page.input_value("#sql").endswith("FROM visits")
    assert page.locator(".shadow mark").count() == 0


def test_an_answer_and_its_files(site, browser, axe):
    page = browser.open(site.login_link("alice"))
    page.goto(asked(BY_CITY, "0.5"))
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**/answers/**")
    check_accessible(page, axe)
    check_small(page)
    save_picture(page, "answer")
    for name, starts in (("CSV", b"city,n"), ("Arrow", b"\xff\xff\xff\xff"), ("SVG", b"<?xml"), ("PNG", b"\x89PNG")):
        with page.expect_download() as waiting:
            page.get_by_role("link" if name != "PNG" else "button", name=name).click()
        content = Path(waiting.value.path()).read_bytes()
        assert content.startswith(starts), name
        assert waiting.value.suggested_filename.endswith(f".{name.lower()}")
        if name == "PNG":
            assert int.from_bytes(content[16:20], "big") == 1360
    page.get_by_role("link", name="Change the question").click()
    plan_has(page, "This was bought before")


def test_names_on_the_left_are_inserted(site, browser):
    page = browser.open(site.login_link("alice"))
    page.goto("/ask")
    page.locator("#sql").fill("SELECT AVG(")
    page.get_by_role("button", name="cost", exact=True).click()
    assert page.input_value("#sql") == "SELECT AVG(cost"


@pytest.mark.parametrize("size", ["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_and_are_accessible(site, browser, axe, size, scheme):
    page = browser.open(site.login_link("alice"), size=size, scheme=scheme)
    for path, name in ((asked(BY_CITY), "ask"), ("/guided", "guided-table"), ("/guided?table=visits", "guided")):
        page.goto(path)
        if name == "ask":
            page.locator("#epsilon-slider").wait_for()
        check_fits(page)
        check_accessible(page, axe)
        check_small(page)
        save_picture(page, f"{name}-{size}-{scheme}")
    page.goto(asked(BY_CITY))
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**/answers/**")
    check_fits(page)
    check_accessible(page, axe)
    save_picture(page, f"answer-{size}-{scheme}")


def test_without_scripts(site, browser):
    page = browser.open(site.login_link("alice"), scripts=False)
    page.goto("/guided")
    page.get_by_label("Table").select_option("visits")
    page.get_by_role("button", name="Next").click()
    page.get_by_label("What").select_option("average")
    page.get_by_label("Of the column").select_option("cost")
    page.get_by_label("city", exact=True).check()
    page.get_by_role("button", name="Show the plan").click()
    plan_has(page, "avg(cost)")
    assert page.locator("button:visible", has_text="Insert").count() == 0
    page.get_by_label("Question in SQL").fill("SELECT COUNT(*) AS k FROM visits WHERE cost > 5")
    page.locator("#epsilon").fill("0.3")
    page.locator("#epsilon").press("Enter")  # shows the plan, and charges nothing
    plan_has(page, "ε = 0.3")
    assert "/ask?" in page.url
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**/answers/**")
    assert page.get_by_role("button", name="PNG").count() == 0
    assert page.locator("svg.picture .bar").first.is_visible()


def test_a_viewer_looks_and_an_owner_asks(site, browser):
    page = browser.open(site.login_link("vera"))
    page.goto(asked("SELECT COUNT(*) AS v FROM visits"))
    page.get_by_role("button", name="Show if it was bought").click()
    page.get_by_role("alert").wait_for()
    page = browser.open(site.login_link("olga"))
    page.goto(asked("SELECT COUNT(*) AS v FROM visits"))
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**/answers/**")

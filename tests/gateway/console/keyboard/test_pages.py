"""Every page with Tab alone: the focus is always seen, goes as one reads, reaches everything, and is never trapped."""

from __future__ import annotations

import pytest

from discreet.gateway.console.site import NAVIGATION

from ..conftest import ACCOUNTS
from .keyboard import Keyboard

pytestmark = pytest.mark.slow
LOOKS = [("desktop", "light"), ("phone", "dark"), ("desktop", "dark"), ("phone", "light")]
"""All of them are seen by the owner. Other roles have fewer pages, and one of these."""
WALKED = [("olga", *look) for look in LOOKS] + [
    (name, *LOOKS[number % len(LOOKS)]) for number, name in enumerate(ACCOUNTS) if name != "olga"
]


@pytest.mark.parametrize(("name", "size", "scheme"), WALKED)
def test_tab_reaches_everything_and_is_seen(site, browser, name, size, scheme):
    keys = Keyboard(browser.open(size=size, scheme=scheme))
    keys.log_in(site.login_link(name))
    pages = [item.name for item in NAVIGATION if ACCOUNTS[name] in item.roles]
    for page in pages:
        keys.follow(page)
        keys.check_walk()
    keys.follow(name)  # one's own page
    keys.check_walk()


@pytest.mark.parametrize(("size", "scheme"), LOOKS)
def test_one_can_skip_to_the_content(site, browser, size, scheme):
    page = browser.open(size=size, scheme=scheme)
    page.goto(f"{site.url}/login")
    keys = Keyboard(page)
    keys.check_walk()
    keys.log_in(site.login_link("olga"))
    keys.tab()
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    keys.look()
    assert page.evaluate("() => document.activeElement.id") == "main"
    keys.tab()
    assert page.evaluate("() => document.activeElement.closest('main') !== null")


TRAP, ONE_WAY = "event.key === 'Tab'", "event.key === 'Tab' && event.shiftKey"
LINKS = "<p><a href=#>a</a></p>"
FAULTS = {
    "no ring": ("<style>:focus { outline: none }</style>" + LINKS, "no ring"),
    "a thin ring": ("<style>:focus { outline: 1px solid black }</style>" + LINKS, "no ring"),
    "a clear ring": ("<style>:focus { outline: 3px solid transparent }</style>" + LINKS, "without a color"),
    "a pale ring": ("<style>:focus { outline: 3px solid #ccc }</style>" + LINKS, "a contrast of 1.6"),
    "another order": (
        "<div style='display: flex; flex-direction: row-reverse'><a href=#>a</a><a href=#>b</a></div>",
        "in which one reads",
    ),
    "an order of its own": (LINKS + "<p><a href=# tabindex=1>b</a></p>" + LINKS, "another order|in which one reads"),
    "out of sight": ("<a href=# style='position: absolute; left: -99rem'>a</a>", "out of sight"),
    "no size": ("<button style='width: 0; height: 0; padding: 0; border: 0'></button>", "no size"),
    "covered": (LINKS + "<div style='position: fixed; inset: 0; background: white'></div>", "covered"),
    "a trap": (f'{LINKS}<input onkeydown="if ({TRAP}) event.preventDefault()">{LINKS}', "trapped|Tab does not"),
    "a circle": ("<a href=#>a</a> <a href=#>b</a> <a href=# onfocus='this.previousElementSibling.focus()'>c</a>",
                 "trapped"),
    "no button": (LINKS + "<div role=button>b</div>", "does not stop at"),
    "no way back": (f'{LINKS}<input onkeydown="if ({ONE_WAY}) event.preventDefault()">{LINKS}', "trapped|Shift-Tab"),
}  # fmt: skip
RIGHT = "<p><a href=#>a</a> <input> <button>b</button></p><div><select><option>c</option></select></div>"
RING = "<style>:focus-visible { outline: 3px solid #175e54 }</style>"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_page_with_a_fault_is_found(browser, fault):
    page = browser.open()
    keys = Keyboard(page)
    page.set_content(RING + RIGHT)
    keys.check_walk()
    text, words = FAULTS[fault]
    page.set_content(RING + text)
    with pytest.raises(AssertionError, match=words):
        keys.check_walk()

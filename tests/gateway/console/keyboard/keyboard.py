"""Somebody at a browser who has nothing but a keyboard: no mouse, and no address bar after the login link.

Each stop of the focus is looked at: it has a ring with enough contrast, is in sight, and comes after the stop before
it as one reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOCUS = (Path(__file__).parent / "focus.js").read_text(encoding="utf-8")
MOST_STOPS = 400
"""A page with more stops than this has a trap."""


class Keyboard:
    """A page, and the keys that are pressed at it."""

    def __init__(self, page: Any, *, scripts: bool = True) -> None:
        self.page, self.scripts = page, scripts

    def log_in(self, link: str) -> None:
        """Open a login link and press its button, or type the link where scripts are off."""
        if self.scripts:
            self.page.goto(link)
            # on the same page only the part after # changes, and a script notices it a moment later
            self.page.wait_for_function("() => document.activeElement.matches('main button')")
            self.page.keyboard.press("Enter")
        else:
            self.page.goto("/login")
            self.write("Login link", link, role=None)
            self.page.keyboard.press("Enter")
        self.page.get_by_role("button", name="Log out").wait_for()

    def tab(self, *, back: bool = False) -> int | None:
        """Press Tab, and look where the focus is: the number of the stop, or None if it left the page."""
        self.page.keyboard.press("Shift+Tab" if back else "Tab")
        return self.look(back=back)

    def look(self, *, back: bool = False) -> int | None:
        """Fail if a person would not see where the focus is."""
        found = self.page.evaluate(f"back => {{ {FOCUS}; return atStop(back) }}", back)
        assert not found["wrong"], f"{self.page.url}: {found['wrong']}"
        return found["at"]

    def walk(self, *, back: bool = False) -> list[int]:
        """Press Tab once around a page, and give the stops by their numbers, from the first one on."""
        self.page.evaluate(f"() => {{ {FOCUS}; globalThis.expected = expectedStops() }}")
        found = list[int]()
        for _ in range(MOST_STOPS):
            at = self.tab(back=back)
            if found and at == found[0]:
                start = found.index((max if back else min)(found))
                return found[start:] + found[:start]
            if at is not None and at >= 0:  # neither the browser's own buttons, nor a part that scrolls
                found.append(at)
        raise AssertionError(f"{self.page.url}: the focus is trapped")

    def check_walk(self) -> None:
        """Fail if Tab does not stop at everything, or if Shift-Tab does not go back the same way."""
        there = self.walk()
        expected = self.page.evaluate("() => globalThis.expected.map(one => one.outerHTML.slice(0, 160))")
        missed = [text for number, text in enumerate(expected) if number not in there]
        assert not missed, f"{self.page.url}: Tab does not stop at {missed}"
        assert there == sorted(there), f"{self.page.url}: Tab has another order than the page: {there}"
        again = self.walk(back=True)
        assert again == there[::-1], f"{self.page.url}: Tab stops at {there}, and Shift-Tab at {again}"

    # --- what a person does ---------------------------------------------------------------------------------------

    def find(self, role: str | None, name: str) -> Any:
        """The elements with a role and a name, or with a label alone."""
        if role is None:
            return self.page.get_by_label(name, exact=True)
        return self.page.get_by_role(role, name=name, exact=True)

    def reach(self, role: str | None, name: str) -> Any:
        """Press Tab until the element has the focus."""
        return self._reach(self.find(role, name), f"{role} {name!r}")

    def reach_fold(self, text: str) -> Any:
        """Press Tab until a part that can be unfolded has the focus."""
        return self._reach(self.page.locator("summary", has_text=text), f"the part {text!r}")

    def _reach(self, wanted: Any, said: str) -> Any:
        wanted.first.wait_for()
        for _ in range(MOST_STOPS):
            if wanted.evaluate_all("found => found.includes(document.activeElement)"):
                return self.page.locator(":focus")
            self.tab()
        raise AssertionError(f"{self.page.url}: {said} cannot be reached by Tab")

    def press(self, name: str, *, role: str = "button", key: str = "Enter") -> None:
        """Press a button or a link that leads to a page."""
        self.reach(role, name)
        self._load(key)

    def _load(self, key: str) -> None:
        """Press a key, and wait for the page that it loads. A script that changes the address loads none."""
        with self.page.expect_event("domcontentloaded"):
            self.page.keyboard.press(key)

    def follow(self, name: str) -> None:
        """Follow a link."""
        self.press(name, role="link")

    def turn(self, role: str | None, name: str, key: str = "Space") -> None:
        """Press something that stays on the page, such as a box to check or a part to unfold."""
        self.reach(role, name)
        self.page.keyboard.press(key)
        self.look()

    def unfold(self, text: str) -> None:
        """Open a part of the page that is folded."""
        part = self.reach_fold(text)
        self.page.keyboard.press("Enter")
        assert part.evaluate("one => one.parentElement.open"), text
        self.look()

    def write(self, name: str, text: str, *, role: str | None = "textbox") -> None:
        """Replace what is in a field."""
        self.reach(role, name)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)

    def choose(self, name: str, option: str) -> None:
        """Choose in a list with the arrows."""
        field = self.reach("combobox", name)
        self.page.keyboard.press("Home")
        for _ in range(MOST_STOPS):
            if field.evaluate("one => one.selectedOptions[0].textContent.trim()").startswith(option):
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"{option!r} is not in the list")

    @contextmanager
    def download(self, name: str, *, role: str = "link") -> Iterator[Any]:
        """Press something that downloads a file."""
        self.reach(role, name)
        with self.page.expect_download() as waiting:
            self.page.keyboard.press("Enter")
        yield waiting.value
        self.look()

    def enter(self) -> None:
        """Press Enter where it sends a form."""
        self._load("Enter")

    def says(self, text: str) -> None:
        """Wait until the page shows a text."""
        self.page.get_by_text(text).first.wait_for()

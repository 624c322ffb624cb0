"""A real browser at the console: Debian's Chromium, driven by Playwright, which fails a test on anything suspicious.

Whatever the browser writes to its console, every violation of a page's content security policy, every error of a
script and every request that leaves this machine is noted, and the test fails at its end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
PICTURES = os.environ.get("DISCREET_PICTURES")
"""A folder for pictures of the pages, if somebody wants to look at them."""
ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")


class Browser:
    """One Chromium, and what it complained about."""

    def __init__(self, chromium: Any, url: str) -> None:
        self._chromium, self.url, self.complaints = chromium, url, list[str]()
        self._open: list[Any] = []

    def open(
        self,
        link: str | None = None,
        *,
        size: str = "desktop",
        scheme: str = "light",
        scripts: bool = True,
        trusting: bool = False,
    ) -> Any:
        """A page of a new session, which is logged in with a link if one is given. One that is trusting takes any
        certificate.
        """
        width, height = SIZES[size]
        context = self._chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            java_script_enabled=scripts,
            ignore_https_errors=trusting,
            has_touch=size == "phone",
            base_url=self.url,
            accept_downloads=True,
            reduced_motion="reduce",
        )
        context.set_default_timeout(20_000)
        self._open.append(context)
        context.on("request", self._check_local)
        context.on("weberror", lambda error: self.complaints.append(f"script: {error.error}"))
        page = context.new_page()
        page.on("console", self._note)
        if link is not None:
            self.log_in(page, link, scripts=scripts)
        return page

    @staticmethod
    def log_in(page: Any, link: str, *, scripts: bool = True) -> None:
        """Use a login link as a person would: open it, or paste it where scripts are off."""
        if scripts:
            page.goto(link)
        else:
            page.goto("/login")
            page.get_by_label("Login link").fill(link)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("button", name="Log out").wait_for()

    def _note(self, message: Any) -> None:
        # a page that is refused is in the browser's console, too; tests look at it themselves
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(f"{message.type}: {message.text}")

    def _check_local(self, request: Any) -> None:
        where = urlsplit(request.url)
        if where.scheme in ("http", "https", "ws", "wss") and where.hostname not in ("127.0.0.1", "localhost"):
            self.complaints.append(f"a request to {where.hostname}")

    def close(self) -> None:
        """Close all sessions, and fail if there were complaints."""
        for context in self._open:
            context.close()
        self._open.clear()
        complaints, self.complaints = self.complaints, []
        assert not complaints, complaints


@contextmanager
def chromium() -> Iterator[Any]:
    """A running Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(ARGUMENTS))
        try:
            yield running
        finally:
            running.close()


def save_picture(page: Any, name: str) -> None:
    """Keep a picture of the whole page, if a folder for them is named."""
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{PICTURES}/{name}.png", full_page=True)


def check_accessible(page: Any, axe: str) -> None:
    """Fail if axe-core finds anything on a page."""
    found = page.evaluate(f"async () => {{ {axe}; return (await axe.run()).violations }}")
    shown = [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in found]
    assert not shown, shown


def check_fits(page: Any) -> None:
    """Fail if a page is wider than the window."""
    wide, window = page.evaluate("() => [document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= window, f"the page is {wide} wide, the window {window}"


def check_small(page: Any, most: int = 60_000) -> None:
    """Fail if a page has more bytes than people should wait for."""
    size = len(page.content().encode())
    assert size <= most, f"{page.url} has {size} bytes"

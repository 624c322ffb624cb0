"""Every page of the console."""

from __future__ import annotations

from discreet.gateway.console import answers, asking, entrance, guided
from discreet.gateway.console.site import Page

PAGES: tuple[Page, ...] = (
    *entrance.PAGES,
    *asking.PAGES,
    *answers.PAGES,
    *guided.PAGES,
)

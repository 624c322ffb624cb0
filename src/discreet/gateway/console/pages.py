"""Every page of the console."""

from __future__ import annotations

from discreet.gateway.console import answers, asking, budgets, dashboards, entrance, guided, histories, risks
from discreet.gateway.console.site import Page

PAGES: tuple[Page, ...] = (
    *entrance.PAGES,
    *asking.PAGES,
    *answers.PAGES,
    *guided.PAGES,
    *histories.PAGES,
    *budgets.PAGES,
    *risks.PAGES,
    *dashboards.PAGES,
)

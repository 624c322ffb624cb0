"""Every page of the console."""

from __future__ import annotations

from discreet.gateway.console.page import Page
from discreet.gateway.console.pages import (
    accounts,
    answers,
    asking,
    budgets,
    dashboards,
    entrance,
    guided,
    histories,
    policy,
    records,
    requests,
    risks,
    setup,
    tokens,
)

PAGES: tuple[Page, ...] = (
    *entrance.PAGES,
    *asking.PAGES,
    *answers.PAGES,
    *guided.PAGES,
    *histories.PAGES,
    *budgets.PAGES,
    *risks.PAGES,
    *dashboards.PAGES,
    *accounts.PAGES,
    *tokens.PAGES,
    *requests.PAGES,
    *policy.PAGES,
    *records.PAGES,
    *setup.STARTED,
)

SETUP: tuple[Page, ...] = (*entrance.PAGES, *setup.PAGES)
"""The pages of a first run."""

"""Every page of the console."""

from __future__ import annotations

from discreet.gateway.console import (
    accounts,
    answers,
    asking,
    entrance,
    guided,
    policy,
    records,
    requests,
    setup,
    tokens,
)
from discreet.gateway.console.site import Page

PAGES: tuple[Page, ...] = (
    *entrance.PAGES,
    *asking.PAGES,
    *answers.PAGES,
    *guided.PAGES,
    *accounts.PAGES,
    *tokens.PAGES,
    *requests.PAGES,
    *policy.PAGES,
    *records.PAGES,
    *setup.STARTED,
)

SETUP: tuple[Page, ...] = (*entrance.PAGES, *setup.PAGES)
"""The pages of a first run."""

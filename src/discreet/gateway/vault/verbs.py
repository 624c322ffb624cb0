"""Every verb that needs only the books, by its name. The modules below register theirs when they are imported."""

from __future__ import annotations

from discreet.gateway.books import dashboards, histories, offices, spending
from discreet.gateway.vault import inspection

MODULES = (offices, histories, spending, dashboards, inspection)
VERBS = offices.VERBS
"""Every verb by its name."""

"""Every verb that needs only the books, by its name. The modules below register theirs when they are imported."""

from __future__ import annotations

from discreet.gateway import dashboards, histories, inspection, offices, spending

MODULES = (offices, histories, spending, dashboards, inspection)
VERBS = offices.VERBS
"""Every verb by its name."""

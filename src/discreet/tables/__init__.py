"""One table, queried by methods."""

from typing import TYPE_CHECKING

from discreet.exports import lazily

_LATER = {
    "Distribution": "distribution",
    "ExplainedTable": "table",
    "GroupedRelease": "grouped",
    "Offer": "offer",
    "PrivateTable": "table",
}

if TYPE_CHECKING:
    from discreet.tables.distribution import Distribution
    from discreet.tables.grouped import GroupedRelease
    from discreet.tables.offer import Offer
    from discreet.tables.table import ExplainedTable, PrivateTable
else:
    __getattr__, __dir__ = lazily(__name__, _LATER)

__all__ = [
    "Distribution",
    "ExplainedTable",
    "GroupedRelease",
    "Offer",
    "PrivateTable",
]

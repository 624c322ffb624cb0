"""What a data owner opens: a policy, and the database that analysts query."""

from typing import TYPE_CHECKING

from discreet.exports import lazily

_LATER = {
    "ColumnDescription": "description",
    "Database": "database",
    "Policy": "policy",
    "Prepared": "prepared",
    "Standing": "standing",
    "TableDescription": "description",
    "Tables": "description",
}

if TYPE_CHECKING:
    from discreet.datasets.database import Database
    from discreet.datasets.description import ColumnDescription, TableDescription, Tables
    from discreet.datasets.policy import Policy
    from discreet.datasets.prepared import Prepared
    from discreet.datasets.standing import Standing
else:
    __getattr__, __dir__ = lazily(__name__, _LATER)

__all__ = [
    "ColumnDescription",
    "Database",
    "Policy",
    "Prepared",
    "Standing",
    "TableDescription",
    "Tables",
]

"""What every error code means: what was written, why it is refused, and what to write instead.

One file per section. `docs/reference/errors.md` is made of these tables: `python docs/make/errors.py`.
"""

from __future__ import annotations

from discreet.error_codes.arguments import ARGUMENTS
from discreet.error_codes.classes import CLASSES
from discreet.error_codes.commands import COMMANDS
from discreet.error_codes.data import DATA
from discreet.error_codes.datasets import COLUMNS, POLICY
from discreet.error_codes.engines import ENGINES, SOURCES
from discreet.error_codes.files import FILES
from discreet.error_codes.gateway import GATEWAY
from discreet.error_codes.gateway_http import GATEWAY_HTTP
from discreet.error_codes.guarantees import GUARANTEES
from discreet.error_codes.learning import LEARNING
from discreet.error_codes.ledger import LEDGER
from discreet.error_codes.mechanisms import MECHANISMS
from discreet.error_codes.planning import PLANNING
from discreet.error_codes.polls import POLLS
from discreet.error_codes.publication import PUBLICATION
from discreet.error_codes.row import Explained
from discreet.error_codes.sql import SQL
from discreet.error_codes.standing import STANDING

SECTIONS: dict[str, dict[str, Explained]] = {
    "The most general codes": CLASSES,
    "Any argument": ARGUMENTS,
    "Tables and questions": PLANNING,
    "SQL": SQL,
    "Sources of data": SOURCES,
    "Policies": POLICY,
    "Columns": COLUMNS,
    "The ledger": LEDGER,
    "Publications": PUBLICATION,
    "Standing questions": STANDING,
    "The gateway": GATEWAY,
    "The gateway over HTTP": GATEWAY_HTTP,
    "The command line": COMMANDS,
    "Files and services": FILES,
    "Data, queries and spaces": DATA,
    "Mechanisms and releases": MECHANISMS,
    "Guarantees and rules": GUARANTEES,
    "Learning, curves, studies and audits": LEARNING,
    "Surveys and the shuffle model": POLLS,
    "Engines": ENGINES,
}
"""The headings of the page, each with its codes. What users meet first comes first. Each code is in one section."""

CODES: dict[str, Explained] = {code: row for section in SECTIONS.values() for code, row in section.items()}

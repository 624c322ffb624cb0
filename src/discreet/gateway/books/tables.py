"""The tables of the gateway's database, as a numbered list of changes. A change that was published is never edited:
a new one is appended.

Amounts of ε are whole numbers of 10^-18, as in the ledger, written as text because they exceed 64 bits. Times are
microseconds since 1970.
"""

from __future__ import annotations

_FIRST = (
    """CREATE TABLE accounts (
        name TEXT PRIMARY KEY,
        folded TEXT NOT NULL UNIQUE,
        role TEXT NOT NULL,
        suspended {integer} NOT NULL,
        at {integer} NOT NULL)""",
    """CREATE TABLE tokens (
        id TEXT PRIMARY KEY,
        account TEXT NOT NULL REFERENCES accounts (name),
        name TEXT NOT NULL,
        digest TEXT NOT NULL,
        scram TEXT NOT NULL,
        scopes TEXT NOT NULL,
        at {integer} NOT NULL,
        expires {integer} NOT NULL,
        revoked {integer} NOT NULL,
        units TEXT,
        spent TEXT NOT NULL,
        session_start {integer} NOT NULL,
        session_last {integer} NOT NULL,
        session_spent TEXT NOT NULL)""",
    "CREATE INDEX tokens_of_account ON tokens (account)",
    """CREATE TABLE links (
        digest TEXT PRIMARY KEY,
        account TEXT NOT NULL REFERENCES accounts (name),
        expires {integer} NOT NULL,
        used {integer} NOT NULL)""",
    """CREATE TABLE days (
        account TEXT NOT NULL,
        day {integer} NOT NULL,
        spent TEXT NOT NULL,
        PRIMARY KEY (account, day))""",
    """CREATE TABLE reservations (
        number {integer} PRIMARY KEY,
        account TEXT NOT NULL,
        token TEXT,
        units TEXT NOT NULL,
        day {integer} NOT NULL,
        session_start {integer} NOT NULL,
        request {integer})""",
    """CREATE TABLE requests (
        number {integer} PRIMARY KEY,
        account TEXT NOT NULL,
        digest TEXT NOT NULL,
        sql TEXT NOT NULL,
        units TEXT NOT NULL,
        at {integer} NOT NULL,
        state TEXT NOT NULL,
        decided_by TEXT,
        decided_at {integer},
        why TEXT)""",
    "CREATE INDEX requests_of_account ON requests (account, digest)",
    """CREATE TABLE questions (
        account TEXT NOT NULL,
        number {integer} NOT NULL,
        receipt TEXT NOT NULL,
        sql TEXT NOT NULL,
        options TEXT NOT NULL,
        at {integer} NOT NULL,
        PRIMARY KEY (account, number),
        UNIQUE (account, receipt))""",
    """CREATE TABLE late (
        number {integer} PRIMARY KEY,
        account TEXT NOT NULL,
        digest TEXT NOT NULL,
        at {integer} NOT NULL,
        period {integer} NOT NULL)""",
    """CREATE TABLE alerts (
        account TEXT PRIMARY KEY,
        at {integer} NOT NULL,
        said TEXT NOT NULL)""",
    """CREATE TABLE policies (
        number {integer} PRIMARY KEY,
        content TEXT NOT NULL,
        at {integer} NOT NULL,
        chain TEXT NOT NULL)""",
    """CREATE TABLE proposals (
        number {integer} PRIMARY KEY,
        author TEXT NOT NULL,
        content TEXT NOT NULL,
        diff TEXT NOT NULL,
        why TEXT NOT NULL,
        base {integer} NOT NULL,
        at {integer} NOT NULL,
        state TEXT NOT NULL,
        decided_by TEXT,
        decided_at {integer},
        decided_why TEXT)""",
    """CREATE TABLE audit (
        number {integer} PRIMARY KEY,
        at {integer} NOT NULL,
        who TEXT NOT NULL,
        what TEXT NOT NULL,
        details TEXT NOT NULL,
        chain TEXT NOT NULL)""",
    """INSERT INTO meta (name, value) VALUES
        ('stopped', '0'), ('period', '1'), ('late', '0'), ('asked', '0'), ('past_tenths', '0'),
        ('reservations', '0'), ('audit_number', '0'), ('audit_chain', '')""",
    # nobody's token, which is read in place of an unknown one, so that both take the same time
    "INSERT INTO accounts (name, folded, role, suspended, at) VALUES ('', '', 'viewer', 1, 0)",
    """INSERT INTO tokens (id, account, name, digest, scram, scopes, at, expires, revoked, spent, session_start,
        session_last, session_spent)
        VALUES ('', '', '', '0000000000000000000000000000000000000000000000000000000000000000', '',
        'ask replay explain', 0, 0, 1, '0', 0, 0, '0')""",
)

_SCRAM = (
    # from it and the name of an account follows the salt of its SCRAM verifiers, also of an account that is not there
    "INSERT INTO meta (name, value) VALUES ('scram_secret', '{secret}')",
)

_AGENTS = (
    # what programs spent over MCP in the session of a token, and whether a reservation counts there
    "ALTER TABLE tokens ADD COLUMN mcp_spent TEXT NOT NULL DEFAULT '0'",
    "ALTER TABLE reservations ADD COLUMN mcp {integer} NOT NULL DEFAULT 0",
)

_DASHBOARDS = (
    # the version of the data that a question was asked of, and the last entry before it: later ones of its receipt
    # were charged for it. It is NULL if none was.
    "ALTER TABLE questions ADD COLUMN version TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE questions ADD COLUMN since {integer} DEFAULT 0",
    """CREATE TABLE dashboards (
        number {integer} PRIMARY KEY,
        author TEXT NOT NULL,
        title TEXT NOT NULL,
        state TEXT NOT NULL,
        rule TEXT NOT NULL,
        units TEXT NOT NULL,
        spent TEXT NOT NULL,
        at {integer} NOT NULL)""",
    "CREATE INDEX dashboards_of_author ON dashboards (author)",
    """CREATE TABLE tiles (
        number {integer} PRIMARY KEY,
        dashboard {integer} NOT NULL REFERENCES dashboards (number),
        place {integer} NOT NULL,
        title TEXT NOT NULL,
        sql TEXT NOT NULL,
        options TEXT NOT NULL,
        name TEXT NOT NULL,
        tries {integer} NOT NULL,
        receipt TEXT NOT NULL,
        version TEXT NOT NULL,
        answer {bytes} NOT NULL,
        digest TEXT NOT NULL,
        at {integer} NOT NULL,
        refused TEXT NOT NULL)""",
    "CREATE INDEX tiles_of_dashboard ON tiles (dashboard, place)",
    # what a rule has set aside for a tile and a version, before it was charged
    """CREATE TABLE tile_purchases (
        tile {integer} NOT NULL,
        version TEXT NOT NULL,
        units TEXT NOT NULL,
        PRIMARY KEY (tile, version))""",
    "INSERT INTO meta (name, value) VALUES ('dashboards', '0'), ('tiles', '0')",
)

_CHARGES = (
    # the numbers of the entries that were charged for a question, also of what was found first, such as "4 5 6".
    # Empty for questions before this column, and if none was.
    "ALTER TABLE questions ADD COLUMN charged TEXT NOT NULL DEFAULT ''",
)

_SEEN = (
    # the random name of the 'ledger' that the accounts belong to, and each 'version' of the data that was published
    "CREATE TABLE seen (what TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (what, name))",
)

MIGRATIONS = (_FIRST, _SCRAM, _AGENTS, _DASHBOARDS, _CHARGES, _SEEN)
"""What each version added. The version of a database is the number of those that were applied."""

"""Codes of the ledger."""

from __future__ import annotations

from discreet.error_codes.row import Explained

LEDGER = {
    "ledger-not-found": Explained(
        '`dp.Ledger.open("clinic.ledger")` where there is none',
        "A new ledger needs a unit and a limit.",
        '`dp.Ledger.open("clinic.ledger", protects=dp.person("id"), limit=dp.Approx(epsilon=1, delta=1e-6))`',
    ),
    "ledger-place": Explained(
        '`dp.Ledger.open("mysql://host/clinic")`, a database with other tables, or a folder in `DISCREET_STATE` that '
        "the gateway cannot write",
        "A ledger is kept in its own SQLite file or its own schema of PostgreSQL.",
        '`"clinic.ledger"`, or `"postgresql://user@host:5432/clinic#schema"`; a folder of the user who charges',
    ),
    "ledger-file-system": Explained(
        "a ledger on a network drive",
        "SQLite has no write-ahead log there, so a charge might not survive a crash.",
        "a path on a local disk, or PostgreSQL",
    ),
    "ledger-busy": Explained(
        "a charge while another process holds the ledger",
        "Only one process at a time may change what was spent.",
        "the same call again, with the same `key=` if it had one",
    ),
    "ledger-checkpoint": Explained(
        "a checkpoint file, or the folder that `DISCREET_STATE` names, that cannot be read or written",
        "The checkpoint remembers how far the ledger was, so that an old copy is noticed.",
        "the right to read and write what the message names",
    ),
    "ledger-in-memory": Explained(
        '`Ledger.open(":memory:", …)` in a second process, after a fork or after `close()`',
        "A copy of the ledger would be a second copy of the budget.",
        '`Ledger.open("clinic.ledger", …)`',
    ),
    "ledger-other-terms": Explained(
        "`dp.Ledger.open(path, limit=dp.Pure(epsilon=10))` of a ledger with another limit or rule",
        "The limit is a promise that was made when the ledger was created.",
        "`dp.Ledger.open(path)`; to change the limit, `ledger.raise_limit(…, why=…)`",
    ),
    "ledger-limit-kind": Explained(
        "a limit in ρ for an analyst of a ledger with a limit in ε",
        "Both limits are compared for every charge.",
        "limits of the same kind",
    ),
    "ledger-no-reason": Explained(
        '`ledger.raise_limit(limit, why="")`',
        "A change of the promise is recorded with its reason.",
        '`why="the ethics board agreed on 3 May"`',
    ),
    "ledger-analyst-name": Explained(
        '`ledger.for_analyst("")`', "Accounts are found by name.", '`ledger.for_analyst("alice", limit=…)`'
    ),
    "ledger-no-account": Explained(
        '`ledger.for_analyst("alice")` before her account was opened',
        "The owner of the ledger gives every analyst a limit.",
        '`ledger.for_analyst("alice", limit=dp.Approx(epsilon=1, delta=1e-7))`',
    ),
    "ledger-owner-only": Explained(
        "`ledger.for_analyst(…)` or `raise_limit(…)` in an analyst's view",
        "Only the owner's view may open accounts and change limits.",
        "the same call on the ledger itself",
    ),
    "ledger-no-parts": Explained(
        'a budget for one month in a ledger that protects `dp.person("patient_id")`',
        "Such a person may be in every month, and what the months cost adds up.",
        '`dp.person("patient_id", per="month")`, or `lives_in="region"` for parts in which people stay',
    ),
    "ledger-part-name": Explained(
        "a part without a name, with a name of more than 200 characters, or that is not inside the parts at hand",
        "The budget of a part is found by its name.",
        'names such as `"2024-01"`',
    ),
    "ledger-other-parts": Explained(
        "`clinic.part(…)` after the `choices` of the column that `lives_in` names were changed",
        "Somebody who lived in `other` would live in a new part, which has a budget of its own.",
        "the same `choices`; questions without `part`; or a new period, with `ledger.renew(why=…)`",
    ),
    "ledger-part-limit": Explained(
        "`renew(limit, why=…)` for single parts",
        "All parts of an account have the same limit.",
        "`renew(why=…)`; to change the limit of all parts, `ledger.raise_limit(…, why=…)`",
    ),
    "ledger-key": Explained(
        '`key=""`, or a key for a request that contains a function',
        "A key stands for one request, which must be recognized when it comes again.",
        'a text such as `key="request-17"`; none for a function',
    ),
    "ledger-key-reused": Explained(
        "the same `key=` for another question, guarantee or data set",
        "A key is answered with what was released for it before. Nothing was spent.",
        "a new key; for data that stays the same, a declared version",
    ),
    "ledger-no-answer": Explained(
        "`ledger.answer(entry)` of an entry without an answer, or of another analyst",
        "There is no such answer in this view.",
        "an entry with `answered=True` from `ledger.entries()`",
    ),
    "ledger-discarded": Explained(
        "a request with the key of one whose answer came too late",
        "The answer was discarded, so that nothing depends on how late it was. What it cost stays charged.",
        "the question with a new key, or without one, at a new cost",
    ),
    "ledger-answer-not-kept": Explained(
        "`ledger.answer(entry)` of a large answer without a key",
        "It was handed out once and not stored.",
        "the question again, at a new cost and with a `key=`",
    ),
    "ledger-answer-type": Explained(
        "an answer that is an object of your own class",
        "Answers are stored as plain values, so that reading one never runs code.",
        "numbers, text, dates, arrays, and lists, tuples, sets and dicts of them",
    ),
    "ledger-answer-unreadable": Explained(
        "an answer that another version of discreet stored",
        "This version does not know its form.",
        "the version that stored it, or a newer one",
    ),
    "ledger-cannot-record": Explained(
        "a charge of a guarantee of your own class",
        "The ledger must be able to read what it wrote.",
        "`stated=dp.Pure(epsilon=1)`, or another built-in guarantee that holds",
    ),
    "ledger-entry-changed": Explained(
        "a ledger in which an entry was edited",
        "Every entry is chained to the one before it, and the chain is broken.",
        "the newest undamaged copy",
    ),
    "ledger-answer-changed": Explained(
        "a ledger in which a stored answer was edited",
        "Its digest is in the chain of entries and differs.",
        "the newest undamaged copy",
    ),
    "ledger-totals-wrong": Explained(
        "a ledger whose costs, totals or accounts were edited",
        "The totals do not follow from the entries and the rule.",
        "the newest undamaged copy",
    ),
    "ledger-old-copy": Explained(
        "a backup of a ledger, or a ledger that was moved without its `.checkpoint` file",
        "The checkpoint has seen more than this copy contains; using it would spend the same budget twice.",
        'the newest copy in its place; if it is the newest, `discreet ledger PATH --adopt "why"`',
    ),
    "ledger-missing": Explained(
        "`Ledger.open(…)` after the file was deleted",
        "A new ledger would forget what was spent.",
        "the newest copy of the file",
    ),
    "ledger-replaced": Explained(
        "a pickled ledger whose file was replaced by another ledger",
        "A charge would go to the wrong account.",
        "the right ledger in its place",
    ),
    "ledger-other-version": Explained(
        "a ledger that a newer or much older version of discreet wrote",
        "This version does not know its entries.",
        "the version that wrote it, or a newer one",
    ),
}

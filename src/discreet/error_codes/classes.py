"""The code that an error of each class has where nothing more specific fits."""

from __future__ import annotations

from discreet.error_codes.row import Explained

CLASSES = {
    "error": Explained(
        "a call of your own code that raises `DiscreetError`",
        "This package always raises one of the classes below; the code of the root is for your own errors.",
        "one of its subclasses, with `code=`",
    ),
    "invalid-argument": Explained(
        "a call of your own mechanism that raises `InvalidArgument` without `code=`",
        "The errors of this package name what is wrong with the argument.",
        '`InvalidArgument("…", code="out-of-range")`',
    ),
    "sql-unreadable": Explained(
        "`SELEC COUNT(*) FORM people`",
        "The text is not one SQL query.",
        "`SELECT COUNT(*) FROM people`",
    ),
    "not-allowed": Explained(
        "a call of your own code that raises `NotAllowed` without `code=`",
        "The errors of this package name what cannot be answered privately.",
        '`NotAllowed("…", code="…")`',
    ),
    "incompatible-guarantee": Explained(
        "a sum of two guarantees, one per person and one per row",
        "Only promises about the same unit, the same neighbors and the same trust can be added.",
        "the same unit for both, such as `protects=dp.person()`",
    ),
    "budget-exhausted": Explained(
        "a release that costs more than the ledger has left",
        "The release would pass the limit. Nothing was charged.",
        "a smaller `epsilon`; `error.remaining` is the largest guarantee that still fits",
    ),
    "ledger-damaged": Explained(
        "a ledger file that was edited, cut short, copied or restored from a backup",
        "What was spent is not known for sure, so nothing more is released.",
        "the original file; the message says how to go on without it",
    ),
    "ledger-unavailable": Explained(
        "a release while the ledger's database is busy, full or out of reach",
        "Nothing is released unless its cost is recorded first.",
        "the same call again, once the database answers",
    ),
    "engine-failed": Explained(
        "a question that DuckDB, PostgreSQL or Spark could not compute",
        "The engine's own message may quote values, so it is not passed on. What was charged stays charged.",
        "the same question again, once the engine has the memory, the file or the rights it needs",
    ),
    "service-unavailable": Explained(
        "a report or a batch sent to a shuffler or an analyzer that does not answer",
        "The service is down, out of reach or overloaded.",
        "the same call again; nothing is counted or charged twice",
    ),
    "entropy-unavailable": Explained(
        "a release on a machine that gives no random bytes",
        "Without randomness there is no noise, and without noise no answer.",
        "the same call on a machine whose operating system provides randomness",
    ),
    "sealed-value": Explained(
        "`print(sealed)`, `sealed == 3`, `pickle.dumps(sealed)`",
        "A sealed value is a true value on its way to a mechanism; nobody may look at it.",
        "a release of it",
    ),
    "missing-extra": Explained(
        "a call that needs an optional package",
        "The package is not installed.",
        "the line `pip install …` of the message, then the same call",
    ),
}

"""Codes of the `discreet` command that no other room has."""

from __future__ import annotations

from discreet.error_codes.row import Explained

COMMANDS = {
    "command-pair": Explained("`--within 50`", "The option takes a column and a number.", "`--within visits=50`"),
    "command-question": Explained(
        "`discreet query clinic.toml --epsilon 1`",
        "A question is missing.",
        '`discreet query clinic.toml "SELECT COUNT(*) FROM visits" --epsilon 1`',
    ),
    "command-day": Explained(
        "`discreet schedule clinic.toml --until January`", "A day is written in digits.", "`--until 2025-01-31`"
    ),
    "magic-options": Explained(
        "`%%discreet clinic.toml --eps 1` in a notebook",
        "The options of the magic are few, and each is written in full.",
        "`%%discreet clinic.toml --epsilon 1`",
    ),
    "command-header": Explained(
        "`discreet init people.csv` for a file whose first line may be a row",
        "No value of a person may get into a policy.",
        "`--header` if the first line names the columns, `--no-header` if it is a row",
    ),
    "command-columns": Explained(
        '`discreet init people.csv --columns "mrn, age"` for a file that has names, for a database, for two files '
        "without names, or with `--header` or `--names-only`",
        "The option names the columns of a text file whose first line is a row.",
        '`--columns "people: mrn, age"` for one of several files; otherwise the same without `--columns`, or with '
        "`--no-header` if the first line is a row",
    ),
    "command-limit": Explained(
        '`discreet ledger clinic.ledger --raise "why"`, or `--raise` together with `--renew`',
        "The new limit is that of a policy, and it is either raised or renewed.",
        '`discreet ledger clinic.toml --raise "the board agreed"`, after `epsilon` was edited in the policy',
    ),
    "command-terminal": Explained(
        "`discreet check clinic.toml --rows > file`",
        "Exact counts are not private, and a file or a log keeps them.",
        "`discreet check clinic.toml --rows` on a terminal",
    ),
    "command-person": Explained(
        "`discreet init visits.parquet` in a script, where no column, or several, are named for people",
        "Somebody must say whose a row is.",
        "`--person patient_id`",
    ),
    "command-policy": Explained(
        "`discreet serve` without a policy",
        "The policy says what is served.",
        "`discreet serve clinic.toml`, or `discreet serve --new visits.parquet`",
    ),
    "command-poll": Explained(
        "`discreet shuffle init poll.toml --bit --choices a,b`",
        "A poll asks for one of its choices, or for yes or no.",
        "one of `--bit` and `--choices`",
    ),
    "command-token": Explained(
        "`discreet shuffle report poll.toml yes` without a token",
        "Each client reports once, with a token of its own.",
        "`--token …`",
    ),
    "ledger-not-begun": Explained(
        "`discreet ledger clinic.toml` before the first question",
        "The first question creates the ledger.",
        "`discreet query clinic.toml …` first",
    ),
    "file-is-source": Explained(
        "`--out visits.parquet` where visits.parquet is the data",
        "A copy never replaces its source.",
        "a file elsewhere",
    ),
    "sanitize-unit": Explained(
        "`discreet sanitize` for a policy that protects people",
        "A sanitized copy randomizes each row by itself and shows how many rows there are.",
        '`row = true` and `neighbors = "replace"` in `[unit]`, with a ledger of its own',
    ),
    "sanitize-engine": Explained(
        "`discreet sanitize` on PostgreSQL or Spark",
        "A copy can be made of files and tables in memory only.",
        "the table exported to Parquet",
    ),
    "sanitize-public": Explained(
        "`discreet sanitize` of a public table", "Nobody is protected in it.", "a plain copy of the file"
    ),
    "sanitize-undeclared": Explained(
        "`discreet sanitize` of columns without `between` or `choices`",
        "Without a declared range or choices, no noise hides a value.",
        "`between = [0, 120]` or `choices = […]` in the policy",
    ),
}

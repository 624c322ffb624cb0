"""Codes of policies: what is declared of tables, columns and people."""

from __future__ import annotations

from discreet.error_codes.row import Explained

POLICY = {
    "policy-file": Explained(
        '`dp.connect("clnic.toml")`', "The policy file cannot be read.", "the path of a policy file that exists"
    ),
    "analyst-required": Explained(
        '`dp.connect("clinic.toml")` where the policy has `[analysts] required = true`',
        "Every question is charged to somebody's account, not only to the data set.",
        '`dp.connect("clinic.toml", analyst="alice")`, or `discreet query … --analyst alice`',
    ),
    "policy-not-found": Explained(
        "`dp.connect()` where no policy is named",
        "`DISCREET_POLICY` is not set, and there is no `discreet.toml` in this folder or one above it.",
        '`dp.connect("clinic.toml")`, or `export DISCREET_POLICY=clinic.toml`',
    ),
    "policy-of-another-user": Explained(
        "`dp.connect()` below a folder where another user has put a `discreet.toml`",
        "A policy decides who is protected. A file of another user is used only if it is named.",
        "`export DISCREET_POLICY=/data/discreet.toml`, if you trust it",
    ),
    "policy-not-toml": Explained(
        "`person = patient_id` without quotes",
        "The file is not valid TOML in UTF-8. The message names the line.",
        '`person = "patient_id"`',
    ),
    "column-names": Explained(
        '`discreet init stays.txt --columns "mrn, ward, ward"`, or another number of names than the file has columns; '
        "the same in a first run; names for a table that is not there, or twice for one",
        "Each column needs a name of its own, with a letter in it.",
        '`--columns "mrn, ward, cost"` for a file with three columns',
    ),
    "policy-unknown-key": Explained(
        "`rows_per_persn = 20`", "A misspelled bound would silently not hold.", "`rows_per_person = 20`"
    ),
    "policy-missing-key": Explained(
        "`[ledger]` without `path`, a table without `source`, or no `[unit]`",
        "The policy cannot be used without it.",
        "the line that the message proposes",
    ),
    "policy-section": Explained(
        "`unit = 3`", "A section of a policy holds keys and values.", '`[unit]` and `person = "patient_id"`'
    ),
    "policy-unit": Explained(
        "`[unit]` with both `person` and `row`, or neither",
        "Exactly one of them says who is protected.",
        '`person = "patient_id"`, or `row = true`',
    ),
    "policy-delta": Explained(
        "`delta_per_question` above `delta` of `[ledger]`",
        "No single question may use more than the whole budget.",
        "a smaller `delta_per_question`, or none",
    ),
    "policy-ledger-in-memory": Explained(
        '`path = ":memory:"`', "A ledger in memory forgets what was spent.", '`path = "clinic.ledger"`'
    ),
    "policy-table-name": Explained(
        '`Policy(tables={"a": Table(name="b", …)})`', "A table has one name.", '`{"b": Table(name="b", …)}`'
    ),
    "policy-public": Explained(
        "`public = true` and `rows_per_person = 20`",
        "Nobody is protected in a public table, so bounds have no meaning.",
        "one of the two lines",
    ),
    "policy-through": Explained(
        '`through = "visits"`',
        "It must name a key of another private table, and lead to the person.",
        '`through = "visits.visit_id"`',
    ),
    "policy-through-types": Explained(
        "`through` between a number and a text column",
        "Keys of different types do not match exactly.",
        "the same type in both tables",
    ),
    "rows-protected": Explained(
        "`rows_per_person = 20`, or `bounds=…`, where single rows are protected",
        "Only people have several rows.",
        "the policy or the call without it",
    ),
    "person-column-missing": Explained(
        "a private table without the person's column",
        "Every private row must belong to one person.",
        '`through = "visits.visit_id"`, or `public = true` if the table is about nobody',
    ),
    "person-type": Explained(
        "people identified by floats, timestamps or lists",
        "Equal keys must mean the same person on every engine.",
        "a column of whole numbers, text or dates",
    ),
    "spark-not-the-engine": Explained(
        '`dp.connect("clinic.toml", spark=session)` for a policy on DuckDB',
        "The session would not be used.",
        '`kind = "spark"` in `[engine]`, or the call without `spark=`',
    ),
}

COLUMNS = {
    "column-type": Explained(
        '`type = "number"` for a column of integers, or a column of lists as a feature',
        "The column has another type in its source, or one that cannot be used here.",
        "the line without `type`; for a feature, another column or a `CAST`",
    ),
    "column-no-range": Explained(
        "`between = [0, 1]` for a text column", "Only numbers and dates have a range.", '`choices = ["a", "b"]`'
    ),
    "column-narrow-range": Explained(
        "`between = [0, 1e-12]`", "The range is too narrow for its grid.", "values in a smaller unit, such as mg for g"
    ),
    "column-choices": Explained(
        '`choices = []`, `choices = ["a", "a"]`, `choices = "ab"`',
        "Choices are a list of different values, at least one.",
        '`choices = ["a", "b"]`',
    ),
    "column-choices-type": Explained(
        '`choices = ["1", "2"]` for a column of integers',
        "Such a group would always be empty.",
        "`choices = [1, 2]`",
    ),
    "column-other": Explained(
        '`other = "other"` for a column without `choices`, or one of its choices',
        "The group `other` is for all values that are not choices.",
        '`choices = ["a", "b"]` and `other = "other"`',
    ),
    "not-a-date": Explained(
        '`between = ["yesterday", "today"]`', "The range of a date column is two dates.", "`[2020-01-31, 2024-12-31]`"
    ),
    "policy-hierarchy": Explained(
        '`levels = ["region", "region"]`, or groups with another number of values',
        "A hierarchy lists columns from coarse to fine, the groups that exist, and numbers of rows that are public.",
        '`levels = ["region", "city"]` and `groups = [["north", "Haifa"]]`',
    ),
    "cube-keys": Explained(
        '`table.cube([])`, or `answer.cube(["city"])` where no level has just this key',
        "A cube needs columns, and its levels are named by their keys.",
        '`table.cube([("region", "city"), "sex"], epsilon=1)` and `answer.cube(["sex"])`',
    ),
    "unknown-table": Explained("a table that the policy does not have", "No such table is declared.", "a known one"),
    "policy-time": Explained(
        '`[tables.visits.time]` with a column of text, or `late = "drop"` without `arrived`',
        "Blocks of time need a column of days or moments, and whether a row is late depends on when it came in.",
        '`column = "day"`, `block = "month"`, `arrived = "loaded_at"` and `late = "drop"`',
    ),
    "unit-needs-time": Explained(
        '`per = "month"` in `[unit]`, and a private table without `[tables.visits.time]`',
        "A unit is one person in one month, so each row must say when it happened.",
        '`[tables.visits.time]` with `column = "day"` and `block = "month"`',
    ),
    "unit-groups": Explained(
        "`groups = 2` in `[unit]` without `by`, `by` without `groups`, or a private table without that column",
        "A unit of a few rows in a few groups counts the groups of one column, which each private table has.",
        '`rows = 3`, `groups = 2` and `by = "region"`',
    ),
    "unit-several-rows": Explained(
        "`dp.table`, a fit of a table, a study or a standing question under `dp.row(times=3)`; fewer rows there",
        "What is known there is how far one row moves the result, and three rows move it three times as far.",
        "a question in SQL, or `rows_per_person=3` in `dp.release` and `dp.learn`",
    ),
    "unit-lives-in": Explained(
        '`lives_in = "region"` where no table has the column, several have, or its values are not declared',
        "One column of one table says where a person lives, and its declared values are the parts.",
        '`lives_in = "patients.region"` and `choices = ["North", "South"]` for that column',
    ),
    "part-name": Explained(
        '`clinic.part("January")`, or a part of tables that have no time',
        "Parts are public: blocks of time with fixed names, or the declared values of where people live.",
        '`clinic.part("2024-01")`; a day is 2024-01-31, a week 2024-W05, a quarter 2024-Q1, a year 2024',
    ),
    "part-table": Explained(
        '`clinic.part("2024-01").sql("SELECT COUNT(*) FROM patients", epsilon=1)` where only visits have a time',
        "The rows of this table are in no block of time.",
        "the question about all of the table, or `[tables.patients.time]` in the policy",
    ),
    "part-of-part": Explained(
        '`clinic.part("2024-01").part("2024-02")`',
        "A part is a part of the whole database.",
        '`clinic.part("2024-01", "2024-02")`',
    ),
}

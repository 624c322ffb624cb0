"""Codes of publications: plans, `discreet publish` and `discreet verify`."""

from __future__ import annotations

from discreet.error_codes.row import Explained

PUBLICATION = {
    "plan-file": Explained("`discreet publish pln.toml out/`", "The plan cannot be read.", "the path of a plan"),
    "plan-not-toml": Explained(
        "a plan that is not TOML", "It cannot be read as one.", "the line that is named, corrected"
    ),
    "plan-section": Explained(
        '`tables = "visits"` in a plan', "The key holds a section.", "`[tables.by_city]` and what belongs to it"
    ),
    "plan-unknown-key": Explained(
        "`epsilion = 1` in a plan", "A misspelled key must not be ignored.", "a key that the message names"
    ),
    "plan-missing-key": Explained(
        "a plan without a policy, or a table without `epsilon`", "It is needed.", "the key that the message names"
    ),
    "plan-name": Explained(
        '`[tables."By city"]`', "The name becomes the name of a file.", "`[tables.by_city]`, with a title of its own"
    ),
    "plan-criterion": Explained(
        '`kind = "error"` in a criterion',
        "There are five kinds.",
        "`marginals`, `counts`, `means`, `slopes`, `matched`",
    ),
    "plan-never": Explained(
        "`never = [{age = 5}]`",
        "A combination has a range or a list for each of its columns, which must be published.",
        "`never = [{age = [0, 5]}]`",
    ),
    "plan-undeclared": Explained(
        "a synthetic column without a declaration",
        "What values a column can have must not be read from the data.",
        "`between = [0, 120]` or `choices = […]` in the policy",
    ),
    "plan-selected-twice": Explained(
        "`tries` for two tables of one plan",
        "When the next charge is made would tell how many tries there were.",
        "two plans, one after the other",
    ),
    "publish-arguments": Explained(
        "`discreet publish plan.toml`", "A plan and a folder are needed.", "`discreet publish plan.toml out/`"
    ),
    "publish-no-version": Explained(
        "a publication of tables in memory, or of a database without a version",
        "If it is interrupted, the data must be known again, or it would be paid twice.",
        '`version = "2024-05"` of the table in the policy',
    ),
    "publish-other-data": Explained(
        "a plan that was published before, for data that have changed",
        "A plan is published once, and its files must stay what they are.",
        'a new edition in the plan: `edition = "2025"`',
    ),
    "publish-exists": Explained(
        "a folder that holds something else", "A publication never replaces anything.", "a folder that does not exist"
    ),
    "publish-not-accepted": Explained(
        "a plan whose criteria were not met",
        "What is published must be as good as it was said to be.",
        "other limits or more ε, at a new cost; or `anyway = true`, and the card says so",
    ),
    "publish-not-recorded": Explained(
        "`discreet verify` of a publication with a changed plan or other receipts",
        "The ledger has no charge for what is published.",
        "the publication as it was written",
    ),
    "verify-no-proof": Explained(
        "`discreet verify` of a folder without a proof",
        "There is nothing to check it by.",
        "the folder of a publication",
    ),
}

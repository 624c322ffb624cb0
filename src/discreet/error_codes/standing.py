"""Codes of standing questions."""

from __future__ import annotations

from discreet.error_codes.row import Explained

STANDING = {
    "standing-blocks": Explained(
        '`clinic.standing(sql, every="week", …)` where the policy has `block = "month"`, or people live in one part',
        "A standing question is asked of each block of time that the policy divides the tables into.",
        '`every="month"`',
    ),
    "standing-turns": Explained(
        "`blocks_per_person=30` with `times=24`, with a unit that is in one block anyway, or about two tables",
        "It says how many blocks of a person count, and the engine finds them in one table.",
        "`blocks_per_person=6`, or nothing",
    ),
    "standing-one-question": Explained(
        "`clinic.standing(sql, …)` with a statement over several answers, or over public tables only",
        "One charge is divided among the blocks of one question.",
        "a standing question for each of them",
    ),
    "standing-levels": Explained(
        "GROUP BY ROLLUP over keys that are not declared, in a standing question",
        "Which groups are shown is carried from one block to the next, and levels depend on all of them.",
        "declared keys, or one level",
    ),
    "standing-totals": Explained(
        "`totals=True` with keys or bounds that are not declared, or for medians and different values",
        "Running totals are sums over all blocks, of groups and bounds that are the same in each.",
        "counts and sums with declared keys, `rows_per_person` and `between`; or no `totals=True`",
    ),
    "standing-no-totals": Explained(
        "`standing.total()` of a question that was opened without `totals=True`",
        "Its answers have noise of their own, which adds up.",
        "`clinic.standing(…, totals=True)`",
    ),
    "standing-not-yet": Explained(
        '`standing.answer("2025-03")` before it was answered',
        "A block is answered after it has ended, when the question is run, and in order.",
        "`standing.run()`, or `discreet schedule clinic.toml`",
    ),
    "standing-block": Explained(
        '`standing.answer("2030-01")`', "The horizon has no such block.", "one of `standing.blocks`"
    ),
    "standing-declarations": Explained(
        "a standing question after its columns, bounds or choices were declared anew",
        "What was paid for is an answer under the old declarations.",
        "the old declarations, or a new standing question",
    ),
    "standing-steps": Explained(
        "a step that is not in the horizon, or steps that cost more than was charged",
        "Only what was paid in advance can be released without a charge.",
        "a block of the horizon",
    ),
    "not-the-one-paid": Explained(
        "another release than the one that was paid in advance",
        "What was charged before is one release with one guarantee.",
        "the declarations that were in force when it was opened",
    ),
    "ledger-steps-wrong": Explained(
        "a ledger whose standing questions were not paid in full",
        "What is released in steps must be covered by the charge that was made before.",
        "the newest undamaged copy of the ledger",
    ),
}

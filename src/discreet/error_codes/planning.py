"""Codes of plans: what an answer may cost, and what the methods of a table need."""

from __future__ import annotations

from discreet.error_codes.row import Explained

PLANNING = {
    "epsilon-or-within": Explained(
        "`db.sql(question)`, or both `epsilon=` and `within=`",
        "One of them decides the noise: the cost, or the error.",
        '`epsilon=0.5`, or `within={"visits": 50}`',
    ),
    "within-automatic": Explained(
        '`within={"total": 50}` for a column whose range is `"auto"`',
        "The error depends on a range that is not known yet.",
        "`epsilon=0.5`, or a declared range",
    ),
    "within-too-small": Explained(
        '`within={"visits": 1e-9}`', "No ε up to 100,000 gives such a small error.", '`within={"visits": 5}`'
    ),
    "ends-missing": Explained(
        '`table.cdf("age", between="auto", …)`', "The ends are the grid of the answer.", "`between=(0, 120)`"
    ),
    "column-type": Explained(
        "a column of lists, structs or bytes", "It is not a number, text, a date or a condition.", "another column"
    ),
    "ledger-other-unit": Explained(
        "a policy for people with a ledger that protects rows",
        "A ledger adds up costs for one unit of privacy only.",
        "a ledger that is opened for the unit of the policy",
    ),
}

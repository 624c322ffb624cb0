"""Codes of plans: what an answer may cost, and what the methods of a table need."""

from __future__ import annotations

from discreet.error_codes.row import Explained

PLANNING = {
    "bins": Explained(
        '`table.histogram("age", bins=10, epsilon=1)`',
        "The ends of bins are declared, and never read from the data. Edges are numbers or dates that increase.",
        '`table.histogram("age", bins=10, between=(0, 100), epsilon=1)`, or `edges=[0, 18, 65, 120]`',
    ),
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
        '`table.cdf("age", between="auto", …)`, a density without `between=`, one feature without a range',
        "The ends are the grid of the answer, and are never read from the data.",
        "`between=(0, 120)`",
    ),
    "ledger-other-unit": Explained(
        "a policy for people with a ledger that protects rows",
        "A ledger adds up costs for one unit of privacy only.",
        "a ledger that is opened for the unit of the policy",
    ),
    "within-depends-on-data": Explained(
        '`within={"mean_age": 1}`',
        "The error of a mean depends on the data, so no ε promises it in advance.",
        "`within=` for counts, sums, and quantiles in ranks; `epsilon=` for others",
    ),
    "one-question-only": Explained(
        '`within={"n": 5}` for a statement over two answers',
        "The statement combines the answers of several questions, each with its own ε.",
        "`epsilon=` for the statement, or the questions one by one",
    ),
    "plot-no-numbers": Explained(
        "`answer.plot()` of an answer without numbers", "There is nothing to draw.", "a question with an aggregate"
    ),
    "choices-missing": Explained(
        '`table.most_common("city", …)`, or a text feature, without choices',
        "The values that may be shown are declared, never read from the data.",
        '`choices=["Acre", "Haifa"]`, or `features={"city": ["Acre", "Haifa"]}`',
    ),
    "bandwidth-missing": Explained(
        '`table.density(["age", "cost"], …)` without `bandwidth=`',
        "Only a density of one column has a rule for its bandwidth.",
        "`bandwidth=[2, 50]`",
    ),
    "estimator-ledger": Explained(
        "`table.fit(dp.learn.GaussianNB(ledger=other), …)`",
        "The table's ledger is charged.",
        "the estimator without `ledger=`",
    ),
}

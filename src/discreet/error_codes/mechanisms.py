"""Codes of mechanisms and of the door that releases what they draw."""

from __future__ import annotations

from discreet.error_codes.row import Explained

MECHANISMS = {
    "sensitivity-missing": Explained(
        "`dp.release(41, dp.Laplace(scale=2))`",
        "A promise needs to know how far one unit can move the answer.",
        "`dp.release(41, dp.Laplace(scale=2), sensitivity=1)`",
    ),
    "sensitivity-not-taken": Explained(
        "`dp.release(rows, mechanism, query=dp.Count(), sensitivity=1)`",
        "The query, the ledger or the mechanism already says how far one unit can move the answer.",
        "the same call without `sensitivity=`; for a query, with `ledger=`",
    ),
    "sensitivity-wrong-kind": Explained(
        '`Sensitivity(1, norm="L1")` for `CorrelatedGaussian`',
        "The mechanism measures distances in another way.",
        "the number that the message describes",
    ),
    "sensitivity-wrong-size": Explained(
        "`Sensitivity(1, dimension=3)` and an answer of 5 numbers",
        "The sensitivity must be stated for the whole answer.",
        "`Sensitivity(1, dimension=5)`",
    ),
    "rows-per-person-missing": Explained(
        '`dp.release(rows, mechanism, query=dp.Count(), ledger=ledger)` where the ledger protects `person("id")`',
        "One person may have several rows, and their number must not be read from the data.",
        "`rows_per_person=3`, and data in which nobody has more",
    ),
    "rows-not-independent": Explained(
        "`rows_per_person=2` for an answer about the population",
        "Widths on the population hold for independent rows, and rows of one person are not.",
        "one row for each person",
    ),
    "stated-not-kept": Explained(
        "`stated=dp.Pure(epsilon=0.1)` for a mechanism that promises less",
        "The charge would be smaller than the real cost.",
        "more noise, or a weaker `stated=`",
    ),
    "not-a-stream": Explained(
        "`dp.stream(dp.Laplace(scale=2), …)`",
        "The mechanism answers once.",
        "`dp.release(…)`, or `dp.stream(dp.mechanisms.PrefixSums(…), …)`",
    ),
    "stream-ended": Explained(
        "more numbers than the `points` of a stream",
        "The promise holds for the declared number of points.",
        "a new stream with more `points`",
    ),
    "session-in-two-processes": Explained(
        "`session.add(…)` after a fork",
        "Two processes would draw two noises for one step, and the difference would show more than was charged.",
        "one session in each process",
    ),
    "part-does-not-fit": Explained(
        "`Descent(noise=dp.Laplace(scale=1, step=1), …)`",
        "A part of the mechanism has another type, step or cost than its promise needs.",
        "the class method `for_guarantee(…)`, which chooses the parts",
    ),
    "questions-used-up": Explained(
        "one question more than `queries=` of a study",
        "The widths of all answers are computed for this number of questions.",
        "a new study with new rows, or a larger `queries=` from the start",
    ),
    "overfits-used-up": Explained(
        "one more guess that the holdout contradicts, after `overfits=` of them",
        "Each correction costs privacy, and the promise covers this number of corrections.",
        "a new holdout with new rows, or a larger `overfits=` from the start",
    ),
    "guess-failed": Explained(
        "one more test of a guess, after a guess failed",
        "One charge pays for all tests up to the first failure.",
        "a new run, which is charged again",
    ),
    "error-out-of-reach": Explained(
        "`for_error(0.001, …)` with 100 rows",
        "No mechanism of this kind is this accurate with these rows.",
        "a larger error, more rows or fewer questions",
    ),
    "unsuitable-covariance": Explained(
        "`covariance=[[1, 2], [2, 1]]`",
        "A covariance is a finite, symmetric and positive definite matrix.",
        "`covariance=[[2, 1], [1, 2]]`",
    ),
    "ridge-too-small": Explained(
        "`ridge=1e-9`", "The promise needs a loss that is curved enough for this ε and this many rows.", "`ridge=1`"
    ),
    "too-many-rows": Explained(
        "more rows than `most_rows=`",
        "The promise is computed for at most this public number of rows.",
        "a larger `most_rows=`",
    ),
    "rows-not-rounded": Explained(
        "rows that were rounded with other bounds than the mechanism's",
        "The promise holds for rows within the declared bounds.",
        "`RoundedRows(…)` with the same norm, ranges and groups",
    ),
    "decision-only": Explained(
        "the p-value of a test that was released as a decision, or its decision at another level",
        "Only the decision at the declared level was paid for.",
        "`table.stats.permutation(…)` without `level=`, which releases a p-value",
    ),
    "too-few-reports": Explained(
        "fewer readable reports than the promise needs",
        "The promise of the shuffle model hides a person among this many others.",
        "more reports",
    ),
    "foreign-reports": Explained(
        "reports of another survey, or reports that were changed",
        "A report has the type and the length that the survey declares.",
        "the reports of this survey, as `report` returned them",
    ),
    "picture-not-written": Explained(
        '`plot("folder/that/is/not/there.png")`, `plot("picture.doc")`',
        "The folder does not exist, or the format is not supported.",
        '`plot("picture.png")`, or `.svg` or `.pdf`',
    ),
}

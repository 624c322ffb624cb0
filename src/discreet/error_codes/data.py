"""Codes of the data that comes in, and of the queries and spaces that read it."""

from __future__ import annotations

from discreet.error_codes.row import Explained

DATA = {
    "not-a-table": Explained(
        '`dp.table([{"age": 30}, {"age": 41}], ledger=ledger)`',
        "The data is not a table with named columns that can be read.",
        "a path, an Arrow table, a DataFrame, a DuckDB relation, or a dict of arrays and lists",
    ),
    "not-a-column": Explained(
        "a table, a text or a matrix where one column is expected",
        "A column has one value for each record, in one dimension.",
        '`frame["age"]`, or an array of one dimension',
    ),
    "unequal-lengths": Explained(
        '`{"age": [30, 41], "sex": ["f"]}`',
        "Each row must have one cell of every column.",
        "columns of the same length",
    ),
    "untyped-column": Explained(
        '`dp.table({"patient": [7, 8], …}, ledger=ledger)` where the ledger protects `dp.person("patient")`',
        "A list or a text file has no types, and its values must not decide them, nor who is the same person.",
        '`types={"patient": "integer"}`, `type = "integer"` in a policy, or an array; for a number also `between=`',
    ),
    "data-in-spark": Explained(
        "a DataFrame of Spark where an array is expected",
        "Its rows stay in Spark; they are not collected.",
        "`ByPartition(query, columns)`, or SQL on the DataFrame",
    ),
    "width-not-declared": Explained(
        "`[[1.0, 2.0], [3.0, 4.0]]` as features",
        "A list does not declare its number of columns, and no private row may decide it.",
        "`np.array(X, dtype=float)`",
    ),
    "not-aligned": Explained(
        "`x[1:]` of a tensor on a GPU",
        "Rows are summed in one fixed order, which needs memory that starts at a multiple of 16 bytes.",
        "`x[1:].clone()`",
    ),
    "not-pickled": Explained(
        "`pickle.dumps(table)`, or a pickle of a database or of the rows of a model",
        "The pickle would contain private rows.",
        "a pickle of the release or of the fitted model; a table opened again in the other process",
    ),
    "function-fails": Explained(
        "`dp.Count(lambda row: row.no_such_column)`",
        "Your function raises an error, or returns a value of another shape than is needed.",
        "a function that returns one value for each row; for a projection, the same number of finite weights",
    ),
    "no-solution": Explained(
        "`Affine(matrix, values)` with equations that contradict each other",
        "No weights satisfy the equations.",
        "equations that have a solution",
    ),
    "step-not-a-power-of-two": Explained(
        "`step=0.1`", "Noise is exact on a lattice of doubles, whose step is a power of two.", "`step=2**-4`"
    ),
    "step-does-not-fit": Explained(
        "`dp.queries.Grid(0, 1, step=0.3)`",
        "The step must fit the range: it divides a grid, leaves two points or more, and is not finer than doubles.",
        "`dp.queries.Grid(0, 1, step=0.25)`",
    ),
    "unknown-choice": Explained(
        '`dp.queries.Categories(["yes", "no"])` and the value `"maybe"`',
        "The value is not among the declared choices.",
        "a declared choice; or declare the value, or `other=`",
    ),
    "too-few-choices": Explained(
        '`choices=["yes"]`, or `k=5` of 3 choices',
        "There must be something to choose from.",
        "two choices or more, and at least `k` of them",
    ),
    "not-increasing": Explained(
        "`quantiles=[0.75, 0.25]`", "The numbers must grow from one to the next.", "`quantiles=[0.25, 0.75]`"
    ),
    "too-many-digits": Explained(
        "`quantile=0.1234567891234`",
        "Exact fractions of this length would be too slow.",
        "a number with fewer digits; the message names the limit",
    ),
    "size-is-private": Explained(
        "a mean of all rows where rows may be added or removed",
        "The number of rows is private then, so no promise may depend on it.",
        '`row(neighbors="replace")`, or a query that does not need the number, such as `Mean.parts()`',
    ),
    "size-missing": Explained(
        "`dp.queries.Mean(between=(0, 120))` without `size=`",
        "An average needs the public number of rows.",
        "`size=1000`; if the number is private, `Mean.parts()` or `counting=`",
    ),
    "not-in-workload": Explained(
        "a marginal of columns that are in no set of the workload, or a weight for one that is not asked",
        "It was not measured, so there is no answer.",
        "columns of one of the workload's sets, or a larger workload; weights only for its sets",
    ),
    "bandwidth-too-small": Explained(
        "`bandwidth=0.001` over a range of 1000",
        "The features of so fine a kernel are too many to compute.",
        "a larger bandwidth or a narrower range",
    ),
    "unsuitable-loss": Explained(
        "a loss without a bounded slope, such as the square loss without bounds",
        "The promise needs a loss with `derivative`, `second`, and finite `lipschitz` and `smoothness`.",
        "`Logistic()` or `Huber()`",
    ),
}

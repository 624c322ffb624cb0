"""Codes of learning, of answers that are curves, of studies and of audits."""

from __future__ import annotations

from discreet.error_codes.row import Explained

LEARNING = {
    "learn-not-declared": Explained(
        "`LogisticRegression(epsilon=1)` without `classes=` or `feature_ranges=`",
        "Classes, ranges and bounds that are read from the data would reveal rows.",
        "`LogisticRegression(epsilon=1, classes=[0, 1], feature_ranges=[(0, 120)])`",
    ),
    "learn-classes": Explained("`classes=[1]`", "There must be something to tell apart.", "`classes=[0, 1]`"),
    "learn-two-classes": Explained(
        '`LinearSVC(classes=[0, 1, 2])`, or `solver="objective"` with three classes',
        "This method is proved for two classes.",
        '`LogisticRegression(…, solver="descent")`',
    ),
    "learn-solver": Explained(
        '`solver="objective"` with `sampling=` or with batches',
        "The objective is solved once, over all rows in memory.",
        '`solver="descent"`',
    ),
    "learn-no-curve": Explained(
        "`learning_curve_` of a model that is not learned in steps",
        "There is one result and no way towards it.",
        'a model with `solver="descent"`',
    ),
    "learn-priors": Explained(
        "`priors=[0.9, 0.9]`", "Priors are the probabilities of the classes.", "`priors=[0.5, 0.5]`"
    ),
    "learn-search": Explained(
        '`PrivateSearch(model, {"epsilon": [1, 10]})`',
        "All candidates must keep the same guarantee and descend over all rows.",
        '`PrivateSearch(LogisticRegression(…), {"clip": [0.5, 1]})`',
    ),
    "learn-no-target": Explained(
        "`model.fit(X)`, or `fit_batches(path)` without `target=`",
        "There is nothing to learn.",
        '`model.fit(X, y)`, `fit_batches(path, target="income")`',
    ),
    "learn-no-features": Explained(
        "`fit_batches(batches)` without `features=`",
        "The number and names of the features must be known before the data is read.",
        '`features=["age", "bmi"]`',
    ),
    "learn-feature-type": Explained(
        "a feature that is a column of text",
        "Models compute with numbers, and which texts occur is private.",
        "`learn.OneHot(categories=[…])` first",
    ),
    "learn-columns-missing": Explained(
        "`model.predict(frame)` without a column that the model was fitted to",
        "Columns are taken by name, so that another order cannot give wrong predictions.",
        "a frame with these columns; others do no harm",
    ),
    "learn-features-failed": Explained(
        "`FeatureClassifier(features=scaler)` with a scaler that refuses missing numbers",
        "Whether it fails depends on single rows, and its message may quote one.",
        "a transformer that accepts any row, such as one that begins with `np.nan_to_num`",
    ),
    "learn-text-files": Explained(
        "`fit_batches(dataset)` of CSV or JSON files",
        "They have no column types, so that one odd cell could stop the fit and be noticed.",
        "the same rows as Parquet",
    ),
    "learn-batches": Explained(
        "`fit_batches(np.array(…))`",
        "Batches are read again in every pass.",
        "a path of Parquet files, an Arrow dataset, a Spark DataFrame, or a function that returns batches",
    ),
    "learn-batches-once": Explained(
        "`fit_batches(iter(batches))`",
        "An iterator is used up after the first pass, and the rest of the fit would see no rows.",
        "`fit_batches(lambda: make_batches(), …)`",
    ),
    "learn-shape": Explained(
        '`model.edit("city", between=(0, 1), value=0)` where city has categories, or `edit` of a pair',
        "Columns of numbers are edited by ranges, and others by their categories.",
        '`model.edit("city", choices=["Oslo"], value=0)`',
    ),
    "density-bandwidth": Explained(
        "`density.smooth(0.1)` of a density released with bandwidth 1",
        "Only what was released can be shown, and a sharper curve was not.",
        "a bandwidth between the released one and `widest=`",
    ),
    "one-column-only": Explained(
        "`density.cdf(…)` of two columns, or a picture of three",
        "It is defined for one column (a picture: for two).",
        "a release of each column alone",
    ),
    "study-question": Explained(
        '`study.mean(lambda rows: rows["age"].sum())`, or a text as a question',
        "A question gives one number for each row, and the study averages them.",
        '`study.mean(lambda rows: rows["age"] > 40)`',
    ),
    "study-row-by-row": Explained(
        '`lambda rows: rows["age"] > rows["age"].mean()` under a ledger',
        "One person could change the value of every row, so the noise would not hide them.",
        '`lambda rows: rows["age"] > 40`, or `rows.apply(function, "age")`',
    ),
    "study-types": Explained(
        '`rows["city"] + 1`',
        "This operation is not defined for columns of these types.",
        '`rows["city"] == "Bled"`, or a conversion such as `rows["age"].astype(float)`',
    ),
    "study-sample": Explained(
        "lists, columns of another type, or a sample without the column of people",
        "A sample has typed columns, and one row of each person is used.",
        '`{"age": np.array([30, 41], dtype=float)}`, or `dp.table(…)`',
    ),
    "study-protected": Explained(
        '`study(table, unprotected=True)`, or `method="splitting"` for rows under a ledger',
        "These rows belong to people, and the method would publish exact functions of them.",
        "the same call without `unprotected=` and `method=`",
    ),
    "study-ledger": Explained(
        "a ledger whose unit or rule does not fit the study",
        "The promise of this method is stated for another unit or in another form.",
        'what the message names, such as `protects=dp.row(neighbors="replace")`',
    ),
    "study-too-few-rows": Explained(
        "`study(rows, queries=10_000, accuracy=0.01)` with 500 rows",
        "The answers would not hold on the population within this error.",
        "more rows, fewer questions or a larger error; `dp.adaptive.plan` computes them",
    ),
    "audit-too-few-outputs": Explained(
        "`audit` with a handful of runs",
        "No bound on ε has any confidence with so few outputs.",
        "10,000 runs or more",
    ),
    "audit-too-few-canaries": Explained(
        "`audit_model(model, X, y, canaries=5)`, or more guesses than canaries",
        "A few guesses are right by luck, and prove nothing.",
        "`canaries=1000`, `guesses=200`",
    ),
    "audit-canaries": Explained(
        "`audit_model(make, frame, canaries=500)` for text, or canaries without targets",
        "Hard rows can be made up only if all cells are numbers. They need what the other rows have.",
        "`canaries=(rows, targets)`, or `canaries=rows` without `y`",
    ),
    "audit-score": Explained(
        "`audit_model` of an object that does not predict, transform or hold rows",
        "It is not known how such an object shows what it has seen.",
        "`score=f`, where `f(model, X, y)` has a number for each row: larger means a member",
    ),
    "audit-no-model": Explained(
        "`discreet audit laplace KMeans`, or `discreet audit model` alone",
        "A model is named after the word model, and a mechanism stands alone.",
        "`discreet audit model KMeans`",
    ),
}

"""Codes of private SQL: what a query may ask, and how."""

from __future__ import annotations

from discreet.error_codes.row import Explained

# --- the text ---------------------------------------------------------------------------------------------

TEXT = {
    "sql-not-a-query": Explained(
        "`CHECKPOINT`, an empty text, or something that is not text",
        "A query is text that begins with SELECT or WITH.",
        "`SELECT COUNT(*) FROM visits`",
    ),
    "sql-syntax": Explained(
        "`SELECT COUNT(* FROM visits`", "The text does not parse as SQL.", "`SELECT COUNT(*) FROM visits`"
    ),
    "sql-one-at-a-time": Explained(
        "`SELECT COUNT(*) FROM a; SELECT COUNT(*) FROM b`",
        "Each query is planned and paid for by itself.",
        "two calls with one query each",
    ),
    "sql-not-select": Explained(
        "`DROP TABLE visits`, `EXPLAIN …`, `COPY …`",
        "A query asks; it does not change or describe a database.",
        "`SELECT …`; for a plan without a charge, `database.explain(…)`",
    ),
    "sql-parentheses": Explained(
        "`(SELECT COUNT(*) FROM visits)`", "A whole query in parentheses is not supported.", "it without parentheses"
    ),
    "sql-too-long": Explained(
        "a query of more than 100,000 characters",
        "The limit keeps the time to read a query bounded.",
        "a shorter query; a long list of values as a public table and a `JOIN`",
    ),
    "sql-too-complex": Explained(
        "hundreds of nested parentheses, or many joins without `ON` or `USING`",
        "Reading it would take too much memory or time.",
        "a simpler query",
    ),
    "sql-where-argument": Explained(
        "`where=\"city = 'Acre' GROUP BY age\"`",
        "`where=` takes one condition and nothing else.",
        "`where=\"city = 'Acre' AND age >= 18\"`",
    ),
    "sql-rows-only": Explained(
        "`GROUP BY`, `HAVING`, `ORDER BY` or `LIMIT` where rows are chosen",
        "Such a method only asks which rows take part.",
        "tables, joins and `WHERE`",
    ),
}

# --- names and types --------------------------------------------------------------------------------------

NAMES = {
    "sql-unknown-table": Explained(
        "`SELECT COUNT(*) FROM vistis`", "The policy declares no such table.", "one of the tables in the message"
    ),
    "sql-unknown-column": Explained(
        "`SELECT AVG(agee) FROM people`", "The table has no such column.", "one of the columns in the message"
    ),
    "sql-ambiguous-column": Explained(
        "`SELECT COUNT(city) FROM a JOIN b USING (id)`", "Both tables have a column `city`.", "`COUNT(a.city)`"
    ),
    "sql-same-name": Explained(
        "`SELECT COUNT(*) AS n, SUM(x) AS n`, or one table twice without `AS`",
        "Two columns or tables of one name cannot be distinguished.",
        "`SELECT COUNT(*) AS n, SUM(x) AS total`",
    ),
    "sql-column-names": Explained(
        "`FROM visits AS v (a, b)` where visits has three columns",
        "The list must name every column once.",
        "`FROM visits AS v (a, b, c)`",
    ),
    "sql-position": Explained(
        "`SELECT city, COUNT(*) … GROUP BY 5`", "`SELECT` has no fifth column.", "`GROUP BY 1`, or `GROUP BY city`"
    ),
    "sql-not-a-condition": Explained(
        "`WHERE cost`", "`WHERE`, `HAVING`, `ON` and `FILTER` take what is true or false.", "`WHERE cost > 0`"
    ),
    "sql-not-a-number": Explained(
        "`SUM(city)`", "Only numbers can be added or ordered into quantiles.", "`SUM(CAST(city AS DOUBLE))`"
    ),
    "sql-types": Explained(
        "`WHERE city > 5`, `CASE … THEN 1 ELSE 'a' END`",
        "The operation is not defined for these types.",
        "`WHERE CAST(city AS INTEGER) > 5`",
    ),
    "sql-arguments": Explained(
        "`SUBSTRING(city)`", "The function takes more or fewer arguments.", "`SUBSTRING(city, 1, 3)`"
    ),
    "sql-large-number": Explained("`WHERE cost > 1e999`", "No engine has such a number.", "`WHERE cost > 1e15`"),
    "sql-date": Explained("`DATE 'tomorrow'`", "This is not a date in the years 1 to 9999.", "`DATE '2020-01-31'`"),
    "sql-key-type": Explained(
        "`GROUP BY` a list, a struct or another type that is not supported",
        "Groups are made by numbers, text, dates and conditions.",
        "`GROUP BY CAST(x AS VARCHAR)`",
    ),
}

# --- what would show people -------------------------------------------------------------------------------

PEOPLE = {
    "sql-not-aggregated": Explained(
        "`SELECT * FROM visits`, `SELECT age, COUNT(*) FROM visits`",
        "The answer would show values of individual people.",
        "`SELECT AVG(age) FROM visits`, or `GROUP BY age`",
    ),
    "sql-shows-people": Explained(
        "`SELECT person_id, COUNT(*) …`", "The column identifies people.", "`SELECT COUNT(DISTINCT person_id) …`"
    ),
    "sql-no-bounds": Explained(
        "`MEDIAN(cost * 2)` where no range of cost is declared; `SUM(x * x)` where x is between 0 and 1e12",
        "A quantile is chosen from a public grid, and without a range there is none. A range above 1e15 is too large.",
        "`between = [0, 1000]` in the policy, or `MEDIAN(LEAST(GREATEST(cost * 2, 0), 2000))`",
    ),
    "too-few-people": Explained(
        "`SUM(cost)` of a few dozen people, at a small ε",
        "No limit on what one person may add could be found. What was charged to find it stays charged.",
        "a larger `epsilon`, or `rows_per_person = 20` and `between = [0, 1000]` in the policy",
    ),
    "values-too-large": Explained(
        "`SUM(bytes)` of values above 4e12 whose range is not declared",
        "Totals are added exactly, in 64 bits. The limit that was found is near the largest total, so some may be "
        "larger. What was charged to find it stays charged.",
        "`SUM(bytes / 1000000)`, or `between = [0, 1e14]` in the policy",
    ),
    "sql-narrow-bounds": Explained(
        "`SUM(x * 1e-300)`", "The range of the value is too narrow for its grid.", "`SUM(x)`, divided outside"
    ),
    "sql-public-only": Explained(
        "`SELECT COUNT(*) FROM cities` where cities is public", "Public tables need no noise.", "reading them directly"
    ),
}

# --- clauses ----------------------------------------------------------------------------------------------

CLAUSES = {
    "sql-no-table": Explained("`SELECT 1`", "A query asks about the rows of a table.", "`SELECT COUNT(*) FROM visits`"),
    "sql-source": Explained(
        "`FROM VALUES (1)`, `LATERAL`, `TABLESAMPLE`, a function in `FROM`",
        "The rows of such a source cannot be related to people.",
        "a declared table, or a query in `FROM`",
    ),
    "sql-clause": Explained(
        "`QUALIFY`, `FOR UPDATE`, `USING SAMPLE`", "The clause is not supported.", "the query without it"
    ),
    "sql-recursive": Explained(
        "`WITH RECURSIVE`",
        "How often one person's rows are used would have no limit.",
        "each step as a query in `FROM`",
    ),
    "sql-subquery": Explained(
        "`WHERE cost > (SELECT AVG(cost) FROM visits)`, `IN (SELECT …)`",
        "Which rows are kept would depend on the rows of all people.",
        "the number itself from an earlier answer, a list of values, or a `JOIN`",
    ),
    "sql-union": Explained(
        "`UNION`, `EXCEPT`, `INTERSECT`, or a union of two whole queries",
        "Removing equal rows mixes people. Only `UNION ALL` in `FROM` is supported.",
        "`SELECT COUNT(*) FROM (SELECT city FROM a UNION ALL SELECT city FROM b) AS t`",
    ),
    "sql-union-columns": Explained(
        "`SELECT city … UNION ALL SELECT age …`",
        "Both sides need the same number of columns, of the same types.",
        "a `CAST` on one side",
    ),
    "sql-union-public": Explained(
        "`UNION ALL` of a private and a public table", "Some rows would belong to nobody.", "the private table alone"
    ),
    "sql-inner-clause": Explained(
        "`FROM (SELECT * FROM visits ORDER BY cost LIMIT 3)`",
        "Which rows are kept would depend on other people's rows.",
        "the clause in the outermost query",
    ),
    "sql-inner-group": Explained(
        "`FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city)`",
        "Such a group mixes people. In `FROM`, only the person can be grouped by.",
        "`GROUP BY person_id` there, or `GROUP BY city` in the outermost query",
    ),
    "sql-inner-aggregate": Explained(
        "`FROM (SELECT person_id, MEDIAN(cost) FROM visits GROUP BY person_id)`",
        "Of one person's rows, only the keys, COUNT, SUM, AVG, MIN and MAX are supported.",
        "`AVG(cost)` there, and arithmetic in the query around it",
    ),
    "sql-grouping": Explained(
        "`GROUP BY ALL`, `ROLLUP`, `CUBE`", "Groups are listed by column.", "`GROUP BY city, age`"
    ),
    "sql-order": Explained("`ORDER BY 1 + 1`", "Only columns of the answer have an order.", "`ORDER BY n`"),
    "sql-limit": Explained("`LIMIT 1 + 1`, `LIMIT -1`", "`LIMIT` and `OFFSET` take a whole number.", "`LIMIT 2`"),
}

# --- joins ------------------------------------------------------------------------------------------------

JOINS = {
    "sql-join-kind": Explained(
        "`RIGHT JOIN`, `FULL JOIN`, `CROSS JOIN`, `NATURAL JOIN`", "The kind is not supported.", "`JOIN` or `LEFT JOIN`"
    ),
    "sql-join-condition": Explained(
        "`FROM a JOIN b ON a.x > b.x`",
        "A join needs a column of one side equal to a column of the other, of one type.",
        "`FROM a JOIN b ON a.city = b.city`",
    ),
    "sql-join-person": Explained(
        "`FROM visits a JOIN visits b ON a.city = b.city`",
        "Each row of the result must belong to one person.",
        "`… ON a.city = b.city AND a.person_id = b.person_id`",
    ),
    "sql-join-frequency": Explained(
        "a join of two private tables where single rows are protected",
        "A join could repeat one row without limit.",
        '`frequency = 10` or `"auto"` for both columns in the policy',
    ),
    "sql-left-join": Explained(
        "`FROM cities LEFT JOIN visits USING (city)`",
        "It would keep rows that belong to nobody, or change with rows of others.",
        "`FROM visits LEFT JOIN cities USING (city)`, or `JOIN`",
    ),
}

# --- aggregates and functions -----------------------------------------------------------------------------

FUNCTIONS = {
    "sql-aggregate": Explained(
        "`MODE(city)`, `STRING_AGG(city, ',')`",
        "There is no private answer to this aggregate, or not in this form.",
        "COUNT, SUM, AVG, VARIANCE, STDDEV, MEDIAN, QUANTILE_CONT, MIN or MAX",
    ),
    "sql-misplaced-aggregate": Explained(
        "`WHERE COUNT(*) > 5`, `GROUP BY COUNT(*)`",
        "Aggregates stand in `SELECT`, `HAVING` and `ORDER BY` of the outermost query.",
        "`HAVING COUNT(*) > 5`",
    ),
    "sql-count": Explained("`COUNT(DISTINCT a, b)`", "`COUNT` takes `*` or one value.", "`COUNT(DISTINCT a)`"),
    "sql-distinct": Explained("`SUM(DISTINCT x)`", "`DISTINCT` is supported in `COUNT` only.", "`COUNT(DISTINCT x)`"),
    "sql-quantile": Explained(
        "`QUANTILE_CONT(cost, 1.5)`", "A quantile is one literal between 0 and 1.", "`QUANTILE_CONT(cost, 0.9)`"
    ),
    "sql-window": Explained(
        "`RANK() OVER ()`, `LIST(COUNT(*)) OVER ()`, a window in `HAVING` or inside another",
        "Only listed window functions run on the noisy numbers, some need an order, and `HAVING` comes before them.",
        "`RANK() OVER (ORDER BY COUNT(*) DESC)`, `QUALIFY`",
    ),
    "sql-function": Explained(
        "`md5(note)`, `random()`, `regexp_matches(…)`",
        "Only listed functions see the data: they are exact, give the same result each time, and cannot fail.",
        "`CASE`, comparisons, arithmetic, `LIKE 'A%'`",
    ),
    "sql-not-literal": Explained(
        "`note LIKE city`, `ROUND(x, y)`", "The pattern or the number of digits must be a literal.", "`ROUND(x, 2)`"
    ),
    "sql-interval": Explained(
        "`day + INTERVAL 1 DAY`",
        "An interval is supported only next to a literal date.",
        "`day > DATE '2024-01-01' - INTERVAL 1 DAY`",
    ),
    "sql-date-part": Explained(
        "`EXTRACT(epoch FROM day)`, `DATE_DIFF('month', a, b)`",
        "The part or unit of dates is not supported.",
        "`EXTRACT(year FROM day)`, `DATE_DIFF('day', a, b)`",
    ),
    "sql-cast": Explained("`CAST(x AS DECIMAL(9, 2))`", "The type is not supported.", "`CAST(x AS DOUBLE)`"),
}

# --- plans ------------------------------------------------------------------------------------------------

PLANS = {
    "sql-not-computable": Explained(
        "a function of columns whose types the engine does not accept there",
        "The engine cannot compute it for these types. This is found before anything is charged.",
        "`CAST` what the function takes",
    ),
    "sql-too-many-groups": Explained(
        "`GROUP BY` three keys of 10,000 values each",
        "Every declared group gets noise, and these are too many to compute.",
        "fewer or coarser keys",
    ),
    "sql-join-too-many": Explained(
        "several joins that multiply the rows of one person, or of one row",
        "One person could be in so many joined rows that no noise hides them.",
        "fewer joins, lower bounds or frequencies, or each table grouped by the person first",
    ),
    "sql-join-open-keys": Explained(
        "a join of private tables grouped by an undeclared key, where rows are protected",
        "A join repeats rows, so that one row could make a group appear.",
        "`choices` or `between` for the key in the policy",
    ),
    "sql-join-quantile": Explained(
        "`MEDIAN(x)` of joined private tables, where rows are protected",
        "Quantiles of repeated rows are not supported.",
        "people protected instead of rows, or `AVG(x)`",
    ),
}

SQL = {**TEXT, **NAMES, **PEOPLE, **CLAUSES, **JOINS, **FUNCTIONS, **PLANS}

"""Codes of private SQL: what a query may ask, and how."""

from __future__ import annotations

from discreet.error_codes.row import Explained

# --- the text ---------------------------------------------------------------------------------------------

TEXT = {
    "sql-not-a-query": Explained(
        "`visits`, an empty text, or something that is not text",
        "A query is text that begins with SELECT or WITH.",
        "`SELECT COUNT(*) FROM visits`",
    ),
    "sql-syntax": Explained(
        "`SELECT COUNT(* FROM visits`", "The text does not parse as SQL.", "`SELECT COUNT(*) FROM visits`"
    ),
    "sql-one-at-a-time": Explained(
        "`SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM people`",
        "Each query is planned and paid for by itself.",
        "`SELECT COUNT(*) FROM visits`, and the other query in a call of its own",
    ),
    "sql-not-select": Explained(
        "`DROP TABLE visits`, `EXPLAIN SELECT COUNT(*) FROM visits`",
        "A query asks; it does not change or describe a database.",
        "`SELECT COUNT(*) FROM visits`; for a plan without a charge, `database.explain(…)`",
    ),
    "sql-parentheses": Explained(
        "`(SELECT COUNT(*) FROM visits)`",
        "A whole query in parentheses is not supported.",
        "`SELECT COUNT(*) FROM visits`",
    ),
    "sql-too-long": Explained(
        "a query of more than 200,000 characters",
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
        "`SELECT COUNT(*) FROM vistis`",
        "The policy declares no such table.",
        "`SELECT COUNT(*) FROM visits`, or another table in the message",
    ),
    "sql-unknown-column": Explained(
        "`SELECT AVG(agee) FROM people`",
        "The table has no such column.",
        "`SELECT AVG(age) FROM people`, or another column in the message",
    ),
    "sql-ambiguous-column": Explained(
        "`SELECT COUNT(city) FROM visits JOIN people USING (person_id)`",
        "Both tables have a column `city`.",
        "`SELECT COUNT(people.city) FROM visits JOIN people USING (person_id)`",
    ),
    "sql-same-name": Explained(
        "`SELECT COUNT(*) AS n, SUM(cost) AS n FROM visits`, or one table twice without `AS`",
        "Two columns or tables of one name cannot be distinguished.",
        "`SELECT COUNT(*) AS n, SUM(cost) AS total FROM visits`",
    ),
    "sql-column-names": Explained(
        "`SELECT COUNT(*) FROM cities AS c (name, region) JOIN visits ON visits.city = c.name`, as cities "
        "has four columns",
        "The list must name every column once.",
        "`SELECT COUNT(*) FROM cities AS c (name, region, people, coastal) JOIN visits ON visits.city = c.name`",
    ),
    "sql-position": Explained(
        "`SELECT city, COUNT(*) FROM visits GROUP BY 5`",
        "`SELECT` has no fifth column.",
        "`SELECT city, COUNT(*) FROM visits GROUP BY 1`, or `GROUP BY city`",
    ),
    "sql-not-a-condition": Explained(
        "`SELECT COUNT(*) FROM visits WHERE cost`",
        "`WHERE`, `HAVING`, `ON` and `FILTER` take what is true or false.",
        "`SELECT COUNT(*) FROM visits WHERE cost > 0`",
    ),
    "sql-not-a-number": Explained(
        "`SELECT SUM(city) FROM visits`",
        "Only numbers can be added or ordered into quantiles.",
        "`SELECT SUM(CAST(note AS DOUBLE)) FROM visits`",
    ),
    "sql-types": Explained(
        "`SELECT COUNT(*) FROM visits WHERE note > 5`",
        "The operation is not defined for these types.",
        "`SELECT COUNT(*) FROM visits WHERE CAST(note AS INTEGER) > 5`",
    ),
    "sql-arguments": Explained(
        "`SELECT COUNT(*) FROM visits WHERE SUBSTRING(city) = 'Acr'`",
        "The function takes more or fewer arguments.",
        "`SELECT COUNT(*) FROM visits WHERE SUBSTRING(city, 1, 3) = 'Acr'`",
    ),
    "sql-large-number": Explained(
        "`SELECT COUNT(*) FROM visits WHERE cost > 1e999`",
        "No engine has such a number.",
        "`SELECT COUNT(*) FROM visits WHERE cost > 1e15`",
    ),
    "sql-date": Explained(
        "`SELECT COUNT(*) FROM visits WHERE day > DATE 'tomorrow'`",
        "This is not a date in the years 1 to 9999.",
        "`SELECT COUNT(*) FROM visits WHERE day > DATE '2020-01-31'`",
    ),
    "sql-key-person": Explained(
        "`GROUP BY patient_id` where a unit is one person in one month",
        "A person with many months would be a group with many units, and its name would be shown.",
        "`GROUP BY city`",
    ),
    "sql-key-type": Explained(
        "`GROUP BY` a list, a struct or another type that is not supported",
        "Groups are made by numbers, text, dates and conditions.",
        "`GROUP BY CAST(x AS VARCHAR)`",
    ),
}

# --- what would show people -------------------------------------------------------------------------------

PEOPLE = {
    "sql-not-aggregated": Explained(
        "`SELECT * FROM visits`, `SELECT age, COUNT(*) FROM people`",
        "The answer would show values of individual people.",
        "`SELECT AVG(age) FROM people`, or `SELECT age, COUNT(*) FROM people GROUP BY age`",
    ),
    "sql-shows-people": Explained(
        "`SELECT person_id, COUNT(*) FROM visits`",
        "The column identifies people.",
        "`SELECT COUNT(DISTINCT person_id) FROM visits`",
    ),
    "sql-no-bounds": Explained(
        "`SELECT MEDIAN(cost * 1e15) FROM visits`, or an average without a range where rows are protected",
        "A range above 1e15 is too large. Where rows are protected, or one row is used several times, the ranges of "
        "averaged and summed values must be known.",
        "`SELECT MEDIAN(LEAST(GREATEST(cost, 0), 2000)) FROM visits`, or `between = [0, 1000]` in the policy",
    ),
    "too-few-people": Explained(
        "`SUM(cost)` of a few dozen people, or `MEDIAN(cost)` of a thousand, at a small ε",
        "No limit on what one person may add, or no range, could be found. What was charged to find it stays charged. "
        "`explain` says about how many people a range needs.",
        "a larger `epsilon`, or `rows_per_person = 20` and `between = [0, 1000]` in the policy",
    ),
    "values-too-large": Explained(
        "`SUM(bytes)` of values above 4e12 whose range is not declared",
        "Totals are added exactly, in 64 bits. The limit that was found is near the largest total, so some may be "
        "larger. What was charged to find it stays charged.",
        "`SUM(bytes / 1000000)`, or `between = [0, 1e14]` in the policy",
    ),
    "sql-narrow-bounds": Explained(
        "`SELECT SUM(cost * 1e-300) FROM visits`",
        "The range of the value is too narrow for its grid.",
        "`SELECT SUM(cost) FROM visits`, divided outside",
    ),
    "sql-public-only": Explained(
        '`database.plan("SELECT COUNT(*) FROM cities", epsilon=1)`, as cities is public',
        "Public tables need no noise, so there is nothing to plan, to charge or to learn privately.",
        '`database.sql("SELECT COUNT(*) FROM cities")`, which is exact and free',
    ),
}

# --- clauses ----------------------------------------------------------------------------------------------

CLAUSES = {
    "sql-no-table": Explained("`SELECT 1`", "A query asks about the rows of a table.", "`SELECT COUNT(*) FROM visits`"),
    "sql-source": Explained(
        "`SELECT COUNT(*) FROM (VALUES (1)) AS t`, `SELECT COUNT(*) FROM visits TABLESAMPLE 10%`",
        "The rows of such a source cannot be related to people.",
        "`SELECT COUNT(*) FROM (SELECT * FROM visits WHERE cost > 0) AS t`",
    ),
    "sql-clause": Explained(
        "`SELECT COUNT(*) FROM visits FOR UPDATE`", "The clause is not supported.", "`SELECT COUNT(*) FROM visits`"
    ),
    "sql-recursive": Explained(
        "`WITH RECURSIVE t AS (SELECT * FROM visits) SELECT COUNT(*) FROM t`",
        "How often one person's rows are used would have no limit.",
        "`WITH t AS (SELECT * FROM visits) SELECT COUNT(*) FROM t`",
    ),
    "sql-subquery": Explained(
        "`SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)`",
        "Which rows are kept would depend on the rows of other people.",
        "`SELECT COUNT(*) FROM visits WHERE cost > 480`, with the number from an earlier answer; or about one person, "
        "`SELECT COUNT(*) FROM visits WHERE person_id IN (SELECT person_id FROM people WHERE active)`",
    ),
    "sql-union": Explained(
        "`SELECT COUNT(*) FROM (SELECT city FROM visits UNION SELECT city FROM people) AS t`",
        "Removing equal rows mixes people. Only `UNION ALL` in `FROM` is supported.",
        "`SELECT COUNT(*) FROM (SELECT person_id, city FROM visits UNION ALL SELECT person_id, city FROM people) AS t`",
    ),
    "sql-union-columns": Explained(
        "`SELECT COUNT(*) FROM (SELECT city FROM people UNION ALL SELECT age FROM people) AS t`",
        "Both sides need the same number of columns, of the same types.",
        "`SELECT COUNT(*) FROM (SELECT city FROM people UNION ALL SELECT CAST(age AS VARCHAR) FROM people) AS t`",
    ),
    "sql-union-public": Explained(
        "`SELECT COUNT(*) FROM (SELECT city FROM visits UNION ALL SELECT city FROM cities) AS t`",
        "Some rows would belong to nobody.",
        "`SELECT COUNT(*) FROM (SELECT city FROM visits) AS t`",
    ),
    "sql-inner-clause": Explained(
        "`SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY cost LIMIT 3) AS t`",
        "Which rows are kept would depend on other people's rows.",
        "`SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY n LIMIT 3`",
    ),
    "sql-inner-group": Explained(
        "`SELECT AVG(n) FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS t`",
        "Such a group mixes people. In `FROM`, only the person can be grouped by.",
        "`SELECT city, COUNT(*) AS n FROM visits GROUP BY city`, or by person, `SELECT AVG(LEAST(n, 20)) "
        "FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id) AS t`",
    ),
    "sql-inner-aggregate": Explained(
        "`SELECT AVG(m) FROM (SELECT person_id, MEDIAN(cost) AS m FROM visits GROUP BY person_id) AS t`",
        "Of one person's rows, only the keys, COUNT, COUNT_IF, SUM, AVG, MIN and MAX are supported.",
        "`SELECT AVG(m) FROM (SELECT person_id, AVG(cost) AS m FROM visits GROUP BY person_id) AS t`",
    ),
    "sql-grouping": Explained(
        "`SELECT city, COUNT(*) FROM visits GROUP BY GROUPING SETS ((city), (city))`",
        "Each level is shown once, and there are at most 64. In FROM, a person's rows are grouped by columns only.",
        "`SELECT city, COUNT(*) FROM visits GROUP BY ROLLUP (city)`",
    ),
    "sql-levels-add-up": Explained(
        "`SELECT city, COUNT(DISTINCT person_id) FROM visits GROUP BY ROLLUP (city)`",
        "The levels of an answer add up, and numbers of different values and quantiles do not: one value may be in "
        "several groups.",
        "`SELECT city, COUNT(*) FROM visits GROUP BY ROLLUP (city)`, or one level: "
        "`SELECT city, COUNT(DISTINCT person_id) FROM visits GROUP BY city`",
    ),
    "sql-order": Explained(
        "`SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY 1 + 1`",
        "Only columns of the answer have an order.",
        "`SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY n`",
    ),
    "sql-limit": Explained(
        "`SELECT city, COUNT(*) FROM visits GROUP BY city LIMIT 1 + 1`",
        "`LIMIT` and `OFFSET` take a whole number.",
        "`SELECT city, COUNT(*) FROM visits GROUP BY city LIMIT 2`",
    ),
}

# --- joins ------------------------------------------------------------------------------------------------

JOINS = {
    "sql-join-kind": Explained(
        "`SELECT COUNT(*) FROM visits CROSS JOIN cities`",
        "The kind is not supported.",
        "`SELECT COUNT(*) FROM visits JOIN cities USING (city)`, or `LEFT JOIN`, `RIGHT JOIN`, `FULL JOIN`",
    ),
    "sql-join-condition": Explained(
        "`SELECT COUNT(*) FROM visits JOIN cities ON visits.city > cities.city`",
        "A join needs a column of one side equal to a column of the other, of one type.",
        "`SELECT COUNT(*) FROM visits JOIN cities ON visits.city = cities.city`",
    ),
    "sql-join-person": Explained(
        "`SELECT COUNT(*) FROM visits a JOIN people b ON a.city = b.city`",
        "Each row of the result must belong to one person.",
        "`SELECT COUNT(*) FROM visits a JOIN people b ON a.city = b.city AND a.person_id = b.person_id`",
    ),
    "sql-join-frequency": Explained(
        "a join of two private tables where single rows are protected",
        "A join could repeat one row without limit.",
        '`frequency = 10` or `"auto"` for both columns in the policy',
    ),
    "sql-left-join": Explained(
        "`SELECT COUNT(*) FROM cities LEFT JOIN visits USING (city)`",
        "It would keep rows that belong to nobody, or change with rows of others.",
        "`SELECT COUNT(*) FROM visits LEFT JOIN cities USING (city)`, or `JOIN`",
    ),
}

# --- aggregates and functions -----------------------------------------------------------------------------

FUNCTIONS = {
    "sql-aggregate": Explained(
        "`SELECT STRING_AGG(city, ',') FROM visits`",
        "This aggregate has no private answer, or not in this form.",
        "`SELECT city, COUNT(*) FROM visits GROUP BY city`, or another of COUNT, SUM, AVG, VARIANCE, STDDEV, "
        "MEDIAN, QUANTILE_CONT, MIN and MAX",
    ),
    "sql-misplaced-aggregate": Explained(
        "`SELECT city, COUNT(*) FROM visits WHERE COUNT(*) > 5 GROUP BY city`",
        "Aggregates stand in `SELECT`, `HAVING` and `ORDER BY` of the outermost query.",
        "`SELECT city, COUNT(*) FROM visits GROUP BY city HAVING COUNT(*) > 5`",
    ),
    "sql-count": Explained(
        "`SELECT COUNT(DISTINCT city, reason) FROM visits`",
        "`COUNT` takes `*` or one value.",
        "`SELECT COUNT(DISTINCT city) FROM visits`",
    ),
    "sql-distinct": Explained(
        "`SELECT SUM(DISTINCT cost) FROM visits`",
        "`DISTINCT` is supported in `COUNT` only.",
        "`SELECT COUNT(DISTINCT cost) FROM visits`",
    ),
    "sql-asked-first": Explained(
        "`SELECT MEDIAN(cost / (SELECT AVG(cost) FROM visits)) FROM visits`",
        "With some values of the number that is asked first, such as 0, the question could not be asked.",
        "`SELECT MEDIAN(cost) / AVG(cost) FROM visits`, or a comparison with the number",
    ),
    "sql-mode": Explained(
        "`SELECT MODE(note) FROM visits`",
        "`MODE` chooses among values that are declared.",
        "`SELECT note, COUNT(*) AS n FROM visits GROUP BY note ORDER BY n DESC LIMIT 1`, or declare `choices`",
    ),
    "sql-quantile": Explained(
        "`SELECT QUANTILE_CONT(cost, 1.5) FROM visits`",
        "A quantile is one literal between 0 and 1, or a list of them.",
        "`SELECT QUANTILE_CONT(cost, 0.9) FROM visits`",
    ),
    "sql-window": Explained(
        "`SELECT city, COUNT(*) AS n, RANK() OVER () AS place FROM visits GROUP BY city`, `SELECT COUNT(*) FROM "
        "(SELECT ROW_NUMBER() OVER (ORDER BY cost) AS k FROM visits) AS t WHERE k = 1`",
        "On the noisy numbers, only listed window functions run, some need an order, and `HAVING` comes before them. "
        "In `FROM`, a window is of one person's rows: others would change with them.",
        "`SELECT city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM visits GROUP BY city`, "
        "`SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS k FROM visits) AS t "
        "WHERE k = 1`",
    ),
    "sql-function": Explained(
        "`SELECT COUNT(*) FROM visits WHERE regexp_matches(note, '^re')`, `SELECT COUNT(*) FROM visits WHERE "
        "random() < 0.5`",
        "Only listed functions see the data: they are exact, give the same result each time, and cannot fail.",
        "`SELECT COUNT(*) FROM visits WHERE note LIKE 're%'`",
    ),
    "sql-not-literal": Explained(
        "`SELECT COUNT(*) FROM visits WHERE note LIKE city`",
        "The pattern or the number of digits must be a literal.",
        "`SELECT COUNT(*) FROM visits WHERE note LIKE 'A%'`",
    ),
    "sql-interval": Explained(
        "`SELECT COUNT(*) FROM visits WHERE day + INTERVAL 1 DAY > DATE '2024-01-01'`",
        "An interval is supported only next to a literal date.",
        "`SELECT COUNT(*) FROM visits WHERE day > DATE '2024-01-01' - INTERVAL 1 DAY`",
    ),
    "sql-date-part": Explained(
        "`SELECT COUNT(*) FROM visits WHERE EXTRACT(epoch FROM day) > 0`",
        "The part or unit of dates is not supported.",
        "`SELECT COUNT(*) FROM visits WHERE EXTRACT(year FROM day) > 2023`",
    ),
    "sql-cast": Explained(
        "`SELECT SUM(CAST(cost AS DECIMAL(9, 2))) FROM visits`",
        "The type is not supported, or no declared choice of the column has this type.",
        "`SELECT SUM(CAST(cost AS DOUBLE)) FROM visits`",
    ),
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
    "sql-join-several-rows": Explained(
        "a join of private tables where several rows are protected at once, `rows = 3` in `[unit]`",
        "Rows of one unit would meet each other, and their joined rows grow like a product.",
        "a question about one private table, or people as the unit",
    ),
    "sql-several-rows-keys": Explained(
        "`GROUP BY ROLLUP (region, city)`, or a sum without a range, by an undeclared key under `rows = 3`",
        "Groups are chosen there by votes of people, and a few rows have several votes.",
        "`choices` for the keys, `between` for summed columns, or one level at a time",
    ),
    "sql-join-quantile": Explained(
        "`MEDIAN(x)` of joined private tables, where rows are protected",
        "Quantiles of repeated rows are not supported.",
        "people protected instead of rows, or `AVG(x)`",
    ),
}

SQL = {**TEXT, **NAMES, **PEOPLE, **CLAUSES, **JOINS, **FUNCTIONS, **PLANS}

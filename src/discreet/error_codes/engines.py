"""Codes of engines and of the sources they read."""

from __future__ import annotations

from discreet.error_codes.row import Explained

SOURCES = {
    "source-missing": Explained(
        '`source = "vists.parquet"`', "There is no such file, folder or table.", '`source = "visits.parquet"`'
    ),
    "source-name": Explained(
        '`source = "visits"` on PostgreSQL', "A table is named with its schema.", '`source = "public.visits"`'
    ),
    "source-format": Explained(
        '`source = "visits.xlsx"`',
        "The engine does not read this kind of source.",
        "a Parquet, CSV, TSV, TXT or JSON file, or a folder of them; all but Parquet may end in `.gz`",
    ),
    "format-separator": Explained(
        '`format = {separator = "::"}`, or `format = {header = false}` without a separator',
        "Fields are separated by one character, which no row may decide.",
        '`format = {separator = ";"}`, or `" "` for any number of spaces and tabs',
    ),
    "format-names": Explained(
        "`format = {header = false}` without names, or with a name twice; names for a file that has a header",
        "Without a line of names, the policy says which columns there are.",
        '`format = {header = false, separator = ",", names = ["patient_id", "weight"]}`',
    ),
    "format-date": Explained(
        '`day = {format = "d.m.y"}`, or a format for a column that has no dates',
        "The format says how all dates of the column are written; a value that is written otherwise is NULL.",
        '`day = {format = "dd.mm.yyyy"}`, `"mm/dd/yyyy hh:mi"` or `"dd-mon-yyyy"`',
    ),
    "format-not-text": Explained(
        "`format` for a Parquet file, a table in memory, or a table of PostgreSQL or Spark",
        "Such a table has names and types of its own.",
        "the table without `format`; for JSON, `format` of its columns of dates",
    ),
    "source-unreadable": Explained(
        "a file that is cut short, or has another format than its name says, or that Spark does not find",
        "The engine cannot read it as a table.",
        "the complete file under its right name",
    ),
    "source-no-columns": Explained(
        "a source with lists, structs and binary values only",
        "No column can be read.",
        "columns of numbers, text or dates",
    ),
    "source-columns": Explained(
        "a DataFrame of Spark with two columns of one name", "Columns are found by name.", "a name for each column"
    ),
    "source-files-differ": Explained(
        "a folder of files with different columns or types",
        "All files of a folder are one table.",
        "files with the same columns, of the same types",
    ),
    "source-header": Explained(
        "a CSV file whose first line is data, or repeats a name",
        "The first line names the columns.",
        "`person_id,age,city` as the first line, or a `format` with `header = false`",
    ),
    "source-encoding": Explained(
        "`discreet init` or `discreet serve --new` with a text file in another encoding than UTF-8, or with "
        "`--encoding` for one in UTF-8",
        "Lines that are not UTF-8 are left out of every answer, and nobody would notice.",
        "`--encoding windows-1252`, which writes a copy in UTF-8, or a copy that you make: `iconv -f UTF-16 -t UTF-8 "
        "visits.csv > utf8.csv`",
    ),
    "source-types": Explained(
        "a JSON file whose columns are not declared",
        "Columns and types are never read from the data of a JSON file.",
        '`types={"age": "integer"}`, or the columns in the policy',
    ),
    "source-milliseconds": Explained(
        "a timestamp column in milliseconds, read by Spark",
        "Spark may fail on single values of it.",
        "the column in microseconds",
    ),
    "source-streaming": Explained(
        "a streaming DataFrame", "It has no end and cannot be read repeatedly.", "a DataFrame that is not streaming"
    ),
    "source-not-a-table": Explained(
        "a view or a foreign table of PostgreSQL",
        "What is computed while it is read may fail on one row, and the failure would show the row.",
        "a table or a materialized view",
    ),
    "source-no-rights": Explained(
        "a table that the role of `url` may not read", "PostgreSQL refuses to read it.", "`GRANT SELECT ON …`"
    ),
    "source-row-security": Explained(
        "a table with row-level security",
        "PostgreSQL would hide rows, and the answer would count fewer people than it says.",
        "a role with `BYPASSRLS`, or a table of its own",
    ),
}

ENGINES = {
    "engine-unknown-key": Explained(
        '`[engine]` with `memory = "8GB"` and `kind = "spark"`', "This engine has no such setting.", "the key removed"
    ),
    "engine-url": Explained(
        '`kind = "postgres"` without `url`',
        "The database must be named.",
        '`url = "postgresql://host/database"`',
    ),
    "engine-config": Explained(
        "`config` with a key that does not begin with `spark.`",
        "Only settings of Spark can be passed on.",
        '`config = { "spark.executor.memory" = "8g" }`',
    ),
    "engine-memory": Explained('`memory = "8"`', "The amount needs a unit, and at least 100MB.", '`memory = "8GB"`'),
    "engine-version": Explained(
        "a PostgreSQL older than 13", "The engine needs a later version.", "PostgreSQL 13 or later"
    ),
    "engine-encoding": Explained(
        "a PostgreSQL database in another encoding than UTF8",
        "Text would be compared differently than on other engines.",
        "a database in UTF8",
    ),
    "engine-unreachable": Explained(
        "a `url` or `master` that cannot be reached",
        "The server does not run, or refuses the connection.",
        "the right host, database, role and password; for Spark, Java 17 and the right `master`",
    ),
    "spill-folder": Explained(
        '`spill = "/nowhere"`', "The folder does not exist or cannot be written.", "a folder that exists"
    ),
    "forked-process": Explained(
        "a question in a process that was forked after the data was opened",
        "The engine's threads stay in the process that opened it.",
        "the data opened again in the new process",
    ),
    "spark-session": Explained(
        "a `master` while another session of Spark runs in the process",
        "A process has one Spark, and this one cannot be used.",
        "`spark=session`, or the running session stopped first",
    ),
    "spark-workers-differ": Explained(
        "a fit on executors with different processors",
        "Their `exp` differs in the last bit, so that a row's part would depend on where it is computed.",
        "executors of one kind, or `NPY_DISABLE_CPU_FEATURES` set for all of them",
    ),
    "not-additive": Explained(
        "a query over partitions that is not a count, a histogram or a sum",
        "Only these can be added over partitions.",
        "`Count()`, `Histogram(…)` or `Sum(…)`",
    ),
    "sql-engine": Explained(
        "`CAST(day AS DOUBLE)` and a few other operations on PostgreSQL or Spark",
        "This engine has no exact and total form of it yet.",
        "`CASE`, comparisons and arithmetic; or DuckDB",
    ),
    "sql-constant": Explained(
        "a value that is not a number, text or date as a constant",
        "It cannot be written into a query.",
        "a number, text or date",
    ),
    "engine-statement-failed": Explained(
        "a statement over answers that takes more than a minute on them, or in which one value has several",
        "The questions were answered and charged. What is made of their answers cannot be computed.",
        "the same questions alone, which are free now, and the rest by hand",
    ),
}

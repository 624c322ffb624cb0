"""What one odd record changes in questions of a few rows at once, in answers from earlier ones, in a publication, and
in what commands print about a file.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow.parquet

import discreet as dp
from discreet.cli.app import main

from ..checking import Call
from ..distances import largest
from .tables import EXTREMES, ODD_LINES, ON_FILE, PEOPLE, SOURCES, WAYS, fresh_folder, of_file, policy

BY_BOTH = "SELECT c, n, COUNT(*) AS k FROM people GROUP BY c, n"
TEXTS = (
    "SELECT COUNT(*) AS k, SUM(x) AS s FROM people",
    "SELECT c, COUNT(*) AS k FROM people GROUP BY c",
    "SELECT MEDIAN(x) >= 0 AS m FROM people",
)
IMPLIED = (
    "SELECT c, COUNT(*) AS k FROM people WHERE n BETWEEN 0 AND 6 GROUP BY c",
    "SELECT COUNT(*) AS k FROM people WHERE c = 'a' AND n IN (1, 2)",
    "SELECT SUM(x) AS s FROM people WHERE c = 'b'",
    "SELECT SUM(x) AS s FROM people WHERE c IN ('a', 'b')",
)
_RECEIPT = re.compile(r"\d+-[0-9a-f]{4,}")
PLAN = {
    "title": "People",
    "tables": {"by_c": {"sql": "SELECT c, COUNT(*) AS k, SUM(x) AS s FROM people GROUP BY c", "epsilon": 1}},
    "cubes": {"totals": {"table": "people", "by": ["c"], "epsilon": 1}},
}


def shown(answer: Any) -> Any:
    return [str(answer.table.schema), *answer.table.to_pylist()]


def at_once(**unit: Any) -> Callable[[Any], Any]:
    """Questions whose unit is a set of rows. One record is one of them."""

    def run(source: Any) -> Any:
        with fresh_folder() as folder:
            database = dp.connect(policy(source, folder, **unit))
            return [shown(database.sql(text, epsilon=1)) for text in TEXTS]

    return run


def from_answers(source: Any) -> Any:
    """Answers that earlier ones imply, also with the groups around a question: what is paid is the same, too."""
    with fresh_folder() as folder:
        words = policy(source, folder, row=True) | {"answers": {"wide": True}}
        words["tables"]["people"]["version"] = "1"
        words["tables"]["people"]["columns"]["n"] = {"choices": list(range(7))}
        database = dp.connect(words)
        answers = [database.sql(BY_BOTH, epsilon=1), *(database.sql(text, epsilon=0.2) for text in IMPLIED)]
        said = [_RECEIPT.sub("·", str(database.explain(text, epsilon=0.2))) for text in IMPLIED]
        costs = [str(entry.guarantee) for entry in database.ledger.entries() if entry.kind == "charge"]
        return [*map(shown, answers), said, costs, [len(answer.derived_from) for answer in answers]]


def published(source: Any) -> Any:
    """The tables of a publication, and what is said of it before and after."""
    with fresh_folder() as folder:
        words = policy(source, folder, row=True)
        words["tables"]["people"]["version"] = "1"
        plan = PLAN | {"policy": words}
        said, out = str(dp.publication.explain_publication(plan)), Path(folder) / "out"
        made = dp.publish(plan, out)
        tables = [pyarrow.parquet.read_table(out / f"{name}.parquet") for name in ("by_c", "totals")]
        facts = json.loads((out / "proof.json").read_text())
        kept = [facts[name] for name in ("cost", "spent_by_then", "policy", "meaning", "not_private")]
        return [said, made.cost, kept, *([str(table.schema), *table.to_pylist()] for table in tables)]


COMMANDS = (
    ["query", "p.toml", TEXTS[0], "--epsilon", "1", "--format", "json"],
    ["query", "p.toml", TEXTS[1], "--epsilon", "1", "--format", "csv"],
    ["explain", "p.toml", TEXTS[0], "--epsilon", "1"],
    ["tables", "p.toml"],
    ["ledger", "p.toml"],
)


def printed(path: Path) -> Any:
    """What commands print about a file. Lines of an answer have numbers, all others are texts that must stay."""
    columns = 'x = {between = [0.0, 1.0]}\nc = {choices = ["a", "b"]}\nn = {type = "integer", between = [0, 6]}'
    toml = path.with_name("p.toml")
    toml.write_text(
        f'[ledger]\npath = "{path.with_name("a.ledger")}"\nepsilon = 100.0\n[unit]\nrow = true\n'
        f'[tables.people]\nsource = "{path}"\n[tables.people.columns]\nwho = {{type = "text"}}\n{columns}\n'
    )
    found: list[Any] = []
    for words in COMMANDS:
        with redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
            main([str(toml) if word == "p.toml" else word for word in words])
        text = out.getvalue()
        if words[-1] == "json":
            found.append({name: value for name, value in json.loads(text).items() if name in ("rows", "errors")})
        elif words[-1] == "csv":
            found.append([[float(cell) if cell[:1].isdigit() else cell for cell in line.split(",")]
                          for line in text.splitlines()])  # fmt: skip
        elif words[0] != "ledger":
            found.append(text)
    return found


SHARED: dict[str, Any] = {
    "base": PEOPLE, "moved": largest, "most": 1, "containers": SOURCES, "ways": WAYS, "extremes": EXTREMES, "heavy": 3,
}  # fmt: skip
CALLS: list[Call] = [
    Call(name="Database.sql, three rows at once", covers=("connect", "Database.sql"), run=at_once(rows=3), **SHARED),
    Call(name="Database.sql, rows in groups", covers=("connect", "Database.sql"), **SHARED,
         run=at_once(rows=2, groups=2, by="c")),
    Call(name="Database.sql, answers from answers", covers=("Database.sql", "Database.explain"), run=from_answers,
         **(SHARED | {"most": 2.01})),
    Call(name="publish", covers=("publish", "publication.explain_publication"), run=published, **SHARED),
    Call(name="commands on a CSV file", covers=("cli.query",), run=of_file(printed), moved=largest, most=1.01,
         together=24, odd=ODD_LINES, **ON_FILE),
]  # fmt: skip

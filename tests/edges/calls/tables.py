"""Tables and SQL: sources in memory and files, all methods of a table, questions, synthetic rows, sanitized copies."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet

import discreet as dp
from discreet import learn
from discreet.cli import sanitize
from discreet.synthetic import Declared, Synthesis

from ..checking import Call
from ..containers import Container, arrow_of, objects, of_plain, polars_of, series_of, table_of_objects
from ..distances import largest, reports
from .studies import book, objects_of

PEOPLE = [["p" + str(k), [0.5, 0.25, 0.75, 0.5, 1, 0.5][k % 6], "ab"[k % 2], k % 7] for k in range(240)]
"""Who, a number of [0, 1], a choice, and a whole number."""
NAMES = ("who", "x", "c", "n")
TYPES = {"who": "text", "x": "number", "c": "text", "n": "integer"}
ADDED, REPLACED, PERSON = dp.row(), dp.row(neighbors="replace"), dp.person("who")


def by_column(make: Callable[[dict[str, Any]], Any], **kinds: Callable[[list[Any]], Any]) -> Container:
    """A source with a column for each name."""

    def made(rows: list[Any]) -> Any:
        table = table_of_objects(rows, 4)
        return make({name: kinds.get(name, kinds["any"])(list(table[:, k])) for k, name in enumerate(NAMES)})

    return of_plain(made)


def arrow_table(columns: dict[str, Any]) -> Any:
    """Arrow, with a type for each column."""
    return pa.table(columns)


ARROW: dict[str, Any] = {
    "who": lambda c: arrow_of(c, pa.string()),
    "x": lambda c: arrow_of(c, pa.float64()),
    "c": lambda c: arrow_of(c, pa.string()),
    "n": lambda c: arrow_of(c, pa.int64()),
    "any": list,
}
SOURCES: dict[str, Container] = {
    "dict of lists": by_column(dict, any=list),
    "dict of tuples": by_column(dict, any=tuple),
    "dict of objects": by_column(dict, any=objects),
    "dict of arrays": by_column(dict, any=objects, x=lambda c: np.array(c, dtype=np.float64)),
    "pandas objects": by_column(pd.DataFrame, any=objects_of),
    "pandas typed": by_column(pd.DataFrame, any=lambda c: series_of(c, "string"),
                              x=lambda c: series_of(c, "Float64"), n=lambda c: series_of(c, "Int64")),
    "pandas category": by_column(pd.DataFrame, any=objects_of,
                                 c=lambda c: pd.Series(pd.Categorical(objects(c), categories=["a", "b", "zzz"]))),
    "polars": by_column(pl.DataFrame, any=lambda c: polars_of(c, pl.String),
                        x=lambda c: polars_of(c, pl.Float64), n=lambda c: polars_of(c, pl.Int64)),
    "polars objects": by_column(pl.DataFrame, any=lambda c: polars_of(c, pl.Object)),
    "arrow": by_column(arrow_table, **ARROW),
    "arrow of dicts and lists": by_column(dict, **ARROW),
}  # fmt: skip
WAYS: dict[str, Any] = {
    "number": lambda odd: ["q", odd, "a", 3],
    "choice": lambda odd: ["q", 0.5, odd, 3],
    "whole": lambda odd: ["q", 0.5, "a", odd],
    "who": lambda odd: [odd, 0.5, "a", 3],
    "record": lambda odd: odd,
}
EXTREMES = (["q", 1.0, "a", 6], ["q", 0.0, "b", 0])


def opened(source: Any, unit: Any = ADDED, **given: Any) -> Any:
    """A table under a ledger of its own, which remembers nothing."""
    return dp.table(source, ledger=book(unit), types=TYPES, **given)


def asked(*methods: Callable[[Any], Any], unit: Any = ADDED, **given: Any) -> Callable[[Any], Any]:
    """What the methods of one table say, and which types it has."""

    def run(source: Any) -> Any:
        table = opened(source, unit, **given)
        return [repr(table.columns), *(method(table) for method in methods)]

    return run


SIZE = len(PEOPLE)
PAIR: dict[str, Any] = {"between": (0, 1), "epsilon": 1}
NUMBERS: tuple[Callable[[Any], Any], ...] = (
    lambda t: t.count(epsilon=1).value,
    lambda t: t.sum("x", **PAIR).value,
    lambda t: t.mean("x", **PAIR).value * SIZE / 2,
    lambda t: t.sum("n", between=(0, 1), epsilon=1).value,
    lambda t: t.histogram("c", choices=["a", "b"], epsilon=1).value,
    lambda t: t.count(epsilon=1, where="c = 'a' AND x > 0.3 AND n < 5").value,
    lambda t: t.sum("x", **PAIR, by={"c": ["a", "b"]}).value,
    lambda t: t.histogram("n", edges=[0, 2, 6], epsilon=1).value,
    lambda t: t.cube(["c", "n"], choices={"c": ["a", "b"], "n": [0, 1, 2, 3, 4, 5, 6]}, epsilon=1).value,
)
SHAPES: tuple[Callable[[Any], Any], ...] = (
    lambda t: repr(t.median("x", **PAIR).value),
    lambda t: t.cdf("n", between=(0, 6), step=1, epsilon=1).value * SIZE / 2,
    lambda t: t.histogram("c", epsilon=0.3, delta=1e-4).value,
    lambda t: repr(t.most_common("c", choices=["a", "b", "z"], epsilon=1).value not in ("z",)),
)
MORE: tuple[Callable[[Any], Any], ...] = (
    lambda t: t.variance("x", **PAIR).value * SIZE / 4,
    lambda t: repr(t.quantiles("x", [0.35, 0.5], **PAIR).value.tolist()),
    lambda t: repr(t.quantiles("x", [0.35, 0.4, 0.45, 0.5], **PAIR).value.tolist()),
    lambda t: t.density("x", between=(0, 1), bandwidth=0.3, epsilon=5, delta=1e-5).value,
    lambda t: t.fit(learn.Ridge(epsilon=5, delta=1e-5), features={"n": (0, 6)}, target="x").release_.value,
    lambda t: t.explain.sum("x", **PAIR).__class__.__name__,
)
OPEN: tuple[Callable[[Any], Any], ...] = (
    lambda t: t.count(epsilon=1).value,
    lambda t: t.sum("x", epsilon=1).value,
    lambda t: t.sum("n", epsilon=1).value / 8,
    lambda t: t.mean("x", epsilon=1).value * SIZE / 2,
    lambda t: t.variance("x", epsilon=9).value * SIZE / 4,
    lambda t: t.histogram("c", choices=["a", "b"], epsilon=1).value,
    lambda t: t.cube(["c"], choices={"c": ["a", "b"]}, epsilon=1).value,
    lambda t: t.count(epsilon=1, where="c = 'a' AND x > 0.3 AND n < 5").value,
    lambda t: t.histogram("c", epsilon=1, delta=1e-4).value,
    lambda t: repr(set(t.most_common("c", k=9, epsilon=1, delta=1e-4).value) == {"a", "b"}),
)
"""Nothing is declared: a person's part is scaled down to limits that are found, here 1 row, 1 of x and 8 of n."""
OPEN_ROWS: tuple[Callable[[Any], Any], ...] = (
    lambda t: repr(t.median("x", epsilon=1).value),
    lambda t: repr(t.quantiles("x", [0.35, 0.4, 0.45, 0.5], epsilon=1).value.tolist()),
    lambda t: t.cdf("n", between=(0, 6), step=1, epsilon=1).value * SIZE / 2,
    lambda t: repr(t.most_common("c", choices=["a", "b", "z"], epsilon=1).value not in ("z",)),
    lambda t: t.density("x", between=(0, 1), bandwidth=0.3, epsilon=5, delta=1e-5).value,
    lambda t: t.fit(learn.Ridge(epsilon=5, delta=1e-5), features={"n": (0, 6)}, target="x").release_.value,
    lambda t: len(t.synthesize({"n": (0, 6), "c": ["a", "b"]}, epsilon=50, delta=1e-5, rounds=1).table) / 3,
)
"""The same where rows are chosen: here one of each person."""
ALL = tuple(f"PrivateTable.{name}" for name in (
    "count", "sum", "mean", "variance", "median", "quantiles", "cdf", "density", "fit", "histogram", "most_common",
    "cube",
))  # fmt: skip
SHARED: dict[str, Any] = {
    "base": PEOPLE, "moved": largest, "most": 1.01, "containers": SOURCES, "ways": WAYS, "extremes": EXTREMES,
    "together": 60,
}  # fmt: skip


def untyped(source: Any) -> Any:
    """A table whose columns nobody declared: they are what their container says, whoever is in it."""
    table = dp.table(source, ledger=book(ADDED))
    return [repr(table.columns), table.count(epsilon=1).value]


def of_people(table: Any) -> Any:
    """Counts of people, and sums of no more than two rows of each."""
    return [table.count("people", epsilon=1).value, table.sum("x", **PAIR).value / 2]


def synthesized(source: Any) -> Any:
    """The noisy counts that synthetic rows are made from."""
    made = opened(source).synthesize({"n": (0, 6), "c": ["a", "b"]}, epsilon=50, delta=1e-5, rounds=1)
    return [str(made.table.schema), len(made.table) / 3]


DECLARED = Declared({"x": (0, 1), "c": ["a", "b"]}, bins=4)
SYNTHESIS = Synthesis.for_guarantee(dp.Approx(epsilon=50, delta=1e-4), domain=DECLARED.domain)


@contextmanager
def fresh_folder() -> Iterator[str]:
    """An empty folder that has the same name each time, as messages may name it."""
    with tempfile.TemporaryDirectory(prefix="edges") as outer:
        place = Path(outer).parent / f"edges-{os.getpid()}"
        Path(outer).rename(place)
        try:
            yield str(place)
        finally:
            place.rename(outer)


def policy(source: Any, folder: str, **unit: Any) -> dict[str, Any]:
    """A policy over one table."""
    return {
        "ledger": {"path": str(Path(folder) / "a.ledger"), "epsilon": 1000, "delta": 0.1},
        "unit": unit,
        "tables": {"people": {"source": source, "columns": {
            "who": {"type": "text"}, "x": {"type": "number", "between": [0, 1]},
            "c": {"type": "text", "choices": ["a", "b"]}, "n": {"type": "integer", "between": [0, 6]},
        }}},
    }  # fmt: skip


def in_sql(source: Any) -> Any:
    """Questions of a policy's table."""
    with fresh_folder() as folder:
        database = dp.connect(policy(source, folder, row=True))
        texts = ("SELECT COUNT(*) AS k, SUM(x) AS s FROM people", "SELECT c, COUNT(*) AS k FROM people GROUP BY c",
                 "SELECT n, COUNT(*) AS k FROM people WHERE x >= 0.5 GROUP BY n",
                 "SELECT n, MODE(c) IN ('a', 'b') AS m FROM people GROUP BY n")  # fmt: skip
        answers = [database.sql(text, epsilon=1) for text in texts]
        return [[str(answer.table.schema), *answer.table.to_pylist()] for answer in answers]


TABLES: list[Call] = [
    Call(name="table: numbers", covers=("table", *ALL), run=asked(*NUMBERS), heavy=2, **SHARED),
    Call(name="table: shapes", covers=("table", *ALL), run=asked(*SHAPES), heavy=3, **SHARED),
    Call(name="table: more", covers=("table", *ALL), run=asked(*MORE), heavy=3, **SHARED),
    Call(name="table without types", covers=("table",), run=untyped, heavy=2, **SHARED),
    Call(name="table of people", covers=("table", "PrivateTable.count"),
         run=asked(of_people, unit=PERSON, rows_per_person=2), heavy=3, **SHARED),
    Call(name="table of people, nothing declared", alike=True, covers=("table", *ALL), heavy=3, **SHARED,
         run=asked(*OPEN, unit=PERSON)),
    Call(name="table of people, replaced", alike=True, covers=("table", *ALL), heavy=3, **SHARED,
         run=asked(*OPEN, unit=dp.person("who", neighbors="replace"))),
    Call(name="table of people, rows found", alike=True, covers=("table", *ALL, "PrivateTable.synthesize"), heavy=3,
         run=asked(*OPEN_ROWS, unit=PERSON), **SHARED),
    Call(name="table.synthesize", covers=("PrivateTable.synthesize",), run=synthesized, heavy=3, **SHARED),
    Call(name="Database.sql", covers=("connect", "Database.sql"), run=in_sql, heavy=3, **SHARED),
    Call(name="Declared.codes", covers=("synthetic.Declared.codes",), base=PEOPLE, moved=largest, most=1,
         run=lambda source: DECLARED.domain.counts(DECLARED.codes(source), ("x", "c")), ways=WAYS, extremes=EXTREMES,
         containers={n: SOURCES[n] for n in ("dict of lists", "dict of objects", "dict of arrays", "pandas objects")},
         together=20),
    Call(name="release(Synthesis)", covers=("release(Synthesis)",), moved=largest, most=None, heavy=1,
         base=[[k % 4, k % 2] for k in range(240)], together=40,
         run=lambda rows: dp.release(rows, SYNTHESIS).value["total"], extremes=([0, 0], [3, 1]),
         containers={"rows": of_plain(list), "objects": of_plain(lambda rows: table_of_objects(rows, 2))},
         ways={"record": lambda odd: odd, "number": lambda odd: [odd, 0], "choice": lambda odd: [1, odd]}),
]  # fmt: skip


# --- files ----------------------------------------------------------------------------------------------------------


LINES = [",".join(map(str, row)) for row in PEOPLE]
ODD_LINES: dict[str, str | bytes] = {
    "empty": "", "one field": "q", "two fields": "q,0.5", "more fields": "q,0.5,a,3,4,5",
    "text": "q,zzz,a,3", "infinite": "q,inf,a,3", "nan": "q,nan,a,3", "large": f"q,{10**400},a,{10**30}",
    "hex": "q,0x10,a,0x3", "spaces": "q,  0.5 ,a , 3", "comma": "q,0,5,a,3", "date": "q,2020-02-30,a,2020-01-01",
    "NUL": "q,0.5,a\0b,3", "not UTF-8": b"q,0.5,\xff\xfe,3", "long": f"q,0.5,{'y' * 10**5},3",
    "null": "q,NULL,NULL,NULL",
    "bool": "q,true,false,true", "comment": "# q,0.5,a,3", "header": "who,x,c,n",
    "quoted return": 'q,0.5,"a\rb",3', "quoted line": 'q,0.5,"a\nb",3', "quoted comma": 'q,0.5,"a,b",3',
    "escaped": 'q,0.5,"a""b",3', "decimal": "q,1e-400,a,3.7",
}  # fmt: skip


def csv_file(lines: list[Any]) -> Any:
    """The bytes of a CSV file."""
    return b"\n".join(one if isinstance(one, bytes) else one.encode() for one in ["who,x,c,n", *lines]) + b"\n"


def of_file(run: Callable[[Path], Any], name: str = "people.csv") -> Callable[[Any], Any]:
    """Ask a file that is written for the occasion."""

    def asked(content: bytes) -> Any:
        with fresh_folder() as folder:
            path = Path(folder) / name
            path.write_bytes(content)
            return run(path)

    return asked


def sanitized(path: Path) -> Any:
    """The sanitized copy of a file, row by row; no order is shown without noise."""
    folder, out = str(path.parent), path.with_name("copy.parquet")
    described = policy(str(path), folder, row=True, neighbors="replace")
    toml = path.with_name("policy.toml")
    columns = "".join(
        f"[tables.people.columns.{n}]\n{said}\n"
        for n, said in (("x", "between = [0.0, 1.0]"), ("c", 'choices = ["a", "b"]'), ("n", "between = [0, 6]"))
    )
    toml.write_text(
        f'[ledger]\npath = "{described["ledger"]["path"]}"\nepsilon = 100.0\n[unit]\nrow = true\n'
        f'neighbors = "replace"\n[tables.people]\nsource = "{path}"\n{columns}'
    )
    with redirect_stdout(io.StringIO()) as said:
        sanitize.sanitize(str(toml), "people", epsilon=3, out=out)
    assert "randomized response" in said.getvalue()
    copy = pyarrow.parquet.read_table(out)
    return [str(copy.schema), *copy.to_pylist()]


def file_table(path: Path) -> Any:
    """The first questions of a table, of a file."""
    return asked(*NUMBERS)(str(path))


ON_FILE: dict[str, Any] = {
    "base": LINES, "containers": {"csv": of_plain(csv_file)}, "ways": {"record": lambda odd: odd},
}  # fmt: skip
FILES: list[Call] = [
    Call(name="table of a CSV file", covers=("table",), run=of_file(file_table), moved=largest, most=1.01, together=12,
         odd=ODD_LINES, **ON_FILE),
    Call(name="sanitize of a CSV file", covers=("cli.sanitize",), run=of_file(sanitized), moved=reports, most=1,
         replaced=True, together=12, **ON_FILE,
         odd={n: one for n, one in ODD_LINES.items() if n not in ("empty", "not UTF-8")}),
]  # fmt: skip


# a file of blanks without a header, with decimal commas and dates as they are written in much of Europe
BLANK_LINES = [f"{who}  {str(x).replace('.', ',')} {c}\t{n} 0{1 + n}.03.2024" for who, x, c, n in PEOPLE]
ODD_BLANKS: dict[str, str | bytes] = {
    "empty": "", "blanks": " \t ", "one field": "q", "more fields": "q 0,5 a 3 01.03.2024 4 5", "text": "q zz a zz zz",
    "infinite": "q inf a 3 infinity", "nan": "q nan a 3 epoch", "large": f"q {10**400} a {10**30} 01.01.99999",
    "no day": "q 0,5 a 3 31.02.2024", "another order": "q 0,5 a 3 2024-03-01", "two digits": "q 0,5 a 3 01.03.24",
    "year 0": "q 0,5 a 3 01.01.0000", "two commas": "q 1,5,5 a 3 1.3.2024", "NUL": "q 0,5 a\0b 3 01.03.2024",
    "not UTF-8": b"q 0,5 \xff\xfe 3 01.03.2024", "long": f"q 0,5 {'y' * 10**5} 3 01.03.2024",
    "open quote": 'q 0,5 "a 3 01.03.2024', "quote": '"q 0,5 a 3 01.03.2024"', "separator": "q\x010,5 a 3",
    "return": "q 0,5 a 3 01.03.2024\r", "percent": "q % a 3 %d.%m.%Y",
    "wide blank": "q\u00a00,5 a 3 01.03.2024", "null": "q NULL NULL NULL NULL",
}  # fmt: skip


def blank_file(lines: list[Any]) -> Any:
    """The bytes of a compressed file without a line of names."""
    return gzip.compress(b"".join((one if isinstance(one, bytes) else one.encode()) + b"\n" for one in lines), 1)


def of_blanks(path: Path) -> Any:
    """Questions of a policy that says how the file is to be read."""
    described = policy(str(path), str(path.parent), row=True)
    table = described["tables"]["people"]
    table["format"] = {"header": False, "separator": " ", "names": ["who", "x", "c", "n", "d"], "decimal": ","}
    table["columns"]["d"] = {"format": "dd.mm.yyyy", "between": ["2024-03-01", "2024-03-08"]}
    database = dp.connect(described)
    texts = ("SELECT COUNT(*) AS k, SUM(x) AS s, COUNT(d) AS d FROM people",
             "SELECT d, COUNT(*) AS k FROM people GROUP BY d",
             "SELECT c, COUNT(*) AS k FROM people WHERE d >= DATE '2024-03-03' GROUP BY c")  # fmt: skip
    answers = [database.sql(text, epsilon=1) for text in texts]
    return [[str(answer.table.schema), *answer.table.to_pylist()] for answer in answers]


FILES += [
    Call(name="table of a compressed CSV file", alike=True, covers=("table",), run=of_file(file_table, "people.csv.gz"),
         moved=largest, most=1.01, together=12, odd=ODD_LINES, base=LINES, ways={"record": lambda odd: odd},
         containers={"csv.gz": of_plain(lambda lines: gzip.compress(csv_file(lines), 1))}),
    Call(name="Database.sql of a file of blanks", covers=("connect", "Database.sql"), moved=largest, most=1.01,
         run=of_file(of_blanks, "people.txt.gz"), together=12, odd=ODD_BLANKS, base=BLANK_LINES,
         ways={"record": lambda odd: odd}, containers={"txt.gz": of_plain(blank_file)}),
]  # fmt: skip

CALLS: list[Call] = [*TABLES, *FILES]

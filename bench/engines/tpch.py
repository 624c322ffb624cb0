"""The 22 queries of TPC-H with customers protected: which are answered, how wrong, and how much slower than without.

`python -m bench.engines.tpch` asks each of `tpch.sql` as it is written, with the specification's validation parameters;
where that is refused, in the words of its `rewritten` form, if it has one. The truth is what DuckDB says to the same
text. Data of scale factor 1 (`--scale 0.1`: a tenth, `--scale 10`: ten times as many) are made once by tpchgen-cli into
$BENCH_DATA (default: data beside the peers); the ranges of columns are the specification's. `--engine spark` asks a
local Spark instead, and compares the time with Spark's. `--only 1,3,6` asks only these; `--repeat 1` asks once;
`--policy` leaves out the bounds of single questions, which the file has where a question asks for little of each
customer.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

import discreet as dp
from bench import peers
from bench.engines import engines
from bench.report import line, machine, notes, section, table

DATA = Path(os.environ.get("BENCH_DATA") or peers.HOME / "data")
EPSILON, DELTA = 1.0, 1e-8
ORDERS, ITEMS = 15, 60
"""What the specification makes one expect of a customer with orders. A question that asks for a share is bounded by
three times what is expected, and three more."""
TABLES = ("customer", "orders", "lineitem", "nation", "region", "part", "supplier", "partsupp")

ABOUT = f"""The 22 queries with customers protected: scale factor 1 is 150,000 customers, 1.5 million orders and 6
million line items that belong to customers through their orders; ε = {EPSILON:g} and δ = {DELTA:g} for each query.
The ranges of columns are those of the specification. 40 orders, 160 line items and 5 groups of a customer are guesses
for a policy that suits every question. A question that asks for little of each customer (one month of 84, one part in
a thousand)
lowers the bound on rows by `bounds=`, to three times the expected number by the specification, plus three. No bound
was chosen by looking at answers. Errors are medians over groups, columns and answers, against DuckDB on the same text.
Derived from TPC-H, and not comparable with published TPC-H results."""
NOTES = (
    """Queries 2, 11 and 16 use public tables only: they are exact, and cost nothing. Queries 3, 10 and 18 group by the
    order or by the customer: a group is one customer, and no answer may show a single customer. Query 15 groups by
    suppliers, which are not declared and have few customers each in a quarter. Query 20 lists suppliers by what a
    handful of customers bought.""",
    """Where a number is asked first (22), it has its own part of ε. In the rewritten 17, a constant replaces the
    average of each part.""",
    """Inaccurate answers are those about small parts of the data: one supplier of 10,000 (21; there the errors are
    those of the groups that noise ranked first), the share of one nation in one kind of steel (8).""",
)


# --- data and policy ----------------------------------------------------------------------------------------


def made(scale: str) -> Path:
    """The folder of the tables, made when it is missing."""
    folder = DATA / f"tpch-{scale}"
    if not all((folder / f"{name}.parquet").exists() for name in TABLES):
        peers.install("tpch")
        print(f"making TPC-H data of scale factor {scale} in {folder}", file=sys.stderr, flush=True)
        tool = peers.interpreter("tpch").parent / "tpchgen-cli"
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([tool, "parquet", "-s", scale, "-o", folder, "--overwrite", "-q"], check=True)
    return folder


def policy(folder: Path, ledger: str, kind: str, *, bare: bool = False) -> dict[str, Any]:
    """What clause 4.2.3 of the specification says of the columns. A customer has about 10 orders, and an order 1 to 7
    items; 40 orders and 160 items are guesses that few customers pass. `bare`: persons and keys only, so no bound on
    rows or groups, and no range of numbers; dates and choices are keys.
    """
    day = {"between": ["1992-01-01", "1998-12-31"]}
    priorities = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
    known: dict[str, dict[str, Any]] = {
        "customer": {
            "person": "c_custkey",
            "rows_per_person": 1,
            "columns": {
                "c_acctbal": {"between": [-1000, 10_000]},
                "c_mktsegment": {"choices": ["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"]},
            },
        },
        "orders": {
            "person": "o_custkey",
            "rows_per_person": 40,
            "groups_per_person": 5,
            "columns": {
                "o_orderdate": day,
                "o_orderstatus": {"choices": ["F", "O", "P"]},
                "o_orderpriority": {"choices": priorities},
                "o_totalprice": {"between": [0, 800_000]},
            },
        },
        "lineitem": {
            "through": "l_orderkey -> orders.o_orderkey",
            "rows_per_person": 160,
            "groups_per_person": 5,
            "columns": {
                "l_quantity": {"between": [1, 50]},
                "l_extendedprice": {"between": [900, 105_000]},
                "l_discount": {"between": [0, 0.1]},
                "l_tax": {"between": [0, 0.08]},
                "l_returnflag": {"choices": ["A", "N", "R"]},
                "l_linestatus": {"choices": ["F", "O"]},
                "l_shipmode": {"choices": ["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"]},
                **dict.fromkeys(("l_shipdate", "l_commitdate", "l_receiptdate"), day),
            },
        },
        "partsupp": {
            "public": True,
            "columns": {"ps_supplycost": {"between": [1, 1000]}, "ps_availqty": {"between": [1, 9999]}},
        },
    }
    if bare:
        known = {name: persons_and_keys(declared) for name, declared in known.items()}
    return {
        "engine": {"kind": kind},
        "ledger": {"path": ledger, "epsilon": 10, "delta": 1e-6, "delta_per_question": 0 if bare else DELTA},
        "unit": {"person": "c_custkey"},
        "tables": {n: {"source": str(folder / f"{n}.parquet"), **known.get(n, {"public": True})} for n in TABLES},
    }


def persons_and_keys(declared: dict[str, Any]) -> dict[str, Any]:
    """What is declared of a table, without bounds and without ranges of numbers."""
    columns = declared.get("columns", {})
    keys = {
        name: facts for name, facts in columns.items() if "choices" in facts or isinstance(facts["between"][0], str)
    }
    kept = {name: fact for name, fact in declared.items() if name in ("person", "through", "public")}
    return kept | ({"columns": keys} if keys else {})


@dataclass
class Engine:
    """What is asked: its kind in a policy, how it answers without privacy, how often each query is asked (times are the
    best of so many answers, errors the median over them), and what `connect` needs beside a policy."""

    kind: str
    plain: Callable[[str], list[Any]]
    repeat: int
    beside: dict[str, Any] = field(default_factory=dict)


def spark(folder: Path, repeat: int, scratch: str) -> Engine:
    """One session for everything."""
    os.environ |= engines.settings(scratch, sys.executable)
    session = engines.started()
    for name in TABLES:
        session.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)
    return Engine("spark", lambda text: session.sql(text).collect(), repeat, {"spark": session})


# --- queries ------------------------------------------------------------------------------------------------


@dataclass
class Query:
    """A query as it is written, its rewritten form and what was changed for it, the totals that it is computed from (if
    it shows a quotient, or more besides), and why it is rightly refused."""

    number: int
    text: str = ""
    rewritten: str = ""
    changed: str = ""
    totals: str = ""
    why: str = ""
    bounds: dict[str, int] = field(default_factory=dict)


@dataclass
class Result:
    """What became of a query: `refusal` is what was said to the text as it is written."""

    outcome: str
    refusal: str = ""
    clause: str = ""
    errors: list[float] = field(default_factory=list)
    shown: int = 0
    true: int = 0
    present: int = 0
    declared: bool = True
    private: float = 0.0
    plain: float = 0.0


def queries() -> list[Query]:
    """The queries of the file beside this one: sections that begin with `-- number`, and what they are."""
    found: dict[int, Query] = {}
    for part in re.split(r"^-- (?=\d)", Path(__file__).with_suffix(".sql").read_text(), flags=re.MULTILINE)[1:]:
        head, _, text = part.partition("\n")
        number, kind, said = re.fullmatch(r"(\d+)(?: (\w+): (.*))?", head).groups()  # type: ignore[union-attr]
        query = found.setdefault(int(number), Query(int(number)))
        match kind:
            case None:
                query.text = text.strip()
            case "rewritten":
                query.rewritten, query.changed = text.strip(), said
            case "totals":
                query.totals = text.strip()
            case "why":
                query.why = said
            case "orders" | "items":
                expected = (ORDERS if kind == "orders" else ITEMS) * math.prod(map(Fraction, said.split()))
                query.bounds = {"rows_per_person": math.ceil(3 * expected) + 3}
    return list(found.values())


# --- one query ----------------------------------------------------------------------------------------------


def asked(query: Query, folder: Path, truth: duckdb.DuckDBPyConnection, engine: Engine) -> Result:
    """Ask it as it is written, or else rewritten."""
    refusal = clause = ""
    for outcome, text in (("as written", query.text), ("rewritten", query.rewritten)):
        if not text:
            continue
        try:
            return measured(text, query.bounds, folder, truth, engine, Result(outcome, refusal, clause))
        except dp.errors.EngineFailed:
            return Result("failed", refusal, clause)
        except (dp.NotAllowed, dp.QueryError) as error:
            said, *pointed = str(error).split("\n")
            if outcome == "rewritten":
                print(f"the rewritten {query.number} is refused, too: {error}", file=sys.stderr, flush=True)
            else:
                refusal, clause = said, underlined(pointed)
    return Result("refused", refusal, clause)


def underlined(lines: list[str]) -> str:
    """The part of a question that a refusal points at."""
    if len(lines) != 2:
        return ""
    start = lines[1].index("^")
    return lines[0][start : start + lines[1].count("^")]


def measured(
    text: str, bounds: dict[str, int], folder: Path, truth: duckdb.DuckDBPyConnection, engine: Engine, result: Result
) -> Result:
    """Answer in turn with and without noise, each time under a new ledger: an old one would repeat its answer."""
    private, fast, answers = [], [], []
    for _ in range(engine.repeat):
        with tempfile.TemporaryDirectory(prefix="bench-tpch-") as home:
            database = dp.connect(policy(folder, f"{home}/tpch.ledger", engine.kind), **engine.beside)
            start = time.perf_counter()
            answers.append(database.sql(text, epsilon=EPSILON, bounds=bounds))
            private.append(time.perf_counter() - start)
            database.close()
        start = time.perf_counter()
        engine.plain(text)
        fast.append(time.perf_counter() - start)
    result.private, result.plain = min(private), min(fast)
    first = answers[0]
    names, parts = first.names, getattr(first, "parts", (first,))
    keys = [place for place, name in enumerate(names) if name not in first.noisy]
    result.declared = all(key.domain is not None for part in parts for key in part.question.keys)
    wanted = by_key(truth.execute(text).fetchall(), keys)
    # a LIMIT takes other groups from noisy values than from true ones: errors are against all of them
    whole = by_key(truth.execute(re.sub(r"\nlimit \d+$", "", text)).fetchall(), keys)
    for answer in answers:
        noisy = by_key([tuple(row[name] for name in names) for row in answer.table.to_pylist()], keys)
        result.errors += [
            1.0 if value is None else abs(float(value) - float(true)) / abs(float(true))
            for key in noisy.keys() & whole.keys()
            for value, true in zip(noisy[key], whole[key], strict=True)
            if true
        ]
        result.shown, result.true, result.present = len(noisy), len(wanted), len(noisy.keys() & wanted.keys())
    return result


def by_key(rows: list[tuple[Any, ...]], keys: list[int]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return {
        tuple(row[place] for place in keys): tuple(v for place, v in enumerate(row) if place not in keys)
        for row in rows
    }


# --- tables -------------------------------------------------------------------------------------------------


def percent(share: float) -> str:
    return f"{100 * share:,.0f}%" if share >= 0.1 else f"{100 * share:.2g}%"


TITLES = ("query", "outcome", "changed, or why refused", "rows of one", "median error", "groups shown / true")
TITLES += ("true ones shown", "private, s", "engine alone, s", "÷")
BRIEF = ("query", "median error", "groups shown / true", "private, s", "engine alone, s", "÷")


def row(query: Query, result: Result) -> dict[str, str]:
    """What is told of a query, by title; what is missing there was not measured."""
    told = {"query": str(query.number), "outcome": result.outcome, "changed, or why refused": ""}
    match result.outcome:
        case "refused":
            return told | {"changed, or why refused": query.why or result.refusal}
        case "failed":
            return told | {"changed, or why refused": "the engine ended without an answer"}
        case "rewritten":
            told |= {"changed, or why refused": query.changed}
    return told | {
        "outcome": result.outcome if result.shown else f"{result.outcome}, empty",
        "rows of one": str(query.bounds.get("rows_per_person", "policy's")),
        "median error": percent(statistics.median(result.errors)) if result.errors else "–",
        "groups shown / true": f"{result.shown:,} / {result.true:,}",
        "true ones shown": "–" if result.declared else f"{100 * result.present / result.true:.0f}%",
        "private, s": f"{result.private:.2f}",
        "engine alone, s": f"{result.plain:.3f}",
        "÷": f"{result.private / result.plain:.1f}",
    }


def outcomes(results: list[tuple[Query, Result]]) -> None:
    """What became of all of them."""
    print("\nWhat happened to the queries as they are written:\n")
    table("query", "clause", "refusal")
    for query, result in results:
        if result.refusal:
            line(query.number, f"`{' '.join(result.clause.split())}`" if result.clause else "", result.refusal)
    counts = [sum(r.outcome == name for _, r in results) for name in ("as written", "rewritten", "refused", "failed")]
    empty = sum(r.outcome in ("as written", "rewritten") and not r.shown for _, r in results)
    print(
        f"\n{counts[0]} of {len(results)} as written, {counts[1]} rewritten, {counts[2]} refused, {counts[3]} failed; "
        f"{empty} show no group."
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", default="1", choices=["0.1", "1", "10"])
    parser.add_argument("--engine", default="duckdb", choices=["duckdb", "spark"])
    parser.add_argument("--only", default="", help="numbers of queries, such as 1,3,6")
    parser.add_argument("--brief", action="store_true", help="only errors and times of what is answered")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--policy", action="store_true", help="with the bounds of the policy for every question")
    words = parser.parse_args()
    chosen = {int(number) for number in words.only.split(",") if number}
    folder = made(words.scale)
    truth = duckdb.connect()
    for name in TABLES:
        truth.execute(f"CREATE VIEW {name} AS FROM read_parquet('{folder / name}.parquet')")
    scratch = tempfile.TemporaryDirectory(prefix="bench-tpch-", ignore_cleanup_errors=True)  # gone with the process
    engine = Engine("duckdb", lambda text: truth.execute(text).fetchall(), words.repeat)
    if words.engine == "spark":
        engine = spark(folder, words.repeat, scratch.name)
    printed = {"duckdb": "DuckDB", "spark": "Spark"}[engine.kind]
    titles = BRIEF if words.brief else TITLES
    if words.brief:
        bounds = ", the bounds of the policy for every question" if words.policy else ""
        told = f"{printed}, scale factor {words.scale}{bounds}"
        print(f"### TPC-H on {told}\n\n`python -m bench.engines.tpch {' '.join(sys.argv[1:])}` · ", end="")
    else:
        section("TPC-H", "engines.tpch", ABOUT)
    print(f"{machine()}; times are the best of {engine.repeat}.\n")
    table(*titles)
    results: list[tuple[Query, Result]] = []
    for query in queries():
        if not chosen or query.number in chosen:
            query.bounds = {} if words.policy else query.bounds
            results.append((query, asked(query, folder, truth, engine)))
            if not words.brief or results[-1][1].outcome != "refused":
                line(*map(row(*results[-1]).get, titles))
    if not words.brief:
        outcomes(results)
    if ratios := [result.private / result.plain for _, result in results if result.plain]:
        slower = statistics.median(ratios)
        print(f"\nA private answer takes {slower:.1f} times as long as the engine alone, in the median.")
    if not words.brief:
        notes(*NOTES)


if __name__ == "__main__":
    main()

"""Which queries of TPC-H, TPC-DS and ClickBench have a plan as they are written, and why others have none.

`python -m bench.engines.coverage` plans each query with customers protected, and answers none. The texts of TPC-DS and
small tables come from DuckDB's own extension, those of TPC-H from `tpch.sql`. The texts of ClickBench are not ours to
copy: put its `queries.sql` for DuckDB, and the `create.sql` of its table, into $BENCH_DATA/clickbench. Without them
that part is left out. `--each` lists every query that is refused.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb

import discreet as dp
from bench import peers
from bench.engines import tpch
from bench.report import line, notes, section, table

TABLES = Path(tpch.DATA) / "tpcds"
MAKE = """
import json, pathlib, sys
import duckdb, duckdb_extension_tpcds
extension = next(pathlib.Path(duckdb_extension_tpcds.__file__).parent.rglob("*.duckdb_extension"))
folder, connection = pathlib.Path(sys.argv[1]), duckdb.connect()
connection.execute(f"LOAD '{extension}'")
connection.execute("CALL dsdgen(sf=0.01)")
for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
    connection.execute(f"COPY {name} TO '{folder / name}.parquet'")
texts = dict(connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall())
(folder / "queries.json").write_text(json.dumps(texts))
"""
OWNERS = {
    "customer": "c_customer_sk",
    "store_sales": "ss_customer_sk",
    "store_returns": "sr_customer_sk",
    "catalog_sales": "cs_bill_customer_sk",
    "catalog_returns": "cr_refunded_customer_sk",
    "web_sales": "ws_bill_customer_sk",
    "web_returns": "wr_refunded_customer_sk",
}
"""Who a row belongs to. All other tables of TPC-DS are public."""
SINGLE = ("sql-not-aggregated", "sql-shows-people", "sql-groups-people")
"""Refusals of queries that show single rows or people: no noise can make these private."""

ABOUT = """Each query is planned as it is written, for ε = 1 and δ = 1e-8; none is answered here. TPC-H: customers are
protected, with persons and keys declared only. TPC-DS: customers are protected, and sales and returns belong to who
paid; items, stores, dates, addresses and demographics are public. *Rightly refused* queries list single rows or
people. Derived from TPC-H and TPC-DS, and not comparable with published results."""
ABOUT_CLICKS = "In ClickBench, users are protected, and nothing else is declared."


def made() -> dict[str, str]:
    """The texts of TPC-DS. Its tables are made when they are missing."""
    if not (TABLES / "queries.json").exists():
        peers.install("tpcds")
        TABLES.mkdir(parents=True, exist_ok=True)
        subprocess.run([peers.interpreter("tpcds"), "-c", MAKE, TABLES], check=True)
    found: dict[str, str] = json.loads((TABLES / "queries.json").read_text())
    return found


def policy_of(tables: dict[str, dict[str, Any]], person: str) -> dict[str, Any]:
    """Tables under a ledger in memory."""
    ledger = {"path": ":memory:", "epsilon": 100, "delta": 1e-4, "delta_per_question": tpch.DELTA}
    return {"ledger": ledger, "unit": {"person": person}, "tables": tables}


def tpcds() -> tuple[dict[str, Any], dict[str, str]]:
    """The policy and the texts of TPC-DS."""
    texts = made()
    tables = {}
    for path in sorted(TABLES.glob("*.parquet")):
        owner = OWNERS.get(path.stem)
        tables[path.stem] = {"source": str(path)} | ({"public": True} if owner is None else {"person": owner})
    return policy_of(tables, OWNERS["customer"]), texts


def clickbench() -> tuple[dict[str, Any], dict[str, str]] | None:
    """The policy and the texts of ClickBench, with an empty table. None if they are not there."""
    folder = Path(tpch.DATA) / "clickbench"
    if not (folder / "queries.sql").exists():
        return None
    listed = [line for line in (folder / "queries.sql").read_text().splitlines() if line.strip()]
    connection = duckdb.connect()
    connection.execute((folder / "create.sql").read_text())
    connection.execute(f"COPY hits TO '{folder / 'hits.parquet'}'")
    hits = {"source": str(folder / "hits.parquet"), "person": "UserID"}
    return policy_of({"hits": hits}, "UserID"), {str(number): text for number, text in enumerate(listed, 1)}


def planned(policy: dict[str, Any], texts: dict[str, str]) -> dict[str, str]:
    """For each query "", or the code of its refusal."""
    database, found = dp.connect(policy), {}
    for number, text in texts.items():
        try:
            database.explain(text.rstrip().rstrip(";"), epsilon=tpch.EPSILON, delta=tpch.DELTA)
            found[number] = ""
        except dp.DiscreetError as refused:
            found[number] = f"{refused.code}: {str(refused).splitlines()[0]}"
    database.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", action="store_true", help="list every query that is refused")
    given = parser.parse_args()
    asked = {
        "TPC-H": (
            tpch.policy(tpch.made("0.1"), ":memory:", "duckdb", bare=True),
            {str(query.number): query.text for query in tpch.queries()},
        ),
        "TPC-DS": tpcds(),
    }
    if (hits := clickbench()) is not None:
        asked["ClickBench"] = hits
    about = ABOUT if hits is None else f"{ABOUT} {ABOUT_CLICKS}"
    section("Queries of other benchmarks: which have a plan", "engines.coverage", about)
    rows, why = [], Counter[tuple[str, str]]()
    for name, (policy, texts) in asked.items():
        found = planned(policy, texts)
        codes = [reason.partition(":")[0] for reason in found.values()]
        single, answered = sum(code in SINGLE for code in codes), codes.count("")
        rows.append([name, len(codes), answered, single, len(codes) - answered - single])
        why.update((name, code) for code in codes if code)
        if given.each:
            print("\n".join(f"{name} {number} {reason}" for number, reason in found.items() if reason), file=sys.stderr)
    table("queries", "number", "have a plan as written", "rightly refused", "not supported")
    for row in rows:
        line(*row)
    print()
    table("queries", "code of the refusal", "number")
    for (name, code), number in why.most_common():
        line(name, f"`{code}`", number)
    notes(
        "The codes are explained on [the page of errors](../reference/errors.md).",
        """A plan says that an answer is private and what it costs, and not that it is accurate: groups that are single
        orders, sessions or addresses have too few people to be shown.""",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The first table of the benchmarks: for a few tasks, what discreet needs and what the best-known peer needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from bench.charts import Table, multiple, number, tables

Said = tuple[str, str, str, float | None]
"""What discreet needs, what a peer needs, the peer, and how many times better discreet is, if that is one number."""


def row_of(rows: Table, *parts: str) -> dict[str, str]:
    """The first row that has every part in one of its cells."""
    return next(row for row in rows if all(any(part in cell for cell in row.values()) for part in parts))


def plain(cell: str) -> str:
    return cell.replace("*", "").replace("`", "").strip()


def sql(found: list[Table]) -> Said:
    ours, theirs = row_of(found[0], "discreet"), row_of(found[0], "OpenDP")
    return f"{ours['warm, s']} s", f"{theirs['warm, s']} s", theirs["system"], number(theirs["÷ discreet"])


def engines(found: list[Table]) -> Said:
    ours, theirs = row_of(found[0], "discreet", "Spark 3.5"), row_of(found[0], "Tumult Analytics", "Spark 3.5")
    return f"{ours['warm, s']} s", f"{theirs['warm, s']} s", theirs["system"], number(ours["Tumult ÷ this"])


def samplers(found: list[Table]) -> Said:
    row = next(row for row in found[0] if row["law"] == "discrete Gaussian" and row["scale"] == "1000")
    peer = next(title for title in row if title.startswith("OpenDP"))
    said = f"{row['here, M/s']} million/s", f"{row[peer]} million/s", peer.removesuffix(", M/s")
    return *said, number(row["ratio"])


def accounting(found: list[Table]) -> Said:
    row = row_of(found[1], "Poisson-subsampled")
    ours, times = number(row["here, ms"]), number(row["dp-accounting"])
    return f"{ours:.0f} ms", f"{ours * times:.0f} ms", "dp-accounting", times


def quantiles(found: list[Table]) -> Said:
    row = next(row for row in found[0] if row["rows"] == "10^7" and row["job"] == "nine deciles")
    times = re.search(r"\((\d+)×\)", row["OpenDP"])
    assert times is not None
    return row["here"], row["OpenDP"].partition(" (")[0], "OpenDP", float(times[1])


def learning(found: list[Table]) -> Said:
    ours, theirs = row_of(found[0], "here, LogisticRegression"), row_of(found[0], "Opacus")
    name = theirs["system"].partition(",")[0]
    return f"{ours['ε = 1']}% in {ours['fit, s']} s", f"{theirs['ε = 1']}% in {theirs['fit, s']} s", name, None


def trees(found: list[Table]) -> Said:
    ours, theirs = row_of(found[0], "here, BoostedTrees"), row_of(found[0], "DP-EBM")
    return plain(ours["ε = 1"]), plain(theirs["ε = 1"]), theirs["system"], None


def synthetic(found: list[Table]) -> Said:
    (ours, theirs), ratio = found[1][:2], row_of(found[1], "MST / here")
    name = plain(next(iter(theirs.values()))).partition(",")[0]
    return ours["3-way"], theirs["3-way"], name, number(ratio["3-way"])


def local(found: list[Table]) -> Said:
    ours, theirs = row_of(found[0], "discreet, hashing"), row_of(found[0], "pure-ldp", "hashing")
    fast, slow = ours["reports/s, device"], theirs["reports/s, device"]
    return f"{fast}/s", f"{slow}/s", theirs["oracle"].partition(",")[0], number(fast) / number(slow)


@dataclass(frozen=True)
class Headline:
    """A task, the section that has its numbers, and how its row is read from the tables of that section."""

    section: str
    task: str
    read: Callable[[list[Table]], Said]
    better: str = "faster"


HEADLINES = (
    Headline("sql", "COUNT, SUM and AVG of 1,000 groups, 10 million rows, DuckDB", sql),
    Headline("engines", "the same question on Spark 3.5", engines),
    Headline("quantiles", "nine deciles of 10 million rows", quantiles),
    Headline("samplers", "exact Gaussian noise, scale 1,000", samplers),
    Headline("accounting", "ε of 10,000 subsampled Gaussians", accounting),
    Headline("learning", "logistic regression on Adult, ε = 1: accuracy, time", learning),
    Headline("learning_trees", "boosted trees on Adult, ε = 1: area under the curve", trees),
    Headline("synthetic", "a synthetic table of Adult, ε = 1: error of 3-way marginals", synthetic, "smaller"),
    Headline("local", "reports of a survey, made by hashing on one core", local),
)


def table(stored: Callable[[str], str], links: dict[str, str]) -> str:
    """The rows in Markdown, from stored sections. `links` leads from a section to where it is shown."""
    lines = ["| task | discreet | peer | |", "|---|---|---|---|"]
    for headline in HEADLINES:
        ours, theirs, peer, times = headline.read(tables(stored(headline.section)))
        ratio = f"{multiple(times)} times {headline.better}" if times else ""
        lines.append(f"| [{headline.task}]({links[headline.section]}) | **{ours}** | {theirs}, {peer} | {ratio} |")
    return "\n".join(lines) + "\n"

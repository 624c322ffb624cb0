"""Makes docs/benchmarks/ from the output of the benchmarks: a page for each theme, and an index with the main results.

`python -m bench.page all` runs every benchmark, which takes hours. `python -m bench.page samplers sql` runs only these.
The output of a benchmark is stored in `bench/results` as its section, with the day, the machine, how long it took and
how much else ran there. If a benchmark fails or its device is missing, the old section stays. `python -m bench.page`
makes the pages from the stored sections.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import discreet as dp
from bench import charts, headlines, peers
from bench.quiet import Watch, adopt, reap
from bench.report import cores

HERE = Path(__file__).resolve().parent
RESULTS, PAGES = HERE / "results", HERE.parent / "docs" / "benchmarks"


@dataclass(frozen=True)
class Theme:
    """A page: its file, its title, what it is about, and its sections in order, each a script with its arguments.

    The scripts are in the folder of that name here, and the stored sections in that of `results`."""

    file: str
    title: str
    about: str
    commands: dict[str, str]


THEMES = (
    Theme(
        "sql",
        "Questions in SQL",
        "One question on one machine: time, memory and error next to peers, and what automatic bounds and "
        "undeclared groups cost.",
        {
            "sql": "sql",
            "planning": "planning",
            "groups": "groups",
            "found_groups": "found_groups",
            "everyday": "everyday",
            "cubes": "cubes",
            "clipping": "clipping",
            "averages": "averages",
            "keys": "keys",
        },
    ),
    Theme(
        "engines",
        "Engines and TPC-H",
        "The same questions on DuckDB, PostgreSQL and Spark, how they grow with the data, and queries with joins.",
        {
            "engines": "engines",
            "engines-tenth": "engines --tenth spark-3 pipelinedp",
            "growth": "growth --all",
            "growth-nothing": "growth --all --nothing",
            "tpch": "tpch",
            "tpch-policy": "tpch --brief --policy --repeat 1",
            "tpch-10": "tpch --brief --scale 10 --repeat 1",
            "tpch-spark": "tpch --brief --engine spark --repeat 2",
            "tpch-spark-10": "tpch --brief --engine spark --scale 10 --repeat 1",
            "tpch-persons": "tpch_persons",
            "coverage": "coverage",
            "r2t": "r2t",
        },
    ),
    Theme(
        "noise",
        "Noise and composition",
        "How fast exact noise is drawn, how tight and fast composition is, and how little noise many sums need.",
        {"samplers": "samplers", "accounting": "accounting", "prefix_sums": "prefix_sums"},
    ),
    Theme(
        "ledger",
        "The ledger and budgets",
        "Charges a second, long ledgers, and the budget that running totals and answers from earlier answers save.",
        {"ledger": "ledger", "ledger_parts": "ledger_parts", "standing": "standing", "answers": "answers"},
    ),
    Theme(
        "gateway",
        "Gateway and console",
        "Questions over HTTP, the PostgreSQL protocol and in a browser; what time reveals, and what a crash costs.",
        {
            "gateway": "gateway",
            "wire": "wire",
            "console": "console",
            "timing": "timing",
            "soak": "soak --minutes 30",
        },
    ),
    Theme(
        "statistics",
        "Statistics",
        "Estimates, intervals and tests for the population: how wide, how often they hold, how powerful, and how fast.",
        {
            "stats_means": "stats_means",
            "stats-proportions": "stats_proportions",
            "moments": "moments",
            "quantiles": "quantiles",
            "stats-regression": "stats_regression",
            "stats_counts": "stats_counts",
            "stats_permutation": "stats_permutation",
            "stats_levels": "stats_levels",
        },
    ),
    Theme(
        "learning",
        "Private learning",
        "Models fitted with privacy: accuracy on held-out rows next to peers and to models that are not private, and "
        "speed on CPU, Spark and GPU.",
        {
            "learning": "learning adult certificate small",
            "learning-digits": "learning mnist",
            "learning-tuned": "learning tuned --seeds 3",
            "learning_speed": "learning_speed",
            "spark_learning": "spark_learning",
            "gpu": "gpu",
            "regression": "regression",
            "learning_stable": "learning_stable",
            "learning_additive": "learning_additive",
            "learning_trees": "learning_trees",
            "learning_clusters": "learning_clusters",
            "learning_images": "learning_images",
        },
    ),
    Theme(
        "functions",
        "Functions and adaptive analysis",
        "Densities and curves, released once and evaluated anywhere, and questions chosen after seeing answers.",
        {"density": "density", "curves": "curves", "adaptive": "adaptive"},
    ),
    Theme(
        "publishing",
        "Publishing",
        "Marginals, synthetic tables and a whole publication: how far the published numbers are from the exact ones.",
        {"marginals": "marginals", "synthetic": "synthetic", "publish": "publish"},
    ),
    Theme(
        "surveys",
        "Surveys",
        "Reports that are private before they leave a device: error, size and speed, locally, shuffled and encrypted.",
        {"local": "local", "shuffle": "shuffle", "channel": "channel", "clients": "clients"},
    ),
    Theme(
        "audits",
        "Audits and start-up",
        "Attacks on our own mechanisms and models, and what it takes to install and import the package.",
        {
            "audits": "audits",
            "audits-more": "audits --more",
            "model_audits": "model_audits",
            "install": "install",
        },
    ),
)
"""The pages, in the order of the navigation."""
COMMANDS = {name: f"{theme.file}.{command}" for theme in THEMES for name, command in theme.commands.items()}
"""The commands by the names of their sections, each a module of this package with its arguments."""
PEERS = {
    "noise.samplers": ["opendp"],
    "noise.accounting": ["dp-accounting", "prv-accountant"],
    "ledger.ledger": ["opendp", "diffprivlib"],
    "sql.sql": ["opendp-polars", "smartnoise"],
    "engines.engines": ["spark-3", "spark-4", "tumult", "pipelinedp"],
    "statistics.quantiles": ["opendp-polars", "diffprivlib"],
    "publishing.synthetic": ["mbi"],
    "learning.regression": ["diffprivlib"],
    "learning.learning_stable": ["diffprivlib"],
    "learning.learning": ["opacus", "diffprivlib"],
    "learning.learning_additive": ["interpret", "diffprivlib"],
    "learning.learning_clusters": ["diffprivlib"],
    "learning.learning_trees": ["interpret", "diffprivlib"],
    "learning.learning_speed": ["opacus"],
    "surveys.local": ["local"],
}
"""The peers that a script also runs, each in its own environment."""
NOTHING, REFUTED = 2, 3
"""The exit codes of a script without its data or device, and of one that refuted a claim."""
TOP = """# Benchmarks

Each section of these pages is the output of one script in `bench/`. It runs one task with discreet and with its peers,
on one core unless it says otherwise. Absolute speeds depend on the machine, so compare the ratios within one run, and
treat differences below a factor of 1.5 as noise. The last line of a section says when and where it was measured, how
long that took, and how much of the machine something else used meanwhile. Benchmarks are not tests: many have goals,
and we say which we missed.

## Main results
{headlines}
## Goals
{goals}
### Goals that we missed
{missed}
## When and where
{machines}
## Measure again
`make bench` installs the peers, each in its own virtual environment under `$PEERS_HOME` (default `.peers`), runs all
benchmarks, and makes these pages. `make bench ONLY="samplers sql"` runs only these two and leaves the rest unchanged.
A peer that is not installed is reported as missing. No peer is a dependency of discreet.
"""


def measured(name: str) -> int:
    """Run a benchmark with its peers and store its output. Returns its exit code."""
    script, *words = COMMANDS[name].split()
    for peer in PEERS.get(script, ()):
        peers.tried(peer)
    print(f"== python -m bench.{script} {' '.join(words)}", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", f"bench.{script}", *words]
    watch = Watch.start()
    done = subprocess.run(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True)
    reap()
    if done.returncode not in (0, REFUTED):
        print(done.stdout, file=sys.stderr)
        print(f"{name} ended with {done.returncode}; its section stays as it was", file=sys.stderr, flush=True)
        return done.returncode
    place(name).parent.mkdir(parents=True, exist_ok=True)
    place(name).write_text(f"{done.stdout.strip()}\n\n{where(watch)}\n", "utf-8")
    return done.returncode


def where(watch: Watch) -> str:
    """When and on what a section was measured, how long that took, and how quiet the machine was."""
    system = f"{platform.system()} on {platform.machine()}, {cores()}"
    return f"*{date.today()}, discreet {dp.__version__}, Python {platform.python_version()}, {system}; {watch.said()}.*"


def place(name: str) -> Path:
    """Where a section is stored."""
    return RESULTS / COMMANDS[name].partition(".")[0] / f"{name}.md"


def stored(name: str) -> str:
    """A stored section; empty if it was never measured."""
    return place(name).read_text("utf-8") if place(name).exists() else ""


def goals(section: str, which: str) -> list[str]:
    """The goals of a section that it says were `met` or `missed`."""
    said = re.findall(rf"^\**Goals {which}\**: (.+?)\.?$", section, flags=re.MULTILINE)
    return [goal for line in said for goal in line.split("; ")]


def heading(name: str) -> str:
    """The first heading of a stored section."""
    return stored(name).partition("\n")[0].lstrip("# ")


def link(theme: Theme, name: str) -> str:
    """Where a section is, from the index: its anchor is made of its heading, as the site does it."""
    slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading(name)).strip().lower())
    return f"{theme.file}.md#{slug}"


def machines() -> str:
    """How many sections were measured on which day, with which version, on which machine."""
    found = re.compile(r"\*(\S+), discreet (\S+), Python (\S+), (.+?)(?:[;.] ?.*)?\*$")
    ends = [text.strip().splitlines()[-1] for name in COMMANDS if (text := stored(name))]
    known = Counter(match.groups() for end in ends if (match := found.match(end)))
    rows = [f"| {' | '.join(one)} | {count} |" for one, count in sorted(known.items(), reverse=True)]
    return "\n".join(["| day | discreet | Python | machine | sections |", "|---|---|---|---|---|", *rows]) + "\n"


def index() -> str:
    """The first page: the main results, how many goals were met, and each one that was missed."""
    links = {name: link(theme, name) for theme in THEMES for name in theme.commands if stored(name)}
    counts, missed = ["| page | goals met | missed |", "|---|---|---|"], []
    for theme in THEMES:
        met = sum(len(goals(stored(name), "met")) for name in theme.commands)
        unmet = [(name, goal) for name in theme.commands for goal in goals(stored(name), "missed")]
        counts.append(f"| [{theme.title}]({theme.file}.md): {theme.about.rstrip('.')} | {met} | {len(unmet)} |")
        missed += [f"- [{heading(name)}]({links[name]}): {goal}" for name, goal in unmet]
    return TOP.format(
        headlines=headlines.table(stored, links),
        goals="\n".join(counts) + "\n",
        missed="\n".join(missed) + "\n",
        machines=machines(),
    )


def themed(theme: Theme) -> str:
    """The page of a theme: its stored sections, each with its chart below the paragraph that it begins with."""
    parts = [f"# {theme.title}\n\n{theme.about} [How to read these pages](index.md).\n"]
    for name in theme.commands:
        about, blank, rest = stored(name).partition("\n\n")
        parts.append(about + "\n" + charts.shown(name) + blank[1:] + rest)
    return "\n".join(part for part in parts if part.strip())


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    return {"index.md": index(), **{f"{theme.file}.md": themed(theme) for theme in THEMES}}


def main(names: list[str]) -> int:
    adopt()
    wrong = [name for name in names if measured(name) not in (0, NOTHING)]
    charts.draw(stored)
    PAGES.mkdir(exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text, "utf-8")
    print(f"{PAGES.relative_to(HERE.parent)} is made", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to run first: all, {', '.join(COMMANDS)}")
    given = parser.parse_args().names
    if unknown := [name for name in given if name not in (*COMMANDS, "all")]:
        parser.error(f"there is no benchmark {unknown[0]}; known: all, {', '.join(COMMANDS)}")
    sys.exit(main(list(COMMANDS) if "all" in given else given))

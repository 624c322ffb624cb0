"""Makes docs/benchmarks.md from the output of the benchmarks, with charts of the main results.

`python bench/page.py all` runs every benchmark, which takes hours. `python bench/page.py samplers sql` runs only these.
The output of a benchmark is stored in `bench/results` as its section, with the day and the machine. If a benchmark
fails
or its device is missing, the old section stays. Without names, the page is made again from the stored sections.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path

import charts
import peers

import discreet as dp

HERE = Path(__file__).resolve().parent
RESULTS, PAGE = HERE / "results", HERE.parent / "docs" / "benchmarks.md"
COMMANDS = {
    "samplers": "samplers",
    "accounting": "accounting",
    "ledger": "ledger",
    "ledger_parts": "ledger_parts",
    "gateway": "gateway",
    "wire": "wire",
    "console": "console",
    "timing": "timing",
    "soak": "soak --minutes 30",
    "sql": "sql",
    "planning": "planning",
    "groups": "groups",
    "everyday": "everyday",
    "cubes": "cubes",
    "marginals": "marginals",
    "clipping": "clipping",
    "keys": "keys",
    "standing": "standing",
    "answers": "answers",
    "engines": "engines",
    "engines-tenth": "engines --tenth spark-3 pipelinedp",
    "growth": "growth --all",
    "growth-nothing": "growth --all --nothing",
    "tpch": "tpch",
    "tpch-persons": "tpch_persons",
    "coverage": "coverage",
    "r2t": "r2t",
    "tpch-policy": "tpch --brief --policy --repeat 1",
    "tpch-10": "tpch --brief --scale 10 --repeat 1",
    "tpch-spark": "tpch --brief --engine spark --repeat 2",
    "tpch-spark-10": "tpch --brief --engine spark --scale 10 --repeat 1",
    "stats_means": "stats_means",
    "moments": "moments",
    "quantiles": "quantiles",
    "prefix_sums": "prefix_sums",
    "synthetic": "synthetic",
    "publish": "publish",
    "regression": "regression",
    "learning_stable": "learning_stable",
    "stats-regression": "stats_regression",
    "learning": "learning",
    "learning_additive": "learning_additive",
    "learning_clusters": "learning_clusters",
    "learning_images": "learning_images",
    "learning_trees": "learning_trees",
    "learning_speed": "learning_speed",
    "spark_learning": "spark_learning",
    "gpu": "gpu",
    "density": "density",
    "curves": "curves",
    "adaptive": "adaptive",
    "stats_counts": "stats_counts",
    "stats_permutation": "stats_permutation",
    "stats_levels": "stats_levels",
    "local": "local",
    "shuffle": "shuffle",
    "channel": "channel",
    "clients": "clients",
    "stats-proportions": "stats_proportions",
    "audits": "audits",
    "model_audits": "model_audits",
    "install": "install",
}
"""The sections of the page, in order: a script and its arguments."""
PEERS = {
    "samplers": ["opendp"],
    "accounting": ["dp-accounting", "prv-accountant"],
    "ledger": ["opendp", "diffprivlib"],
    "sql": ["opendp-polars", "smartnoise"],
    "engines": ["spark-3", "spark-4", "tumult", "pipelinedp"],
    "quantiles": ["opendp-polars", "diffprivlib"],
    "synthetic": ["mbi"],
    "regression": ["diffprivlib"],
    "learning_stable": ["diffprivlib"],
    "learning": ["opacus", "diffprivlib"],
    "learning_additive": ["interpret", "diffprivlib"],
    "learning_clusters": ["diffprivlib"],
    "learning_trees": ["interpret", "diffprivlib"],
    "learning_speed": ["opacus"],
    "local": ["local"],
}
"""The peers that a script also runs, each in its own environment."""
NOTHING, REFUTED = 2, 3
"""The exit codes of a script without its data or device, and of one that refuted a claim."""
TOP = """# Benchmarks

Benchmarks are not tests. Each section below is the output of one script in `bench/`. It runs one task with discreet
and with its peers, on one core unless it says otherwise. Absolute speeds depend on the machine, so compare the ratios
within one run, and treat differences below a factor of 1.5 as noise.

`make bench` installs the peers, each in its own virtual environment under `$PEERS_HOME` (default `.peers`), runs all
benchmarks, and makes this page. `make bench ONLY="samplers sql"` runs only these two and leaves the rest unchanged.
A peer that is not installed is reported as missing. No peer is a dependency of discreet.
"""


def measured(name: str) -> int:
    """Run a benchmark with its peers and store its output. Returns its exit code."""
    script, *words = COMMANDS[name].split()
    for peer in PEERS.get(script, ()):
        peers.tried(peer)
    print(f"== python bench/{script}.py {' '.join(words)}", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, HERE / f"{script}.py", *words], stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, REFUTED):
        print(done.stdout, file=sys.stderr)
        print(f"{name} ended with {done.returncode}; its section stays as it was", file=sys.stderr, flush=True)
        return done.returncode
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(f"{done.stdout.strip()}\n\n{where()}\n", "utf-8")
    return done.returncode


def where() -> str:
    system = f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores"
    return f"*{date.today()}, discreet {dp.__version__}, Python {platform.python_version()}, {system}.*"


def page() -> str:
    """The charts, then the stored sections, under one heading."""
    kept = [(RESULTS / f"{name}.md").read_text("utf-8") for name in COMMANDS if (RESULTS / f"{name}.md").exists()]
    return "\n".join([TOP, charts.shown(), *kept])


def main(names: list[str]) -> int:
    wrong = [name for name in names if measured(name) not in (0, NOTHING)]
    charts.draw(RESULTS)
    PAGE.write_text(page(), "utf-8")
    print(f"{PAGE.relative_to(HERE.parent)} is made", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to run first: all, {', '.join(COMMANDS)}")
    given = parser.parse_args().names
    if unknown := [name for name in given if name not in (*COMMANDS, "all")]:
        parser.error(f"there is no benchmark {unknown[0]}; known: all, {', '.join(COMMANDS)}")
    sys.exit(main(list(COMMANDS) if "all" in given else given))

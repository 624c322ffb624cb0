"""Makes docs/benchmarks.md of what the benchmarks print, with charts of the main results.

`python bench/page.py all` runs every benchmark, which takes hours; `python bench/page.py samplers sql` runs these. What
a benchmark prints is kept in `bench/results` as its section, with the day and the machine; one that fails, or finds no
device to run on, keeps the section it had. Without a name, the page is put together anew from what is kept.
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

import discreet as dp

HERE = Path(__file__).resolve().parent
RESULTS, PAGE = HERE / "results", HERE.parent / "docs" / "benchmarks.md"
COMMANDS = {
    "samplers": "samplers",
    "accounting": "accounting",
    "ledger": "ledger",
    "sql": "sql",
    "engines": "engines",
    "engines-tenth": "engines --tenth",
    "growth": "growth --all",
    "tpch": "tpch",
    "tpch-policy": "tpch --brief --policy --repeat 1",
    "tpch-10": "tpch --brief --scale 10 --repeat 1",
    "tpch-spark": "tpch --brief --engine spark --repeat 2",
    "tpch-spark-10": "tpch --brief --engine spark --scale 10 --repeat 1",
    "quantiles": "quantiles",
    "synthetic": "synthetic",
    "regression": "regression",
    "learning": "learning",
    "learning_speed": "learning_speed",
    "spark_learning": "spark_learning",
    "gpu": "gpu",
    "density": "density",
    "curves": "curves",
    "adaptive": "adaptive",
    "local": "local",
    "shuffle": "shuffle",
    "channel": "channel",
    "audits": "audits",
    "install": "install",
}
"""The sections of the page in their order: a script and its arguments."""
TOP = """# Benchmarks

Benchmarks are not tests. Each file of `bench/` runs one task side by side with its peers, on one core unless it says
so, and prints ratios measured in that run: absolute speeds are the machine's, ratios are ours. `make bench` installs
the peers, each in a virtual environment of its own under `$PEERS_HOME` (default `.peers`), runs everything, and makes
this page of what was printed; `make bench ONLY="samplers sql"` runs these and leaves the rest as it was. A peer that is
not there is reported as missing, not skipped in silence. No peer is ever a dependency.

Other jobs shared the machine, so times are the best of several; treat differences under 1.5 times as noise.
"""


def measured(name: str) -> bool:
    """Run a benchmark and keep what it prints; False when it fails, and nothing is kept."""
    script, *words = COMMANDS[name].split()
    print(f"== python bench/{script}.py {' '.join(words)}", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, HERE / f"{script}.py", *words], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"{name} ended with {done.returncode}; its section stays as it was", file=sys.stderr, flush=True)
        return False
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(f"{done.stdout.strip()}\n\n{where()}\n", "utf-8")
    return True


def where() -> str:
    system = f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores"
    return f"*{date.today()}, discreet {dp.__version__}, Python {platform.python_version()}, {system}.*"


def page() -> str:
    """What is kept, under one heading, after the charts."""
    kept = [(RESULTS / f"{name}.md").read_text("utf-8") for name in COMMANDS if (RESULTS / f"{name}.md").exists()]
    return "\n".join([TOP, charts.shown(), *kept])


def main(names: list[str]) -> int:
    wrong = [name for name in names if not measured(name)]
    charts.draw(RESULTS)
    PAGE.write_text(page(), "utf-8")
    print(f"{PAGE.relative_to(HERE.parent)} is made", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*COMMANDS, "all", []], help="what to run first")
    given = parser.parse_args().names
    sys.exit(main(list(COMMANDS) if "all" in given else given))

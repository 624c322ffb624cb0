"""The peers, each in a virtual environment of its own, never installed beside discreet.

`python -m bench.peers` makes the environments under $PEERS_HOME (default: .peers in the repository). The benchmarks run
themselves again inside one, `python -m bench.noise.samplers opendp`, and read the JSON lines that come back.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PINS = {
    "opendp": ["opendp==0.16.0"],
    "opendp-polars": ["opendp[polars]==0.16.0"],
    "dp-accounting": ["dp-accounting==0.6.0"],
    "prv-accountant": ["prv-accountant==0.2.0"],
    "diffprivlib": ["diffprivlib==0.6.6", "scikit-learn==1.7.2"],
    "interpret": ["interpret-core==0.7.8", "scikit-learn==1.7.2"],
    "smartnoise": ["smartnoise-sql==1.0.10", "pyarrow==26.0.1"],
    "mbi": ["mbi==2.0.0"],
    "opacus": ["opacus==1.6.0", "torch==2.13.0", "scikit-learn==1.7.2"],
    "local": ["pure-ldp==1.2.0", "multi-freq-ldpy==0.2.5", "scikit-learn", "statsmodels", "xxhash==3.8.2"],
    "tpch": ["tpchgen-cli==4.0.0"],  # no peer: it makes data
    "tpcds": ["duckdb==1.5.5", "duckdb-extension-tpcds==1.5.5"],  # no peer: it has the texts, and makes tables
    "tumult": ["tmlt.analytics==0.21.0", "pyspark==3.5.9"],
    "pipelinedp": ["pipeline-dp==0.3.1", "pyspark==3.5.9"],
    "spark-3": ["pyspark==3.5.9", "--editable", str(ROOT)],  # no peers: discreet with either Spark
    "spark-4": ["pyspark[connect]==4.3.0", "--editable", str(ROOT)],
}
HOME = Path(os.environ.get("PEERS_HOME") or ROOT / ".peers")
ARM = (platform.system(), platform.machine()) == ("Linux", "aarch64")
"""Where two of the peers have no wheels: Tumult gets other builds of its C libraries, PipelineDP other noise."""
DEBIAN = {
    "libgmp10": ("libgmp.so.10", "libgmp.so.10.5.0"),
    "libmpfr6": ("libmpfr.so.6", "libmpfr.so.6.2.1"),
    "libgf2x3": ("libgf2x.so.3", "libgf2x.so.3"),
    "libntl44": ("libntl.so.44", "libntl.so.44"),
    "libflint17": ("libflint.so.17", "libflint.so.17.0.0"),
    "libflint-arb2": ("libflint-arb.so.2", "libarb.so.2.14.0"),
}
"""Debian 12 has the C libraries of Tumult: the package, the file in it, and the name that tmlt.core knows it by."""
PYDP = '''
"""No python-dp: a stand-in for what PipelineDP imports of it, of which only the Gaussian mechanism is used here."""
import math
import sys
import types

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr


class GaussianMechanism:
    def __init__(self, epsilon, delta, sensitivity):
        def excess(log):  # what delta would be, with a deviation of e^log sensitivities
            s = math.exp(log)
            return ndtr(0.5 / s - epsilon * s) - math.exp(epsilon) * ndtr(-0.5 / s - epsilon * s) - delta

        self.epsilon, self.delta, self.std = epsilon, delta, sensitivity * math.exp(brentq(excess, -10, 20))

    def add_noise(self, value):
        return value + np.random.default_rng().normal(0, self.std)


class Missing:
    pass


algorithms = sys.modules["pydp.algorithms"] = types.ModuleType("pydp.algorithms")
for name in ("numerical_mechanisms", "quantile_tree", "partition_selection"):
    module = sys.modules[f"pydp.algorithms.{name}"] = types.ModuleType(f"pydp.algorithms.{name}")
    setattr(algorithms, name, module)
algorithms.numerical_mechanisms.GaussianMechanism = GaussianMechanism
algorithms.numerical_mechanisms.LaplaceMechanism = algorithms.quantile_tree.QuantileTree = Missing
'''


def interpreter(peer: str) -> Path:
    """The peer's own Python."""
    return HOME / peer / "bin" / "python"


def version(peer: str) -> str:
    """The one that is pinned."""
    return PINS[peer][0].partition("==")[2]


def install(peer: str) -> None:
    """Make the peer's environment, unless the pinned versions are there already."""
    ready = HOME / peer / ".ready"
    if ready.exists() and ready.read_text().split() == PINS[peer]:
        return
    print(f"installing {' '.join(PINS[peer])} into {HOME / peer}", file=sys.stderr, flush=True)
    venv.create(HOME / peer, with_pip=True, clear=True)
    pip = [interpreter(peer), "-m", "pip", "install", "-qq"]
    if ARM and peer == "tumult":
        other_libraries(pip)
    if ARM and peer == "pipelinedp":
        stand_in(pip)
    else:
        subprocess.run([*pip, *PINS[peer]], check=True)
    ready.write_text("\n".join(PINS[peer]))


def other_libraries(pip: list[Any]) -> None:
    """tmlt.core, Python that loads four C libraries, from its wheel for another processor, with those of Debian."""
    (found,) = (HOME / "tumult" / "lib").glob("python*/site-packages")
    foreign = ["--platform", "manylinux2014_x86_64", "--only-binary", ":all:", "--no-deps"]
    subprocess.run([*pip, *foreign, "--target", found, "tmlt.core==0.19.1"], check=True)
    libraries = found / "tmlt" / "core" / "ext" / "lib"
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        subprocess.run(["apt-get", "download", "-qq", *DEBIAN], cwd=folder, check=True)
        for package in Path(folder).glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, folder], check=True)
        for file, name in DEBIAN.values():
            (libraries / name).unlink(missing_ok=True)
            shutil.copy(next(Path(folder).glob(f"usr/lib/*/{file}")), libraries / name)
    # those of Debian need two more, which are loaded first
    first = [DEBIAN[name][1] for name in ("libgmp10", "libgf2x3", "libntl44")]
    text = (
        f"import ctypes, pathlib\nfor name in {first}:\n    ctypes.CDLL(str(pathlib.Path(__file__).with_name(name)))\n"
    )
    (libraries / "__init__.py").write_text(text)


def stand_in(pip: list[Any]) -> None:
    """PipelineDP without python-dp, Google's noise in C++: the same law and scale, but numpy's sampler."""
    subprocess.run([*pip, "--no-deps", PINS["pipelinedp"][0]], check=True)
    subprocess.run([*pip, "dill", "numpy", "scipy", *PINS["pipelinedp"][1:]], check=True)
    (found,) = (HOME / "pipelinedp" / "lib").glob("python*/site-packages")
    (found / "pydp.py").write_text(PYDP)


def one_core() -> None:
    """Keep this process and those it starts on one core, where the system allows it."""
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def measure(module: str, peer: str) -> list[dict[str, Any]]:
    """What a module measures inside the peer's environment; nothing, and said so, when the peer is missing or fails."""
    if not (HOME / peer / ".ready").exists():
        print(f"\n{peer} is missing: run `python -m bench.peers` to install it.\n", flush=True)
        return []
    command = [str(interpreter(peer)), "-W", "ignore", "-m", module, peer]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"\n{peer} failed, and is left out.\n", flush=True)
        return []
    return [json.loads(line) for line in done.stdout.splitlines()]


def best(work: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """The shortest of `repeat` timings after a run to warm up (of that run itself, for 0), and the last answer."""
    times = []
    for _ in range(1 + repeat):
        start = time.perf_counter()
        answer = work()
        times.append(time.perf_counter() - start)
    return min(times[1:] or times), answer


def tried(peer: str) -> bool:
    """Install it, or say that it cannot be."""
    try:
        install(peer)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{peer} could not be installed: {error}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit([tried(name) for name in sys.argv[1:] or PINS].count(False))

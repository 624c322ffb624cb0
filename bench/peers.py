"""The peers, each in a virtual environment of its own, never installed beside discreet.

`python bench/peers.py` makes the environments under $PEERS_HOME (default: .peers in the repository). The benchmarks run
themselves again inside one, `python bench/samplers.py opendp`, and read the JSON lines that come back.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

PINS = {
    "opendp": ["opendp==0.16.0"],
    "opendp-polars": ["opendp[polars]==0.16.0"],
    "dp-accounting": ["dp-accounting==0.6.0"],
    "prv-accountant": ["prv-accountant==0.2.0"],
    "diffprivlib": ["diffprivlib==0.6.6", "scikit-learn==1.7.2"],
    "smartnoise": ["smartnoise-sql==1.0.10", "pyarrow==26.0.1"],
    "mbi": ["mbi==2.0.0"],
    "opacus": ["opacus==1.6.0", "torch==2.13.0", "scikit-learn==1.7.2"],
    "local": ["pure-ldp==1.2.0", "multi-freq-ldpy==0.2.5", "scikit-learn", "statsmodels", "xxhash==3.8.2"],
    "tpch": ["tpchgen-cli==4.0.0"],  # no peer: it makes data
}
HOME = Path(os.environ.get("PEERS_HOME") or Path(__file__).resolve().parent.parent / ".peers")


def interpreter(peer: str) -> Path:
    """The peer's own Python."""
    return HOME / peer / "bin" / "python"


def install(peer: str) -> None:
    """Make the peer's environment, unless the pinned versions are there already."""
    ready = HOME / peer / ".ready"
    if ready.exists() and ready.read_text().split() == PINS[peer]:
        return
    print(f"installing {' '.join(PINS[peer])} into {HOME / peer}", flush=True)
    venv.create(HOME / peer, with_pip=True, clear=True)
    subprocess.run([interpreter(peer), "-m", "pip", "install", "-qq", *PINS[peer]], check=True)
    ready.write_text("\n".join(PINS[peer]))


def one_core() -> None:
    """Keep this process and those it starts on one core, where the system allows it."""
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def measure(script: str, peer: str) -> list[dict[str, Any]]:
    """What `script` measures inside the peer's environment; nothing, and said so, when the peer is missing."""
    if not (HOME / peer / ".ready").exists():
        print(f"{peer} is missing: run `python bench/peers.py` to install it", flush=True)
        return []
    command = [str(interpreter(peer)), "-W", "ignore", script, peer]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def best(work: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """The shortest of `repeat` timings after a run to warm up (of that run itself, for 0), and the last answer."""
    times = []
    for _ in range(1 + repeat):
        start = time.perf_counter()
        answer = work()
        times.append(time.perf_counter() - start)
    return min(times[1:] or times), answer


if __name__ == "__main__":
    failed = []
    for name in PINS:
        try:
            install(name)
        except (OSError, subprocess.CalledProcessError) as error:
            failed.append(name)
            print(f"{name} could not be installed: {error}", file=sys.stderr)
    sys.exit(bool(failed))

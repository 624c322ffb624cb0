"""What it costs to have discreet: the time to import it, the bytes of the core install to download, the bytes on disk.

`python -m bench.audits.install`; the downloads are those pip would choose for this interpreter, extras not included.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

from bench.report import line, machine, notes, section, table, verdict

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 15
SECONDS, MEGABYTES = 0.5, 150
"""Goals: the time to import it, and what is downloaded."""


def import_seconds(statement: str) -> float:
    """Median of fresh processes, the interpreter's own start included; the first one warms the disk."""
    times = []
    for _ in range(PROCESSES + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def _bytes_at(url: str) -> int:
    if urlparse(url).scheme == "file":
        return Path(url2pathname(urlparse(url).path)).stat().st_size
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as answer:
        return int(answer.headers["Content-Length"])


def downloads() -> dict[str, int]:
    """Bytes of each wheel that `pip install .` would fetch into an empty environment."""
    plan = ["install", "--dry-run", "--ignore-installed", "--quiet", "--quiet", "--report", "-"]
    command = [sys.executable, "-m", "pip", *plan, "-c", str(ROOT / "constraints.txt"), str(ROOT)]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    chosen = {item["metadata"]["name"]: item["download_info"]["url"] for item in report["install"]}
    return {_plain(name): _bytes_at(url) for name, url in chosen.items() if name != "discreet"}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(name: str, seen: dict[str, int]) -> dict[str, int]:
    """Bytes on disk of a distribution and of those it needs."""
    found = importlib.metadata.distribution(name)
    places = [Path(str(found.locate_file(file))) for file in found.files or []]
    seen[name] = sum(place.stat().st_size for place in places if place.is_file())
    for needed in found.requires or []:
        other = re.match(r"[A-Za-z0-9._-]+", needed)
        marked = "extra ==" in needed or "python_version <" in needed or "sys_platform" in needed
        if other and not marked and _plain(other[0]) not in seen:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                installed(_plain(other[0]), seen)
    return seen


def planned() -> dict[str, int] | None:
    """The downloads; nothing, and said so, where pip reaches no index."""
    try:
        return downloads()
    except (subprocess.CalledProcessError, OSError, ValueError) as error:
        print(f"the download could not be planned: {error}", file=sys.stderr, flush=True)
        return None


def on_disk() -> int:
    sizes = installed("discreet", {})
    package = sum(file.stat().st_size for file in (ROOT / "src" / "discreet").rglob("*.py"))
    return sum((sizes | {"discreet": package}).values())  # an editable install lists no source files


def told(seconds: dict[str, float], sizes: dict[str, int] | None, disk: int) -> None:
    """What was measured, and which goals are met."""
    ours, empty, numpy = (seconds[code] for code in ("import discreet", "pass", "import numpy"))
    table("", "measured")
    beside = f"an empty interpreter {empty:.3f}, `import numpy` {numpy:.3f}"
    line(f"`import discreet`, median of {PROCESSES} processes", f"{ours:.3f} s ({beside})")
    goals = {f"`import discreet` under {SECONDS:g} s": ours < SECONDS}
    if sizes is None:
        line("core download", None)
    else:
        whole = sum(sizes.values()) / 1e6
        largest = sorted(sizes.items(), key=lambda item: -item[1])[:4]
        parts = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in largest)
        line("core download", f"{whole:.1f} MB, of which {parts}")
        goals[f"core install under {MEGABYTES} MB downloaded"] = whole < MEGABYTES
    line("core on disk", f"{disk / 1e6:.1f} MB")
    verdict(goals)
    if sizes is None:
        notes("The download is missing: pip could not plan it.")


def main() -> None:
    about = "The time of the import, and the size of the core install that pip would choose here, without extras."
    section("Start-up", "audits.install", f"{about} {machine()}.")
    seconds = {code: import_seconds(code) for code in ("pass", "import discreet", "import numpy")}
    told(seconds, planned(), on_disk())


if __name__ == "__main__":
    main()

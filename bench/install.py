"""What it costs to have discreet: the time to import it, the bytes of the core install to download, the bytes on disk.

`python bench/install.py`; the downloads are those pip would choose for this interpreter, extras not included.
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

ROOT = Path(__file__).resolve().parent.parent
PROCESSES = 15


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


def main() -> None:
    empty, ours, numpy = (import_seconds(code) for code in ("pass", "import discreet", "import numpy"))
    print(f"import discreet: {ours:.3f} s (goal < 0.5; an empty interpreter {empty:.3f}, import numpy {numpy:.3f})")
    on_disk = installed("discreet", {})
    package = sum(file.stat().st_size for file in (ROOT / "src" / "discreet").rglob("*.py"))
    on_disk["discreet"] = package  # an editable install lists no source files
    try:
        sizes = downloads()
    except (subprocess.CalledProcessError, OSError) as error:
        sizes = {}
        print(f"the download could not be planned: {error}")
    print(f"{'package':20} {'download MB':>12} {'on disk MB':>12}")
    for name in sorted({*sizes, *on_disk}, key=lambda key: -on_disk.get(key, 0)):
        print(f"{name:20} {sizes.get(name, 0) / 1e6:12.2f} {on_disk.get(name, 0) / 1e6:12.2f}")
    print(f"{'all (goal < 150)':20} {sum(sizes.values()) / 1e6:12.2f} {sum(on_disk.values()) / 1e6:12.2f}")


if __name__ == "__main__":
    main()

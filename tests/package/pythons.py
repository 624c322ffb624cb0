"""The quick tests on every supported Python that this machine has, with the wheel as a user installs it.

`make pythons`, or `python -m tests.package.pythons [3.13 …] [tests/ledger …]`: each version gets an environment of its
own in `build/pythons/`, which the next run uses again. Versions that are not found are named, and are no failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from .wheel import ROOT, built

PLACES = ROOT / "build" / "pythons"
MARKS = "not slow and not spark"


def supported() -> list[str]:
    """The versions that the package says it supports, such as 3.11."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    versions = [line.rpartition(" :: ")[2] for line in said if line.startswith("Programming Language :: Python :: 3.")]
    return sorted(versions, key=lambda version: int(version.partition(".")[2]))


def find_python(version: str) -> str | None:
    """A Python of this version that can make environments: on the path, or one of pyenv's."""
    return next((python for python in _candidates(version) if _is_usable(python, version)), None)


def _candidates(version: str) -> Iterator[str]:
    found = shutil.which(f"python{version}")
    if found:
        yield found
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(home.glob(f"versions/{version}.*/bin/python"), reverse=True))


def _is_usable(python: str, version: str) -> bool:
    code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return ran.returncode == 0 and ran.stdout.strip() == version


def run_tests(version: str, python: str, wheel: Path, tests: list[str]) -> bool:
    """Whether the tests pass with the wheel on this Python."""
    place = PLACES / version
    own = place / "bin" / "python"
    if not own.exists():
        subprocess.run([python, "-m", "venv", str(place)], check=True)
    pip = [str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), f"{wheel}[dev,plot]"], check=True)
    subprocess.run([*pip, "--force-reinstall", "--no-deps", str(wheel)], check=True)  # this tree, not the last one
    command = [str(own), "-m", "pytest", "-n", "auto", "--dist", "worksteal", "-q", "-p", "no:cacheprovider"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([*command, "-m", MARKS, *(tests or ["tests"])], cwd=ROOT, env=environment).returncode == 0


def main(arguments: list[str]) -> int:
    known = supported()
    wanted = [one for one in arguments if one in known] or known
    tests = [one for one in arguments if one not in known]
    found = {version: find_python(version) for version in wanted}
    for version, python in found.items():
        print(f"{version}  {python or 'not found'}", flush=True)
    if not any(found.values()):
        return 1
    shutil.rmtree(PLACES / "dist", ignore_errors=True)
    wheel = built(PLACES / "dist")
    results = {version: run_tests(version, python, wheel, tests) for version, python in found.items() if python}
    for version in found:
        print(f"{version}  {'passed' if results.get(version) else 'FAILED' if version in results else 'not found'}")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

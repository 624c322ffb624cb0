"""Node, and the package built from clients/js."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "clients" / "js"


def run(*command: str, folder: Path = PACKAGE) -> str:
    """The output of a command. Its own complaints are the failure."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def package(install) -> Path:
    """The folder of the package, built from its present source."""
    install(lambda: shutil.which("node") and shutil.which("npm"), "nodejs", "npm")
    sources = [PACKAGE / name for name in ("package.json", "build.mjs", "tsconfig.json")]
    with (PACKAGE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process at a time
        installed = PACKAGE / "node_modules" / ".package-lock.json"
        if not installed.exists() or installed.stat().st_mtime < sources[0].stat().st_mtime:
            run("npm", "ci", "--no-audit", "--no-fund")
        newest = max(one.stat().st_mtime for one in [*sources, *(PACKAGE / "src").iterdir()])
        built = PACKAGE / "dist" / "all.d.ts"  # written last
        if not built.exists() or built.stat().st_mtime < newest:
            shutil.rmtree(PACKAGE / "dist", ignore_errors=True)
            run("npm", "run", "build")
    return PACKAGE

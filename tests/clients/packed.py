"""Puts the script that `npm run build` makes into the Python package: `python -m tests.clients.packed`.

Run it after every change of clients/js. Next to the script stand the hashes of what it is made from: a test fails
if one of them is another, so that nobody forgets.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "js"
PACKED = ROOT / "src" / "discreet" / "shuffle" / "channel" / "form"
SCRIPT = "discreet-reports.js"
SUMS = "discreet-reports.sha256"


def sums() -> str:
    """A line for the packed script and for every file that it is made from, as `sha256sum` writes them."""
    settings = ("build.mjs", "package-lock.json", "tsconfig.json")
    made_from = [*(CLIENT / "src").glob("*.ts"), *(CLIENT / name for name in settings)]
    files = {str(path.relative_to(CLIENT)): path for path in sorted(made_from)}
    files[f"dist/{SCRIPT}"] = PACKED / SCRIPT
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n" for name, path in files.items())


def main() -> None:
    """Build the script, and pack it."""
    for command in (["npm", "ci", "--no-audit", "--no-fund"], ["npm", "run", "build"]):  # only the locked versions
        subprocess.run(command, cwd=CLIENT, check=True)
    shutil.copyfile(CLIENT / "dist" / SCRIPT, PACKED / SCRIPT)
    (PACKED / SUMS).write_text(sums())


if __name__ == "__main__":
    main()

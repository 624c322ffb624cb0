"""The package as a user gets it: built, compared with the source, installed from the wheel alone, and with each extra.

`make wheel`, or `python -m tests.package.wheel [extra …]`: every extra gets an environment of its own in a folder that
is removed again, and does its part there. torch is left out, as its newest build brings gigabytes.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORKS = {
    "": """
import discreet as dp
assert dp.release(41, dp.Laplace(scale=2), sensitivity=1).guarantee.epsilon_at(delta=0) == 0.5
assert "Promise:" in dp.Laplace.__doc__ and dp.Ledger.open.__doc__.strip() and dp.table.__doc__.strip()
try:
    dp.learn
except dp.errors.MissingExtra as error:
    assert 'pip install "discreet[learn]"' in str(error)
else:
    raise AssertionError("there is no scikit-learn, and nobody says so")
""",
    "spark": """
import discreet as dp, pyspark.sql.connect.session
from discreet.engines.spark.engine import Spark
""",
    "postgres": """
import discreet as dp
try:
    dp.Ledger.open("postgresql://127.0.0.1:1/nobody", protects=dp.row(), limit=dp.Pure(epsilon=1))
except dp.errors.LedgerUnavailable:
    pass
""",
    "learn": """
import discreet as dp, numpy as np
model = dp.learn.LogisticRegression(classes=[0, 1], epsilon=1, delta=1e-6)
assert model.fit(np.eye(4), [0, 1, 0, 1]).coef_.shape == (1, 4)
""",
    "shuffle": """
import httpx, uvicorn
from discreet.shuffle.channel import client
from discreet.shuffle.channel.services import analyzer, issuer, shuffler
from importlib import resources
assert resources.files("discreet.shuffle.channel.form").joinpath("discreet-reports.js").is_file()
""",
    "gateway": """
import discreet as dp
from discreet.cli import main
assert "token" not in repr(dp.remote("http://127.0.0.1:1", token="token"))
main(["demo", "gateway", "--once"])  # ends the process, with 0 if all went well
""",
    "mcp": """
from discreet.gateway.desk import server
from discreet.gateway.desk.mcp import Agents, is_installed
assert is_installed() and Agents()
""",
    "browser": """
import discreet as dp, playwright.sync_api
assert dp.remote("http://127.0.0.1:1", token="token")
""",
    "plot": """
import discreet as dp
dp.risk(dp.Pure(epsilon=1)).plot("risk.png")
""",
    "docs": """
import mkdocstrings, zensical
""",
    "all": """
import discreet as dp, httpx, matplotlib, psycopg, pyspark, zensical
dp.learn.LogisticRegression
""",
}
"""What each installation must do; the first has no extra."""
LARGEST = 2_000_000
"""Bytes of the wheel. `hatch_build.py` says what it leaves out."""


def built(folder: Path) -> Path:
    """The wheel, made from the source distribution, as `python -m build` does."""
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def other_code(wheel: Path) -> list[str]:
    """The modules in which the wheel has other code than the source, or on other lines. There should be none."""
    source = ROOT / "src"
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if name.endswith(".py")}
        names |= {str(path.relative_to(source)) for path in source.rglob("*.py")}
        return sorted(
            name for name in names if code_of((source / name).read_text("utf-8")) != code_of(packed.read(name))
        )


def code_of(text: str | bytes) -> str:
    """What a module does, and on which lines: all but its comments and docstrings."""
    module = ast.parse(text)
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not is_text(statement)]
        for place in {"end_lineno", "end_col_offset", "col_offset"} & set(vars(node)):
            delattr(node, place)  # a body may end with a docstring, and is indented by tabs
    return ast.dump(module, include_attributes=True)


def is_text(statement: ast.stmt) -> bool:
    value = getattr(statement, "value", None)
    return isinstance(statement, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str)


def installed(wheel: Path, extra: str, place: Path) -> Path:
    """A Python that has the wheel with this extra, and nothing of this tree."""
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), wanted], check=True)
    return python


def main(extras: list[str]) -> int:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    if unknown := set(stated) - set(WORKS) - {"dev", "torch"}:
        print(f"no part is known for: {', '.join(sorted(unknown))}")
        return 1
    failed = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        wheel = built(folder / "dist")
        size = wheel.stat().st_size
        print(f"{wheel.name}: {size / 1e6:.2f} MB of at most {LARGEST / 1e6:.2f} MB", flush=True)
        if size > LARGEST:
            failed.append("the wheel is too large")
        if others := other_code(wheel):
            failed.append(f"the wheel has other code than the source: {', '.join(others)}")
            print(failed[-1], flush=True)
        for extra in extras or list(WORKS):
            place = folder / (extra or "core")
            python = installed(wheel, extra, place)
            command = [str(python), "-W", "error::SyntaxWarning", "-c", WORKS[extra]]
            runs = [command, [str(python.parent / "discreet"), "--version"]]
            ends = [subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False) for run in runs]
            wrong = [end.stderr for end in ends if end.returncode]
            print(f"{extra or 'no extra':10} {'works' if not wrong else 'FAILED: ' + wrong[0]}", flush=True)
            failed += wrong
            subprocess.run(["rm", "-rf", str(place)], check=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs the examples of the reference, and writes what they print into its pages.

`python docs/make/examples.py [api-stats …]` · A page is one Python session, in an empty folder. Noise is fresh, so
every run gives different numbers.
"""

from __future__ import annotations

import doctest
import io
import re
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import discreet as dp

FOLDER = Path(__file__).resolve().parents[1] / "reference"
BLOCK = re.compile(r"^```pycon\n(.*?)^```\n", flags=re.DOTALL | re.MULTILINE)


def sessions(page: str) -> str:
    """All that the examples of a page show: code and output."""
    return "\n".join(BLOCK.findall(page))


def shown(example: doctest.Example) -> str:
    """An example as it was typed."""
    first, *rest = example.source.rstrip("\n").split("\n")
    return "\n".join([f">>> {first}", *(f"... {line}".rstrip() for line in rest)])


def printed(example: doctest.Example, names: dict[str, Any]) -> str:
    """What an example prints. An error is shown if the page shows one, by its class and message."""
    output = io.StringIO()
    try:
        with redirect_stdout(output):
            exec(compile(example.source, "<example>", "single"), names)
    except dp.errors.DiscreetError as error:
        if example.exc_msg is None:
            raise
        said = " ".join(str(error).split())
        return f"Traceback (most recent call last):\n  ...\n{type(error).__module__}.{type(error).__qualname__}: {said}"
    return "\n".join(line.rstrip() for line in output.getvalue().rstrip().split("\n"))


def with_outputs(page: str) -> str:
    """The page with every example followed by what it prints, run in order in the current folder."""
    names: dict[str, Any] = {"dp": dp}

    def run(block: re.Match[str]) -> str:
        lines = []
        for part in doctest.DocTestParser().parse(block[1]):
            if isinstance(part, doctest.Example):
                lines += [shown(part), *filter(None, [printed(part, names)])]
        return "```pycon\n" + "\n".join(lines) + "\n```\n"

    return BLOCK.sub(run, page)


def main(chosen: list[str]) -> None:
    for path in sorted(FOLDER.glob("api-*.md")):
        if not chosen or path.stem in chosen:
            with tempfile.TemporaryDirectory() as folder, chdir(folder):
                page = with_outputs(path.read_text("utf-8"))
            path.write_text(page, encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Pages and notebooks of the stories in examples/stories: their text and code, with the output of the code.

`python docs/make/notebooks.py` runs every story, and writes its page, its executed notebook and its pictures into
`docs/stories`, which git ignores. `make docs` does so first. A cell that fails or warns fails the build.
"""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

STORIES = Path(__file__).resolve().parents[2] / "examples" / "stories"
FOLDER = Path(__file__).resolve().parents[1] / "stories"
"""Where the pages are written."""
WIDE = "---\nhide:\n  - toc\n---\n"
"""The head of a page: without the table of contents, lines of code and tables have room."""
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def stories() -> list[Path]:
    """The scripts, by name."""
    return sorted(STORIES.glob("*.py"))


# --- a script becomes a notebook ------------------------------------------------------------------------------


def cells_of(script: str) -> Iterator[tuple[str, str]]:
    """The cells of a script in percent format: each is "code" or "markdown", with its text."""
    for part in re.split(r"^# %%", script, flags=re.MULTILINE)[1:]:
        kind, _, text = part.partition("\n")
        if kind.strip() == "[markdown]":
            yield "markdown", re.sub(r"^# ?", "", text, flags=re.MULTILINE).strip()
        else:
            yield "code", text.strip()


def notebook_of(script: str) -> Any:
    """The notebook of a script, not executed."""
    new = {"code": new_code_cell, "markdown": new_markdown_cell}
    cells = [new[kind](text, id=f"cell-{place}") for place, (kind, text) in enumerate(cells_of(script), start=1)]
    return new_notebook(cells=cells, metadata={"kernelspec": KERNEL, "language_info": {"name": "python"}})


@cache
def executed(script: str) -> Any:
    """The notebook with the output of its cells, run from top to bottom in an empty folder that is removed."""
    from nbclient import NotebookClient
    from traitlets.config import Config

    notebook = notebook_of(script)
    with tempfile.TemporaryDirectory() as home:
        own = dict.fromkeys(("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"), home)
        with patch.dict(os.environ, own, MPLBACKEND="module://matplotlib_inline.backend_inline"):
            without_ports = Config({"KernelManager": {"transport": "ipc", "ip": f"{home}/kernel"}})
            NotebookClient(
                notebook,
                config=without_ports,
                resources={"metadata": {"path": home}},
                timeout=300,
                record_timing=False,
                coalesce_streams=True,
            ).execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.get("name") == "stderr":
                raise RuntimeError(f"A cell of a story warns:\n{output.text}\nIn:\n{cell.source}")
    return notebook


# --- a notebook becomes a page --------------------------------------------------------------------------------


def page_of(notebook: Any, name: str) -> tuple[str, dict[str, bytes]]:
    """The page of an executed notebook in Markdown, and its pictures by name."""
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                picture = f"{name}-{len(pictures) + 1}.png"
                pictures[picture] = base64.b64decode(data["image/png"])
                parts.append(f"![what the code above draws]({picture})")
            else:
                parts.append(f"```text\n{(output.get('text') or data['text/plain']).rstrip()}\n```")
    title, *rest = parts[0].split("\n", 1)
    where = f"*This page is a [notebook]({name}.ipynb) that was run when the site was built. As a script: "
    parts[0] = "\n".join([WIDE, title, "", where + f"`python examples/stories/{name}.py`.*", *rest])
    return "\n\n".join(parts) + "\n", pictures


# --- the files ------------------------------------------------------------------------------------------------


def write(story: Path, folder: Path) -> None:
    """Run a story, and write its page, its notebook and its pictures."""
    notebook = executed(story.read_text(encoding="utf-8"))
    page, pictures = page_of(notebook, story.stem)
    texts = {f"{story.stem}.md": page, f"{story.stem}.ipynb": nbformat.writes(notebook)}
    for name, content in ({name: text.encode() for name, text in texts.items()} | pictures).items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    for story in stories():
        write(story, FOLDER)
        print(FOLDER / f"{story.stem}.md")

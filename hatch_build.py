"""What the wheel leaves out, to stay below 2 MB: comments, docstrings that are not those of public names, and four
spaces where a tab says the same.

A docstring stays if it is that of a package, of a module that is directly in `discreet` or has an `__all__`, of a name
there, of such a class's bases, or of their public methods. Those of commands stay too, as they are their help. What is
left out becomes blank, so every line of code keeps its number. The source distribution has everything.
"""

from __future__ import annotations

import ast
import io
import shutil
import tempfile
import tokenize
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("src/discreet")
HELP = "cli"
"""The package whose docstrings are the help of commands."""
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class WithoutComments(BuildHookInterface):
    """Puts the modules into the wheel without what is left out. An editable installation has the files themselves."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        source, self.place = Path(self.root) / SOURCE, tempfile.mkdtemp()
        texts = {path.relative_to(source): path.read_text("utf-8") for path in sorted(source.rglob("*.py"))}
        public = public_names([ast.parse(text) for text in texts.values()])
        for path, text in texts.items():
            short = Path(self.place) / path
            short.parent.mkdir(parents=True, exist_ok=True)
            short.write_text(shortened(text, path, public), "utf-8")
            build_data["force_include"][str(short)] = str(SOURCE.name / path)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            shutil.rmtree(self.place)
            pack_tightly(Path(artifact_path))


def pack_tightly(wheel: Path) -> None:
    """The same files, compressed as well as zip can."""
    again = wheel.with_suffix(".again")
    with zipfile.ZipFile(wheel) as loose, zipfile.ZipFile(again, "w", zipfile.ZIP_DEFLATED) as tight:
        for file in loose.infolist():
            tight.writestr(file, loose.read(file), compresslevel=9)
    again.replace(wheel)


def public_names(modules: list[ast.Module]) -> set[str]:
    """The names in every `__all__`, and those of the bases of such classes."""
    nodes = [node for module in modules for node in ast.walk(module)]
    assigned = [node.value for node in nodes if lists_names(node)]
    found = {part.value for value in assigned for part in ast.walk(value) if isinstance(part, ast.Constant)}
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    more: set[str] = found
    while more:
        bases = {base for node in classes if node.name in more for base in node.bases}
        names = {base.value if isinstance(base, ast.Subscript) else base for base in bases}
        more = {ast.unparse(name).rpartition(".")[2] for name in names} - found
        found |= more
    return found


def lists_names(node: ast.AST) -> TypeGuard[ast.Assign]:
    """Whether this is the `__all__` of a module."""
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def shortened(text: str, path: Path, public: set[str]) -> str:
    """The text of a module without what is left out, line by line."""
    lines = text.split("\n")
    if path.parts[0] != HELP:
        module, near = ast.parse(text), len(path.parts) == 1 or path.name == "__init__.py"
        for docstring in left_out(module, near or any(map(lists_names, module.body)), public):
            blank(docstring, lines)
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
    return with_tabs("\n".join(lines))


def with_tabs(text: str) -> str:
    """The same module, indented by tabs. Lines that begin within a text are left as they are."""
    inside: set[int] = set()
    begun: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]  # Python 3.12 and newer read the parts of an f-string
        if kind == "FSTRING_START":
            begun.append(token.start[0])
        if kind in ("STRING", "FSTRING_END"):
            first = begun.pop() if kind == "FSTRING_END" else token.start[0]
            inside |= set(range(first + 1, token.end[0] + 1))
    lines = text.split("\n")
    for row, line in enumerate(lines, 1):
        if row not in inside:
            deep = (len(line) - len(line.lstrip(" "))) // 4
            lines[row - 1] = "\t" * deep + line[4 * deep :]
    return "\n".join(lines)


def left_out(module: ast.Module, is_public: bool, public: set[str]) -> Iterator[ast.stmt]:
    """Docstrings of what is not public, and strings below an assignment, which no program can read."""
    waiting: list[tuple[ast.AST, bool]] = [(module, is_public)]
    while waiting:
        node, is_public = waiting.pop()
        documented = isinstance(node, Documented) and ast.get_docstring(node) is not None
        for place, statement in enumerate(getattr(node, "body", ()) if isinstance(node, Documented) else ()):
            if _is_text(statement) and not (documented and is_public and place == 0):
                yield statement
        for child in ast.iter_child_nodes(node):
            name = getattr(child, "name", "") or ""  # None for an `except` without one
            inside = is_public and (not name.startswith("_") or name.startswith("__"))
            waiting.append((child, inside or (isinstance(node, ast.Module) and name in public)))


def _is_text(statement: ast.stmt) -> bool:
    value = getattr(statement, "value", None)
    return isinstance(statement, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str)


def blank(docstring: ast.stmt, lines: list[str]) -> None:
    """A dash in place of this text. It may be a whole body, and a dataclass without one writes one when imported."""
    first, last = docstring.lineno - 1, (docstring.end_lineno or 0) - 1
    lines[first : last + 1] = [" " * docstring.col_offset + '"-"', *[""] * (last - first)]

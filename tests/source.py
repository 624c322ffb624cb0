"""The source of the package, read and parsed once for all tests that walk through it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "discreet"
SOURCES = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))}
"""Every module of the package by its path, as text."""


@cache
def tree_of(source: str) -> ast.Module:
    """The syntax tree of a text."""
    return ast.parse(source)


@cache
def nodes_of(source: str) -> list[ast.AST]:
    """All nodes of a text."""
    return list(ast.walk(tree_of(source)))

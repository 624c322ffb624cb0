"""The source of the package, read and parsed once for all tests that walk through it."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "discreet"
SOURCES = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))}
"""Every module of the package by its path, as text."""


Nodes = list[ast.AST]
_PLAIN = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)


@cache
def nodes_of(source: str) -> Nodes:
    """All nodes of a text but those that say nothing by themselves: `Load`, `Add` and the like.

    A tree stays until the end, so no garbage is searched while it is made, or in it afterwards.
    """
    searches = gc.isenabled()
    gc.disable()
    try:
        return _walked(ast.parse(source))
    finally:
        gc.freeze()
        if searches:
            gc.enable()


def _walked(tree: ast.AST) -> Nodes:
    """As `ast.walk`, and twice as fast."""
    found = [tree]
    for node in found:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                found += [one for one in value if isinstance(one, ast.AST) and not isinstance(one, _PLAIN)]
            elif isinstance(value, ast.AST) and not isinstance(value, _PLAIN):
                found.append(value)
    return found


@cache
def nodes_like(source: str, *kinds: type[ast.AST]) -> Nodes:
    """The nodes of these kinds."""
    return [node for node in nodes_of(source) if isinstance(node, kinds)]

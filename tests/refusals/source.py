"""The source as a reader of refusals needs it: its functions one by one, and what their names stand for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

WORDS = ("what", "said", "instead")
"""How parameters are called that hold words of a refusal."""


@dataclass
class Scope:
    """One function, or what a module has outside of its functions, with the nodes that are in no inner function."""

    name: str
    function: ast.FunctionDef | None
    nodes: list[ast.AST]

    @cached_property
    def calls(self) -> list[ast.Call]:
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        return sorted(calls, key=lambda call: (call.lineno, call.col_offset))

    @cached_property
    def parameters(self) -> list[str]:
        if self.function is None:
            return []
        arguments = self.function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        return names[1:] if self.is_method else names

    @property
    def own_name(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def is_method(self) -> bool:
        return self.function is not None and [a.arg for a in self.function.args.args[:1]] == ["self"]

    @cached_property
    def defaults(self) -> dict[str, ast.expr]:
        if self.function is None:
            return {}
        arguments = self.function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        return dict(zip(reversed(names), reversed(arguments.defaults), strict=False))

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """What its names stand for."""
        found: dict[str, list[ast.expr]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found.setdefault(node.targets[0].id, []).append(node.value)
        return found

    @cached_property
    def returned(self) -> list[ast.expr]:
        found = [node.value for node in self.nodes if isinstance(node, ast.Return) and node.value is not None]
        return sorted(found, key=lambda value: value.lineno)

    @cached_property
    def error_types(self) -> set[str]:
        """Names that stand for a class of ours: those annotated as `type[DiscreetError]`."""
        annotated = [(a.arg, a.annotation) for a in (self.function.args.args if self.function else [])]
        annotated += [(name_of(node.target), node.annotation) for node in self.nodes if isinstance(node, ast.AnnAssign)]
        return {
            name
            for name, kind in annotated
            if isinstance(kind, ast.Subscript)
            and (name_of(kind.value), name_of(kind.slice)) == ("type", "DiscreetError")
        }

    def repeats(self, message: str) -> bool:
        """Whether a refusal of it holds words that its callers give."""
        return any(word in self.parameters and f"‹{word}›" in message for word in WORDS)


class Module:
    """One file of the source: its functions, its constants, its classes with their bases, and what it imports."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.scopes = sorted(_scopes(tree, "", None), key=lambda scope: scope.function.lineno if scope.function else 0)
        self.functions = {scope.function.name for scope in self.scopes if scope.function is not None}
        self.constants = {name: values[0] for name, values in self.scopes[0].assigned.items() if len(values) == 1}
        self.bases = {
            node.name: [name_of(base) for base in node.bases]
            for scope in self.scopes
            for node in scope.nodes
            if isinstance(node, ast.ClassDef)
        }
        self.imported = {
            alias.asname or alias.name: (node.module or "").removeprefix("discreet.")
            for scope in self.scopes
            for node in scope.nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }


def _scopes(tree: ast.AST, name: str, function: ast.FunctionDef | None) -> Iterator[Scope]:
    scope = Scope(name, function, [])
    inner: list[tuple[str, ast.FunctionDef]] = []
    rest = [(name, child) for child in ast.iter_child_nodes(tree)]
    for path, node in rest:  # it grows on the way
        if isinstance(node, ast.FunctionDef):
            inner.append((f"{path}.{node.name}".lstrip("."), node))
            continue
        scope.nodes.append(node)
        path = f"{path}.{node.name}".lstrip(".") if isinstance(node, ast.ClassDef) else path
        rest += [(path, child) for child in ast.iter_child_nodes(node)]
    yield scope
    for path, found in inner:
        yield from _scopes(found, path, found)


def name_of(node: ast.expr) -> str:
    """`Name` and `module.Name` as `Name`; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""

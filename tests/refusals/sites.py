"""Every place of the source that refuses, read off its syntax tree: where it is, which error, in which words.

A site is a call that builds one of our errors. A function that takes the words of its refusal as `what` or `said`
speaks for its callers: there each call of it is a site, with the words it gives.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .source import WORDS, Module, Scope, name_of

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "discreet"
POINTERS = ("pointed", "underlined", "_second")
"""What adds the line of a question in which the culprit is underlined."""
DEEPEST = 4
"""Names that stand for names are followed so far."""


@dataclass(frozen=True)
class Site:
    """One place that refuses. `message` has what is filled in by its name, as in ‹name›."""

    module: str
    function: str
    number: int
    kind: str
    message: str
    lines: tuple[int, int]
    column: int = 0

    @property
    def key(self) -> str:
        """Its name while only lines before it change: a record of other words is not of this site."""
        return f"{self.module}:{self.function}:{self.number} {self.message}"

    @property
    def shown(self) -> tuple[str, str, str]:
        """What the page shows of it."""
        return self.module, self.kind, self.message


@dataclass(frozen=True)
class Speaker:
    """A function whose callers give the words: its parameters, the error it builds, and the words around theirs."""

    parameters: tuple[str, ...]
    defaults: dict[str, ast.expr]
    kind: str
    message: str


class Reader:
    """Reads refusals, knowing the functions that speak for their callers."""

    def __init__(self, modules: list[Module]) -> None:
        self.modules = modules
        self.constants = {(module.name, name): value for module in modules for name, value in module.constants.items()}
        self.ours = {"DiscreetError"}
        bases = {name: names for module in modules for name, names in module.bases.items()}
        while new := {name for name, above in bases.items() if self.ours & set(above)} - self.ours:
            self.ours |= new
        self.speakers: dict[tuple[str, str], Speaker] = {}
        self.methods: dict[str, Speaker] = {}
        while self._learned():
            pass

    def sites(self) -> Iterator[Site]:
        for module in self.modules:
            for scope in module.scopes:
                spoken = self._spoken(module, scope)
                for number, (call, kind, message) in enumerate(self._refusals(module, scope), start=1):
                    if message not in spoken:
                        lines = call.lineno, call.end_lineno or call.lineno
                        yield Site(module.name, scope.name, number, kind, message, lines, call.col_offset)

    def _learned(self) -> bool:
        """Look for functions that speak for their callers; whether there is one that was not known."""
        known = len(self.speakers)
        for module in self.modules:
            for scope in module.scopes:
                for message, kind in self._spoken(module, scope).items():
                    speaker = Speaker(tuple(scope.parameters), scope.defaults, kind, message)
                    self.speakers[module.name, scope.own_name] = speaker
                    if scope.is_method:
                        self.methods[scope.own_name] = speaker
        return len(self.speakers) > known

    def _spoken(self, module: Module, scope: Scope) -> dict[str, str]:
        """The one refusal, with its kind, in which a function says the words of its callers; with several it has none:
        a call would not tell which.
        """
        found = {message: kind for _, kind, message in self._refusals(module, scope) if scope.repeats(message)}
        return found if len(found) == 1 else {}

    def _refusals(self, module: Module, scope: Scope) -> Iterator[tuple[ast.Call, str, str]]:
        """Each call that builds an error of ours, or has one built."""
        for call in scope.calls:
            name = name_of(call.func)
            if name in self.ours or name in scope.error_types:
                kind = name if name in self.ours else "DiscreetError" if name not in scope.parameters else f"‹{name}›"
                yield call, kind, self._words(call.args[0], module, scope) if call.args else ""
            elif (speaker := self._speaker(module, call.func)) is not None:
                yield call, *self._said(call, speaker, module, scope)

    def _speaker(self, module: Module, called: ast.expr) -> Speaker | None:
        match called:
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name) if name in module.functions:
                return self.speakers.get((module.name, name))
            case ast.Name(id=name):
                return self.speakers.get((module.imported.get(name, ""), name))
            case ast.Attribute(value=ast.Name(id=place), attr=name) if place in module.imported:
                return self.speakers.get((f"{module.imported[place]}.{place}", name))
            case ast.Attribute(attr=name):
                return self.methods.get(name)
            case _:
                return None

    def _said(self, call: ast.Call, speaker: Speaker, module: Module, scope: Scope) -> tuple[str, str]:
        """The kind and the words of the refusal that a speaker makes of this call."""
        given = speaker.defaults | dict(zip(speaker.parameters, call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        kind, message = speaker.kind, speaker.message
        for name, value in given.items():
            if name in WORDS:
                message = message.replace(f"‹{name}›", self._words(value, module, scope))
            if kind == f"‹{name}›":
                kind = name_of(value)
        return kind, message

    def _words(self, node: ast.expr, module: Module, scope: Scope, deep: int = 0) -> str:
        """The words of a message."""

        def words(inner: ast.expr) -> str:
            return self._words(inner, module, scope, deep + 1)

        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.JoinedStr(values=parts):
                return "".join(
                    part.value if isinstance(part, ast.Constant) else self._filled(part.value, module)  # type: ignore[attr-defined]
                    for part in parts
                )
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return words(left) + words(right)
            case ast.IfExp(body=body, orelse=other):
                return f"{words(body)} Or: {words(other)}"
            case ast.Name(id=name) if name in scope.assigned and deep < DEEPEST:
                return " Or: ".join(map(words, scope.assigned[name]))
            case ast.Name(id=name) if (known := self._constant(name, module)) is not None:
                return words(known)
            case ast.Call(func=called) if name_of(called).endswith("refusal"):
                return self._put_together(name_of(called), module)
            case _:
                return self._filled(node, module)

    def _put_together(self, name: str, module: Module) -> str:
        """What a function says, in one way or another, that puts the words of a refusal together."""
        for place in (module, *self.modules):
            for scope in place.scopes:
                if scope.function is not None and scope.function.name == name:
                    return " Or: ".join(self._words(value, place, scope) for value in scope.returned)
        return f"‹{name}›"

    def _filled(self, node: ast.expr, module: Module) -> str:
        """What is filled in: a constant as it is, other things by their name."""
        match node:
            case ast.Call(func=called) if name_of(called) in POINTERS:
                return ""
            case ast.Attribute(value=ast.Call(func=ast.Name(id="type")), attr="__name__"):
                return "‹type›"
            case ast.Call(func=ast.Name(id="len")):
                return "‹number›"
            case ast.Call(func=ast.Attribute(value=text, attr="upper" | "replace" | "strip")):
                return self._filled(text, module)
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=key), *_]):
                return f"‹{key}›"
            case ast.Call(func=ast.Name(id="map"), args=[_, inner]) | ast.Call(args=[inner, *_]):
                return self._filled(inner, module)
            case ast.Constant(value=value):
                return f"{value:,}" if isinstance(value, int) else str(value)
            case ast.BinOp(left=ast.Constant(value=int(base)), op=ast.Pow(), right=ast.Constant(value=int(power))):
                return f"{base**power:,}"
            case ast.Name(id=name) if isinstance(known := self._constant(name, module), ast.Constant | ast.BinOp):
                return self._filled(known, module)
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return f"‹{name.strip('_').replace('_', ' ').lower()}›"
            case ast.Call(func=ast.Attribute(value=inner)) | ast.Subscript(value=inner) | ast.BinOp(left=inner):
                return self._filled(inner, module)
            case ast.BoolOp(values=[inner, *_]) | ast.IfExp(body=inner) | ast.GeneratorExp(elt=inner):
                return self._filled(inner, module)
            case _:
                return "…"

    def _constant(self, name: str, module: Module) -> ast.expr | None:
        """What a name of the module stands for, its own or one that it imports."""
        own = module.constants.get(name)
        return self.constants.get((module.imported.get(name, ""), name)) if own is None else own


def sites(source: Path = SOURCE) -> list[Site]:
    """Every refusal of the source."""
    paths = sorted(source.rglob("*.py"))
    names = [".".join(path.relative_to(source).with_suffix("").parts) for path in paths]
    trees = [ast.parse(path.read_text("utf-8")) for path in paths]
    return list(Reader(list(map(Module, names, trees))).sites())

"""How docstrings are read for the reference: contracts set apart, examples as code, docstrings inherited from bases."""

from __future__ import annotations

import re

import griffe

_PART = re.compile(r"(?<=[\s.])(Promise|Error|Source|Proof): ")
_EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n(?!>>>)|\Z)", flags=re.DOTALL | re.MULTILINE)


def as_markdown(docstring: str) -> str:
    """A docstring of the house as Markdown."""
    with_parts = _PART.sub(r"\n\n**\1:** ", docstring)
    return _EXAMPLE.sub(r"```pycon\n\g<0>\n```", with_parts)


def inherit(cls: griffe.Class) -> None:
    """Give each member without a docstring that of the first base that has one."""
    for name, member in cls.members.items():
        if member.is_alias or member.docstring is not None or name.startswith("_"):
            continue
        found = [base.members[name].docstring for base in cls.mro() if name in base.members]
        member.docstring = next(filter(None, found), None)


class Docstrings(griffe.Extension):
    """Runs once over the package, after it was read and before it is shown."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **kwargs: object) -> None:
        """Rewrite every docstring of the package, bases included."""
        self._rewrite(pkg)
        self._inherit(pkg)

    def _rewrite(self, thing: griffe.Object) -> None:
        if thing.docstring is not None:
            thing.docstring.value = as_markdown(thing.docstring.value)
        for member in thing.members.values():
            if isinstance(member, griffe.Object):
                self._rewrite(member)

    def _inherit(self, thing: griffe.Object) -> None:
        if isinstance(thing, griffe.Class):
            inherit(thing)
        for member in thing.members.values():
            if isinstance(member, griffe.Object):
                self._inherit(member)

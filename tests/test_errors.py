"""Codes of errors: each is explained, each is used, and every error that we raise has one.

Every checker is a plain function over source text, so that each can be shown to catch an offender.
"""

from __future__ import annotations

import ast
import importlib.util
import pickle
import re
from types import ModuleType

import pytest

from discreet import errors
from discreet.error_codes import CODES, SECTIONS
from discreet.errors import BudgetExhausted, DiscreetError, InvalidArgument, MissingExtra, NotAllowed, QueryError

from .refusing import refuses
from .source import ROOT, SOURCES, nodes_of

NEEDS_CODE = ("InvalidArgument", "QueryError", "NotAllowed")
KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


MODULES = {name: source for name, source in SOURCES.items() if not name.startswith("error_codes/")}
"""Every module outside of the tables."""


def classes() -> list[type[DiscreetError]]:
    return [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, DiscreetError)]


# --- every error names a code ----------------------------------------------------------------------------


def without_code(source: str) -> list[int]:
    """Lines that make an error of a general class and name no code."""
    return [
        node.lineno
        for node in nodes_of(source)
        if isinstance(node, ast.Call)
        and _last_name(node.func) in NEEDS_CODE
        and not any(word.arg == "code" for word in node.keywords)
    ]


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def test_every_error_of_a_general_class_names_a_code() -> None:
    offenders = [f"{name}:{line}" for name, source in MODULES.items() for line in without_code(source)]
    assert not offenders, "add code=… to these errors, and explain it in src/discreet/error_codes"


@pytest.mark.parametrize(
    "source",
    [
        "raise InvalidArgument('no')",
        "def no():\n    return errors.NotAllowed('no')",
        "raise QueryError('no') from None",
    ],
)
def test_an_error_without_a_code_is_caught(source: str) -> None:
    assert without_code(source)
    assert not without_code(source.replace("'no')", "'no', code='out-of-range')"))


# --- the codes that are used are those that are explained -------------------------------------------------


def used(source: str) -> set[str]:
    """Codes that a module names: `code="…"` in a call, the default of a parameter `code`, or a class's own."""
    found: set[str] = set()
    for node in nodes_of(source):
        match node:
            case ast.keyword(arg="code", value=value):
                found |= _texts(value)
            case ast.Assign(targets=[ast.Name(id="code")], value=value):
                found |= _texts(value)
            case ast.AnnAssign(target=ast.Name(id="code"), value=ast.expr() as value):
                found |= _texts(value)
            case ast.arguments():
                found |= _defaults(node)
    return found


def _defaults(signature: ast.arguments) -> set[str]:
    plain = [*signature.posonlyargs, *signature.args][::-1]
    pairs = [
        *zip(plain, signature.defaults[::-1], strict=False),
        *zip(signature.kwonlyargs, signature.kw_defaults, strict=True),
    ]
    return {text for name, default in pairs if name.arg == "code" and default for text in _texts(default)}


def _texts(value: ast.expr) -> set[str]:
    """The texts that an expression may have: of `"a" if x > "b" else "c"`, a and c."""
    match value:
        case ast.Constant(value=str() as text):
            return {text}
        case ast.IfExp(body=body, orelse=orelse):
            return _texts(body) | _texts(orelse)
    return set()


def test_every_code_that_is_used_is_explained_and_the_other_way_around() -> None:
    everywhere = {code: name for name, source in MODULES.items() for code in used(source)}
    unexplained = {code: name for code, name in everywhere.items() if code not in CODES}
    assert not unexplained, "explain these in src/discreet/error_codes"
    assert not set(CODES) - set(everywhere), "no error has these codes: remove them from the table"


def test_codes_are_found_wherever_they_are_named() -> None:
    source = """
class Wrong(InvalidArgument):
    code = "of-a-class"
def refuse(text, code="of-a-default", *, more=None):
    raise NotAllowed(text, code=code)
def other(*, code: str = "of-a-keyword"):
    raise NotAllowed("…", code="if-so" if code == "nothing" else "if-not")
"""
    assert used(source) == {"of-a-class", "of-a-default", "of-a-keyword", "if-so", "if-not"}
    assert used("ask(what='text', status=404)") == set()


# --- the table --------------------------------------------------------------------------------------------


def test_codes_are_in_kebab_case() -> None:
    assert all(KEBAB.fullmatch(code) for code in CODES), [code for code in CODES if not KEBAB.fullmatch(code)]


@pytest.mark.parametrize("code", ["Out-Of-Range", "out_of_range", "out-of-", "-range", "out range", "", "3-things"])
def test_what_is_not_in_kebab_case_is_caught(code: str) -> None:
    assert not KEBAB.fullmatch(code)


def test_a_code_stands_in_one_section() -> None:
    assert len(CODES) == sum(len(rows) for rows in SECTIONS.values())


def test_every_row_is_filled_in() -> None:
    empty = [code for code, row in CODES.items() if not all(text.strip() and "\n" not in text for text in row)]
    assert not empty


def test_the_code_of_every_class_is_explained() -> None:
    assert {one.code for one in classes()} <= set(CODES)
    assert len({one.code for one in classes()}) == len(classes())


def maker() -> ModuleType:
    """docs/make/errors.py, which is not part of the package."""
    spec = importlib.util.spec_from_file_location("make_errors", ROOT / "docs" / "make" / "errors.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_tables_make() -> None:
    made = maker()
    assert made.PAGE.read_text("utf-8") == made.page(), "run python docs/make/errors.py"


def test_another_page_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    made = maker()
    before = made.page()
    monkeypatch.setitem(SECTIONS["Any argument"], "another-code", CODES["empty"])
    assert made.page() != before


# --- an error and its code --------------------------------------------------------------------------------


def test_a_code_overrides_that_of_the_class() -> None:
    assert InvalidArgument("…").code == "invalid-argument"
    assert InvalidArgument("…", code="out-of-range").code == "out-of-range"
    assert InvalidArgument.code == "invalid-argument"


@pytest.mark.parametrize("kind", classes())
def test_an_error_keeps_its_code_when_it_is_pickled(kind: type[DiscreetError]) -> None:
    for error in (kind("What is wrong."), kind("What is wrong.", code="out-of-range")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.code) == (kind, "What is wrong.", error.code)


def test_classes_that_python_knows_too() -> None:
    assert issubclass(InvalidArgument, ValueError)
    assert issubclass(QueryError, InvalidArgument)
    assert issubclass(MissingExtra, ImportError)
    assert BudgetExhausted("…", remaining=3).remaining == 3


def test_refuses_accepts_the_code_and_rejects_another_code_class_or_silence() -> None:
    with refuses(InvalidArgument, "sql-unreadable") as found:
        raise QueryError("no query")
    assert str(found.value) == "no query"
    with pytest.raises(AssertionError), refuses(InvalidArgument, "out-of-range"):
        raise InvalidArgument("…", code="not-whole")
    with pytest.raises(NotAllowed), refuses(InvalidArgument, "not-allowed"):
        raise NotAllowed("…")
    with pytest.raises(pytest.fail.Exception), refuses(InvalidArgument, "out-of-range"):
        pass

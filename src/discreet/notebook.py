"""The `%%discreet` magic: a cell of SQL in a notebook. `%load_ext discreet` loads it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, Protocol

from discreet.datasets.connect import connect
from discreet.datasets.database import Database
from discreet.datasets.description import asks_for_tables, shown_tables
from discreet.datasets.discovery import find_policy
from discreet.errors import InvalidArgument


class Shell(Protocol):
    """What is used of IPython's shell."""

    user_ns: dict[str, Any]
    magics_manager: Any

    def register_magic_function(self, func: Callable[..., Any], magic_kind: str, magic_name: str) -> None:
        """Make a function known as a magic."""


def load_ipython_extension(shell: Shell) -> None:
    """Called by `%load_ext discreet`."""
    shell.register_magic_function(Magic(shell), "line_cell", "discreet")


def unload_ipython_extension(shell: Shell) -> None:
    """Called by `%unload_ext discreet`: closes what the magic opened."""
    for kind in ("line", "cell"):
        if isinstance(magic := shell.magics_manager.magics[kind].pop("discreet", None), Magic):
            magic.close()


class Magic:
    """Answers a cell of SQL:

    %%discreet clinic.toml --epsilon 0.5 --out answer
    SELECT city, COUNT(*) AS visits FROM visits GROUP BY city

    The policy is a file, or a variable that is a database. Files stay open, so that a cell that runs again gets the
    same answer, for free. As a line, `%discreet clinic.toml` shows what may be asked.
    """

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._opened: dict[tuple[Path, str | None], tuple[str, Database]] = {}
        self.__doc__ = f"{type(self).__doc__}\n\n{_options().format_help()}"

    def __call__(self, line: str, cell: str | None = None) -> Any:
        asked = vars(_options().parse_args(_words(line)))
        policy, analyst, out, explain = (asked.pop(name) for name in ("policy", "analyst", "out", "explain"))
        database = self._database(policy, analyst)
        if cell is None:
            return database
        if asks_for_tables(cell):
            return shown_tables(cell, database.tables)
        for name in ("within", "weights"):
            asked[name] = dict(asked[name]) if asked[name] else None
        found = database.explain(cell, **_known(asked)) if explain else database.sql(cell, **_known(asked))
        if out is not None:
            self._shell.user_ns[out] = found
        return found

    def close(self) -> None:
        """Close the databases that were opened from files."""
        while self._opened:
            _, (_, database) = self._opened.popitem()
            database.close()

    def _database(self, policy: str | None, analyst: str | None) -> Database:
        """The database that a variable holds, or that a policy file describes."""
        held = None if policy is None else self._shell.user_ns.get(policy)
        if isinstance(held, Database):
            if analyst is not None:
                raise InvalidArgument(
                    f"{policy} is open already. Name the analyst there: dp.connect(…, analyst={analyst!r}).",
                    code="magic-options",
                )
            return held
        named = find_policy() if policy is None else policy
        path = Path(named).expanduser().absolute()
        text = path.read_text("utf-8", errors="replace") if path.is_file() else ""
        known = self._opened.get((path, analyst))
        if known is not None and known[0] == text:
            return known[1]
        opened = connect(named, analyst=analyst)
        if known is not None:
            known[1].close()
        self._opened[path, analyst] = text, opened
        return opened


def _known(asked: dict[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in asked.items() if value is not None}


class _Options(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidArgument(f"{message[:1].upper()}{message[1:]}. Write {_EXAMPLE}.", code="magic-options")


_EXAMPLE = "%%discreet clinic.toml --epsilon 0.5"


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        raise InvalidArgument(
            f"A quotation mark is not closed. Close it, or write {_EXAMPLE}.", code="magic-options"
        ) from None


def _options() -> argparse.ArgumentParser:
    parser = _Options(prog="%%discreet", add_help=False, exit_on_error=True, allow_abbrev=False)
    parser.add_argument(
        "policy",
        nargs="?",
        help="a policy (*.toml), or a variable that holds a database; by default $DISCREET_POLICY, or discreet.toml",
    )
    parser.add_argument("--epsilon", type=float, help="what the whole answer may cost")
    parser.add_argument("--delta", type=float, help="the δ it may use")
    parser.add_argument(
        "--within", type=_pair, action="append", metavar="COLUMN=ERROR", help="how wrong a column may be"
    )
    parser.add_argument(
        "--weight", type=_pair, action="append", dest="weights", metavar="COLUMN=WEIGHT", help="a larger share of ε"
    )
    parser.add_argument("--confidence", type=float, help="how sure --within is")
    parser.add_argument("--analyst", help="who asks: charged to their own account, too")
    parser.add_argument("--out", type=_name, help="the variable that gets the answer")
    parser.add_argument("--explain", action="store_true", help="explain instead of answering; spends nothing")
    return parser


def _pair(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        amount = float(number)
    except ValueError:
        name = ""
    if not name.strip():
        raise argparse.ArgumentTypeError("a column and a number are needed, such as visits=50")
    return name.strip(), amount


def _name(text: str) -> str:
    if not text.isidentifier():
        raise argparse.ArgumentTypeError("the name of a variable is needed, such as answer")
    return text

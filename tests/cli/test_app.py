"""The command line says one clear line and exits with a status a script can act on."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import discreet
from discreet.cli import main
from discreet.errors import BudgetExhausted, DiscreetError, EntropyUnavailable, InvalidArgument


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    code = exit_info.value.code
    return code if isinstance(code, int) else 0


@pytest.fixture
def audit_raises(monkeypatch: pytest.MonkeyPatch):
    """Replace the audit command by one that raises the error given to it."""

    def replace(error: Exception) -> None:
        def fail(*_: object, **__: object) -> None:
            raise error

        command = ModuleType("discreet.audit.command")
        command.main = fail
        package = ModuleType("discreet.audit")
        package.command = command
        monkeypatch.setitem(sys.modules, "discreet.audit", package)
        monkeypatch.setitem(sys.modules, "discreet.audit.command", command)

    return replace


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"discreet {discreet.__version__}\n"


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    shown = capsys.readouterr().out
    assert all(command in shown for command in ("demo", "audit", "reproduce"))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidArgument("epsilon must be positive.\nGive a number above 0."), 2),
        (DiscreetError("something else"), 2),
        (BudgetExhausted("the limit would be passed"), 4),
        (EntropyUnavailable("no random bytes"), 1),
    ],
)
def test_our_errors_are_one_line_and_a_status(
    error: DiscreetError, status: int, audit_raises, capsys: pytest.CaptureFixture[str]
) -> None:
    audit_raises(error)
    assert run("audit", "laplace") == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"discreet: {' '.join(str(error).split())}\n"


def test_a_bug_is_not_dressed_up_as_a_bad_argument(audit_raises) -> None:
    audit_raises(RuntimeError("a bug"))
    with pytest.raises(RuntimeError, match="a bug"):
        main(["audit", "laplace"])


@pytest.mark.parametrize("arguments", [("nonsense",), ("audit",), ("audit", "laplace", "--epsilon", "one")])
def test_bad_usage_is_status_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    assert capsys.readouterr().err

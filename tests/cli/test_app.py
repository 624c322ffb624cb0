"""The command line says one clear line and exits with a status a script can act on."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import discreet
from discreet.cli import main
from discreet.cli.app import app
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

        monkeypatch.setattr("discreet.cli.audit.main", fail)

    return replace


@pytest.mark.slow
def test_python_runs_the_package_as_the_command() -> None:
    run = [sys.executable, "-m", "discreet", "--version"]
    assert (
        subprocess.run(run, capture_output=True, text=True, check=True).stdout == f"discreet {discreet.__version__}\n"
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"discreet {discreet.__version__}\n"


# --- help -------------------------------------------------------------------------------------------------


def commands(group: Any, *names: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it, groups included."""
    yield names, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, *names, name)


EVERY = dict(commands(typer.main.get_command(app)))
every_command = pytest.mark.parametrize("names", EVERY, ids=lambda names: " ".join(names) or "discreet")


def examples(text: str) -> list[list[str]]:
    """The commands of ours among the examples of a help text, as words."""
    joined = re.sub(r"\\?\n {3,}", " ", text)
    lines = [line.strip() for line in joined.splitlines()]
    found = [line[2:] for line in lines if line.startswith("$ discreet ")]
    found += re.findall(r"Example: (discreet [^.]+(?:\.\w+)*)", joined)
    return [shlex.split(re.split(r" [>&]", line)[0])[1:] for line in found]


def without_policy(words: list[str]) -> list[str]:
    """The words of an example without a policy that stands before the command, as in `account clinic.toml list`."""
    return [word for place, word in enumerate(words) if place != 1 or words[0] != "account" or word[-5:] != ".toml"]


def test_examples_are_found() -> None:
    text = 'Ask.\n\nExamples:\n  $ discreet a "b\n    c" --d \\\n    --e 1 > f\n  $ discreet g &\n\nMore.'
    assert examples(text) == [["a", "b c", "--d", "--e", "1"], ["g"]]


@every_command
def test_every_help_says_what_the_command_does_and_has_an_example_of_it(
    names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*names, "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"Examples?: (\$ )?" + r"( \S+\.toml)? ".join(("discreet", *names)), shown)
    assert any(without_policy(example)[: len(names)] == list(names) for example in examples(EVERY[names].help))


@every_command
def test_every_option_and_argument_is_explained(names: tuple[str, ...]) -> None:
    for parameter in EVERY[names].params:
        assert parameter.help, parameter.name
        assert parameter.help.rstrip(")").endswith("."), parameter.help


@every_command
def test_every_example_is_accepted(names: tuple[str, ...]) -> None:
    for words in examples(EVERY[names].help):
        called: Any = EVERY[()]
        words = without_policy(words)
        while hasattr(called, "commands"):
            called = called.commands[words.pop(0)]
        called.make_context("discreet", words)


@every_command
def test_lines_of_examples_fit_a_terminal(names: tuple[str, ...]) -> None:
    assert [line for line in EVERY[names].help.splitlines() if line.startswith("  ") and len(line) > 77] == []


def test_commands_stand_under_those_who_use_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    shown = capsys.readouterr().out
    for panel, name in (
        ("Start here", "demo"),
        ("For the owner of the data", "init"),
        ("For analysts", "query"),
        ("For proof", "audit"),
        ("For polls without a trusted collector", "shuffle"),
    ):
        assert re.search(rf"─ {panel} ─[^╰]*│ {name}\b", shown), panel
    listed = shown.partition("─ Start here")[2]
    assert all(re.search(rf"^│ {name}\b", listed, re.MULTILINE) for (name, *more) in list(EVERY)[1:] if not more)


def test_help_says_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    codes = capsys.readouterr().out.partition("Exit codes:")[2]
    assert re.findall(r"^ +(\d)  \w", codes, re.MULTILINE) == ["0", "1", "2", "3", "4"]


@pytest.mark.slow
def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom discreet.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)\n"
        "print([name for name in sys.modules if name.startswith(('discreet.demo', 'discreet.audit'))], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages, ours = map(eval, done.stderr.splitlines())
    assert "numpy" in packages
    assert not {"duckdb", "matplotlib", "pandas", "pyarrow", "sklearn", "sqlglot", "torch"} & set(packages)
    assert ours == []


def test_a_traceback_never_shows_local_values() -> None:
    assert app.pretty_exceptions_enable is False


# --- completion -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shell", "word"), [("bash", "complete -o"), ("zsh", "compdef"), ("fish", "--command")])
def test_the_completion_script_is_printed(
    shell: str, word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, shell))
    assert run("--show-completion") == 0
    script = capsys.readouterr().out
    assert f"_DISCREET_COMPLETE=complete_{shell}" in script
    assert word in script


@pytest.fixture
def complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """What bash is offered after the words, in a folder with a policy, a poll and a ledger."""
    monkeypatch.chdir(tmp_path)
    Path("clinic.ledger").touch()
    Path("clinic.toml").write_text(
        "[tables.people]\nsource = 'people.csv'\n[tables.places]\nsource = 'places.csv'\n[tables.cities]\n"
    )
    Path("poll.toml").write_text("[protocol]\nchoices = ['tea', 'table water', 'coffee']\n")
    Path("broken.toml").write_text("[tables")
    Path("notes.txt").touch()

    def offered(*words: str) -> list[str]:
        monkeypatch.setenv("_DISCREET_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", "\n".join(("discreet", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        run()
        return capsys.readouterr().out.split("\n")[:-1]

    return offered


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        (("au",), ["audit"]),
        (("demo", ""), ["sql", "learning", "density", "shuffle", "adaptive", "gateway"]),
        (("audit", "perm"), ["permute_and_flip"]),
        (("audit", "mod"), ["model"]),
        (("audit", "model", "Log"), ["LogisticRegression"]),
        (("audit", "laplace", "Log"), [""]),
        (("query", "cl"), ["clinic.toml"]),
        (("ledger", "cl"), ["clinic.ledger", "clinic.toml"]),
        (("query", "no"), [""]),  # the shell goes on with all files
        (("sanitize", "clinic.toml", "p"), ["people", "places"]),
        (("sanitize", "broken.toml", "p"), [""]),
        (("sanitize", "missing.toml", "p"), [""]),
        (("shuffle", "report", "poll.toml", "t"), ["tea", "table water"]),
        (("shuffle", "report", "clinic.toml", "t"), [""]),
        (("shuffle", "close", "po"), ["poll.toml"]),
    ],
)
def test_the_shell_completes_names_that_are_known(complete, words: tuple[str, ...], offers: list[str]) -> None:
    assert complete(*words) == offers


# --- errors -----------------------------------------------------------------------------------------------


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
    assert captured.err == f"error [{error.code}]: {' '.join(str(error).split())}\n"


def test_a_bug_is_not_dressed_up_as_a_bad_argument(audit_raises) -> None:
    audit_raises(RuntimeError("a bug"))
    with pytest.raises(RuntimeError, match="a bug"):
        main(["audit", "laplace"])


@pytest.mark.parametrize("arguments", [("nonsense",), ("audit",), ("audit", "laplace", "--epsilon", "one")])
def test_bad_usage_is_status_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    assert capsys.readouterr().err

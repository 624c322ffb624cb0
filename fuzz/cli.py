"""Command lines, with real files: data, a policy, a ledger, a poll; and files that are empty, binary, folders or gone.

Whatever the words are, the command ends with a status from 0 to 4. It prints no traceback. An error of ours is one
line, but for what is wrong with a question, which is underlined in two more; and no value of the data is in it.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from hypothesis import strategies as st

import discreet as dp
from discreet.cli.app import main
from discreet.shuffle.channel import client
from discreet.shuffle.channel.services import service
from fuzz.changes import NUMBERS_AS_TEXT, ODD_TEXTS, picked, text_changes
from fuzz.oracle import CANARY, Broken, foreign, within
from fuzz.sql import WORDS as SQL_WORDS

SECONDS = 60
"""Plans of a study and searches for noise take some seconds by themselves."""
POLICY = """
[ledger]
path = "clinic.ledger"
epsilon = 10.0
delta = 1e-5
[unit]
person = "patient_id"
[tables.visits]
source = "visits.parquet"
rows_per_person = 3
groups_per_person = 2
[tables.visits.columns.cost]
between = [0, 100]
[tables.visits.columns.city]
choices = ["Haifa", "Ljubljana"]
[tables.cities]
source = "cities.csv"
public = true
"""
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT city, COUNT(*) AS n, AVG(cost) AS cost FROM visits JOIN cities USING (city) GROUP BY city",
    "SELECT note, COUNT(*) FROM visits GROUP BY note",
    "SELECT MEDIAN(cost) AS n FROM visits WHERE age > 18",
    "SELECT * FROM visits",
    "SELECT nothing FROM nowhere",
)
_FILES = """
clinic.toml visits.parquet visits.csv cities.csv clinic.ledger clinic.ledger.checkpoint poll.toml poll.shuffler.key
poll.analyzer.key empty empty.toml empty.parquet empty.csv binary binary.toml binary.parquet binary.csv binary.ledger
folder folder.toml folder.parquet missing missing.toml missing.ledger new/x.toml out.png out.svg out.pdf out.csv
out.parquet out.txt new.toml . .. ./clinic.toml :memory: postgresql://127.0.0.1:1/x postgres:// http://x -
"""
FILES = tuple(_FILES.split())
SMALL = st.sampled_from(("0", "-1", "1", "2", "10", "100", "1000", "nan", "x", "", "1.5", "1e2"))
"""For how much work is to be done: what is asked for is done, so it is not much."""
NO_ERRORS = ("Usage: ", "╭─ Error", "The record is whole: ")
"""Typer's own words, and what is told beside data that goes to stdout."""


class Cli:
    """A folder as people have it, made anew for every command line."""

    def __init__(self, folder: Path) -> None:
        self.template, self.folder, self.before = folder / "template", folder / "here", Path.cwd()
        self.template.mkdir()
        _make_files(self.template)
        self.seeds: list[list[str]] = [
            ["query", "clinic.toml", QUESTIONS[1], "--epsilon", "0.5", "--format", "json"],
            ["query", "clinic.toml", QUESTIONS[0], "--within", "n=50", "--plot", "out.png"],
            ["explain", "clinic.toml", QUESTIONS[3], "--epsilon", "1"],
            ["ledger", "clinic.toml", "--verify"],
            ["ledger", "clinic.ledger", "--export", "csv"],
            ["init", "visits.parquet", "cities.csv", "--out", "new.toml"],
            ["sanitize", "clinic.toml", "visits", "--epsilon", "1", "--out", "out.csv"],
            ["audit", "laplace", "--samples", "1000"],
            ["shuffle", "init", "new.toml", "--choices", "a,b", "--clients", "1000"],
            ["shuffle", "tokens", "poll.toml", "2"],
            ["shuffle", "report", "poll.toml", "a", "--token", "00"],
            ["shuffle", "close", "poll.toml"],
            ["--version"],
        ]
        self.patched = client.TRIES, service.serve
        client.TRIES, service.serve = 1, lambda *given: None  # type: ignore[assignment]

    def inputs(self) -> st.SearchStrategy[list[str]]:
        """Commands by their grammar, and known ones with words changed."""
        return st.one_of(*[_commands()] * 3, _changed(tuple(map(tuple, self.seeds))))

    def check(self, one: list[str]) -> str:
        """Run it in a fresh folder."""
        os.chdir(self.template)
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.template, self.folder)
        os.chdir(self.folder)
        with contextlib.closing(dp.connect("clinic.toml")) as clinic:
            clinic.sql(QUESTIONS[0], epsilon=0.1)
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        status: Any = 0
        with within(SECONDS), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(one)
            except SystemExit as end:
                status = end.code or 0
            except Exception as error:
                raise foreign(error) from error
        said, wrong = (_written(stream) for stream in (out, err))
        self._check(one, status, said, wrong)
        return f"{' '.join(word for word in one[:2] if word.isalpha())} {status}: {_plain(wrong)}"

    def _check(self, one: list[str], status: Any, said: str, wrong: str) -> None:
        if status not in (0, 1, 2, 3, 4):
            raise Broken(f"the status {status!r}", wrong)
        if "Traceback" in said + wrong or ("Error:" in wrong and 'File "' in wrong):
            raise Broken("a traceback", wrong[-500:])
        asked = "\n".join(one)
        if CANARY in wrong and CANARY not in asked:
            raise Broken("an error says a value of the data", wrong)
        if wrong.startswith("error ["):
            underlined = wrong.count("\n  ") == 2 and wrong.rstrip().endswith("^")
            if wrong.rstrip("\n").count("\n") > (2 if underlined else 0):
                raise Broken("an error of several lines", wrong)
        elif wrong.strip() and not wrong.startswith(NO_ERRORS):
            raise Broken("an error in other words than ours", wrong[-300:])
        elif status and not (said + wrong).strip():
            raise Broken(f"the status {status} without a word of ours")

    def close(self) -> None:
        """Go back to where we were."""
        os.chdir(self.before)
        client.TRIES, service.serve = self.patched


def _plain(wrong: str) -> str:
    """The first words of an error."""
    return " ".join(word for word in wrong.split() if word.isalpha())[:80]


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined, no-any-return]


def _make_files(folder: Path) -> None:
    rows = range(300)
    visits = {
        "patient_id": [row % 100 for row in rows],
        "age": [18 + row % 80 for row in rows],
        "cost": [float(row % 100) for row in rows],
        "city": ["Haifa" if row % 2 else "Ljubljana" for row in rows],
        "note": [f"{CANARY} {row}" for row in rows],
    }
    pyarrow.parquet.write_table(pa.table(visits), folder / "visits.parquet")
    pyarrow.csv.write_csv(pa.table(visits), folder / "visits.csv")
    pyarrow.csv.write_csv(pa.table({"city": ["Haifa", "Ljubljana"], "country": ["x", "y"]}), folder / "cities.csv")
    (folder / "clinic.toml").write_text(POLICY, "utf-8")
    for end in ("", ".toml", ".parquet", ".csv"):
        (folder / f"empty{end}").touch()
        (folder / f"binary{end}").write_bytes(bytes(range(256)) * 4)
        (folder / f"folder{end}").mkdir()
    (folder / "binary.ledger").write_bytes(b"\xff" * 5000)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        here = ["--shuffler", "http://127.0.0.1:1", "--analyzer", "http://127.0.0.1:1"]
        main(
            [
                "shuffle",
                "init",
                str(folder / "poll.toml"),
                "--choices",
                "a,b",
                "--clients",
                "100",
                "--epsilon",
                "4",
                *here,
            ]
        )


# --- a grammar of commands ----------------------------------------------------------------------------------

_ODD = st.one_of(st.text(max_size=8), st.sampled_from(ODD_TEXTS)).filter(lambda text: "/" not in text)
_FILE = st.one_of(*[st.sampled_from(FILES)] * 6, _ODD)
_NUMBER = st.one_of(st.sampled_from(("0.5", "1", "2", "0.01")), st.sampled_from(NUMBERS_AS_TEXT))
_QUESTION = st.one_of(st.sampled_from(QUESTIONS), text_changes(QUESTIONS, SQL_WORDS), _ODD)
_NAME = st.one_of(st.sampled_from(("visits", "cities", "n", "cost", "city,cost", "alice", "a,b", "a,a", ",")), _ODD)
_PAIR = st.tuples(st.one_of(st.sampled_from(("n", "cost", "")), _ODD), st.sampled_from(("=", "")), _NUMBER).map("".join)
_ASKED = {"--epsilon": _NUMBER, "--delta": _NUMBER, "--within": _PAIR, "--weight": _PAIR, "--confidence": _NUMBER}
_ASKED |= {"--analyst": _NAME}
_FORMAT = st.sampled_from(("table", "json", "csv", "text", "xml", ""))
_ANSWERED = _ASKED | {"--format": _FORMAT, "--plot": _FILE, "--key": _ODD}
_COPIED = {"--epsilon": _NUMBER, "--out": _FILE, "--columns": _NAME, "--key": _ODD, "--force": None}
_AUDITED = {"--epsilon": _NUMBER, "--delta": _NUMBER, "--samples": SMALL, "--confidence": _NUMBER}
_SHOWN = {"--verify": None, "--export": _FORMAT, "--adopt": _ODD, "--last": _NUMBER, "--checkpoint": _FILE}
_URL = st.sampled_from(("http://127.0.0.1:1", "", "x", "http://", "http://[", "file:///x"))
_SERVED = {"--port": SMALL, "--host": _ODD, "--store": _FILE, "--key": _FILE}
_TERMS = {"--choices": _NAME, "--bit": None, "--clients": SMALL, "--epsilon": _NUMBER, "--delta": _NUMBER}
_TERMS |= {"--honest": _NUMBER, "--minimum": SMALL, "--shuffler": _URL, "--analyzer": _URL}
_CLOSED = {"--discard": None, "--wait": st.sampled_from(("0", "nan", "-1", "x")), "--json": None}
_MECHANISM = st.one_of(st.sampled_from(("laplace", "gaussian", "randomized_response", "exponential")), _ODD)
_SIMULATED = {"--clients": SMALL, "--epsilon": _NUMBER, "--delta": _NUMBER, "--choices": SMALL, "--runs": SMALL}
_PLANNED = {"--rows": SMALL, "--questions": SMALL, "--confidence": _NUMBER, "--overfits": SMALL, "--accuracy": _NUMBER}
COMMANDS: tuple[tuple[tuple[str, ...], tuple[Any, ...], dict[str, Any]], ...] = (
    (("query",), (_FILE, _QUESTION), _ANSWERED),
    (("query",), (st.just("clinic.toml"), _QUESTION), _ANSWERED),
    (("explain",), (st.just("clinic.toml"), _QUESTION), _ASKED | {"--format": _FORMAT}),
    (("init",), (_FILE,), {"--out": _FILE}),
    (("init",), (_FILE, _FILE), {"--out": _FILE}),
    (("sanitize",), (_FILE, _NAME), _COPIED),
    (("sanitize",), (st.just("clinic.toml"), st.just("visits")), _COPIED),
    (("audit",), (_MECHANISM,), _AUDITED | {"--halve-noise": None}),
    (("ledger",), (_FILE,), _SHOWN),
    (("study", "plan"), (), _PLANNED | {"--chart": _FILE, "--json": None}),
    (("shuffle", "init"), (_FILE,), _TERMS),
    (("shuffle", "tokens"), (_FILE, SMALL), {}),
    (("shuffle", "analyzer"), (_FILE,), _SERVED | {"--ledger": _FILE}),
    (("shuffle", "shuffler"), (_FILE,), _SERVED | {"--analyzer": _URL}),
    (("shuffle", "report"), (_FILE, _NAME), {"--token": _ODD}),
    (("shuffle", "close"), (_FILE,), _CLOSED),
    (("shuffle", "simulate"), (), _SIMULATED | {"--chart": _FILE}),
)


@st.composite
def _commands(draw: Any) -> list[str]:
    """A command with most of its arguments, and some of its options."""
    names, arguments, options = draw(st.sampled_from(COMMANDS))
    words = [*names, *(draw(argument) for argument in arguments)]
    for option in draw(st.lists(st.sampled_from(sorted(options)), max_size=4)) if options else ():
        words += [option] if options[option] is None else [option, draw(options[option])]
    return words


@st.composite
def _changed(draw: Any, seeds: tuple[tuple[str, ...], ...]) -> list[str]:
    """A known command with a word left out, doubled or exchanged."""
    words = list(draw(picked(seeds)))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(words)))
        other = draw(st.one_of(_ODD, st.sampled_from(FILES), st.sampled_from(("--help", "--", "-", "--epsilon", "-h"))))
        words[at : at + draw(st.integers(0, 1))] = [other] * draw(st.integers(0, 2))
    return [word for word in words if word not in ("demo", "reproduce")]

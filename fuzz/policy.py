"""Policy files: any bytes.

They are a policy or an error of ours, in a sentence for people. Reading one opens the file and nothing else. A policy
that is accepted reads the same again, and its data set opens or is refused by an error of ours; only then is a
ledger made, and where the policy says.
"""

from __future__ import annotations

import datetime
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from hypothesis import strategies as st

from discreet.datasets.connect import connect
from discreet.datasets.policy import ledger_of, load
from discreet.errors import DiscreetError, InvalidArgument, LedgerDamaged, LedgerUnavailable
from fuzz.changes import ODD_TEXTS, byte_changes, picked, text_changes
from fuzz.oracle import CANARY, Broken, attempt, label, within, words_of

SECONDS = 10
PYTHON_WORDS = ("NoneType", "object has no", "unhashable", "<class", "not supported between", "Errno", "codec can't")
SEEDS = (
    """
[ledger]
path = "clinic.ledger"
epsilon = 10.0
delta = 1e-5
delta_per_question = 1e-8
[unit]
person = "patient_id"
[tables.visits]
source = "visits.parquet"
rows_per_person = 20
groups_per_person = 5
[tables.visits.columns.cost]
between = [0, 5000]
[tables.visits.columns.city]
choices = ["Haifa", "Ljubljana"]
[tables.cities]
source = "cities.csv"
public = true
[engine]
kind = "duckdb"
""",
    """
ledger = { path = "clinic.ledger", epsilon = 1, rule = "basic" }
unit = { row = true, neighbors = "replace" }
[tables.visits]
source = "visits.csv"
version = 3
columns.day = { type = "date", between = [2024-01-01, 2024-12-31] }
columns.age = { type = "integer", between = "auto" }
columns.smokes = { choices = [true, false] }
columns.city = { frequency = 3 }
[engine]
memory = "500MB"
spill = false
""",
    """
[ledger]
path = 'clinic.ledger'
epsilon = 1e1
delta = 1e-6
rule = "zero_concentrated"
[unit]
person = "patient_id"
[tables.visits]
source = "visits.parquet"
person = "patient_id"
groups_per_person = "auto"
rows_per_group = 2
[tables.more]
source = "folder"
through = "patient_id -> visits.patient_id"
rows_per_person = 5
""",
    '[ledger]\npath = "l"\nepsilon = 1\n[unit]\nrow = true\n[tables.v]\nsource = "public.v"\n'
    '[engine]\nkind = "postgres"\nurl = "postgresql://h/d"\ntimeout = 9\n',
    '[ledger]\npath = "l"\nepsilon = 1\n[unit]\nrow = true\n[tables.v]\nsource = "v"\n'
    '[engine]\nkind = "spark"\nmaster = "local[1]"\nconfig = { "spark.a" = "1" }\n',
)
_WORDS = """
[ledger] [unit] [tables.x] [engine] [[tables]] path epsilon delta rule person row neighbors source public
through version columns type between choices frequency rows_per_person groups_per_person kind memory spill url = . , [ ]
{ } " ' true false 0 1 -1 0.5 nan inf -inf 1e400 1e-400 2024-02-30 2024-02-28 07:32:00 2024-02-28T00:00:00Z [] {} ""
"auto" "text" "integer" "number" "date" "timestamp" "basic" "advanced" "renyi" "replace" "duckdb" "postgres" "spark"
"visits.parquet" "visits.csv" "cities.csv" "folder" "." ".." "/" "missing" "patient_id" "age" "cost" 9223372036854775807
99999999999999999999999999 0x1f 1_000 [1,2] ["a",1] [nan,nan] [5,1] "\\u0000" "a\\u0000b" "~nobody/x" "~who/x" "~" # \\
"""
_ODD = (f'"{text}"' for text in ODD_TEXTS if text.isprintable())
WORDS = (*_WORDS.split(), *_ODD, "\n", '"""', "'''", " ", "9" * 5000)


class Policy:
    """A folder with data, and one policy file after another."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "clinic.toml"
        rows = range(60)
        visits = pa.table(
            {
                "patient_id": list(rows),
                "age": [20 + row for row in rows],
                "cost": [float(row) for row in rows],
                "city": [f"{CANARY} {row}" for row in rows],
                "day": [datetime.date(2024, 1, 1 + row % 28) for row in rows],
                "smokes": [row % 2 == 0 for row in rows],
            }
        )
        (folder / "folder").mkdir()
        pyarrow.parquet.write_table(visits, folder / "visits.parquet")
        pyarrow.parquet.write_table(visits, folder / "folder" / "part.parquet")
        pyarrow.csv.write_csv(visits, folder / "visits.csv")
        cities = pa.table({"city": ["Haifa", "Ljubljana"], "country": ["Israel", "Slovenia"]})
        pyarrow.csv.write_csv(cities, folder / "cities.csv")
        self.sound = set(folder.rglob("*"))
        self.seeds: list[bytes] = [text.encode() for text in SEEDS]
        self.opened = _Opened()
        self.file.write_bytes(self.seeds[0])
        connect(self.file).close()  # whatever is imported late is imported now
        self._removed()

    def inputs(self) -> st.SearchStrategy[bytes]:
        """Policies, changed as text and as bytes."""
        texts = tuple(seed.decode(errors="replace") for seed in self.seeds)
        changed = text_changes(texts, WORDS).map(lambda text: text.encode("utf-8", "surrogatepass"))
        values = _value_changes(texts).map(lambda text: text.encode("utf-8", "surrogatepass"))
        return st.one_of(*[changed] * 3, *[values] * 3, byte_changes(picked(self.seeds)))

    def check(self, one: bytes) -> str:
        """Read it, twice; open what it speaks of where that is in this folder."""
        self.file.write_bytes(one)
        with within(SECONDS):
            with self.opened.listed() as opened:
                found, error = attempt(lambda: load(self.file))
            others = set(opened) - {str(self.file)}
            if others:
                raise Broken("reading a policy opened other files", others)
            told = attempt(lambda: ledger_of(self.file))[1]
            if error is not None:
                self._check_error(error)
                self._check_error(told)
                return label(error)
            if told is not None or load(self.file).public_text() != found.public_text():
                raise Broken("a policy reads differently the second time", told)
            if not self._is_ours(found):
                return f"read: {found.engine.kind}, {type(found.limit).__name__}"
            with self.opened.listed() as opened:
                database, error = attempt(lambda: connect(self.file))
            self._check_error(error)
            if database is not None:
                database.close()
            self._check_made(found, opened, accepted=database is not None)
        return label(error, f"opened: {len(found.tables)}, {found.unit}, {type(found.limit).__name__}")

    def _check_error(self, error: DiscreetError | None) -> None:
        if error is None:
            return
        said = str(error)
        if CANARY in words_of(error):
            raise Broken("an error says a value of the data", said)
        for word in PYTHON_WORDS:
            if word in said:
                raise Broken(f"an error in Python's words: {word}", said)
        if not isinstance(error, InvalidArgument | LedgerDamaged | LedgerUnavailable):
            raise Broken(f"a policy is refused by {type(error).__name__}", said)

    def _is_ours(self, found: Any) -> bool:
        """Whether everything it speaks of is in this folder, so that it may be opened."""
        places = [found.ledger, *(str(table.source) for table in found.tables.values())]
        if isinstance(found.engine.spill, str):
            places.append(found.engine.spill)
        inside = all(Path(place.replace("\0", "")).resolve().is_relative_to(self.folder) for place in places)
        return inside and found.engine.kind == "duckdb"

    def _check_made(self, found: Any, opened: list[str], *, accepted: bool) -> None:
        """See that nothing but the ledger was made, and that only where the policy was accepted; and remove it."""
        ledger = Path(found.ledger).resolve() if accepted else None
        beside = set() if ledger is None else {ledger.with_name(ledger.name + end) for end in ("", ".checkpoint")}
        made = self._removed()
        if made - beside:
            raise Broken("files were made beside the ledger", made - beside)
        if accepted and beside - made:
            raise Broken("a policy was accepted, and no ledger made", beside)
        strange = {path for path in opened if path.startswith("/") and not self._may_open(path, beside)}
        if strange:
            raise Broken("files outside were opened", strange)

    def _removed(self) -> set[Path]:
        """What was made beside the data, which is gone again."""
        made = {path for path in self.folder.rglob("*") if path not in self.sound} - {self.file}
        for path in sorted(made, reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        return made

    def _may_open(self, path: str, beside: set[Path]) -> bool:
        spilled = str(Path(tempfile.gettempdir()) / "discreet")
        known = (str(self.folder), sys.prefix, sys.base_prefix, spilled, "/proc/", "/dev/", "/sys/")
        return path.startswith(known) or Path(path) in beside

    def close(self) -> None:
        """Forget the hook's folder: a hook cannot be removed."""
        self.opened.paths = None


@st.composite
def _value_changes(draw: Any, texts: tuple[str, ...]) -> str:
    """A policy in which some keys have other values, or other keys theirs."""
    lines = draw(picked(texts)).split("\n")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        key, equals, _ = lines[at].partition("=")
        if draw(st.integers(0, 4)) == 0:
            key = draw(st.sampled_from(WORDS)) + " "
        lines[at] = f"{key}{equals or '='} {draw(st.sampled_from(WORDS))}"
    return "\n".join(lines)


class _Opened:
    """The paths that Python opens while somebody listens."""

    def __init__(self) -> None:
        self.paths: list[str] | None = None
        sys.addaudithook(self._heard)

    def _heard(self, event: str, given: tuple[Any, ...]) -> None:
        if self.paths is not None and event == "open" and isinstance(given[0], str | bytes):
            self.paths.append(os.fsdecode(given[0]))

    @contextmanager
    def listed(self) -> Iterator[list[str]]:
        self.paths = heard = []
        try:
            yield heard
        finally:
            self.paths = None

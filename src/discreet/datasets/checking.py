"""What an owner should know about a policy before others ask: what is left to decide, what happens to odd values, what
the budget pays for, and what is wrong with files. All of it follows from declarations; no row of anybody is read.
"""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet.datasets.connect import open_engine, schema_of
from discreet.datasets.database import Database
from discreet.datasets.drafts import DECIDE
from discreet.datasets.ledgers import mistyped, open_policy_ledger
from discreet.datasets.limits import warnings_on_limit
from discreet.datasets.people import columns_about_people
from discreet.datasets.policy import Policy, load
from discreet.datasets.texts.copies import stale_copies
from discreet.engines.configuration import URLS
from discreet.engines.engine import Engine
from discreet.errors import DiscreetError, InvalidArgument
from discreet.guarantees.guarantee import Approx
from discreet.ledger import Ledger
from discreet.sql.expressions import Field
from discreet.sql.reading.values.domains import declared_points
from discreet.sql.schema import Column, Schema, Table, is_auto

EPSILONS = (0.01, 0.1, 0.5)
_MOST = 10**7
"""Nobody asks more questions."""
_SHARED = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "fuse.s3fs")
"""File systems of a network, on which SQLite's locks may not hold."""
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm", "/run", tempfile.gettempdir())
_READ, _WRITE, _ENTER = 0o044, 0o022, 0o011
"""Rights of the group of a file, and of everybody."""


@dataclass(frozen=True)
class Problem:
    """Something that is wrong, or that may be. With a `code`, the policy cannot be used as it is."""

    text: str
    code: str | None = None


@dataclass(frozen=True)
class Decision:
    """Something that is left to the owner, and the line of the policy that says so."""

    line: int
    text: str


@dataclass(frozen=True)
class Priced:
    """A typical question, and how often the whole limit pays for it at this ε."""

    question: str
    epsilon: float
    times: int


@dataclass(frozen=True, kw_only=True)
class PolicyCheck:
    """Everything that was found. `fates` is what happens to NULL and to values that are not declared, by table."""

    policy: str
    limit: str
    ledger: str
    decisions: Sequence[Decision] = ()
    problems: Sequence[Problem] = ()
    fates: Mapping[str, Sequence[str]] = field(default_factory=dict)
    budget: Sequence[Priced] = ()

    @property
    def is_usable(self) -> bool:
        """Whether questions can be asked."""
        return not any(problem.code for problem in self.problems)

    @property
    def is_ready(self) -> bool:
        """Whether nothing is wrong, and nothing left to decide."""
        return not self.problems and not self.decisions

    def as_json(self) -> dict[str, Any]:
        """The same as plain values, for another program."""
        return {**asdict(self), "usable": self.is_usable, "ready": self.is_ready}


def check_policy(path: Path, epsilons: Sequence[float] = EPSILONS) -> PolicyCheck:
    """Check a policy file. One that cannot be read is refused."""
    policy = load(path)
    problems = list(_problems_of_files(path, policy))
    if isinstance(policy.limit, Approx):
        problems += map(Problem, warnings_on_limit(policy.limit.epsilon, policy.limit.delta))
    fates, budget, ledger = {}, [], ""
    try:
        with closing(open_engine(policy)) as engine:
            schema = schema_of(policy, engine)
            fates = {name: list(_fates(table, engine)) for name, table in schema.tables.items()}
            budget = list(price_questions(policy, schema, engine, epsilons))
    except DiscreetError as error:
        problems.append(_problem(error))
    try:
        ledger = _state_of_ledger(policy)
    except DiscreetError as error:
        problems.append(_problem(error))
    return PolicyCheck(
        policy=str(path),
        limit=str(policy.limit),
        ledger=ledger,
        decisions=list(decisions_in(path.expanduser().read_text("utf-8"))),
        problems=problems,
        fates=fates,
        budget=budget,
    )


def _problem(error: DiscreetError) -> Problem:
    return Problem(str(error), error.code)


def decisions_in(text: str) -> Iterator[Decision]:
    """What a policy marks as left to decide."""
    for number, line in enumerate(text.splitlines(), 1):
        before, mark, what = line.partition(f"# {DECIDE}")
        if mark:
            yield Decision(number, f"{before.strip()}: {what}" if before.strip() else what)


# --- values -------------------------------------------------------------------------------------------------


def _fates(table: Table, engine: Engine) -> Iterator[str]:
    """What happens to rows and values of a table that are odd, by what is declared."""
    if table.public:
        yield "public: nobody is protected in it, and questions about it alone are answered exactly"
        return
    columns = table.columns.values()
    if table.through is not None:
        yield f"rows whose {table.path[0]} leads to nobody are left out"
    elif table.person is not None:
        yield f"rows whose {table.person} is NULL are left out"
    if table.rows_per_person is not None:
        yield f"of one person, {table.rows_per_person:,} rows are used at most, chosen at random"
    text = [column for column in columns if engine.reads_text(table.name, column.name)]
    if typed := [f"{column.name} ({column.type})" for column in text if column.type not in ("text", "other")]:
        yield f"values that do not fit the type are NULL: {', '.join(typed)}"
    if plain := [column.name for column in text if not column.declared and column.type == "text"]:
        yield f"text, because no type is declared: {', '.join(plain)}"
    if other := [column.name for column in columns if column.type == "other"]:
        yield f"can be counted, but not grouped or compared, because of their type: {', '.join(other)}"
    for column in columns:
        if column.choices is not None:
            where = "no group" if column.other is None else f"the group {column.other}"
            yield f"values of {column.name} that are not declared, and NULL, are in {where}"
    if ranged := [column.name for column in columns if column.between is not None]:
        yield f"values outside their range count as its end, and NULL is left out of sums: {', '.join(ranged)}"
    grouped = [column for column in columns if column.name != table.person and column.type != "other"]
    if free := [column.name for column in grouped if not _has_known_groups(column)]:
        named = ", ".join(free)
        yield f"groups that are not declared are shown if enough people have them, for a part of ε and δ: {named}"


def _has_known_groups(column: Column) -> bool:
    """Whether every group by a column is known: choices, a short range of dates or whole numbers, true and false."""
    between = None if is_auto(column.between) else column.between
    return declared_points(Field("", column.name, column.type, between, column.choices)) is not None


# --- the budget ---------------------------------------------------------------------------------------------


def price_questions(policy: Policy, schema: Schema, engine: Engine, epsilons: Sequence[float]) -> Iterator[Priced]:
    """How often the whole limit pays for typical questions, if nothing else is asked."""
    with closing(Ledger.open(":memory:", protects=policy.unit, limit=policy.limit, rule=policy.rule)) as ledger:
        terms: dict[str, Any] = {"delta_per_question": policy.delta_per_question, "rules": policy.answers}
        database = Database(schema, engine, ledger, policy=policy.public_text(), **terms)
        for question in _typical(schema):
            for epsilon in epsilons:
                try:
                    owed = database.prepare(question, epsilon=epsilon).owed()
                except DiscreetError:
                    break  # this policy does not allow it, for instance without a δ
                yield Priced(question, float(epsilon), _times(ledger, owed))


def _typical(schema: Schema) -> Iterator[str]:
    """A count, a mean and a count by groups that are declared, of the first private table that has what they need."""
    private = [table for table in schema.tables.values() if not table.public]
    if not private:
        return
    quote = '"{}"'.format
    yield f"SELECT COUNT(*) AS n FROM {quote(private[0].name)}"
    each = [(table, column) for table in private for column in columns_about_people(table, schema)]
    known = [(table, column) for table, column in each if '"' not in column.name]
    numbers = [one for one in known if one[1].type in ("integer", "number")]
    for table, column in sorted(numbers, key=lambda one: one[1].between is None)[:1]:
        yield f"SELECT AVG({quote(column.name)}) AS mean FROM {quote(table.name)}"
    groups = [one for one in known if one[1].choices is not None or one[1].type == "boolean"]
    for table, column in groups[:1]:
        yield f"SELECT {quote(column.name)}, COUNT(*) AS n FROM {quote(table.name)} GROUP BY {quote(column.name)}"


def _times(ledger: Ledger, owed: Sequence[Any]) -> int:
    """How often an empty ledger pays for these releases."""
    rule = ledger.rule
    costs = [rule.coordinates(guarantee) for guarantee in owed]
    one = tuple(map(sum, zip(*costs, strict=True)))
    low, high = 0, 1
    while high <= _MOST and rule.fits(tuple(high * cost for cost in one)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rule.fits(tuple(middle * cost for cost in one)) else (low, middle)
    return low


# --- files --------------------------------------------------------------------------------------------------


def _problems_of_files(path: Path, policy: Policy) -> Iterator[Problem]:
    """What may go wrong with the policy, its data and its ledger where they are."""
    file = path.expanduser()
    urls = [one for one in (policy.engine.url, policy.ledger) if isinstance(one, str) and one.startswith(URLS)]
    if any(urlsplit(url).password for url in urls) and _others_may(file, _READ):
        yield Problem(f"{path} contains a password, and others can read it. Run: chmod 600 {shlex.quote(str(path))}")
    for name, table in policy.tables.items():
        source = Path(table.source) if isinstance(table.source, str) and policy.engine.kind == "duckdb" else None
        if source is not None and source.exists() and not table.public and _others_may(source, stat.S_IROTH):
            yield Problem(
                f"Everybody on this machine can read the rows of {name}. Run: chmod o-rwx {shlex.quote(str(source))}"
            )
    yield from map(Problem, stale_copies(policy))
    if text := mistyped(policy):
        yield Problem(text)
    if isinstance(policy.ledger, str) and not policy.ledger.startswith(URLS):
        yield from _problems_of_ledger(Path(policy.ledger))


def _others_may(file: Path, rights: int) -> bool:
    """Whether the group of a file or everybody has one of these rights, and may enter all folders above it."""
    above = [folder.stat().st_mode for folder in file.resolve().parents]
    found = file.stat().st_mode & rights
    everybody = found & stat.S_IRWXO and all(mode & stat.S_IXOTH for mode in above)
    return bool(everybody or (found & stat.S_IRWXG and all(mode & _ENTER for mode in above)))


def _problems_of_ledger(place: Path) -> Iterator[Problem]:
    folder = place.parent
    if not folder.is_dir():
        yield Problem(f"The folder of the ledger, {folder}, does not exist. Create it.", "ledger-place")
        return
    if not os.access(folder, os.W_OK | os.X_OK) or (place.exists() and not os.access(place, os.R_OK | os.W_OK)):
        yield Problem(f"You may not write the ledger {place}. Change its permissions.", "ledger-place")
    if any(folder.resolve().is_relative_to(one) for one in _TEMPORARY):
        yield Problem(f"{place} is in a folder for temporary files. If it is removed, what was spent is forgotten.")
    if place.exists() and _others_may(place, _WRITE):
        yield Problem(f"Others may write {place}, and so spend or forget. Run: chmod go-w {place}")
    if place.exists() and _others_may(place, stat.S_IROTH):  # as after a backup is restored
        yield Problem(
            f"Everybody on this machine can read the questions and answers in {place}. Run: chmod o-rwx "
            f"{shlex.quote(str(place))}"
        )
    if (kind := _file_system(folder.resolve())) in _SHARED:
        yield Problem(
            f"{place} is on a network file system ({kind}), where SQLite's locks may not hold. Use a local disk, or "
            "a ledger in PostgreSQL."
        )


def _file_system(folder: Path) -> str:
    """The kind of the file system of a folder. Empty if this machine does not say."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text("utf-8").splitlines()]
    except OSError:
        return ""
    found = [(len(place), kind) for _, place, kind, *_ in mounts if folder.is_relative_to(place)]
    return max(found, default=(0, ""))[1]


def _state_of_ledger(policy: Policy) -> str:
    """What remains in a ledger that exists, after checking that it has the terms of the policy. It is not created."""
    try:
        Ledger.open(policy.ledger).close()
    except InvalidArgument as error:
        if error.code == "ledger-not-found":
            return "not begun: the first question creates it"
        raise
    with closing(open_policy_ledger(policy)) as ledger:
        entries = "1 entry" if ledger.count == 1 else f"{ledger.count:,} entries"
        return f"{ledger.remaining or 'nothing'} of {ledger.limit} remains, after {entries}"

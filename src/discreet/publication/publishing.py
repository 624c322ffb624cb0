"""`publish`: charge, release and write the tables of a plan, with a card for the public and a proof."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.closing import closed
from discreet.datasets.connect import connect
from discreet.datasets.database import Database
from discreet.datasets.policy import Policy
from discreet.datasets.policy import load as load_policy
from discreet.errors import InvalidArgument, NotAllowed
from discreet.guarantees.guarantee import Guarantee
from discreet.ledger.views import Listed
from discreet.publication.card import card_html, card_markdown
from discreet.publication.plan import PublicationPlan, load_plan, plan_in
from discreet.publication.proof import PROOF, facts_of, plan_words, proof_text
from discreet.publication.releasing import Made, check_versions, missed, prepare, released
from discreet.publication.writing import check_out, digest, table_files, write_all
from discreet.sql.running.explanation import Explanation

Progress = Callable[[str], None]
MOST_PUBLIC_ROWS = 10**6
"""A public table with more rows is not written next to the publication."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """A publication: the folder, its files, what is stated about it, and whether it was there already."""

    out: Path
    facts: Mapping[str, Any]
    files: tuple[str, ...]
    already: bool = False

    @property
    def cost(self) -> str:
        """What all of it cost, as a guarantee in words."""
        return str(self.facts["cost"]["text"])

    def __str__(self) -> str:
        parts = ", ".join(one["name"] for one in self.facts["parts"])
        again = " It was there already, and nothing was charged." if self.already else ""
        return f"{self.out}: {parts}; cost {self.cost}.{again}"


@closed
def publish(
    plan: Any, out: str | Path, *, analyst: str | None = None, spark: Any = None, progress: Progress | None = None
) -> Published:
    """Publish the tables of a plan in the new folder `out`: CSV and Parquet files, a card for the public, and a proof.

    `plan` is a TOML file, or a mapping with the same keys. Everything is charged to the ledger of its policy before it
    is read. A run that was killed is run again with the same plan, and pays nothing twice. If a criterion is not met,
    nothing is written. `progress` is called with a line of text before every step.
    """
    known = _readable(load_plan(plan))
    where = _path(out)
    check_out(where, known.digest)
    say = progress or _silent
    database = _opened(known, analyst, spark)
    with closing(database.engine), closing(database.ledger):
        check_versions(database)
        ledger = Listed.of(database.ledger)
        database = database.seen_by(ledger)
        parts = prepare(database, known, progress)
        owed = [cost for part in parts for cost in part.owed()]
        if owed:
            ledger.after(*owed)  # all of it fits, or nothing is charged
        made = []
        for number, part in enumerate(parts, 1):
            say(f"{number} of {len(parts)}: {part.part.name}")
            made.append(released(part, ledger))
        _check_accepted(known, made)
        say("writing")
        facts = facts_of(known.words, known.confidence, database, ledger, made)
        files = all_files(facts, made, _public_files(database))
        new = write_all(where, files, facts["date"])
    return Published(out=where, facts=facts, files=tuple(sorted(files)), already=not new)


@closed
def explain_publication(plan: Any, *, analyst: str | None = None, spark: Any = None) -> Explanation:
    """What a plan would cost, part by part, how large its errors may be, and what would remain. Spends nothing."""
    known = _readable(load_plan(plan))
    database = _opened(known, analyst, spark)
    with closing(database.engine), closing(database.ledger):
        check_versions(database)
        lines, owed = [], list[Guarantee]()
        for part in prepare(database, known):
            costs = part.owed()
            owed += costs
            paid = "" if costs else " (paid before)"
            lines += [f"{part.part.kind}.{part.part.name}: ε = {part.part.words['epsilon']}{paid}"]
            lines += [f"  {line}" for line in part.explain()]
        left = database.ledger.after(*owed) if owed else database.ledger.remaining
        lines.append(
            f"in all: {len(owed)} charges at most; then {left or 'nothing'} remains of {database.ledger.limit}"
        )
    return Explanation("\n".join(lines))


def all_files(facts: Mapping[str, Any], made: list[Made], public: Mapping[str, bytes]) -> dict[str, bytes]:
    """The content of every file of a publication, by its name."""
    files = dict(public)
    for one in made:
        files |= table_files(one.part.name, one.table)
    files["card.md"] = card_markdown(facts).encode()
    files["card.html"] = card_html(facts).encode()
    files[PROOF] = proof_text(facts, {name: digest(data) for name, data in files.items()}).encode()
    return files


def _readable(plan: PublicationPlan) -> PublicationPlan:
    """The plan with words that JSON can hold: a plan in a proof must be the same."""
    return PublicationPlan(words=plan_words(plan), parts=plan_in(plan_words(plan), None).parts, policy=plan.policy)


def _path(out: Any) -> Path:
    if not isinstance(out, str | Path) or not str(out):
        raise InvalidArgument('out must be the path of a new folder, such as "out".', code="wrong-type")
    return Path(os.path.expanduser(out))


def _opened(plan: PublicationPlan, analyst: str | None, spark: Any) -> Database:
    policy = plan.policy if isinstance(plan.policy, Policy) else load_policy(plan.policy)
    if policy.ledger == ":memory:":
        raise InvalidArgument(
            'A publication needs a ledger that lasts. Name a file in the policy: path = "clinic.ledger".',
            code="policy-ledger-in-memory",
        )
    return connect(policy, analyst=analyst, spark=spark)


def _check_accepted(plan: PublicationPlan, made: list[Made]) -> None:
    """Refuse to write what does not meet its criteria. The values in the message were released, and charged."""
    found = missed(made)
    if not found or plan.words.get("anyway", False):
        return
    listed = "; ".join(
        f"{part.name}: {one.title}: {one.value:.3g}{'' if one.error is None else f' ± {one.error:.2g}'}, at most "
        f"{one.at_most:g}"
        for part, one in found
    )
    raise NotAllowed(
        f"Nothing is written, because not all criteria are met: {listed}. What was charged stays charged. Raise "
        "at_most, or epsilon (a new charge); or write anyway = true to publish it, and the card will say so.",
        code="publish-not-accepted",
    )


def public_file(name: str) -> str:
    """The file of a public table."""
    return f"public/{name}.parquet"


def _public_files(database: Database) -> dict[str, bytes]:
    """The public tables of the policy: a question that reads them can be computed again only with them."""
    import pyarrow as pa
    import pyarrow.parquet

    found = {}
    for name, table in database.schema.tables.items():
        if not table.public:
            continue
        columns = ", ".join(database.engine.dialect.quote(one) for one in table.columns)
        rows = database.engine.table(f"SELECT {columns} FROM {database.engine.relations[name]}")
        if rows.num_rows > MOST_PUBLIC_ROWS:
            raise NotAllowed(
                f"The public table {name} has more than {MOST_PUBLIC_ROWS:,} rows, too many to publish with the rest. "
                "Leave out what is not used.",
                code="too-large",
            )
        rows = rows.sort_by([(one, "ascending") for one in rows.column_names])  # the same files whenever it is run
        sink = pa.BufferOutputStream()
        pyarrow.parquet.write_table(rows, sink, compression="zstd")
        found[public_file(name)] = sink.getvalue().to_pybytes()
    return found


def _silent(line: str) -> None:
    """Progress that nobody watches."""

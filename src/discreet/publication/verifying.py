"""`verify_publication`: checks a publication with the ledger alone. Nothing is charged, and no data are read."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.errors import DiscreetError, InvalidArgument, LedgerDamaged
from discreet.ledger import Entry, Ledger
from discreet.ledger.reports.receipts import digest_of, name_of
from discreet.ledger.stores.store import IN_MEMORY, URLS
from discreet.ledger.texts.record import canonical, to_text
from discreet.ledger.views import Receipts
from discreet.publication.card import NOT_CHECKED, NOT_THIS_PLAN
from discreet.publication.plan import plan_digest, plan_in
from discreet.publication.proof import PROOF, facts_of, not_a_proof, proof_text, read_proof
from discreet.publication.publishing import all_files, public_file
from discreet.publication.releasing import Made, prepare
from discreet.publication.schema import without_rows
from discreet.publication.writing import digest, files_in, read_parquet, table_files

_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
_OF_LEDGER = ("ledger-not-found", "wrong-type")
"""What is wrong with the ledger that was named, and not with the proof."""
_ADOPTED = "a copy that is only verified"
"""Why a copy of a ledger is adopted. The copy is removed when it is checked."""


@dataclass(frozen=True)
class Check:
    """One check: what was checked, whether it holds, and what was found."""

    what: str
    holds: bool
    found: str = ""

    def __str__(self) -> str:
        return f"{'ok    ' if self.holds else 'FAILED'}  {self.what}{f': {self.found}' if self.found else ''}"


@dataclass(frozen=True)
class Checked:
    """All checks of a publication. It holds if every one does."""

    out: Path
    checks: tuple[Check, ...]
    cost: str = ""
    spent: str = ""
    not_checked: str = field(default=NOT_CHECKED, repr=False)

    @property
    def holds(self) -> bool:
        return all(one.holds for one in self.checks)

    def __str__(self) -> str:
        lines = [str(one) for one in self.checks]
        if self.holds:
            lines.append(f"\n{self.out} is what the ledger says. Cost: {self.cost}. Spent by then: {self.spent}.")
        else:
            wrong = sum(not one.holds for one in self.checks)
            lines.append(f"\n{self.out} is NOT what the ledger says: {wrong} of {len(self.checks)} checks failed.")
        return "\n".join([*lines, f"Not checked: {self.not_checked}"])


def verify_publication(out: str | Path, ledger: Any) -> Checked:
    """Check a publication with a ledger, or a copy of it: files, receipts, charges, totals, and the published numbers.

    It reads the ledger and changes nothing: a copy without its checkpoint is checked as well as it can be, and one that
    is older than the publication is found out by its last entry.
    """
    where = Path(os.path.expanduser(out))
    proof = read_proof(where)
    try:
        return _checked(where, proof, ledger)
    except _MALFORMED as error:  # a part of the proof has not the form in which it was written
        if getattr(error, "code", "") in _OF_LEDGER:
            raise
        raise not_a_proof(where) from None


def _checked(where: Path, proof: Mapping[str, Any], ledger: Any) -> Checked:
    checks = [Check("the plan is the one that is named", plan_digest(proof["plan"]) == proof["plan_digest"])]
    there, found = _check_files(where, proof)
    checks += found
    try:
        with _opened(ledger) as opened:
            checks += _check_ledger(opened, proof)
            receipts, found = _check_receipts(opened, proof)
            checks += found
            checks += _check_again(where, proof, opened, receipts, there)
    except LedgerDamaged as damage:
        checks.append(Check("the record of the ledger", False, " ".join(str(damage).split())))
    cost, spent = (str(proof[name]["text"]) for name in ("cost", "spent_by_then"))
    return Checked(where, tuple(checks), cost, spent)


# --- the ledger -----------------------------------------------------------------------------------------------


@contextmanager
def _opened(target: Any) -> Iterator[Ledger]:
    """The ledger, or a copy of it that is adopted elsewhere, so that nothing is written to the one that was given."""
    if isinstance(target, Ledger):
        yield target
        return
    text = os.fspath(target) if isinstance(target, str | Path) else ""
    if not text or text == IN_MEMORY:
        raise InvalidArgument('Name a ledger: "clinic.ledger", or its URL.', code="wrong-type")
    if text.startswith(URLS):
        with closing(Ledger.open(text)) as ledger:
            yield ledger
        return
    file = Path(os.path.expanduser(text))
    if not file.is_file():
        raise InvalidArgument(f"There is no ledger at {file}. Name one that exists.", code="ledger-not-found")
    with tempfile.TemporaryDirectory(prefix="discreet-verify-") as folder:
        copy = Path(folder) / "copy.ledger"
        try:
            # without a log of writes, nobody writes it, and the folder may be read-only
            where = f"{file.resolve().as_uri()}?mode=ro{'' if Path(f'{file}-wal').exists() else '&immutable=1'}"
            with closing(sqlite3.connect(where, uri=True)) as source, closing(sqlite3.connect(copy)) as made:
                source.backup(made)
        except sqlite3.Error:
            raise InvalidArgument(
                f"{file} is not a ledger that can be read. Name one that discreet wrote.", code="ledger-not-found"
            ) from None
        with closing(Ledger.adopt(copy, why=_ADOPTED)) as ledger:
            yield ledger


def _check_ledger(ledger: Ledger, proof: Mapping[str, Any]) -> list[Check]:
    """Whether it is the ledger of this publication, whole, and not older than it."""
    said = proof["ledger"]
    checks = [Check("the ledger is the one that is named", name_of(ledger) == said["name"])]
    try:
        many = ledger.verify()
        checks.append(Check("every hash, cost, total and answer of the ledger", True, f"{many:,} entries"))
    except LedgerDamaged as damage:
        checks.append(Check("every hash, cost, total and answer of the ledger", False, " ".join(str(damage).split())))
    newest = ledger.entries(said["last_entry"], said["last_entry"]) if said["last_entry"] else ()
    chain = newest[0].chain if newest else None
    old = said["last_entry"] and (not newest or newest[0].asked == _ADOPTED)
    checks.append(
        Check(
            "the ledger reaches the last receipt",
            bool(said["last_entry"] == 0 or chain == said["last_chain"]),
            "this copy of the ledger is older than the publication" if old else "",
        )
    )
    return checks


def _check_receipts(ledger: Ledger, proof: Mapping[str, Any]) -> tuple[list[Entry], list[Check]]:
    """Whether each receipt is in the ledger, with the charge, the totals and the answer that the proof states."""
    found, checks = [], []
    for said in proof["receipts"]:
        entries = ledger.entries(said["number"], said["number"]) if isinstance(said["number"], int) else ()
        entry = entries[0] if entries else None
        what = f"receipt {said['receipt']}"
        if entry is None or entry.chain != said["chain"] or entry.receipt != said["receipt"] or entry.kind != "charge":
            checks.append(Check(what, False, "it is not in the ledger"))
            continue
        found.append(entry)
        stated = {
            "asked": entry.asked,
            "mechanism": entry.mechanism,
            "guarantee": json.loads(to_text(entry.guarantee)),
            "cost": list(entry.cost),
            "total_after": list(entry.totals[""]),
            "answer": digest_of(ledger, entry),
            "analyst": entry.analyst,
            "code_version": entry.code_version,
        }
        wrong = [name for name, value in stated.items() if said.get(name) != value]
        answered = entry.state == "answered"
        checks.append(
            Check(
                what,
                not wrong and answered,
                f"the proof states another {', '.join(wrong)}" if wrong else "" if answered else "it has no answer",
            )
        )
    return found, checks


# --- the publication --------------------------------------------------------------------------------------------


def _check_files(where: Path, proof: Mapping[str, Any]) -> tuple[set[str], list[Check]]:
    """Whether all files are there and unchanged, and nothing else. Links are refused: what they show may change."""
    there, other = files_in(where)
    there -= {PROOF}
    checks = [Check(f"file {name}", False, why) for name, why in sorted(other.items())]
    for name, said in proof["files"].items():
        if name not in there:
            checks.append(Check(f"file {name}", False, "it is missing"))
        else:
            same = digest((where / name).read_bytes()) == said
            checks.append(Check(f"file {name}", same, "" if same else "it was changed"))
    more = sorted(there - set(proof["files"]))
    return there, [*checks, *(Check(f"file {name}", False, "it is not part of the publication") for name in more)]


def _check_again(
    where: Path, proof: Mapping[str, Any], ledger: Ledger, receipts: list[Entry], there: set[str]
) -> list[Check]:
    """Compute the publication again from its plan and the answers in the ledger, and compare."""
    what = "the published numbers are the stored answers"
    try:
        _check_public(proof, there)
        plan = plan_in({**proof["plan"], "policy": ""}, None)
        view = Receipts.of(ledger, receipts)
        database = without_rows(proof["policy"], where / "public", view, proof["delta_per_question"])
        with closing(database.engine):
            made = [_again(part, view) for part in prepare(database, plan)]
            facts = json.loads(proof_text(facts_of(plan.words, plan.confidence, database, view, made), {}))
    except DiscreetError as error:
        return [Check(what, False, " ".join(str(error).split()))]
    except (*_MALFORMED, OSError):
        return [Check(what, False, "the proof does not have the form in which it was written")]
    checks = [_check_table(where, one) for one in made]
    unused = sorted({entry.number for entry in receipts} - view.used)
    checks.append(Check("every receipt belongs to a table", not unused, f"entries {unused}" if unused else ""))
    for name in ("cost", "spent_by_then", "limit", "meaning", "parts", "ledger", "date", "receipts", "code_versions"):
        checks.append(Check(f"{name.replace('_', ' ')} as stated", facts[name] == proof.get(name)))
    cards = {name: data for name, data in all_files(facts, [], {}).items() if name.startswith("card.")}
    for name, data in cards.items():
        same = (where / name).is_file() and (where / name).read_bytes() == data
        checks.append(Check(f"{name} says what the proof states", same))
    named = [f"{one.part.name}.{kind}" for one in made for kind in ("csv", "parquet")]
    expected = {*named, *cards, *(public_file(name) for name, one in database.schema.tables.items() if one.public)}
    checks.append(Check("the proof states this and nothing else", _states(proof, facts, expected)))
    others = [one["name"] for one in facts["parts"] if not one["charged_for_this_plan"]]
    checks.append(Check("the plan that was charged", True, f"{', '.join(others)}: {NOT_THIS_PLAN}" if others else ""))
    wrong = facts["not_private"] or proof["not_private"]
    return [*checks, Check("the noise was not under control", not wrong, "NOT PRIVATE" if wrong else "")]


def _check_public(proof: Mapping[str, Any], there: set[str]) -> None:
    """Refuse a public table that is not a file of this folder, before anything of that name is read."""
    for name, table in proof["policy"]["tables"].items():
        if table["public"] and public_file(name) not in there:
            raise InvalidArgument("A public table is not among the files of the publication.", code="verify-no-proof")


def _states(proof: Mapping[str, Any], facts: Mapping[str, Any], expected: set[str]) -> bool:
    """Whether the proof is what would be written now, except for the version that wrote it."""
    own = {name: value for name, value in proof.items() if name not in ("files", "written_by")}
    known = {name: value for name, value in facts.items() if name not in ("files", "written_by")}
    by = str(proof.get("written_by"))
    same = canonical(own) == canonical(known) and re.fullmatch(r"discreet [0-9][0-9A-Za-z.+-]{0,40}", by) is not None
    return same and set(proof["files"]) == expected


def _again(prepared: Any, view: Receipts) -> Made:
    before, used = set(view.used), view.used
    used.clear()
    table, facts = prepared.release()
    own = tuple(entry for entry in view.receipts if entry.number in used)
    used |= before
    return Made(prepared.part, table, own, **facts)


def _check_table(where: Path, made: Made) -> Check:
    """Whether both files of a table have the numbers that are stored, and nothing else is said in them."""
    import pyarrow as pa

    name = made.part.name
    what = f"{name}: the published numbers are the stored answers"
    files = table_files(name, made.table)
    try:
        same = read_parquet(where / f"{name}.parquet") == read_parquet(pa.BufferReader(files[f"{name}.parquet"]))
        same = same and (where / f"{name}.csv").read_bytes() == files[f"{name}.csv"]
    except (OSError, pa.ArrowException):
        same = False
    return Check(what, same, "" if same else "they differ")

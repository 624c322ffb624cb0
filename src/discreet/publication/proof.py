"""The proof of a publication: receipts, charges, totals and digests, for anyone who has the ledger and not the data."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet._version import __version__
from discreet.datasets.database import Database
from discreet.errors import InvalidArgument
from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Guarantee, NoLoss
from discreet.guarantees.meaning.risk import risk
from discreet.guarantees.meaning.words import HEAD, not_promised, rows
from discreet.ledger import Entry, Ledger
from discreet.ledger.reports.receipts import cost_together, digest_of, name_of, rule_at, spent_until
from discreet.ledger.texts.record import to_text
from discreet.publication.plan import PublicationPlan, plan_digest
from discreet.publication.releasing import Made
from discreet.publication.schema import written_schema
from discreet.sql.running.explanation import describe_unit

FORMAT = 1
PROOF = "proof.json"
_FORM: dict[str, type] = {"format": int, "plan_digest": str, "parts": list, "receipts": list, "not_private": bool}
_FORM |= dict.fromkeys(("plan", "policy", "ledger", "cost", "spent_by_then", "files"), dict)
"""The parts of a proof that are read before it is compared with what would be written now."""


def facts_of(
    plan: Mapping[str, Any], confidence: float, database: Database, ledger: Ledger, made: Sequence[Made]
) -> Any:
    """Everything that is stated about a publication, as plain values. It follows from the plan, the declarations and
    the ledger, and is the same whenever it is computed.
    """
    entries = sorted({entry.number: entry for one in made for entry in one.receipts}.values(), key=lambda e: e.number)
    last = entries[-1].number if entries else 0
    spent, limit = spent_until(ledger, last)
    cost = cost_together(ledger, entries) if entries else NoLoss(protects=ledger.protects)
    return {
        "format": FORMAT,
        "plan": {name: value for name, value in plan.items() if name != "policy"},
        "plan_digest": plan_digest(plan),
        "policy": written_schema(database.schema),
        "delta_per_question": str(Fraction(exactly(database.planner.delta_per_question))),
        "code_versions": sorted({entry.code_version for entry in entries}),
        "date": None if not entries else _day(entries[0]),
        "ledger": {
            "name": name_of(ledger),
            "protects": repr(ledger.protects),
            "protected": describe_unit(ledger.protects),
            "rule": rule_at(ledger, last).name,
            "last_entry": last,
            "last_chain": entries[-1].chain if entries else None,
        },
        "cost": _stated(cost),
        "spent_by_then": _stated(spent),
        "limit": _stated(limit),
        "meaning": _meaning(cost),
        "parts": [_part(one, confidence, plan_digest(plan)) for one in made],
        "receipts": [_receipt(ledger, entry) for entry in entries],
        "not_private": any(one.not_private for one in made),
    }


def _day(entry: Entry) -> str:
    """The day of a charge. A time would tell more than the charge does."""
    return datetime.datetime.fromtimestamp(entry.time, datetime.UTC).date().isoformat()


def _part(one: Made, confidence: float, plan: str) -> dict[str, Any]:
    key = one.part.key(plan)
    return {
        "name": one.part.name,
        "kind": one.part.kind,
        "title": one.part.title,
        "about": one.part.words.get("about"),
        "epsilon": one.part.words["epsilon"],
        "rows": one.table.num_rows,
        "columns": list(one.table.column_names),
        "confidence": confidence,
        "largest_errors": {name: _rounded(error) for name, error in one.errors.items()},
        "criteria": [criterion.as_dict() for criterion in one.criteria],
        "rows_estimated": None if one.rows_estimated is None else round(one.rows_estimated),
        "notes": list(one.notes),
        "receipts": [entry.receipt for entry in one.receipts],
        "charged_for_this_plan": not one.receipts or any(entry.key == key for entry in one.receipts),
        "content": content_digest(one.table),
    }


def _rounded(error: float | None) -> float | None:
    return None if error is None else float(f"{error:.4g}")


def _receipt(ledger: Ledger, entry: Entry) -> dict[str, Any]:
    return {
        "receipt": entry.receipt,
        "number": entry.number,
        "chain": entry.chain,
        "analyst": entry.analyst,
        "asked": entry.asked,
        "mechanism": entry.mechanism,
        "guarantee": json.loads(to_text(entry.guarantee)),
        "cost": list(entry.cost),
        "total_after": list(entry.totals[""]),
        "answer": digest_of(ledger, entry),
        "code_version": entry.code_version,
    }


def _stated(guarantee: Guarantee) -> dict[str, Any]:
    shown = {"text": str(guarantee)}
    for name in ("epsilon", "delta", "rho", "mu"):
        if hasattr(guarantee, name):
            shown[name] = float(exactly(getattr(guarantee, name)))  # type: ignore[assignment]
    return shown


def _meaning(cost: Guarantee) -> dict[str, Any] | None:
    """What the cost means for one person, in odds, from `risk`."""
    if isinstance(cost, NoLoss):
        return None
    found = risk(cost)
    return {
        "about": found.about,
        "loss": str(found).split("\n\n")[2].replace("\n", " "),
        "head": list(HEAD),
        "rows": [list(one) for one in rows(found)],
        "not_promised": not_promised(found),
    }


def content_digest(table: Any) -> str:
    """A digest of the values of a table, whatever the format of its file."""
    found = hashlib.sha256(json.dumps([[f.name, str(f.type)] for f in table.schema]).encode())
    for name in table.column_names:
        values = json.dumps(table.column(name).to_pylist(), default=str, allow_nan=True)
        found.update(values.encode())
    return found.hexdigest()


def proof_text(facts: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """The proof as JSON, with the digests of all other files."""
    whole = {**facts, "files": dict(sorted(files.items())), "written_by": f"discreet {__version__}"}
    return json.dumps(whole, ensure_ascii=False, indent=1, default=str, allow_nan=False) + "\n"


def plan_words(plan: PublicationPlan) -> dict[str, Any]:
    """The words of a plan as JSON holds them, so that a plan read from a proof is the same."""
    kept = {name: value for name, value in plan.words.items() if name != "policy"}
    found: dict[str, Any] = json.loads(json.dumps(kept, default=str))
    return found | {"policy": ""}


def read_proof(where: Path) -> dict[str, Any]:
    """The proof in a folder, if it has the form in which it is written."""
    try:
        proof = json.loads((where / PROOF).read_text(encoding="utf-8"), object_pairs_hook=_once)
    except OSError:
        raise InvalidArgument(
            f"{where} has no {PROOF}. Name the folder of a publication.", code="verify-no-proof"
        ) from None
    except (ValueError, RecursionError):
        proof = None
    if not isinstance(proof, dict) or any(not isinstance(proof.get(name), kind) for name, kind in _FORM.items()):
        raise not_a_proof(where)
    if proof["format"] != FORMAT:
        raise InvalidArgument(
            f"The proof has format {proof['format']}, and this version reads {FORMAT}. Use a newer version.",
            code="verify-no-proof",
        )
    return proof


def not_a_proof(where: Path) -> InvalidArgument:
    """The error for a file that is not a proof."""
    return InvalidArgument(
        f"{where / PROOF} is not a proof as discreet writes it. It was changed, or is of another program.",
        code="verify-no-proof",
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON in which each name is given once: of two, readers may show the first or the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found

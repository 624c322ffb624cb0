"""Checks of publications, and seeded bugs that they see."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dp
from discreet import testing
from discreet.ledger.views import Listed, Receipts
from discreet.publication import plan as plans
from discreet.publication import publishing, releasing, verify_publication, verifying
from discreet.publication.synthetic import SyntheticPart
from discreet.publication.writing import table_files

from .test_verify import replace_files

Plan = Callable[..., dict[str, Any]]
Plant = Callable[[pytest.MonkeyPatch], None]


# --- checks -----------------------------------------------------------------------------------------------------


def nothing_is_spent_unless_all_fits(clinic: Path, plan: Plan) -> None:
    words = plan("by_city", "by_country")
    words["policy"]["ledger"] |= {"epsilon": 1.5, "delta": 1e-5}
    with pytest.raises(dp.BudgetExhausted):
        dp.publish(words, clinic / "out")
    with closing(dp.Ledger.open(clinic / "clinic.ledger")) as ledger:
        assert not ledger.entries()


def a_replaced_answer_is_found(clinic: Path, plan: Plan) -> None:
    dp.publish(plan("by_city"), clinic / "out")
    table = pyarrow.parquet.read_table(clinic / "out" / "by_city.parquet")
    other = table.set_column(1, "visits", pa.array([one + 9 for one in table.column("visits").to_pylist()]))
    replace_files(clinic / "out", table_files("by_city", other))
    assert not verify_publication(clinic / "out", clinic / "clinic.ledger").holds


def another_plan_for_the_same_receipts_is_found(clinic: Path, plan: Plan) -> None:
    """Somebody claims a smaller ε for the same numbers, in the plan and in all that follows from it."""
    dp.publish(plan("by_city"), clinic / "out")
    with closing(dp.Ledger.open(clinic / "clinic.ledger")) as ledger:
        view = Receipts.of(ledger, ledger.entries())
        asked = ledger.entries()[0].asked
        assert not view.knows(dp.Pure(epsilon=0.1), asked=asked, mechanism=ledger.entries()[0].mechanism)
        assert not view.knows(ledger.entries()[0].guarantee, asked=asked, mechanism="Laplace(scale=99)")
        assert not view.knows(ledger.entries()[0].guarantee, asked="?", mechanism=ledger.entries()[0].mechanism)
        assert view.knows(ledger.entries()[0].guarantee, asked=asked, mechanism=ledger.entries()[0].mechanism)


def what_was_made_in_test_mode_does_not_pass(clinic: Path, plan: Plan) -> None:
    with testing.no_noise():
        dp.publish(plan("by_city"), clinic / "out")
    assert not verify_publication(clinic / "out", clinic / "clinic.ledger").holds


def tries_are_not_counted(clinic: Path, plan: Plan) -> None:
    words, lines = plan("by_city", "people"), list[str]()
    words["synthetic"]["people"]["tries"] = 2
    made = dp.publish(words, clinic / "out", progress=lines.append)
    assert not [line for line in lines if "measuring" in line]
    assert made.facts["parts"][-1]["name"] == "people", "nothing is charged after it"


def a_charge_is_older_than_its_reading(clinic: Path, plan: Plan) -> None:
    """All that is published was answered by a charge of this ledger: a changed answer in it is found."""
    dp.publish(plan("by_city"), clinic / "out")
    with closing(sqlite3.connect(clinic / "clinic.ledger")) as database, database:
        database.execute("UPDATE answers SET data = x'00' WHERE number = 1")
    assert not verify_publication(clinic / "out", clinic / "clinic.ledger").holds


# --- bugs -------------------------------------------------------------------------------------------------------


def charges_that_do_not_fit_together(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Listed, "after", lambda self, *guarantees: None)


def verify_trusts_the_proof(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(verifying, "_check_table", lambda where, made: verifying.Check("", holds=True))


def receipts_by_their_question_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Receipts, "_find", lambda self, guarantee, given: next(iter(self.receipts), None))


def mode_of_a_test_forgotten(patch: pytest.MonkeyPatch) -> None:
    own = releasing.released

    def forgetting(*args: Any) -> Any:
        made = own(*args)
        return releasing.Made(made.part, made.table, made.receipts, made.errors, made.criteria, made.notes)

    patch.setattr(publishing, "released", forgetting)
    patch.setattr(verifying, "_again", lambda prepared, view: forgetting_again(prepared, view))


_AGAIN = verifying._again


def forgetting_again(prepared: Any, view: Any) -> Any:
    made = _AGAIN(prepared, view)
    return releasing.Made(made.part, made.table, made.receipts, made.errors, made.criteria, made.notes)


def progress_of_tries(patch: pytest.MonkeyPatch) -> None:
    own = SyntheticPart._candidate

    def telling(self: Any, declared: Any, setting: Any, rho: Any, rows: Any) -> Any:
        return own(self, declared, setting | {"progress": self.progress}, rho, rows)

    patch.setattr(SyntheticPart, "_candidate", telling)


def selected_before_the_others(patch: pytest.MonkeyPatch) -> None:
    own = plans.plan_in

    def reversed_plan(words: Any, folder: Any) -> Any:
        made = own(words, folder)
        return plans.PublicationPlan(words=made.words, parts=made.parts[::-1], policy=made.policy)

    patch.setattr(publishing, "plan_in", reversed_plan)


def ledger_not_verified(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(verifying, "_check_ledger", lambda ledger, proof: [])
    patch.setattr(verifying, "_check_receipts", lambda ledger, proof: (list(ledger.entries()), []))
    patch.setattr(verifying, "_check_again", lambda where, proof, ledger, receipts: [])


BUGS: dict[str, tuple[Plant, Callable[[Path, Plan], None]]] = {
    "charges_that_do_not_fit_together": (charges_that_do_not_fit_together, nothing_is_spent_unless_all_fits),
    "verify_trusts_the_proof": (verify_trusts_the_proof, a_replaced_answer_is_found),
    "receipts_by_their_question_alone": (receipts_by_their_question_alone, another_plan_for_the_same_receipts_is_found),
    "mode_of_a_test_forgotten": (mode_of_a_test_forgotten, what_was_made_in_test_mode_does_not_pass),
    "progress_of_tries": (progress_of_tries, tries_are_not_counted),
    "selected_before_the_others": (selected_before_the_others, tries_are_not_counted),
    "ledger_not_verified": (ledger_not_verified, a_charge_is_older_than_its_reading),
}

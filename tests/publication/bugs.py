"""Checks of publications, and seeded bugs that they see."""

from __future__ import annotations

import datetime
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dp
from discreet import testing
from discreet.ledger import views
from discreet.ledger.views import Listed, Receipts
from discreet.publication import plan as plans
from discreet.publication import publishing, releasing, verify_publication, verifying, writing
from discreet.publication.proof import facts_of
from discreet.publication.schema import without_rows
from discreet.publication.synthetic import SyntheticPart
from discreet.publication.writing import table_files
from discreet.sql.running.answering import _request

from .test_verify import change_proof, replace_files

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
        view, [entry] = Receipts.of(ledger, ledger.entries()), ledger.entries()
        database = dp.connect(plan("by_city")["policy"])
        planned = database.plan(plan("by_city")["tables"]["by_city"]["sql"], epsilon=1)
        known = {**_request(database.planner, planned, None), "mechanism": entry.mechanism}
        database.close()
        assert not view.knows(dp.Pure(epsilon=0.1), **known)
        assert not view.knows(entry.guarantee, **known | {"mechanism": "Laplace(scale=99)"})
        assert not view.knows(entry.guarantee, **known | {"asked": "?"})
        assert not view.knows(entry.guarantee, **known | {"identity": None})
        assert view.knows(entry.guarantee, **known)


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


def declarations_of_another(out: Path, change: Callable[[Any], None], public: dict[str, list[str]]) -> None:
    """Somebody changes the declarations in a proof and a public table, and makes every file again from the ledger."""
    change_proof(out, lambda proof: change(proof["policy"]))
    if public:
        cities = pyarrow.parquet.read_table(out / "public" / "cities.parquet").to_pydict() | public
        pyarrow.parquet.write_table(pa.table(cities), out / "public" / "cities.parquet")
    with suppress(dp.errors.NotAllowed):
        made_again(out)
    assert not verify_publication(out, out.parent / "clinic.ledger").holds


def made_again(out: Path) -> None:
    """Make every file of a publication from its proof and the ledger."""
    proof = json.loads((out / "proof.json").read_text())
    plan = plans.plan_in({**proof["plan"], "policy": ""}, None)
    with closing(dp.Ledger.open(out.parent / "clinic.ledger")) as ledger:
        view = Receipts.of(ledger, ledger.entries())
        database = without_rows(proof["policy"], out / "public", view, proof["delta_per_question"])
        with closing(database.engine):
            made = [_AGAIN(part, view) for part in releasing.prepare(database, plan)]
            facts = facts_of(plan.words, plan.confidence, database, view, made)
    tables = {f"public/{one.name}": one.read_bytes() for one in (out / "public").iterdir()}
    for name, data in publishing.all_files(facts, made, tables).items():
        (out / name).write_bytes(data)


def other_labels_are_found(clinic: Path, plan: Plan) -> None:
    dp.publish(plan("by_city"), clinic / "out")
    swapped = ["Kiel", "Haifa", "Bled"]
    declarations_of_another(
        clinic / "out", lambda words: words["tables"]["visits"]["columns"]["city"].update(choices=swapped), {}
    )


def links_and_notes_are_found(clinic: Path, plan: Plan) -> None:
    dp.publish(plan("by_city"), clinic / "out")
    (clinic / "out" / "more").symlink_to(clinic)
    table = pyarrow.parquet.read_table(clinic / "out" / "by_city.parquet")
    noted, sink = table.replace_schema_metadata({"note": "these numbers are exact"}), pa.BufferOutputStream()
    pyarrow.parquet.write_table(noted, sink)
    replace_files(clinic / "out", {"by_city.parquet": sink.getvalue().to_pybytes()})
    checks = verify_publication(clinic / "out", clinic / "clinic.ledger").checks
    found = [one.what for one in checks if not one.holds]
    assert found == ["file more", "by_city: the published numbers are the stored answers"]


def more_than_is_known_is_found(clinic: Path, plan: Plan) -> None:
    dp.publish(plan("by_city"), clinic / "out")
    change_proof(clinic / "out", lambda proof: proof.update(endorsed="by everybody"))
    assert not verify_publication(clinic / "out", clinic / "clinic.ledger").holds


def the_time_of_writing_is_not_kept(clinic: Path, plan: Plan) -> None:
    """The ledger says when the last charge was, so that the time of writing tells how long the tries took."""
    made = dp.publish(plan("by_city"), clinic / "out")
    day = datetime.datetime.fromisoformat(f"{made.facts['date']}T00:00:00+00:00").timestamp()
    assert {one.stat().st_mtime for one in (*made.out.rglob("*"), made.out)} == {day}


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
    patch.setattr(verifying, "_check_again", lambda where, proof, ledger, receipts, there: [])


class _Equal:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def receipts_whatever_was_declared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(views, "question_in", lambda mark: _Equal())


def links_are_followed(patch: pytest.MonkeyPatch) -> None:
    def followed(where: Path) -> tuple[set[str], dict[str, str]]:
        return {str(one.relative_to(where)) for one in where.rglob("*") if one.is_file()}, {}

    patch.setattr(verifying, "files_in", followed)


def notes_are_not_read(patch: pytest.MonkeyPatch) -> None:
    own = verifying.read_parquet
    patch.setattr(verifying, "read_parquet", lambda source: own(source)[0])


def other_statements_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(verifying, "_states", lambda proof, facts, expected: True)


def files_have_their_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(writing, "_date_all", lambda folder, day: None)


BUGS: dict[str, tuple[Plant, Callable[[Path, Plan], None]]] = {
    "charges_that_do_not_fit_together": (charges_that_do_not_fit_together, nothing_is_spent_unless_all_fits),
    "verify_trusts_the_proof": (verify_trusts_the_proof, a_replaced_answer_is_found),
    "receipts_by_their_question_alone": (receipts_by_their_question_alone, another_plan_for_the_same_receipts_is_found),
    "mode_of_a_test_forgotten": (mode_of_a_test_forgotten, what_was_made_in_test_mode_does_not_pass),
    "progress_of_tries": (progress_of_tries, tries_are_not_counted),
    "selected_before_the_others": (selected_before_the_others, tries_are_not_counted),
    "ledger_not_verified": (ledger_not_verified, a_charge_is_older_than_its_reading),
    "receipts_whatever_was_declared": (receipts_whatever_was_declared, other_labels_are_found),
    "links_are_followed": (links_are_followed, links_and_notes_are_found),
    "notes_are_not_read": (notes_are_not_read, links_and_notes_are_found),
    "other_statements_are_ignored": (other_statements_are_ignored, more_than_is_known_is_found),
    "files_have_their_time": (files_have_their_time, the_time_of_writing_is_not_kept),
}

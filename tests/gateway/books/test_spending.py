"""Histories and budgets over time: what each question cost, who may look, and nothing of a slot that runs."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

import discreet as dp
from discreet.errors import InvalidArgument, NotAllowed
from discreet.gateway.books import questions
from discreet.gateway.books.spending import DAY, pace_of
from discreet.gateway.books.tokens import ROLES, Caller
from discreet.ledger.reports.course import MOST, Moment, Stage, course_of, moments_of, sample

from ...refusing import refuses
from ..clinics import Clinic

SQL = "SELECT COUNT(*) AS n FROM visits"


def person(name: str, role: str = "analyst", scopes=None) -> Caller:
    return Caller(account=name, role=role, scopes=frozenset(ROLES[role] if scopes is None else scopes))


def ask(clinic: Clinic, name: str, epsilon: float, sql: str = SQL, *, at: float = 0.0, free: bool = False) -> str:
    """Charge a question, and note it as the vault does."""
    view, before = clinic.office.ledger.for_analyst(name), clinic.office.ledger.count
    entry = view.charge(dp.Pure(epsilon=epsilon), asked=sql)
    clinic.time += at
    given = {"version": "v1", "since": None if free else before}
    questions.note_question(clinic.store, name, entry.receipt, sql, {"epsilon": epsilon}, clinic.time, **given)
    return entry.receipt


# --- the history --------------------------------------------------------------------------------------------


def test_a_history_has_costs_and_versions(clinic: Clinic) -> None:
    clinic.open("alice")
    ask(clinic, "alice", 0.1)
    ask(clinic, "alice", 0.25, "SELECT AVG(cost) AS a FROM visits")
    first, second = clinic.do("history", person("alice"))["questions"]
    assert (first["cost"], second["cost"], first["version"]) == (0.1, 0.25, "v1")
    newest = clinic.do("history", person("alice"), page=1)
    assert [one["number"] for one in newest["questions"]] == [2, 1]
    assert (newest["count"], newest["pages"]) == (2, 1)


def test_a_charge_with_a_large_delta_of_its_own_has_a_cost(clinic: Clinic) -> None:
    """As of groups that are not declared: below its δ, no ε holds."""
    clinic.open("alice")
    view, before = clinic.office.ledger.for_analyst("alice"), clinic.office.ledger.count
    keys = dp.compose([dp.Gaussian(stddev=8).guarantee(1), dp.Approx(epsilon=0.2, delta=1e-7)])
    assert keys.largest_loss is None
    entry = view.charge(keys, asked=SQL)
    questions.note_question(clinic.store, "alice", entry.receipt, SQL, {}, clinic.time, version="v1", since=before)
    [found] = clinic.do("history", person("alice"))["questions"]
    assert 0.2 < found["cost"] <= keys.epsilon_at(delta=1.01e-7) * (1 + 1e-6)  # rounded up, for people
    assert clinic.do("spending", person("alice"))["typical"] == pytest.approx(found["cost"])


def test_what_was_found_costs_nothing_and_a_part_is_paid_once(clinic: Clinic) -> None:
    clinic.open("alice")
    first = ask(clinic, "alice", 0.1)
    before = clinic.office.ledger.count
    second = clinic.office.ledger.for_analyst("alice").charge(dp.Pure(epsilon=0.2), asked="more").receipt
    both = f"{first}, {second}"
    note = (clinic.store, "alice", both, "SELECT a + b", {"epsilon": 0.3}, clinic.time)
    questions.note_question(*note, version="v1", since=before)
    ask(clinic, "alice", 0.5, "SELECT 2", free=True)
    costs = [one["cost"] for one in clinic.do("history", person("alice"))["questions"]]
    assert costs == [0.1, 0.2, None]


def test_a_purchase_that_was_looked_up_before_it_was_noted_is_still_paid(anywhere: Clinic) -> None:
    clinic = anywhere
    clinic.open("alice")
    before = clinic.office.ledger.count
    receipt = ask(clinic, "alice", 0.1, free=True)
    questions.note_question(clinic.store, "alice", receipt, SQL, {}, clinic.time, version="v1", since=before)
    assert [one["cost"] for one in clinic.do("history", person("alice"))["questions"]] == [0.1]


def test_a_search_takes_signs_as_they_are(anywhere: Clinic) -> None:
    clinic = anywhere
    clinic.open("alice")
    for number, text in enumerate(("100% Sure", "100x sure", "a_b", "axb", "!", "'; DROP TABLE questions --")):
        ask(clinic, "alice", 0.001 * (number + 1), text)

    def found(text: str) -> list[str]:
        return [one["sql"] for one in clinic.do("history", person("alice"), find=text)["questions"]]

    assert found("100%") == ["100% Sure"]
    assert found("SURE") == ["100x sure", "100% Sure"]
    assert found("a_b") == ["a_b"]
    assert found("!") == ["!"]
    assert found("'; drop") == ["'; DROP TABLE questions --"]
    assert found("none") == []
    with refuses(InvalidArgument, "gateway-argument"):
        clinic.do("history", person("alice"), find="x" * 201)


def test_a_search_looks_at_beginnings_of_the_newest_questions(clinic: Clinic, monkeypatch) -> None:
    clinic.open("alice")
    for number, text in enumerate(("one needle", "two", f"{'x' * 50} needle", "three needle")):
        ask(clinic, "alice", 0.001 * (number + 1), text)
    monkeypatch.setattr(questions, "SEARCHED", 3)
    monkeypatch.setattr(questions, "SEARCHED_TEXT", 40)
    found = clinic.do("history", person("alice"), find="needle")
    assert [one["sql"] for one in found["questions"]] == ["three needle"]
    assert clinic.do("history", person("alice"), page=1)["count"] == 4


def test_a_search_compares_no_patterns(clinic: Clinic) -> None:
    """Signs of LIKE would compare each of 200 characters at each of 100,000 places."""
    statements: list[str] = []
    clinic.open("alice")
    ask(clinic, "alice", 0.001, "SELECT 1 -- " + "a" * 90_000)
    real = clinic.store.read

    class Watched:
        def __enter__(self):
            self._inner = real()
            execute = self._inner.__enter__()
            return lambda statement, *given: statements.append(statement) or execute(statement, *given)

        def __exit__(self, *error):
            return self._inner.__exit__(*error)

    clinic.store.read = Watched
    try:
        found = questions.search(clinic.store, "alice", "a" * 199 + "b", 10, 0, 10)
    finally:
        del clinic.store.read
    assert found == (0, [])
    assert not any("LIKE" in one for one in statements)
    assert any("SUBSTR(sql, 1, " in one for one in statements)


def test_a_typical_question_costs_all_of_its_charges(clinic: Clinic) -> None:
    clinic.open("alice")
    view, before = clinic.office.ledger.for_analyst("alice"), clinic.office.ledger.count
    both = ", ".join(view.charge(dp.Pure(epsilon=part), asked="a part").receipt for part in (0.3, 0.1))
    note = (clinic.store, "alice", both, "SELECT a + b", {"epsilon": 0.4}, clinic.time)
    questions.note_question(*note, version="v1", since=before)
    ask(clinic, "alice", 0.2)
    ask(clinic, "alice", 0.5, "SELECT 2", free=True)
    assert clinic.do("spending", person("alice"))["typical"] == pytest.approx(0.3)


def test_pages_are_newest_first(clinic: Clinic) -> None:
    clinic.open("alice")
    for number in range(7):
        ask(clinic, "alice", 0.01 + number / 1000, f"SELECT {number}")
    pages = [clinic.do("history", person("alice"), page=page, most=3) for page in (1, 2, 3, 4)]
    assert [[one["number"] for one in page["questions"]] for page in pages] == [[7, 6, 5], [4, 3, 2], [1], []]
    pinned = clinic.do("history", person("alice"), page=1, most=3, last=5)
    assert [one["number"] for one in pinned["questions"]] == [5, 4, 3]


@pytest.mark.parametrize("verb", ["history", "spending"])
def test_only_owners_and_auditors_look_at_others(clinic: Clinic, verb: str) -> None:
    clinic.open("alice")
    clinic.open("bob")
    ask(clinic, "bob", 0.1)
    for role in ROLES:
        caller = person("carol", role)
        if role in ("owner", "auditor"):
            assert clinic.do(verb, caller, account="BOB")["account"] == "bob"
            with refuses(NotAllowed, "gateway-role"):
                clinic.do(verb, person("carol", role, scopes={"replay", "explain"}), account="bob")
        else:
            for name in ("bob", "nobody"):  # whether there is such an account is not told
                with refuses(NotAllowed, "gateway-role"):
                    clinic.do(verb, caller, account=name)
    assert clinic.do(verb, person("alice"), account="Alice")["account"] == "alice"


# --- spending -----------------------------------------------------------------------------------------------


def test_the_course_of_the_data_set_needs_the_rights_of_the_record(clinic: Clinic) -> None:
    clinic.open("alice")
    ask(clinic, "alice", 0.1)
    assert clinic.do("spending", person("olga", "owner"))["points"]
    for given in ({}, {"whole": True}):
        with refuses(NotAllowed, "gateway-role"):
            clinic.do("spending", person("olga", "owner", scopes={"ask", "replay", "explain"}), **given)


def test_spending_is_what_is_left_over_time(clinic: Clinic) -> None:
    clinic.open("alice")
    ask(clinic, "alice", 0.5, at=DAY)
    ask(clinic, "alice", 1.0, at=DAY)
    found = clinic.do("spending", person("alice"))
    assert [one["left"] for one in found["points"]] == pytest.approx([3, 2.5, 1.5])
    assert found["left"]["epsilon"] == pytest.approx(1.5)
    assert found["typical"] == pytest.approx(0.75)
    assert json.loads(found["guarantee"])["is"] == "Approx"
    assert "accounts" not in found
    whole = clinic.do("spending", person("olga", "owner"))
    assert [one["left"] for one in whole["points"]] == pytest.approx([10, 10, 9.5, 8.5])
    assert whole["accounts"] == [{"name": "alice", "limit": 3.0, "left": pytest.approx(1.5)}]
    assert clinic.do("spending", person("aude", "auditor"), whole=True)["points"] == whole["points"]
    assert clinic.do("spending", person("vera", "viewer"))["points"] == []
    with refuses(NotAllowed, "gateway-role"):
        clinic.do("spending", person("alice"), whole=True)


def test_nothing_of_a_running_slot_is_in_it(clinic_with) -> None:
    from dataclasses import replace

    clinic = clinic_with()
    clinic.open("alice")
    clinic.open("bob")
    ask(clinic, "alice", 0.5, at=60)
    before = clinic.do("spending", person("olga", "owner"))
    own = clinic.do("spending", person("alice"))
    count = clinic.office.ledger.count
    clinic.office = replace(clinic.office, as_of=lambda: count)
    ask(clinic, "bob", 0.7)  # as a lane charges in its slot
    ask(clinic, "alice", 0.9)
    clinic.office.ledger.for_analyst("alice").charge(dp.Pure(epsilon=0.1), asked="more")
    assert clinic.do("spending", person("olga", "owner")) == before
    assert clinic.do("spending", person("alice")) == own


def test_stewards_and_auditors_see_nothing_of_a_running_slot(clinic_with) -> None:
    from dataclasses import replace

    clinic = clinic_with()
    clinic.open("alice")
    ask(clinic, "alice", 0.5)
    sam, aude = person("sam", "steward"), person("aude", "auditor")
    asked = (("accounts", sam), ("accounts", aude), ("record", aude), ("record", person("olga", "owner")))
    before = [clinic.do(verb, caller) for verb, caller in asked]
    count = clinic.office.ledger.count
    clinic.office = replace(clinic.office, as_of=lambda: count)
    clinic.office.ledger.for_analyst("alice").charge(dp.Pure(epsilon=0.1), asked="as a lane charges in its slot")
    assert [clinic.do(verb, caller) for verb, caller in asked] == before
    assert clinic.do("record", aude, first=count + 1, last=count + 5)["entries"] == []


def test_times_of_an_account_are_those_at_which_answers_left(clinic: Clinic) -> None:
    clinic.open("alice")
    ask(clinic, "alice", 0.5, at=2 * DAY)
    last = clinic.do("spending", person("alice"))["points"][-1]
    asked = clinic.do("history", person("alice"))["questions"][-1]
    assert last["at"] == asked["at"]


def test_a_long_course_has_few_points(clinic: Clinic) -> None:
    clinic.open("alice", epsilon=9)
    ledger = clinic.office.ledger.for_analyst("alice")
    for number in range(MOST + 60):
        ledger.charge(dp.Pure(epsilon=0.001), asked=f"{number}")
    count = clinic.office.ledger.count
    stages = course_of(clinic.office.ledger, moments_of(clinic.office.ledger, count), count)
    assert len(stages) <= MOST + 1
    assert stages[-1].number == count
    lefts = [one.left for one in stages]
    assert lefts == sorted(lefts, reverse=True)
    assert float(lefts[0] - lefts[-1]) == pytest.approx(0.26)


def test_a_raised_limit_and_a_new_period_are_steps(clinic: Clinic) -> None:
    clinic.open("alice")
    ask(clinic, "alice", 1)
    clinic.do("raise", name="alice", epsilon=4, why="more")
    clinic.do("renew", name="alice", why="new year")
    found = clinic.do("spending", person("alice"))
    assert [(one["left"], one["limit"]) for one in found["points"]] == [(3, 3), (2, 3), (3, 4), (4, 4)]
    assert json.loads(found["spent"])["epsilon"] in (1, {"ratio": "1/1"})  # over all periods


def test_samples_are_even_and_have_both_ends() -> None:
    assert sample(1, 5) == [1, 2, 3, 4, 5]
    assert sample(1, 0) == []
    for last in (MOST, MOST + 1, 10**6, 10**6 + 1):
        some = sample(1, last)
        assert MOST // 2 <= len(some) <= MOST
        assert (some[0], some[-1]) == (1, last)
        assert some == sorted(set(some))
    assert set(sample(1, 10**6)[:-1]) <= set(sample(1, 10**6 + 1))


@pytest.mark.parametrize(
    ("stages", "pace"),
    [
        ([], 0.0),
        ([(0, 5.0)], 0.0),
        ([(-30, 10.0), (-6, 9.0), (-1, 3.0)], 1.0),  # 7 in the last 7 days
        ([(-30, 10.0), (-20, 3.0)], 0.0),
        ([(-2, 10.0), (-1, 8.0)], 1.0),  # opened two days ago
        ([(-0.1, 10.0), (0, 9.0)], 1.0),  # at least a day counts
        ([(-6, 3.0), (-4, 1.0), (-2, 10.0), (-1, 8.0)], 1.0),  # a new period began two days ago
    ],
)
def test_the_pace_is_that_of_the_last_week(stages, pace) -> None:
    now = 100 * DAY
    made = [Stage(n, now + days * DAY, Fraction(left), Fraction(10)) for n, (days, left) in enumerate(stages)]
    assert pace_of(made, now) == pytest.approx(pace)


def test_moments_outside_are_left_out(clinic: Clinic) -> None:
    clinic.open("alice")
    view = clinic.office.ledger.for_analyst("alice")
    assert len(course_of(view, [Moment(0, 1.0), Moment(99, 1.0)], clinic.office.ledger.count)) == 1
    assert course_of(view, [], 0) == []  # before the account was there
    for points in (0.5, 5, 1000, "x"):
        with refuses(InvalidArgument, "gateway-argument"):
            clinic.do("spending", person("alice"), points=points)

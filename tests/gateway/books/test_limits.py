"""Limits below the ledger's: exact, never exceeded by questions at the same time, and undone once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction

import pytest

import discreet as dp
from discreet.errors import BudgetExhausted, InvalidArgument, NotAllowed, ServiceUnavailable
from discreet.gateway.books import approvals, audit, late, limits
from discreet.gateway.books.tokens import COMMAND_LINE, Caller

from ...refusing import refuses
from ..clinics import Clinic, at_once

TENTH = Fraction(1, 10)


def reserve(clinic: Clinic, caller: Caller, epsilon: Fraction = TENTH, **more: str) -> limits.Reservation:
    return limits.reserve(clinic.store, clinic.settings, caller, epsilon, clinic.time, **more)


def left(clinic: Clinic, caller: Caller) -> dict[str, Fraction]:
    found = limits.standing(clinic.store, clinic.settings, caller, clinic.time)
    return {name: one["left"] for name, one in found.items()}


def test_ten_tenths_are_exactly_one(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(day=Fraction(1))
    alice = clinic.login("alice")
    for _ in range(10):
        reserve(clinic, alice)
    with pytest.raises(BudgetExhausted) as info:
        reserve(clinic, alice, Fraction(1, 10**18))
    assert (info.value.code, info.value.remaining) == ("gateway-day-limit", None)
    assert left(clinic, alice) == {"day": 0}


def test_what_is_left_is_said_exactly(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(day=Fraction(1))
    alice = clinic.login("alice")
    reserve(clinic, alice, Fraction(7, 10))
    with pytest.raises(BudgetExhausted) as info:
        reserve(clinic, alice, Fraction(4, 10))
    assert info.value.remaining == dp.Pure(epsilon=Fraction(3, 10))
    reserve(clinic, alice, Fraction(3, 10))


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(10**6)])
def test_large_epsilons_are_counted(clinic_with: Callable[..., Clinic], epsilon: Fraction) -> None:
    clinic = clinic_with(day=epsilon)
    alice = clinic.login("alice")
    reserve(clinic, alice, epsilon)
    assert left(clinic, alice) == {"day": 0}


def test_thirds_round_up(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(day=Fraction(1))
    alice = clinic.login("alice")
    reserve(clinic, alice, Fraction(1, 3))
    reserve(clinic, alice, Fraction(1, 3))
    with refuses(BudgetExhausted, "gateway-day-limit"):
        reserve(clinic, alice, Fraction(1, 3))


def test_one_question_has_a_limit(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(question_most=Fraction(1, 2))
    alice = clinic.login("alice")
    reserve(clinic, alice, Fraction(1, 2))
    with refuses(BudgetExhausted, "gateway-question-limit"):
        reserve(clinic, alice, Fraction(51, 100))
    reserve(clinic, alice, Fraction(1, 2))


def test_a_plan_says_what_would_stop_the_question(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(question_most=Fraction(1, 2), session=Fraction(6, 10), approve_above=Fraction(3, 10))
    alice = clinic.login("alice")

    def hindrance(epsilon: Fraction) -> str | None:
        return limits.hindrance(clinic.store, clinic.settings, alice, epsilon, clinic.time)

    assert hindrance(Fraction(0)) is hindrance(Fraction(3, 10)) is None
    assert hindrance(Fraction(4, 10)) == "Above ε = 0.3, a second person must approve. Asking files a request."
    assert hindrance(Fraction(51, 100)) == (
        "Asked now, it would be refused: ε = 0.51 is too much: one question may cost at most ε = 0.5. Ask with a "
        "smaller ε."
    )
    reserve(clinic, alice, Fraction(3, 10))
    reserve(clinic, alice, Fraction(2, 10))
    for epsilon in (TENTH, TENTH + Fraction(1, 10**18)):
        said = hindrance(epsilon)
        if said is None:
            reserve(clinic, alice, epsilon)
            continue
        with pytest.raises(BudgetExhausted) as info:
            reserve(clinic, alice, epsilon)
        assert str(info.value).replace(" Nothing was charged.", "") in said
    assert hindrance(TENTH) is not None


def test_a_token_has_a_limit_for_life(clinic: Clinic) -> None:
    clinic.open("alice")
    made = clinic.do("token", account="alice", epsilon=0.2)
    alice = clinic.caller(made["token"])
    reserve(clinic, alice)
    clinic.time += 3 * 86_400
    reserve(clinic, alice)
    with refuses(BudgetExhausted, "gateway-token-limit"):
        reserve(clinic, alice)
    rotated = clinic.caller(clinic.do("rotate", id=made["id"])["token"])
    with refuses(BudgetExhausted, "gateway-token-limit"):
        reserve(clinic, rotated)
    assert clinic.do("tokens", account="alice")["tokens"][0]["spent"] == 0.2
    other = clinic.caller(clinic.do("token", account="alice")["token"])
    reserve(clinic, other)


def test_a_session_ends_after_a_pause_of_half_an_hour(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(session=Fraction(2, 10))
    alice = clinic.login("alice")
    reserve(clinic, alice)
    clinic.time += 1800
    reserve(clinic, alice)
    with refuses(BudgetExhausted, "gateway-session-limit"):
        reserve(clinic, alice)
    clinic.time += 1799
    with refuses(BudgetExhausted, "gateway-session-limit"):
        reserve(clinic, alice)
    clinic.time += 2
    reserve(clinic, alice)
    other = clinic.caller(clinic.do("token", account="alice")["token"])
    assert left(clinic, other) == {"session": Fraction(2, 10)}
    assert left(clinic, alice) == {"session": TENTH}


def test_a_day_ends_at_midnight_for_all_tokens_of_an_account(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(day=Fraction(2, 10))
    alice = clinic.login("alice")
    other = clinic.caller(clinic.do("token", account="alice")["token"])
    bob = clinic.login("bob")
    reserve(clinic, alice)
    reserve(clinic, other)
    with refuses(BudgetExhausted, "gateway-day-limit"):
        reserve(clinic, alice)
    reserve(clinic, bob)
    midnight = (clinic.time // 86_400 + 1) * 86_400
    clinic.time = midnight - 0.001
    with refuses(NotAllowed, "gateway-login"):  # the login has ended, not the day
        reserve(clinic, alice)
    clinic.time = midnight - 0.001
    with refuses(BudgetExhausted, "gateway-day-limit"):
        reserve(clinic, other)
    clinic.time = midnight
    reserve(clinic, other)


def test_a_refusal_counts_nothing(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(day=Fraction(1), session=Fraction(1, 2))
    alice = clinic.login("alice")
    reserve(clinic, alice, Fraction(4, 10))
    before = left(clinic, alice)
    with refuses(BudgetExhausted, "gateway-session-limit"):
        reserve(clinic, alice, Fraction(2, 10))
    assert left(clinic, alice) == before
    assert late.charged_count(clinic.store) == 1


def test_undoing_counts_back_once(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(day=Fraction(1), session=Fraction(1))
    clinic.open("alice")
    alice = clinic.caller(clinic.do("token", account="alice", epsilon=1)["token"])
    reserve(clinic, alice)
    made = reserve(clinic, alice, Fraction(3, 10))
    assert left(clinic, alice) == dict.fromkeys(("day", "token", "session"), Fraction(6, 10))
    for _ in range(2):
        limits.undo(clinic.store, made)
        assert left(clinic, alice) == dict.fromkeys(("day", "token", "session"), Fraction(9, 10))
    assert late.charged_count(clinic.store) == 2  # the bits of time are never understated


def test_undoing_leaves_a_new_session_and_a_new_day_alone(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(day=Fraction(1), session=Fraction(1))
    clinic.open("alice")
    alice = clinic.caller(clinic.do("token", account="alice")["token"])
    made = reserve(clinic, alice)
    clinic.time += 86_400
    reserve(clinic, alice, Fraction(2, 10))
    limits.undo(clinic.store, made)
    assert left(clinic, alice) == dict.fromkeys(("day", "session"), Fraction(8, 10))


@pytest.mark.parametrize("epsilon", [-1, float("nan"), "1", None, Fraction(10**7)])
def test_an_epsilon_that_is_none(clinic: Clinic, epsilon: object) -> None:
    alice = clinic.login("alice")
    with pytest.raises(InvalidArgument):
        reserve(clinic, alice, epsilon)  # type: ignore[arg-type]


def test_eight_threads_never_exceed_a_day(anywhere: Clinic) -> None:
    anywhere.set(day=Fraction(5, 10))
    alice = anywhere.login("alice")
    found = at_once(lambda _: [reserve_or_code(anywhere, alice) for _ in range(2)])
    outcomes = [one for both in found for one in both]
    assert outcomes.count("reserved") == 5
    assert outcomes.count("gateway-day-limit") == 11
    assert left(anywhere, alice) == {"day": 0}


def reserve_or_code(clinic: Clinic, caller: Caller) -> str:
    try:
        reserve(clinic, caller)
    except BudgetExhausted as error:
        return error.code
    return "reserved"


@pytest.mark.slow
def test_processes_together_never_exceed_a_day(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(day=Fraction(5, 10))
    alice = clinic.login("alice")
    code = (
        "import json, sys\nfrom fractions import Fraction\n"
        "from discreet.errors import BudgetExhausted\nfrom discreet.gateway.books import limits\n"
        "from discreet.gateway.settings import Settings\nfrom discreet.gateway.books.store import GatewayStore\n"
        "from discreet.gateway.books.tokens import Caller\n"
        "store, made = GatewayStore(sys.argv[1]), 0\n"
        "caller = Caller(account='alice', role='analyst', scopes=frozenset(), token=sys.argv[2])\n"
        "for _ in range(5):\n"
        "    try:\n"
        "        limits.reserve(store, Settings(day=Fraction(1, 2)), caller, Fraction(1, 10), float(sys.argv[3]))\n"
        "        made += 1\n"
        "    except BudgetExhausted: pass\n"
        "print(json.dumps(made))\n"
    )
    command = [sys.executable, "-c", code, clinic.target, str(alice.token), str(clinic.time)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sum(json.loads(one.communicate()[0]) for one in running) == 5
    assert left(clinic, alice) == {"day": 0}


# --- stopped, suspended, late -----------------------------------------------------------------------------


def test_a_caller_from_a_cache_is_checked_again(clinic: Clinic) -> None:
    alice = clinic.login("alice")
    clinic.do("suspend", name="alice")
    with refuses(NotAllowed, "gateway-suspended"):
        reserve(clinic, alice)
    clinic.do("resume", name="alice")
    reserve(clinic, alice)
    clinic.do("revoke", id=alice.token)
    with refuses(NotAllowed, "gateway-login"):
        reserve(clinic, alice)


def test_all_stop_and_go_on(clinic: Clinic) -> None:
    alice, sam = clinic.login("alice"), clinic.login("sam", "steward")
    clinic.do("suspend", sam)
    with refuses(ServiceUnavailable, "gateway-stopped"):
        reserve(clinic, alice)
    assert clinic.do("me", alice)["suspended"]
    with refuses(NotAllowed, "gateway-role"):
        clinic.do("resume", sam)
    clinic.do("resume")
    reserve(clinic, alice)
    assert not clinic.do("me", alice)["suspended"]


@pytest.mark.parametrize("allowed", [0, 2])
def test_late_answers_stop_all_until_the_owner_looks(clinic_with: Callable[..., Clinic], allowed: int) -> None:
    clinic = clinic_with(late_allowed=allowed)
    alice, bob = clinic.login("alice"), clinic.login("bob")
    for number in range(allowed + 1):
        reserve(clinic, bob)
        assert late.record_late(clinic.store, "alice", f"digest {number}", clinic.time) == number + 1
    with refuses(ServiceUnavailable, "gateway-stopped"):
        reserve(clinic, bob)
    assert (late.late_count(clinic.store), late.charged_count(clinic.store)) == (allowed + 1, allowed + 1)
    told = late.promised_bits(clinic.store, allowed + 1)
    clinic.do("resume", name="alice")
    with refuses(ServiceUnavailable, "gateway-stopped"):
        reserve(clinic, alice)
    clinic.do("resume")
    reserve(clinic, alice)
    assert (late.late_count(clinic.store), late.charged_count(clinic.store)) == (0, 1)
    assert late.promised_bits(clinic.store, allowed + 1) == pytest.approx(told + late.bits(allowed + 1, 1))
    assert audit.lines(clinic.store)[-2].content == {"late": allowed + 1, "questions": allowed + 1, "bits": told}


def test_a_late_answer_of_an_earlier_period_counts_as_a_question(clinic: Clinic) -> None:
    reserve(clinic, clinic.login("alice"))
    clinic.do("resume")
    late.record_late(clinic.store, "alice", "d", clinic.time)
    assert (late.late_count(clinic.store), late.charged_count(clinic.store)) == (1, 1)
    assert late.promised_bits(clinic.store, 1) == 2.0


@pytest.mark.parametrize(
    ("most", "questions", "expected"), [(1, 0, 0.0), (1, 1, 1.0), (1, 1000, 10.0), (1, 1023, 10.0), (1, 1024, 10.1)]
)
def test_bits_are_rounded_up(most: int, questions: int, expected: float) -> None:
    assert late.bits(most, questions) == expected


def test_bits_grow_with_what_is_allowed() -> None:
    assert late.bits(2, 4) == 3.5  # 1 + 4 + 6 = 11 patterns, log2 is 3.459
    assert late.bits(11, 4) == 4.0  # all 16
    assert late.bits(4, 10_000) == 48.6


# --- approvals --------------------------------------------------------------------------------------------


@pytest.fixture
def careful(clinic_with: Callable[..., Clinic]) -> Clinic:
    return clinic_with(approve_above=Fraction(1, 2), day=Fraction(2))


BIG = Fraction(6, 10)


def ask(clinic: Clinic, caller: Caller, epsilon: Fraction = BIG, digest: str = "d") -> limits.Reservation:
    return reserve(clinic, caller, epsilon, digest=digest, sql="SELECT COUNT(*) FROM visits")


def test_a_question_above_the_limit_needs_a_second_person_and_is_asked_once(careful: Clinic) -> None:
    alice, sam = careful.login("alice"), careful.login("sam", "steward")
    ask(careful, alice, Fraction(1, 2))
    for _ in range(2):
        with refuses(NotAllowed, "gateway-approval"):
            ask(careful, alice)
    [request] = careful.do("requests", sam)["requests"]
    assert (request["number"], request["account"], request["epsilon"], request["state"]) == (1, "alice", 0.6, "open")
    assert left(careful, alice) == {"day": Fraction(3, 2)}
    careful.do("decide", sam, number=1, decision="approve", why="fine")
    ask(careful, alice)
    with refuses(NotAllowed, "gateway-approval"):
        ask(careful, alice)
    assert [one["state"] for one in careful.do("requests", alice)["requests"]] == ["open", "used"]


def test_an_approval_is_for_the_same_question_by_the_same_account_with_no_more_epsilon(careful: Clinic) -> None:
    alice, bob = careful.login("alice"), careful.login("bob")
    number = approvals.ask_approval(careful.store, alice, "d", "SELECT 1", BIG, careful.time)
    careful.do("decide", number=number, decision="approve")
    assert not approvals.use(careful.store, alice, "other", BIG)
    assert not approvals.use(careful.store, bob, "d", BIG)
    assert not approvals.use(careful.store, alice, "d", BIG + Fraction(1, 10**18))
    assert approvals.use(careful.store, alice, "d", BIG - TENTH)
    assert not approvals.use(careful.store, alice, "d", BIG)


def test_who_asks_again_hears_why_the_request_was_refused(careful: Clinic) -> None:
    alice, bob = careful.login("alice"), careful.login("bob")
    number = approvals.ask_approval(careful.store, alice, "d", "SELECT 1", BIG, careful.time)
    careful.do("decide", number=number, decision="refuse", why="too much\nfor a count.")
    said = []
    for caller, digest in ((bob, "d"), (alice, "other"), (alice, "d"), (alice, "d")):
        with refuses(NotAllowed, "gateway-approval") as caught:
            ask(careful, caller, digest=digest)
        said.append(str(caught.value))
    assert [one.startswith("Request 1 for this question was refused: too much for a count. ") for one in said] == [
        False,
        False,
        True,
        False,  # of the new request, which waits
    ]


def test_more_epsilon_is_another_request(careful: Clinic) -> None:
    alice = careful.login("alice")
    file = [approvals.ask_approval(careful.store, alice, "d", "SELECT 1", one, careful.time) for one in (BIG, 1, BIG)]
    assert file == [1, 2, 1]


def test_an_approval_that_eight_use_at_once_works_for_one(anywhere: Clinic) -> None:
    anywhere.set(approve_above=Fraction(1, 2))
    alice = anywhere.login("alice")
    with refuses(NotAllowed, "gateway-approval"):
        ask(anywhere, alice)
    anywhere.do("decide", number=1, decision="approve")
    found = at_once(lambda _: type(ask(anywhere, alice)).__name__)
    assert sorted(found) == ["Reservation", *["gateway-approval"] * 7]


def test_nobody_decides_their_own_request(careful: Clinic) -> None:
    olga = careful.login("olga", "owner")
    with refuses(NotAllowed, "gateway-approval"):
        ask(careful, olga)
    with refuses(NotAllowed, "gateway-approval"):
        careful.do("decide", olga, number=1, decision="approve")
    assert careful.do("decide", number=1, decision="refuse", why="no")["state"] == "refused"
    with refuses(InvalidArgument, "gateway-decided"):
        careful.do("decide", number=1, decision="approve")


@pytest.mark.parametrize("role", ["analyst", "viewer", "auditor", "service"])
def test_only_owners_and_stewards_decide(careful: Clinic, role: str) -> None:
    alice, other = careful.login("alice"), careful.login("other", role)
    with refuses(NotAllowed, "gateway-approval"):
        ask(careful, alice)
    with refuses(NotAllowed, "gateway-role"):
        approvals.decide(careful.store, 1, other, "approve", "", careful.time)
    with refuses(NotAllowed, "gateway-role"):
        careful.do("decide", other, number=1, decision="approve")
    assert careful.do("requests", other)["requests"] == []


def test_a_limit_does_not_use_up_an_approval_and_undoing_gives_it_back(careful: Clinic) -> None:
    alice = careful.login("alice")
    with refuses(NotAllowed, "gateway-approval"):
        ask(careful, alice)
    careful.do("decide", number=1, decision="approve")
    for _ in range(3):
        ask(careful, alice, Fraction(1, 2))
    with refuses(BudgetExhausted, "gateway-day-limit"):
        ask(careful, alice)
    careful.set(day=Fraction(5))
    made = ask(careful, alice)
    limits.undo(careful.store, made)
    ask(careful, alice)
    with refuses(NotAllowed, "gateway-approval"):
        ask(careful, alice)


def test_requests_that_wait_have_a_limit(careful: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approvals, "MOST_OPEN", 3)
    alice, bob = careful.login("alice"), careful.login("bob")
    for number in range(3):
        approvals.ask_approval(careful.store, alice, f"d{number}", "SELECT 1", BIG, careful.time)
    with refuses(NotAllowed, "gateway-approval"):
        approvals.ask_approval(careful.store, alice, "d9", "SELECT 1", BIG, careful.time)
    assert approvals.ask_approval(careful.store, bob, "d9", "SELECT 1", BIG, careful.time) == 4


# --- alerts -----------------------------------------------------------------------------------------------


def test_an_alert_is_said_once_until_the_limit_changes(clinic: Clinic) -> None:
    clinic.open("alice", epsilon=1)
    view = clinic.office.ledger.for_analyst("alice")

    def new() -> list[str]:
        return limits.check_alerts(clinic.store, clinic.settings, clinic.office.ledger, "alice", clinic.time)

    view.charge(dp.Pure(epsilon=0.7), asked="a")
    assert new() == []
    view.charge(dp.Pure(epsilon=0.1), asked="b")
    assert [said.split()[0] for said in new()] == ["alice"]
    assert new() == []
    assert clinic.do("accounts")["accounts"][0]["alert"] == limits.alerts(clinic.store)["alice"]
    clinic.do("raise", name="alice", epsilon=5, why="more")
    assert new() == []
    assert limits.alerts(clinic.store) == {}
    view.charge(dp.Pure(epsilon=3.9), asked="c")
    assert len(new()) == 1
    assert [line.what for line in audit.lines(clinic.store)].count("alert") == 2


def test_the_data_set_has_an_alert_too(clinic: Clinic) -> None:
    clinic.office.ledger.charge(dp.Pure(epsilon=9), asked="a")
    assert len(limits.check_alerts(clinic.store, clinic.settings, clinic.office.ledger, None, clinic.time)) == 1
    assert clinic.do("accounts")["alert"].startswith("The data set")
    assert limits.check_alerts(clinic.store, clinic.settings, clinic.office.ledger, None, clinic.time) == []


def test_the_command_line_has_no_session(clinic_with: Callable[..., Clinic]) -> None:
    clinic = clinic_with(session=TENTH, day=Fraction(1))
    assert left(clinic, COMMAND_LINE) == {"day": 1}

"""Seeded bugs of admission, and the checks that see them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from discreet.cli.shuffle import report
from discreet.errors import DiscreetError
from discreet.shuffle.channel import admission, blind_rsa, issuer

from ..polls import Poll, make_poll, signer
from . import test_blind_signatures
from .test_client import a_report_with_a_voucher_is_drawn_once, a_request_is_for_one_task
from .test_issuer import a_voucher_is_good_for_one_ticket, what_is_malformed_does_not_use_up_a_voucher
from .test_tickets import (
    a_forged_ticket_is_malformed,
    a_report_is_bound_to_its_ticket,
    a_ticket_counts_once,
    a_ticket_of_another_task_is_malformed,
)


def _in_a_new_poll(check: Callable[[Poll], None]) -> Callable[[Path], None]:
    return lambda folder: check(make_poll(folder, admission_by=signer()))


def a_wrong_signature_is_not_handed_out(folder: Path) -> None:
    test_blind_signatures.test_a_fault_of_the_machine_gives_nothing_away()


def views_are_exchangeable(folder: Path) -> None:
    test_blind_signatures.test_the_issuer_and_the_shuffler_together_cannot_tell_two_people_apart()


FORGED, ELSEWHERE, BOUND, ONCE, VOUCHERS, MALFORMED, DRAWN = map(
    _in_a_new_poll,
    (
        a_forged_ticket_is_malformed,
        a_ticket_of_another_task_is_malformed,
        a_report_is_bound_to_its_ticket,
        a_ticket_counts_once,
        a_voucher_is_good_for_one_ticket,
        what_is_malformed_does_not_use_up_a_voucher,
        a_report_with_a_voucher_is_drawn_once,
    ),
)
MUTANTS: dict[str, tuple[Any, str, str, str, Callable[[Path], None]]] = {
    "a signature that is not verified": (
        admission, "accepted", "or not blind_rsa.verify(modulus, message, ticket[_DRAWN.stop :])", "", FORGED),
    "a ticket of any task": (
        admission, "message_of", 'b"admission" + task +', 'b"admission" + bytes(32) +', ELSEWHERE),
    "a request of any task": (
        admission, "request_file", "task, voucher", "voucher", a_request_is_for_one_task),
    "a report that is drawn again": (
        report, "_report_with", 'client.send(bytes.fromhex(sealed.read_text("ascii")))', "client.report(value)",
        DRAWN),
    "a nullifier from the signature": (admission, "accepted", "CLIENT], message)", "CLIENT], ticket)", ONCE),
    "a name of one's own choice": (
        admission, "accepted", "ticket[:CLIENT] != client_of(message) or", "", BOUND),
    "a voucher for many tickets": (issuer.IssuerStore, "use", "== blinded", "!= b''", VOUCHERS),
    "a voucher that is not known": (
        issuer.Issuer, "admit", "if name not in self._known:", "if not name:", VOUCHERS),
    "a voucher bound to nothing": (
        issuer.Issuer, "admit", "hashlib.sha256(blinded).digest()", "bytes(32)", VOUCHERS),
    "what is not below n is signed": (
        blind_rsa, "check_blinded", "< number", "< 256 ** len(modulus)", MALFORMED),
    "zero and multiples of a factor are signed": (
        blind_rsa, "check_blinded", "not 0 < asked < number or math.gcd(asked, number) != 1", "asked >= number",
        MALFORMED),
    "a signature that is not checked": (
        blind_rsa, "blind_sign", "!= asked", "!= pow(signature, EXPONENT, number)",
        a_wrong_signature_is_not_handed_out),
    "a message that is not blinded": (blind_rsa, "blind", "_unit(number))", "1)", views_are_exchangeable),
    "a factor that is likelier": (
        blind_rsa, "_unit", "if 0 < drawn < number and", "drawn %= number\n        if 0 < drawn and",
        views_are_exchangeable),
    "a factor without an inverse": (
        blind_rsa, "_unit", " and math.gcd(drawn, number) == 1", "", views_are_exchangeable),
}  # fmt: skip


@pytest.mark.some_quick(3)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_bug_is_seen(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, function, right, wrong, check = MUTANTS[name]
    source = inspect.cleandoc("\n" + inspect.getsource(getattr(owner, function)))
    assert source.count(right) >= 1, f"{right!r} is not in {function}"
    home = owner if isinstance(owner, ModuleType) else inspect.getmodule(owner)
    made: dict[str, Any] = {}
    text = f"from __future__ import annotations\n{source.replace(right, wrong)}"
    exec(compile(text, name, "exec"), vars(home), made)
    check(tmp_path)  # it passes without the bug
    monkeypatch.setattr(owner, function, made[function])
    planted = tmp_path / "planted"
    planted.mkdir()
    with pytest.raises((AssertionError, ValueError, DiscreetError, pytest.fail.Exception)):
        check(planted)

"""Accounts, roles and login links."""

from __future__ import annotations

import discreet as dp

from .conftest import Clinic


def test_an_analyst_has_an_account_in_the_ledger_and_others_have_none(clinic: Clinic) -> None:
    clinic.open("alice", epsilon=3)
    clinic.open("sam", "steward")
    assert clinic.office.ledger.analysts == ("alice",)
    assert clinic.office.ledger.for_analyst("alice").limit == dp.Approx(epsilon=3, delta=1e-6)
    listed = {one["name"]: one for one in clinic.do("accounts")["accounts"]}
    assert listed["alice"]["limit"] == {"epsilon": 3.0, "delta": 1e-6}
    assert listed["sam"]["limit"] is None

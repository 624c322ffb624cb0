"""One client's value or report changes no other, whatever it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import discreet as dp

DELTA = 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("value", ["secret", b"secret", None, {"a": 1}, 10**400, 1j, (1, 2), [1, 2], float("nan")])
def test_no_value_can_stop_many_clients(value: Any) -> None:
    given: dict[str, Any] = {"clients": 100, "epsilon": 1, "delta": DELTA}
    for poll in (
        dp.shuffle.bit_sum(**given),
        dp.shuffle.sum(between=(0, 1), **given, planes=2),
        dp.shuffle.sum(between=(0, 1), **given, method="split and mix"),
        dp.shuffle.histogram(choices=["a", "b"], **given),
    ):
        assert len(poll.encode_many([value, value])) == 2 * poll.messages
    for method in ("hybrid", "laplace"):
        assert np.isfinite(dp.local.mean(between=(0, 1), epsilon=1, method=method).encode_many([value])).all()


def test_one_client_changes_no_other() -> None:
    poll: Any = dp.shuffle.bit_sum(clients=100, epsilon=1, delta=DELTA, method="two messages")
    assert poll.encode_many([1, "x", 1]).reshape(3, 2)[::2, 0].tolist() == [1, 1]


def test_one_bad_report_spoils_nothing() -> None:
    poll = dp.shuffle.histogram(choices=["a", "b"], clients=100, epsilon=1, delta=DELTA)
    good = poll.encode_many(["a"] * 100).tolist()
    assert poll.analyze([*good, None, 2**70, "x", 1.7, -3], reports=100).value == poll.analyze(good).value
    mean = dp.local.mean(between=(0, 1), epsilon=1, method="laplace")
    told = mean.analyze([0.3] * 10 + ["x", 1e300, None])  # type: ignore[list-item]
    assert told.raw == pytest.approx(0.3)
    assert told.rejected == 3
    rows = dp.local.rows({"c": ["x", "y"], "n": (0, 1)}, epsilon=2)
    reports = [rows.encode({"c": "x", "n": 0.5}) for _ in range(20)]
    told = rows.analyze([*reports, {"c": 1}, None])
    assert (told["c"].reports, told["c"].rejected) == (21, 1)  # type: ignore[union-attr]
    assert (told["n"].reports, told["n"].rejected) == (20, 2)  # type: ignore[union-attr]

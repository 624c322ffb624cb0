"""One odd record changes its own part only, whatever it is, in every public call that takes data."""

from __future__ import annotations

from itertools import chain, islice

import pytest

from .checking import Call, all_of_them, quick_containers, quick_records, troubles
from .registry import CALLS

PARTS = 4
"""Everything with everything takes minutes where the machine is busy, and a test may not."""


def told(found: list[str]) -> str:
    """Each trouble in a line of its own."""
    return f"{len(found)} troubles:\n" + "\n".join(found)


@pytest.mark.parametrize("call", [call for call in CALLS if not call.alike], ids=str)
def test_every_record_and_every_container_of_every_call(call: Call) -> None:
    found = troubles(call, chain(quick_records(call), quick_containers(call)))
    if found:
        pytest.fail(told(found), pytrace=False)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_everything_with_everything(call: Call, part: int) -> None:
    found = troubles(call, islice(all_of_them(call), part, None, PARTS))
    if found:
        pytest.fail(told(found), pytrace=False)

"""Which oracle reveals the most about this many values at a given ε."""

from __future__ import annotations

from discreet.errors import InvalidArgument
from discreet.guarantees.guarantee import Guarantee
from discreet.mechanisms.reports.bit_response import SubsetSelection, UnaryResponse
from discreet.mechanisms.reports.frequency_oracle import DirectResponse, FrequencyOracle
from discreet.mechanisms.reports.geometric_response import HadamardResponse, ProjectiveResponse
from discreet.mechanisms.reports.local_hashing import LocalHashing

ORACLES: tuple[type[FrequencyOracle], ...] = (
    DirectResponse,
    ProjectiveResponse,
    HadamardResponse,
    SubsetSelection,
    LocalHashing,
    UnaryResponse,
)
"""All oracles, the quicker first."""
TIE = 1.05
LARGEST_LISTED = 2**20


def best_oracle(guarantee: Guarantee, size: int, method: str = "auto") -> FrequencyOracle:
    """The oracle with the smallest variance for `size` values. Of those within 5% of it, the one with the shortest
    report.

    The variance is the average over all values, which does not depend on the data. Above 2^20 values, and for open
    domains, it is local hashing, which counts given candidates.
    """
    if method == "auto":
        if size > LARGEST_LISTED:
            return LocalHashing.for_guarantee(guarantee, size=size)
        made = [kind.for_guarantee(guarantee, size=size) for kind in ORACLES]
        least = min(oracle.variance for oracle in made)
        return min((oracle for oracle in made if oracle.variance <= TIE * least), key=lambda oracle: oracle.report_bits)
    for kind in ORACLES:
        if kind.method == method:
            if size > LARGEST_LISTED and kind is not LocalHashing:
                raise InvalidArgument(
                    f"{size} values are too many for this method. Leave method= out.", code="too-large"
                )
            return kind.for_guarantee(guarantee, size=size)
    raise InvalidArgument(
        f"method must be 'auto' or one of {', '.join(kind.method for kind in ORACLES)}.", code="not-an-option"
    )

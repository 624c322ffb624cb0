"""Counts of texts that are not listed in advance, from small reports: a count mean sketch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.door import in_test_mode
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count
from discreet.guarantees.accuracy import bernstein
from discreet.ledger import Ledger
from discreet.local.devices import Device, check_ledger, fingerprints, promise
from discreet.local.estimates import Counted, check_candidates, check_reports, check_some, nearest_counts
from discreet.mechanisms.reports.local_reports import Places, mean_interval
from discreet.mechanisms.reports.oracle_choice import best_oracle
from discreet.mechanisms.reports.prefix_response import SketchResponse
from discreet.rows.containers import Data


def sketch(
    *,
    width: int = 1024,
    hashes: int = 1024,
    epsilon: Number,
    delta: Number = 0,
    method: str = "auto",
    seed: int = 0,
    ledger: Ledger | None = None,
) -> Sketch:
    """A survey of any text, in `hashes` rows of `width` cells. `method` randomizes the cell, as in `survey`.

    Unlike `survey(domain="strings")`, the collector's work for a candidate does not grow with the reports.
    """
    stated = promise(epsilon, delta)
    check_ledger(ledger)
    oracle = best_oracle(stated, check_count(width, "width", at_least=2), method)
    return Sketch(mechanism=SketchResponse(oracle=oracle, hashes=hashes, seed=seed), stated=stated, ledger=ledger)


@dataclass(frozen=True, kw_only=True)
class Sketch(Device):
    """Both sides of a sketch: `encode` on the device, `analyze` at the collector."""

    mechanism: SketchResponse

    @property
    def method(self) -> str:
        """How a cell is randomized."""
        return self.mechanism.oracle.method

    def __str__(self) -> str:
        m = self.mechanism
        return f"A sketch of {m.hashes} × {m.oracle.size} cells, reported by the {self.method} method: {self.guarantee}"

    # --- on the device ---------------------------------------------------------------------------------------

    def places(self, values: Data) -> Places:
        """Fingerprints. −1 for a value that is not text."""
        return fingerprints(values)

    @property
    def takes(self) -> str:
        """The accepted values, in words."""
        return "text"

    @property
    def asked(self) -> str:
        """Any text, and the method."""
        return f"any text, a sketch reported by the {self.method} method"

    # --- at the collector ------------------------------------------------------------------------------------

    def analyze(self, reports: Data, candidates: Sequence[str], *, simplex: bool = True) -> Counted:
        """The counts of the candidates. The error bars hold over the noise and over the choice of the public seed."""
        given = check_reports(reports)
        names = check_candidates(candidates)
        wanted = fingerprints(names)
        if (wanted < 0).any():
            raise InvalidArgument("candidates must be text.", code="candidates")
        functions, parts = self.mechanism.valid(reports)
        total = check_some(functions)
        supported = self._supported(functions, parts, wanted)
        lie, gap = float(self.mechanism.oracle.support.lie), self.mechanism.oracle.gap
        shared = float(self.mechanism.collide)
        other, left = lie + gap * shared, gap * (1 - shared)
        raw = np.asarray((supported - total * other) / left, dtype=np.float64)

        def intervals(confidence: float) -> NDArray[np.float64]:
            log = math.log(4 * len(names) / (1 - confidence))
            ends = mean_interval(supported / total, log / total)
            # the share of functions in which others share the cell, far from its mean by so much at most
            away = bernstein(shared * (1 - shared), 1, log / self.mechanism.hashes)
            counts = (ends - other) / left * total
            return np.clip(counts + np.array([-1.0, 1.0]) * total * away / (1 - shared), 0, total)

        shown = nearest_counts(raw, total, all_named=False) if simplex else raw
        spread = supported / total * (1 - supported / total) * total
        collisions = total**2 * shared * (1 - shared) / self.mechanism.hashes
        return Counted(
            value=dict(zip(names, shown.tolist(), strict=True)),
            raw=dict(zip(names, raw.tolist(), strict=True)),
            guarantee=self.guarantee,
            not_private=in_test_mode(),
            reports=total,
            rejected=given - total,
            method=f"sketch, {self.method}",
            simplex=simplex,
            _intervals=intervals,
            _deviations=np.sqrt(spread / left**2 + collisions),
        )

    def _supported(self, functions: Any, parts: Any, values: Any) -> NDArray[np.int64]:
        oracle = self.mechanism.oracle
        order = np.argsort(functions, kind="stable")
        starts = np.searchsorted(functions[order], np.arange(self.mechanism.hashes + 1))
        total = np.zeros(len(values), dtype=np.int64)
        for function in np.unique(functions).tolist():
            mine = parts[order[starts[function] : starts[function + 1]]]
            total += oracle.supported(mine)[self.mechanism.cells(np.full(len(values), function), values)]
        return total

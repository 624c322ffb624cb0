"""A released synthetic table, and its error if that is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.guarantees.accuracy import Accuracy, check_confidence
from discreet.mechanisms.noise.gaussian import Gaussian
from discreet.synthetic.declared import Declared


@dataclass(frozen=True)
class SyntheticSample:
    """Synthetic rows: what `Synthesis` released, with the declared columns."""

    released: Mapping[str, Any] = field(repr=False)
    declared: Declared = field(repr=False)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def codes(self) -> NDArray[np.int64]:
        """One line of codes for each row."""
        return np.asarray(self.released["rows"])

    @property
    def measured(self) -> tuple[tuple[str, ...], ...]:
        """The sets of columns whose counts were measured."""
        return tuple(names for names, _, _ in self.released["measured"])

    @cached_property
    def columns(self) -> dict[str, Any]:
        """The table, column by column, with declared values only. Numbers lie anywhere in their bins."""
        return self.declared.values(self.codes)

    def error(self, confidence: float = 0.95, *, of: Sequence[str]) -> Accuracy:
        """How far any count of the columns `of`, one or those of a measured set, may be from the true one.

        A bound for all counts at once: the distance between the synthetic and the noisy counts, which anyone can see,
        plus the distance between noisy and true counts, by the exact law of the noise. Counts of a set are of bins.
        """
        sure = check_confidence(confidence)
        names = self.declared.domain.names
        for asked, noisy, stddev in self.released["measured"]:
            if set(asked) == set(of):
                places = [names.index(name) for name in asked]
                codes = [self.codes[:, place] for place in places]
                if len(places) > 1:
                    bins = self.released["bins"]
                    codes = [bins[place][code] for place, code in zip(places, codes, strict=True)]
                cells = np.ravel_multi_index(codes, noisy.shape)
                made = np.bincount(cells, minlength=math.prod(noisy.shape)).reshape(noisy.shape)
                scale = max(self.released["total"], 0.0) / max(len(self), 1)
                seen = float(np.abs(scale * made - noisy).max())
                tail = float(Gaussian(stddev=stddev, step=1).error(sure, values=noisy.size))
                return Accuracy(amount=seen + tail * (1 + 1e-9), confidence=sure, of="every value")
        reason = f"{' × '.join(of)} was not measured, and what the model makes of it depends on the data"
        return Accuracy(amount=None, confidence=sure, of="every value", reason=reason)

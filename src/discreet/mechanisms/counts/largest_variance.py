"""Plans for marginals whose largest variance is as small as possible: which questions decide, and how much each counts.

With noise of variance σ_A² for the residual of A, the variance of a question is Σ c_A σ_A², and the plan costs
Σ p_A/σ_A². For any weights λ of questions with sum 1, the least weighted sum of variances is (Σ √(p_A Σ λ c_A))², in
closed form. No plan has a smaller largest variance than that, and for the best weights it is attained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.counts.residual_bases import Basis, Floats

GAP = 1e-3
"""The largest variance of a plan is at most this part above the bound."""
_STEPS = 10**5
_ROUNDS = 100


@dataclass(frozen=True, eq=False)
class Marginal:
    """All questions about one set of columns: where its parts are in the list of all, what its columns are, and by what
    its variances are multiplied.

    Parts are listed as `itertools.product` lists whether each column is left out, from none to all.
    """

    parts: NDArray[np.int64]
    bases: Sequence[Basis]
    weight: float = 1.0

    def mean(self) -> Floats:
        """The c_A of the mean variance of its questions."""
        return self.weight * _products([np.array(basis.sums[:2]) / basis.sums[2] for basis in self.bases])

    def worst(self, variances: Floats) -> tuple[float, Floats]:
        """The largest variance of its questions, given σ_A² of all parts, and the c_A of this question.

        A variance grows with both numbers of each column, and is linear in them. So it is largest on the frontiers.
        """
        table = self.weight * variances[self.parts].reshape((2,) * len(self.bases))
        for basis in self.bases:
            table = np.tensordot(table, basis.frontier, axes=(0, 1))
        places = np.unravel_index(np.argmax(table), table.shape)
        pairs = [basis.frontier[place] for basis, place in zip(self.bases, places, strict=True)]
        return float(table.max()), self.weight * _products(pairs)


def balance(kept: Floats, marginals: Sequence[Marginal]) -> Floats:
    """Σ λ c_A of every part, for weights λ of questions with which the closed form has nearly the least largest
    variance.

    Only questions that were the worst of their marginal are weighted, and at first the mean of each marginal. The
    square of (variance / mean variance) multiplies λ: this maximizes a lower bound of Σ √(p_A Σ λ c_A) that is exact at
    λ, so the sum never decreases. Nothing here depends on data.
    """
    parts = [one.parts for one in marginals]
    found = [one.mean() for one in marginals]
    weights = np.full(len(found), 1 / len(found))
    for _ in range(_ROUNDS):
        places, factors = np.concatenate(parts), np.concatenate(found)
        rows = np.repeat(np.arange(len(found)), [len(part) for part in parts])
        for _ in range(_STEPS):
            sums = np.bincount(places, factors * weights[rows], minlength=len(kept))
            total = np.sqrt(kept * sums).sum()
            variances = np.sqrt(kept / sums) * total
            reached = np.bincount(rows, factors * variances[places])
            if reached.max() <= (1 + GAP / 2) * total**2:
                break
            weights = weights * (reached / total**2) ** 2
            weights /= weights.sum()
        worst = [(one.parts, *one.worst(variances)) for one in marginals]
        above = [(part, factor) for part, largest, factor in worst if largest > (1 + GAP) * total**2]
        if not above:
            break
        parts += [part for part, _ in above]
        found += [factor for _, factor in above]
        weights = np.append(weights, np.full(len(above), 1 / len(found)))
        weights /= weights.sum()
    return np.asarray(sums)


def _products(pairs: Sequence[Floats]) -> Floats:
    found = np.ones(1)
    for pair in pairs:
        found = np.multiply.outer(found, pair).reshape(-1)
    return found

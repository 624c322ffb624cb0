"""The maximum-entropy table that agrees with noisy marginals: a model on a junction tree.

Everything here uses numbers that are already released. Nothing is private, and floats may be used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.exact.randomness import random_words
from discreet.synthetic.junction_tree import Columns, JunctionTree

Floats = NDArray[np.float64]
_LEAST = 1e-300


@dataclass(frozen=True)
class NoisyMarginal:
    """Noisy counts of the cells of a marginal, and the standard deviation of each (an array, or one for all)."""

    columns: Columns
    counts: Floats
    stddev: Any


def broadcast(table: Floats, columns: Columns, within: Columns) -> Floats:
    """A table over some columns, shaped to multiply a table over more of them."""
    sizes = dict(zip(columns, table.shape, strict=True))
    return table.reshape([sizes.get(column, 1) for column in within])


def marginal_of(table: Floats, columns: Columns, onto: Columns) -> Floats:
    """The marginal of a table on some of its columns."""
    away = tuple(i for i, column in enumerate(columns) if column not in onto)
    return np.asarray(table.sum(axis=away)) if away else table


@dataclass(frozen=True)
class Model:
    """A distribution over rows: the marginal of each clique of a junction tree. Neighboring cliques agree on shared
    columns.

    The law is their product over the product of the separators: no other one with these marginals has more entropy.
    """

    sizes: tuple[int, ...]
    tree: JunctionTree
    marginals: tuple[Floats, ...]
    total: float

    def marginal(self, columns: Columns) -> Floats:
        """The probabilities of the cells of a marginal within one clique, or of any pair of columns."""
        home = self.tree.clique_of(columns)
        if home is not None:
            return marginal_of(self.marginals[home], self.tree.cliques[home], columns)
        first, second = columns
        return self.pairs_with(first)[second]

    def pairs_with(self, column: int) -> dict[int, Floats]:
        """The joint law of `column` with each other column, carried along the tree from clique to clique."""
        tree, found = self.tree, {column: np.diag(self.marginal((column,)))}
        start = tree.clique_of((column,))
        assert start is not None
        stack: list[tuple[int, int, Columns, Floats]] = [(start, -1, (column,), found[column])]
        while stack:
            place, before, given, joint = stack.pop()
            clique = tree.cliques[place]
            cells = self.marginals[place]
            # joint: one row for each value of `column`, one column for each cell of the columns given
            shared = marginal_of(cells, clique, given).reshape(-1)
            carried = joint / np.maximum(shared, _LEAST)
            order = [clique.index(c) for c in given] + [i for i, c in enumerate(clique) if c not in given]
            rest = tuple(c for c in clique if c not in given)
            table = cells.transpose(order).reshape(len(shared), -1)
            for other in rest:
                lone = marginal_of(cells, clique, tuple(sorted({*given, other})))
                lone = np.moveaxis(lone, sorted({*given, other}).index(other), -1).reshape(len(shared), -1)
                found[other] = found.get(other, carried @ lone)
            for following in tree.neighbors[place]:
                if following == before:
                    continue
                separator = tree.between(place, following)
                stack.append((following, place, separator, self._carry(carried, table, given, rest, separator)))
        return {other: table.reshape(self.sizes[column], -1) for other, table in found.items()}

    def _carry(self, carried: Floats, table: Floats, given: Columns, rest: Columns, onto: Columns) -> Floats:
        """From a law of (column, given) to one of (column, onto), both parts of one clique."""
        own = [self.sizes[c] for c in rest]
        kept_given = tuple(c for c in given if c in onto)
        kept_rest = tuple(c for c in rest if c in onto)
        inner = marginal_of(table.reshape(len(table), *own), (-1, *rest), (-1, *kept_rest)).reshape(len(table), -1)
        if not kept_given:
            joint = carried @ inner
        else:
            shape = [self.sizes[c] for c in given]
            full = carried.reshape(len(carried), *shape, 1) * inner.reshape(1, *shape, -1)
            away = tuple(1 + i for i, c in enumerate(given) if c not in onto)
            joint = full.sum(axis=away).reshape(len(carried), -1)
        # bring the columns into increasing order
        current = kept_given + kept_rest
        shaped = joint.reshape(len(joint), *(self.sizes[c] for c in current))
        order = [0] + [1 + current.index(c) for c in onto]
        return shaped.transpose(order).reshape(len(joint), -1)

    def sample(self, rows: int) -> NDArray[np.int64]:
        """This many rows, clique by clique. In each group of equal rows, the next columns occur with their expected
        counts.

        Counts of cells are their expectations rounded up or down, which leaves less error than independent draws.
        """
        drawn = np.zeros((rows, len(self.sizes)), dtype=np.int64)
        for clique, separator, cells in zip(self.tree.cliques, self.tree.separators, self.marginals, strict=True):
            new = tuple(column for column in clique if column not in separator)
            if not new:
                continue
            order = [clique.index(c) for c in (*separator, *new)]
            groups = math.prod(self.sizes[c] for c in separator)
            table = np.maximum(cells.transpose(order).reshape(groups, -1), 0.0)
            group = np.zeros(rows, dtype=np.int64)
            for column in separator:
                group = group * self.sizes[column] + drawn[:, column]
            values = _sample_cells(table, group)
            for column, value in zip(new, np.unravel_index(values, [self.sizes[c] for c in new]), strict=True):
                drawn[:, column] = value
        return drawn


def uniforms(count: int) -> Floats:
    """Uniform numbers in [0, 1) from the one source of randomness. No promise depends on them."""
    return np.asarray((random_words(count) >> np.uint64(11)) * 2.0**-53)


def _sample_cells(table: Floats, group: NDArray[np.int64]) -> NDArray[np.int64]:
    """One cell for each row from the distribution of its group (a row of `table`), by systematic sampling within
    groups.
    """
    weights = table.sum(axis=1, keepdims=True)
    laws = np.where(weights > 0, table / np.maximum(weights, _LEAST), 1.0 / table.shape[1])
    ends = np.cumsum(laws, axis=1)
    ends /= ends[:, -1:]
    order = np.lexsort((uniforms(len(group)), group))
    members = np.bincount(group, minlength=len(table))
    starts = np.cumsum(members) - members
    ranks = np.arange(len(group)) - starts[group[order]]
    place = (ranks + uniforms(len(table))[group[order]]) / members[group[order]]
    cells = np.searchsorted((ends + np.arange(len(table))[:, None]).reshape(-1), place + group[order], side="right")
    values = np.empty(len(group), dtype=np.int64)
    values[order] = np.minimum(cells - group[order] * table.shape[1], table.shape[1] - 1)
    return np.maximum(values, 0)


class Fit:
    """Maximum-entropy models by mirror descent on the squared error of the measurements, in their deviations.

    The law is ∝ exp(Σ potentials), one potential for each measurement; they are kept, so that a fit to more
    measurements starts where the last one ended. Source: McKenna-Sheldon-Miklau 2019.
    """

    def __init__(self, sizes: Sequence[int], total: float) -> None:
        self.sizes, self.total = tuple(sizes), max(total, 1.0)
        self.potentials: dict[Columns, Floats] = {}
        self._size = 0.0

    def to(self, measured: Sequence[NoisyMarginal], steps: int, *, close: float = 3e-4) -> Model:
        """The model after at most this many steps. It stops earlier if a step improves the error by less than the
        fraction `close`.
        """
        tree = JunctionTree.holding([one.columns for one in measured], self.sizes)
        at = [self.potentials.get(one.columns, np.zeros(one.counts.shape)) for one in measured]
        best = self._evaluate(tree, at, measured)
        # the error is scaled by the total over the deviations, and so is the step
        sharpest = max((float(np.min(one.stddev)) ** -2 for one in measured), default=1.0)
        size = self._size or 4 / (self.total**2 * sharpest)
        for _ in range(steps):
            while True:
                there = [p - size * g for p, g in zip(at, best.gradients, strict=True)]
                new = self._evaluate(tree, there, measured)
                promised = sum(
                    float((g * (a - b)).sum()) for g, a, b in zip(best.gradients, best.ours, new.ours, strict=True)
                )
                if best.loss - new.loss >= 0.5 * promised or promised <= 1e-9 * best.loss:
                    break
                size /= 2
            if new.loss > best.loss:
                break
            done = best.loss - new.loss <= close * best.loss
            at, best, size = there, new, size * 1.5
            if done:
                break
        self._size = size
        for one, potential in zip(measured, at, strict=True):
            self.potentials[one.columns] = potential - potential.max()
        return Model(self.sizes, tree, tuple(best.beliefs), self.total)

    def _evaluate(self, tree: JunctionTree, at: list[Floats], measured: Sequence[NoisyMarginal]) -> _Evaluated:
        potentials = [np.zeros([self.sizes[c] for c in clique]) for clique in tree.cliques]
        homes = [tree.clique_of(one.columns) or 0 for one in measured]
        for one, home, potential in zip(measured, homes, at, strict=True):
            potentials[home] += broadcast(potential, one.columns, tree.cliques[home])
        found = beliefs(tree, potentials)
        loss, ours, gradients = 0.0, [], []
        for one, home in zip(measured, homes, strict=True):
            own = marginal_of(found[home], tree.cliques[home], one.columns)
            gap = (self.total * own - one.counts) / one.stddev
            loss += 0.5 * float((gap * gap).sum())
            ours.append(own)
            gradients.append(self.total * gap / one.stddev)
        return _Evaluated(found, loss, ours, gradients)


@dataclass(frozen=True)
class _Evaluated:
    beliefs: list[Floats]
    loss: float
    ours: list[Floats]
    gradients: list[Floats]


def beliefs(tree: JunctionTree, potentials: Sequence[Floats]) -> list[Floats]:
    """The marginals of the cliques under the law ∝ exp(Σ potentials): one pass up the tree, one down."""
    found = [np.exp(p - p.max()) for p in potentials]
    for i in range(len(found) - 1, 0, -1):
        message = marginal_of(found[i], tree.cliques[i], tree.separators[i])
        parent = tree.parents[i]
        found[parent] *= broadcast(
            message / max(float(message.max()), _LEAST), tree.separators[i], tree.cliques[parent]
        )
        found[parent] /= max(float(found[parent].max()), _LEAST)
    found[0] /= max(float(found[0].sum()), _LEAST)
    for i in range(1, len(found)):
        parent = tree.parents[i]
        shared = marginal_of(found[parent], tree.cliques[parent], tree.separators[i])
        own = marginal_of(found[i], tree.cliques[i], tree.separators[i])
        found[i] *= broadcast(shared / np.maximum(own, _LEAST), tree.separators[i], tree.cliques[i])
    return found

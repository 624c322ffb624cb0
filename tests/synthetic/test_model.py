"""Junction trees and maximum-entropy models, against brute force over all cells of small domains."""

import itertools
import math

import numpy as np
import pytest

from discreet.synthetic.bins import Bins, merge_rare
from discreet.synthetic.junction_tree import JunctionTree, largest_clique
from discreet.synthetic.model import Fit, Model, NoisyMarginal, beliefs

SIZES = (3, 2, 4, 2, 3)
GRAPHS = [
    [],
    [(0, 1)],
    [(0, 1), (1, 2), (2, 3), (3, 4)],
    [(0, 1), (1, 2), (0, 2), (2, 4)],
    [(0, 1), (1, 2), (2, 3), (0, 3)],
    [(0, 1, 2), (2, 3), (1, 3)],
]


def whole_law(tree, potentials, sizes=SIZES):
    """exp(Σ potentials) over all cells, normalized."""
    law = np.zeros(sizes)
    for clique, potential in zip(tree.cliques, potentials, strict=True):
        law = law + potential.reshape([sizes[i] if i in clique else 1 for i in range(len(sizes))])
    law = np.exp(law - law.max())
    return law / law.sum()


def summed(law, columns):
    return law.sum(axis=tuple(i for i in range(law.ndim) if i not in columns))


@pytest.mark.parametrize("sets", GRAPHS)
def test_the_running_intersection_property(sets):
    tree = JunctionTree.holding(sets, SIZES)
    assert {c for clique in tree.cliques for c in clique} == set(range(len(SIZES)))
    assert all(tree.clique_of(columns) is not None for columns in sets)
    assert tree.parents[0] == -1
    assert all(parent < i for i, parent in enumerate(tree.parents))
    for column in range(len(SIZES)):  # the cliques with a column are connected: all but one have it in the separator
        holding = [i for i, clique in enumerate(tree.cliques) if column in clique]
        assert sum(column in tree.separators[i] for i in holding) == len(holding) - 1
    assert largest_clique(sets, SIZES) == max(math.prod(SIZES[i] for i in clique) for clique in tree.cliques)


@pytest.mark.parametrize("sets", GRAPHS)
def test_beliefs_and_pairs_by_brute_force(sets):
    rng = np.random.default_rng(3)
    tree = JunctionTree.holding(sets, SIZES)
    potentials = [rng.normal(0, 2, [SIZES[i] for i in clique]) for clique in tree.cliques]
    law = whole_law(tree, potentials)
    found = beliefs(tree, potentials)
    for clique, belief in zip(tree.cliques, found, strict=True):
        assert belief == pytest.approx(summed(law, clique))
    model = Model(SIZES, tree, tuple(found), 100.0)
    for a in range(len(SIZES)):
        pairs = model.pairs_with(a)
        for b in range(len(SIZES)):
            if a != b:
                joint = summed(law, (a, b))
                assert pairs[b] == pytest.approx(joint if a < b else joint.T)
                if a < b:
                    assert model.marginal((a, b)) == pytest.approx(joint)


def test_a_fit_reaches_consistent_marginals():
    rng = np.random.default_rng(5)
    law = rng.dirichlet(np.ones(math.prod(SIZES))).reshape(SIZES)
    sets = [(0, 1), (1, 2), (0, 2), (3, 4), (2, 4)]
    fit = Fit(SIZES, 1000.0)
    model = fit.to([NoisyMarginal(s, 1000 * summed(law, s), 1.0) for s in sets], steps=2000)
    for columns in sets:
        assert np.abs(model.marginal(columns) - summed(law, columns)).sum() < 0.005
    # of all laws with these marginals it has the most entropy: a product over the cliques
    assert model.marginal((0, 3)).sum() == pytest.approx(1)


def test_a_fit_has_no_negative_counts_and_keeps_the_total():
    fit = Fit((4, 4), 50.0)
    noisy = np.random.default_rng(0).normal(0, 20, (4, 4))
    model = fit.to([NoisyMarginal((0, 1), noisy, 20.0)], steps=200)
    assert (model.marginal((0, 1)) >= 0).all()
    assert model.marginal((0, 1)).sum() == pytest.approx(1)


def test_a_warm_fit_moves_to_a_larger_tree():
    rng = np.random.default_rng(7)
    law = rng.dirichlet(np.ones(math.prod(SIZES))).reshape(SIZES)
    fit = Fit(SIZES, 1000.0)
    first = [NoisyMarginal((0, 1), 1000 * summed(law, (0, 1)), 1.0)]
    fit.to(first, steps=300)
    model = fit.to([*first, NoisyMarginal((1, 2), 1000 * summed(law, (1, 2)), 1.0)], steps=0)
    assert np.abs(model.marginal((0, 1)) - summed(law, (0, 1))).sum() < 0.01


@pytest.mark.parametrize("rows", [0, 1, 7, 5000])
def test_samples_have_the_counts_they_should(rows):
    rng = np.random.default_rng(9)
    law = rng.dirichlet(np.ones(math.prod(SIZES))).reshape(SIZES)
    sets = [(0, 1), (1, 2), (2, 3), (3, 4)]
    model = Fit(SIZES, 1000.0).to([NoisyMarginal(s, 1000 * summed(law, s), 1.0) for s in sets], steps=300)
    drawn = model.sample(rows)
    assert drawn.shape == (rows, len(SIZES))
    assert (drawn >= 0).all()
    assert (drawn < SIZES).all()
    if rows == 5000:  # independent draws would be off by about √(cells/rows)
        for a, b in itertools.combinations(range(len(SIZES)), 2):
            counts = np.bincount(drawn[:, a] * SIZES[b] + drawn[:, b], minlength=SIZES[a] * SIZES[b]) / rows
            assert np.abs(counts - model.marginal((a, b)).ravel()).sum() < 0.06


def test_rare_values_are_merged():
    counts = np.array([100.0, 1.0, -3.0, 60.0, 2.0, 5.0])
    bins = merge_rare(counts, 10.0, ordered=False)
    assert bins.bin_of.tolist() == [0, 2, 2, 1, 2, 2]
    assert bins.merged(counts).tolist() == [100, 60, 5]
    lined = merge_rare(counts, 10.0, ordered=True)
    assert (np.diff(lined.bin_of) >= 0).all()
    assert lined.bin_of[0] == 0
    assert lined.bin_of[3] > 0
    for one in (bins, lined):
        assert np.bincount(one.bin_of, one.share) == pytest.approx(np.ones(one.size))
        assert (one.share >= 0).all()
    alone = merge_rare(np.full(4, 1000.0), 1.0, ordered=False)
    assert alone.bin_of.tolist() == [0, 1, 2, 3]
    nothing = merge_rare(np.zeros(4), 1.0, ordered=True)
    assert nothing.size == 1
    assert nothing.share == pytest.approx(np.full(4, 0.25))


def test_values_come_back_as_often_as_their_share():
    bins = Bins(np.array([0, 1, 1, 0, 1]), np.array([0.25, 0.5, 0.0, 0.75, 0.5]))
    rows = np.repeat([0, 1], [400, 1000])
    values = bins.values(rows)
    assert (bins.bin_of[values] == rows).all()
    found = np.bincount(values, minlength=5)
    assert np.abs(found - [100, 500, 0, 300, 500]).max() <= 1
    assert len(bins.values(np.zeros(0, dtype=np.int64))) == 0

"""Clusters, mixtures and radii: no neighbor moves a release further than declared, and some nearly do."""

import pytest

from .test_cluster_mutants import CASES, furthest

QUICK = ("clusters", "many columns, pure", "variances", "moments")


@pytest.mark.some_quick(2)
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_no_neighbor_is_further_than_declared_and_some_are_nearly(name: str) -> None:
    added, replaced = furthest(*CASES[name])
    assert 0.3 < added <= 1
    assert 0.2 < replaced <= 1

"""What is wrong with a query, a space or a region, said before any row is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InvalidArgument
from discreet.queries.ball import Ball
from discreet.queries.domain import Domain
from discreet.queries.numeric import Mean, Sum
from discreet.queries.query import largest_change
from discreet.queries.scores import Popularity
from discreet.queries.sensitivity import Sensitivity
from discreet.queries.space import Categories, Functions, Product
from discreet.queries.workload import Workload
from discreet.rows import kernels, table
from discreet.rows.arrays import namespace
from discreet.rows.convex import Affine, Projection
from discreet.rows.features import Axis, FourierFeatures, RandomFeatures
from discreet.rows.kernels import FusedPass, cut_at
from discreet.rows.rounding import RoundedRows

Asked = Callable[[], Any]
PEOPLE = Domain({"age": 3, "sex": ["f", "m"]})
WIDE = Domain({f"c{number}": 1000 for number in range(4)})
ROWS = np.zeros((2, 3))
THIRD = Fraction(1, 3)


def refused(asked: Asked, said: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(said)):
        asked()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: dp.Interval(THIRD, THIRD + Fraction(1, 10**30)), "No double lies between low and high"),
        (lambda: dp.Interval(0, 10).clamp("three"), "A number is needed, not text"),
        (lambda: dp.Interval(0, 10).clamp(np.array(["three"])), "Numbers are needed"),
        (lambda: dp.Integers(0, 0.5), "Bounds of Integers must be whole numbers"),
        (lambda: dp.Integers(-(2**63), 2**63 - 1).positions([1]), "too many points to be numbered"),
        (lambda: dp.Grid(2**49, 2**49 + 1, 1), "step is too fine for doubles of this size"),
        (lambda: Categories(["a", "a"]), "choices must be different from each other"),
        (lambda: Categories([["a"], ["b"]]), "choices must be plain values"),
        (lambda: Functions((0, 1), dp.Interval(0, 1)).clamp([1, 2, 3]), "A curve is 2 values"),
        (lambda: Product(), "Product needs one space or more"),
        (lambda: Product(dp.Interval(0, 1), metric="mean"), "metric must be 'sum' or 'max'"),
        (lambda: list(Product(dp.Interval(0, 1)).points()), "A product is finite only when each of its spaces is"),
        (lambda: Product(dp.Interval(0, 1)).clamp([1, 2]), "A row of this product has 1 components"),
        (lambda: Ball(2, 2.0**-1001), "radius must lie between 2^-1000 and 2^1000"),
    ],
)
def test_a_space_that_cannot_be(asked: Asked, said: str) -> None:
    refused(asked, said)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: Sum(between=(0, 2**30), step=2.0**-23), "step is too fine for doubles of this size"),
        (lambda: Mean(between=(0, 1)).sensitivity(dp.row(neighbors="replace")), "A mean needs its public size="),
        (lambda: largest_change("row", 1, added=1, replaced=1), "unit must be row() or person('column')"),
        (lambda: Sensitivity(1, unit="row"), "unit must be row() or person('column')"),
        (lambda: Sensitivity(1, norm="L3"), "norm must be 'L1', 'L2' or 'Linf'"),
        (lambda: Popularity(["a", "b"])(np.zeros((2, 3))), "Rows of 2 numbers are needed"),
    ],
)
def test_a_query_that_cannot_be_asked(asked: Asked, said: str) -> None:
    refused(asked, said)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: Domain(["age"]), "A domain needs a mapping of column names to their values"),
        (lambda: Domain({1: 3}), "The columns of a domain must be named by text"),
        (lambda: Workload(domain=PEOPLE, sets=(("age",), ("age",))), "sets of a workload must be different"),
        (lambda: Workload.prefixes(PEOPLE), "Name the column whose prefixes are asked for"),
        (lambda: Workload.prefixes(PEOPLE, "age").tables(), "Give the rows, or histogram= over the whole domain"),
        (lambda: Workload.prefixes(PEOPLE, "age").tables(histogram=[1, 2]), "A histogram of this domain has 6 cells"),
        (lambda: Workload.marginals(WIDE, 1).indicator(0), "too many for one table (10^8)"),
        (lambda: Workload.marginals(PEOPLE, "age"), "Give sets of columns, such as [('age', 'sex')]"),
        (lambda: Workload.marginals(PEOPLE, ["age"]), "Each set is a tuple of columns"),
        (lambda: Workload.conjunctions(PEOPLE, ["f"]), "A conjunction is a mapping of columns to values"),
    ],
)
def test_a_workload_that_cannot_be_counted(asked: Asked, said: str) -> None:
    refused(asked, said)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: namespace([1, 2]), "An array of numpy, torch or cupy is needed, not list"),
        (lambda: table(np.zeros((2, 3)), 2), "Rows of 2 numbers are needed"),
        (lambda: cut_at(0), "A row of 1 to 1024 columns is needed"),
        (lambda: Affine([[1, 0], [1, 0]], [0, 1]), "No weights satisfy matrix·w = values"),
        (lambda: Projection(lambda point: point[:1]).project(np.zeros(2)), "A projection must give 2 finite weights"),
        (lambda: Axis(low=0, high=1, bandwidth=1, tolerance=1), "tolerance must lie between 1e-15 and 0.1"),
        (lambda: FourierFeatures(()), "Fourier features are for one to three columns"),
        (lambda: FourierFeatures((Axis(low=0, high=1, bandwidth=1),)).counts(ROWS), "Rows of 1 number are needed"),
        (lambda: RandomFeatures.drawn([(0, 1)], [1], 2).counts(ROWS), "Rows of 1 number are needed"),
        (lambda: RoundedRows(ROWS), "Give one of feature_norm and feature_ranges"),
        (lambda: RoundedRows(np.array([["a"]]), feature_norm=1), "Numbers are needed"),
    ],
)
def test_rows_and_weights_that_do_not_fit(asked: Asked, said: str) -> None:
    refused(asked, said)


# --- a pass on the GPU, without one -------------------------------------------------------------------------


@dataclass
class Tensor:
    """As much of a tensor as is looked at before a kernel is made."""

    shape: tuple[int, ...] = (4, 2)
    dtype: str = "float32"
    place: int = 0
    is_cuda: bool = True
    device: str = "cuda:0"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def is_contiguous(self) -> bool:
        return True

    def data_ptr(self) -> int:
        return self.place


TORCH = SimpleNamespace(Tensor=Tensor, float32="float32", bfloat16="bfloat16")
X, Y = Tensor(), Tensor(shape=(4,))


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (replace(X, is_cuda=False), Y, "x and y must be torch tensors on one CUDA device"),
        (X, replace(Y, device="cuda:1"), "x and y must be torch tensors on one CUDA device"),
        (replace(X, dtype="float64"), Y, "x must be a contiguous matrix of float32 or bfloat16"),
        (replace(X, shape=(4, 1025)), Y, "x must have 1 to 1024 columns"),
        (replace(X, place=8), Y, "x and y must start at multiples of 16 bytes"),
        (X, replace(Y, shape=(3,)), "y must be a contiguous vector of float32, one target a row"),
    ],
)
def test_tensors_that_no_fused_pass_takes(x: Tensor, y: Tensor, said: str) -> None:
    refused(lambda: kernels._check_rows(TORCH, x, y), said)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"clip": 2.0**41}, "clip must lie between 2^-40 and 2^40"),
        ({"loss": "cubic"}, "loss must be one of logistic"),
        ({"loss": "squared", "quantile": 0.5}, "The loss squared takes no parameter"),
        ({"loss": "pinball", "quantile": 1, "smoothing": 1}, "quantile must lie strictly between 0 and 1"),
    ],
)
def test_a_fused_loss_that_is_not_known(changed: dict[str, Any], said: str) -> None:
    asked = {"loss": "logistic", "clip": 1, "feature_norm": 1} | changed
    refused(lambda: FusedPass(X, Y, **asked), said)


def test_weights_that_a_fused_pass_cannot_use() -> None:
    made = object.__new__(FusedPass)
    made.columns, made._weights_here = 2, SimpleNamespace(numpy=lambda: np.zeros(3, np.float32))
    refused(lambda: made.sums([1, 2, 3]), "A vector of 2 weights is needed")
    refused(lambda: made.sums([1, 1e39]), "Weights must be finite float32 numbers")

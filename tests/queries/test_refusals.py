"""What is wrong with a query, a space or a region, said before any row is read."""

from __future__ import annotations

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
from discreet.rows import table
from discreet.rows.arrays import namespace
from discreet.rows.convex import Affine, Projection
from discreet.rows.features import Axis, FourierFeatures, RandomFeatures
from discreet.rows.gradients import kernels
from discreet.rows.gradients.kernels import FusedPass, cut_at
from discreet.rows.rounding import RoundedRows

from ..refusing import refuses

Asked = Callable[[], Any]
PEOPLE = Domain({"age": 3, "sex": ["f", "m"]})
WIDE = Domain({f"c{number}": 1000 for number in range(4)})
ROWS = np.zeros((2, 3))
THIRD = Fraction(1, 3)


def refused(asked: Asked, code: str) -> None:
    with refuses(InvalidArgument, code):
        asked()


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: dp.Interval(THIRD, THIRD + Fraction(1, 10**30)), "out-of-range"),
        (lambda: dp.Interval(0, 10).clamp("three"), "not-a-number"),
        (lambda: dp.Interval(0, 10).clamp(np.array(["three"])), "not-a-number"),
        (lambda: dp.Integers(0, 0.5), "not-whole"),
        (lambda: dp.Integers(-(2**63), 2**63 - 1).positions([1]), "too-large"),
        (lambda: dp.queries.Grid(2**49, 2**49 + 1, 1), "step-does-not-fit"),
        (lambda: Categories(["a", "a"]), "duplicates"),
        (lambda: Categories([["a"], ["b"]]), "wrong-type"),
        (lambda: Functions((0, 1), dp.Interval(0, 1)).clamp([1, 2, 3]), "wrong-shape"),
        (lambda: Product(), "empty"),
        (lambda: Product(dp.Interval(0, 1), metric="mean"), "not-an-option"),
        (lambda: list(Product(dp.Interval(0, 1)).points()), "not-finite"),
        (lambda: Product(dp.Interval(0, 1)).clamp([1, 2]), "wrong-shape"),
        (lambda: Ball(2, 2.0**-1001), "out-of-range"),
    ],
)
def test_a_space_that_cannot_be(asked: Asked, code: str) -> None:
    refused(asked, code)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: Sum(between=(0, 2**30), step=2.0**-23), "step-does-not-fit"),
        (lambda: Mean(between=(0, 1)).sensitivity(dp.row(neighbors="replace")), "size-missing"),
        (lambda: largest_change("row", 1, added=1, replaced=1), "wrong-type"),
        (lambda: Sensitivity(1, unit="row"), "wrong-type"),
        (lambda: Sensitivity(1, norm="L3"), "not-an-option"),
        (lambda: Popularity(["a", "b"])(np.zeros((2, 3))), "wrong-shape"),
    ],
)
def test_a_query_that_cannot_be_asked(asked: Asked, code: str) -> None:
    refused(asked, code)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: Domain(["age"]), "wrong-type"),
        (lambda: Domain({1: 3}), "wrong-type"),
        (lambda: Workload(domain=PEOPLE, sets=(("age",), ("age",))), "duplicates"),
        (lambda: Workload.prefixes(PEOPLE), "missing-argument"),
        (lambda: Workload.prefixes(PEOPLE, "age").tables(), "missing-argument"),
        (lambda: Workload.prefixes(PEOPLE, "age").tables(histogram=[1, 2]), "wrong-shape"),
        (lambda: Workload.marginals(WIDE, 1).indicator(0), "too-large"),
        (lambda: Workload.marginals(PEOPLE, "age"), "wrong-type"),
        (lambda: Workload.marginals(PEOPLE, ["age"]), "wrong-type"),
        (lambda: Workload.conjunctions(PEOPLE, ["f"]), "wrong-type"),
    ],
)
def test_a_workload_that_cannot_be_counted(asked: Asked, code: str) -> None:
    refused(asked, code)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (lambda: namespace([1, 2]), "wrong-type"),
        (lambda: table(np.zeros((2, 3)), 2), "wrong-shape"),
        (lambda: cut_at(0), "out-of-range"),
        (lambda: Affine([[1, 0], [1, 0]], [0, 1]), "no-solution"),
        (lambda: Projection(lambda point: point[:1]).project(np.zeros(2)), "function-fails"),
        (lambda: Axis(low=0, high=1, bandwidth=1, tolerance=1), "out-of-range"),
        (lambda: FourierFeatures(()), "empty"),
        (lambda: FourierFeatures((Axis(low=0, high=1, bandwidth=1),)).counts(ROWS), "wrong-shape"),
        (lambda: RandomFeatures.drawn([(0, 1)], [1], 2).counts(ROWS), "wrong-shape"),
        (lambda: RoundedRows(ROWS), "missing-argument"),
        (lambda: RoundedRows(np.array([["a"]]), feature_norm=1), "not-a-number"),
    ],
)
def test_rows_and_weights_that_do_not_fit(asked: Asked, code: str) -> None:
    refused(asked, code)


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
    ("x", "y", "code"),
    [
        (replace(X, is_cuda=False), Y, "wrong-type"),
        (X, replace(Y, device="cuda:1"), "wrong-type"),
        (replace(X, dtype="float64"), Y, "wrong-type"),
        (replace(X, shape=(4, 1025)), Y, "wrong-shape"),
        (replace(X, place=8), Y, "not-aligned"),
        (X, replace(Y, shape=(3,)), "wrong-shape"),
    ],
)
def test_tensors_that_no_fused_pass_takes(x: Tensor, y: Tensor, code: str) -> None:
    refused(lambda: kernels._check_rows(TORCH, x, y), code)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"clip": 2.0**41}, "out-of-range"),
        ({"loss": "cubic"}, "not-an-option"),
        ({"loss": "squared", "quantile": 0.5}, "not-an-option"),
        ({"loss": "pinball", "quantile": 1, "smoothing": 1}, "out-of-range"),
    ],
)
def test_a_fused_loss_that_is_not_known(changed: dict[str, Any], code: str) -> None:
    asked = {"loss": "logistic", "clip": 1, "feature_norm": 1} | changed
    refused(lambda: FusedPass(X, Y, **asked), code)


def test_weights_that_a_fused_pass_cannot_use() -> None:
    made = object.__new__(FusedPass)
    made.columns, made._weights_here = 2, SimpleNamespace(numpy=lambda: np.zeros(3, np.float32))
    refused(lambda: made.sums([1, 2, 3]), "wrong-shape")
    refused(lambda: made.sums([1, 1e39]), "not-a-number")

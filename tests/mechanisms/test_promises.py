"""What a mechanism promises when no sensitivity is given."""

from __future__ import annotations

from typing import Any

import pytest

import discreet as dp
from discreet.mechanisms.learning.descent.descent import Descent
from discreet.mechanisms.learning.minimizers.private_minimizer import PrivateMinimizer
from discreet.mechanisms.learning.moments import Moments
from discreet.mechanisms.noise.gaussian_process import GaussianProcess
from discreet.rows.features import FourierFeatures
from discreet.rows.gradients.losses import Huber, Logistic

from ..refusing import refuses

GOAL = dp.Approx(epsilon=1, delta=1e-6)


def mechanisms() -> list[Any]:
    features = FourierFeatures.over([(0, 8)], [0.6])
    return [
        GaussianProcess.for_guarantee(GOAL, features=features),
        PrivateMinimizer.for_guarantee(GOAL, loss=Huber(0.5), dimension=3, ridge=2.0),
        Descent.for_guarantee(GOAL, loss=Logistic(), clip=1.0, dimension=3, steps=3, size=10),
        Moments.for_guarantee(GOAL, features=2, feature_norm=1, shares={"square": 1}),
    ]


@pytest.mark.parametrize("m", mechanisms(), ids=lambda m: type(m).__name__)
def test_a_promise_for_added_rows_is_not_taken_for_replaced_ones(m: Any) -> None:
    """Without a sensitivity the promise is for one row added or removed, and says so: it costs more when replaced."""
    promised = m.guarantee()
    assert promised.protects == dp.row()
    with refuses(dp.errors.IncompatibleGuarantee, "incompatible-guarantee"):
        promised.stated_for(dp.person("who"))
    assert promised.stated_for(dp.row(neighbors="replace")).delta_at(epsilon=1) > 1e-4

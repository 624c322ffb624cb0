"""Steps, clip, rate and radius where none is given: worked out from public numbers only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.guarantees.guarantee import Approx
from discreet.guarantees.unit import Unit
from discreet.queries.examples import row_norm
from discreet.queries.losses import Loss, Softmax
from discreet.rational import Number


@dataclass(frozen=True)
class Settings:
    """What a descent needs besides its noise."""

    steps: int
    clip: Number
    learning_rate: Number
    radius: Any
    momentum: Number


def settings_for(
    loss: Loss | Softmax,
    *,
    goal: Approx,
    unit: Unit,
    rows_per_person: int,
    dimension: int,
    size: int | None,
    feature_norm: Number,
    intercept: bool,
    steps: int | None,
    clip: Number | None,
    learning_rate: Number | None,
    radius: Any,
    momentum: Number | None,
) -> Settings:
    longest = float(row_norm(feature_norm, intercept))
    return Settings(
        steps=100 if steps is None else steps,
        clip=min(1.0, loss.lipschitz * longest) if clip is None else clip,
        learning_rate=4.0 if learning_rate is None else learning_rate,
        radius=30.0 if radius is None else radius,
        momentum=0 if momentum is None else momentum,
    )

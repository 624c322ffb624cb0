"""The picture of an audit of a model: the ROC of its membership score, and the most that the claim allows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.one_run import points_of
from discreet.extras import blank_figure, save_figure

if TYPE_CHECKING:
    from discreet.audit.models import ModelAudit

LINE, INK, QUIET = "#1f6fb2", "#1c1c1c", "#e6e8eb"


def draw_roc(audit: ModelAudit, path: str | Path | None = None) -> Any:
    """The rates at which canaries inside and outside are taken for members, as a figure, saved at `path` if given."""
    figure = blank_figure("ModelAudit.plot", size=(5.2, 5.0))
    axes = figure.subplots()
    false, true = audit.roc
    if audit.claim is not None:
        at = np.linspace(0, 1, 201)
        most = most_allowed(audit, at)
        axes.plot(at, most, color=INK, linestyle="--", linewidth=1.3, label=f"most allowed by ε = {audit.claimed:.4g}")
        axes.fill_between(at, at, most, color=QUIET)
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, label="guesses by coin")
    axes.plot(false, true, color=LINE, linewidth=1.8, label=f"canaries: AUC {audit.auc:.3f}")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="outside, taken for a member", ylabel="inside, taken for a member")
    axes.set_aspect("equal")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)
    figure.suptitle(f"{audit.verdict}: ε ≥ {audit.epsilon_lower:.3g} is proved. Not private.", fontsize=11)
    return save_figure(figure, path)


def most_allowed(audit: ModelAudit, false: NDArray[np.float64]) -> NDArray[np.float64]:
    """The highest true positive rate for each false positive rate that the claim allows."""
    assert audit.claim is not None
    slopes, constants = points_of(audit.claim, audit.delta)
    rising = slopes > 0
    return np.asarray(np.minimum(1.0, ((false[:, None] - constants[rising]) / slopes[rising]).min(axis=1)))

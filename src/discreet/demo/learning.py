"""Who comes back: a logistic regression at several ε and without privacy, scored on fresh patients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.demo.data import PATIENT_RANGES, PATIENTS, columns_of
from discreet.demo.pictures import BARS, INK, PRIVATE
from discreet.demo.story import ONLY_HERE, Story
from discreet.guarantees.guarantee import Approx
from discreet.guarantees.unit import row
from discreet.learn.classification import LogisticRegression
from discreet.ledger import Ledger

TRAINED, FRESH, DELTA = 3000, 20_000, 1e-6
EPSILONS, FITS = (0.02, 0.05, 0.1, 0.3, 1), 3
CODE = """
>>> import discreet as dp
>>> model = dp.learn.LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1])
>>> model.fit(X, y)                          # your arrays, or dp.table(…).fit
>>> model.coef_, model.release_.error(0.95)  # weights; how far from the best
"""


def tell(teller: Story) -> None:
    """Train one model under the ledger, and many for the plot."""
    ledger = Ledger.open(":memory:", protects=row(), limit=Approx(epsilon=4, delta=1e-5))
    teller.begin(
        {
            "data": f"{TRAINED:,} synthetic patients to learn from, {FRESH:,} more to score on",
            "question": "Who comes back to the hospital, by age, cost and visits?",
            "protects": "one patient: without that patient, the model is about as likely",
            "limit": f"{ledger.limit}",
        }
    )
    X, y = _patients()
    known, fresh = (X[:TRAINED], y[:TRAINED]), (X[TRAINED:], y[TRAINED:])
    model = _model(1, ledger=ledger).fit(*known)
    right = model.score(*fresh)
    cost = ledger.entries()[-1].guarantee
    # with real patients, each of these models would be charged too
    models = {epsilon: [_model(epsilon).fit(*known) for _ in range(FITS)] for epsilon in EPSILONS}
    scores = {epsilon: [one.score(*fresh) for one in made] for epsilon, made in models.items()}
    best = _score_without_noise(known, fresh)
    teller.show(
        ["ε", "right on fresh patients*", "loss above the least, at most (95%)"],
        [[f"{epsilon:g}", _right(scores[epsilon]), _bound_text(models[epsilon][0])] for epsilon in EPSILONS]
        + [["not private", f"{best:.1%}", ""]],
    )
    teller.out.print(f"[dim]{ONLY_HERE}[/] Mean of {FITS} models, from the worst to the best.")
    teller.end(
        {
            "answer": f"at ε = 1: {_formula(model)}; right for {right:.1%}",
            "cost": f"{cost}; predictions are free",
            "remains": f"{ledger.remaining}",
        },
        lambda figure: _draw(figure, scores, best),
        f"Learning from {TRAINED:,} patients: accuracy by ε",
        code=CODE,
        page="learning.md",
    )


def _patients() -> tuple[Any, Any]:
    columns = columns_of(PATIENTS, count=TRAINED + FRESH)
    y = np.asarray(columns.pop("readmitted"))
    return np.column_stack([np.asarray(column) for column in columns.values()]), y


def _model(epsilon: float, **given: Any) -> Any:
    ranges = list(PATIENT_RANGES.values())
    return LogisticRegression(epsilon=epsilon, delta=DELTA, classes=[0, 1], feature_ranges=ranges, **given)


def _right(scores: list[float]) -> str:
    return f"{np.mean(scores):.1%} ({min(scores):.1%} to {max(scores):.1%})"


def _bound_text(model: Any) -> str:
    """How far its mean loss can be above the least one; a constant model has ln 2, so a larger bound says nothing."""
    bound = model.release_.error(0.95).amount
    return "no promise" if bound is None or bound > math.log(2) else f"{bound:.2g}"


def _formula(model: Any) -> str:
    weights = zip(PATIENT_RANGES, model.coef_[0], strict=True)
    return " ".join(f"{weight:+.2g}·{name}" for name, weight in weights)


def _score_without_noise(known: tuple[Any, Any], fresh: tuple[Any, Any]) -> float:
    """Plain logistic regression by Newton's method: NOT private, for comparison only."""
    low, high = np.array(list(PATIENT_RANGES.values()), dtype=float).T

    def features(X: Any) -> Any:
        return np.column_stack([np.ones(len(X)), (2 * X - low - high) / (high - low)])

    Z, weights = features(known[0]), np.zeros(len(low) + 1)
    for _ in range(20):
        chance = 1 / (1 + np.exp(-Z @ weights))
        curvature = (Z * (chance * (1 - chance))[:, None]).T @ Z
        weights += np.linalg.solve(curvature, Z.T @ (known[1] - chance))
    return float(((features(fresh[0]) @ weights > 0) == fresh[1]).mean())


def _draw(figure: Any, scores: dict[float, list[float]], best: float) -> None:
    panel = figure.subplots()
    found = 100 * np.array([scores[epsilon] for epsilon in EPSILONS])
    means, low, high = found.mean(axis=1), found.min(axis=1), found.max(axis=1)
    label = f"private: mean of {FITS} models, from the worst to the best"
    style = BARS | {"color": PRIVATE, "marker": "o", "markersize": 7, "linewidth": 2, "label": label}
    panel.errorbar(EPSILONS, means, [means - low, high - means], **style)
    panel.axhline(100 * best, color=INK, linestyle="--", linewidth=1.3, label="without noise: not private")
    panel.set_xscale("log")
    panel.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    panel.minorticks_off()
    panel.yaxis.set_major_formatter("{x:.0f}%")
    panel.set(xlabel="ε of one model: more privacy to the left", ylabel="right on fresh patients")
    panel.set_ylim(min(50, low.min() - 2), 85)
    panel.legend(loc="lower right")

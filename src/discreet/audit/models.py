"""Audit a model in one run: hide canaries in a copy of its data, fit it once, and guess which ones it saw."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.audit.canaries import coins, hard_rows, size_of, stack, take
from discreet.audit.membership import Floats, Score, find_score
from discreet.audit.one_run import OneRun, gaussian_epsilon
from discreet.closing import closed
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_delta
from discreet.extras import need
from discreet.guarantees.accuracy import check_confidence
from discreet.guarantees.guarantee import Approx, Guarantee
from discreet.guarantees.unit import row
from discreet.ledger import Ledger
from discreet.rows.containers import Data

Steps = Callable[[str], None]
"""Told what the audit does next."""
CANARIES, SHARE, FEWEST = 1000, 5, 10
_AMPLE = Approx(epsilon=10**6, delta=0.5)


@dataclass(frozen=True, kw_only=True)
class ModelAudit:
    """What one fit with hidden canaries proves about a model. It is about true rows and not private: for the owner
    only.

    Promise: if each fit keeps the claim, `verdict` is "broken" with probability at most 1 − `confidence`, and so often
    `epsilon_lower` exceeds the true ε at `delta`. `gaussian_lower` does so, too, if the model's curve is that of
    Gaussian noise. "consistent" is no proof: `ceiling` is what all guesses being right would have shown.
    """

    run: OneRun
    epsilon_lower: float
    gaussian_lower: float
    ceiling: float
    p_value: float | None
    claimed: float | None
    claim: Guarantee | None = field(repr=False)
    delta: float
    confidence: float
    neighbors: str
    score: str
    members: NDArray[np.bool_] = field(repr=False, compare=False)
    scores: Floats = field(repr=False, compare=False)

    @property
    def passed(self) -> bool:
        """Whether the claim survived; without a claim there is nothing to refute."""
        return self.p_value is None or self.p_value > 1 - self.confidence

    @property
    def verdict(self) -> str:
        """`consistent` with the claim, `broken`, or `nothing claimed`."""
        return "nothing claimed" if self.p_value is None else "consistent" if self.passed else "broken"

    @property
    def roc(self) -> tuple[Floats, Floats]:
        """False and true positive rates of the score, from the strictest threshold to none."""
        order = np.argsort(-self.scores, kind="stable")
        inside, outside = np.cumsum(self.members[order]), np.cumsum(~self.members[order])
        return (
            np.concatenate([[0.0], outside / max(outside[-1], 1)]),
            np.concatenate([[0.0], inside / max(inside[-1], 1)]),
        )

    @property
    def auc(self) -> float:
        """The probability that a canary inside scores above one outside."""
        false, true = self.roc
        return float(np.trapezoid(true, false))

    def to_dict(self) -> dict[str, Any]:
        """The numbers of the audit, for another program."""
        return {
            "verdict": self.verdict,
            "claimed_epsilon": self.claimed,
            "delta": self.delta,
            "epsilon_lower": self.epsilon_lower,
            "epsilon_lower_if_gaussian": self.gaussian_lower,
            "most_provable": self.ceiling,
            "p_value": self.p_value,
            "confidence": self.confidence,
            "canaries": self.run.canaries,
            "guesses": self.run.guesses,
            "correct": self.run.correct,
            "neighbors": self.neighbors,
            "score": self.score,
            "auc": self.auc,
            "private": False,
        }

    def to_json(self) -> str:
        """The numbers of the audit as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def plot(self, path: str | Path | None = None) -> Any:
        """The ROC of the membership score, and the most that the claim allows, as a matplotlib figure."""
        from discreet.audit.picture import draw_roc

        return draw_roc(self, path)

    def __str__(self) -> str:
        claim = "nothing claimed" if self.claimed is None else f"{self.verdict} with ε = {self.claimed:.6g}"
        at = f" at δ = {self.delta:.4g}" if self.delta else ""
        run = self.run
        return "\n".join(
            [
                f"{claim}{at}: ε ≥ {self.epsilon_lower:.4g} (confidence {self.confidence:.7g})",
                f"if the noise is Gaussian: ε ≥ {self.gaussian_lower:.4g}",
                f"{run.correct} of {run.guesses} guesses right, {run.canaries} canaries; score: {self.score}",
                f"all guesses right would have shown ε ≥ {self.ceiling:.4g}",
                "This result is about true rows and is not private: for the owner of the data only.",
            ]
        )


@closed
def audit_model(
    model: Any,
    X: Data,
    y: Data = None,
    *,
    canaries: Any = CANARIES,
    guesses: int | None = None,
    score: Score | None = None,
    reference: Any = None,
    claim: Guarantee | None = None,
    delta: Number | None = None,
    runs: int = 1,
    confidence: Number = 0.95,
    progress: Steps | None = None,
) -> ModelAudit:
    """Attack a model with canaries: one fit, a lower bound on its ε, and whether this is consistent with its claim.

    `model` is an estimator, which is cloned and left as it is, or a function of X (and y, if given) that returns a
    fitted model or a synthetic table. Each canary is added to a copy of the rows with probability ½. `canaries` is
    their number, or rows of your own, with their targets: `(rows, targets)`. The canaries with the highest and lowest
    scores are guessed to be in and out: `guesses` of them, by default a fifth. `claim` is by default what the fitted
    model says of itself. `reference` is a model that was fitted to X without canaries, such as the same with a large
    ε. Its scores are subtracted, which removes what the canaries have in common with the other rows. With several
    `runs`, all is done anew as often, with canaries and coins of their own. Together they count as one run with so
    many canaries, because each canary is in one fit only.

    No ledger is charged: the clone has none, and a function must not use one. Nothing is released here, and so the
    result is not private. On generated rows it tells nothing about anybody.
    """
    check_confidence(confidence)
    tell = progress or (lambda _: None)
    fit, neighbors, copies = _fitting(model)
    twins = 2 if neighbors == "replace" else 1
    rows, targets = _canaries(model, X, y, canaries, twins)
    many = size_of(rows) // twins
    asked = max(many // SHARE, FEWEST) if guesses is None else guesses
    tried = min(check_count(asked, "guesses"), many) if guesses is None else check_count(guesses, "guesses")
    if many < FEWEST or tried > many:
        raise InvalidArgument(
            f"An audit needs at least {FEWEST} canaries, and at most as many guesses.", code="audit-too-few-canaries"
        )
    repeats = check_count(runs, "runs")
    found: list[tuple[NDArray[np.bool_], Floats, int]] = []
    for number in range(1, repeats + 1):
        if number > 1:
            rows, targets = _canaries(model, X, y, canaries, twins)
        members = coins(many)
        inside = np.flatnonzero(members) if twins == 1 else np.arange(many) + many * ~members
        places = np.repeat(inside, copies)
        tell(f"fit {number} of {repeats}, with {many} canaries in or out by fair coins")
        fitted = fit(stack(X, take(rows, places)), None if y is None else stack(y, take(targets, places)))
        name, scored = find_score(fitted, y) if score is None else (getattr(score, "__name__", "given"), score)
        scores = _scored(scored, fitted, rows, targets, many * twins)
        if reference is not None:
            scores = scores - _scored(scored, reference, rows, targets, many * twins)
        scores = scores if twins == 1 else scores[:many] - scores[many:]
        found.append((members, scores, _right(scores, members, tried)))
    run = OneRun(canaries=repeats * many, guesses=repeats * tried, correct=sum(right for _, _, right in found))
    stated = _claim(fitted) if claim is None else claim
    at = float(check_delta(_delta(model, stated) if delta is None else delta))
    claimed = None if stated is None else stated.epsilon_at(delta=at)
    tell("bounding ε")
    return ModelAudit(
        run=run,
        epsilon_lower=run.epsilon_lower(delta=at, confidence=confidence),
        gaussian_lower=gaussian_epsilon(run.mu_lower(confidence=confidence), at),
        ceiling=OneRun(canaries=run.canaries, guesses=run.guesses, correct=run.guesses).epsilon_lower(
            delta=at, confidence=confidence
        ),
        p_value=None if stated is None else run.p_value(stated, delta=at),
        claimed=claimed,
        claim=stated,
        delta=at,
        confidence=float(confidence),
        neighbors=neighbors,
        score=name,
        members=np.concatenate([members for members, _, _ in found]),
        scores=np.concatenate([scores for _, scores, _ in found]),
    )


def _fitting(model: Any) -> tuple[Callable[[Any, Any], Any], str, int]:
    """How to fit a copy without the caller's ledger, who its neighbors are, and how many rows one person has."""
    if not hasattr(model, "fit"):
        if not callable(model):
            raise InvalidArgument(
                "audit_model needs an estimator with fit, or a function that fits one.", code="wrong-type"
            )
        return (lambda X, y: model(X) if y is None else model(X, y)), "add_or_remove", 1
    cloned = need("sklearn.base", "learn", "audit_model").clone(model)
    held = getattr(model, "ledger", None)
    neighbors = held.protects.neighbors if isinstance(held, Ledger) else "add_or_remove"
    own = {name: None for name in cloned.get_params() if name.rpartition("__")[2] == "ledger"}
    cloned.set_params(**own)
    if neighbors == "replace":
        cloned.set_params(ledger=Ledger.open(":memory:", protects=row(neighbors="replace"), limit=_AMPLE))
    return (lambda X, y: cloned.fit(X) if y is None else cloned.fit(X, y)), neighbors, model_rows(model)


def model_rows(model: Any) -> int:
    """How many rows of one person the model says it hides."""
    said = getattr(model, "rows_per_person", None)
    return 1 if said is None else check_count(said, "rows_per_person")


def _canaries(model: Any, X: Any, y: Any, given: Any, twins: int) -> tuple[Any, Any]:
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return hard_rows(model, X, y, twins * check_count(given, "canaries"))
    rows, targets = given if isinstance(given, tuple) else (given, None)
    if (y is None) != (targets is None) or (targets is not None and size_of(rows) != size_of(targets)):
        raise InvalidArgument(
            "Pass canaries with a target for each row if there is y, as (rows, targets), and without if not.",
            code="audit-canaries",
        )
    if size_of(rows) % twins:
        raise InvalidArgument(
            "Under a ledger that replaces rows, the second half of canaries are the rows they are replaced by: pass an "
            "even number.",
            code="audit-canaries",
        )
    return rows, targets


def _scored(score: Score, fitted: Any, rows: Any, targets: Any, many: int) -> Floats:
    scores = np.asarray(score(fitted, rows, targets), dtype=np.float64)
    if scores.shape != (many,):
        raise InvalidArgument("score(model, X, y) must return one number for each row.", code="wrong-shape")
    known = scores[np.isfinite(scores)]
    return np.where(np.isnan(scores), np.median(known) if len(known) else 0.0, scores)


def _right(scores: Floats, members: NDArray[np.bool_], guesses: int) -> int:
    """How many guesses are right: the highest scores are said to be in, and as many of the lowest out."""
    order = np.argsort(scores, kind="stable")
    low, high = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
    return int((~members[low]).sum() + members[high].sum())


def _claim(fitted: Any) -> Guarantee | None:
    found = getattr(getattr(fitted, "release_", fitted), "guarantee", None)
    return found if isinstance(found, Guarantee) else None


def _delta(model: Any, claim: Guarantee | None) -> Number:
    said = getattr(model, "delta", getattr(claim, "delta", None))
    if said is not None:
        return said  # type: ignore[no-any-return]
    return 0.0 if claim is None or math.isfinite(claim.epsilon_at(delta=0)) else 1e-6

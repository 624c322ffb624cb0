"""Classifiers: logistic regression, binary or with several classes, and a support vector machine."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, exactly
from discreet.extras import need
from discreet.learn.automatic import AUTO, Auto
from discreet.learn.base import check_is_fitted, declared_classes, places_of
from discreet.learn.glm import Floats, Linear
from discreet.ledger import Ledger
from discreet.rows.containers import Data, on_host
from discreet.rows.gradients.losses import HuberHinge, Logistic, Loss, Softmax

ClassifierMixin: Any = need("sklearn.base", "learn", "discreet.learn").ClassifierMixin


class _Classifier(ClassifierMixin, Linear):  # type: ignore[misc]
    """Chooses among declared `classes`. Rows of any other class are left out."""

    def _declared(self) -> list[Any]:
        return declared_classes(self.classes)

    def _numbered(self, y: Any) -> Any:
        """The index of each label among the declared classes, NaN for any other."""
        return places_of(y, self._declared())

    def _keep_weights(self, coefficients: Floats, constant: Floats) -> None:
        self.classes_ = np.array(self._declared())
        self.coef_, self.intercept_ = coefficients, constant

    def decision_function(self, X: Data) -> Any:
        """The score of each row, or of each row and class. A larger score means more confidence."""
        scores = on_host(self._scores(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Data) -> Any:
        """The most likely class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


class LogisticRegression(_Classifier):
    """Logistic regression on declared classes. With more than two classes it is softmax regression.

    `solver="objective"` minimizes the loss plus a random linear term instead, for two classes. It has no steps and no
    learning rate, and is pure ε with `delta=0`.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 2000)[:, None]
    >>> model = LogisticRegression(epsilon=1, delta=1e-6, classes=[0, 1]).fit(X, (X[:, 0] > 0).astype(int))
    >>> bool(model.score(X, X[:, 0] > 0) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        classes: Sequence[Hashable] | None = None,
        feature_norm: Number | Auto = AUTO,
        feature_ranges: ArrayLike | Auto | None = AUTO,
        fit_intercept: bool = True,
        n_samples: int | None = None,
        steps: int | None = None,
        clip: Number | None = None,
        learning_rate: Number | None = None,
        radius: Number | None = None,
        average: str = "last half",
        momentum: Number | None = None,
        solver: str = "descent",
        sampling: Number | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon, self.delta, self.classes = epsilon, delta, classes
        self.feature_norm, self.feature_ranges, self.fit_intercept = feature_norm, feature_ranges, fit_intercept
        self.n_samples, self.steps, self.clip, self.learning_rate = n_samples, steps, clip, learning_rate
        self.radius, self.average, self.momentum, self.sampling = radius, average, momentum, sampling
        self.solver, self.rows_per_person, self.ledger, self.verbose = solver, rows_per_person, ledger, verbose

    def _loss(self) -> Loss | Softmax:
        many = len(self._declared())
        return Logistic() if many == 2 else Softmax(many)

    def _targets(self, y: Any, found: Any = None) -> Any:
        return self._numbered(y)

    def predict_proba(self, X: Data) -> Any:
        """The probability of each class for each row."""
        check_is_fitted(self)
        with np.errstate(all="ignore"):  # a warning would reveal something about a cell
            return self._likely(X, self.decision_function(X))

    def _likely(self, X: Any, scores: Any) -> Any:
        if scores.ndim == 1:
            likely = 1 / (1 + np.exp(-np.clip(scores, -700, 700)))
            cut = self._cut(X)  # clipped slopes have the frequency p, not σ(z), where they balance
            high, low = np.minimum(likely, cut), np.minimum(1 - likely, cut)
            return np.column_stack([low, high]) / (low + high)[:, None]
        grown = np.exp(scores - scores.max(axis=1, keepdims=True))
        return grown / grown.sum(axis=1, keepdims=True)

    def _cut(self, X: Any) -> Floats:
        """The slope at which the gradient of each row was clipped: C over the norm of the row."""
        squared = on_host((self._shortened(X) ** 2).sum(1)) + float(bool(self.fit_intercept))
        clip = getattr(getattr(self.release_._mechanism, "descent", None), "clip", math.inf)
        clip = clip if clip == math.inf else float(exactly(clip))
        return np.asarray(clip / np.maximum(np.sqrt(squared), 1e-12))

    def predict_log_proba(self, X: Data) -> Any:
        """The logarithms of `predict_proba`."""
        return np.log(np.maximum(self.predict_proba(X), 1e-300))


class LinearSVC(_Classifier):
    """A linear support vector machine for two declared classes. The hinge loss is smoothed within `smoothing`."""

    def __init__(
        self,
        *,
        epsilon: Number = 1.0,
        delta: Number = 1e-6,
        classes: Sequence[Hashable] | None = None,
        smoothing: Number = 1.0,
        feature_norm: Number | Auto = AUTO,
        feature_ranges: ArrayLike | Auto | None = AUTO,
        fit_intercept: bool = True,
        n_samples: int | None = None,
        steps: int | None = None,
        clip: Number | None = None,
        learning_rate: Number | None = None,
        radius: Number | None = None,
        average: str = "last half",
        momentum: Number | None = None,
        solver: str = "descent",
        sampling: Number | None = None,
        rows_per_person: int | None = None,
        ledger: Ledger | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon, self.delta, self.classes, self.smoothing = epsilon, delta, classes, smoothing
        self.feature_norm, self.feature_ranges, self.fit_intercept = feature_norm, feature_ranges, fit_intercept
        self.n_samples, self.steps, self.clip, self.learning_rate = n_samples, steps, clip, learning_rate
        self.radius, self.average, self.momentum, self.sampling = radius, average, momentum, sampling
        self.solver, self.rows_per_person, self.ledger, self.verbose = solver, rows_per_person, ledger, verbose

    def _loss(self) -> Loss:
        if len(self._declared()) != 2:
            raise InvalidArgument(
                "LinearSVC supports two classes. Use LogisticRegression for more.", code="learn-two-classes"
            )
        return HuberHinge(self.smoothing)

    def _targets(self, y: Any, found: Any = None) -> Any:
        return 2 * self._numbered(y) - 1

"""Pictures of learning: made of released numbers, and labeled for what they are."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import extras, testing
from discreet.learn.plots import plot_accuracy, plot_learning_curve

from ..refusing import refuses

SCORES = {1: [0.8, 0.82, 0.84], 0.1: [0.6, 0.7], 10: (0.86, 0.01)}


def texts(figure: Any) -> list[str]:
    """All that is written in a picture."""
    [axes] = figure.axes
    legends = [one.get_text() for legend in figure.legends for one in legend.get_texts()]
    ticks = [one.get_text() for one in axes.get_xticklabels()]
    return [figure.get_suptitle(), axes.get_xlabel(), axes.get_ylabel(), *legends, *ticks]


def fitted(model: Any = None) -> Any:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((500, 3)) / 2
    labels = (rows[:, 0] > 0).astype(int)
    return (model or dp.learn.LogisticRegression(classes=[0, 1], epsilon=2, delta=1e-6, steps=20)).fit(rows, labels)


def test_accuracy_against_epsilon(tmp_path: Path) -> None:
    figure = plot_accuracy(SCORES, not_private=0.87, path=tmp_path / "accuracy.png")
    assert (tmp_path / "accuracy.png").read_bytes().startswith(b"\x89PNG")
    written = texts(figure)
    for text in ("Accuracy against ε", "ε of one fit", "accuracy", "without noise: not private", "0.1", "1", "10"):
        assert text in written
    assert "private: mean ± standard deviation" in written
    [axes] = figure.axes
    [private, level] = [line for line in axes.lines if len(line.get_xdata()) > 1 and line.get_linestyle() != "None"]
    np.testing.assert_allclose(private.get_xdata(), [0.1, 1, 10])
    np.testing.assert_allclose(private.get_ydata(), [0.65, 0.82, 0.86])
    assert list(level.get_ydata()) == [0.87, 0.87]
    assert level.get_linestyle() == "--"
    [bars] = axes.collections
    lengths = [float(np.ptp(path.vertices[:, 1])) / 2 for path in bars.get_paths()]
    np.testing.assert_allclose(lengths, [np.std([0.6, 0.7], ddof=1), 0.02, 0.01])


def test_what_is_not_given_is_not_drawn() -> None:
    figure = plot_accuracy({1: 0.8, 2: [0.9]}, measure="R² in $", title="Mine")
    written = texts(figure)
    assert "private" in written
    assert r"R² in \$" in written  # and no formula
    assert written[0] == "Mine"
    assert not any("not private" in text or "deviation" in text for text in written)


def test_names_of_many_epsilons_do_not_meet() -> None:
    figure = plot_accuracy({k / 10: 0.5 for k in range(1, 101)})
    [axes] = figure.axes
    figure.canvas.draw()
    boxes = [one.get_window_extent() for one in axes.get_xticklabels()]
    assert len(boxes) > 5
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.parametrize(
    ("scores", "code"),
    [
        ({}, "wrong-type"),
        ([0.5], "wrong-type"),
        ({"much": [0.5]}, "not-a-number"),
        ({0: [0.5]}, "out-of-range"),
        ({1: []}, "empty"),
        ({1: [np.nan]}, "not-a-number"),
        ({1: "high"}, "not-a-number"),
        ({1: (0.5, -1)}, "out-of-range"),
        ({1: (0.5, 0.1, 0.1)}, "not-a-number"),
    ],
    ids=str,
)
def test_bad_scores_are_told(scores: Any, code: str) -> None:
    with refuses(dp.InvalidArgument, code):
        plot_accuracy(scores)


def test_a_bad_level_is_told() -> None:
    with refuses(dp.InvalidArgument, "not-a-number"):
        plot_accuracy(SCORES, not_private=float("inf"))


def test_the_learning_curve_is_what_was_released(tmp_path: Path) -> None:
    model = fitted()
    figure = plot_learning_curve(model, tmp_path / "curve.svg")
    assert "<svg" in (tmp_path / "curve.svg").read_text()
    title, *labels = texts(figure)
    assert title == "LogisticRegression with ε = 2, δ = 1e-06\nThe loss, estimated from the noisy gradients"
    assert labels[:2] == ["step", "change of the mean loss since the start"]
    [axes] = figure.axes
    np.testing.assert_array_equal(axes.lines[-1].get_ydata(), model.learning_curve_)
    assert all(float(tick).is_integer() for tick in axes.get_xticks())


def test_the_learning_curve_asks_nothing_and_costs_nothing() -> None:
    book = dp.Ledger.open(":memory:", protects=dp.row(), limit=dp.Approx(epsilon=9, delta=1e-3))
    model = fitted(dp.learn.HuberRegressor(ledger=book, steps=5))

    class Released:
        """What a picture may look at, and nothing else."""

        release_, delta = model.release_, model.delta
        learning_curve_ = model.learning_curve_

    plot_learning_curve(Released())
    assert len(book.entries()) == 1


def test_test_mode_is_said() -> None:
    with testing.frozen(1):
        model = fitted()
    assert "NOT PRIVATE" in texts(plot_learning_curve(model))[0]
    assert "NOT PRIVATE" not in texts(plot_learning_curve(fitted()))[0]


def test_models_without_a_curve_are_told() -> None:
    with refuses(dp.InvalidArgument, "learn-no-curve"):
        plot_learning_curve(object())
    with pytest.raises(Exception, match="not fitted"):
        plot_learning_curve(dp.learn.LogisticRegression(classes=[0, 1]))


@pytest.mark.parametrize("name", ["nowhere/accuracy.png", "accuracy.toml"])
def test_a_path_that_cannot_be_a_picture_is_told(name: str, tmp_path: Path) -> None:
    with refuses(dp.InvalidArgument, "picture-not-written"):
        plot_accuracy(SCORES, path=tmp_path / name)


def test_without_matplotlib_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(extras.importlib, "import_module", missing)
    with refuses(dp.errors.MissingExtra, "missing-extra"):
        plot_accuracy(SCORES)

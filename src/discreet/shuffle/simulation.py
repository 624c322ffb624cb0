"""What each trust model costs: one question asked locally, shuffled as taught and as calibrated, and centrally."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.door import through
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count
from discreet.extras import blank_figure, save_figure
from discreet.guarantees.guarantee import Approx, Pure
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.reports.randomized_response import RandomizedResponse
from discreet.mechanisms.reports.shuffle_clients import ChoiceResponse
from discreet.shuffle.bit_sums import BitSum, TwoMessageBitSum
from discreet.shuffle.fakes import Fakes
from discreet.shuffle.histograms import ParallelSums

_LOCAL, _TAUGHT, _TIGHT, _CENTRAL = "local", "shuffled, taught", "shuffled, tight", "central"


@dataclass(frozen=True)
class TrustModel:
    """The error of one model: the deviation of its distribution, and the observed one."""

    name: str
    messages: int
    deviation: float
    seen: float
    largest: float


@dataclass(frozen=True)
class Simulation:
    """The same question in every model, with its predicted and observed error."""

    question: str
    clients: int
    epsilon: float
    delta: float
    runs: int
    models: tuple[TrustModel, ...]

    def __str__(self) -> str:
        title = f"{self.question}: {self.clients} clients, ε = {self.epsilon:g}, δ = {self.delta:g}, {self.runs} runs"
        head = f"{'model':<18}{'messages':>9}{'deviation':>12}{'seen':>12}{'largest':>12}"
        lines = [
            f"{one.name:<18}{one.messages:>9}{one.deviation:>12.4g}{one.seen:>12.4g}{one.largest:>12.4g}"
            for one in self.models
        ]
        return "\n".join([title, "", head, "─" * len(head), *lines])

    def plot(self, path: str | None = None) -> Any:
        """The deviation of one count by model, on a logarithmic scale."""
        figure = blank_figure("simulation.plot", size=(7, 3))
        panel = figure.subplots()
        names = [one.name for one in self.models][::-1]
        panel.barh(names, [one.deviation for one in self.models][::-1], color="#9ec3e6", label="predicted")
        panel.plot([one.seen for one in self.models][::-1], names, "o", color="#1f4e79", label="seen")
        panel.set_xscale("log")
        panel.set_xlabel("standard deviation of a count, in clients")
        panel.set_title(f"{self.question}: n = {self.clients:,}, ε = {self.epsilon:g}, δ = {self.delta:g}", fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, loc="lower right")
        return save_figure(figure, path)


def simulate(
    *, clients: int = 10_000, epsilon: float = 1.0, delta: float = 1e-6, choices: int = 2, runs: int = 100
) -> Simulation:
    """Ask synthetic clients for a bit, or for one of several `choices`, in every model, `runs` times.

    The local model is k-ary response with the same ε. The central model adds Laplace noise to true counts. The
    lecture's noise is left out if it is not a valid probability.
    """
    check_count(clients, "clients", at_least=10)
    check_count(runs, "runs", at_least=2)
    if check_count(choices, "choices", at_least=2) > 64:
        raise InvalidArgument("A simulation shows at most 64 choices. Leave some out.", code="too-large")
    values = (np.arange(clients) % (choices + 1)) % choices  # synthetic: the first choice has twice its share
    goal, true = Approx(epsilon=epsilon, delta=delta), np.bincount(values, minlength=choices)
    bits = choices == 2
    models = _bits(goal, clients, values, runs) if bits else _counts(goal, clients, values, choices, runs, true)
    question = "how many hold a one" if bits else f"how many hold each of {choices} choices"
    return Simulation(question, clients, float(epsilon), float(delta), runs, tuple(models))


def _bits(goal: Approx, clients: int, values: Any, runs: int) -> list[TrustModel]:
    response = RandomizedResponse.for_guarantee(Pure(epsilon=goal.epsilon), choices=(0, 1))
    lie, ones = float(response.lie), int((values == 1).sum())
    off = [_local_counts(response, values)[1] - ones for _ in range(runs)]
    models = [_model(_LOCAL, 1, math.sqrt(clients * lie * (1 - lie)) / (1 - 2 * lie), off)]
    for name, make in ((_TAUGHT, _taught_bits), (_TIGHT, BitSum.for_guarantee)):
        try:
            poll: Any = make(goal, clients=clients)
        except InvalidArgument:
            continue
        off = [poll.analyze(poll.encode_many(values)).value - ones for _ in range(runs)]
        models.append(_model(name, poll.messages, poll.deviation, off))
    central = Laplace.for_guarantee(Pure(epsilon=goal.epsilon), sensitivity=1, step=1)
    return [*models, _model(_CENTRAL, 0, _deviation(central), _noise(central, runs))]


def _counts(goal: Approx, clients: int, values: Any, choices: int, runs: int, true: Any) -> list[TrustModel]:
    names = tuple(range(choices))
    response = RandomizedResponse.for_guarantee(Pure(epsilon=goal.epsilon), choices=names)
    lie, truth = float(response.lie), float(response.truth)
    local = [list(_local_counts(response, values).values()) - true for _ in range(runs)]
    models = [_model(_LOCAL, 1, math.sqrt(clients * lie * (1 - lie)) / (truth - lie), local)]
    for name, make in ((_TAUGHT, _taught_counts), (_TIGHT, Fakes.for_guarantee)):
        try:
            poll: Any = make(goal, choices=names, clients=clients)
        except InvalidArgument:
            continue
        off = [list(poll.analyze(poll.encode_many(values)).value.values()) - true for _ in range(runs)]
        models.append(_model(name, poll.messages, poll.deviation, off))
    central = Laplace.for_guarantee(Pure(epsilon=goal.epsilon), sensitivity=2, step=1)
    return [*models, _model(_CENTRAL, 0, _deviation(central), _noise(central, runs * choices))]


def _taught_bits(goal: Approx, *, clients: int) -> TwoMessageBitSum:
    return TwoMessageBitSum.for_guarantee(goal, clients=clients, calibration="taught")


def _taught_counts(goal: Approx, *, choices: Any, clients: int) -> ParallelSums:
    return ParallelSums.for_guarantee(goal, choices=choices, clients=clients, calibration="taught")


def _local_counts(response: RandomizedResponse, places: Any) -> dict[Any, float]:
    """Counts of the choices 0, 1, … from the reports of all clients."""
    reports = through(lambda: places, ChoiceResponse(response=response), response.guarantee(), ledger=None).value
    return response.analyze(reports[:, 0])


def _noise(central: Laplace, size: int) -> Any:
    """What a trusted curator adds to true counts."""
    return through(lambda: np.zeros(size, dtype=np.int64), central, central.guarantee(1), ledger=None).value


def _deviation(noise: Laplace) -> float:
    return math.sqrt(2) * float(replace(noise).scale)


def _model(name: str, messages: int, deviation: float, off: Any) -> TrustModel:
    seen = np.asarray(off, dtype=np.float64)
    return TrustModel(name, messages, deviation, float(np.sqrt((seen**2).mean())), float(np.abs(seen).max()))

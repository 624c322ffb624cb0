"""A poll in three models of trust: nobody is trusted, a shuffler is, or the collector is."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from discreet.demo.data import EMPLOYEES, OPINIONS, columns_of
from discreet.demo.pictures import bars_with_truth
from discreet.demo.story import ONLY_HERE, TRUTH, Story
from discreet.guarantees.guarantee import Approx
from discreet.guarantees.unit import row
from discreet.ledger import Ledger
from discreet.local import survey
from discreet.plots import legend_below
from discreet.shuffle import histogram
from discreet.tables.table import table

CLIENTS, EPSILON, DELTA = 2000, 1, 1e-6
CODE = """
>>> import discreet as dp
>>> poll = dp.shuffle.histogram(choices=["yes", "no"], clients=2000,
...                             epsilon=1, delta=1e-6)
>>> poll.error(0.95)                         # before anyone is asked
>>> poll.encode("yes")                       # on each device
$ discreet shuffle init poll.toml            # the same with two real services
"""


class PollResult(NamedTuple):
    """The result in one model of trust: a count for each choice, an error for all of them, and the cost."""

    counts: dict[str, float]
    off: float
    cost: str


def tell(teller: Story) -> None:
    """Ask the same employees in three models of trust."""
    teller.begin(
        {
            "data": f"{CLIENTS:,} synthetic employees",
            "question": "“Would you report your own mistake?”",
            "protects": "the answer of one employee",
            "promise": f"ε = {EPSILON} in every model; they differ in who is trusted",
        }
    )
    said = np.asarray(columns_of(EMPLOYEES, count=CLIENTS)["said"]).astype(str)
    true = {choice: int((said == choice).sum()) for choice in OPINIONS}
    models = {"local": _local(said), "shuffled": _shuffle(said), "central": _central(said)}
    teller.show(
        ["answer", *models, TRUTH],
        [
            [choice, *(f"{one.counts[choice]:,.0f} ± {one.off:.0f}" for one in models.values()), f"{true[choice]:,}"]
            for choice in OPINIONS
        ],
    )
    teller.out.print(f"[dim]{ONLY_HERE}[/] Each ± holds for all four counts at once (95%).")
    teller.end(
        {
            "local": f"nobody is trusted: each device randomizes its answer; {models['local'].cost}",
            "shuffled": f"messages are mixed before they are counted; {models['shuffled'].cost}",
            "central": f"the collector sees every answer, and adds noise; {models['central'].cost}",
        },
        lambda figure: _draw(figure, models, true),
        f"One poll of {CLIENTS:,} employees, three models of trust, ε = {EPSILON}",
        code=CODE,
        page="shuffle.md",
    )


def _local(said: Any) -> PollResult:
    asked = survey(choices=list(OPINIONS), epsilon=EPSILON)
    found = asked.analyze(asked.encode_many(said))
    return PollResult(found.value, float(found.error(0.95)), str(found.guarantee))


def _shuffle(said: Any) -> PollResult:
    poll = histogram(choices=list(OPINIONS), clients=CLIENTS, epsilon=EPSILON, delta=DELTA)
    messages = poll.encode_many(said)
    found = poll.analyze(poll.shuffled(messages))
    return PollResult(found.value, float(found.error(0.95)), str(found.guarantee))


def _central(said: Any) -> PollResult:
    unit = row(neighbors="replace")
    ledger = Ledger.open(":memory:", protects=unit, limit=Approx(epsilon=EPSILON, delta=DELTA), rule="basic")
    answers = table(pa.table({"said": said}), ledger=ledger)
    found = answers.histogram("said", choices=list(OPINIONS), epsilon=EPSILON)
    each = 1 - 0.05 / len(OPINIONS)  # with this confidence for each count, all hold together with 95%
    return PollResult(found.value, float(found.error(each)), str(found.guarantee))


def _draw(figure: Any, models: dict[str, PollResult], true: dict[str, int]) -> None:
    panels = figure.subplots(1, len(models), sharey=True)
    trusted = {"local": "nobody", "shuffled": "a shuffler", "central": "the collector"}
    for panel, (name, one) in zip(panels, models.items(), strict=True):
        names = [choice.replace(" ", "\n") for choice in OPINIONS]
        values = [one.counts[choice] for choice in OPINIONS]
        bars_with_truth(panel, names, values, [one.off] * len(names), list(true.values()))
        panel.set_title(f"{name}: trusts {trusted[name]}\n± {one.off:.0f}")
    panels[0].set_ylabel("employees")
    legend_below(figure, panels[0])

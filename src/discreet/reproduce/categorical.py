"""States by randomized response: tables 5, 6 and 7 of the thesis [T.4.10], [T.5.5], [T.5.6]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import discreet as dp
from discreet.reproduce.experiment import Experiment, ReportColumn, promise
from discreet.reproduce.people import STATES, People

SPACE = dp.queries.Categories(STATES)


class PrintedChoices(NamedTuple):
    """One pair (ε, δ) of the thesis, with everything that tables 5 to 7 print for it."""

    epsilon: float
    delta: float
    truth: float
    top: str
    least_error: float
    wrong: float

    @property
    def guarantee(self) -> dp.Approx:
        """The pair as a guarantee."""
        return dp.Approx(epsilon=self.epsilon, delta=self.delta)


PRINTED = (
    PrintedChoices(0.1, 0.1, 0.12, "TX (35), OH (31), CA (30)", 0.879, 0.880),
    PrintedChoices(2, 0.5, 0.57, "TX (68), CA (62), FL (45)", 0.432, 0.437),
    PrintedChoices(7, 0.6, 0.98, "TX (113), CA (102), NY (62)", 0.016, 0.018),
)
PRINTED_TRUTH = "TX (114), CA (102), NY (63)"


@dataclass(frozen=True, kw_only=True)
class Reported:
    """The reports at one (ε, δ): the counts as reported, the unbiased counts, and their exact probabilities."""

    truth: float
    wrong: float
    delta: float
    wrong_seen: float
    counts: Mapping[str, int]
    estimates: Mapping[str, float]


def report(people: People, guarantee: dp.Approx) -> Reported:
    """Let every person answer by randomized response, released through the door."""
    each = dp.Each.for_guarantee(guarantee, spaces=SPACE)
    response = each.mechanisms[0]
    said = dp.release(people.states, each).value
    return Reported(
        truth=float(response.truth),
        wrong=1 - float(response.truth),
        delta=dp.verify(response).delta_at(epsilon=guarantee.epsilon),
        wrong_seen=sum(a != b for a, b in zip(said, people.states, strict=True)) / len(people),
        counts=Counter(said),
        estimates=response.analyze(said),
    )


def run(people: People) -> tuple[Experiment, ...]:
    """One run at each (ε, δ), shown in three tables. The taught formula is also the tight one."""
    pairs = [(wanted, report(people, wanted.guarantee)) for wanted in PRINTED]
    return _truth(people, pairs), _most_frequent(people, pairs), _wrong(people, pairs)


Pairs = list[tuple[PrintedChoices, Reported]]


def _truth(people: People, pairs: Pairs) -> Experiment:
    rows = tuple(
        {
            "promise": promise(wanted.epsilon, wanted.delta),
            "truth": found.truth,
            "truth_observed": 1 - found.wrong_seen,
            "truth_printed": wanted.truth,
            "delta": found.delta,
        }
        for wanted, found in pairs
    )
    return Experiment(
        name="table-5",
        title="Table 5 · how often the true state is reported",
        source="T.4.10",
        columns=(
            ReportColumn("promise", "(ε, δ)", "given"),
            ReportColumn("truth", "P(true)", "exact", ".4f"),
            ReportColumn("truth_observed", "true answers", "observed", ".4f"),
            ReportColumn("truth_printed", "P(true)", "printed", ".2f"),
            ReportColumn("delta", "δ it keeps", "exact", ".6f"),
        ),
        rows=rows,
        notes=(
            "48 states: each other state is reported with probability p = (1−δ)/(47 + e^ε). Taught and tight are",
            "the same formula; the last column is the exact check of all pairs of states (dp.verify).",
        ),
        series={"people": len(people), "pairs": [(w.epsilon, w.delta) for w, _ in pairs]},
    )


def top_three(counts: Mapping[str, float]) -> str:
    """The three largest, as the thesis writes them. Ties are ordered by name.

    >>> top_three({"NY": 1, "CA": 3, "AL": 1, "TX": 9})
    'TX (9), CA (3), AL (1)'
    """
    order = sorted(counts, key=lambda state: (-counts[state], state))[:3]
    return ", ".join(f"{state} ({counts[state]:.0f})" for state in order)


def _most_frequent(people: People, pairs: Pairs) -> Experiment:
    truth = Counter(people.states)
    first = {"reported": top_three(truth), "unbiased": top_three(truth), "printed": PRINTED_TRUTH}
    rows = [
        {"promise": "the people"} | first,
        *(
            {
                "promise": promise(wanted.epsilon, wanted.delta),
                "reported": top_three(found.counts),
                "unbiased": top_three(found.estimates),
                "printed": wanted.top,
            }
            for wanted, found in pairs
        ),
    ]
    return Experiment(
        name="table-6",
        title="Table 6 · the three most frequent states",
        source="T.4.10",
        columns=(
            ReportColumn("promise", "(ε, δ)", "given"),
            ReportColumn("reported", "as reported", "observed"),
            ReportColumn("unbiased", "unbiased", "observed"),
            ReportColumn("printed", "as reported", "printed"),
        ),
        rows=tuple(rows),
        notes=(
            "As reported: what the thesis counts. Unbiased: (reports − n·p)/(P(true) − p), the same reports with",
            "the lies taken into account. States are drawn by their population; the thesis's own draw is not known.",
        ),
        series={
            "truth": truth,
            "reports": [(promise(w.epsilon, w.delta), found.counts, found.estimates) for w, found in pairs],
        },
    )


def _wrong(people: People, pairs: Pairs) -> Experiment:
    rows = tuple(
        {
            "promise": promise(wanted.epsilon, wanted.delta),
            "bound": dp.least_error(SPACE, wanted.guarantee),
            "bound_printed": wanted.least_error,
            "wrong": found.wrong,
            "wrong_observed": found.wrong_seen,
            "wrong_printed": wanted.wrong,
        }
        for wanted, found in pairs
    )
    return Experiment(
        name="table-7",
        title="Table 7 · the share of wrong answers no mechanism can avoid, and the share seen",
        source="T.5.5, T.5.6",
        columns=(
            ReportColumn("promise", "(ε, δ)", "given"),
            ReportColumn("bound", "least share", "exact", ".3f"),
            ReportColumn("bound_printed", "least share", "printed", ".3f"),
            ReportColumn("wrong", "wrong answers", "exact", ".3f"),
            ReportColumn("wrong_observed", "wrong answers", "observed", ".3f"),
            ReportColumn("wrong_printed", "wrong answers", "printed", ".3f"),
        ),
        rows=rows,
        notes=("Randomized response attains the bound: no private mechanism lies less.",),
        series={"people": len(people)},
    )

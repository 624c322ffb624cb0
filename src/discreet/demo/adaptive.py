"""A finding in pure noise: exact answers mislead an analyst who looks first and asks later; a study does not."""

from __future__ import annotations

from typing import Any, NamedTuple

from discreet.adaptive import study
from discreet.demo.pictures import BARS, INK, PRIVATE, WRONG
from discreet.demo.story import ONLY_HERE, TRUTH, Story
from discreet.plots import legend_below
from discreet.reproduce import game

ROWS, FEATURES = 20_000, (10, 30, 100, 300)
CODE = """
$ discreet study plan --rows 20000 --questions 300   # the ±, before any data
>>> import discreet as dp
>>> study = dp.adaptive.study(sample, queries=300)   # your data frame
>>> first = study.mean(lambda rows: rows["smokes"])
>>> study.mean(lambda rows: rows["age"] > 40 + 10 * first.value)
"""


class LastAnswer(NamedTuple):
    """The answer to the last question, after one question for each feature."""

    features: int
    last: game.Round


def tell(teller: Story) -> None:
    """Let an analyst look for something where there is nothing, with exact means and with a study."""
    teller.begin(
        {
            "data": f"{ROWS:,} synthetic patients; features and label are all fair coins",
            "question": "Which features predict the label, and how often is their vote right?",
            "analyst": "asks about every feature, then about the vote of the best ones",
            "truth": "half of the time: there is nothing to find",
        }
    )
    guarantees: list[str] = []

    def begun(rows: Any, questions: int) -> Any:
        made = study(rows, queries=questions)
        guarantees.append(str(made.guarantee))
        return made

    naive = [_play(count, lambda rows, asked: game.Raw(rows, questions=asked)) for count in FEATURES]
    ours = [_play(count, begun) for count in FEATURES]
    teller.show(
        ["features asked", "exact means say", "", "a study says", "", TRUTH],
        [
            [
                f"{one.features}",
                _answer_text(one),
                _verdict(one),
                _answer_text(two),
                _verdict(two),
                f"{one.last.truth:.0%}",
            ]
            for one, two in zip(naive, ours, strict=True)
        ],
    )
    teller.out.print(
        f"[dim]{ONLY_HERE}[/] Each ± claims 95%: exact means for questions fixed in advance, a study for any questions."
    )
    teller.end(
        {
            "cost": f"{guarantees[-1]}, for all {FEATURES[-1] + 1} answers together",
            "price": "a wider ±, known before the first question; more rows reduce it",
        },
        lambda figure: _draw(figure, naive, ours),
        "Looking for a finding where there is none",
        code=CODE,
        page="adaptive.md",
    )


def _play(features: int, begin: Any) -> LastAnswer:
    population = game.Population.of_noise(features)
    played = game.play(population, game.select_features, lambda rows: begin(rows, features + 1), size=ROWS)
    return LastAnswer(features, played.rounds[-1])


def _answer_text(found: LastAnswer) -> str:
    return f"{found.last.value:.1%} ± {_width(found):.1%}"


def _width(found: LastAnswer) -> float:
    low, high = found.last.interval
    return (high - low) / 2


def _verdict(found: LastAnswer) -> str:
    return "holds" if found.last.held else "FALSE"


def _draw(figure: Any, naive: list[LastAnswer], ours: list[LastAnswer]) -> None:
    panel = figure.subplots()
    for shift, found, color, label in ((0.94, naive, WRONG, "exact means"), (1.06, ours, PRIVATE, "a study (private)")):
        places = [one.features * shift for one in found]
        values, widths = ([100 * one.last.value for one in found], [100 * _width(one) for one in found])
        panel.errorbar(places, values, widths, color=color, marker="o", markersize=7, linewidth=1.2,
                       label=f"{label}, ± 95%", **(BARS | {"ecolor": color}))  # fmt: skip
    for one in naive:
        if not one.last.held:
            over = (one.features * 0.94, 100 * one.last.interval[1])
            panel.annotate("false", over, (0, 5), textcoords="offset points", ha="center", color=WRONG)
    panel.axhline(50, color=INK, linestyle="--", linewidth=1.3, label="truth: a coin")
    panel.set_xscale("log")
    panel.set_xticks(FEATURES, [f"{count}" for count in FEATURES])
    panel.minorticks_off()
    panel.yaxis.set_major_formatter("{x:.0f}%")
    panel.set(xlabel="features asked before the last question", ylabel="reported accuracy of the vote")
    legend_below(figure, panel)

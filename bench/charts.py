"""Charts of the main results, drawn from the tables that the benchmarks printed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from discreet import plots

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images" / "benchmarks"
OURS, PEER, OTHER, PLAIN = plots.BLUE, plots.ORANGE, "#7b5ea7", "#9aa0a8"
Table = list[dict[str, str]]


def tables(text: str) -> list[Table]:
    """The tables of a section: for each, its rows by title."""
    found: list[Table] = []
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        titles, _, *rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row[1:-1])] for row in block.splitlines()]
        found.append([dict(zip(titles, row, strict=True)) for row in rows])
    return found


def number(cell: str) -> float:
    """The first number of a cell such as `**83.1 ± .6**`, `1,344` or `2^20`; not a number where there is none."""
    plain = cell.replace(",", "").replace("*", "")
    if power := re.search(r"(\d+)\^(\d+)", plain):
        return float(power[1]) ** float(power[2])
    found = re.search(r"\d*\.?\d+(?:e-?\d+)?", plain)
    return float(found[0]) if found else float("nan")


def raised(text: str) -> str:
    """`10^5` with its exponent raised."""
    return re.sub(r"(\d+)\^(\d+)", r"$\1^{\2}$", text)


def bars(panel: Any, names: Sequence[str], values: Sequence[float], unit: str, colors: Sequence[str]) -> None:
    """Bars on their side, on a logarithmic scale, each with its value."""
    drawn = panel.barh(range(len(names)), values, color=colors)
    panel.bar_label(drawn, [f"{value:,.3g} {unit}" for value in values], padding=4)
    panel.set_yticks(range(len(names)), names)
    panel.set_xscale("log")
    panel.set_xlim(min(values) / 2, max(values) * 12)
    panel.invert_yaxis()
    panel.grid(visible=False, axis="y")


def color(system: str) -> str:
    """Ours, what is not private, and peers."""
    if "discreet" in system or "here" in system:
        return OURS
    return PLAIN if "not private" in system or "by hand" in system else PEER


# --- the charts ---------------------------------------------------------------------------------------------


def sql(figure: Any, found: list[Table]) -> None:
    sizes = {"10 million rows of 1 million people": found[0], "1 million rows of 100,000 people": found[2]}
    for panel, (title, rows) in zip(figure.subplots(2, 1), sizes.items(), strict=True):
        rows = [row for row in rows if "auto" not in row["system"]]
        names = [row["system"] for row in rows]
        bars(panel, names, [number(row["warm, s"]) for row in rows], "s", [color(name) for name in names])
        panel.set_title(title, loc="left")
    panel.set_xlabel("seconds for COUNT, SUM and AVG of 1000 groups, database open")


def engines(figure: Any, found: list[Table]) -> None:
    names = [f"{row['system']}, {row['engine']}" for row in found[0]]
    panel = figure.subplots()
    bars(panel, names, [number(row["warm, s"]) for row in found[0]], "s", [color(name) for name in names])
    panel.set_xlabel("seconds for the same question")


def samplers(figure: Any, found: list[Table]) -> None:
    laws = list(dict.fromkeys(row["law"] for row in found[0]))
    panels = figure.subplots(1, len(laws), sharey=True)
    for panel, law in zip(panels, laws, strict=True):
        rows = [row for row in found[0] if row["law"] == law]
        for title, name in series(rows[0], "M/s"):
            values = [number(row[title]) for row in rows]
            panel.plot(range(len(rows)), values, "o-", color=color(title), label=name)
        panel.set_xticks(range(len(rows)), [raised(row["scale"]) for row in rows])
        panel.set(title=law, xlabel="scale", yscale="log")
    panels[0].set_ylabel("million draws a second")
    plots.legend_below(figure, panels[0])


def series(row: dict[str, str], unit: str) -> Iterable[tuple[str, str]]:
    """The columns in one unit, with what each is of."""
    return ((title, title.removesuffix(f", {unit}")) for title in row if title.endswith(unit))


def learning(figure: Any, found: list[Table]) -> None:
    panel = figure.subplots()
    epsilons = [title for title in found[0][0] if re.fullmatch(r"(?:ε = )?[\d.]+", title)]
    name = next(iter(found[0][0]))
    shown = {"LogisticRegression": OURS, "Opacus": PEER, "diffprivlib": OTHER}
    for row in found[0]:
        for part, tint in shown.items():
            if part in row[name]:
                values = [max(map(number, row[title].split("/"))) for title in epsilons]
                places = [number(title) for title in epsilons]
                label = re.sub(r"C = (\S+) / (\S+)", r"the better of C = \1 and \2", row[name].replace("*", ""))
                panel.plot(places, values, "o-", color=tint, label=label)
        if "scikit-learn" in row[name]:
            panel.axhline(number(row["not private"]), color=PLAIN, linestyle="--", label="scikit-learn, not private")
    panel.set(xscale="log", xlabel="ε", ylabel="accuracy on rows kept apart, %")
    panel.set_xticks([number(title) for title in epsilons], [f"{number(title):g}" for title in epsilons])
    panel.minorticks_off()
    panel.legend(loc="lower right")


def synthetic(figure: Any, found: list[Table]) -> None:
    panel = figure.subplots()
    rows = [
        row for row in found[1] if "/" not in next(iter(row.values())) and "elsewhere" not in next(iter(row.values()))
    ]
    ways = ["1-way", "2-way", "3-way"]
    for place, row in enumerate(rows):
        name = next(iter(row.values())).replace("`", "")
        values = [number(row[way]) for way in ways]
        drawn = panel.bar([i + 0.4 * place - 0.2 for i in range(3)], values, 0.38, color=color(name), label=name)
        panel.bar_label(drawn, [f"{value:.3g}" for value in values], padding=2)
    panel.set_xticks(range(3), [f"{way} marginals" for way in ways])
    panel.set_ylabel("mean L1 distance")
    panel.grid(visible=False, axis="x")
    panel.legend()


def shuffle(figure: Any, found: list[Table]) -> None:
    clients = list(dict.fromkeys(row["clients"] for row in found[0]))
    panels = figure.subplots(1, len(clients), sharey=True)
    lines = {"local, one bit": PEER, "as taught": OTHER, "one bit": OURS, "central Laplace, one bit": PLAIN}
    names = {"local, one bit": "nobody is trusted (local)", "as taught": "shuffled, as taught"}
    names |= {"one bit": "shuffled, here", "central Laplace, one bit": "a trusted curator"}
    for panel, count in zip(panels, clients, strict=True):
        rows = [row for row in found[0] if row["clients"] == count]
        for title, tint in lines.items():
            values = [number(row[title]) for row in rows]
            panel.plot([number(row["ε"]) for row in rows], values, "o-", color=tint, label=names[title])
        panel.set(xscale="log", yscale="log", xlabel="ε", title=f"{count} clients")
        panel.set_xticks([number(row["ε"]) for row in rows], [row["ε"] for row in rows])
        panel.minorticks_off()
    panels[0].set_ylabel("standard deviation of a count")
    plots.legend_below(figure, panels[-1])


def adaptive(figure: Any, found: list[Table]) -> None:
    rows = {next(iter(row.values())).replace("*", ""): row for row in found[0]}
    asked = {title: title.split(", ")[1] for title in found[0][0] if title.startswith("10^5 rows")}
    tints = {"Gaussian noise, here": OURS, "guess and check, here": "#2a9d6f", "Jung et al. 2020 with": PEER}
    tints |= {"splitting": OTHER, "fixed in advance": PLAIN}
    panel = figure.subplots()
    for name, row in rows.items():
        for part, tint in tints.items():
            if part in name:
                values = [number(row[title]) for title in asked]
                panel.plot(range(len(asked)), values, "o-", color=tint, label=name)
    panel.set_xticks(range(len(asked)), [raised(count) for count in asked.values()])
    panel.set(yscale="log", xlabel=f"questions to {raised('10^5')} rows", ylabel="all answers within, 95%")
    figure.legend(loc="outside lower center", ncols=2)


def accounting(figure: Any, found: list[Table]) -> None:
    rows, names = found[1], [title for title in found[1][0] if "accounting" in title or "accountant" in title]
    panel = figure.subplots()
    for place, (name, tint) in enumerate(zip(names, (PEER, OTHER, "#b39ddb"), strict=False)):
        values = [number(row[name]) for row in rows]
        drawn = panel.bar([i + 0.27 * (place - 1) for i in range(len(rows))], values, 0.25, color=tint, label=name)
        panel.bar_label(drawn, [multiple(value) for value in values], padding=2, fontsize=8)
    panel.axhline(1, color=OURS, linewidth=2, label="here")
    panel.set_xticks(range(len(rows)), [textwrap.fill(row["composition"], 16) for row in rows], fontsize=9)
    panel.set(yscale="log", ylabel="time, in multiples of ours")
    panel.grid(visible=False, axis="x")
    plots.legend_below(figure, panel)


def multiple(value: float) -> str:
    """So many times as long: 4.5, 29, 1,641."""
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


@dataclass(frozen=True)
class Chart:
    """Which section it is drawn from, what it is drawn by, and what it says."""

    section: str
    draw: Callable[[Any, list[Table]], None]
    title: str


CHARTS = (
    Chart("sql", sql, "Private SQL compared with its peers"),
    Chart("engines", engines, "One question on every engine, compared with peers"),
    Chart("samplers", samplers, "Exact noise: draws per second on one core"),
    Chart("accounting", accounting, "Composition: how much longer the other accountants take"),
    Chart("learning", learning, "Logistic regression on Adult"),
    Chart("synthetic", synthetic, "Synthetic tables: Adult at ε = 1"),
    Chart("shuffle", shuffle, "Counting without a trusted curator"),
    Chart("adaptive", adaptive, "Questions chosen after seeing answers"),
)


def draw(stored: Callable[[str], str], folder: Path = FOLDER) -> None:
    """Every chart whose section is stored."""
    for chart in CHARTS:
        if found := tables(stored(chart.section)):
            plots.save(folder / f"{chart.section}.png", chart.title, partial(chart.draw, found=found))


def shown(section: str) -> str:
    """The chart of a section in Markdown; nothing if it has none."""
    return "".join(
        f"\n![{chart.title}](../images/benchmarks/{section}.png)\n" for chart in CHARTS if chart.section == section
    )

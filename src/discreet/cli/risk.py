"""`discreet risk TARGET`: what the ledger of a data set has spent and may spend, in words and odds."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.ledger import check_begun, ledger_at
from discreet.cli.terminal.options import LedgerTarget
from discreet.cli.terminal.output import check_picture, clean
from discreet.errors import InvalidArgument
from discreet.guarantees.guarantee import NoLoss
from discreet.guarantees.meaning.picture import draw_svg, plot_attacks
from discreet.guarantees.meaning.risk import BASE_RATES, Risk
from discreet.guarantees.meaning.risk import risk as risk_of
from discreet.guarantees.meaning.words import shortly_described
from discreet.ledger import Ledger
from discreet.ledger.periods import over_all

_SHOWN = "How it is shown"


class About(StrEnum):
    """What an attacker wants to know."""

    presence = "presence"
    value = "value"


class Format(StrEnum):
    """How a risk is printed."""

    text = "text"
    json = "json"


class Style(StrEnum):
    """The colors of the picture."""

    light = "light"
    dark = "dark"


def risk(
    target: LedgerTarget = None,
    people: Annotated[int, typer.Option(help="For how many people together, such as a household.", min=1)] = 1,
    base_rate: Annotated[
        list[float] | None,
        typer.Option(
            help="How likely an attacker thinks it is before anything is released. May be repeated. "
            "By default 0.001, 0.01, 0.1 and 0.5.",
            show_default=False,
        ),
    ] = None,
    about: Annotated[
        About | None,
        typer.Option(
            help="What the attacker wants to know: whether they are in the data, or which of two values they have. "
            "By default what the ledger protects.",
            show_default=False,
        ),
    ] = None,
    analyst: Annotated[
        str | None,
        typer.Option(help="Only what this analyst has seen and may see, alone.", show_default=False),
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="Text, or JSON for another program.", rich_help_panel=_SHOWN)
    ] = Format.text,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw the best attack, too: a .svg, .png or .pdf.", show_default=False, rich_help_panel=_SHOWN
        ),
    ] = None,
    style: Annotated[Style, typer.Option(help="The colors of the picture.", rich_help_panel=_SHOWN)] = Style.light,
) -> None:
    """Say what was spent and what may be spent, in words and odds, for a data owner and a review board.

    It shows how far all releases together can change what an attacker believes about one person or a household, how
    often the best guess is right, and what is not promised. It reads the ledger and changes nothing.

    Examples:
      $ discreet risk clinic.ledger
      $ discreet risk clinic.ledger --people 4 --base-rate 0.02
      $ discreet risk clinic.toml --format json --plot attack.svg

    What the numbers mean: docs/risk.md
    """
    main(
        target,
        people=people,
        base_rates=base_rate or BASE_RATES,
        about=about and about.value,
        analyst=analyst,
        form=form,
        plot=plot,
        style=style,
    )


@dataclass(frozen=True)
class _Life:
    """The risks of all periods of an account together."""

    spent: Risk
    limit: Risk
    periods: int
    adaptive: bool


def main(
    target: str | None,
    *,
    people: int = 1,
    base_rates: Any = BASE_RATES,
    about: Any = None,
    analyst: str | None = None,
    form: str = "text",
    plot: Path | None = None,
    style: str = "light",
) -> None:
    """Print the risk of what a ledger has spent, and of its limit, and draw both if requested."""
    where, policy = ledger_at(target)
    if policy:
        check_begun(where, None)
    if plot is not None:
        _check_plot(plot)
    with closing(Ledger.open(where)) as ledger:
        account = ledger if analyst is None else ledger.for_analyst(analyst)
        life = _life(account, people=people, base_rates=base_rates, about=about)
        if form == "json":
            print(json.dumps(_facts(account, life), ensure_ascii=False, allow_nan=False))
        else:
            print(_text(account, life))
    if plot is not None:
        _draw(life, plot, style)


def _life(account: Ledger, **asked: Any) -> _Life:
    periods, unit = account.periods, account.protects
    spent = over_all([one.spent for one in periods], unit)
    limit = over_all([one.limit for one in periods], unit)
    adaptive = all(one.adaptive for one in periods)
    return _Life(risk_of(spent, **asked), risk_of(limit, **asked), len(periods), adaptive)


def _text(account: Ledger, life: _Life) -> str:
    who = "" if account.analyst is None else f", as far as {clean(account.analyst)} sees it alone"
    over = "" if life.periods == 1 else f" over {life.periods} periods, for people in the data of all of them"
    lines = [f"{clean(account.target)}{who}", f"limit{over}: {life.limit.guarantee}"]
    lines.append(f"spent{over}: {life.spent.guarantee}")
    parts = ["\n".join(lines), f"IF ALL OF THE LIMIT IS SPENT\n\n{life.limit}"]
    if isinstance(life.spent.guarantee, NoLoss):
        parts.append("SO FAR\n\nNothing was spent: no release has changed any odds.")
        return "\n\n".join(parts)
    parts.append(f"SO FAR\n\n{shortly_described(life.spent)}")
    if not life.adaptive:
        parts.append(
            "What was spent so far counts as stated if the questions did not depend on earlier answers.\n"
            "In any case, all releases together keep the limit."
        )
    return "\n\n".join(parts)


def _facts(account: Ledger, life: _Life) -> dict[str, Any]:
    return {
        "target": account.target,
        "analyst": account.analyst,
        "periods": life.periods,
        "limit": life.limit.to_dict(),
        "spent": life.spent.to_dict(),
        "spent_holds_for_adaptive_questions": life.adaptive,
    }


def _check_plot(path: Path) -> None:
    if path.suffix.lower() != ".svg":
        check_picture(path, "discreet risk --plot")
    elif not path.absolute().parent.is_dir():
        raise InvalidArgument(
            f"{path} cannot be a picture. Name a .png, .svg or .pdf in a folder that exists.",
            code="picture-not-written",
        )


def _draw(life: _Life, path: Path, style: str) -> None:
    risks = {"if all of the limit is spent": life.limit, "so far": life.spent}
    if path.suffix.lower() != ".svg":
        plot_attacks(risks, path=path, style=style)
        return
    try:
        path.write_text(draw_svg(risks, width=480, style=style), encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(
            f"{path} cannot be written: {error.strerror}. Name another with --plot.", code="file-not-writable"
        ) from None

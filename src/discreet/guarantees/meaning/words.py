"""A risk in words that a data owner and a review board read. The terms are those of NIST SP 800-226.

Every printed number is rounded to the side of more risk, and nothing is called certain or impossible that is not.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet import html
from discreet.exact.rational import exactly
from discreet.guarantees.guarantee import Approx
from discreet.guarantees.meaning.curve import posterior_of
from discreet.guarantees.unit import Unit, few_rows

if TYPE_CHECKING:
    from discreet.guarantees.meaning.risk import Risk

_WIDTH = 100
_LEAST = Fraction(1, 10**5)
HEAD = ("before the releases", "after, at least", "after, at most", "best guess is right", "without the releases")


# --- numbers ------------------------------------------------------------------------------------------------------


def percent(probability: float | Fraction, *, up: bool) -> str:
    """A probability as a percentage with two or three digits, rounded up or down.

    >>> percent(0.731058, up=True), percent(0.731058, up=False), percent(0.00036, up=False)
    ('73.2%', '73.1%', '0.036%')
    >>> percent(0.99999, up=True), percent(1.0, up=True), percent(1e-9, up=False), percent(0.0, up=False)
    ('>99.9%', '100%', '<0.001%', '0%')
    """
    exact = Fraction(probability)
    if exact in (0, 1):
        return f"{100 * int(exact)}%"
    if exact < _LEAST:
        return f"<{float(100 * _LEAST):g}%"
    if exact > Fraction(999, 1000):
        return ">99.9%"
    digits = 3 if exact >= Fraction(1, 10) else 2
    return f"{_rounded(100 * exact, digits, up=up):f}%"


def times(factor: float) -> str:
    """A factor with three digits, rounded up.

    >>> times(2.718281828), times(1.0), times(22026.5)
    ('2.72', '1', '22,100')
    >>> times(2.6881e43)
    '2.69e+43'
    """
    found = _rounded(exactly(factor), 3, up=True)
    return f"{found:,f}" if found < 10**15 else f"{found:.2e}"


def one_in(probability: float) -> str:
    """A small probability as "1 in so many", rounded up.

    >>> one_in(1e-6), one_in(0.3)
    ('1 in 1,000,000', '1 in 3')
    """
    return f"1 in {_rounded(Fraction(math.floor(1 / exactly(probability))), 3, up=False):,f}"


def _rounded(value: Fraction, digits: int, *, up: bool) -> Decimal:
    rounding = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    found = rounding.divide(Decimal(value.numerator), Decimal(value.denominator))
    return found.normalize()


# --- sentences ----------------------------------------------------------------------------------------------------


def _who(risk: Risk) -> str:
    unit = risk.guarantee.protects
    thing = "row" if unit is not None and unit.column is None else "person"
    if unit is not None and unit.most_rows > 1:
        return few_rows(unit) if risk.people == 1 else f"{risk.people:,} times {few_rows(unit)}"
    if risk.people == 1:
        return f"one {thing}"
    return f"{risk.people:,} {'rows' if thing == 'row' else 'people'} together, such as a household"


def _those(risk: Risk) -> str:
    unit = risk.guarantee.protects
    row = unit is not None and unit.column is None
    if risk.people == 1 and not (unit is not None and unit.most_rows > 1):
        return "this row" if row else "this person"
    return "these rows" if row else "these people"


def _unit(unit: Unit | None) -> str:
    if unit is None:
        return "Privacy unit: one unit, which this guarantee does not name. State it with protects=dp.person('…')."
    if unit.column is None and unit.most_rows > 1:
        return f"Privacy unit: {few_rows(unit)}. Somebody with more rows is protected as a group of such units."
    if unit.column is None:
        return (
            "Privacy unit: one row (event-level). Somebody with several rows is protected as a group of that many rows."
        )
    return f"Privacy unit: one person, with all rows of one {unit.column} (user-level)."


def _neighbors(risk: Risk) -> str:
    if risk.guarantee.relation == "replace":
        return "Neighboring data sets differ in the values of one unit. How many units there are is public."
    return "Neighboring data sets differ in one unit, which is in the data or not."


def _question(risk: Risk) -> str:
    those = _those(risk)
    if risk.about == "presence":
        return f"{those} {'is' if those.startswith('this ') else 'are'} in the data"
    return f"the data of {those} has the first of two given values"


def _against(risk: Risk) -> str:
    return {
        "central": "whoever sees all releases. Those who hold the data are trusted",
        "local": "whoever sees the reports, also the one who collects them",
        "shuffled": "whoever sees the messages in random order. The shuffler is trusted",
    }[risk.guarantee.trust]


def _loss(risk: Risk) -> str:
    what = f"the odds that {_question(risk)}"
    if not math.isfinite(risk.factor):
        return f"Privacy loss: no bound is known on how far a release may change {what}."
    if risk.factor == 1 or risk.loss == 0:
        return f"Privacy loss: none. No release changes {what}."
    bound = f"by more than a factor of {times(risk.factor)}, up or down"
    if not risk.failure:
        return f"Privacy loss: no release, whatever it shows, changes {what} {bound}."
    return (
        f"Privacy loss: except with probability {one_in(risk.failure)}, no release changes {what} {bound}. "
        f"In the excepted case a release may reveal everything about {_those(risk)}.{_unlike_epsilon(risk)}"
    )


def _unlike_epsilon(risk: Risk) -> str:
    """Why the probability and the factor are not δ and e^ε, where a guarantee has both."""
    stated = risk.guarantee
    if not isinstance(stated, Approx) or not stated.delta or risk.people > 1 or risk.failure <= stated.delta:
        return ""
    return (
        " This probability and factor are not δ and e^ε: δ alone does not bound how often odds change by more than "
        "e^ε, so both are a little larger here, and hold together."
    )


def _attack(risk: Risk) -> str:
    one, ten = (percent(risk.true_positives(share), up=True) for share in (0.01, 0.1))
    first = "those who are in the data" if risk.about == "presence" else "those with the first value"
    return (
        f"An attack that wrongly accuses 1% finds at most {one} of {first}; one that wrongly accuses 10% "
        f"finds at most {ten}. The two fractions differ by at most {percent(risk.advantage, up=True)} "
        "(the attacker's advantage)."
    )


def not_promised(risk: Risk) -> list[str]:
    """What a guarantee does not say, one sentence each."""
    those, unit = _those(risk), risk.guarantee.protects
    found = [
        f"It does not say that nothing is learned about {those}: what is true of people like them in general is "
        "learned from the others, with or without them.",
        "It does not cover what is released without noise, by others, or from other copies of the data. What an "
        "attacker knows from elsewhere is part of the base rate.",
    ]
    if risk.people == 1:
        found.append("It is not for a household. Ask for a group to protect several people at once.")
    if risk.about == "presence":
        found.append(
            "It is about being in the data. Ask about a value of somebody who is known to be in it separately."
        )
    if unit is not None and unit.column is None:
        found.append(f"It is not for a person with {'more' if unit.most_rows > 1 else 'several'} rows.")
    return found


def rows(risk: Risk) -> list[tuple[str, ...]]:
    """The table of odds: for each base rate, the posterior probabilities and the best guess."""
    found: list[tuple[str, ...]] = []
    for given in risk.base_rates:
        rate = exactly(given)
        low, high = posterior_of(rate, risk.loss)
        found.append(
            (
                percent(rate, up=True) if percent(rate, up=True) == percent(rate, up=False) else f"{float(rate):.6%}",
                percent(low, up=False),
                percent(high, up=True),
                percent(risk._success(rate), up=True),
                percent(max(rate, 1 - rate), up=False),
            )
        )
    return found


def _paragraphs(risk: Risk) -> list[str]:
    return [
        f"{_unit(risk.guarantee.protects)} {_neighbors(risk)} Protected against {_against(risk)}.",
        _loss(risk),
        f"How likely it may seem to an attacker that {_question(risk)}, and how often the best guess is right:",
    ]


def described(risk: Risk) -> str:
    """The risk as plain text: paragraphs, and a table of odds."""
    unit, loss, lead = _paragraphs(risk)
    parts = [f"What {risk.guarantee} means for {_who(risk)}", _wrap(unit), _wrap(loss), _wrap(lead)]
    parts += [_table(HEAD, rows(risk)), _wrap(_attack(risk)), "What is not promised:"]
    listed = "\n".join(_wrap(one, first="- ", others="  ") for one in not_promised(risk))
    return "\n\n".join(parts) + "\n" + listed


def shortly_described(risk: Risk) -> str:
    """The privacy loss and the table of odds, without what the full text says about every risk."""
    return f"{_wrap(_loss(risk))}\n\n{_table(HEAD, rows(risk))}"


def as_html(risk: Risk) -> str:
    """The risk for a notebook, with its picture."""
    unit, loss, lead = _paragraphs(risk)
    title = html.table(
        HEAD, rows(risk), numbers=range(len(HEAD)), title=f"What {risk.guarantee} means for {_who(risk)}"
    )
    texts = "".join(html.note(text) for text in (unit, loss, lead))
    return texts + title + risk.svg() + "".join(html.note(text) for text in (_attack(risk), *not_promised(risk)))


def _wrap(text: str, *, first: str = "", others: str = "") -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *body)]
    return "\n".join(f"  {line}" for line in lines)

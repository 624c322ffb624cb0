"""Before a study: the width of every method's answers, and how many rows a given accuracy needs. [L6.T9]"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from discreet.adaptive.concentration import deviation
from discreet.adaptive.holdouts import GuessAndCheck, honest_tolerance
from discreet.adaptive.published import bassily, jung_as_coded, jung_exact
from discreet.adaptive.studies import method_for
from discreet.errors import InvalidArgument
from discreet.exact.rational import Number, check_count, check_positive, exactly
from discreet.exact.search import bisect, bracket
from discreet.guarantees.accuracy import at_most, check_confidence
from discreet.mechanisms.adaptive.thresholdout import Thresholdout

STUDY, HOLDOUT = ("gaussian", "laplace", "taught", "compression", "splitting"), ("thresholdout", "guess and check")
_PUBLISHED = {
    "Jung et al. 2020, exact curve": jung_exact,
    "Jung et al. 2020, as coded": jung_as_coded,
    "Bassily et al. 2016": bassily,
}
_FLOOR = "Bonferroni"
_KINDS = {
    "study": (STUDY, "a study: every question is answered"),
    "holdout": (HOLDOUT, "a holdout: guesses of as large a training set are checked, {} corrected"),
    "published": (tuple(_PUBLISHED), "published before, for the same Gaussian noise"),
    "floor": ((_FLOOR,), "not adaptive: all questions are fixed before the first answer"),
}
_METHODS = {name: kind for kind, (names, _) in _KINDS.items() for name in names}
_NOT_PRIVATE = ("compression", "splitting", "guess and check", _FLOOR)
_SLOW = 1000
"""With more questions than this, Laplace noise takes long to account for, and is not tried unless it is named."""
_SAYS_NOTHING = 0.5
_MOST_ROWS = 10**12
_ACCURACIES = (0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """The width of every method for given numbers of rows and questions, from public numbers only.

    `rows` is a list of dicts, one for each width, from which a data frame can be made. A width is how far all answers
    may be from the population's means, together, with this confidence. `useful` is False if it is ½ or more, which
    carries no information. `narrowest` and `narrowest_private` compare the methods of a study, and those of a holdout.
    """

    n: tuple[int, ...]
    k: tuple[int, ...]
    confidence: float
    overfits: int
    methods: tuple[str, ...]
    rows: list[dict[str, Any]]

    def sizes(
        self, accuracies: Number | Sequence[Number] = _ACCURACIES, methods: Iterable[str] = ("gaussian",)
    ) -> Sizes:
        """How many rows a sample needs for each accuracy, with the plan's numbers of questions and confidence."""
        wished, found = _listed(accuracies, "accuracies"), []
        for method in methods:
            for k in self.k:
                for accuracy in wished:
                    needed = rows_needed(accuracy, k, self.confidence, method, overfits=self.overfits)
                    found.append({"questions": k, "accuracy": float(accuracy), "method": method, "rows": needed})
        return Sizes(confidence=self.confidence, rows=found)

    def plot(self, path: str | Path | None = None) -> Any:
        """Widths by the number of questions, with a panel for each number of rows. Saved at `path` if one is given.

        A plan for one number of questions is drawn from a hundredth to a hundred times that number.
        """
        from discreet.adaptive.pictures import plan_plot

        return plan_plot(self._swept(), path)

    def _swept(self) -> StudyPlan:
        """The plan itself, or one for more and fewer questions if it has only one number. Slow methods are skipped."""
        if len(self.k) > 1:
            return self
        around = [max(1, round(self.k[0] * 10**power)) for power in (-2, -1, 0, 1, 2)]
        methods = [method for method in self.methods if method != "laplace"]
        return plan(self.n, around, self.confidence, overfits=self.overfits, methods=methods)

    def __str__(self) -> str:
        return "\n\n".join([*(self._block(n) for n in self.n), *self._legend()])

    def _block(self, n: int) -> str:
        """One table: a line for each method, a column for each number of questions."""
        cells = {(row["method"], row["questions"]): _cell(row) for row in self.rows if row["rows"] == n}
        columns = [max(9, len(f"{k:,}")) for k in self.k]
        title = f"{_count(n, 'row')}, {100 * self.confidence:.6g}% confidence"
        lines = [f"{title:42}" + "".join(f"{k:>{w},}  " for k, w in zip(self.k, columns, strict=True))]
        lines[0] += "question" if self.k == (1,) else "questions"
        for names, heading in _KINDS.values():
            shown = [name for name in names if name in self.methods and any((name, k) in cells for k in self.k)]
            lines += [heading.format(f"up to {self.overfits:,}")] if shown else []
            for name in shown:
                private = "" if name in _NOT_PRIVATE else "private"
                found = [cells.get((name, k), ("", "")) for k in self.k]
                line = "".join(f"{text:>{w}}{mark:2}" for (text, mark), w in zip(found, columns, strict=True))
                lines.append(f"  {name:31} {private:7} {line}".rstrip())
        return "\n".join(lines)

    def _legend(self) -> list[str]:
        texts = {"*": "narrowest of its kind", "†": "narrowest that is private", "–": "½ or more: says nothing"}
        shown = "".join("".join(_cell(row)) for row in self.rows)
        notes = [f"{mark} {text}" for mark, text in texts.items() if mark in shown]
        if "laplace" in self.methods and any(k > _SLOW for k in self.k) and self._is_missing("laplace"):
            notes.append(f"laplace is tried for up to {_SLOW:,} questions")
        return ["\n".join(notes)] if notes else []

    def _is_missing(self, method: str) -> bool:
        found = [row for row in self.rows if row["method"] == method]
        return len(found) < len(self.k) * len(self.n)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How many rows a sample needs: `rows` has a dict for each method, number of questions and accuracy."""

    confidence: float
    rows: list[dict[str, Any]]

    def __str__(self) -> str:
        accuracies = list(dict.fromkeys(row["accuracy"] for row in self.rows))
        found = {(row["method"], row["questions"], row["accuracy"]): row["rows"] for row in self.rows}
        title = f"rows needed, {100 * self.confidence:.6g}% confidence"
        lines = [f"{title:42}" + "".join(f"{f'± {accuracy:.4g}':>16}" for accuracy in accuracies)]
        for method, k in dict.fromkeys((row["method"], row["questions"]) for row in self.rows):
            who = f"  {method}, {_count(k, 'question')}"
            lines.append(f"{who:42}" + "".join(f"{found[method, k, accuracy]:>16,}" for accuracy in accuracies))
        return "\n".join(lines)


def plan(
    n: int | Sequence[int],
    k: int | Sequence[int],
    confidence: float = 0.95,
    *,
    overfits: int = 10,
    methods: Iterable[str] | None = None,
) -> StudyPlan:
    """Compare all methods for samples of `n` rows and `k` questions, each a number or a list. No row is needed.

    A holdout has a training set of n rows besides its own n, corrects up to `overfits` guesses, and has the tolerance
    at which honest guesses use up three tenths of them. `methods` names those to compare, by default all.
    """
    sizes, questions = _counts(n, "n"), _counts(k, "k")
    sure, corrected = check_confidence(confidence), check_count(overfits, "overfits")
    names = tuple(_METHODS) if methods is None else tuple(map(_known, methods))
    rows = []
    for size in sizes:
        for asked in questions:
            tried = [name for name in names if name != "laplace" or asked <= _SLOW or methods is not None]
            widths = {name: _width(name, size, asked, sure, corrected) for name in tried}
            rows += list(_rows(widths, size, asked))
    return StudyPlan(n=sizes, k=questions, confidence=sure, overfits=corrected, methods=names, rows=rows)


def rows_needed(
    accuracy: Number, k: int, confidence: float = 0.95, method: str = "gaussian", *, overfits: int = 10
) -> int:
    """The least number of rows, within 1%, with which `method` answers `k` questions within `accuracy`.

    For private noise it is the lecture's n ≳ √k/α², with its constant. [L6.T9]
    """
    most, asked = float(check_positive(accuracy, "accuracy")), check_count(k, "k")
    sure, corrected = check_confidence(confidence), check_count(overfits, "overfits")
    if most >= _SAYS_NOTHING:
        raise InvalidArgument("accuracy must be below 0.5.", code="out-of-range")
    if _METHODS[_known(method)] not in ("study", "holdout"):
        raise InvalidArgument(f"method must be one of {', '.join(STUDY + HOLDOUT)}.", code="not-an-option")

    def suffice(size: int) -> bool:
        return _width(method, size, asked, sure, corrected) <= most

    guess = min(_MOST_ROWS, math.ceil(math.sqrt(asked) / most**2))
    found = bracket(suffice, guess, least=1, most=_MOST_ROWS)
    if found is None:
        raise InvalidArgument(
            f"No sample of up to 10^12 rows answers {asked} questions within {most:.3g}. "
            "Ask fewer questions, or accept a larger error.",
            code="study-too-few-rows",
        )
    return bisect(suffice, *found, relative=0.0099)


@lru_cache(maxsize=4096)
def _width(method: str, size: int, queries: int, confidence: float, overfits: int) -> float:
    """How far all answers of a method with its best settings may be from the population's."""
    miss = float(1 - exactly(confidence))  # 1 − 0.95 is above 0.05 in floats, and 1/miss below 20
    if method in STUDY:
        return float(method_for(method, size=size, queries=queries, confidence=confidence).width(confidence))
    if method in _PUBLISHED:
        return _PUBLISHED[method](size, queries, miss)
    if method == _FLOOR:
        return float(deviation(size, math.log(queries / miss)))
    tolerance = honest_tolerance(size, size, queries, 0.3 * overfits)
    maker: Any = Thresholdout if method == "thresholdout" else GuessAndCheck
    given = {"size": size, "queries": queries, "overfits": overfits, "confidence": confidence}
    return float(maker.narrowest(**given, tolerance=tolerance).width(confidence))


def _rows(widths: dict[str, float], size: int, queries: int) -> Iterator[dict[str, Any]]:
    """One dict for each method, with its rank among methods of its kind."""
    for name, width in widths.items():
        kind, private = _METHODS[name], name not in _NOT_PRIVATE
        peers = {other: found for other, found in widths.items() if _METHODS[other] == kind}
        least = min(peers.values())
        least_private = min((found for other, found in peers.items() if other not in _NOT_PRIVATE), default=math.inf)
        offered = kind in ("study", "holdout") and width < _SAYS_NOTHING
        yield {
            "rows": size,
            "questions": queries,
            "kind": kind,
            "method": name,
            "private": private,
            "width": width,
            "useful": width < _SAYS_NOTHING,
            "narrowest": offered and width == least,
            "narrowest_private": offered and private and width == least_private,
        }


def _cell(row: dict[str, Any]) -> tuple[str, str]:
    """A width, rounded up, and its marks."""
    if not row["useful"]:
        return "–", ""
    return at_most(row["width"]), "*" * row["narrowest"] + "†" * row["narrowest_private"]


def _counts(given: Any, name: str) -> tuple[int, ...]:
    """One integer, or several: sorted, each once."""
    return tuple(sorted({check_count(one, name) for one in _listed(given, name)}))


def _listed(given: Any, name: str) -> list[Any]:
    found = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if not found:
        raise InvalidArgument(f"{name} must be a number, or a list of at least one.", code="empty")
    return found


def _known(method: Any) -> str:
    if method not in _METHODS:
        raise InvalidArgument(f"method must be one of {', '.join(STUDY + HOLDOUT)}.", code="not-an-option")
    return str(method)


def _count(number: int, one: str) -> str:
    return f"{number:,} {one}{'' if number == 1 else 's'}"

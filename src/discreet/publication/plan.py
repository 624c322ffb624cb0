"""The plan of a publication: which tables are published under which policy, for what, and when they are accepted.

It is read from TOML, or from a mapping with the same keys. An unknown key is refused. No data are read here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.datasets.policy import unknown
from discreet.errors import InvalidArgument
from discreet.exact.rational import check_count, check_delta, check_epsilon, check_positive, check_probability
from discreet.guarantees.accuracy import check_confidence

CONFIDENCE = 0.95
_PLAN = ("title", "about", "publisher", "edition", "policy", "confidence", "anyway", "tables", "cubes", "synthetic")
_TABLE = ("title", "about", "sql", "epsilon", "delta")
_CUBE = ("title", "about", "table", "by", "total", "where", "positive", "epsilon", "delta")
_SYNTHETIC = (
    *("title", "about", "table", "columns", "where", "epsilon", "delta", "rows", "bins", "at_least", "never"),
    *("criteria", "judging", "candidates", "tries"),
)
CANDIDATE = ("rounds", "cells")
CRITERIA = {
    "marginals": ("ways",),
    "counts": ("at_least",),
    "means": ("of", "by", "at_least"),
    "slopes": ("of", "on"),
    "matched": ("columns", "join"),
}
"""The kinds of criteria, and the keys of each."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")


@dataclass(frozen=True, kw_only=True)
class Part:
    """One file of a publication: its section, its name, and what is written there."""

    kind: str
    name: str
    words: Mapping[str, Any] = field(hash=False)

    @property
    def where(self) -> str:
        """Its section of the plan."""
        return f"[{self.kind}.{self.name}]"

    @property
    def title(self) -> str:
        return str(self.words.get("title") or self.name.replace("_", " ").capitalize())

    @property
    def is_selected(self) -> bool:
        """Whether it is the best of a random number of tries."""
        return "tries" in self.words

    def key(self, plan: str) -> str:
        """Its key, in the plan with this digest."""
        return f"publish-{hashlib.sha256(f'publish {plan} {self.kind} {self.name}'.encode()).hexdigest()[:32]}"


@dataclass(frozen=True, kw_only=True)
class PublicationPlan:
    """What is published. `words` is the plan as it was written, and `policy` the path of its policy."""

    words: Mapping[str, Any] = field(hash=False)
    parts: tuple[Part, ...]
    policy: Any

    @property
    def title(self) -> str:
        return str(self.words.get("title") or "A publication")

    @property
    def confidence(self) -> float:
        """How sure the errors on the card are."""
        return check_confidence(self.words.get("confidence", CONFIDENCE))

    @property
    def digest(self) -> str:
        """A hash of the whole plan, except for the place of the policy."""
        return plan_digest(self.words)

    def key(self, part: Part) -> str:
        """The key of a part of this plan. With it, a run that was killed goes on without paying twice."""
        return part.key(self.digest)


def plan_digest(words: Mapping[str, Any]) -> str:
    """A hash of a plan as it is written, except for the place of the policy."""
    kept = {name: value for name, value in words.items() if name != "policy"}
    text = json.dumps(kept, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    try:
        return hashlib.sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        raise InvalidArgument("The plan has text that is not Unicode. Correct it.", code="wrong-type") from None


def load_plan(source: Any) -> PublicationPlan:
    """The plan in a TOML file, with the policy relative to the file, or in a mapping with the same keys."""
    if isinstance(source, PublicationPlan):
        return source
    if isinstance(source, Mapping):
        return plan_in(source, None)
    if not isinstance(source, str | Path):
        raise InvalidArgument(
            'A plan must be the path of a TOML file, such as "plan.toml", or a mapping.', code="wrong-type"
        )
    file = Path(os.path.expanduser(source))
    try:
        words = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument(
            f"The plan {file} cannot be read: {error.strerror}. Name one that exists. To write an example: "
            "discreet publish --example.",
            code="plan-file",
        ) from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"The plan {file} is not TOML: {error}. Correct it.", code="plan-not-toml") from None
    return plan_in(words, file.parent)


def plan_in(words: Mapping[str, Any], folder: Path | None) -> PublicationPlan:
    """The plan in words, after all of them are checked. The policy is relative to `folder`."""
    found = _section(words, "The plan", _PLAN)
    policy = found.get("policy")
    if policy is None:
        raise InvalidArgument('The plan names no policy. Add policy = "clinic.toml".', code="plan-missing-key")
    for key in ("title", "about", "publisher", "edition"):
        _text(found, key, "The plan")
    check_confidence(found.get("confidence", CONFIDENCE))
    _flag(found, "anyway", "The plan")
    parts = []
    for kind, keys, check in (
        ("tables", _TABLE, _check_table),
        ("cubes", _CUBE, _check_cube),
        ("synthetic", _SYNTHETIC, _check_synthetic),
    ):
        for name, given in _section(found.get(kind, {}), f"[{kind}]").items():
            part = Part(kind=kind, name=name, words=_section(given, f"[{kind}.{name}]", keys))
            _check_part(part)
            check(part)
            parts.append(part)
    if not parts:
        raise InvalidArgument(
            "The plan publishes nothing. Add [tables.NAME], [cubes.NAME] or [synthetic.NAME].", code="plan-missing-key"
        )
    names = [part.name for part in parts]
    if len(set(names)) < len(names):
        raise InvalidArgument("Two parts of the plan have the same name. Rename one.", code="duplicates")
    if sum(part.is_selected for part in parts) > 1:
        raise InvalidArgument(
            "Only one table may be chosen by tries: the time of what follows would tell how many tries there were. "
            "Publish the others with a plan of their own.",
            code="plan-selected-twice",
        )
    parts.sort(key=lambda part: part.is_selected)  # the last charge: nothing that follows tells how long it took
    at = policy if folder is None or not isinstance(policy, str) else str(folder / os.path.expanduser(policy))
    return PublicationPlan(words=dict(found), parts=tuple(parts), policy=at)


# --- checks -------------------------------------------------------------------------------------------------


def _section(values: Any, where: str, known: Iterable[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(values, Mapping):
        raise InvalidArgument(f"{where} must be a section of the plan.", code="plan-section")
    for key in values:
        if not isinstance(key, str) or (known is not None and key not in known):
            unknown(where, "key", key, known or (), code="plan-unknown-key")
    return values


def _text(words: Mapping[str, Any], key: str, where: str, *, needed: bool = False) -> None:
    value = words.get(key)
    if value is None and needed:
        raise InvalidArgument(f"{where} has no {key}. Add it.", code="plan-missing-key")
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise InvalidArgument(f"{key} of {where} must be text. Write it in quotes.", code="wrong-type")


def _flag(words: Mapping[str, Any], key: str, where: str) -> None:
    if not isinstance(words.get(key, False), bool):
        raise InvalidArgument(f"{key} of {where} must be true or false.", code="wrong-type")


def _names(value: Any, where: str) -> None:
    if not isinstance(value, list | tuple) or not value or not all(isinstance(one, str) and one for one in value):
        raise InvalidArgument(f'{where} must be a list of columns, such as ["sex", "city"].', code="wrong-type")
    if len(set(value)) < len(value):
        raise InvalidArgument(f"{where} names a column twice. Name each once.", code="duplicates")


def _check_part(part: Part) -> None:
    if not _NAME.fullmatch(part.name):
        raise InvalidArgument(
            f"{part.where}: a name becomes the name of a file. Write small letters, digits and _, such as by_month.",
            code="plan-name",
        )
    for key in ("title", "about", "where"):
        _text(part.words, key, part.where)
    if "epsilon" not in part.words:
        raise InvalidArgument(f"{part.where} has no epsilon. Add what it may cost.", code="plan-missing-key")
    check_epsilon(part.words["epsilon"])
    if "delta" in part.words:
        check_delta(part.words["delta"])


def _check_table(part: Part) -> None:
    _text(part.words, "sql", part.where, needed=True)


def _check_cube(part: Part) -> None:
    _text(part.words, "table", part.where, needed=True)
    _text(part.words, "total", part.where)
    _flag(part.words, "positive", part.where)
    if not isinstance(part.words.get("by"), list | tuple):
        raise InvalidArgument(
            f'{part.where} has no list of columns. Add by = ["sex", "city"].', code="plan-missing-key"
        )


def _check_synthetic(part: Part) -> None:
    words, where = part.words, part.where
    _text(words, "table", where, needed=True)
    if "columns" not in words:
        raise InvalidArgument(f"{where} has no columns. Add the columns to publish.", code="plan-missing-key")
    _names(words["columns"], f"columns of {where}")
    for key in ("rows", "bins", "at_least"):
        if key in words:
            check_count(words[key], f"{key} of {where}")
    if "judging" in words:
        check_probability(words["judging"], f"judging of {where}")
    never = words.get("never", [])
    if not isinstance(never, list | tuple) or not all(isinstance(one, Mapping) and one for one in never):
        raise InvalidArgument(
            f"never of {where} must be a list of combinations, such as [{{age = [0, 14], children = [1, 20]}}].",
            code="wrong-type",
        )
    _check_candidates(part)
    criteria = words.get("criteria", [])
    if not isinstance(criteria, list | tuple):
        raise InvalidArgument(f"criteria of {where} must be a list: [[synthetic.NAME.criteria]].", code="wrong-type")
    for one in criteria:
        _check_criterion(one, where)


def _check_candidates(part: Part) -> None:
    candidates = part.words.get("candidates", [{}])
    if not isinstance(candidates, list | tuple) or not candidates:
        raise InvalidArgument(
            f"candidates of {part.where} must be a list of settings, such as [{{rounds = 6}}].", code="wrong-type"
        )
    for one in candidates:
        for key, value in _section(one, f"candidates of {part.where}", CANDIDATE).items():
            check_count(value, f"{key} of {part.where}", at_least=0 if key == "rounds" else 1)
    if part.is_selected and check_positive(part.words["tries"], "tries") <= 1:
        raise InvalidArgument(
            "tries is the expected number of tries, and there is always one. Write a number above 1, or leave it out.",
            code="out-of-range",
        )
    if part.is_selected and not part.words.get("criteria"):
        raise InvalidArgument(
            f"{part.where} has tries but no criteria to choose by. Add [[synthetic.{part.name}.criteria]].",
            code="plan-missing-key",
        )
    if len(candidates) > 1 and not part.is_selected:
        raise InvalidArgument(
            f"{part.where} has several candidates. Add tries, the expected number of tries, such as tries = 5.",
            code="plan-missing-key",
        )


def _check_criterion(words: Any, where: str) -> None:
    kind = words.get("kind") if isinstance(words, Mapping) else None
    if not isinstance(kind, str) or kind not in CRITERIA:
        raise InvalidArgument(f"A criterion of {where} must have a kind: {', '.join(CRITERIA)}.", code="plan-criterion")
    here = f"The criterion {kind} of {where}"
    _section(words, here, ("kind", "title", "at_most", *CRITERIA[kind]))
    _text(words, "title", here)
    for key in ("at_most", *CRITERIA[kind]):
        if key not in words and key != "join":
            raise InvalidArgument(f"{here} has no {key}. Add it.", code="plan-missing-key")
    check_positive(words["at_most"], f"at_most of {where}")
    for key in ("ways", "at_least"):
        if key in CRITERIA[kind]:
            check_count(words[key], f"{key} of {where}")
    for key in ("of", "by"):
        if key in CRITERIA[kind]:
            _text(words, key, here)
    for key in ("on", "columns"):
        if key in CRITERIA[kind]:
            _names(words[key], f"{key} of {where}")
    joined = words.get("join", {})
    if not isinstance(joined, Mapping):
        raise InvalidArgument(f"join of {where} must be numbers of values, such as {{age = 5}}.", code="wrong-type")
    for count in joined.values():
        check_count(count, f"join of {where}")

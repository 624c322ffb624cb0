"""A survey as bytes that every device has: what is asked, and how an answer is randomized. One hash names them.

A device in another language reads the same bytes (docs/reference/wire.md), so they are written in one way and never
written again.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from discreet.errors import InvalidArgument
from discreet.exact.canonical import canonical, from_plain, plain
from discreet.exact.rational import check_count
from discreet.guarantees.guarantee import Approx
from discreet.local.devices import Device, promise
from discreet.local.numbers import MeanSurvey
from discreet.local.prefixes import HeavyHitters
from discreet.local.repetition import Repeated
from discreet.local.row_reports import Rows
from discreet.local.sketches import Sketch
from discreet.local.surveys import Survey
from discreet.mechanisms.noise.laplace import Laplace
from discreet.mechanisms.protocol import meets
from discreet.mechanisms.reports.bit_response import SubsetSelection
from discreet.mechanisms.reports.frequency_oracle import DirectResponse, FrequencyOracle
from discreet.mechanisms.reports.local_hashing import OPEN, LocalHashing
from discreet.mechanisms.reports.local_mean import HybridResponse, LaplaceResponse, WindowResponse
from discreet.mechanisms.reports.oracle_choice import LARGEST_LISTED, ORACLES
from discreet.mechanisms.reports.prefix_response import PrefixResponse, SketchResponse
from discreet.queries.space import Categories, Interval

FORMAT = "discreet/survey/v1"
LONGEST = 2**24
_SAFE = 2**53 - 1
"""Larger integers are written as text: JavaScript would round them."""


def task(survey: Any) -> bytes:
    """The survey as canonical JSON, for devices in any language. SHA-256 of the bytes is the survey's name.

    >>> from discreet import local
    >>> local.from_task(local.task(local.survey(choices=["yes", "no"], epsilon=1))).choices
    ('yes', 'no')
    """
    facts: dict[str, Any] = {"format": FORMAT}
    if isinstance(survey, Repeated):
        facts["repeated"] = {"each_round": None if survey.fresh is None else _of_oracle(survey.fresh)}
        survey = survey.survey
    return canonical(facts | {"survey": _described(survey)})


def from_task(data: bytes, *, memory: Any = None) -> Any:
    """The survey that `task` wrote, if its noise keeps the ε and δ that it states. Do not take part otherwise.

    A repeated survey needs the device's `memory`, as in `repeated`.
    """
    try:
        facts = json.loads(data) if len(data) <= LONGEST else {}
        if facts["format"] != FORMAT or not set(facts) <= {"format", "survey", "repeated"}:
            raise ValueError
        made = _read(facts["survey"])
        again = facts.get("repeated")
        fresh = None if again is None or again["each_round"] is None else _oracle(again["each_round"])
        if again is not None and not isinstance(made, Survey):
            raise ValueError
        if fresh is not None and (
            not isinstance(fresh, DirectResponse) or (made.method, made.size) != ("direct", fresh.size)
        ):
            raise ValueError
        result = made
        if again is not None:
            result = Repeated(survey=made, memory={} if memory is None else memory, fresh=fresh)
        if task(result) != data:  # one survey has one hash, and a part that was not understood changes the bytes
            raise ValueError
    except InvalidArgument:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, MemoryError, RecursionError):
        raise InvalidArgument(
            f'These bytes are not a survey in the format "{FORMAT}". Get them again, unchanged.',
            code="survey-task-unreadable",
        ) from None
    return result


# --- writing ----------------------------------------------------------------------------------------------------


def _described(survey: Any) -> dict[str, Any]:
    if not isinstance(survey, Device | Rows):
        raise InvalidArgument(
            "A task is made of a survey of dp.local, such as dp.local.survey(choices=[…], epsilon=1).",
            code="wrong-type",
        )
    stated: Any = survey.stated
    promised = {"epsilon": plain(stated.epsilon), "delta": plain(stated.delta)}
    match survey:
        case Survey(choices=choices, domain=domain):
            kind = "choices" if choices is not None else "numbers" if domain is None else "text"
            listed = {} if choices is None else {"choices": [plain(one) for one in choices]}
            return {"kind": kind, **promised, **listed, "oracle": _of_oracle(survey.oracle)}
        case MeanSurvey(space=space, mechanism=mechanism):
            ends = {"low": plain(space.low), "high": plain(space.high), "method": survey.method}
            return {"kind": "mean", **promised, **ends, "mechanism": _of_mean(mechanism)}
        case Sketch(mechanism=mechanism):
            public = {"hashes": mechanism.hashes, "seed": mechanism.seed}
            return {"kind": "sketch", **promised, **public, "oracle": _of_oracle(mechanism.oracle)}
        case HeavyHitters(mechanism=mechanism):
            letters = {} if survey.alphabet is None else {"alphabet": survey.alphabet}
            return {
                "kind": "prefixes",
                **promised,
                "top": survey.top,
                "base": mechanism.base,
                "length": mechanism.length,
                "lengths": list(mechanism.lengths),
                **letters,
                "oracle": _of_oracle(mechanism.oracle),
            }
        case Rows(columns=columns):
            return {"kind": "rows", **promised, "columns": [[name, _described(one)] for name, one in columns.items()]}
    raise TypeError(type(survey))  # a new kind of survey, which must be added here


def _of_oracle(oracle: FrequencyOracle) -> dict[str, Any]:
    """The fields of an oracle, and what a device would otherwise have to derive."""
    written = {"method": oracle.method} | {one.name: plain(getattr(oracle, one.name)) for one in fields(oracle)}
    if isinstance(oracle, SubsetSelection):
        written["listed"] = oracle.listed
    if isinstance(oracle, LocalHashing):
        written["prime"] = oracle.prime
    if oracle.size > _SAFE:
        written["size"] = str(oracle.size)
    return written


def _of_mean(mechanism: Any) -> dict[str, Any]:
    match mechanism:
        case HybridResponse(wide=wide, coin=coin, share=share):
            return {"wide": _of_mean(wide), "coin": _of_mean(coin), "share": plain(share)}
        case LaplaceResponse(noise=noise, grid=grid):
            return {"scale": plain(noise.scale), "grid": grid}
    return {one.name: plain(getattr(mechanism, one.name)) for one in fields(mechanism)}


# --- reading ----------------------------------------------------------------------------------------------------


def _read(found: dict[str, Any]) -> Any:
    stated = promise(from_plain(found["epsilon"]), from_plain(found["delta"]))
    made = _made(found, stated)
    kept = made.mechanism.guarantee(None)
    if not meets(kept, stated):
        raise InvalidArgument(
            f"The noise of this survey does not guarantee {stated}. Do not take part.", code="survey-promise-not-kept"
        )
    return made


def _made(found: dict[str, Any], stated: Approx) -> Device | Rows:
    match found["kind"]:
        case "choices" | "numbers" | "text":
            choices = Categories(from_plain(found["choices"])).points() if "choices" in found else None
            domain = "strings" if found["kind"] == "text" else None
            oracle = _oracle(found["oracle"])
            if choices is not None and len(choices) != oracle.size:
                raise ValueError
            # the place of an answer must be below the oracle's size, or it would be told as it is
            if domain is not None and not (isinstance(oracle, LocalHashing) and oracle.size == OPEN):
                raise ValueError
            return Survey(mechanism=oracle, stated=stated, choices=choices, domain=domain)
        case "mean":
            space = Interval(from_plain(found["low"]), from_plain(found["high"]))
            return MeanSurvey(
                space=space, mechanism=_mean(found["mechanism"], space), stated=stated, method=found["method"]
            )
        case "sketch":
            rest = {"hashes": found["hashes"], "seed": found["seed"]}
            return Sketch(mechanism=SketchResponse(oracle=_oracle(found["oracle"]), **rest), stated=stated)
        case "prefixes":
            digits = {"base": found["base"], "length": found["length"], "lengths": tuple(found["lengths"])}
            mechanism = PrefixResponse(oracle=_oracle(found["oracle"]), **digits)  # type: ignore[arg-type]
            alphabet = found.get("alphabet")
            if alphabet is not None and not len(set(alphabet)) == len(alphabet) == mechanism.base - 1:
                raise ValueError
            check_count(found["top"], "top")
            return HeavyHitters(mechanism=mechanism, stated=stated, top=found["top"], alphabet=alphabet)
        case "rows":
            columns = {name: _read(one) for name, one in found["columns"]}
            if not all(isinstance(one, Survey | MeanSurvey) for one in columns.values()):
                raise ValueError
            return Rows(columns=columns, stated=stated)
    raise ValueError


def _oracle(found: dict[str, Any]) -> FrequencyOracle:
    kind = {one.method: one for one in ORACLES}[found["method"]]
    given = {one.name: from_plain(found[one.name]) for one in fields(kind)}
    size = int(found["size"])
    # more than any survey here would choose: a device could not hold the report, or would round its number
    if (size > LARGEST_LISTED and kind is not LocalHashing) or given.get("prime", 2) ** min(
        given.get("dimension", 2), 64
    ) > _SAFE:
        raise ValueError
    made: FrequencyOracle = kind(**given | {"size": size})
    return made


def _mean(found: dict[str, Any], space: Interval) -> Any:
    if "wide" in found:
        parts = {name: _mean(found[name], space) for name in ("wide", "coin")}
        return HybridResponse(**parts, share=from_plain(found["share"]))
    if "scale" in found:
        return LaplaceResponse(space=space, noise=Laplace(scale=from_plain(found["scale"]), step=1), grid=found["grid"])
    return WindowResponse(**{one.name: from_plain(found[one.name]) for one in fields(WindowResponse)})

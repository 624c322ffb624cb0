"""Controlled noise, for tests only: frozen, absent, or replaced by its exact distribution.

Everything released inside one of these blocks is marked `not_private`.

    with testing.frozen(7) as tape:   the same noise every time; tape.calls lists every draw that was asked for
    with testing.no_noise():          ε = ∞: the answer a mechanism would give without noise
    law = testing.exact_law(run)      every output of run() with its exact probability, by enumeration
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from math import comb, factorial
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.exact import samplers
from discreet.exact.hypergeometric import Hypergeometric
from discreet.exact.laws import Shape
from discreet.exact.randomness import Keystream, replaying
from discreet.exact.rational import exp_minus_bits

_BITS = 256


@dataclass
class Tape:
    """What a block requested from the samplers: name, parameters and number of draws, in order."""

    calls: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    def write(self, sampler: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Remember one call, by its public parameters."""
        values = [*args, *kwargs.values()]
        public = tuple(a.shape if isinstance(a, np.ndarray) else a for a in values)
        self.calls.append((sampler.__name__, public))


@contextmanager
def _substitute(substitute: Callable[..., Any]) -> Iterator[None]:
    token = samplers._substitute.set(substitute)
    try:
        yield
    finally:
        samplers._substitute.reset(token)


@contextmanager
def frozen(seed: int = 0) -> Iterator[Tape]:
    """The real samplers on a fixed stream of randomness: equal seeds give equal noise."""
    tape = Tape()

    def record(sampler: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        tape.write(sampler, args, kwargs)
        return sampler(*args, **kwargs)

    stream = Keystream(seed.to_bytes(32, "little"), bytes(16))
    with replaying(stream), _substitute(record):
        yield tape


def _noiseless(sampler: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    given = _arguments_by_name(sampler, args, kwargs)
    match sampler.__name__:
        case "discrete_laplace" | "discrete_gaussian":
            return np.zeros(given["size"], dtype=np.int64)
        case "exponential_choice":
            losses, widths = given["losses"], given.get("widths")
            allowed = np.arange(len(losses)) if widths is None else np.flatnonzero(widths > 0)
            return np.full(given.get("size", 1), allowed[np.argmin(losses[allowed])], dtype=np.int64)
        case "bernoulli" | "bernoulli_exp":
            return np.zeros(given["size"], dtype=bool)
        case "bernoulli_exp_each":
            return given["losses"] == 0
        case "permutation":
            return np.arange(given["size"])
        case "hypergeometric":
            return Hypergeometric(given["marked"], given["others"], given["taken"]).mode
        case _:
            return np.zeros(given["size"], dtype=np.int64)


@contextmanager
def no_noise() -> Iterator[None]:
    """ε = ∞: noise is 0, a choice is the best one, a coin flip is false, an order is the given one, and a sample is
    the most probable one.
    """
    with _substitute(_noiseless):
        yield


@dataclass(frozen=True)
class ExactLaw:
    """The probabilities of every output, rounded down, and the mass `unresolved` outside the enumerated window."""

    law: dict[Hashable, Fraction]
    unresolved: Fraction


def _options(sampler: Callable[..., Any], given: dict[str, Any], window: int) -> list[tuple[Any, Fraction]]:
    """The possible outcomes of ONE draw, with probabilities rounded down to within 2^-250."""
    needed = {name: value for name, value in given.items() if name != "size" or sampler.__name__ == "permutation"}
    fixed = ((name, tuple(v.tolist()) if isinstance(v, np.ndarray) else v) for name, v in needed.items())
    return _outcomes(sampler.__name__, tuple(fixed), window)


@lru_cache(maxsize=4096)
def _outcomes(sampler: str, given: tuple[tuple[str, Any], ...], window: int) -> list[tuple[Any, Fraction]]:
    """Computed once for all paths. What cannot happen is left out: a run may be undefined on a path never taken."""
    return [(value, mass) for value, mass in _law_of(sampler, dict(given), window) if mass]


def _law_of(sampler: str, given: dict[str, Any], window: int) -> list[tuple[Any, Fraction]]:
    match sampler:
        case "discrete_laplace" | "geometric" | "discrete_gaussian":
            kind = "gaussian" if sampler == "discrete_gaussian" else "laplace"
            shape = Shape(kind, given["variance" if kind == "gaussian" else "scale"])
            law, _ = shape.law(_BITS, signed=sampler != "geometric")
            return [(k, law[k]) for k in sorted(law) if abs(k) <= window]
        case "bernoulli":
            p = given["probability"]
            return [(False, 1 - p), (True, p)]
        case "bernoulli_exp":
            low, high = exp_minus_bits(given["energy"], _BITS)
            return [(False, 1 - Fraction(high, 2**_BITS)), (True, Fraction(low, 2**_BITS))]
        case "uniform_below":
            return [(k, Fraction(1, given["bound"])) for k in range(given["bound"])]
        case "exponential_choice":
            losses, widths = given["losses"], given.get("widths")
            wide = [1] * len(losses) if widths is None else [int(w) for w in widths]
            least = min(Fraction(loss) for loss, w in zip(losses, wide, strict=True) if w)
            ends = [exp_minus_bits(given["rate"] * (Fraction(loss) - least), _BITS) if w else (0, 0)
                    for loss, w in zip(losses, wide, strict=True)]  # fmt: skip
            total = sum(w * high for w, (_, high) in zip(wide, ends, strict=True))
            return [(i, Fraction(w * low, total)) for i, (w, (low, _)) in enumerate(zip(wide, ends, strict=True))]
        case "permutation":
            size = given["size"]
            return [(order, Fraction(1, factorial(size))) for order in permutations(range(size))]
        case "hypergeometric":
            marked, others, taken = given["marked"], given["others"], given["taken"]
            ways = comb(marked + others, taken)
            return [(k, Fraction(comb(marked, k) * comb(others, taken - k), ways)) for k in range(taken + 1)]
    raise InvalidArgument(f"The exact law of {sampler} is not known. Enumerate another sampler.", code="no-exact-law")


def _single_draws(
    sampler: Callable[..., Any], given: dict[str, Any]
) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
    if sampler.__name__ == "bernoulli_exp_each":
        return [
            (samplers.bernoulli_exp, {"energy": given["rate"] * Fraction(loss)}) for loss in given["losses"].tolist()
        ]
    if sampler.__name__ == "hypergeometric":
        each = zip(*(given[name].tolist() for name in ("marked", "others", "taken")), strict=True)
        return [(sampler, {"marked": marked, "others": others, "taken": taken}) for marked, others, taken in each]
    return [(sampler, given)] * (1 if sampler.__name__ == "permutation" else given.get("size", 1))


class _Path:
    """One path through a run: at each draw it takes the outcome that `prefix` names, and the first one after `prefix`
    ends.
    """

    def __init__(self, prefix: list[int], window: int) -> None:
        self._prefix, self._window = prefix, window
        self._taken: list[tuple[int, int]] = []
        self.mass = Fraction(1)

    def __call__(self, sampler: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        given = _arguments_by_name(sampler, args, kwargs)
        draws = [self._choose(_options(one, single, self._window)) for one, single in _single_draws(sampler, given)]
        if sampler.__name__ == "permutation":
            return np.array(draws[0], dtype=np.int64)
        return np.array(draws, dtype=bool if sampler.__name__.startswith("bernoulli") else np.int64)

    def _choose(self, options: list[tuple[Any, Fraction]]) -> Any:
        place = len(self._taken)
        index = self._prefix[place] if place < len(self._prefix) else 0
        self._taken.append((index, len(options)))
        value, probability = options[index]
        self.mass *= probability
        return value

    def next_prefix(self) -> list[int] | None:
        """The next path, in order. None after the last one."""
        taken = self._taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        return [index for index, _ in taken[:-1]] + [taken[-1][0] + 1] if taken else None


def exact_law(run: Callable[[], Any], *, window: int = 12, most_paths: int = 2_000_000) -> ExactLaw:
    """Every output of `run()` with its exact probability: each draw is replaced, in turn, by each of its outcomes.

    Noise beyond ±`window` steps is not enumerated; its mass is `unresolved`. Outputs must be hashable (arrays become
    tuples).
    """
    law: dict[Hashable, Fraction] = {}
    prefix: list[int] = []
    for _ in range(most_paths):
        path = _Path(prefix, window)
        with _substitute(path):
            output = _hashable(run())
        law[output] = law.get(output, Fraction(0)) + path.mass
        following = path.next_prefix()
        if following is None:
            return ExactLaw(law, 1 - sum(law.values(), Fraction(0)))
        prefix = following
    raise InvalidArgument(
        f"There are more than {most_paths} paths. Make the window or the number of draws smaller.", code="too-large"
    )


def _arguments_by_name(sampler: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a draw by name."""
    return dict(zip(sampler.__code__.co_varnames, args, strict=False)) | kwargs


def _hashable(output: Any) -> Hashable:
    if isinstance(output, np.ndarray):
        return tuple(_hashable(x) for x in output.tolist())
    if isinstance(output, list | tuple):
        return tuple(_hashable(x) for x in output)
    return output.item() if isinstance(output, np.generic) else output  # type: ignore[no-any-return]

"""Try hostile input for so many minutes a target: `python -m fuzz sql ledger --minutes 12 --seed 1`.

What was found is reduced and printed, each cause once; the status is then 1. It lies in `.hypothesis/fuzz`, too, and is
tried first the next time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings, target
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.errors import Flaky, HypothesisWarning

from fuzz.oracle import Broken, Target

TARGETS = ("sql", "policy", "ledger", "postgres", "wire", "cli", "http", "tasks")
ROUND = 300
"""So many inputs, then seeds that were found meanwhile are used."""
AS_THEY_ARE = 100
"""About so many seeds are tried unchanged, first."""
REDUCED_FOR = 60
"""Seconds more for what is found at the end."""
KEPT = 2000
"""No more seeds than that."""


class Campaign:
    """One target, for some time."""

    def __init__(self, name: str, one: Target, *, minutes: float, pause: Path | None = None) -> None:
        self.name, self.target, self.left, self.pause = name, one, 60 * minutes, pause
        self.tried, self.sound_seeds, self.since = 0, len(one.seeds), time.monotonic()
        self.outcomes: dict[str, int] = {}
        self.new: list[Any] = []
        self.found: dict[str, tuple[Any, str]] = {}

    def run(self, first_seed: int) -> None:
        """Seeds as they are; then round after round of changes to them, and to what was new in the rounds before."""
        self._tried_as_they_are()
        number = first_seed
        while self.left > 0:
            self.new.clear()
            self._round(number)
            self.target.seeds += self.new[: max(0, KEPT - len(self.target.seeds))]
            number += 1

    def _tried_as_they_are(self) -> None:
        seeds = self.target.seeds
        for one in seeds[:: max(1, len(seeds) // AS_THEY_ARE)]:
            self.reducing = None
            try:
                self.once(one)
            except Broken as broken:
                self.found[broken.kind] = (one, str(broken))

    def _round(self, number: int) -> None:
        self.reducing: Broken | None = None

        @seed(number)
        @settings(
            max_examples=ROUND,
            database=DirectoryBasedExampleDatabase(Path(".hypothesis") / "fuzz" / self.name),
            deadline=None,
            phases=(Phase.reuse, Phase.generate, Phase.target, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            verbosity=Verbosity.quiet,
        )
        @given(self.target.inputs())
        def tried(one: Any) -> None:
            if self.left > (-REDUCED_FOR if self.reducing else 0):
                target(self.once(one), label="how rare the outcome is")

        try:
            tried()
        except (Broken, Flaky) as found:  # Flaky: not when it was tried again, or there was no time left for it
            if self.reducing is None:
                raise
            steady = "" if isinstance(found, Broken) else "(found, and not reduced to the end) "
            self.found[self.reducing.kind] = (self.last, f"{steady}{self.reducing}")

    def once(self, one: Any) -> float:
        """Check one input; how rare its outcome is. A cause that is known already is passed over, and so are all others
        while one is reduced.
        """
        self._count_time()
        try:
            named = self.target.check(one)
        except Broken as broken:
            if broken.kind in self.found or (self.reducing and broken.kind != self.reducing.kind):
                return 0
            if self.reducing is None:
                print(f"{self.name}, input {self.tried}: {broken.kind}", flush=True)
            self.last, self.reducing = one, broken
            raise
        finally:
            self.tried += 1
        if named not in self.outcomes:
            self.new.append(one)
        self.outcomes[named] = self.outcomes.get(named, 0) + 1
        return 1 / self.outcomes[named]

    def _count_time(self) -> None:
        """Take off what has passed since the last input; a pause is not counted."""
        self.left -= time.monotonic() - self.since
        while self.pause is not None and self.pause.exists():
            time.sleep(1)
        self.since = time.monotonic()

    def report(self) -> None:
        """What was tried, and what was found."""
        rare = sorted(self.outcomes.items(), key=lambda pair: -pair[1])
        grown = f"{self.sound_seeds} seeds, {len(self.target.seeds)} at the end"
        print(f"{self.name}: {self.tried} inputs, {len(self.outcomes)} kinds of outcomes, {grown}")
        for named, count in rare[:8]:
            print(f"  {count:6}  {named[:150]}")
        for kind, (one, why) in self.found.items():
            print(f"FOUND in {self.name}: {kind}\n  {why[:1500]}\n  input: {repr(one)[:3000]}")
        sys.stdout.flush()


def opened(name: str, folder: Path) -> Target:
    """A target by its name, on an empty folder."""
    made: Target = getattr(import_module(f"fuzz.{name}"), name.capitalize())(folder)
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the targets that are named, or all, one after another."""
    words = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    words.add_argument("targets", nargs="*", metavar="target", help=f"of {', '.join(TARGETS)}; by default all")
    words.add_argument("--minutes", type=float, default=12, help="for each target")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--pause-while", type=Path, help="wait while this file exists, and do not count that time")
    told = words.parse_args(arguments)
    warnings.simplefilter("ignore", HypothesisWarning)  # that a whole file is a long input
    names = told.targets or TARGETS
    if unknown := set(names) - set(TARGETS):
        words.error(f"no such target: {', '.join(sorted(unknown))}")
    found = False
    for name in names:
        with tempfile.TemporaryDirectory(prefix="discreet_fuzz_") as folder:
            one = opened(name, Path(folder).resolve())
            campaign = Campaign(name, one, minutes=told.minutes, pause=told.pause_while)
            try:
                campaign.run(told.seed)
            finally:
                one.close()
                campaign.report()
            found |= bool(campaign.found)
    return int(found)


if __name__ == "__main__":
    sys.exit(main())

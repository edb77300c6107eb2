# SPDX-License-Identifier: MIT
"""A program that is measured as it is and under flexsc run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import IO

from .runner import Plan
from .samples import BenchError, Settings

NATIVE, FLEXSC = "native", "flexsc"
# For a server on one core.
CARRIER = ["--carriers", "1"]

# flexsc run runs a program as it is where it can't do better, and says so.
COMPLAINT = "flexsc"


@dataclass(frozen=True)
class Program:
    """A program that runs. pid: of the process that serves. settings: how bench --raw
    rounds loads it.
    """

    name: str
    pid: int
    port: int
    stderr: IO[str]
    settings: Settings = field(default_factory=dict)

    def last_words(self) -> str:
        """The last line that it has written to its standard error."""
        self.stderr.seek(0)
        lines = self.stderr.read().strip().splitlines()
        return lines[-1] if lines else ""

    def check(self) -> None:
        """Does it run in the way it was asked to?"""
        if self.last_words().startswith(COMPLAINT):
            raise self.error("runs natively")

    def error(self, reason: object) -> BenchError:
        """What went wrong, and what the program says to it."""
        words = self.last_words()
        return BenchError(f"{self.name}: {reason}" + (f" ({words})" if words else ""))


def way(plan: Plan, variant: str, *options: str) -> list[str]:
    """The words before a program's own command. options: of flexsc run."""
    flexsc = {FLEXSC: plan.flexsc, NATIVE: plan.baseline}.get(variant)
    return [flexsc, "run", *options, "--"] if flexsc else []

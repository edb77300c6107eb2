# SPDX-License-Identifier: MIT
"""A program that is measured natively and under flexsc run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import IO

from .runner import Plan
from .samples import BenchError, Settings

NATIVE, FLEXSC = "native", "flexsc"
# The beginning of flexsc run's message when it runs a program natively.
COMPLAINT = "flexsc"


@dataclass(frozen=True)
class Program:
    """A running program. pid: the serving process. settings: how bench --raw rounds
    loads it.
    """

    name: str
    pid: int
    port: int
    stderr: IO[str]
    settings: Settings = field(default_factory=dict)

    def last_words(self) -> str:
        """The last line of its standard error."""
        self.stderr.seek(0)
        lines = self.stderr.read().strip().splitlines()
        return lines[-1] if lines else ""

    def check(self) -> None:
        """Raise BenchError if it doesn't run under flexsc run as requested."""
        if self.last_words().startswith(COMPLAINT):
            raise self.error(
                "flexsc run refused to start it, so it would run without it"
            )

    def error(self, reason: object) -> BenchError:
        """The reason for a failure, with the program's last words."""
        words = self.last_words()
        return BenchError(f"{self.name}: {reason}" + (f" ({words})" if words else ""))


def carriers(plan: Plan) -> list[str]:
    """Options of flexsc run: a carrier for each of the server's cores."""
    return ["--carriers", str(len(plan.cores.server))]


def executing(plan: Plan) -> list[int]:
    """The second half of the server's cores, which executes calls, while the first half
    has the threads.
    """
    cores = plan.cores.server
    return cores[(len(cores) + 1) // 2 :]


def elsewhere(plan: Plan) -> list[str]:
    """Options of flexsc run: calls execute on their own cores."""
    return ["--kernel-cores", ",".join(map(str, executing(plan)))]


def way(plan: Plan, variant: str, *options: str) -> list[str]:
    """The words in front of a program's own command. options: options of flexsc run."""
    flexsc = {FLEXSC: plan.flexsc, NATIVE: plan.baseline}.get(variant)
    return [flexsc, "run", *options, "--"] if flexsc else []

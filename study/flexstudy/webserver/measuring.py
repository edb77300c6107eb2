# SPDX-License-Identifier: MIT
"""What "flexsc study webserver" is asked for, and who measures it.

page, new         closed.py
pages, specweb    offered.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flexbench import table
from flexbench.runner import Plan
from flexbench.samples import BenchError, Run

from . import closed, offered, subjects
from .sessions import SESSIONS
from .subjects import BENCH

# The workloads that are measured unless words name others; SEVERAL: with --cores.
DEFAULT = ["page", "specweb"]
SEVERAL = ["specweb"]
Measure = Callable[[Run, Plan, str, Sequence[str]], None]

PARTS: dict[str, Measure] = {
    **dict.fromkeys(closed.WORKLOADS, closed.measure),
    **dict.fromkeys(SESSIONS, offered.measure),
}


def parse(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The workloads and the models that the words name; the default ones and all, if
    they name none. The model "events" is always one: others are compared with it.
    """
    loads = [word for word in words if word in PARTS]
    names = [word for word in words if word in subjects.NAMES]
    for word in words:
        if word not in loads and word not in names:
            known = ", ".join([*PARTS, *subjects.NAMES])
            raise BenchError(f"study: {word}: give {known}")
    if names and subjects.EVENTS not in names:
        names.append(subjects.EVENTS)
    return loads or DEFAULT, names or subjects.NAMES


def parse_several(words: Sequence[str]) -> list[str]:
    """The workloads for --cores: those that the words name, or SEVERAL. BenchError: one of
    them is of one core alone.
    """
    loads = [word for word in words if word in PARTS]
    for load in loads:
        if load not in SESSIONS:
            known = ", ".join(SESSIONS)
            raise BenchError(f"--cores doesn't apply to study {load}, only to {known}")
    return loads or SEVERAL


def measure(run: Run, plan: Plan) -> None:
    """A workload that can't be measured is noted and left out."""
    loads, names = parse(plan.words)
    if plan.numbers:
        loads = parse_several(plan.words)
    for workload in loads:
        try:
            PARTS[workload](run, plan, workload, names)
        except BenchError as error:
            run.note(f"{BENCH}: skipping {workload}{table.on(plan.cores)}: {error}")

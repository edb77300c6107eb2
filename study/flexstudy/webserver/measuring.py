# SPDX-License-Identifier: MIT
"""The command line of "flexsc study webserver", and the modules that measure each
workload.

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

# The default workloads. SEVERAL: those with --cores.
DEFAULT = ["page", "specweb"]
SEVERAL = ["specweb"]
Measure = Callable[[Run, Plan, str, Sequence[str]], None]

PARTS: dict[str, Measure] = {
    **dict.fromkeys(closed.WORKLOADS, closed.measure),
    **dict.fromkeys(SESSIONS, offered.measure),
}


def parse(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The workloads and the models that the words name. Without words: the default
    workloads and all models. The model "events" is always included, because others are
    compared with it.
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
    """The workloads for --cores: those that the words name, or SEVERAL. BenchError: one
    of them supports only one core.
    """
    loads = [word for word in words if word in PARTS]
    for load in loads:
        if load not in SESSIONS:
            known = ", ".join(SESSIONS)
            raise BenchError(f"--cores doesn't apply to study {load}, only to {known}")
    return loads or SEVERAL


def measure(run: Run, plan: Plan) -> None:
    """Measure all workloads; one that fails is noted and skipped."""
    loads, names = parse(plan.words)
    if plan.numbers:
        loads = parse_several(plan.words)
    for workload in loads:
        try:
            PARTS[workload](run, plan, workload, names)
        except BenchError as error:
            run.note(f"{BENCH}: skipping {workload}{table.on(plan.cores)}: {error}")

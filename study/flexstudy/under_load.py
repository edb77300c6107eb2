# SPDX-License-Identifier: MIT
"""Observes programs while clients load them: their results, and the use of their core."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress

from flexbench import quiet, sweep
from flexbench.idle import fields
from flexbench.runner import Plan, measure_all, progress
from flexbench.running import FLEXSC, Program
from flexbench.samples import BenchError, Json, Run, Settings

from .threaded import Kind

STAT_S = 10
WARM_UP_S = 2


def switches(pid: int) -> dict[str, int]:
    """How often each of the process' threads has left its core, voluntarily or not."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with suppress(OSError):  # the thread has just ended
            status = fields(f"/proc/{pid}/task/{tid}/status")
            found[tid] = sum(n for name, n in status.items() if "ctxt_switches" in name)
    return found


def round_of(plan: Plan, kind: Kind, program: Program, mode: str, seconds: int) -> Json:
    try:
        switched = switches(program.pid)
        shares = quiet.Shares(plan.cores.server)
        before, begin = quiet.clock_s(program.pid), time.monotonic()
        found = kind.load(plan, program, mode, kind.connections(plan), seconds)
        busy = quiet.clock_s(program.pid) - before
        passed = (time.monotonic() - begin) * len(plan.cores.server)
        # Switches of threads that ended during the load aren't counted.
        left = sum(n - switched.get(tid, 0) for tid, n in switches(program.pid).items())
    except (BenchError, OSError) as error:
        raise program.error(error) from error
    return {
        "samples": {
            sweep.SERIES: [found.requests_per_s],
            "mean_us": [found.mean_us],
            "p50_us": [found.p50_us],
            "p99_us": [found.p99_us],
            **shares.samples(),
            "busy_percent": [100 * busy / passed],
            "cpu_us": [1e6 * busy / found.requests],
            "switches": [left / found.requests],
        },
        "counts": {"requests": found.requests},
    }


def check_threads(plan: Plan, program: Program) -> None:
    """Raise BenchError if the program has no user threads: it may run natively without
    a message in any log.
    """
    done = subprocess.run(
        [plan.flexsc, "stat", str(program.pid)],
        capture_output=True,
        text=True,
        timeout=STAT_S,
        check=False,
    )
    if done.returncode:
        raise program.error(f"no user threads under flexsc run: {done.stderr.strip()}")


def compare(
    run: Run,
    plan: Plan,
    bench: str,
    kind: Kind,
    mode: str,
    settings: Sequence[Settings],
    of: dict[str, Program],
) -> None:
    """Measure all variants alternately. settings: the settings of each variant."""
    progress(f"{bench}: warming up {kind.title} {mode}")
    for variant in kind.variants:
        program = of[variant.name]
        round_of(plan, kind, program, mode, min(WARM_UP_S, plan.seconds))
        if variant.way == FLEXSC:
            check_threads(plan, program)

    def once(one: Settings) -> Json:
        variant = kind.variants[settings.index(one)]
        return round_of(plan, kind, of[variant.name], mode, plan.seconds)

    measure_all(run, plan, bench, settings, once)

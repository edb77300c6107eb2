# SPDX-License-Identifier: MIT
"""A program that serves, while clients load it: what it did, and what its core was
busy with.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

from flexbench import quiet, sweep
from flexbench.idle import fields
from flexbench.runner import Plan
from flexbench.running import Program
from flexbench.samples import BenchError, Json
from flexbench.tools import Load

STAT_S = 10


def switches(pid: int) -> dict[str, int]:
    """How often each of the process' threads left its core, voluntarily or not."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with suppress(OSError):  # the thread has just ended
            status = fields(f"/proc/{pid}/task/{tid}/status")
            found[tid] = sum(n for name, n in status.items() if "ctxt_switches" in name)
    return found


def loaded(plan: Plan, program: Program, load: Callable[[], Load]) -> Json:
    """A round. load: loads the program."""
    try:
        switched = switches(program.pid)
        shares = quiet.Shares(plan.cores.measured)
        before, begin = quiet.clock_s(program.pid), time.monotonic()
        found = load()
        busy = quiet.clock_s(program.pid) - before
        passed = time.monotonic() - begin
        after = switches(program.pid)
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
            # Without the switches of threads that ended during the load.
            "switches": [
                sum(n - switched.get(tid, 0) for tid, n in after.items())
                / found.requests
            ],
        },
        "counts": {"requests": found.requests},
    }


def check_threads(plan: Plan, program: Program) -> None:
    """Raise BenchError if the program has no user threads: it may run natively, and no
    log say so.
    """
    done = subprocess.run(
        [plan.flexsc, "stat", str(program.pid)],
        capture_output=True,
        text=True,
        timeout=STAT_S,
        check=False,
    )
    if done.returncode:
        raise program.error(f"runs natively: {done.stderr.strip()}")

# SPDX-License-Identifier: MIT
"""A program that serves, while clients load it: what it did, and what its core was
busy with.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

from flexbench import quiet, sweep
from flexbench.runner import Plan
from flexbench.running import Program
from flexbench.samples import BenchError, Json
from flexbench.tools import Load

STAT_S = 10


def loaded(plan: Plan, program: Program, load: Callable[[], Load]) -> Json:
    """A round. load: loads the program."""
    try:
        shares = quiet.Shares(plan.cores.measured)
        before, begin = quiet.clock_s(program.pid), time.monotonic()
        found = load()
        busy = quiet.clock_s(program.pid) - before
    except (BenchError, OSError) as error:
        raise program.error(error) from error
    return {
        "samples": {
            sweep.SERIES: [found.requests_per_s],
            "mean_us": [found.mean_us],
            "p50_us": [found.p50_us],
            "p99_us": [found.p99_us],
            **shares.samples(),
            "busy_percent": [100 * busy / (time.monotonic() - begin)],
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

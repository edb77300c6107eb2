# SPDX-License-Identifier: MIT
"""Did others use the core that something was measured on?

A thread that is pinned there and wants to run waits while they do; the kernel
counts that time. The hypervisor's others show as stolen time.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

# Of the time that a round took: above, it is void.
LIMIT_PERCENT = 5.0


def stolen_s(core: int) -> float:
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        words = line.split()
        if words[0] == f"cpu{core}":
            return int(words[8]) / os.sysconf("SC_CLK_TCK")
    return 0.0


def delayed_s(pid: int) -> float:
    """How long the process' first thread has waited for a core."""
    try:
        words = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()
    except OSError:
        return 0.0
    return int(words[1]) / 1e9


class Watch:
    """From its making on, one process on one core."""

    def __init__(self, pid: int, core: int) -> None:
        self.pid, self.core = pid, core
        self.begin = time.monotonic()
        self.before = self.lost_s()

    def lost_s(self) -> float:
        return delayed_s(self.pid) + stolen_s(self.core)

    def percent(self) -> float:
        passed = time.monotonic() - self.begin
        return 100 * (self.lost_s() - self.before) / passed


def prefer_us() -> None:
    """Where sessions get equal shares of a core, whatever their processes'
    nice values are, have this one get the most. It takes root.
    """
    try:
        Path("/proc/self/autogroup").write_text("-20", encoding="ascii")
    except OSError:
        pass

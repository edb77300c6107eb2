# SPDX-License-Identifier: MIT
"""Did others use the core that something was measured on?

Two ways to tell. A thread that has its core alone, and wants to run, waits while
others do; the kernel counts that time (Watch). Where several processes of ours
share the core, they wait for each other. So there the core's time is counted, and
ours taken off (Others). What the kernel does for packets while nobody runs, and in
threads of its own, is neither: so others have at most what their own clocks say.

In both the hypervisor's others show as stolen time.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

# Of the time that a round took: above, it is void.
LIMIT_PERCENT = 5.0

PROC = Path("/proc")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# What two of them may be in error: a shorter time is none.
COARSE_S = 2.5 * TICK_S
KERNEL_THREAD = 0x00200000  # of a task's flags
AUTOGROUP = Path("/proc/self/autogroup")


def core_s(core: int, *columns: int) -> float:
    """Of /proc/stat: 3 and 4 are idle, 7 is stolen."""
    for line in (PROC / "stat").read_text(encoding="ascii").splitlines():
        words = line.split()
        if words[0] == f"cpu{core}":
            return sum(int(words[1 + column]) for column in columns) * TICK_S
    return 0.0


def stolen_s(core: int) -> float:
    return core_s(core, 7)


def delayed_s(pid: int) -> float:
    """How long the process' first thread has waited for a core."""
    try:
        words = (PROC / f"{pid}/schedstat").read_text(encoding="ascii").split()
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


@dataclass(frozen=True)
class Task:
    """A process, as its line in /proc says."""

    pid: int
    parent: int
    flags: int
    used_s: float  # by those that it waited for, too

    @staticmethod
    def read(pid: int) -> Task:
        text = (PROC / f"{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # The name before the last parenthesis may have blanks.
        words = text.rpartition(")")[2].split()
        used = sum(int(word) for word in words[11:15]) * TICK_S
        return Task(pid, int(words[1]), int(words[6]), used)


def tasks() -> dict[int, Task]:
    found = {}
    for name in os.listdir(PROC):
        if name.isdigit():
            with suppress(OSError):  # it ended just now
                found[int(name)] = Task.read(int(name))
    return found


def descendants(all_tasks: dict[int, Task]) -> set[int]:
    """This process, and what comes from it."""
    ours = {os.getpid()}
    while more := {
        t.pid for t in all_tasks.values() if t.parent in ours and t.pid not in ours
    }:
        ours |= more
    return ours


def clock_s(pid: int) -> float:
    """The clock of a process' time, whose name clock_getcpuclockid(3) makes so."""
    return time.clock_gettime((~pid << 3) | 2)


def ended_s() -> float:
    """What processes have used that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Elsewhere:
    """What those of them have used that had other cores."""

    used_s = 0.0


@contextmanager
def elsewhere() -> Iterator[None]:
    before = ended_s()
    try:
        yield
    finally:
        Elsewhere.used_s += ended_s() - before


class Others:
    """From its making on, one core, and what has it that isn't ours."""

    def __init__(self, core: int) -> None:
        self.core = core
        self.before, self.theirs_before = self.ours_s()
        self.begin = time.monotonic()
        self.idle, self.stolen = core_s(core, 3, 4), stolen_s(core)
        self.ended = ended_s() - Elsewhere.used_s

    def ours_s(self) -> tuple[dict[int, float], dict[int, float]]:
        """Of each process of ours that may run there, and of each one of others."""
        found = tasks()
        ours = descendants(found)
        clocks = {}
        for pid in ours:
            with suppress(OSError):
                if self.core in os.sched_getaffinity(pid):
                    clocks[pid] = clock_s(pid)
        theirs = {
            t.pid: t.used_s
            for t in found.values()
            if t.pid not in ours and not t.flags & KERNEL_THREAD
        }
        return clocks, theirs

    def percent(self) -> float:
        passed = time.monotonic() - self.begin
        busy = passed - (core_s(self.core, 3, 4) - self.idle)
        stolen = stolen_s(self.core) - self.stolen
        ours = ended_s() - Elsewhere.used_s - self.ended
        now, theirs_now = self.ours_s()
        ours += sum(used - self.before.get(pid, 0) for pid, used in now.items())
        theirs = sum(
            max(0.0, used - self.theirs_before.get(pid, 0))
            for pid, used in theirs_now.items()
        )
        others = max(0.0, min(busy - ours - stolen, theirs)) + stolen
        return 100 * others / passed if others > COARSE_S else 0.0


@contextmanager
def preferred() -> Iterator[None]:
    """Where sessions get equal shares of a core, whatever their processes'
    nice values are, this one gets the most meanwhile. It takes root.
    """
    before = ""
    with suppress(OSError):
        before = AUTOGROUP.read_text(encoding="ascii").rpartition(" nice ")[2]
        AUTOGROUP.write_text("-20", encoding="ascii")
    try:
        yield
    finally:
        with suppress(OSError):
            AUTOGROUP.write_text(before, encoding="ascii")

# SPDX-License-Identifier: MIT
"""Did other processes use the measured core?

The processor time of the bench's processes is subtracted from the core's busy time. The
rest includes the kernel's work for packets and in its own threads. So the share of
other processes is limited to the processor time that they report, plus the time that a
hypervisor has stolen.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

# A round in which other processes had a larger share of the core is void.
LIMIT_PERCENT = 5.0

PROC = Path("/proc")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# The error of the difference between two readings of a core's time, which is counted in
# ticks. Other processes' time below the error for all cores isn't counted.
COARSE_S = 2.5 * TICK_S
KERNEL_THREAD = 0x00200000  # bit of a task's flags
AUTOGROUP = Path("/proc/self/autogroup")
# The columns of /proc/stat whose sum is a core's time.
COLUMNS = 8
SHARES = {
    "user_percent": (0, 1),
    "system_percent": (2, 5, 6),
    "idle_percent": (3, 4),
}


def cores_ticks(cores: Sequence[int]) -> list[list[int]]:
    """Each core's time, by column of /proc/stat."""
    lines = (PROC / "stat").read_text(encoding="ascii").splitlines()
    rows = {words[0]: words[1:] for words in map(str.split, lines)}
    found = [rows.get(f"cpu{core}", ["0"] * COLUMNS) for core in cores]
    return [[int(word) for word in row] for row in found]


def sum_ticks(cores: Sequence[int]) -> list[int]:
    """The time of several cores together, by column."""
    return [sum(column) for column in zip(*cores_ticks(cores), strict=True)]


def cores_s(cores: Sequence[int], *columns: int) -> list[float]:
    """Each core's time in some columns: 3 and 4 are idle time, 7 is stolen time."""
    return [sum(row[n] for n in columns) * TICK_S for row in cores_ticks(cores)]


class Shares:
    """Shares of the time of some cores, since this object was made. The hypervisor has
    stolen the part that is missing to 100 %.
    """

    def __init__(self, cores: Sequence[int]) -> None:
        self.cores, self.before = list(cores), sum_ticks(cores)

    def samples(self) -> dict[str, list[float]]:
        now = sum_ticks(self.cores)[:COLUMNS]
        passed = [b - a for a, b in zip(self.before, now, strict=False)]
        whole = max(1, sum(passed))
        found = {
            name: [100 * sum(passed[column] for column in columns) / whole]
            for name, columns in SHARES.items()
        }
        return {**found, "busy_percent": [100 - found["idle_percent"][0]]}


@dataclass(frozen=True)
class Task:
    """A process, parsed from /proc/PID/stat."""

    pid: int
    parent: int
    flags: int
    used_s: float  # includes children that it has waited for

    @staticmethod
    def read(pid: int) -> Task:
        text = (PROC / f"{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # The name may contain blanks; it ends with the last parenthesis.
        words = text.rpartition(")")[2].split()
        used = sum(int(word) for word in words[11:15]) * TICK_S
        return Task(pid, int(words[1]), int(words[6]), used)


def tasks() -> dict[int, Task]:
    found = {}
    for name in os.listdir(PROC):
        if name.isdigit():
            with suppress(OSError):  # the process has just ended
                found[int(name)] = Task.read(int(name))
    return found


def descendants(all_tasks: dict[int, Task]) -> set[int]:
    """This process and all of its descendants."""
    ours = {os.getpid()}
    while more := {
        t.pid for t in all_tasks.values() if t.parent in ours and t.pid not in ours
    }:
        ours |= more
    return ours


def clock_s(pid: int) -> float:
    """Processor time of a process, by the clock of clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


def ended_s() -> float:
    """Processor time of all descendants that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Elsewhere:
    """Processor time of children that ran on other cores and have ended."""

    used_s = 0.0


@contextmanager
def elsewhere() -> Iterator[None]:
    before = ended_s()
    try:
        yield
    finally:
        Elsewhere.used_s += ended_s() - before


class Others:
    """How long processes that don't belong to the bench used some cores, since this
    object was made.
    """

    def __init__(self, cores: Sequence[int]) -> None:
        self.cores = list(cores)
        self.before, self.theirs_before = self.ours_s()
        self.begin = time.monotonic()
        self.idle, self.stolen = self.spent_s(3, 4), self.spent_s(7)
        self.ended = ended_s() - Elsewhere.used_s

    def spent_s(self, *columns: int) -> float:
        return sum(cores_s(self.cores, *columns))

    def ours_s(self) -> tuple[dict[int, float], dict[int, float]]:
        """Processor time of each process of the bench that may run on one of the cores,
        and of each other process, without kernel threads.
        """
        found = tasks()
        ours = descendants(found)
        clocks = {}
        for pid in ours:
            with suppress(OSError):
                if os.sched_getaffinity(pid) & set(self.cores):
                    clocks[pid] = clock_s(pid)
        theirs = {
            t.pid: t.used_s
            for t in found.values()
            if t.pid not in ours and not t.flags & KERNEL_THREAD
        }
        return clocks, theirs

    def percent(self) -> float:
        passed = (time.monotonic() - self.begin) * len(self.cores)
        busy = passed - (self.spent_s(3, 4) - self.idle)
        stolen = self.spent_s(7) - self.stolen
        ours = ended_s() - Elsewhere.used_s - self.ended
        now, theirs_now = self.ours_s()
        ours += sum(used - self.before.get(pid, 0) for pid, used in now.items())
        theirs = sum(
            max(0.0, used - self.theirs_before.get(pid, 0))
            for pid, used in theirs_now.items()
        )
        others = max(0.0, min(busy - ours - stolen, theirs)) + stolen
        coarse = COARSE_S * len(self.cores)
        return 100 * others / passed if others > coarse else 0.0


@contextmanager
def preferred() -> Iterator[None]:
    """With autogroup scheduling the kernel shares cores among sessions, and ignores
    nice values between sessions. This gives the bench's session the largest share in
    the with-block. It needs root.
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

# SPDX-License-Identifier: MIT
"""What a program and its children use, and whether that grows."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from fixtures import command
from programs import family

# What may be more at the end than after the first round.
MORE_DESCRIPTORS = 24
MORE_THREADS = 24
MORE_MEMORY = 1.3
MORE_MEMORY_KIB = 32 << 10


@dataclasses.dataclass(frozen=True)
class Use:
    processes: int
    descriptors: int
    threads: int
    kib: int

    def __str__(self) -> str:
        return (
            f"{self.processes} processes, {self.descriptors} descriptors, "
            f"{self.threads} threads, {self.kib >> 10} MiB"
        )


def resident(pid: int) -> int:
    """Without what it shares with others."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    return 0


def use(pid: int) -> Use:
    processes = descriptors = threads = kib = 0
    for member in family(pid):
        with contextlib.suppress(OSError):
            descriptors += len(os.listdir(f"/proc/{member}/fd"))
            threads += len(os.listdir(f"/proc/{member}/task"))
            kib += resident(member)
            processes += 1
    return Use(processes, descriptors, threads, kib)


def calm(pid: int, seconds: float = 3.0) -> Use:
    """The least of each that is seen while nobody asks for anything."""
    end = time.monotonic() + seconds
    least = use(pid)
    while time.monotonic() < end:
        time.sleep(0.1)
        now = use(pid)
        least = Use(
            *(min(pair) for pair in zip(dataclasses.astuple(least), vars(now).values()))
        )
    return least


def growth(first: Use, last: Use) -> list[str]:
    """What has grown by more than it may."""
    found = []
    if last.descriptors > first.descriptors + MORE_DESCRIPTORS:
        found.append(f"descriptors: {first.descriptors}, later {last.descriptors}")
    if last.threads > first.threads + MORE_THREADS:
        found.append(f"threads: {first.threads}, later {last.threads}")
    if last.kib > first.kib * MORE_MEMORY + MORE_MEMORY_KIB:
        found.append(f"memory: {first.kib} KiB, later {last.kib} KiB")
    return found


def waited(task: Path) -> int:
    """How long it could have run, and something else did; a loaded machine's."""
    with contextlib.suppress(OSError):
        return int((task / "schedstat").read_text().split()[1]) // 1_000_000
    return 0


def tasks(pid: int) -> Iterator[str]:
    """Where the kernel has each thread."""
    for task in sorted(Path(f"/proc/{pid}/task").iterdir()):
        with contextlib.suppress(OSError):
            names = ("comm", "wchan", "syscall")
            words = [(task / name).read_text().strip() for name in names]
            # Its state, and its time in user mode and in the kernel.
            stat = (task / "stat").read_text().rpartition(") ")[2].split()
            words.append(" ".join((stat[0], stat[11], stat[12])))
            words.append(f"waited {waited(task)} ms for a core")
            yield f"{task.name} {' | '.join(words)}"


def rings_of(pid: int) -> Iterator[str]:
    """What the kernel says of each ring: heads, tails, what is pending."""
    for fd in sorted(Path(f"/proc/{pid}/fd").iterdir()):
        with contextlib.suppress(OSError):
            if "[io_uring]" in os.readlink(fd):
                yield f"ring {fd.name}:"
                yield Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text()


def said_by(*argv: str) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=60, check=False
        ).stdout
    return ""


def picture(pid: int, folder: Path) -> None:
    """Where everything is, for whoever looks for the cause; gdb wakes some."""
    for member in family(pid):
        lines: list[str] = []
        for part in (tasks, rings_of):
            with contextlib.suppress(OSError):
                lines += part(member)
        lines.append(said_by(command(), "stat", str(member)))
        # What changes of itself isn't stuck.
        lines.append("a second later:")
        time.sleep(1)
        with contextlib.suppress(OSError):
            lines += tasks(member)
        gdb = ("gdb", "-p", str(member), "-batch", "-nx")
        lines.append(said_by(*gdb, "-ex", "thread apply all bt 24"))
        (folder / f"picture-{member}").write_text("\n".join(lines))

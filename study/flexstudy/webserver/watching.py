# SPDX-License-Identifier: MIT
"""Observes a server and its machine under load: how busy cores are, what the network
drops, and what the server reads from the disk.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from flexbench import quiet, servers
from flexbench.samples import BenchError

EVERY_S = 0.1

PROC = Path("/proc")

# A server is at rest if it uses at most REST_S of processor time within LOOK_S.
LOOK_S, REST_S, PATIENCE_S = 0.05, 0.002, 5.0

Counts = dict[str, int]


@dataclass(frozen=True)
class Look:
    """A reading of the cores: its time, and each core's total idle seconds."""

    at: float
    idle: list[float]


class Stretches:
    """How busy cores are in the with-block, read by a separate thread. Little happens
    at the beginning and the end of a run, so the busiest stretch of a given length
    counts.
    """

    def __init__(self, cores: Sequence[int]) -> None:
        self.cores = list(cores)
        self.looks: list[Look] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def look(self) -> None:
        idle = quiet.cores_s(self.cores, 3, 4)
        self.looks.append(Look(time.monotonic(), idle))

    def watch(self) -> None:
        while not self.over.wait(EVERY_S):
            self.look()

    def __enter__(self) -> Stretches:
        self.look()
        self.thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        self.thread.join()
        self.look()

    def seconds(self) -> float:
        return self.looks[-1].at - self.looks[0].at

    def percent(self, cores: Sequence[int], seconds: float) -> float:
        """How busy some of the cores were, on average, in their busiest stretch of so
        many seconds; or in the whole time, if that is shorter.
        """
        places = [self.cores.index(core) for core in cores]
        seconds = min(seconds, self.seconds())
        found = 0.0
        for n, begin in enumerate(self.looks):
            end = next((x for x in self.looks[n:] if x.at - begin.at >= seconds), None)
            if end and end.at > begin.at:
                idle = sum(end.idle[at] - begin.idle[at] for at in places)
                found = max(found, 1 - idle / len(places) / (end.at - begin.at))
        return 100 * min(1.0, found)


# Counters.

OWN = {"major_faults", "disk_read_bytes"}  # counters that each process has


def snmp(text: str) -> Counts:
    """The counters of /proc/net/snmp: pairs of lines, names and then values."""
    found = {}
    lines = [line.split() for line in text.splitlines()]
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        pairs = zip(names[1:], values[1:], strict=False)
        found.update({names[0] + name: int(value) for name, value in pairs})
    return found


def dropped(text: str) -> int:
    """Packets that interfaces have dropped, from /proc/net/dev: the 4th column for
    received packets, and the 4th for sent packets.
    """
    rows = [line.partition(":")[2].split() for line in text.splitlines()]
    return sum(int(row[3]) + int(row[11]) for row in rows if len(row) >= 16)


def faults(stat: str) -> int:
    """Major faults of a process, from its stat file, in which names may contain blanks."""
    return int(stat.rpartition(")")[2].split()[9])


def read_bytes(text: str) -> int:
    """Bytes that a process caused to be read from disks, from its io file."""
    for line in text.splitlines():
        name, _, value = line.partition(": ")
        if name == "read_bytes":
            return int(value)
    return 0


def counters(pid: int) -> Counts:
    """Counters of a server and its network. A counter that can't be read is omitted.
    BenchError: the server has ended.
    """
    try:
        every = [read_counters(PROC / str(one)) for one in servers.family(pid)]
    except (FileNotFoundError, ProcessLookupError):
        raise BenchError("the server ended during the measurement") from None
    # The network's counters are the same for all copies.
    summed = {
        name: sum(one.get(name, 0) for one in every) for name in OWN & set(every[0])
    }
    return {**every[0], **summed}


def read_counters(here: Path) -> Counts:
    found = {}
    text = (here / "net/snmp").read_text(encoding="ascii")
    found["retransmits"] = snmp(text).get("Tcp:RetransSegs", 0)
    text = (here / "net/dev").read_text(encoding="ascii")
    found["dropped_packets"] = dropped(text)
    text = (here / "stat").read_text(encoding="utf-8", errors="replace")
    found["major_faults"] = faults(text)
    with suppress(PermissionError):
        text = (here / "io").read_text(encoding="ascii")
        found["disk_read_bytes"] = read_bytes(text)
    return found


def grown(before: Counts, now: Counts) -> Counts:
    return {name: now[name] - before[name] for name in now if name in before}


def copies_s(pid: int) -> float:
    """Processor time of a server's copies, which are child processes."""
    try:
        return sum(quiet.clock_s(child) for child in servers.children(pid))
    except OSError:
        raise BenchError("a copy of the server ended during the measurement") from None


def used_s(pid: int) -> float:
    return quiet.clock_s(pid) + copies_s(pid)


def settle(pid: int) -> None:
    """Wait until a server has finished the work that its clients left."""
    until = time.monotonic() + PATIENCE_S
    used = used_s(pid)
    while time.monotonic() < until:
        time.sleep(LOOK_S)
        now = used_s(pid)
        if now - used <= REST_S:
            break
        used = now


def available_bytes() -> int:
    """Memory that new files may use without displacing others."""
    pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError):
        for line in (PROC / "meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return pages

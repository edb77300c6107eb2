# SPDX-License-Identifier: MIT
"""A cgroup that limits how much of files its processes have in memory, and how many
reads a second their disk makes. Both versions of cgroups will do; it takes root.

The kernel's limit is one of all memory. So a thread keeps it at what the files may have
and what the processes have beside the files. If the processes grow at once, files make
room, or the processes wait: none is killed. With version 1 a process waits for memory in
user mode alone: in a system call, a receive may fail with EFAULT instead, and
epoll_ctl() with ENOMEM.

With version 1 the group is below this process' own ones, a folder for each controller.
With version 2 it is below the root, as a group with processes has no groups below it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from flexbench.samples import BenchError

PROC = Path("/proc/self")
DEVICES = Path("/sys/dev/block")
PATIENCE_S, REST_S, LOOK_S, EVERY_S = 5.0, 60.0, 0.05, 0.02


@dataclass(frozen=True)
class Names:
    """A version's names for files of the group, for the limit of reads, and in
    memory.stat for files' memory.
    """

    usage: str
    limit: str
    files: str
    reads: str
    rule: str  # with {device} and {count}
    counted: str


ONE = Names(
    "memory.usage_in_bytes",
    "memory.limit_in_bytes",
    "cache",
    "blkio.throttle.read_iops_device",
    "{device} {count}",
    "blkio.throttle.io_serviced",
)
TWO = Names(
    *("memory.current", "memory.high", "file"),
    *("io.max", "{device} riops={count}", "io.stat"),
)
# Version 1: processes wait when there is no memory left.
OOM = "memory.oom_control"


@dataclass(frozen=True)
class Group:
    """memory, io: folders, which with version 2 are one."""

    names: Names
    memory: Path
    io: Path

    def folders(self) -> list[Path]:
        return list(dict.fromkeys([self.memory, self.io]))

    def add(self, pid: int) -> None:
        for folder in self.folders():
            write(folder / "cgroup.procs", str(pid))

    def files(self) -> int:
        """Bytes that files have in memory."""
        text = (self.memory / "memory.stat").read_text(encoding="ascii")
        found = dict(line.split() for line in text.splitlines())
        return int(found[self.names.files])

    def limit_files(self, size: int) -> None:
        """Let files have so many bytes. The kernel refuses a limit that it can't get
        to; kept() tries again soon.
        """
        usage = int((self.memory / self.names.usage).read_text(encoding="ascii"))
        own = max(0, usage - self.files())
        with suppress(OSError):
            (self.memory / self.names.limit).write_text(str(size + own), "ascii")

    def limit_reads(self, device: str, count: int) -> None:
        """Let the disk make so many reads a second."""
        text = self.names.rule.format(device=device, count=count)
        write(self.io / self.names.reads, text)

    def reads(self) -> int:
        """How many reads the group's processes have had disks make."""
        return reads_of((self.io / self.names.counted).read_text(encoding="ascii"))

    def settle(self) -> None:
        """Wait until the group's processes read no more: a server that still makes calls
        for clients that have left would take disk reads from the server that is measured
        next. BenchError: processes still read after REST_S.
        """
        until, before = time.monotonic() + REST_S, -1
        while (now := self.reads()) != before:
            if time.monotonic() > until:
                raise BenchError(
                    f"the servers still read from the disk after {REST_S:.0f} s"
                )
            before = now
            time.sleep(2 * LOOK_S)


@contextmanager
def kept(group: Group, size: int, cores: Sequence[int]) -> Iterator[None]:
    """In the with-block files have no more memory than size bytes. A thread on these
    cores sees to it.
    """
    over = threading.Event()

    def keep() -> None:
        os.sched_setaffinity(0, cores)
        while not over.wait(EVERY_S):
            group.limit_files(size)

    group.limit_files(size)
    if group.names is ONE:
        write(group.memory / OOM, "1")
    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        if group.names is ONE:
            write(group.memory / OOM, "0")


def write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="ascii")
    except OSError as error:
        raise BenchError(f"cgroups: {path}: {error.strerror}") from error


def reads_of(text: str) -> int:
    """Version 1 has lines like "254:0 Read 17", version 2 like "254:0 rbytes=1 rios=17"."""
    found = 0
    for words in map(str.split, text.splitlines()):
        if words[1:2] == ["Read"]:
            found += int(words[2])
        found += sum(int(w[5:]) for w in words if w.startswith("rios="))
    return found


# Where a group can be.


def mounted() -> dict[str, Path]:
    """The folder of each controller of version 1, and of version 2, as ""."""
    found = {}
    for line in (PROC / "mounts").read_text(encoding="utf-8").splitlines():
        _, folder, kind, options, *_ = line.split()
        if kind == "cgroup2":
            found[""] = Path(folder)
        if kind == "cgroup":
            found.update(dict.fromkeys(options.split(","), Path(folder)))
    return found


def own(controller: str) -> str:
    """This process' group of version 1, below the controller's folder."""
    for line in (PROC / "cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.lstrip("/")
    return ""


def group(name: str) -> Group:
    """A group that isn't made yet. BenchError: there can be none."""
    folders = mounted()
    if "memory" in folders and "blkio" in folders:
        memory, io = (folders[one] / own(one) / name for one in ("memory", "blkio"))
        return Group(ONE, memory, io)
    root = folders.get("")
    with suppress(OSError):
        if root and {"memory", "io"} <= set(
            (root / "cgroup.controllers").read_text(encoding="ascii").split()
        ):
            write(root / "cgroup.subtree_control", "+memory +io")
            return Group(TWO, root / name, root / name)
    raise BenchError("there are no cgroups that limit memory and reads of disks")


def make(folder: Path) -> None:
    try:
        folder.mkdir()
    except OSError as error:
        raise BenchError(f"cgroups: {folder}: {error.strerror}") from error


def remove(folder: Path) -> None:
    """Processes that have just ended may be in the group for a moment: try again."""
    until = time.monotonic() + PATIENCE_S
    while folder.exists():
        try:
            folder.rmdir()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(LOOK_S)


@contextmanager
def made() -> Iterator[Group]:
    """A group, until the with-block ends; its processes have to have ended by then."""
    if os.geteuid() != 0:
        raise BenchError("limits of memory and of the disk's reads take root")
    found = group(f"flexsc-{os.getpid()}")
    try:
        for folder in found.folders():
            make(folder)
        yield found
    finally:
        for folder in found.folders():
            remove(folder)


def device_of(path: Path) -> str:
    """The disk that a file is on, as limits name it."""
    number = path.stat().st_dev
    found = DEVICES / f"{os.major(number)}:{os.minor(number)}"
    if not found.exists():
        raise BenchError(f"{path} isn't on a disk: choose another folder by TMPDIR")
    disk = found.resolve()
    if (disk / "partition").exists():
        disk = disk.parent
    return (disk / "dev").read_text(encoding="ascii").strip()

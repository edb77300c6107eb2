# SPDX-License-Identifier: MIT
"""Models whose files aren't all in memory: offered.py's sweep for SPECweb99's files,
with servers in a cgroup. Files have as much memory there as the most popular ones take,
which nine of ten requests are for, and the number of reads from the disk is limited, so
that the machine's disk isn't what is measured.

All servers are in one cgroup and share what it has of the files, so each of them finds
as much in memory as the others do.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from flexbench import servers
from flexbench.runner import Plan
from flexbench.samples import BenchError, Json, Run, Settings
from flexbench.servers import Server

from . import cgroup, offered, sessions, workload
from .cgroup import Group
from .fileset import File

DISK = "disk"
SHARE = 0.9  # of the requests, for files that memory has room for
READS = 2000  # of the disk, a second
TIMEOUT_S = 300


def popular(folders: int) -> list[File]:
    """The files that SHARE of the requests are for, the most popular one last."""
    every = sorted(workload.Popularity(folders).all(), key=lambda one: one[0])
    left = 1 - SHARE
    for index, (share, _) in enumerate(every):
        left -= share
        if left < 0:
            return [file for _, file in every[index:]]
    return []


def forget(root: Path, files: Sequence[File]) -> None:
    """Have the kernel forget what it has of the files in memory."""
    for file in files:
        fd = os.open(root / file.name, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def remember(group: Group, root: Path, files: Sequence[File]) -> None:
    """Have a process of the group read the files."""
    script = 'echo $$ > "$0/cgroup.procs" && exec xargs -0 cat > /dev/null'
    names = "\0".join(str(root / file.name) for file in files)
    try:
        done = subprocess.run(
            ["sh", "-c", script, str(group.memory)],
            input=names.encode(),
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"reading the files: not done in {TIMEOUT_S} s") from None
    if done.returncode:
        raise BenchError(f"reading the files: {done.stderr.decode().strip()}")


@dataclass
class Disk(offered.Sweep):
    """The sweep of servers in a cgroup. group: None until the group limits them."""

    group: Group | None = None
    memory: int = 0  # of files, bytes

    @contextmanager
    def limited(self, group: Group) -> Iterator[None]:
        """In the with-block the servers are in the group, whose limits hold."""
        folders, root = sessions.folders(self.plan), self.site.root
        self.group = group
        self.memory = workload.working_set(workload.Popularity(folders), SHARE)
        for server, _ in self.found.values():
            for pid in servers.family(server.pid):
                group.add(pid)
        forget(root, self.site.files)
        with cgroup.kept(group, self.memory, self.plan.cores.load):
            remember(group, root, popular(folders))
            group.limit_reads(cgroup.device_of(root), READS)
            yield

    def settings(self, name: str, **more: str | int) -> Settings:
        limits: Settings = {"reads_per_s": READS, "memory_bytes": self.memory}
        return {**super().settings(name, **more), **limits}

    def load(
        self, server: Server, seconds: int, warm_s: int, **more: str | int
    ) -> Json:
        if not self.group:
            # Tunings are tried with the files in memory.
            return super().load(server, seconds, warm_s, **more)
        before = self.group.reads()
        found = super().load(server, seconds, warm_s, **more)
        found["counts"]["disk_reads"] = self.group.reads() - before
        self.group.settle()
        return found


def measure(run: Run, plan: Plan, name: str, names: Sequence[str]) -> None:
    with ExitStack() as stack:
        # The servers, which are in the group, end before it.
        group = stack.enter_context(cgroup.made())
        sweep = stack.enter_context(offered.started(run, plan, name, names, Disk))
        assert isinstance(sweep, Disk)
        with sweep.limited(group):
            sweep.sweep()

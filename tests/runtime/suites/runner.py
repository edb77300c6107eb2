# SPDX-License-Identifier: MIT
"""Run commands in parallel, each with a time limit, and leave none of their processes.

Each command leads a session of its own. The runner kills its process group when the
command ends or exceeds its limit. A process that left the group becomes a child of
this process, which is a subreaper. A variable in its environment names the command
that started it. The runner kills the process when that command has ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import resource
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

TAG = "PEERS_RUN"
TICK = 0.05  # seconds
LOUD = 64 << 20  # a command that prints more bytes is in a loop
TAIL = 4000  # bytes of output that are kept

PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
CAP_SYS_BOOT = 22
CAP_SYS_TIME = 25


class PeersError(Exception):
    """An error that ends the run. Its text is for the user."""


class SourceError(PeersError):
    """The suite can't be fetched."""


@dataclass(frozen=True)
class Command:
    """A command. Commands of one group never overlap."""

    name: str
    argv: Sequence[str]
    cwd: Path
    limit: float
    group: str = ""
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """The end of a command: status as in subprocess, None if the command was killed."""

    status: int | None
    output: str


def settle() -> None:
    """Give all commands the same start: with no signal ignored or blocked. They can't
    set the machine's clock, as some tests try to, and write no core files.
    """
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            # exec() resets a handler, but keeps SIG_IGN.
            signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise PeersError("can't become a subreaper")
    for capability in (CAP_SYS_TIME, CAP_SYS_BOOT):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) and os.geteuid() == 0:
            raise PeersError(f"can't give up capability {capability}")


def children() -> list[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return [int(word) for task in tasks for word in task.read_text().split()]


def tag_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        for word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if word.startswith(f"{TAG}=".encode()):
                return word.decode(errors="replace").partition("=")[2]
    return ""


def end_orphans(tag: str) -> None:
    """Kill and reap the processes that a command has left."""
    for pid in children():
        if tag_of(pid) == tag:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def ends(process: subprocess.Popen[bytes], output: IO[bytes], limit: float) -> bool:
    """Wait for the end, and don't reap the process. Otherwise its group's ID could be
    that of an innocent group when the runner kills it.
    """
    end = time.monotonic() + limit
    descriptor = os.pidfd_open(process.pid)
    try:
        while time.monotonic() < end and os.fstat(output.fileno()).st_size < LOUD:
            if select.select([descriptor], [], [], TICK)[0]:
                return True
        return False
    finally:
        os.close(descriptor)


class Runner:
    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.numbers = itertools.count()

    def one(self, command: Command) -> Outcome:
        tag = f"{os.getpid()}.{next(self.numbers)}"
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    list(command.argv),
                    cwd=command.cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={**os.environ, **command.env, TAG: tag},
                    start_new_session=True,
                )
            except OSError as error:
                raise PeersError(f"{command.argv[0]}: {error.strerror}") from error
            try:
                ended = ends(process, output, command.limit)
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                status = process.wait()
                end_orphans(tag)
            output.seek(max(0, output.seek(0, os.SEEK_END) - TAIL))
            text = output.read(TAIL).decode(errors="replace")
        return Outcome(status if ended else None, text)

    def all(self, commands: Sequence[Command]) -> dict[str, Outcome]:
        """Run the commands. Return their outcomes by name."""
        groups: dict[str, list[Command]] = {}
        for command in commands:
            groups.setdefault(command.group, []).append(command)
        longest_first = sorted(groups.values(), key=len, reverse=True)

        def run(group: list[Command]) -> dict[str, Outcome]:
            return {command.name: self.one(command) for command in group}

        with ThreadPoolExecutor(self.jobs) as pool:
            found = list(pool.map(run, longest_first))
        return {name: outcome for part in found for name, outcome in part.items()}

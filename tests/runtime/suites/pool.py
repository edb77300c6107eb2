# SPDX-License-Identifier: MIT
"""Runs commands side by side, each with a limit of time, and leaves nothing of
them behind.

One thread does it all. Each command leads a session, thus a process group, of
its own, which is killed by its id when the command ends or is out of time; the
command isn't reaped before, so the id can't have passed to anybody else. What
left the group (setsid) becomes our child once its parent is gone, for we are a
subreaper: its environment tells which command it came from, and it is killed
when that one has ended. Until then orphans are reaped as they die, as by init.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

TAG = "PEERS_RUN"
TICK = 0.1  # seconds: how long an orphan may stay unnoticed
KILLED = 20.0  # seconds, for what has been killed to be gone
LOUD = 64 << 20  # bytes of output: a command that writes more is in a loop
TAIL = 4000  # bytes of output that are kept

PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
CAP_SYS_BOOT = 22
CAP_SYS_TIME = 25


class PeersError(Exception):
    """What ends the run, for its user to read."""


class SourceError(PeersError):
    """The tests themselves can't be had."""


@dataclass(frozen=True)
class Command:
    """Commands of one group never overlap."""

    name: str
    argv: Sequence[str]
    cwd: Path
    limit: float
    group: str
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a command ended: status is as subprocess has it, None if killed."""

    status: int | None
    seconds: float
    output: str


@dataclass
class Running:
    command: Command
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    tag: str
    begin: float
    killed: float = 0.0  # when, if it had to be

    @property
    def end(self) -> float:
        return self.begin + self.command.limit

    def stop(self) -> None:
        """It is to be reaped as any other that ends."""
        self.killed = time.monotonic()
        os.killpg(self.process.pid, signal.SIGKILL)

    def tail(self) -> str:
        size = self.output.seek(0, os.SEEK_END)
        self.output.seek(max(0, size - TAIL))
        return self.output.read(TAIL).decode(errors="replace")


Done = Callable[[Command, Outcome], None]


def settle() -> None:
    """Have all commands start alike, however this process was started: with no
    signal ignored or blocked. None may set the machine's clock, which some
    tests would, or write core files.
    """
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            # Unlike SIG_IGN, a handler is reset by exec.
            signal.signal(number, lambda *_: None)
        elif number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise PeersError("can't become a subreaper")
    for capability in (CAP_SYS_TIME, CAP_SYS_BOOT):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) and os.geteuid() == 0:
            raise PeersError(f"can't give up capability {capability}")


def tag_of(pid: int) -> str | None:
    """None if that can't be known, as of a process that has just died."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    head = f"{TAG}=".encode()
    found = (word.removeprefix(head) for word in words if word.startswith(head))
    return next(found, b"").decode(errors="replace")


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Pool:
    """At most so many commands at a time, and until then."""

    def __init__(self, jobs: int, limit: float) -> None:
        self.jobs = jobs
        self.limit = limit
        self.end = time.monotonic() + limit
        self.count = 0
        self.running: dict[int, Running] = {}

    def run(self, commands: Sequence[Command], done: Done) -> None:
        """Run all of them; those that are first in the list start first."""
        waiting = list(commands)
        try:
            while waiting or self.running:
                self._start(waiting)
                self._wait()
                self._reap(done)
                self._sweep()
                self._limit()
        finally:
            self._clear()

    def one(self, command: Command) -> Outcome:
        found: list[Outcome] = []
        self.run([command], lambda _, outcome: found.append(outcome))
        return found[0]

    def _start(self, waiting: list[Command]) -> None:
        busy = {run.command.group for run in self.running.values()}
        for command in list(waiting):
            if len(self.running) >= self.jobs:
                return
            if command.group not in busy:
                busy.add(command.group)
                waiting.remove(command)
                self._spawn(command)

    def _spawn(self, command: Command) -> None:
        self.count += 1
        tag = f"{os.getpid()}.{self.count}"
        output = tempfile.TemporaryFile()
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
            output.close()
            raise PeersError(f"{command.argv[0]}: {error.strerror}") from error
        self.running[process.pid] = Running(
            command, process, output, tag, time.monotonic()
        )

    def _wait(self) -> None:
        """Until one ends, for a tick at most."""
        poll = select.poll()
        with contextlib.ExitStack() as stack:
            for pid in self.running:
                descriptor = os.pidfd_open(pid)
                stack.callback(os.close, descriptor)
                poll.register(descriptor, select.POLLIN)
            poll.poll(TICK * 1000)

    def _reap(self, done: Done) -> None:
        """Those which ended, and orphans."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        with contextlib.suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, flags):
                if ended.si_pid in self.running:
                    run = self.running[ended.si_pid]
                    done(run.command, self._finish(run))
                else:
                    os.waitpid(ended.si_pid, 0)

    def _finish(self, run: Running) -> Outcome:
        seconds = time.monotonic() - run.begin
        pid = run.process.pid
        os.killpg(pid, signal.SIGKILL)
        status = run.process.wait()
        del self.running[pid]
        output = run.tail()
        run.output.close()
        return Outcome(None if run.killed else status, round(seconds, 3), output)

    def _sweep(self) -> None:
        """Kill orphans whose command has ended."""
        active = {run.tag for run in self.running.values()}
        for pid in self._orphans():
            tag = tag_of(pid)
            if tag is not None and tag not in active:
                kill(pid)

    def _orphans(self) -> list[int]:
        me = os.getpid()
        words = Path(f"/proc/{me}/task/{me}/children").read_text().split()
        return [int(word) for word in words if int(word) not in self.running]

    def _limit(self) -> None:
        now = time.monotonic()
        if now > self.end:
            raise PeersError(f"not done in {self.limit:.0f} s")
        for run in self.running.values():
            if run.killed and now > run.killed + KILLED:
                raise PeersError(f"{run.command.name}: can't be killed")
            loud = os.fstat(run.output.fileno()).st_size > LOUD
            if not run.killed and (now > run.end or loud):
                run.stop()

    def _clear(self) -> None:
        """Leave nothing that was started here, in any case."""
        for run in self.running.values():
            run.stop()
        end = time.monotonic() + KILLED
        while (self.running or self._orphans()) and time.monotonic() < end:
            for pid in self._orphans():
                kill(pid)
            self._reap(lambda *_: None)
            time.sleep(TICK / 10)

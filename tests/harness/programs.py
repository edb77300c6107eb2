# SPDX-License-Identifier: MIT
"""Real programs, started natively or under flexsc run, and their clients.

A "way" says how to start a program. "native" is the oracle, which shows that the
test itself is right. "uring-4" is flexsc run with the engine uring and four
carriers. "unpatched-2" is uring with two carriers and without patching libc. Each
program has a process group of its own, which is ended by its ID.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import AnyStr, TypeVar

import pytest

from fixtures import PATIENCE, busy, command, eventually, flexsc

# Seconds that a program may take to start: the machine's disk may stand still.
BEGIN = 90.0
# Seconds that clients may take together.
TOGETHER = 2 * PATIENCE
PORTS = range(10000, 32768)

WAYS = ("native", "uring-1", "uring-4", "threads-1", "threads-4")
CARRIED = WAYS[1:]
UNPATCHED = "unpatched-2"
SYSTEM_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def installed(name: str, package: str) -> str:
    """Return the program's path, or skip the test if it isn't installed."""
    path = shutil.which(name, path=SYSTEM_PATH)
    if path is None:
        pytest.skip(f"{name} is missing: install {package}")
    return path


def compiled(folder: Path, source: str, *options: str) -> str:
    """Compile a C program of a test, or skip the test if there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("cc is missing: install gcc")
    (folder / "program.c").write_text(source)
    argv = [compiler, "-O1", "-w", *options, "-o", "program", "program.c"]
    subprocess.run(argv, cwd=folder, check=True, timeout=60)
    return str(folder / "program")


def launcher(way: str) -> list[str]:
    """Return the words to put before a program's name."""
    if way == "native":
        return []
    engine, _, carriers = way.partition("-")
    before = []
    if engine == "unpatched":
        before = ["env", "FLEXSC_PATCH=0"]
        engine = "uring"
    return [*before, command(), "run", "--engine", engine, "-c", carriers]


def free_port(kind: int = socket.SOCK_STREAM) -> int:
    """Return a free port, for programs that can't report the port that they chose.

    The kernel gives no client a port of PORTS. Otherwise a client could get the port
    before the program binds it.
    """
    for port in random.sample(PORTS, 100):
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, kind) as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port")


def answers(port: int) -> bool:
    """Does a server listen on this port?"""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


class Program:
    """A program that runs until stop() or end(). Its output goes to a file.

    Only end() reaps the program. Until then no other process, and no other group, can
    get its ID. So the tests send signals by send() instead of Popen.send_signal(), and
    use status() and wait() instead of poll() and wait() of Popen.

    If a constructor fails, started() doesn't get the program, and can't end it. So
    the constructor of a subclass only calls wait_until(), which ends the program if
    the wait fails.
    """

    def __init__(
        self,
        way: str,
        argv: list[str],
        log: Path,
        *,
        cwd: Path | None = None,
    ) -> None:
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [*launcher(way), *argv],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=cwd,
                start_new_session=True,
            )

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def status(self) -> int | None:
        """Return the status as Popen.poll() does, but don't reap the program."""
        return unreaped_status(self.process)

    def send(self, signo: int) -> None:
        os.kill(self.process.pid, signo)

    def wait(self, limit: float = PATIENCE) -> int:
        """Wait for the program's end, but don't reap it. Return the status."""
        return unreaped_end(self.process, limit)

    def wait_until(self, ready: Callable[[], bool], limit: float = BEGIN) -> None:
        """Wait until the program is ready. If the wait fails, end the program, and
        raise an error with the end of its output.
        """
        try:
            done = eventually(lambda: self.status() is not None or ready(), limit)
            status = self.status()
            if status is not None or not done:
                where = "" if status is not None else describe_waits(self.process.pid)
                why = f"exit status {status}" if done else f"timed out after {limit} s"
                raise RuntimeError(
                    f"not ready: {why}:\n{self.output()[-3000:]}\n{where}"
                )
        except BaseException:
            self.end()
            raise

    def listen(self, port: int, limit: float = BEGIN) -> None:
        self.wait_until(lambda: answers(port), limit)

    def stop(self, signo: int = signal.SIGTERM, limit: float = PATIENCE) -> int:
        """Check that the idle program uses no processor time, then end it.

        With SIGKILL the check is omitted.
        """
        if signo != signal.SIGKILL:
            found = busy(family(self.process.pid))
            assert (
                not found
            ), f"{found} still compute although idle:\n{self.output()[-3000:]}"
        self.send(signo)
        return self.wait(limit)

    def end(self) -> None:
        """Kill the program and all processes that it started, and reap it."""
        end_group(self.process)


def unreaped_status(process: subprocess.Popen[AnyStr]) -> int | None:
    """Return the status of a child that has ended, and leave it a zombie."""
    which = os.WEXITED | os.WNOWAIT | os.WNOHANG
    found = os.waitid(os.P_PID, process.pid, which)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def unreaped_end(process: subprocess.Popen[AnyStr], limit: float) -> int:
    """Wait for the end of a child, and leave it a zombie. Return the status."""
    eventually(lambda: unreaped_status(process) is not None, limit)
    status = unreaped_status(process)
    if status is None:
        raise subprocess.TimeoutExpired(process.args, limit)
    return status


def end_group(process: subprocess.Popen[AnyStr]) -> None:
    """Kill the group that a child leads, and reap the child.

    After it is reaped, its ID may be that of an innocent group.
    """
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)


def describe_waits(pid: int) -> str:
    """Describe where each thread of the process waits, according to the kernel and to
    the runtime, and the pressure on the machine's disk.
    """
    lines = []
    with contextlib.suppress(OSError):
        lines.append(Path("/proc/pressure/io").read_text())
    for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
        with contextlib.suppress(OSError):
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            call = (task / "syscall").read_text().strip()
            name = (task / "comm").read_text().strip()
            wchan = (task / "wchan").read_text()
            lines.append(f"{task.name} {name} {state} {wchan} {call}")
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = flexsc("stat", str(pid))
        lines += [done.stdout, done.stderr]
    return "\n".join(lines)


def rings(pid: int) -> int:
    """Count the io_uring instances of a process."""
    count = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            count += "[io_uring]" in os.readlink(f"/proc/{pid}/fd/{name}")
    return count


def children(pid: int) -> list[int]:
    """Return the children of all threads of a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            found += map(int, (task / "children").read_text().split())
    return found


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for member in found:
        found += children(member)
    return found


AnyProgram = TypeVar("AnyProgram", bound=Program)


@contextlib.contextmanager
def started(program: AnyProgram) -> Iterator[AnyProgram]:
    try:
        yield program
    finally:
        program.end()


def traced(pid: int) -> bool:
    """Is every thread of the process traced?"""
    for state in Path(f"/proc/{pid}/task").glob("*/status"):
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            if "TracerPid:\t0\n" in state.read_text():
                return False
    return True


def calls_made(pid: int, work: Callable[[], None], output: Path) -> Counter[str]:
    """Count, with strace, the system calls that the program makes during work()."""
    strace = [installed("strace", "strace"), "-f", "-c", "-U", "calls,name"]
    strace += ["-o", str(output), "-p", str(pid)]
    with subprocess.Popen(strace, stderr=subprocess.PIPE, text=True) as tracing:
        try:
            eventually(lambda: tracing.poll() is not None or traced(pid))
            if tracing.poll() is not None:
                said = tracing.stderr.read() if tracing.stderr else ""
                pytest.skip(f"strace isn't allowed to trace here: {said.strip()}")
            work()
        finally:
            tracing.send_signal(signal.SIGINT)
            tracing.wait(PATIENCE)
    found = re.findall(r"^ *(\d+) (\w+)$", output.read_text(), re.MULTILINE)
    return Counter({name: int(calls) for calls, name in found if name != "total"})


def carried_by(way: str, pids: Iterable[int]) -> bool:
    """Do these processes run as the way says, instead of natively?"""
    if way == "native":
        return True
    engine, _, carriers = way.partition("-")
    try:
        for pid in pids:
            if "libflexsc-runtime" not in Path(f"/proc/{pid}/maps").read_text():
                return False
            if engine != "threads" and rings(pid) < int(carriers):
                return False
    except OSError:
        return False  # the process has ended
    return True


def at_once(n: int, work: Callable[[int], None], limit: float = TOGETHER) -> None:
    """Run work(0) to work(n - 1), each in a thread, and raise the first error."""
    errors: list[BaseException] = []

    def one(i: int) -> None:
        try:
            work(i)
        except BaseException as error:  # noqa: BLE001 (raised below)
            errors.append(error)

    threads = [threading.Thread(target=one, args=(i,), daemon=True) for i in range(n)]
    end = time.monotonic() + limit
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    if errors:
        raise errors[0]
    late = sum(thread.is_alive() for thread in threads)
    assert not late, f"{late} of {n} clients have no answer after {limit} s"

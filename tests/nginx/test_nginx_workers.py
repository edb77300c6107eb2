# SPDX-License-Identifier: MIT
"""How workers of nginx with the module begin, end, and use cores and io_uring."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fixtures import cores_of, eventually, gone
from nginxes import (
    BIG,
    CLIENTS,
    CORES,
    DAEMON,
    KERNEL_CORES,
    LONG,
    SMALL,
    Connection,
    Nginx,
    ask_one,
    burst,
    crowd,
    request,
    written,
)
from programs import at_once, installed, started


class Load:
    """Clients that send requests until "over" is set. Every response has to be correct."""

    def __init__(self, server: Nginx) -> None:
        self.server = server
        self.over = False
        self.answers = 0
        self.ending = False
        self.errors: list[BaseException] = []
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        try:
            at_once(CLIENTS, self.client, LONG)
        except BaseException as error:  # noqa: BLE001 (raised when it is over)
            self.errors.append(error)

    def client(self, _: int) -> None:
        while not self.over:
            try:
                with self.server.connect() as connection:
                    self.ask(connection)
            except ConnectionError:
                if not self.ending:
                    raise
                time.sleep(0.05)

    def ask(self, connection: Connection) -> None:
        while not self.over:
            try:
                connection.send(request("/small") + request("/32k"))
                first = connection.answer()
            except (EOFError, ConnectionError):
                # nginx may close a connection between two requests.
                assert not connection.rest
                return
            assert first.endswith(SMALL)
            self.answers += 1
            try:
                assert connection.answer().endswith(BIG[:32768])
            except (EOFError, ConnectionError):
                assert not connection.rest
                return

    def wait(self, n: int) -> None:
        until = self.answers + n
        assert eventually(lambda: self.answers >= until or bool(self.errors), LONG)


@contextlib.contextmanager
def loaded(server: Nginx) -> Iterator[Load]:
    load = Load(server)
    load.thread.start()
    try:
        load.wait(100)
        yield load
    finally:
        load.over = True
        load.thread.join(LONG)
    if load.errors:
        raise load.errors[0]


def changes(server: Nginx, pid: int, act: Callable[[], None]) -> None:
    """act() makes another process serve. No client gets a wrong response."""
    with loaded(server) as load:
        act()
        assert eventually(lambda: gone(pid), LONG)
        load.wait(100)
    assert "exited on signal" not in server.errors()
    assert "open socket" not in server.errors()


def test_reload_under_load(own: Nginx) -> None:
    worker = own.worker()
    changes(own, worker, lambda: os.kill(own.master(), signal.SIGHUP))
    assert own.worker() != worker


def test_a_killed_worker_is_replaced(own: Nginx) -> None:
    worker = own.worker()
    with crowd(own) as many:
        burst(own, many, request("/small"))
        os.kill(worker, signal.SIGKILL)
        for connection in many:
            with pytest.raises((EOFError, ConnectionError)):
                ask_one(own, connection, request("/small"))
    assert eventually(lambda: own.workers() not in ([], [worker]), LONG)
    with own.connect() as connection:
        assert ask_one(own, connection, request("/small")).endswith(SMALL)


def test_another_binary_under_load(nginx: Nginx, shared: Path) -> None:
    root = shared / "daemon"
    daemon = Nginx(root, shared, load=True, before=DAEMON)
    with started(daemon) as own:
        old = own.master()
        # nginx ignores the signal while the process that started it lives.
        launcher = Path(f"/proc/{own.process.pid}/comm")
        assert eventually(lambda: launcher.read_text() == "sleep\n", LONG)

        def upgrade() -> None:
            os.kill(old, signal.SIGUSR2)
            assert eventually((root / "pid.oldbin").exists, LONG)
            assert eventually(lambda: written(root / "pid"), LONG)
            assert eventually(lambda: bool(own.workers()), LONG)
            os.kill(old, signal.SIGQUIT)

        changes(own, old, upgrade)
        new = own.master()
        assert new != old
        os.kill(new, signal.SIGQUIT)
        assert eventually(lambda: gone(new), LONG)


@pytest.mark.parametrize("signo", [signal.SIGQUIT, signal.SIGTERM])
def test_an_end_under_load(own: Nginx, signo: signal.Signals) -> None:
    with loaded(own) as load:
        load.ending = True
        own.send(signo)
        assert own.wait(LONG) == 0
        load.over = True
    assert "exited on signal" not in own.errors()
    assert "open socket" not in own.errors()


def refused(shared: Path, error: str, more: str = "") -> Nginx:
    """Start an nginx to which the kernel refuses rings."""
    before = (installed("strace", "strace"), "-f", "-qq", "-o", "/dev/null")
    before += ("-e", "trace=io_uring_setup", "-e", f"inject=io_uring_setup:{error}")
    folder = Path(tempfile.mkdtemp(dir=shared))
    folder.chmod(0o755)
    return Nginx(folder / "own", shared, load=True, before=before, more=more)


def test_without_io_uring_nginx_works(nginx: Nginx, shared: Path) -> None:
    with started(refused(shared, "error=EPERM")) as server:
        assert "runs without io_uring" in server.errors()
        with server.connect() as connection:
            connection.send(request("/small"))
            assert connection.answer().endswith(SMALL)


# The worker's first ring has a poller.
REFUSED = {
    "error=EPERM": "runs without io_uring",
    "error=EPERM:when=1": "no kernel thread polls",
}


@pytest.mark.parametrize("error", REFUSED)
def test_a_worker_without_a_poller_uses_all_its_cores(
    nginx: Nginx, shared: Path, error: str
) -> None:
    if len(CORES) < 2:
        pytest.skip("needs two cores")
    with started(refused(shared, error, KERNEL_CORES)) as server:
        assert REFUSED[error] in server.errors()
        assert os.sched_getaffinity(server.worker()) == set(CORES)


def test_calls_execute_on_the_kernel_cores(apart: Nginx) -> None:
    """A poller takes the calls of the worker, which has root's rights no more and leaves
    the poller's core.
    """
    with crowd(apart) as many:
        for _ in range(3):
            for answer in burst(apart, many, request("/small")):
                assert answer.endswith(SMALL)
        found = cores_of(apart.worker())
    there = [name for name, cores in found if cores == {CORES[-1]}]
    assert len(there) == 1 and there[0].startswith("iou-sqp-"), found
    assert os.sched_getaffinity(apart.worker()) == set(CORES[:-1])

    def counted() -> bool:
        """The worker may still be closing connections."""
        stats = apart.stats()
        return stats["by_uring"] == stats["posted"] >= 3 * CLIENTS - 6

    assert eventually(counted), apart.stats()


def test_an_idle_worker_sleeps(nginx: Nginx) -> None:
    """The worker has no requests, but may still be closing earlier connections."""

    def sleeps() -> bool:
        before = nginx.stats()["mode_switches"]
        time.sleep(0.3)
        return nginx.stats()["mode_switches"] == before

    assert eventually(sleeps)

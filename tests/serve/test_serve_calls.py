# SPDX-License-Identifier: MIT
"""System calls per request of `flexsc serve`, as in docs/explanation/results.md.

The counts don't depend on the speed or the load of the machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from fixtures import (
    PATIENCE,
    Client,
    Server,
    Start,
    counters,
    eventually,
    request,
    state,
)

CLIENTS = 128
ROUNDS = 5
# If the machine delays a client, the server makes an additional turn, so the minimum
# counts.
TRIES = 3
CORES = sorted(os.sched_getaffinity(0))


def stats(server: Server) -> dict[str, int]:
    return counters(server.process.pid)


def ask_all(server: Server, clients: list[Client], target: str) -> None:
    """Send all requests before the server reads any of them: they form one batch."""
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        assert eventually(lambda: state(server.process.pid)[0] in "tT")
        for client in clients:
            client.send(request(target))
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    for client in clients:
        assert client.read().status == 200


def cost(server: Server, target: str) -> dict[str, float]:
    """Return the counters per request, for the try that was disturbed least."""
    found = [cost_once(server, target) for _ in range(TRIES)]
    return min(found, key=lambda counts: counts["mode_switches"])


def cost_once(server: Server, target: str) -> dict[str, float]:
    clients = [server.client() for _ in range(CLIENTS)]
    try:
        ask_all(server, clients, target)
        before = stats(server)
        for _ in range(ROUNDS):
            ask_all(server, clients, target)
        after = stats(server)
    finally:
        for client in clients:
            client.socket.close()
    return {name: (after[name] - before[name]) / (CLIENTS * ROUNDS) for name in after}


@pytest.fixture
def sized(tree: Path) -> Path:
    (tree / "1k").write_bytes(bytes(1024))
    (tree / "32k").write_bytes(bytes(32768))
    return tree


# The counts of io_uring. If it doesn't work, the fixture skips the test.
by_uring = pytest.mark.parametrize("engine", ["uring"], indirect=True)


@by_uring
@pytest.mark.parametrize("name", ["1k", "32k"])
def test_opening_a_file_each_time_takes_one_mode_switch(
    start: Start, sized: Path, name: str
) -> None:
    found = cost(start(), f"/{name}")
    assert found["by_thread"] == 0
    assert found["by_inline"] == 1
    assert found["mode_switches"] <= 1.1


@by_uring
def test_a_file_that_is_kept_open_takes_no_mode_switch(
    start: Start, sized: Path
) -> None:
    # The cache checks the file again once a second.
    found = cost(start("--cache", "10"), "/1k")
    assert found["by_thread"] == 0
    assert found["mode_switches"] <= 0.15


@by_uring
@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
def test_with_kernel_cores_a_request_takes_one_mode_switch(
    start: Start, sized: Path
) -> None:
    """The loop reads each opened file by itself, and seldom waits or wakes the poller."""
    found = cost(start("--kernel-cores", str(CORES[-1])), "/1k")
    assert (found["by_thread"], found["by_inline"]) == (0, 1)
    assert found["mode_switches"] <= 1.5


@pytest.mark.parametrize("engine", ["uring", "threads"])
def test_mode_switches_agree_with_strace(
    start: Start, sized: Path, tmp_path: Path, engine: str
) -> None:
    strace = shutil.which("strace")
    if not strace:
        pytest.skip("strace is missing: install strace")
    server = start("--engine", engine)
    listed = tmp_path / "strace"
    tracer = subprocess.Popen(
        [strace, "-f", "-o", str(listed), "-p", str(server.process.pid)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert tracer.stderr
        if "attached" not in tracer.stderr.readline():
            pytest.skip("strace isn't allowed to trace here")
        with server.client() as client:
            assert client.ask("/1k").status == 200
            counted, seen = stats(server)["mode_switches"], calls(listed)
            # So many requests that the counts which sleeping threads haven't published
            # hardly matter.
            for _ in range(300):
                assert client.ask("/1k").status == 200

            def differ() -> float:
                """Return the difference: a sleeping thread hasn't published its last
                counts yet.
                """
                now = stats(server)["mode_switches"] - counted
                return abs(now / (calls(listed) - seen) - 1)

            assert eventually(lambda: differ() < 0.01)
    finally:
        tracer.terminate()
        tracer.wait(PATIENCE)


def calls(listed: Path) -> int:
    """strace prints a line when a call returns, or when another thread's call
    intervenes. Only the checks of debug builds call gettid().
    """
    lines = listed.read_text(encoding="utf-8").splitlines()
    begun = [line for line in lines if "(" in line and "resumed" not in line]
    return sum("gettid(" not in line for line in begun)

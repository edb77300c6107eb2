# SPDX-License-Identifier: MIT
"""flexbench's study beside clients that are silent."""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from flexbench.machine import Cores
from flexbench.runner import Plan
from flexbench.samples import BenchError, Json, Measurement, Run, Settings
from flexbench.servers import Server
from flexstudy import webserver
from flexstudy.webserver import idle

PLAN = Plan("flexsc", Cores(1, 0, [0]), True, 3, 5, 4, None)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfile"
PATIENCE = 10


def test_an_answer_is_read_to_its_end() -> None:
    one, other = socket.socketpair()
    with closing(one), closing(other):
        one.settimeout(PATIENCE)
        other.sendall(ANSWER)
        idle.ask(one, 4)
        assert other.recv(1000) == idle.REQUEST
        assert idle.is_open(one)
        other.close()
        assert not idle.is_open(one)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (ANSWER[:-1], "closed by the server"),
        (b"", "closed by the server"),
        (ANSWER + b"more", "the answer isn't the file"),
        (ANSWER.replace(b"200", b"503"), "the answer isn't the file"),
    ],
)
def test_a_wrong_answer_is_no_idle_client(said: bytes, reason: str) -> None:
    one, other = socket.socketpair()
    with closing(one), closing(other):
        one.settimeout(PATIENCE)
        other.sendall(said)
        other.shutdown(socket.SHUT_WR)
        with pytest.raises(OSError, match=reason):
            idle.ask(one, 4)


@contextmanager
def serving(gone: threading.Semaphore | None = None) -> Iterator[Server]:
    """A server that answers a request on each of its connections. gone: the server then
    closes the connection, and says so.
    """
    held: list[socket.socket] = []

    def serve(listener: socket.socket) -> None:
        try:
            while True:
                client, _ = listener.accept()
                client.recv(1000)
                client.sendall(ANSWER)
                held.append(client)
                if gone:
                    client.close()
                    gone.release()
        except OSError:
            return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        yield Server("loops", f"http://127.0.0.1:{port}/", 1)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)
    for client in held:
        client.close()


def test_silent_clients_stay() -> None:
    with serving() as server, idle.silent(PLAN, server, 5):
        pass


def test_a_server_that_closes_silent_clients_is_left_out() -> None:
    gone = threading.Semaphore(0)
    with (
        serving(gone) as server,
        pytest.raises(BenchError, match="loops: has closed 5 silent connections"),
        idle.silent(PLAN, server, 5),
    ):
        assert all(gone.acquire(timeout=PATIENCE) for _ in range(5))


def test_a_server_that_is_full_is_left_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    server = Server("loops", f"http://127.0.0.1:{port}/", 1)
    with (
        pytest.raises(BenchError, match="loops: silent connection 1: "),
        idle.silent(PLAN, server, 5),
    ):
        pass


@pytest.mark.parametrize(
    ("hard", "count"),
    [(1 << 20, 10_000), (-1, 10_000), (20_000, 9_500), (1024, 12), (600, 0)],
)
def test_as_many_are_silent_as_descriptors_permit(
    monkeypatch: pytest.MonkeyPatch, hard: int, count: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, hard))
    assert idle.permitted() == count


def add(run: Run, model: str, silent: int, requests: float, busy: float) -> None:
    settings: Settings = {
        **{"workload": "idle", "model": model, "connections": 128},
        **{"idle": silent, "seconds": 2, "network": "lo"},
    }
    samples = {
        "requests_per_s": [requests],
        "cpu_us": [1e6 / requests],
        "busy_percent": [busy],
    }
    one: Json = {"samples": samples, "counts": {}}
    run.measurements.append(Measurement("study-idle", settings, [one, one, one]))


def test_many_are_beside_none() -> None:
    run = Run(machine={}, command=[])
    add(run, "loops", 0, 1000, 99)
    add(run, "loops", 9500, 500, 90)
    add(run, "events", 0, 800, 99)
    (text,) = webserver.show(run)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "beside none and beside 9,500 that are silent (10,000 aren't" in lines[0]
    assert lines[2].startswith("loops 1,000 500* 0.50 (0.50-0.50) 1,000 2,000 2.00 (")
    assert lines[3] == "events 800 - - 1,250 - -"
    assert lines[-1].startswith("* the server wasn't busy")

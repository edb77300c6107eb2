# SPDX-License-Identifier: MIT
"""flexsc study overload: its server with each model, its clients, and the whole
command."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import PATIENCE, Client, command, eventually, flexsc, request

TIMEOUT = 60
TRIES = 10  # of a measurement that needs a share of the processor
LISTENER = 1  # the only connection that is left
LINE = b"A page that was in memory all the time.\n"


def program() -> Path:
    return Path(command()).resolve().parents[1] / "study/servers/overload/http-events"


MODELS = ["epoll", "send", "ps2", "ps1"]


@pytest.fixture(scope="module", autouse=True)
def models() -> list[str]:
    """The models that work here."""
    if not program().is_file():
        pytest.skip(f"{program()} isn't built")
    done = subprocess.run(
        [program(), "--models"], capture_output=True, text=True, check=True
    )
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def need(model: str, models: list[str]) -> None:
    if model not in models:
        pytest.skip(f"no {model} here")


class Server:
    """An http-events that listens on its own port."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [program(), *options], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout
        try:
            self.port = int(self.process.stdout.readline())
        except BaseException:
            self.end()
            raise

    def client(self) -> Client:
        return Client(self.port)

    def sockets(self) -> int:
        folder = f"/proc/{self.process.pid}/fd"
        count = 0
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                count += os.readlink(f"{folder}/{name}").startswith("socket:")
        return count

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


@contextlib.contextmanager
def serving(*options: str) -> Iterator[Server]:
    server = Server(*options)
    try:
        yield server
        assert server.process.poll() is None
    finally:
        server.end()


def page(kib: int) -> bytes:
    size = 1024 * kib
    return (LINE * (size // len(LINE) + 1))[:size]


# The server.


@pytest.fixture(scope="module", params=MODELS)
def server(request: pytest.FixtureRequest, models: list[str]) -> Iterator[Server]:
    need(request.param, models)
    with serving("--events", request.param) as found:
        yield found


@pytest.mark.parametrize("kib", [1, 2, 4, 6, 8, 1024])
def test_each_page_is_answered(server: Server, kib: int) -> None:
    with server.client() as client:
        for _ in range(3):
            answer = client.ask(f"/{kib}k")
            assert answer.status == 200
            assert answer.body == page(kib)
        assert client.ask("/").body == page(1)
        assert client.ask("/1025k").status == 404
        assert client.ask("/0k").status == 404
        assert client.ask(f"/{kib}k", "HEAD").headers["content-length"] == str(
            1024 * kib
        )
        assert client.ask("/", Connection="close").status == 200
        assert client.closed()


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    sizes = [1, 8, 2, 100, 4] * 20
    with server.client() as client:
        data = b"".join(request(f"/{kib}k") for kib in sizes)
        sender = threading.Thread(target=client.send, args=(data,))
        sender.start()
        for kib in sizes:
            assert client.read().body == page(kib)
        sender.join(PATIENCE)


def test_a_slow_client_keeps_nobody_waiting(server: Server) -> None:
    with server.client() as slow, server.client() as other:
        for byte in request("/2k"):
            slow.send(bytes([byte]))
            assert other.ask("/1k").body == page(1)
        assert slow.read().body == page(2)


def test_a_client_that_does_not_listen_keeps_nobody_waiting(server: Server) -> None:
    with server.client() as deaf, server.client() as other:
        deaf.send(request("/1024k") * 10)
        for _ in range(20):
            assert other.ask("/1k").body == page(1)
        for _ in range(10):
            assert deaf.read().body == page(1024)


def vanish(client: Client) -> None:
    """Reset the connection without an answer."""
    linger = struct.pack("ii", 1, 0)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    client.socket.close()


def test_clients_that_vanish_leave_nothing_behind(server: Server) -> None:
    for data in (b"", b"GET /1k HT", request("/1k"), request("/1024k") * 5):
        for leave in (vanish, lambda client: client.socket.close()):
            client = server.client()
            client.send(data)
            leave(client)
    with server.client() as client:
        assert client.ask("/1k").body == page(1)
    assert eventually(lambda: server.sockets() == LISTENER)


@pytest.mark.parametrize("admission", ["none", "age"])
@pytest.mark.parametrize("model", MODELS)
def test_after_an_overload_it_serves_as_before(
    model: str, admission: str, models: list[str]
) -> None:
    need(model, models)
    options = ("--work", "1000", "--age", "10", "--backlog", "32")
    with serving("--events", model, "--admission", admission, *options) as server:
        found = load(server.port, "rate=4000", "count=400", "timeout_ms=150")
        assert found["counts"]["late"] > 0
        assert eventually(lambda: server.sockets() == LISTENER)
        with server.client() as client:
            assert client.ask("/1k").body == page(1)


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--events", "kqueue"], '--events: invalid value "kqueue"'),
        (["--admission", "oldest"], '--admission: invalid value "oldest"'),
        (["--work", "-1"], '--work: invalid value "-1"'),
        (["--backlog", "x"], '--backlog: invalid value "x"'),
        (["--address", "nowhere"], "invalid address: nowhere"),
        (["http"], 'PORT: invalid value "http"'),
    ],
)
def test_the_server_refuses_in_one_line(args: list[str], reason: str) -> None:
    done = subprocess.run(
        [program(), *args],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode != 0
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


# The clients.


def raw(*args: str) -> subprocess.CompletedProcess[str]:
    return flexsc("study", "--raw", "load", *args, patience=TIMEOUT)


ENDS = ["answered", "late", "refused", "reset", "closed", "unsent"]


def load(port: int, *args: str) -> Any:
    done = raw(f"port={port}", *args)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["counts"]["offered"] == sum(found["counts"][end] for end in ENDS)
    return found


Behaviour = Callable[[socket.socket, int], None]


@contextlib.contextmanager
def behaving(behave: Behaviour) -> Iterator[tuple[int, list[float]]]:
    """A server that answers its first connection, which learns the page; the test
    defines the others' behaviour. Returns the times of the connections.
    """
    came: list[float] = []
    kept: list[socket.socket] = []

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                came.append(time.monotonic())
                kept.append(connection)
                if len(came) == 1:
                    connection.recv(1000)
                    connection.sendall(ANSWER)
                else:
                    behave(connection, len(came))

    with socket.create_server(("127.0.0.1", 0), backlog=1000) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        yield int(listener.getsockname()[1]), came
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)
    for connection in kept:
        connection.close()


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"


def stall(connection: socket.socket, _: int) -> None:
    """Never answer."""


def close(connection: socket.socket, _: int) -> None:
    connection.recv(1000)
    connection.close()


def reset(connection: socket.socket, _: int) -> None:
    connection.recv(1000)
    linger = struct.pack("ii", 1, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    connection.close()


def answer_half(connection: socket.socket, _: int) -> None:
    connection.recv(1000)
    connection.sendall(ANSWER[:-2])
    connection.close()


def test_a_stalled_server_does_not_slow_the_sending() -> None:
    with behaving(stall) as (port, came):
        begin = time.monotonic()
        found = load(port, "rate=400", "count=400", "timeout_ms=3000")
        took = time.monotonic() - begin
        assert eventually(lambda: len(came) == 401)
    assert found["counts"]["late"] == found["counts"]["offered"] == 400
    # Many requests came before the first one's time-out, so sending doesn't wait for
    # answers.
    assert sum(one - came[1] < 3 for one in came[1:]) > 100
    # The last request is sent after a second. Its time-out ends the load.
    assert 3.9 < took


@pytest.mark.parametrize(
    ("behave", "end"),
    [(close, "closed"), (reset, "reset"), (answer_half, "closed")],
)
def test_every_end_has_its_count(behave: Behaviour, end: str) -> None:
    with behaving(behave) as (port, _):
        found = load(port, "rate=200", "count=50")
    assert found["counts"][end] == found["counts"]["offered"] == 50


def test_a_short_backlog_overflows() -> None:
    """A client without a place tries again after a second, which is too late."""

    def overload() -> Any:
        with serving("--backlog", "4", "--work", "8000") as server:
            words = (f"pid={server.process.pid}", "rate=500", "count=400")
            return load(server.port, *words, "timeout_ms=900")

    # On a busy machine all answers may be late.
    tries = (overload() for _ in range(TRIES))
    found = next(one for one in tries if one["counts"]["answered"])
    counts = found["counts"]
    assert counts["offered"] == 400
    assert counts["listen_overflows"] > 0
    assert counts["late"] > 0
    assert counts["answered"] < 200
    # The server computes for about 8 ms per answer, even if it seldom gets a core.
    assert 4000 * counts["answered"] < counts["server_cpu_us"] < 6_000_000
    # Late answers aren't counted.
    assert found["samples"]["response_max_us"][0] <= 900_000


@pytest.mark.parametrize("arrivals", ["even", "poisson"])
def test_what_a_server_can_do_is_answered(arrivals: str) -> None:
    with serving() as server:
        found = load(
            *(server.port, "rate=1000", "count=1000", "sizes=1,8,64", "order=1"),
            *(f"arrivals={arrivals}", "warm_ms=200"),
        )
    counts, samples = found["counts"], found["samples"]
    assert counts["answered"] + counts["warm_up"] == 1000
    assert 150 < counts["warm_up"] < 250
    assert len(samples["order_us"]) == counts["answered"]
    for name in ("connect", "response", "behind"):
        times = [samples[f"{name}_{p}_us"][0] for p in ("p50", "p90", "p99", "p999")]
        assert 0 < times[0]
        assert times == sorted(times)
        assert times[0] <= samples[f"{name}_max_us"][0]
    assert samples["connect_mean_us"][0] < samples["response_mean_us"][0]
    assert max(samples["order_us"]) == pytest.approx(
        samples["response_max_us"][0], rel=0.01
    )
    # Pages of 1, 8 and 64 KiB in turn.
    per_answer = samples["mbit_per_s"][0] / samples["responses_per_s"][0]
    assert per_answer == pytest.approx(73 / 3 * 1024 * 8e-6, rel=0.02)


# The bench.


def bench(*args: str) -> subprocess.CompletedProcess[str]:
    return flexsc("study", "overload", *args, patience=TIMEOUT)


def test_an_overload_is_measured_and_kept(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    path = tmp_path / "run.json"
    words = ["goodput", "rate=2x", "events=epoll", "work=2000"]
    done = bench("--quick", *words, "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert "overload: the models (SEND, figure 4.11)" in done.stdout
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    parts = [(m["settings"]["part"], m["settings"]["variant"]) for m in found]
    assert parts == [("saturation", "epoll"), ("goodput", "epoll")]
    saturation = found[0]["rounds"][0]["samples"]["saturation_per_s"][0]
    # About 500 per second, if the work takes the requested time. The bounds are wide,
    # because a busy machine disturbs the work's calibration. Without any work the server
    # would answer tens of thousands.
    assert 20 < saturation < 2000
    assert found[1]["settings"]["rate"] == int(2 * saturation)
    # On a busy machine all answers may be late.
    counts = found[1]["rounds"][0]["counts"]
    assert counts["answered"] < counts["offered"]
    assert counts["server_cpu_us"] > 0

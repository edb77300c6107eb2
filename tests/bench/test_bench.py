# SPDX-License-Identifier: MIT
"""flexsc bench: each of its measuring loops, and the whole command."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
import socket
import socketserver
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fixtures import PATIENCE, command, flexsc, request
from programs import installed

TIMEOUT = 180
# Seconds for single-stepping, on a machine with other load.
SLOW = 600

# For "rounds": a server, a request and its answer.
HERE = (f"pid={os.getpid()}", "port=1")
EXACT = ("mode=exact", f"request={b'ask'.hex()}")
SAID = b"answered"


def bench(
    *args: str, cwd: Path | None = None, patience: int = TIMEOUT, **env: str
) -> subprocess.CompletedProcess[str]:
    return flexsc("bench", *args, cwd=cwd, patience=patience, **env)


def raw(case: str, *args: str) -> Any:
    done = bench("--raw", case, "reps=2", *args)
    if "not supported" in done.stderr or "not permitted" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("variant", ["plain", "liburing", "sync", "threads", "uring"])
@pytest.mark.parametrize("call", ["close", "read", "pread", "getppid"])
def test_raw_calls(variant: str, call: str) -> None:
    if (variant, call) == ("liburing", "getppid"):
        pytest.skip("io_uring has no operation for this call")
    found = raw("calls", f"variant={variant}", f"call={call}", "batch=48", "calls=480")
    assert found["case"] == "calls"
    assert found["settings"]["batch"] == 48
    times = found["samples"]["ns_per_call"]
    assert len(times) == 2
    assert all(0 < t < 1e7 for t in times)
    if variant not in ("plain", "liburing"):
        # Two repetitions, after one that warms up.
        assert found["counts"]["completed"] == 3 * 480


@pytest.mark.parametrize("scenario", ["dormant", "all", "cancel", "cancel-all"])
def test_raw_timers(scenario: str) -> None:
    found = raw(
        *("timers", "variant=sync", f"scenario={scenario}"),
        *("outstanding=2000", "active=100", "calls=2000"),
    )
    assert len(found["samples"]["ns_per_completion"]) == 2
    assert all(t > 0 for t in found["samples"]["ns_per_completion"])
    assert found["counts"]["timers"] >= 3 * 2000


@pytest.mark.parametrize("variant", ["liburing", "uring"])
@pytest.mark.parametrize("scenario", ["dormant", "uniform"])
def test_raw_reads(variant: str, scenario: str) -> None:
    found = raw(
        *("reads", f"variant={variant}", f"scenario={scenario}"),
        *("outstanding=600", "active=60", "calls=600"),
    )
    assert all(t > 0 for t in found["samples"]["ns_per_completion"])
    assert all(t > 0 for t in found["samples"]["ns_per_write"])
    if variant == "uring":
        # Three times eleven rounds of sixty calls. All six hundred calls are
        # outstanding.
        assert found["counts"]["completed"] == 3 * 11 * 60
        assert found["counts"]["posted"] == 3 * 11 * 60 + 600


@pytest.mark.parametrize(
    "variant", ["plain", "divided", "sync", "threads", "uring", "uring-sqpoll"]
)
@pytest.mark.parametrize("calls", [3, 4], ids=["alone", "client"])
def test_raw_crawl(variant: str, calls: int) -> None:
    core = min(os.sched_getaffinity(0))
    found = raw(
        *("crawl", f"variant={variant}"),
        f"{'cores' if variant == 'divided' else 'kernel_cores'}={core}",
        *("outstanding=70", "bytes=3000", "passes=2", "batch=8"),
        f"client={core if calls == 4 else -1}",
    )
    assert all(t > 0 for t in found["samples"]["ns_per_file"])
    if variant not in ("plain", "divided"):
        # In two repetitions, after one that warms up.
        assert found["counts"]["completed"] == 3 * calls * 70


# Words of the command itself, without --raw.
COMMANDS = {"serve", "--show"}


@pytest.mark.parametrize(
    ("args", "status", "reason"),
    [
        (["calls", "batch=0"], 2, "batch=0: give a number from 1 to 512"),
        (["calls", "speed=1"], 2, 'unknown setting "speed=1": give KEY=VALUE'),
        (["calls", 'cores="'], 2, "give a word, or a list"),
        (["calls", "call=fork"], 1, "call=fork: give close, read, pread or getppid"),
        (["timers", "scenario=x"], 1, "scenario=x: give dormant, all"),
        (["reads", "variant=sync"], 1, "variant=sync: give uring or liburing"),
        (["crawl", "variant=divided"], 1, "variant=divided: give cores=CORE"),
        (["load"], 1, "load: missing port=N"),
        (["load", "port=1", "mode=ftp"], 1, "mode=ftp: give echo, http or exact"),
        (["load", "port=1"], 1, "load: connecting: Connection refused"),
        (["sleep"], 2, "--raw sleep: give calls, timers, reads, crawl, load or rounds"),
        (["load", "port=1", "rate=1"], 1, "load: rate and trace need flexsc study"),
        (["rounds", "port=1"], 1, "rounds: missing port=N or pid=N"),
        (["rounds", *HERE, "conns=old"], 1, "rounds: conns: give new or kept"),
        (["rounds", *HERE, "mode=exact"], 1, "give request=HEX and answer=HEX"),
        (["rounds", *HERE, "mode=http", "udp=1"], 1, "mode=http: udp=1: http needs"),
        (["rounds", *HERE, "address=here"], 1, "rounds: address and source must"),
        (["rounds", *HERE, "source=10.9.8.7"], 1, "rounds: connecting: Cannot assign"),
        (["serve", "--network", "rps2"], 1, "--network rps2: give lo, veth"),
        (["serve", "--baseline", "x"], 1, "--baseline doesn't apply to serve"),
        (["serve", "--sweep", "--connections", "8"], 1, "--sweep and --connections"),
        (["--show", "/none"], 1, "/none: No such file or directory"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    args: list[str], status: int, reason: str
) -> None:
    done = bench(*([] if args[0] in COMMANDS else ["--raw"]), *args)
    assert done.returncode == status
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


# The load generator, the example servers, and servers that misbehave.

HTTP = ["http-threads", "http-epoll", "http-pool"]
EXAMPLES = ["echo-threads", "echo-epoll", *HTTP]


@contextlib.contextmanager
def example_process(name: str) -> Iterator[tuple[int, int]]:
    """Start an example server. Yields its port and its process."""
    path = Path(command()).resolve().parents[1] / "bench/servers" / name
    if not path.is_file():
        pytest.skip(f"{path} isn't built")
    with subprocess.Popen([path, "0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield int(process.stdout.readline()), process.pid
            assert process.poll() is None
        finally:
            process.kill()


@contextlib.contextmanager
def example(name: str) -> Iterator[int]:
    with example_process(name) as (port, _):
        yield port


Behaviour = Callable[[socket.socket], None]


@contextlib.contextmanager
def misbehaving(behave: Behaviour) -> Iterator[int]:
    """A misbehaving server for one connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    behave(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        thread.join(PATIENCE)


def load(port: int, *args: str) -> subprocess.CompletedProcess[str]:
    return bench("--raw", "load", f"port={port}", "seconds=1", *args)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("greet", [0, 1])
def test_raw_load(name: str, greet: int) -> None:
    mode = name.partition("-")[0]
    with example(name) as port:
        done = load(
            *(port, f"mode={mode}", "connections=20", "threads=3", "bytes=5000"),
            f"greet={greet}",
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (rate,) = found["samples"]["requests_per_s"]
    assert rate == found["counts"]["requests"] > 0
    assert found["counts"]["answers"] >= rate
    times = [found["samples"][f"p{p}_us"][0] for p in (50, 90, 99, 999)]
    assert 0 < times[0]
    assert times == sorted(times)


@pytest.mark.parametrize("name", EXAMPLES)
def test_raw_rounds(name: str) -> None:
    mode = name.partition("-")[0]
    with example_process(name) as (port, pid):
        done = bench(
            *("--raw", "rounds", f"port={port}", f"pid={pid}", f"mode={mode}"),
            *("connections=20", "seconds=1"),
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (us,) = found["samples"]["cpu_us"]
    counts = found["counts"]
    assert counts["answers"] == 20 * counts["rounds"] > 0
    assert 0 < us < 1e6 / (counts["answers"] / 20)


class Stream(socketserver.BaseRequestHandler):
    """Sends its answer in two pieces."""

    clients: ClassVar[set[str]] = set()

    def handle(self) -> None:
        self.clients.add(self.client_address[0])
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            while self.request.recv(64):
                self.request.sendall(SAID[:3])
                self.request.sendall(SAID[3:])


class Datagram(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request[1].sendto(SAID, self.client_address)


class StreamServer(socketserver.ThreadingTCPServer):
    daemon_threads = True


@contextlib.contextmanager
def answering(
    kind: type[socketserver.BaseServer],
    handler: type[socketserver.BaseRequestHandler],
) -> Iterator[int]:
    with kind(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


def exact(port: int, answer: bytes, *more: str) -> subprocess.CompletedProcess[str]:
    return bench(
        *("--raw", "rounds", f"port={port}", f"pid={os.getpid()}", *EXACT),
        *(f"answer={answer.hex()}", "connections=3", "seconds=1", *more),
    )


@pytest.mark.parametrize("conns", ["new", "kept"])
def test_rounds_of_given_bytes(conns: str) -> None:
    with answering(StreamServer, Stream) as port:
        done = exact(port, SAID, f"conns={conns}")
        wrong = exact(port, SAID[:-1] + b"?", f"conns={conns}")
        short = exact(port, SAID[:-1], f"conns={conns}")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["answers"] > 0
    assert wrong.returncode == short.returncode == 1
    assert "the answer's body differs from the page" in wrong.stderr
    assert "more bytes came than were requested" in short.stderr


@pytest.mark.parametrize("conns", ["new", "kept"])
def test_rounds_come_from_many_addresses(conns: str) -> None:
    Stream.clients.clear()
    with answering(StreamServer, Stream) as port:
        some = ("source=127.0.0.9", "sources=2", f"conns={conns}", "count=30")
        done = exact(port, SAID, *some)
    assert done.returncode == 0, done.stderr
    assert Stream.clients == {"127.0.0.9", "127.0.0.10"}


def test_the_number_of_rounds_is_as_asked_for() -> None:
    with answering(StreamServer, Stream) as port:
        counts = [
            json.loads(exact(port, SAID, f"count={count}").stdout)["counts"]
            for count in (1, 299, 300)
        ]
    assert [c["answers"] for c in counts] == [3, 300, 300]
    assert [c["rounds"] for c in counts] == [1, 100, 100]


class Pages(socketserver.BaseRequestHandler):
    """Sends a page for each connection. From the third connection on, pages differ."""

    connections = itertools.count()

    def handle(self) -> None:
        number = max(2, next(self.connections))
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"
        with contextlib.suppress(OSError):
            while self.request.recv(64):
                self.request.sendall(head + b"%d" % (number % 10))


def test_rounds_over_http_have_one_page() -> None:
    here = ("mode=http", f"pid={os.getpid()}", "connections=5", "count=100")
    with answering(StreamServer, Pages) as port:
        done = bench("--raw", "rounds", f"port={port}", *here)
    assert done.returncode == 1
    assert ": connection 4, after 0 answers: the answer's body" in done.stderr


def test_rounds_of_datagrams() -> None:
    with answering(socketserver.UDPServer, Datagram) as port:
        done = exact(port, SAID, "udp=1", "source=127.0.0.3")
        short = exact(port, SAID[:-1], "udp=1")
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)["counts"]
    assert counts["warmed"] == counts["answers"] + 50 * 3
    assert "more bytes came than were requested" in short.stderr


def test_rounds_end_with_their_server() -> None:
    with misbehaving(close_at_once) as port:
        done = bench("--raw", "rounds", f"port={port}", f"pid={os.getpid()}")
    assert done.returncode == 1
    assert "rounds: connection 1, after 0 answers: " in done.stderr


def close_at_once(connection: socket.socket) -> None:
    connection.recv(64)
    connection.shutdown(socket.SHUT_RDWR)


def say_nothing(connection: socket.socket) -> None:
    while connection.recv(64):
        pass


def fall_silent(connection: socket.socket) -> None:
    for _ in range(100):
        connection.sendall(connection.recv(64))
    connection.settimeout(PATIENCE)
    while connection.recv(64):
        pass


def echo_wrongly(connection: socket.socket) -> None:
    connection.sendall(bytes(len(connection.recv(64))))
    connection.recv(64)


def echo_the_same_again(connection: socket.socket) -> None:
    data = connection.recv(64)
    while connection.send(data):
        pass


def not_found(connection: socket.socket) -> None:
    connection.recv(64)
    connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    connection.recv(64)


def other_pages(connection: socket.socket) -> None:
    number = 0
    while connection.recv(64):
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"
        connection.sendall(head + b"%d" % (number % 10))
        number += 1


@pytest.mark.parametrize(
    ("behave", "mode", "reason"),
    [
        (close_at_once, "echo", "after 0 answers: the server closed"),
        (say_nothing, "echo", "after 0 answers: no answer for 2 seconds"),
        (fall_silent, "echo", "after 100 answers: no answer for 2 seconds"),
        (echo_wrongly, "echo", "the answer's body differs from the page"),
        (echo_the_same_again, "echo", "connection 1 of 1, after "),
        (not_found, "http", "the answer isn't HTTP/1.1 200"),
        (
            other_pages,
            "http",
            "after 1 answers: the answer's body differs from the page",
        ),
    ],
)
def test_a_bad_server_is_one_line(behave: Behaviour, mode: str, reason: str) -> None:
    with misbehaving(behave) as port:
        done = load(port, f"mode={mode}", "connections=1")
    assert done.returncode == 1
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def answers_to(port: int, *parts: bytes) -> bytes:
    """Return all that a server sends until it closes."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            client.sendall(part)
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while more := client.recv(65536):
                found += more
    return found


LAST = request("/", "HEAD", Connection="close")


@pytest.mark.parametrize("name", HTTP)
def test_the_example_web_servers_split_pipelined_requests(name: str) -> None:
    many = request("/") * 100 + LAST
    with example(name) as port:
        together = answers_to(port, many)
        apart = answers_to(port, *(many[i : i + 7] for i in range(0, len(many), 7)))
        missing = answers_to(port, request("/missing") + LAST)
    assert together == apart
    assert together.count(b"HTTP/1.1 200 OK\r\n") == 101
    assert together.endswith(b"Connection: close\r\n\r\n")
    assert missing.startswith(b"HTTP/1.1 404 ")
    assert b"HTTP/1.1 200 " in missing


@pytest.mark.parametrize("name", HTTP)
@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: x\n\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"G\0T / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /" + b"x" * 4096, 400),
        (b"GET / HTTP/1.0\r\n\r\n", 200),
        (b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", 501),
    ],
)
def test_the_example_web_servers_close(name: str, data: bytes, status: int) -> None:
    with example(name) as port:
        found = answers_to(port, data)
    assert found.startswith(b"HTTP/1.1 %d " % status)
    assert found.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close\r\n" in found


@pytest.mark.parametrize("name", ["echo-threads", "echo-epoll"])
def test_the_example_echo_servers_survive_a_client_that_never_reads(
    name: str,
) -> None:
    data = bytes(range(256)) * 1024
    with (
        example(name) as port,
        socket.create_connection(("127.0.0.1", port), PATIENCE) as client,
        socket.create_connection(("127.0.0.1", port), PATIENCE) as deaf,
    ):
        deaf.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while True:
                deaf.sendall(data)
        sender = threading.Thread(target=client.sendall, args=(data,))
        sender.start()
        found = b""
        while len(found) < len(data):
            found += client.recv(65536)
        sender.join(PATIENCE)
    assert found == data


def test_the_command_finds_its_package() -> None:
    done = bench("--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: flexsc bench")


def test_only_the_given_folder_is_searched(tmp_path: Path) -> None:
    done = bench("--help", FLEXBENCH_DIR=str(tmp_path))
    assert done.returncode == 1
    assert f"flexbench isn't in {tmp_path}; set FLEXBENCH_DIR" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_measures_and_saves(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    path = tmp_path / "run.json"
    done = bench("timers", "--quick", "--rounds", "1", "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert "timers: nanoseconds" in done.stdout
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["machine"]["kernel"] == os.uname().release
    scenarios = {m["settings"]["scenario"] for m in found["measurements"]}
    assert scenarios == {"dormant", "all", "cancel", "cancel-all"}


def test_servers_are_measured_on_one_core_and_on_two(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    for name, package in (("nginx", "nginx-light"), ("wrk", "wrk")):
        installed(name, package)
    path = tmp_path / "run.json"
    quickly = ["--quick", "--rounds", "1", "--seconds", "1"]
    done = bench("serve", *quickly, "--cores", "1,2", "--out", str(path))
    assert done.returncode == 0, done.stderr
    found = json.loads(path.read_text(encoding="utf-8"))
    every = {
        (m["settings"]["cores"], m["settings"]["variant"])
        for m in found["measurements"]
    }
    assert every == set(itertools.product((1, 2), ("flexsc", "nginx")))
    assert [len(cores) for cores in found["machine"]["cores"]["servers"]] == [1, 2]
    # A client on one core can't load two workers evenly.
    rounds = {
        m["settings"]["cores"]
        for m in found["measurements"]
        if "cpu_us" in m["rounds"][0]["samples"]
    }
    assert rounds == {1}
    titles = [line for line in done.stdout.splitlines() if line.startswith("serve: 1")]
    assert ["2 cores" in title for title in titles] == [False, True] * 2


def test_blocking_servers_are_measured_by_turns(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    with example("echo-threads"):
        pass
    path = tmp_path / "run.json"
    quickly = ["--quick", "--rounds", "1", "--connections", "8"]
    done = bench("threads", *quickly, "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert "threads: 64 bytes echoed, server on one core" in done.stdout
    found = json.loads(path.read_text(encoding="utf-8"))
    on_one = [
        (m["settings"]["mode"], m["settings"]["variant"])
        for m in found["measurements"]
        if m["settings"]["part"] == "load" and m["settings"]["cores"] == 1
    ]
    variants = ["native", "flexsc", "epoll"]
    if platform.machine() == "x86_64":
        assert on_one == [(mode, v) for mode in ("echo", "http") for v in variants]
        parts = {m["settings"]["part"] for m in found["measurements"]}
        assert parts == {"load", "entries", "idle"}

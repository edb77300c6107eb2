# SPDX-License-Identifier: MIT
"""flexsc bench: each of its measuring loops, and the command as a whole."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from fixtures import PATIENCE, command, request
from programs import installed

TIMEOUT = 60
# Where instructions are stepped through, on a machine that others use.
SLOW = 600

# Of rounds: a server, a request and its answer.
HERE = (f"pid={os.getpid()}", "port=1")
EXACT = ("mode=exact", f"request={b'ask'.hex()}")
SAID = b"answered"


def bench(
    *args: str, cwd: Path | None = None, patience: int = TIMEOUT, **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command(), "bench", *args],
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
        cwd=cwd,
        env={**os.environ, **env},
    )


def raw(case: str, *args: str) -> Any:
    done = bench("--raw", case, "reps=2", *args)
    if "not supported" in done.stderr or "not permitted" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("variant", ["signal", "uring"])
def test_raw_events(variant: str) -> None:
    found = raw(
        "events", f"variant={variant}", "scenario=dequeue", "batch=10", "calls=200"
    )
    assert found["case"] == "events"
    for name in ("ns_to_queue", "ns_to_dequeue"):
        assert all(0 < t < 1e7 for t in found["samples"][name])
    found = raw(
        "events", f"variant={variant}", "scenario=preempt", "cores=0", "calls=20"
    )
    assert all(0 < t < 1e9 for t in found["samples"]["ns_to_preempt"])


@pytest.mark.parametrize("variant", ["plain", "liburing", "sync", "threads", "uring"])
@pytest.mark.parametrize("call", ["close", "read", "pread", "getppid"])
def test_raw_calls(variant: str, call: str) -> None:
    if (variant, call) == ("liburing", "getppid"):
        pytest.skip("io_uring has no such operation")
    found = raw("calls", f"variant={variant}", f"call={call}", "batch=48", "calls=480")
    assert found["case"] == "calls"
    assert found["settings"]["batch"] == 48
    times = found["samples"]["ns_per_call"]
    assert len(times) == 2
    assert all(0 < t < 1e7 for t in times)
    if variant not in ("plain", "liburing"):
        # Two repetitions and the one before, which warms up.
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
        *("reads", f"variant={variant}", f"scenario={scenario}", "sharing=3"),
        *("outstanding=600", "active=60", "calls=600"),
    )
    assert all(t > 0 for t in found["samples"]["ns_per_completion"])
    assert all(t > 0 for t in found["samples"]["ns_per_write"])
    if variant == "uring":
        # Eleven rounds of sixty, three times; all six hundred are outstanding.
        assert found["counts"]["completed"] == 3 * 11 * 60
        assert found["counts"]["posted"] == 3 * 11 * 60 + 600


def periods(units: float) -> float:
    """Periods of work, of so many units."""
    return units / 256


@pytest.mark.parametrize("call", ["none", "getppid", "stat", "pwrite"])
def test_raw_lost(call: str) -> None:
    found = raw("lost", f"call={call}", "calls=20")
    for name in ("control_ticks", "called_ticks"):
        assert len(found["samples"][name]) == 64
        assert all(t > 0 for t in found["samples"][name])
    # Both sides of each call and of the tenth that warms up: a period that is
    # measured, and the one before. The first of all makes the sum.
    assert periods(found["counts"]["units"]) == 1 + 2 * 2 * (20 + 2)
    assert found["counts"]["ticks_per_us"] > 0


@pytest.mark.parametrize("work", ["tree", "heap"])
@pytest.mark.parametrize(("every", "blocks"), [(1, 1), (64, 1), (1024, 4)])
def test_raw_pollute(work: str, every: int, blocks: int) -> None:
    found = raw("pollute", f"work={work}", f"every={every}", "call=pwrite")
    assert set(found["samples"]) == {
        *("control_ticks", "direct_ticks", "called_ticks"),
        *("clock_ticks", "direct_call_ticks", "call_ticks"),
    }
    assert all(len(ticks) == 2 for ticks in found["samples"].values())
    assert all(t > 0 for ticks in found["samples"].values() for t in ticks)
    # Three kinds of blocks, each twice, in both repetitions.
    assert periods(found["counts"]["units"]) == 1 + 3 * 2 * 2 * blocks


TRAPS = ["none", "stat", "pread", "pwrite", "open-close", "mmap-munmap"]


@pytest.mark.parametrize("call", [*TRAPS, "open-write-close"])
@pytest.mark.parametrize("level", ["l1d", "l1i", "l2", "dtlb"])
def test_raw_footprint(call: str, level: str) -> None:
    done = bench("--raw", "footprint", f"call={call}", f"level={level}", "reps=2")
    if "its size isn't known" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    scale = {f"touch_{k}" for k in range(17)}
    assert set(found["samples"]) == {*scale, "call", "call_ticks"}
    assert all(len(ticks) == 2 for ticks in found["samples"].values())
    assert 32 <= found["counts"]["lines"]
    assert found["counts"]["chained"] == found["counts"]["lines"] // 8 * 7


def test_raw_memory() -> None:
    cores = sorted(os.sched_getaffinity(0))
    done = bench("--raw", "memory", "mib=2", "reps=3")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["counts"]["cores"] == len(cores)
    for kind in ("plain", "vector"):
        assert len(found["samples"][f"{kind}_bytes_per_tick"]) == 3
        assert all(0 <= p <= 100 for p in found["samples"][f"{kind}_waited_percent"])
    done = bench("--raw", "memory", "mib=2", "reps=1", f"cores={cores[0]}")
    assert json.loads(done.stdout)["counts"]["cores"] == 1


def test_memory_is_measured_against_cores(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    path = tmp_path / "run.json"
    done = bench("memory", "--quick", "--rounds", "1", "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert "memory: each core reads 256 MiB of its own" in done.stdout
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    counts = [m["rounds"][0]["counts"]["cores"] for m in found]
    assert counts[0] == 1 and counts == sorted(set(counts))


def test_the_file_of_plain_calls_is_removed(tmp_path: Path) -> None:
    done = bench(
        *("--raw", "lost", "call=open-write-close", "calls=1"), TMPDIR=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())
    done = bench("--raw", "lost", "call=stat", TMPDIR=str(tmp_path / "none"))
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("args", "status", "reason"),
    [
        (["calls", "batch=0"], 2, "batch=0: give a number from 1 to 512"),
        (["calls", "batch=ten"], 2, "batch=ten: give a number"),
        (["calls", "speed=1"], 2, '"speed=1" isn\'t KEY=VALUE with one of'),
        (["calls", 'cores="'], 2, "give a word, or a list"),
        (["calls", "call=fork"], 1, "call=fork: give close, read, pread or getppid"),
        (["calls", "core=4000"], 1, "core=4000: can't be used here"),
        (["timers", "scenario=x"], 1, "scenario=x: give dormant, all"),
        (["reads", "variant=sync"], 1, "variant=sync: give uring or liburing"),
        (["load"], 1, "load: give port=N"),
        (["load", "port=1", "mode=ftp"], 1, "mode=ftp: give echo, http or exact"),
        (["load", "port=1"], 1, "load: connecting: Connection refused"),
        (["load", "port=70000"], 2, "port=70000: give a number from 1 to 65535"),
        (
            ["sleep"],
            2,
            "--raw sleep: give calls, timers, reads, events, load, rounds, signals, "
            "steps, lost, pollute, footprint or memory",
        ),
        (["rounds", "port=1"], 1, "rounds: give port=N and pid=N"),
        (["rounds", *HERE, "conns=old"], 1, "rounds: conns: give new or kept"),
        (["rounds", *HERE, "mode=exact"], 1, "give request=HEX and answer=HEX"),
        (["rounds", *HERE, *EXACT, "answer=0"], 1, "request=HEX and answer=HEX"),
        (["rounds", *HERE, *EXACT, "answer=0g"], 1, "request=HEX and answer=HEX"),
        (["rounds", *HERE, "mode=http", "udp=1"], 1, "mode=http: udp=1: not over"),
        (["rounds", *HERE, "address=here"], 1, "rounds: address and source are as"),
        (["rounds", *HERE, "source=me"], 1, "rounds: address and source are as"),
        (["rounds", *HERE, "source=10.9.8.7"], 1, "rounds: connecting: Cannot assign"),
        (["load", "port=1", "rate=1", "source=me"], 1, "load: address and source are"),
        (["lost"], 1, "call=close: give none, getppid, stat, pread, pwrite,"),
        (["lost", "call=stat", "work=x"], 1, "work=x: give tree or heap"),
        (["steps", "work=x"], 1, "work=x: give tree or heap"),
        (["pollute", "call=stat", "every=3"], 1, "every=3: give a power of two"),
        (["pollute", "every=8192"], 2, "every=8192: give a number from 1 to 4096"),
        (["footprint", "call=stat", "level=l3"], 1, "level=l3: give l1d, l1i"),
        (["memory", "cores=x"], 1, "cores=x: give cores that this process may use"),
        (["memory", "mib=0"], 2, "mib=0: give a number from 1 to 65536"),
        (["events"], 1, "events: scenario=dormant: give dequeue or preempt"),
        (["events", "scenario=preempt"], 1, "events: preempt: give cores=N"),
    ],
)
def test_bad_settings_are_one_line(args: list[str], status: int, reason: str) -> None:
    done = bench("--raw", *args)
    assert done.returncode == status
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


# The load generator, the example servers that it loads, and bad ones.

EXAMPLES = ["echo-threads", "echo-epoll", "http-threads", "http-epoll"]


@contextlib.contextmanager
def example_process(name: str) -> Iterator[tuple[int, int]]:
    """One of the example servers; its port and its process."""
    path = Path(command()).resolve().parents[1] / "examples" / name
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
    """A server of one connection."""
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
    assert 1 / 20 <= found["counts"]["jain"] <= 1
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
    """Answers in two pieces."""

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
    assert "the answer isn't the one given" in wrong.stderr
    assert "more came than was asked for" in short.stderr


@pytest.mark.parametrize("conns", ["new", "kept"])
def test_rounds_come_from_many_addresses(conns: str) -> None:
    Stream.clients.clear()
    with answering(StreamServer, Stream) as port:
        some = ("source=127.0.0.9", "sources=2", f"conns={conns}", "count=30")
        done = exact(port, SAID, *some)
    assert done.returncode == 0, done.stderr
    assert Stream.clients == {"127.0.0.9", "127.0.0.10"}


def test_rounds_are_as_many_as_asked_for() -> None:
    with answering(StreamServer, Stream) as port:
        counts = [
            json.loads(exact(port, SAID, f"count={count}").stdout)["counts"]
            for count in (1, 299, 300)
        ]
    assert [c["answers"] for c in counts] == [3, 300, 300]
    assert [c["rounds"] for c in counts] == [1, 100, 100]


class Pages(socketserver.BaseRequestHandler):
    """A page for each connection; from the third on, they differ."""

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
    assert "rounds: connection " in done.stderr
    assert ", after 50 answers: the answer isn't the first connection's" in done.stderr


def test_rounds_of_datagrams() -> None:
    with answering(socketserver.UDPServer, Datagram) as port:
        done = exact(port, SAID, "udp=1", "source=127.0.0.3")
        short = exact(port, SAID[:-1], "udp=1")
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)["counts"]
    assert counts["warmed"] == counts["answers"] + 50 * 3
    assert "more came than was asked for" in short.stderr


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
        (close_at_once, "echo", "after 0 answers: the server closed it"),
        (say_nothing, "echo", "after 0 answers: no answer for 2 seconds"),
        (fall_silent, "echo", "after 100 answers: no answer for 2 seconds"),
        (echo_wrongly, "echo", "what came back isn't what was sent"),
        (echo_the_same_again, "echo", "connection 1 of 1, after "),
        (not_found, "http", "the answer isn't HTTP/1.1 200"),
        (other_pages, "http", "after 1 answers: the answer isn't what it was"),
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
    """All that a server sends until it closes."""
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


@pytest.mark.parametrize("name", ["http-threads", "http-epoll"])
def test_the_example_web_servers_cut_requests_apart(name: str) -> None:
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


@pytest.mark.parametrize("name", ["http-threads", "http-epoll"])
@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: x\n\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"G\0T / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"x" * 4096, 400),
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
def test_the_example_echo_servers_outlast_a_client_that_doesn_t_listen(
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


def test_the_current_folder_is_no_source_of_modules(tmp_path: Path) -> None:
    for name in ("flexbench", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    done = bench("--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: flexsc bench")


def test_a_folder_asked_for_is_the_only_one(tmp_path: Path) -> None:
    done = bench("--help", FLEXBENCH_DIR=str(tmp_path))
    assert done.returncode == 1
    assert f"flexbench isn't in {tmp_path}; set FLEXBENCH_DIR" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_measures_and_keeps(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    path = tmp_path / "run.json"
    done = bench("timers", "--quick", "--rounds", "1", "--out", str(path))
    assert done.returncode == 0, done.stderr
    assert "timers: nanoseconds" in done.stdout
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["machine"]["kernel"] == os.uname().release
    scenarios = {m["settings"]["scenario"] for m in found["measurements"]}
    assert scenarios == {"dormant", "all", "cancel", "cancel-all"}


def test_the_cost_of_calls_is_measured(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    path = tmp_path / "run.json"
    done = bench(
        *("cost", "--quick", "--rounds", "1", "--out", str(path)), patience=SLOW
    )
    assert done.returncode == 0, done.stderr
    for title in ("figure 1", "figure 2", "figure 3", "figure 4", "table 1"):
        assert f"({title}" in done.stdout
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    number = {
        name: len([m for m in found if m["bench"] == name])
        for name in ("steps", "lost", "pollute", "footprint")
    }
    # Two works; four calls; two works, three frequencies, with and without calls;
    # seven calls and four levels. Steps and levels aren't known everywhere.
    assert number["lost"] == 4
    assert number["pollute"] == 12
    assert number["steps"] in (0, 2)
    assert number["footprint"] in (0, 7, 14, 21, 28)
    sums = {m["rounds"][0]["counts"]["sum"] for m in found if m["bench"] == "steps"}
    assert sums in (set(), {2576399855, 1284487459})


def test_blocking_servers_are_measured_by_turns(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
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


def networked(kind: str, *args: str, patience: int = TIMEOUT, **env: str) -> str:
    """A bench's output on a network of this kind; skip the test where there is none."""
    if kind != "lo" and os.geteuid() != 0:
        pytest.skip("network namespaces take root")
    done = bench(*args, "--network", kind, patience=patience, **env)
    if "not permitted" in done.stderr or "Read-only" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flexsc run is for x86-64")
@pytest.mark.parametrize("kind", ["lo", "veth"])
def test_a_program_with_an_event_loop_is_measured(tmp_path: Path, kind: str) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    # Without perf, which takes longer.
    there = tmp_path / "bin"
    there.mkdir()
    (there / "python3").symlink_to(Path(sys.executable).resolve())
    needed = [("taskset", "util-linux"), ("named", "bind9"), ("ip", "iproute2")]
    for name, package in (*needed, ("sh", "dash")):
        (there / name).symlink_to(installed(name, package))
    path = tmp_path / "run.json"
    quickly = ["--quick", "--rounds", "1", "--seconds", "1", "--connections", "8"]
    said = networked(
        *(kind, "programs", "bind", *quickly, "--out", str(path)), PATH=str(there)
    )
    assert "programs with an event loop: us of the processor" in said
    assert f"\nnetwork {kind}, 1 rounds of 1 s\n" in said
    assert "bind, 1 kept" in said and "bind, 8 kept" in said
    assert "perf isn't installed" in said
    found = json.loads(path.read_text(encoding="utf-8"))
    for measurement in found["measurements"]:
        (round_,) = measurement["rounds"]
        (us,) = round_["samples"]["cpu_us"]
        assert 0 < us < 1e6 and round_["counts"]["answers"] > 0
        assert round_["samples"]["disturbed_percent"][0] >= 0
        assert measurement["settings"]["network"] == kind
    assert len(found["measurements"]) == 4


def test_the_calls_and_instructions_of_a_request_are_counted(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    needed = [("valgrind", "valgrind"), ("perf", "linux-perf"), ("apache2", "apache2")]
    for name, package in (*needed, ("memcached", "memcached")):
        installed(name, package)
    path = tmp_path / "run.json"
    words = ["counts", "memcached", "apache", "--quick", "--out", str(path)]
    done = bench(*words, patience=SLOW)
    if "perf: " in done.stdout:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["notes"] == []
    by_mode = {
        (m["settings"]["program"], m["settings"]["mode"]): m["rounds"][0]["samples"]
        for m in found["measurements"]
    }
    (get,) = by_mode["memcached", "kept"]["calls_per_request"]
    # A read and a sendmsg for each, and an epoll_wait for all that are there. It is a
    # difference of two counts, of which one may have an end more than the other.
    assert 1.9 < get < 2.5
    for samples in by_mode.values():
        (calls,) = samples["calls_per_request"]
        (executed,) = samples["instructions_per_request"]
        assert samples["instructions_per_call"] == [executed / calls]
        assert 500 < executed < 200_000
    kept, closed = (by_mode["apache", mode] for mode in ("kept", "closed"))
    for series in ("calls_per_request", "instructions_per_request"):
        assert kept[series][0] < closed[series][0]


# A perf on a processor that counts: each event is counted so often as it has letters.
COUNTING_PERF = """\
#!{python} -IS
import re, signal, sys, threading
events = re.findall(r"[\\w.-]+:[uk]", " ".join(sys.argv))
text = "".join(f"{{len(event)}},,{{event}},1000,100.00,,\\n" for event in events)
if "-p" in sys.argv:
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    interrupted.wait({patience})
    open(sys.argv[sys.argv.index("-o") + 1], "w").write(text)
else:
    sys.stderr.write(text)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flexsc run is for x86-64")
def test_counters_are_read_while_a_program_is_loaded(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    installed("memcached", "memcached")
    perf = tmp_path / "perf"
    text = COUNTING_PERF.format(python=sys.executable, patience=TIMEOUT)
    perf.write_text(text, encoding="utf-8")
    perf.chmod(0o755)
    path = tmp_path / "run.json"
    # Long enough for a perf that is slow to begin.
    quickly = ["--quick", "--rounds", "1", "--seconds", "3", "--out", str(path)]
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = bench("counters", "memcached", *quickly, **env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "counters: memcached, misses in 1,000 instructions" in done.stdout
    measured = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    assert [m["settings"]["variant"] for m in measured] == ["native", "flexsc"]
    for measurement in measured:
        samples = measurement["rounds"][0]["samples"]
        assert samples["ipc_user"] == [len("instructions:u") / len("cycles:u")]
        assert samples["branch_mpki_kernel"] == [
            1000 * len("branch-misses:k") / len("instructions:k")
        ]


def test_a_program_whose_tools_are_missing_is_not_counted(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    (tmp_path / "python3").symlink_to(Path(sys.executable).resolve())
    for name in ("sh", "taskset"):
        (tmp_path / name).symlink_to(installed(name, "util-linux"))
    done = bench("counts", "bind", PATH=str(tmp_path))
    assert done.returncode == 1
    assert "counts: bind is left out: perf isn't installed" in done.stdout


@pytest.mark.parametrize(
    ("kind", "modes"),
    [
        ("lo", ["plain", "tls", "proxy"]),
        ("rps", ["new", "1m"]),
    ],
)
def test_nginx_is_measured_with_the_module(
    tmp_path: Path, kind: str, modes: list[str]
) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    built = Path(command()).resolve().parents[1] / "nginx/ngx_http_flexsc_module.so"
    if not built.is_file():
        pytest.skip("the module isn't built: install nginx-dev")
    for name in ("nginx", "wrk", "openssl"):
        installed(name, name)
    path = tmp_path / "run.json"
    quickly = ["--quick", "--rounds", "1", "--seconds", "1", "--out", str(path)]
    said = networked(kind, "nginx", *modes, *quickly)
    assert f"module and without; network {kind}, 1 rounds of 1 s\n" in said
    found = json.loads(path.read_text(encoding="utf-8"))
    settings = [m["settings"] for m in found["measurements"]]
    both = ("module", "stock")
    assert [(s["mode"], s["variant"], s["network"]) for s in settings] == [
        (mode, variant, kind) for mode in modes for variant in both
    ], said
    for measurement in found["measurements"]:
        (us,) = measurement["rounds"][0]["samples"]["cpu_us"]
        assert 0 < us < 1e6


@pytest.mark.parametrize("kind", ["lo", "napi"])
def test_the_study_compares_models(tmp_path: Path, kind: str) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    installed("wrk", "wrk")
    path = tmp_path / "run.json"
    models = ["loops", "stages"]
    if platform.machine() == "x86_64":
        models.append("threads-flexsc")
    quickly = ["--quick", "--rounds", "1", "--seconds", "1", "--connections", "16"]
    said = networked(kind, "study", "page", *models, *quickly, "--out", str(path))
    assert f"16 of them, a file of 1024 bytes; network {kind}, 1 rounds" in said
    found = json.loads(path.read_text(encoding="utf-8"))
    assert [m["settings"]["model"] for m in found["measurements"]] == [
        *models,
        "events",
    ], said
    for measurement in found["measurements"]:
        samples = measurement["rounds"][0]["samples"]
        assert samples["requests_per_s"][0] > 0
        assert 0 < samples["cpu_us"][0] < 1e6


@pytest.mark.parametrize(("kind", "workload"), [("lo", "pages"), ("napi", "specweb")])
def test_models_are_offered_sessions(tmp_path: Path, kind: str, workload: str) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    path = tmp_path / "run.json"
    said = networked(
        *(kind, "study", workload, "loops", "--quick", "--out", str(path)),
        patience=SLOW,
        TMPDIR=str(tmp_path),
    )
    assert f"study {workload}: " in said and "(S8)" in said
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    both = ["loops", "events"]
    assert [
        (m["bench"], m["settings"]["model"], m["settings"].get("times")) for m in found
    ] == [("study-peak", name, None) for name in both] + [
        ("study-offered", name, times) for times in ("0.5", "1", "2") for name in both
    ], said
    for measurement in found:
        (one,) = measurement["rounds"]
        # On a busy machine, a server that is offered twice its peak may answer in the
        # warm-up alone.
        answers = one["counts"]["answered"] + one["counts"]["warm_up"]
        assert answers > 0
        assert 0 < one["samples"]["server_us"][0] < 1e6
        wrong = [f"wrong_{what}" for what in ("status", "length", "body", "head")]
        assert sum(one["counts"][end] for end in wrong) == 0
        if measurement["settings"].get("times") != "2":
            assert one["samples"]["answers_per_s"][0] > 0
            assert one["counts"]["answered"] > 0
        assert measurement["settings"]["network"] == kind
    peaks = [m["rounds"][0]["samples"]["jain"][0] for m in found[:2]]
    assert all(0 < jain <= 1 for jain in peaks)
    # The files are gone.
    assert [p for p in tmp_path.iterdir() if p.name.startswith("flexbench-")] == []


def test_models_read_from_the_disk(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    path = tmp_path / "run.json"
    done = bench(
        *("study", "disk", "events", "--quick", "--out", str(path)),
        patience=SLOW,
        TMPDIR=str(tmp_path),
    )
    if " disk is left out: " in done.stdout:
        reasons = ("take root", "there are no cgroups", "cgroups: ", "isn't on a disk")
        assert any(reason in done.stdout for reason in reasons), done.stdout
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    assert len(found) == 4
    for measurement in found:
        settings, (one,) = measurement["settings"], measurement["rounds"]
        assert settings["memory_bytes"] == 11_551_890
        assert settings["tuning"].endswith("--body read")
        assert one["counts"]["answered"] > 0
        assert one["counts"]["disk_reads"] > 0
        assert one["counts"]["disk_read_bytes"] > 0


def test_models_have_silent_clients(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    installed("wrk", "wrk")
    path = tmp_path / "run.json"
    models = ["threads", "serve"]
    said = networked(
        *("lo", "study", "idle", *models, "--quick", "--out", str(path)), patience=SLOW
    )
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    names = [*models, "events"]
    settings = [(m["settings"]["model"], m["settings"]["idle"]) for m in found]
    count = settings[1][1]
    assert 1000 <= count <= 10_000
    assert settings == [(name, n) for name in names for n in (0, count)], said
    assert f"beside none and beside {count:,} that are silent" in said
    for measurement in found:
        samples = measurement["rounds"][0]["samples"]
        assert samples["requests_per_s"][0] > 0
        assert 0 < samples["cpu_us"][0] < 1e6


def test_the_study_tells_where_time_goes(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    installed("wrk", "wrk")
    path = tmp_path / "run.json"
    quickly = ["--quick", "--rounds", "1", "--seconds", "1", "--connections", "16"]
    said = networked("lo", "study", "breakdown", "loops", *quickly, "--out", str(path))
    found = json.loads(path.read_text(encoding="utf-8"))
    assert [m["settings"]["model"] for m in found["measurements"]] == [
        "loops",
        "events",
    ], said
    for measurement in found["measurements"]:
        samples = measurement["rounds"][0]["samples"]
        for series, count in (("send", 1), ("file", 3)):
            assert samples[series][0] == pytest.approx(count, abs=0.3)
        # A connection's end has calls, too: many, if a slow machine makes few requests.
        for series in ("receive", "close", "calls"):
            assert samples.get(series, [1])[0] > 0.7
        shares = {k: v[0] for k, v in samples.items() if k.startswith("share_")}
        if shares:
            assert sum(shares.values()) == pytest.approx(100)
            server = 100 - shares["share_others"] - shares["share_idle"]
            assert shares["share_other"] <= max(2, 0.25 * server)
        else:
            assert "where time goes is left out: perf" in said


def test_the_study_weighs_idle_connections(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    path = tmp_path / "run.json"
    quickly = ["--rounds", "1", "--connections", "500"]
    models = ["threads", "loops", "serve"]
    said = networked("lo", "study", "memory", *models, *quickly, "--out", str(path))
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    assert [m["settings"]["model"] for m in found] == [*models, "events"], said
    samples = {m["settings"]["model"]: m["rounds"][0]["samples"] for m in found}
    # What a connection's receive, head and body touch is a page each at least.
    for name in ("loops", "events"):
        assert 4096 < samples[name]["rss_bytes"][0] < 16384, said
    # A thread's stack is beside these.
    assert samples["threads"]["rss_bytes"][0] > samples["events"]["rss_bytes"][0]
    assert samples["threads"]["threads"][0] > 500


def test_the_study_tells_how_evenly_copies_share(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    installed("wrk", "wrk")
    path = tmp_path / "run.json"
    quickly = ["--quick", "--rounds", "1", "--seconds", "1", "--connections", "32"]
    said = networked("lo", "study", "copies", *quickly, "--out", str(path))
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    ways = [(m["settings"]["copies"], m["settings"]["accept"]) for m in found]
    assert ways == [(2, "shared"), (2, "port"), (4, "shared"), (4, "port")], said
    for measurement in found:
        samples = measurement["rounds"][0]["samples"]
        copies = measurement["settings"]["copies"]
        assert 100 / copies <= samples["fullest_percent"][0] <= 100
        times = samples["fullest_times"][0]
        assert times == pytest.approx(samples["fullest_percent"][0] * copies / 100)


def test_the_study_has_words() -> None:
    done = bench("study", "fast")
    assert (done.returncode, done.stdout) == (1, "")
    assert "study: fast: give page, new, pages, specweb, " in done.stderr
    assert done.stderr.count("\n") == 1
    done = bench("serve", "--tune")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "flexsc: bench: serve: --tune is of study\n"


def test_the_study_s_servers_have_as_many_cores_as_clients_leave() -> None:
    said = {
        ("serve", "--cores", "2"): "serve: --cores is of study",
        ("study", "page", "--cores", "2"): "study page is of one core, and --cores of "
        "pages, specweb, disk",
        ("study", "--cores", "1000"): "--cores 1000: of the ",
        ("study", "--cores", "0"): "argument --cores: invalid",
        ("study", "--cores", "1,two"): "argument --cores: invalid",
    }
    for words, error in said.items():
        done = bench(*words)
        assert (done.returncode != 0, done.stdout) == (True, "")
        assert error in done.stderr


def test_programs_have_names() -> None:
    done = bench("programs", "emacs")
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        "programs: emacs: give apache, mariadb, apache-entries, nginx, " in done.stderr
    )
    assert done.stderr.count("\n") == 1


def test_a_sweep_is_of_servers() -> None:
    done = bench("calls", "--sweep")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "flexsc: bench: calls: --sweep is of serve, programs\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flexsc run is for x86-64")
def test_a_sweep_goes_through_numbers_of_clients(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    installed("named", "bind9")
    path = tmp_path / "run.json"
    quickly = ["--sweep", "--quick", "--rounds", "1", "--seconds", "1"]
    done = bench("programs", "bind", *quickly, "--out", str(path))
    assert done.returncode == 0, done.stderr
    found = json.loads(path.read_text(encoding="utf-8"))["measurements"]
    settings = [m["settings"] for m in found]
    assert {(s["mode"], s["connections"]) for s in settings} == {
        *[("kept", 1), ("kept", 16), ("kept", 256)]
    }
    assert "bind, 256 kept" in done.stdout


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flexsc run is for x86-64")
def test_programs_that_are_there_are_measured(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one core only")
    if not Path("/usr/lib/apache2/modules/mod_mpm_worker.so").exists():
        pytest.skip("no mod_mpm_worker.so: install apache2")
    # Without MariaDB, which takes longer.
    there = tmp_path / "bin"
    there.mkdir()
    (there / "python3").symlink_to(Path(sys.executable).resolve())
    for name in ("taskset", "apache2", "wrk"):
        (there / name).symlink_to(installed(name, name))
    path = tmp_path / "run.json"
    quickly = ["--quick", "--rounds", "1", "--seconds", "1", "--connections", "8"]
    done = bench("programs", *quickly, "--out", str(path), PATH=str(there))
    assert done.returncode == 0, done.stderr
    assert "programs: Apache, 1 KiB, 8 connections" in done.stdout
    assert "comes with Debian's package mariadb-server" in done.stdout
    found = json.loads(path.read_text(encoding="utf-8"))
    for one in found["measurements"]:
        shares = one["rounds"][0]["samples"]
        parts = [shares[f"{p}_percent"][0] for p in ("user", "system", "idle")]
        assert min(parts) >= 0 and 0 < sum(parts) < 100.1
    settings = [m["settings"] for m in found["measurements"]]
    assert [(s["mode"], s["variant"]) for s in settings] == [
        *[("kept", "native"), ("kept", "flexsc")],
        *[("closed", "native"), ("closed", "flexsc")],
    ]

# SPDX-License-Identifier: MIT
"""memcached on libflexsc: its answers, its system calls, and some of its own tests."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from fixtures import PATIENCE, command, flexsc
from flexbench.network import Network
from flexbench.samples import BenchError
from flexstudy import looping, ports
from programs import installed

HERE = Path(ports.PORT)
GET, VALUE = b"get key\r\n", b"VALUE key 0 5\r\nhello\r\nEND\r\n"
# Those of memcached's tests that are about connections.
OWN = (
    *("00-startup", "binary", "chunked-extstore", "conn-limits", "extstore"),
    *("getset", "idle-timeout", "issue_192", "line-lengths", "lru-crawler"),
    *("maxconns", "misbehave", "noreply", "quit", "restart", "shutdown"),
    *("stats-conns", "udp", "unixsocket", "watcher", "watcher_connid"),
)
REQUESTS = 200
CORES = sorted(os.sched_getaffinity(0))


def ported(*words: str) -> subprocess.CompletedProcess[str]:
    script = [sys.executable, str(HERE / "port.py"), *words]
    return subprocess.run(script, capture_output=True, text=True, check=False)


def test_another_source_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "memcached.h").write_text("int here;\n", encoding="ascii")
    done = ported(str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == (
        "port.py: memcached.h: \\} LIBEVENT_THREAD; occurs 0 times: "
        "not memcached 1.6.18?\n"
    )
    assert "port.py: " in ported(str(tmp_path / "missing")).stderr


@pytest.mark.long
def test_an_unreachable_archive_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(ports, "mirror", lambda: "http://127.0.0.1:9/debian")
    monkeypatch.setattr(ports, "library", lambda _: {})
    monkeypatch.setattr(ports, "output", without_headers(ports.output))
    with pytest.raises(BenchError, match=r"^can't build memcached: apt-get: .+$"):
        ports.memcached(command())
    assert not list((tmp_path / "flexsc").iterdir())


def without_headers(output):  # type: ignore[no-untyped-def]
    """Only apt runs."""

    def found(words, *rest):  # type: ignore[no-untyped-def]
        return "" if words[0] == "pkg-config" else output(words, *rest)

    return found


@pytest.fixture(scope="session")
def built() -> ports.Built:
    try:
        return ports.memcached(command())
    except BenchError as error:
        pytest.skip(str(error))


@contextmanager
def served(folder: Path, kernel_core: int | None = None) -> Iterator[tuple[int, int]]:
    """The port of a running server, and its process. With a kernel core, the server runs
    on the others."""
    port = Network().free_port()
    user = ("-u", "nobody") if os.geteuid() == 0 else ()
    words = [str(folder / "memcached"), *user, "-t", "1", "-U", "0"]
    words += ["-l", "127.0.0.1", "-p", str(port)]
    env = dict(os.environ)
    if kernel_core is not None:
        env["MEMCACHED_KERNEL_CORES"] = str(kernel_core)
        others = sorted(set(CORES) - {kernel_core})
        words = ["taskset", "-c", ",".join(map(str, others)), *words]
    with subprocess.Popen(words, env=env) as process:
        try:
            program = looping.Program("memcached", process.pid, port, sys.stderr)
            looping.wait(Network(), program, looping.KINDS["memcached"].question)
            yield port, process.pid
        finally:
            process.send_signal(signal.SIGTERM)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE)


def received(client: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (more := client.recv(size - len(found))):
        found += more
    return found


def exchanged(client: socket.socket, request: bytes, answer: bytes) -> None:
    client.sendall(request)
    assert received(client, len(answer)) == answer


@pytest.mark.long
def test_answers_are_whole_and_in_order(built: ports.Built) -> None:
    """Requests in parts, many at once, long values, and clients that leave."""
    value = bytes(range(256)) * 3500
    large = b"VALUE large 0 %d\r\n%s\r\nEND\r\n" % (len(value), value)
    with served(built.ported) as (port, _), connected(port) as client:
        for byte in b"set key 0 0 5\r\nhello\r":
            client.sendall(bytes([byte]))
        exchanged(client, b"\n", b"STORED\r\n")
        # More requests than the server reads, and more answers than it sends, at once.
        exchanged(client, GET * 5000, VALUE * 5000)
        store = b"set large 0 0 %d\r\n%s\r\n" % (len(value), value)
        exchanged(client, store + b"get large\r\n" + GET, b"STORED\r\n" + large + VALUE)
        with connected(port) as slow:
            slow.sendall(b"get large\r\n" * 20)  # and reads none of them yet
            slow.sendall(GET * 20000)
            exchanged(client, GET, VALUE)
            assert received(slow, 20 * len(large)) == large * 20
            assert received(slow, 20000 * len(VALUE)) == VALUE * 20000
        with connected(port) as leaving:
            leaving.sendall(b"get large\r\n" * 20)
        exchanged(client, GET, VALUE)
        client.sendall(b"quit\r\n")
        assert client.recv(1) == b""


def calls_per_request(
    folder: Path, count: int, output: Path, kernel_core: int | None = None
) -> tuple[dict[str, float], dict[int, float]]:
    """The system calls by name, with "total", as strace counts them, and the calls that
    each kernel core has executed. Some threads sleep by a clock; these calls don't count.
    """
    strace = installed("strace", "strace")
    with served(folder, kernel_core) as (port, pid), ExitStack() as stack:
        clients = [stack.enter_context(connected(port)) for _ in range(count)]
        exchanged(clients[0], b"set key 0 0 5\r\nhello\r\n", b"STORED\r\n")
        for client in clients:
            exchanged(client, GET, VALUE)
        words = [strace, "-c", "-f", "-o", str(output), "-p", str(pid)]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stderr
            if "attached" not in tracer.stderr.readline():
                pytest.skip("strace can't attach")
            for _ in range(REQUESTS):
                for client in clients:
                    client.sendall(GET)
                for client in clients:
                    assert received(client, len(VALUE)) == VALUE
            tracer.send_signal(signal.SIGINT)
            tracer.communicate()
        shown = flexsc("stat", str(pid)).stdout
    rows = [line.split() for line in output.read_text(encoding="ascii").splitlines()]
    calls = {row[-1]: int(row[3]) for row in rows if row[3:] and row[3].isdigit()}
    for name in ("clock_nanosleep", "restart_syscall"):
        calls["total"] -= calls.pop(name, 0)
    cores = re.findall(r"^  core (\d+) +(\d+)  ", shown, re.MULTILINE)
    return (
        {name: n / (REQUESTS * count) for name, n in calls.items()},
        {int(core): int(n) / (REQUESTS * count) for core, n in cores},
    )


needs_two_cores = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")


@pytest.mark.long
@pytest.mark.parametrize(("count", "most"), [(1, 2.1), (64, 1.0)])
@pytest.mark.parametrize(
    "core",
    [
        pytest.param(None, id="own-core"),
        pytest.param(CORES[-1], id="kernel-core", marks=needs_two_cores),
    ],
)
def test_a_request_takes_few_system_calls(
    built: ports.Built, tmp_path: Path, count: int, most: float, core: int | None
) -> None:
    """Stock memcached makes 3 for one connection, and 2 for many."""
    stock, _ = calls_per_request(built.stock, count, tmp_path / "stock")
    calls, cores = calls_per_request(built.ported, count, tmp_path / "ported", core)
    assert 0 < calls["io_uring_enter"]
    assert calls["total"] <= most < stock["total"], (calls, stock)
    if core is None:
        assert not cores
        return
    # The worker only sleeps and wakes the poller, which receives (as parts of a single
    # call) and sends.
    assert calls["total"] - calls["io_uring_enter"] < 0.05, calls
    assert list(cores) == [core] and cores[core] >= 1, cores


@pytest.mark.long
@pytest.mark.parametrize("name", OWN)
def test_it_passes_the_tests_of_memcached(built: ports.Built, name: str) -> None:
    installed("prove", "perl")
    suite = [sys.executable, str(HERE / "suite.py"), command(), f"{name}.t"]
    done = subprocess.run(suite, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

# SPDX-License-Identifier: MIT
"""The small example programs for the library work as documented."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import PATIENCE, command


def example(name: str) -> str:
    path = Path(command()).resolve().parents[1] / "examples" / name
    if not path.is_file():
        pytest.skip(f"{path} isn't built")
    return str(path)


@contextlib.contextmanager
def greeting(text: bytes) -> Iterator[tuple[int, threading.Event]]:
    """A server that sends this to its first client, and nothing afterwards."""
    # fetch connects to the first address of localhost.
    family = socket.getaddrinfo("localhost", 0)[0][0]
    with socket.create_server(("localhost", 0), family=family) as listener:
        connections = []
        met = threading.Event()

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                connections.append(connection)
                connection.sendall(text)
                met.set()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1]), met
        thread.join(PATIENCE)
        for connection in connections:
            connection.close()


def fetch(port: int, seconds: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [example("fetch"), "localhost", str(port), str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_fetch_prints_a_server_s_response() -> None:
    with greeting(b"hello") as (port, _), fetch(port, 30) as program:
        out, _ = program.communicate(timeout=PATIENCE)
        assert out == "hello"
        assert program.returncode == 0


def test_fetch_times_out() -> None:
    with greeting(b"") as (port, _), fetch(port, 1) as program:
        _, error = program.communicate(timeout=PATIENCE)
        assert "receiving: Timer expired" in error
        assert program.returncode == 1


def test_fetch_is_interrupted() -> None:
    with greeting(b"") as (port, met), fetch(port, 60) as program:
        assert met.wait(PATIENCE)
        program.send_signal(signal.SIGINT)
        _, error = program.communicate(timeout=PATIENCE)
        assert program.returncode == 1
        assert error.startswith(("connecting: ", "receiving: "))


@contextlib.contextmanager
def echo(*arguments: str) -> Iterator[int]:
    with subprocess.Popen(
        [example("echo"), "0", *arguments], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout
            yield int(server.stdout.readline())
            assert server.poll() is None
        finally:
            server.kill()


def exchange(port: int, data: bytes) -> bytes:
    """Send data while receiving, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:

        def send() -> None:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        back = bytearray()
        while len(back) < len(data) and (part := client.recv(65536)):
            back += part
        sender.join(PATIENCE)
    return bytes(back)


@pytest.mark.parametrize("arguments", [(), ("one",)])
def test_an_echo_is_whole(arguments: tuple[str, ...]) -> None:
    data = bytes(range(256)) * 200
    with echo(*arguments) as port, contextlib.ExitStack() as idle:
        for _ in range(50):
            idle.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
        for _ in range(20):
            assert exchange(port, data) == data


def test_an_echo_waits_for_a_client_that_does_not_read() -> None:
    with echo() as port, socket.create_connection(("127.0.0.1", port)) as client:
        client.setblocking(False)
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                sent += client.send(bytes(1 << 16))
        # The server still has buffers for other clients, and loses no data.
        assert exchange(port, b"still there") == b"still there"
        client.settimeout(PATIENCE)
        while sent:
            sent -= len(client.recv(1 << 16))


@pytest.mark.parametrize("room", [4, 9, 1000])
def test_a_file_is_used_through_less_memory(tmp_path: Path, room: int) -> None:
    page = os.sysconf("SC_PAGESIZE")
    before = bytearray(os.urandom(64 * page + 77))
    path = tmp_path / "file"
    path.write_bytes(before)
    done = subprocess.run(
        [example("pager"), path, str(room)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if "can't be events here" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stderr) == (0, "")
    for at in range(0, len(before), page):
        before[at] = (before[at] + 4) % 256
    assert path.read_bytes() == before
    fetched, written = map(int, re.findall(r"(\d+) (?:fetched|written)", done.stdout))
    assert fetched >= written >= 65
    assert room < 65 or (fetched, written) == (65, 65)


def test_a_computing_program_is_notified_of_signals() -> None:
    with subprocess.Popen(
        [example("hello-events"), f"{PATIENCE:.0f}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as hello:
        assert hello.stdout and hello.stderr
        # From then on, the program has its event control block.
        assert "computing" in hello.stderr.readline()
        for _ in range(3):
            time.sleep(0.5)
            hello.send_signal(signal.SIGINT)
            assert hello.stdout.readline() == "received SIGINT\n"
        assert re.fullmatch(r"[1-9]\d* primes in \d+ seconds\n", hello.stdout.read())
        assert hello.wait(PATIENCE) == 0

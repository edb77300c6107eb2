# SPDX-License-Identifier: MIT
"""memcached under flexsc run: libevent in threads, with pipes between them."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures import PATIENCE, eventually
from programs import (
    UNPATCHED,
    WAYS,
    Program,
    at_once,
    carried_by,
    free_port,
    installed,
    started,
)


class Cache:
    """One connection to memcached, in its text protocol."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()

    def ask(self, line: str, data: bytes | None = None) -> str:
        tail = b"" if data is None else data + b"\r\n"
        self.socket.sendall(line.encode() + b"\r\n" + tail)
        return self.file.readline().decode().rstrip()

    def set(self, key: str, data: bytes) -> str:
        return self.ask(f"set {key} 0 0 {len(data)}", data)

    def get(self, key: str) -> bytes | None:
        head = self.ask(f"get {key}").split()
        if head == ["END"]:
            return None
        assert head[:2] == ["VALUE", key]
        data = self.file.read(int(head[3]) + 2)
        assert self.file.readline() == b"END\r\n"
        return data[:-2]


@pytest.fixture(params=(*WAYS, UNPATCHED))
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def port(way: str, tmp_path: Path) -> Iterator[int]:
    """Of a memcached, which has to end as it does natively."""
    port = free_port()
    argv = [
        installed("memcached", "memcached"),
        *("-l", "127.0.0.1", "-p", str(port), "-U", "0"),
        *("-t", "4", "-m", "64", "-c", "512"),
        *(("-u", "nobody") if os.geteuid() == 0 else ()),
    ]
    with started(Program(way, argv, tmp_path / "log")) as program:
        program.listen(port)
        yield port
        assert carried_by(way, [program.process.pid])
        assert program.stop() == 0
        assert program.said() == ""


def test_values_come_back_and_expire(port: int) -> None:
    """What expires does so by a timer of the main thread."""
    with Cache(port) as cache:
        assert cache.set("count", b"0") == "STORED"
        assert cache.ask("set short 0 1 1", b"x") == "STORED"
        assert cache.get("short") == b"x"

        def work(i: int) -> None:
            with Cache(port) as own:
                for j in range(60):
                    value = f"{i} {j}".encode() * (1 + j * 37 % 500)
                    assert own.set(f"key-{i}-{j}", value) == "STORED"
                    assert own.get(f"key-{i}-{j}") == value
                    int(own.ask("incr count 1"))
                assert own.get(f"none-{i}") is None
                big = os.urandom(900_000)
                assert own.set(f"big-{i}", big) == "STORED"
                assert own.get(f"big-{i}") == big

        at_once(40, work)
        assert cache.get("count") == b"2400"
        assert eventually(lambda: cache.get("short") is None, 4)


@pytest.mark.parametrize("way", ["uring-4"], indirect=True)
def test_memccapable_is_content(port: int) -> None:
    """The ASCII protocol's every command; the binary one takes twice as long."""
    tool = installed("memccapable", "libmemcached-tools")
    argv = [tool, "-h", "127.0.0.1", "-p", str(port), "-a"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    assert "All tests passed" in done.stdout + done.stderr

# SPDX-License-Identifier: MIT
"""The server in Java, as its clients see it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest
from bench_runs import plan
from fixtures import PATIENCE, command
from flexbench import examples
from flexstudy import pools
from programs import installed

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


@pytest.fixture
def client() -> Iterator[socket.socket]:
    """A connection to a server that has two threads."""
    installed("java", "default-jdk-headless")
    words = [*pools.java(plan(command())), "0", "127.0.0.1", "2"]
    with (
        examples.started("server", "0-1023", words) as program,
        socket.create_connection(("127.0.0.1", program.port), PATIENCE) as found,
    ):
        yield found


def test_each_request_is_answered_once(client: socket.socket) -> None:
    """The client sends requests in parts, and several at a time."""
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n\r\n"
    )
    answer += pools.PAGE
    answers = client.makefile("rb")
    for part, count in (
        *[(REQUEST, 1), (REQUEST[:-1], 0), (b"\n" + REQUEST * 3, 4)],
        *[(REQUEST + REQUEST[:5], 1), (REQUEST[5:], 1)],
    ):
        client.sendall(part)
        assert answers.read(len(answer) * count) == answer * count
    client.shutdown(socket.SHUT_WR)
    assert answers.read() == b""


def test_a_request_that_is_too_long_ends_the_connection(client: socket.socket) -> None:
    with contextlib.suppress(ConnectionError):
        client.sendall(b"x" * 4096)
        assert client.recv(1) == b""

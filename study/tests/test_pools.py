# SPDX-License-Identifier: MIT
"""The servers with a pool of threads, as their clients see them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
from bench_runs import plan
from fixtures import command
from flexbench import examples
from flexbench.runner import Plan
from flexbench.samples import BenchError
from flexstudy import pools
from programs import installed

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
PATIENCE_S = 60


@pytest.fixture(params=[pools.cpp, pools.java])
def client(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """A connection to a server that has two threads."""
    server: Callable[[Plan], list[str]] = request.param
    if server is pools.java:
        installed("java", "default-jdk-headless")
    try:
        words = server(plan(command()))
    except BenchError as error:
        pytest.skip(str(error))
    with (
        examples.started("server", "0-1023", [*words, "127.0.0.1", "2"]) as program,
        socket.create_connection(("127.0.0.1", program.port), PATIENCE_S) as found,
    ):
        yield found


def answer(client: socket.socket) -> bytes:
    """The page of the next answer."""
    text = b""
    while (end := text.find(b"\r\n\r\n")) < 0 or len(text) < end + 4 + len(pools.PAGE):
        size = 1 if end < 0 else end + 4 + len(pools.PAGE) - len(text)
        text += client.recv(size) or pytest.fail("the connection is closed")
    assert text.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 1024\r\n" in text[: end + 2]
    return text[end + 4 :]


def test_each_request_is_answered_once(client: socket.socket) -> None:
    """Requests that come in parts, and several at a time."""
    for part, answers in (
        *[(REQUEST, 1), (REQUEST[:-1], 0), (b"\n" + REQUEST * 3, 4)],
        *[(REQUEST + REQUEST[:5], 1), (REQUEST[5:], 1)],
    ):
        client.sendall(part)
        assert [answer(client) for _ in range(answers)] == [pools.PAGE] * answers
    client.shutdown(socket.SHUT_WR)
    assert client.recv(1) == b""


def test_a_request_that_is_too_long_ends_the_connection(client: socket.socket) -> None:
    try:
        client.sendall(b"x" * 8192)
        assert client.recv(1) == b""
    except ConnectionError:
        pass

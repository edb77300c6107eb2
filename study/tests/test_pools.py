# SPDX-License-Identifier: MIT
"""The Java server, from its clients' view."""

from __future__ import annotations

import socket

from bench_runs import plan
from fixtures import PATIENCE, command
from flexbench import examples
from flexstudy import pools
from programs import installed

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


def test_the_executor_answers_each_request_once() -> None:
    """The client sends requests in parts, and several at a time."""
    installed("java", "default-jdk-headless")
    words = [*pools.java(plan(command())), "0", "127.0.0.1", "2"]
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n\r\n"
        + pools.PAGE
    )
    with (
        examples.started("server", "0-1023", words) as program,
        socket.create_connection(("127.0.0.1", program.port), PATIENCE) as client,
        client.makefile("rb") as answers,
    ):
        for part, count in (
            *[(REQUEST, 1), (REQUEST[:-1], 0), (b"\n" + REQUEST * 3, 4)],
            *[(REQUEST + REQUEST[:5], 1), (REQUEST[5:], 1)],
        ):
            client.sendall(part)
            assert answers.read(len(answer) * count) == answer * count
        # A request that is too long ends the connection.
        client.sendall(b"x" * 4096)
        assert answers.read() == b""

# SPDX-License-Identifier: MIT
"""flexsc serve with clients that SEND accepts: what concerns clients that come and
go, as without it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fixtures import Server, eventually, request
from test_serve_process import (  # noqa: F401
    test_an_idle_client_makes_room,
    test_clients_may_vanish,
    test_few_descriptors_from_the_start,
    test_nobody_is_accepted_after_sigterm,
    test_sigterm_lets_a_transfer_finish,
    test_the_log_has_a_line_for_each_request,
    test_too_few_descriptors_stop_nothing,
    test_too_many_clients_are_told,
    test_two_loops,
)

Start = Callable[..., Server]


@pytest.fixture
def start(tree: Path) -> Iterator[Start]:
    with contextlib.ExitStack() as stack:

        def start_one(
            *options: str,
            root: Path = tree,
            before: Callable[[], None] | None = None,
        ) -> Server:
            server = Server(root, "--events", "send", *options, before=before)
            stack.callback(server.end)
            return server

        yield start_one


def test_many_clients_come_and_go(start: Start) -> None:
    server = start()
    assert server.get("/hello.txt").status == 200
    before = server.descriptors()
    for _ in range(20):
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(server.client()) for _ in range(40)]
            for client in clients:
                client.send(request("/hello.txt"))
            assert all(client.read().status == 200 for client in clients)
    # Nothing of them is left.
    assert eventually(lambda: server.descriptors() <= before)
    assert server.stop() == 0

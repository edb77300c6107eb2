# SPDX-License-Identifier: MIT
"""Programs with an event loop under flexsc run: for a request their kernel threads
make the system calls that they make natively, and no more.

A loop's calls have nothing to wait for but the one that waits for all, so there is
nothing to be gained by posting them, and two hand-overs to be lost.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from fixtures import PATIENCE, Client
from programs import Program, calls_made, carried_by, free_port, installed, started

WAY = "uring-1"
# Of a loop's turns some may be made for a timer meanwhile, so the least counts.
TRIES = 5
REQUESTS = 300
MORE = 0.2

# Has threads that wait, as a program without any isn't changed at all.
NGINX = """
daemon off;
master_process off;
pid {root}/pid;
error_log {root}/errors;
events {{ }}
http {{
    access_log off;
    keepalive_requests 1000000;
    aio threads;
    client_body_temp_path {root}/body;
    proxy_temp_path {root}/proxy;
    fastcgi_temp_path {root}/fastcgi;
    uwsgi_temp_path {root}/uwsgi;
    scgi_temp_path {root}/scgi;
    server {{
        listen 127.0.0.1:{port};
        return 200 "text";
    }}
}}
"""

# A program that runs, and how it is asked once.
Running = tuple[Program, Callable[[], None]]


@contextmanager
def redis(way: str, root: Path) -> Iterator[Running]:
    port = free_port()
    argv = [installed("redis-server", "redis-server"), "--port", str(port)]
    # Its timer makes six calls, by default ten times a second.
    argv += ["--bind", "127.0.0.1", "--dir", str(root), "--save", "", "--hz", "1"]
    with started(Program(way, argv, root / "log")) as program:
        program.listen(port)
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:

            def ask() -> None:
                client.sendall(b"PING\r\n")
                assert client.recv(64) == b"+PONG\r\n"

            yield program, ask


@contextmanager
def memcached(way: str, root: Path) -> Iterator[Running]:
    port = free_port()
    argv = [installed("memcached", "memcached"), "-l", "127.0.0.1", "-p", str(port)]
    argv += ["-U", "0", *(("-u", "nobody") if os.geteuid() == 0 else ())]
    with started(Program(way, argv, root / "log")) as program:
        program.listen(port)
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:

            def ask() -> None:
                client.sendall(b"get none\r\n")
                assert client.recv(64) == b"END\r\n"

            yield program, ask


@contextmanager
def nginx(way: str, root: Path) -> Iterator[Running]:
    port = free_port()
    (root / "conf").write_text(NGINX.format(root=root, port=port))
    argv = [installed("nginx", "nginx-light"), "-p", str(root)]
    argv += ["-c", str(root / "conf"), "-e", str(root / "errors")]
    with started(Program(way, argv, root / "log")) as program:
        program.listen(port)
        with Client(port) as client:

            def ask() -> None:
                assert client.ask("/").body == b"text"

            yield program, ask


PROGRAMS: dict[str, Callable[[str, Path], AbstractContextManager[Running]]] = {
    "redis": redis,
    "memcached": memcached,
    "nginx": nginx,
}


def calls_per_request(pid: int, ask: Callable[[], None], output: Path) -> float:
    """That the program's kernel threads make."""

    def ask_all() -> None:
        for _ in range(REQUESTS):
            ask()

    return calls_made(pid, ask_all, output).total() / REQUESTS


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_request_takes_no_more_calls_than_natively(name: str, tmp_path: Path) -> None:
    found = {}
    with ExitStack() as stack:
        for way in ("native", WAY):
            (tmp_path / way).mkdir()
            own = PROGRAMS[name](way, tmp_path / way)
            program, ask = stack.enter_context(own)
            # Until each thread is where its calls want it.
            for _ in range(REQUESTS):
                ask()
            assert carried_by(way, [program.process.pid])
            found[way] = (program.process.pid, ask)
        output = tmp_path / "calls"
        natively = calls_per_request(*found["native"], output)
        counts = []
        for _ in range(TRIES):
            counts.append(calls_per_request(*found[WAY], output))
            if counts[-1] <= natively + MORE:
                break
        assert min(counts) <= natively + MORE, output.read_text()

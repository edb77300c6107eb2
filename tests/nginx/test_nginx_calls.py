# SPDX-License-Identifier: MIT
"""System calls of nginx's worker with the module: how many it makes, and what happens
when some are late or fail.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fixtures import PATIENCE, eventually
from nginxes import (
    BIG,
    CLIENTS,
    SMALL,
    Connection,
    Nginx,
    ask_one,
    burst,
    crowd,
    request,
    stopped,
)
from programs import installed

SYS_CLOSE = 3
asked = request  # for tests in which a fixture has its name


@contextlib.contextmanager
def traced(server: Nginx, *options: str) -> Iterator[Path]:
    """Trace the worker's calls with strace. The file can be read afterwards."""
    output = server.root / "calls"
    argv = [installed("strace", "strace"), "-f", "-o", str(output), *options]
    argv += ["-p", str(server.worker())]
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as tracer:
        assert tracer.stderr
        if b"attached" not in tracer.stderr.readline():
            tracer.wait(PATIENCE)
            pytest.skip("strace isn't allowed to trace here")
        try:
            yield output
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait(PATIENCE)


def calls(
    server: Nginx, target: str, rounds: int, n: int, secure: bool = False
) -> float:
    """Return the worker's system calls per request, with n requests in a turn."""
    with crowd(server, n, secure) as many:
        burst(server, many, request(target))
        # After a stop, threads of nginx's pool repeat their futex calls.
        with traced(server, "-c", "-e", "trace=!futex") as output:
            for _ in range(rounds):
                burst(server, many, request(target))
    total = output.read_text().splitlines()[-1].split()
    assert total[-1] == "total"
    return int(total[3]) / (rounds * n)


def closes(server: Nginx, n: int) -> int:
    """Return how many of n connections that end in a turn are closed by a plain call."""
    with crowd(server, n) as many, traced(server, "-e", "trace=close") as output:
        burst(server, many, request("/small", "GET", "Connection: close"))
        for connection in many:
            assert connection.socket.recv(1) == b""
    return output.read_text().count(" close(")


def test_a_request_takes_few_system_calls(
    stock: Nginx, nginx: Nginx, keeping: Nginx
) -> None:
    """A request takes about 4 calls, and 3 if the cache has the file, with the log's."""
    assert calls(stock, "/small", 3, 32) > 8
    assert calls(nginx, "/small", 3, 32) < 5
    assert calls(nginx, "/cached/small", 3, 32) < 4
    assert calls(keeping, "/small", 3, 32) < 5


def test_a_request_over_tls_reads_its_file_once(stock: Nginx, nginx: Nginx) -> None:
    """The library opens and closes the file; all other calls are those of nginx."""
    assert calls(nginx, "/small", 3, 32, secure=True) < (
        calls(stock, "/small", 3, 32, secure=True) - 1
    )

    def reads(server: Nginx) -> int:
        with crowd(server, secure=True) as many:
            burst(server, many, request("/small"))
            with traced(server, "-e", "trace=pread64,preadv2") as output:
                burst(server, many, request("/small"))
        return len(re.findall(r" pread(?:64|v2)\(", output.read_text()))

    assert reads(stock) == reads(nginx) == CLIENTS


def test_other_answers_cost_what_they_cost_in_nginx(stock: Nginx, nginx: Nginx) -> None:
    """The module sends nothing for connections to a proxied server and their clients."""

    def sendings(server: Nginx) -> list[str]:
        with crowd(server) as many:
            burst(server, many, request("/proxy/word/"))
            names = "trace=writev,sendmsg,sendto,io_uring_enter"
            with traced(server, "-e", names) as output:
                burst(server, many, request("/proxy/word/"))
        return sorted(re.findall(r"^\d+ +(\w+)\(", output.read_text(), re.MULTILINE))

    assert sendings(nginx) == sendings(stock)


def test_filtered_contents_are_sent_as_by_nginx(stock: Nginx, nginx: Nginx) -> None:
    """The contents leave in the same pieces. A further small piece would wait for the
    client's acknowledgement.
    """

    def sendings(server: Nginx, ask: bytes) -> list[str]:
        with crowd(server, 1) as one:
            ask_one(server, one[0], ask)
            names = "trace=setsockopt,writev,sendfile,sendmsg,sendto"
            with traced(server, "-e", names) as output:
                ask_one(server, one[0], ask)
        return re.findall(r"^\d+ +(\w+)\(", output.read_text(), re.MULTILINE)

    for ask in (
        request("/ssi/with.html"),
        request("/sub/page.html"),
        request("/gzip/page.html", "GET", "Accept-Encoding: gzip"),
    ):
        assert sendings(nginx, ask) == sendings(stock, ask), ask


def is_closing_a_socket(pid: int) -> bool:
    """Has a tracer stopped the process at the start of close() of a socket?"""
    number, *words = Path(f"/proc/{pid}/syscall").read_text().split()
    if number != str(SYS_CLOSE):
        return False
    try:
        where = os.readlink(f"/proc/{pid}/fd/{int(words[0], 16)}")
    except FileNotFoundError:
        return False  # the close has ended
    return where.startswith("socket:")


@pytest.mark.parametrize("server", ["stock", "nginx", "keeping"])
def test_an_answer_is_not_lost_by_surplus_bytes(
    server: str, request: pytest.FixtureRequest
) -> None:
    """The client sends surplus bytes while its connection is being closed."""
    one: Nginx = request.getfixturevalue(server)
    late = "inject=close:delay_enter=2000000"
    with one.connect() as connection, traced(one, "-e", "trace=close", "-e", late):
        connection.send(asked("/pushed/small", "GET", "Connection: close"))
        assert eventually(lambda: is_closing_a_socket(one.worker()))
        connection.socket.send(b"more")
        assert connection.answer().endswith(SMALL)


def backend_of(server: Nginx) -> tuple[socket.socket, socket.socket]:
    """Return the sockets of a proxied request and of its mirror."""
    found: dict[bool, socket.socket] = {}
    for _ in range(2):
        peer, _ = server.backend.accept()
        peer.settimeout(PATIENCE)
        found[b"/mirrored" in peer.recv(4096)] = peer
    return found[False], found[True]


def end_early(
    server: Nginx, many: list[Connection], also: Callable[[], None] = lambda: None
) -> Connection:
    """End a request of the last connection in the turn that answers all others."""
    last = many.pop()
    last.send(request("/doomed/small"))
    proxied, mirrored = backend_of(server)
    with proxied, mirrored:
        mirrored.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart")
        ask_one(server, many[0], request("/word/"))
        with stopped(server.worker()):
            for connection in many:
                connection.send(request("/small"))
            proxied.sendall(b"HTTP/1.1 200 OK\r\nX-Accel-Redirect: /small\r\n\r\n")
            mirrored.close()
            also()
    for connection in many:
        assert connection.answer().endswith(SMALL)
    return last


@pytest.mark.parametrize("server", ["stock", "nginx", "keeping", "apart"])
def test_a_request_that_is_ended_early(
    server: str, request: pytest.FixtureRequest
) -> None:
    """The request ends while its file is being opened, or after its response was
    posted.
    """
    one: Nginx = request.getfixturevalue(server)
    worker = one.worker()
    with crowd(one, 5) as many:
        burst(one, many, asked("/small"))
        doomed = end_early(one, many)
        if server == "nginx":
            with pytest.raises(EOFError):
                doomed.answer()
        else:
            assert doomed.answer().endswith(SMALL)
            assert doomed.socket.recv(1) == b""
        assert len(set(burst(one, many, asked("/small")))) == 1
    assert one.worker() == worker
    assert "exited on signal" not in one.errors()


def test_a_late_answer_reaches_no_other_client(keeping: Nginx) -> None:
    """The kernel receives the response after the request has ended, and after another
    connection has got its socket's number.
    """
    new: list[Connection] = []

    def connect() -> None:
        new.append(keeping.connect())
        new[0].send(request("/32k"))

    refuse = "inject=io_uring_enter:error=EAGAIN:when=1"
    with crowd(keeping, 5) as many:
        burst(keeping, many, request("/small"))
        with traced(keeping, "-e", "trace=io_uring_enter", "-e", refuse):
            end_early(keeping, many, connect)
            with new[0] as connection:
                assert connection.answer().endswith(BIG[:32768])
                assert ask_one(keeping, connection, request("/word/"))[-6:] == b"a word"


def test_connections_that_end_together_are_closed_together(
    stock: Nginx, nginx: Nginx, keeping: Nginx
) -> None:
    assert closes(stock, 32) >= 32
    assert closes(nginx, 32) < 16
    assert closes(keeping, 32) < 16


def test_a_worker_with_kernel_cores_makes_no_posted_call(apart: Nginx) -> None:
    """The number of waits and wake-ups depends on how fast the poller is."""
    posted = "trace=openat,openat2,close,writev,sendmsg,sendfile"
    with crowd(apart) as many:
        burst(apart, many, request("/small"))
        with traced(apart, "-e", posted) as output:
            burst(apart, many, request("/small"))
    assert len(re.findall(r"^\d+ +\w+\(", output.read_text(), re.MULTILINE)) < 3

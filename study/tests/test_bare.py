# SPDX-License-Identifier: MIT
"""The servers without a cache that limit memcached's gain, and how flexsc study measures
them.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest
from bench_runs import empty_run, plan
from fixtures import command
from flexbench import examples, machine
from flexbench.network import Network
from flexbench.samples import BenchError, Json, Measurement, Run
from flexstudy import bare, loops, programs, questions

PATIENCE_S = 20
ANSWER = b"VALUE key 0 64\r\n" + questions.VALUE + b"\r\nEND\r\n"
ERROR, STORED = b"ERROR\r\n", b"STORED\r\n"


@pytest.fixture(params=[bare.EPOLL, bare.OURS])
def client(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """A connection to each of the servers."""
    path = examples.find(command(), f"get-{request.param}", bare.FOLDER)
    with (
        examples.started("get", "0-1023", [str(path), "0"]) as program,
        socket.create_connection(("127.0.0.1", program.port)) as found,
    ):
        found.settimeout(PATIENCE_S)
        yield found


def answers(client: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = client.recv(65536)
        assert more, found
        found += more
    return found


def test_memcached_s_question_has_its_answer(client: socket.socket) -> None:
    question = questions.MEMCACHED
    assert questions.exchange(client, question.first, question.first_ends) == STORED
    assert questions.exchange(client, question.request, question.ends) == ANSWER


def test_requests_may_arrive_in_pieces_and_together(client: socket.socket) -> None:
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in (b"set k 0 0 3\r", b"\nab", b"c\r\nget key\r\nge"):
        client.sendall(piece)
    wanted = STORED + ANSWER
    assert answers(client, len(wanted)) == wanted
    client.sendall(b"t key\r\n" + b"get key\r\n" * 100)
    assert answers(client, 101 * len(ANSWER)) == 101 * ANSWER


def test_a_request_without_an_end_ends_its_connection(client: socket.socket) -> None:
    client.sendall(b"get " + 4092 * b"x")
    assert answers(client, len(ERROR)) == ERROR
    assert client.recv(1) == b""


def bare_run() -> Run:
    run = empty_run()
    for variant, us, calls in (("epoll", 6.0, 2.0), ("flexsc", 4.0, 0.25)):
        one: Json = {
            "samples": {loops.SERIES: [us]},
            "counts": {loops.CALLS: calls},
        }
        settings = {"variant": variant, "connections": 64, "seconds": 1}
        run.measurements.append(Measurement("bare", settings, [one]))
    return run


def test_epoll_is_divided_by_libflexsc() -> None:
    (text,) = programs.show(bare_run())
    *_, us, calls = text.splitlines()
    assert us.split()[-4:] == ["6.00", "4.00", "1.50", "(1.50-1.50)"]
    assert calls.split()[-2:] == ["2.00", "0.250"]


def test_only_loopback_is_measured() -> None:
    one = replace(plan(), network=Network("rps"), words=[bare.NAME])
    run = empty_run()
    programs.measure(run, one)
    assert run.notes == ["programs: memcached-bare is measured on --network lo only"]
    with pytest.raises(BenchError, match="doesn't apply to memcached-bare"):
        programs.parse_several([bare.NAME])


def test_both_servers_are_measured() -> None:
    """One round of each, at its real length; the servers' calls are counted if perf is
    there.
    """
    run = empty_run()
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    cores = machine.choose(os.sched_getaffinity(0))
    one = replace(plan(command(), rounds=1), cores=cores, connections=8)
    one = replace(one, words=[bare.NAME])
    programs.measure(run, one)
    assert [m.settings["variant"] for m in run.of("bare")] == ["epoll", "flexsc"]
    calls = []
    for m in run.of("bare"):
        assert 0 < m.rounds[0]["samples"][loops.SERIES][0] < 1e6
        calls.append(m.rounds[0]["counts"].get(loops.CALLS))
    if None not in calls:
        assert 2 <= calls[0] < 3 and calls[1] < 1.5

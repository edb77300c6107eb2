# SPDX-License-Identifier: MIT
"""The counters that flexsc serve exposes for Prometheus."""

from __future__ import annotations

import os
import re
import socket
import time
from pathlib import Path

import pytest

from exposition import samples
from fixtures import Client, Server, Start, eventually, flexsc, request


def place(server: Server) -> int:
    """Return the port of the metrics."""
    (line,) = (one for one in server.messages if one.startswith("metrics on "))
    found = re.fullmatch(r"metrics on http://\S+:(\d+)/metrics", line)
    assert found
    return int(found[1])


def scrape(server: Server) -> dict[str, int]:
    with Client(place(server)) as client:
        answer = client.ask("/metrics")
        assert answer.status == 200 and client.closed()
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return samples(answer.body.decode())


def test_requests_bytes_and_clients_are_counted(start: Start, engine: str) -> None:
    server = start("--metrics", "0", "-j", "2")
    assert scrape(server)["flexsc_serve_connections_accepted_total"] == 0
    with server.client() as client:
        length = 0
        for _ in range(5):
            client.send(request("/hello.txt"))
            length += len(client.read().body)
        assert client.ask("/none").status == 404
        answer = client.ask("/hello.txt", Range="bytes=5000-")
        assert answer.status == 416
        assert client.ask("/folder").status == 301

        def counted() -> bool:
            """A response counts when it has been sent."""
            return scrape(server)['flexsc_serve_responses_total{code="3xx"}'] == 1

        assert eventually(counted)
        found = scrape(server)
        assert found['flexsc_serve_responses_total{code="2xx"}'] == 5
        assert found['flexsc_serve_responses_total{code="4xx"}'] == 2
        assert found["flexsc_serve_connections"] == 1
        assert length < found["flexsc_serve_sent_bytes_total"] < length + 8000
        assert found["flexsc_serve_log_lines_dropped_total"] == 0
    assert eventually(lambda: scrape(server)["flexsc_serve_connections"] == 0)
    found = scrape(server)
    loops = [key for key in found if key.startswith("flexsc_loop_posted_total{")]
    assert len(loops) == 2 and all(f'engine="{engine}"' in key for key in loops)
    assert sum(found[key] for key in loops) > 20
    assert server.stop() == 0


def test_metrics_are_off_by_default(server: Server) -> None:
    assert not any("metrics" in line for line in server.messages)
    assert server.get("/metrics").status == 404


def test_stat_exposes_the_same(start: Start) -> None:
    server = start("--metrics", "127.0.0.1:0")
    assert server.get("/hello.txt").status == 200
    pid = str(server.process.pid)
    done = flexsc("stat", "--prometheus", pid)
    loops = {key for key in scrape(server) if key.startswith("flexsc_loop_")}
    assert set(samples(done.stdout)) == loops


def test_stat_shows_the_cores_of_calls(start: Start) -> None:
    _, *others = sorted(os.sched_getaffinity(0))
    if not others:
        pytest.skip("needs two cores")
    server = start("--kernel-cores", str(others[0]))
    assert server.get("/hello.txt").status == 200
    for option, pattern in (
        ("--prometheus", r'^flexsc_loop_core_calls_total\{.*core="(\d+)"\} (\d+)$'),
        (None, r"^  core (\d+) +(\d+)  calls executed there$"),
    ):
        done = flexsc("stat", *filter(None, [option]), str(server.process.pid))
        found = re.findall(pattern, done.stdout, re.MULTILINE)
        assert [core for core, _ in found] == [str(others[0])]
        assert int(found[0][1]) > 0


BAD = {
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n": 404,
    b"GET /metricsx HTTP/1.1\r\nHost: a\r\n\r\n": 404,
    b"GET /metrics?x HTTP/1.1\r\nHost: a\r\n\r\n": 200,
    b"HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n": 200,
    b"POST /metrics HTTP/1.1\r\nHost: a\r\n\r\n": 405,
    b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n": 413,
    b"GET /metrics HTTP/1.1\r\n\r\n": 400,
    b"\1\2\3\r\n\r\n": 400,
    b"GET /metrics HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 9000 + b"\r\n\r\n": 431,
    b"\r\n" * 6000: 431,
}


def test_bad_requests_for_metrics(start: Start) -> None:
    server = start("--metrics", "0")
    for data, status in BAD.items():
        with Client(place(server)) as client:
            client.send(data)
            answer = client.read("HEAD" if data.startswith(b"HEAD") else "GET")
            assert (answer.status, data) == (status, data)
    with Client(place(server)) as client:
        for byte in request("/metrics"):
            client.send(bytes([byte]))
        assert client.read().status == 200


def test_a_stuck_client_of_the_metrics_is_dropped(start: Start) -> None:
    server = start("--metrics", "0")
    begun = time.monotonic()
    with Client(place(server)) as silent:
        assert scrape(server)
        assert time.monotonic() - begun > 1
        assert silent.closed()
    # A client that is being served doesn't delay the server's end.
    with Client(place(server)), Client(place(server)):
        assert server.stop() == 0
    with pytest.raises(OSError):
        scrape(server)


def test_a_port_for_the_metrics(start: Start, tree: Path) -> None:
    with pytest.raises(RuntimeError, match="choose another one with --metrics"):
        taken = start()
        start("--metrics", str(taken.port))
    if socket.has_ipv6:
        try:
            server = start("--metrics", "[::1]:0")
        except RuntimeError as error:
            pytest.skip(f"no IPv6: {error}")
        assert any(m.startswith("metrics on http://[::1]:") for m in server.messages)


@pytest.mark.parametrize("value", ["", "x", "70000", "-1", ":80", "[::1]", "1:2:x"])
def test_wrong_places_for_metrics(start: Start, value: str) -> None:
    with pytest.raises(RuntimeError, match="give a port, such as"):
        start("--metrics", value)

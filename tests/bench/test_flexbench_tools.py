# SPDX-License-Identifier: MIT
"""flexbench and other programs: how it parses their output, and the configurations that
it writes for them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from flexbench import servers, tools
from flexbench.samples import BenchError
from flexbench.servers import Module, Place, Site

WRK = """\
Running 5s test @ http://127.0.0.1:8080/file.bin
  3 threads and 128 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.31ms  394.45us   9.92ms   83.08%
    Req/Sec    32.13k     2.14k   37.88k    70.67%
  Latency Distribution
     50%    1.25ms
     75%    1.48ms
     90%    1.71ms
     99%  950.00us
  479713 requests in 5.01s, 574.19MB read
Requests/sec:  95751.10
Transfer/sec:    114.61MB
"""


def test_wrk_is_read() -> None:
    found = tools.parse_wrk(WRK)
    assert found.requests == 479713
    assert found.requests_per_s == pytest.approx(479713 / 5.01)
    assert found.mean_us == pytest.approx(1310)
    assert found.p50_us == pytest.approx(1250)
    assert found.p99_us == pytest.approx(950)
    assert found.errors == ""


@pytest.mark.parametrize(
    "line",
    [
        "  Socket errors: connect 0, read 12, write 0, timeout 3",
        "  Non-2xx or 3xx responses: 99",
    ],
)
def test_errors_under_load_are_seen(line: str) -> None:
    text = WRK.replace("Requests/sec", f"{line}\nRequests/sec")
    assert tools.parse_wrk(text).errors == line.strip()


def test_wrk_without_requests_is_an_error() -> None:
    with pytest.raises(BenchError, match="Connection refused"):
        tools.parse_wrk("unable to connect to 127.0.0.1:1 Connection refused\n")
    with pytest.raises(BenchError, match="no request"):
        tools.parse_wrk(WRK.replace("479713", "0"))


def test_perf_is_read() -> None:
    text = "4711,,raw_syscalls:sys_enter,2000123456,100.00,,\n"
    assert tools.parse_perf(text) == 4711


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<not counted>,,raw_syscalls:sys_enter,0,100.00,,\n", "<not counted>"),
        ("event syntax error: 'raw_syscalls:sys_enter'\n", "event syntax error"),
        ("", "no output"),
    ],
)
def test_perf_that_counts_nothing_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(BenchError, match=reason):
        tools.parse_perf(text)


def test_nginx_is_stock_but_for_its_places(tmp_path: Path) -> None:
    place = Place(tmp_path, "127.0.0.1", 8080)
    plain = servers.nginx_config(place, Site(tmp_path / "root"))
    cached = servers.nginx_config(place, Site(tmp_path / "root", cached=True))
    assert "listen 127.0.0.1:8080 backlog=2147483647;" in plain
    assert "worker_processes 1;" in plain
    assert "affinity" not in plain
    several = servers.nginx_config(place, Site(tmp_path / "root"), [5, 2])
    assert "worker_processes 2;\nworker_cpu_affinity auto 100100;\n" in several
    assert "sendfile on;" in plain
    assert "open_file_cache" not in plain
    assert "open_file_cache max=1000;" in cached
    places = [w for w in plain.split() if w.startswith("/")]
    assert places
    assert all(w.startswith(str(tmp_path)) for w in places)


def test_nginx_has_the_module_as_configured(tmp_path: Path) -> None:
    place, module = Place(tmp_path, "127.0.0.1", 8080), Module(tmp_path / "m.so", 7)
    own = servers.nginx_config(place, Site(tmp_path, module=module))
    assert own.startswith(f"load_module {tmp_path}/m.so;\n")
    assert "\tflexsc on;\n\tflexsc_keep 7;\n" in own
    assert "flexsc_kernel_cores" not in own
    apart = replace(module, kernel_cores=[2, 4])
    text = servers.nginx_config(place, Site(tmp_path, module=apart))
    assert "\tflexsc_kernel_cores 2,4;\n" in text
    assert "worker_processes 1;" in text


def test_nginx_has_tls_or_a_backend_on_request(tmp_path: Path) -> None:
    place, root = Place(tmp_path, "10.0.0.1", 8080), tmp_path / "root"
    tls = servers.nginx_config(place, Site(root, certificate=tmp_path / "cert"))
    assert "listen 10.0.0.1:8080 ssl backlog=2147483647;" in tls
    assert f"ssl_certificate_key {tmp_path}/cert.key;" in tls
    proxy = servers.nginx_config(place, Site(root, backend="10.0.0.1:8081"))
    assert "listen 10.0.0.1:8080 backlog=2147483647;" in proxy
    assert "proxy_pass http://backend;" in proxy
    assert "server 10.0.0.1:8081;" in proxy
    for text in (tls, proxy):
        assert text.count("{") == text.count("}")

# SPDX-License-Identifier: MIT
"""Other programs, and parsing their output."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .samples import BenchError

T = TypeVar("T")

# Debian's package for each program.
PACKAGES = {
    "ab": "apache2-utils",
    "apache2": "apache2",
    "ethtool": "ethtool",
    "haproxy": "haproxy",
    "httperf": "httperf",
    "ip": "iproute2",
    "java": "default-jdk-headless",
    "mariadb-install-db": "mariadb-server",
    "mariadbd": "mariadb-server",
    "memcached": "memcached",
    "named": "bind9",
    "nginx": "nginx-light",
    "node": "nodejs",
    "openssl": "openssl",
    "perf": "linux-perf",
    "prlimit": "util-linux",
    "redis-server": "redis-server",
    "sysbench": "sysbench",
    "taskset": "util-linux",
    "tc": "iproute2",
    "unbound": "unbound",
    "valgrind": "valgrind",
    "wrk": "wrk",
}
# Folders that an ordinary user's PATH lacks.
ELSEWHERE = "/usr/local/sbin:/usr/sbin:/sbin"

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def find(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path=ELSEWHERE)


def need(program: str) -> str:
    path = find(program)
    if path is None:
        raise BenchError(
            f"{program} isn't installed; it comes with Debian's package "
            f"{PACKAGES[program]}"
        )
    return path


@dataclass(frozen=True)
class Load:
    """Results of a load generator; a transaction counts as a request."""

    requests: int
    seconds: float
    mean_us: float
    p50_us: float
    p99_us: float
    errors: str  # empty: no errors

    @property
    def requests_per_s(self) -> float:
        return self.requests / self.seconds


def duration(text: str) -> float:
    """Parse a time such as "1.25ms"; returns seconds."""
    found = re.fullmatch(r"([\d.]+)([a-z]+)", text)
    if not found or found[2] not in SECONDS:
        raise BenchError(f"wrk printed an invalid time: {text}")
    return float(found[1]) * SECONDS[found[2]]


def percentile(text: str, percent: int) -> float:
    found = re.search(rf"^\s+{percent}%\s+(\S+)[ \t]*$", text, re.MULTILINE)
    if not found:
        raise BenchError(f"wrk printed no {percent}% of the latencies")
    return duration(found[1]) * 1e6


def mean(text: str) -> float:
    found = re.search(r"^\s+Latency\s+(\d\S*)", text, re.MULTILINE)
    if not found:
        raise BenchError("wrk printed no mean of the latencies")
    return duration(found[1]) * 1e6


def parse_wrk(text: str) -> Load:
    total = re.search(r"^\s*(\d+) requests in (\S+),", text, re.MULTILINE)
    if not total or int(total[1]) == 0:
        raise BenchError("wrk made no request: " + " ".join(text.split())[:200])
    errors = re.findall(r"^\s*(Socket errors:.*|Non-2xx.*)$", text, re.MULTILINE)
    return Load(
        requests=int(total[1]),
        seconds=duration(total[2]),
        mean_us=mean(text),
        p50_us=percentile(text, 50),
        p99_us=percentile(text, 99),
        errors="; ".join(errors),
    )


def parse_perf(text: str, event: str = "raw_syscalls:sys_enter") -> int:
    """The count of an event in the output of "perf stat -x,"."""
    for line in text.splitlines():
        cells = line.split(",")
        if len(cells) > 2 and cells[2].startswith(event):
            if cells[0].isdigit():
                return int(cells[0])
            raise BenchError(f"perf: {cells[0]}")
    raise BenchError("perf: " + (" ".join(text.split())[:200] or "no output"))


def count_calls(
    pids: Sequence[int], load: Callable[[Sequence[str]], T]
) -> tuple[int, T]:
    """Count the system calls of processes under load, by perf. load: runs the load with
    a command that begins with the words that it receives.
    """
    with tempfile.NamedTemporaryFile("r", prefix="flexbench-") as output:
        counter = [need("perf"), "stat", "-x,", "-e", "raw_syscalls:sys_enter"]
        done = load([*counter, "-o", output.name, "-p", ",".join(map(str, pids)), "--"])
        return parse_perf(output.read()), done

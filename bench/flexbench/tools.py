# SPDX-License-Identifier: MIT
"""Other programs, and reading what they print."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass

from .samples import BenchError

# Debian's packages, by program.
PACKAGES = {
    "nginx": "nginx-light",
    "perf": "linux-perf",
    "strace": "strace",
    "taskset": "util-linux",
    "wrk": "wrk",
}
# Where an ordinary user's PATH doesn't lead.
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
    """What wrk has seen."""

    requests: int
    seconds: float
    p50_us: float
    p99_us: float
    errors: str  # empty: none

    @property
    def requests_per_s(self) -> float:
        return self.requests / self.seconds


def duration(text: str) -> float:
    """Seconds, of "1.25ms" and the like."""
    found = re.fullmatch(r"([\d.]+)([a-z]+)", text)
    if not found or found[2] not in SECONDS:
        raise BenchError(f"wrk printed a time that isn't one: {text}")
    return float(found[1]) * SECONDS[found[2]]


def percentile(text: str, percent: int) -> float:
    found = re.search(rf"^\s+{percent}%\s+(\S+)[ \t]*$", text, re.MULTILINE)
    if not found:
        raise BenchError(f"wrk printed no {percent}% of the latencies")
    return duration(found[1]) * 1e6


def parse_wrk(text: str) -> Load:
    total = re.search(r"^\s*(\d+) requests in (\S+),", text, re.MULTILINE)
    if not total or int(total[1]) == 0:
        raise BenchError("wrk made no request: " + " ".join(text.split())[:200])
    errors = re.findall(r"^\s*(Socket errors:.*|Non-2xx.*)$", text, re.MULTILINE)
    return Load(
        requests=int(total[1]),
        seconds=duration(total[2]),
        p50_us=percentile(text, 50),
        p99_us=percentile(text, 99),
        errors="; ".join(errors),
    )


def parse_perf(text: str) -> int:
    """The count of the one event in the output of perf stat -x,."""
    for line in text.splitlines():
        cells = line.split(",")
        if len(cells) > 2 and cells[2].startswith("raw_syscalls:sys_enter"):
            if cells[0].isdigit():
                return int(cells[0])
            raise BenchError(f"perf: {cells[0]}")
    raise BenchError("perf: " + (" ".join(text.split())[:200] or "no output"))


def parse_strace(text: str) -> int:
    """The total of calls in the output of strace -c."""
    lines = text.splitlines()
    head = next((line for line in lines if line.endswith("syscall")), None)
    total = next((line for line in lines if line.endswith(" total")), None)
    if head is None or total is None:
        raise BenchError("strace: " + (" ".join(text.split())[:200] or "no output"))
    # Columns may be empty: the one wanted ends where its head does.
    cell = total[: head.index("calls") + len("calls")].split()[-1]
    return int(cell)

# SPDX-License-Identifier: MIT
"""The load generators, on the cores left to them: wrk and sysbench."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from . import quiet, servers, tools
from .samples import BenchError
from .tools import Load

SPARE_S = 30


def wrk(
    cores: Sequence[int],
    connections: int,
    seconds: int,
    url: str,
    options: Sequence[str] = (),
) -> list[str]:
    command = [tools.need("wrk"), "-t", str(min(len(cores), connections))]
    command += ["-c", str(connections), "-d", f"{seconds}s", "--latency"]
    return servers.pinned(servers.listed(cores), [*command, *options, url])


def execute(
    name: str, command: list[str], seconds: int
) -> subprocess.CompletedProcess[str]:
    try:
        with quiet.elsewhere():
            return subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=seconds + SPARE_S,
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise BenchError(f"{name} doesn't end") from None


def run_wrk(command: list[str], seconds: int) -> Load:
    """What it has seen. One error is too many."""
    done = execute("wrk", command, seconds)
    if done.returncode:
        raise BenchError(f"wrk: {done.stderr.strip() or done.returncode}")
    found = tools.parse_wrk(done.stdout)
    if found.errors:
        raise BenchError(f"under load: {found.errors}")
    return found


def sysbench(
    cores: Sequence[int], script: str, options: Sequence[str], action: str
) -> list[str]:
    command = [tools.need("sysbench"), script, *options, action]
    return servers.pinned(servers.listed(cores), command)


def run_sysbench(command: list[str], seconds: int) -> str:
    """What it prints."""
    done = execute("sysbench", command, seconds)
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()
        reasons = [line for line in lines if line.startswith("FATAL")]
        reason = reasons[0] if reasons else f"ended with {done.returncode}"
        raise BenchError(f"sysbench: {reason}")
    return done.stdout

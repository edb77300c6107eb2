# SPDX-License-Identifier: MIT
"""The load generator wrk, on the cores left to it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from . import servers, tools
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

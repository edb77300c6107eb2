# SPDX-License-Identifier: MIT
"""The load generators: wrk, on the cores left to it, and rounds.

On the network the clients have those cores, all of them. On loopback that of
rounds shares the server's core: each round is one batch, whatever else the machine
does, and other processes change nothing of what the server's own clock says.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from . import quiet, servers, tools
from .network import LO
from .runner import Plan, raw
from .samples import BenchError, Json, Settings
from .tools import Load

SPARE_S = 30


def placed(plan: Plan, command: Sequence[str]) -> list[str]:
    """On the clients' cores and side."""
    cores = servers.listed(plan.cores.load)
    return servers.pinned(cores, [*plan.network.client, *command])


def wrk(
    plan: Plan, connections: int, seconds: int, url: str, options: Sequence[str] = ()
) -> list[str]:
    threads = min(len(plan.cores.load), connections)
    command = [tools.need("wrk"), "-t", str(threads)]
    command += ["-c", str(connections), "-d", f"{seconds}s", "--latency"]
    return placed(plan, [*command, *options, url])


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


def rounds(plan: Plan, settings: Settings, counter: Sequence[str] = ()) -> Json:
    """What requests cost a server. counter: a command that counts meanwhile."""
    net = plan.network
    if net.kind == LO:
        here: Settings = {**settings, "core": plan.cores.measured}
        return raw(plan.flexsc, "rounds", here, counter)
    there: Settings = {**settings, "address": net.address, "source": net.source}
    return raw(plan.flexsc, "rounds", there, [*counter, *placed(plan, [])])

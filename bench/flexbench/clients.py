# SPDX-License-Identifier: MIT
"""The load generators: wrk, on the clients' cores, and rounds.

With a network other than loopback, rounds uses the clients' cores too. On loopback it
shares the server's core. Then each round is one batch, whatever else the machine does,
and other processes don't affect the server's processor time.
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
    """Place a command on the clients' cores and on their side of the network."""
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
        raise BenchError(
            f"{name} is still running long after the end of the load"
        ) from None


def run_wrk(command: list[str], seconds: int) -> Load:
    """Run wrk and parse its results. A single error ends the measurement."""
    done = execute("wrk", command, seconds)
    if done.returncode:
        raise BenchError(f"wrk: {done.stderr.strip() or done.returncode}")
    found = tools.parse_wrk(done.stdout)
    if found.errors:
        raise BenchError(f"requests failed under load: {found.errors}")
    return found


def rounds(plan: Plan, settings: Settings, counter: Sequence[str] = ()) -> Json:
    """The server's cost of requests. counter: a command that counts events meanwhile."""
    net = plan.network
    if net.kind == LO:
        here: Settings = {**settings, "core": plan.cores.measured}
        return raw(plan.flexsc, "rounds", here, counter)
    there: Settings = {**settings, "address": net.address, "source": net.source}
    return raw(plan.flexsc, "rounds", there, [*counter, *placed(plan, [])])

# SPDX-License-Identifier: MIT
"""Workloads of sessions: their files and traces, and the clients that load a server
with them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from urllib.parse import urlsplit

from flexbench import clients
from flexbench.runner import Plan, progress
from flexbench.samples import BenchError, Json, Settings
from flexbench.servers import Server

from ..raw import raw
from . import fileset, watching, workload
from .fileset import File
from .workload import Session

# Sessions of a trace, which is repeated after its last session; and the seed of both
# the trace and the arrivals.
TRACE_SESSIONS, SEED = 5000, 1
TIMEOUT_MS = 10_000
THREADS_MAX = 128  # clients' threads: in a closed loop each needs a session
# For the clients of all servers: how long they poll for answers before they sleep, in
# us.
SPIN_US = 50
# The share of the free memory that files may use, so that they stay in the page cache.
MEMORY_SHARE = 0.8


@dataclass(frozen=True)
class Sessions:
    """think: percentage of the trace's think times. warm_s: seconds until about as many
    sessions end as begin.
    """

    title: str
    trace: str  # a key of workload.WORKLOADS
    think: int
    warm_s: int


THINK = 5
SESSIONS = {
    "pages": Sessions("64 bytes to 8 KiB, 20 requests a session", "pages", 100, 1),
    "specweb": Sessions("SPECweb99's static files", "specweb", THINK, 2),
}


def folders(plan: Plan) -> int:
    return fileset.FOLDERS_SMALL if plan.quick else fileset.FOLDERS


@dataclass(frozen=True)
class Site:
    """Shared by a workload's servers and clients. The folder contains "root", which is
    served, and "sessions", the drawn sessions.
    """

    load: Sessions
    folder: Path
    files: list[File]
    drawn: list[Session]

    @property
    def root(self) -> Path:
        return self.folder / "root"

    def due(self, seconds: float) -> float:
        """The average number of requests per new session that are due within the
        seconds after the warm-up, if answers took no time. Sessions that take longer
        than the warm-up have some of their requests due later.
        """
        until = self.load.warm_s + seconds
        factor = self.load.think / 100
        thoughts = [[r.think * factor for r in session] for session in self.drawn]
        ages = [age for one in thoughts for age in accumulate(one[:-1], initial=0.0)]
        shares = [min(1.0, max(0.0, (until - age) / seconds)) for age in ages]
        return sum(shares) / len(self.drawn)


def check_memory(size: int) -> None:
    room = watching.available_bytes()
    if size > MEMORY_SHARE * room:
        raise BenchError(
            f"the files need {size:,} bytes of memory, but only {room:,} are free: "
            "--quick uses fewer files"
        )


def read_all(root: Path, files: list[File]) -> None:
    for file in files:
        (root / file.name).read_bytes()


def prepare(plan: Plan, load: Sessions, folder: Path) -> Site:
    """Write the files and the sessions."""
    options = workload.Options(folders(plan), TRACE_SESSIONS, SEED)
    files = list(workload.WORKLOADS[load.trace].files(options))
    check_memory(sum(file.bytes for file in files))
    progress(f"study: writing {len(files):,} files")
    site = Site(load, folder, files, list(workload.sessions(load.trace, options)))
    fileset.write(site.root, files)
    fileset.describe(folder, files)
    # Otherwise the kernel would write these files during the measurement.
    os.sync()
    read_all(site.root, files)
    text = "\n".join("".join(map(workload.line, session)) for session in site.drawn)
    (folder / "sessions").write_text(text, encoding="ascii")
    return site


def load(
    plan: Plan, site: Site, server: Server, seconds: int, warm_s: int, **more: str | int
) -> Json:
    """The results of study --raw load, and the state of server and machine meanwhile."""
    threads = min(len(plan.cores.load), THREADS_MAX)
    args: Settings = {
        "port": urlsplit(server.url).port or 80,
        "address": plan.network.address,
        "source": plan.network.source,
        "pid": server.pid,
        "trace": str(site.folder / "sessions"),
        "threads": threads,
        "spin_us": SPIN_US,
        "timeout_ms": TIMEOUT_MS,
        "seed": SEED,
        "seconds": warm_s + seconds,
        "warm_ms": 1000 * warm_s,
        "cut": 1,
        **more,
    }
    before = watching.counters(server.pid)
    copies_s = watching.copies_s(server.pid)
    with watching.Stretches([*plan.cores.server, *plan.cores.load]) as stretches:
        found = raw(plan.flexsc, "load", args, clients.placed(plan, []))
    found["counts"] |= watching.grown(before, watching.counters(server.pid))
    copies_s = watching.copies_s(server.pid) - copies_s
    found["counts"]["server_cpu_us"] += 1e6 * copies_s
    found["samples"] |= busy(plan, stretches, found["counts"], threads, seconds)
    watching.settle(server.pid)
    return found


def busy(
    plan: Plan,
    stretches: watching.Stretches,
    counts: dict[str, float],
    threads: int,
    seconds: float,
) -> dict[str, list[float]]:
    """How busy the server's cores are on average, its busiest core, and the clients'
    busiest core. The time in which clients poll without result isn't counted.
    """
    spun = 1e-6 * counts["spun_us"] / threads / stretches.seconds()
    most, busiest = (
        max(stretches.percent([core], seconds) for core in cores)
        for cores in (plan.cores.load, plan.cores.server)
    )
    ended = counts["answered"] + counts["warm_up"]
    return {
        "busy_percent": [stretches.percent(plan.cores.server, seconds)],
        "busiest_percent": [busiest],
        "client_percent": [max(0.0, most - 100 * spun)],
        "server_us": [counts["server_cpu_us"] / max(1.0, ended)],
    }

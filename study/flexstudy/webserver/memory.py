# SPDX-License-Identifier: MIT
"""What silent connections take of memory, each of which has had one answer.

A connection's memory is what a server with many of them, and with the threads that its
model has for these, takes more than one with a single connection. The kernel's is the
whole machine's growth, and so includes the clients' sockets.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flexbench import pair, table, tools
from flexbench.idle import SETTLE_S, descriptors, fields, kernel_kib
from flexbench.runner import DISTURBED, Plan, measure_all
from flexbench.samples import BenchError, Json, Run, Settings

from . import idle, subjects

MEMORY = "memory"
BENCH = "study-memory"
QUICK = 1_000  # connections
ROUNDS = 3


@dataclass(frozen=True)
class Weight:
    """A server's memory. kernel_kib: what all of the kernel's memory grew by."""

    resident_kib: int
    kernel_kib: int
    threads: int


def weigh(plan: Plan, folder: Path, name: str, count: int) -> Weight:
    """A server that has so many connections, and is made for them."""
    options, before = subjects.tunings(name, count)[0], kernel_kib()
    if name != subjects.NGINX:
        options = [*options, *idle.PATIENCE]
    with (
        subjects.started(plan, name, options, folder) as server,
        idle.silent(plan, server, count),
    ):
        time.sleep(SETTLE_S)
        found = fields(f"/proc/{server.pid}/status")
        grown = kernel_kib() - before
    time.sleep(SETTLE_S)  # the kernel takes its time to free sockets
    return Weight(found["VmRSS"], grown, found["Threads"])


def once(plan: Plan, folder: Path, settings: Settings) -> Json:
    name, count = str(settings["model"]), int(settings["connections"])
    one = weigh(plan, folder, name, 1)
    many = weigh(plan, folder, name, 1 + count)
    return {
        "samples": {
            "rss_bytes": [1024 * (many.resident_kib - one.resident_kib) / count],
            "kernel_bytes": [1024 * (many.kernel_kib - one.kernel_kib) / count],
            "threads": [many.threads],
            DISTURBED: [0.0],  # memory isn't
        },
        "counts": {},
    }


def connections(plan: Plan) -> int:
    """As many as are wanted, or as descriptors permit."""
    wanted = plan.connections or (QUICK if plan.quick else idle.CONNECTIONS)
    permitted = idle.permitted()
    if not permitted:
        raise BenchError("too few descriptors are allowed (ulimit -Hn)")
    return min(wanted, permitted)


def measure(run: Run, plan: Plan, workload: str, names: Sequence[str]) -> None:
    tools.need("taskset")
    count = connections(plan)
    variants: list[Settings] = [
        {
            "model": name,
            "tuning": " ".join(subjects.tunings(name, 1 + count)[0]),
            "connections": count,
            "bytes": plan.bytes,
            "network": plan.network.kind,
        }
        for name in names
    ]
    few = replace(plan, rounds=min(plan.rounds, ROUNDS))
    with descriptors(1 + count), pair.file_of(plan.bytes) as folder:
        measure_all(run, few, BENCH, variants, lambda s: once(plan, folder, s))


# The table.


def show(run: Run) -> list[str]:
    found = run.of(BENCH)
    if not found:
        return []
    rows = [
        [
            f"{m.settings['model']}: {subjects.titles()[str(m.settings['model'])]}",
            *(table.number(m.median(s)) for s in ("rss_bytes", "kernel_bytes")),
            f"{m.median('threads'):,.0f}",
        ]
        for m in found
    ]
    head = ["bytes a connection", "resident", "kernel, both ends", "threads"]
    title = f"study memory: {found[0].settings['connections']:,} silent connections"
    return [f"{title}; {table.how(found[0])}\n" + table.table(head, rows)]

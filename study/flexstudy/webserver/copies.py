# SPDX-License-Identifier: MIT
"""How evenly copies of web-events share clients: the workload page with kept
connections, on one core. The copies wait for clients at one socket, or each at its own,
where a hash of the client's address and port chooses the socket.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from flexbench import clients, pair, quiet, table, tools
from flexbench.runner import DISTURBED, Plan, measure_all
from flexbench.samples import BenchError, Json, Measurement, Run, Settings

from . import subjects

COPIES = "copies"
BENCH = "study-copies"
COUNTS = [2, 4]
ACCEPT = ["shared", "port"]
STATS = "stats"


def fullest(requests: Sequence[int], copies: int) -> tuple[float, float]:
    """The largest share of a copy in percent, and how many times the mean that is."""
    total = sum(requests)
    if not total:
        raise BenchError("no copy has answered a request")
    share = max(requests) / total
    return 100 * share, share * copies


def once(plan: Plan, folder: Path, settings: Settings) -> Json:
    """wrk's connections are made once and kept, so a copy has its clients to the end."""
    stats, copies = folder / STATS, int(settings["copies"])
    tuning = ["--copies", str(copies), "--accept", str(settings["accept"])]
    tuning += ["--stats", str(stats)]
    with subjects.started(plan, subjects.EVENTS, tuning, folder) as server:
        connections, url = int(settings["connections"]), server.url + pair.FILE
        command = clients.wrk(plan, connections, plan.seconds, url)
        # The others' share is read while the server runs: once the first copy has ended,
        # the other copies' time no longer counts as that of the bench's children.
        others = quiet.Others(plan.cores.server)
        rate = clients.run_wrk(command, plan.seconds).requests_per_s
        disturbed = others.percent()
    each = json.loads(stats.read_text(encoding="ascii"))["each"]
    percent, times = fullest(each, copies)
    samples = {"fullest_percent": [percent], "fullest_times": [times]}
    samples |= {"requests_per_s": [rate], DISTURBED: [disturbed]}
    return {"samples": samples, "counts": {}}


def measure(run: Run, plan: Plan, workload: str, names: Sequence[str]) -> None:
    """Only the model "events" has copies, whatever models are asked for."""
    for program in ("wrk", "taskset"):
        tools.need(program)
    variants: list[Settings] = [
        {
            "model": subjects.EVENTS,
            "copies": copies,
            "accept": accept,
            "connections": plan.connections or pair.CONNECTIONS,
            "bytes": plan.bytes,
            "cores": 1,
            "seconds": plan.seconds,
            "network": plan.network.kind,
        }
        for copies in COUNTS
        for accept in ACCEPT
    ]
    with pair.file_of(plan.bytes) as folder:
        measure_all(run, plan, BENCH, variants, lambda s: once(plan, folder, s))


# The table.


def row(m: Measurement) -> list[str]:
    return [
        f"{m.settings['copies']}, {m.settings['accept']}",
        table.number(m.median("requests_per_s")),
        f"{m.median('fullest_percent'):.1f}",
        table.number(m.median("fullest_times")),
    ]


def show(run: Run) -> list[str]:
    found = run.of(BENCH)
    if not found:
        return []
    head = ["copies, sockets", "requests/s", "fullest copy, %", "times the mean"]
    title = (
        f"study copies: {found[0].settings['connections']} kept connections among "
        f"copies of web-events; {table.how(found[0])}\n"
    )
    return [title + table.table(head, [row(m) for m in found])]

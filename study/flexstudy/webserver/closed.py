# SPDX-License-Identifier: MIT
"""The models under the load of a closed loop, alternately, on one core:

page    kept connections that request one small file, which is opened each time
new     a connection for each request
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from flexbench import clients, pair, quiet, servers, tools
from flexbench.runner import Plan, measure_all
from flexbench.samples import BenchError, Json, Run, Settings
from flexbench.servers import Server

from . import subjects
from .subjects import BENCH, Tuning
from .tuning import SERIES, TUNE_S, Tuner

ROUNDS_S = 1

CLOSE = ["-H", "Connection: close"]


@dataclass(frozen=True)
class Workload:
    """wrk: additional options of wrk. rounds: bench --raw rounds can make this load,
    too. connections, quick: numbers of connections, without and with --quick.
    """

    title: str
    connections: list[int]
    quick: list[int]
    wrk: list[str] = field(default_factory=list)
    rounds: bool = True


WORKLOADS = {
    "page": Workload("kept connections", [1, 128, 1024], [128]),
    "new": Workload("a connection for each request", [64], [64], CLOSE, False),
}


def by_wrk(
    plan: Plan, load: Workload, server: Server, connections: int, seconds: int
) -> Json:
    url = server.url + pair.FILE
    command = clients.wrk(plan, connections, seconds, url, load.wrk)
    shares, before = quiet.Shares(plan.cores.server), servers.clock_s(server)
    found = clients.run_wrk(command, seconds)
    used = servers.clock_s(server) - before
    return {
        SERIES: [found.requests_per_s],
        "p50_us": [found.p50_us],
        "p99_us": [found.p99_us],
        "loaded_us": [1e6 * used / found.requests],
        **shares.samples(),
    }


def round_of(
    plan: Plan, load: Workload, server: Server, connections: int, seconds: int
) -> Json:
    try:
        samples = by_wrk(plan, load, server, connections, seconds)
        if load.rounds:
            samples |= pair.in_rounds(plan, server, connections, plan.bytes, ROUNDS_S)
    except BenchError as error:
        raise BenchError(f"{server.name}: {error}") from error
    return {"samples": samples, "counts": {}}


# Measuring.


def compare(
    run: Run,
    plan: Plan,
    workload: str,
    connections: int,
    found: dict[str, tuple[Server, Tuning]],
) -> None:
    load = WORKLOADS[workload]
    variants: list[Settings] = [
        {
            "workload": workload,
            "connections": connections,
            "bytes": plan.bytes,
            "model": name,
            "tuning": " ".join(tuning),
            "seconds": plan.seconds,
            "network": plan.network.kind,
        }
        for name, (_, tuning) in found.items()
    ]

    def once(settings: Settings) -> Json:
        server, _ = found[str(settings["model"])]
        return round_of(plan, load, server, connections, plan.seconds)

    measure_all(run, plan, BENCH, variants, once)


def measure_point(
    run: Run, plan: Plan, workload: str, names: Sequence[str], connections: int
) -> None:
    """Measure the models with so many connections; a model that fails is skipped."""
    load = WORKLOADS[workload]

    def short(server: Server) -> dict[str, list[float]]:
        return dict(by_wrk(plan, load, server, connections, TUNE_S))

    with pair.file_of(plan.bytes) as folder, ExitStack() as stack:
        content = (folder / "root" / pair.FILE).read_bytes()
        tuner = Tuner(run, plan, folder, workload, connections, short)
        found = {}
        for name in names:
            try:
                tuning = tuner.best(name)
                server = stack.enter_context(
                    subjects.started(plan, name, tuning, folder)
                )
                servers.check(plan.network, server, pair.FILE, content)
                found[name] = server, tuning
            except BenchError as error:
                run.note(f"{BENCH}: skipping {name}: {error}")
        compare(run, plan, workload, connections, found)


def measure(run: Run, plan: Plan, workload: str, names: Sequence[str]) -> None:
    for program in ("wrk", "taskset"):
        tools.need(program)
    load = WORKLOADS[workload]
    counts = load.quick if plan.quick else load.connections
    for connections in [plan.connections] if plan.connections else counts:
        measure_point(run, plan, workload, names, connections)

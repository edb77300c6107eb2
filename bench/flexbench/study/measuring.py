# SPDX-License-Identifier: MIT
"""The models under load, alternately, on one core. There are two workloads:

    page    kept connections that ask for one small file, which is opened each time
    new     a connection for each request

A model's tuning, the options of its server, is the built-in one, or, with --tune, the
one that made the most requests a second in short runs before.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from .. import clients, pair, quiet, servers, tools
from ..runner import Plan, measure_all, progress
from ..samples import BenchError, Json, Measurement, Run, Settings
from ..servers import Server
from . import subjects
from .subjects import Tuning

BENCH, TUNE = "study", "study-tune"
SERIES = "requests_per_s"
TUNE_S, ROUNDS_S = 2, 1

CLOSE = ["-H", "Connection: close"]


@dataclass(frozen=True)
class Workload:
    """wrk: more options of wrk. rounds: bench --raw rounds can make this load, too.
    connections, quick: numbers of connections, and those with --quick.
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


def parse(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The workloads and the models that the words name; all, if they name none. The
    model "events" is always one: the others are compared with it.
    """
    loads = [word for word in words if word in WORKLOADS]
    names = [word for word in words if word in subjects.NAMES]
    for word in words:
        if word not in loads and word not in names:
            known = ", ".join([*WORKLOADS, *subjects.NAMES])
            raise BenchError(f"study: {word}: give {known}")
    if names and subjects.EVENTS not in names:
        names.append(subjects.EVENTS)
    return loads or list(WORKLOADS), names or subjects.NAMES


def by_wrk(
    plan: Plan, load: Workload, server: Server, connections: int, seconds: int
) -> Json:
    url = server.url + pair.FILE
    command = clients.wrk(plan, connections, seconds, url, load.wrk)
    core, before = quiet.Busy(plan.cores.measured), quiet.clock_s(server.pid)
    found = clients.run_wrk(command, seconds)
    used = quiet.clock_s(server.pid) - before
    return {
        SERIES: [found.requests_per_s],
        "p50_us": [found.p50_us],
        "p99_us": [found.p99_us],
        "busy_percent": [100 * min(1.0, core.seconds() / found.seconds)],
        "loaded_us": [1e6 * used / found.requests],
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


# Tuning.


def tune(
    run: Run, plan: Plan, folder: Path, workload: str, name: str, connections: int
) -> Tuning:
    """The tuning that makes the most requests a second. The run keeps the figures of
    all tunings that were tried.
    """
    load, best, most = WORKLOADS[workload], [], 0.0
    for tuning in subjects.tunings(name, connections):
        words = " ".join(tuning)
        progress(f"{BENCH}: tuning {name} for {connections} connections: {words}")
        with subjects.started(plan, name, tuning, folder) as server:
            found = by_wrk(plan, load, server, connections, TUNE_S)
        settings: Settings = {
            "workload": workload,
            "model": name,
            "connections": connections,
            "tuning": words,
        }
        run.measurements.append(
            Measurement(TUNE, settings, [{"samples": found, "counts": {}}])
        )
        if found[SERIES][0] > most:
            best, most = tuning, found[SERIES][0]
    progress("")
    return best


def tuning_of(
    run: Run, plan: Plan, folder: Path, workload: str, name: str, connections: int
) -> Tuning:
    tried = subjects.tunings(name, connections)
    if plan.tune and len(tried) > 1:
        return tune(run, plan, folder, workload, name, connections)
    return tried[0]


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
    """Measure the models with so many connections; one that can't run is left out."""
    with pair.file_of(plan.bytes) as folder, ExitStack() as stack:
        content = (folder / "root" / pair.FILE).read_bytes()
        found = {}
        for name in names:
            try:
                tuning = tuning_of(run, plan, folder, workload, name, connections)
                server = stack.enter_context(
                    subjects.started(plan, name, tuning, folder)
                )
                servers.check(plan.network, server, pair.FILE, content)
                found[name] = server, tuning
            except BenchError as error:
                run.note(f"{BENCH}: {name} is left out: {error}")
        compare(run, plan, workload, connections, found)


def measure(run: Run, plan: Plan) -> None:
    loads, names = parse(plan.words)
    for program in ("wrk", "taskset"):
        tools.need(program)
    for workload in loads:
        load = WORKLOADS[workload]
        counts = load.quick if plan.quick else load.connections
        for connections in [plan.connections] if plan.connections else counts:
            measure_point(run, plan, workload, names, connections)

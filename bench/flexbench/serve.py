# SPDX-License-Identifier: MIT
"""flexsc serve against stock nginx, each with a worker per core: on the same cores,
with the same file, loaded by the same wrk on other cores, alternately.

    plain    open, stat, read or sendfile, and close for each request
    cached   both keep the file open for a while

With --sweep they are compared against the number of connections, opening the file for
each request. If the module for nginx is built, nginx with the module is measured too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from . import clients, pair, quiet, servers, sweep, table, tools
from .idle import descriptors
from .pair import FILE
from .runner import Plan, progress
from .samples import BenchError, Json, Measurement, Run, Settings, by_cores, distinct
from .servers import Module, Server, Site
from .tools import Load

BENCH = "serve"
SERIES = sweep.SERIES
OURS, THEIRS = "flexsc", "nginx"

CACHE = 1000
ROUNDS_S = 1
COUNT_S = 2
ROWS = [
    ("requests/s", SERIES),
    ("latency p50, us", "p50_us"),
    ("latency p99, us", "p99_us"),
    ("core busy, %", "busy_percent"),
    ("processor time/request, us", "loaded_us"),
    ("processor time/request in rounds, us", "cpu_us"),
    ("the same with the client's, us", "both_us"),
]
SWEPT = "plain"
MODES = {
    SWEPT: "opening, reading and closing the file each time",
    "cached": "keeping the file open",
}


def connections(plan: Plan) -> int:
    return plan.connections or pair.CONNECTIONS


def wrk(plan: Plan, server: Server, seconds: int) -> list[str]:
    url = server.url + FILE
    return clients.wrk(plan, connections(plan), seconds, url)


def load(plan: Plan, server: Server, seconds: int) -> Load:
    try:
        return clients.run_wrk(wrk(plan, server, seconds), seconds)
    except BenchError as error:
        raise BenchError(f"{server.name}: {error}") from error


def rounds(plan: Plan, server: Server) -> dict[str, list[float]]:
    """The cost of a request. Not for a sweep, which measures only throughput and
    latency, nor for several workers, which a client on their core can't load evenly.
    """
    if plan.sweep or len(plan.cores.server) > 1:
        return {}
    return pair.in_rounds(plan, server, connections(plan), plan.bytes, ROUNDS_S)


def round_of(plan: Plan, server: Server, seconds: int) -> Json:
    shares, before = quiet.Shares(plan.cores.server), servers.clock_s(server)
    found = load(plan, server, seconds)
    shared, spent = shares.samples(), servers.clock_s(server) - before
    return {
        "samples": {
            **rounds(plan, server),
            **shared,
            "requests_per_s": [found.requests_per_s],
            "mean_us": [found.mean_us],
            "p50_us": [found.p50_us],
            "p99_us": [found.p99_us],
            "loaded_us": [1e6 * spent / found.requests],
        },
        "counts": {"requests": found.requests},
    }


def count(plan: Plan, server: Server) -> float:
    """The number of system calls per request."""

    def loaded(counter: Sequence[str]) -> Load:
        command = [*counter, *wrk(plan, server, COUNT_S)]
        return clients.run_wrk(command, COUNT_S)

    calls, found = tools.count_calls(servers.family(server.pid), loaded)
    return calls / found.requests


# The whole bench.


def module(run: Run, plan: Plan) -> list[Module]:
    """The module for nginx, for a sweep; empty if it isn't built."""
    if not plan.sweep:
        return []
    try:
        return [Module(servers.module(plan.flexsc), 0)]
    except BenchError as error:
        run.note(f"{BENCH}: {error}")
        return []


@contextmanager
def started(run: Run, plan: Plan, folder: Path, cached: bool) -> Iterator[list[Server]]:
    site = Site(folder / "root", cached)
    sites = {THEIRS: site}
    sites |= {
        servers.WITH_MODULE: replace(site, module=one) for one in module(run, plan)
    }
    with ExitStack() as stack:
        ours = servers.flexsc(plan, site.root, CACHE if cached else 0)
        yield [
            stack.enter_context(ours),
            *(
                stack.enter_context(servers.nginx(plan, name, folder / name, one))
                for name, one in sites.items()
            ),
        ]


def compare(run: Run, plan: Plan, mode: str, found: list[Server]) -> None:
    settings: Settings = {
        "mode": mode,
        "connections": connections(plan),
        "bytes": plan.bytes,
    }
    pair.compare(
        *(run, plan, BENCH, found, settings),
        lambda server, seconds: round_of(plan, server, seconds),
    )


def count_all(run: Run, plan: Plan, mode: str, found: list[Server]) -> None:
    key: Settings = {
        "mode": mode,
        "connections": connections(plan),
        "cores": len(plan.cores.server),
    }
    for server in found:
        progress(f"serve: system calls of {server.name}")
        for measurement in run.of(BENCH, **key, variant=server.name):
            try:
                calls = count(plan, server)
                measurement.rounds[-1]["counts"]["syscalls_per_request"] = calls
            except BenchError as error:
                run.note(
                    f"serve: can't count the system calls of {server.name}: {error}"
                )
    progress("")


def measure_mode(run: Run, plan: Plan, mode: str, folder: Path) -> None:
    content = (folder / "root" / FILE).read_bytes()
    plans = sweep.plans(plan, sweep.WEB)
    with (
        descriptors(connections(plans[-1])),
        started(run, plan, folder, mode == "cached") as found,
    ):
        for server in found:
            servers.check(plan.network, server, FILE, content)
        for one in plans:
            try:
                compare(run, one, mode, found)
            except BenchError as error:
                run.note(f"{BENCH}: {connections(one)} connections: {error}")
        count_all(run, plans[-1], mode, found)


def measure(run: Run, plan: Plan) -> None:
    for program in ("nginx", "wrk", "taskset"):
        tools.need(program)
    with pair.file_of(plan.bytes) as folder:
        for mode in [SWEPT] if plan.sweep else MODES:
            measure_mode(run, plan, mode, folder)


def lines(ours: Measurement, theirs: Measurement) -> list[list[str]]:
    rows = table.beside(ROWS, (ours, theirs), ours, theirs)
    counts = [m.rounds[-1]["counts"] for m in (ours, theirs)]
    if all("syscalls_per_request" in c for c in counts):
        calls = [float(c["syscalls_per_request"]) for c in counts]
        rows.append(["system calls/request", *map(table.number, calls), ""])
    return rows


def show_one(mode: str, found: list[Measurement]) -> list[str]:
    """The table for one number of connections."""
    by_name = {str(m.settings["variant"]): m for m in found}
    if OURS not in by_name or THEIRS not in by_name:
        return []
    ours, theirs = by_name[OURS], by_name[THEIRS]
    title = (
        f"serve: {ours.settings['bytes']} bytes, "
        f"{ours.settings['connections']} connections, {MODES[mode]}; " + table.how(ours)
    )
    head = [mode, OURS, THEIRS, "flexsc/nginx"]
    rows = table.table(head, lines(ours, theirs))
    return [title + "\n" + table.explained(rows)]


def show_mode(mode: str, found: list[Measurement]) -> list[str]:
    if len(distinct(found, "connections")) == 1:
        return show_one(mode, found)
    size = found[0].settings["bytes"]
    title = f"serve: {size} bytes, {MODES[mode]}; {table.how(found[0])}"
    names = distinct(found, "variant")
    return sweep.tables(title, "requests", found, names, THEIRS)


def show(run: Run) -> list[str]:
    return [
        part
        for mode in distinct(run.of(BENCH), "mode")
        for found in by_cores(run.of(BENCH, mode=mode)).values()
        for part in show_mode(mode, found)
    ]

# SPDX-License-Identifier: MIT
"""The figures of ATC 2011."""

from __future__ import annotations

from functools import partial

from .. import loops, nginx, serve, table
from ..papers import Data, Profile
from ..running import NATIVE
from ..samples import distinct
from . import costs, draw
from .figure import Bench, Figure, Row, State, number_pair
from .osdi import COUNTERS, DIAGRAM, beside, machine_rows
from .runs import Runs, gain

SERVE = Bench(("serve",), serve.BENCH)
NGINX = Bench(("nginx", "plain"), nginx.BENCH, {"mode": "plain"})
MEMCACHED = Bench(("programs", "memcached"), loops.BENCH, {"program": "memcached"})

NO_SWEEP = "the bench has one core for the server"
NOT_OURS = "counted for nginx and memcached only where perf or strace may count"


def serve_rows(runs: Runs, series: str, unit: str, less: bool) -> list[Row]:
    rows = []
    for mode in distinct(runs.of(serve.BENCH), "mode"):
        ours = runs.find(serve.BENCH, mode=mode, variant="flexsc")
        theirs = runs.find(serve.BENCH, mode=mode, variant="nginx")
        if ours and theirs:
            count = ours.settings["connections"]
            medians = ours.median(series), theirs.median(series)
            rows.append(
                Row(
                    f"flexsc serve, {mode}, {count} connections",
                    here=number_pair(*medians, f"{unit}, nginx"),
                    ratio=gain(ours, theirs, series, less),
                )
            )
    return rows


def module_rows(runs: Runs) -> list[Row]:
    rows = []
    for name in distinct(runs.of(nginx.BENCH), "mode"):
        ours = runs.find(nginx.BENCH, mode=name, variant=nginx.MODULE)
        stock = runs.find(nginx.BENCH, mode=name, variant=nginx.STOCK)
        if ours and stock and name in nginx.MODES:
            series = nginx.MODES[name].series
            medians = ours.median(series), stock.median(series)
            count = ours.settings["connections"]
            rows.append(
                Row(
                    f"nginx with the module, {name}, {count} connections",
                    here=number_pair(*medians, "us of the processor a request, stock"),
                    ratio=gain(ours, stock, series, less=True),
                )
            )
    return rows


def nginx_throughput(runs: Runs, data: Data) -> list[Row]:
    rows = module_rows(runs) + serve_rows(runs, "requests_per_s", "requests/s", False)
    found = []
    for point in data.points:
        if point.series == "flexsc/epoll":
            found += beside(point, rows if point.cores == "1" else [], NO_SWEEP)
    return found


def nginx_latency(runs: Runs, data: Data) -> list[Row]:
    rows = serve_rows(runs, "p50_us", "us, median", True)
    found = []
    for point in data.points:
        found += beside(point, rows if point.cores == "1" else [], NO_SWEEP)
    return found


def calls_of(runs: Runs, server: str) -> str:
    """The system calls of a request to the unchanged server, and the tool that counted
    them; empty: they weren't counted.
    """
    if server == "nginx":
        m = runs.find(serve.BENCH, mode="plain", variant="nginx")
        key, by = "syscalls_per_request", "counted_by"
    else:
        m = runs.find(loops.BENCH, program=server, mode=loops.KEPT, variant=NATIVE)
        key, by = loops.CALLS, ""
    counts = m.rounds[-1]["counts"] if m else {}
    if key not in counts:
        return ""
    return f"{table.number(counts[key])} ({counts.get(by, 'perf')})"


def profile_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for profile in data.of(Profile):
        here = calls_of(runs, profile.server)
        rows.append(
            Row(
                f"{profile.server}: system calls a request",
                paper=str(profile.syscalls_per_request),
                here=here,
                reason="" if here else NOT_OURS,
            )
        )
    return rows


FIGURES = [
    Figure(
        "atc-t1",
        State.STAND_IN,
        "system calls for a request alone; instructions and IPC take counters",
        differs="Stock nginx and memcached, of today.",
        benches=[SERVE, MEMCACHED],
        rows=profile_rows,
    ),
    Figure(
        "atc-f1",
        State.STAND_IN,
        costs.CLOCK,
        costs.SHARE + "A tree stands for Xalan.",
        [costs.POLLUTE],
        partial(costs.speed_rows, "tree"),
    ),
    Figure("atc-f2", State.DIAGRAM, DIAGRAM + ", examples/server.c the program"),
    Figure("atc-t2", State.NOT_BUILT, "memcached isn't ported, nor are lines counted"),
    Figure(
        "atc-t3", State.RECORDED, "the machine of the first file", rows=machine_rows
    ),
    Figure("atc-f5", State.NOT_BUILT, "memcached isn't ported"),
    Figure("atc-f6", State.COUNTERS, COUNTERS),
    Figure(
        "atc-f7",
        State.STAND_IN,
        "nginx' module by processor time for a request, and another server by requests",
        differs="The paper's nginx was ported as a whole. Ours is stock nginx with a "
        "module for static files, and flexsc serve, which has less to do than nginx. One "
        "number of connections, by wrk or in rounds, and not by ApacheBench.",
        benches=[NGINX, SERVE],
        rows=nginx_throughput,
        draw=draw.intervals,
    ),
    Figure(
        "atc-f8",
        State.STAND_IN,
        "the median latency of another server stands for nginx' mean",
        differs="flexsc serve beside nginx, by wrk.",
        benches=[SERVE],
        rows=nginx_latency,
        draw=draw.intervals,
    ),
    Figure("atc-f9", State.NOT_BUILT, "nginx isn't offered rates yet"),
    Figure("atc-f10", State.COUNTERS, COUNTERS),
]

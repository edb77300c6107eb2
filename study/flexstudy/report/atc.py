# SPDX-License-Identifier: MIT
"""The figures of ATC 2011."""

from __future__ import annotations

from functools import partial

from flexbench import serve, table
from flexbench.samples import Measurement, by_cores, distinct

from .. import loops, nginx, ported
from ..papers import Data, Point
from ..webserver import subjects
from ..webserver.limits import limited
from . import costs, counted, efficiency, study, sweeps
from .figure import Bench, Draw, Figure, Row, State, number_pair
from .osdi import DIAGRAM, SCALED, machine_rows
from .runs import Runs, gain
from .sweeps import Quantity, Sweep, sweeps_of

SERVE = Bench(("serve", *SCALED), serve.BENCH, {"mode": serve.SWEPT})
# As many connections as in figures 7 and 8.
NGINX = Bench(
    ("nginx", "plain", "--cores", "all", "--connections", "256"),
    nginx.BENCH,
    {"mode": "plain"},
)
PAGES = study.bench(study.PAGES)
PORT = "programs", ported.NAME
MEMCACHED = Bench(PORT, ported.BENCH)
LINES = Bench(PORT, ported.LINES)


def servers(runs: Runs) -> list[Sweep]:
    """flexsc serve and nginx with the module, each beside stock nginx with a worker per
    core. One worker with the module may have its calls on other cores.
    """
    found = []
    names = (("flexsc serve", serve.OURS), ("nginx with the module", nginx.MODULE))
    for what, ours in names:
        every = runs.of(serve.BENCH, **SERVE.settings)
        found += sweeps_of(every, what, "connections", (ours, serve.THEIRS))
    every, both = runs.of(nginx.BENCH, **NGINX.settings), (nginx.REMOTE, nginx.STOCK)
    what = "one nginx worker with the module, calls elsewhere"
    return found + sweeps_of(every, what, "connections", both)


def module_row(name: str, cores: int, ours: Measurement, stock: Measurement) -> Row:
    series = nginx.MODES[name].series
    count = ours.settings["connections"]
    where = f"nginx with the module, {name}, {table.cores(cores)}, {count} connections"
    medians = ours.median(series), stock.median(series)
    return Row(
        where,
        here=number_pair(*medians, "us of the processor a request, stock"),
        ratio=gain(ours, stock, series, less=True),
    )


def module_rows(runs: Runs) -> list[Row]:
    rows = []
    for name in distinct(runs.of(nginx.BENCH), "mode"):
        for cores, found in by_cores(runs.of(nginx.BENCH, mode=name)).items():
            at = {m.settings["variant"]: m for m in found}
            ours, stock = at.get(nginx.MODULE), at.get(nginx.STOCK)
            if ours and stock and name in nginx.MODES:
                rows.append(module_row(name, cores, ours, stock))
    return rows


RATE = Quantity(serve.SERIES, "requests/s")
MEAN = Quantity("mean_us", "us, mean", less=True)


def server_rows(quantity: Quantity, runs: Runs, data: Data) -> list[Row]:
    quantities = {"mean latency"} if quantity.less else {"throughput"}
    rows = sweeps.rows(data, servers(runs), quantity, quantities)
    return rows if quantity.less else rows + module_rows(runs)


def panels(quantity: Quantity) -> list[Draw]:
    return [partial(sweeps.panel, servers, index, quantity) for index in (0, 1)]


# memcached, table 2 and figure 5.


def line_rows(runs: Runs, data: Data) -> list[Row]:
    found = runs.find(ported.LINES)
    if not found:
        return []
    counts = found.rounds[-1]["counts"]
    here = f"{sum(counts.values())} in {len(counts)} files"
    return [
        Row("lines modified, memcached", paper="293 in 3 files", here=here),
        Row("lines modified, nginx", paper="255 in 16 files", here="0, and a module"),
    ]


def memcached(runs: Runs) -> list[Sweep]:
    """The port, with its calls on its own core and on another one."""
    every, found = runs.of(ported.BENCH), []
    for variant, title in ported.TITLES.items():
        both = variant, ported.STOCK
        found += sweeps_of(every, f"memcached {title}", "connections", both)
    return found


def memcached_rows(runs: Runs, data: Data) -> list[Row]:
    rows = sweeps.rows(data, memcached(runs), RATE, {"throughput"})
    time = Quantity(loops.SERIES, "us of the processor a request", less=True)
    return rows + [one.row(pair, time) for one in memcached(runs) for pair in one.pairs]


# Figure 9: answered against offered requests.

SERVERS = {"epoll": subjects.NGINX, "flexsc": subjects.SERVE}


def offered_pairs(found: list[Measurement]) -> list[tuple[Measurement, Measurement]]:
    """flexsc serve and nginx at the same offered rates."""
    at: dict[str, dict[str, Measurement]] = {}
    for m in found:
        at.setdefault(str(m.settings["times"]), {})[study.model(m)] = m
    both = subjects.SERVE, subjects.NGINX
    return [
        (here[both[0]], here[both[1]])
        for here in at.values()
        if all(name in here for name in both)
    ]


def offered_row(
    ours: Measurement, theirs: Measurement, point: Point | None = None
) -> Row:
    medians = ours.median(study.ANSWERS), theirs.median(study.ANSWERS)
    here = number_pair(*medians, "answers/s, nginx")
    if limited(ours) or limited(theirs):
        here += f"; {sweeps.LIMITED}"
    where = f"flexsc serve, {ours.settings['offered_per_s']} requests/s offered"
    return Row(where, point, here=here, ratio=gain(ours, theirs, study.ANSWERS))


def saturation(point: Point, found: list[Measurement]) -> str:
    """The highest rate that the server named in a sentence of the paper answered;
    empty: not measured."""
    mine = [m for m in found if study.model(m) == SERVERS[point.series]]
    most = max((m.median(study.ANSWERS) for m in mine), default=None)
    if most is None:
        return ""
    return f"{table.number(most)} answers/s at most, {SERVERS[point.series]}"


def offered_rows(runs: Runs, data: Data) -> list[Row]:
    found = study.offered(runs, study.PAGES)
    pairs = offered_pairs(found)
    rows = []
    for point in data.points:
        one = sweeps.one_core(point)
        if one and point.quantity == "throughput" and pairs:
            best = max(
                pairs,
                key=lambda pair: (
                    not any(map(limited, pair)),
                    gain(pair[0], pair[1], study.ANSWERS).median,
                ),
            )
            rows.append(offered_row(*best, point))
        elif one and point.series in SERVERS:
            here = saturation(point, found)
            reason = "" if here else "not measured"
            rows.append(Row(sweeps.where(point), point, here=here, reason=reason))
        else:
            reason = "not measured" if one else sweeps.not_on(point)
            rows.append(Row(sweeps.where(point), point, reason=reason))
    return rows + [offered_row(*pair) for pair in pairs]


FIGURES = [
    Figure(
        "atc-t1",
        State.MEASURED,
        "IPC needs hardware counters",
        differs=counted.DIFFERS,
        benches=[counted.COUNTS],
        rows=counted.profile_rows,
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
    Figure(
        "atc-t2",
        State.MEASURED,
        differs="Debian's memcached 1.6.18. Lines "
        "of new files count without comments and empty lines. nginx is extended by a "
        "module.",
        benches=[LINES],
        rows=line_rows,
    ),
    Figure(
        "atc-t3", State.RECORDED, "the machine of the first file", rows=machine_rows
    ),
    Figure(
        "atc-f5",
        State.MEASURED,
        differs="memcached 1.6.18 with one worker, beside stock memcached of the same "
        "source. All requests get one value of 64 bytes. Our own clients load it over "
        "loopback, from another core.",
        benches=[MEMCACHED],
        rows=memcached_rows,
        draws=[partial(sweeps.panel, memcached, index, RATE) for index in (0, 1)],
    ),
    efficiency.figure("atc-f6", "memcached"),
    Figure(
        "atc-f7",
        State.STAND_IN,
        "another server, and nginx with a module",
        differs="The paper's nginx was ported as a whole. Ours is stock nginx with a "
        "module for static files, and flexsc serve, which does less than nginx. wrk loads "
        "them over kept connections, instead of ApacheBench.",
        benches=[SERVE, NGINX],
        rows=partial(server_rows, RATE),
        draws=panels(RATE),
    ),
    Figure(
        "atc-f8",
        State.STAND_IN,
        "another server, and nginx with a module",
        differs="As for figure 7; wrk reports the latency.",
        benches=[SERVE, NGINX],
        rows=partial(server_rows, MEAN),
        draws=panels(MEAN),
    ),
    Figure(
        "atc-f9",
        State.STAND_IN,
        "another server stands for nginx with FlexSC",
        differs="flexsc serve is compared with stock nginx, in an open loop of "
        "sessions by our own clients, of 20 requests each, for files of 64 bytes to 8 KiB.",
        benches=[PAGES],
        rows=offered_rows,
        draws=[partial(study.offered_panel, study.PAGES, 1)],
    ),
    efficiency.figure("atc-f10", "nginx"),
]

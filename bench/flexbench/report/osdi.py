# SPDX-License-Identifier: MIT
"""The figures of OSDI 2010."""

from __future__ import annotations

from functools import partial

from .. import calls, loops, programs, table, threads
from ..papers import Data, Point
from ..running import FLEXSC, NATIVE
from ..samples import Measurement, Settings, distinct
from . import draw
from .figure import Bench, Figure, Row, State, number_pair
from .runs import Runs, gain

CALLS = Bench(("calls",), calls.BENCH)
APACHE = Bench(("programs", "apache"), programs.BENCH, {"program": "apache"})
MARIADB = Bench(("programs", "mariadb"), programs.BENCH, {"program": "mariadb"})
THREADS = Bench(("threads",), threads.BENCH, {"part": threads.LOAD, "mode": "http"})
ENTRIES = Bench(("threads",), threads.BENCH, {"part": threads.ENTRIES})
BIND = Bench(("programs", "bind"), loops.BENCH, {"program": "bind"})

# So many entries are enough as reach this share of the best rate.
NEARLY = 0.95

COUNTERS = "takes the processor's counters, and a bench that isn't built yet"
DIAGRAM = "a drawing; docs/design.md has ours"


# Figures 9 and 10: a call's time against the size of its batch.


def fits(batch: int, point: Point) -> bool:
    """Does the sentence mean this batch? "From 32 on" means any from 32 on."""
    named = int(float(point.x))
    return batch >= named if point.kind == "up_to" else batch == named


def batch_rows(runs: Runs, variant: str, place: str, call: str) -> list[Row]:
    """A row for each size of batch: plain calls' time by the variant's."""
    found = [m for m in runs.of(calls.BENCH, call=call) if calls.place_of(m) == place]
    rows = []
    for batch in distinct(found, "batch"):
        at = {m.settings["variant"]: m for m in found if m.settings["batch"] == batch}
        if variant in at and "plain" in at:
            ours, plain = at[variant], at["plain"]
            pair = ours.median(calls.SERIES), plain.median(calls.SERIES)
            rows.append(
                Row(
                    f"{call} by {variant}, {batch} in a batch",
                    here=number_pair(*pair, "ns a call, plain"),
                    ratio=gain(ours, plain, calls.SERIES, less=True),
                )
            )
    return rows


def batch_of(row: Row) -> int:
    return int(row.where.rpartition(", ")[2].split()[0])


def best(rows: list[Row]) -> Row:
    return max(rows, key=lambda row: row.ratio.median if row.ratio else 0.0)


def calls_rows(variants: list[tuple[str, str]], runs: Runs, data: Data) -> list[Row]:
    """First a row for each of the paper's numbers, then one for each size of batch."""
    first, others = [], []
    for variant, place in variants:
        for call in distinct(runs.of(calls.BENCH), "call"):
            rows = batch_rows(runs, variant, place, call)
            suffix = "" if place == calls.SAME else f" ({place})"
            for point in data.points if rows else []:
                at = [row for row in rows if fits(batch_of(row), point)]
                if at:
                    row = best(at)
                    first.append(
                        Row(row.where + suffix, point, "", row.here, row.ratio)
                    )
                else:
                    why = f"no batch of {point.x} was measured"
                    first.append(Row(f"{call} by {variant}{suffix}", point, reason=why))
            others += [
                Row(row.where + suffix, here=row.here, ratio=row.ratio) for row in rows
            ]
    return first + others


# Programs natively and under flexsc run.


def pair_of(runs: Runs, bench: str, **settings: str | int) -> list[Measurement]:
    """The measurements under flexsc run and natively; none, if one is missing."""
    both = [runs.find(bench, **settings, variant=v) for v in (FLEXSC, NATIVE)]
    return [m for m in both if m] if all(both) else []


def pair_row(
    pair: list[Measurement], series: str, unit: str, less: bool, what: str
) -> Row:
    ours, native = pair
    medians = ours.median(series), native.median(series)
    return Row(
        what,
        here=number_pair(*medians, f"{unit}, natively"),
        ratio=gain(ours, native, series, less),
    )


def beside(point: Point, rows: list[Row], reason: str) -> list[Row]:
    """The rows with the paper's number beside each, or one row with the reason why
    there are none.
    """
    if not rows:
        return [Row(where(point), point, reason=reason)]
    return [Row(r.where, point, "", r.here, r.ratio) for r in rows]


def cores_of(count: str) -> str:
    return "1 core" if count == "1" else f"{count} cores"


def where(point: Point) -> str:
    cores = cores_of(point.cores) if point.cores else ""
    at = f"{point.x_name} {point.x}".strip()
    return ", ".join(text for text in (point.series, cores, at) if text)


def program_rows(
    name: str, series: str, unit: str, runs: Runs, less: bool
) -> list[Row]:
    rows = []
    for mode in programs.KINDS[name].modes:
        pair = pair_of(runs, programs.BENCH, program=name, mode=mode)
        if pair:
            count = pair[0].settings["connections"]
            what = f"{name} {mode}, 1 core, {count} {programs.KINDS[name].clients}"
            rows.append(pair_row(pair, series, unit, less, what))
    return rows


def http_rows(series: str, unit: str, less: bool, runs: Runs) -> list[Row]:
    """Rows of http-threads, which has several numbers of connections, as the paper's
    curve.
    """
    rows = []
    for cores in (1, 2):
        key: Settings = {**THREADS.settings, "cores": cores}
        for count in distinct(runs.of(threads.BENCH, **key), "connections"):
            pair = pair_of(runs, threads.BENCH, **key, connections=count)
            if pair:
                what = f"http-threads, {cores_of(str(cores))}, {count} connections"
                rows.append(pair_row(pair, series, unit, less, what))
    return rows


ONE_CORE = "the bench has this server on one core, with one number of clients"


def load_rows(name: str, series: str, less: bool, runs: Runs, data: Data) -> list[Row]:
    unit = "us, median" if less else f"{programs.KINDS[name].unit}/s"
    ours = program_rows(name, series, unit, runs, less)
    rows = []
    for point in data.points:
        if point.unit in ("times", "percent"):
            one = point.cores.startswith("1") and not point.x.startswith("very few")
            rows += beside(point, ours if one else [], ONE_CORE)
    if name == "apache":
        rows += http_rows(series, unit, less, runs)
    return rows


def bind_rows(runs: Runs, data: Data) -> list[Row]:
    rows = []
    for mode in distinct(runs.of(loops.BENCH, program="bind"), "mode"):
        pair = pair_of(runs, loops.BENCH, program="bind", mode=mode)
        if pair:
            what = f"{pair[0].settings['connections']} that ask at once"
            unit = "us of the processor a request"
            rows.append(pair_row(pair, loops.SERIES, unit, True, what))
    return [r for p in data.points for r in beside(p, rows, "not measured")]


# Figure 16: how many entries are enough.


def entries_rows(runs: Runs, data: Data) -> list[Row]:
    found = [m for m in runs.of(threads.BENCH, part=threads.ENTRIES)]
    native = next((m for m in found if m.settings["variant"] == NATIVE), None)
    limited = [m for m in found if m.settings["entries"]]
    rows = []
    if limited:
        most = max(m.median(threads.SERIES) for m in limited)
        enough = min(
            int(m.settings["entries"])
            for m in limited
            if m.median(threads.SERIES) >= NEARLY * most
        )
        text = f"{enough} entries reach {NEARLY:.0%} of the best"
    for point in data.points:
        if point.unit != "entries":
            continue
        here = text if limited and point.cores == "1" else ""
        reason = "" if here else "the bench has this server on one core"
        rows.append(Row(where(point), point, here=here, reason=reason))
    for m in limited if native else []:
        assert native
        what = f"echo-threads, 1 core, {m.settings['entries']} entries"
        rows.append(pair_row([m, native], threads.SERIES, "requests/s", False, what))
    return rows


# The machine.


def machine_rows(runs: Runs, data: Data) -> list[Row]:
    """What the first file records of our machine, beside the paper's machine."""
    if not runs.sources:
        return []
    machine = runs.sources[0].machine
    cores = f"{machine.get('online', table.NOTHING)}, {machine.get('cpu', '')}"
    rows = []
    for component, specification in data.cells:
        ours = cores if component == "Cores" else ""
        reason = "" if ours else "not recorded"
        rows.append(Row(component, paper=specification, here=ours, reason=reason))
    return rows


ENGINE = (
    "The papers' calls are executed by a changed kernel's syscall threads, ours by "
    "io_uring or by threads of the library. Time is compared, on one core."
)
USER = (
    "The threads are those of flexsc run, on one carrier, for FlexSC-Threads in a changed "
    "kernel; the program and its clients share the machine, on cores of their own."
)
SAME = [("uring", calls.SAME), ("threads", calls.SAME)]
OTHER = [
    ("threads", calls.ASLEEP),
    ("threads", calls.POLLING),
    ("uring-sqpoll", calls.POLLING),
]

FIGURES = [
    Figure("osdi-t2", State.NOT_BUILT, "instructions between calls aren't counted yet"),
    *(Figure(f"osdi-f{number}", State.DIAGRAM, DIAGRAM) for number in (5, 6, 7, 8)),
    Figure(
        "osdi-t3", State.RECORDED, "the machine of the first file", rows=machine_rows
    ),
    Figure(
        "osdi-f9",
        State.MEASURED,
        differs=ENGINE
        + " The paper's call is getppid, of which io_uring has no operation: the engine "
        "makes it plainly.",
        benches=[CALLS],
        rows=partial(calls_rows, SAME),
        draw=draw.batches,
    ),
    Figure(
        "osdi-f10",
        State.MEASURED,
        differs=ENGINE
        + " The other core's thread sleeps between batches, as in the paper, or polls.",
        benches=[CALLS],
        rows=partial(calls_rows, OTHER),
        draw=draw.batches,
    ),
    Figure(
        "osdi-f11",
        State.MEASURED,
        differs=USER
        + " Apache is one number of connections, on one core, without a log "
        "of requests; http-threads stands for the rest of the curve.",
        benches=[APACHE, THREADS],
        rows=partial(load_rows, "apache", programs.SERIES, False),
        draw=draw.intervals,
    ),
    Figure(
        "osdi-f12",
        State.NOT_BUILT,
        "the time of each core isn't broken down yet",
        cores=8,
    ),
    Figure("osdi-t4", State.COUNTERS, COUNTERS),
    Figure(
        "osdi-f13",
        State.STAND_IN,
        "the median latency stands for the mean",
        differs=USER + " Latency is as wrk prints it, its median.",
        benches=[APACHE, THREADS],
        rows=partial(load_rows, "apache", "p50_us", True),
        draw=draw.intervals,
    ),
    Figure(
        "osdi-f14",
        State.MEASURED,
        differs=USER + " MariaDB stands for MySQL 5.5, loaded by sysbench as there; "
        "tables and clients are fewer, and point_select is no load of the paper's.",
        benches=[MARIADB],
        rows=partial(load_rows, "mariadb", programs.SERIES, False),
        draw=draw.intervals,
    ),
    Figure("osdi-t5", State.COUNTERS, COUNTERS),
    Figure(
        "osdi-f15",
        State.STAND_IN,
        "the median latency stands for the mean",
        differs=USER + " Latency is that of sysbench's transactions, its median.",
        benches=[MARIADB],
        rows=partial(load_rows, "mariadb", "p50_us", True),
        draw=draw.intervals,
    ),
    Figure(
        "osdi-f16",
        State.STAND_IN,
        "an echo server with a thread for each connection stands for Apache",
        differs="Entries come in pages of 64, so a smaller number is 64.",
        benches=[ENTRIES],
        rows=entries_rows,
        draw=draw.intervals,
    ),
    Figure(
        "osdi-bind",
        State.STAND_IN,
        "processor time for a request stands for throughput",
        differs="named has an event loop and one thread, so flexsc run has few threads "
        "to run; the paper's BIND had a thread for each request.",
        benches=[BIND],
        rows=bind_rows,
        draw=draw.intervals,
    ),
]

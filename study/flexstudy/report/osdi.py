# SPDX-License-Identifier: MIT
"""The figures of OSDI 2010."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from flexbench import calls, table, threads
from flexbench.running import FLEXSC, NATIVE
from flexbench.samples import Measurement, Settings, by_cores, distinct

from .. import entries, loops, programs
from ..papers import Data, Point
from . import chart, counted, draw, efficiency, sweeps
from .chart import GREY, PAPER, Scale, curves_of
from .figure import Bench, Draw, Figure, Row, State, number_pair, said
from .runs import Runs, gain
from .sweeps import Quantity, Sweep, pairs_of, sweeps_of

CALLS = Bench(("calls",), calls.BENCH)
SWEEP = "--sweep"
# All numbers of cores up to half of the machine's, because the papers have 1, 2 and 4.
SCALED = ("--sweep", "--cores", "all")
APACHE = Bench(
    ("programs", "apache:worker", *SCALED), programs.BENCH, {"program": "apache"}
)
MARIADB = Bench(
    ("programs", "mariadb:connection", *SCALED), programs.BENCH, {"program": "mariadb"}
)
# Small servers. --quick skips them, because it measures Apache for the same figures.
LOADED: Settings = {"part": threads.LOAD, "mode": "http"}
THREADS = Bench(("threads",), threads.BENCH, LOADED, slow=True)
LIMITED: Settings = {"part": threads.ENTRIES}
ENTRIES = Bench(THREADS.words, threads.BENCH, LIMITED, slow=True)
APACHE_ENTRIES = Bench(("programs", entries.NAME, "--cores", "all"), entries.BENCH)
BIND = Bench(("programs", "bind", SWEEP), loops.BENCH, {"program": "bind"})

# A number of entries is enough if it reaches this share of the best rate.
NEARLY = 0.95

DIAGRAM = "a drawing; docs/explanation/design.md has ours"


# Figures 9 and 10: a call's time against the size of its batch.


def fits(batch: int, point: Point) -> bool:
    """Does the sentence apply to this batch? "From 32 on" applies to all batches from
    32 on."""
    named = int(float(point.x))
    return batch >= named if point.kind == "up_to" else batch == named


def batch_rows(runs: Runs, variant: str, place: str, call: str) -> list[Row]:
    """A row per batch size: the ratio of plain calls' time to the variant's."""
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
    """A row for each of the paper's numbers, then one for each size of batch."""
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

THROUGHPUT, LATENCY = {"throughput", "transactions"}, {"mean latency"}


def programs_of(name: str, runs: Runs) -> list[Sweep]:
    """A sweep for each kind of load."""
    kind = programs.KINDS[name]
    found = []
    for mode in kind.modes:
        every = runs.of(programs.BENCH, program=name, mode=mode)
        what = f"{name} {mode}"
        found += sweeps_of(every, what, kind.clients, (FLEXSC, NATIVE))
    return found


def http_threads(runs: Runs) -> list[Sweep]:
    """http-threads: the same server on one core and on two."""
    every = runs.of(threads.BENCH, **THREADS.settings)
    return sweeps_of(every, "http-threads", "connections", (FLEXSC, NATIVE))


def rate_of(name: str) -> Quantity:
    return Quantity(programs.SERIES, f"{programs.KINDS[name].unit}/s")


MEAN = Quantity("mean_us", "us, mean", less=True)
MEDIAN = Quantity("p50_us", "us, median", less=True)  # all that http-threads measures


def program_rows(name: str, quantity: Quantity, runs: Runs, data: Data) -> list[Row]:
    quantities = LATENCY if quantity.less else THROUGHPUT
    rows = sweeps.rows(data, programs_of(name, runs), quantity, quantities)
    for one in http_threads(runs) if name == "apache" else []:
        rows += [one.row(p, MEDIAN if quantity.less else quantity) for p in one.pairs]
    return rows


def program_panels(name: str, quantity: Quantity) -> list[Draw]:
    found = partial(programs_of, name)
    return [
        partial(sweeps.panel, found, index, quantity)
        for index in range(len(programs.KINDS[name].modes))
    ]


# Figure 12: where the time of a core goes.


def both_programs(runs: Runs) -> list[Sweep]:
    return [*programs_of("apache", runs), *programs_of("mariadb", runs)]


def share_rows(runs: Runs, data: Data) -> list[Row]:
    """The paper's numbers, and ours."""
    reason = "of both variants: compare with the rows below"
    rows = [Row(sweeps.where(p), p, reason=reason) for p in data.points]
    return rows + sweeps.share_rows(both_programs(runs))


# BIND.


def bind(runs: Runs) -> list[Sweep]:
    key: Settings = {"program": "bind", "mode": loops.KEPT}
    pairs = pairs_of(runs.of(loops.BENCH, **key), FLEXSC, NATIVE)
    return [Sweep("named", "simultaneous clients", "natively", pairs)] if pairs else []


PROCESSOR = Quantity(loops.SERIES, "us of the processor a request", less=True)


def bind_rows(runs: Runs, data: Data) -> list[Row]:
    return sweeps.rows(data, bind(runs), PROCESSOR, {"BIND throughput"})


# Figure 16: how many entries are enough.


@dataclass(frozen=True)
class Entries:
    """A server against the number of entries. native: the server without flexsc run."""

    what: str
    limited: list[Measurement]
    native: Measurement

    @property
    def cores(self) -> int:
        return self.native.cores

    def enough(self) -> str:
        most = max(m.median(programs.SERIES) for m in self.limited)
        least = min(
            int(m.settings["entries"])
            for m in self.limited
            if m.median(programs.SERIES) >= NEARLY * most
        )
        return f"{self.what}: {least} entries reach {NEARLY:.0%} of the best"

    def row(self, m: Measurement) -> Row:
        series = programs.SERIES
        medians = m.median(series), self.native.median(series)
        return Row(
            f"{self.what}, {m.settings['entries']} entries",
            here=number_pair(*medians, "requests/s, natively"),
            ratio=gain(m, self.native, series),
        )


def entries_of(what: str, found: list[Measurement]) -> list[Entries]:
    every = []
    for cores, those in by_cores(found).items():
        native = [m for m in those if m.settings["variant"] == NATIVE]
        limited = [m for m in those if m.settings["entries"]]
        if native and limited:
            where = f"{what}, {table.cores(cores)}"
            every.append(Entries(where, limited, native[0]))
    return every


def by_entries(runs: Runs) -> list[Entries]:
    echo = runs.of(threads.BENCH, part=threads.ENTRIES)
    return [
        *entries_of("apache", runs.of(entries.BENCH)),
        *entries_of("echo-threads", echo),
    ]


def entries_rows(runs: Runs, data: Data) -> list[Row]:
    servers = by_entries(runs)
    rows = []
    for point in data.points:
        if point.unit == "entries":
            there = [one for one in servers if sweeps.on_cores(point, one.cores)]
            ours = "; ".join(server.enough() for server in there)
            reason = "" if ours else sweeps.not_on(point)
            rows.append(Row(sweeps.where(point), point, here=ours, reason=reason))
    return rows + [server.row(m) for server in servers for m in server.limited]


def entries_panel(axes: Any, runs: Runs, rows: Sequence[Row]) -> None:
    """Draw throughput, with the native one as a dashed line, and the paper's range for
    one core."""
    points = [row.point for row in rows if row.point and row.point.cores == "1"]
    for point in dict.fromkeys(points):
        axes.axvline(float(point.value), color=PAPER, label=f"OSDI: {said(point)}")
    found = []
    for server in by_entries(runs):
        (one,) = curves_of(server.limited, "entries", programs.SERIES)
        found.append(replace(one, label=f"{server.what}, flexsc run"))
        rate = server.native.median(programs.SERIES)
        axes.axhline(rate, linestyle="--", color=GREY, label=f"{server.what}, native")
    scale = Scale("calls that may execute at once", "requests a second")
    chart.curves(axes, found, scale)


# The machine.


def machine_rows(runs: Runs, data: Data) -> list[Row]:
    """Our machine, as recorded in the first file, beside the paper's machine."""
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
    "In the papers, syscall threads of a modified kernel execute the calls; here the "
    "kernel module (kmod), io_uring or the library's threads do. The figure is time."
)
USER = (
    "flexsc run, with a carrier per core, takes the place of FlexSC-Threads in a modified "
    "kernel. "
    "The program and its clients share the machine, on separate cores."
)
SAME = [(calls.KMOD, calls.SAME), ("uring", calls.SAME), ("threads", calls.SAME)]
OTHER = [
    (calls.KMOD, calls.ASLEEP),
    (calls.KMOD, calls.POLLING),
    ("threads", calls.ASLEEP),
    ("threads", calls.POLLING),
    ("uring-sqpoll", calls.POLLING),
]

FIGURES = [
    Figure(
        "osdi-t2",
        State.MEASURED,
        differs=counted.DIFFERS + "MariaDB stands for MySQL.",
        benches=[counted.COUNTS],
        rows=counted.frequency_rows,
    ),
    *(Figure(f"osdi-f{number}", State.DIAGRAM, DIAGRAM) for number in (5, 6, 7, 8)),
    Figure(
        "osdi-t3", State.RECORDED, "the machine of the first file", rows=machine_rows
    ),
    Figure(
        "osdi-f9",
        State.MEASURED,
        differs=ENGINE
        + " The paper's call is getppid. io_uring has no such operation, so the engine "
        "makes a plain call.",
        benches=[CALLS],
        rows=partial(calls_rows, SAME),
        draws=[draw.batches],
    ),
    Figure(
        "osdi-f10",
        State.MEASURED,
        differs=ENGINE
        + " The other core's thread sleeps between batches, as in the paper, or polls.",
        benches=[CALLS],
        rows=partial(calls_rows, OTHER),
        draws=[draw.batches],
    ),
    Figure(
        "osdi-f11",
        State.MEASURED,
        differs=USER
        + " Apache runs without a log of requests, with 44 threads more than "
        "connections; wrk loads it. http-threads is a smaller server.",
        benches=[APACHE, THREADS],
        rows=partial(program_rows, "apache", rate_of("apache")),
        draws=program_panels("apache", rate_of("apache")),
    ),
    Figure(
        "osdi-f12",
        State.MEASURED,
        differs="With enough clients, one core always has work. The cores' time is "
        "everything that /proc/stat counts for them, including other processes.",
        benches=[APACHE, MARIADB],
        rows=share_rows,
        draws=[partial(sweeps.share_panel, both_programs)],
    ),
    efficiency.figure("osdi-t4", "apache"),
    Figure(
        "osdi-f13",
        State.MEASURED,
        differs=USER + " wrk reports the latency.",
        benches=[APACHE, THREADS],
        rows=partial(program_rows, "apache", MEAN),
        draws=program_panels("apache", MEAN),
    ),
    Figure(
        "osdi-f14",
        State.MEASURED,
        differs=USER
        + " MariaDB stands for MySQL 5.5, and sysbench loads it as in the paper. "
        "There are fewer tables and clients, and the paper doesn't have point_select.",
        benches=[MARIADB],
        rows=partial(program_rows, "mariadb", rate_of("mariadb")),
        draws=program_panels("mariadb", rate_of("mariadb")),
    ),
    efficiency.figure("osdi-t5", "mariadb"),
    Figure(
        "osdi-f15",
        State.MEASURED,
        differs=USER + " The latency is that of sysbench's transactions.",
        benches=[MARIADB],
        rows=partial(program_rows, "mariadb", MEAN),
        draws=program_panels("mariadb", MEAN),
    ),
    Figure(
        "osdi-f16",
        State.MEASURED,
        differs="Apache, and an echo server, have 512 connections. "
        "Entries are allocated in pages of 64, so a smaller number counts as 64.",
        benches=[APACHE_ENTRIES, ENTRIES],
        rows=entries_rows,
        draws=[entries_panel],
    ),
    Figure(
        "osdi-bind",
        State.STAND_IN,
        "processor time for a request stands for throughput",
        differs="named has an event loop and one thread, so flexsc run has few threads "
        "to run; the paper's BIND had a thread for each request.",
        benches=[BIND],
        rows=bind_rows,
        draws=[partial(sweeps.panel, bind, 0, PROCESSOR)],
    ),
]

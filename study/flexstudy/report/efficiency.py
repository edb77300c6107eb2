# SPDX-License-Identifier: MIT
"""The papers' figures that flexsc study counters measures: OSDI 2010, tables 4 and 5,
and ATC 2011, figures 6 and 10. Misses aren't gains, so the numbers stand side by side
without verdicts.
"""

from __future__ import annotations

from functools import partial

from flexbench import table
from flexbench.running import FLEXSC, NATIVE
from flexbench.samples import Measurement

from .. import counters
from ..counters import IPC, KERNEL, TITLES, USER
from ..papers import Data, Metrics
from .figure import Bench, Figure, Row, State, number_pair
from .runs import Runs

WHY = "needs the processor's counters, which flexsc study counters reads"
DIFFERS = (
    "perf counts the program's threads, natively and under flexsc run, on one core, with "
    "as many clients as the bench programs uses. nginx and memcached are not the paper's "
    "ports: they have event loops, which flexsc run doesn't change. "
)
ONE_CORE = "the bench runs this server on one core"
NOT_COUNTED = "this processor didn't count the event"

# The metric and the mode of a quantity in the ATC paper's figures.
QUANTITIES = {
    "user CPI": (IPC, USER),
    "kernel CPI": (IPC, KERNEL),
    "user efficiency": (IPC, USER),
    "kernel efficiency": (IPC, KERNEL),
    "kernel L3 misses": ("l3_mpki", KERNEL),
    "user TLB misses": ("tlb_mpki", USER),
}


def bench_of(program: str) -> Bench:
    return Bench(("counters", program), counters.BENCH, {"program": program})


def pair_of(runs: Runs, program: str, name: str) -> list[Measurement]:
    """The measurements under flexsc run and natively, if both have the series."""
    both = [
        runs.find(counters.BENCH, program=program, variant=variant)
        for variant in (FLEXSC, NATIVE)
    ]
    return [m for m in both if m and all(name in r["samples"] for r in m.rounds)]


def here_of(runs: Runs, program: str, metric: str, mode: str) -> str:
    name = counters.series(metric, mode)
    pair = pair_of(runs, program, name)
    if len(pair) < 2:
        return ""
    flexsc, native = pair
    return number_pair(flexsc.median(name), native.median(name), "natively")


def metric_rows(program: str, runs: Runs, data: Data) -> list[Row]:
    """A row for each metric, in user and in kernel mode, on one core."""
    found = {(m.setup, m.mode): m for m in data.of(Metrics) if m.cores == 1}
    rows = []
    for mode in (USER, KERNEL):
        sync, flexsc = found["sync", mode], found["flexsc", mode]
        for metric, title in TITLES.items():
            pair = [table.number(getattr(m, metric)) for m in (flexsc, sync)]
            here = here_of(runs, program, metric, mode)
            paper = f"{pair[0]} beside {pair[1]}"
            reason = "" if here else NOT_COUNTED
            rows.append(Row(f"{mode}: {title}", paper=paper, here=here, reason=reason))
    return rows


def point_rows(program: str, runs: Runs, data: Data) -> list[Row]:
    rows = []
    for point in data.points:
        metric, mode = QUANTITIES.get(point.quantity, ("", ""))
        where = f"{program}, {point.quantity}, {point.cores} cores"
        if not point.cores.startswith("1") or not metric:
            rows.append(Row(where, point, reason=ONE_CORE if metric else NOT_COUNTED))
            continue
        here = here_of(runs, program, metric, mode)
        text = f"{TITLES[metric]}: {here}" if here else ""
        rows.append(Row(where, point, here=text, reason="" if here else NOT_COUNTED))
    return rows


def figure(name: str, program: str) -> Figure:
    rows = metric_rows if name.startswith("osdi") else point_rows
    return Figure(
        name,
        State.COUNTERS,
        WHY,
        differs=DIFFERS,
        benches=[bench_of(program)],
        rows=partial(rows, program),
    )

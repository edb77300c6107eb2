# SPDX-License-Identifier: MIT
"""The papers' figures that flexsc study counters measures: OSDI 2010, tables 4 and 5,
ATC 2011, figures 6 and 10, and Geneves 2012, table 2. Misses aren't gains, so the
numbers stand side by side without verdicts.
"""

from __future__ import annotations

from functools import partial
from itertools import product

from flexbench import table
from flexbench.running import FLEXSC, NATIVE
from flexbench.samples import Measurement, by_cores

from .. import counters
from ..counters import IPC, KERNEL, TITLES, USER
from ..papers import Data, Metrics
from .figure import Bench, Figure, Row, State, number_pair
from .runs import Runs

WHY = "needs the processor's counters, which flexsc study counters reads"
DIFFERS = {
    "osdi": "perf counts the program's threads, natively and under flexsc run, with as "
    "many clients as the bench programs uses.",
    "atc-": "perf counts the threads of nginx beside nginx with the module and flexsc "
    "serve, and of memcached beside its port. The clients are ours.",
    "gene": "perf counts the threads of the web server's models, which send one file over "
    "128 kept connections.",
}
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
    words: tuple[str, ...] = ("counters", program)
    if program in counters.SEVERAL:
        words += ("--cores", "all")
    return Bench(words, counters.BENCH, {"program": program})


def counted(runs: Runs, program: str, name: str) -> dict[int, list[Measurement]]:
    """The measurements that have the series, by cores. The first one is the base."""
    return by_cores(
        m
        for m in runs.of(counters.BENCH, program=program)
        if all(name in r["samples"] for r in m.rounds)
    )


def reason_of(runs: Runs, program: str, cores: int) -> str:
    """Why a row of so many cores has no number of ours."""
    found = by_cores(runs.of(counters.BENCH, program=program))
    return NOT_COUNTED if cores in found else f"not measured on {table.cores(cores)}"


def here_of(runs: Runs, program: str, metric: str, mode: str, cores: int) -> str:
    """The other variants beside the base; empty if they weren't counted."""
    name = counters.series(metric, mode)
    texts = []
    found = counted(runs, program, name).get(cores, [])
    for other in found[1:]:
        base = found[0]
        variant = base.settings["variant"]
        beside = "natively" if variant == NATIVE else str(variant)
        text = number_pair(other.median(name), base.median(name), beside)
        if other.settings["variant"] != FLEXSC:
            text = f"{other.settings['variant']} {text}"
        texts.append(text)
    return "; ".join(texts)


def paper_of(data: Data, metric: str, mode: str, cores: int) -> str:
    """The paper's numbers; empty if it has none for so many cores."""
    found = {
        m.setup: table.number(getattr(m, metric))
        for m in data.of(Metrics)
        if (m.mode, m.cores) == (mode, cores)
    }
    return f"{found['flexsc']} beside {found['sync']}" if found else ""


def metric_rows(program: str, runs: Runs, data: Data) -> list[Row]:
    """A row for each metric, in user and in kernel mode, on each number of cores that
    the paper or we have measured."""
    ours = by_cores(runs.of(counters.BENCH, program=program))
    rows = []
    for cores in sorted({*ours, *(m.cores for m in data.of(Metrics))}):
        for mode, (metric, title) in product((USER, KERNEL), TITLES.items()):
            where = f"{table.cores(cores)}, {mode}: {title}"
            paper = paper_of(data, metric, mode, cores)
            here = here_of(runs, program, metric, mode, cores)
            reason = "" if here else reason_of(runs, program, cores)
            rows.append(Row(where, paper=paper, here=here, reason=reason))
    return rows


def point_rows(program: str, runs: Runs, data: Data) -> list[Row]:
    rows = []
    for point in data.points:
        metric, mode = QUANTITIES.get(point.quantity, ("", ""))
        where = f"{program}, {point.quantity}, {point.cores} cores"
        if not metric:
            rows.append(Row(where, point, reason=NOT_COUNTED))
            continue
        cores = int(point.cores.partition("-")[0])
        here = here_of(runs, program, metric, mode, cores)
        text = f"{TITLES[metric]}: {here}" if here else ""
        reason = "" if here else reason_of(runs, program, cores)
        rows.append(Row(where, point, here=text, reason=reason))
    return rows


def model_rows(program: str, runs: Runs, data: Data) -> list[Row]:
    """The paper's cycles per instruction, and ours of each model."""
    reason = "of userver, Knot and WatPipe: compare with the models below"
    rows = [
        Row(f"{cells[0]} cores", paper=", ".join(cells[1:]), reason=reason)
        for cells in data.cells
    ]
    user, kernel = (counters.series(IPC, mode) for mode in (USER, KERNEL))
    for cores, found in counted(runs, program, kernel).items():
        for m in found:
            cpi = 1 / m.median(user), 1 / m.median(kernel)
            here = f"{cpi[0]:.2f} in user mode, {cpi[1]:.2f} in the kernel"
            where = f"{m.settings['variant']}, {table.cores(cores)}: cycles"
            rows.append(Row(where, here=here))
    return rows


def figure(name: str, program: str) -> Figure:
    kinds = {"osdi": metric_rows, "atc-": point_rows, "gene": model_rows}
    rows = kinds[name[:4]]
    return Figure(
        name,
        State.COUNTERS,
        WHY,
        differs=DIFFERS[name[:4]],
        benches=[bench_of(program)],
        rows=partial(rows, program),
    )

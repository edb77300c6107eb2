# SPDX-License-Identifier: MIT
"""The figures of OSDI 2010 that flexsc study cost measures: 1 to 4, and table 1. A
call's costs aren't gains, so the numbers stand side by side without verdicts.
"""

from __future__ import annotations

from functools import partial
from statistics import median

from flexbench import table
from flexbench.samples import Run, distinct

from .. import cost
from ..papers import Data, Footprint
from .figure import Bench, Figure, Row, State
from .runs import Runs

LOST = Bench(("cost",), cost.LOST)
POLLUTE = Bench(("cost",), cost.POLLUTE)
FOOTPRINT = Bench(("cost",), cost.FOOTPRINT)

CLOCK = "the processor's clock stands for its counters"
SHARE = (
    "The number of user instructions between two calls is constant, so the relative "
    "speed is the relative IPC. "
)


def run_of(runs: Runs, bench: Bench) -> Run:
    source = runs.has(bench)
    assert source
    return source.run


def lost_rows(runs: Runs, data: Data) -> list[Row]:
    run = run_of(runs, LOST)
    none = run.of(cost.LOST, call=cost.NONE)[0]
    # A speed this close to 1 can't be distinguished from the speed without a call.
    unsure = max(abs(1 - speed) for speed in cost.windows(cost.speeds(none)))
    point = next(p for p in data.points if p.unit == "cycles" and p.series == "Xalan")
    rows = []
    for m in run.of(cost.LOST):
        call = str(m.settings["call"])
        if call != cost.NONE:
            here = f"{cost.ticks_until(m, 1 - unsure)} ticks of the program"
            beside = point if call == cost.POLLUTING else None
            what = f"after {call}, until the speed is above {1 - unsure:.3f}"
            rows.append(Row(what, beside, here=here))
    return rows


def instructions_row(runs: Runs, footprint: Footprint, call: str) -> Row:
    found = runs.of(cost.INSTRUCTIONS, call=call)
    return Row(
        f"{footprint.syscall}: instructions",
        paper=f"{footprint.instructions:,}",
        here=f"{cost.instructions_cell(found)} in a guest" if found else "",
        reason="" if found else "tests/kmod/vm/instructions.py counts them in a guest",
    )


def footprint_rows(runs: Runs, data: Data) -> list[Row]:
    run = run_of(runs, FOOTPRINT)
    rows = []
    for footprint in data.of(Footprint):
        call = footprint.syscall.replace("+", "-")
        papers = (
            footprint.icache_lines,
            footprint.dcache_lines,
            footprint.l2_lines,
            footprint.dtlb_entries,
        )
        for level, paper in zip(cost.LEVELS, papers, strict=True):
            here = cost.lines_cell(run.of(cost.FOOTPRINT, level=level), call)
            rows.append(
                Row(f"{footprint.syscall}: {level}", paper=str(paper), here=here)
            )
        rows.append(instructions_row(runs, footprint, call))
    return rows


def between(run: Run, work: str, every: int) -> str:
    unit = cost.instructions_of(run, work)
    if unit is None:
        return f"{every} units of work between calls"
    return f"{table.number(unit * every)} instructions between calls"


# A range of instructions between two calls, and the paper's relative speed there.
PAPER = {
    "tree": [(1000, 2000, "0.34-0.40"), (2445, 12435, "0.40-0.80")],
    "heap": [(0, 2000, "0.55"), (2445, 12435, "0.40-0.80")],
}


def paper_speed(work: str, unit: float | None, every: int) -> str:
    for low, high, says in PAPER[work]:
        if unit and low <= unit * every <= high:
            return says
    return ""


def speed_rows(work: str, runs: Runs, data: Data) -> list[Row]:
    run = run_of(runs, POLLUTE)
    unit = cost.instructions_of(run, work)
    rows = []
    for m in run.of(cost.POLLUTE, work=work, call=cost.POLLUTING):
        every = int(m.settings["every"])
        paper = paper_speed(work, unit, every)
        speed = table.ratio(cost.speed_of(m, "called_ticks"))
        here = f"{speed} of the speed without calls"
        rows.append(Row(between(run, work, every), paper=paper, here=here))
    return rows


def duration_rows(runs: Runs, data: Data) -> list[Row]:
    run = run_of(runs, POLLUTE)
    rows = []
    for work in distinct(run.of(cost.POLLUTE), "work"):
        for m in run.of(cost.POLLUTE, work=work, call=cost.POLLUTING):
            ticks = table.number(median(cost.net_call(m)))
            what = f"{work}, {between(run, work, int(m.settings['every']))}"
            rows.append(Row(what, here=f"{ticks} ticks for the call"))
    return rows


FIGURES = [
    Figure(
        "osdi-f1",
        State.STAND_IN,
        CLOCK,
        SHARE + "A program of the bench's own stands for Xalan.",
        [LOST],
        lost_rows,
    ),
    Figure(
        "osdi-t1",
        State.STAND_IN,
        CLOCK,
        "The number of lines is that of a function with the same cost for the "
        "program. Instructions are those of Debian's kernel in a guest. IPC needs counters.",
        [FOOTPRINT],
        footprint_rows,
    ),
    Figure(
        "osdi-f2",
        State.STAND_IN,
        CLOCK,
        SHARE + "A tree stands for Xalan.",
        [POLLUTE],
        partial(speed_rows, "tree"),
    ),
    Figure(
        "osdi-f3",
        State.STAND_IN,
        CLOCK,
        SHARE + "A heap stands for SPEC JBB.",
        [POLLUTE],
        partial(speed_rows, "heap"),
    ),
    Figure(
        "osdi-f4",
        State.STAND_IN,
        CLOCK,
        "The call's duration is compared: a shorter call has a higher IPC.",
        [POLLUTE],
        duration_rows,
    ),
]

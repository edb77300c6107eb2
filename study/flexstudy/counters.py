# SPDX-License-Identifier: MIT
"""flexsc study counters: instructions per cycle, and misses per thousand instructions,
of programs natively and under flexsc run, by the processor's counters: OSDI 2010,
tables 4 and 5, ATC 2011, figures 6 and 10. perf counts the program's threads in user
and in kernel mode, while the program is loaded as by flexsc study programs.

A processor has few counters, so perf counts groups of events in turn. Each group also
counts the instructions, and a figure uses the counts of one group only.
"""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from flexbench import table, tools
from flexbench.compare import ratio
from flexbench.runner import Plan, chosen, measure_all, progress
from flexbench.running import FLEXSC, NATIVE, Program
from flexbench.samples import BenchError, Json, Measurement, Run, Settings, distinct

from . import apache, looping, loops, mariadb, programs, threaded, under_load

BENCH = "counters"

INSTRUCTIONS, CYCLES = "instructions", "cycles"
IPC = "ipc"
USER, KERNEL = "user", "kernel"
BITS = {USER: "u", KERNEL: "k"}  # suffix of an event for each mode

# The events of each figure; the first one that perf knows is counted. Misses of level 2
# have no common name: Intel, AMD and Arm have different ones.
METRICS = {
    IPC: [CYCLES],
    "l3_mpki": ["LLC-load-misses"],
    "l2_mpki": [
        "l2_rqsts.miss",
        "l2_cache_req_stat.ic_dc_miss_in_l2",
        "l2d_cache_refill",
    ],
    "dcache_mpki": ["L1-dcache-load-misses"],
    "icache_mpki": ["L1-icache-load-misses"],
    "tlb_mpki": ["dTLB-load-misses"],
    "branch_mpki": ["branch-misses"],
}
TITLES = {
    IPC: "instructions in a cycle",
    "l3_mpki": "L3 misses",
    "l2_mpki": "L2 misses",
    "dcache_mpki": "d-cache misses",
    "icache_mpki": "i-cache misses",
    "tlb_mpki": "d-TLB misses",
    "branch_mpki": "branch misses",
}
# The load of each program, by a word of the bench programs.
MODES = {
    "apache": apache.KEPT,
    "mariadb": mariadb.READ_WRITE,
    "memcached": loops.KEPT,
    "nginx": loops.KEPT,
}

TRY_S, END_S = 30, 10


# perf.


def series(metric: str, mode: str) -> str:
    return f"{metric}_{mode}"


def group(event: str) -> list[str]:
    """The events of one group, which are counted at the same time."""
    return [f"{name}:{bit}" for bit in BITS.values() for name in (INSTRUCTIONS, event)]


def counts_of(text: str) -> list[tuple[str, int | None]]:
    """Events and counts in the output of perf stat -x, in the order of the command.
    None: the event isn't supported, or wasn't counted.
    """
    found: list[tuple[str, int | None]] = []
    for line in text.splitlines():
        cells = line.split(",")
        if len(cells) > 2 and re.fullmatch(r"\d+|<not \w+>", cells[0]):
            found.append((cells[2], int(cells[0]) if cells[0].isdigit() else None))
    return found


def figures(metric: str, counts: Sequence[int | None]) -> dict[str, float]:
    """The metric's value in each mode, from the counts of its group."""
    found: dict[str, float] = {}
    for index, mode in enumerate(BITS):
        instructions, count = counts[2 * index : 2 * index + 2]
        if not instructions or count is None:
            continue
        if metric != IPC:
            found[series(metric, mode)] = 1000 * count / instructions
        elif count:
            found[series(metric, mode)] = instructions / count
    return found


def figures_of(text: str, events: dict[str, str]) -> dict[str, float]:
    """All figures in the output of perf stat of the events, by their metrics."""
    counts = counts_of(text)
    wanted = [name for event in events.values() for name in group(event)]
    if [name for name, _ in counts] != wanted:
        raise BenchError("perf: " + (" ".join(text.split())[:200] or "no output"))
    found: dict[str, float] = {}
    for index, metric in enumerate(events):
        four = [count for _, count in counts[4 * index : 4 * index + 4]]
        found |= figures(metric, four)
    return found


def words(line: str) -> str:
    """A line of perf's output without a count, made readable."""
    cells = line.split(",")
    return f"{cells[2]} is {cells[0]}" if len(cells) > 2 else line


def tried(event: str) -> str:
    """Empty if perf counts the event here; otherwise perf's message."""
    command = [tools.need("perf"), "stat", "-x,", "-e", f"{event}:u", "--", "true"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TRY_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "perf is still running long after its time"
    lines = done.stderr.strip().splitlines() or ["no output"]
    if done.returncode:
        return lines[0]
    counted = any(count is not None for _, count in counts_of(done.stderr))
    return "" if counted else words(lines[0])


def available(run: Run) -> dict[str, str]:
    """The first event of each metric that can be counted here. BenchError: none can."""
    for event in (INSTRUCTIONS, CYCLES):
        if said := tried(event):
            raise BenchError(
                f"hardware counters are needed, but not available here: {said}"
            )
    found = {}
    for metric, names in METRICS.items():
        known = [name for name in names if not tried(name)]
        if known:
            found[metric] = known[0]
        else:
            run.note(f"{BENCH}: this processor doesn't count {TITLES[metric]}")
    return found


@contextmanager
def counting(pid: int, events: dict[str, str], output: Path) -> Iterator[None]:
    """Let perf count the process' threads meanwhile, and write to the output."""
    command = [tools.need("perf"), "stat", "-x,", "-o", str(output), "-p", str(pid)]
    for event in events.values():
        command += ["-e", "{" + ",".join(group(event)) + "}"]
    perf = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        perf.send_signal(signal.SIGINT)
        try:
            perf.wait(END_S)
        except subprocess.TimeoutExpired:
            perf.kill()
            perf.wait()


# Programs.


# A running variant, and a function that loads it for some seconds.
Loaded = tuple[Program, Callable[[], object]]


@contextmanager
def started(plan: Plan, name: str) -> Iterator[dict[str, Loaded]]:
    mode = MODES[name]
    if name in looping.KINDS:
        with looping.both(plan, looping.KINDS[name]) as found:
            yield {
                variant: (one, partial(loops.round_of, plan, one, mode))
                for variant, one in found.items()
            }
        return
    kind = programs.KINDS[name].papers()
    with threaded.started(plan, kind) as found:
        yield {
            variant: (
                one,
                partial(under_load.round_of, plan, kind, one, mode, plan.seconds),
            )
            for variant, one in found.items()
        }


def round_of(loaded: Loaded, events: dict[str, str]) -> Json:
    program, load = loaded
    with tempfile.NamedTemporaryFile("r", prefix="flexbench-") as output:
        with counting(program.pid, events, Path(output.name)):
            load()
        found = figures_of(output.read(), events)
    return {"samples": {name: [value] for name, value in found.items()}, "counts": {}}


def variants(plan: Plan, name: str) -> list[Settings]:
    return [
        {
            "program": name,
            "mode": MODES[name],
            "variant": variant,
            "seconds": plan.seconds,
            "network": plan.network.kind,
        }
        for variant in (NATIVE, FLEXSC)
    ]


def measure_one(run: Run, plan: Plan, name: str, events: dict[str, str]) -> None:
    with started(plan, name) as found:
        loops.check(found[FLEXSC][0])
        progress(f"{BENCH}: warming up {name}")
        for _, load in found.values():
            load()
        measure_all(
            *(run, plan, BENCH, variants(plan, name)),
            lambda s: round_of(found[str(s["variant"])], events),
        )


def parse(words: Sequence[str]) -> list[str]:
    return chosen(BENCH, words, MODES)


def measure(run: Run, plan: Plan) -> None:
    tools.need("taskset")
    events = available(run)
    for name in parse(plan.words):
        try:
            measure_one(run, plan, name, events)
        except BenchError as error:
            progress("")
            run.note(f"{BENCH}: skipping {name}: {error}")


# The table.


def cell(measurement: Measurement, name: str) -> str:
    """The median of a series, which is missing if its events weren't counted."""
    there = all(name in r["samples"] for r in measurement.rounds)
    return table.number(measurement.median(name)) if there else table.NOTHING


def row(native: Measurement, flexsc: Measurement, metric: str, mode: str) -> list[str]:
    name = series(metric, mode)
    cells = [cell(native, name), cell(flexsc, name)]
    counted = table.NOTHING not in cells
    beside = ratio(flexsc.series(name), native.series(name)) if counted else None
    return [f"{mode}: {TITLES[metric]}", *cells, table.ratio(beside)]


def pair_of(run: Run, name: str) -> tuple[Measurement, Measurement] | None:
    native = run.find(BENCH, program=name, variant=NATIVE)
    flexsc = run.find(BENCH, program=name, variant=FLEXSC)
    return (native, flexsc) if native and flexsc else None


def show(run: Run) -> list[str]:
    parts = []
    for name in distinct(run.of(BENCH), "program"):
        pair = pair_of(run, name)
        if not pair:
            continue
        rows = [row(*pair, metric, mode) for mode in BITS for metric in METRICS]
        title = (
            f"counters: {name}, misses in 1,000 instructions; {table.how(pair[0])}\n"
        )
        head = [str(pair[0].settings["mode"]), NATIVE, FLEXSC, "flexsc/native"]
        parts.append(title + table.table(head, rows))
    return parts

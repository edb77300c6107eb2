# SPDX-License-Identifier: MIT
"""Servers that answer memcached's requests without a cache, with epoll and with libflexsc.
Their ratio estimates what memcached can gain on libflexsc. The port (ported.py) may gain
more, because it also avoids libevent's work. Both servers run all the time on the same
core, and are loaded alternately by bench --raw rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from flexbench import examples, table, tools
from flexbench.idle import descriptors
from flexbench.network import LO
from flexbench.runner import Plan
from flexbench.running import Program
from flexbench.samples import BenchError, Json, Run, distinct

from . import looping, loops, questions

BENCH, NAME = "bare", "memcached-bare"
FOLDER = "../study/servers/bare"  # relative to the command
EPOLL, OURS = "epoll", "flexsc"

COUNTS = [1, 64, 1024]
QUICK_COUNTS = [1, 64]
ROWS = [("us of the processor a request", loops.SERIES)]


@contextmanager
def started(plan: Plan, variant: str) -> Iterator[Program]:
    name = f"get-{variant}"
    command = [*plan.under, str(examples.find(plan.flexsc, name, FOLDER)), "0"]
    with examples.started(name, str(plan.cores.measured), command) as program:
        settings = looping.wait(plan.network, program, questions.MEMCACHED)
        yield replace(program, settings=settings)


def round_of(plan: Plan, program: Program) -> Json:
    found = loops.in_rounds(plan, program, loops.KEPT, {"seconds": plan.seconds})
    return {"samples": found["samples"], "counts": found["counts"]}


def measure(run: Run, plan: Plan) -> None:
    if plan.network.kind != LO:
        raise BenchError(f"{NAME} is measured on --network lo only")
    tools.need("taskset")
    counts = QUICK_COUNTS if plan.quick else COUNTS
    counts = [plan.connections] if plan.connections else counts
    with descriptors(max(counts)), ExitStack() as stack:
        found = {
            variant: stack.enter_context(started(plan, variant))
            for variant in (EPOLL, OURS)
        }
        for count in counts:
            one = replace(plan, connections=count)
            loops.compare_kept(run, one, BENCH, found, round_of)


def show(run: Run) -> list[str]:
    found, lines = run.of(BENCH), []
    for count in distinct(found, "connections"):
        theirs, ours = (
            run.find(BENCH, variant=variant, connections=count)
            for variant in (EPOLL, OURS)
        )
        if not ours or not theirs:
            continue
        rows = table.beside(ROWS, (theirs, ours), theirs, ours)
        calls = [m.rounds[-1]["counts"].get(loops.CALLS) for m in (theirs, ours)]
        rows.append(["system calls a request", *map(table.number, calls), ""])
        lines += [[f"{count:,}: {row[0]}", *row[1:]] for row in rows]
    if not lines:
        return []
    head = ["connections", EPOLL, OURS, f"{EPOLL}/{OURS}"]
    title = "programs: memcached's answers without a cache, GET of 64 bytes"
    return [f"{title};\n{table.how(found[0])}\n{table.table(head, lines)}"]

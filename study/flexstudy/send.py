# SPDX-License-Identifier: MIT
"""The cost of an event: SEND compared with POSIX real-time signals (SEND, figure 4.1),
and the delay until a computing thread gets an event."""

from __future__ import annotations

from flexbench import table
from flexbench.compare import ratio
from flexbench.runner import Plan, measure_all
from flexbench.samples import Run, Settings, distinct

from .raw import raw

BENCH = "send"
CASE = "events"
DEQUEUE = "ns_to_dequeue"
QUEUE = "ns_to_queue"
PREEMPT = "ns_to_preempt"

SIGNAL = "signal"
BACKENDS = ("uring", "kmod")
SIZES = (1, 2, 5, 10, 20, 50, 100)
QUICK_SIZES = (1, 10, 100)


def variants(plan: Plan) -> list[Settings]:
    sizes = QUICK_SIZES if plan.quick else SIZES
    common: Settings = {"core": plan.cores.measured, "reps": 3}
    found: list[Settings] = [
        {
            "variant": variant,
            "scenario": "dequeue",
            "batch": batch,
            "calls": 20000,
            **common,
        }
        for batch in sizes
        for variant in (SIGNAL, *BACKENDS)
    ]
    return found + [
        {
            "variant": variant,
            "scenario": "preempt",
            "cores": str(plan.cores.other),
            "batch": 1,
            "calls": 1000,
            **common,
        }
        for variant in (SIGNAL, *BACKENDS)
    ]


def measure(run: Run, plan: Plan) -> None:
    measure_all(run, plan, BENCH, variants(plan), lambda s: raw(plan.flexsc, CASE, s))


def show_dequeue(run: Run) -> list[str]:
    found = run.of(BENCH, scenario="dequeue")
    rows = []
    for batch in distinct(found, "batch"):
        signals = run.of(BENCH, scenario="dequeue", batch=batch, variant=SIGNAL)
        for m in run.of(BENCH, scenario="dequeue", batch=batch):
            cells = [table.number(m.median(QUEUE)), table.number(m.median(DEQUEUE))]
            if m not in signals and signals:
                beside = signals[0].series(DEQUEUE)
                cells.append(table.ratio(ratio(m.series(DEQUEUE), beside)))
            else:
                cells.append("")
            rows.append([f"{batch}", str(m.settings["variant"]), *cells])
    if not rows:
        return []
    head = ["queued", "by", "to queue", "to dequeue", "of signals'"]
    return [
        "send: nanoseconds per event, queued and then handled together (SEND, "
        "figure 4.1)\n" + table.table(head, rows)
    ]


def show_preempt(run: Run) -> list[str]:
    rows = [
        [str(m.settings["variant"]), table.number(m.median(PREEMPT))]
        for m in run.of(BENCH, scenario="preempt")
    ]
    if not rows:
        return []
    return [
        "send: nanoseconds until a thread that computes on another core gets an event, "
        "median\n" + table.table(["by", "ns"], rows)
    ]


def show(run: Run) -> list[str]:
    return show_dequeue(run) + show_preempt(run)

# SPDX-License-Identifier: MIT
"""The cost of a timer with few and with very many other timers."""

from __future__ import annotations

from . import table
from .compare import ratio
from .runner import Plan, measure_all_raw
from .samples import Run, Settings, distinct

BENCH = "timers"
SERIES = "ns_per_completion"

FEW = 1000
MANY = 1000000
QUICK_MANY = 100000

SCENARIOS = {
    "dormant": "1,000 expire and are armed again, the others are far away",
    "all": "all expire, at random times",
    "cancel": "1,000 are cancelled and armed again, the others are far away",
    "cancel-all": "all are cancelled and armed again, in random order",
}


def variants(plan: Plan, scenario: str) -> list[Settings]:
    return [
        {
            "variant": "uring",
            "scenario": scenario,
            "outstanding": outstanding,
            "core": plan.cores.measured,
            "kernel_cores": str(plan.cores.measured),
            "calls": 100000,
            "reps": 3,
        }
        for outstanding in (FEW, QUICK_MANY if plan.quick else MANY)
    ]


def measure(run: Run, plan: Plan) -> None:
    for scenario in SCENARIOS:
        measure_all_raw(run, plan, BENCH, variants(plan, scenario))


def show(run: Run) -> list[str]:
    sizes = distinct(run.of(BENCH), "outstanding")
    rows = []
    for scenario in distinct(run.of(BENCH), "scenario"):
        found = run.of(BENCH, scenario=scenario)
        cells = [table.number(m.median(SERIES)) for m in found]
        if len(found) == len(sizes):
            few, many = found[0].series(SERIES), found[-1].series(SERIES)
            rows.append([SCENARIOS[scenario], *cells, table.ratio(ratio(many, few))])
    if not rows:
        return []
    head = ["timers outstanding", *(f"{n:,}" for n in sizes), "ratio"]
    return [
        "timers: nanoseconds of the core's time a completion\n"
        + table.table(head, rows)
    ]

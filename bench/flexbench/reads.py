# SPDX-License-Identifier: MIT
"""The cost of a completed read with few and with very many outstanding reads: by the
library, and by io_uring used by hand.
"""

from __future__ import annotations

from . import table
from .compare import Interval, ratio
from .runner import Plan, measure_all_raw
from .samples import Measurement, Run, Settings, distinct

BENCH = "reads"
SERIES = "ns_per_completion"
WRITING = "ns_per_write"

FEW = 1000
MANY = 100000

SCENARIOS = {
    "dormant": "1,000 complete again and again",
    "uniform": "all complete, in random order",
}


def variants(plan: Plan, scenario: str) -> list[Settings]:
    return [
        {
            "variant": variant,
            "scenario": scenario,
            "outstanding": outstanding,
            "core": plan.cores.measured,
            "kernel_cores": str(plan.cores.measured),
            "calls": 50000,
            "reps": 3,
        }
        for outstanding in (FEW, MANY)
        for variant in ("liburing", "uring")
    ]


def measure(run: Run, plan: Plan) -> None:
    for scenario in SCENARIOS:
        measure_all_raw(run, plan, BENCH, variants(plan, scenario))


def compared(a: Measurement | None, b: Measurement | None) -> Interval | None:
    return ratio(a.series(SERIES), b.series(SERIES)) if a and b else None


def rows_of(run: Run, scenario: str, sizes: list[int]) -> list[list[str]]:
    few, many = sizes
    rows = []
    for variant in ("liburing", "uring"):
        key: Settings = {"scenario": scenario, "variant": variant}
        small = run.find(BENCH, outstanding=few, **key)
        large = run.find(BENCH, outstanding=many, **key)
        rows.append(
            [
                f"{SCENARIOS[scenario]}: {variant}",
                *(
                    table.number(m.median(SERIES) if m else None)
                    for m in (small, large)
                ),
                table.ratio(compared(large, small)),
                table.number(large.median(WRITING) if large else None),
            ]
        )
    pairs = []
    for size in sizes:
        key = {"scenario": scenario, "outstanding": size}
        pairs.append(
            compared(
                run.find(BENCH, variant="uring", **key),
                run.find(BENCH, variant="liburing", **key),
            )
        )
    rows.append(["  uring/liburing", *(table.ratio(p) for p in pairs), "", ""])
    return rows


def memory(run: Run, size: int) -> list[str]:
    found = run.find(BENCH, variant="uring", outstanding=size)
    if not found:
        return []
    return [
        f"{found.count('bytes') / size:.0f} bytes of library memory for each of "
        f"{size:,} outstanding calls ({found.count('resident') / size:.0f} of them "
        "touched)"
    ]


def show(run: Run) -> list[str]:
    sizes = sorted(distinct(run.of(BENCH), "outstanding"))
    if len(sizes) != 2:
        return []
    rows = []
    for scenario in distinct(run.of(BENCH), "scenario"):
        rows += rows_of(run, scenario, sizes)
    head = ["reads outstanding", *(f"{n:,}" for n in sizes), "ratio", "write"]
    title = "reads: nanoseconds a completion; the write that causes it apart"
    return ["\n".join([title, table.table(head, rows), *memory(run, sizes[1])])]

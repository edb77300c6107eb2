# SPDX-License-Identifier: MIT
"""Apache against the number of entries of flexsc run: OSDI 2010, figure 16. All
variants run all the time, and are loaded alternately, over kept connections.
"""

from __future__ import annotations

from dataclasses import replace

from flexbench import table
from flexbench.compare import ratio
from flexbench.runner import Plan
from flexbench.running import FLEXSC, NATIVE
from flexbench.samples import Measurement, Run, Settings, by_cores
from flexbench.sweep import SERIES

from . import apache
from .threaded import Kind, Variant, started
from .under_load import compare

BENCH, NAME = "entries", "apache-entries"
# Entries are allocated in pages of 64. 0: as many as user threads.
ENTRIES = [64, 128, 192, 256, 384, 512, 0]
QUICK_ENTRIES = [64, 128, 256, 512]


def limited(entries: int) -> Variant:
    options = ["--entries", str(entries)] if entries else []
    return Variant(f"{entries}-entries", "worker", FLEXSC, options=options)


def variants(plan: Plan) -> tuple[Kind, list[Settings]]:
    """The variants, and the settings of each."""
    counts = QUICK_ENTRIES if plan.quick else ENTRIES
    native = Variant(NATIVE, "worker", NATIVE)
    every = [native, *map(limited, counts)]
    kind = replace(apache.KIND, count=512, variants=every)
    return kind, [
        {
            "variant": variant.way,
            "entries": entries,
            "connections": kind.connections(plan),
            "cores": len(plan.cores.server),
            "seconds": plan.seconds,
            "network": plan.network.kind,
        }
        for variant, entries in zip(every, [0, *counts], strict=True)
    ]


def measure(run: Run, plan: Plan) -> None:
    kind, settings = variants(plan)
    with started(plan, kind) as found:
        compare(run, plan, BENCH, kind, apache.KEPT, settings, found)


def row(m: Measurement, native: Measurement | None) -> list[str]:
    entries = str(m.settings["entries"] or "no limit")
    beside = None
    if native and m is not native:
        beside = ratio(m.series(SERIES), native.series(SERIES))
    return [
        NATIVE if m is native else entries,
        table.rate(m, SERIES),
        table.ratio(beside) if beside else "",
        table.number(m.median("p99_us")),
    ]


def show_one(found: list[Measurement]) -> str:
    native = next((m for m in found if m.settings["variant"] == NATIVE), None)
    title = (
        f"programs: Apache, 1 KiB, {found[0].settings['connections']} connections that "
        f"are kept, by entries\n(figure 16), which come in pages of 64; "
        f"{table.how(found[0])}"
    )
    head = ["entries", "requests/s", "flexsc/native", "p99, us"]
    rows = table.table(head, [row(m, native) for m in found])
    return title + "\n" + table.explained(rows)


def show(run: Run) -> list[str]:
    return [show_one(found) for found in by_cores(run.of(BENCH)).values()]

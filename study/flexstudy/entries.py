# SPDX-License-Identifier: MIT
"""Apache against the number of entries that flexsc run may have: OSDI 2010, figure 16.
All variants run all the time, and are loaded alternately, over connections that are
kept.
"""

from __future__ import annotations

from flexbench import table, tools
from flexbench.compare import ratio
from flexbench.runner import Plan, measure_all, progress
from flexbench.running import FLEXSC, NATIVE, Program
from flexbench.samples import Json, Measurement, Run, Settings
from flexbench.sweep import SERIES

from . import apache
from .threaded import Variant, started
from .under_load import check_threads, loaded

BENCH, NAME = "entries", "apache-entries"
CONNECTIONS = 512
# Entries come in pages of 64; 0: as many as there are user threads.
ENTRIES = [64, 128, 192, 256, 384, 512, 0]
QUICK_ENTRIES = [64, 128, 256, 512]
WARM_UP_S = 2


def named(entries: int) -> str:
    return f"{entries}-entries" if entries else FLEXSC


def variants(plan: Plan) -> dict[str, Settings]:
    counts = QUICK_ENTRIES if plan.quick else ENTRIES
    every = {NATIVE: (NATIVE, 0)} | {named(n): (FLEXSC, n) for n in counts}
    return {
        name: {
            "variant": variant,
            "entries": entries,
            "connections": plan.connections or CONNECTIONS,
            "seconds": plan.seconds,
            "network": plan.network.kind,
        }
        for name, (variant, entries) in every.items()
    }


def variant_of(name: str, settings: Settings) -> Variant:
    entries = settings["entries"]
    options = ["--entries", str(entries)] if entries else []
    return Variant(name, "worker", str(settings["variant"]), options=options)


def measure(run: Run, plan: Plan) -> None:
    every = variants(plan)
    connections = int(every[NATIVE]["connections"])
    ways = [variant_of(name, settings) for name, settings in every.items()]

    def load(program: Program, seconds: int) -> Json:
        def once() -> tools.Load:
            return apache.load(plan, program, apache.KEPT, connections, seconds)

        return loaded(plan, program, once)

    with started(plan, apache.KIND, ways, connections) as found:
        for name, program in found.items():
            progress(f"{BENCH}: warming up {name}")
            load(program, min(WARM_UP_S, plan.seconds))
            if name != NATIVE:
                check_threads(plan, program)

        def round_of(settings: Settings) -> Json:
            (name,) = (name for name in every if every[name] == settings)
            return load(found[name], plan.seconds)

        measure_all(run, plan, BENCH, list(every.values()), round_of)


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


def show(run: Run) -> list[str]:
    found = run.of(BENCH)
    if not found:
        return []
    native = run.find(BENCH, variant=NATIVE)
    title = (
        f"programs: Apache, 1 KiB, {found[0].settings['connections']} connections that "
        f"are kept, by entries\n(figure 16), which come in pages of 64; "
        f"{table.how(found[0])}"
    )
    head = ["entries", "requests/s", "flexsc/native", "p99, us"]
    rows = table.table(head, [row(m, native) for m in found])
    return [title + "\n" + table.explained(rows)]

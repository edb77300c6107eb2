# SPDX-License-Identifier: MIT
"""Programs whose threads serve, natively and under flexsc run, beside the configuration
that most of their users choose: Apache (OSDI 2010, figure 11), MariaDB (figure 14), and
small servers with a pool of threads. All variants of a program are loaded alternately,
from other cores. loops.py measures programs with an event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from flexbench import sweep, table
from flexbench.compare import ratio
from flexbench.runner import Plan, chosen, measure_all, progress
from flexbench.running import FLEXSC, Program
from flexbench.samples import BenchError, Json, Measurement, Run, Settings, distinct
from flexbench.sweep import Found

from . import apache, entries, looping, loops, mariadb, pools
from .threaded import Kind, Variant, started
from .under_load import check_threads, loaded

BENCH = "programs"
SERIES = sweep.SERIES

WARM_UP_S = 2

KINDS = {
    "apache": apache.KIND,
    "mariadb": mariadb.KIND,
    "cpp": pools.kind("C++ pool", "taskset", pools.cpp),
    "java": pools.kind("Java executor", "java", pools.java),
}
# By a word of the command line: all variants of a program, or those of a configuration.
CHOICES = KINDS | {
    f"{name}:{configuration}": kind.only(configuration)
    for name, kind in KINDS.items()
    for configuration in kind.configurations
}


def settings(plan: Plan, name: str, mode: str, variant: Variant) -> Settings:
    return {
        "program": name,
        "mode": mode,
        "variant": variant.name,
        "connections": KINDS[name].connections(plan),
        "seconds": plan.seconds,
        "network": plan.network.kind,
    }


def round_of(plan: Plan, kind: Kind, program: Program, mode: str, seconds: int) -> Json:
    count = kind.connections(plan)
    return loaded(plan, program, lambda: kind.load(plan, program, mode, count, seconds))


def compare(
    run: Run, plan: Plan, name: str, kind: Kind, mode: str, of: dict[str, Program]
) -> None:
    progress(f"programs: warming up {name} {mode}")
    for variant in kind.variants:
        program = of[variant.name]
        round_of(plan, kind, program, mode, min(WARM_UP_S, plan.seconds))
        if variant.way == FLEXSC:
            check_threads(plan, program)
    measure_all(
        run,
        plan,
        BENCH,
        [settings(plan, name, mode, variant) for variant in kind.variants],
        lambda s: round_of(plan, kind, of[str(s["variant"])], mode, plan.seconds),
    )


def measure_one(run: Run, plan: Plan, word: str) -> None:
    if word in looping.KINDS:
        loops.measure(run, plan, word)
        return
    if word == entries.NAME:
        entries.measure(run, plan)
        return
    kind, name = CHOICES[word], word.partition(":")[0]
    plans = sweep.plans(plan, kind.sweep)
    for together in [[one] for one in plans] if kind.apart else [plans]:
        most = kind.connections(together[-1])
        with started(plan, kind, kind.variants, most) as found:
            for mode, one in product(kind.modes, together):
                try:
                    compare(run, one, name, kind, mode, found)
                except BenchError as error:
                    count = f"{kind.connections(one)} {kind.clients}"
                    run.note(f"{BENCH}: {count}: {error}")


def parse(words: Sequence[str]) -> list[str]:
    return chosen(BENCH, words, [*CHOICES, entries.NAME, *looping.KINDS], KINDS)


def measure(run: Run, plan: Plan) -> None:
    for name in parse(plan.words):
        try:
            measure_one(run, plan, name)
        except BenchError as error:
            progress("")
            run.note(f"{BENCH}: {error}")


# Titles of columns by their series. A file of an older version lacks some.
COLUMNS = {
    "CPU, us": "cpu_us",
    "p50, us": "p50_us",
    "p99, us": "p99_us",
    "switches": "switches",
    "core busy, %": "busy_percent",
}


def times(m: Measurement, other: Measurement | None) -> str:
    if other is None or other is m:
        return table.NOTHING
    return table.ratio(ratio(m.series(SERIES), other.series(SERIES)))


def row(kind: Kind, variant: Variant, first: Variant, found: Found) -> list[str]:
    """A variant with some number of clients, which "found" is of."""
    m = found[variant.name]
    there = m.rounds[0]["samples"]
    return [
        f"{m.settings['connections']:,}, {variant.title}",
        table.rate(m, SERIES),
        times(m, found.get(first.name)),
        times(m, found.get(kind.native(variant).name)),
        *(
            table.number(m.median(series) if series in there else None)
            for series in COLUMNS.values()
        ),
    ]


def show_mode(kind: Kind, mode: str, found: list[Measurement]) -> str:
    names = distinct(found, "variant")
    there = [one for one in kind.variants if one.name in names]
    rows = [
        row(kind, one, there[0], by_name)
        for by_name in sweep.by_connections(found).values()
        for one in there
        if one.name in by_name
    ]
    head = [kind.clients, f"{kind.unit}/s", f"times {there[0].title}", "times native"]
    title = f"programs: {kind.title}, {kind.modes[mode]};\n{table.how(found[0])}"
    text = table.explained(table.table([*head, *COLUMNS], rows))
    return f"{title}\n{text}"


def show(run: Run) -> list[str]:
    parts = []
    for name, kind in KINDS.items():
        for mode in distinct(run.of(BENCH, program=name), "mode"):
            found = run.of(BENCH, program=name, mode=mode)
            parts.append(show_mode(kind, mode, found))
    return parts + entries.show(run) + loops.show(run)

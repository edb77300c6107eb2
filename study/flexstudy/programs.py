# SPDX-License-Identifier: MIT
"""Programs whose threads serve, natively and under flexsc run, compared with the
configuration that most of their users choose: Apache (OSDI 2010, figure 11), MariaDB
(figure 14), and small servers with a pool of threads. All variants of a program are
loaded alternately, from other cores. loops.py measures programs with an event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from flexbench import sweep, table
from flexbench.compare import ratio
from flexbench.runner import Plan, chosen, progress
from flexbench.samples import BenchError, Measurement, Run, Settings, by_cores, distinct
from flexbench.sweep import Found

from . import apache, bare, entries, looping, loops, mariadb, pools, ported
from .threaded import Kind, Variant, started
from .under_load import compare

BENCH = "programs"
SERIES = sweep.SERIES

KINDS = {
    "apache": apache.KIND,
    "mariadb": mariadb.KIND,
    "cpp": pools.kind("C++ pool", "taskset", pools.cpp),
    "java": pools.kind("Java executor", "java", pools.java),
}
# Choices on the command line: all variants of a program, or those of one configuration.
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
        "cores": len(plan.cores.server),
        "seconds": plan.seconds,
        "network": plan.network.kind,
    }


def measure_one(run: Run, plan: Plan, word: str) -> None:
    if word in looping.KINDS:
        loops.measure(run, plan, word)
        return
    for whole in (entries, ported, bare):
        if word == whole.NAME:
            whole.measure(run, plan)
            return
    kind, name = CHOICES[word], word.partition(":")[0]
    if plan.cores.more:
        kind = kind.with_remote()
    plans = sweep.plans(plan, kind.sweep)
    for together in [[one] for one in plans] if kind.apart else [plans]:
        with started(together[-1], kind) as found:
            for mode, one in product(kind.modes, together):
                every = [settings(one, name, mode, v) for v in kind.variants]
                try:
                    compare(run, one, BENCH, kind, mode, every, found)
                except BenchError as error:
                    count = f"{kind.connections(one)} {kind.clients}"
                    run.note(f"{BENCH}: {count}: {error}")


def parse(words: Sequence[str]) -> list[str]:
    known = [*CHOICES, entries.NAME, ported.NAME, bare.NAME, *looping.KINDS]
    return chosen(BENCH, words, known, KINDS)


def parse_several(words: Sequence[str]) -> None:
    """Refuse --cores beside a program that is measured with one thread."""
    for word in parse(words):
        if word in looping.KINDS or word in (ported.NAME, bare.NAME):
            raise BenchError(
                f"--cores doesn't apply to {word}, which is measured with one thread, "
                f"only to {', '.join([*KINDS, entries.NAME])}"
            )


def measure(run: Run, plan: Plan) -> None:
    for name in parse(plan.words):
        try:
            measure_one(run, plan, name)
        except BenchError as error:
            progress("")
            run.note(f"{BENCH}: {error}")


HEAD = ["CPU, us", "CPU/native", "p50, us", "p99, us", "switches"]


def number(m: Measurement, series: str) -> str:
    there = series in m.rounds[0]["samples"]
    return table.number(m.median(series)) if there else table.NOTHING


def beside(m: Measurement, other: Measurement | None, series: str) -> str:
    """The ratio of two measurements. An older version's file may lack the series."""
    if other is None or other is m or series not in m.rounds[0]["samples"]:
        return table.NOTHING
    return table.ratio(ratio(m.series(series), other.series(series)))


def row(kind: Kind, variant: Variant, first: Variant, found: Found) -> list[str]:
    """The table's row of a variant with one number of clients, from the measurements in
    "found"."""
    m, native = found[variant.name], found.get(kind.native(variant).name)
    return [
        f"{m.settings['connections']:,}, {variant.title}",
        table.rate(m, SERIES),
        beside(m, found.get(first.name), SERIES),
        beside(m, native, SERIES),
        number(m, "cpu_us"),
        beside(m, native, "cpu_us"),
        *(number(m, series) for series in ("p50_us", "p99_us", "switches")),
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
    text = table.explained(table.table([*head, *HEAD], rows))
    return f"{title}\n{text}"


def show(run: Run) -> list[str]:
    parts = []
    for name, every_kind in KINDS.items():
        kind = every_kind.with_remote()
        for mode in distinct(run.of(BENCH, program=name), "mode"):
            every = run.of(BENCH, program=name, mode=mode)
            parts += [show_mode(kind, mode, one) for one in by_cores(every).values()]
    for whole in (entries, ported, bare, loops):
        parts += whole.show(run)
    return parts

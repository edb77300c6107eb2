# SPDX-License-Identifier: MIT
"""Real programs, natively and under flexsc run: Apache (OSDI 2010, figure 11)
and MariaDB (figure 14). Both variants of a program run all the time, on the
same core, and are loaded alternately from the other cores. Programs with an event
loop are measured by loops.py, if their names are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import product

from flexbench import sweep, table, tools
from flexbench.idle import descriptors
from flexbench.runner import Plan, chosen, measure_all, progress
from flexbench.running import FLEXSC, NATIVE, Program
from flexbench.samples import BenchError, Json, Measurement, Run, Settings, distinct
from flexbench.sweep import Sweep
from flexbench.tools import Load

from . import apache, entries, looping, loops, mariadb
from .under_load import check_threads, loaded

BENCH = "programs"
SERIES = sweep.SERIES

WARM_UP_S = 2
ROWS = [
    ("latency p50, us", "p50_us"),
    ("latency p99, us", "p99_us"),
    ("core busy, %", "busy_percent"),
]


@dataclass(frozen=True)
class Kind:
    """What is particular about a program. apart: it is started with threads for a
    number of clients, so each number has servers of its own.
    """

    title: str
    unit: str
    clients: str
    count: int
    modes: dict[str, str]
    tools: list[str]
    both: Callable[[Plan, int], AbstractContextManager[dict[str, Program]]]
    load: Callable[[Plan, Program, str, int, int], Load]
    sweep: Sweep
    apart: bool


KINDS = {
    "apache": Kind(
        title="Apache, 1 KiB",
        unit="requests",
        clients="connections",
        count=apache.CONNECTIONS,
        modes=apache.MODES,
        tools=apache.TOOLS,
        both=apache.both,
        load=apache.load,
        sweep=sweep.WEB,
        apart=True,
    ),
    "mariadb": Kind(
        title="MariaDB",
        unit="transactions",
        clients="clients",
        count=mariadb.CLIENTS,
        modes=mariadb.MODES,
        tools=mariadb.TOOLS,
        both=mariadb.both,
        load=mariadb.load,
        sweep=sweep.DATABASE,
        apart=False,
    ),
}


def connections(plan: Plan, kind: Kind) -> int:
    return plan.connections or kind.count


def variants(plan: Plan, program: str, mode: str) -> list[Settings]:
    return [
        {
            "program": program,
            "mode": mode,
            "variant": variant,
            "connections": connections(plan, KINDS[program]),
            "seconds": plan.seconds,
            "network": plan.network.kind,
        }
        for variant in (NATIVE, FLEXSC)
    ]


def round_of(plan: Plan, kind: Kind, program: Program, mode: str, seconds: int) -> Json:
    def load() -> Load:
        return kind.load(plan, program, mode, connections(plan, kind), seconds)

    return loaded(plan, program, load)


def compare(run: Run, plan: Plan, name: str, mode: str, of: dict[str, Program]) -> None:
    kind = KINDS[name]
    progress(f"programs: warming up {name} {mode}")
    for program in of.values():
        round_of(plan, kind, program, mode, min(WARM_UP_S, plan.seconds))
    check_threads(plan, of[FLEXSC])
    measure_all(
        run,
        plan,
        BENCH,
        variants(plan, name, mode),
        lambda s: round_of(plan, kind, of[str(s["variant"])], mode, plan.seconds),
    )


def measure_one(run: Run, plan: Plan, name: str) -> None:
    if name in looping.KINDS:
        loops.measure(run, plan, name)
        return
    if name == entries.NAME:
        entries.measure(run, plan)
        return
    kind = KINDS[name]
    for tool in kind.tools:
        tools.need(tool)
    plans = sweep.plans(plan, kind.sweep)
    for together in [[one] for one in plans] if kind.apart else [plans]:
        most = connections(together[-1], kind)
        with descriptors(most), kind.both(plan, most) as found:
            for mode, one in product(kind.modes, together):
                try:
                    compare(run, one, name, mode, found)
                except BenchError as error:
                    count = f"{connections(one, kind)} {kind.clients}"
                    run.note(f"{BENCH}: {count}: {error}")


def parse(words: Sequence[str]) -> list[str]:
    return chosen(BENCH, words, [*KINDS, entries.NAME, *looping.KINDS], KINDS)


def measure(run: Run, plan: Plan) -> None:
    for name in parse(plan.words):
        try:
            measure_one(run, plan, name)
        except BenchError as error:
            progress("")
            run.note(f"{BENCH}: {error}")


def show_one(kind: Kind, mode: str, found: list[Measurement]) -> list[str]:
    """The table of one number of clients."""
    by_name = {str(m.settings["variant"]): m for m in found}
    if FLEXSC not in by_name or NATIVE not in by_name:
        return []
    flexsc, native = by_name[FLEXSC], by_name[NATIVE]
    title = (
        f"programs: {kind.title}, {native.settings['connections']} {kind.clients}, "
        f"{kind.modes[mode]};\n{table.how(native)}"
    )
    head = [mode, NATIVE, FLEXSC, "flexsc/native"]
    rows = [(f"{kind.unit}/s", SERIES), *ROWS]
    text = table.table(head, table.beside(rows, (native, flexsc), flexsc, native))
    return [title + "\n" + table.explained(text)]


def show_mode(kind: Kind, mode: str, found: list[Measurement]) -> list[str]:
    if len(distinct(found, "connections")) == 1:
        return show_one(kind, mode, found)
    title = f"programs: {kind.title}, {kind.modes[mode]};\n{table.how(found[0])}"
    return sweep.tables(title, kind.unit, found, [NATIVE, FLEXSC], NATIVE)


def show(run: Run) -> list[str]:
    parts = []
    for name, kind in KINDS.items():
        for mode in distinct(run.of(BENCH, program=name), "mode"):
            parts += show_mode(kind, mode, run.of(BENCH, program=name, mode=mode))
    return parts + entries.show(run) + loops.show(run)

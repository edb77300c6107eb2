# SPDX-License-Identifier: MIT
"""Real programs, natively and under flexsc run: Apache (OSDI 2010, figure 11)
and MariaDB (figure 14). Both variants of a program run all the time, on the
same core, and are loaded alternately from the other cores. Programs with an event
loop are measured by loops.py, if their names are given.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from . import apache, loops, looping, mariadb, quiet, table, tools
from .compare import ratio
from .runner import Plan, measure_all, progress
from .running import FLEXSC, NATIVE, Program
from .samples import BenchError, Json, Measurement, Run, Settings, distinct
from .tools import Load

BENCH = "programs"
SERIES = "requests_per_s"

WARM_UP_S = 2
STAT_S = 10


@dataclass(frozen=True)
class Kind:
    """What is particular about a program."""

    title: str
    unit: str
    clients: str
    count: int
    modes: dict[str, str]
    tools: list[str]
    both: Callable[[Plan, int], AbstractContextManager[dict[str, Program]]]
    load: Callable[[Plan, Program, str, int, int], Load]


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
    try:
        before, begin = quiet.clock_s(program.pid), time.monotonic()
        found = kind.load(plan, program, mode, connections(plan, kind), seconds)
        busy = quiet.clock_s(program.pid) - before
    except (BenchError, OSError) as error:
        raise program.error(error) from error
    return {
        "samples": {
            SERIES: [found.requests_per_s],
            "p50_us": [found.p50_us],
            "p99_us": [found.p99_us],
            "busy_percent": [100 * busy / (time.monotonic() - begin)],
        },
        "counts": {"requests": found.requests},
    }


def check(plan: Plan, program: Program) -> None:
    """Raise BenchError if the program has no user threads: it may run natively, and no
    log say so.
    """
    done = subprocess.run(
        [plan.flexsc, "stat", str(program.pid)],
        capture_output=True,
        text=True,
        timeout=STAT_S,
        check=False,
    )
    if done.returncode:
        raise program.error(f"runs natively: {done.stderr.strip()}")


def compare(run: Run, plan: Plan, name: str, mode: str, of: dict[str, Program]) -> None:
    kind = KINDS[name]
    progress(f"programs: warming up {name} {mode}")
    for program in of.values():
        round_of(plan, kind, program, mode, min(WARM_UP_S, plan.seconds))
    check(plan, of[FLEXSC])
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
    kind = KINDS[name]
    for tool in kind.tools:
        tools.need(tool)
    with kind.both(plan, connections(plan, kind)) as found:
        for mode in kind.modes:
            compare(run, plan, name, mode, found)


def parse(words: Sequence[str]) -> list[str]:
    """Words of the command line as names of programs; without words, those that have a
    thread for each connection.
    """
    known = [*KINDS, *looping.KINDS]
    for word in words:
        if word not in known:
            raise BenchError(f"programs: {word}: give {', '.join(known)}")
    return list(dict.fromkeys(words or KINDS))


def measure(run: Run, plan: Plan) -> None:
    for name in parse(plan.words):
        try:
            measure_one(run, plan, name)
        except BenchError as error:
            progress("")
            run.note(f"{BENCH}: {error}")


def figure(measurement: Measurement, series: str) -> str:
    return table.number(measurement.median(series))


def line(
    title: str,
    flexsc: Measurement,
    native: Measurement,
    series: str,
    cell: Callable[[Measurement, str], str],
) -> list[str]:
    beside = ratio(flexsc.series(series), native.series(series))
    return [title, cell(native, series), cell(flexsc, series), table.ratio(beside)]


def lines(kind: Kind, flexsc: Measurement, native: Measurement) -> list[list[str]]:
    first = f"{kind.unit}/s"
    rows = [
        ("latency p50, us", "p50_us"),
        ("latency p99, us", "p99_us"),
        ("core busy, %", "busy_percent"),
    ]
    return [
        line(first, flexsc, native, SERIES, table.rate),
        *(line(title, flexsc, native, series, figure) for title, series in rows),
    ]


def show(run: Run) -> list[str]:
    parts = []
    for name, kind in KINDS.items():
        for mode in distinct(run.of(BENCH, program=name), "mode"):
            flexsc = run.find(BENCH, program=name, mode=mode, variant=FLEXSC)
            native = run.find(BENCH, program=name, mode=mode, variant=NATIVE)
            if not flexsc or not native:
                continue
            settings = native.settings
            title = (
                f"programs: {kind.title}, {settings['connections']} {kind.clients}, "
                f"{kind.modes[mode]};\n{table.how(native)}"
            )
            head = [mode, NATIVE, FLEXSC, "flexsc/native"]
            rows = table.table(head, lines(kind, flexsc, native))
            parts.append(title + "\n" + table.explained(rows))
    return parts + loops.show(run)

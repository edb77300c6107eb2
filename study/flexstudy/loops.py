# SPDX-License-Identifier: MIT
"""Programs with an event loop, which flexsc run must not make slower: their processor
time and their system calls per request.

The client is bench --raw rounds (clients.py), so neither the load nor other processes
affect the server's processor time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from flexbench import clients, sweep, table, tools
from flexbench.compare import ratio
from flexbench.runner import Plan, measure_all, progress
from flexbench.running import FLEXSC, NATIVE, Program
from flexbench.samples import BenchError, Json, Measurement, Run, Settings

from . import looping

BENCH = "loops"
SERIES = "cpu_us"
CALLS = "calls_per_request"
RUNTIME = "libflexsc-runtime"

COUNT_S = 1

ONE, KEPT, NEW = "one", "kept", "new"
# Concurrent connections. A name server's queue accepts at most 8 new ones.
CONNECTIONS = {ONE: 1, KEPT: 128, NEW: 8}


def modes(kind: looping.Kind) -> list[str]:
    return [ONE, KEPT] if kind.question.udp else [ONE, KEPT, NEW]


def connections(plan: Plan, mode: str) -> int:
    return (mode == KEPT and plan.connections) or CONNECTIONS[mode]


def in_rounds(
    plan: Plan,
    program: Program,
    mode: str,
    length: Settings,
    counter: Sequence[str] = (),
) -> Json:
    """length: the setting "seconds" or "count" of bench --raw rounds."""
    settings: Settings = {
        **program.settings,
        "connections": connections(plan, mode),
        "conns": NEW if mode == NEW else KEPT,
        "port": program.port,
        "pid": program.pid,
        **length,
    }
    try:
        return clients.rounds(plan, settings, counter)
    except BenchError as error:
        raise program.error(error) from error


def round_of(plan: Plan, program: Program, mode: str) -> Json:
    found = in_rounds(plan, program, mode, {"seconds": plan.seconds})
    return {"samples": found["samples"], "counts": found["counts"]}


def calls(plan: Plan, program: Program, mode: str) -> float:
    """The number of system calls of the program's threads per request, by perf."""
    length: Settings = {"seconds": COUNT_S}
    counted, found = tools.count_calls(
        [program.pid], lambda c: in_rounds(plan, program, mode, length, c)
    )
    return counted / float(found["counts"]["warmed"])


def count_calls(
    run: Run,
    plan: Plan,
    mode: str,
    measured: list[Measurement],
    found: dict[str, Program],
) -> None:
    """Add the number of system calls per request to each measurement."""
    for m in measured:
        try:
            program = found[str(m.settings["variant"])]
            m.rounds[-1]["counts"][CALLS] = calls(plan, program, mode)
        except BenchError as error:
            run.note(f"{m.bench}: can't count system calls: {error}")
            return


def compare_kept(
    run: Run,
    plan: Plan,
    bench: str,
    found: dict[str, Program],
    round_of: Callable[[Plan, Program], Json],
) -> None:
    """Measure variants of a program alternately, with plan.connections."""
    count = plan.connections or 1
    variants: list[Settings] = [
        {
            "variant": variant,
            "connections": count,
            "seconds": plan.seconds,
            "network": plan.network.kind,
        }
        for variant in found
    ]
    measure_all(
        run, plan, bench, variants, lambda s: round_of(plan, found[str(s["variant"])])
    )
    count_calls(run, plan, KEPT, run.of(bench, connections=count), found)


def compare(
    run: Run, plan: Plan, name: str, mode: str, found: dict[str, Program]
) -> None:
    variants: list[Settings] = [
        {
            "program": name,
            "mode": mode,
            "variant": variant,
            "connections": connections(plan, mode),
            "seconds": plan.seconds,
            "network": plan.network.kind,
        }
        for variant in found
    ]
    measure_all(
        run,
        plan,
        BENCH,
        variants,
        lambda s: round_of(plan, found[str(s["variant"])], mode),
    )
    count = connections(plan, mode)
    measured = run.of(BENCH, program=name, mode=mode, connections=count)
    count_calls(run, plan, mode, measured, found)


def check(program: Program) -> None:
    """Check that the program is under flexsc run. A single-threaded program has no user
    threads, so this looks at its memory maps.
    """
    if RUNTIME not in Path(f"/proc/{program.pid}/maps").read_text(encoding="utf-8"):
        raise program.error(
            "flexsc run refused to start it, so it would run without it"
        )


def measure(run: Run, plan: Plan, name: str) -> None:
    kind = looping.KINDS[name]
    tools.need("taskset")
    with looping.both(plan, kind) as found:
        check(found[FLEXSC])
        for mode in [KEPT] if plan.sweep else modes(kind):
            progress(f"{BENCH}: {name} {mode}")
            for one in sweep.plans(plan, sweep.NAMES):
                compare(run, one, name, mode, found)


def row(run: Run, key: Settings) -> list[str]:
    flexsc = run.find(BENCH, **key, variant=FLEXSC)
    native = run.find(BENCH, **key, variant=NATIVE)
    if not flexsc or not native:
        return []
    both = (native, flexsc)
    return [
        f"{key['program']}, {key['connections']} "
        + (NEW if key["mode"] == NEW else KEPT),
        *(table.number(m.median(SERIES)) for m in both),
        table.ratio(ratio(native.series(SERIES), flexsc.series(SERIES))),
        *(table.number(m.rounds[-1]["counts"].get(CALLS)) for m in both),
    ]


def show(run: Run) -> list[str]:
    names = "program", "mode", "connections"
    keys = {tuple(m.settings[name] for name in names): None for m in run.of(BENCH)}
    rows = [row(run, dict(zip(names, key, strict=True))) for key in keys]
    rows = [cells for cells in rows if cells]
    if not rows:
        return []
    title = (
        "programs with an event loop: us of the processor, and system calls, for a "
        f"request;\n{table.how(run.of(BENCH)[0])}"
    )
    head = ["connections", NATIVE, FLEXSC, "native/flexsc", "calls", "flexsc"]
    return [title + "\n" + table.table(head, rows)]

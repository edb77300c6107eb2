# SPDX-License-Identifier: MIT
"""flexsc bench: the command line."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType, ModuleType

from flexstudy import (
    apache,
    cost,
    counters,
    counts,
    generator,
    mariadb,
    memory,
    nginx,
    overload,
    overload_plan,
    programs,
    send,
    webserver,
)

from . import (
    calls,
    machine,
    network,
    pair,
    plot,
    quiet,
    reads,
    samples,
    serve,
    table,
    threads,
    timers,
)
from .runner import Plan
from .samples import (
    UNREADABLE,
    BenchError,
    Run,
)

BENCHES: dict[str, ModuleType] = {
    "calls": calls,
    "cost": cost,
    "memory": memory,
    "timers": timers,
    "reads": reads,
    "send": send,
    "serve": serve,
    "nginx": nginx,
    "threads": threads,
    "programs": programs,
    "counts": counts,
    "counters": counters,
    "study": webserver,
    "overload": overload,
    "generator": generator,
}
# Benches that run only if they are named.
APART = ["memory", "nginx", "counts", "counters", "study", "overload", "generator"]
# Benches that take words behind their names, and the functions that check the words.
WORDED: dict[str, Callable[[list[str]], object]] = {
    "nginx": nginx.parse,
    "programs": programs.parse,
    "counts": counts.parse,
    "counters": counters.parse,
    "study": webserver.parse,
    "overload": overload_plan.parse,
    "generator": generator.parse,
}
# Benches whose servers and clients may be on a network of their own.
NETWORKED = ["serve", "nginx", "programs", "study", "overload", "generator"]
# Benches that --sweep takes through numbers of clients.
SWEPT = ["serve", "programs"]

ROUNDS, QUICK_ROUNDS = 7, 3
SECONDS, QUICK_SECONDS = 5, 2
SIZE = 1024


def positive(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1000:
        raise ValueError(text)
    return value


def counts_of(text: str) -> list[int]:
    if text == "all":
        return machine.counts(os.sched_getaffinity(0))
    return sorted({positive(one) for one in text.split(",")})


def size(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1 << 30:
        raise ValueError(text)
    return value


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="flexsc bench",
        description="Measure system calls, timers, reads, servers, and real programs; "
        "flexsc-bench(1) says what the figures mean.",
    )
    parser.add_argument(
        "bench",
        nargs="?",
        choices=[*BENCHES, "all"],
        default="all",
        help=f"what to measure (all but {', '.join(APART)})",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="of overload: its parts and settings; of programs, counts and counters: "
        "programs' names; of nginx and generator: what is asked for; of study: "
        "workloads and models",
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds and sizes, wider ranges"
    )
    parser.add_argument(
        "--rounds",
        type=positive,
        metavar="N",
        help=f"measure each variant so often ({ROUNDS}, quick {QUICK_ROUNDS})",
    )
    parser.add_argument(
        "--seconds",
        type=positive,
        metavar="N",
        help="of load in a round of serve, nginx, programs and generator "
        f"({SECONDS}, quick {QUICK_SECONDS}), and half of it in one of threads; "
        f"of study with sessions ({webserver.SECONDS})",
    )
    parser.add_argument(
        "--bytes",
        type=size,
        metavar="N",
        default=SIZE,
        help=f"size of the one file that serve, nginx and study ask for ({SIZE})",
    )
    parser.add_argument(
        "--connections",
        type=positive,
        metavar="N",
        help=f"clients of serve and nginx ({pair.CONNECTIONS}), and of programs (Apache "
        f"{apache.CONNECTIONS}, MariaDB {mariadb.CLIENTS}), and the only number "
        "of them for threads and study",
    )
    parser.add_argument(
        "--sweep",
        action="store_true",
        help="of programs and serve: the papers' numbers of clients, one after the "
        f"other ({QUICK_ROUNDS} rounds)",
    )
    parser.add_argument(
        "--network",
        default=network.LO,
        metavar="KIND",
        help=f"of {', '.join(NETWORKED)}: {', '.join(network.KINDS)} ({network.LO})",
    )
    parser.add_argument(
        "--tune", action="store_true", help="of study: find each model's best settings"
    )
    parser.add_argument(
        "--cores",
        type=counts_of,
        metavar="N,...",
        help="of study with sessions: cores of the server (1); or all: 1, 2, 4...",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="keep the raw samples, as JSON"
    )
    parser.add_argument(
        "--show",
        type=Path,
        metavar="FILE",
        help="measure nothing, show what such a file has",
    )
    parser.add_argument(
        "--plot", type=Path, metavar="DIR", help="draw figures there, as SVG"
    )
    parser.add_argument("--flexsc", default="flexsc", help=argparse.SUPPRESS)
    args = parser.parse_intermixed_args(argv)
    if args.words and args.bench not in WORDED:
        parser.error(f"{args.bench} takes no {args.words[0]}")
    return args


def check(args: argparse.Namespace) -> None:
    """Refuse arguments that don't fit together, before anything is measured."""
    if args.words:
        WORDED[args.bench](args.words)
    network.check(args.network)
    if args.network != network.LO and args.bench not in NETWORKED:
        raise BenchError(f"{args.bench}: --network is of {', '.join(NETWORKED)}")
    if args.sweep and args.bench not in SWEPT:
        raise BenchError(f"{args.bench}: --sweep is of {', '.join(SWEPT)}")
    if args.sweep and args.connections:
        raise BenchError("--sweep has its own numbers of --connections: give one")
    if args.tune and args.bench != "study":
        raise BenchError(f"{args.bench}: --tune is of study")
    if args.cores and args.bench != "study":
        raise BenchError(f"{args.bench}: --cores is of study")
    if args.cores:
        webserver.parse_several(args.words)


def measure(args: argparse.Namespace, argv: list[str]) -> Run:
    allowed = os.sched_getaffinity(0)
    counts = args.cores or [1]
    chosen = [machine.choose(allowed, count) for count in counts]
    plan = Plan(
        flexsc=args.flexsc,
        cores=chosen[0],
        quick=args.quick,
        rounds=args.rounds or (QUICK_ROUNDS if args.quick or args.sweep else ROUNDS),
        seconds=args.seconds or (QUICK_SECONDS if args.quick else SECONDS),
        bytes=args.bytes,
        connections=args.connections,
        words=args.words,
        tune=args.tune,
        asked_rounds=args.rounds,
        asked_seconds=args.seconds,
        sweep=args.sweep,
        numbers=args.cores or (),
    )
    run = Run(machine=machine.collect(args.flexsc, chosen), command=argv)
    with quiet.preferred():
        for cores in chosen:
            try:
                measure_on(run, replace(plan, cores=cores), args)
            except BenchError as error:
                if not run.measurements:
                    raise
                # The measurements of earlier numbers of cores are kept.
                run.note(f"{table.cores(len(cores.server))}: {error}")
    return run


def measure_on(run: Run, plan: Plan, args: argparse.Namespace) -> None:
    with network.network(args.network, plan.cores) as net:
        run.machine["network"] = net.settings
        for name, bench in BENCHES.items():
            if args.bench != name and (args.bench != "all" or name in APART):
                continue
            try:
                bench.measure(run, replace(plan, network=net))
            except BenchError as error:
                run.note(f"{name}: {error}")


def show(run: Run) -> None:
    print(machine.describe(run.machine))
    for bench in BENCHES.values():
        for part in bench.show(run):
            print(f"\n{part}")
    for note in run.notes:
        print(f"\n{note}")


def show_file(run: Run, path: Path) -> None:
    try:
        show(run)
    except UNREADABLE as error:
        raise BenchError(f"{path}: lacks something of its benches") from error


def main(argv: list[str]) -> int:
    args = parse(argv)
    try:
        check(args)
        if args.out and not args.show:
            # Better now than after minutes of measuring.
            args.out.touch()
        run = samples.load(args.show) if args.show else measure(args, argv)
        if args.show:
            show_file(run, args.show)
        else:
            show(run)
        if args.out:
            samples.save(run, args.out)
            print(f"\nraw samples: {args.out}")
        if args.plot:
            for path in plot.plot(run, args.plot):
                print(f"figure: {path}")
    except BenchError as error:
        print(f"flexsc: bench: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"flexsc: bench: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0 if run.measurements else 1


def terminated(number: int, frame: FrameType | None) -> None:
    """Leave by way of the with-blocks, so that no server is left behind."""
    sys.exit(128 + number)


def end_by_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, terminated)
    # The end of the terminal is the command's, unless nohup(1) says otherwise.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, terminated)


if __name__ == "__main__":
    end_by_signals()
    sys.exit(main(sys.argv[1:]))

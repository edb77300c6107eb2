# SPDX-License-Identifier: MIT
"""The command line of a set of benches: those of flexsc bench, or those of flexsc
study."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType, ModuleType

from . import machine, network, quiet, samples, table
from .runner import Plan
from .samples import UNREADABLE, BenchError, Run

ROUNDS, QUICK_ROUNDS = 7, 3
SECONDS, QUICK_SECONDS = 5, 2
SIZE = 1024


@dataclass(frozen=True)
class Bench:
    """A bench, and the options that it accepts. module: has measure() and show()."""

    module: ModuleType
    apart: bool = False  # runs only if it is named
    words: Callable[[list[str]], object] | None = (
        None  # checks the words after the name
    )
    networked: bool = False  # accepts --network
    swept: bool = False  # accepts --sweep
    run: bool = False  # runs programs under flexsc run, so it accepts --baseline
    tuned: bool = False  # accepts --tune
    several: Callable[[list[str]], object] | None = (
        None  # accepts --cores; checks the words beside it
    )


@dataclass(frozen=True)
class Command:
    """A command such as flexsc bench, and its benches."""

    name: str
    about: str
    benches: Mapping[str, Bench]

    def with_option(self, option: str) -> list[str]:
        """Names of the benches that accept an option."""
        return [name for name, one in self.benches.items() if getattr(one, option)]


def every(words: list[str]) -> None:
    """For Bench.several of a bench whose words all work with --cores."""


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


def parser_of(command: Command) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"flexsc {command.name}",
        description=f"{command.about}; flexsc-{command.name}(1) explains the figures.",
    )
    apart = command.with_option("apart")
    parser.add_argument(
        "bench",
        nargs="?",
        choices=[*command.benches, "all"],
        default="all",
        help="what to measure" + (f" (all but {', '.join(apart)})" if apart else ""),
    )
    if worded := command.with_option("words"):
        parser.add_argument(
            "words",
            nargs="*",
            metavar="WORD",
            help=f"parts, programs, modes and settings of {', '.join(worded)}",
        )
    else:
        parser.set_defaults(words=[])
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds and sizes, wider ranges"
    )
    parser.add_argument(
        "--rounds",
        type=positive,
        metavar="N",
        help=f"measure each variant N times ({ROUNDS}, quick {QUICK_ROUNDS})",
    )
    parser.add_argument(
        "--seconds",
        type=positive,
        metavar="N",
        help=f"seconds of load per round ({SECONDS}, quick {QUICK_SECONDS})",
    )
    parser.add_argument(
        "--bytes",
        type=size,
        metavar="N",
        default=SIZE,
        help=f"size of the file that web servers send ({SIZE})",
    )
    parser.add_argument(
        "--connections",
        type=positive,
        metavar="N",
        help="number of clients (by default each bench has its own)",
    )
    parser.add_argument(
        "--sweep",
        action="store_true",
        help=f"for {', '.join(command.with_option('swept'))}: the papers' numbers of "
        f"clients, one after the other ({QUICK_ROUNDS} rounds)",
    )
    parser.add_argument(
        "--baseline",
        metavar="FLEXSC",
        help=f"for {', '.join(command.with_option('run'))}: run the programs that are "
        "measured natively under this flexsc, to compare two builds",
    )
    parser.add_argument(
        "--network",
        default=network.LO,
        metavar="KIND",
        help=f"for {', '.join(command.with_option('networked'))}: "
        f"{', '.join(network.KINDS)} ({network.LO})",
    )
    if tuned := command.with_option("tuned"):
        parser.add_argument(
            "--tune",
            action="store_true",
            help=f"for {', '.join(tuned)}: find each model's best settings",
        )
    else:
        parser.set_defaults(tune=False)
    parser.add_argument(
        "--cores",
        type=counts_of,
        metavar="N,...",
        help=f"for {', '.join(command.with_option('several'))}: numbers of cores of the "
        "server (1); or all: 1, 2, 4... up to half of the physical cores",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="keep the raw samples, as JSON"
    )
    parser.add_argument(
        "--show",
        type=Path,
        metavar="FILE",
        help="measure nothing, show a file of --out",
    )
    parser.add_argument("--flexsc", default="flexsc", help=argparse.SUPPRESS)
    return parser


def parse(command: Command, argv: Sequence[str]) -> argparse.Namespace:
    parser = parser_of(command)
    args = parser.parse_intermixed_args(argv)
    if args.words and args.bench not in command.with_option("words"):
        parser.error(f"unexpected argument for {args.bench}: {args.words[0]}")
    return args


def check(command: Command, args: argparse.Namespace) -> None:
    """Refuse incompatible arguments before anything is measured."""
    bench = command.benches.get(args.bench)
    if args.words and bench and bench.words:
        bench.words(args.words)
    network.check(args.network)
    given = {
        "networked": ("--network", args.network != network.LO),
        "swept": ("--sweep", args.sweep),
        "run": ("--baseline", args.baseline),
        "tuned": ("--tune", args.tune),
        "several": ("--cores", args.cores),
    }
    for option, (name, there) in given.items():
        takers = command.with_option(option)
        if there and args.bench not in takers:
            raise BenchError(
                f"{name} doesn't apply to {args.bench}, only to {', '.join(takers)}"
            )
    if args.sweep and args.connections:
        raise BenchError(
            "--sweep and --connections exclude each other, because "
            "--sweep sets the connections"
        )
    if args.cores and bench and bench.several:
        bench.several(args.words)


def measure(command: Command, args: argparse.Namespace, argv: list[str]) -> Run:
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
        baseline=args.baseline,
    )
    run = Run(
        machine=machine.collect(args.flexsc, chosen), command=[command.name, *argv]
    )
    if args.baseline:
        run.note(f"native: under {args.baseline} run")
    with quiet.preferred():
        for cores in chosen:
            try:
                if remark := machine.crowded(cores):
                    run.note(f"{table.cores(len(cores.server))}: {remark}")
                measure_on(command, run, replace(plan, cores=cores), args)
            except BenchError as error:
                if not run.measurements:
                    raise
                # Keep the measurements of the earlier numbers of cores.
                run.note(f"{table.cores(len(cores.server))}: {error}")
    return run


def measure_on(
    command: Command, run: Run, plan: Plan, args: argparse.Namespace
) -> None:
    with network.network(args.network, plan.cores) as net:
        run.machine["network"] = net.settings
        for name, bench in command.benches.items():
            if args.bench != name and (args.bench != "all" or bench.apart):
                continue
            try:
                bench.module.measure(run, replace(plan, network=net))
            except BenchError as error:
                run.note(f"{name}: {error}")


def show(command: Command, run: Run) -> None:
    print(machine.describe(run.machine))
    for bench in command.benches.values():
        for part in bench.module.show(run):
            print(f"\n{part}")
    for note in run.notes:
        print(f"\n{note}")


def show_file(command: Command, run: Run, path: Path) -> None:
    try:
        show(command, run)
    except UNREADABLE as error:
        raise BenchError(
            f"{path}: incomplete: values of its benches are missing"
        ) from error


def main(command: Command, argv: list[str]) -> int:
    args = parse(command, argv)
    try:
        check(command, args)
        if args.out and not args.show:
            # Fail here rather than after minutes of measuring.
            args.out.touch()
        run = samples.load(args.show) if args.show else measure(command, args, argv)
        if args.show:
            show_file(command, run, args.show)
        else:
            show(command, run)
        if args.out:
            samples.save(run, args.out)
            print(f"\nraw samples: {args.out}")
    except BenchError as error:
        print(f"flexsc: {command.name}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(
            f"flexsc: {command.name}: {error.filename}: {error.strerror}",
            file=sys.stderr,
        )
        return 1
    return 0 if run.measurements else 1


def terminated(number: int, frame: FrameType | None) -> None:
    """Raise SystemExit, so that with-blocks stop their servers."""
    sys.exit(128 + number)


def end_by_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, terminated)
    # SIGHUP ends the command, unless nohup(1) has set it to be ignored.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, terminated)

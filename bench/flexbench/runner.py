# SPDX-License-Identifier: MIT
"""Runs one variant after the other, round after round, in one run. So a temporary
disturbance of the machine affects all variants.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from . import quiet
from .machine import Cores
from .network import Network
from .samples import BenchError, Json, Measurement, Run, Settings

T = TypeVar("T")

# Time limit of one measurement, in seconds.
TIMEOUT = 300

# A round is measured up to TRIES times if other processes used the core. DISTURBED: the
# series of the core's time that they used, in percent.
TRIES = 3
DISTURBED = "disturbed_percent"


@dataclass(frozen=True)
class Plan:
    """How thoroughly to measure, with which command, and where."""

    flexsc: str
    cores: Cores
    quick: bool
    rounds: int
    seconds: int
    bytes: int
    connections: int | None  # of the command line; None: the bench's default
    words: Sequence[str] = ()  # the words after the bench's name
    network: Network = field(default_factory=Network)
    under: Sequence[str] = ()  # a command under which the programs run
    tune: bool = False
    # Of the command line; None: the bench's default.
    asked_rounds: int | None = None
    asked_seconds: int | None = None
    sweep: bool = False  # measure the papers' numbers of clients, one after the other
    numbers: Sequence[int] = ()  # --cores: numbers of server cores
    baseline: str | None = None  # another build's flexsc, which runs the native variant


def chosen(
    bench: str, words: Sequence[str], known: Collection[str], most: Collection[str] = ()
) -> list[str]:
    """The selected names, each once. Without words: most or all names."""
    for word in words:
        if word not in known:
            raise BenchError(f"{bench}: {word}: give {', '.join(known)}")
    return list(dict.fromkeys(words or most or known))


def alternate(variants: Sequence[T], rounds: int) -> Iterator[tuple[int, T]]:
    """Each variant once per round, alternately forwards and backwards, so that a steady
    drift of the machine favours no variant.
    """
    for index in range(rounds):
        order = variants if index % 2 == 0 else list(reversed(variants))
        for variant in order:
            yield index, variant


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def raw(
    flexsc: str,
    case: str,
    settings: Settings,
    before: Sequence[str] = (),
    name: str = "bench",
) -> Json:
    """The output of flexsc NAME --raw. before: a command prefix, such as taskset. If
    `settings` has no "core", the command runs on cores other than the measured one.
    """
    command = [*before, flexsc, name, "--raw", case]
    command += [f"{key}={value}" for key, value in settings.items()]
    try:
        with nullcontext() if "core" in settings else quiet.elsewhere():
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT, check=False
            )
    except subprocess.TimeoutExpired:
        raise BenchError(
            f"{' '.join(command[1:])}: timed out after {TIMEOUT} s"
        ) from None
    except OSError as error:
        raise BenchError(f"{flexsc}: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        reason = lines[-1] if lines else f"exit status {done.returncode}"
        for prefix in ("flexsc: bench: ", "flexsc: study: "):
            reason = reason.removeprefix(prefix)
        raise BenchError(reason)
    found: Json = json.loads(done.stdout)
    return found


def in_quiet(run: Run, plan: Plan, bench: str, once: Callable[[], Json]) -> Json:
    """Measure, and repeat the measurement if other processes used the server's cores.
    Their share comes from the bench's output if it has one, or else from the clocks of
    all processes.
    """
    for _ in range(1 if plan.quick else TRIES):
        others = quiet.Others(plan.cores.server)
        found = once()
        share = found["samples"].setdefault(DISTURBED, [others.percent()])
        if share[0] <= quiet.LIMIT_PERCENT:
            return found
    run.note(
        f"{bench}: other processes used more than "
        f"{quiet.LIMIT_PERCENT:.0f} % of the measured cores in some "
        "rounds: their figures are rough"
    )
    return found


def measure_all(
    run: Run,
    plan: Plan,
    bench: str,
    variants: Sequence[Settings],
    once: Callable[[Settings], Json],
) -> None:
    """Measure all variants. If a variant fails, this is noted, and the variant is
    dropped with its rounds, which can't be compared any more.
    """
    found = [Measurement(bench, settings) for settings in variants]
    failed: list[Measurement] = []
    rounds = plan.rounds
    for index, measurement in alternate(found, rounds):
        if measurement in failed:
            continue
        what = " ".join(str(v) for v in measurement.settings.values())
        progress(f"{bench}: round {index + 1} of {rounds}: {what}")
        try:
            one = partial(once, measurement.settings)
            measurement.rounds.append(in_quiet(run, plan, bench, one))
        except BenchError as error:
            failed.append(measurement)
            run.note(f"{bench}: skipping a variant: {error}")
    progress("")
    run.measurements += [m for m in found if m not in failed]


def measure_all_raw(
    run: Run, plan: Plan, case: str, variants: Sequence[Settings]
) -> None:
    measure_all(run, plan, case, variants, lambda s: raw(plan.flexsc, case, s))

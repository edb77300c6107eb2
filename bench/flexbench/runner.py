# SPDX-License-Identifier: MIT
"""One variant after the other, round after round, in one run: whatever
disturbs the machine for a while disturbs all of them.
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

# Seconds that one measurement may take.
TIMEOUT = 300

# How often a round is measured if others had the core, and the series of their share.
TRIES = 3
DISTURBED = "disturbed_percent"


@dataclass(frozen=True)
class Plan:
    """How thoroughly, with which command, and where."""

    flexsc: str
    cores: Cores
    quick: bool
    rounds: int
    seconds: int
    bytes: int
    connections: int | None  # as the command line says; None: the bench's own
    words: Sequence[str] = ()  # the command line's after the bench's name
    network: Network = field(default_factory=Network)
    under: Sequence[str] = ()  # a command that runs the programs
    tune: bool = False
    # As the command line says; None: the bench's own.
    asked_rounds: int | None = None
    asked_seconds: int | None = None
    sweep: bool = False  # the papers' numbers of clients, one after the other
    numbers: Sequence[int] = ()  # of the server's cores: --cores
    baseline: str | None = None  # another build's flexsc, which runs the native variant


def chosen(
    bench: str, words: Sequence[str], known: Collection[str], most: Collection[str] = ()
) -> list[str]:
    """The names that the words are, each once; without words, most or all of them."""
    for word in words:
        if word not in known:
            raise BenchError(f"{bench}: {word}: give {', '.join(known)}")
    return list(dict.fromkeys(words or most or known))


def alternate(variants: Sequence[T], rounds: int) -> Iterator[tuple[int, T]]:
    """Each variant once a round, alternately forwards and backwards, so that a
    steady drift of the machine favours none.
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
    """What flexsc NAME --raw prints. before: words of a command that runs it. Without the
    setting "core" it runs on other cores than the measured one.
    """
    command = [*before, flexsc, name, "--raw", case]
    command += [f"{key}={value}" for key, value in settings.items()]
    try:
        with nullcontext() if "core" in settings else quiet.elsewhere():
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT, check=False
            )
    except subprocess.TimeoutExpired:
        raise BenchError(f"{' '.join(command[1:])}: not done in {TIMEOUT} s") from None
    except OSError as error:
        raise BenchError(f"{flexsc}: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        reason = lines[-1] if lines else f"ended with {done.returncode}"
        for prefix in ("flexsc: bench: ", "flexsc: study: "):
            reason = reason.removeprefix(prefix)
        raise BenchError(reason)
    found: Json = json.loads(done.stdout)
    return found


def in_quiet(run: Run, plan: Plan, bench: str, once: Callable[[], Json]) -> Json:
    """Measure, and measure again if others had the server's cores meanwhile. Their share is what
    the bench says, if it does, or else by the clocks of all processes.
    """
    for _ in range(1 if plan.quick else TRIES):
        others = quiet.Others(plan.cores.server)
        found = once()
        share = found["samples"].setdefault(DISTURBED, [others.percent()])
        if share[0] <= quiet.LIMIT_PERCENT:
            return found
    run.note(
        f"{bench}: others used the measured cores for more than "
        f"{quiet.LIMIT_PERCENT:.0f} % of some rounds, whose figures are rough"
    )
    return found


def measure_all(
    run: Run,
    plan: Plan,
    bench: str,
    variants: Sequence[Settings],
    once: Callable[[Settings], Json],
) -> None:
    """Measure all variants. A variant that can't be measured is noted and left
    out, with the rounds that it has, which can't be compared any more.
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
            run.note(f"{bench}: a variant is left out: {error}")
    progress("")
    run.measurements += [m for m in found if m not in failed]


def measure_all_raw(
    run: Run, plan: Plan, case: str, variants: Sequence[Settings]
) -> None:
    measure_all(run, plan, case, variants, lambda s: raw(plan.flexsc, case, s))

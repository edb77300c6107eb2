# SPDX-License-Identifier: MIT
"""One variant after the other, round after round, in one run: whatever
disturbs the machine for a while disturbs all of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .machine import Cores
from .samples import BenchError, Json, Measurement, Run, Settings

T = TypeVar("T")

# For one measurement, which takes seconds.
TIMEOUT = 300


@dataclass(frozen=True)
class Plan:
    """How thoroughly, with which command, and where."""

    flexsc: str
    cores: Cores
    quick: bool
    rounds: int
    seconds: int
    bytes: int
    connections: int | None  # that were asked for
    words: Sequence[str] = ()  # of overload
    network: str = "lo"  # of overload


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


def raw(flexsc: str, case: str, settings: Settings, pinned: Sequence[str] = ()) -> Json:
    """What one measurement prints. pinned: what keeps it on its cores, for one
    that doesn't do so itself.
    """
    command = [*pinned, flexsc, "bench", "--raw", case]
    command += [f"{key}={value}" for key, value in settings.items()]
    try:
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
        raise BenchError(reason.removeprefix("flexsc: bench: "))
    found: Json = json.loads(done.stdout)
    return found


def measure_all(
    run: Run,
    bench: str,
    variants: Sequence[Settings],
    rounds: int,
    once: Callable[[Settings], Json],
) -> None:
    """Measure all variants. One that can't be measured is noted and left out;
    what it has already got is dropped, for it can't be compared any more.
    """
    found = [Measurement(bench, settings) for settings in variants]
    failed: list[Measurement] = []
    for index, measurement in alternate(found, rounds):
        if measurement in failed:
            continue
        what = " ".join(str(v) for v in measurement.settings.values())
        progress(f"{bench}: round {index + 1} of {rounds}: {what}")
        try:
            measurement.rounds.append(once(measurement.settings))
        except BenchError as error:
            failed.append(measurement)
            run.note(f"{bench}: a variant is left out: {error}")
    progress("")
    run.measurements += [m for m in found if m not in failed]


def measure_all_raw(
    run: Run, plan: Plan, case: str, variants: Sequence[Settings]
) -> None:
    measure_all(run, case, variants, plan.rounds, lambda s: raw(plan.flexsc, case, s))

# SPDX-License-Identifier: MIT
"""Real programs under flexsc run, for as long as one likes.

    tests/runtime/soak/soak.py [--minutes N] [--jobs N] [--shake SECONDS]
                       [--way WAY]... [PROGRAM]...

Each program is asked by several clients, which check every answer, while it
restarts threads and children by its own means. It lives in rounds; between
them nobody asks, and what it uses then must not grow. In the end it has to
stop as it does natively. A way is as in tests/harness/programs.py:
"native", or an engine and how many carriers, "uring-2".

What went wrong is printed; the first time that an answer doesn't come, where
all threads are is kept in the case's folder, which stays if anything failed.
It needs pytest, as the integration tests do: build-test/venv/bin/python.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import multiprocessing
import random
import shutil
import sys
import threading
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pytest

from loads import LOADS, Load, new_place, version
from fixtures import busy
from programs import carried_by, family
from use import Use, calm, growth, picture

WAYS = ("uring-1", "uring-2", "threads-2")
ROUND = 15.0
ERRORS_MAX = 20  # of one case; then it is given up
LATE = 60.0  # when a visit that began is a hang


@dataclasses.dataclass
class Outcome:
    name: str
    way: str
    visits: int = 0
    shakes: int = 0
    uses: list[Use] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)
    skipped: str = ""
    folder: str = ""


class Case:
    """One program, one way: its rounds, its end, and what was seen."""

    def __init__(self, name: str, way: str, seconds: float, shake: float) -> None:
        self.seen = Outcome(name, way)
        self.seconds = seconds
        self.shake = shake
        self.folder = new_place()
        self.seen.folder = str(self.folder)
        self.lock = threading.Lock()
        self.pictured = False

    def failed(self, load: Load | None, what: str) -> None:
        with self.lock:
            stamp = time.strftime("%H:%M:%S")
            self.seen.errors.append(f"{stamp} {what}: {traceback.format_exc(-4)}")
            first = not self.pictured
            self.pictured = True
        if first and load:
            picture(load.program.process.pid, self.folder)

    def client(self, load: Load, i: int, stop: threading.Event) -> None:
        while not stop.is_set() and len(self.seen.errors) < ERRORS_MAX:
            try:
                load.ask(i)
            except Exception:
                self.failed(load, f"client {i}")
            with self.lock:
                self.seen.visits += 1

    def shaker(self, load: Load, stop: threading.Event) -> None:
        while not stop.wait(self.shake):
            try:
                load.shake()
                self.seen.shakes += 1
            except Exception:
                self.failed(load, "a change")

    def round(self, load: Load, seconds: float) -> None:
        stop = threading.Event()
        threads = [
            threading.Thread(target=self.client, args=(load, i, stop), daemon=True)
            for i in range(load.clients)
        ]
        threads.append(
            threading.Thread(target=self.shaker, args=(load, stop), daemon=True)
        )
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        stop.set()
        end = time.monotonic() + LATE
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        late = sum(thread.is_alive() for thread in threads)
        if late:
            raise TimeoutError(f"{late} clients have had no answer for {LATE} s")
        load.settled()
        self.seen.uses.append(calm(load.program.process.pid))
        burning = busy(family(load.program.process.pid))
        if burning:
            raise RuntimeError(f"{burning} go on computing, and nobody asks")

    def rounds(self, load: Load) -> None:
        end = time.monotonic() + self.seconds
        while time.monotonic() < end and len(self.seen.errors) < ERRORS_MAX:
            self.round(load, max(1.0, min(ROUND, end - time.monotonic())))
        carried = load.carried()
        if not carried or not carried_by(load.way, carried):
            raise RuntimeError("it doesn't run the way that it was told to")

    def run(self) -> Outcome:
        load = None
        try:
            load = LOADS[self.seen.name](self.seen.way, self.folder)
            self.rounds(load)
            load.stop()
            load.stopped()
        except pytest.skip.Exception as why:
            self.seen.skipped = str(why)
        except Exception:
            self.failed(load, "the program")
        finally:
            if load:
                load.end()
        # The first round warms up.
        if len(self.seen.uses) > 1:
            grown = growth(self.seen.uses[0], self.seen.uses[-1])
            self.seen.errors += [f"grows: {what}" for what in grown]
        if not self.seen.errors:
            shutil.rmtree(self.folder, ignore_errors=True)
        return self.seen


def run(case: tuple[str, str, float, float]) -> Outcome:
    return Case(*case).run()


def report(seen: Outcome) -> None:
    verdict = f"{len(seen.errors)} errors" if seen.errors else "right"
    print(
        f"{seen.name} {seen.way}: {seen.skipped or verdict}, "
        f"{seen.visits} visits, {seen.shakes} changes",
        flush=True,
    )
    for i, use in enumerate(seen.uses):
        if i in (0, len(seen.uses) - 1):
            print(f"    after round {i + 1}: {use}")
    for error in seen.errors:
        print("    " + error.strip().replace("\n", "\n    "))
    if seen.errors:
        print(f"    see {seen.folder}", flush=True)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Real programs under flexsc run.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {[*LOADS]}")
    parser.add_argument("--minutes", type=float, default=2.0, help="for each case")
    parser.add_argument("--shake", type=float, default=4.0, help="seconds between")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--way", action="append", help=f"by default {WAYS}")
    options = parser.parse_args(arguments)
    unknown = set(options.programs) - set(LOADS)
    if unknown:
        parser.error(f"no program {', '.join(unknown)}; there are {', '.join(LOADS)}")
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    ways = options.way or WAYS
    for way in ways:
        said = version(way)
        if said:
            print(said, end="")
            return 2
    cases = [
        (name, way, options.minutes * 60, options.shake)
        for way in ways
        for name in options.programs or LOADS
    ]
    random.shuffle(cases)
    bad = 0
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(options.jobs, context) as pool:
        for done in concurrent.futures.as_completed(
            [pool.submit(run, case) for case in cases]
        ):
            seen = done.result()
            report(seen)
            bad += bool(seen.errors)
    print(f"{len(cases) - bad} of {len(cases)} cases are right")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: MIT
"""Run others' test suites natively and under a command, and compare.

    peers.py [OPTION...] [-- PREFIX...]

Suites are the Open POSIX Test Suite ("posix") and libuv's tests ("libuv"); both
come from Debian's source packages, and are built in the work folder. Each test
is run natively, which is remembered there, then as "PREFIX... TEST". One that
passes natively and not so is run three more times both ways, to tell what fails
from what is flaky, and twelve more if it still does. Without a PREFIX there are
native runs only.

A name is SUITE/TEST, such as posix/fork/4-1 or libuv/tcp_ping_pong. A file of
known failures has one a line: the name, and the reason.

The last line is "N passed, N failed": of the tests that pass natively, how many
pass under the PREFIX, if only now and then, and how many don't, other than the
known. The status is 0 if none failed, 1 if some did, 2 if there was an error, 3
if the suites can't be fetched.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fcntl
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pool import Command, Outcome, PeersError, Pool, SourceError, settle
from suites import SUITES, Suite, Test
from verdict import (
    BOTH,
    FAILS,
    FLAKY,
    NATIVE_FLAKY,
    PASS,
    History,
    Record,
    Run,
    crossed,
    known_failures,
    natively,
    passes,
    summary,
)

WORK = Path(__file__).resolve().parents[3] / "build-test" / "peers"
AGAIN = (3, 15)  # more runs of what is suspect, and of what still fails


@dataclasses.dataclass
class Peers:
    """One run of the tool, over one suite."""

    suite: Suite
    pool: Pool
    prefix: list[str]
    timeout: float
    repeat: int
    history: History
    tests: list[Test] = dataclasses.field(default_factory=list)
    records: dict[str, Record] = dataclasses.field(default_factory=dict)

    def prepare(self, wanted: re.Pattern[str], known: dict[str, str]) -> None:
        progress(f"{self.suite.name}: building")
        built = self.suite.prepare(self.pool, wanted)
        # The longest first, for all to end together.
        self.tests = sorted(
            built.tests, key=lambda test: -self.history.seconds(test.name)
        )
        for test in built.tests:
            native = self.history.of(test.name, self.timeout)
            self.records[test.name] = Record(
                test.name, native, known=known.get(test.name, "")
            )
        for name, reason in built.unbuilt.items():
            self.records[name] = Record(name, unbuilt=reason)

    def run(self) -> None:
        """Every test as often as it should be."""
        self._more("native", {t.name: self.repeat for t in self.tests})
        if not self.prefix:
            return
        self._more("prefix", {t.name: self.repeat for t in self.tests})
        suspects = [r for r in self.records.values() if r.suspect()]
        for more in AGAIN:
            wanted = {r.name: self.repeat + more for r in suspects}
            self._more("prefix", wanted)
            self._more("native", wanted)
            suspects = [r for r in suspects if r.verdict() == FAILS]

    def _more(self, how: str, wanted: dict[str, int]) -> None:
        """Have so many runs of these."""
        commands = []
        for test in self.tests:
            have = len(self._runs(how, test.name))
            prefix = self.prefix if how == "prefix" else []
            command = test.command(prefix, self.timeout)
            commands += [command] * (wanted.get(test.name, 0) - have)
        begin = time.monotonic()
        left = len(commands)

        def done(command: Command, outcome: Outcome) -> None:
            nonlocal left
            left -= 1
            result = self.suite.result(outcome)
            output = "" if result == PASS else outcome.output
            run = Run(result, outcome.status, outcome.seconds, output)
            self._runs(how, command.name).append(run)
            progress(f"{how}: {left} left: {command.name} {result}")

        try:
            self.pool.run(commands, done)
        finally:
            self.history.save(self.records.values())
        if commands:
            seconds = time.monotonic() - begin
            print(f"{self.suite.name}: {len(commands)} {how} runs, {seconds:.1f} s")

    def _runs(self, how: str, name: str) -> list[Run]:
        record = self.records[name]
        return record.prefix if how == "prefix" else record.native

    def finished(self) -> list[Record]:
        """What has been run as it should, or can't be."""
        return [
            record
            for _, record in sorted(self.records.items())
            if record.unbuilt or record.native and (record.prefix or not self.prefix)
        ]

    def report(self) -> None:
        progress("")
        records = self.finished()
        print(f"\n{self.suite.name}: {len(records)} of {len(self.records)} tests")
        lines = crossed(records) + [""] + summary(records)
        print(*(lines if self.prefix else natively(records)), sep="\n", end="\n\n")


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text[:78]}", end="", file=sys.stderr, flush=True)


def options(words: list[str]) -> argparse.Namespace:
    prefix: list[str] = []
    if "--" in words:
        words, prefix = words[: words.index("--")], words[words.index("--") + 1 :]
    parser = argparse.ArgumentParser(
        description="Others' tests, natively and under a prefix.",
        usage="%(prog)s [OPTION...] [-- PREFIX...]",
    )
    add = parser.add_argument
    add("--work", type=Path, default=WORK, help="folder for all that is built")
    add("--suite", choices=SUITES, help="only this one")
    add("--filter", default="", metavar="REGEX", help="only tests whose name matches")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="tests at a time")
    add("--timeout", type=float, default=60.0, help="seconds, for a test")
    add("--limit", type=float, default=7200.0, help="seconds, for everything")
    add("--repeat", type=int, default=1, help="runs of each test, both ways")
    add("--native", action="store_true", help="forget earlier native results")
    add("--strict", action="store_true", help="count flaky tests as failed")
    add("--known", type=Path, help="file of tests that may fail")
    add("--out", type=Path, help="file for all results, as JSON")
    found = parser.parse_args(words)
    if found.jobs < 1 or found.repeat < 1:
        parser.error("--jobs and --repeat are at least 1")
    found.prefix = prefix
    return found


def program(prefix: Sequence[str]) -> list[str]:
    """Tests run in folders of their own, so a relative path must not be."""
    if not prefix:
        return []
    path = shutil.which(prefix[0])
    if path is None:
        raise PeersError(f"{prefix[0]}: not a command")
    return [os.path.abspath(path), *prefix[1:]]


@contextlib.contextmanager
def locked(work: Path) -> Iterator[None]:
    with (work / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PeersError(f"{work} is used by somebody else") from None
        yield


def save(path: Path, prefix: Sequence[str], records: Sequence[Record]) -> None:
    tests = {
        record.name: {**dataclasses.asdict(record), "verdict": record.verdict()}
        for record in records
    }
    path.write_text(json.dumps({"prefix": prefix, "tests": tests}, indent=1) + "\n")


def compare(given: argparse.Namespace, work: Path) -> list[Record]:
    """All suites that are wanted."""
    wanted = re.compile(given.filter)
    known = known_failures(given.known)
    pool = Pool(given.jobs, given.limit)
    history = History(work / "native.json", given.native)
    prefix = program(given.prefix)
    records: list[Record] = []
    for name in [given.suite] if given.suite else SUITES:
        suite = SUITES[name](work)
        peers = Peers(suite, pool, prefix, given.timeout, given.repeat, history)
        peers.prepare(wanted, known)
        try:
            peers.run()
        finally:
            # Of what there is, if it comes to an early end.
            records += peers.finished()
            if given.out:
                save(given.out, given.prefix, records)
            peers.report()
    return records


def conclude(records: Sequence[Record], given: argparse.Namespace) -> int:
    """Prints the last line."""
    if not records:
        raise PeersError(f"no test's name matches {given.filter!r}")
    if not given.prefix:
        passed = sum(run.passed for record in records for run in record.native[:1])
        print(f"{passed} passed, 0 failed")
        return 0
    bad = (FAILS, FLAKY) if given.strict else (FAILS,)
    good = {BOTH, FLAKY, NATIVE_FLAKY}.difference(bad)
    failed = sum(record.verdict() in bad for record in records)
    passed = sum(
        record.verdict() in good and passes(record.prefix) > 0 for record in records
    )
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


def main(words: list[str]) -> int:
    given = options(words)
    work = given.work.resolve()
    try:
        work.mkdir(parents=True, exist_ok=True)
        settle()
        with locked(work):
            return conclude(compare(given, work), given)
    except SourceError as error:
        progress("")
        print(f"peers.py: {error}", file=sys.stderr)
        return 3
    except (OSError, PeersError, re.error) as error:
        progress("")
        print(f"peers.py: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("peers.py: interrupted", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

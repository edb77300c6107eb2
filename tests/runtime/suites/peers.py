# SPDX-License-Identifier: MIT
"""Run test suites of other projects natively and under a command, and compare.

    peers.py [OPTION...] -- PREFIX...

The suites are the Open POSIX Test Suite ("posix") and libuv's tests ("libuv"). Both
come from Debian's source packages, and are built in the work folder. Each test runs
natively, and the work folder keeps the result. Then it runs as "PREFIX... TEST". A
test that passes only natively runs again in both ways, to distinguish failing tests
from flaky ones.

A name is SUITE/TEST, such as posix/fork/4-1 or libuv/tcp_ping_pong. A file of known
failures has one per line: the name, and the reason.

The last line is "N passed, N failed". It counts the tests that pass natively: how
many of them pass under the PREFIX, even if only sometimes, and how many fail and
aren't known failures. The status is 0 if none failed, 1 if some failed, 2 if there
was an error, 3 if the suites can't be fetched.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from runner import Outcome, PeersError, Runner, SourceError, settle
from suites import SUITES, Suite, Test

WORK = Path(__file__).resolve().parents[3] / "build-test" / "peers"
AGAIN = 15  # more runs of a test that seems to fail
PASS = "PASS"


class Peers:
    """One suite, run natively and under the prefix."""

    def __init__(self, suite: Suite, runner: Runner, timeout: float) -> None:
        self.suite = suite
        self.runner = runner
        self.timeout = timeout

    def results(self, tests: Sequence[Test], *prefix: str) -> dict[str, Outcome]:
        return self.runner.all([test.command(prefix, self.timeout) for test in tests])

    def passes(self, test: Test, *prefix: str) -> bool:
        outcome = self.runner.one(test.command(prefix, self.timeout))
        return self.suite.result(outcome) == PASS

    def fails(self, test: Test, prefix: Sequence[str]) -> str:
        """Return why a failed test isn't flaky; "" if it is, here or natively."""
        natively = 0
        for _ in range(AGAIN):
            if self.passes(test, *prefix):
                return ""
            natively += self.passes(test)
        if natively <= AGAIN / 2:
            return ""
        return f"passes natively {natively} times in {AGAIN}"

    def compare(
        self,
        tests: Sequence[Test],
        native: dict[str, str],
        prefix: Sequence[str],
        known: dict[str, str],
    ) -> tuple[int, int]:
        """Return how many tests pass and fail. Adds missing native results to "native"."""
        new = self.results([test for test in tests if test.name not in native])
        native |= {name: self.suite.result(outcome) for name, outcome in new.items()}
        tests = [test for test in tests if native[test.name] == PASS]
        failed = 0
        for name, outcome in sorted(self.results(tests, *prefix).items()):
            result = self.suite.result(outcome)
            if result == PASS:
                continue
            test = next(test for test in tests if test.name == name)
            why = known.get(name, "") or self.fails(test, prefix) or "flaky"
            bad = name not in known and why != "flaky"
            failed += bad
            last = outcome.output.strip().splitlines()[-1:]
            print(f"{name}: {result} ({why})", *(last if bad else []))
        return len(tests) - failed, failed


def known_failures(path: Path | None) -> dict[str, str]:
    found = {}
    for line in path.read_text().splitlines() if path else []:
        name, _, reason = line.partition("#")[0].strip().partition(" ")
        if name and not reason.strip():
            raise PeersError(f"{path}: {name}: the reason is missing")
        if name:
            found[name] = reason.strip()
    return found


def options(words: list[str]) -> argparse.Namespace:
    split = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        description="Others' tests, natively and under a prefix.",
        usage="%(prog)s [OPTION...] -- PREFIX...",
    )
    add = parser.add_argument
    add("--work", type=Path, default=WORK, help="folder for all that is built")
    add("--suite", choices=SUITES, help="only this one")
    add("--filter", default="", metavar="REGEX", help="only tests whose name matches")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="tests at a time")
    add("--timeout", type=float, default=60.0, help="seconds, for a test")
    add("--known", type=Path, help="file of tests that may fail")
    found = parser.parse_args(words[:split])
    found.prefix = words[split + 1 :]
    path = shutil.which(found.prefix[0]) if found.prefix else None
    if path is None:
        parser.error("after --, give a command that runs a program")
    # Tests run in folders of their own, so make a relative path absolute.
    found.prefix[0] = os.path.abspath(path)
    return found


def run(given: argparse.Namespace) -> int:
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    settle()
    history = work / "results.json"
    runner = Runner(given.jobs)
    passed = failed = 0
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PeersError(f"{work} is used by another process") from None
        native = json.loads(history.read_text()) if history.exists() else {}
        for name in [given.suite] if given.suite else SUITES:
            suite = SUITES[name](work)
            tests = suite.prepare(runner, re.compile(given.filter))
            peers = Peers(suite, runner, given.timeout)
            known = known_failures(given.known)
            more = peers.compare(tests, native, given.prefix, known)
            history.write_text(json.dumps(native))
            passed, failed = passed + more[0], failed + more[1]
    if not passed + failed:
        raise PeersError(f"no test's name matches {given.filter!r}")
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


def main(words: list[str]) -> int:
    given = options(words)
    try:
        return run(given)
    except (OSError, PeersError, re.error) as error:
        print(f"peers.py: {error}", file=sys.stderr)
        return 3 if isinstance(error, SourceError) else 2
    except KeyboardInterrupt:
        print("peers.py: interrupted", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

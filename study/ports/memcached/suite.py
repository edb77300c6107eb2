#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run memcached's own tests with stock memcached and with the port, and compare:
suite.py FLEXSC [FILE...]. A FILE is a name of memcached's folder "t", such as udp.t.

The files run one after the other, because some of them use fixed ports. A file that
fails in one way only runs again in both, AGAIN times at most: another process may use
such a port. The last line is "N passed, N failed".
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path += [str(HERE.parents[2]), str(HERE.parents[3] / "bench")]

from flexbench.samples import BenchError  # noqa: E402
from flexstudy import ports  # noqa: E402

LIMIT_S = 300
AGAIN = 3


def outcome(folder: Path, name: str) -> str:
    """The result of a file: PASS, FAIL or NOTESTS, and which tests failed."""
    try:
        done = subprocess.run(
            ["prove", f"t/{name}"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "timed out"
    lines = done.stdout.splitlines()
    found = [x.strip() for x in lines if x.startswith(("Result:", "  Failed test"))]
    return " ".join(reversed(found)).removeprefix("Result: ") or f"{done.returncode}"


def passes(built: ports.Built, name: str) -> bool:
    """Does the port pass what stock memcached passes?"""
    for _ in range(AGAIN):
        stock, ported = outcome(built.stock, name), outcome(built.ported, name)
        if ported in (stock, "PASS"):
            if stock != "PASS":
                print(f"{name}: stock {stock}, ported {ported}")
            return True
    print(f"{name}: stock {stock}, ported {ported}")
    return False


def main(words: Sequence[str]) -> int:
    if not words:
        print("usage: suite.py FLEXSC [FILE...]", file=sys.stderr)
        return 2
    try:
        built = ports.memcached(words[0])
        names = words[1:] or sorted(path.name for path in built.stock.glob("t/*.t"))
        results = [passes(built, name) for name in names]
    except (BenchError, OSError) as error:
        print(f"suite.py: {error}", file=sys.stderr)
        return 2
    print(f"{sum(results)} passed, {results.count(False)} failed")
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: MIT
"""The benches of flexsc bench."""

from __future__ import annotations

import sys

from . import calls, command, crawl, reads, serve, threads, timers
from .command import Bench, every

COMMAND = command.Command(
    "bench",
    "Measure system calls, timers, reads and servers",
    {
        "calls": Bench(calls, several=every),
        "timers": Bench(timers),
        "reads": Bench(reads),
        "crawl": Bench(crawl),
        "serve": Bench(serve, networked=True, swept=True, several=every),
        "threads": Bench(threads, run=True),
    },
)

if __name__ == "__main__":
    command.end_by_signals()
    sys.exit(command.main(COMMAND, sys.argv[1:]))

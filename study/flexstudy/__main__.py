# SPDX-License-Identifier: MIT
"""The benches of flexsc study."""

from __future__ import annotations

import sys

from flexbench import command
from flexbench.command import Bench

from . import (
    cost,
    counters,
    counts,
    memory,
    nginx,
    overload,
    overload_plan,
    programs,
    send,
    webserver,
)

COMMAND = command.Command(
    "study",
    "Measure what the papers' figures show",
    {
        "cost": Bench(cost),
        "memory": Bench(memory, apart=True),
        "send": Bench(send),
        "nginx": Bench(
            nginx,
            apart=True,
            words=nginx.parse,
            networked=True,
            several=nginx.parse_several,
        ),
        "programs": Bench(
            programs,
            words=programs.parse,
            networked=True,
            swept=True,
            run=True,
            several=programs.parse_several,
        ),
        "counts": Bench(counts, apart=True, words=counts.parse),
        "counters": Bench(
            counters,
            apart=True,
            words=counters.parse,
            several=counters.parse_several,
        ),
        "webserver": Bench(
            webserver,
            apart=True,
            words=webserver.parse,
            networked=True,
            tuned=True,
            several=webserver.parse_several,
        ),
        "overload": Bench(
            overload,
            apart=True,
            words=overload_plan.parse,
            networked=True,
        ),
    },
)

if __name__ == "__main__":
    command.end_by_signals()
    sys.exit(command.main(COMMAND, sys.argv[1:]))
